/*
 * comm_collective.h - sums and block orders of collectives, for backends that hold all parts in one memory.
 *
 * Example: a reduce-scatter of two members, whose parts [2][3] are 1 2 3 and 10 20 30.
 *
 *     parts_reduce(&call, parts, 2, 3, out);          out is 11 22 33 (REDUCTION_SUM); with REDUCTION_MAX 10 20 30
 */
#ifndef MSIM_RUNTIME_BASE_COMM_COLLECTIVE_H
#define MSIM_RUNTIME_BASE_COMM_COLLECTIVE_H

#include "runtime/base/comm.h"

/* out[i] = reduction over members of parts[member][i], [n][count], in the order of members; fp64 or fp32. */
void parts_reduce(const struct exchange_call *call, const void *parts, int n, int64_t count, void *out);

/* Block b of an all-gather or reduce-scatter of n members, as an exchange with one block. */
struct exchange_call parts_block(const struct exchange_call *call, int n, int b);

/* Reorders the parts of n members, [n][count], to the whole, [blocks][n][count / blocks] (comm.h), and back. */
void parts_to_whole(const struct exchange_call *call, int n, const void *parts, void *whole);
void parts_of_whole(const struct exchange_call *call, int n, const void *whole, void *parts);

#endif
