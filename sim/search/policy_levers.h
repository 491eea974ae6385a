/*
 * policy_levers.h - what a search for the best policy may change, one lever each, and how each is searched.
 *
 * Example: the lever "spares" is a count. It is doubled from 0 until more spares make a token clearly dearer, then steps are
 * halved around the best count: 0, 1, 2, 4, 8, 16, then 6, 10, 7, 9.
 *
 *   times      Brent's method on the logarithm (GSL), from a bracket that a coarse grid gives
 *   counts     doubling, then halving around the best
 *   kinds      all of them
 *   the suite  leave out one test, or swap two neighbours, as long as that helps
 */
#ifndef MSIM_SIM_SEARCH_POLICY_LEVERS_H
#define MSIM_SIM_SEARCH_POLICY_LEVERS_H

#include "sim/search/policy_search.h"

enum policy_lever_value {
    VALUE_KIND,    /* of checkpoint, with all that follows from it */
    VALUE_NANOS,   /* nanos */
    VALUE_SECONDS, /* double */
    VALUE_COUNT,   /* int */
    VALUE_SUITE,   /* struct diagnostic_suite */
};

/* Why a lever cannot be searched in a run. */
enum lever_refusal {
    LEVER_FREE,                     /* it can */
    LEVER_CHECKPOINTS_COST_NOTHING, /* the shortest interval is best */
    LEVER_COST_UNKNOWN,             /* what checkpoints cost does not follow from a layout */
    LEVER_WITHOUT_POLICY,           /* it is part of a recovery policy */
    LEVER_WITHOUT_PAUSES,           /* the policy has no pause_rate: nothing opposes the shortest timeout */
    LEVER_WITHOUT_TRAFFIC,          /* the policy does not watch traffic */
    LEVER_WITHOUT_STALLS,           /* the policy has no stall_rate: nothing opposes the shortest window */
};

struct policy_lever {
    const char *name, *title;
    enum lever_refusal (*refuse)(const struct run_parts *run);
    void (*improve)(struct policy_search *search); /* leaves the run at its best */
    enum policy_lever_value value;
    size_t field; /* its offset in struct policy_state; not of a kind */
};

/* The kind first: the best values of the others depend on it. */
enum { N_POLICY_LEVERS = 8 };
extern const struct policy_lever policy_levers[N_POLICY_LEVERS];

/* Copies only this lever of `from`. */
void policy_lever_take(const struct policy_lever *lever, struct policy_state *to, const struct policy_state *from);
/* Its value, for people: "30.0 min", "4", "two-stage, 30.0 min", the names of the tests. */
void policy_lever_format(const struct policy_lever *lever, const struct policy_state *state, char *text, size_t size);

#endif
