/* figure.c - reads inputs, chooses the kind of figure, and writes the script for gnuplot. */
#include "plots/figure.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/base/file.h"
#include "model/spec/catalog.h"
#include "plots/figure_data.h"
#include "plots/gnuplot.h"

static const struct {
    const char *name;
    int width, height;           /* dots */
    int text_width, text_height; /* characters */
} kinds[N_FIGURE_KINDS] = {
    [FIGURE_TIMELINE] = {"timeline", 1600, 800, 100, 30}, [FIGURE_BREAKDOWN] = {"breakdown", 1200, 800, 100, 30},
    [FIGURE_RUN] = {"run", 1600, 1000, 100, 40},          [FIGURE_SCATTER] = {"scatter", 1500, 1000, 100, 40},
    [FIGURE_ERRORS] = {"errors", 1400, 900, 100, 34},     [FIGURE_SWEEP] = {"sweep", 1400, 900, 100, 34},
    [FIGURE_REPLICAS] = {"replicas", 1400, 900, 100, 34}, [FIGURE_FAULTS] = {"faults", 1400, 900, 100, 34},
    [FIGURE_LINKS] = {"links", 1500, 1100, 100, 24},      [FIGURE_SCALING] = {"scaling", 1400, 900, 100, 34},
    [FIGURE_END] = {"end", 1400, 900, 100, 34},
};

static const char *figure_name(enum figure_kind kind)
{
    return kinds[kind].name;
}

enum status figure_terminal_of(const char *path, enum figure_terminal *terminal, struct diags *diags)
{
    static const struct {
        const char *ending;
        enum figure_terminal terminal;
    } endings[] = {{".png", TERMINAL_PNG}, {".svg", TERMINAL_SVG}, {".pdf", TERMINAL_PDF}, {".txt", TERMINAL_TEXT}};
    if (strcmp(path, "-") == 0) {
        *terminal = TERMINAL_TEXT;
        return STATUS_OK;
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(path);
        if (n >= 4 && strcasecmp(path + n - 4, endings[i].ending) == 0) {
            *terminal = endings[i].terminal;
            return STATUS_OK;
        }
    }
    diag_error(diags, (struct place){.file = path}, "the figure's file must end in .png, .svg, .pdf or .txt");
    return STATUS_USAGE;
}

/* --- inputs -------------------------------------------------------------------------------------------------------- */

static enum status parse_json(const char *path, const char *text, size_t n, json_t **result, struct diags *diags)
{
    json_error_t error;
    json_t *parsed = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (parsed && json_is_object(parsed)) {
        *result = parsed;
        return STATUS_OK;
    }
    json_decref(parsed);
    diag_error(diags, (struct place){.file = path, .line = error.line, .column = error.column}, "not a JSON result: %s",
               error.text);
    return STATUS_BAD_INPUT;
}

enum status figure_input_parse(const char *name, const char *text, size_t n, struct figure_input *input, struct diags *diags)
{
    struct figure_input read = {.name = name};
    size_t first = 0;
    while (first < n && isspace((unsigned char)text[first]))
        first++;
    enum status status =
        text[first] == '{' ? parse_json(name, text, n, &read.result, diags) : csv_table_parse(name, text, n, &read.csv, diags);
    if (status == STATUS_OK)
        *input = read;
    else if (text[first] != '{')
        diag_note(diags, (struct place){.file = name},
                  "taken for a timeline as CSV; a JSON result begins with {, and an experiment gives one with `msim step FILE "
                  "--format json -o step.json`");
    return status;
}

enum status figure_input_read(const char *path, struct figure_input *input, struct diags *diags)
{
    char *text;
    size_t n;
    enum status status = file_read(path, FILE_TEXT_MAX, &text, &n, diags);
    if (status != STATUS_OK)
        return status;
    status = figure_input_parse(path, text, n, input, diags);
    free(text);
    return status;
}

void figure_input_free(struct figure_input *input)
{
    json_decref(input->result);
    csv_table_free(&input->csv);
    *input = (struct figure_input){0};
}

/* The CSV of --replicas, which is no timeline without its columns. */
static bool is_replicas(const struct figure_input *input)
{
    return input->result == NULL && csv_table_column(&input->csv, "replica") >= 0 && csv_table_column(&input->csv, "seed") >= 0;
}

