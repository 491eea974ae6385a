/* figure_timeline.c - the lanes of a pipeline: the operations of a timeline as boxes, labels and, for text, letters. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "plots/figure_data.h"
#include "plots/palette.h"

/* The content of a box; the order is that of the legend. */
enum activity { FORWARD, BACKWARD, BACKWARD_WEIGHT, OPTIMIZER, GRADIENTS, EXCHANGE, COPIES, OTHER, N_ACTIVITIES };
static const struct {
    const char *title;
    uint32_t colour;
    char letter;
} activities[N_ACTIVITIES] = {
    [FORWARD] = {"forward", COLOUR_BLUE, 'F'},
    [BACKWARD] = {"backward", COLOUR_VERMILION, 'B'},
    [BACKWARD_WEIGHT] = {"backward, weights", COLOUR_GREEN, 'W'},
    [OPTIMIZER] = {"optimizer", COLOUR_PURPLE, 'O'},
    [GRADIENTS] = {"gradient and parameter exchange", COLOUR_ORANGE, 'd'},
    [EXCHANGE] = {"tensor-parallel exchange", COLOUR_SKY, 't'},
    [COPIES] = {"host copies", COLOUR_YELLOW, 'h'},
    [OTHER] = {"other work", COLOUR_GREY, 'x'},
};

enum { LONGER_NAMES = 10 };                     /* characters that names of pairs of lanes take more */
enum source { PREDICTED, MEASURED, N_SOURCES }; /* of a timeline that has both; PREDICTED otherwise */

struct bar {
    int rank, stage;
    enum source source;
    int lane;
    enum activity activity;
    bool strip; /* an exchange that overlaps computation: drawn in the thin lower part of the lane */
    int chunk, micro_batch;
    double start_s, end_s;
};

struct bars {
    struct bar *items;
    size_t n, capacity;
    int n_lanes, n_chunks;
    bool by_rank;   /* several ranks of a stage are there: lanes are ranks */
    bool both;      /* predicted and measured are there: a lane for each */
    double spacing; /* between pairs of lanes */
    double step_s;  /* when the last operation ended */
    double ends_s[N_SOURCES];
    double from_s, to_s; /* what is shown */
};

/* --- reading ------------------------------------------------------------------------------------------------------- */

static enum activity activity_of(const char *stream, const char *pass)
{
    if (strcmp(stream, "dp") == 0)
        return GRADIENTS;
    if (strcmp(stream, "tp") == 0)
        return EXCHANGE;
    if (strcmp(stream, "down") == 0 || strcmp(stream, "up") == 0)
        return COPIES;
    if (strcmp(pass, "forward") == 0)
        return FORWARD;
    if (strcmp(pass, "backward_weight") == 0)
        return BACKWARD_WEIGHT;
    if (strncmp(pass, "backward", 8) == 0)
        return BACKWARD;
    return strcmp(pass, "optimizer") == 0 ? OPTIMIZER : OTHER;
}

/* Messages between stages show as the gaps they leave; what takes no time shows nothing. */
static void add_bar(struct bars *bars, struct bar bar, const char *stream, const char *pass)
{
    bool message = strcmp(stream, "send") == 0 || strcmp(stream, "recv") == 0;
    if (message || !(bar.end_s > bar.start_s))
        return;
    bar.activity = activity_of(stream, pass);
    bar.strip = strcmp(stream, "compute") != 0;
    if (bar.chunk >= bars->n_chunks)
        bars->n_chunks = bar.chunk + 1;
    bars->step_s = fmax(bars->step_s, bar.end_s);
    bars->ends_s[bar.source] = fmax(bars->ends_s[bar.source], bar.end_s);
    bars->items = memory_grow(bars->items, &bars->capacity, bars->n + 1, sizeof *bars->items);
    bars->items[bars->n++] = bar;
}

