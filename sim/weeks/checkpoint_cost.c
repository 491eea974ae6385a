#include "sim/weeks/checkpoint_cost.h"

#include <math.h>

#include "model/cost/memory/footprint.h"
#include "model/cost/work/adapter.h"
#include "model/cost/work/precision_bytes.h"

enum { GPUS_PER_PCIE_SWITCH = 2 };

/* Bytes of the optimizer state of `parameters` parameters: an fp32 master copy and the moments; Muon's matrices have one moment.
 */
static double optimizer_bytes(const struct setting *setting, double parameters)
{
    struct muon_matrices matrices = muon_matrices_of_model(setting);
    struct stage_parameters muon = muon_parameters(&matrices);
    double one_moment = fmin(parameters, muon.dense + muon.experts);
    return muon_state_bytes(setting, (struct muon_updated){parameters, one_moment});
}

static double node_rate(const struct cluster *cluster)
{
    double rate = cluster->nics_per_node * cluster->nic_rate * cluster->net_fraction;
    return rate > 0 ? rate : cluster->gpu.pcie_rate;
}

/* B/s between each GPU of a node and host memory while all GPUs transfer. */
static double host_memory_rate(const struct gpu *gpu)
{
    return gpu->host_rate > 0 ? gpu->host_rate : gpu->pcie_rate / GPUS_PER_PCIE_SWITCH;
}

/* The job with the precision of its saved state: casts to narrow precision are recomputed, not saved. */
static struct job saved_job(const struct job *job)
{
    struct job saved = *job;
    if (precision_is_narrow(job->precision))
        saved.precision = PRECISION_BF16;
    return saved;
}

void checkpoint_cost_of(const struct layout *layout, const struct setting *trained, double storage_rate,
                        struct checkpoint_cost *cost)
{
    const struct cluster *cluster = trained->cluster;
    const struct job job = saved_job(trained->job);
    const struct setting saved = {.model = trained->model, .cluster = cluster, .job = &job, .gpus = trained->gpus};
    const struct setting *setting = &saved;
    struct parameter_count count;
    struct footprint memory;
    struct layout on_gpu = *layout; /* offloading does not change what is saved */
    on_gpu.offload = (struct offload){.of = {{0}}};
    transformer_parameters(setting->model, &count);
    const struct adapted_model adapted = adapted_model_of(setting, layout->features);
    double parameters = job_adapts(&job) ? adapted.trained : count.total;
    footprint_peak(&on_gpu, setting, &memory, NULL);
    double storage = storage_rate > 0 ? storage_rate : cluster->storage_rate > 0 ? cluster->storage_rate : UNKNOWN_STORAGE;
    double nodes = ceil((double)setting->gpus / cluster->gpus_per_node);
    double node_gpus = fmin(cluster->gpus_per_node, setting->gpus);
    *cost = (struct checkpoint_cost){.total_bytes = parameters * precision_bytes(setting->job->precision) +
                                                    optimizer_bytes(setting, parameters),
                                     .rank_bytes = memory.weights - memory.frozen + memory.optimizer};
    cost->base_bytes = job_adapts(&job) ? (adapted.total - adapted.trained) * precision_bytes(job.precision) : 0;
    storage = fmin(storage, nodes * node_rate(cluster));
    double there = offload_share(&layout->offload, OFFLOAD_OPTIMIZER) * memory.optimizer +
                   offload_share(&layout->offload, OFFLOAD_PARAMETERS) * memory.weights; /* already in the host's memory */
    cost->snapshot_s = (cost->rank_bytes - there) / host_memory_rate(&cluster->gpu);
    cost->storage_s = cost->total_bytes / storage;
    cost->neighbour_s = cost->rank_bytes * node_gpus / node_rate(cluster);
    double placed = memory.frozen / host_memory_rate(&cluster->gpu);
    cost->base_s = cost->base_bytes / storage + memory.frozen * node_gpus / node_rate(cluster) + placed;
    cost->load_all_s = (cost->rank_bytes + memory.frozen) * setting->gpus / storage + cost->snapshot_s + placed;
    cost->load_broadcast_s = cost->storage_s + cost->neighbour_s + cost->snapshot_s + cost->base_s;
    cost->load_memory_s = cost->neighbour_s + cost->snapshot_s + cost->base_s;
}

void checkpoint_cost_apply(const struct checkpoint_cost *cost, struct checkpoint_policy *policy)
{
    double block = policy->kind == CHECKPOINT_BLOCKING ? fmax(cost->snapshot_s, cost->storage_s) : cost->snapshot_s;
    policy->block = nanos_from_seconds(block);
    policy->persist = nanos_from_seconds(policy->kind == CHECKPOINT_TWO_STAGE ? cost->storage_s : cost->neighbour_s);
    policy->write = nanos_from_seconds(cost->storage_s);
}
