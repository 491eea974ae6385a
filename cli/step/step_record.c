#include "cli/step/step_record.h"

#include <stdlib.h>

#include "cli/job/plan_rates.h"
#include "cli/output/expectation.h"
#include "cli/output/layout_json.h"
#include "cli/output/result.h"
#include "cli/step/step_explain.h"
#include "model/base/append.h"
#include "model/base/units.h"
#include "model/cost/work/adapter.h"
#include "model/cost/work/host_memory.h"
#include "model/spec/json_text.h"

/* ---- what all reports ask */

struct step_record step_record_of(const struct job_setup *setup, const struct step_result *result)
{
    return (struct step_record){.setup = setup,
                                .result = result,
                                .capacity_bytes = footprint_capacity(&setup->experiment.cluster),
                                .gpu_price = setup->gpu_price};
}

double step_host_capacity(const struct step_record *record)
{
    return host_capacity(&record->setup->experiment.cluster, &record->setup->layout);
}

bool step_fits_gpu(const struct step_record *record)
{
    return record->result->memory.total <= record->capacity_bytes;
}

bool step_fits_host(const struct step_record *record)
{
    double capacity = step_host_capacity(record);
    return capacity <= 0 || record->result->memory.host <= capacity;
}

bool step_fits(const struct step_record *record)
{
    return step_fits_gpu(record) && step_fits_host(record);
}

char *step_misfit_text(const struct step_record *record, char *buffer, size_t size)
{
    const struct step_result *r = record->result;
    snprintf(buffer, size, "this layout does not fit: ");
    if (!step_fits_gpu(record))
        text_append(buffer, size, "stage %d needs %.1f GiB, but a GPU has %.1f GiB", r->memory_stage, r->memory.total / GIB,
                    record->capacity_bytes / GIB);
    else
        text_append(buffer, size, "a rank needs %.1f GiB of host memory, but has %.1f GiB", r->memory.host / GIB,
                    step_host_capacity(record) / GIB);
    return text_append(buffer, size, "; the times assume that it fits");
}

enum status step_check_fit(const struct step_record *record, const char *file, struct invocation *call)
{
    char text[MISFIT_TEXT];
    if (step_fits(record))
        return STATUS_OK;
    if (call->format != FORMAT_TEXT || option_given(call, "export"))
        diag_warning(&call->diags, (struct place){.file = file}, "%s", step_misfit_text(record, text, sizeof text));
    return STATUS_CHECK;
}

double step_days(const struct step_record *record)
{
    double tokens = record->setup->experiment.job.tokens, rate = record->result->tokens_per_s;

    return tokens > 0 && rate > 0 ? tokens / rate / 86400 : 0;
}

double step_gpu_hours(const struct step_record *record)
{
    return step_days(record) * 24 * record->setup->experiment.gpus;
}

struct stage step_stage(const struct step_record *record, int number)
{
    struct footprint memory;
    footprint_of_stage(&record->setup->layout, &record->setup->setting, number, &memory);
    return (struct stage){number, memory.total, breakdown_mean(record->stages, number), &record->result->breakdown};
}

/* ---- rows */

static const struct setting *setting_of(const struct step_record *record)
{
    return &record->setup->setting;
}

static feature_set features_of(const struct step_record *record)
{
    return record->setup->layout.features;
}

static struct step_rates rates_of(const struct step_record *record)
{
    return step_rates_of(&record->setup->layout, setting_of(record), record->result->step_time_s);
}

/* Where adapters are trained: all parameters, or those that are trained. */
static struct value parameters_of(const struct step_record *record, bool trained)
{
    bool adapts = job_adapts(&record->setup->experiment.job);
    struct adapted_model model = {0};
    if (adapts)
        model = adapted_model_of(setting_of(record), features_of(record));
    return present_if(adapts, as_real(trained ? model.trained : model.total));
}

static json_t *likely_json(const struct step_record *record)
{
    return expectation_json(&record->setup->layout, setting_of(record), record->result->step_time_s);
}

