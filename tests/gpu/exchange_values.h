/*
 * exchange_values.h - numbers that exchange_check sends, and the numbers that an exchange must return.
 *
 * Example: rank 1 of 2 sends exchange_value(1, i) for each i, and checks its 1000 sums of an all-reduce:
 *
 *     exchange_wrong_values(&(struct exchanged){EXCHANGE_ALL_REDUCE, 1, 2, 1, 1000, 1000}, sums)    0: all are right
 */
#ifndef MSIM_TESTS_GPU_EXCHANGE_VALUES_H
#define MSIM_TESTS_GPU_EXCHANGE_VALUES_H

#include "runtime/base/comm.h"

struct exchanged {
    enum exchange exchange;
    int rank, n_ranks, blocks;
    int64_t count, n_values; /* of the call; of its result */
};

/* Element i of what a rank sends. */
float exchange_value(int rank, int64_t i);
/* How many of the result's values are wrong. */
int exchange_wrong_values(const struct exchanged *exchanged, const float *values);

#endif
