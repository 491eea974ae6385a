#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/job/plan_rates.h"
#include "cli/output/expectation.h"
#include "cli/output/layout_json.h"
#include "cli/output/notes.h"
#include "cli/output/result.h"
#include "cli/step/config_difference.h"
#include "cli/step/step_pair.h"
#include "model/base/append.h"
#include "model/base/units.h"
#include "model/cost/step/track_record.h"
#include "model/cost/work/work.h"
#include "model/spec/json_text.h"

static const char *const side_names[2] = {"A", "B"};

/* One quantity of both; NAN: unknown, or not asked for. */
struct pair_row {
    const char *key, *title; /* of JSON and CSV, of text */
    double values[2];
    int digits;
};

enum { N_STEP_ROWS = 14 };

/* --- what is compared --- */

/* Nodes where their power is known of both, so that energies can be compared; boards otherwise. */
static enum power_count counted_power(const struct step_pair *pair)
{
    bool nodes = true;
    for (int i = 0; i < 2; i++) {
        const struct experiment *e = &pair->sides[i].setup.experiment;
        nodes = nodes && power_bound_of(&e->cluster, e->gpus, POWER_NODES).count != POWER_UNKNOWN;
    }
    return nodes ? POWER_NODES : POWER_BOARDS;
}

/* Of a budget of tokens: days, GPU-hours, money, MWh at most. */
static void budget_values(const struct step_side *side, const struct step_rates *rates, enum power_count counted,
                          double values[4])
{
    const struct experiment *e = &side->setup.experiment;
    const struct power_bound bound = power_bound_of(&e->cluster, e->gpus, counted);
    double energy_j = power_bound_energy(&bound, rates->gpu_hours);
    values[0] = rates->days > 0 ? rates->days : NAN;
    values[1] = rates->days > 0 ? rates->gpu_hours : NAN;
    values[2] = rates->days > 0 && side->setup.gpu_price > 0 ? side->setup.gpu_price * rates->gpu_hours : NAN;
    values[3] = rates->days > 0 && energy_j > 0 ? energy_j / 3.6e9 : NAN;
}

/* The rows of the whole step, in this order. */
static void fill_step_rows(const struct step_pair *pair, struct pair_row rows[N_STEP_ROWS])
{
    static const struct pair_row titles[N_STEP_ROWS] = {
        {"step_time_s", "step [s]", {0}, 4},
        {"likely_low_s", "  likely, from [s]", {0}, 4},
        {"likely_high_s", "  likely, to [s]", {0}, 4},
        {"tokens_per_s", "tokens/s", {0}, 0},
        {"tokens_per_s_per_gpu", "tokens/s per GPU", {0}, 1},
        {"mfu_pct", "MFU [%]", {0}, 1},
        {"mfu_causal_pct", "  causal half [%]", {0}, 1},
        {"hfu_pct", "HFU [%]", {0}, 1},
        {"tflops_per_gpu", "TFLOPS per GPU", {0}, 1},
        {"days", "days", {0}, 1},
        {"gpu_hours", "GPU-hours", {0}, 0},
        {"cost", "cost", {0}, 0},
        {"energy_at_most_mwh", "energy at most [MWh]", {0}, 1},
        {"gpus", "GPUs", {0}, 0},
    };
    memcpy(rows, titles, sizeof titles);
    for (int i = 0; i < 2; i++) {
        const struct step_side *side = &pair->sides[i];
        const struct step_result *r = &side->result;
        const struct layout *layout = &side->setup.layout;
        const struct track_record *record = track_record_of(run_kind_of(layout, side->setup.setting.model));
        const struct step_rates rates = step_rates_of(layout, &side->setup.setting, r->step_time_s);
        double budget[4];
        budget_values(side, &rates, counted_power(pair), budget);
        const double values[N_STEP_ROWS] = {r->step_time_s,
                                            r->step_time_s * record->low,
                                            r->step_time_s * record->high,
                                            r->tokens_per_s,
                                            rates.tokens_per_gpu,
                                            100 * r->mfu,
                                            100 * r->mfu_causal,
                                            100 * r->hfu,
                                            rates.tflops,
                                            budget[0],
                                            budget[1],
                                            budget[2],
                                            budget[3],
                                            side->setup.experiment.gpus};
        for (int k = 0; k < N_STEP_ROWS; k++)
            rows[k].values[i] = values[k];
    }
}

