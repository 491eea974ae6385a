/*
 * framework_keys.h - keys of a configuration as words of Megatron-LM's arguments, by a framework's table. A configuration is a
 * tree, or paths that a command line sets: --parallelism.tensor_parallel_degree 4, trainer.strategy.tensor_model_parallel_size=4.
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_KEYS_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_KEYS_H

#include "model/spec/yaml.h"
#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/frameworks/framework_tree.h"
#include "traces/launch/job/launch_words.h"

/* Is this a key of those that are read together, whatever the framework? */
bool framework_looks_at(const char *path);

/* What a framework does unasked. */
void framework_read_fixed(struct launch_words *words, const struct yaml_node *root, const struct framework *framework);
/* What a configuration says, behind that; and without that. Texts are copied. */
void framework_read(struct launch_words *words, const struct yaml_node *root, const struct framework *framework);
void framework_read_keys(struct launch_words *words, const struct yaml_node *root, const struct framework *framework);

/* How many words are said by paths that a framework knows: the one that knows most of them. */
size_t framework_count_overrides(const struct frameworks *frameworks, const struct launch_words *words);
/* Are they flags of a trainer that describes its job by them? */
bool framework_is_told_by_flags(const struct frameworks *frameworks, const struct launch_words *words);
/* Whose keys they are; NULL: nobody's. */
const struct framework *framework_of_overrides(const struct frameworks *frameworks, const struct launch_words *words);
/* Is this a key that changes neither time nor memory? */
bool framework_ignores(const struct framework *framework, const char *path);
/* These become the arguments that they are, behind all others, and what changes nothing goes; paths that nobody knows
 * stay. */
void framework_take_overrides(const struct frameworks *frameworks, struct launch_words *words);

/* The framework whose keys a tree has; NULL: none. */
const struct framework *framework_of_keys(const struct frameworks *frameworks, const struct yaml_node *root);

#endif
