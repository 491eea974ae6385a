/*
 * comm_threads.h - ranks as threads of one process that exchange through shared memory.
 *
 * One hub serves all ranks. A collective is a meeting: each member says where its part is; when all are there each member works
 * on its share of the result (its own part of a reduce-scatter, its slice of an all-reduce, its copy of an all-gather), reading
 * the others' memory; nobody leaves before all are done. Sums run over members in order. A send copies its message into a queue
 * of the channel and never waits.
 *
 * Cost of a collective of n members and b bytes: two meetings, and b bytes read per member (all-reduce: b, plus b written).
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
/* Where the devices of this hub have their epoch. */
const nanos *hub_epoch(const struct hub *hub);

#endif
