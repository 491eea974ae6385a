/*
 * executor.h - one rank of a program on a device.
 *
 * The executor walks the rank's script and enqueues: what an operation waits for on other streams, a mark, what the operation
 * does, a mark. It knows no schedule. The marks' times are the measured timeline. Nothing waits on the host inside a step.
 *
 *   rank_open        communicators, weights, buffers; all ranks of the world at the same time
 *   rank_run_step    one training step: loads tokens, executes, waits for the end
 *   rank_close
 *
 * Weights start as parameters.h says; tokens come from a source (data.h) that depends on the sample's number alone, so every
 * layout trains on the same batch.
 */
#ifndef MSIM_RUNTIME_RUN_EXECUTOR_H
#define MSIM_RUNTIME_RUN_EXECUTOR_H

#include "runtime/base/data.h"
#include "runtime/base/rank.h"

struct rank_options {
    const struct program *program; /* with every rank there, verified */
    const struct setting *setting;
    struct data_source data;
    uint64_t seed;
    float rate;
};

/* What is asked of one rank to go wrong. */
enum trouble { TROUBLE_NONE, TROUBLE_KILLED, TROUBLE_HANGS, TROUBLE_SLOW };
struct injection {
    enum trouble trouble;
    int rank;
    int64_t step;  /* from 0, on which it begins */
    double factor; /* slow: each computation takes factor times as long */
};

/* Takes device and world over; rank_close releases them, also after a failure. The reason of a failure is in rank->diags. */
MUST_CHECK enum status rank_open(const struct rank_options *options, struct device *device, struct world *world,
                                 struct rank *rank);
/* Times of the step's operations, since all ranks met at its beginning, go to `timing` ([n_ops] each). */
MUST_CHECK enum status rank_run_step(const struct rank_options *options, struct rank *rank, const struct injection *injection,
                                     struct rank_timing *timing);
/* After a step. Loss: this rank's part of the mean over the batch's tokens (0 without a head; the same on all tensor-parallel
 * ranks). Squared gradient norm: of the whole model where the program exchanges it. */
MUST_CHECK enum status rank_read(struct rank *rank, double *loss, double *square_norm);
/* The gradients (or weights) that this rank updates, to their places in the whole model (model_map, `total` numbers; others are
 * left alone). Places that several ranks hold are written by each of them. */
MUST_CHECK enum status rank_collect(struct rank *rank, bool gradients, float *whole);
void rank_close(struct rank *rank);

#endif
