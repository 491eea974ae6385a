#include "cli/run/run_many.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/shared_options.h"
#include "cli/world/world.h"
#include "model/base/memory.h"

/* What the workers share with this file. */
struct batch {
    struct campaign *campaign;
    uint64_t state;
    int64_t n, done; /* of this rank */
    int failed;      /* errno of the journal */
};

enum status campaign_open(struct invocation *call, const struct run_session *s, const char *what, int64_t total,
                          struct campaign *campaign)
{
    *campaign = (struct campaign){.progress = progress_begin(call, "replicas"), .total = total};
    return journal_open(call, s, what, &campaign->journal);
}

void campaign_close(struct campaign *campaign)
{
    progress_end(&campaign->progress);
    journal_close(&campaign->journal);
}

static bool finished(void *context, int64_t replica, const struct replica_outcome *outcome)
{
    struct batch *batch = context;
    struct campaign *campaign = batch->campaign;
    batch->done++;
    progress_update(&campaign->progress, (double)(campaign->done + batch->done * world_size()), (double)campaign->total);
    if (campaign->journal.fd < 0 || journal_append(&campaign->journal, batch->state, replica, outcome))
        return true;
    batch->failed = errno;
    return false;
}

int64_t run_replica_count(const struct invocation *call, int64_t otherwise)
{
    return option_given(call, "replicas") ? option_count(call, "replicas") : otherwise;
}

/* Every rank keeps what is its own, and then has all. A rank that failed is known to all before they wait for one another. */
enum status run_share(struct replica_outcome *outcomes, int64_t n, int64_t batches, enum status status)
{
    const struct processes all = world_processes();
    int64_t bad = status != STATUS_OK;
    all.sum(all.context, &bad, 1);
    if (bad > 0)
        return status != STATUS_OK ? status : STATUS_FAILED;
    for (int64_t i = 0; i < n * batches; i++)
        if (i % n % all.size != all.rank)
            outcomes[i] = (struct replica_outcome){0};
    all.sum(all.context, (int64_t *)outcomes, (size_t)(n * batches) * OUTCOME_WORDS);
    return STATUS_OK;
}

static enum status work(struct invocation *call, const struct run_session *s, struct batch *batch,
                        struct replica_outcome *outcomes)
{
    struct replicas_request request = {
        .options = &s->options,
        .model = s->has_model ? &s->model : NULL,
        .trace = &s->trace,
        .seed = call->seed,
        .n = batch->n,
        .first = world_rank(),
        .stride = world_size(),
        .threads = thread_option(call),
        .finished = finished,
        .context = batch,
    };
    enum status status = replicas_run(&request, outcomes, &call->diags);
    if (status == STATUS_OK && batch->failed) {
        diag_error(&call->diags, (struct place){.file = option_text(call, "resume")},
                   "cannot be written: %s; what it holds is kept, and --resume goes on from there", strerror(batch->failed));
        return STATUS_FAILED;
    }
    return status;
}

enum status run_own_share(struct invocation *call, const struct run_session *s, int64_t n, struct campaign *campaign,
                          struct replica_outcome *outcomes)
{
    struct batch batch = {.campaign = campaign, .n = n};
    if (campaign->journal.fd >= 0) {
        batch.state = journal_fingerprint(call, s, NULL);
        journal_recall(&campaign->journal, batch.state, outcomes, n);
    }
    enum status status = work(call, s, &batch, outcomes);
    campaign->done += n;
    return status;
}

enum status run_batch(struct invocation *call, const struct run_session *s, int64_t n, struct campaign *campaign,
                      struct replica_outcome *outcomes)
{
    enum status status = run_own_share(call, s, n, campaign, outcomes);
    return run_share(outcomes, n, 1, status);
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
        diag_error(
            &call->diags, PLACE_NONE,
            "--replicas: a trace replayed by fixed rules is the same every time; draw faults with --fault-model, or recover "
            "with --policy");
        return STATUS_USAGE;
    }
    struct replica_outcome *outcomes = memory_new((size_t)n, sizeof *outcomes);
    struct campaign campaign;
    enum status status = campaign_open(call, s, NULL, n, &campaign);
    status = status == STATUS_OK ? run_batch(call, s, n, &campaign, outcomes) : run_share(outcomes, n, 1, status);
    if (status == STATUS_OK)
        status = run_replicas_report(call, s, outcomes, n);
    campaign_close(&campaign);
    free(outcomes);
    return status;
}
