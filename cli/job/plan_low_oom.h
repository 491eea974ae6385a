/*
 * plan_low_oom.h - the plan that rarely runs out of memory (sim/search/low_oom_plan.h), as a line below a table and as JSON.
 */
#ifndef MSIM_CLI_JOB_PLAN_LOW_OOM_H
#define MSIM_CLI_JOB_PLAN_LOW_OOM_H

#include <jansson.h>

#include "cli/options/command.h"
#include "sim/search/low_oom_plan.h"

/* With the options of this call, divided among the ranks of the world. */
void low_oom_plan_search(const struct ranked_plan *first, const struct space *space, const struct invocation *call,
                         struct low_oom_plan *low);
/* The line, with the plan's rank among those of the table, where it has one. Nothing where it is not wanted. */
void low_oom_plan_write(const struct low_oom_plan *low, const struct ranked_plan *plans, int n_plans, FILE *out);
/* {"memory_margin_pct", "slower_pct", "plan"}, where plan is null if none leaves as much room; NULL where it is not wanted. */
json_t *low_oom_plan_json(const struct low_oom_plan *low, const struct setting *setting);

#endif
