/* A step for programs: JSON, and one row of CSV. */
#include <stdlib.h>

#include "cli/job/plan_rates.h"
#include "cli/output/expectation.h"
#include "cli/output/layout_json.h"
#include "cli/output/notes.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "cli/step/step_explain.h"
#include "cli/step/step_report.h"
#include "model/base/units.h"
#include "model/spec/json_text.h"

/* ---- JSON */

static json_t *memory_json(const struct step_report *report)
{
    struct memory_part parts[N_MEMORY_PARTS];
    json_t *object = json_object();

    memory_parts(&report->result->memory, parts);
    for (int i = 0; i < N_MEMORY_PARTS; i++)
        json_object_set_new(object, parts[i].name, json_real(parts[i].bytes / GIB));
    return object;
}

static json_t *stages_json(const struct step_report *report)
{
    json_t *array = json_array();

    for (int i = 0; i < report->stages->n_stages; i++) {
        struct cost_by_class mean = breakdown_mean(report->stages, i);
        struct footprint memory;
        footprint_of_stage(&report->setup->layout, &report->setup->setting, i, &memory);
        json_array_append_new(array, json_pack("{s:i,s:o,s:f}", "stage", i, "breakdown", cost_by_class_json(&mean), "memory_gib",
                                               memory.total / GIB));
    }
    return array;
}

static json_t *assumptions_json(const struct step_report *report)
{
    json_t *array = json_array();

    for (int i = 0; i < report->n_assumptions; i++)
        json_array_append_new(array, json_text(report->assumptions[i]));
    return array;
}

void step_report_put_size(const struct step_report *report, json_t *result)
{
    json_object_set_new(result, "tokens_per_s", json_real(report->result->tokens_per_s));
    if (step_report_days(report) > 0) {
        json_object_set_new(result, "days", json_real(step_report_days(report)));
        json_object_set_new(result, "gpu_hours", json_real(step_report_gpu_hours(report)));
        if (report->gpu_price > 0)
            json_object_set_new(result, "cost", json_real(report->gpu_price * step_report_gpu_hours(report)));
    }
    const struct power_bound bound = power_bound_published(&report->setup->experiment.cluster, report->setup->experiment.gpus);
    json_object_set_new(
        result, "energy_at_most",
        energy_json(&bound, report->setup->experiment.gpus, step_report_gpu_hours(report), report->result->tokens_per_s));
    json_object_set_new(result, "memory_gib", json_real(report->result->memory.total / GIB));
    json_object_set_new(result, "memory_capacity_gib", json_real(report->capacity_bytes / GIB));
    json_object_set_new(result, "fits", json_boolean(step_report_runs(report)));
    if (!offload_is_none(&report->setup->layout.offload)) {
        json_object_set_new(result, "host_memory_gib", json_real(report->result->memory.host / GIB));
        json_object_set_new(result, "host_memory_capacity_gib", json_real(step_report_host_capacity(report) / GIB));
    }
}

enum status step_report_write_json(const struct step_report *report, struct invocation *call)
{
    const struct step_result *r = report->result;
    char *config = experiment_to_json(&report->setup->experiment);
    json_t *result = result_create(call, config);

