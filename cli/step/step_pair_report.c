#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/job/plan_rates.h"
#include "cli/options/next_command.h"
#include "cli/output/expectation.h"
#include "cli/output/layout_json.h"
#include "cli/output/notes.h"
#include "cli/output/result.h"
#include "cli/step/config_difference.h"
#include "cli/step/step_pair.h"
#include "cli/step/step_report.h"
#include "model/base/append.h"
#include "model/base/units.h"
#include "model/cost/step/track_record.h"
#include "model/cost/work/work.h"
#include "traces/table/csv.h"

static const char *const side_names[2] = {"A", "B"};

/* --- rows --- */

static struct step_rates rates_of(const struct step_side *side)
{
    return step_rates_of(&side->setup.layout, &side->setup.setting, side->result.step_time_s);
}

static const struct track_record *track_record(const struct step_side *side)
{
    return track_record_of(run_kind_of(&side->setup.layout, side->setup.setting.model));
}

/* Of a budget of tokens. */
static struct value of_budget(const struct step_side *side, double number)
{
    return known_if(rates_of(side).days > 0, as_real(number));
}

static struct value cost_of(const struct step_side *side)
{
    double price = side->setup.gpu_price;
    return known_if(price > 0, of_budget(side, price * rates_of(side).gpu_hours));
}

static struct value energy_of(const struct step_side *side)
{
    const struct experiment *e = &side->setup.experiment;
    const struct power_bound bound = power_bound_of(&e->cluster, e->gpus, side->counted);
    double energy_j = power_bound_energy(&bound, rates_of(side).gpu_hours);
    return known_if(energy_j > 0, of_budget(side, energy_j / 3.6e9));
}

/* In text a number without decimals has its digits in groups. */
#define PAIR_ROWS(ROW)                                                                                                           \
    ROW(step_side, step_time_s, as_real(s->result.step_time_s), "s", JSON | CSV, "predicted time of the step", .title = "step",  \
        .show = "%.4f")                                                                                                          \
    ROW(step_side, likely_low_s, as_real(s->result.step_time_s *track_record(s)->low), "s", JSON | CSV,                          \
        "low end of the interval from published runs", .title = "  likely, from", .show = "%.4f")                                \
    ROW(step_side, likely_high_s, as_real(s->result.step_time_s *track_record(s)->high), "s", JSON | CSV, "its high end",        \
        .title = "  likely, to", .show = "%.4f")                                                                                 \
    ROW(step_side, tokens_per_s, as_real(s->result.tokens_per_s), "1/s", JSON | CSV, "tokens per second of the job",             \
        .title = "tokens/s", .text_unit = "", .show = "%.0f")                                                                    \
    ROW(step_side, tokens_per_s_per_gpu, as_real(rates_of(s).tokens_per_gpu), "1/s", JSON | CSV, "tokens per second and GPU",    \
        .title = "tokens/s per GPU", .text_unit = "", .show = "%.1f")                                                            \
    ROW(step_side, mfu_pct, as_real(100 * s->result.mfu), "%", JSON | CSV, "MFU, attention counted in full", .title = "MFU",     \
        .show = "%.1f")                                                                                                          \
    ROW(step_side, mfu_causal_pct, as_real(100 * s->result.mfu_causal), "%", JSON | CSV, "MFU, causal half of attention",        \
        .title = "  causal half", .show = "%.1f")                                                                                \
    ROW(step_side, hfu_pct, as_real(100 * s->result.hfu), "%", JSON | CSV, "HFU, attention counted in full", .title = "HFU",     \
        .show = "%.1f")                                                                                                          \
    ROW(step_side, tflops_per_gpu, as_real(rates_of(s).tflops), "TFLOP/s", JSON | CSV, "rate of a GPU, attention in full",       \
        .title = "TFLOPS per GPU", .text_unit = "", .show = "%.1f")                                                              \
    ROW(step_side, days, of_budget(s, rates_of(s).days), "days", JSON | CSV, "time for the budget of tokens", .text_unit = "",   \
        .show = "%.1f")                                                                                                          \
    ROW(step_side, gpu_hours, of_budget(s, rates_of(s).gpu_hours), "h", JSON | CSV, "GPU-hours of the budget",                   \
        .title = "GPU-hours", .text_unit = "", .show = "%.0f")                                                                   \
    ROW(step_side, cost, cost_of(s), "", JSON | CSV, "their cost, in the currency of --gpu-price", .show = "%.0f")               \
    ROW(step_side, energy_at_most_mwh, energy_of(s), "MWh", JSON | CSV, "upper bound of the energy", .title = "energy at most",  \
        .show = "%.1f")                                                                                                          \
    ROW(step_side, gpus, as_real(s->setup.experiment.gpus), "", JSON | CSV, "number of GPUs", .title = "GPUs", .show = "%.0f")
