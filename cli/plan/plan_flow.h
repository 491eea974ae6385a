/*
 * plan_flow.h - the best plans on the fabric: each one simulated with the flow network, in each placement of its ranks.
 *
 *     msim plan job.yaml --network flow --flow-top 3 --placement all
 *
 * The search and its simulations assume an empty, perfect fabric. This simulates hash collisions and placements for the best
 * layouts, and orders them by the step time in their best placement. It simulates one after the other, because a simulation of
 * all ranks needs seconds and hundreds of MB.
 */
#ifndef MSIM_CLI_PLAN_PLAN_FLOW_H
#define MSIM_CLI_PLAN_PLAN_FLOW_H

#include <jansson.h>

#include "cli/options/command.h"
#include "cli/output/result_row.h"
#include "sim/search/fabric_ranking.h"

struct plan_flow {
    int n_rows; /* 0: not asked for */
    struct flow_row *rows;
    bool placed[N_PLACEMENTS]; /* which were asked for */
    const char *routing;
    char fabric[FABRIC_TEXT_MAX];
};

/* Simulate the first of `plans` as the options say, and put those first plans in their new order; `flow` is all zero when it is
 * not asked for. Release with plan_flow_free. */
MUST_CHECK enum status plan_flow_run(struct invocation *call, const struct setting *setting, struct ranked_plan *plans,
                                     int n_plans, struct plan_flow *flow);
void plan_flow_free(struct plan_flow *flow);

void plan_flow_write(const struct plan_flow *flow, const struct invocation *call);
/* Columns and cells of CSV for plan i (from 0), behind others: the step in its best placement, and that; none when not asked
 * for. */
void plan_flow_csv_heading(const struct plan_flow *flow, FILE *out);
void plan_flow_csv_cells(const struct plan_flow *flow, int i, FILE *out);
/* Seconds of the step of plan i (from 0) in its best placement; 0: not known. */
double plan_flow_step_s(const struct plan_flow *flow, int i);
/* In order of rank, with the seconds of each placement, and tokens/s and, with a budget, days and GPU-hours in the best one; NULL
 * when not asked for. What the result's plans say of these is on an empty fabric. */
extern const struct result_row flow_rows[], placement_rows[]; /* of a struct flow_row, flow_outcome */
json_t *plan_flow_json(const struct plan_flow *flow, const struct setting *setting);

#endif