    free(config);
    json_object_set_new(result, "layout", layout_json(&report->setup->layout));
    json_object_set_new(result, "features", features_json(report->setup->layout.features));
    trained_json(&report->setup->setting, report->setup->layout.features, result);
    if (job_masks_documents(&report->setup->experiment.job))
        json_object_set_new(result, "documents", packed_json(&report->setup->setting, report->setup->layout.features));
    json_object_set_new(result, "layout_chosen", json_boolean(report->setup->chosen));
    json_object_set_new(result, "step_time_s", json_real(r->step_time_s));
    json_object_set_new(result, "likely", expectation_json(&report->setup->layout, &report->setup->setting, r->step_time_s));
    json_object_set_new(result, "mfu_pct", json_real(r->mfu * 100));
    json_object_set_new(result, "hfu_pct", json_real(r->hfu * 100));
    json_object_set_new(result, "mfu_causal_pct", json_real(r->mfu_causal * 100));
    json_object_set_new(result, "hfu_causal_pct", json_real(r->hfu_causal * 100));
    const struct step_rates rates = step_rates_of(&report->setup->layout, &report->setup->setting, r->step_time_s);
    json_object_set_new(result, "tflops_per_gpu", json_real(rates.tflops));
    json_object_set_new(result, "tflops_causal_per_gpu", json_real(rates.tflops_causal));
    json_object_set_new(result, "tokens_per_s_per_gpu", json_real(rates.tokens_per_gpu));
    step_report_put_size(report, result);
    json_object_set_new(result, "memory_stage", json_integer(r->memory_stage));
    json_object_set_new(result, "memory_parts_gib", memory_json(report));
    json_object_set_new(
        result, "out_of_memory",
        expectation_memory_json(&report->setup->layout, &report->setup->setting, r->memory.total / report->capacity_bytes));
    json_object_set_new(result, "breakdown", cost_by_class_json(&r->breakdown));
    if (expert_load_given(&report->setup->experiment.job.load))
        json_object_set_new(result, "experts", routing_json(&report->setup->setting, &report->setup->layout));
    json_object_set_new(result, "stages", stages_json(report));
    if (report->flow != NULL)
        step_flow_json(report->flow, result);
    else
        json_object_set_new(result, "network", json_string("analytic"));
    json_object_set_new(result, "ranks_simulated", json_integer(r->actors));
    json_object_set_new(result, "events", json_integer((json_int_t)r->events));
    json_object_set_new(result, "seconds", json_real(r->seconds));
    if (job_masks_documents(&report->setup->experiment.job)) {
        json_object_set_new(result, "documents_wait_s", json_real(report->documents_wait_s));
        json_object_set_new(result, "mfu_documents_pct", json_real(r->mfu_masked * 100));
    }
    json_object_set_new(result, "assumptions", assumptions_json(report));
    if (report->program != NULL)
        json_object_set_new(result, "explain", step_explain_json(report->setup, report->program));
    if (report->profile != NULL)
        json_object_set_new(result, "profile", step_profile_json(report->profile));
    return result_write(call, result);
}

/* ---- CSV */

void step_report_write_csv(const struct step_report *report, const struct invocation *call)
{
    const struct step_result *r = report->result;
    const struct experiment *e = &report->setup->experiment;
    struct table table = {0};
    char text[LAYOUT_TEXT];

    static const char *const columns[][2] = {{"model", NULL},        {"cluster", NULL},     {"gpus", NULL},
                                             {"layout", NULL},       {"step_time", "s"},    {"mfu", "pct"},
                                             {"hfu", "pct"},         {"mfu_causal", "pct"}, {"hfu_causal", "pct"},
                                             {"tokens_per_s", NULL}, {"memory", "gib"},     {"fits", NULL}};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        table_column(&table, columns[i][0], columns[i][1], ALIGN_RIGHT);
    for (int c = 0; c < N_WORK_CLASSES; c++)
        table_column(&table, work_class_name(c), "s", ALIGN_RIGHT);
    table_cell(&table, "%s", e->model.name);
    table_cell(&table, "%s", e->cluster.name);
    table_cell(&table, "%d", e->gpus);
    table_cell(&table, "%s", layout_format(&report->setup->layout, text, sizeof text));
    table_cell(&table, "%.9f", r->step_time_s);
    table_cell(&table, "%.6f", r->mfu * 100);
    table_cell(&table, "%.6f", r->hfu * 100);
    table_cell(&table, "%.6f", r->mfu_causal * 100);
    table_cell(&table, "%.6f", r->hfu_causal * 100);
    table_cell(&table, "%.3f", r->tokens_per_s);
    table_cell(&table, "%.6f", r->memory.total / GIB);
    table_cell(&table, "%d", step_report_runs(report));
    for (int c = 0; c < N_WORK_CLASSES; c++)
        table_cell(&table, "%.12f", r->breakdown.s[c]);
    table_write_csv(&table, call->out);
    table_free(&table);
}
