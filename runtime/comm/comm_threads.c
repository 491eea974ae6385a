/* comm_threads.c - a world of threads: the hub, rendezvous, message queues, and exchanges on streams. */
#include "runtime/comm/comm_threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/base/clock.h"
#include "model/base/memory.h"
#include "runtime/comm/thread_meeting.h"
#include "runtime/device/device_cpu.h"

enum { REASON_SIZE = 320, LIST_SIZE = 96 };

struct hub;

struct message {
    struct message *next;
    size_t bytes;
    unsigned char data[];
};

/* The state that all members of a communicator share. */
struct thread_meeting {
    struct hub *hub;
    int n, *members;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t round;               /* exchanges completed */
    int n_arrived, n_done;        /* in this round */
    struct exchange_call **calls; /* [n] of those who are there, NULL: not yet */
    struct message *first, *last; /* sent, not yet received: of a channel */
    uint64_t taken;               /* messages received */
    uint64_t *enqueued;           /* [n] exchanges that a member has asked for so far */
    int n_waiting;                /* members that wait for others, in the exchange below */
    enum exchange exchange;
    const char *what;
};

struct hub {
    int n_ranks;
    nanos timeout, epoch;
    pthread_mutex_t lock; /* of what follows; taken before a meeting's, never while holding one */
    struct thread_meeting **meetings;
    size_t n_meetings, capacity;
    atomic_bool broken;       /* a rank left; waits end */
    char reason[REASON_SIZE]; /* of the first that went */
    pthread_cond_t changed;   /* of the barrier */
    int n_waiting;
    uint64_t barriers;
};

struct thread_communicator {
    struct communicator base;
    struct thread_meeting *meeting;
};

struct thread_world {
    struct world base;
    struct hub *hub;
    size_t n_made; /* communicators this rank took part in making */
    struct thread_communicator **communicators;
    size_t n_communicators, capacity;
};

/* --- the hub */