static enum status read_csv(const struct figure_input *input, struct bars *bars, struct diags *diags)
{
    enum { RANK, STAGE, STREAM, PASS, CHUNK, MICRO_BATCH, START, END, SOURCE, N };
    static const struct csv_column expected[N] = {{"rank", true},    {"stage", true}, {"stream", true},
                                                  {"pass", true},    {"chunk", true}, {"micro_batch", true},
                                                  {"start_s", true}, {"end_s", true}, {"source", false}};
    const struct csv_table *t = &input->csv;
    int columns[N];
    size_t errors_before = diags->n_errors;
    if (csv_table_columns(t, expected, N, columns, diags) != STATUS_OK)
        return STATUS_BAD_INPUT;
    for (size_t row = 0; row < t->n_rows; row++) {
        int64_t whole[4] = {0};
        double times[2] = {0};
        static const int whole_columns[] = {RANK, STAGE, CHUNK, MICRO_BATCH};
        bool good = true;
        for (int i = 0; i < 4; i++)
            good &= csv_cell_integer(t, row, columns[whole_columns[i]], -1, 1 << 30, &whole[i], diags) == STATUS_OK;
        for (int i = 0; i < 2; i++)
            good &= csv_cell_number(t, row, columns[START + i], 0, 1e9, &times[i], diags) == STATUS_OK;
        bool measured = strcmp(csv_cell(t, row, columns[SOURCE]), "measured") == 0;
        struct bar bar = {.rank = (int)whole[0],
                          .source = measured ? MEASURED : PREDICTED,
                          .stage = (int)whole[1],
                          .chunk = (int)whole[2],
                          .micro_batch = (int)whole[3],
                          .start_s = times[0],
                          .end_s = times[1]};
        if (good)
            add_bar(bars, bar, csv_cell(t, row, columns[STREAM]), csv_cell(t, row, columns[PASS]));
    }
    bars->both = columns[SOURCE] >= 0;
    return diags->n_errors > errors_before ? STATUS_BAD_INPUT : STATUS_OK;
}

static int json_whole(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? (int)json_integer_value(value) : -1;
}

static const char *json_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static enum status read_json(const struct figure_input *input, struct bars *bars, struct diags *diags)
{
    const json_t *timeline = json_object_get(input->result, "timeline"), *span;
    size_t i;
    if (!json_is_array(timeline)) {
        diag_error(diags, (struct place){.file = input->name},
                   "this result has no timeline; draw what 'msim step --timeline' writes");
        return STATUS_BAD_INPUT;
    }
    json_array_foreach(timeline, i, span)
    {
        struct bar bar = {.rank = json_whole(span, "rank"),
                          .stage = json_whole(span, "stage"),
                          .chunk = json_whole(span, "chunk"),
                          .micro_batch = json_whole(span, "micro_batch"),
                          .start_s = figure_number(span, "start_s"),
                          .end_s = figure_number(span, "end_s")};
        add_bar(bars, bar, json_text(span, "stream"), json_text(span, "pass"));
    }
    return STATUS_OK;
}

