/*
 * flows_internal.h - the state of flows. Private to flows.c (connections and time), flows_solve.c (rates), flows_books.c (books)
 * and flows_answers.c (rates, loads and the check).
 *
 * Glossary (flows.h has the theory):
 *
 *   level         rate of a transfer per unit of weight, an integer in units of 1/256 B/s. The level of a link is the level of
 *                 the transfers that it holds back; LEVEL_NONE: it holds back none
 *   water level   the level at which a link is exactly full, given the levels of its transfers elsewhere
 *   ceiling       the level of a transfer with all its links to itself
 *   share         capacity that a transfer takes of a link per unit of level: weight times crossings
 *   room          capacity of a link minus the shares times ceilings on it. A link is *tight* if that is negative: only then can
 *                 it be full
 *   books         what a tight link keeps about its transfers: their list, and the sums left, sharing and below for its pivot
 *   booked        in books: a hop whose transfer is in the link's list; a link that has books
 *   pivot         the level that divides a link's transfers into those counted in `left` (below it) and in `sharing` (the
 *                 others)
 *   outlook       what the books say about the water level: it is L (WATER_IS), it is above the link's own level L (WATER_ABOVE),
 *                 or only that it is at least L (WATER_NOT_BELOW)
 *   survey        visits the list of a link, if the books do not decide, and moves the pivot to the water level
 *   sweep         the solve: settles links in the order of levels, from a priority queue
 *   settle        gives a link its new level and updates its transfers
 *   dirty         a link that must be settled
 *   noted         a link whose contention, reported by flows_contended, may have changed
 *   attached      a transfer that takes part in rates: its hops are active
 *   fresh         a transfer that began at this instant; its end is not in the queue yet
 */
#ifndef MSIM_SIM_FABRIC_FLOWS_INTERNAL_H
#define MSIM_SIM_FABRIC_FLOWS_INTERNAL_H

#include "model/base/memory.h"
#include "sim/fabric/flows.h"

#define LEVEL_NONE INT64_MAX /* of a link: not full; of a transfer: nothing holds it back */
#define NO_HOP     UINT32_MAX
#define NO_PLACE   UINT32_MAX
#define NO_BLOCK   UINT32_MAX

__extension__ typedef __int128 wide; /* for sums of shares times ceilings, which overflow 64 bits on fast links */

/* A crossing of a link by a connection. Hops of a connection are contiguous. This is the part that every transfer needs ... */
struct flow_hop {
    uint32_t link;
    uint32_t share : 30; /* of the link per unit of level: weight times crossings */
    uint32_t active : 1; /* its transfer takes part in rates */
    uint32_t booked : 1; /* and is in the link's books */
};

/* ... and this the part that only tight links need. */
struct flow_listing {
    uint32_t next, previous; /* hops of open connections on the same link */
    uint32_t flow;
};

/* A transfer in the books of a link. */
struct book_entry {
    int64_t level; /* the transfer's */
    uint32_t flow, share;
};

struct flow {
    int64_t level;     /* smallest of its ceiling and the levels of the links on the path */
    int64_t ceiling;   /* its level with all its links to itself */
    double bytes_left; /* at `since` */
    nanos since;       /* the time for which bytes_left is right */
    double carried;    /* bytes of all transfers begun */
    uint32_t first_hop, n_hops;
    uint32_t change; /* index + 1 in the list of changes; 0: none */
    uint16_t weight;
    uint8_t room;      /* hops that fit when it is reopened; 255: n_hops */
    bool attached : 1; /* its hops are active */
    bool sending : 1;  /* a transfer is under way */
    bool open : 1;
    bool counted : 1; /* it represents many equal connections */
    bool fresh : 1;   /* began at this instant: its end is not in the queue yet */
};

