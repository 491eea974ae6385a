/* Plans for programs: what sweeps and levers say of one, and the answer of `msim plan` as JSON and CSV. */
#include <stdlib.h>

#include "cli/expectation.h"
#include "cli/layout_json.h"
#include "cli/packed.h"
#include "cli/plan_report.h"
#include "cli/result.h"
#include "cli/trained.h"
#include "model/base/units.h"
#include "model/cost/footprint.h"

/* --- one plan --- */

double plan_use(const struct ranked_plan *ranked, const struct setting *setting)
{
    return ranked->plan.estimate.memory_bytes / footprint_capacity(setting->cluster);
}

double plan_host_bytes(const struct ranked_plan *ranked, const struct setting *setting)
{
    struct footprint footprint;
    footprint_peak(&ranked->plan.layout, setting, &footprint, NULL);
    return footprint.host;
}

struct plan_rates ranked_rates(const struct ranked_plan *ranked, const struct setting *setting)
{
    return plan_rates_of(&ranked->plan.layout, setting, ranked_step_s(ranked));
}

bool plan_is_uneven(const struct layout *layout, const struct setting *setting)
{
    return layout->pp > 1 && !layers_divide(setting->model, layout_virtual_stages(layout));
}

json_t *plan_json(const struct ranked_plan *ranked, const struct setting *setting)
{
    const struct plan *plan = &ranked->plan;
    const struct plan_rates rates = ranked_rates(ranked, setting);
    double step_s = ranked_step_s(ranked);
    json_t *json = json_object();
    json_object_set_new(json, "layout", layout_json(&plan->layout));
    json_object_set_new(json, "features", features_json(plan->layout.features));
    json_object_set_new(json, "step_time_s", json_real(step_s));
    json_object_set_new(json, "likely", expectation_json(&plan->layout, setting, step_s));
    json_object_set_new(json, "mfu_pct", json_real(100 * ranked_mfu(ranked, setting)));
    plan_rates_json(&rates, json);
    json_object_set_new(json, "memory_gib", json_real(plan->estimate.memory_bytes / GIB));
    json_object_set_new(json, "memory_pct", json_real(100 * plan_use(ranked, setting)));
    json_object_set_new(json, "out_of_memory", expectation_memory_json(&plan->layout, setting, plan_use(ranked, setting)));
    if (!offload_is_none(&plan->layout.offload))
        json_object_set_new(json, "host_memory_gib", json_real(plan_host_bytes(ranked, setting) / GIB));
    json_object_set_new(json, "simulated", json_boolean(ranked->simulated));
    json_object_set_new(json, "closed_form_s", json_real(plan->estimate.step_s));
    json_object_set_new(json, "exposed_comm_s", json_real(ranked_exposed_s(ranked)));
    json_object_set_new(json, "breakdown", cost_by_class_json(ranked_breakdown(ranked)));
    return json;
}

void plan_columns_csv(struct table *table)
{
    static const struct {
        const char *title, *unit;
    } columns[] = {{"tp", NULL},
                   {"pp", NULL},
                   {"vpp", NULL},
                   {"cp", NULL},
                   {"dp", NULL},
                   {"ep", NULL},
                   {"zero", NULL},
                   {"micro batch", NULL},
                   {"recompute", NULL},
                   {"schedule", NULL},
                   {"sequence parallel", NULL},
                   {"features", NULL},
                   {"step time", "s"},
                   {"mfu", "%"},
                   {"memory", "gib"},
                   {"memory", "%"},
                   {"exposed comm", "s"},
                   {"bubble", "s"},
                   {"closed form", "s"},
                   {"simulated", NULL},
                   {"out of memory", "%"},
                   {"offload", NULL},
                   {"shard", NULL},
                   {"host memory", "gib"},
                   {"cp comm", NULL}};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        table_column(table, columns[i].title, columns[i].unit, ALIGN_LEFT);
    plan_rates_columns(table);
}

void plan_cells_csv(struct table *table, const struct ranked_plan *ranked, const struct plan_rates *rates, double use,
                    double host_bytes)
{
    const struct layout *l = &ranked->plan.layout;
    const int numbers[] = {l->tp, l->pp, l->vpp, l->cp, l->dp, l->ep, l->zero, l->micro_batch};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        table_cell(table, "%d", numbers[i]);
    char recompute[RECOMPUTE_TEXT], offload[OFFLOAD_TEXT], features[FEATURES_TEXT], comm[CP_COMM_TEXT];
    table_cell(table, "%s", recompute_format(l->recompute, recompute, sizeof recompute));
    table_cell(table, "%s", schedule_name(l->schedule));
    table_cell(table, "%d", l->sequence_parallel);
    table_cell(table, "%s", features_text(l->features, " ", features, sizeof features));
    const double values[] = {ranked_step_s(ranked),
                             100 * rates->mfu,
                             ranked->plan.estimate.memory_bytes / GIB,
                             100 * use,
                             ranked_exposed_s(ranked),
                             ranked_breakdown(ranked)->s[CLASS_BUBBLE],
                             ranked->plan.estimate.step_s};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        table_cell(table, "%.12g", values[i]);
    table_cell(table, "%d", ranked->simulated);
    table_cell(table, "%.12g", 100 * memory_record_share(use));
    table_cell(table, "%s", offload_format(&l->offload, offload, sizeof offload));
    table_cell(table, "%d", l->shard);
    table_cell(table, "%.12g", host_bytes / GIB);
    table_cell(table, "%s", cp_comm_format(l->cp_comm, comm, sizeof comm));
    plan_rates_cells(rates, table);
}

struct best_plan best_plan_of(const struct plans_found *found, const struct setting *setting)
{
    const struct ranked_plan *first = &found->plans[0];
    double step_s = ranked_step_s(first);
    return (struct best_plan){
        .ranked = *first,
        .uneven = plan_is_uneven(&first->plan.layout, setting),
        .step_s = step_s,
        .mfu = ranked_mfu(first, setting),
        .use = plan_use(first, setting),
        .tokens_per_s = (double)setting->job->global_batch * (double)setting->job->seq_len / step_s,
        .host_bytes = plan_host_bytes(first, setting),
        .rates = ranked_rates(first, setting),
        .json = plan_json(first, setting),
    };
}

/* --- the answer --- */

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
    packed_json(outcome->setting, outcome->setting->job->features, json);
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
        json_object_set_new(json, "safer", safer_plan_json(&outcome->safer, outcome->setting));
    plan_flow_json(&outcome->flow, outcome->setting, json);
    json_object_set_new(json, "rejected", rejected_json(counts));
    if (outcome->explained)
        json_object_set_new(json, "explanation", explanation_json(&outcome->explanation, outcome->setting));
    json_object_set_new(json, "search_seconds", json_real(outcome->found.search_s));
    json_object_set_new(json, "seconds", json_real(outcome->total_s));
    return result_write(call, json);
}

static void budget_cells(const struct plan_rates *rates, struct table *table)
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
        const struct plan_rates rates = ranked_rates(plan, outcome->setting);
        table_cell(&table, "%d", i + 1);
        plan_cells_csv(&table, plan, &rates, plan_use(plan, outcome->setting), plan_host_bytes(plan, outcome->setting));
        plan_flow_cells(&outcome->flow, i, &table);
        if (budgeted)
            budget_cells(&rates, &table);
    }
    table_write(&table, call);
    table_free(&table);
}
