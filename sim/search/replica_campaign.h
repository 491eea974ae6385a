/*
 * replica_campaign.h - runs whose replicas are divided among threads and processes, and kept in a journal.
 *
 * Example: 1,000 replicas of one run, on 8 threads of each process:
 *
 *     struct campaign campaign = {.seed = 1, .threads = 8, .processes = one_process, .total = 1000, .version = "1.0"};
 *     if (campaign_open(&campaign, &run, path, NULL, &diags) == STATUS_OK)
 *         status = campaign_run(&campaign, &run, 1000, outcomes, &diags);
 *     campaign_close(&campaign);
 *
 * Replica r is the same in every campaign with the same seed (sim/weeks/run_replicas.h), so searches and sweeps run many
 * different runs on the same faults. All processes make the same calls in the same order; each gets all outcomes.
 */
#ifndef MSIM_SIM_SEARCH_REPLICA_CAMPAIGN_H
#define MSIM_SIM_SEARCH_REPLICA_CAMPAIGN_H

#include "model/base/watch.h"
#include "model/spec/experiment.h"
#include "sim/base/processes.h"
#include "sim/faults/fault_model.h"
#include "sim/faults/repairs.h"
#include "sim/search/journal.h"
#include "sim/weeks/robust_policy.h"
#include "sim/weeks/startup.h"

/* Everything a run consists of. The parts belong to the caller and point to each other (options->robust may be robust); a search
 * or a sweep changes them in place. */
struct run_parts {
    struct experiment *experiment;
    struct run_options *options;
    struct run_robust *robust;
    struct run_failover *failover;
    struct robust_policy *policy;
    struct fault_model *model;
    struct fault_trace *trace;
    const struct repairs *repairs; /* of the model or the trace, as read */
    struct startup *startup;
    bool has_model;  /* faults are drawn from the model; otherwise the trace is replayed */
    bool has_policy; /* recovery follows the policy */
    bool has_cost;   /* the cost of checkpoints follows from the layout */
};

/* A fingerprint of a run as it is now. `more` names a sweep or search; may be NULL. */
uint64_t run_parts_fingerprint(const struct run_parts *run, const char *version, uint64_t seed, const char *more);
/* STATUS_BAD_INPUT when the model would draw more faults than a run can hold. */
MUST_CHECK enum status run_parts_check_faults(const struct run_parts *run, struct diags *diags);
/* Scales all repairs so that failed nodes come back after `mean_s` on average. */
void run_parts_set_repairs(const struct run_parts *run, double mean_s);

struct campaign {
    const char *version; /* of the program: a journal of another version is foreign */
    uint64_t seed;
    int threads; /* of each process, at least 1 */
    struct processes processes;
    struct watch watch; /* replicas done, of all processes */
    int64_t total;      /* replicas of all processes; 0: not known ahead */

    struct journal journal; /* the rest is the campaign's own */
    const char *path;
    int64_t done;
};

/* Opens the journal at `path` (NULL: none) for the command that consists of this run and `what` (a sweep or search; NULL: its
 * replicas alone). campaign_close always. */
MUST_CHECK enum status campaign_open(struct campaign *campaign, const struct run_parts *run, const char *path, const char *what,
                                     struct diags *diags);
void campaign_close(struct campaign *campaign);

/* n replicas of a run as it is now. The outcomes [n], zeroed before, are whole on every process. */
MUST_CHECK enum status campaign_run(struct campaign *campaign, const struct run_parts *run, int64_t n,
                                    struct replica_outcome *outcomes, struct diags *diags);
/* Its two halves: this process's share of n replicas; then every process gets all. A process waits for others in the second half
 * only, so several runs may be shared at once: n outcomes of each of `runs`. `status` is that of the first half; when one process
 * failed, all return a failure. */
MUST_CHECK enum status campaign_run_own(struct campaign *campaign, const struct run_parts *run, int64_t n,
                                        struct replica_outcome *outcomes, struct diags *diags);
MUST_CHECK enum status outcomes_share(const struct processes *processes, struct replica_outcome *outcomes, int64_t n,
                                      int64_t runs, enum status status);

#endif
