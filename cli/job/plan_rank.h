/*
 * plan_rank.h - the plans of a search, ranked again by the event simulation.
 *
 * The closed form is right to a few per cent, which is more than the best layouts differ by; the simulation runs each one's
 * program. Plans that were simulated come first, in order of simulated time; the rest follow in the order of the search.
 */
#ifndef MSIM_CLI_JOB_PLAN_RANK_H
#define MSIM_CLI_JOB_PLAN_RANK_H

#include "model/plan/search.h"
#include "sim/step/step.h"

struct ranked_plan {
    struct plan plan;
    bool simulated;
    struct step_result step; /* when simulated */
};

/* Of a search's best so many are simulated unless a user says otherwise. */
#define PLANS_SIMULATED 20

struct ranking_options {
    int n_simulate;                                             /* the first so many plans are simulated */
    bool alone;                                                 /* by this process, whatever ranks it has beside it */
    int threads;                                                /* at least 1; on each rank */
    void (*progress)(void *context, double done, double total); /* from the calling thread; may be NULL */
    void *progress_context;
};

/* Simulate plans, shared over the ranks of the world, and put all in order: the same on every rank. A plan that cannot be
 * simulated keeps its closed-form time; `diags` gets a warning. The caller frees *ranked. */
void plans_rank(const struct plan *plans, int n_plans, const struct setting *setting, const struct ranking_options *options,
                struct ranked_plan **ranked, struct diags *diags);
/* What `msim plan` puts first for this setting: what `layout: auto` means. Of the whole space under the
 * restrictions (space_restrict; may be ""), every process by itself.
 * STATUS_BAD_INPUT with the reasons and what would help when nothing fits. */
MUST_CHECK enum status plan_choose(const struct setting *setting, const char *restrictions, struct ranked_plan *chosen,
                                   struct diags *diags);
/* One plan, simulated if that works and takes no longer than a second or so (step_is_long). */
void plan_simulate(const struct plan *plan, const struct setting *setting, struct ranked_plan *ranked, struct diags *diags);

double ranked_step_s(const struct ranked_plan *plan);
double ranked_mfu(const struct ranked_plan *plan, const struct setting *setting); /* fraction, full convention */
/* Where the seconds go: simulated, or by the closed form. */
const struct cost_by_class *ranked_breakdown(const struct ranked_plan *plan);
/* Seconds of exposed communication, all kinds. */
double ranked_exposed_s(const struct ranked_plan *plan);

#endif
