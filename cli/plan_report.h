/*
 * plan_report.h - what `msim plan` found, as a table for people, JSON or CSV.
 */
#ifndef MSIM_CLI_PLAN_REPORT_H
#define MSIM_CLI_PLAN_REPORT_H

#include <jansson.h>

#include "cli/command.h"
#include "cli/plan_explain.h"
#include "cli/plan_flow.h"
#include "cli/plan_rank.h"
#include "model/plan/search.h"
#include "model/spec/experiment.h"

struct plan_outcome {
    const struct experiment *experiment;
    const struct setting *setting;
    struct search_result search;
    struct ranked_plan *plans; /* best first */
    int n_plans;
    int n_shown;              /* of them */
    double search_s, total_s; /* wall time of the search, and with the simulations */
    struct plan_flow flow;
    bool explained;
    struct explanation explanation;
};

/* In call->format. */
MUST_CHECK enum status plan_report(const struct plan_outcome *outcome, struct invocation *call);

#endif
