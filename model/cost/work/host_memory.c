#include "model/cost/work/host_memory.h"

#include <math.h>

#include "model/cost/work/precision_bytes.h"

/* Achieved fraction of the nominal bandwidth of a node's memory. CPU-Adam takes 0.22, 0.51, 1.03, 2.41 and 2.57 s for 1, 2, 4,
 * 8 and 10 billion parameters on two Xeon Platinum 8168 with twelve channels of DDR4-2666, 256 GB/s (ZeRO-Offload,
 * arXiv:2101.06840, tables 2 and 4): fractions 0.53, 0.46, 0.46, 0.39 and 0.46; this is the median. */
#define HOST_UPDATE_FRACTION 0.46

/* Gradients are widened to fp32 for the update. */
#define HOST_GRADIENT_BYTES 4.0

/* GPUs behind one switch where a cluster does not say: DGX-1 to DGX B200. */
enum { GPUS_PER_PCIE_SWITCH = 2 };

static int ranks_of_node(const struct cluster *cluster, const struct layout *layout)
{
    int64_t ranks = (int64_t)layout->tp * layout->cp * layout->dp * layout->pp;
    return ranks < cluster->gpus_per_node ? (int)ranks : cluster->gpus_per_node;
}

double host_link_rate(const struct cluster *cluster, const struct layout *layout)
{
    const struct gpu *gpu = &cluster->gpu;
    if (gpu->host_rate > 0)
        return gpu->host_rate * HOST_LINK_FRACTION;
    double behind = cluster->pcie_switches > 0 ? (double)cluster->gpus_per_node / cluster->pcie_switches : GPUS_PER_PCIE_SWITCH;
    double root = cluster->pcie_root_rate > 0 ? cluster->pcie_root_rate : gpu->pcie_rate;
    double sharing = fmax(1, fmin(behind, ranks_of_node(cluster, layout)));
    return fmin(gpu->pcie_rate, root / sharing) * HOST_LINK_FRACTION;
}

double host_nominal_rate(double rate)
{
    return rate / HOST_LINK_FRACTION;
}

double host_update_rate(const struct cluster *cluster, const struct layout *layout)
{
    double node = cluster->host_memory_rate > 0 ? cluster->host_memory_rate : HOST_MEMORY_RATE_UNKNOWN * cluster->gpus_per_node;
    return node * HOST_UPDATE_FRACTION / ranks_of_node(cluster, layout);
}

double host_nominal_memory_rate(double rate, int ranks)
{
    return rate * ranks / HOST_UPDATE_FRACTION;
}

double host_capacity(const struct cluster *cluster, const struct layout *layout)
{
    return cluster->host_memory / ranks_of_node(cluster, layout);
}

double optimizer_state_bytes(const struct job *job)
{
    return 4 + optimizer_moments(job->optimizer) * precision_bytes(job->moment_precision);
}

double host_weight_bytes(const struct job *job)
{
    return job->precision == PRECISION_FP32 ? 0 : 2;
}

double host_parameter_bytes(const struct job *job)
{
    return optimizer_state_bytes(job) + HOST_GRADIENT_BYTES + host_weight_bytes(job);
}

double offloaded_weight_bytes(const struct job *job)
{
    return job->precision == PRECISION_FP32 ? 4 : 2;
}

int32_t work_add_copy(struct work_table *table, const char *label, double bytes)
{
    return work_add(table, (struct work){.kind = WORK_COPY, .class = CLASS_HOST, .label = label, .host = {.bytes = bytes}});
}

/* LAMB goes through its update once more for its norms. */
double host_update_bytes(const struct job *job)
{
    double again = job->optimizer == OPTIMIZER_LAMB ? 8 : 0;
    return 2 * optimizer_state_bytes(job) + again + HOST_GRADIENT_BYTES + offloaded_weight_bytes(job);
}

int32_t work_add_host_update(struct work_table *table, const struct setting *setting, double parameters)
{
    double each = host_update_bytes(setting->job);
    struct work work = {
        .kind = WORK_HOST_UPDATE, .class = CLASS_OPTIMIZER, .label = "host_update", .host = {.bytes = parameters * each}};
    return work_add(table, work);
}

struct cost copy_cost(const struct cluster *cluster, const struct layout *layout, double bytes)
{
    return (struct cost){.bandwidth_s = bytes / host_link_rate(cluster, layout)};
}

struct cost host_update_cost(const struct cluster *cluster, const struct layout *layout, double bytes)
{
    return (struct cost){.memory_s = bytes / host_update_rate(cluster, layout)};
}
