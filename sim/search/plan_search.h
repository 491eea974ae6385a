/*
 * plan_search.h - finds the best layouts of a space: a search in closed form, then a ranking by simulation.
 *
 * Example: the five best layouts of a job, the twenty best by the closed form simulated, on four threads of this process:
 *
 *     struct plan_search_options options = {.keep = 20, .n_simulate = 20, .threads = 4, .processes = one_process};
 *     space_create(&setting, &limits, &space, &diags);
 *     plans_search(space, &options, &found, &diags);
 *     for (int i = 0; i < 5 && i < found.search.n_plans; i++)
 *         print(&found.plans[i].plan.layout, ranked_step_s(&found.plans[i]));
 *     plans_found_free(&found);
 *
 * Each process searches its share of the families of layouts (model/plan/search.h), then simulates its share of the best plans
 * (plan_ranking.h). Every process gets everything, the same to the last bit as one process alone.
 */
#ifndef MSIM_SIM_SEARCH_PLAN_SEARCH_H
#define MSIM_SIM_SEARCH_PLAN_SEARCH_H

#include "sim/search/plan_ranking.h"

struct plan_search_options {
    int keep;       /* plans wanted, at least 1 */
    bool fuller;    /* also look for faster plans that are nearly full */
    bool variants;  /* several plans of one family may be kept */
    int n_simulate; /* the first plans that are simulated and ranked again */
    int threads;    /* of each process, at least 1 */
    struct processes processes;
    struct watch searched, simulated; /* the progress of both parts */
};

/* A risky plan fills so much memory that a larger share than SHARE_WITH_MARGIN of such runs ran out of it. */
enum { FULLER_PLANS_MAX = 5 };

struct plans_found {
    struct search_result search;
    struct ranked_plan *plans;                   /* search.n_plans, best first; NULL: none fits */
    struct ranked_plan fuller[FULLER_PLANS_MAX]; /* risky plans that are faster than the first plan, fastest first */
    int n_fuller;
    double search_s; /* wall time of the search alone */
};

/* Where the job has a memory margin, the first plan is not risky if any plan is not: where the fastest one is, the plans are
 * those of a second search that leaves more room (memory_record_margin). Among the first plans, whose steps differ by less than
 * half a percent, the one with the least memory comes first, then the one with the fewest chunks. With a margin of 0 the plans
 * are in order of time.
 *
 * `diags` gets the warnings of plans_rank. Free with plans_found_free. */
void plans_search(const struct space *space, const struct plan_search_options *options, struct plans_found *found,
                  struct diags *diags);
/* The same search where that share of memory stays free, whatever the job says, and without a second search. What a layout
 * recomputes depends on the share. */
void plans_search_with_margin(const struct space *space, double margin, const struct plan_search_options *options,
                              struct plans_found *found, struct diags *diags);
void plans_found_free(struct plans_found *found);

/* The same for a setting under restrictions (space_restrict; NULL or "": none). STATUS_CHECK, with what would help, when no
 * layout fits; STATUS_BAD_INPUT when none is legal. */
MUST_CHECK enum status plans_choose(const struct setting *setting, const char *restrictions,
                                    const struct plan_search_options *options, struct plans_found *found, struct diags *diags);
/* The first plan alone, by this process. Some tenths of a second for 12,288 GPUs. */
MUST_CHECK enum status plan_choose(const struct setting *setting, const char *restrictions, int threads,
                                   struct ranked_plan *chosen, struct diags *diags);

/* The search alone: as search_run, on all processes together. Sets options->share and n_shares itself. */
void search_run_shared(const struct space *space, const struct search_options *options, const struct processes *processes,
                       struct search_result *result);

#endif
