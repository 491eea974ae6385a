#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"
#include "cli/output/layout_json.h"
#include "cli/output/table.h"
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

static const char *outcome_word(bool oom)
{
    return oom ? "oom" : "ok";
}

/* "" where the table does not tell. */
static const char *measured_word(const struct comparison *item)
{
    return item->untold ? "" : outcome_word(item->oom);
}

/* --- text ---------------------------------------------------------------------------------------------------------- */

static enum tint error_tint(double error_pct)
{
    return fabs(error_pct) > 20 ? TINT_BAD : fabs(error_pct) > 10 ? TINT_WARN : TINT_NONE;
}

static void accuracy_columns(struct table *table, const char *what)
{
    table_column(table, what, NULL, ALIGN_LEFT);
    table_column(table, "timed", NULL, ALIGN_RIGHT);
    table_column(table, "mean", "%", ALIGN_RIGHT);
    table_column(table, "median", "%", ALIGN_RIGHT);
    table_column(table, "p90", "%", ALIGN_RIGHT);
    table_column(table, "bias", "%", ALIGN_RIGHT);
    table_column(table, "oom found", NULL, ALIGN_RIGHT);
    table_column(table, "missed", NULL, ALIGN_RIGHT);
    table_column(table, "false", NULL, ALIGN_RIGHT);
}

static void accuracy_row(struct table *table, const char *name, const struct accuracy *a)
{
    table_cell(table, "%s", name);
    table_cell(table, "%zu", a->n);
    if (a->n) {
        table_tint(table, error_tint(a->mape_pct));
        table_cell(table, "%.2f", a->mape_pct);
        table_cell(table, "%.2f", a->median_ape_pct);
        table_cell(table, "%.2f", a->p90_ape_pct);
        table_cell(table, "%+.2f", a->bias_pct);
    } else {
        for (int i = 0; i < 4; i++)
            table_cell(table, "-");
    }
    table_cell(table, "%zu", a->oom_found);
    table_cell(table, "%zu", a->oom_missed);
    table_cell(table, "%zu", a->oom_false_alarms);
}

static void write_groups(const struct comparing *comparing, enum accuracy_key key, const char *what,
                         const struct invocation *call)
{
    struct table table = {0};
    size_t n_groups;
    struct accuracy_group *groups = accuracy_groups(comparing->items, comparing->n_rows, key, &n_groups);
    accuracy_columns(&table, what);
    for (size_t i = 0; i < n_groups; i++) {
        char title[256];
        accuracy_row(&table, key == ACCURACY_BY_SOURCE ? table_title(groups[i].name, title, sizeof title) : groups[i].name,
                     &groups[i].accuracy);
    }
    if (key == ACCURACY_BY_SOURCE) {
        struct accuracy total = accuracy_total(comparing->items, comparing->n_rows);
        accuracy_row(&table, "all", &total);
    }
    table_write_text(&table, call);
    table_free(&table);
    free(groups);
}

