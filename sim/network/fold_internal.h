/*
 * fold_internal.h - what fold.c (the small program and network), fold_refine.c (classes), fold_check.c (are they what they claim)
 * and fold_connections.c (the ways that a program uses) share. Private to them.
 */
#ifndef MSIM_SIM_NETWORK_FOLD_INTERNAL_H
#define MSIM_SIM_NETWORK_FOLD_INTERNAL_H

#include "model/base/hash.h"
#include "sim/network/fold.h"

/* Everything that is divided into classes. */
enum part { PART_RANKS, PART_GROUPS, PART_CONNECTIONS, PART_LINKS, N_PARTS };

struct refinement {
    struct fold *fold;
    const struct fold_network *network;
    size_t n[N_PARTS];
    uint32_t *colour[N_PARTS]; /* classes so far, numbered as they are met */
    uint32_t n_colours[N_PARTS];
    uint64_t *seen[N_PARTS]; /* what each sees, as a hash */
    bool *live;              /* [links] used, and may be full */
    struct lockstep blocks;
    uint32_t *table; /* scratch for numbering */
    size_t table_size;
};

/* Lists of colours, one for each of n: equal within a class. */
struct colour_lists {
    uint32_t *first; /* [n + 1] */
    uint32_t *items;
    bool ordered; /* order counts; otherwise they are sorted first */
};

/* All connections of the whole program, classless. False: two ranks have no way to one another. */
bool fold_connections_list(struct fold *fold, const struct fold_network *network);
/* Which links may be full. */
void fold_live_links_find(struct refinement *r);
/* Split until nothing splits. False: too many classes of ranks are left to be worth it. */
bool fold_refine(struct refinement *r);
/* Does every member see exactly what the first of its class sees? */
bool fold_check(const struct refinement *r);
/* Whose a connection is: the classes of two ranks, or of a group, and a shape. */
void fold_ends_seen(const struct refinement *r, const struct fold_connection *c, uint32_t ends[2]);
/* The classes of connections over each link, sorted; free both arrays. */
struct colour_lists fold_links_list(const struct refinement *r);

/* `sum` with one more word, in order. */
static inline uint64_t fold_then(uint64_t sum, uint64_t word)
{
    return hash_mix(sum * HASH_GOLDEN + word + 1);
}

#endif
