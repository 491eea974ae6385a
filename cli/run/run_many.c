#include "cli/run/run_many.h"

#include <stdlib.h>

#include "cli/options/shared_options.h"
#include "cli/world/world.h"
#include "model/base/memory.h"

struct campaign run_campaign(const struct invocation *call, int64_t total, struct progress *progress)
{
    *progress = progress_begin(call, "replicas");
    return (struct campaign){.version = MSIM_VERSION,
                             .seed = call->seed,
                             .threads = thread_option(call),
                             .processes = world_processes(),
                             .watch = {progress_update, progress},
                             .total = total};
}

int64_t run_replica_count(const struct invocation *call, int64_t otherwise)
{
    return option_given(call, "replicas") ? option_count(call, "replicas") : otherwise;
}

/* --- estimates --- */

struct estimate run_estimate(const struct run_session *s, const struct replica_outcome *outcomes, int64_t n, outcome_function *f)
{
    double *x = memory_new((size_t)n, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = f(s, &outcomes[i]);
    struct estimate estimate = estimate_of(x, (size_t)n);
    free(x);
    return estimate;
}

double outcome_goodput_pct(const struct run_session *s, const struct replica_outcome *outcome)
{
    (void)s;
    return 100 * outcome_goodput(outcome);
}

double outcome_ettr_pct(const struct run_session *s, const struct replica_outcome *outcome)
{
    (void)s;
    return 100 * outcome_ettr(outcome);
}

double run_end_s(const struct run_session *s, const struct replica_outcome *outcome)
{
    (void)s;
    return outcome_end_s(outcome);
}

double run_token_cost(const struct run_session *s, double goodput_pct)
{
    const struct experiment *e = &s->experiment;
    double gpus = run_paid_gpus(e, &s->options);
    double tokens_per_s = goodput_pct / 100 / s->report.step_time_s * (double)e->job.global_batch * (double)e->job.seq_len;
    return tokens_per_s > 0 ? s->report.gpu_price * gpus / 3600 / tokens_per_s * 1e6 : 0;
}

enum status run_replicas(struct invocation *call, struct run_session *s)
{
    int64_t n = run_replica_count(call, 0);
    if (!s->has_model && !s->has_policy) {
        diag_error(&call->diags, PLACE_NONE,
                   "--replicas: a replayed trace with fixed times gives the same result every time; draw faults with "
                   "--fault-model, or add --policy");
        return STATUS_USAGE;
    }
    struct replica_outcome *outcomes = memory_new((size_t)n, sizeof *outcomes);
    struct progress progress;
    const struct run_parts run = run_parts_of(s);
    struct campaign campaign = run_campaign(call, n, &progress);
    enum status status = campaign_open(&campaign, &run, option_text(call, "resume"), NULL, &call->diags);
    status = status == STATUS_OK ? campaign_run(&campaign, &run, n, outcomes, &call->diags)
                                 : outcomes_share(&campaign.processes, outcomes, n, 1, status);
    progress_end(&progress);
    if (status == STATUS_OK)
        status = run_replicas_report(call, s, outcomes, n);
    campaign_close(&campaign);
    free(outcomes);
    return status;
}
