#include "cli/compare/compare.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/notes.h"
#include "cli/output/progress.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "model/base/clock.h"
#include "model/base/memory.h"
#include "model/cost/step/track_record.h"
#include "model/spec/json_text.h"
#include "sim/search/run_prediction.h"

/* --- predicting ---------------------------------------------------------------------------------------------------- */

static void predict(enum compare_method method, struct compared *row, struct diags *diags)
{
    struct run_prediction prediction;
    run_predict(method == COMPARE_FORMULA ? PREDICT_BY_FORMULA : PREDICT_BY_SIMULATION, row->run, &prediction, diags);
    row->legal = prediction.legal;
    row->predicted_s = prediction.step_s;
    row->predicted_mfu = prediction.mfu;
    row->breakdown = prediction.breakdown;
    row->memory = prediction.memory;
    row->capacity = prediction.capacity;
}

static struct comparison comparison_of(const struct compared *row)
{
    return (struct comparison){
        .name = row->run->name,
        .source = row->table,
        .gpu = row->run->cluster.gpu.name,
        .kind = run_kind_name(run_kind_of(&row->run->layout, &row->run->model)),
        .oom = row->run->oom,
        .outcome_unknown = row->run->outcome_unknown,
        .use = row->legal ? row->memory.total / row->capacity : 0,
        .predicted_oom = row->legal && row->memory.total > row->capacity,
        .measured_s = row->run->step_s,
        .predicted_s = row->predicted_s,
    };
}

static void predict_rows(struct comparison_set *set, struct invocation *call)
{
    double start = clock_seconds();
    struct progress progress = progress_begin(call, "runs");
    for (size_t i = 0; i < set->n_rows; i++) {
        struct compared *row = &set->rows[i];
        predict(set->method, row, &call->diags);
        set->n_illegal += !row->legal;
        set->items[i] = comparison_of(row);
        row->item = &set->items[i];
        progress_update(&progress, (double)i, (double)set->n_rows);
    }
    progress_end(&progress);
    set->seconds = clock_seconds() - start;
}

/* --- tables -------------------------------------------------------------------------------------------------------- */

/* All tables are read before any is predicted, so that all mistakes show in one go. */
static enum status read_tables(struct comparison_set *set, struct invocation *call)
{
    enum status worst = STATUS_OK;
    operands_repeated(call);
    set->tables = memory_new((size_t)call->n_operands, sizeof *set->tables);
    set->paths = call->operands;
    for (int i = 0; i < call->n_operands; i++) {
        enum status status = measurement_table_read(call->operands[i], &set->tables[set->n_tables], &call->diags);
        if (status == STATUS_OK)
            set->n_tables++;
        else
            worst = status;
    }
    return worst;
}

/* The rows of all tables; those whose case is `only` when that is not NULL. */
static void collect_rows(struct comparison_set *set, const char *only)
{
    size_t n = 0;
    for (size_t t = 0; t < set->n_tables; t++)
        n += set->tables[t].n_items;
    set->rows = memory_new(n, sizeof *set->rows);
    set->items = memory_new(n, sizeof *set->items);
    for (size_t t = 0; t < set->n_tables; t++) {
        const struct measurement_table *table = &set->tables[t];
        set->n_skipped += table->n_skipped;
        for (size_t i = 0; i < table->n_items; i++)
            if (!only || strcmp(table->items[i].name, only) == 0)
                set->rows[set->n_rows++] = (struct compared){.run = &table->items[i], .table = set->paths[t]};
    }
}

static void note_gradients(const struct comparison_set *set, struct diags *diags)
{
    size_t runs[N_PRECISIONS] = {0};
    for (size_t i = 0; i < set->n_rows; i++)
        runs[set->rows[i].run->job.gradient_precision]++;
    narrow_gradients_note(runs, diags);
}

