/*
 * plan_find.h - the plans of one experiment, as the options of a call ask: what may be searched, the search, the simulations.
 */
#ifndef MSIM_CLI_JOB_PLAN_FIND_H
#define MSIM_CLI_JOB_PLAN_FIND_H

#include "cli/job/plan_rank.h"
#include "cli/options/command.h"
#include "model/plan/search.h"
#include "model/spec/experiment.h"

/* Where nothing limits dp: a batch that leaves few numbers of replicas is worth a warning, which names one that leaves more. */
void batch_fit_warn(const struct experiment *experiment, const struct space_limits *limits, struct diags *diags);

/* The layout of the experiment, as far as it is given, and --space; with batch_fit_warn. */
MUST_CHECK enum status plan_limits(const struct invocation *call, const struct experiment *experiment,
                                   struct space_limits *limits, struct diags *diags);

struct plans_found {
    struct search_result search;
    struct ranked_plan *plans; /* search.n_plans, best first; NULL: none */
    double search_s;           /* wall time of the search alone */
};

/* Shared over the ranks of the world, the same on each. Free with plans_found_free. */
void plans_find(const struct space *space, struct invocation *call, struct plans_found *found);
void plans_found_free(struct plans_found *found);

#endif