/* The part of a link that every transfer touches. */
struct link_load {
    wide room;           /* capacity minus shares times ceilings; the link can be full only if this is negative */
    int64_t level;       /* LEVEL_NONE: it holds back none */
    uint32_t n_flows;    /* crossings by transfers */
    uint32_t most : 31;  /* maximum of n_flows so far */
    uint32_t booked : 1; /* it has books: it was tight since it was last empty */
};

/* The part of a link that only tight links need: the books of flows_books.c, and the place in the sweep. */
struct flow_link {
    wide left;        /* capacity minus shares times levels of the transfers below the pivot */
    int64_t sharing;  /* shares of the transfers at the pivot or above */
    int64_t pivot;    /* not above the link's level */
    int64_t below;    /* at least the largest level below the pivot */
    uint32_t block;   /* of its list in the pool */
    uint32_t mark;    /* sweep step in which it was last listed */
    int64_t shares;   /* of all transfers on it */
    int64_t key;      /* of its entry in the sweep; LEVEL_NONE: none */
    int64_t capacity; /* units */
    uint32_t n_entries;
    uint32_t first;   /* hop */
    uint32_t version; /* of its entry in the sweep */
    uint8_t size;     /* its list has room for 2^size entries */
    bool dirty;       /* in the sweep's queue, or in the list for the next solve */
    bool noted;       /* in the list of links whose contention may have changed */
};

struct link_use {
    double closed;          /* bytes of connections that were closed or rerouted */
    nanos contended, since; /* since: start of the present contention; -1: none */
};

/* Transfers that end at one time: one entry in the queue of ends. Transfers that began together mostly end together. */
struct flow_ends {
    nanos time;
    uint32_t first, last; /* flows; NO_FLOW: empty, and not in the queue */
    uint32_t place;       /* in the queue */
    uint32_t next_free;
};
struct flow_end {
    nanos time;
    uint32_t group;
};
struct flow_place {
    uint32_t group; /* NO_PLACE: the flow has no end in the queue */
    uint32_t next, previous;
};

/* A link to settle when the sweep reaches `key`. */
struct sweep_entry {
    int64_t key;
    uint32_t link, version; /* stale if the link has a newer version */
    uint32_t next;          /* in its bucket or the free list; numbers count from 1, 0: none */
};
enum { SWEEP_BUCKETS = 64 };
enum { BOOK_SIZES = 32 };

struct flow_change {
    uint32_t flow;
    int64_t before;
};

struct flows {
    nanos now;
    struct link_load *loads;
    struct flow_link *links;
    struct link_use *uses;
    size_t n_links;

    struct flow *items;
    uint64_t *payloads; /* [n_items] the caller's */
    size_t n_items, item_capacity, payload_capacity, place_capacity;
    struct flow_place *places; /* [n_items] in the queue of ends */
    struct flow_hop *hops;
    struct flow_listing *listings; /* [n_hops] */
    uint32_t *book_places;         /* [n_hops] index in the link's list, of booked hops */
    size_t n_hops, hop_capacity, listing_capacity, book_place_capacity;
    uint32_t *closed; /* numbers to reuse */
    size_t n_closed, closed_capacity;

    struct flow_end *ends; /* heap by (time, group) */
    size_t n_ends, ends_capacity;
    struct flow_ends *groups;
    size_t n_groups, group_capacity;
    uint32_t free_group, last_group; /* last_group: the group that got a transfer last */
    uint32_t *idle;                  /* flows that ended and are still attached */
    size_t n_idle, idle_capacity;
    uint32_t *starting; /* flows that send and are not attached yet */
    size_t n_starting, starting_capacity;

