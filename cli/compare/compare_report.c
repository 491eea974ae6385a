#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"
#include "cli/output/layout_json.h"
#include "cli/output/notes.h"
#include "cli/output/result_row.h"
#include "model/base/append.h"
#include "model/base/memory.h"
#include "model/base/units.h"
#include "model/cost/step/track_record.h"
#include "model/spec/json_text.h"
#include "traces/table/csv.h"
#include "traces/table/outcomes.h"

/* What a table is called in a report: its file name without folders and endings. Returns buffer. */
static char *table_title(const char *path, char *buffer, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(buffer, size, "%s", slash ? slash + 1 : path);
    char *end = strstr(buffer, ".csv");
    if (end && end != buffer)
        *end = '\0';
    return buffer;
}

/* --- rows ---------------------------------------------------------------------------------------------------------- */

static struct value positive(double number)
{
    return known_if(number > 0, as_number(number));
}

static struct value outcome_value(bool known, bool oom)
{
    return known_if(known, as_text(oom ? "oom" : "ok"));
}

static struct value error_value(const struct comparison *item)
{
    return known_if(comparison_is_timed(item), as_number(comparison_is_timed(item) ? comparison_error_pct(item) : 0));
}

#define COMPARED_ROWS(ROW)                                                                                                       \
    ROW(compared, case, as_text(s->run->name), "", JSON | CSV, "name of the run")                                                \
    ROW(compared, source, as_text(s->table), "", JSON | CSV, "file of its table")                                                \
    ROW(compared, gpu, as_text(s->run->cluster.gpu.name), "", JSON | CSV, "name of the GPU")                                     \
    ROW(compared, gpus, as_count(s->run->gpus), "", JSON | CSV, "number of GPUs")                                                \
    ROW(compared, layout, as_layout(&s->run->layout), "", JSON, "its layout")                                                    \
    ROW(compared, outcome, outcome_value(!s->run->outcome_unknown, s->run->oom), "", JSON | CSV, "ok or oom, as measured")       \
    ROW(compared, measured_s, positive(s->run->step_s), "s", JSON | CSV, "measured step time")                                   \
    ROW(compared, predicted_s, positive(s->predicted_s), "s", JSON | CSV, "predicted step time")                                 \
    ROW(compared, error_pct, error_value(s->item), "%", JSON | CSV, "error of the predicted step time")                          \
    ROW(compared, predicted_outcome, outcome_value(s->legal, s->item->predicted_oom), "", JSON | CSV, "ok or oom, as predicted") \
    ROW(compared, measured_mfu_pct, positive(100 * s->run->mfu), "%", JSON | CSV, "measured MFU")                                \
    ROW(compared, predicted_mfu_pct, known_if(s->predicted_s > 0, as_number(100 * s->predicted_mfu)), "%", JSON | CSV,           \
        "predicted MFU, attention counted in full")                                                                              \
    ROW(compared, memory_gib, known_if(s->legal, as_number(s->memory.total / GIB)), "GiB", JSON | CSV,                           \
        "predicted memory of the fullest rank")                                                                                  \
    ROW(compared, capacity_gib, known_if(s->legal, as_number(s->capacity / GIB)), "GiB", JSON | CSV,                             \
        "memory that a rank may use")                                                                                            \
    ROW(compared, breakdown, known_if(s->predicted_s > 0, as_classes(&s->breakdown)), "s", JSON | CSV,                           \
        "predicted time by class of work")
RESULT_ROWS(compared_rows, COMPARED_ROWS)

static struct value score(const struct accuracy *a, double number)
{
    return known_if(a->n > 0, as_number(number));
}

static enum tint error_tint(double error_pct)
{
    return fabs(error_pct) > 20 ? TINT_BAD : fabs(error_pct) > 10 ? TINT_WARN : TINT_NONE;
}

static struct value mean_error(const struct accuracy *a)
{
    return tinted(score(a, a->mape_pct), a->n > 0 ? error_tint(a->mape_pct) : TINT_NONE);
}

