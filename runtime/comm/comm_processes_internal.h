/*
 * comm_processes_internal.h - messages between processes, and the exchanges that are made of them (private to comm_processes.h).
 */
#ifndef MSIM_RUNTIME_COMM_COMM_PROCESSES_INTERNAL_H
#define MSIM_RUNTIME_COMM_COMM_PROCESSES_INTERNAL_H

#include "runtime/base/comm.h"

struct process_world;

struct process_communicator {
    struct communicator base;
    int tag;
    int *members;
};

/* What a wait needs to know for its sentence. */
struct waiting {
    struct process_world *world;
    const struct process_communicator *communicator;
    struct device *device; /* NULL: the host waits */
    const char *exchange, *what;
};

/* A message with a copy of `bytes` at data, on its way. */
void processes_send(const struct waiting *w, int member, const void *data, size_t bytes);
/* What is expected, a message of each member at most; of none yet. Freed by processes_await. */
struct receipts;
struct receipts *receipts_new(const struct waiting *w) __attribute__((returns_nonnull));
/* A message of `bytes` to data. */
void processes_expect(const struct waiting *w, int member, void *data, size_t bytes, struct receipts *receipts);
/* Until all of them have come; false after a failure, which the device has then. */
bool processes_await(const struct waiting *w, struct receipts *receipts);
/* False, and the device has failed, where MPI cannot count the bytes of a message. */
bool processes_can_send(const struct waiting *w, size_t bytes);

/* A call from beginning to end; after a failure the device has failed. */
void processes_exchange(const struct waiting *w, const struct exchange_call *call);

#endif
