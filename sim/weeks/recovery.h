/*
 * recovery.h - the stages from a failure to the moment training resumes.
 *
 *     failure ──detect── noticed ──diagnose, person── found ──wait for nodes── ready ──restart── resumes
 *     announcement ──save── saved ────────────────────────────wait for nodes── ready ──restart── resumes
 *
 * Example: detect 1 min, restart 9 min, no spare. A node fails at 10:00 and is repaired at 15:00. The failure is noticed at
 * 10:01, the job waits for the node until 15:00, and training resumes at 15:09. With a spare it resumes at 10:10.
 *
 * The job is ready when the fault is found and at most as many nodes are down as there are spares. Under the plain rules nothing
 * is diagnosed and nobody is called. A failure during a recovery starts it anew, while the search for the earlier fault
 * continues: the job is ready when both are found. Spares never fail, and a repaired node returns at once.
 */
#ifndef MSIM_SIM_WEEKS_RECOVERY_H
#define MSIM_SIM_WEEKS_RECOVERY_H

#include <stdbool.h>

#include "sim/weeks/ledger.h"

struct recovery_policy {
    nanos detect;  /* from the failure until it is noticed */
    nanos restart; /* from enough healthy nodes until training resumes */
    int spares;    /* nodes in addition to those the job uses */
};

#define NEVER INT64_MAX
/* time + duration, or NEVER if that overflows; duration >= 0. */
static inline nanos nanos_after(nanos time, nanos duration)
{
    return time > NEVER - duration ? NEVER : time + duration;
}

/* How long the stages of one recovery last. */
struct recovery_plan {
    nanos detect, diagnose, human, restart;
    nanos save; /* first, for an announced stop: the checkpoint */
};

struct recovery {
    struct recovery_policy policy;
    bool active;
    struct recovery_plan plan;
    nanos saved;
    nanos noticed;
    nanos diagnosed;
    nanos found;
    nanos ready;       /* NEVER while more nodes are down than there are spares */
    nanos resumes;     /* ready + restart, or NEVER */
    nanos short_since; /* while ready is NEVER: since when the job has waited for nodes only */
};

/* The plan of the plain rules. */
struct recovery_plan recovery_plain_plan(const struct recovery_policy *policy);
/* A failure at `now`; `n_down` nodes are down after it. */
void recovery_begin(struct recovery *recovery, nanos now, int n_down, const struct recovery_plan *plan);
/* A node leaves during a recovery, as planned. The job waits for it, or the restart under way begins anew. */
void recovery_node_leaves(struct recovery *recovery, nanos now, int n_down);
/* A node came back at `now`; `n_down` are still down. */
void recovery_node_back(struct recovery *recovery, nanos now, int n_down);
/* Books the time up to min(until, resumes). Clears `active` when training resumes. */
void recovery_advance(struct recovery *recovery, struct ledger *ledger, nanos until);

#endif