RESULT_ROWS(pair_rows, PAIR_ROWS)

#define PAIR_MEMORY(ROW, KEY, BYTES, MEANING)                                                                                    \
    ROW(step_side, KEY, as_real((BYTES) / GIB), "GiB", JSON | CSV, MEANING, .inside = "memory_gib", .show = "%.2f")
#define PAIR_MEMORY_ROWS(ROW)                                                                                                    \
    PAIR_MEMORY(ROW, weights, s->result.memory.weights, "weights")                                                               \
    PAIR_MEMORY(ROW, gradients, s->result.memory.gradients, "gradients")                                                         \
    PAIR_MEMORY(ROW, optimizer, s->result.memory.optimizer, "optimizer states and master weights")                               \
    PAIR_MEMORY(ROW, activations, s->result.memory.activations, "activations kept for backward passes")                          \
    PAIR_MEMORY(ROW, buffers, s->result.memory.buffers, "buffers of exchanges and of passes")                                    \
    PAIR_MEMORY(ROW, framework, s->result.memory.framework, "memory of the framework and its libraries")                         \
    PAIR_MEMORY(ROW, total, s->result.memory.total, "all of the fullest stage")                                                  \
    PAIR_MEMORY(ROW, capacity, s->record.capacity_bytes, "memory that a GPU has for it")
RESULT_ROWS(pair_memory_rows, PAIR_MEMORY_ROWS)

static json_t *config_of(const struct step_side *side)
{
    char *text = experiment_to_json(&side->setup.experiment);
    json_t *config = json_loads(text, 0, NULL);
    free(text);
    return config;
}

#define SIDE_ROWS(ROW)                                                                                                           \
    ROW(step_side, file, as_text(s->file), "", JSON, "file of the experiment")                                                   \
    ROW(step_side, config, as_json(config_of(s)), "", JSON, "the effective experiment")                                          \
    ROW(step_side, layout, as_json(layout_json(&s->setup.layout)), "", JSON, "its layout")                                       \
    ROW(step_side, features, as_json(features_json(s->setup.layout.features)), "", JSON, "software features that it uses")       \
    ROW(step_side, layout_chosen, as_flag(s->setup.chosen), "", JSON, "whether msim chose the layout")                           \
    ROW(step_side, fits, as_flag(step_fits(&s->record)), "", JSON, "whether GPUs and hosts have enough memory")
RESULT_ROWS(pair_side_rows, SIDE_ROWS)

/* Of one side, or for DIFFERENCE what B has more than A; NAN: unknown. */
enum { SIDE_A, SIDE_B, DIFFERENCE };

static double side_value(const struct result_row *row, const struct step_side *side)
{
    struct value value = row->get(side);
    return value.kind == VALUE_REAL ? value.real : NAN;
}

static double value_of(const struct result_row *row, const struct step_pair *pair, int side)
{
    if (side != DIFFERENCE)
        return side_value(row, &pair->sides[side]);
    return side_value(row, &pair->sides[SIDE_B]) - side_value(row, &pair->sides[SIDE_A]);
}

/* --- time by class --- */

/* The time of a class, or of the step for N_WORK_CLASSES. */
static double class_seconds(const struct step_side *side, int c)
{
    return c == N_WORK_CLASSES ? side->result.step_time_s : side->result.breakdown.s[c];
}

/* What a class takes of the GPU-seconds a token, of B more than of A, as a share of all that A takes; of all classes for
 * N_WORK_CLASSES. */
static double class_change(const struct step_pair *pair, int c)
{
    double cost[2], whole = 1;
    for (int i = SIDE_B; i >= SIDE_A; i--) {
        const struct step_side *side = &pair->sides[i];
        const struct job *job = &side->setup.experiment.job;
        double per_token = side->setup.experiment.gpus / ((double)job->global_batch * (double)job->seq_len);
        cost[i] = class_seconds(side, c) * per_token;
        whole = side->result.step_time_s * per_token;
    }
    return (cost[SIDE_B] - cost[SIDE_A]) / whole;
}

