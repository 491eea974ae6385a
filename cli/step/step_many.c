#include "cli/step/step_many.h"

#include <math.h>
#include <stdlib.h>

#include "cli/options/next_command.h"
#include "cli/options/shared_options.h"
#include "cli/output/layout_json.h"
#include "cli/output/notes.h"
#include "cli/output/progress.h"
#include "cli/output/result.h"
#include "cli/run/run_many.h"
#include "cli/step/step_report.h"
#include "cli/world/world.h"
#include "sim/search/step_spread.h"

static const char *const share_names[N_SPREAD_SHARES] = {"p50", "p90", "p99", "max"};

enum status step_many_check(struct invocation *call)
{
    static const char *const of_one_step[] = {"explain", "trace", "timeline", "profile", "export", "link-map", "trace-ranks"};
    static const char *const idle[] = {"jitter", "threads"};
    bool many = option_given(call, "replicas");
    for (size_t i = 0; !many && i < sizeof idle / sizeof *idle; i++)
        if (option_given(call, idle[i]))
            diag_note(&call->diags, PLACE_NONE, "--%s has no effect without --replicas", idle[i]);
    if (!many)
        return STATUS_OK;
    size_t before = call->diags.n_errors;
    for (size_t i = 0; i < sizeof of_one_step / sizeof *of_one_step; i++)
        if (option_given(call, of_one_step[i]))
            diag_error(&call->diags, PLACE_NONE, "--%s applies to one step; remove --replicas", of_one_step[i]);
    if (option_choice(call, "network") != NETWORK_ANALYTIC)
        diag_error(&call->diags, PLACE_NONE,
                   "--replicas needs --network analytic; simulating a step on a fabric takes seconds instead of milliseconds");
    if (option_choice(call, "detail") != DETAIL_CHUNK)
        diag_error(&call->diags, PLACE_NONE, "--replicas needs --detail chunk");
    if (option_given(call, "ranks"))
        diag_note(&call->diags, PLACE_NONE,
                  "--ranks has no effect with --replicas, which simulates one rank for all ranks in lockstep");
    return call->diags.n_errors > before ? STATUS_USAGE : STATUS_OK;
}

static bool draws_documents(const struct job_setup *setup)
{
    return step_draws_documents(&setup->layout, &setup->setting);
}

/* --- reports --- */

/* Many steps, and their mean, of which is said what is said of a single one. */
struct step_many {
    const struct invocation *call;
    const struct job_setup *setup;
    const struct step_spread *spread;
    struct step_record mean;
};

/* Of the mean step what a step of `seconds` takes beyond one of equal GPUs. */
static double cost_pct(const struct step_spread *spread, double seconds)
{
    return 100 * (seconds - spread->alike_s) / spread->time.mean;
}

/* Of two digits, and as in tables no -0.00: a nanosecond that rounding saves is no gain. */
static double shown_pct(const struct step_spread *spread, double seconds)
{
    double cost = cost_pct(spread, seconds);
    return fabs(cost) < 0.005 ? 0 : cost;
}

static void write_row(struct table *table, const struct step_spread *spread, const char *name, double seconds,
                      const char *meaning)
{
    table_cell(table, "%s", name);
    table_cell(table, "%.4f", seconds);
    table_cell(table, "%.2f", cost_pct(spread, seconds));
    table_cell(table, "%s", meaning);
}

/* One GPU waits for nobody. */
static void write_cost(const struct invocation *call, const struct job_setup *setup, const struct step_spread *spread)
{
    char number[32];
    int gpus = setup->experiment.gpus;
    if (gpus > 1)
        fprintf(call->out, "Waiting for the slowest of %s GPUs%s costs %.2f %% of the mean step, and in the longest %.2f %%. ",
                grouped(gpus, number, sizeof number), draws_documents(setup) ? " and the longest documents" : "",
                shown_pct(spread, spread->time.mean), shown_pct(spread, spread->at[SPREAD_MAX]));
    fprintf(call->out, "MFU of the mean: %.1f %%", 100 * spread->mean.mfu);
    if (job_masks_documents(&setup->experiment.job))
        fprintf(call->out, " (attention counted in full), %.1f %% (within documents)", 100 * spread->mean.mfu_masked);
    fputs(".\n", call->out);
}

