#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/options/command.h"
#include "cli/options/shared_options.h"
#include "model/base/memory.h"
#include "plots/figure.h"

/* "1600x900"; false when it is something else. */
static bool size_parse(const char *text, int *width, int *height)
{
    char *end;
    long w = strtol(text, &end, 10), h = *end == 'x' ? strtol(end + 1, &end, 10) : 0;
    if (*end || w < 20 || h < 10 || w > 20000 || h > 20000)
        return false;
    *width = (int)w;
    *height = (int)h;
    return true;
}

static enum status check_size(const char *text, char *why, size_t size)
{
    int width, height;
    if (size_parse(text, &width, &height))
        return STATUS_OK;
    snprintf(why, size, "'%.40s' is not a size; write for example 1600x900", text);
    return STATUS_BAD_INPUT;
}

static enum status choose_window(struct invocation *call, struct figure_options *figure)
{
    figure->from_s = option_quantity(call, "from");
    figure->to_s = option_given(call, "to") ? option_quantity(call, "to") : option_given(call, "from") ? HUGE_VAL : 0;
    if (figure->to_s > figure->from_s || figure->to_s <= 0)
        return STATUS_OK;
    diag_error(&call->diags, PLACE_NONE, "--to must be later than --from");
    return STATUS_USAGE;
}

static void choose_size(const struct invocation *call, struct figure_options *figure)
{
    struct winsize window;
    bool on_terminal = figure->terminal == TERMINAL_TEXT && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0;
    if (option_text(call, "size"))
        (void)size_parse(option_text(call, "size"), &figure->width, &figure->height);
    else if (on_terminal && window.ws_col >= 60)
        figure->width = window.ws_col - 1;
}

/* gnuplot begins text with a form feed, ends lines in blanks and the whole in empty lines; none is part of the picture. */
static void write_text(const char *picture, size_t n, FILE *out)
{
    const char *p = picture, *end = picture + n;
    while (end > p && (end[-1] == '\n' || end[-1] == ' '))
        end--;
    while (p < end && (*p == '\f' || *p == '\n' || *p == ' '))
        p++;
    while (p > picture && p[-1] == ' ')
        p--;
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;
        size_t length = (size_t)(stop - p);
        while (length && p[length - 1] == ' ')
            length--;
        fwrite(p, 1, length, out);
        putc('\n', out);
        p = newline ? newline + 1 : end;
    }
}

static enum status draw(struct invocation *call, const struct figure_input *inputs, size_t n_inputs)
{
    struct figure_options figure = {.colour = call->colour, .title = option_text(call, "title")};
    char *picture;
    size_t n;
    enum status status = figure_terminal_of(option_text(call, "output"), &figure.terminal, &call->diags);
    if (status != STATUS_OK)
        return status;
    int kind = option_choice(call, "kind");
    figure.kind = kind >= 0 ? (enum figure_kind)kind : figure_kind_of(&inputs[0], &call->diags);
    if (figure.kind == N_FIGURE_KINDS)
        return STATUS_BAD_INPUT;
    if (choose_window(call, &figure) != STATUS_OK)
        return STATUS_USAGE;
    choose_size(call, &figure);
    if (option_flag(call, "script"))
        return figure_script(&figure, inputs, n_inputs, call->out, &call->diags);
    status = figure_draw(&figure, inputs, n_inputs, &picture, &n, &call->diags);
    if (status != STATUS_OK)
        return status;
    if (figure.terminal == TERMINAL_TEXT)
        write_text(picture, n, call->out);
    else
        fwrite(picture, 1, n, call->out);
    free(picture);
    return STATUS_OK;
}

static enum status run(struct invocation *call)
{
    if (option_given(call, "format")) {
        diag_error(&call->diags, PLACE_NONE,
                   "--format does not apply to figures; choose the format by name: -o FILE.png, .svg, .pdf or .txt");
        return STATUS_USAGE;
    }
    struct figure_input *inputs = memory_new((size_t)call->n_operands, sizeof *inputs);
    size_t n_inputs = 0;
    enum status status = STATUS_OK;
    for (int i = 0; i < call->n_operands && status == STATUS_OK; i++) {
        status = figure_input_read(call->operands[i], &inputs[n_inputs], &call->diags);
        n_inputs += status == STATUS_OK;
    }
    if (status == STATUS_OK)
        status = draw(call, inputs, n_inputs);
    for (size_t i = 0; i < n_inputs; i++)
        figure_input_free(&inputs[i]);
    free(inputs);
    return status;
}

static const char *const kinds[] = {"timeline", "breakdown", "run",   "scatter", "errors", "sweep",
                                    "replicas", "faults",    "links", "scaling", "end",    NULL};

static const struct option_row options[] = {
    {.name = "kind",
     .letter = 'k',
     CHOICE_FIELDS("KIND", kinds),
     .fallback = "the one that suits the file",
     .help = "choose the figure"},
    {.name = "size",
     TEXT_FIELDS("WxH"),
     .check = check_size,
     .fallback = "fits the terminal or the figure",
     .help = "set the size, in pixels or, as text, in characters"},
    {.name = "from", TIME_FIELDS, .initial = "0s", .help = "show the timeline from this time"},
    {.name = "to", TIME_FIELDS, .fallback = "its end", .help = "show the timeline until this time"},
    {.name = "title", TEXT_FIELDS("TEXT"), .fallback = "made from the result", .help = "set the title"},
    {.name = "script", .type = OPTION_FLAG, .help = "write the gnuplot script with its data, instead of the figure"},
    {0},
};

static const struct example examples[] = {
    {"msim plot run.json", "draw a run's goodput and MFU in the terminal"},
    {"msim plot -o scatter.png compare.json", "draw predicted against measured times as PNG"},
    {"msim plot --kind errors -o errors.svg compare.json", "draw the mean error of every table"},
    {"msim plot -o where.png before.json after.json", "draw two breakdowns side by side"},
    {"msim plot -o links.png links.csv", "draw the heat map of a fabric, from --link-map of msim step or msim fabric load"},
    {0},
};

static const struct command_note notes[] = {
    {"Figures", "timeline: the operations of each pipeline stage. breakdown: time by class, one bar per file, with the "
                "settings that differ, or the first plans of msim plan (not of --levers, nor two experiments of one msim "
                "step). run: goodput and MFU over time. scatter: predicted against measured. errors: mean error of each "
                "table. sweep, replicas: goodput of many runs, or times of many steps; a sweep of two keys is a set of "
                "curves, or a map if both have many values. end: when training ends, from msim run --tokens --replicas. "
                "faults: the contents of a trace. links: the traffic of each link of a fabric. scaling: tokens/s and MFU "
                "of the best plans of msim plan --sweep."},
    {0},
};

const struct command command_plot = {
    .name = "plot",
    .summary = "draw a figure from a result file",
    .description = "Draws results that other commands wrote with --format json, and timelines and link maps in CSV, with "
                   "gnuplot: in the terminal, or as PNG, SVG or PDF if -o names such a file.",
    .operands = "RESULT...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .notes = notes,
    .examples = examples,
    .run = run,
};
