/*
 * framework_keys.h - keys of a configuration as words of Megatron-LM's arguments, by a framework's table.
 *
 *     run.yaml: parallelism: {tp: 8}                                 a tree
 *     --parallelism.tensor_parallel_degree 4                         a path on a command line
 *     trainer.strategy.tensor_model_parallel_size=4                  the same without dashes
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_KEYS_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_KEYS_H

#include "model/spec/yaml.h"
#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/frameworks/framework_tree.h"
#include "traces/launch/job/launch_words.h"

/* Is this one of the keys that are read together for every framework (a batch by its factors)? */
bool framework_looks_at(const char *path);

/* Adds what a framework always does. */
void framework_read_fixed(struct launch_words *words, const struct yaml_node *root, const struct framework *framework);
/* Adds that and then what a configuration says; only the latter. Texts are copied. */
void framework_read(struct launch_words *words, const struct yaml_node *root, const struct framework *framework);
void framework_read_keys(struct launch_words *words, const struct yaml_node *root, const struct framework *framework);

/* The number of words whose paths are keys of a framework: of the one that knows most of them. */
size_t framework_count_overrides(const struct frameworks *frameworks, const struct launch_words *words);
/* Are the words flags of a trainer that describes its job by them? */
bool framework_is_told_by_flags(const struct frameworks *frameworks, const struct launch_words *words);
/* The framework whose keys they are; NULL: none. */
const struct framework *framework_of_overrides(const struct frameworks *frameworks, const struct launch_words *words);
/* Is this a key that changes neither time nor memory? */
bool framework_ignores(const struct framework *framework, const char *path);
/* Turns such words into arguments, at the end of the list, and removes keys that change nothing. Unknown paths stay. */
void framework_take_overrides(const struct frameworks *frameworks, struct launch_words *words);

/* The framework whose keys a tree has; NULL: none. */
const struct framework *framework_of_keys(const struct frameworks *frameworks, const struct yaml_node *root);

#endif
