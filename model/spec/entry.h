/*
 * entry.h - from a name, a file or an inline mapping to one complete tree, and from that to a checked struct.
 *
 * Resolving follows `base:` down to an entry without one and lays the trees over each other, so that every value still knows the
 * file and line that it came from. Private to the reader of specifications.
 */
#ifndef MSIM_MODEL_SPEC_ENTRY_H
#define MSIM_MODEL_SPEC_ENTRY_H

#include "model/spec/catalog.h"
#include "model/spec/yaml.h"

/* `value` is a scalar (catalog name or file) or a mapping, with or without `base`. NULL after reporting what is wrong. */
struct yaml_node *entry_resolve(enum catalog_kind kind, const struct yaml_node *value, struct arena *arena, struct diags *diags);

/* Whether a name is a file's by its form, and the path of a catalog entry's file (NULL: no such entry); the caller frees it. */
bool entry_is_file_name(const char *name);
/* ORGANISATION/MODEL, as model hubs name what they hold: a file of that name comes first. */
bool entry_is_repository(const char *name);
char *entry_catalog_file(enum catalog_kind kind, const char *name);
/* Whether a path is a folder: of a model, which has a config.json in it, if of anything. */
bool entry_is_folder(const char *path);

/* The places of data_path one by one, first come first served; NULL when the file is not there. The caller frees the path. */
enum data_place { DATA_CHOSEN, DATA_SPEC, DATA_SOURCE, DATA_BESIDE, DATA_LIBRARY, DATA_INSTALLED, N_DATA_PLACES };
char *data_path_in(enum data_place place, const char *relative);

/* A resolved tree into the struct of its kind (struct transformer, struct gpu, struct cluster): read, completed, checked. Written
 * only when the tree holds no mistake. */
MUST_CHECK enum status entry_read(enum catalog_kind kind, const struct yaml_node *tree, void *object, struct diags *diags);

/* A model, both not yet resolved, that flags changed under the name that its file gave it: with a name that says so
 * (MODEL_CHANGED), if it takes another time or memory now. */
struct yaml_node *entry_changed_model(const struct yaml_node *before, struct yaml_node *after, struct arena *arena);

/* Both at once; nothing, bad input, of a value that is NULL. */
MUST_CHECK enum status entry_load(enum catalog_kind kind, const struct yaml_node *value, void *object, struct arena *arena,
                                  struct diags *diags);

/* The struct is completed by what follows from what is given, and checked as a whole; mistakes are placed in `tree`. */
void transformer_complete(struct transformer *model, const struct yaml_node *tree, struct diags *diags);
void gpu_complete(struct gpu *gpu, const struct yaml_node *tree, struct diags *diags);
void cluster_complete(struct cluster *cluster, const struct yaml_node *tree, struct diags *diags);
/* Of these, the keys of a dragonfly: once the NICs are known, before those of a Clos are completed. */
void cluster_topology_complete(struct cluster *cluster, const struct yaml_node *tree, struct diags *diags);

/* Where `key` stands in the tree, or the tree itself. */
struct place entry_place(const struct yaml_node *tree, const char *key);

/* What an entry can be called by a text such as a file's: no longer than a name may be, and UTF-8. */
const char *entry_name(const char *text, struct arena *arena);

/* Whether a mapping is a Hugging Face configuration, and the model entry that it amounts to, by the keys of its own model_type or
 * of the one that `as` names (NULL: its own). What builds on one, `base: config.json`, is none itself. */
bool huggingface_is(const struct yaml_node *mapping);
struct yaml_node *huggingface_entry(const struct yaml_node *config, const struct yaml_node *as, const char *path,
                                    struct arena *arena, struct diags *diags);
/* Whether a model is from one: its max_seq_len is then the longest context that it serves, not what it was trained at. */
bool huggingface_wrote(const struct transformer *model);

#endif
