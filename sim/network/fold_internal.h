/*
 * fold_internal.h - the state of a refinement. Private to fold.c (the small program and network), fold_refine.c (classes),
 * fold_check.c (their exact check) and fold_connections.c (the paths of a program).
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
    uint32_t *colour[N_PARTS]; /* classes so far, numbered in the order of discovery */
    uint32_t n_colours[N_PARTS];
    uint64_t *seen[N_PARTS]; /* hash of the neighbours of each */
    bool *live;              /* [links] used, and may be full */
    struct lockstep blocks;
    uint32_t *table; /* scratch for numbering */
    size_t table_size;
};

/* Lists of colours, one per member; equal within a class. */
struct colour_lists {
    uint32_t *first; /* [n + 1] */
    uint32_t *items;
    bool ordered; /* the order matters; otherwise they are sorted first */
};

/* Lists all connections of the whole program, without classes. Returns false if two ranks are not connected. */
bool fold_connections_list(struct fold *fold, const struct fold_network *network);
/* Finds the links that may be full. */
void fold_live_links_find(struct refinement *r);
/* Splits until nothing splits. Returns false if too many classes of ranks are left. */
bool fold_refine(struct refinement *r);
/* Does every member see exactly the same as the first of its class? */
bool fold_check(const struct refinement *r);
/* The ends of a connection: the classes of two ranks, or of a group and a shape. */
void fold_ends_seen(const struct refinement *r, const struct fold_connection *c, uint32_t ends[2]);
/* The sorted classes of the connections over each link; the caller frees both arrays. */
struct colour_lists fold_links_list(const struct refinement *r);

/* Adds a word to a hash; the order matters. */
static inline uint64_t fold_then(uint64_t sum, uint64_t word)
{
    return hash_mix(sum * HASH_GOLDEN + word + 1);
}

#endif