/* Kinds of runs with what predictions of new ones can be expected to be worth. */
static void write_kinds(const struct comparing *comparing, const struct invocation *call)
{
    struct table table = {0};
    size_t n_groups;
    struct accuracy_group *groups = accuracy_groups(comparing->items, comparing->n_rows, ACCURACY_BY_KIND, &n_groups);
    accuracy_columns(&table, "kind");
    table_column(&table, "measured/predicted p10", NULL, ALIGN_RIGHT);
    table_column(&table, "p90", NULL, ALIGN_RIGHT);
    for (size_t i = 0; i < n_groups; i++) {
        const struct accuracy *a = &groups[i].accuracy;
        accuracy_row(&table, groups[i].name, a);
        for (int end = 0; end < 2; end++)
            if (a->n > 0)
                table_cell(&table, "%.2f", end ? a->ratio.high : a->ratio.low);
            else
                table_cell(&table, "-");
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
    enum tint tint = !row->run->untold && over != row->run->oom ? TINT_BAD : TINT_NONE;
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

static void row_cells(struct table *table, const struct compared *row, const struct comparison *item)
{
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

static void write_rows(const struct comparing *comparing, const struct invocation *call)
{
    struct table table = {0};
    size_t n_shown = comparing->n_rows;
    size_t *order = NULL;
    if (!comparing->all_rows) {
        order = accuracy_worst_first(comparing->items, comparing->n_rows, &n_shown);
        if (n_shown > (size_t)comparing->worst)
            n_shown = (size_t)comparing->worst;
    }
    if (n_shown > 0) {
        row_columns(&table);
        for (size_t i = 0; i < n_shown; i++) {
            size_t row = order ? order[i] : i;
            row_cells(&table, &comparing->rows[row], &comparing->items[row]);
        }
        fprintf(call->out, "\n%s\n", order ? "Largest errors" : "Rows");
        table_write_text(&table, call);
    }
    table_free(&table);
    free(order);
}

/* A tenth of the runs need more than `high`, a tenth less than `low` times the predicted memory. */
static void write_need(const struct comparing *comparing, FILE *out)
{
    struct outcomes outcomes = outcomes_of(comparing->items, comparing->n_rows);
    if (outcomes.scale <= 0)
        return;
    fprintf(
        out,
        "memory: %zu of %zu runs of the table%s that tell%s of failures ran out of it; they needed %.2f times the prediction, "
        "eight in ten %.2f to %.2f times\n",
        outcomes.failed, outcomes.runs, outcomes.sources == 1 ? "" : "s", outcomes.sources == 1 ? "s" : "", outcomes.median,
        memory_quantile(outcomes.median, outcomes.scale, 0.1), memory_quantile(outcomes.median, outcomes.scale, 0.9));
}

void compare_write_text(const struct comparing *comparing, const struct invocation *call)
{
    struct accuracy total = accuracy_total(comparing->items, comparing->n_rows);
    fprintf(call->out, "%zu run%s of %zu table%s predicted by %s", comparing->n_rows - comparing->n_illegal,
            plural((int64_t)(comparing->n_rows - comparing->n_illegal)), comparing->n_tables,
            plural((int64_t)comparing->n_tables), comparing->method == COMPARE_FORMULA ? "closed formula" : "event simulation");
    if (comparing->n_skipped + comparing->n_illegal)
        fprintf(call->out, "; %zu unusable, %zu with a layout that cannot be simulated", comparing->n_skipped,
                comparing->n_illegal);
    fputs("\n\n", call->out);
    write_groups(comparing, ACCURACY_BY_SOURCE, "table", call);
    fputc('\n', call->out);
    write_groups(comparing, ACCURACY_BY_GPU, "GPU", call);
    fputc('\n', call->out);
    write_kinds(comparing, call);
    if (total.n > 0)
        fprintf(call->out, "\nmean absolute error %.2f %%, mean over tables %.2f %%\n", total.mape_pct, total.macro_mape_pct);
    else
        fputs("\nno row says how long a step took and was predicted: there is no error to tell\n", call->out);
    write_need(comparing, call->out);
    write_rows(comparing, call);
    info(call, 1, "%zu run%s in %.2f s", comparing->n_rows, plural((int64_t)comparing->n_rows), comparing->seconds);
}

/* --- CSV ----------------------------------------------------------------------------------------------------------- */

static double or_nan(bool known, double value)
{
    return known ? value : NAN;
}

void compare_write_csv(const struct comparing *comparing, FILE *out)
{
    fputs("case,source,gpu,gpus,outcome,measured_s,predicted_s,error_pct,predicted_outcome,measured_mfu_pct,predicted_mfu_pct,"
          "memory_gib,capacity_gib",
          out);
    for (int c = 0; c < N_WORK_CLASSES; c++)
        fprintf(out, ",%s_s", work_class_name((enum work_class)c));
    fputc('\n', out);
    for (size_t i = 0; i < comparing->n_rows; i++) {
        const struct compared *row = &comparing->rows[i];
        const struct comparison *item = &comparing->items[i];
        bool predicted = row->predicted_s > 0;
        csv_write_cell(out, true, row->run->name);
        csv_write_cell(out, false, row->table);
        csv_write_cell(out, false, item->gpu);
        csv_write_integer(out, false, row->run->gpus);
        csv_write_cell(out, false, measured_word(item));
        csv_write_number(out, false, or_nan(row->run->step_s > 0, row->run->step_s));
        csv_write_number(out, false, or_nan(predicted, row->predicted_s));
        csv_write_number(out, false, or_nan(comparison_is_timed(item), comparison_error_pct(item)));
        csv_write_cell(out, false, row->legal ? outcome_word(item->predicted_oom) : "");
        csv_write_number(out, false, or_nan(row->run->mfu > 0, 100 * row->run->mfu));
        csv_write_number(out, false, or_nan(predicted, 100 * row->predicted_mfu));
        csv_write_number(out, false, or_nan(row->legal, row->memory.total / GIB));
        csv_write_number(out, false, or_nan(row->legal, row->capacity / GIB));
        for (int c = 0; c < N_WORK_CLASSES; c++)
            csv_write_number(out, false, or_nan(predicted, row->breakdown.s[c]));
        fputc('\n', out);
    }
}

/* GPUs that a group's timed runs had, in the order of first appearance, between spaces. */
static void write_gpus(const struct comparing *comparing, enum accuracy_key key, const char *name, FILE *out)
{
    char text[1024] = "";
    struct comparison *mine = memory_new(comparing->n_rows, sizeof *mine);
    size_t n = 0, n_gpus;
    for (size_t i = 0; i < comparing->n_rows; i++)
        if (comparison_is_timed(&comparing->items[i]) && strcmp(accuracy_key_of(&comparing->items[i], key), name) == 0)
            mine[n++] = comparing->items[i];
    struct accuracy_group *gpus = accuracy_groups(mine, n, ACCURACY_BY_GPU, &n_gpus);
    for (size_t i = 0; i < n_gpus; i++)
        text_append(text, sizeof text, "%s%s", i ? " " : "", gpus[i].name);
    csv_write_cell(out, false, text);
    free(gpus);
    free(mine);
}

/* What a group's outcomes tell of memory. */
static void write_outcomes(const struct comparing *comparing, enum accuracy_key key, const char *name, FILE *out)
{
    size_t n;
    struct comparison *mine = accuracy_members(comparing->items, comparing->n_rows, key, name, &n);
    struct outcomes outcomes = outcomes_of(mine, n);
    csv_write_integer(out, false, (long long)outcomes.runs);
    csv_write_integer(out, false, (long long)outcomes.failed);
    csv_write_integer(out, false, (long long)outcomes.sources);
    csv_write_number(out, false, or_nan(outcomes.scale > 0, outcomes.median));
    csv_write_number(out, false, or_nan(outcomes.scale > 0, outcomes.scale));
    free(mine);
}

void compare_write_groups_csv(const struct comparing *comparing, FILE *out)
{
    static const enum accuracy_key keys[] = {[COMPARE_BY_TABLE] = ACCURACY_BY_SOURCE,
                                             [COMPARE_BY_GPU] = ACCURACY_BY_GPU,
                                             [COMPARE_BY_KIND] = ACCURACY_BY_KIND,
                                             [COMPARE_AS_ONE] = ACCURACY_OF_ALL};
    enum accuracy_key key = keys[comparing->by];
    size_t n_groups;
    struct accuracy_group *groups = accuracy_groups(comparing->items, comparing->n_rows, key, &n_groups);
    fputs("group,timed,sources,mean_pct,median_pct,p90_pct,bias_pct,oom_found,oom_missed,oom_false,ratio_p10,ratio_p50,ratio_p90,"
          "gpus,outcomes,outcomes_oom,outcome_sources,need_median,need_scale\n",
          out);
    for (size_t i = 0; i < n_groups; i++) {
        const struct accuracy *a = &groups[i].accuracy;
        const double pct[] = {a->mape_pct, a->median_ape_pct, a->p90_ape_pct, a->bias_pct};
        const double ratios[] = {a->ratio.low, a->ratio.middle, a->ratio.high};
        csv_write_cell(out, true, groups[i].name);
        csv_write_integer(out, false, (long long)a->n);
        csv_write_integer(out, false, (long long)a->n_sources);
        for (int k = 0; k < 4; k++)
            csv_write_number(out, false, or_nan(a->n > 0, pct[k]));
        csv_write_integer(out, false, (long long)a->oom_found);
        csv_write_integer(out, false, (long long)a->oom_missed);
        csv_write_integer(out, false, (long long)a->oom_false_alarms);
        for (int k = 0; k < 3; k++)
            csv_write_number(out, false, or_nan(a->n > 0, ratios[k]));
        write_gpus(comparing, key, groups[i].name, out);
        write_outcomes(comparing, key, groups[i].name, out);
        fputc('\n', out);
    }
    free(groups);
}

/* --- JSON ---------------------------------------------------------------------------------------------------------- */

static json_t *real_or_null(bool known, double value)
{
    return known && isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_accuracy(const struct accuracy *a)
{
    bool timed = a->n > 0;
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o}, s:{s:I, s:I, s:I}}", "n", (json_int_t)a->n,
                     "n_sources", (json_int_t)a->n_sources, "mape_pct", real_or_null(timed, a->mape_pct), "macro_mape_pct",
                     real_or_null(timed, a->macro_mape_pct), "median_ape_pct", real_or_null(timed, a->median_ape_pct),
                     "p90_ape_pct", real_or_null(timed, a->p90_ape_pct), "bias_pct", real_or_null(timed, a->bias_pct),
                     "measured_over_predicted", "p10", real_or_null(timed, a->ratio.low), "p50",
                     real_or_null(timed, a->ratio.middle), "p90", real_or_null(timed, a->ratio.high), "oom", "found",
                     (json_int_t)a->oom_found, "missed", (json_int_t)a->oom_missed, "false_alarms",
                     (json_int_t)a->oom_false_alarms);
}

static json_t *json_groups(const struct comparing *comparing, enum accuracy_key key, const char *name)
{
    size_t n_groups;
    struct accuracy_group *groups = accuracy_groups(comparing->items, comparing->n_rows, key, &n_groups);
    json_t *array = json_array();
    for (size_t i = 0; i < n_groups; i++) {
        json_t *group = json_pack("{s:o}", name, json_text(groups[i].name));
        json_object_update_new(group, json_accuracy(&groups[i].accuracy));
        json_array_append_new(array, group);
    }
    free(groups);
    return array;
}

static json_t *json_row(const struct compared *row, const struct comparison *item)
{
    char layout[LAYOUT_TEXT];
    bool predicted = row->predicted_s > 0;
    json_t *object = json_pack("{s:s, s:o, s:s, s:i, s:s, s:s}", "case", row->run->name, "source", json_text(row->table), "gpu",
                               item->gpu, "gpus", row->run->gpus, "layout",
                               layout_format(&row->run->layout, layout, sizeof layout), "outcome", outcome_word(item->oom));
    if (item->untold)
        json_object_set_new(object, "outcome", json_null());
    json_object_set_new(object, "measured_s", real_or_null(row->run->step_s > 0, row->run->step_s));
    json_object_set_new(object, "predicted_s", real_or_null(predicted, row->predicted_s));
    json_object_set_new(object, "error_pct", real_or_null(comparison_is_timed(item), comparison_error_pct(item)));
    json_object_set_new(object, "predicted_outcome", row->legal ? json_string(outcome_word(item->predicted_oom)) : json_null());
    json_object_set_new(object, "measured_mfu_pct", real_or_null(row->run->mfu > 0, 100 * row->run->mfu));
    json_object_set_new(object, "predicted_mfu_pct", real_or_null(predicted, 100 * row->predicted_mfu));
    json_object_set_new(object, "memory_gib", real_or_null(row->legal, row->memory.total / GIB));
    json_object_set_new(object, "capacity_gib", real_or_null(row->legal, row->capacity / GIB));
    json_object_set_new(object, "breakdown", predicted ? cost_by_class_json(&row->breakdown) : json_null());
    return object;
}

static json_t *json_need(const struct comparing *comparing)
{
    struct outcomes outcomes = outcomes_of(comparing->items, comparing->n_rows);
    bool told = outcomes.scale > 0;
    return json_pack("{s:I, s:I, s:I, s:o, s:o}", "runs", (json_int_t)outcomes.runs, "oom", (json_int_t)outcomes.failed,
                     "n_sources", (json_int_t)outcomes.sources, "median", real_or_null(told, outcomes.median), "scale",
                     real_or_null(told, outcomes.scale));
}

void compare_fill_json(const struct comparing *comparing, json_t *result)
{
    struct accuracy total = accuracy_total(comparing->items, comparing->n_rows);
    json_t *summary = json_accuracy(&total), *rows = json_array();
    json_object_set_new(summary, "needed_over_predicted", json_need(comparing));
    json_object_set_new(summary, "rows", json_integer((json_int_t)comparing->n_rows));
    json_object_set_new(summary, "skipped", json_integer((json_int_t)comparing->n_skipped));
    json_object_set_new(summary, "not_predicted", json_integer((json_int_t)comparing->n_illegal));
    for (size_t i = 0; i < comparing->n_rows; i++)
        json_array_append_new(rows, json_row(&comparing->rows[i], &comparing->items[i]));
    json_object_set_new(result, "summary", summary);
    json_object_set_new(result, "sources", json_groups(comparing, ACCURACY_BY_SOURCE, "source"));
    json_object_set_new(result, "gpus", json_groups(comparing, ACCURACY_BY_GPU, "gpu"));
    json_object_set_new(result, "kinds", json_groups(comparing, ACCURACY_BY_KIND, "kind"));
    json_object_set_new(result, "rows", rows);
}
