/*
 * batch_fit.h - how well the sequences of a batch divide among replicas.
 *
 * Example: 4M tokens are 977 sequences of 4,096. On 512 GPUs:
 *
 *     batch_fit_of(512, 977)      sizes 10, left 1: 977 is a prime, so only dp = 1 divides it; better: a batch that leaves more
 *     batch_fit_of(512, 1024)     sizes 10, left 10
 *
 * Every replica has the same number of sequences, so dp divides the global batch, and it divides the GPUs. A round number of
 * tokens can therefore leave very few values of dp.
 */
#ifndef MSIM_MODEL_PLAN_BATCH_FIT_H
#define MSIM_MODEL_PLAN_BATCH_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/plan/space.h"

struct batch_fit {
    int sizes;      /* number of values of dp: divisors of the GPUs, at most the number of sequences */
    int left;       /* number of these that also divide the batch; 1 always does */
    int64_t better; /* among batches within an eighth of this one (or next to it) the one that leaves most values, the nearest on
                       ties; at most the largest batch of a job (model/spec/job.h); 0: none leaves more */
    int better_left;
};

/* gpus, batch >= 1. sizes and better_left count divisors up to this batch. Cost: at most about 5 x 10^5 divisions. */
struct batch_fit batch_fit_of(int gpus, int64_t batch);

/* Whether most sizes are left out. */
static inline bool batch_fits_badly(const struct batch_fit *fit)
{
    return 2 * fit->left < fit->sizes;
}

/* Adds a warning if the batch leaves few values of dp and no limit restricts dp. It names a batch that leaves more. */
void batch_fit_warn(int gpus, const struct job *job, const struct space_limits *limits, struct diags *diags);

#endif