static const char *class_key(int c)
{
    return c == N_WORK_CLASSES ? "step" : work_class_name((enum work_class)c);
}

static double class_value(const struct step_pair *pair, int c, int side)
{
    double a = class_seconds(&pair->sides[SIDE_A], c), b = class_seconds(&pair->sides[SIDE_B], c);
    return side == SIDE_A ? a : side == SIDE_B ? b : b - a;
}

static bool has_class(const struct step_pair *pair, int c)
{
    return class_seconds(&pair->sides[0], c) > 0 || class_seconds(&pair->sides[1], c) > 0;
}

/* --- differences --- */

/* The experiment with the layout and, one by one, the features that it has in the end. */
static json_t *settled_json(const struct step_side *side)
{
    json_t *config = config_of(side), *features = json_object();
    for (int f = 0; f < N_FEATURES; f++)
        if (side->setup.layout.features >> f & 1)
            json_object_set_new(features, feature_name((enum feature)f), json_true());
    json_object_del(json_object_get(config, "job"), "features");
    json_object_set_new(config, "layout", layout_json(&side->setup.layout));
    json_object_set_new(config, "features", features);
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

/* "%.2f": 2. */
static int digits_of(const struct result_row *row)
{
    return row->show[2] - '0';
}

static void write_step_row(const struct result_row *row, const struct step_pair *pair, struct table *table)
{
    double a = value_of(row, pair, SIDE_A), b = value_of(row, pair, SIDE_B), difference = value_of(row, pair, DIFFERENCE);
    const char *title = row->title ? row->title : row->key, *unit = row->text_unit ? row->text_unit : row->unit;
    int digits = digits_of(row);
    char number[32];
    table_cell(table, *unit ? "%s [%s]" : "%s", title, unit);
    value_cell(table, a, digits);
    value_cell(table, b, digits);
    if (isnan(difference))
        table_cell(table, "-");
    else if (digits > 0)
        difference_cell(table, difference, digits);
    else
        table_cell(table, "%s%s", difference > 0 ? "+" : "", grouped((int64_t)round(difference), number, sizeof number));
    if (!isnan(difference) && a > 0)
        table_cell(table, "%.3f", b / a);
    else
        table_cell(table, "-");
}

static void write_step(const struct step_pair *pair, const struct invocation *call)
{
    struct table table = {0};
    table_column(&table, "", NULL, ALIGN_LEFT);
    for (int i = 0; i < 2; i++)
        table_column(&table, side_names[i], NULL, ALIGN_RIGHT);
    table_column(&table, "B - A", NULL, ALIGN_RIGHT);
    table_column(&table, "B / A", NULL, ALIGN_RIGHT);
    for (const struct result_row *row = pair_rows; row->key; row++)
        if (!isnan(value_of(row, pair, SIDE_A)) || !isnan(value_of(row, pair, SIDE_B)))
            write_step_row(row, pair, &table);
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
        known |= power_bound_of(&e->cluster, e->gpus, pair->sides[i].counted).count != POWER_UNKNOWN;
    }
    if (budgeted && known)
        fprintf(out, "energy is an upper bound: %s\n", power_count_text(pair->sides[0].counted));
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
        double change = class_change(pair, c);
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
    struct table table = {0};
    table_column(&table, "memory of the fullest stage", NULL, ALIGN_LEFT);
    for (int i = 0; i < 2; i++)
        table_column(&table, side_names[i], "GiB", ALIGN_RIGHT);
    table_column(&table, "B - A", "GiB", ALIGN_RIGHT);
    for (const struct result_row *row = pair_memory_rows; row->key; row++) {
        table_cell(&table, "%s", row->key);
        value_cell(&table, value_of(row, pair, SIDE_A), digits_of(row));
        value_cell(&table, value_of(row, pair, SIDE_B), digits_of(row));
        difference_cell(&table, value_of(row, pair, DIFFERENCE), digits_of(row));
    }
    table_write_text(&table, call);
    table_free(&table);
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
            if (!told[c] && (most < 0 || fabs(class_change(pair, c)) > fabs(class_change(pair, most))))
                most = c;
        if (fabs(class_change(pair, most)) < WORTH_TELLING)
            return;
        told[most] = true;
        text_append(text, size, "%s %s %+.1f", n ? "," : ":", class_key(most), 100 * class_change(pair, most));
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
    double change = class_change(pair, N_WORK_CLASSES);
    char text[256] = "";
    append_reasons(pair, text, sizeof text);
    fprintf(out, "B trains %.3f times the tokens per second of A; each token costs %.1f %% %s GPU-seconds%s\n", rate,
            100 * fabs(change), change > 0 ? "more" : "fewer", text);
    if (models_differ(pair))
        fputs("The models differ in FLOPs per token: compare their MFU.\n", out);
}