/* Uses of the memory in GiB, and behind them all of it and what there is. */
enum { N_MEMORY_ROWS = N_MEMORY_PARTS + 2 };

static void fill_memory_rows(const struct step_pair *pair, struct pair_row rows[N_MEMORY_ROWS])
{
    for (int i = 0; i < 2; i++) {
        struct memory_part parts[N_MEMORY_PARTS];
        memory_parts(&pair->sides[i].result.memory, parts);
        for (int k = 0; k < N_MEMORY_PARTS; k++) {
            rows[k].key = rows[k].title = parts[k].name;
            rows[k].values[i] = parts[k].bytes / GIB;
        }
        rows[N_MEMORY_PARTS].key = rows[N_MEMORY_PARTS].title = "total";
        rows[N_MEMORY_PARTS].values[i] = pair->sides[i].result.memory.total / GIB;
        rows[N_MEMORY_PARTS + 1].key = rows[N_MEMORY_PARTS + 1].title = "capacity";
        rows[N_MEMORY_PARTS + 1].values[i] = pair->sides[i].report.capacity_bytes / GIB;
    }
}

/* The time of a class, or of the step for N_WORK_CLASSES. */
static double class_seconds(const struct step_side *side, int c)
{
    return c == N_WORK_CLASSES ? side->result.step_time_s : side->result.breakdown.s[c];
}

static const char *class_key(int c)
{
    return c == N_WORK_CLASSES ? "step" : work_class_name((enum work_class)c);
}

static bool has_class(const struct step_pair *pair, int c)
{
    return class_seconds(&pair->sides[0], c) > 0 || class_seconds(&pair->sides[1], c) > 0;
}

/* The experiment with the layout and, one by one, the features that it has in the end. */
static json_t *settled_json(const struct step_side *side)
{
    char *text = experiment_to_json(&side->setup.experiment);
    json_t *config = json_loads(text, 0, NULL), *features = json_object();
    for (int f = 0; f < N_FEATURES; f++)
        if (side->setup.layout.features >> f & 1)
            json_object_set_new(features, feature_name((enum feature)f), json_true());
    json_object_del(json_object_get(config, "job"), "features");
    json_object_set_new(config, "layout", layout_json(&side->setup.layout));
    json_object_set_new(config, "features", features);
    free(text);
    return config;
}

static json_t *differences_json(const struct step_pair *pair)
{
    json_t *a = settled_json(&pair->sides[0]), *b = settled_json(&pair->sides[1]), *differences = config_differences(a, b);
    json_decref(a);
    json_decref(b);
    return differences;
}

/* --- text --- */

static void value_cell(struct table *table, double value, int digits)
{
    char number[32];
    if (isnan(value))
        table_cell(table, "-");
    else if (digits == 0)
        table_cell(table, "%s", grouped((int64_t)(value + 0.5), number, sizeof number));
    else
        table_cell(table, "%.*f", digits, value);
}

static void write_step_row(const struct pair_row *row, struct table *table)
{
    double a = row->values[0], b = row->values[1];
    bool both = !isnan(a) && !isnan(b);
    char number[32];
    table_cell(table, "%s", row->title);
    value_cell(table, a, row->digits);
    value_cell(table, b, row->digits);
    if (!both)
        table_cell(table, "-");
    else if (row->digits > 0)
        difference_cell(table, b - a, row->digits);
    else
        table_cell(table, "%s%s", b > a ? "+" : "", grouped((int64_t)round(b - a), number, sizeof number));
    if (both && a > 0)
        table_cell(table, "%.3f", b / a);
    else
        table_cell(table, "-");
}

static void write_step(const struct step_pair *pair, const struct invocation *call)
{
    struct pair_row rows[N_STEP_ROWS];
    struct table table = {0};
    fill_step_rows(pair, rows);
    table_column(&table, "", NULL, ALIGN_LEFT);
    for (int i = 0; i < 2; i++)
        table_column(&table, side_names[i], NULL, ALIGN_RIGHT);
    table_column(&table, "B - A", NULL, ALIGN_RIGHT);
    table_column(&table, "B / A", NULL, ALIGN_RIGHT);
    for (int k = 0; k < N_STEP_ROWS; k++)
        if (!isnan(rows[k].values[0]) || !isnan(rows[k].values[1]))
            write_step_row(&rows[k], &table);
    table_write_text(&table, call);
    table_free(&table);
}

