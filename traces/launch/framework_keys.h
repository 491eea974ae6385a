/*
 * framework_keys.h - keys of a configuration as words of Megatron-LM's arguments, by a framework's table. A configuration is a
 * tree, or paths that a command line sets: --parallelism.tensor_parallel_degree 4, trainer.strategy.tensor_model_parallel_size=4.
 */
#ifndef MSIM_TRACES_FRAMEWORK_KEYS_H
#define MSIM_TRACES_FRAMEWORK_KEYS_H

#include "model/spec/yaml.h"
#include "traces/launch/framework_tables.h"
#include "traces/launch/launch_words.h"

/* What stacks of PyTorch's or JAX's own modules do beside Megatron-LM: no fused biases, tables as large as they are, gradients
 * and weights exchanged beside the passes. Of `fixed` words. */
#define FRAMEWORK_OWN_MODULES                                                                                                    \
    {NULL, "transformer_impl", "local"}, {NULL, "bias_swiglu_fusion", "False"}, {NULL, "bias_gelu_fusion", "False"},             \
        {NULL, "bias_dropout_fusion", "False"}, {NULL, "hidden_dropout", "0"}, {NULL, "make_vocab_size_divisible_by", "1"},      \
        {NULL, "overlap_grad_reduce", "True"},                                                                                   \
    {                                                                                                                            \
        NULL, "overlap_param_gather", "True"                                                                                     \
    }
/* LLaMA's layers, where a framework has no others unless told. */
#define FRAMEWORK_LLAMA_LAYERS                                                                                                   \
    {NULL, "swiglu", "True"}, {NULL, "normalization", "RMSNorm"}, {NULL, "position_embedding_type", "rope"},                     \
    {                                                                                                                            \
        NULL, "add_bias_linear", "False"                                                                                         \
    }

/* What stands at "a.b.c"; of a list the first mapping that has the key. NULL: nothing. */
const struct yaml_node *framework_find(const struct yaml_node *node, const char *path);

/* A scalar, or scalars between blanks; a copy. */
const char *framework_text(struct launch_words *words, const struct yaml_node *node);
/* true, True */
bool framework_is_true(const char *text);

/* A word of a key, for what is not one row of a table; one that nobody knows, unless it is a plain no. Texts are not copied. */
void framework_add(struct launch_words *words, const struct yaml_node *node, const char *path, const char *name,
                   const char *value);
void framework_add_strange(struct launch_words *words, const struct yaml_node *node, const char *path, const char *text);

/* Is this a key of those that are read together, whatever the framework? */
bool framework_looks_at(const char *path);

/* What a framework does unasked. */
void framework_read_fixed(struct launch_words *words, const struct yaml_node *root, const struct framework *framework);
/* What a configuration says, behind that; and without that. Texts are copied. */
void framework_read(struct launch_words *words, const struct yaml_node *root, const struct framework *framework);
void framework_read_keys(struct launch_words *words, const struct yaml_node *root, const struct framework *framework);

/* How many words are said by paths that a framework knows: the one that knows most of them. */
size_t framework_count_overrides(const struct launch_words *words);
/* Are they flags of a trainer that describes its job by them? */
bool framework_is_told_by_flags(const struct launch_words *words);
/* Whose keys they are; NULL: nobody's. */
const struct framework *framework_of_overrides(const struct launch_words *words);
/* Is this a key that changes neither time nor memory? */
bool framework_ignores(const struct framework *framework, const char *path);
/* These become the arguments that they are, behind all others, and what changes nothing goes; paths that nobody knows
 * stay. */
void framework_take_overrides(struct launch_words *words);

#endif
