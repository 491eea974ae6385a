/*
 * offload.h - what is kept in the memory of the host instead of the GPU's, and how much of it.
 *
 * Optimizer states with the master copy of the weights (DeepSpeed ZeRO-Offload, Megatron-Core's --optimizer-cpu-offload, states
 * of PyTorch FSDP's CPUOffload), which the host's cores then update; what layers keep for their backward passes
 * (Megatron-Core's activation offloading, Transformer Engine's --cpu-offloading-num-layers, PyTorch's save_on_cpu), which goes
 * down after the forward pass of a layer and comes back before its backward pass; and sharded parameters (FSDP's
 * CPUOffload(offload_params), DeepSpeed's offload_param of ZeRO-3), which come up for each gather. model/cost/host_memory.h has
 * the bytes and the time.
 *
 * How much: of states and parameters a share of every layer's (Megatron-Core's --optimizer-offload-fraction), of activations a
 * share of each stage's layers, rounded up, or a number of them (--cpu-offloading-num-layers). The layers are the first of a
 * stage, or of each of its chunks in equal parts: the last ones' backward passes come soonest.
 *
 * As text: none, or parts joined by '+', each whole or with its amount behind a colon: optimizer:50%+activations:16. A share is
 * in whole percents, which may be written as a fraction (0.5); a bare number is of layers.
 */
#ifndef MSIM_MODEL_SPEC_OFFLOAD_H
#define MSIM_MODEL_SPEC_OFFLOAD_H

#include <stdbool.h>
#include <stddef.h>

/* Ten bits for the amount of each: 0 nothing, 1 to 100 that many percent, above that so many layers more than 100. The constants
 * are all of a part, and name it; sets are ordered by their value, less before more of the same. */
enum offload {
    OFFLOAD_NONE,
    OFFLOAD_OPTIMIZER = 100,
    OFFLOAD_ACTIVATIONS = 100 << 10,
    OFFLOAD_PARAMETERS = 100 << 20,
    OFFLOAD_MOST = (1 << 30) - 1 /* no value is above */
};
enum { OFFLOAD_WHOLE = 100, OFFLOAD_LAYERS_MAX = 923, N_OFFLOAD_PARTS = 3 };

/* The amount of one part, and a set of that much of one. */
int offload_amount(enum offload set, enum offload part);
enum offload offload_of(enum offload part, int amount);
/* What a set's bits say is an amount of each part. */
bool offload_is_known(int set);

/* From 0 to 1, of a part whose amount is a share. */
double offload_share(enum offload set, enum offload part);
/* Of a stage of so many layers those whose activations leave; and how many of these are among `count` behind the first `before`.
 */
int offload_layers(enum offload set, int layers);
int offload_layers_among(enum offload set, int layers, int before, int count);

/* Every set of whole parts that can be, in their order. */
enum { N_OFFLOAD_WHOLES = 6 };
extern const enum offload offload_wholes[N_OFFLOAD_WHOLES];

/*
 * What a search looks at: of "auto" those; of "auto:25%" sets of states and activations in steps of that many percent, and with
 * all states those with the parameters. *n sets in their order, none first; false where a text is neither, or takes more than
 * OFFLOAD_SETS.
 */
enum { OFFLOAD_SETS = 32 };
bool offload_sets_of(const char *text, enum offload sets[OFFLOAD_SETS], int *n);

enum { OFFLOAD_WHY = 256 };
/* What a text says, the parts in any order; -1 with, in `why` (may be NULL), what cannot stand there and what could. */
int offload_parse(const char *text, char *why, size_t size);

enum { OFFLOAD_TEXT = 64 }; /* room for one */
/* "none", "optimizer:50%+activations". Returns buffer. */
char *offload_format(enum offload set, char *buffer, size_t size);

#endif