/* The end of the message for a result that cannot be drawn: what can be. */
static const char *drawable(const json_t *result)
{
    if (json_object_get(json_object_get(result, "levers"), "changes"))
        return ": --levers of msim plan is a table; its search without --levers, or its --sweep, can be drawn";
    const char *command = json_string_value(json_object_get(result, "command"));
    if (command && strcmp(command, "validate") == 0)
        return ": msim validate --figure FILE draws its two timelines, and --timeline FILE writes them as CSV for msim plot";
    if (json_object_get(result, "a") && json_object_get(result, "b"))
        return " of two experiments side by side; msim step writes each by itself (--format json -o), and both are drawn as msim "
               "plot A.json B.json";
    return "; what can be drawn, with --format json, is a step of msim step or its --replicas, a search of msim plan or its "
           "--sweep, msim run with its --replicas and --sweep, msim compare, and msim faults summary";
}

enum figure_kind figure_kind_of(const struct figure_input *input, struct diags *diags)
{
    const json_t *result = input->result;
    if (figure_is_links(input))
        return FIGURE_LINKS;
    if (is_replicas(input))
        return FIGURE_REPLICAS;
    if (!result || json_is_array(json_object_get(result, "timeline")))
        return FIGURE_TIMELINE;
    if (json_object_get(result, "sweep"))
        return FIGURE_SWEEP;
    if (json_object_get(result, "scaling"))
        return FIGURE_SCALING;
    if (figure_number(result, "reached") > 0)
        return FIGURE_END;
    if (json_is_array(json_object_get(result, "outcomes")))
        return FIGURE_REPLICAS;
    if (json_is_array(json_object_get(result, "top_nodes")))
        return FIGURE_FAULTS;
    if (json_is_array(json_object_get(result, "series")))
        return FIGURE_RUN;
    if (json_is_array(json_object_get(result, "sources")))
        return FIGURE_SCATTER;
    if (json_object_get(result, "breakdown") || json_object_get(result, "plans"))
        return FIGURE_BREAKDOWN;
    diag_error(diags, (struct place){.file = input->name}, "nothing to draw%s", drawable(result));
    return N_FIGURE_KINDS;
}

/* --- the script ---------------------------------------------------------------------------------------------------- */

/* Characters that end a single-quoted gnuplot string are doubled. */
static void write_quoted(FILE *out, const char *text)
{
    putc('\'', out);
    for (; *text; text++) {
        if (*text == '\'')
            putc('\'', out);
        putc((unsigned char)*text < ' ' ? ' ' : *text, out);
    }
    putc('\'', out);
}

/* Text figures know how many lines suit their data (text_lines), unless a size was asked for. */
static void write_text_terminal(const struct figure_options *options, FILE *out)
{
    int width = options->width ? options->width : kinds[options->kind].text_width;
    int height = options->height ? options->height : kinds[options->kind].text_height;
    const char *lines = options->height ? "" : "exists('text_lines') ? text_lines : ";
    fprintf(out, "set terminal dumb noenhanced size %d,(%s%d) %s\ntext_width = %d\n", width, lines, height,
            options->colour ? "ansi256" : "mono", width);
}

static void write_terminal(const struct figure_options *options, FILE *out)
{
    enum { PNG_FONT = 13, SVG_FONT = 17, PDF_FONT = 11, DOTS_PER_INCH = 120 };
    int width = options->width ? options->width : kinds[options->kind].width;
    int height = options->height ? options->height : kinds[options->kind].height;
    int font = options->terminal == TERMINAL_SVG ? SVG_FONT : options->terminal == TERMINAL_PDF ? PDF_FONT : PNG_FONT;
    fprintf(out, "is_text = %d\nfont_size = %d\n", options->terminal == TERMINAL_TEXT, font);
    switch (options->terminal) {
    case TERMINAL_TEXT: write_text_terminal(options, out); break;
    case TERMINAL_PNG:
        fprintf(out, "set terminal pngcairo noenhanced size %d,%d font 'DejaVu Sans,%d' fontscale 1.15 linewidth 1.4\n", width,
                height, font);
        break;
    case TERMINAL_SVG:
        fprintf(
            out,
            "set terminal svg noenhanced size %d,%d dynamic font 'DejaVu Sans, Helvetica, Arial, sans-serif,%d' linewidth 1.4 "
            "background '#ffffff'\n",
            width, height, font);
        break;
    case TERMINAL_PDF:
        fprintf(out, "set terminal pdfcairo noenhanced size %.3fin,%.3fin font 'DejaVu Sans,%d' linewidth 1.2\n",
                (double)width / DOTS_PER_INCH, (double)height / DOTS_PER_INCH, font);
        break;
    }
    fputs("set datafile separator \"\\t\"\nset datafile commentschars ''\n", out);
}

