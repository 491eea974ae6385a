/*
 * comm_processes_internal.h - messages between processes, and the exchanges that are made of them (private to comm_processes.h).
 */
#ifndef MSIM_RUNTIME_COMM_COMM_PROCESSES_INTERNAL_H
#define MSIM_RUNTIME_COMM_COMM_PROCESSES_INTERNAL_H

#include <mpi.h>
#include <pthread.h>

#include "runtime/base/comm.h"

enum { REASON_SIZE = 320, TAG_ABANDONED = 0, SPINS = 16 };

struct parcel; /* a message that MPI has not finished sending */

struct process_world {
    struct world base;
    MPI_Comm comm;
    pthread_mutex_t lock; /* protects the members below, and MPI */
    struct parcel *parcels;
    int n_made;
    struct process_communicator **communicators;
    size_t n_communicators, capacity;
    bool broken, one_machine;
    char reason[REASON_SIZE];
    nanos epoch;
};

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

/* --- under the lock of the world */

/* Frees the messages that MPI has sent. */
void processes_forget_sent(struct process_world *world);
/* Sends a copy of `bytes` at data. */
void processes_post(struct process_world *world, int to, int tag, const void *data, size_t bytes);
/* Whether a rank has given up; world->reason then says why. */
bool processes_hear(struct process_world *world);

/* --- without it */

/* Pauses between two looks at MPI: the longer, the higher `round`. */
void processes_rest(int round);
enum wait_result { WAIT_DONE, WAIT_TIMEOUT, WAIT_BROKEN };
/* Waits until all n requests are done, a rank has given up, or the world's timeout has passed. */
enum wait_result processes_wait_all(struct process_world *world, MPI_Request *requests, int n);

/* A call from beginning to end; after a failure the device has failed. */
void processes_exchange(const struct waiting *w, const struct exchange_call *call);

#endif