/* A layout for the first that does not fit, or where the faster one spends its time. */
static void write_next(const struct step_pair *pair, const struct invocation *call)
{
    struct invocation alone = *call;
    bool fits[] = {step_fits(&pair->sides[SIDE_A].record), step_fits(&pair->sides[SIDE_B].record)};
    int one = fits[SIDE_A] != fits[SIDE_B] ? fits[SIDE_A] : fits[SIDE_A] && class_change(pair, N_WORK_CLASSES) < 0;
    alone.operands = call->operands + one;
    alone.n_operands = 1;
    if (fits[one])
        next_command_write(&alone, "step", NULL, "--explain");
    else
        step_report_write_plan(&alone);
}

static void write_text(const struct step_pair *pair, const struct invocation *call)
{
    for (int i = 0; i < 2; i++)
        step_report_write_misfit(&pair->sides[i].record, side_names[i], call);
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
    write_next(pair, call);
}

/* --- JSON and CSV --- */

static void put_rows(const struct result_row *row, const struct step_pair *pair, int side, json_t *json)
{
    for (; row->key; row++) {
        double number = value_of(row, pair, side);
        json_object_set_new(json, row->key, isnan(number) ? json_null() : json_real(number));
    }
}

static json_t *side_json(const struct step_pair *pair, int side)
{
    json_t *json = json_object(), *times = json_object(), *parts = json_object();
    put_rows(pair_rows, pair, side, json);
    for (int c = 0; c < N_WORK_CLASSES; c++)
        json_object_set_new(times, class_key(c), json_real(class_value(pair, c, side)));
    put_rows(pair_memory_rows, pair, side, parts);
    json_object_set_new(json, "breakdown", times);
    json_object_set_new(json, "memory_gib", parts);
    if (side != DIFFERENCE)
        rows_json(pair_side_rows, &pair->sides[side], json);
    return json;
}

static enum status write_json(const struct step_pair *pair, struct invocation *call)
{
    json_t *result = result_create(call, NULL), *changes = json_object();
    for (int c = 0; c <= N_WORK_CLASSES; c++)
        json_object_set_new(changes, class_key(c), json_real(100 * class_change(pair, c)));
    json_object_set_new(result, "a", side_json(pair, SIDE_A));
    json_object_set_new(result, "b", side_json(pair, SIDE_B));
    json_object_set_new(result, "difference", side_json(pair, DIFFERENCE));
    json_object_set_new(result, "differs", differences_json(pair));
    json_object_set_new(result, "energy_counted", json_string(power_count_name(pair->sides[0].counted)));
    json_object_set_new(result, "gpu_seconds_per_token_change_pct", changes);
    return result_write(call, result);
}

static void csv_rows(const char *part, const struct result_row *row, const struct step_pair *pair, FILE *out)
{
    char text[32];
    for (; row->key; row++) {
        fprintf(out, "%s,%s", part, row->key);
        for (int side = SIDE_A; side <= DIFFERENCE; side++) {
            double number = value_of(row, pair, side);
            snprintf(text, sizeof text, "%.12g", number);
            csv_write_cell(out, false, isnan(number) ? "" : text);
        }
        fputc('\n', out);
    }
}

static void write_csv(const struct step_pair *pair, FILE *out)
{
    fputs("part,quantity,a,b,difference\n", out);
    csv_rows("step", pair_rows, pair, out);
    for (int c = 0; c < N_WORK_CLASSES; c++)
        fprintf(out, "time_s,%s,%.12g,%.12g,%.12g\n", class_key(c), class_value(pair, c, SIDE_A), class_value(pair, c, SIDE_B),
                class_value(pair, c, DIFFERENCE));
    csv_rows("memory_gib", pair_memory_rows, pair, out);
}

enum status step_pair_report(const struct step_pair *pair, struct invocation *call)
{
    if (call->format == FORMAT_JSON)
        return write_json(pair, call);
    if (call->format == FORMAT_CSV)
        write_csv(pair, call->out);
    else
        write_text(pair, call);
    return STATUS_OK;
}
