/* comm_processes_messages.c - messages between processes through MPI: sending, waiting with a timeout, and who is missing. */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/base/clock.h"
#include "model/base/memory.h"
#include "runtime/comm/comm_processes_internal.h"
#include "runtime/device/device_cpu.h"

enum { NAP_FIRST_NS = 10000, NAP_LAST_NS = 200000 };

/* A message on its way out, with a copy of what it says. */
struct parcel {
    struct parcel *next;
    MPI_Request request;
    unsigned char data[];
};

/* --- MPI, under the lock */

void processes_forget_sent(struct process_world *world)
{
    struct parcel **at = &world->parcels;
    while (*at) {
        struct parcel *parcel = *at;
        int done = 0;
        MPI_Test(&parcel->request, &done, MPI_STATUS_IGNORE);
        if (done) {
            *at = parcel->next;
            free(parcel);
        } else {
            at = &parcel->next;
        }
    }
}

void processes_post(struct process_world *world, int to, int tag, const void *data, size_t bytes)
{
    struct parcel *parcel = memory_new(1, sizeof *parcel + bytes);
    memcpy(parcel->data, data, bytes);
    MPI_Isend(parcel->data, (int)bytes, MPI_BYTE, to, tag, world->comm, &parcel->request);
    parcel->next = world->parcels;
    world->parcels = parcel;
}

bool processes_hear(struct process_world *world)
{
    MPI_Status status;
    int there = 0;
    if (world->broken)
        return true;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_ABANDONED, world->comm, &there, &status);
    if (!there)
        return false;
    MPI_Recv(world->reason, REASON_SIZE, MPI_CHAR, status.MPI_SOURCE, TAG_ABANDONED, world->comm, MPI_STATUS_IGNORE);
    world->reason[REASON_SIZE - 1] = '\0';
    world->broken = true;
    return true;
}

/* --- waiting */

void processes_rest(int round)
{
    if (round < SPINS) {
        sched_yield();
        return;
    }
    long nap = (long)NAP_FIRST_NS << (round < SPINS + 8 ? round - SPINS : 8);
    const struct timespec t = {.tv_nsec = nap > NAP_LAST_NS ? NAP_LAST_NS : nap};
    nanosleep(&t, NULL);
}

enum wait_result processes_wait_all(struct process_world *world, MPI_Request *requests, int n)
{
    nanos began = clock_monotonic();
    enum wait_result result = WAIT_DONE;
    for (int round = 0; result == WAIT_DONE; round++) {
        int done = 0;
        pthread_mutex_lock(&world->lock);
        MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE);
        processes_forget_sent(world);
        if (!done && processes_hear(world))
            result = WAIT_BROKEN;
        pthread_mutex_unlock(&world->lock);
        if (done)
            return WAIT_DONE;
        if (result == WAIT_DONE && clock_monotonic() - began > world->base.timeout)
            result = WAIT_TIMEOUT;
        if (result == WAIT_DONE)
            processes_rest(round);
    }
    return result;
}

/* A receive that is given up. One that has begun comes to its end first, or its sender does. */
static void cancel(struct process_world *world, MPI_Request *request)
{
    nanos began = clock_monotonic();
    int done = *request == MPI_REQUEST_NULL;
    for (int round = 0; !done && clock_monotonic() - began < NANOS_PER_SECOND; round++) {
        pthread_mutex_lock(&world->lock);
        if (round == 0)
            MPI_Cancel(request);
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&world->lock);
        processes_rest(round);
    }
}

/* "rank 3", "ranks 3, 5": whose message has not come. requests[i] is from member i, and some are not done. */
static void list_missing(const struct waiting *w, const MPI_Request *requests, char *text, size_t size)
{
    const int n = w->communicator->base.n;
    int missing = 0;
    for (int i = 0; i < n; i++)
        missing += requests[i] != MPI_REQUEST_NULL;
    size_t at = (size_t)snprintf(text, size, "rank%s ", missing > 1 ? "s" : "");
    for (int i = 0, listed = 0; i < n && at < size; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            at += (size_t)snprintf(text + at, size - at, "%s%d", listed++ ? ", " : "", w->communicator->members[i]);
}

static void fail(const struct waiting *w, const char *missing, enum wait_result result)
{
    struct process_world *world = w->world;
    if (result == WAIT_BROKEN)
        device_cpu_fail(w->device, "rank %d: %s %s: waited for %s; first failure: %s", world->base.rank, w->exchange, w->what,
                        missing, world->reason);
    else
        device_cpu_fail(w->device, "rank %d: %s %s: %s did not arrive within %g s", world->base.rank, w->exchange, w->what,
                        missing, (double)world->base.timeout * 1e-9);
}

/* --- parts of exchanges */

bool processes_can_send(const struct waiting *w, size_t bytes)
{
    if (bytes <= INT_MAX)
        return true;
    device_cpu_fail(w->device, "rank %d: %s %s: a message of %zu bytes is too long for MPI", w->world->base.rank, w->exchange,
                    w->what, bytes);
    return false;
}

void processes_send(const struct waiting *w, int member, const void *data, size_t bytes)
{
    pthread_mutex_lock(&w->world->lock);
    processes_post(w->world, w->communicator->members[member], w->communicator->tag, data, bytes);
    pthread_mutex_unlock(&w->world->lock);
}

struct receipts {
    int n;                  /* members */
    MPI_Request requests[]; /* a member each; MPI_REQUEST_NULL: nothing is expected, or it has come */
};

struct receipts *receipts_new(const struct waiting *w)
{
    const int n = w->communicator->base.n;
    struct receipts *receipts = memory_new(1, sizeof *receipts + (size_t)n * sizeof *receipts->requests);
    receipts->n = n;
    for (int i = 0; i < n; i++)
        receipts->requests[i] = MPI_REQUEST_NULL;
    return receipts;
}

void processes_expect(const struct waiting *w, int member, void *data, size_t bytes, struct receipts *receipts)
{
    pthread_mutex_lock(&w->world->lock);
    MPI_Irecv(data, (int)bytes, MPI_BYTE, w->communicator->members[member], w->communicator->tag, w->world->comm,
              &receipts->requests[member]);
    pthread_mutex_unlock(&w->world->lock);
}

/* Ends those of n requests that are done, which MPI_Testall leaves as they are until all are; whether all are. */
static bool end_done(struct process_world *world, MPI_Request *requests, int n)
{
    int all = 1;
    pthread_mutex_lock(&world->lock);
    for (int i = 0; i < n; i++) {
        int done = 0;
        MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
        all &= done;
    }
    pthread_mutex_unlock(&world->lock);
    return all;
}

bool processes_await(const struct waiting *w, struct receipts *receipts)
{
    MPI_Request *requests = receipts->requests;
    char missing[96];
    enum wait_result result = processes_wait_all(w->world, requests, receipts->n);
    bool done = result == WAIT_DONE || end_done(w->world, requests, receipts->n);
    if (!done) {
        list_missing(w, requests, missing, sizeof missing);
        for (int i = 0; i < receipts->n; i++)
            cancel(w->world, &requests[i]);
        fail(w, missing, result);
    }
    free(receipts);
    return done;
}
