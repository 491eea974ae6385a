/*
 * lockstep.h - blocks of ranks that can only advance together.
 *
 * Example: tp = 8. The eight ranks of a block receive activations at different times because their messages meet different
 * links. Their forward pass starts for all when the last one is ready.
 *
 * At chunk and layer detail a pass of the model is one operation. The exchanges inside it (tensor-parallel all-gathers and
 * reduce-scatters, the ring of context parallelism) are part of its cost. No participating rank can begin it before all have
 * their inputs, because the first exchange waits for the last of them. Without contention they are alike anyway. On a fabric
 * their messages meet different links, and the latest one holds up all. So in such a *block* of tp * cp ranks each pass starts
 * when its last member is ready, and ends for all at once. The wait of the others counts as tensor-parallel exchange.
 *
 * Expert-parallel groups are not blocks: at kernel detail their exchanges are operations of their own.
 */
#ifndef MSIM_SIM_NETWORK_LOCKSTEP_H
#define MSIM_SIM_NETWORK_LOCKSTEP_H

#include "model/program/program.h"

struct lockstep {
    int32_t n_blocks;
    int32_t *block;   /* [ranks] */
    int32_t *first;   /* [n_blocks + 1] in members */
    int32_t *members; /* ranks, block by block */
};

/* The blocks of a program with all its ranks. n_blocks 0: no ranks are in lockstep, and there is nothing to free. */
void lockstep_create(const struct program *program, struct lockstep *lockstep);
void lockstep_free(struct lockstep *lockstep);

/* Is it an operation that a block executes together? */
static inline bool lockstep_op(const struct op *op)
{
    return op->kind == OP_COMPUTE && op->stream == STREAM_COMPUTE && op->micro_batch >= 0;
}

#endif