static enum status no_such_case(const struct comparison_set *set, const char *name, struct diags *diags)
{
    size_t n = 0, capacity = 0;
    const char **names = NULL;
    for (size_t t = 0; t < set->n_tables; t++)
        for (size_t i = 0; i < set->tables[t].n_items; i++) {
            names = memory_grow(names, &capacity, n + 1, sizeof *names);
            names[n++] = set->tables[t].items[i].name;
        }
    char hint[128];
    diag_error(diags, PLACE_NONE, "--explain: no usable row has the case '%.60s'; %s", name,
               name_hint(name, names, n, "--rows lists them", hint, sizeof hint));
    free(names);
    return STATUS_BAD_INPUT;
}

static void comparison_set_free(struct comparison_set *set)
{
    for (size_t i = 0; i < set->n_tables; i++)
        measurement_table_free(&set->tables[i]);
    free(set->tables);
    free(set->rows);
    free(set->items);
}

/* --- the command --------------------------------------------------------------------------------------------------- */

static json_t *json_settings(const struct comparison_set *set)
{
    json_t *tables = json_array();
    for (size_t i = 0; i < set->n_tables; i++)
        json_array_append_new(tables, json_text(set->paths[i]));
    json_t *settings =
        json_pack("{s:o, s:s}", "tables", tables, "method", set->method == COMPARE_FORMULA ? "formula" : "simulation");
    if (set->base)
        json_object_set_new(settings, "base", json_text(set->base));
    return settings;
}

static enum status write_results(const struct comparison_set *set, bool explain, struct invocation *call)
{
    if (call->format == FORMAT_CSV) {
        compare_write_csv(set, call->out);
    } else if (call->format == FORMAT_JSON) {
        json_t *result = result_create(call, NULL);
        json_object_set_new(result, "config", json_settings(set));
        compare_fill_json(set, result);
        if (explain)
            compare_explain_json(&set->rows[0], result);
        return result_write(call, result);
    } else if (explain) {
        compare_explain_text(&set->rows[0], call);
    } else {
        compare_write_text(set, call);
    }
    return STATUS_OK;
}

static enum status check_tolerance(const struct comparison_set *set, struct diags *diags)
{
    struct accuracy total = accuracy_total(set->items, set->n_rows);
    if (set->tolerance < 0 || (total.n > 0 && total.mape_pct <= set->tolerance))
        return STATUS_OK;
    if (total.n == 0)
        diag_error(diags, PLACE_NONE, "no row could be compared, so --tolerance fails");
    else
        diag_error(diags, PLACE_NONE, "the mean absolute error, %.2f %%, exceeds the tolerance of %g %%", total.mape_pct,
                   set->tolerance);
    return STATUS_CHECK;
}

static enum status compare(struct comparison_set *set, struct invocation *call)
{
    const char *explain = option_text(call, "explain");
    enum status status = read_tables(set, call);
    if (status == STATUS_OK && option_given(call, "base"))
        status = compare_take_base(set, call);
    if (status != STATUS_OK)
        return status;
    compare_warn_of_repeats(set, &call->diags);
    collect_rows(set, explain);
    if (explain && set->n_rows == 0)
        return no_such_case(set, explain, &call->diags);
    if (set->n_rows == 0) {
        diag_error(&call->diags, (struct place){.file = set->paths[0]}, "no usable row");
        return STATUS_BAD_INPUT;
    }
    if (explain)
        compare_note_others(set, &call->diags);
    note_gradients(set, &call->diags);
    predict_rows(set, call);
    status = write_results(set, explain != NULL, call);
    return status == STATUS_OK ? check_tolerance(set, &call->diags) : status;
}

/* "15" or "15%"; -1 when it is neither. */
static double percent_parse(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    while (*end == ' ')
        end++;
    if (*end == '%')
        end++;
    bool bad = end == text || *end || !isfinite(value) || value < 0 || isspace((unsigned char)*text);
    return bad ? -1 : value;
}

static enum status check_percent(const char *text, char *why, size_t size)
{
    if (percent_parse(text) >= 0)
        return STATUS_OK;
    snprintf(why, size, "'%.40s' is not a percentage; write for example 10", text);
    return STATUS_BAD_INPUT;
}

