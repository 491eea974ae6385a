/*
 * startup.h - how long a start or restart of a job takes, stage by stage.
 *
 *   scheduling     nodes are allocated, pods are created; hot spares skip this
 *   image          the container image reaches the nodes: bytes over a node's NIC, or over the registry's rate shared by all
 *   process        interpreters start, libraries are loaded
 *   communicators  process groups are created; see below
 *   loading        the checkpoint is read (sim/weeks/checkpoint_cost.h)
 *   warm-up        compilation, first batch of the data loader, allocators
 *
 * Example: 2,048 GPUs with tp 8 and pp 8 make 1,120 groups, so 4.59 million operations of the store. At 228 us each that is the
 * 1,047 s that MegaScale measured (which the service time is fitted to).
 *
 *     struct startup_options usual = startup_usual();
 *     struct startup start = startup_of(&usual, &layout, &setting, 0, loading_s);     ... startup_total_s(&start) ...
 *
 * Communicators. A layout of n ranks makes
 *
 *     G = n/tp + n/pp + n/dp + n/(tp pp) + 2 n/pp
 *
 * process groups (tensor, pipeline, data, model, and two for the embeddings). A store (a key-value server) synchronises the
 * ranks. Each new group ends in a barrier of *all* ranks, two operations each. So a start takes 2 n G = O(n^2) operations of the
 * store:
 *
 *     STORE_TCP      PyTorch's TCPStore, single-threaded and blocking: s = 228 us per operation
 *     STORE_REDIS    non-blocking, asynchronous: s = 78.7 us
 *     STORE_ORDERED  groups are created in an order that needs no global barrier: each rank only waits for the 6 groups it is in,
 *                    12 n operations of the second store
 *
 * The two service times are fitted to MegaScale's 1,047 s and 361 s on 2,048 GPUs (tp 8, pp 8). Its "below 5 s" there and "below
 * 30 s above 10,000 GPUs" are then predictions: 1.9 s and 11.6 s (arXiv:2402.15627, section 3.5).
 */
#ifndef MSIM_SIM_WEEKS_STARTUP_H
#define MSIM_SIM_WEEKS_STARTUP_H

#include "model/layout/layout.h"

enum store_kind { STORE_TCP, STORE_REDIS, STORE_ORDERED };

struct startup_options {
    enum store_kind store;
    double scheduling_s;
    double image_bytes, registry_rate; /* B/s, shared by the nodes that need the image; rate 0: they have it */
    double process_s, warm_up_s;
};

/* Scheduling 60 s, no image transfer, process 30 s, warm-up 60 s, ordered groups. Assumptions, close to published restarts. */
struct startup_options startup_usual(void);

struct startup {
    double scheduling_s, image_s, process_s, communicators_s, loading_s, warm_up_s;
};

double startup_communicators_s(const struct layout *layout, int gpus, enum store_kind store);

/* Time of the store to create `groups` groups among n ranks, each of which is in `own` groups. */
double startup_groups_s(int n, double groups, int own, enum store_kind store);

/* `new_nodes` nodes need the image. */
struct startup startup_of(const struct startup_options *options, const struct layout *layout, const struct setting *setting,
                          int new_nodes, double loading_s);
double startup_total_s(const struct startup *startup);
/* Total for hot spares: without scheduling and image. */
double startup_hot_s(const struct startup *startup);

#endif
