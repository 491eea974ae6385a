/*
 * fold_internal.h - what fold.c (classes) and fold_connections.c (the ways that a program uses) share. Private to them.
 */
#ifndef MSIM_SIM_FOLD_INTERNAL_H
#define MSIM_SIM_FOLD_INTERNAL_H

#include "sim/fold.h"

/* All connections of the whole program, classless. False: two ranks have no way to one another. */
bool fold_connections_list(struct fold *fold, const struct fold_network *network);

static inline uint64_t fold_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* `sum` with one more word, in order. */
static inline uint64_t fold_then(uint64_t sum, uint64_t word)
{
    return fold_mix(sum * UINT64_C(0x9E3779B97F4A7C15) + word + 1);
}

#endif
