#include "runtime/comm/comm_processes.h"

#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/base/clock.h"
#include "model/base/memory.h"
#include "runtime/comm/comm_processes_internal.h"
#include "runtime/device/device_cpu.h"

enum { REASON_SIZE = 320, TAG_ABANDONED = 0, SPINS = 16, NAP_FIRST_NS = 10000, NAP_LAST_NS = 200000 };

/* A message on its way out, with a copy of what it says. */
struct parcel {
    struct parcel *next;
    MPI_Request request;
    unsigned char data[];
};

struct process_world {
    struct world base;
    MPI_Comm comm;
    pthread_mutex_t lock; /* of all that follows, and of MPI */
    struct parcel *parcels;
    int n_made;
    struct process_communicator **communicators;
    size_t n_communicators, capacity;
    bool broken, one_machine;
    char reason[REASON_SIZE];
    nanos epoch;
};

/* --- MPI, under the lock */

static void forget_sent(struct process_world *world)
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

static void post(struct process_world *world, int to, int tag, const void *data, size_t bytes)
{
    struct parcel *parcel = memory_new(1, sizeof *parcel + bytes);
    memcpy(parcel->data, data, bytes);
    MPI_Isend(parcel->data, (int)bytes, MPI_BYTE, to, tag, world->comm, &parcel->request);
    parcel->next = world->parcels;
    world->parcels = parcel;
}

/* Whether a rank has given up. */
static bool hear(struct process_world *world)
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

static void rest(int round)
{
    if (round < SPINS) {
        sched_yield();
        return;
    }
    long nap = (long)NAP_FIRST_NS << (round < SPINS + 8 ? round - SPINS : 8);
    const struct timespec t = {.tv_nsec = nap > NAP_LAST_NS ? NAP_LAST_NS : nap};
    nanosleep(&t, NULL);
}

enum wait_result { WAIT_DONE, WAIT_TIMEOUT, WAIT_BROKEN };

