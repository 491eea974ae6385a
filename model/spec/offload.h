/*
 * offload.h - what is kept in the memory of the host instead of the GPU's.
 *
 * Optimizer states with the master copy of the weights (DeepSpeed ZeRO-Offload, Megatron-Core's --optimizer-cpu-offload, states
 * of PyTorch FSDP's CPUOffload), which the host's cores then update; and what layers keep for their backward passes
 * (Megatron-Core's activation offloading, Transformer Engine's --cpu-offloading-num-layers, PyTorch's save_on_cpu), which goes
 * down after the forward pass of a layer and comes back before its backward pass. model/cost/host_memory.h has the bytes and the
 * time.
 *
 * As text: none, optimizer, activations, optimizer+activations.
 */
#ifndef MSIM_MODEL_SPEC_OFFLOAD_H
#define MSIM_MODEL_SPEC_OFFLOAD_H

/* A set. */
enum offload { OFFLOAD_NONE, OFFLOAD_OPTIMIZER = 1, OFFLOAD_ACTIVATIONS = 2, N_OFFLOADS = 4 };

extern const char *const offload_words[N_OFFLOADS + 1]; /* by set; NULL after the last */
/* What a text says, the parts in either order; -1: none of that. */
int offload_parse(const char *text);

#endif
