/* replica_campaign.c - run replicas on several threads and processes, and keep their results in a journal. */
#include "sim/search/replica_campaign.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/hash.h"

/* --- a run */

static uint64_t hash_text(uint64_t hash, char *owned)
{
    hash = hash_bytes(hash, owned, strlen(owned) + 1);
    free(owned);
    return hash;
}

uint64_t run_parts_fingerprint(const struct run_parts *run, const char *version, uint64_t seed, const char *more)
{
    const struct checkpoint_policy *checkpoint = &run->options->checkpoint;
    const nanos numbers[] = {(nanos)seed,
                             run->options->horizon,
                             run->options->goal,
                             run->options->nodes,
                             checkpoint->interval,
                             checkpoint->block,
                             checkpoint->kind,
                             checkpoint->persist,
                             checkpoint->write,
                             checkpoint->storage_every,
                             run->robust->restart,
                             run->robust->restart_hot,
                             run->robust->reload,
                             run->options->recovery.detect,
                             run->options->recovery.restart,
                             run->options->recovery.spares,
                             run->options->degraded != NULL,
                             run->options->notice,
                             run->failover->units,
                             run->failover->size,
                             run->failover->regroup,
                             run->failover->rejoin,
                             run->failover->rejoin_hot,
                             run->failover->step,
                             OUTCOME_WORDS}; /* of a line */
    uint64_t hash = HASH_BEGIN;
    hash = hash_bytes(hash, version, strlen(version) + 1);
    hash = hash_bytes(hash, numbers, sizeof numbers);
    hash = hash_text(hash, experiment_to_json(run->experiment));
    if (run->has_model)
        hash = hash_text(hash, fault_model_to_json(run->model));
    if (run->has_policy)
        hash = hash_text(hash, robust_policy_to_json(run->policy));
    for (size_t i = 0; !run->has_model && i < run->trace->n_items; i++) {
        const struct fault *fault = &run->trace->items[i];
        const nanos row[] = {fault->time, fault->down, fault->node, fault->speed, fault->kind};
        hash = hash_bytes(hash, row, sizeof row);
        if (fault->detail >= 0) { /* its words say what failed, and so how it is found and repaired */
            const char *detail = run->trace->details[fault->detail];
            hash = hash_bytes(hash, detail, strlen(detail) + 1);
        }
    }
    return more ? hash_bytes(hash, more, strlen(more)) : hash;
}

enum status run_parts_check_faults(const struct run_parts *run, struct diags *diags)
{
    double days = (double)run->options->horizon / 86400e9;
    double rate = run->has_model ? fault_model_total_rate(run->model) : 0;
    for (int i = 0; run->has_model && i < run->model->slow.n; i++)
        rate += run->model->slow.items[i].share / fmax(days, 1) + run->model->slow.items[i].rate;
    double expected = rate * run->options->nodes * days;
    if (rate >= 0 && expected <= 1e7)
        return STATUS_OK;
    char text[32];
    if (!(rate >= 0)) {
        diag_error(diags, PLACE_NONE, "%.3g faults per node and day: the rate must not be negative", rate);
        return STATUS_BAD_INPUT;
    }
    diag_error(diags, PLACE_NONE, "about %s faults are too many for a run; use fewer nodes, a shorter horizon or a lower rate",
               quantity_format(expected, DIM_COUNT, text, sizeof text));
    return STATUS_BAD_INPUT;
}

void run_parts_set_repairs(const struct run_parts *run, double mean_s)
{
    if (run->has_model)
        repairs_set_model(run->repairs, mean_s, run->model);
    else
        repairs_set_trace(run->repairs, mean_s, run->trace);
}

/* --- its replicas */

enum status campaign_open(struct campaign *campaign, const struct run_parts *run, const char *path, const char *what,
                          struct diags *diags)
{
    uint64_t command = path ? run_parts_fingerprint(run, campaign->version, campaign->seed, what) : 0;
    campaign->path = path;
    campaign->done = 0;
    return journal_open(path, command, &campaign->journal, diags);
}

void campaign_close(struct campaign *campaign)
{
    journal_close(&campaign->journal);
}

/* What the threads share with this file. */
struct batch {
    struct campaign *campaign;
    uint64_t state;
    int64_t done; /* of this process */
    int failed;   /* errno of the journal */
};

static bool finished(void *context, int64_t replica, const struct replica_outcome *outcome)
{
    struct batch *batch = context;
    struct campaign *campaign = batch->campaign;
    batch->done++;
    watch_tell(&campaign->watch, (double)(campaign->done + batch->done * campaign->processes.size), (double)campaign->total);
    if (campaign->journal.fd < 0 || journal_append(&campaign->journal, batch->state, replica, outcome))
        return true;
    batch->failed = errno;
    return false;
}

enum status campaign_run_own(struct campaign *campaign, const struct run_parts *run, int64_t n, struct replica_outcome *outcomes,
                             struct diags *diags)
{
    struct batch batch = {.campaign = campaign};
    const struct replicas_request request = {
        .options = run->options,
        .model = run->has_model ? run->model : NULL,
        .trace = run->trace,
        .seed = campaign->seed,
        .n = n,
        .first = campaign->processes.rank,
        .stride = campaign->processes.size,
        .threads = campaign->threads,
        .finished = finished,
        .context = &batch,
    };
    if (campaign->journal.fd >= 0) {
        batch.state = run_parts_fingerprint(run, campaign->version, campaign->seed, NULL);
        journal_recall(&campaign->journal, batch.state, outcomes, n);
    }
    enum status status = replicas_run(&request, outcomes, diags);
    campaign->done += n;
    if (status == STATUS_OK && batch.failed) {
        diag_error(diags, (struct place){.file = campaign->path},
                   "cannot be written: %s; the replicas in it are kept, and the same command goes on from there",
                   strerror(batch.failed));
        return STATUS_FAILED;
    }
    return status;
}

/* A process that failed is known to all before they wait for one another. */
enum status outcomes_share(const struct processes *processes, struct replica_outcome *outcomes, int64_t n, int64_t runs,
                           enum status status)
{
    int64_t bad = status != STATUS_OK;
    processes->sum(processes->context, &bad, 1);
    if (bad > 0)
        return status != STATUS_OK ? status : STATUS_FAILED;
    for (int64_t i = 0; i < n * runs; i++)
        if (i % n % processes->size != processes->rank)
            outcomes[i] = (struct replica_outcome){0};
    processes->sum(processes->context, (int64_t *)outcomes, (size_t)(n * runs) * OUTCOME_WORDS);
    return STATUS_OK;
}

enum status campaign_run(struct campaign *campaign, const struct run_parts *run, int64_t n, struct replica_outcome *outcomes,
                         struct diags *diags)
{
    enum status status = campaign_run_own(campaign, run, n, outcomes, diags);
    return outcomes_share(&campaign->processes, outcomes, n, 1, status);
}
