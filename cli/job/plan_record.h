/*
 * plan_record.h - one plan with its memory and rates, as rows of every result that contains plans.
 *
 *     const struct shown_plan plan = shown_plan_of(&found.plans[0], &setting);
 *     rows_object(plan_rows, &plan)         {"layout": {...}, "step_time_s": ...}
 *     plan_csv_cells(&plan, true, out)      8,8,1,...
 */
#ifndef MSIM_CLI_JOB_PLAN_RECORD_H
#define MSIM_CLI_JOB_PLAN_RECORD_H

#include <jansson.h>

#include "cli/job/plan_find.h"
#include "cli/job/plan_rates.h"
#include "cli/output/result_row.h"

#define UNEVEN_NOTE                                                                                                              \
    "~ chunks differ by a layer; frameworks need the split in full (Megatron-LM: --pipeline-model-parallel-layout)"
/* Of the job's margin in percent. */
#define OOM_MARGIN_NOTE                                                                                                          \
    "OOM: share of runs that fill as much memory and ran out of it; these plans leave a margin of %.4g %% (--memory-margin)."

struct shown_plan {
    const struct ranked_plan *ranked;
    const struct setting *setting;
    const struct layout *layout;
    int rank; /* in its table, from 1; 0: it has none */
    struct step_rates rates;
    double step_s, use; /* use: plan_use */
    bool uneven;        /* plan_is_uneven */
};
struct shown_plan shown_plan_of(const struct ranked_plan *ranked, const struct setting *setting);

/* A line: the features that layouts of a search may use. */
void plan_features_write(const struct job *job, FILE *out);
/* What is trained on what, and with which features, as the text of a search begins. */
void plan_job_write(const struct setting *setting, FILE *out);

extern const struct result_row plan_rows[]; /* of a struct shown_plan */
json_t *plan_json(const struct ranked_plan *ranked, const struct setting *setting);
/* The columns of a plan in CSV, and its cells; empty ones where there is no plan (NULL). */
void plan_csv_heading(bool first, FILE *out);
void plan_csv_cells(const struct shown_plan *plan, bool first, FILE *out);

#endif
