/*
 * batch_fit.h - how well the sequences of a batch divide among replicas.
 *
 * Replicas have equally many sequences: dp divides the global batch, and it divides the GPUs. Of the divisors of the GPUs up
 * to the batch a round number of tokens can leave next to none: 4M tokens are 977 sequences of 4,096, a prime, and 512 GPUs
 * then are one replica, where 1,024 sequences leave all ten sizes.
 */
#ifndef MSIM_MODEL_PLAN_BATCH_FIT_H
#define MSIM_MODEL_PLAN_BATCH_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/plan/space.h"

struct batch_fit {
    int sizes;      /* of data parallelism: divisors of the GPUs, no more than sequences */
    int left;       /* those that divide the batch too; 1 is always one of them */
    int64_t better; /* of batches within an eighth of this one, or one beside, what leaves most, the nearest; 0: none more.
                     * None that is larger than a job may have (model/spec/job.h) */
    int better_left;
};

/* gpus, batch >= 1; sizes and better_left count divisors up to this batch. At most some 5 x 10^5 divisions. */
struct batch_fit batch_fit_of(int gpus, int64_t batch);

/* Are most sizes left out? */
static inline bool batch_fits_badly(const struct batch_fit *fit)
{
    return 2 * fit->left < fit->sizes;
}

/* A warning where the batch leaves few numbers of replicas and no limit names dp; it names a batch that leaves more. */
void batch_fit_warn(int gpus, const struct job *job, const struct space_limits *limits, struct diags *diags);

#endif
