/*
 * run_levers.h - what `msim run --optimise` may change, one lever each, and how it is searched:
 *
 *   times      Brent's method on the logarithm (GSL), from a bracket that a coarse grid gives
 *   counts     doubling, then halving around the best
 *   kinds      all of them
 *   the suite  leave out one test, or swap two neighbours, as long as that helps
 */
#ifndef MSIM_CLI_RUN_RUN_LEVERS_H
#define MSIM_CLI_RUN_RUN_LEVERS_H

#include "cli/run/run_search.h"

enum run_lever_value {
    VALUE_KIND,    /* of checkpoint, with all that follows from it */
    VALUE_NANOS,   /* nanos */
    VALUE_SECONDS, /* double */
    VALUE_COUNT,   /* int */
    VALUE_SUITE,   /* struct diagnostic_suite */
};

struct run_lever {
    const char *name, *title;
    const char *(*refuse)(const struct run_session *s); /* why it cannot be searched; NULL: it can */
    void (*improve)(struct search *search);             /* leaves the session at its best */
    enum run_lever_value value;
    size_t field; /* where it stands in struct search_state; not of a kind */
};

/* The kind first: the others' best places depend on it. */
enum { N_RUN_LEVERS = 8 };
extern const struct run_lever run_levers[N_RUN_LEVERS];

/* Only this lever of `from`, all else as it is. */
void run_lever_take(const struct run_lever *lever, struct search_state *to, const struct search_state *from);
/* Its place, for people: "30.0 min", "4", "two-stage, 30.0 min", the names of the tests. */
void run_lever_format(const struct run_lever *lever, const struct search_state *state, char *text, size_t size);

/* Seconds that the candidate that was run last ran between interruptions, over all replicas; 0: there were none. */
double search_time_between(const struct search *search);

#endif
