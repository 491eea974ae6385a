/*
 * run_search.h - what a change of a run is worth: many candidates, all meeting the same luck.
 *
 * The objective is what a trained token costs: (nodes + spares) over the mean work that counts. Replica r draws the same faults
 * under every candidate (common random numbers), so a difference between two candidates is estimated from the differences of
 * their replicas, with far less noise than either answer has.
 */
#ifndef MSIM_CLI_RUN_RUN_SEARCH_H
#define MSIM_CLI_RUN_RUN_SEARCH_H

#include "cli/run/run_many.h"

struct search {
    struct invocation *call;
    struct run_session *s; /* the candidate */
    int64_t n;             /* replicas; 1 where there is no luck */
    struct replica_outcome *outcomes;
    double *base; /* [n] goodput of the start, percent */
    struct campaign campaign;
    int evaluations;
    enum status status; /* the first failure: nothing that follows counts */
};

/* `what` names the search in the journal. search_close always. */
MUST_CHECK enum status search_open(struct search *search, struct invocation *call, struct run_session *s, const char *what);
void search_close(struct search *search);

/* Runs the candidate: the outcomes are its own. Nodes paid for, per node's worth of work that counts. */
double search_price(struct search *search);
struct estimate search_goodput(const struct search *search);
/* When its budget of tokens is trained. */
struct estimate search_end_s(const struct search *search);
/* The candidate becomes what others are compared with. */
void search_set_base(struct search *search);
/* Percentage points of goodput above the base, replica by replica. */
struct estimate search_gain(const struct search *search);

/* Everything of a session that a search changes. */
struct search_state {
    struct checkpoint_policy checkpoint;
    struct recovery_policy recovery;
    struct robust_policy policy;
    struct fault_model model;
    struct startup startup;
    nanos restart, restart_hot, reload;
    char kind[32];
    double restart_s;
};
void search_state_take(const struct run_session *s, struct search_state *state);
void search_state_apply(const struct search_state *state, struct run_session *s);

#endif
