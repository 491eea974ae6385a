/*
 * offload.h - what is kept in the memory of the host instead of the GPU's, and how much of it.
 *
 * Optimizer states with the master copy of the weights (DeepSpeed ZeRO-Offload, Megatron-Core's --optimizer-cpu-offload, states
 * of PyTorch FSDP's CPUOffload), which the host's cores then update; what layers keep for their backward passes
 * (Megatron-Core's activation offloading, Transformer Engine's --cpu-offloading-num-layers, PyTorch's save_on_cpu), which goes
 * down after the forward pass of a layer and comes back before its backward pass; and sharded parameters (FSDP's
 * CPUOffload(offload_params), DeepSpeed's offload_param of ZeRO-3), which come up for each gather. model/cost/work/host_memory.h
 * has the bytes and the time.
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
#include <stdint.h>

enum offload_part { OFFLOAD_OPTIMIZER, OFFLOAD_ACTIVATIONS, OFFLOAD_PARAMETERS, N_OFFLOAD_PARTS };
enum { OFFLOAD_WHOLE = 100, OFFLOAD_LAYERS_MAX = 923 };

/* How much of a part: a percentage, or a number of each stage's layers (activations only); both 0: nothing. */
struct offload_amount {
    int16_t percent, layers;
};

struct offload {
    struct offload_amount of[N_OFFLOAD_PARTS];
};

/* All of one part. */
struct offload offload_all(enum offload_part part);
/* The union of two sets that share no part. */
struct offload offload_join(struct offload a, struct offload b);

static inline bool offload_has(const struct offload *set, enum offload_part part)
{
    return set->of[part].percent > 0 || set->of[part].layers > 0;
}
static inline bool offload_is_none(const struct offload *set)
{
    return !offload_has(set, OFFLOAD_OPTIMIZER) && !offload_has(set, OFFLOAD_ACTIVATIONS) &&
           !offload_has(set, OFFLOAD_PARAMETERS);
}
static inline bool offload_equal(const struct offload *a, const struct offload *b)
{
    for (int i = 0; i < N_OFFLOAD_PARTS; i++)
        if (a->of[i].percent != b->of[i].percent || a->of[i].layers != b->of[i].layers)
            return false;
    return true;
}
/* Whether a text can express each amount. */
bool offload_is_known(const struct offload *set);

/* Sets in their order, as numbers from 0 (none): less before more of the same, layers behind shares. For tables of values. */
int offload_number(const struct offload *set);
struct offload offload_of_number(int number);

/* A part's share, from 0 to 1; its amount must be a percentage. */
double offload_share(const struct offload *set, enum offload_part part);
/* Of the `layers` of a stage, the number whose activations leave; and how many of these are among the `count` layers that follow
 * the first `before`. */
int offload_layers(const struct offload *set, int layers);
int offload_layers_among(const struct offload *set, int layers, int before, int count);

/* Every legal set of whole parts, in the order of offload_number. */
enum { N_OFFLOAD_WHOLES = 6 };
extern const struct offload offload_wholes[N_OFFLOAD_WHOLES];

/*
 * What a search looks at: of "auto" those; of "auto:25%" sets of states and activations in steps of that many percent, and with
 * all states those with the parameters. *n sets in their order, none first; false where a text is neither, or takes more than
 * OFFLOAD_SETS.
 */
enum { OFFLOAD_SETS = 32 };
bool offload_sets_of(const char *text, struct offload sets[OFFLOAD_SETS], int *n);

enum { OFFLOAD_WHY = 256 };
/* What a text says, the parts in any order; false with, in `why` (may be NULL), what cannot stand there and what could. */
bool offload_parse(const char *text, struct offload *set, char *why, size_t size);

enum { OFFLOAD_TEXT = 64 }; /* room for one */
/* "none", "optimizer:50%+activations". Returns buffer. */
char *offload_format(const struct offload *set, char *buffer, size_t size);

#endif