    uint32_t *dirty; /* links to look at in the next solve */
    size_t n_dirty, dirty_capacity;
    /* The sweep's queue, a radix heap: entry in bucket b differs from the last key taken in bit b - 1 and not above, bucket 0
     * holds those equal to it. Keys never fall in a sweep. */
    struct sweep_entry *sweep; /* pool */
    size_t n_sweep, sweep_capacity;
    int64_t sweep_key;     /* last taken */
    uint64_t sweep_filled; /* bit b: bucket b is not empty */
    uint32_t sweep_buckets[SWEEP_BUCKETS], sweep_free;
    struct flow_change *changes;
    size_t n_changes, change_capacity;
    uint32_t *touched; /* links touched by one settling */
    size_t n_touched, touched_capacity;
    struct book_entry *entries; /* pool for the lists of links with books, in blocks of 2^k */
    size_t n_entries, entry_capacity;
    uint32_t free_blocks[BOOK_SIZES]; /* [k] first free block of 2^k; the next one stands in its first entry */
    uint32_t *noted;
    size_t n_noted, noted_capacity;
    uint32_t step; /* for marks */
    struct flows_counts counts;
};

/* Computes all levels after links or transfers changed. Afterwards `changes` lists the transfers whose level may differ. */
void flows_solve(struct flows *flows);
/* Marks a link for the next solve. */
void link_touch(struct flows *flows, uint32_t link);

/* ---- books (flows_books.c) */

/* What the books of a link say about its water level (see the glossary). */
struct outlook {
    enum { WATER_IS, WATER_ABOVE /* the link's level, which is `level` */, WATER_NOT_BELOW } bound;
    int64_t level;
};

void books_create(struct flows *flows);
/* Gives books to a link that has become tight. */
void link_book(struct flows *flows, uint32_t link);
/* Takes the books from an empty link. */
void link_unbook(struct flows *flows, uint32_t link);
/* A transfer joins or leaves a link with books, at its present level. */
void book_join(struct flows *flows, uint32_t hop);
void book_leave(struct flows *flows, uint32_t hop);

static inline void book_sums_add(struct flow_link *link, int64_t level, int64_t share)
{
    if (level >= link->pivot) {
        link->sharing += share;
        return;
    }
    link->left -= (wide)level * share;
    if (level > link->below)
        link->below = level;
}

static inline void book_sums_subtract(struct flow_link *link, int64_t level, int64_t share)
{
    if (level >= link->pivot)
        link->sharing -= share;
    else
        link->left += (wide)level * share;
}

/* A transfer's level changes. */
static inline void book_move(struct flows *flows, uint32_t hop, int64_t before, int64_t level)
{
    struct flow_link *link = &flows->links[flows->hops[hop].link];

    flows->entries[link->block + flows->book_places[hop]].level = level;
    book_sums_subtract(link, before, flows->hops[hop].share);
    book_sums_add(link, level, flows->hops[hop].share);
}

/* The outlook from the sums alone; WATER_NOT_BELOW if they do not decide. */
struct outlook link_outlook(struct flows *flows, uint32_t link);
/* The outlook from the list. It decides, and moves the pivot to the water level or the link's, whichever is lower. */
struct outlook link_survey(struct flows *flows, uint32_t link);
/* The water level, at least `from`, if all transfers in the list have the levels that their other links allow. Moves the pivot
 * there. */
int64_t link_fill(struct flows *flows, uint32_t link, int64_t from);

/* Can the link hold back a transfer? */
static inline bool link_tight(const struct flows *flows, uint32_t link)
{
    return flows->loads[link].room < 0;
}

/* Number of crossings of a hop. */
static inline uint32_t hop_crossings(const struct flow *flow, const struct flow_hop *hop)
{
    return flow->weight == 1 ? hop->share : hop->share / flow->weight;
}

/* The level of a transfer with the link of a hop to itself. */
static inline int64_t hop_ceiling(const struct flows *flows, const struct flow *flow, const struct flow_hop *hop)
{
    return flows->links[hop->link].capacity / (flow->counted ? flow->weight : hop->share);
}

/* Appends to one of the lists above. */
static inline void list_push(uint32_t **list, size_t *n, size_t *capacity, uint32_t value)
{
    if (*n == *capacity)
        *list = (uint32_t *)memory_grow(*list, capacity, *n + 1, sizeof **list);
    (*list)[(*n)++] = value;
}

#endif
