/*
 * comm_processes_internal.h - messages between processes, and the exchanges that consist of them (private to comm_processes*.c).
 *
 * Example: member 0 sends 64 bytes to member 1, which waits for them.
 *
 *     processes_send(&w, 1, data, 64);                                on member 0: returns at once
 *     struct receipts *receipts = receipts_new(&w);                   on member 1
 *     processes_expect(&w, 0, buffer, 64, receipts);
 *     processes_await(&w, receipts);                                  false after a timeout: the device has failed
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

/* The context of a wait, for its error message. */
struct waiting {
    struct process_world *world;
    const struct process_communicator *communicator;
    struct device *device; /* NULL: the host waits */
    const char *exchange, *what;
};

/* Sends a copy of `bytes` bytes at data to a member; does not wait. */
void processes_send(const struct waiting *w, int member, const void *data, size_t bytes);
/* The expected messages, at most one from each member; none at first. processes_await frees them. */
struct receipts;
struct receipts *receipts_new(const struct waiting *w) __attribute__((returns_nonnull));
/* Expects a message of `bytes` bytes, which will be written to data. */
void processes_expect(const struct waiting *w, int member, void *data, size_t bytes, struct receipts *receipts);
/* Waits until all expected messages have arrived. False after a failure, which is reported to the device. */
bool processes_await(const struct waiting *w, struct receipts *receipts);
/* False, with a failure of the device, if a message has more bytes than MPI can count. */
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

/* Executes a whole exchange. A failure is reported to the device. */
void processes_exchange(const struct waiting *w, const struct exchange_call *call);

#endif