#define SCORE_ROWS(ROW)                                                                                                          \
    ROW(accuracy, n, as_count((int64_t)s->n), "", JSON | CSV, "runs with a measured and a predicted time", .column = "timed",    \
        .title = "timed", .show = "%.0f")                                                                                        \
    ROW(accuracy, n_sources, as_count((int64_t)s->n_sources), "", JSON | CSV, "tables with such runs", .column = "sources")      \
    ROW(accuracy, mape_pct, mean_error(s), "%", JSON | CSV, "mean of the absolute error", .column = "mean_pct", .title = "mean", \
        .show = "%.2f")                                                                                                          \
    ROW(accuracy, macro_mape_pct, score(s, s->macro_mape_pct), "%", JSON, "mean over tables of their means")                     \
    ROW(accuracy, median_ape_pct, score(s, s->median_ape_pct), "%", JSON | CSV, "median of the absolute error",                  \
        .column = "median_pct", .title = "median", .show = "%.2f")                                                               \
    ROW(accuracy, p90_ape_pct, score(s, s->p90_ape_pct), "%", JSON | CSV, "90th percentile of the absolute error",               \
        .column = "p90_pct", .title = "p90", .show = "%.2f")                                                                     \
    ROW(accuracy, bias_pct, score(s, s->bias_pct), "%", JSON | CSV, "mean error; positive: predicted too slow", .title = "bias", \
        .show = "%+.2f")
RESULT_ROWS(score_rows, SCORE_ROWS)

#define RATIO_ROWS(ROW)                                                                                                          \
    ROW(accuracy, p10, score(s, s->ratio.low), "", JSON | CSV, "10th percentile of measured over predicted time",                \
        .inside = "measured_over_predicted", .column = "ratio_p10", .title = "measured/predicted p10", .show = "%.2f")           \
    ROW(accuracy, p50, score(s, s->ratio.middle), "", JSON | CSV, "median of measured over predicted time",                      \
        .inside = "measured_over_predicted", .column = "ratio_p50")                                                              \
    ROW(accuracy, p90, score(s, s->ratio.high), "", JSON | CSV, "90th percentile of measured over predicted time",               \
        .inside = "measured_over_predicted", .column = "ratio_p90", .show = "%.2f")
RESULT_ROWS(ratio_rows, RATIO_ROWS)

#define OOM_ROWS(ROW)                                                                                                            \
    ROW(accuracy, found, as_count((int64_t)s->oom_found), "", JSON | CSV, "runs out of memory, as predicted", .inside = "oom",   \
        .column = "oom_found", .title = "oom found", .show = "%.0f")                                                             \
    ROW(accuracy, missed, as_count((int64_t)s->oom_missed), "", JSON | CSV, "runs out of memory, predicted to fit",              \
        .inside = "oom", .column = "oom_missed", .show = "%.0f")                                                                 \
    ROW(accuracy, false_alarms, as_count((int64_t)s->oom_false_alarms), "", JSON | CSV, "runs that fit, predicted not to",       \
        .inside = "oom", .column = "oom_false", .title = "false", .show = "%.0f")
RESULT_ROWS(oom_rows, OOM_ROWS)

#define NEED_ROWS(ROW)                                                                                                           \
    ROW(outcomes, runs, as_count((int64_t)s->runs), "", JSON | CSV, "runs of tables that report failures", .column = "outcomes") \
    ROW(outcomes, oom, as_count((int64_t)s->failed), "", JSON | CSV, "those that ran out of memory", .column = "outcomes_oom")   \
    ROW(outcomes, n_sources, as_count((int64_t)s->sources), "", JSON | CSV, "tables that report failures",                       \
        .column = "outcome_sources")                                                                                             \
    ROW(outcomes, median, known_if(s->scale > 0, as_number(s->median)), "", JSON | CSV,                                          \
        "median of needed over predicted memory", .column = "need_median")                                                       \
    ROW(outcomes, scale, known_if(s->scale > 0, as_number(s->scale)), "", JSON | CSV, "scale of its log-logistic distribution",  \
        .column = "need_scale")
RESULT_ROWS(need_rows, NEED_ROWS)

const struct result_table compare_keys[] = {{"rows[]", compared_rows},
                                            {"summary", score_rows},
                                            {"summary", ratio_rows},
                                            {"summary", oom_rows},
                                            {"summary.needed_over_predicted", need_rows},
                                            {0}};

/* --- text ---------------------------------------------------------------------------------------------------------- */

/* The name of a group and the scores of its rows. */
static void accuracy_columns(struct table *table, const char *what)
{
    static const struct accuracy none;
    table_column(table, what, NULL, ALIGN_LEFT);
    rows_columns(score_rows, &none, table);
    rows_columns(oom_rows, &none, table);
}