#define STEP_ROWS(ROW)                                                                                                           \
    ROW(step_record, model, as_text(s->setup->experiment.model.name), "", CSV, "name of the model")                              \
    ROW(step_record, cluster, as_text(s->setup->experiment.cluster.name), "", CSV, "name of the cluster")                        \
    ROW(step_record, gpus, as_count(s->setup->experiment.gpus), "", CSV, "number of GPUs")                                       \
    ROW(step_record, layout_text, as_layout(&s->setup->layout), "", CSV, "the layout, as --layout takes it", .column = "layout") \
    ROW(step_record, layout, as_json(layout_json(&s->setup->layout)), "", JSON, "the layout, as an experiment file has it")      \
    ROW(step_record, features, as_json(features_json(features_of(s))), "", JSON, "software features that it uses")               \
    ROW(step_record, parameters, parameters_of(s, false), "", JSON, "parameters of the model, where adapters are trained")       \
    ROW(step_record, trained_parameters, parameters_of(s, true), "", JSON, "those that are trained")                             \
    ROW(step_record, documents, as_json(packed_json(setting_of(s), features_of(s))), "", JSON, "masks between documents")        \
    ROW(step_record, layout_chosen, as_flag(s->setup->chosen), "", JSON, "whether msim chose the layout")                        \
    ROW(step_record, step_time_s, as_real(s->result->step_time_s), "s", JSON | CSV, "predicted time of the step",                \
        .digits = "%.9f")                                                                                                        \
    ROW(step_record, likely, as_json(likely_json(s)), "", JSON, "interval of the step time, from published runs")                \
    ROW(step_record, mfu_pct, as_real(s->result->mfu * 100), "%", JSON | CSV, "MFU, attention counted in full",                  \
        .digits = "%.6f")                                                                                                        \
    ROW(step_record, hfu_pct, as_real(s->result->hfu * 100), "%", JSON | CSV, "HFU, attention counted in full",                  \
        .digits = "%.6f")                                                                                                        \
    ROW(step_record, mfu_causal_pct, as_real(s->result->mfu_causal * 100), "%", JSON | CSV,                                      \
        "MFU, only the causal half of attention counted", .digits = "%.6f")                                                      \
    ROW(step_record, hfu_causal_pct, as_real(s->result->hfu_causal * 100), "%", JSON | CSV, "HFU, counted so", .digits = "%.6f") \
    ROW(step_record, tflops_per_gpu, as_real(rates_of(s).tflops), "TFLOP/s", JSON, "rate of a GPU, attention in full")           \
    ROW(step_record, tflops_causal_per_gpu, as_real(rates_of(s).tflops_causal), "TFLOP/s", JSON, "the same, causal half")        \
    ROW(step_record, tokens_per_s_per_gpu, as_real(rates_of(s).tokens_per_gpu), "1/s", JSON, "tokens per second and GPU")
RESULT_ROWS(step_rows, STEP_ROWS)

/* Of a budget of tokens. */
static struct value of_budget(const struct step_record *record, double number)
{
    return present_if(step_days(record) > 0, as_real(number));
}

static struct value cost_of(const struct step_record *record)
{
    return present_if(record->gpu_price > 0, of_budget(record, record->gpu_price * step_gpu_hours(record)));
}

static json_t *energy_of(const struct step_record *record)
{
    const struct experiment *e = &record->setup->experiment;
    const struct power_bound bound = power_bound_published(&e->cluster, e->gpus);
    return energy_json(&bound, e->gpus, step_gpu_hours(record), record->result->tokens_per_s);
}

static struct value of_host(const struct step_record *record, double bytes)
{
    return present_if(!offload_is_none(&record->setup->layout.offload), as_real(bytes / GIB));
}

#define SIZE_ROWS(ROW)                                                                                                           \
    ROW(step_record, tokens_per_s, as_real(s->result->tokens_per_s), "1/s", JSON | CSV, "tokens per second of the job",          \
        .digits = "%.3f")                                                                                                        \
    ROW(step_record, days, of_budget(s, step_days(s)), "days", JSON, "time for the budget of tokens")                            \
    ROW(step_record, gpu_hours, of_budget(s, step_gpu_hours(s)), "h", JSON, "GPU-hours of the budget")                           \
    ROW(step_record, cost, cost_of(s), "", JSON, "their cost, in the currency of --gpu-price")                                   \
    ROW(step_record, energy_at_most, as_json(energy_of(s)), "", JSON, "upper bound of power and energy")                         \
    ROW(step_record, memory_gib, as_real(s->result->memory.total / GIB), "GiB", JSON | CSV, "memory of the fullest stage",       \
        .digits = "%.6f")                                                                                                        \
    ROW(step_record, memory_capacity_gib, as_real(s->capacity_bytes / GIB), "GiB", JSON, "memory that a GPU has for it")         \
    ROW(step_record, fits, as_flag(step_fits(s)), "", JSON | CSV, "whether GPUs and hosts have enough memory")                   \
    ROW(step_record, host_memory_gib, of_host(s, s->result->memory.host), "GiB", JSON, "host memory per rank, if offloading")    \
    ROW(step_record, host_memory_capacity_gib, of_host(s, step_host_capacity(s)), "GiB", JSON,                                   \
        "host memory that a rank has; 0: unknown")
RESULT_ROWS(step_size_rows, SIZE_ROWS)

