/*
 * comm_collective.h - parts of a collective: their sum, once they are in one place, and their blocks, for backends.
 */
#ifndef MSIM_RUNTIME_BASE_COMM_COLLECTIVE_H
#define MSIM_RUNTIME_BASE_COMM_COLLECTIVE_H

#include "runtime/base/comm.h"

/* out[i] = reduction over members of parts[member][i], [n][count], in the order of members; fp64 or fp32. */
void parts_reduce(const struct exchange_call *call, const void *parts, int n, int64_t count, void *out);

/* Block b of an all-gather or reduce-scatter of n members, as an exchange of its own. */
struct exchange_call parts_block(const struct exchange_call *call, int n, int b);

/* Of n members' parts one behind the other, [n][count], and the whole with their blocks in turn, [blocks][n][count / blocks], one
 * from the other. */
void parts_to_whole(const struct exchange_call *call, int n, const void *parts, void *whole);
void parts_of_whole(const struct exchange_call *call, int n, const void *whole, void *parts);

#endif
