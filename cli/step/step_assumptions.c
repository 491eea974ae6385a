/* What the prediction of a step takes for granted, in sentences: of the network, of documents, of routing, of the layout. */
#include <stdarg.h>

#include "cli/step/step_record.h"
#include "model/cost/step/packing.h"
#include "model/cost/work/host_memory.h"
#include "sim/network/collective_flows.h"

static void assume(struct step_record *record, const char *format, ...) PRINTF_LIKE(2, 3);
static void assume(struct step_record *record, const char *format, ...)
{
    va_list arguments;
    if (record->n_assumptions == (int)(sizeof record->assumptions / sizeof record->assumptions[0]))
        return;
    va_start(arguments, format);
    vsnprintf(record->assumptions[record->n_assumptions++], sizeof record->assumptions[0], format, arguments);
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

static void assume_routing(struct step_record *record)
{
    const struct expert_load *load = &record->setup->experiment.job.load;
    if (record->setup->experiment.model.moe.experts == 0)
        return;
    if (load->padded)
        assume(record, "each expert computes its full capacity, even if it receives fewer tokens");
    else if (load->busiest > 1)
        assume(record,
               "loads of experts follow a gamma distribution; in each layer, expert-parallel ranks wait for the busiest one; the "
               "memory is that of a rank that is the busiest in all layers");
    else
        assume(record, "tokens are routed evenly to all experts");
    if (load->dropped > 0)
        assume(record, "MFU also counts the FLOPs of dropped token copies");
}

/* Replicas wait for the one whose documents are longest, which the step of average ones does not have. */
static void assume_documents(struct step_record *record)
{
    const struct job_setup *setup = record->setup;
    const struct layout *layout = &setup->layout;
    struct packing packing = packing_of(&setup->setting, layout->features);
    double sequences = (double)setup->experiment.job.global_batch / layout->dp;

    if (!packing.skips || packing.pairs <= 0)
        return;
    record->documents_wait_s = packing_longer_s(layout, &setup->setting, packing_slowest(&packing, layout->dp, sequences));
    assume(
        record,
        "each sequence has average documents; the attention of real sequences differs by %.0f %% (standard deviation); waiting "
        "for the replica with the most attention adds about %.1f %% to a step, and more in a pipeline; --replicas simulates "
        "this",
        100 * packing_variation(&packing), 100 * record->documents_wait_s / record->result->step_time_s);
    if (layout_cp_keys(layout) > 1)
        assume(record,
               "ranks that share a sequence wait for the rank in its middle, which has the most attention pairs on average; the "
               "additional wait for single long documents is not counted");
}

/* Does the schedule run a forward and a backward pass side by side (model/program/program.h, Pairs)? */
static bool runs_pairs(const struct layout *layout)
{
    return layout->schedule == SCHEDULE_DUALPIPE || layout->schedule == SCHEDULE_DUALPIPEV ||
           (layout->schedule == SCHEDULE_INTERLEAVED && (layout->features & FEATURE_BIT(EP_OVERLAP)));
}

/* What the network is taken to be. */
static void assume_network(struct step_record *record)
{
    const struct layout *layout = &record->setup->layout;
    const struct cluster *cluster = &record->setup->experiment.cluster;

    if (record->flow != NULL)
        assume(record, record->flow->packets.wanted ? "packet network: the transfers of a collective run at the same time, and "
                                                      "the slowest ends it; headers take no time"
                                                    : "flow network: rates adapt at once; the transfers of a collective run at "
                                                      "the same time, and the slowest ends it");
    if (record->flow != NULL && cluster->nvlink_domain > 1)
        assume(record,
               "collectives inside an NVLink domain keep their closed-form time; the use of NVLink does not include them");
    if (record->flow != NULL && record->detail != DETAIL_KERNEL && passes_cross(layout, cluster))
        assume(record, "exchanges inside passes (tensor, context, expert) keep their closed-form time, also between nodes; "
                       "--detail kernel puts them on the links");
    if (record->flow != NULL && layout->ep * layout->ep > ALL_TO_ALL_EDGES)
        assume(record, "large all-to-alls are sampled: they have fewer, longer transfers, which collide more often");
    if (record->flow == NULL)
        assume(record, "analytic network: groups of one kind share links, and pipeline messages share NICs with data-parallel "
                       "exchanges; other contention is ignored");
    char narrow[OVERSUBSCRIBED_TEXT];
    if (record->flow == NULL && oversubscribed_text(layout, cluster, narrow, sizeof narrow) > 0)
        assume(record, "%s", narrow);
}

/* What is left out kernel by kernel, and what counts by chunk and layer alone. */
static void assume_detail(struct step_record *record)
{
    const struct layout *layout = &record->setup->layout;
    const struct experiment *experiment = &record->setup->experiment;
    bool by_kernel = record->detail == DETAIL_KERNEL;
    if (by_kernel && !(layout->features & FEATURE_BIT(CUDA_GRAPHS)))
        assume(record, "with --detail kernel the host never delays the GPU; with chunk or layer it can");
    if (by_kernel && runs_pairs(layout))
        assume(record,
               "with --detail kernel the two passes of a pair (%s) run one after the other and do not hide each other's "
               "exchanges; with chunk or layer they do, and the step is shorter",
               layout->schedule == SCHEDULE_INTERLEAVED ? "ep_overlap" : schedule_name(layout->schedule));
    if (!by_kernel && layout_checkpoints_in_python(layout, &experiment->model) && experiment->cluster.gpu.host_pause_s > 0)
        assume(record,
               "Python's garbage collection pauses a rank from time to time, and the replica waits for it: host_pause per layer "
               "and rank, as part of the host's time");
}

void step_assume(struct step_record *record)
{
    const struct job *job = &record->setup->experiment.job;
    const struct transformer *model = &record->setup->experiment.model;
    const struct layout *layout = &record->setup->layout;

    if ((layout->features & FEATURE_BIT(SLIDING_WINDOW)) && job->window == 0 && model->window == 0)
        assume(record, "the width of the sliding window is unknown; 3/8 of the sequence is assumed");
    bool spread = record->setup->experiment.cluster.gpu.clock_spread > 0;
    assume(record, spread ? "no stragglers; each GPU runs at the expected speed of the slowest"
                          : "no stragglers and no jitter: all GPUs are equally fast");
    if (record->folded)
        assume(record, "ranks of one stage behave alike, so one rank per stage is simulated");
    assume_network(record);
    if (job_masks_documents(job))
        assume_documents(record);
    if (job_adapts(job))
        assume(record,
               "adapters: both matrices are split as in Megatron-Bridge; no dropout before them; the first layer computes the "
               "gradient of its input, as the others do");
    if (job_adapts(job) && job->adapter.whole)
        assume(record, "modules trained in full: the frozen copy that peft keeps, 2 bytes per parameter, is not counted");
    assume_routing(record);
    if (footprint_shards_gradients_in_turn(layout, &record->setup->setting))
        assume(record,
               "zero=2 with one round of micro-batches: the gradients of a chunk are sharded after its last backward pass, so at "
               "most two chunks hold whole gradients (as in the training of Llama 3; Megatron-LM's distributed optimizer keeps "
               "all whole: zero=1)");
    else if (layout->zero == 2 && layout->pp > 1)
        assume(record, "zero=2 with a pipeline costs as much as zero=1: gradients stay whole until the step ends (DeepSpeed's "
                       "pipeline engine refuses this combination; Megatron-LM's distributed optimizer is zero=1)");
    assume_detail(record);
    if (!offload_is_none(&layout->offload))
        assume(record, "copies to and from the host reach %g of the bandwidth of their link, and do not slow down other work",
               HOST_LINK_FRACTION);
    if (layout_offloads(layout, OFFLOAD_OPTIMIZER) && record->setup->experiment.cluster.host_memory_rate <= 0)
        assume(record, "the bandwidth of host memory (host_memory_rate) is unknown; %g GB/s per GPU is assumed, as on a DGX A100",
               HOST_MEMORY_RATE_UNKNOWN / 1e9);
    assume(record, "data loading costs no time: the input batch is ready when the step begins");
    assume(record, "MFU and HFU are relative to the dense peak of the job's precision");
}
