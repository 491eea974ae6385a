/*
 * validate_timeline.c - the predicted and the measured timeline in one table, trace or figure.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/output/result.h"
#include "cli/validate/validate_internal.h"
#include "model/layout/dimension_value.h"
#include "plots/figure.h"

enum { FIGURE_RANKS = 8 };

/* --- as a table */

/* Lines of `csv` behind a first cell; the header only before the first timeline. */
static void write_lines(FILE *out, const char *csv, const char *source, bool header)
{
    for (const char *line = csv, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        bool is_header = line == csv;
        if (!is_header || header)
            fprintf(out, "%s,%.*s\n", is_header ? "source" : source, (int)(end - line), line);
    }
}

static void write_one(const struct validation *v, const struct timeline *timeline, bool measured, FILE *out)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return;
    timeline_write_csv(timeline, &v->program, memory);
    if (fclose(memory) == 0)
        write_lines(out, text, measured ? "measured" : "predicted", !measured);
    free(text);
}

void validate_timeline(const struct validation *v, FILE *out)
{
    write_one(v, &v->predicted, false, out);
    write_one(v, &v->run.timeline, true, out);
}

/* --- as a figure: all ranks, or the first of each stage when they are many */

static bool is_drawn(const struct validation *v, int rank)
{
    struct coordinates at = layout_coordinates(&v->setup->layout, rank);
    return v->program.n_ranks <= FIGURE_RANKS || v->devices.alone >= 0 || (at.tp == 0 && at.cp == 0 && at.dp == 0);
}

static struct timeline drawn(const struct validation *v, const struct timeline *all)
{
    struct timeline some = {0};
    for (size_t i = 0; i < all->n_spans; i++)
        if (is_drawn(v, all->spans[i].rank))
            timeline_record(&some, all->spans[i]);
    timeline_close(&some);
    return some;
}

/* "tiny-gpt, tp=2 pp=2": what the layout divides. */
static void write_title(const struct validation *v, char *title, size_t size)
{
    const struct layout *l = &v->setup->layout;
    static const enum layout_dimension shown[] = {DIMENSION_TP,    DIMENSION_CP,         DIMENSION_PP,  DIMENSION_VPP,
                                                  DIMENSION_DP,    DIMENSION_EP,         DIMENSION_ETP, DIMENSION_ZERO,
                                                  DIMENSION_SHARD, DIMENSION_MICRO_BATCH};
    const char *separator = ", ";
    size_t at = (size_t)snprintf(title, size, "%s", v->setup->experiment.model.name);
    for (size_t i = 0; i < sizeof shown / sizeof shown[0] && at < size; i++) {
        if (dimension_is_usual(l, shown[i]))
            continue;
        at += (size_t)snprintf(title + at, size - at, "%s%s=%d", separator, layout_dimensions[shown[i]].word,
                               dimension_number(l, shown[i]));
        separator = " ";
    }
}

static enum status draw(struct invocation *call, const char *title, const char *path, const char *text, size_t size, FILE *out)
{
    struct figure_options options = {.kind = FIGURE_TIMELINE, .title = title};
    struct figure_input input;
    char *picture;
    size_t n;
    enum status status = figure_terminal_of(path, &options.terminal, &call->diags);
    if (status == STATUS_OK)
        status = figure_input_parse("the two timelines", text, size, &input, &call->diags);
    if (status != STATUS_OK)
        return status;
    status = figure_draw(&options, &input, 1, &picture, &n, &call->diags);
    if (status == STATUS_OK) {
        fwrite(picture, 1, n, out);
        free(picture);
    }
    figure_input_free(&input);
    return status;
}

enum status validate_figure(struct invocation *call, const struct validation *v, const char *path, FILE *out)
{
    struct timeline predicted = drawn(v, &v->predicted), measured = drawn(v, &v->run.timeline);
    char title[160], *text = NULL;
    size_t size = 0;
    enum status status = STATUS_FAILED;
    FILE *memory = open_memstream(&text, &size);
    write_title(v, title, sizeof title);
    if (memory) {
        write_one(v, &predicted, false, memory);
        write_one(v, &measured, true, memory);
        if (fclose(memory) == 0)
            status = draw(call, title, path, text, size, out);
    }
    free(text);
    timeline_free(&predicted);
    timeline_free(&measured);
    return status;
}

/* --- as a trace */

enum { MEASURED_PIDS = 1000000 };

static json_t *trace_events(const struct timeline *timeline, const struct program *program, const char *name, struct diags *diags)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    json_t *events = NULL;
    if (!memory)
        return NULL;
    enum status status = timeline_write_chrome(timeline, program, name, memory, diags);
    if (fclose(memory) == 0 && status == STATUS_OK) {
        json_t *trace = json_loadb(text, size, 0, NULL);
        events = json_incref(json_object_get(trace, "traceEvents"));
        json_decref(trace);
    }
    free(text);
    return events;
}

/* Measured rows stand below the predicted ones of their rank; arrows keep to their own timeline. */
static void shift(json_t *event, bool measured)
{
    json_int_t pid = json_integer_value(json_object_get(event, "pid"));
    json_t *arguments = json_object_get(event, "args"), *order = json_object_get(arguments, "sort_index");
    json_t *id = json_object_get(event, "id");
    bool of_rank = order && !json_object_get(event, "tid");
    if (of_rank)
        json_object_set_new(arguments, "sort_index", json_integer(2 * json_integer_value(order) + measured));
    if (measured)
        json_object_set_new(event, "pid", json_integer(pid + MEASURED_PIDS));
    if (measured && json_is_integer(id))
        json_object_set_new(event, "id", json_integer(json_integer_value(id) + INT32_MAX));
}

enum status validate_trace(struct invocation *call, const struct validation *v, FILE *out)
{
    json_t *both = json_array();
    for (int measured = 0; measured < 2; measured++) {
        json_t *events = trace_events(measured ? &v->run.timeline : &v->predicted, &v->program,
                                      measured ? "measured" : "predicted", &call->diags);
        size_t i;
        json_t *event;
        json_array_foreach(events, i, event) shift(event, measured);
        json_array_extend(both, events);
        json_decref(events);
    }
    json_t *trace = json_pack("{s:o}", "traceEvents", both);
    int failed = json_dumpf(trace, out, JSON_COMPACT);
    json_decref(trace);
    return failed ? STATUS_FAILED : STATUS_OK;
}
