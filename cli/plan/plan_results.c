/* The answer of `msim plan` as JSON and CSV. */
#include <stdlib.h>

#include "cli/output/notes.h"
#include "cli/output/result.h"
#include "cli/plan/plan_report.h"
#include "model/base/units.h"
#include "model/cost/memory/footprint.h"

static json_t *count_json(uint64_t count)
{
    return json_integer((json_int_t)count);
}

static json_t *rejected_json(const struct search_counts *counts)
{
    json_t *json = json_object();
    for (int i = 0; i < N_LAYOUT_REASONS; i++)
        if (counts->rejected[i] > 0)
            json_object_set_new(json, layout_reason_key((enum layout_reason)i), count_json(counts->rejected[i]));
    json_object_set_new(json, "memory", count_json(counts->legal - counts->fit));
    return json;
}

enum status plan_report_write_json(const struct plan_outcome *outcome, struct invocation *call)
{
    const struct search_counts *counts = &outcome->found.search.counts;
    char *config = experiment_to_json(outcome->experiment);
    json_t *json = result_create(call, config);
    free(config);
    trained_json(outcome->setting, outcome->setting->job->features, json);
    if (job_masks_documents(outcome->setting->job))
        json_object_set_new(json, "documents", packed_json(outcome->setting, outcome->setting->job->features));
    json_object_set_new(json, "layouts_in_space", count_json(counts->in_space));
    json_object_set_new(json, "layouts_ruled_out", count_json(counts->ruled_out));
    json_object_set_new(json, "layouts_examined", count_json(counts->examined));
    json_object_set_new(json, "layouts_legal", count_json(counts->legal));
    json_object_set_new(json, "layouts_fit", count_json(counts->fit));
    json_object_set_new(json, "capacity_gib", json_real(footprint_capacity(outcome->setting->cluster) / GIB));
    json_object_set_new(json, "limit_gib", json_real(outcome->found.search.limit_bytes / GIB));
    json_t *plans = json_array();
    for (int i = 0; i < outcome->n_shown; i++)
        json_array_append_new(plans, plan_json(&outcome->found.plans[i], outcome->setting));
    json_object_set_new(json, "plans", plans);
    if (outcome->safer.wanted)
        json_object_set_new(json, "safer", low_oom_plan_json(&outcome->safer, outcome->setting));
    plan_flow_json(&outcome->flow, outcome->setting, json);
    json_object_set_new(json, "rejected", rejected_json(counts));
    if (outcome->explained)
        json_object_set_new(json, "explanation", explanation_json(&outcome->explanation, outcome->setting));
    json_object_set_new(json, "search_seconds", json_real(outcome->found.search_s));
    json_object_set_new(json, "seconds", json_real(outcome->total_s));
    return result_write(call, json);
}

static void budget_cells(const struct step_rates *rates, struct table *table)
{
    table_cell(table, "%.12g", rates->days);
    table_cell(table, "%.12g", rates->gpu_hours);
}

void plan_report_write_csv(const struct plan_outcome *outcome, const struct invocation *call)
{
    struct table table = {0};
    table_column(&table, "rank", NULL, ALIGN_LEFT);
    plan_columns_csv(&table);
    plan_flow_columns(&outcome->flow, &table);
    bool budgeted = outcome->setting->job->tokens > 0;
    if (budgeted) {
        table_column(&table, "days", NULL, ALIGN_LEFT);
        table_column(&table, "gpu_hours", NULL, ALIGN_LEFT);
    }
    for (int i = 0; i < outcome->n_shown; i++) {
        const struct ranked_plan *plan = &outcome->found.plans[i];
        const struct step_rates rates = ranked_rates(plan, outcome->setting);
        table_cell(&table, "%d", i + 1);
        plan_cells_csv(&table, plan, &rates, plan_use(plan, outcome->setting), plan_host_bytes(plan, outcome->setting));
        plan_flow_cells(&outcome->flow, i, &table);
        if (budgeted)
            budget_cells(&rates, &table);
    }
    table_write(&table, call);
    table_free(&table);
}