/* Until all n requests are done. */
static enum wait_result wait_all(struct process_world *world, MPI_Request *requests, int n)
{
    nanos began = clock_monotonic();
    enum wait_result result = WAIT_DONE;
    for (int round = 0; result == WAIT_DONE; round++) {
        int done = 0;
        pthread_mutex_lock(&world->lock);
        MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE);
        forget_sent(world);
        if (!done && hear(world))
            result = WAIT_BROKEN;
        pthread_mutex_unlock(&world->lock);
        if (done)
            return WAIT_DONE;
        if (result == WAIT_DONE && clock_monotonic() - began > world->base.timeout)
            result = WAIT_TIMEOUT;
        if (result == WAIT_DONE)
            rest(round);
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
        rest(round);
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
    post(w->world, w->communicator->members[member], w->communicator->tag, data, bytes);
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
    enum wait_result result = wait_all(w->world, requests, receipts->n);
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

/* --- exchanges on streams */

struct exchange_task {
    struct process_communicator *communicator;
    struct device *device;
    struct exchange_call call;
};
_Static_assert(sizeof(struct exchange_task) <= CPU_TASK_BYTES, "an exchange fits a task");

static void processes_abandon(struct world *world, const char *why);

static void run_exchange(void *argument)
{
    struct exchange_task *task = argument;
    const struct waiting w = {.world = (struct process_world *)task->communicator->base.world,
                              .communicator = task->communicator,
                              .device = task->device,
                              .exchange = exchange_name(task->call.exchange),
                              .what = task->call.what ? task->call.what : ""};
    char text[REASON_SIZE];
    if (device_cpu_failed(task->device))
        return;
    processes_exchange(&w, &task->call);
    if (device_cpu_failed(task->device))
        processes_abandon(&w.world->base, device_cpu_failure(task->device, text, sizeof text));
}

static enum status processes_enqueue(struct communicator *communicator, struct device_stream *stream,
                                     const struct exchange_call *call, struct diags *diags)
{
    (void)diags;
    struct exchange_task task = {(struct process_communicator *)communicator, stream->device, *call};
    device_cpu_enqueue(stream, run_exchange, &task, sizeof task);
    return STATUS_OK;
}

static enum status processes_group(struct world *world, struct diags *diags)
{
    (void)world, (void)diags;
    return STATUS_OK;
}

/* --- the world */

static void processes_abandon(struct world *base, const char *why)
{
    struct process_world *world = (struct process_world *)base;
    char text[REASON_SIZE];
    snprintf(text, sizeof text, "%s", why);
    pthread_mutex_lock(&world->lock);
    bool first = !hear(world);
    world->broken = true;
    if (first) {
        memcpy(world->reason, text, sizeof text);
        for (int rank = 0; rank < base->n_ranks; rank++)
            if (rank != base->rank)
                post(world, rank, TAG_ABANDONED, text, sizeof text);
    }
    pthread_mutex_unlock(&world->lock);
}

static enum status processes_communicator_new(struct world *base, const int *members, int n, struct communicator **communicator,
                                              struct diags *diags)
{
    struct process_world *world = (struct process_world *)base;
    int me = -1, tag = ++world->n_made;
    (void)diags;
    for (int i = 0; i < n; i++)
        me = members[i] == base->rank ? i : me;
    *communicator = NULL;
    if (me < 0)
        return STATUS_OK;
    struct process_communicator *c = memory_new(1, sizeof *c);
    *c = (struct process_communicator){.base = {.world = base, .n = n, .me = me}, .tag = tag};
    c->members = memory_new((size_t)n, sizeof *c->members);
    memcpy(c->members, members, (size_t)n * sizeof *members);
    world->communicators =
        memory_grow(world->communicators, &world->capacity, world->n_communicators + 1, sizeof *world->communicators);
    world->communicators[world->n_communicators++] = c;
    *communicator = &c->base;
    return STATUS_OK;
}

static enum status wait_on_host(struct process_world *world, MPI_Request *request, struct diags *diags)
{
    enum wait_result result = wait_all(world, request, 1);
    if (result == WAIT_DONE)
        return STATUS_OK;
    if (result == WAIT_BROKEN)
        diag_error(diags, PLACE_NONE, "rank %d: barrier: first failure: %s", world->base.rank, world->reason);
    else
        diag_error(diags, PLACE_NONE, "rank %d: barrier: another rank did not arrive within %g s", world->base.rank,
                   (double)world->base.timeout * 1e-9);
    return STATUS_FAILED;
}

static enum status processes_barrier(struct world *base, bool clock, struct diags *diags)
{
    struct process_world *world = (struct process_world *)base;
    MPI_Request request;
    pthread_mutex_lock(&world->lock);
    MPI_Ibarrier(world->comm, &request);
    pthread_mutex_unlock(&world->lock);
    enum status status = wait_on_host(world, &request, diags);
    if (status != STATUS_OK || !clock)
        return status;
    world->epoch = clock_monotonic();
    if (!world->one_machine)
        return STATUS_OK;
    pthread_mutex_lock(&world->lock);
    MPI_Ibcast(&world->epoch, (int)sizeof world->epoch, MPI_BYTE, 0, world->comm, &request);
    pthread_mutex_unlock(&world->lock);
    return wait_on_host(world, &request, diags);
}

const nanos *comm_processes_epoch(const struct world *world)
{
    return &((const struct process_world *)world)->epoch;
}

/* After a failure messages may never be taken: they, and the communicator, are left to the end of the process. */
static void processes_close(struct world *base)
{
    struct process_world *world = (struct process_world *)base;
    nanos began = clock_monotonic();
    for (int round = 0; world->parcels && clock_monotonic() - began < base->timeout; round++) {
        pthread_mutex_lock(&world->lock);
        forget_sent(world);
        pthread_mutex_unlock(&world->lock);
        if (world->broken && round > SPINS + 100)
            break;
        rest(round);
    }
    if (!world->broken && !world->parcels)
        MPI_Comm_free(&world->comm);
    for (size_t i = 0; i < world->n_communicators; i++) {
        free(world->communicators[i]->members);
        free(world->communicators[i]);
    }
    free(world->communicators);
    pthread_mutex_destroy(&world->lock);
    free(world);
}

static const struct comm_api processes_api = {
    .name = "mpi",
    .close = processes_close,
    .communicator_new = processes_communicator_new,
    .enqueue = processes_enqueue,
    .group_begin = processes_group,
    .group_end = processes_group,
    .barrier = processes_barrier,
    .abandon = processes_abandon,
};

static bool all_on_one_machine(MPI_Comm comm, int n_ranks)
{
    MPI_Comm here;
    int n = 0;
    if (MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) != MPI_SUCCESS)
        return false;
    MPI_Comm_size(here, &n);
    MPI_Comm_free(&here);
    return n == n_ranks;
}

enum status comm_processes_open(nanos timeout, struct world **result, struct diags *diags)
{
    int ready = 0, level = MPI_THREAD_SINGLE;
    MPI_Initialized(&ready);
    if (ready)
        MPI_Query_thread(&level);
    if (!ready || level < MPI_THREAD_SERIALIZED) {
        diag_error(diags, PLACE_NONE,
                   "ranks as processes need an MPI that several threads may use, and mpirun or srun to start them");
        return STATUS_MISSING;
    }
    struct process_world *world = memory_new(1, sizeof *world);
    world->base = (struct world){.api = &processes_api, .timeout = timeout};
    if (MPI_Comm_dup(MPI_COMM_WORLD, &world->comm) != MPI_SUCCESS) {
        diag_error(diags, PLACE_NONE, "MPI gave no communicator");
        free(world);
        return STATUS_FAILED;
    }
    MPI_Comm_rank(world->comm, &world->base.rank);
    MPI_Comm_size(world->comm, &world->base.n_ranks);
    world->one_machine = all_on_one_machine(world->comm, world->base.n_ranks);
    pthread_mutex_init(&world->lock, NULL);
    *result = &world->base;
    return STATUS_OK;
}
