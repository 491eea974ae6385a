/*
 * policy_search.h - what a change of a run is worth: many candidates, all with the same faults.
 *
 * Example: is a token cheaper with eight spare nodes?
 *
 *     struct policy_search search = {.run = &run, .n = 64, .campaign = &campaign, .diags = &diags};
 *     policy_search_open(&search);
 *     double before = policy_price(&search);
 *     policy_set_base(&search);
 *     run.options->recovery.spares = 8;
 *     double after = policy_price(&search);                      the price of a token, relative
 *     struct estimate gain = policy_gain(&search);               points of goodput, with a confidence interval
 *
 * The price is what a trained token costs: (nodes + spares) over the mean work that counts. Replica r draws the same faults under
 * every candidate (common random numbers), so a difference between two candidates is estimated from the differences of their
 * replicas, with far less noise than either answer has.
 */
#ifndef MSIM_SIM_SEARCH_POLICY_SEARCH_H
#define MSIM_SIM_SEARCH_POLICY_SEARCH_H

#include "sim/search/replica_campaign.h"

struct policy_search {
    const struct run_parts *run; /* the candidate, changed in place */
    int64_t n;                   /* replicas; 1 where nothing is drawn at random */
    struct campaign *campaign;
    struct diags *diags;
    /* Gives the run another kind of checkpoint, with all that follows from it. May be NULL where has_cost is false. */
    enum status (*set_kind)(void *context, const char *kind);
    void *context;

    struct replica_outcome *outcomes; /* [n] of the candidate that ran last; from here on the search's own */
    double *base;                     /* [n] goodput of the base, percent */
    int evaluations;
    enum status status; /* the first failure; after it nothing counts */
};

void policy_search_open(struct policy_search *search);
void policy_search_close(struct policy_search *search);

/* Runs the candidate. Nodes paid for, per node's worth of work that counts. */
double policy_price(struct policy_search *search);
/* Goodput in percent, and when the budget of tokens is trained. */
struct estimate policy_goodput(const struct policy_search *search);
struct estimate policy_end_s(const struct policy_search *search);
/* The candidate becomes what others are compared with. */
void policy_set_base(struct policy_search *search);
/* Percentage points of goodput above the base, replica by replica. */
struct estimate policy_gain(const struct policy_search *search);
/* Mean seconds between interruptions, over all replicas; 0: there were none. */
double policy_time_between(const struct policy_search *search);

/* Everything of a run that a search changes. */
struct policy_state {
    struct checkpoint_policy checkpoint;
    struct recovery_policy recovery;
    struct robust_policy policy;
    struct fault_model model;
    struct startup startup;
    nanos restart, restart_hot, reload;
    char kind[32];
    double restart_s;
};
void policy_state_take(const struct run_parts *run, struct policy_state *state);
void policy_state_apply(const struct policy_state *state, const struct run_parts *run);

#endif
