/*
 * emulated_nccl.c - as much of NCCL as runtime/cuda/cuda_comm.c loads, among threads of one process that stand for processes.
 * Built as libnccl.so.2, for tests without a GPU (emulated_cuda.c).
 *
 * An exchange is done when the call returns: a collective when all members have called it, a receive when its send has been. Sums
 * run in the order of members. A wait of more than PATIENCE_S seconds fails with ncclRemoteError, so that a wrong program ends,
 * and at once where a member has aborted.
 *
 * Communicators do not block the host (ncclConfig_t, blocking 0): calls, and ends of groups, answer "in progress", and so do
 * questions until one has been asked twice. Until then the communicator may not be used, and a split's result is not there.
 * Communicators are aborted in groups, or the first would wait for the kernels of the next.
 */
#include <math.h>
#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MEMBERS_MAX = 16, PATIENCE_S = 20, EMULATED_VERSION = 22809, QUESTIONS = 2, GROUP_MAX = 64 };

struct message {
    struct message *next;
    int from, to;
    char data[];
};

/* What one member of a meeting brings. */
struct part {
    const void *in;
    void *out;
    int colour, key;
    struct ncclComm *comm; /* a split's result */
};

struct room {
    struct room *next;
    uint64_t key;
    int n, arrived, left, users;
    uint64_t round;
    bool aborted; /* by a member */
    pthread_cond_t changed;
    struct part parts[MEMBERS_MAX];
    struct message *messages;
};

struct ncclComm {
    struct room *room;
    int me;
    int questions; /* to be asked until it can be used */
    struct ncclComm **split_to, *split;
};

/* Of this thread's groups. */
static _Thread_local struct {
    int depth, n;
    struct ncclComm *used[GROUP_MAX];
} group;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything */
static struct room *rooms;
static uint64_t keys;

/* --- meeting */

static struct room *room_of(uint64_t key, int n)
{
    struct room *room = rooms;
    while (room && room->key != key)
        room = room->next;
    if (!room) {
        room = calloc(1, sizeof *room);
        *room = (struct room){.next = rooms, .key = key, .n = n};
        pthread_cond_init(&room->changed, NULL);
        rooms = room;
    }
    room->users++;
    return room;
}

static struct ncclComm *comm_new(uint64_t key, int n, int me)
{
    struct ncclComm *comm = calloc(1, sizeof *comm);
    *comm = (struct ncclComm){.room = room_of(key, n), .me = me};
    return comm;
}

static ncclResult_t wait_for_change(struct room *room, const struct timespec *deadline)
{
    if (room->aborted)
        return ncclRemoteError;
    return pthread_cond_timedwait(&room->changed, &lock, deadline) == 0 ? ncclSuccess : ncclRemoteError;
}

static struct timespec patience(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += PATIENCE_S;
    return t;
}

/* --- not blocking */

/* What a call answers that would have given `result`. */
static ncclResult_t in_progress(struct ncclComm *comm, ncclResult_t result)
{
    if (result != ncclSuccess)
        return result;
    if (group.depth == 0) {
        comm->questions = QUESTIONS;
        return ncclInProgress;
    }
    for (int i = 0; i < group.n; i++)
        if (group.used[i] == comm)
            return ncclSuccess;
    if (group.n == GROUP_MAX)
        return ncclInternalError;
    group.used[group.n++] = comm;
    return ncclSuccess;
}

static bool is_ready(const struct ncclComm *comm)
{
    return comm->questions == 0;
}

/* All bring their part; the last one does the work for all of them, under the lock. */
static ncclResult_t meet(struct ncclComm *comm, const struct part *mine, void (*work)(struct room *, void *), void *context)
{
    struct room *room = comm->room;
    struct timespec deadline = patience();
    ncclResult_t result = ncclSuccess;
    if (!is_ready(comm))
        return ncclInvalidUsage;
    pthread_mutex_lock(&lock);
    uint64_t round = room->round;
    room->parts[comm->me] = *mine;
    if (++room->arrived == room->n) {
        work(room, context);
        room->arrived = 0;
        room->round++;
        pthread_cond_broadcast(&room->changed);
    }
    while (room->round == round && result == ncclSuccess)
        result = wait_for_change(room, &deadline);
    pthread_mutex_unlock(&lock);
    return result;
}

static ncclResult_t exchange(struct ncclComm *comm, const struct part *mine, void (*work)(struct room *, void *), void *context)
{
    return in_progress(comm, meet(comm, mine, work, context));
}

