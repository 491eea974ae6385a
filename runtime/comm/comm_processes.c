/* comm_processes.c - a world of processes: opening, communicators, barriers, and exchanges on streams. */
#include "runtime/comm/comm_processes.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/memory.h"
#include "runtime/comm/comm_processes_internal.h"
#include "runtime/device/device_cpu.h"

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
    bool first = !processes_hear(world);
    world->broken = true;
    if (first) {
        memcpy(world->reason, text, sizeof text);
        for (int rank = 0; rank < base->n_ranks; rank++)
            if (rank != base->rank)
                processes_post(world, rank, TAG_ABANDONED, text, sizeof text);
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
    enum wait_result result = processes_wait_all(world, request, 1);
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
        processes_forget_sent(world);
        pthread_mutex_unlock(&world->lock);
        if (world->broken && round > SPINS + 100)
            break;
        processes_rest(round);
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
