/*
 * stage_load.h - what pipeline stages hold: layers, chunk by chunk, and parameters.
 *
 * It depends on how the model is divided (tp, pp, vpp, ep, the experts' split and the arrangement of chunks), not on the
 * micro-batch, on replicas, or on what of a layer is sharded or recomputed; so the search asks seldom.
 */
#ifndef MSIM_MODEL_COST_MEMORY_STAGE_LOAD_H
#define MSIM_MODEL_COST_MEMORY_STAGE_LOAD_H

#include <stddef.h>

#include "model/cost/work/muon.h"

/* Layers by what they keep: a kind, whatever its window, at half of its layer_kind_index. */
enum { N_KEPT_KINDS = N_LAYER_KINDS / 2 };
static inline int kept_kind(struct layer_kind kind)
{
    return layer_kind_index(kind) / 2;
}

/* Chunks of a stage, one behind the other, with as many layers of the same kinds. Modules of multi-token prediction count as a
 * chunk of their own before the layers of theirs. */
struct chunk_run {
    int chunks, layers; /* of one chunk */
    bool prediction;    /* they are modules of multi-token prediction */
    int n_kinds;
    struct {
        int kind;      /* kept_kind */
        double layers; /* where a model without a pattern changes from dense layers to mixtures in a chunk: half of them each */
    } of[N_KEPT_KINDS];
};

struct stage_load {
    int stage;
    struct stage_parameters parameters;   /* of a rank, before ZeRO */
    struct stage_parameters trained;      /* of them those that are: all, or adapters' */
    struct stage_parameters trained_pair; /* and of these those of two chunks, one behind the other, that have most */
    struct muon_matrices matrices;        /* among them; none for optimizers that do not know of matrices */
    struct chunk_run *runs;
    size_t n_runs, capacity;
};
void stage_load_fill(struct stage_load *load, const struct layout *layout, const struct setting *setting, int stage);
void stage_load_free(struct stage_load *load);

/* The stages one of which is the fullest: of those that hold the same layers, no end among them, the first, as what is in flight
 * falls with the stage or is as much everywhere; where the backward pass is divided the last, as what waits for its weights'
 * gradients grows. All zero: of no layout yet. */
struct full_stages {
    struct stage_load *stages;
    int n;           /* of this layout's */
    size_t capacity; /* all initialised */
    struct {         /* whose they are */
        int tp, pp, vpp, ep, expert_tp;
        enum arrangement arrangement;
        bool llama, apart, divides;
    } key;
};
/* Fills in those of this layout; false: they are there already. */
bool full_stages_of(struct full_stages *full, const struct layout *layout, const struct setting *setting);
void full_stages_free(struct full_stages *full);

#endif