/* --- numbers */

static size_t size_of(ncclDataType_t type)
{
    switch (type) {
    case ncclInt8: return 1;
    case ncclBfloat16: return 2;
    case ncclFloat64: return 8;
    default: return 4;
    }
}

static double number(const void *at, size_t i, ncclDataType_t type)
{
    uint32_t bits;
    float value;
    if (type == ncclFloat64)
        return ((const double *)at)[i];
    if (type != ncclBfloat16)
        return (double)((const float *)at)[i];
    bits = (uint32_t)((const uint16_t *)at)[i] << 16;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static void put_number(void *at, size_t i, ncclDataType_t type, double x)
{
    float value = (float)x;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == ncclFloat64)
        ((double *)at)[i] = x;
    else if (type == ncclBfloat16)
        ((uint16_t *)at)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    else
        ((float *)at)[i] = value;
}

struct reduction {
    size_t count, first;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;
};

/* Element first + i of all members, reduced. */
static void reduce(const struct room *room, const struct reduction *r, void *to)
{
    for (size_t i = 0; i < r->count; i++) {
        double sum = number(room->parts[0].in, r->first + i, r->type);
        for (int m = 1; m < room->n; m++) {
            double x = number(room->parts[m].in, r->first + i, r->type);
            sum = r->op == ncclMax ? fmax(sum, x) : sum + x;
        }
        put_number(to, i, r->type, sum);
    }
}

/* --- what the meetings do */

static void do_all_reduce(struct room *room, void *context)
{
    const struct reduction *r = context;
    void *sum = malloc(r->count * size_of(r->type) + 1);
    reduce(room, r, sum);
    for (int m = 0; m < room->n; m++)
        memcpy(room->parts[m].out, sum, r->count * size_of(r->type));
    free(sum);
}

static void do_reduce_scatter(struct room *room, void *context)
{
    struct reduction r = *(const struct reduction *)context;
    size_t bytes = r.count * size_of(r.type);
    char *sums = malloc((size_t)room->n * bytes + 1); /* results may lie in inputs */
    for (int m = 0; m < room->n; m++) {
        r.first = (size_t)m * r.count;
        reduce(room, &r, sums + (size_t)m * bytes);
    }
    for (int m = 0; m < room->n; m++)
        memcpy(room->parts[m].out, sums + (size_t)m * bytes, bytes);
    free(sums);
}

static void do_reduce(struct room *room, void *context)
{
    const struct reduction *r = context;
    void *sum = malloc(r->count * size_of(r->type) + 1);
    reduce(room, r, sum);
    memcpy(room->parts[r->root].out, sum, r->count * size_of(r->type));
    free(sum);
}

static void do_all_gather(struct room *room, void *context)
{
    const size_t bytes = *(const size_t *)context;
    for (int to = 0; to < room->n; to++)
        for (int from = 0; from < room->n; from++)
            memmove((char *)room->parts[to].out + (size_t)from * bytes, room->parts[from].in, bytes);
}

struct broadcast {
    size_t bytes;
    int root;
};

static void do_broadcast(struct room *room, void *context)
{
    const struct broadcast *b = context;
    for (int to = 0; to < room->n; to++)
        memmove(room->parts[to].out, room->parts[b->root].in, b->bytes);
}

/* Members of each colour, in the order of their keys. */
static void do_split(struct room *room, void *context)
{
    (void)context;
    for (int m = 0; m < room->n; m++) {
        struct part *part = &room->parts[m];
        int n = 0, me = 0, first = m;
        for (int other = 0; other < room->n; other++) {
            if (room->parts[other].colour != part->colour)
                continue;
            first = other < first ? other : first;
            me += room->parts[other].key < part->key || (room->parts[other].key == part->key && other < m);
            n++;
        }
        part->comm = part->colour == NCCL_SPLIT_NOCOLOR ? NULL : comm_new(keys + 1 + (uint64_t)first, n, me);
    }
    keys += 1 + (uint64_t)room->n;
}

/* --- NCCL's functions */

