/*
 * stage_load.h - the contents of pipeline stages: layers, chunk by chunk, and parameters.
 *
 * Example: 32 layers, pp=4, vpp=2; stage 0 has the embedding.
 *
 *     stage_load_fill(&load, &layout, &setting, 0);
 *     load.runs[0] = {.chunks = 2, .layers = 4, ...}      two chunks of four equal layers
 *     load.parameters.dense                               8 layers and the token table, divided by tp
 *
 * The contents depend on the division of the model (tp, pp, vpp, ep, the split of experts, the arrangement of chunks). They do
 * not depend on the micro-batch, on replicas, sharding or recomputation, so the search rarely computes them.
 */
#ifndef MSIM_MODEL_COST_MEMORY_STAGE_LOAD_H
#define MSIM_MODEL_COST_MEMORY_STAGE_LOAD_H

#include <stddef.h>

#include "model/cost/work/muon.h"

/* Kinds of layers by the activations they keep: layer_kind_index without the window. */
enum { N_KEPT_KINDS = N_LAYER_KINDS / 2 };
static inline int kept_kind(struct layer_kind kind)
{
    return layer_kind_index(kind) / 2;
}

/* Consecutive chunks of a stage with equal numbers of layers of the same kinds. Modules of multi-token prediction count as a
 * chunk of their own before their layers. */
struct chunk_run {
    int chunks, layers; /* layers of one chunk */
    bool prediction;    /* they are modules of multi-token prediction */
    int n_kinds;
    struct {
        int kind;      /* kept_kind */
        double layers; /* for a model that changes from dense layers to mixtures inside a chunk (without a pattern): half of the
                          layers each */
    } of[N_KEPT_KINDS];
};

struct stage_load {
    int stage;
    struct stage_parameters parameters;   /* of a rank, before ZeRO */
    struct stage_parameters trained;      /* the trained part: all, or those of adapters */
    struct stage_parameters trained_pair; /* the largest trained part of two consecutive chunks */
    struct muon_matrices matrices;        /* matrices among them; none for optimizers that do not treat matrices separately */
    struct chunk_run *runs;
    size_t n_runs, capacity;
};
void stage_load_fill(struct stage_load *load, const struct layout *layout, const struct setting *setting, int stage);
void stage_load_free(struct stage_load *load);

/* The stages among which the fullest one is. Of stages that hold the same layers and no end, only the first counts, because the
 * number of micro-batches in flight falls with the stage or is the same everywhere. Where the backward pass is divided, only
 * the last counts, because the number of waiting weight gradients grows. All zero: no layout yet. */
struct full_stages {
    struct stage_load *stages;
    int n;           /* number of stages of the current layout */
    size_t capacity; /* all of them initialised */
    struct {         /* the division of the current layout */
        int tp, pp, vpp, ep, expert_tp;
        enum arrangement arrangement;
        bool llama, apart, divides;
    } key;
};
/* Fills in the stages of this layout. False: they already were. */
bool full_stages_of(struct full_stages *full, const struct layout *layout, const struct setting *setting);
void full_stages_free(struct full_stages *full);

#endif