/* What of a budget is counted, and what is left out of it. */
static void write_budget_notes(const struct step_pair *pair, FILE *out)
{
    const struct job_setup *setups[2] = {&pair->sides[0].setup, &pair->sides[1].setup};
    bool budgeted = false, known = false;
    for (int i = 0; i < 2; i++) {
        budgeted |= setups[i]->experiment.job.tokens > 0;
        const struct experiment *e = &setups[i]->experiment;
        known |= power_bound_of(&e->cluster, e->gpus, counted_power(pair)).count != POWER_UNKNOWN;
    }
    if (budgeted && known)
        fprintf(out, "energy is an upper bound: %s\n", power_count_text(counted_power(pair)));
    for (int i = 0; i < 2; i++)
        if (budgeted && setups[i]->gpu_price <= 0 && setups[1 - i]->gpu_price > 0)
            fprintf(out, "%s has no price, so its cost is left out\n", setups[i]->experiment.cluster.gpu.name);
}

/* What of a side the range of a likely step does not know. */
static void write_unheard(const struct step_pair *pair, FILE *out)
{
    char text[UNHEARD_TEXT];
    for (int i = 0; i < 2; i++) {
        const struct job_setup *setup = &pair->sides[i].setup;
        if (expectation_unheard(&setup->layout, &setup->setting, text, sizeof text)[0])
            fprintf(out, "none of the published runs like %s is %s: the interval is less reliable\n", side_names[i], text);
    }
    fputc('\n', out);
}

static void write_seconds(const struct step_pair *pair, const struct invocation *call)
{
    struct table table = {0};
    table_column(&table, "where the time goes", NULL, ALIGN_LEFT);
    for (int i = 0; i < 2; i++)
        table_column(&table, side_names[i], "s", ALIGN_RIGHT);
    table_column(&table, "B - A", "s", ALIGN_RIGHT);
    table_column(&table, "change per token", "% of A", ALIGN_RIGHT);
    for (int c = 0; c <= N_WORK_CLASSES; c++) {
        double a = class_seconds(&pair->sides[0], c), b = class_seconds(&pair->sides[1], c);
        double change = step_pair_change(pair, c);
        if (!has_class(pair, c))
            continue;
        table_cell(&table, "%s", class_key(c));
        value_cell(&table, a, 4);
        value_cell(&table, b, 4);
        difference_cell(&table, b - a, 4);
        table_tint(&table, change > 0.005 ? TINT_BAD : change < -0.005 ? TINT_GOOD : TINT_NONE);
        difference_cell(&table, 100 * change, 2);
    }
    table_write_text(&table, call);
    table_free(&table);
    fputs("(mean over ranks; only exposed communication is counted; last column: change of the GPU-seconds per token,\n"
          "relative to all GPU-seconds per token of A)\n\n",
          call->out);
}

static void write_memory(const struct step_pair *pair, const struct invocation *call)
{
    struct pair_row rows[N_MEMORY_ROWS] = {0};
    struct table table = {0};
    fill_memory_rows(pair, rows);
    table_column(&table, "memory of the fullest stage", NULL, ALIGN_LEFT);
    for (int i = 0; i < 2; i++)
        table_column(&table, side_names[i], "GiB", ALIGN_RIGHT);
    table_column(&table, "B - A", "GiB", ALIGN_RIGHT);
    for (int k = 0; k < N_MEMORY_ROWS; k++) {
        table_cell(&table, "%s", rows[k].title);
        value_cell(&table, rows[k].values[0], 2);
        value_cell(&table, rows[k].values[1], 2);
        difference_cell(&table, rows[k].values[1] - rows[k].values[0], 2);
    }
    table_write_text(&table, call);
    table_free(&table);
    for (int i = 0; i < 2; i++)
        if (!step_report_runs(&pair->sides[i].report))
            fprintf(call->out, "%s%s does not fit; its times ignore that%s\n", tint_start(TINT_BAD, call->colour), side_names[i],
                    tint_end(TINT_BAD, call->colour));
}