static int compare_bars(const void *left, const void *right)
{
    const struct bar *a = left, *b = right;
    if (a->stage != b->stage)
        return a->stage < b->stage ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    if (a->start_s < b->start_s || a->start_s > b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return (a->micro_batch > b->micro_batch) - (a->micro_batch < b->micro_batch);
}

/* Keep what is seen between from and to, cut off at both. */
static void show_window(struct bars *bars, const struct figure_options *options)
{
    size_t kept = 0;
    bars->from_s = options->to_s > 0 ? options->from_s : 0;
    bars->to_s = options->to_s > 0 ? fmin(options->to_s, bars->step_s) : bars->step_s;
    for (size_t i = 0; i < bars->n; i++) {
        struct bar bar = bars->items[i];
        bar.start_s = fmax(bar.start_s, bars->from_s);
        bar.end_s = fmin(bar.end_s, bars->to_s);
        if (bar.end_s > bar.start_s)
            bars->items[kept++] = bar;
    }
    bars->n = kept;
}

static bool same_lane(const struct bar *a, const struct bar *b)
{
    return a->stage == b->stage && a->rank == b->rank && a->source == b->source;
}

static bool same_pass(const struct bar *a, const struct bar *b)
{
    return same_lane(a, b) && a->activity == b->activity && a->chunk == b->chunk && a->micro_batch == b->micro_batch;
}

/* Kernels of one pass become one box when what lies between them would not be seen. */
static void join_neighbours(struct bars *bars)
{
    double unseen = (bars->to_s - bars->from_s) / 1000;
    struct bar *before[2] = {NULL, NULL}; /* in the lane's upper part, in its strip */
    size_t kept = 0;
    for (size_t i = 0; i < bars->n; i++) {
        const struct bar *bar = &bars->items[i];
        struct bar **last = &before[bar->strip];
        if (*last && same_pass(*last, bar) && bar->start_s - (*last)->end_s < unseen) {
            (*last)->end_s = fmax((*last)->end_s, bar->end_s);
        } else {
            bars->items[kept] = *bar;
            *last = &bars->items[kept++];
        }
    }
    bars->n = kept;
}

static void assign_lanes(struct bars *bars)
{
    qsort(bars->items, bars->n, sizeof *bars->items, compare_bars);
    if (bars->both)
        join_neighbours(bars);
    for (size_t i = 0; i < bars->n; i++) {
        struct bar *bar = &bars->items[i];
        const struct bar *before = i ? &bars->items[i - 1] : NULL;
        if (before && before->stage == bar->stage && before->rank != bar->rank)
            bars->by_rank = true;
        bars->n_lanes += !before || !same_lane(before, bar);
        bar->lane = bars->n_lanes - 1;
    }
}

/* --- writing ------------------------------------------------------------------------------------------------------- */

/* Later model chunks are lighter, as in the pictures of interleaved schedules. */
static uint32_t bar_colour(const struct bars *bars, const struct bar *bar)
{
    double whiteness = bars->n_chunks > 1 && bar->chunk > 0 && !bar->strip ? 0.55 * bar->chunk / (bars->n_chunks - 1) : 0;
    return palette_tint(activities[bar->activity].colour, whiteness);
}

/* Predicted and measured lanes are close together, lanes of different ranks apart. */
static double lane_height(const struct bars *bars, int lane)
{
    return lane + bars->spacing * (lane / N_SOURCES);
}

static void write_bars(const struct bars *bars, double scale, FILE *out)
{
    fputs("$bars << EOD\n", out);
    for (size_t i = 0; i < bars->n; i++) {
        const struct bar *bar = &bars->items[i];
        double y = lane_height(bars, bar->lane);
        fprintf(out, "%.2f\t%.2f\t%.6f\t%.6f\t%u\n", y + (bar->strip ? 0.26 : -0.40), y + (bar->strip ? 0.42 : 0.22),
                bar->start_s * scale, bar->end_s * scale, (unsigned)bar_colour(bars, bar));
    }
    fputs("EOD\n", out);
}

/* A number is readable in a box that takes a hundredth of the width. */
static void write_labels(const struct bars *bars, double scale, FILE *out)
{
    size_t n = 0;
    fputs("$labels << EOD\n", out);
    for (size_t i = 0; i < bars->n; i++) {
        const struct bar *bar = &bars->items[i];
        bool wide = bar->end_s - bar->start_s > (bars->to_s - bars->from_s) / 100;
        if (!wide || bar->strip || bar->micro_batch < 0)
            continue;
        fprintf(out, "%.6f\t%.2f\t%d\n", (bar->start_s + bar->end_s) / 2 * scale, lane_height(bars, bar->lane) - 0.09,
                bar->micro_batch + 1);
        n++;
    }
    fprintf(out, "EOD\nn_labels = %zu\n", n);
}

/* "stage 1", "rank 3"; of a pair: "rank 3  predicted", "measured". */
static void write_lane_name(const struct bars *bars, const struct bar *bar, FILE *out)
{
    if (bars->both && bar->source == MEASURED) {
        fprintf(out, "%.2f\tmeasured\n", lane_height(bars, bar->lane));
        return;
    }
    if (bars->both)
        fprintf(out, "%.2f", lane_height(bars, bar->lane));
    else
        fprintf(out, "%d", bar->lane);
    fprintf(out, "\t%s %d%s\n", bars->by_rank || bars->both ? "rank" : "stage",
            bars->by_rank || bars->both ? bar->rank : bar->stage, bars->both ? "  predicted" : "");
}

static void write_lanes(const struct bars *bars, FILE *out)
{
    fputs("$lanes << EOD\n", out);
    for (size_t i = 0; i < bars->n; i++)
        if (i == 0 || bars->items[i].lane != bars->items[i - 1].lane)
            write_lane_name(bars, &bars->items[i], out);
    fputs("EOD\n", out);
}

static void write_legend(const struct bars *bars, FILE *out)
{
    size_t n_of[N_ACTIVITIES] = {0};
    for (size_t i = 0; i < bars->n; i++)
        n_of[bars->items[i].activity]++;
    fputs("$legend << EOD\n", out);
    for (int a = 0; a < N_ACTIVITIES; a++)
        if (n_of[a])
            fprintf(out, "%u\t%s\t%c\n", (unsigned)activities[a].colour, activities[a].title, activities[a].letter);
    fputs("EOD\n", out);
}

/* Seconds of each activity in each of n columns of each lane; an exchange counts little, so that it shows where nothing else is.
 */
static double *activity_seconds(const struct bars *bars, int n)
{
    double width = (bars->to_s - bars->from_s) / n;
    double *busy = memory_new((size_t)bars->n_lanes * (size_t)n * N_ACTIVITIES, sizeof *busy);
    for (size_t i = 0; i < bars->n; i++) {
        const struct bar *bar = &bars->items[i];
        double start = bar->start_s - bars->from_s, end = bar->end_s - bars->from_s;
        int last = (int)fmin(n - 1, end / width);
        for (int c = (int)(start / width); c <= last; c++) {
            double part = fmin(end, (c + 1) * width) - fmax(start, c * width);
            busy[(bar->lane * n + c) * N_ACTIVITIES + bar->activity] += part * (bar->strip ? 1e-3 : 1);
        }
    }
    return busy;
}

/* For text: a letter for what a stage does most in each column, '.' for nothing. */
static void write_strips(const struct bars *bars, int n, FILE *out)
{
    double *busy = activity_seconds(bars, n);
    double least = 1e-5 * (bars->to_s - bars->from_s) / n; /* a hundredth of a column of exchange */
    fputs("$strips << EOD\n", out);
    for (int i = 0; i < bars->n_lanes * n; i++) {
        int best = 0;
        if (i % n == 0)
            fprintf(out, "%s%d\t", i ? "\n" : "", i / n);
        for (int a = 1; a < N_ACTIVITIES; a++)
            if (busy[i * N_ACTIVITIES + a] > busy[i * N_ACTIVITIES + best])
                best = a;
        putc(busy[i * N_ACTIVITIES + best] > least ? activities[best].letter : '.', out);
    }
    fputs("\nEOD\n", out);
    free(busy);
}

/* n_lanes is where a lane after the last would be. */
static void write_variables(const struct bars *bars, double scale, const char *unit, FILE *out)
{
    enum { TEXT_FRAME = 9 }; /* lines of title, legend and axis */
    bool windowed = bars->from_s > 0 || bars->to_s < bars->step_s;
    fprintf(out, "time_unit = '%s'\nstep_time = %.6f\nstart_time = %.6f\nend_time = %.6f\nwindowed = %d\n", unit,
            bars->step_s * scale, bars->from_s * scale, bars->to_s * scale, windowed);
    if (bars->both)
        fprintf(out, "predicted_time = %.6f\nmeasured_time = %.6f\nn_lanes = %.2f\n", bars->ends_s[PREDICTED] * scale,
                bars->ends_s[MEASURED] * scale, lane_height(bars, bars->n_lanes - 1) + 1);
    else
        fprintf(out, "n_lanes = %d\n", bars->n_lanes);
    fprintf(out, "n_bars = %zu\nn_chunks = %d\ntext_lines = %d\n", bars->n, bars->n_chunks, bars->n_lanes + TEXT_FRAME);
}

enum status figure_data_timeline(const struct figure_options *options, const struct figure_input *input, int text_columns,
                                 FILE *out, struct diags *diags)
{
    struct bars bars = {0};
    enum status status = input->result ? read_json(input, &bars, diags) : read_csv(input, &bars, diags);
    if (status == STATUS_OK)
        show_window(&bars, options);
    if (status == STATUS_OK && bars.n == 0) {
        diag_error(diags, (struct place){.file = input->name}, "no operation takes time%s", options->to_s > 0 ? " there" : "");
        status = STATUS_BAD_INPUT;
    }
    if (status == STATUS_OK) {
        bool milliseconds = bars.to_s < 1;
        double scale = milliseconds ? 1e3 : 1;
        bars.spacing = bars.both && options->terminal != TERMINAL_TEXT ? 0.35 : 0;
        assign_lanes(&bars);
        write_variables(&bars, scale, milliseconds ? "ms" : "s", out);
        write_bars(&bars, scale, out);
        write_labels(&bars, scale, out);
        write_lanes(&bars, out);
        write_legend(&bars, out);
        write_strips(&bars, text_columns - (bars.both ? LONGER_NAMES : 0), out);
    }
    free(bars.items);
    return status;
}
