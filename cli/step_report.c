#include "cli/step_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/beside.h"
#include "cli/energy_report.h"
#include "cli/expectation.h"
#include "cli/layout_json.h"
#include "cli/oversubscribed.h"
#include "cli/packed.h"
#include "cli/plan_rates.h"
#include "cli/result.h"
#include "cli/routing.h"
#include "cli/step_explain.h"
#include "cli/table.h"
#include "cli/trained.h"
#include "model/cost/host_memory.h"
#include "model/cost/packing.h"
#include "model/cost/work.h"
#include "sim/collective_flows.h"

#define GIB 0x1p30

static bool report_fits(const struct step_report *report)
{
    return report->result->memory.total <= report->capacity_bytes;
}

/* Of the host's memory, a rank's share; 0: unknown. */
static double report_host_capacity(const struct step_report *report)
{
    return host_capacity(&report->setup->experiment.cluster, &report->setup->layout);
}

static bool report_host_fits(const struct step_report *report)
{
    double capacity = report_host_capacity(report);
    return capacity <= 0 || report->result->memory.host <= capacity;
}

bool step_report_runs(const struct step_report *report)
{
    return report_fits(report) && report_host_fits(report);
}

/* Days and GPU-hours for the job's token budget; 0 when it has none. */
static double report_days(const struct step_report *report)
{
    double tokens = report->setup->experiment.job.tokens, rate = report->result->tokens_per_s;

    return tokens > 0 && rate > 0 ? tokens / rate / 86400 : 0;
}

static double report_gpu_hours(const struct step_report *report)
{
    return report_days(report) * 24 * report->setup->experiment.gpus;
}

static void assume(struct step_report *report, const char *format, ...) PRINTF_LIKE(2, 3);
static void assume(struct step_report *report, const char *format, ...)
{
    va_list arguments;
    if (report->n_assumptions == (int)(sizeof report->assumptions / sizeof report->assumptions[0]))
        return;
    va_start(arguments, format);
    vsnprintf(report->assumptions[report->n_assumptions++], sizeof report->assumptions[0], format, arguments);
    va_end(arguments);
}

/* Do exchanges inside a layer leave NVLink domains? */
static bool passes_cross(const struct layout *layout, const struct cluster *cluster)
{
    static const enum group_kind inside[] = {GROUP_TP, GROUP_CP, GROUP_EP, GROUP_CP_HEADS};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (layout_span(layout, cluster, inside[i]).domains > 1)
            return true;
    return false;
}

static void assume_routing(struct step_report *report)
{
    const struct expert_load *load = &report->setup->experiment.job.load;
    if (report->setup->experiment.model.moe.experts == 0)
        return;
    if (load->padded)
        assume(report, "every expert works on its capacity, whatever it is sent");
    else if (load->busiest > 1)
        assume(report,
               "loads of experts are gamma variables: a group of expert parallelism has the time of its busiest rank in every "
               "layer, and the memory as if that were the same rank in all of them");
    else
        assume(report, "tokens are routed evenly to all experts");
    if (load->dropped > 0)
        assume(report, "MFU counts what dropped copies of tokens would have taken");
}

/* Replicas wait for the one whose documents are longest, which the step of average ones does not have. */
static void assume_documents(struct step_report *report)
{
    const struct job_setup *setup = report->setup;
    const struct layout *layout = &setup->layout;
    struct packing packing = packing_of(&setup->setting, layout->features);
    double sequences = (double)setup->experiment.job.global_batch / layout->dp;

    if (!packing.skips || packing.pairs <= 0)
        return;
    report->documents_wait_s = packing_longer_s(layout, &setup->setting, packing_slowest(&packing, layout->dp, sequences));
    assume(report,
           "every sequence has an average one's documents: attention of real ones differs by %.0f %% (standard deviation), and "
           "waiting for the replica with most adds about %.1f %% to a step, pipelines more: --replicas draws them",
           100 * packing_variation(&packing), 100 * report->documents_wait_s / report->result->step_time_s);
    if (layout_cp_keys(layout) > 1)
        assume(report,
               "ranks that share a sequence wait for the one in its middle, which has most pairs on average; what single long "
               "documents add is not counted");
}