/* "8", "true", "[1, 2]"; "-" what one does not have. */
static const char *value_text(const json_t *value, char *buffer, size_t size)
{
    char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
    snprintf(buffer, size, "%s", json_is_null(value) ? "-" : text ? text : json_string_value(value));
    free(text);
    return buffer;
}

static void write_differences(const struct step_pair *pair, const struct invocation *call)
{
    enum { MOST_SHOWN = 24, CELL_TEXT = 128 };
    json_t *differences = differences_json(pair);
    size_t n = json_array_size(differences);
    char text[CELL_TEXT];
    struct table table = {0};
    table_column(&table, "difference", NULL, ALIGN_LEFT);
    for (int i = 0; i < 2; i++)
        table_column(&table, side_names[i], NULL, ALIGN_LEFT);
    for (size_t i = 0; i < n && i < MOST_SHOWN; i++) {
        const json_t *item = json_array_get(differences, i);
        table_cell(&table, "%s", json_string_value(json_object_get(item, "key")));
        table_cell(&table, "%s", value_text(json_object_get(item, "a"), text, sizeof text));
        table_cell(&table, "%s", value_text(json_object_get(item, "b"), text, sizeof text));
    }
    if (n > 0)
        table_write_text(&table, call);
    if (n > MOST_SHOWN)
        fprintf(call->out, "and %zu more; --format json lists all\n", n - MOST_SHOWN);
    fputs(n > 0 ? "\n" : "Nothing differs.\n\n", call->out);
    table_free(&table);
    json_decref(differences);
}

/* The classes that make most of the difference, in order. */
static void append_reasons(const struct step_pair *pair, char *text, size_t size)
{
    enum { SHOWN = 3 };
    static const double WORTH_TELLING = 0.0005; /* what a tenth of a percent rounds to */
    bool told[N_WORK_CLASSES] = {false};
    for (int n = 0; n < SHOWN; n++) {
        int most = -1;
        for (int c = 0; c < N_WORK_CLASSES; c++)
            if (!told[c] && (most < 0 || fabs(step_pair_change(pair, c)) > fabs(step_pair_change(pair, most))))
                most = c;
        if (fabs(step_pair_change(pair, most)) < WORTH_TELLING)
            return;
        told[most] = true;
        text_append(text, size, "%s %s %+.1f", n ? "," : ":", class_key(most), 100 * step_pair_change(pair, most));
    }
}

/* Does a token of the one model ask for other FLOPs than of the other, in the same job? Names and much else ask for none. */
static bool models_differ(const struct step_pair *pair)
{
    double flops[2];
    for (int i = 0; i < 2; i++) {
        struct setting setting = pair->sides[0].setup.setting;
        setting.model = pair->sides[i].setup.setting.model;
        flops[i] = model_flops_per_step(&setting, pair->sides[0].setup.layout.features, FLOPS_FULL);
    }
    return fabs(flops[1] - flops[0]) > 1e-9 * flops[0];
}

/* In a sentence: which is faster, and by what. */
static void write_verdict(const struct step_pair *pair, FILE *out)
{
    double rate = pair->sides[1].result.tokens_per_s / pair->sides[0].result.tokens_per_s;
    double change = step_pair_change(pair, N_WORK_CLASSES);
    char text[256] = "";
    append_reasons(pair, text, sizeof text);
    fprintf(out, "B trains %.3f times the tokens per second of A; each token costs %.1f %% %s GPU-seconds%s\n", rate,
            100 * fabs(change), change > 0 ? "more" : "fewer", text);
    if (models_differ(pair))
        fputs("The models differ in FLOPs per token: compare their MFU.\n", out);
}

static void write_text(const struct step_pair *pair, const struct invocation *call)
{
    for (int i = 0; i < 2; i++) {
        fprintf(call->out, "%s        %s: ", side_names[i], pair->sides[i].file);
        step_report_header(&pair->sides[i].setup, call->out);
    }
    write_differences(pair, call);
    write_step(pair, call);
    write_budget_notes(pair, call->out);
    write_unheard(pair, call->out);
    write_seconds(pair, call);
    write_memory(pair, call);
    fputc('\n', call->out);
    write_verdict(pair, call->out);
}

/* --- JSON and CSV --- */

