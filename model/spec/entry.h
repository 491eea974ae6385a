/*
 * entry.h - resolve a name, a file or an inline mapping to one complete tree, and read that into a checked struct. Private to
 * the reader of specifications.
 *
 * Example: {base: h100-sxm-node, nodes: 4}
 *
 *     tree = entry_resolve(CATALOG_CLUSTERS, value, &arena, diags);       all keys of h100-sxm-node, nodes: 4
 *     entry_read(CATALOG_CLUSTERS, tree, &cluster, diags);
 *
 * Resolving follows `base:` down to an entry without one and merges the trees. So every value still knows its file and line.
 */
#ifndef MSIM_MODEL_SPEC_ENTRY_H
#define MSIM_MODEL_SPEC_ENTRY_H

#include "model/spec/catalog.h"
#include "model/spec/yaml.h"

/* `value` is a scalar (catalog name or file) or a mapping, with or without `base`. Returns NULL after reporting mistakes. */
struct yaml_node *entry_resolve(enum catalog_kind kind, const struct yaml_node *value, struct arena *arena, struct diags *diags);

/* Whether a name is a file's by its form, and the path of a catalog entry's file (NULL: no such entry); the caller frees it. */
bool entry_is_file_name(const char *name);
/* ORGANISATION/MODEL, as model hubs name what they hold: a file of that name comes first. */
bool entry_is_repository(const char *name);
char *entry_catalog_file(enum catalog_kind kind, const char *name);
/* Whether it is standard input or a pipe, which can be read only once. */
bool entry_is_stream(const char *name);
/* The entry that a tree read from `path` amounts to: a Hugging Face configuration (read `as` another family, NULL: its own) or a
 * mapping with a source. NULL after reporting what is wrong. */
struct yaml_node *entry_of_tree(enum catalog_kind kind, struct yaml_node *tree, const char *path, const struct yaml_node *as,
                                struct arena *arena, struct diags *diags);
/* `value`, a name, a file or a mapping, with what is in a stream in its place or in that of its `base`. `text`: n bytes
 * that were read from it before; NULL: none. */
struct yaml_node *entry_without_stream(enum catalog_kind kind, struct yaml_node *value, const char *text, size_t n,
                                       struct arena *arena, struct diags *diags);
/* Whether a path is a folder (if it describes a model, it has a config.json). */
bool entry_is_folder(const char *path);

/* The places of data_path one by one, in order; NULL if the file does not exist there. The caller frees the path. */
enum data_place { DATA_CHOSEN, DATA_SPEC, DATA_SOURCE, DATA_BESIDE, DATA_LIBRARY, DATA_INSTALLED, N_DATA_PLACES };
char *data_path_in(enum data_place place, const char *relative);

/* Reads, completes and checks a resolved tree into the struct of its kind (struct transformer, struct gpu, struct cluster). The
 * struct is written only if the tree has no mistake. */
MUST_CHECK enum status entry_read(enum catalog_kind kind, const struct yaml_node *tree, void *object, struct diags *diags);

/* Compares a model, not yet resolved, before and after flags changed it under the same name. If time or memory change, the
 * result gets a name with the suffix MODEL_CHANGED. */
struct yaml_node *entry_changed_model(const struct yaml_node *before, struct yaml_node *after, struct arena *arena);

/* Resolves and reads; bad input without a message if `value` is NULL. */
MUST_CHECK enum status entry_load(enum catalog_kind kind, const struct yaml_node *value, void *object, struct arena *arena,
                                  struct diags *diags);

/* Derive missing values of the struct and check it as a whole; mistakes get places in `tree`. */
void transformer_complete(struct transformer *model, const struct yaml_node *tree, struct diags *diags);
void gpu_complete(struct gpu *gpu, const struct yaml_node *tree, struct diags *diags);
void cluster_complete(struct cluster *cluster, const struct yaml_node *tree, struct diags *diags);
/* The part of this for the keys of a dragonfly: called once the NICs are known, before those of a Clos are completed. */
void cluster_topology_complete(struct cluster *cluster, const struct yaml_node *tree, struct diags *diags);

/* A name for an entry from a text such as a file name: valid UTF-8, cut to the length of names. */
const char *entry_name(const char *text, struct arena *arena);

/* Whether a mapping is a Hugging Face configuration, and the equivalent model entry, by the keys of its own model_type or of
 * the one that `as` names (NULL: its own). A mapping that builds on one, `base: config.json`, is not one itself. */
bool huggingface_is(const struct yaml_node *mapping);
struct yaml_node *huggingface_entry(const struct yaml_node *config, const struct yaml_node *as, const char *path,
                                    struct arena *arena, struct diags *diags);
/* Whether a model comes from one. Its max_seq_len is then the longest context that it serves, not its length in training. */
bool huggingface_wrote(const struct transformer *model);

#endif