/* Does the schedule run a forward and a backward pass side by side (model/program/program.h, Pairs)? */
static bool runs_pairs(const struct layout *layout)
{
    return layout->schedule == SCHEDULE_DUALPIPE || layout->schedule == SCHEDULE_DUALPIPEV ||
           (layout->schedule == SCHEDULE_INTERLEAVED && (layout->features & FEATURE_BIT(EP_OVERLAP)));
}

/* What the network is taken to be. */
static void assume_network(struct step_report *report)
{
    const struct layout *layout = &report->setup->layout;
    const struct cluster *cluster = &report->setup->experiment.cluster;

    if (report->flow != NULL)
        assume(report,
               report->flow->packets.wanted
                   ? "packet network: edges of a collective run beside one another and the slowest ends it; headers take no time"
                   : "flow network: rates adapt at once; edges of a collective run beside one another and the slowest ends it");
    if (report->flow != NULL && cluster->nvlink_domain > 1)
        assume(report,
               "collectives inside an NVLink domain keep their closed-form time and count nowhere in the use of its links");
    if (report->flow != NULL && report->detail != DETAIL_KERNEL && passes_cross(layout, cluster))
        assume(report, "exchanges within passes, of experts or of context, keep their closed-form time between nodes too: "
                       "--detail kernel puts them on the links");
    if (report->flow != NULL && layout->ep * layout->ep > ALL_TO_ALL_EDGES)
        assume(report, "all-to-all of groups this large is sampled: fewer, longer transfers collide more");
    if (report->flow == NULL)
        assume(report, "analytic network: messages and collectives do not slow one another down beyond what their group shares");
    char narrow[OVERSUBSCRIBED_TEXT];
    if (report->flow == NULL && oversubscribed_text(layout, cluster, narrow, sizeof narrow) > 0)
        assume(report, "%s", narrow);
}

/* What is left out kernel by kernel, and what counts by chunk and layer alone. */
static void assume_detail(struct step_report *report)
{
    const struct layout *layout = &report->setup->layout;
    const struct experiment *experiment = &report->setup->experiment;
    bool by_kernel = report->detail == DETAIL_KERNEL;
    if (by_kernel && !(layout->features & FEATURE_BIT(CUDA_GRAPHS)))
        assume(report, "kernel by kernel the host is taken to enqueue in time; by chunk and layer its pace and its pauses count");
    if (by_kernel && runs_pairs(layout))
        assume(report,
               "kernel by kernel the two passes of a pair (%s) follow one another and hide nothing of each other's exchanges; "
               "by chunk and layer they do, so this step is the longer",
               layout->schedule == SCHEDULE_INTERLEAVED ? "ep_overlap" : schedule_name(layout->schedule));
    if (!by_kernel && layout_checkpoints_in_python(layout, &experiment->model) && experiment->cluster.gpu.host_pause_s > 0)
        assume(report,
               "Python collects the objects of its checkpoints now and then, and a replica waits for each of its ranks that "
               "does: host_pause a layer and rank, among the host's time");
}

