#include "traces/topology/topology_internal.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/file.h"

enum kind { KIND_NCCL, KIND_SLURM, KIND_IB, KIND_UNKNOWN };

static enum kind kind_of(const char *bytes)
{
    const char *first = bytes + strspn(bytes, " \t\r\n");
    if (*first == '<')
        return strstr(bytes, "<system") ? KIND_NCCL : KIND_UNKNOWN;
    if (strcasestr(bytes, "SwitchName=") || strcasestr(bytes, "BlockName="))
        return KIND_SLURM;
    return strstr(bytes, "switchguid=") || strstr(bytes, "caguid=") || strstr(bytes, "Switch\t") ? KIND_IB : KIND_UNKNOWN;
}

/* A number that two files give must be the same. */
static void add_number(int *all, int one, const char *what, const char *name, struct diags *diags)
{
    if (one != 0 && *all != 0 && one != *all)
        diag_error(diags, (struct place){.file = name}, "%d %s, where a file before says %d", one, what, *all);
    *all = one != 0 ? one : *all;
}

static void add_real(double *all, double one)
{
    *all = one > 0 ? one : *all;
}

static void add(struct topology_seen *all, const struct topology_seen *one, const char *name, const char *kind,
                struct diags *diags)
{
    const char *slash = strrchr(name, '/');
    add_number(&all->gpus_per_node, one->gpus_per_node, "GPUs of a node", name, diags);
    add_number(&all->nics_per_node, one->nics_per_node, "NICs of a node", name, diags);
    add_number(&all->nodes, one->nodes, "nodes", name, diags);
    all->sm = one->sm ? one->sm : all->sm;
    all->pcie_switches = one->pcie_switches ? one->pcie_switches : all->pcie_switches;
    all->layers = one->layers ? one->layers : all->layers;
    all->leaf_nodes = one->leaf_nodes ? one->leaf_nodes : all->leaf_nodes;
    all->pod_nodes = one->pod_nodes ? one->pod_nodes : all->pod_nodes;
    all->block_nodes = one->block_nodes ? one->block_nodes : all->block_nodes;
    all->rails = one->rails ? one->rails : all->rails;
    add_real(&all->nic_rate, one->nic_rate);
    add_real(&all->pcie_rate, one->pcie_rate);
    add_real(&all->pcie_root_rate, one->pcie_root_rate);
    add_real(&all->leaf_oversubscription, one->leaf_oversubscription);
    if (*one->gcn)
        memcpy(all->gcn, one->gcn, sizeof all->gcn);
    if (*one->nic_affinity)
        memcpy(all->nic_affinity, one->nic_affinity, sizeof all->nic_affinity);
    text_append(all->source, sizeof all->source, "%s%s ", *all->source ? ", " : "", kind);
    for (const char *c = slash ? slash + 1 : name; *c; c++) /* YAML quotes it */
        text_append(all->source, sizeof all->source, "%c", *c < ' ' || *c > '~' || *c == '"' || *c == '\\' ? '?' : *c);
}

enum status topology_parse(const char *name, char *bytes, size_t n, struct topology_seen *topology, struct diags *diags)
{
    static const char *const kinds[] = {"NCCL's topology", "Slurm's topology", "ibnetdiscover's"};
    struct topology_seen one = {0};
    size_t errors = diags->n_errors;
    enum kind kind = kind_of(bytes);
    if (kind == KIND_NCCL)
        nccl_topology_parse(name, bytes, n, &one, diags);
    else if (kind == KIND_SLURM)
        slurm_topology_parse(name, bytes, &one, diags);
    else if (kind == KIND_IB)
        ib_topology_parse(name, bytes, &one, diags);
    else
        diag_error(diags, (struct place){.file = name},
                   "is no topology that msim reads: NCCL's XML (NCCL_TOPO_DUMP_FILE), Slurm's topology.conf, or the output of "
                   "ibnetdiscover");
    if (diags->n_errors == errors)
        add(topology, &one, name, kinds[kind], diags);
    return diags->n_errors == errors ? STATUS_OK : STATUS_BAD_INPUT;
}

enum status topology_read(const char *path, struct topology_seen *topology, struct diags *diags)
{
    enum { LIMIT = 1 << 28 };
    char *bytes;
    size_t n;
    enum status status = file_read(path, LIMIT, &bytes, &n, diags);
    if (status != STATUS_OK)
        return status;
    status = topology_parse(path, bytes, n, topology, diags);
    free(bytes);
    return status;
}