/* The title: the requested one, or the model of the experiment; '' without either. */
static void write_title(const struct figure_options *options, const struct figure_input *inputs, size_t n_inputs, FILE *out)
{
    const json_t *experiment = json_object_get(inputs[0].result, "config");
    const char *model = json_string_value(json_object_get(json_object_get(experiment, "model"), "name"));
    const char *title = options->title ? options->title : n_inputs == 1 && !figure_has_models(inputs[0].result) ? model : NULL;
    fputs("figure_title = ", out);
    write_quoted(out, title ? title : "");
    fputc('\n', out);
}

static enum status write_data(const struct figure_options *options, const struct figure_input *inputs, size_t n_inputs, FILE *out,
                              struct diags *diags)
{
    bool wants_result = options->kind != FIGURE_TIMELINE && options->kind != FIGURE_BREAKDOWN && options->kind != FIGURE_LINKS &&
                        options->kind != FIGURE_REPLICAS; /* which says whose */
    if (n_inputs > 1 && options->kind != FIGURE_BREAKDOWN) {
        diag_error(diags, (struct place){.file = inputs[1].name}, "a figure of kind %s takes one file",
                   figure_name(options->kind));
        return STATUS_USAGE;
    }
    if (wants_result && !inputs[0].result) {
        diag_error(diags, (struct place){.file = inputs[0].name}, "a figure of kind %s needs a JSON result",
                   figure_name(options->kind));
        return STATUS_BAD_INPUT;
    }
    enum { LANE_MARGINS = 13 }; /* lane names and the frame */
    int text_columns = (options->width ? options->width : kinds[FIGURE_TIMELINE].text_width) - LANE_MARGINS;
    switch (options->kind) {
    case FIGURE_TIMELINE: return figure_data_timeline(options, &inputs[0], text_columns, out, diags);
    case FIGURE_BREAKDOWN: return figure_data_breakdown(inputs, n_inputs, out, diags);
    case FIGURE_RUN: return figure_data_run(&inputs[0], out, diags);
    case FIGURE_SCATTER: return figure_data_scatter(&inputs[0], out, diags);
    case FIGURE_ERRORS: return figure_data_errors(&inputs[0], out, diags);
    case FIGURE_SWEEP:
        return figure_is_grid(inputs[0].result) ? figure_data_grid(&inputs[0], out, diags)
                                                : figure_data_sweep(&inputs[0], out, diags);
    case FIGURE_REPLICAS: return figure_data_replicas(&inputs[0], out, diags);
    case FIGURE_FAULTS: return figure_data_faults(&inputs[0], out, diags);
    case FIGURE_LINKS: return figure_data_links(&inputs[0], out, diags);
    case FIGURE_SCALING: return figure_data_scaling(&inputs[0], out, diags);
    case FIGURE_END: return figure_data_end(&inputs[0], out, diags);
    case N_FIGURE_KINDS: break;
    }
    return STATUS_USAGE;
}

static enum status write_load(const char *name, FILE *out, struct diags *diags)
{
    char relative[64];
    snprintf(relative, sizeof relative, "plots/%s.gp", name);
    char *path = data_path(relative);
    if (!path) {
        diag_error(diags, PLACE_NONE, "%s is not installed; MSIM_DATA names the folder of msim's data", relative);
        return STATUS_FAILED;
    }
    fputs("load ", out);
    write_quoted(out, path);
    fputc('\n', out);
    free(path);
    return STATUS_OK;
}

enum status figure_script(const struct figure_options *options, const struct figure_input *inputs, size_t n_inputs, FILE *out,
                          struct diags *diags)
{
    fputs("reset session\nset encoding utf8\n", out);
    write_title(options, inputs, n_inputs, out);
    enum status status = write_data(options, inputs, n_inputs, out, diags);
    if (status != STATUS_OK)
        return status;
    write_terminal(options, out);
    status = write_load("style", out, diags);
    bool grid = options->kind == FIGURE_SWEEP && figure_is_grid(inputs[0].result);
    return status == STATUS_OK ? write_load(grid ? "grid" : figure_name(options->kind), out, diags) : status;
}

enum status figure_draw(const struct figure_options *options, const struct figure_input *inputs, size_t n_inputs, char **picture,
                        size_t *n_picture, struct diags *diags)
{
    char *script = NULL;
    size_t n_script = 0;
    FILE *out = open_memstream(&script, &n_script);
    if (!out) {
        diag_error(diags, PLACE_NONE, "no memory for a figure");
        return STATUS_FAILED;
    }
    enum status status = figure_script(options, inputs, n_inputs, out, diags);
    fclose(out);
    if (status == STATUS_OK)
        status = gnuplot_run(script, n_script, picture, n_picture, diags);
    free(script);
    return status;
}