void step_report_complete(struct step_report *report)
{
    const struct job *job = &report->setup->experiment.job;
    const struct transformer *model = &report->setup->experiment.model;
    const struct layout *layout = &report->setup->layout;

    report->capacity_bytes = footprint_capacity(&report->setup->experiment.cluster);
    if ((layout->features & FEATURE_BIT(SLIDING_WINDOW)) && job->window == 0 && model->window == 0)
        assume(report, "no sliding-window width is given or published: 3/8 of the sequence");
    bool spread = report->setup->experiment.cluster.gpu.clock_spread > 0;
    const char *pace = spread ? ", every GPU as fast as the slowest is expected to be" : ", no jitter";
    if (report->folded)
        assume(report, "ranks of one stage behave alike: no stragglers%s; one rank per stage is simulated", pace);
    else
        assume(report, "all GPUs and links are equally fast: no stragglers%s", pace);
    assume_network(report);
    if (job_masks_documents(job))
        assume_documents(report);
    if (job_adapts(job))
        assume(report,
               "adapters: both matrices divided as Megatron-Bridge does it; no dropout before them; the first layer's input "
               "has a gradient, as others");
    if (job_adapts(job) && job->adapter.whole)
        assume(report, "of what is trained whole the frozen original that peft keeps beside its copy, 2 bytes a parameter, is "
                       "not counted");
    assume_routing(report);
    if (footprint_shards_gradients_in_turn(layout, &report->setup->setting))
        assume(report,
               "zero=2 with one round of micro-batches: a chunk's gradients, whose backward passes follow one another, are "
               "sharded behind the last of them, and those of two chunks are whole at the most (as Llama 3 was trained; "
               "Megatron-LM's distributed optimizer keeps all whole: zero=1)");
    else if (layout->zero == 2 && layout->pp > 1)
        assume(report, "zero=2 with a pipeline is charged like zero=1: gradients of the micro-batches add up "
                       "whole until the step ends (DeepSpeed's pipeline engine refuses it, Megatron-LM's distributed optimizer "
                       "is zero=1)");
    assume_detail(report);
    if (!offload_is_none(&layout->offload))
        assume(report, "copies to and from the host reach %g of their link, and take nothing from what runs beside them",
               HOST_LINK_FRACTION);
    if (layout_offloads(layout, OFFLOAD_OPTIMIZER) && report->setup->experiment.cluster.host_memory_rate <= 0)
        assume(report, "the bandwidth of the host's memory is unknown (host_memory_rate): as a DGX A100's, %g GB/s a GPU",
               HOST_MEMORY_RATE_UNKNOWN / 1e9);
    assume(report, "the input batch is ready when the step begins: data loading costs no time");
    assume(report, "MFU and HFU are relative to the dense peak of the job's precision");
}

/* ---- text */

void step_report_header(const struct job_setup *setup, FILE *out)
{
    const struct experiment *e = &setup->experiment;
    const struct layout *layout = &setup->layout;
    char gpus[32], batch[32], text[LAYOUT_TEXT];

    fprintf(out, "%s on %s x %s (%s)\n", e->model.name, grouped(e->gpus, gpus, sizeof gpus), e->cluster.gpu.name,
            e->cluster.name);
    fprintf(out, "layout   %s%s\n", layout_format(layout, text, sizeof text), setup->chosen ? "  (chosen)" : "");
    int64_t micro_batches = layout_micro_batches(layout, &e->job);
    fprintf(out, "batch    %s x %" PRId64 " tokens, %s, %" PRId64 " micro-batch%s of %d per replica\n",
            grouped(e->job.global_batch, batch, sizeof batch), e->job.seq_len, precision_name(e->job.precision), micro_batches,
            micro_batches == 1 ? "" : "es", layout->micro_batch);
    trained_write(&setup->setting, layout->features, out);
    routing_write(&setup->setting, out);
    packed_write(&setup->setting, layout->features, out);
    fputs("features ", out);
    for (int f = 0, n = 0; f < N_FEATURES; f++)
        if (layout->features >> f & 1u)
            fprintf(out, "%s%s", n++ ? ", " : "", feature_name(f));
    fprintf(out, "%s\n\n", layout->features ? "" : "none");
}

/* How long runs of this kind took for such a prediction. */
static void write_expectation(const struct step_report *report, FILE *out)
{
    const struct setting *setting = &report->setup->setting;
    const struct layout *layout = &report->setup->layout;
    const struct track_record *record = track_record_of(run_kind_of(layout, setting->model));
    char low[32], high[32];

    fprintf(out, "likely   %s to %s: as ", quantity_format(report->result->step_time_s * record->low, DIM_TIME, low, sizeof low),
            quantity_format(report->result->step_time_s * record->high, DIM_TIME, high, sizeof high));
    expectation_write_runs(layout, setting, out);
    fputc('\n', out);
}

/* Of a budget: at most so much energy, drawn at most at such a power. */
static void write_energy(const struct step_report *report, FILE *out)
{
    const struct power_bound bound = power_bound_published(&report->setup->experiment.cluster, report->setup->experiment.gpus);
    double watts = bound.gpu_w * report->setup->experiment.gpus;
    char energy[48], power[32], token[32], counted[BOUND_TEXT];

    if (bound.count != POWER_UNKNOWN)
        fprintf(out, "energy   at most %s, %s, %s J a token: an upper bound, %s\n",
                energy_text(power_bound_energy(&bound, report_gpu_hours(report)), energy, sizeof energy),
                quantity_format(watts, DIM_POWER, power, sizeof power),
                three_digits(watts / report->result->tokens_per_s, token, sizeof token),
                power_bound_text(&bound, counted, sizeof counted));
}