static json_t *number_json(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

/* Of one side, or for 2 of what B has more than A. */
static double value_of(const double values[2], int side)
{
    return side < 2 ? values[side] : values[1] - values[0];
}

static json_t *side_json(const struct step_pair *pair, int side)
{
    struct pair_row step[N_STEP_ROWS], memory[N_MEMORY_ROWS] = {0};
    json_t *json = json_object(), *times = json_object(), *parts = json_object();
    fill_step_rows(pair, step);
    fill_memory_rows(pair, memory);
    for (int k = 0; k < N_STEP_ROWS; k++)
        json_object_set_new(json, step[k].key, number_json(value_of(step[k].values, side)));
    for (int c = 0; c < N_WORK_CLASSES; c++) {
        const double values[2] = {class_seconds(&pair->sides[0], c), class_seconds(&pair->sides[1], c)};
        json_object_set_new(times, class_key(c), json_real(value_of(values, side)));
    }
    for (int k = 0; k < N_MEMORY_ROWS; k++)
        json_object_set_new(parts, memory[k].key, json_real(value_of(memory[k].values, side)));
    json_object_set_new(json, "breakdown", times);
    json_object_set_new(json, "memory_gib", parts);
    return json;
}

static void put_identity(const struct step_side *side, json_t *json)
{
    char *config = experiment_to_json(&side->setup.experiment);
    json_object_set_new(json, "file", json_text(side->file));
    json_object_set_new(json, "config", json_loads(config, 0, NULL));
    json_object_set_new(json, "layout", layout_json(&side->setup.layout));
    json_object_set_new(json, "features", features_json(side->setup.layout.features));
    json_object_set_new(json, "layout_chosen", json_boolean(side->setup.chosen));
    json_object_set_new(json, "fits", json_boolean(step_report_runs(&side->report)));
    free(config);
}

static enum status write_json(const struct step_pair *pair, struct invocation *call)
{
    json_t *result = result_create(call, NULL), *changes = json_object();
    for (int i = 0; i < 2; i++) {
        json_t *json = side_json(pair, i);
        put_identity(&pair->sides[i], json);
        json_object_set_new(result, i == 0 ? "a" : "b", json);
    }
    for (int c = 0; c <= N_WORK_CLASSES; c++)
        json_object_set_new(changes, class_key(c), json_real(100 * step_pair_change(pair, c)));
    json_object_set_new(result, "difference", side_json(pair, 2));
    json_object_set_new(result, "differs", differences_json(pair));
    json_object_set_new(result, "energy_counted", json_string(counted_power(pair) == POWER_NODES ? "nodes" : "boards"));
    json_object_set_new(result, "gpu_seconds_per_token_change_pct", changes);
    return result_write(call, result);
}

static void csv_row(struct table *table, const char *part, const char *key, const double values[2])
{
    table_cell(table, "%s", part);
    table_cell(table, "%s", key);
    for (int side = 0; side <= 2; side++)
        if (isnan(value_of(values, side)))
            table_cell(table, "%s", "");
        else
            table_cell(table, "%.12g", value_of(values, side));
}

static void write_csv(const struct step_pair *pair, const struct invocation *call)
{
    static const char *const columns[] = {"part", "quantity", "a", "b", "difference"};
    struct pair_row step[N_STEP_ROWS], memory[N_MEMORY_ROWS] = {0};
    struct table table = {0};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        table_column(&table, columns[i], NULL, ALIGN_LEFT);
    fill_step_rows(pair, step);
    fill_memory_rows(pair, memory);
    for (int k = 0; k < N_STEP_ROWS; k++)
        csv_row(&table, "step", step[k].key, step[k].values);
    for (int c = 0; c < N_WORK_CLASSES; c++)
        csv_row(&table, "time_s", class_key(c), (double[]){class_seconds(&pair->sides[0], c), class_seconds(&pair->sides[1], c)});
    for (int k = 0; k < N_MEMORY_ROWS; k++)
        csv_row(&table, "memory_gib", memory[k].key, memory[k].values);
    table_write_csv(&table, call->out);
    table_free(&table);
}

enum status step_pair_report(const struct step_pair *pair, struct invocation *call)
{
    if (call->format == FORMAT_JSON)
        return write_json(pair, call);
    if (call->format == FORMAT_CSV)
        write_csv(pair, call);
    else
        write_text(pair, call);
    return STATUS_OK;
}
