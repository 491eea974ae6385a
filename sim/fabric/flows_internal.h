/*
 * flows_internal.h - what flows.c (connections and time) and flows_solve.c (rates) share. Private to them.
 */
#ifndef MSIM_SIM_FABRIC_FLOWS_INTERNAL_H
#define MSIM_SIM_FABRIC_FLOWS_INTERNAL_H

#include "model/base/memory.h"
#include "sim/fabric/flows.h"

#define LEVEL_NONE INT64_MAX /* a link that is not full, a transfer that nothing holds back */
#define NO_HOP     UINT32_MAX
#define NO_PLACE   UINT32_MAX

/* Where a connection crosses a link. Hops of one connection stand together, so visiting one brings its neighbours along. */
struct flow_hop {
    uint32_t link;
    uint32_t next, previous; /* hops of busy transfers on the same link */
    uint32_t flow;
    uint32_t share; /* of the link per unit of level: weight times crossings */
};

struct flow {
    int64_t level;     /* smallest level of the links on the path */
    double bytes;      /* of the transfer */
    double bytes_left; /* at `since` */
    nanos since;       /* when bytes_left was right */
    uint64_t what;
    uint32_t first_hop, n_hops;
    uint32_t place;  /* in the queue of ends; NO_PLACE: not there */
    uint32_t change; /* in the list of changed ones + 1, 0 none */
    uint16_t weight;
    uint8_t room;      /* for hops, when it is closed and opened again; 255: as many as it has */
    bool attached : 1; /* its hops are on the lists of their links */
    bool sending : 1;  /* a transfer is under way */
    bool open : 1;
};

struct flow_link {
    int64_t capacity;  /* units */
    int64_t candidate; /* its next level, while dirty */
    uint32_t first;    /* hop */
    uint32_t n_flows;
    uint32_t version; /* of its entry in the sweep */
    uint32_t mark;    /* sweep step in which it was last listed */
    uint32_t most;    /* n_flows at most */
    bool dirty;       /* to be settled: in the sweep's queue, or in the list for the next solve */
    bool released;    /* its old level no longer counts */
    bool noted;       /* in the list of links whose use may have changed */
};

struct link_use {
    double carried;
    nanos contended, since; /* since: start of the present contention, -1 none */
};

struct flow_end {
    nanos time;
    uint32_t flow;
};

/* A link to settle, at `key`. */
struct sweep_entry {
    int64_t key;
    uint32_t link, version; /* dead when the link has a newer version */
    uint32_t next;          /* in its bucket, or in the list of free ones; 0 none: numbers count from 1 */
};
enum { SWEEP_BUCKETS = 64 };

struct flow_change {
    uint32_t flow;
    int64_t before;
};

struct flows {
    nanos now;
    int64_t *levels; /* [n_links] */
    struct flow_link *links;
    struct link_use *uses;
    size_t n_links;

    struct flow *items;
    size_t n_items, item_capacity;
    struct flow_hop *hops;
    size_t n_hops, hop_capacity;
    uint32_t *closed; /* numbers to give again */
    size_t n_closed, closed_capacity;

    struct flow_end *ends; /* heap of transfers under way by (time, flow) */
    size_t n_ends, ends_capacity;
    uint32_t *idle; /* flows that ended and are still attached */
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
    int64_t *held; /* scratch of one evaluation: level elsewhere */
    uint32_t *shares;
    size_t held_capacity, shares_capacity;
    uint32_t *noted;
    size_t n_noted, noted_capacity;
    uint32_t step; /* for marks */
    struct flows_counts counts;
};

/* Work out all levels after the lists of links have changed; afterwards `changes` names the transfers whose level may differ. */
void flows_solve(struct flows *flows);
/* Remember that a link must be looked at in the next solve. */
void link_touch(struct flows *flows, uint32_t link);

/* Append to one of the lists above. */
static inline void list_push(uint32_t **list, size_t *n, size_t *capacity, uint32_t value)
{
    if (*n == *capacity)
        *list = (uint32_t *)memory_grow(*list, capacity, *n + 1, sizeof **list);
    (*list)[(*n)++] = value;
}

#endif
