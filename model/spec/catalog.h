/*
 * catalog.h - the known models, GPUs and clusters.
 *
 * An entry is a YAML file under model/spec/catalog/{models,gpus,clusters}/NAME.yaml. It is looked for, in this order, in
 * $MSIM_DATA/catalog, the build tree's catalog, the install prefix's share/msim/catalog. Every entry names its `source`; the
 * loader refuses one without.
 *
 * `<gpu>-node` is a cluster too: one usual host of that GPU.
 *
 * An entry may build on another: `base: NAME` and what differs. A name that contains '/' or ends in .yaml, .yml or .json is a
 * file, anything else a catalog name, or another spelling of one (catalog_alias.h): case and punctuation do not matter, and a
 * hub's ORGANISATION/MODEL is such a spelling where there is no file of that name. A short name that several parts share gets the
 * usual one, with a note. Mistakes go to diags with file, line and column; an unknown name gets the nearest known one.
 */
#ifndef MSIM_MODEL_SPEC_CATALOG_H
#define MSIM_MODEL_SPEC_CATALOG_H

#include "model/base/diag.h"
#include "model/spec/cluster.h"
#include "model/spec/shipped.h"
#include "model/spec/transformer.h"

enum catalog_kind { CATALOG_MODELS, CATALOG_GPUS, CATALOG_CLUSTERS, N_CATALOG_KINDS };

/* A model by catalog name, msim YAML file, or Hugging Face config.json as downloaded. */
MUST_CHECK enum status catalog_model(const char *name, struct transformer *model, struct diags *diags);
MUST_CHECK enum status catalog_gpu(const char *name, struct gpu *gpu, struct diags *diags);
MUST_CHECK enum status catalog_cluster(const char *name, struct cluster *cluster, struct diags *diags);

/* An entry of any kind. A catalog name is looked for among models, GPUs and clusters, in this order; what a file describes shows
 * in its keys. */
struct catalog_entry {
    enum catalog_kind kind;
    union {
        struct transformer model;
        struct gpu gpu;
        struct cluster cluster;
    };
};
MUST_CHECK enum status catalog_entry(const char *name, struct catalog_entry *entry, struct diags *diags);

/*
 * A plausible cluster for a row of a measurement table whose cluster nobody named: the one cluster of the catalog with such GPUs,
 * nodes and network rate, if it is the only one; otherwise `nodes` hosts of gpus_per_node GPUs on a non-blocking fabric, one NIC
 * of nic_rate (B/s) per GPU. 0 takes the GPU's usual host.
 */
/* What such a cluster is but for its size: read once, for rows of any number of nodes. */
struct cluster_kind {
    struct cluster like;
    bool named; /* a cluster of the catalog; otherwise what a non-blocking fabric would be */
};
MUST_CHECK enum status cluster_kind_of_gpu(const char *gpu, int gpus_per_node, double nic_rate, struct cluster_kind *kind,
                                           struct diags *diags);
MUST_CHECK enum status cluster_of_kind(const struct cluster_kind *kind, int nodes, struct cluster *cluster, struct diags *diags);
/* Both at once. */
MUST_CHECK enum status cluster_of_gpu(const char *gpu, int nodes, int gpus_per_node, double nic_rate, struct cluster *cluster,
                                      struct diags *diags);

/* Names in alphabetical order, NULL-terminated; free with names_free. */
MUST_CHECK enum status catalog_names(enum catalog_kind kind, char ***names, size_t *n_names, struct diags *diags);

/* A data file of the program (relative path such as "catalog/gpus/b200.yaml" or "traces/llama3-54d.csv"): the first that exists
 * of the directories above; NULL when none does. The caller frees the path. */
char *data_path(const char *relative);

/* MSIM_DATA may lack files, which are then found elsewhere; a place that is not there is a mistake, to be told before anything is
 * read. */
MUST_CHECK enum status data_path_check(struct diags *diags);

#endif
