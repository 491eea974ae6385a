#include "model/spec/catalog.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/spec/entry.h"

/* A name said by a caller, not by a file: it has no position. */
static enum status load(enum catalog_kind kind, const char *name, void *object, struct diags *diags)
{
    struct arena arena = {0};
    struct yaml_node value = {.kind = YAML_SCALAR, .text = name, .quoted = true};
    size_t before = diags->n_errors;
    struct yaml_node *tree = entry_resolve(kind, &value, &arena, diags);
    if (tree && diags->n_errors > before) { /* a key given twice: look for more mistakes, take nothing */
        struct catalog_entry scratch;
        (void)!entry_read(kind, tree, &scratch.model, diags);
        tree = NULL;
    }
    enum status status = tree ? entry_read(kind, tree, object, diags) : STATUS_BAD_INPUT;
    arena_free(&arena);
    return status;
}

enum status catalog_model(const char *name, struct transformer *model, struct diags *diags)
{
    return load(CATALOG_MODELS, name, model, diags);
}

enum status catalog_gpu(const char *name, struct gpu *gpu, struct diags *diags)
{
    return load(CATALOG_GPUS, name, gpu, diags);
}

enum status catalog_cluster(const char *name, struct cluster *cluster, struct diags *diags)
{
    return load(CATALOG_CLUSTERS, name, cluster, diags);
}

static bool same_rate(double a, double b)
{
    return fabs(a - b) <= 1e-6 * b;
}

/* The one cluster of the catalog with these GPUs, nodes of this size and this network rate a GPU; false when there is none or
 * several. */
static bool cluster_alike(const char *gpu, int gpus_per_node, double nic_rate, struct cluster *found)
{
    char **names = NULL;
    size_t n_names = 0, n_found = 0;
    struct diags quiet = {0};
    if (catalog_names(CATALOG_CLUSTERS, &names, &n_names, &quiet) == STATUS_OK)
        for (size_t i = 0; i < n_names; i++) {
            struct cluster c;
            if (catalog_cluster(names[i], &c, &quiet) != STATUS_OK || strcmp(c.gpu.name, gpu) != 0)
                continue;
            if (c.gpus_per_node != gpus_per_node || !same_rate(cluster_gpu_nic_rate(&c), nic_rate))
                continue;
            if (c.topology != TOPOLOGY_CLOS) /* nodes alike say nothing of it: JUPITER's are Alps' on InfiniBand */
                continue;
            *found = c;
            n_found++;
        }
    names_free(names);
    diags_free(&quiet);
    return n_found == 1;
}

enum status cluster_kind_of_gpu(const char *gpu, int gpus_per_node, double nic_rate, struct cluster_kind *kind,
                                struct diags *diags)
{
    struct cluster c = {.nic_rate = nic_rate, .fabric = FABRIC_INFINIBAND};
    if (gpus_per_node < 0 || nic_rate < 0) {
        diag_error(diags, PLACE_NONE, "a cluster of nodes with %d GPUs and %g B/s", gpus_per_node, nic_rate);
        return STATUS_BAD_INPUT;
    }
    enum status status = catalog_gpu(gpu, &c.gpu, diags);
    if (status != STATUS_OK)
        return status;
    c.gpus_per_node = c.nics_per_node = gpus_per_node ? gpus_per_node : c.gpu.gpus_per_node;
    *kind = (struct cluster_kind){.named = false};
    if (nic_rate > 0 && cluster_alike(c.gpu.name, c.gpus_per_node, nic_rate, &kind->like)) {
        kind->named = true;
        return STATUS_OK;
    }
    c.nic_latency_s = 2.5e-6; /* the defaults of cluster_schema.c */
    c.hop_latency_s = 0.6e-6;
    c.net_fraction = 0.9;
    c.net_fill_bytes = 0x1p24;
    c.data_sample_s = 1e-4;
    c.leaf_oversubscription = c.pod_oversubscription = 1;
    c.nic_split = 1;
    c.queue_pairs = 2;
    snprintf(c.source, sizeof c.source, "assumed: a non-blocking fabric");
    kind->like = c;
    return STATUS_OK;
}

enum status cluster_of_kind(const struct cluster_kind *kind, int nodes, struct cluster *cluster, struct diags *diags)
{
    struct cluster c = kind->like;
    if (nodes < 1) {
        diag_error(diags, PLACE_NONE, "a cluster of %d nodes with %d GPUs", nodes, c.gpus_per_node);
        return STATUS_BAD_INPUT;
    }
    c.nodes = nodes;
    if (!kind->named) {
        struct yaml_node nowhere = {.kind = YAML_MAPPING};
        size_t before = diags->n_errors;
        cluster_complete(&c, &nowhere, diags);
        if (diags->n_errors > before)
            return STATUS_BAD_INPUT;
    }
    *cluster = c;
    return STATUS_OK;
}

enum status cluster_of_gpu(const char *gpu, int nodes, int gpus_per_node, double nic_rate, struct cluster *cluster,
                           struct diags *diags)
{
    struct cluster_kind kind;
    enum status status = cluster_kind_of_gpu(gpu, gpus_per_node, nic_rate, &kind, diags);
    return status == STATUS_OK ? cluster_of_kind(&kind, nodes, cluster, diags) : status;
}
