/*
 * catalog.h - the known models, GPUs and clusters, by name.
 *
 * Example:
 *
 *     catalog_gpu("h100-sxm", &gpu, &diags);
 *     catalog_gpu("NVIDIA H100 80GB HBM3", &gpu, &diags);       the same entry
 *     catalog_cluster("h100-sxm-node", &cluster, &diags);       one usual host of that GPU
 *     catalog_model("./my-model.yaml", &model, &diags);         a file, because the name has a '/'
 *
 * An entry is a YAML file model/spec/catalog/{models,gpus,clusters}/NAME.yaml. It is searched, in this order, in
 * $MSIM_DATA/catalog, in the build tree's catalog and in share/msim/catalog of the install prefix. Every entry has a `source`;
 * the loader refuses one without.
 *
 * An entry may build on another with `base: NAME` and the keys that differ. A name that contains '/' or ends in .yaml, .yml or
 * .json is a file. Other names are catalog names or other spellings of them (catalog_alias.h): case and punctuation do not
 * matter, and a hub's ORGANISATION/MODEL is such a spelling unless a file of that name exists. A short name that several parts
 * share gets the usual one, with a note. Mistakes go to diags with file, line and column; for an unknown name the nearest known
 * one is suggested.
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

/* An entry of any kind. A catalog name is searched among models, GPUs and clusters, in this order. The kind of a file follows
 * from its keys. */
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
 * A plausible cluster for a row of a measurement table that names none: the only cluster of the catalog with these GPUs, nodes
 * and network rate, if there is exactly one. If not: `nodes` hosts of gpus_per_node GPUs on a non-blocking fabric, with one NIC
 * of nic_rate (B/s) per GPU. 0 uses the value of the GPU's usual host.
 */
/* Such a cluster without its size: read once, for rows with any number of nodes. */
struct cluster_kind {
    struct cluster like;
    bool named; /* a cluster of the catalog; false: the assumed non-blocking fabric */
};
MUST_CHECK enum status cluster_kind_of_gpu(const char *gpu, int gpus_per_node, double nic_rate, struct cluster_kind *kind,
                                           struct diags *diags);
MUST_CHECK enum status cluster_of_kind(const struct cluster_kind *kind, int nodes, struct cluster *cluster, struct diags *diags);
/* Both at once. */
MUST_CHECK enum status cluster_of_gpu(const char *gpu, int nodes, int gpus_per_node, double nic_rate, struct cluster *cluster,
                                      struct diags *diags);

/* Names in alphabetical order, NULL-terminated; free with names_free. */
MUST_CHECK enum status catalog_names(enum catalog_kind kind, char ***names, size_t *n_names, struct diags *diags);

/* The path of a data file of the program ("catalog/gpus/b200.yaml", "traces/llama3-54d.csv"): the first that exists in the
 * directories above, NULL if none does. The caller frees the path. */
char *data_path(const char *relative);

/* Reports an error if the folder MSIM_DATA does not exist. (Files that it lacks are found elsewhere.) Call it before anything
 * is read. */
MUST_CHECK enum status data_path_check(struct diags *diags);

#endif
