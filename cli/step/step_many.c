#include "cli/step/step_many.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cli/options/shared_options.h"
#include "cli/output/layout_json.h"
#include "cli/output/notes.h"
#include "cli/output/progress.h"
#include "cli/run/run_many.h"
#include "cli/step/step_report.h"
#include "cli/world/world.h"
#include "model/cost/memory/footprint.h"
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

/* The mean step, for what is said of it as of a single one. */
static struct step_report report_of_mean(const struct job_setup *setup, const struct step_spread *spread)
{
    return (struct step_report){.setup = setup,
                                .result = &spread->mean,
                                .capacity_bytes = footprint_capacity(&setup->experiment.cluster),
                                .gpu_price = setup->gpu_price};
}

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

static void write_text(const struct invocation *call, const struct job_setup *setup, const struct step_spread *spread)
{
    struct table table = {0};
    const struct experiment *e = &setup->experiment;
    const struct step_report mean_step = report_of_mean(setup, spread);
    char n[32], mean[96];
    step_report_header(setup, call->out);
    fprintf(call->out,
            "%s steps, each on GPUs that draw their own speed: arithmetic takes 1 +- %.3g %% (standard deviation%s%s)%s\n\n",
            grouped(spread->n, n, sizeof n), 100 * spread->jitter, option_given(call, "jitter") ? "" : ", clock_spread of ",
            option_given(call, "jitter") ? "" : e->cluster.gpu.name,
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
    step_report_write_budget(&mean_step, call->out);
    step_report_write_misfit(&mean_step, call);
}

static void write_csv(const struct invocation *call, const struct job_setup *setup, const struct step_spread *spread)
{
    const struct step_report mean_step = report_of_mean(setup, spread);
    struct table table = {0};
    table_column(&table, "replica", NULL, ALIGN_RIGHT);
    table_column(&table, "seed", NULL, ALIGN_RIGHT);
    table_column(&table, "step_time", "s", ALIGN_RIGHT);
    table_column(&table, "slowest_rank", NULL, ALIGN_RIGHT);
    table_column(&table, "slowest_pace", NULL, ALIGN_RIGHT);
    table_column(&table, "fits", NULL, ALIGN_RIGHT);
    for (int64_t i = 0; i < spread->n; i++) {
        const struct step_outcome *outcome = &spread->outcomes[i];
        table_cell(&table, "%" PRId64, i);
        table_cell(&table, "%" PRIu64, call->seed + (uint64_t)i);
        table_cell(&table, "%.9f", nanos_to_seconds(outcome->step));
        table_cell(&table, "%" PRId64, outcome->slowest);
        table_cell(&table, "%.9f", 1e-9 * (double)outcome->pace);
        table_cell(&table, "%d", step_report_runs(&mean_step));
    }
    table_write_csv(&table, call->out);
    table_free(&table);
}

static json_t *outcomes_json(const struct invocation *call, const struct step_spread *spread)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < spread->n; i++) {
        const struct step_outcome *outcome = &spread->outcomes[i];
        json_array_append_new(list, json_pack("{s:I, s:f, s:I, s:f}", "seed", (json_int_t)(call->seed + (uint64_t)i),
                                              "step_time_s", nanos_to_seconds(outcome->step), "slowest_rank",
                                              (json_int_t)outcome->slowest, "slowest_pace", 1e-9 * (double)outcome->pace));
    }
    return list;
}

static enum status write_json(struct invocation *call, const struct job_setup *setup, const struct step_spread *spread)
{
    const struct step_report mean_step = report_of_mean(setup, spread);
    char *config = experiment_to_json(&setup->experiment);
    json_t *result = result_create(call, config), *time = estimate_json(spread->time);
    free(config);
    for (int i = 0; i < N_SPREAD_SHARES; i++)
        json_object_set_new(time, share_names[i], json_real(spread->at[i]));
    json_object_set_new(result, "layout", layout_json(&setup->layout));
    json_object_set_new(result, "features", features_json(setup->layout.features));
    if (job_masks_documents(&setup->experiment.job))
        json_object_set_new(result, "documents", packed_json(&setup->setting, setup->layout.features));
    json_object_set_new(result, "layout_chosen", json_boolean(setup->chosen));
    json_object_set_new(result, "replicas", json_integer((json_int_t)spread->n));
    json_object_set_new(result, "jitter_pct", json_real(100 * spread->jitter));
    json_object_set_new(result, "step_time_s", json_real(spread->time.mean));
    json_object_set_new(result, "mfu_pct", json_real(100 * spread->mean.mfu));
    if (job_masks_documents(&setup->experiment.job))
        json_object_set_new(result, "mfu_documents_pct", json_real(100 * spread->mean.mfu_masked));
    step_report_put_size(&mean_step, result);
    json_object_set_new(result, "equal_gpus_s", json_real(spread->alike_s));
    json_object_set_new(result, "expected_s", json_real(spread->expected_s));
    json_object_set_new(result, "jitter_cost_pct", json_real(cost_pct(spread, spread->time.mean)));
    json_object_set_new(result, "jitter_cost_max_pct", json_real(cost_pct(spread, spread->at[SPREAD_MAX])));
    json_object_set_new(result, "estimates", json_pack("{s:o}", "step_time_s", time));
    json_object_set_new(result, "outcomes", outcomes_json(call, spread));
    return result_write(call, result);
}

static enum status report(struct invocation *call, const struct job_setup *setup, const struct step_spread *spread)
{
    if (call->format == FORMAT_JSON)
        return write_json(call, setup, spread);
    if (call->format == FORMAT_CSV)
        write_csv(call, setup, spread);
    else
        write_text(call, setup, spread);
    return STATUS_OK;
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
