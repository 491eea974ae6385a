/*
 * comm_threads.h - ranks as threads of one process that exchange through shared memory.
 *
 * Example: two ranks.
 *
 *     struct hub *hub = hub_new(2, 10 * NANOS_PER_SECOND);
 *     struct world *world = hub_join(hub, rank);                       in each of the two threads
 *     device_cpu_open(rank, hub_epoch(hub), 0, &device, &diags);
 *     world->api->close(world);
 *     hub_free(hub);                                                   after both threads have ended
 *
 * One hub serves all ranks. In a collective each member publishes the address of its part. When all have, each member computes
 * its share of the result (its part of a reduce-scatter, its slice of an all-reduce, its copy of an all-gather) from the memory
 * of the others; nobody leaves before all are done. Sums are in the order of members. A send copies its message into the
 * channel's queue and never waits.
 *
 * Cost of a collective of n members and b bytes: two rendezvous, and b bytes read per member (all-reduce: also b written).
 */
#ifndef MSIM_RUNTIME_COMM_COMM_THREADS_H
#define MSIM_RUNTIME_COMM_COMM_THREADS_H

#include "runtime/base/comm.h"

struct hub;

/* `timeout`: of any wait for another rank. */
struct hub *hub_new(int n_ranks, nanos timeout) __attribute__((returns_nonnull));
void hub_free(struct hub *hub); /* after all ranks have left */
/* A rank joins; its device must be a CPU device. Release with world->api->close. */
struct world *hub_join(struct hub *hub, int rank) __attribute__((returns_nonnull));
/* The epoch for devices of this hub. */
const nanos *hub_epoch(const struct hub *hub);

#endif
