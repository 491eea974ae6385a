/*
 * plan_ranking.h - ranks the best layouts of a search again by event simulation.
 *
 * Example: the twenty best plans of a search, simulated by four threads of this process:
 *
 *     const struct ranking_options options = {.n_simulate = 20, .threads = 4, .processes = one_process};
 *     plans_rank(found.plans, found.n_plans, &setting, &options, &ranked, &diags);
 *     print(&ranked[0].plan.layout, ranked_step_s(&ranked[0]), ranked_mfu(&ranked[0], &setting));
 *
 * The closed form (model/plan/search.h) is right to a few per cent, and the best layouts often differ by less than that. The
 * simulation executes each layout's program in virtual time (sim/step/step.h), which costs about a millisecond for a layout. So
 * the search looks at millions of layouts in closed form, and the best few dozen are simulated and put in order again.
 *
 * Order. Plans that were simulated come first, in the order of simulated time, to the nanosecond; equal times, and plans that
 * were not simulated, are in the order of the search, which is total. The order does not depend on threads or processes.
 */
#ifndef MSIM_SIM_SEARCH_PLAN_RANKING_H
#define MSIM_SIM_SEARCH_PLAN_RANKING_H

#include "model/base/watch.h"
#include "model/plan/search.h"
#include "sim/base/processes.h"
#include "sim/step/step.h"

struct ranked_plan {
    struct plan plan;
    bool simulated;
    struct step_result step; /* when simulated */
};

/* How many of a search's best plans are simulated by default. */
#define PLANS_SIMULATED 20

struct ranking_options {
    int n_simulate; /* the first plans that are simulated */
    int threads;    /* of each process, at least 1 */
    struct processes processes;
    struct watch watch;
};

/* Simulates plans and puts all in order, the same on every process. A plan that cannot be simulated keeps its closed-form time;
 * `diags` gets a warning. The caller frees *ranked [n_plans]. */
void plans_rank(const struct plan *plans, int n_plans, const struct setting *setting, const struct ranking_options *options,
                struct ranked_plan **ranked, struct diags *diags);
/* One plan, simulated if that works and takes no longer than a second or so (step_is_long). */
void plan_simulate(const struct plan *plan, const struct setting *setting, struct ranked_plan *ranked, struct diags *diags);

/* --- what a plan takes: simulated, or by the closed form */

double ranked_step_s(const struct ranked_plan *plan);
double ranked_mfu(const struct ranked_plan *plan, const struct setting *setting); /* fraction, full convention */
/* Where the seconds go. */
const struct cost_by_class *ranked_breakdown(const struct ranked_plan *plan);
/* Seconds of exposed communication, all kinds. */
double ranked_exposed_s(const struct ranked_plan *plan);
/* The share of a GPU's memory that a plan needs, and the bytes that a rank keeps in the memory of its host. */
double plan_use(const struct ranked_plan *ranked, const struct setting *setting);
double plan_host_bytes(const struct ranked_plan *ranked, const struct setting *setting);
/* Whether the chunks of a pipeline differ by a layer, which a framework has to be given as an explicit split. */
bool plan_is_uneven(const struct layout *layout, const struct setting *setting);

#endif
