/*
 * fabric_ranking.h - ranks the best plans again on a fabric whose links are shared, each plan in several placements.
 *
 * Example: the three best plans, their ranks placed data-parallel neighbours first or at random:
 *
 *     struct fabric_ranking ranking = {.setting = &setting, .network = {.fabric = &fabric, .seed = 1},
 *                                      .placed = {[PLACEMENT_DATA_FIRST] = true, [PLACEMENT_RANDOM] = true}};
 *     struct flow_row rows[3] = {{.plan = plans[0]}, {.plan = plans[1]}, {.plan = plans[2]}};
 *     fabric_rank(&ranking, rows, 3, &diags);               rows[0]: the fastest in its best placement
 *
 * The search and plan_ranking.h take the fabric for empty. Here collisions of flows count. Plans are simulated one after the
 * other, because a simulation of all ranks takes seconds and hundreds of MB.
 */
#ifndef MSIM_SIM_SEARCH_FABRIC_RANKING_H
#define MSIM_SIM_SEARCH_FABRIC_RANKING_H

#include "sim/network/placement.h"
#include "sim/search/plan_ranking.h"

struct flow_outcome {
    bool simulated;
    struct step_result step;
    nanos contended; /* of the link that held transfers back the longest */
};

/* Of one plan. */
struct flow_row {
    struct ranked_plan plan;
    struct flow_outcome placements[N_PLACEMENTS];
    int best; /* placement; -1 none could be simulated */
};

struct fabric_ranking {
    const struct setting *setting;
    struct network_flow_options network; /* its placement is set here */
    bool placed[N_PLACEMENTS];           /* the placements to simulate */
    struct watch watch;                  /* plans done */
};

/* Simulates the plans of rows [n] and puts the rows in order of the step in the best placement; rows without one come last. */
void fabric_rank(const struct fabric_ranking *ranking, struct flow_row *rows, int n, struct diags *diags);

#endif
