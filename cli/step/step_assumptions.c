/* What the prediction of a step takes for granted, in sentences: of the network, of documents, of routing, of the layout. */
#include <stdarg.h>

#include "cli/step/step_report.h"
#include "model/cost/step/packing.h"
#include "model/cost/work/host_memory.h"
#include "sim/network/collective_flows.h"

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
        assume(report, "analytic network: groups of one kind share links, and pipeline messages share NICs with data-parallel "
                       "exchanges; other contention is ignored");
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
    const char *pace = spread ? ", every GPU at the expected speed of the slowest" : ", no jitter";
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
