/* The cluster that a row of a measurement table ran on. */
#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"
#include "traces/table/measurement_reading.h"

/* What a name stands for where it is no GPU: a system of them that the catalog has (DGX-H100), itself where the row says neither
 * its nodes nor its network, else nodes of its GPU as they say. */
static enum status kind_of_system(const char *name, int per_node, double nic_rate, struct cluster_kind *kind, struct diags *diags)
{
    struct cluster system;
    struct diags quiet = {0};
    bool known = catalog_cluster(name, &system, &quiet) == STATUS_OK;
    diags_free(&quiet);
    if (!known)
        return cluster_kind_of_gpu(name, per_node, nic_rate, kind, diags); /* which says why not */
    if (!per_node && nic_rate <= 0 && system.topology == TOPOLOGY_CLOS) {
        *kind = (struct cluster_kind){.like = system, .named = true};
        return STATUS_OK;
    }
    diag_note(diags, (struct place){0}, "%.40s: its GPU is taken, %s, in nodes and a network as the row says or as are usual",
              name, system.gpu.name);
    return cluster_kind_of_gpu(system.gpu.name, per_node ? per_node : system.gpus_per_node, nic_rate, kind, diags);
}

/* `per_node` 0: as the usual host has. */
static enum status kind_named(const char *name, int per_node, double nic_rate, struct cluster_kind *kind, struct diags *diags)
{
    struct diags quiet = {0};
    struct gpu gpu;
    bool is_gpu = catalog_gpu(name, &gpu, &quiet) == STATUS_OK;
    diags_free(&quiet);
    return is_gpu ? cluster_kind_of_gpu(name, per_node, nic_rate, kind, diags)
                  : kind_of_system(name, per_node, nic_rate, kind, diags);
}

/* The cluster of the row's GPU and network, built once for all rows that have the same. */
static struct known_cluster *known_cluster(struct measurement_reading *reading, const char *gpu, int per_node, double nic_rate)
{
    for (size_t i = 0; i < reading->n_clusters; i++) {
        struct known_cluster *k = &reading->clusters[i];
        bool same_network = !(k->nic_rate < nic_rate) && !(k->nic_rate > nic_rate);
        if (k->per_node == per_node && same_network && strcmp(k->gpu, gpu) == 0)
            return k;
    }
    reading->clusters =
        memory_grow(reading->clusters, &reading->clusters_capacity, reading->n_clusters + 1, sizeof *reading->clusters);
    struct known_cluster *k = &reading->clusters[reading->n_clusters++];
    *k = (struct known_cluster){.gpu = gpu, .per_node = per_node, .nic_rate = nic_rate};
    struct diags why = {0}; /* the catalog's error becomes the row's warning */
    k->found = kind_named(gpu, per_node, nic_rate, &k->kind, &why) == STATUS_OK;
    if (!k->found)
        snprintf(k->why, sizeof k->why, "%s", why.n_items ? why.items[0].text : "not in the catalog");
    bool seen = false;
    for (size_t i = 0; i + 1 < reading->n_clusters; i++)
        seen |= strcmp(reading->clusters[i].gpu, gpu) == 0;
    k->told = seen && !k->found;
    if (!seen)
        reading_tell_notes(reading, COLUMN_GPU, &why);
    diags_free(&why);
    return k;
}

void reading_cluster(struct measurement_reading *reading, struct measurement *row)
{
    int per_node = (int)reading_whole(reading, COLUMN_GPUS_PER_NODE, 1, 1024, 0);
    double nic_gbps = reading_number(reading, COLUMN_NIC_GBPS, 0, 1e6);
    const char *gpu = reading_text(reading, COLUMN_GPU);
    if (*gpu == '\0') {
        reading_skip(reading, COLUMN_GPU, "no gpu is named");
    } else if (row->gpus) {
        struct known_cluster *known = known_cluster(reading, gpu, per_node, nic_gbps * 1e9 / 8);
        int node = known->found ? known->kind.like.gpus_per_node : 1;
        struct diags why = {0};
        if (known->found && cluster_of_kind(&known->kind, (row->gpus + node - 1) / node, &row->cluster, &why) != STATUS_OK)
            reading_skip(reading, COLUMN_GPU, "%s", why.n_items ? why.items[0].text : "no cluster of this size");
        diags_free(&why);
        if (!known->found && !known->told)
            reading_skip(reading, COLUMN_GPU, "%s (all rows of this GPU)", known->why);
        known->told = true;
        reading->unusable |= !known->found;
    }
}