#define STAGE_ROWS(ROW)                                                                                                          \
    ROW(stage, stage, as_count(s->number), "", JSON, "number of the pipeline stage", .show = "%.0f")                             \
    ROW(stage, breakdown, as_classes_among(&s->mean, s->all), "s", JSON, "mean time of its ranks by class", .show = "%.4f")      \
    ROW(stage, memory_gib, as_real(s->memory_bytes / GIB), "GiB", JSON, "its memory", .title = "memory", .show = "%.2f")
RESULT_ROWS(stage_rows, STAGE_ROWS)

static json_t *stages_json(const struct step_record *record)
{
    json_t *array = json_array();

    for (int i = 0; i < record->stages->n_stages; i++) {
        const struct stage stage = step_stage(record, i);
        json_array_append_new(array, rows_object(stage_rows, &stage));
    }
    return array;
}

static json_t *out_of_memory_json(const struct step_record *record)
{
    return expectation_memory_json(&record->setup->layout, setting_of(record),
                                   record->result->memory.total / record->capacity_bytes);
}

#define DETAIL_ROWS(ROW)                                                                                                         \
    ROW(step_record, memory_stage, as_count(s->result->memory_stage), "", JSON, "number of the fullest stage")                   \
    ROW(step_record, memory_parts_gib, as_json(memory_parts_json(&s->result->memory)), "GiB", JSON, "its memory by use")         \
    ROW(step_record, out_of_memory, as_json(out_of_memory_json(s)), "", JSON, "published runs that used as much memory")         \
    ROW(step_record, breakdown, as_classes(&s->result->breakdown), "s", JSON | CSV, "mean time of all ranks by class",           \
        .digits = "%.12f")                                                                                                       \
    ROW(step_record, experts, as_json(routing_json(setting_of(s), &s->setup->layout)), "", JSON, "load of experts")              \
    ROW(step_record, stages, as_json(stages_json(s)), "", JSON, "each pipeline stage")
RESULT_ROWS(step_detail_rows, DETAIL_ROWS)

static json_t *assumptions_json(const struct step_record *record)
{
    json_t *array = json_array();

    for (int i = 0; i < record->n_assumptions; i++)
        json_array_append_new(array, json_text(record->assumptions[i]));
    return array;
}

static struct value of_documents(const struct step_record *record, double number)
{
    return present_if(job_masks_documents(&record->setup->experiment.job), as_real(number));
}

#define END_ROWS(ROW)                                                                                                            \
    ROW(step_record, ranks_simulated, as_count(s->result->actors), "", JSON, "ranks simulated; the others behave alike")         \
    ROW(step_record, events, as_count((int64_t)s->result->events), "", JSON, "operations simulated")                             \
    ROW(step_record, seconds, present_if(s->timing, as_real(s->result->seconds)), "s", JSON,                                     \
        "wall time of the simulation (--timing)")                                                                                \
    ROW(step_record, documents_wait_s, of_documents(s, s->documents_wait_s), "s", JSON,                                          \
        "additional wait for the replica with the longest documents")                                                            \
    ROW(step_record, mfu_documents_pct, of_documents(s, s->result->mfu_masked * 100), "%", JSON, "MFU within documents")         \
    ROW(step_record, assumptions, as_json(assumptions_json(s)), "", JSON, "what the prediction assumes")                         \
    ROW(step_record, explain, as_json(s->program ? step_explain_json(s->setup, s->program) : NULL), "", JSON,                    \
        "kernels and exchanges, with --explain")                                                                                 \
    ROW(step_record, profile, as_json(s->profile ? step_profile_json(s->profile) : NULL), "", JSON,                              \
        "comparison with a trace, with --profile")
RESULT_ROWS(step_end_rows, END_ROWS)

/* ---- JSON and CSV */

enum status step_record_write_json(const struct step_record *record, struct invocation *call)
{
    char *config = experiment_to_json(&record->setup->experiment);
    json_t *result = result_create(call, config);

    free(config);
    rows_json(step_rows, record, result);
    rows_json(step_size_rows, record, result);
    rows_json(step_detail_rows, record, result);
    if (record->flow)
        rows_json(step_flow_rows, record->flow, result);
    else
        json_object_set_new(result, "network", json_string("analytic"));
    rows_json(step_end_rows, record, result);
    return result_write(call, result);
}

void step_record_write_csv(const struct step_record *record, FILE *out)
{
    static const struct result_row *const parts[] = {step_rows, step_size_rows, step_detail_rows};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        rows_csv_heading(parts[i], record, i == 0, out);
    fputc('\n', out);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        rows_csv_cells(parts[i], record, i == 0, out);
    fputc('\n', out);
}