static void accuracy_row(struct table *table, const char *name, const struct accuracy *a)
{
    table_cell(table, "%s", name);
    rows_cells(score_rows, a, table);
    rows_cells(oom_rows, a, table);
}

static void write_groups(const struct comparison_set *set, enum accuracy_key key, const char *what, const struct invocation *call)
{
    struct table table = {0};
    size_t n_groups;
    struct accuracy_group *groups = accuracy_groups(set->items, set->n_rows, key, &n_groups);
    accuracy_columns(&table, what);
    for (size_t i = 0; i < n_groups; i++) {
        char title[256];
        accuracy_row(&table, key == ACCURACY_BY_SOURCE ? table_title(groups[i].name, title, sizeof title) : groups[i].name,
                     &groups[i].accuracy);
    }
    if (key == ACCURACY_BY_SOURCE) {
        struct accuracy total = accuracy_total(set->items, set->n_rows);
        accuracy_row(&table, "all", &total);
    }
    table_write_text(&table, call);
    table_free(&table);
    free(groups);
}

/* Kinds of runs with what predictions of new ones can be expected to be worth. */
static void write_kinds(const struct comparison_set *set, const struct invocation *call)
{
    struct table table = {0};
    size_t n_groups;
    struct accuracy_group *groups = accuracy_groups(set->items, set->n_rows, ACCURACY_BY_KIND, &n_groups);
    accuracy_columns(&table, "kind");
    rows_columns(ratio_rows, &groups->accuracy, &table);
    for (size_t i = 0; i < n_groups; i++) {
        accuracy_row(&table, groups[i].name, &groups[i].accuracy);
        rows_cells(ratio_rows, &groups[i].accuracy, &table);
    }
    table_write_text(&table, call);
    table_free(&table);
    free(groups);
}

static void row_columns(struct table *table)
{
    table_column(table, "case", NULL, ALIGN_LEFT);
    table_column(table, "source", NULL, ALIGN_LEFT);
    table_column(table, "gpus", NULL, ALIGN_RIGHT);
    table_column(table, "layout", NULL, ALIGN_LEFT);
    table_column(table, "measured", "s", ALIGN_RIGHT);
    table_column(table, "predicted", "s", ALIGN_RIGHT);
    table_column(table, "error", "%", ALIGN_RIGHT);
    table_column(table, "memory", "GiB", ALIGN_RIGHT);
    table_column(table, "", NULL, ALIGN_LEFT);
}

static void memory_cells(struct table *table, const struct compared *row)
{
    if (!row->legal) {
        table_cell(table, "-");
        table_cell(table, "%s", "");
        return;
    }
    bool over = row->memory.total > row->capacity;
    enum tint tint = !row->run->outcome_unknown && over != row->run->oom ? TINT_BAD : TINT_NONE;
    table_tint(table, tint);
    table_cell(table, "%.1f", row->memory.total / GIB);
    table_tint(table, tint);
    table_cell(table, "%s", over ? "over" : "");
}

/* Four digits. */
static void seconds_cell(struct table *table, double seconds)
{
    int before = seconds < 10 ? 1 : seconds < 100 ? 2 : seconds < 1000 ? 3 : 4;
    if (seconds < 1)
        table_cell(table, "%.4g", seconds);
    else
        table_cell(table, "%.*f", 4 - before, seconds);
}

static void row_cells(struct table *table, const struct compared *row)
{
    const struct comparison *item = row->item;
    char title[256], layout[LAYOUT_TEXT];
    table_cell(table, "%s", row->run->name);
    table_cell(table, "%s", table_title(row->table, title, sizeof title));
    table_cell(table, "%d", row->run->gpus);
    layout_brief(&row->run->layout, layout, sizeof layout);
    table_cell(table, "%s", layout);
    if (row->run->step_s > 0)
        seconds_cell(table, row->run->step_s);
    else
        table_cell(table, row->run->oom ? "oom" : "-");
    if (row->predicted_s > 0)
        seconds_cell(table, row->predicted_s);
    else
        table_cell(table, !row->legal ? "-" : item->predicted_oom ? "oom" : "fits");
    if (comparison_is_timed(item)) {
        table_tint(table, error_tint(comparison_error_pct(item)));
        table_cell(table, "%+.1f", comparison_error_pct(item));
    } else {
        table_cell(table, "-");
    }
    memory_cells(table, row);
}

