/*
 * offload.h - the states that are kept in host memory instead of GPU memory, and how much of them.
 *
 * Example: offload=optimizer:50%+activations:16
 *
 *     offload_share(&set, OFFLOAD_OPTIMIZER)      0.5: half of the optimizer states of every layer
 *     offload_layers(&set, 24)                    16 of the 24 layers of a stage
 *
 * Three parts can be offloaded. Optimizer states with the master copy of the weights, which the host's cores then update
 * (DeepSpeed ZeRO-Offload, Megatron-Core's --optimizer-cpu-offload, states of PyTorch FSDP's CPUOffload). Activations, which
 * leave after the forward pass of a layer and return before its backward pass (Megatron-Core's activation offloading,
 * Transformer Engine's
 * --cpu-offloading-num-layers, PyTorch's save_on_cpu). Sharded parameters, which come up for each gather (FSDP's
 * CPUOffload(offload_params), DeepSpeed's offload_param of ZeRO-3). model/cost/work/host_memory.h has bytes and times.
 *
 * Amounts. Of states and parameters: a share of every layer (Megatron-Core's --optimizer-offload-fraction). Of activations: a
 * share of each stage's layers, rounded up, or a number of them (--cpu-offloading-num-layers). The layers are the first of a
 * stage, or of each of its chunks in equal parts, because the backward passes of the last layers come soonest.
 *
 * Text form: none, or parts joined by '+', each whole or with its amount after a colon: optimizer:50%+activations:16. A share
 * is a whole percentage or a fraction (0.5); a bare number counts layers.
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

/* The number of a set in the order of sets: 0 is none, smaller amounts come before larger ones, layers after shares. For tables
 * of values. */
int offload_number(const struct offload *set);
struct offload offload_of_number(int number);

/* A part's share, from 0 to 1; its amount must be a percentage. */
double offload_share(const struct offload *set, enum offload_part part);
/* The number of a stage's `layers` whose activations leave; and the number of these among the `count` layers that follow the
 * first `before`. */
int offload_layers(const struct offload *set, int layers);
int offload_layers_among(const struct offload *set, int layers, int before, int count);

/* Every legal set of whole parts, in the order of offload_number. */
enum { N_OFFLOAD_WHOLES = 6 };
extern const struct offload offload_wholes[N_OFFLOAD_WHOLES];

/* The sets that a search tries. "auto": offload_wholes. "auto:25%": states and activations in steps of that percentage, and
 * with all states also the parameters. Fills in *n sets in order, none first. False: the text is neither, or there are more
 * than OFFLOAD_SETS. */
enum { OFFLOAD_SETS = 32 };
bool offload_sets_of(const char *text, struct offload sets[OFFLOAD_SETS], int *n);

enum { OFFLOAD_WHY = 256 };
/* Reads a text with parts in any order. False: `why` (may be NULL) gets the wrong word and possible ones. */
bool offload_parse(const char *text, struct offload *set, char *why, size_t size);

enum { OFFLOAD_TEXT = 64 }; /* room for one */
/* "none", "optimizer:50%+activations". Returns buffer. */
char *offload_format(const struct offload *set, char *buffer, size_t size);

#endif
