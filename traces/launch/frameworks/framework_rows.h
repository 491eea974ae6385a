/*
 * framework_rows.h - the short words that tables of frameworks' keys are written in. For these tables alone.
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_ROWS_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_ROWS_H

#include "traces/launch/frameworks/framework_tables.h"

/* Rows of struct framework_key: the value as it is, that there is something inside, the opposite truth, both as it is and by
 * words, or by words. */
#define AS(key, argument)                                                                                                        \
    {                                                                                                                            \
        key, argument, false, NULL, false                                                                                        \
    }
#define INSIDE(key, argument)                                                                                                    \
    {                                                                                                                            \
        key, argument, false, NULL, true                                                                                         \
    }
#define OPPOSITE(key, argument)                                                                                                  \
    {                                                                                                                            \
        key, argument, true, NULL, false                                                                                         \
    }
#define BOTH(key, argument, list)                                                                                                \
    {                                                                                                                            \
        key, argument, false, list, false                                                                                        \
    }
#define WORDS(key, list)                                                                                                         \
    {                                                                                                                            \
        key, NULL, false, list, false                                                                                            \
    }

/* Rows of struct framework_word: a truth as YAML, TOML and Python write it. What is exported has the first word of a value. */
#define TRULY(argument, value)                                                                                                   \
    {"true", argument, value},                                                                                                   \
    {                                                                                                                            \
        "True", argument, value                                                                                                  \
    }

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

#endif
