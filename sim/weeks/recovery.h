/*
 * recovery.h - from a failure to the moment training resumes.
 *
 *     failure ──detect── noticed ──diagnose, person── found ──wait for nodes── ready ──restart── resumes
 *     announcement ──save── saved ────────────────────────────wait for nodes── ready ──restart── resumes
 *
 * The job is ready when the fault has been found and no more nodes are down than there are spares; waiting is left out when that
 * is so already. Under the plain rules nothing is diagnosed and nobody is called. A failure during recovery starts it anew,
 * while the search for the earlier fault goes on beside it: the job is ready when both are found. Spares never fail, and a
 * repaired node returns at once.
 */
#ifndef MSIM_SIM_WEEKS_RECOVERY_H
#define MSIM_SIM_WEEKS_RECOVERY_H

#include <stdbool.h>

#include "sim/weeks/ledger.h"

struct recovery_policy {
    nanos detect;  /* from the failure until it is noticed */
    nanos restart; /* from enough healthy nodes until training goes on */
    int spares;    /* nodes beyond those the job uses */
};

#define NEVER INT64_MAX
/* A sum that stays NEVER instead of wrapping; 0 <= duration. */
static inline nanos nanos_after(nanos time, nanos duration)
{
    return time > NEVER - duration ? NEVER : time + duration;
}

/* The stages of one recovery. */
struct recovery_plan {
    nanos detect, diagnose, human, restart;
    nanos save; /* of an announced stop, before all others: a checkpoint */
};

struct recovery {
    struct recovery_policy policy;
    bool active;
    struct recovery_plan plan;
    nanos saved;
    nanos noticed;
    nanos diagnosed;
    nanos found;
    nanos ready;       /* NEVER while too many nodes are down */
    nanos resumes;     /* ready + restart; NEVER likewise */
    nanos short_since; /* while ready is NEVER: since when nothing but nodes was wanting, whatever failed meanwhile */
};

/* The plan of the plain rules. */
struct recovery_plan recovery_plain_plan(const struct recovery_policy *policy);
/* A failure at `now`, after which `n_down` nodes are down. */
void recovery_begin(struct recovery *recovery, nanos now, int n_down, const struct recovery_plan *plan);
/* A node leaves while the job recovers, and nothing else happens: it is waited for, or what had begun to restart does so anew. */
void recovery_node_leaves(struct recovery *recovery, nanos now, int n_down);
/* A node came back at `now` and `n_down` are down still. */
void recovery_node_back(struct recovery *recovery, nanos now, int n_down);
/* Book the time to min(until, resumes); clears `active` when training resumes. */
void recovery_advance(struct recovery *recovery, struct ledger *ledger, nanos until);

#endif
