/*
 * plan_find.h - the plans of one experiment: the restrictions that the options make, the search, and the simulations.
 *
 *     msim plan job.yaml --space tp=4,8 --rerank 20
 *
 * The layout of the experiment fixes dimensions, and --space restricts others. `sim/search` finds, simulates and ranks the plans.
 */
#ifndef MSIM_CLI_JOB_PLAN_FIND_H
#define MSIM_CLI_JOB_PLAN_FIND_H

#include "cli/output/progress.h"
#include "model/spec/experiment.h"
#include "sim/search/plan_search.h"

/* The layout of the experiment, as far as it is given, --space and the limits of --framework or --export; with batch_fit_warn. */
MUST_CHECK enum status plan_limits(const struct invocation *call, const struct experiment *experiment,
                                   struct space_limits *limits, struct diags *diags);

/* What the options of a call say about a search and its ranking. Begins the progress line, which the caller ends. */
struct plan_search_options plan_search_options_of(const struct invocation *call, struct progress *progress);

/* The same for many searches in turn, whose progress is the caller's to tell: "levers". */
struct plan_search_options plan_points_options(const struct invocation *call, const char *what, struct progress *progress);

/* Divided among the ranks of the world, the same on each. Free with plans_found_free. */
void plans_find(const struct space *space, struct invocation *call, struct plans_found *found);

#endif