static void write_text(const struct step_many *many)
{
    static const char *const without[] = {"replicas", "jitter", NULL};
    struct table table = {0};
    const struct invocation *call = many->call;
    const struct job_setup *setup = many->setup;
    const struct step_spread *spread = many->spread;
    const char *gpu = option_given(call, "jitter") ? "" : setup->experiment.cluster.gpu.name;
    char n[32], mean[96];
    step_report_write_misfit(&many->mean, "", call);
    step_report_header(setup, call->out);
    fprintf(call->out,
            "%s steps, each on GPUs that draw their own speed: arithmetic takes 1 +- %.3g %% (standard deviation%s%s)%s\n\n",
            grouped(spread->n, n, sizeof n), 100 * spread->jitter, *gpu ? ", clock_spread of " : "", gpu,
            draws_documents(setup) ? ",\nand sequences that draw their documents" : "");
    table_column(&table, "step", NULL, ALIGN_LEFT);
    table_column(&table, "time", "s", ALIGN_RIGHT);
    table_column(&table, "jitter", "% of mean", ALIGN_RIGHT);
    table_column(&table, "meaning", NULL, ALIGN_LEFT);
    snprintf(mean, sizeof mean, "95 %% confidence: %.4f to %.4f s", spread->time.mean - spread->time.half_width,
             spread->time.mean + spread->time.half_width);
    write_row(&table, spread, "equal GPUs", spread->alike_s,
              draws_documents(setup) ? "no jitter, documents of an average sequence" : "no jitter");
    write_row(&table, spread, "mean", spread->time.mean, mean);
    for (int i = 0; i < N_SPREAD_SHARES; i++)
        write_row(&table, spread, share_names[i], spread->at[i],
                  i < SPREAD_MAX ? (i == 0 ? "half of the steps are no longer" : "") : "the longest of them");
    write_row(&table, spread, "expected", spread->expected_s, "all GPUs at the pace that the slowest is expected to have");
    table_write(&table, call);
    table_free(&table);
    fputc('\n', call->out);
    write_cost(call, setup, spread);
    step_report_write_budget(&many->mean, call->out);
    if (step_fits(&many->mean))
        next_command_write(call, "step", without, "--explain");
    else
        step_report_write_plan(call);
}

/* One of them. */
struct outcome {
    const struct step_many *many;
    int64_t i;
};

static const struct step_outcome *outcome_of(const struct outcome *outcome)
{
    return &outcome->many->spread->outcomes[outcome->i];
}

#define OUTCOME_ROWS(ROW)                                                                                                        \
    ROW(outcome, replica, as_count(s->i), "", CSV, "number of the step")                                                         \
    ROW(outcome, seed, as_count((int64_t)(s->many->call->seed + (uint64_t)s->i)), "", JSON | CSV, "its seed")                    \
    ROW(outcome, step_time_s, as_real(nanos_to_seconds(outcome_of(s)->step)), "s", JSON | CSV, "its time", .digits = "%.9f")     \
    ROW(outcome, slowest_rank, as_count(outcome_of(s)->slowest), "", JSON | CSV, "its slowest rank")                             \
    ROW(outcome, slowest_pace, as_real(1e-9 * (double)outcome_of(s)->pace), "", JSON | CSV,                                      \
        "time of that rank's arithmetic over the mean", .digits = "%.9f")                                                        \
    ROW(outcome, fits, as_flag(step_fits(&s->many->mean)), "", CSV, "whether the layout fits")
RESULT_ROWS(step_outcome_rows, OUTCOME_ROWS)

static void write_csv(const struct step_many *many, FILE *out)
{
    rows_csv_heading(step_outcome_rows, &(struct outcome){many, 0}, true, out);
    fputc('\n', out);
    for (int64_t i = 0; i < many->spread->n; i++) {
        rows_csv_cells(step_outcome_rows, &(struct outcome){many, i}, true, out);
        fputc('\n', out);
    }
}

static json_t *outcomes_json(const struct step_many *many)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < many->spread->n; i++)
        json_array_append_new(list, rows_object(step_outcome_rows, &(struct outcome){many, i}));
    return list;
}

static json_t *estimates_json(const struct step_spread *spread)
{
    json_t *time = estimate_json(spread->time);
    for (int i = 0; i < N_SPREAD_SHARES; i++)
        json_object_set_new(time, share_names[i], json_real(spread->at[i]));
    return json_pack("{s:o}", "step_time_s", time);
}

static json_t *documents_of(const struct job_setup *setup)
{
    return packed_json(&setup->setting, setup->layout.features);
}

static struct value mfu_masked(const struct step_many *many)
{
    return present_if(job_masks_documents(&many->setup->experiment.job), as_real(100 * many->spread->mean.mfu_masked));
}

