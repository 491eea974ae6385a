/*
 * stage_load.h - what pipeline stages hold: layers, chunk by chunk, and parameters.
 *
 * It depends on how the model is divided (tp, pp, vpp, ep, the experts' split and the arrangement of chunks), not on the
 * micro-batch, on replicas, or on what of a layer is sharded or recomputed; so the search asks seldom.
 */
#ifndef MSIM_MODEL_COST_STAGE_LOAD_H
#define MSIM_MODEL_COST_STAGE_LOAD_H

#include <stddef.h>

#include "model/cost/muon.h"

/* Chunks of a stage, one behind the other, with as many layers of the same kinds. Modules of multi-token prediction count as a
 * chunk of their own before the layers of theirs. */
struct chunk_run {
    int chunks, layers; /* of one chunk */
    bool mixture[2];    /* is its first, its last layer one? */
};

struct stage_load {
    int stage;
    struct stage_parameters parameters; /* of a rank, before ZeRO */
    struct muon_matrices matrices;      /* among them; none for optimizers that do not know of matrices */
    struct chunk_run *runs;
    size_t n_runs, capacity;
};
void stage_load_fill(struct stage_load *load, const struct layout *layout, const struct setting *setting, int stage);
void stage_load_free(struct stage_load *load);

/* The stages one of which is the fullest: activations fall with the stage or are as many everywhere, and the ends hold the
 * tables, so it is the first, the second, the last, or the first of those with a layer more. All zero: of no layout yet. */
enum { FULL_STAGES = 4 };
struct full_stages {
    struct stage_load stages[FULL_STAGES];
    int n;
    struct { /* whose they are */
        int tp, pp, vpp, ep, expert_tp;
        enum arrangement arrangement;
        bool llama;
    } key;
};
/* Fills in those of this layout, unless they are there. */
void full_stages_of(struct full_stages *full, const struct layout *layout, const struct setting *setting);
void full_stages_free(struct full_stages *full);

#endif