struct hub *hub_new(int n_ranks, nanos timeout)
{
    struct hub *hub = memory_new(1, sizeof *hub);
    hub->n_ranks = n_ranks;
    hub->timeout = timeout;
    hub->epoch = clock_monotonic();
    pthread_mutex_init(&hub->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&hub->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return hub;
}

static void meeting_free(struct thread_meeting *meeting)
{
    while (meeting->first) {
        struct message *message = meeting->first;
        meeting->first = message->next;
        free(message);
    }
    pthread_mutex_destroy(&meeting->lock);
    pthread_cond_destroy(&meeting->changed);
    free(meeting->members);
    free(meeting->calls);
    free(meeting->enqueued);
    free(meeting);
}

void hub_free(struct hub *hub)
{
    if (!hub)
        return;
    for (size_t i = 0; i < hub->n_meetings; i++)
        meeting_free(hub->meetings[i]);
    free(hub->meetings);
    pthread_mutex_destroy(&hub->lock);
    pthread_cond_destroy(&hub->changed);
    free(hub);
}

const nanos *hub_epoch(const struct hub *hub)
{
    return &hub->epoch;
}

static void hub_reason(struct hub *hub, char reason[REASON_SIZE])
{
    pthread_mutex_lock(&hub->lock);
    memcpy(reason, hub->reason, REASON_SIZE);
    pthread_mutex_unlock(&hub->lock);
}

static void threads_abandon(struct world *base, const char *why)
{
    struct hub *hub = ((struct thread_world *)base)->hub;
    pthread_mutex_lock(&hub->lock);
    if (!hub->broken)
        snprintf(hub->reason, sizeof hub->reason, "%s", why);
    hub->broken = true;
    pthread_cond_broadcast(&hub->changed);
    for (size_t i = 0; i < hub->n_meetings; i++) {
        pthread_mutex_lock(&hub->meetings[i]->lock);
        pthread_cond_broadcast(&hub->meetings[i]->changed);
        pthread_mutex_unlock(&hub->meetings[i]->lock);
    }
    pthread_mutex_unlock(&hub->lock);
}

/* --- communicators */

static struct thread_meeting *meeting_new(struct hub *hub, const int *members, int n)
{
    struct thread_meeting *meeting = memory_new(1, sizeof *meeting);
    *meeting = (struct thread_meeting){.hub = hub, .n = n};
    meeting->members = memory_new((size_t)n, sizeof *meeting->members);
    memcpy(meeting->members, members, (size_t)n * sizeof *members);
    meeting->calls = memory_new((size_t)n, sizeof *meeting->calls);
    meeting->enqueued = memory_new((size_t)n, sizeof *meeting->enqueued);
    pthread_mutex_init(&meeting->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&meeting->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return meeting;
}

static bool same_members(const struct thread_meeting *meeting, const int *members, int n)
{
    return meeting->n == n && memcmp(meeting->members, members, (size_t)n * sizeof *members) == 0;
}

static int member_index(const int *members, int n, int rank)
{
    for (int i = 0; i < n; i++)
        if (members[i] == rank)
            return i;
    return -1;
}

static enum status threads_communicator_new(struct world *base, const int *members, int n, struct communicator **result,
                                            struct diags *diags)
{
    struct thread_world *world = (struct thread_world *)base;
    struct hub *hub = world->hub;
    pthread_mutex_lock(&hub->lock);
    size_t index = world->n_made++;
    if (index == hub->n_meetings) {
        hub->meetings = memory_grow(hub->meetings, &hub->capacity, index + 1, sizeof *hub->meetings);
        hub->meetings[hub->n_meetings++] = meeting_new(hub, members, n);
    }
    struct thread_meeting *meeting = hub->meetings[index];
    pthread_mutex_unlock(&hub->lock);
    if (!same_members(meeting, members, n)) {
        diag_error(diags, PLACE_NONE, "rank %d: communicator %zu has other members than on another rank", base->rank, index);
        return STATUS_FAILED;
    }
    int me = member_index(members, n, base->rank);
    *result = NULL;
    if (me < 0)
        return STATUS_OK;
    struct thread_communicator *c = memory_new(1, sizeof *c);
    *c = (struct thread_communicator){.base = {.world = base, .n = n, .me = me}, .meeting = meeting};
    world->communicators =
        memory_grow(world->communicators, &world->capacity, world->n_communicators + 1, sizeof *world->communicators);
    world->communicators[world->n_communicators++] = c;
    *result = &c->base;
    return STATUS_OK;
}

/* --- waiting */

static struct timespec deadline_after(nanos timeout)
{
    nanos at = clock_monotonic() + timeout;
    return (struct timespec){.tv_sec = at / NANOS_PER_SECOND, .tv_nsec = at % NANOS_PER_SECOND};
}

/* "rank 3", "ranks 3, 5" of the members that are not there. */
static void list_missing(const struct thread_meeting *meeting, char *text, size_t size)
{
    int missing = 0;
    for (int i = 0; i < meeting->n; i++)
        missing += meeting->calls[i] == NULL;
    size_t at = (size_t)snprintf(text, size, "rank%s ", missing > 1 ? "s" : "");
    const char *separator = "";
    for (int i = 0; i < meeting->n && at < size; i++) {
        if (meeting->calls[i])
            continue;
        at += (size_t)snprintf(text + at, size - at, "%s%d", separator, meeting->members[i]);
        separator = ", ";
    }
}

enum wait_result { WAIT_DONE, WAIT_TIMEOUT, WAIT_BROKEN };

/* Wait on the meeting (locked) until something changes. */
static enum wait_result meeting_wait(struct thread_meeting *meeting, const struct exchange_call *call,
                                     const struct timespec *deadline)
{
    if (meeting->hub->broken)
        return WAIT_BROKEN;
    meeting->exchange = call->exchange;
    meeting->what = call->what;
    meeting->n_waiting++;
    bool late = pthread_cond_timedwait(&meeting->changed, &meeting->lock, deadline) != 0;
    meeting->n_waiting--;
    return late ? WAIT_TIMEOUT : WAIT_DONE;
}

/* A member others wait for that has not even asked for the exchange; -1: all have, something else holds them up. */
static int silent_member(const struct thread_meeting *meeting)
{
    bool channel = meeting->exchange == EXCHANGE_RECV;
    for (int m = 0; m < (channel ? 1 : meeting->n); m++)
        if ((channel || !meeting->calls[m]) && meeting->enqueued[m] <= (channel ? meeting->taken : meeting->round))
            return m;
    return -1;
}

/* Ranks that wait for one another pass a silence on, so that whose patience ends first says little. This finds where it began: ";
 * rank 2 never came to all_gather gradients", or nothing. No lock is held. */
static void find_silence(struct hub *hub, char *text, size_t size)
{
    text[0] = '\0';
    pthread_mutex_lock(&hub->lock);
    for (size_t i = 0; i < hub->n_meetings && !text[0]; i++) {
        struct thread_meeting *meeting = hub->meetings[i];
        pthread_mutex_lock(&meeting->lock);
        int m = meeting->n_waiting ? silent_member(meeting) : -1;
        if (m >= 0)
            snprintf(text, size, "; rank %d never came to %s %s", meeting->members[m],
                     meeting->exchange == EXCHANGE_RECV ? "send" : exchange_name(meeting->exchange), meeting->what);
        pthread_mutex_unlock(&meeting->lock);
    }
    pthread_mutex_unlock(&hub->lock);
}

struct exchange_task {
    struct thread_communicator *communicator;
    struct device *device;
    struct exchange_call call;
};
_Static_assert(sizeof(struct exchange_task) <= CPU_TASK_BYTES, "an exchange fits a task");

/* No lock is held. */
static void fail_waiting(const struct exchange_task *task, const char *missing, enum wait_result result, const char *silence)
{
    int rank = task->communicator->base.world->rank;
    const char *name = exchange_name(task->call.exchange);
    double seconds = (double)task->communicator->base.world->timeout * 1e-9;
    char reason[REASON_SIZE];
    if (result == WAIT_BROKEN) {
        hub_reason(task->communicator->meeting->hub, reason);
        device_cpu_fail(task->device, "rank %d: %s %s: waited for %s; first failure: %s", rank, name, task->call.what, missing,
                        reason);
    } else {
        device_cpu_fail(task->device, "rank %d: %s %s: %s did not arrive within %g s%s", rank, name, task->call.what, missing,
                        seconds, silence);
    }
}

/* End a wait that came to nothing; the meeting still counts this member among those who wait. */
static void give_up(struct exchange_task *task, const char *missing, enum wait_result result)
{
    struct thread_meeting *meeting = task->communicator->meeting;
    char silence[LIST_SIZE] = "";
    if (result == WAIT_TIMEOUT)
        find_silence(meeting->hub, silence, sizeof silence);
    pthread_mutex_lock(&meeting->lock);
    meeting->n_waiting--;
    pthread_mutex_unlock(&meeting->lock);
    fail_waiting(task, missing, result, silence);
}

/* --- messages */

static void run_send(struct exchange_task *task)
{
    struct thread_meeting *meeting = task->communicator->meeting;
    size_t bytes = (size_t)task->call.count * element_bytes(task->call.element);
    struct message *message = memory_new(1, sizeof *message + bytes);
    message->bytes = bytes;
    memcpy(message->data, task->call.in, bytes);
    pthread_mutex_lock(&meeting->lock);
    if (meeting->last)
        meeting->last->next = message;
    else
        meeting->first = message;
    meeting->last = message;
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->lock);
}

static struct message *take_message(struct exchange_task *task)
{
    struct thread_meeting *meeting = task->communicator->meeting;
    struct timespec deadline = deadline_after(task->communicator->base.world->timeout);
    char missing[LIST_SIZE];
    enum wait_result result = WAIT_DONE;
    pthread_mutex_lock(&meeting->lock);
    while (!meeting->first && result == WAIT_DONE)
        result = meeting_wait(meeting, &task->call, &deadline);
    struct message *message = meeting->first;
    if (message) {
        meeting->first = message->next;
        meeting->last = meeting->first ? meeting->last : NULL;
        meeting->taken++;
    }
    meeting->n_waiting += !message; /* until the silence has been found */
    pthread_mutex_unlock(&meeting->lock);
    if (!message) {
        snprintf(missing, sizeof missing, "rank %d", meeting->members[task->call.peer]);
        give_up(task, missing, result);
    }
    return message;
}

static void run_recv(struct exchange_task *task)
{
    struct message *message = take_message(task);
    if (!message)
        return;
    size_t bytes = (size_t)task->call.count * element_bytes(task->call.element);
    if (message->bytes == bytes)
        memcpy(task->call.out, message->data, bytes);
    else
        device_cpu_fail(task->device, "rank %d: recv %s: %zu bytes came, %zu were expected", task->communicator->base.world->rank,
                        task->call.what, message->bytes, bytes);
    free(message);
}

/* --- collectives */

static bool same_call(const struct exchange_call *a, const struct exchange_call *b)
{
    return a->exchange == b->exchange && a->count == b->count && a->element == b->element &&
           exchange_blocks(a) == exchange_blocks(b);
}

/* All members are there: false when one came for another exchange. */
static bool agree(const struct thread_meeting *meeting, struct exchange_task *task)
{
    for (int m = 0; m < meeting->n; m++) {
        if (same_call(meeting->calls[m], &task->call))
            continue;
        device_cpu_fail(task->device, "rank %d: %s %s of %lld elements met %s %s of %lld elements of rank %d",
                        task->communicator->base.world->rank, exchange_name(task->call.exchange), task->call.what,
                        (long long)task->call.count, exchange_name(meeting->calls[m]->exchange), meeting->calls[m]->what,
                        (long long)meeting->calls[m]->count, meeting->members[m]);
        return false;
    }
    return true;
}

/* Arrives and waits for the others. After a failure this member is removed from the list, so no other reads its call. */
static enum wait_result arrive(struct exchange_task *task, char missing[LIST_SIZE])
{
    struct thread_meeting *meeting = task->communicator->meeting;
    int me = task->communicator->base.me;
    struct timespec deadline = deadline_after(task->communicator->base.world->timeout);
    enum wait_result result = WAIT_DONE;
    meeting->calls[me] = &task->call;
    if (++meeting->n_arrived == meeting->n)
        pthread_cond_broadcast(&meeting->changed);
    while (meeting->n_arrived < meeting->n && result == WAIT_DONE)
        result = meeting_wait(meeting, &task->call, &deadline);
    if (meeting->n_arrived == meeting->n)
        return WAIT_DONE;
    list_missing(meeting, missing, LIST_SIZE);
    meeting->calls[me] = NULL;
    meeting->n_arrived--;
    meeting->n_waiting++; /* until the silence has been found */
    return result;
}

/* All leave together; those who work on their share always come to the end of it, so this wait needs no bound. */
static void leave(struct thread_meeting *meeting)
{
    uint64_t round = meeting->round;
    if (++meeting->n_done == meeting->n) {
        memset(meeting->calls, 0, (size_t)meeting->n * sizeof *meeting->calls);
        meeting->n_arrived = meeting->n_done = 0;
        meeting->round++;
        pthread_cond_broadcast(&meeting->changed);
        return;
    }
    while (meeting->round == round)
        pthread_cond_wait(&meeting->changed, &meeting->lock);
}

static void run_collective(struct exchange_task *task)
{
    struct thread_meeting *meeting = task->communicator->meeting;
    char missing[LIST_SIZE];
    pthread_mutex_lock(&meeting->lock);
    enum wait_result result = arrive(task, missing);
    if (result == WAIT_DONE) {
        pthread_mutex_unlock(&meeting->lock);
        if (agree(meeting, task))
            thread_meeting_share(meeting->calls, meeting->n, task->communicator->base.me);
        pthread_mutex_lock(&meeting->lock);
        leave(meeting);
    }
    pthread_mutex_unlock(&meeting->lock);
    if (result != WAIT_DONE)
        give_up(task, missing, result);
}

static void run_exchange(void *argument)
{
    struct exchange_task *task = argument;
    if (device_cpu_failed(task->device))
        return;
    if (task->call.exchange == EXCHANGE_SEND)
        run_send(task);
    else if (task->call.exchange == EXCHANGE_RECV)
        run_recv(task);
    else
        run_collective(task);
    char text[REASON_SIZE];
    if (device_cpu_failed(task->device))
        threads_abandon(task->communicator->base.world, device_cpu_failure(task->device, text, sizeof text));
}

static enum status threads_enqueue(struct communicator *communicator, struct device_stream *stream,
                                   const struct exchange_call *call, struct diags *diags)
{
    (void)diags;
    struct exchange_task task = {(struct thread_communicator *)communicator, stream->device, *call};
    struct thread_meeting *meeting = task.communicator->meeting;
    pthread_mutex_lock(&meeting->lock);
    meeting->enqueued[communicator->me]++;
    pthread_mutex_unlock(&meeting->lock);
    device_cpu_enqueue(stream, run_exchange, &task, sizeof task);
    return STATUS_OK;
}

static enum status threads_group(struct world *world, struct diags *diags)
{
    (void)world;
    (void)diags;
    return STATUS_OK;
}

/* --- the barrier on the host */

static enum status barrier_failed(struct thread_world *world, struct diags *diags)
{
    struct hub *hub = world->hub;
    if (hub->broken)
        diag_error(diags, PLACE_NONE, "rank %d: barrier: first failure: %s", world->base.rank, hub->reason);
    else
        diag_error(diags, PLACE_NONE, "rank %d: barrier: %d of %d ranks did not arrive within %g s", world->base.rank,
                   hub->n_ranks - hub->n_waiting, hub->n_ranks, (double)world->base.timeout * 1e-9);
    hub->n_waiting--;
    pthread_mutex_unlock(&hub->lock);
    return STATUS_FAILED;
}

static enum status threads_barrier(struct world *base, bool clock, struct diags *diags)
{
    struct thread_world *world = (struct thread_world *)base;
    struct hub *hub = world->hub;
    struct timespec deadline = deadline_after(base->timeout);
    pthread_mutex_lock(&hub->lock);
    uint64_t barrier = hub->barriers;
    bool late = false;
    if (++hub->n_waiting == hub->n_ranks) {
        hub->n_waiting = 0;
        hub->barriers++;
        if (clock)
            hub->epoch = clock_monotonic();
        pthread_cond_broadcast(&hub->changed);
    }
    while (hub->barriers == barrier && !late && !hub->broken)
        late = pthread_cond_timedwait(&hub->changed, &hub->lock, &deadline) != 0;
    if (hub->barriers == barrier)
        return barrier_failed(world, diags);
    pthread_mutex_unlock(&hub->lock);
    return STATUS_OK;
}

static void threads_close(struct world *base)
{
    struct thread_world *world = (struct thread_world *)base;
    for (size_t i = 0; i < world->n_communicators; i++)
        free(world->communicators[i]);
    free(world->communicators);
    free(world);
}

static const struct comm_api threads_api = {
    .name = "threads",
    .close = threads_close,
    .communicator_new = threads_communicator_new,
    .enqueue = threads_enqueue,
    .group_begin = threads_group,
    .group_end = threads_group,
    .barrier = threads_barrier,
    .abandon = threads_abandon,
};

struct world *hub_join(struct hub *hub, int rank)
{
    struct thread_world *world = memory_new(1, sizeof *world);
    world->base = (struct world){.api = &threads_api, .rank = rank, .n_ranks = hub->n_ranks, .timeout = hub->timeout};
    world->hub = hub;
    return &world->base;
}

const char *exchange_name(enum exchange exchange)
{
    static const char *const names[N_EXCHANGES] = {"send",           "recv",       "all_reduce", "all_gather",
                                                   "reduce_scatter", "all_to_all", "broadcast"};
    return names[exchange];
}
