/*
 * plan_report.h - the result of `msim plan`: a table, JSON or CSV.
 */
#ifndef MSIM_CLI_PLAN_PLAN_REPORT_H
#define MSIM_CLI_PLAN_PLAN_REPORT_H

#include "cli/job/plan_low_oom.h"
#include "cli/job/plan_record.h"
#include "cli/options/command.h"
#include "cli/plan/plan_explain.h"
#include "cli/plan/plan_flow.h"

struct plan_outcome {
    const struct experiment *experiment;
    const struct setting *setting;
    struct plans_found found;
    int n_shown;    /* of them */
    double total_s; /* wall time of all of it */
    bool timing;    /* write wall times */
    struct plan_flow flow;
    bool explained;
    struct explanation explanation;
    struct low_oom_plan safer;
};

/* In call->format; where plans are explained, text and CSV are of that alone. */
MUST_CHECK enum status plan_report(const struct plan_outcome *outcome, struct invocation *call);
extern const struct result_row search_rows[]; /* of a struct plan_outcome */

#endif