static enum status run(struct invocation *call)
{
    if (option_given(call, "gpu") && !option_given(call, "base"))
        diag_note(&call->diags, PLACE_NONE, "--gpu has no effect without --base");
    struct comparison_set set = {
        .method = (enum compare_method)option_choice(call, "method"),
        .tolerance = option_text(call, "tolerance") ? percent_parse(option_text(call, "tolerance")) : -1,
        .worst = (int)option_count(call, "worst"),
        .all_rows = option_flag(call, "rows"),
        .by = (enum compare_by)option_choice(call, "by"),
    };
    enum status status = compare(&set, call);
    comparison_set_free(&set);
    return status;
}

static const char *const line_choices[] = {"row", "table", "gpu", "kind", "all", NULL};
static const char *const methods[] = {"simulation", "formula", NULL};

static const struct option_row options[] = {
    {.name = "rows", .type = OPTION_FLAG, .help = "show every row, not only the worst"},
    {.name = "worst", COUNT_FIELDS, .high = 1000000, .initial = "10", .help = "show the N rows with the largest errors"},
    {.name = "by",
     CHOICE_FIELDS("WHAT", line_choices),
     .initial = "row",
     .help = "with --format csv: write one line per row, table, GPU or kind; all: every summary"},
    {.name = "explain",
     TEXT_FIELDS("CASE"),
     .help = "explain one row: where the predicted time goes, memory, and the cost of each kernel"},
    {.name = "tolerance",
     TEXT_FIELDS("PCT"),
     .check = check_percent,
     .help = "exit with 5 if the mean absolute error exceeds this many percent"},
    {.name = "base",
     TEXT_FIELDS("ENTRY"),
     .help = "predict the rows of one GPU with this GPU or cluster entry (a name, or a file that msim calibrate wrote) instead "
             "of the catalog's; a cluster entry also replaces nodes and network"},
    {.name = "gpu",
     TEXT_FIELDS("NAME"),
     .fallback = "the entry's name",
     .help = "with --base: the name of its GPU in the tables"},
    {.name = "method",
     CHOICE_FIELDS("HOW", methods),
     .initial = "simulation",
     .help = "predict by event simulation, or by the closed formula of the plan search"},
    {0},
};

static const struct example examples[] = {
    {"msim compare traces/published/megascale.csv", "compare with the published MegaScale runs"},
    {"msim compare --tolerance 10 --quiet mine.csv theirs.csv.gz", "check the error in a script"},
    {"msim compare --explain ablation-1-baseline traces/published/megascale.csv", "explain the prediction of one row"},
    {"msim compare runs.csv --base ours.yaml", "judge the entry that msim calibrate runs.csv --base dgx-h100 -o ours.yaml wrote"},
    {"msim compare --format json -o c.json traces/published/*.csv", "write a result for 'msim plot c.json'"},
    {0},
};

static const struct command_note notes[] = {
    {"Tables", "CSV with the columns of traces/published/*.csv. Files that end in .gz are decompressed; - is standard "
               "input. A row that cannot be used, or whose step is shorter than the peak of its GPUs allows, is skipped, "
               "counted and reported with its line. A case that occurs twice produces a warning, and both rows count. "
               "msim reports the values it assumes for empty cells and missing columns, and rows with narrower gradients "
               "than the default. A row without time and outcome is predicted but not counted. With --format csv the "
               "result is one line per row."},
    {0},
};

const struct command command_compare = {
    .name = "compare",
    .summary = "compare predicted with measured step times, for every row of a table",
    .description = "Predicts every row of measurement tables (model, GPU, layout, measured step time or out of memory) with "
                   "the same parameters, and summarises the errors.\n"
                   "\n"
                   "Errors are summarised by table, by GPU and by kind of run: mean, median and 90th percentile of the "
                   "absolute error, bias (positive: predicted too slow), out-of-memory runs found, missed and falsely "
                   "reported, and the ratio of measured to predicted time that contains 80 % of the runs, with the same "
                   "weight for each table. For tables that report failures, it also shows the measured memory relative to the "
                   "predicted one, as far as outcomes determine it.",
    .operands = "TABLE.csv...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .notes = notes,
    .examples = examples,
    .keys = compare_keys,
    .run = run,
};