static void write_rows(const struct comparison_set *set, const struct invocation *call)
{
    struct table table = {0};
    size_t n_shown = set->n_rows;
    size_t *order = NULL;
    if (!set->all_rows) {
        order = accuracy_worst_first(set->items, set->n_rows, &n_shown);
        if (n_shown > (size_t)set->worst)
            n_shown = (size_t)set->worst;
    }
    if (n_shown > 0) {
        row_columns(&table);
        for (size_t i = 0; i < n_shown; i++) {
            size_t row = order ? order[i] : i;
            row_cells(&table, &set->rows[row]);
        }
        fprintf(call->out, "\n%s\n", order ? "Largest errors" : "Rows");
        table_write_text(&table, call);
    }
    table_free(&table);
    free(order);
}

/* A tenth of the runs need more than `high`, a tenth less than `low` times the predicted memory. */
static void write_need(const struct comparison_set *set, FILE *out)
{
    struct outcomes outcomes = outcomes_of(set->items, set->n_rows);
    if (outcomes.scale <= 0)
        return;
    note_write(
        out, 2,
        "memory: %zu of %zu runs in the table%s that report%s failures ran out of memory; runs needed %.2f times the prediction "
        "(80 %% interval %.2f-%.2f)",
        outcomes.failed, outcomes.runs, outcomes.sources == 1 ? "" : "s", outcomes.sources == 1 ? "s" : "", outcomes.median,
        memory_quantile(outcomes.median, outcomes.scale, 0.1), memory_quantile(outcomes.median, outcomes.scale, 0.9));
}

void compare_write_text(const struct comparison_set *set, const struct invocation *call)
{
    struct accuracy total = accuracy_total(set->items, set->n_rows);
    fprintf(call->out, "%zu run%s of %zu table%s predicted by %s", set->n_rows - set->n_illegal,
            plural((int64_t)(set->n_rows - set->n_illegal)), set->n_tables, plural((int64_t)set->n_tables),
            set->method == COMPARE_FORMULA ? "closed formula" : "event simulation");
    if (set->n_skipped + set->n_illegal)
        fprintf(call->out, "; %zu unusable, %zu with a layout that cannot be simulated", set->n_skipped, set->n_illegal);
    fputs("\n\n", call->out);
    write_groups(set, ACCURACY_BY_SOURCE, "table", call);
    fputc('\n', call->out);
    write_groups(set, ACCURACY_BY_GPU, "GPU", call);
    fputc('\n', call->out);
    write_kinds(set, call);
    if (total.n > 0)
        fprintf(call->out, "\nmean absolute error %.2f %%, mean over tables %.2f %%\n", total.mape_pct, total.macro_mape_pct);
    else
        fputs("\nno row has both a measured and a predicted step time\n", call->out);
    write_need(set, call->out);
    write_rows(set, call);
    info(call, 1, "%zu run%s in %.2f s", set->n_rows, plural((int64_t)set->n_rows), set->seconds);
}

/* --- CSV ----------------------------------------------------------------------------------------------------------- */

static void write_rows_csv(const struct comparison_set *set, FILE *out)
{
    rows_csv_heading(compared_rows, &set->rows[0], true, out);
    fputc('\n', out);
    for (size_t i = 0; i < set->n_rows; i++) {
        rows_csv_cells(compared_rows, &set->rows[i], true, out);
        fputc('\n', out);
    }
}

/* GPUs that a group's timed runs had, in the order of first appearance, between spaces. */
static void write_gpus(const struct comparison_set *set, enum accuracy_key key, const char *name, FILE *out)
{
    char text[1024] = "";
    struct comparison *mine = memory_new(set->n_rows, sizeof *mine);
    size_t n = 0, n_gpus;
    for (size_t i = 0; i < set->n_rows; i++)
        if (comparison_is_timed(&set->items[i]) && strcmp(accuracy_key_of(&set->items[i], key), name) == 0)
            mine[n++] = set->items[i];
    struct accuracy_group *gpus = accuracy_groups(mine, n, ACCURACY_BY_GPU, &n_gpus);
    for (size_t i = 0; i < n_gpus; i++)
        text_append(text, sizeof text, "%s%s", i ? " " : "", gpus[i].name);
    csv_write_cell(out, false, text);
    free(gpus);
    free(mine);
}

