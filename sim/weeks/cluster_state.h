/*
 * cluster_state.h - which nodes are down, how fast the rest may go, and when that ends.
 *
 * A node is down for [t, t + down) of every outage on it; overlapping outages of one node are united by a counter. The speed of
 * the cluster is that of its slowest active straggler or link (training is synchronous: everybody waits for the slowest). A
 * straggler is not replaced by a spare.
 *
 * At equal times outages end before new ones begin, except that an outage of no length ends after every fault of its instant.
 *
 * Cost: O(log n) per fault and end, n the faults active at once; the speed costs O(active slow ones) when a slowest one ends.
 */
#ifndef MSIM_SIM_WEEKS_CLUSTER_STATE_H
#define MSIM_SIM_WEEKS_CLUSTER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/fault/fault_trace.h"

/* Order of what happens at one instant. */
enum event_class { EVENT_END, EVENT_FAULT, EVENT_END_OF_EMPTY };

/* Why a node is away: it failed or left as announced, and is being repaired; it did so too often, and stays away for longer than
 * that takes; nothing but a suspicion or its slowness speaks against it. */
enum away_reason { AWAY_OUTAGE, AWAY_LISTED, AWAY_CHECKED, N_AWAY_REASONS };

struct fault_end {
    nanos time;
    nanos begun;
    enum event_class class; /* EVENT_END or EVENT_END_OF_EMPTY */
    uint32_t sequence;      /* of the fault: equal times keep one order */
    int32_t node;
    int32_t speed;
    enum fault_kind kind;
    enum away_reason reason;
};

struct cluster_state {
    int32_t n_nodes;
    int32_t n_down;
    int32_t *outages;       /* [n_nodes] active on each */
    struct fault_end *ends; /* binary heap, earliest first */
    size_t n_ends, ends_capacity;
    /* Active stragglers and links, by kind (enum fault_kind): their speeds, unordered, and the least; FULL_SPEED when none. */
    struct {
        int32_t *items;
        size_t n, capacity;
        int32_t least;
    } slow[N_FAULT_KINDS];
    int32_t speed; /* the least of all */
    uint32_t sequence;
    double away_s[N_AWAY_REASONS]; /* of all outages that have begun, to their ends */
};

void cluster_state_init(struct cluster_state *state, int32_t n_nodes);
void cluster_state_free(struct cluster_state *state);

/* A fault begins; fault->node < n_nodes. */
void cluster_state_begin(struct cluster_state *state, const struct fault *fault);
void cluster_state_begin_for(struct cluster_state *state, const struct fault *fault, enum away_reason reason);

/* Node-seconds of outages for a reason until `now`, no earlier than what has ended; overlapping ones of a node count each. */
double cluster_state_away_s(const struct cluster_state *state, enum away_reason reason, nanos now);

/* The earliest end, NULL when nothing is active. */
const struct fault_end *cluster_state_next_end(const struct cluster_state *state);

/* The earliest end happens. Returns what ended. */
struct fault_end cluster_state_end(struct cluster_state *state);

/* Slow nodes that have been so for `age` leave at `now`, the slowest first and `most` of them at most: each is a node down for
 * `away` instead. Returns how many. */
int cluster_state_evict_slow(struct cluster_state *state, nanos now, nanos age, nanos away, int most);

/* Whether a node is down. */
static inline bool cluster_state_is_down(const struct cluster_state *state, int32_t node)
{
    return state->outages[node] > 0;
}

#endif
