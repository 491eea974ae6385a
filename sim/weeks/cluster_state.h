/*
 * cluster_state.h - which nodes are down, how slow the others are, and when that ends.
 *
 * Example: node 3 fails at 10 h for 5 h, and node 7 is a straggler at 90 % from 12 h to 13 h.
 *
 *     at 11 h   n_down 1, speed full       next end: node 3 at 15 h
 *     at 12 h   n_down 1, speed 90 %       next end: node 7 at 13 h
 *
 * A node is down for [t, t + down) of each of its outages; a counter unites overlapping outages. The speed of the cluster is
 * that of its slowest active straggler or link, because training is synchronous. Spares do not replace stragglers.
 *
 * At equal times outages end before new ones begin, except that an outage of length 0 ends after every fault of its instant.
 *
 * Cost: O(log n) per fault and end, with n active faults. When a slowest one ends, finding the speed costs O(active slow ones).
 */
#ifndef MSIM_SIM_WEEKS_CLUSTER_STATE_H
#define MSIM_SIM_WEEKS_CLUSTER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/fault/fault_trace.h"

/* Order of events at equal times. */
enum event_class { EVENT_END, EVENT_FAULT, EVENT_END_OF_EMPTY };

/* Why a node is away. */
enum away_reason {
    AWAY_OUTAGE,  /* it failed, or left as announced */
    AWAY_LISTED,  /* it failed too often: on the blocklist, for longer than the repair */
    AWAY_CHECKED, /* a healthy node under suspicion, or a slow one */
    N_AWAY_REASONS
};

struct fault_end {
    nanos time;
    nanos begun;
    enum event_class class; /* EVENT_END or EVENT_END_OF_EMPTY */
    uint32_t sequence;      /* number of the fault: fixes the order of equal ends */
    int32_t node;
    int32_t speed;
    enum fault_kind kind;
    enum away_reason reason;
};

struct cluster_state {
    int32_t n_nodes;
    int32_t n_down;
    int32_t *outages;       /* [n_nodes] active outages of each node */
    struct fault_end *ends; /* binary heap, earliest first */
    size_t n_ends, ends_capacity;
    /* Active stragglers and links by kind (enum fault_kind): their speeds, unordered, and the least; FULL_SPEED if none. */
    struct {
        int32_t *items;
        size_t n, capacity;
        int32_t least;
    } slow[N_FAULT_KINDS];
    int32_t speed; /* the least of both kinds */
    uint32_t sequence;
    double away_s[N_AWAY_REASONS]; /* node-seconds of all outages that have begun, up to their ends */
};

void cluster_state_init(struct cluster_state *state, int32_t n_nodes);
void cluster_state_free(struct cluster_state *state);

/* A fault begins; fault->node < n_nodes. The first function books it as AWAY_OUTAGE. */
void cluster_state_begin(struct cluster_state *state, const struct fault *fault);
void cluster_state_begin_for(struct cluster_state *state, const struct fault *fault, enum away_reason reason);

/* Node-seconds of outages for a reason until `now`, which is not before the last end. Overlapping outages of a node count each.
 */
double cluster_state_away_s(const struct cluster_state *state, enum away_reason reason, nanos now);

/* The earliest end; NULL if no fault is active. */
const struct fault_end *cluster_state_next_end(const struct cluster_state *state);

/* The earliest fault ends. Returns it. */
struct fault_end cluster_state_end(struct cluster_state *state);

/* Nodes that have been slow for `age` leave at `now`, the slowest first and at most `most`: each is then down for `away`. Returns
 * how many left. */
int cluster_state_evict_slow(struct cluster_state *state, nanos now, nanos age, nanos away, int most);

static inline bool cluster_state_is_down(const struct cluster_state *state, int32_t node)
{
    return state->outages[node] > 0;
}

#endif