void step_report_write_budget(const struct step_report *report, FILE *out)
{
    char hours[32], tokens[32], days[48], cost[48] = "", money[32];
    double said = report_days(report);

    if (said <= 0)
        return;
    if (report->gpu_price > 0)
        snprintf(cost, sizeof cost, ", which cost %s",
                 grouped((int64_t)(report->gpu_price * report_gpu_hours(report) + 0.5), money, sizeof money));
    fprintf(out, "budget   %s tokens take %s, %s GPU-hours%s\n",
            quantity_format(report->setup->experiment.job.tokens, DIM_COUNT, tokens, sizeof tokens),
            days_text(said, days, sizeof days), gpu_hours_text(report_gpu_hours(report), hours, sizeof hours), cost);
    write_energy(report, out);
}

static void write_summary(const struct step_report *report, const struct invocation *call)
{
    const struct step_result *r = report->result;
    char time[32], rate[32];
    FILE *out = call->out;

    fprintf(out, "step     %s%s%s   %s tokens/s\n", tint_start(TINT_STRONG, call->colour),
            quantity_format(r->step_time_s, DIM_TIME, time, sizeof time), tint_end(TINT_STRONG, call->colour),
            quantity_format(r->tokens_per_s, DIM_COUNT, rate, sizeof rate));
    write_expectation(report, out);
    fprintf(out, "MFU      %s%.1f %%%s (attention counted in full), %.1f %% (causal half)", tint_start(TINT_STRONG, call->colour),
            r->mfu * 100, tint_end(TINT_STRONG, call->colour), r->mfu_causal * 100);
    if (job_masks_documents(&report->setup->experiment.job))
        fprintf(out, ", %.1f %% (within documents)", r->mfu_masked * 100);
    fputc('\n', out);
    fprintf(out, "HFU      %.1f %%, %.1f %%\n", r->hfu * 100, r->hfu_causal * 100);
    const struct plan_rates rates = plan_rates_of(&report->setup->layout, &report->setup->setting, r->step_time_s);
    fputs("rates    ", out);
    plan_rates_write(&rates, out);
    fputc('\n', out);
    step_report_write_budget(report, out);
    fputc('\n', out);
}

static void bar(double fraction, char *buffer, size_t size)
{
    size_t n = fraction > 0 ? (size_t)(fraction * 40 + 0.5) : 0;

    if (n >= size)
        n = size - 1;
    memset(buffer, '#', n);
    buffer[n] = '\0';
}

static void write_breakdown(const struct step_report *report, const struct invocation *call)
{
    const struct step_result *r = report->result;
    struct table table = {0};
    char line[48];

    table_column(&table, "where the time goes", NULL, ALIGN_LEFT);
    table_column(&table, "time", "s", ALIGN_RIGHT);
    table_column(&table, "share", "%", ALIGN_RIGHT);
    table_column(&table, "", NULL, ALIGN_LEFT);
    for (int c = 0; c < N_WORK_CLASSES; c++) {
        double share = r->step_time_s > 0 ? r->breakdown.s[c] / r->step_time_s : 0;
        if (r->breakdown.s[c] == 0)
            continue;
        bar(share, line, sizeof line);
        table_cell(&table, "%s", work_class_name(c));
        table_cell(&table, "%.4f", r->breakdown.s[c]);
        table_cell(&table, "%.2f", share * 100);
        table_cell(&table, "%s", line);
    }
    table_cell(&table, "step");
    table_cell(&table, "%.4f", r->step_time_s);
    table_cell(&table, "%.2f", 100.0);
    table_cell(&table, "%s", "");
    table_write_text(&table, call);
    table_free(&table);
    fputs("(mean over ranks; communication is the part that nothing hides)\n\n", call->out);
}

