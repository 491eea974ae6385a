/*
 * framework_torch.h - what stacks of PyTorch's own parallelism have in common. Private to the tables of them.
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TORCH_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TORCH_H

#include "traces/launch/frameworks/framework_tables.h"

/* What eager PyTorch around FlashAttention does. */
#define PLAIN_TORCH                                                                                                              \
    {NULL, "transformer_impl", "local"}, {NULL, "use_flash_attn", "True"}, {NULL, "bias_swiglu_fusion", "False"},                \
        {NULL, "bias_gelu_fusion", "False"}, {NULL, "bias_dropout_fusion", "False"}, {NULL, "hidden_dropout", "0"},              \
        {NULL, "make_vocab_size_divisible_by", "1"}, {NULL, "overlap_grad_reduce", "True"},                                      \
        {NULL, "overlap_param_gather", "True"}, {NULL, "scatter_gather_tensors_in_pipeline", "False"},                           \
    {                                                                                                                            \
        NULL, "cross_entropy_loss_fusion", "False"                                                                               \
    }

/* The loss is cross entropy of logits.float(), which nothing fuses: a kernel that replaces it, or the projection as well, is told
 * by other words, which win. */
#define EAGER_LOGITS                                                                                                             \
    {                                                                                                                            \
        NULL, "eager_cross_entropy", "True"                                                                                      \
    }

/* How they call attention's kernels. */
extern const struct framework_word framework_attentions[];
/* That a switch compiles the model, or keeps states by the host; how ranks of context parallelism pass keys and values on. */
extern const struct framework_word framework_compiled[], framework_by_host[], framework_rotations[];
/* That one recomputes whole layers. */
extern const struct framework_word framework_recomputed[];

#endif
