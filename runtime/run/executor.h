/*
 * executor.h - executes one rank of a program on a device.
 *
 * Example: three steps of one rank; all ranks call this at the same time.
 *
 *     rank_open(&options, device, world, &rank);               communicators, weights, buffers
 *     for (int step = 0; step < 3; step++)
 *         rank_run_step(&options, &rank, NULL, &timing);       loads tokens, executes, waits for the end
 *     rank_read(&rank, &loss, &square_norm);
 *     rank_close(&rank);
 *
 * For each operation of the rank's script the executor enqueues four things: waits for other streams, an event, the operation,
 * an event. The times of the events are the measured timeline. The executor knows no schedule, and does not wait on the host
 * during a step.
 *
 * Initial weights are those of parameters.h. Tokens depend only on the number of the sample (data.h), so every layout trains on
 * the same batch.
 */
#ifndef MSIM_RUNTIME_RUN_EXECUTOR_H
#define MSIM_RUNTIME_RUN_EXECUTOR_H

#include "runtime/base/data.h"
#include "runtime/base/rank.h"

struct rank_options {
    const struct program *program; /* of all ranks, verified */
    const struct setting *setting;
    struct data_source data;
    uint64_t seed;
    float rate;
};

/* A fault that one rank simulates. */
enum trouble { TROUBLE_NONE, TROUBLE_KILLED, TROUBLE_HANGS, TROUBLE_SLOW };
struct injection {
    enum trouble trouble;
    int rank;
    int64_t step;  /* first step with the fault, from 0 */
    double factor; /* slow: each computation lasts factor times as long */
};

/* Takes ownership of device and world; rank_close frees them, also after a failure. rank->diags has the reason of a failure. */
MUST_CHECK enum status rank_open(const struct rank_options *options, struct device *device, struct world *world,
                                 struct rank *rank);
/* `timing` ([n_ops] each) gets the times of the step's operations, since all ranks met at its beginning. */
MUST_CHECK enum status rank_run_step(const struct rank_options *options, struct rank *rank, const struct injection *injection,
                                     struct rank_timing *timing);
/* Call after a step. Loss: this rank's part of the mean over the batch's tokens (0 without a head; the same on all
 * tensor-parallel ranks). Squared gradient norm: of the whole model; NAN if the program does not exchange it. */
MUST_CHECK enum status rank_read(struct rank *rank, double *loss, double *square_norm);
/* Copies the gradients (or weights) that this rank updates to their places in the whole model (model_map, `total` numbers). Other
 * places are not changed; places that several ranks hold are written by each of them. */
MUST_CHECK enum status rank_collect(struct rank *rank, bool gradients, float *whole);
void rank_close(struct rank *rank);

#endif