/* Classes down, stages across would be wide: one row per stage, the classes that occur as columns. */
static void write_stages(const struct step_report *report, const struct invocation *call)
{
    struct table table = {0};

    table_column(&table, "stage", NULL, ALIGN_RIGHT);
    for (int c = 0; c < N_WORK_CLASSES; c++)
        if (report->result->breakdown.s[c] > 0)
            table_column(&table, work_class_name(c), "s", ALIGN_RIGHT);
    table_column(&table, "memory", "GiB", ALIGN_RIGHT);
    for (int i = 0; i < report->stages->n_stages; i++) {
        struct cost_by_class mean = breakdown_mean(report->stages, i);
        struct footprint memory;
        footprint_of_stage(&report->setup->layout, &report->setup->setting, i, &memory);
        table_cell(&table, "%d", i);
        for (int c = 0; c < N_WORK_CLASSES; c++)
            if (report->result->breakdown.s[c] > 0)
                table_cell(&table, "%.4f", mean.s[c]);
        table_cell(&table, "%.2f", memory.total / GIB);
    }
    table_write_text(&table, call);
    table_free(&table);
    fputc('\n', call->out);
}

/* Where the prediction alone does not decide whether the layout runs. */
static void write_memory_expectation(const struct step_report *report, FILE *out)
{
    double use = report->result->memory.total / report->capacity_bytes, share = memory_record_share(use);

    if (share < SHARE_WORTH_TELLING || share > 1 - SHARE_WORTH_TELLING)
        return;
    fprintf(out, "  at %.0f %% of the memory %.0f in 100 run out of it, by ", 100 * use, 100 * share);
    expectation_write_outcomes(&report->setup->layout, &report->setup->setting, out);
    fputc('\n', out);
}

static void write_host_memory(const struct step_report *report, FILE *out)
{
    double host = report_host_capacity(report);

    fprintf(out, "memory of the host, a rank: %.1f GiB of ", report->result->memory.host / GIB);
    if (host > 0)
        fprintf(out, "%.1f GiB%s\n", host / GIB, report_host_fits(report) ? "" : ": too much");
    else
        fputs("an unknown size (host_memory)\n", out);
}

static void write_too_large(const struct step_report *report, const struct invocation *call)
{
    if (report_fits(report))
        return;
    fprintf(call->out,
            "%sThis layout does not fit: it needs %.1f GiB more than a GPU has. The times are what it would take if it did; "
            "msim plan looks for one that does.%s\n",
            tint_start(TINT_BAD, call->colour), (report->result->memory.total - report->capacity_bytes) / GIB,
            tint_end(TINT_BAD, call->colour));
}

void step_report_write_misfit(const struct step_report *report, const struct invocation *call)
{
    if (!report_host_fits(report))
        write_host_memory(report, call->out);
    write_too_large(report, call);
}

static void write_memory(const struct step_report *report, const struct invocation *call)
{
    const struct step_result *r = report->result;
    struct memory_part parts[N_MEMORY_PARTS];
    double capacity = report->capacity_bytes;
    FILE *out = call->out;

    memory_parts(&r->memory, parts);
    fprintf(out, "memory of the fullest stage (%d): %.1f of %.1f GiB\n ", r->memory_stage, r->memory.total / GIB, capacity / GIB);
    for (int i = 0; i < N_MEMORY_PARTS; i++)
        fprintf(out, "%s %s %.2f", i ? "," : "", parts[i].name, parts[i].bytes / GIB);
    fputc('\n', out);
    write_memory_expectation(report, out);
    if (!offload_is_none(&report->setup->layout.offload))
        write_host_memory(report, out);
    write_too_large(report, call);
    fputc('\n', out);
}

/* Wall time goes to stderr: what is written to a file is the same every time. */
static void talk_about_cost(const struct step_report *report, const struct invocation *call)
{
    const struct step_result *r = report->result;
    char events[32], actors[32];

    talk(call, 0, "simulated %s rank%s, %s operations in %.3f s (%.3g M/s)", grouped(r->actors, actors, sizeof actors),
         r->actors == 1 ? "" : "s", grouped((int64_t)r->events, events, sizeof events), r->seconds,
         r->seconds > 0 ? (double)r->events / r->seconds / 1e6 : 0);
}

