/*
 * startup.h - from "go" to the first step: what a (re)start takes.
 *
 *   scheduling     nodes are allocated, pods made; hot spares leave it out
 *   image          the container image reaches the nodes: bytes over the NIC of a node, or over the registry's rate shared by all
 *   process        interpreters start, libraries load
 *   communicators  below
 *   loading        the checkpoint is read (sim/weeks/checkpoint_cost.h)
 *   warm-up        compilation, the data loader's first batch, allocators
 *
 * Communicators. A layout of n ranks makes
 *
 *     G = n/tp + n/pp + n/dp + n/(tp pp) + 2 n/pp
 *
 * process groups (tensor, pipeline, data, model, and two for the embeddings). A store (a key-value server) keeps the ranks
 * together. Each new group ends in a barrier of *all* ranks, two operations each, so a start takes 2 n G = O(n^2) operations of
 * the store:
 *
 *     STORE_TCP      PyTorch's TCPStore, single-threaded and blocking: s = 228 us an operation
 *     STORE_REDIS    non-blocking, asynchronous: s = 78.7 us
 *     STORE_ORDERED  groups made in an order that needs no global barrier: each rank only waits for the 6 groups it is in, 12 n
 *                    operations of the second store
 *
 * The two service times are fitted to MegaScale's 1,047 s and 361 s on 2,048 GPUs (tp 8, pp 8); its "below 5 s" there and "below
 * 30 s above 10,000 GPUs" are then predictions: 1.9 s and 11.6 s (arXiv:2402.15627, section 3.5).
 */
#ifndef MSIM_SIM_WEEKS_STARTUP_H
#define MSIM_SIM_WEEKS_STARTUP_H

#include "model/layout/layout.h"

enum store_kind { STORE_TCP, STORE_REDIS, STORE_ORDERED };

struct startup_options {
    enum store_kind store;
    double scheduling_s;
    double image_bytes, registry_rate; /* B/s, shared by the nodes that need the image; rate 0: already there */
    double process_s, warm_up_s;
};

/* Scheduling 60 s, an image that is there, process 30 s, warm-up 60 s, ordered groups: assumptions near what restarts of
 * published systems take. */
struct startup_options startup_usual(void);

struct startup {
    double scheduling_s, image_s, process_s, communicators_s, loading_s, warm_up_s;
};

double startup_communicators_s(const struct layout *layout, int gpus, enum store_kind store);

/* The store's part of making `groups` groups among n ranks, of which each is in `own`. */
double startup_groups_s(int n, double groups, int own, enum store_kind store);

/* `new_nodes` need the image; `hot`: what replaces them stands ready. */
struct startup startup_of(const struct startup_options *options, const struct layout *layout, const struct setting *setting,
                          int new_nodes, double loading_s);
double startup_total_s(const struct startup *startup);
/* Without scheduling and image. */
double startup_hot_s(const struct startup *startup);

#endif