#define MANY_ROWS(ROW)                                                                                                           \
    ROW(step_many, layout, as_json(layout_json(&s->setup->layout)), "", JSON, "with --replicas: the layout")                     \
    ROW(step_many, features, as_json(features_json(s->setup->layout.features)), "", JSON, "software features that it uses")      \
    ROW(step_many, documents, as_json(documents_of(s->setup)), "", JSON, "masks between documents")                              \
    ROW(step_many, layout_chosen, as_flag(s->setup->chosen), "", JSON, "whether msim chose the layout")                          \
    ROW(step_many, replicas, as_count(s->spread->n), "", JSON, "number of steps")                                                \
    ROW(step_many, jitter_pct, as_real(100 * s->spread->jitter), "%", JSON, "standard deviation of arithmetic between GPUs")     \
    ROW(step_many, step_time_s, as_real(s->spread->time.mean), "s", JSON, "mean time of a step")                                 \
    ROW(step_many, mfu_pct, as_real(100 * s->spread->mean.mfu), "%", JSON, "MFU of the mean, attention counted in full")         \
    ROW(step_many, mfu_documents_pct, mfu_masked(s), "%", JSON, "the same within documents")
RESULT_ROWS(step_many_rows, MANY_ROWS)

#define SPREAD_ROWS(ROW)                                                                                                         \
    ROW(step_many, equal_gpus_s, as_real(s->spread->alike_s), "s", JSON, "time of a step on equal GPUs")                         \
    ROW(step_many, expected_s, as_real(s->spread->expected_s), "s", JSON, "time at the expected pace of the slowest GPU")        \
    ROW(step_many, jitter_cost_pct, as_real(cost_pct(s->spread, s->spread->time.mean)), "%", JSON,                               \
        "share of the mean that waiting for the slowest costs")                                                                  \
    ROW(step_many, jitter_cost_max_pct, as_real(cost_pct(s->spread, s->spread->at[SPREAD_MAX])), "%", JSON,                      \
        "the same of the longest step")                                                                                          \
    ROW(step_many, estimates, as_json(estimates_json(s->spread)), "", JSON, "mean, interval and percentiles of step_time_s")     \
    ROW(step_many, outcomes, as_json(outcomes_json(s)), "", JSON, "each step")
RESULT_ROWS(step_spread_rows, SPREAD_ROWS)

static enum status write_json(struct invocation *call, const struct step_many *many)
{
    char *config = experiment_to_json(&many->setup->experiment);
    json_t *result = result_create(call, config);
    free(config);
    rows_json(step_many_rows, many, result);
    rows_json(step_size_rows, &many->mean, result);
    rows_json(step_spread_rows, many, result);
    return result_write(call, result);
}

static enum status report(struct invocation *call, const struct job_setup *setup, const struct step_spread *spread)
{
    struct step_many many = {call, setup, spread, step_record_of(setup, &spread->mean)};
    many.mean.timing = option_flag(call, "timing");
    enum status fit = step_check_fit(&many.mean, NULL, call), status = STATUS_OK;
    if (call->format == FORMAT_JSON)
        status = write_json(call, &many);
    else if (call->format == FORMAT_CSV)
        write_csv(&many, call->out);
    else
        write_text(&many);
    return status == STATUS_OK ? fit : status;
}

static enum status run(struct invocation *call, const struct job_setup *setup, double jitter)
{
    struct progress progress = progress_begin(call, "steps");
    const struct step_spread_request request = {.layout = &setup->layout,
                                                .setting = &setup->setting,
                                                .jitter = jitter,
                                                .n = option_count(call, "replicas"),
                                                .seed = call->seed,
                                                .threads = thread_option(call),
                                                .processes = world_processes(),
                                                .watch = {progress_update, &progress}};
    struct step_spread spread;
    enum status status = step_spread_run(&request, &spread, &call->diags);
    progress_end(&progress);
    if (status == STATUS_OK)
        status = report(call, setup, &spread);
    step_spread_free(&spread);
    return status;
}

enum status step_many(struct invocation *call, const struct job_setup *setup)
{
    const struct gpu *gpu = &setup->experiment.cluster.gpu;
    double jitter = option_given(call, "jitter") ? option_quantity(call, "jitter") : gpu->clock_spread;
    if (jitter > STEP_JITTER_MAX) {
        diag_error(&call->diags, PLACE_NONE,
                   "clock_spread of %s is %.3g %%, but --replicas supports at most %.3g %%; specify --jitter", gpu->name,
                   100 * jitter, 100 * STEP_JITTER_MAX);
        return STATUS_BAD_INPUT;
    }
    if (jitter <= 0 && !option_given(call, "jitter") && !draws_documents(setup))
        diag_note(&call->diags, PLACE_NONE,
                  "%s has no clock_spread, so all steps are equal; specify how much its GPUs differ with --jitter", gpu->name);
    return run(call, setup, jitter);
}