static void write_end(const struct step_report *report, FILE *out)
{
    static const char *const details[] = {"chunk", "layer", "kernel"};
    char actors[32];
    bool stand = report->flow != NULL && report->result->actors < report->setup->experiment.gpus;

    fprintf(out, "simulated: %s rank%s%s, one operation per %s\nassumed:\n",
            grouped(report->result->actors, actors, sizeof actors), report->result->actors == 1 ? "" : "s",
            stand ? " that the others are provably like" : "", details[report->detail]);
    for (int i = 0; i < report->n_assumptions; i++)
        fprintf(out, "  - %s\n", report->assumptions[i]);
}

static void write_text(const struct step_report *report, const struct invocation *call)
{
    step_report_header(report->setup, call->out);
    write_summary(report, call);
    write_breakdown(report, call);
    routing_write_waiting(&report->setup->setting, &report->setup->layout, call->out);
    if (call->verbosity > 0)
        write_stages(report, call);
    write_memory(report, call);
    if (report->profile != NULL)
        step_profile_write(report->profile, call);
    if (report->flow != NULL)
        step_flow_write(report->flow, call);
    if (report->program != NULL)
        step_explain(report->setup, report->program, call);
    write_end(report, call->out);
}

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
        json_array_append_new(array, json_string(report->assumptions[i]));
    return array;
}

void step_report_put_size(const struct step_report *report, json_t *result)
{
    json_object_set_new(result, "tokens_per_s", json_real(report->result->tokens_per_s));
    if (report_days(report) > 0) {
        json_object_set_new(result, "days", json_real(report_days(report)));
        json_object_set_new(result, "gpu_hours", json_real(report_gpu_hours(report)));
        if (report->gpu_price > 0)
            json_object_set_new(result, "cost", json_real(report->gpu_price * report_gpu_hours(report)));
    }
    const struct power_bound bound = power_bound_published(&report->setup->experiment.cluster, report->setup->experiment.gpus);
    json_object_set_new(
        result, "energy_at_most",
        energy_json(&bound, report->setup->experiment.gpus, report_gpu_hours(report), report->result->tokens_per_s));
    json_object_set_new(result, "memory_gib", json_real(report->result->memory.total / GIB));
    json_object_set_new(result, "memory_capacity_gib", json_real(report->capacity_bytes / GIB));
    json_object_set_new(result, "fits", json_boolean(step_report_runs(report)));
    if (!offload_is_none(&report->setup->layout.offload)) {
        json_object_set_new(result, "host_memory_gib", json_real(report->result->memory.host / GIB));
        json_object_set_new(result, "host_memory_capacity_gib", json_real(report_host_capacity(report) / GIB));
    }
}

static enum status write_json(const struct step_report *report, struct invocation *call)
{
    const struct step_result *r = report->result;
    char *config = experiment_to_json(&report->setup->experiment);
    json_t *result = result_create(call, config);

    free(config);
    json_object_set_new(result, "layout", layout_json(&report->setup->layout));
    json_object_set_new(result, "features", features_json(report->setup->layout.features));
    trained_json(&report->setup->setting, report->setup->layout.features, result);
    packed_json(&report->setup->setting, report->setup->layout.features, result);
    json_object_set_new(result, "layout_chosen", json_boolean(report->setup->chosen));
    json_object_set_new(result, "step_time_s", json_real(r->step_time_s));
    json_object_set_new(result, "likely", expectation_json(&report->setup->layout, &report->setup->setting, r->step_time_s));
    json_object_set_new(result, "mfu_pct", json_real(r->mfu * 100));
    json_object_set_new(result, "hfu_pct", json_real(r->hfu * 100));
    json_object_set_new(result, "mfu_causal_pct", json_real(r->mfu_causal * 100));
    json_object_set_new(result, "hfu_causal_pct", json_real(r->hfu_causal * 100));
    const struct plan_rates rates = plan_rates_of(&report->setup->layout, &report->setup->setting, r->step_time_s);
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
    routing_json(&report->setup->setting, &report->setup->layout, result);
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

/* ---- CSV: one row, so that results of several calls can be put under one another */

static void write_csv(const struct step_report *report, const struct invocation *call)
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

enum status step_report_write(const struct step_report *report, struct invocation *call)
{
    talk_about_cost(report, call);
    if (call->format == FORMAT_JSON)
        return write_json(report, call);
    if (call->format == FORMAT_CSV)
        write_csv(report, call);
    else
        write_text(report, call);
    return STATUS_OK;
}