static struct outcomes group_outcomes(const struct comparison_set *set, enum accuracy_key key, const char *name)
{
    size_t n;
    struct comparison *members = accuracy_members(set->items, set->n_rows, key, name, &n);
    struct outcomes outcomes = outcomes_of(members, n);
    free(members);
    return outcomes;
}

static void write_groups_heading(FILE *out)
{
    csv_write_cell(out, true, "group");
    rows_csv_heading(score_rows, &(struct accuracy){0}, false, out);
    rows_csv_heading(oom_rows, &(struct accuracy){0}, false, out);
    rows_csv_heading(ratio_rows, &(struct accuracy){0}, false, out);
    csv_write_cell(out, false, "gpus");
    rows_csv_heading(need_rows, &(struct outcomes){0}, false, out);
    fputc('\n', out);
}

static void write_groups_csv(const struct comparison_set *set, FILE *out)
{
    static const enum accuracy_key keys[] = {[COMPARE_BY_TABLE] = ACCURACY_BY_SOURCE,
                                             [COMPARE_BY_GPU] = ACCURACY_BY_GPU,
                                             [COMPARE_BY_KIND] = ACCURACY_BY_KIND,
                                             [COMPARE_AS_ONE] = ACCURACY_OF_ALL};
    enum accuracy_key key = keys[set->by];
    size_t n_groups;
    struct accuracy_group *groups = accuracy_groups(set->items, set->n_rows, key, &n_groups);
    write_groups_heading(out);
    for (size_t i = 0; i < n_groups; i++) {
        struct outcomes outcomes = group_outcomes(set, key, groups[i].name);
        csv_write_cell(out, true, groups[i].name);
        rows_csv_cells(score_rows, &groups[i].accuracy, false, out);
        rows_csv_cells(oom_rows, &groups[i].accuracy, false, out);
        rows_csv_cells(ratio_rows, &groups[i].accuracy, false, out);
        write_gpus(set, key, groups[i].name, out);
        rows_csv_cells(need_rows, &outcomes, false, out);
        fputc('\n', out);
    }
    free(groups);
}

void compare_write_csv(const struct comparison_set *set, FILE *out)
{
    (set->by == COMPARE_BY_ROW ? write_rows_csv : write_groups_csv)(set, out);
}

/* --- JSON ---------------------------------------------------------------------------------------------------------- */

static void put_accuracy(const struct accuracy *a, json_t *object)
{
    rows_json(score_rows, a, object);
    rows_json(ratio_rows, a, object);
    rows_json(oom_rows, a, object);
}

static json_t *json_groups(const struct comparison_set *set, enum accuracy_key key, const char *name)
{
    size_t n_groups;
    struct accuracy_group *groups = accuracy_groups(set->items, set->n_rows, key, &n_groups);
    json_t *array = json_array();
    for (size_t i = 0; i < n_groups; i++) {
        json_t *group = json_pack("{s:o}", name, json_text(groups[i].name));
        put_accuracy(&groups[i].accuracy, group);
        json_array_append_new(array, group);
    }
    free(groups);
    return array;
}

void compare_fill_json(const struct comparison_set *set, json_t *result)
{
    struct accuracy total = accuracy_total(set->items, set->n_rows);
    struct outcomes outcomes = outcomes_of(set->items, set->n_rows);
    json_t *summary = json_object(), *rows = json_array();
    put_accuracy(&total, summary);
    json_object_set_new(summary, "needed_over_predicted", rows_object(need_rows, &outcomes));
    json_object_set_new(summary, "rows", json_integer((json_int_t)set->n_rows));
    json_object_set_new(summary, "skipped", json_integer((json_int_t)set->n_skipped));
    json_object_set_new(summary, "not_predicted", json_integer((json_int_t)set->n_illegal));
    for (size_t i = 0; i < set->n_rows; i++)
        json_array_append_new(rows, rows_object(compared_rows, &set->rows[i]));
    json_object_set_new(result, "summary", summary);
    json_object_set_new(result, "sources", json_groups(set, ACCURACY_BY_SOURCE, "source"));
    json_object_set_new(result, "gpus", json_groups(set, ACCURACY_BY_GPU, "gpu"));
    json_object_set_new(result, "kinds", json_groups(set, ACCURACY_BY_KIND, "kind"));
    json_object_set_new(result, "rows", rows);
}
