/*
 * policy_optimum.h - the policy that makes a trained token cheapest.
 *
 * Example: the best checkpoint interval and number of spares of a run, and what each of the two is worth alone:
 *
 *     struct policy_optimum optimum = {0};
 *     optimum.used[1] = optimum.used[2] = true, optimum.n_used = 2;          spares, checkpoint-interval
 *     policy_optimise(&search, &optimum);
 *     optimum.best, optimum.price_end / optimum.price_start, optimum.alone[i].gain
 *
 * One lever after the other is searched (policy_levers.h), in two rounds where there are several. The best of many candidates
 * with the same faults is always a little better than the start, if only by the luck of these faults. So each lever is put back
 * alone, and stays where it was when the replicas do not distinguish its gain from none. Afterwards every lever is set to its
 * best value alone, which shows the change that helps most.
 *
 * For comparison: Young's optimum sqrt(2 w M), Daly's refinement, and the time until a checkpoint is safe, below which no
 * interval is any good.
 */
#ifndef MSIM_SIM_SEARCH_POLICY_OPTIMUM_H
#define MSIM_SIM_SEARCH_POLICY_OPTIMUM_H

#include "sim/search/policy_levers.h"
#include "sim/weeks/run_closed_form.h"

struct policy_optimum {
    bool used[N_POLICY_LEVERS];
    int n_used;
    bool undone[N_POLICY_LEVERS];          /* the replicas do not distinguish its gain from none */
    struct estimate kept[N_POLICY_LEVERS]; /* percent by which a token is dearer with this change alone undone */
    struct policy_state found;             /* the cheapest, before anything was undone */
    double between_s;                      /* interruptions, at the best */
    struct best_interval interval;
    struct policy_state before, best;
    struct estimate start, end, gain; /* of goodput */
    struct estimate done_start, done; /* of the time when the budget of tokens is trained; nothing without one */
    double price_start, price_end;
    struct {
        struct estimate gain; /* of goodput, alone */
        bool separated;       /* a token is cheaper by more than half of the interval */
        bool harms;           /* it is dearer by more than that */
        double price;
    } alone[N_POLICY_LEVERS];
};

/* Searches the levers that are used. Leaves the run at the best; search->status says whether it counts. */
void policy_optimise(struct policy_search *search, struct policy_optimum *optimum);
/* Whether n replicas distinguish a gain from none: its mean is larger than half of its 95 % interval. */
bool gain_is_clear(struct estimate gain, int64_t n);

#endif
