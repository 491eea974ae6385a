/*
 * lockstep.h - ranks that can only go on together.
 *
 * At chunk and layer detail a pass of the model is one operation, and the exchanges inside it (tensor-parallel all-gathers and
 * reduce-scatters, the ring of context parallelism) belong to its cost. None of the ranks that take part can begin it before all
 * of them have what they need: the first exchange waits for the last of them. On a network without contention they are alike
 * anyway; on a fabric their messages meet different links, and the latest one holds up all. So in such a *block* of tp * cp ranks
 * each pass starts when its last member is ready, and ends for all at once; the others' wait counts as tensor-parallel exchange.
 *
 * Not held together: expert-parallel groups, whose exchanges are operations of their own at kernel detail only.
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

/* The blocks of a program with all its ranks; none (n_blocks 0, nothing to free) where no ranks go in lockstep. */
void lockstep_create(const struct program *program, struct lockstep *lockstep);
void lockstep_free(struct lockstep *lockstep);

/* Is it an operation that a block executes together? */
static inline bool lockstep_op(const struct op *op)
{
    return op->kind == OP_COMPUTE && op->stream == STREAM_COMPUTE && op->micro_batch >= 0;
}

#endif
