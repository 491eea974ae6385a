#include "kernels/kernels.h"

static const char *const names[N_KERNELS] = {
    [KERNEL_NORM_FORWARD] = "norm_forward",
    [KERNEL_NORM_BACKWARD] = "norm_backward",
    [KERNEL_LINEAR_FORWARD] = "linear_forward",
    [KERNEL_LINEAR_BACKWARD_INPUT] = "linear_backward_input",
    [KERNEL_LINEAR_BACKWARD_WEIGHT] = "linear_backward_weight",
    [KERNEL_ROTARY] = "rotary",
    [KERNEL_ATTENTION_FORWARD] = "attention_forward",
    [KERNEL_ATTENTION_BACKWARD] = "attention_backward",
    [KERNEL_ACTIVATION_FORWARD] = "activation_forward",
    [KERNEL_ACTIVATION_BACKWARD] = "activation_backward",
    [KERNEL_ADD] = "add",
    [KERNEL_DROPOUT_FORWARD] = "dropout_forward",
    [KERNEL_DROPOUT_BACKWARD] = "dropout_backward",
    [KERNEL_COLUMN_SUM] = "column_sum",
    [KERNEL_QUANTISE] = "quantise",
    [KERNEL_EMBEDDING_FORWARD] = "embedding_forward",
    [KERNEL_EMBEDDING_BACKWARD] = "embedding_backward",
    [KERNEL_LOGITS_MAX] = "logits_max",
    [KERNEL_LOGITS_SUM] = "logits_sum",
    [KERNEL_LOGITS_LOSS] = "logits_loss",
    [KERNEL_LOGITS_BACKWARD] = "logits_backward",
    [KERNEL_SQUARE_SUM] = "square_sum",
    [KERNEL_ADAM] = "adam",
    [KERNEL_LAMB] = "lamb",
    [KERNEL_ZERO] = "zero",
    [KERNEL_COPY] = "copy",
    [KERNEL_CAST] = "cast",
};

const char *kernel_name(enum kernel kernel)
{
    return (unsigned)kernel < N_KERNELS ? names[kernel] : "unknown";
}
