#include "cli/fabric/fabric_import.h"

#include <string.h>

#include "cli/options/shared_options.h"
#include "model/spec/catalog.h"
#include "traces/topology/topology.h"

/* The usual GPU of a compute capability, or of AMD's name of an architecture; NULL: none is. */
static const char *gpu_of(const struct topology_seen *t)
{
    static const struct {
        int sm;
        const char *gcn, *gpu;
    } usual[] = {{70, "", "v100-32g-sxm"}, {75, "", "t4"},          {80, "", "a100-80g-sxm"}, {86, "", "a10"},
                 {89, "", "l40s"},         {90, "", "h100-sxm"},    {100, "", "b200"},        {103, "", "b300"},
                 {0, "gfx90a", "mi250x"},  {0, "gfx942", "mi300x"}, {0, "gfx950", "mi355x"}};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if ((t->sm > 0 && usual[i].sm == t->sm) || (*t->gcn && strcmp(usual[i].gcn, t->gcn) == 0))
            return usual[i].gpu;
    return NULL;
}

/* The GPU of --gpu, of the base, or the usual one of what NCCL saw. */
static enum status find_gpu(struct invocation *call, const struct topology_seen *t, const char **name, struct gpu *gpu)
{
    const char *base = option_text(call, "cluster");
    struct cluster cluster;
    *name = option_text(call, "gpu");
    if (*name)
        return catalog_gpu(*name, gpu, &call->diags);
    if (base) {
        enum status status = catalog_cluster(base, &cluster, &call->diags);
        *gpu = cluster.gpu;
        return status;
    }
    *name = gpu_of(t);
    if (!*name) {
        diag_error(&call->diags, PLACE_NONE,
                   "%s does not say which GPUs these are; specify --gpu NAME, or --cluster NAME for an entry to change",
                   t->source);
        return STATUS_USAGE;
    }
    diag_note(&call->diags, PLACE_NONE, "msim assumes GPU %s, the usual one of %s%d%s; --gpu names another", *name,
              t->sm ? "compute capability " : "", t->sm ? t->sm : 0, t->sm ? "" : t->gcn);
    return catalog_gpu(*name, gpu, &call->diags);
}

static void write_integer(FILE *out, const char *key, int value, const char *why)
{
    if (value > 0)
        fprintf(out, "%s: %d%s%s\n", key, value, *why ? " # " : "", why);
}

static void write_rate(FILE *out, const char *key, double rate, const char *unit, double size)
{
    if (rate > 0)
        fprintf(out, "%s: %.6g%s\n", key, rate / size, unit);
}

static void write_node(const struct topology_seen *t, FILE *out)
{
    write_integer(out, "gpus_per_node", t->gpus_per_node, "");
    write_integer(out, "nics_per_node", t->nics_per_node, "");
    write_rate(out, "nic_rate", t->nic_rate, "Gbps", 1e9 / 8);
    write_rate(out, "pcie_rate", t->pcie_rate, "GB/s", 1e9);
    write_integer(out, "pcie_switches", t->pcie_switches, "");
    write_rate(out, "pcie_root_rate", t->pcie_root_rate, "GB/s", 1e9);
    if (*t->nic_affinity)
        fprintf(out, "nic_affinity: %s\n", t->nic_affinity);
}

/* Slurm's blocks are NVLink domains where NVLink goes beyond a node, and nodes under one leaf where it does not. */
static void write_network(const struct topology_seen *t, const struct gpu *gpu, FILE *out)
{
    int per_node = t->gpus_per_node > 0 ? t->gpus_per_node : gpu->gpus_per_node;
    bool racks = t->block_nodes > 0 && gpu->nvlink_domain > per_node;
    int leaf_nodes = t->leaf_nodes > 0 ? t->leaf_nodes : racks ? 0 : t->block_nodes;
    if (racks)
        write_integer(out, "nvlink_domain",
                      t->block_nodes * per_node < gpu->nvlink_domain ? t->block_nodes * per_node : gpu->nvlink_domain,
                      "GPUs of a block");
    write_integer(out, "fabric_layers", t->layers, "");
    write_integer(out, "leaf_nodes", leaf_nodes, t->leaf_nodes > 0 || !leaf_nodes ? "" : "nodes of a block");
    write_integer(out, "pod_nodes", t->pod_nodes, "");
    if (t->leaf_oversubscription > 0)
        fprintf(out, "leaf_oversubscription: %.4g\n", t->leaf_oversubscription);
    if (t->rails != 0)
        fprintf(out, "rails: %s\n", t->rails > 0 ? "yes" : "no");
}

static void write_entry(struct invocation *call, const struct topology_seen *t, const char *gpu_name, const struct gpu *gpu)
{
    const char *base = option_text(call, "cluster");
    FILE *out = call->out;
    fprintf(out, "source: \"%s\"\n", t->source);
    if (base)
        fprintf(out, "base: %s\n", base);
    if (gpu_name)
        fprintf(out, "gpu: %s\n", gpu_name);
    if (t->nodes > 0 || !base)
        write_integer(out, "nodes", t->nodes > 0 ? t->nodes : 1,
                      t->nodes > 0 ? "" : "the file describes one node; write how many there are");
    write_node(t, out);
    write_network(t, gpu, out);
}

enum status fabric_import(struct invocation *call)
{
    struct topology_seen topology = {0};
    struct gpu gpu;
    const char *name;
    enum status status = STATUS_OK;
    for (int i = 1; i < call->n_operands && status == STATUS_OK; i++)
        status = topology_read(call->operands[i], &topology, &call->diags);
    if (status == STATUS_OK)
        status = find_gpu(call, &topology, &name, &gpu);
    if (status == STATUS_OK)
        write_entry(call, &topology, name, &gpu);
    return status;
}
