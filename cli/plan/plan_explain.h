/*
 * plan_explain.h - one layout in full, next to the best plan: whether it is legal and fits, and where time and memory go.
 *
 *     msim plan job.yaml --explain tp=4,pp=16
 */
#ifndef MSIM_CLI_PLAN_PLAN_EXPLAIN_H
#define MSIM_CLI_PLAN_PLAN_EXPLAIN_H

#include <jansson.h>

#include "cli/output/result_row.h"
#include "sim/search/plan_explanation.h"

/*
 * What is asked for: a rank among the plans ("3"), or a layout ("tp=8,pp=4", completed in the best way that fits, or as
 * layout_complete does when none does). STATUS_USAGE with a diagnostic when it is neither.
 */
MUST_CHECK enum status explanation_make(const char *asked, const struct setting *setting, const struct ranked_plan *plans,
                                        int n_plans, int threads, struct explanation *explanation, struct diags *diags);

/* A plan beside the best one; the best beside the next. */
void explanation_write(const struct explanation *explanation, const struct ranked_plan *plans, int n_plans,
                       const struct setting *setting, struct invocation *call);
/* The line that ends a report: `msim step` of this layout, with the job's options of this call. */
void plan_step_write(const struct layout *layout, const struct job *job, const char *more, const struct invocation *call);

extern const struct result_row explanation_rows[];
json_t *explanation_json(const struct explanation *explanation, const struct setting *setting);

#endif