ncclResult_t ncclGetVersion(int *version)
{
    *version = EMULATED_VERSION;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 0, sizeof *id);
    pthread_mutex_lock(&lock);
    keys++;
    memcpy(id->internal, &keys, sizeof keys);
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError ? "remote process exited or there was a network error" : "emulated";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    uint64_t key;
    (void)config;
    memcpy(&key, id.internal, sizeof key);
    pthread_mutex_lock(&lock);
    *comm = comm_new(key, n, rank);
    pthread_mutex_unlock(&lock);
    return in_progress(*comm, ncclSuccess);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int colour, int key, ncclComm_t *made, ncclConfig_t *config)
{
    const struct part mine = {.colour = colour, .key = key};
    (void)config;
    ncclResult_t result = meet(comm, &mine, do_split, NULL);
    *made = NULL;
    comm->split_to = made;
    comm->split = result == ncclSuccess ? comm->room->parts[comm->me].comm : NULL;
    return in_progress(comm, result);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result)
{
    if (!comm)
        return ncclInvalidArgument;
    comm->questions -= comm->questions > 0;
    *result = is_ready(comm) ? ncclSuccess : ncclInProgress;
    if (is_ready(comm) && comm->split_to) {
        *comm->split_to = comm->split;
        comm->split_to = NULL;
    }
    return ncclSuccess;
}

static void room_leave(struct room *room)
{
    struct room **at = &rooms;
    if (--room->users > 0)
        return;
    while (*at != room)
        at = &(*at)->next;
    *at = room->next;
    while (room->messages) {
        struct message *message = room->messages;
        room->messages = message->next;
        free(message);
    }
    pthread_cond_destroy(&room->changed);
    free(room);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    return comm && is_ready(comm) ? in_progress(comm, ncclSuccess) : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    pthread_mutex_lock(&lock);
    room_leave(comm->room);
    pthread_mutex_unlock(&lock);
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (group.depth == 0)
        abort(); /* it would hang */
    pthread_mutex_lock(&lock);
    comm->room->aborted = true;
    pthread_cond_broadcast(&comm->room->changed);
    pthread_mutex_unlock(&lock);
    return ncclCommDestroy(comm);
}

/* NCCL's header declares these two without a prototype. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclGroupStart(void)
{
    group.depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    const bool any = group.n > 0;
    if (group.depth == 0)
        return ncclInvalidUsage;
    if (--group.depth > 0)
        return ncclSuccess;
    while (group.n > 0)
        group.used[--group.n]->questions = QUESTIONS;
    return any ? ncclInProgress : ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    size_t bytes = count * size_of(type);
    if (!is_ready(comm))
        return ncclInvalidUsage;
    struct message *message = calloc(1, sizeof *message + bytes), **last;
    (void)stream;
    *message = (struct message){.from = comm->me, .to = peer};
    memcpy(message->data, from, bytes);
    pthread_mutex_lock(&lock);
    for (last = &comm->room->messages; *last; last = &(*last)->next)
        ;
    *last = message;
    pthread_cond_broadcast(&comm->room->changed);
    pthread_mutex_unlock(&lock);
    return in_progress(comm, ncclSuccess);
}

static struct message *take(struct room *room, int from, int to)
{
    struct message **at = &room->messages;
    while (*at && ((*at)->from != from || (*at)->to != to))
        at = &(*at)->next;
    struct message *message = *at;
    if (message)
        *at = message->next;
    return message;
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    struct timespec deadline = patience();
    ncclResult_t result = is_ready(comm) ? ncclSuccess : ncclInvalidUsage;
    struct message *message;
    (void)stream;
    pthread_mutex_lock(&lock);
    while (!(message = take(comm->room, peer, comm->me)) && result == ncclSuccess)
        result = wait_for_change(comm->room, &deadline);
    pthread_mutex_unlock(&lock);
    if (message)
        memcpy(to, message->data, count * size_of(type));
    free(message);
    return in_progress(comm, result);
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    const struct part mine = {.in = in, .out = out};
    struct reduction r = {.count = count, .type = type, .op = op};
    (void)stream;
    return exchange(comm, &mine, do_all_reduce, &r);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream)
{
    const struct part mine = {.in = in, .out = out};
    struct reduction r = {.count = count, .type = type, .op = op};
    (void)stream;
    return exchange(comm, &mine, do_reduce_scatter, &r);
}

ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                        cudaStream_t stream)
{
    const struct part mine = {.in = in, .out = out};
    struct reduction r = {.count = count, .type = type, .op = op, .root = root};
    (void)stream;
    return exchange(comm, &mine, do_reduce, &r);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    const struct part mine = {.in = in, .out = out};
    size_t bytes = count * size_of(type);
    (void)stream;
    return exchange(comm, &mine, do_all_gather, &bytes);
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    const struct part mine = {.in = in, .out = out};
    struct broadcast b = {count * size_of(type), root};
    (void)stream;
    return exchange(comm, &mine, do_broadcast, &b);
}
