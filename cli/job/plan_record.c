/* One plan as JSON and CSV, as `msim plan`, its sweeps and its levers write it. */
#include <stdlib.h>

#include "cli/job/plan_record.h"
#include "cli/output/expectation.h"
#include "cli/output/layout_json.h"
#include "cli/output/notes.h"
#include "model/base/units.h"
#include "model/layout/dimension_value.h"

struct step_rates ranked_rates(const struct ranked_plan *ranked, const struct setting *setting)
{
    return step_rates_of(&ranked->plan.layout, setting, ranked_step_s(ranked));
}

json_t *plan_json(const struct ranked_plan *ranked, const struct setting *setting)
{
    const struct plan *plan = &ranked->plan;
    const struct step_rates rates = ranked_rates(ranked, setting);
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
    } columns[] = {{"features", NULL},    {"step time", "s"}, {"mfu", "%"},           {"memory", "gib"},   {"memory", "%"},
                   {"exposed comm", "s"}, {"bubble", "s"},    {"closed form", "s"},   {"simulated", NULL}, {"out of memory", "%"},
                   {"offload", NULL},     {"shard", NULL},    {"host memory", "gib"}, {"cp comm", NULL}};
    for (size_t i = 0; i < N_RESULT_DIMENSIONS; i++)
        table_column(table, layout_dimensions[result_dimensions[i]].key, NULL, ALIGN_LEFT);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        table_column(table, columns[i].title, columns[i].unit, ALIGN_LEFT);
    plan_rates_columns(table);
}

void plan_cells_csv(struct table *table, const struct ranked_plan *ranked, const struct step_rates *rates, double use,
                    double host_bytes)
{
    const struct layout *l = &ranked->plan.layout;
    char offload[OFFLOAD_TEXT], features[FEATURES_TEXT], comm[CP_COMM_TEXT], text[DIMENSION_TEXT];
    for (size_t i = 0; i < N_RESULT_DIMENSIONS; i++)
        table_cell(table, "%s", dimension_text(l, result_dimensions[i], text));
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
