/*
 * plan_record.h - one plan with its memory and rates, as JSON and as a line of CSV, for every result that contains plans.
 */
#ifndef MSIM_CLI_JOB_PLAN_RECORD_H
#define MSIM_CLI_JOB_PLAN_RECORD_H

#include <jansson.h>

#include "cli/job/plan_find.h"
#include "cli/job/plan_rates.h"
#include "cli/output/table.h"

#define UNEVEN_NOTE                                                                                                              \
    "~ chunks differ by a layer; frameworks need the split in full (Megatron-LM: --pipeline-model-parallel-layout)"
/* One plan as an object, and its layout and measures as columns and cells of a CSV; `use` is plan_use. */
json_t *plan_json(const struct ranked_plan *ranked, const struct setting *setting);
void plan_columns_csv(struct table *table);
void plan_cells_csv(struct table *table, const struct ranked_plan *ranked, const struct step_rates *rates, double use,
                    double host_bytes);
/* Its TFLOPS, tokens a second of a GPU, and what a budget of tokens takes. */
struct step_rates ranked_rates(const struct ranked_plan *ranked, const struct setting *setting);

/* The first of the plans found, where there is one, as a sweep and levers compare it with others. */
struct best_plan {
    struct ranked_plan ranked;
    bool uneven;                           /* plan_is_uneven */
    double step_s, mfu, use, tokens_per_s; /* use: plan_use */
    double host_bytes;                     /* plan_host_bytes */
    struct step_rates rates;
    json_t *json; /* plan_json, for the caller to release */
};
struct best_plan best_plan_of(const struct plans_found *found, const struct setting *setting);

#endif
