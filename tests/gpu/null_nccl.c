/*
 * null_nccl.c - NCCL among processes whose GPUs compute nothing (null_cuda.c): it moves no numbers, and checks who comes to what.
 *
 * Built as libnccl.so.2. The ranks of a job share a file in memory, in which they count what their streams have come to. An
 * exchange passes on a stream as it does on a GPU: a collective when all members' streams have come to theirs, a message when
 * the sender's and the receiver's have. So ranks wait for one that left, and streams that wait for one another in a circle hang.
 *
 * Exchanges that meet must be alike: the same function, type, size and root. Otherwise the process ends with a message ("null
 * NCCL: ...") and SIGABRT. MSIM_NULL_REPORT: a file to which the numbers of calls are appended when the process ends; "threads"
 * are those that NCCL would start: one for each group of calls of communicators that do not block.
 *
 * Only the communicator of all ranks can be split.
 */
#include <fcntl.h>
#include <nccl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/gpu/null_cuda.h"

enum {
    RANKS_MAX = 8,
    COMMS_MAX = 512,
    SPLITS_MAX = 512,
    REMEMBERED = 64, /* exchanges of a communicator, for comparison */
    GROUP_MAX = 256,
    PATIENCE_S = 60,
    NAP_NS = 50000,
    NULL_VERSION = 22809
};

/* What the ranks of a job share. Members of a communicator count from 0. */
struct job {
    atomic_int joined, n_comms;
    atomic_int colours[SPLITS_MAX][RANKS_MAX]; /* + 2; 0: has not come */
    int keys[SPLITS_MAX][RANKS_MAX];
    atomic_int made[SPLITS_MAX][RANKS_MAX];                  /* number of the communicator that a first member leads */
    atomic_uint come[COMMS_MAX][RANKS_MAX];                  /* collectives that a member has come to */
    atomic_uint sent[COMMS_MAX][RANKS_MAX][RANKS_MAX];       /* from, to */
    atomic_uint received[COMMS_MAX][RANKS_MAX][RANKS_MAX];   /* to, from */
    _Atomic uint64_t what[COMMS_MAX][RANKS_MAX][REMEMBERED]; /* the collective that a member came to */
    _Atomic uint64_t messages[COMMS_MAX][RANKS_MAX][RANKS_MAX][REMEMBERED];
};

struct ncclComm {
    struct job *job;
    int number, n, me; /* number -1: not there yet */
    int expected;      /* ranks of the job, of the communicator of all */
    bool blocking, aborted;
    int n_splits;
    struct ncclComm **split_to; /* under way */
    int colour, split_blocking;
};

enum kind { COLLECTIVE, SEND, RECEIVE };

struct exchange {
    struct ncclComm *comm;
    enum kind kind;
    int peer;
    uint64_t what;
    unsigned count; /* its number, once its stream has come to it */
};

/* Exchanges that run together. */
struct together {
    int n;
    bool begun;
    struct exchange exchanges[];
};

static struct {
    int depth, n;
    struct exchange exchanges[GROUP_MAX];
    cudaStream_t streams[GROUP_MAX];
} group;

static struct {
    long splits, exchanges, groups, threads;
} counts;
static char job_path[sizeof((ncclUniqueId *)NULL)->internal];

static _Noreturn void broken(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("error: null NCCL: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

static void report(void)
{
    FILE *to = fopen(getenv("MSIM_NULL_REPORT"), "a");
    if (!to)
        return;
    fprintf(to, "nccl,splits=%ld,exchanges=%ld,groups=%ld,threads=%ld\n", counts.splits, counts.exchanges, counts.groups,
            counts.threads);
    fclose(to);
}

/* --- exchanges on streams */

static void come(struct exchange *e)
{
    struct job *job = e->comm->job;
    const int number = e->comm->number, me = e->comm->me;
    atomic_uint *counter = e->kind == COLLECTIVE ? &job->come[number][me]
                           : e->kind == SEND     ? &job->sent[number][me][e->peer]
                                                 : &job->received[number][me][e->peer];
    e->count = atomic_load(counter) + 1;
    if (e->kind == COLLECTIVE)
        job->what[number][me][e->count % REMEMBERED] = e->what;
    else if (e->kind == SEND)
        job->messages[number][me][e->peer][e->count % REMEMBERED] = e->what;
    atomic_store(counter, e->count);
}

/* Whether `other` has come to its exchange of this number. It has to be the same exchange. */
static bool has_met(const struct exchange *e, atomic_uint *counter, _Atomic uint64_t *what, int other)
{
    const unsigned theirs = atomic_load(counter);
    if (theirs < e->count)
        return false;
    if (what && theirs < e->count + REMEMBERED && what[e->count % REMEMBERED] != e->what)
        broken("members %d and %d of communicator %d come to different exchanges at their %uth", e->comm->me, other,
               e->comm->number, e->count);
    return true;
}

static bool exchange_passes(const struct exchange *e)
{
    struct job *job = e->comm->job;
    const int number = e->comm->number, me = e->comm->me;
    if (e->comm->aborted)
        return true;
    if (e->kind == SEND)
        return has_met(e, &job->received[number][e->peer][me], NULL, e->peer);
    if (e->kind == RECEIVE)
        return has_met(e, &job->sent[number][e->peer][me], job->messages[number][e->peer][me], e->peer);
    for (int other = 0; other < e->comm->n; other++)
        if (!has_met(e, &job->come[number][other], job->what[number][other], other))
            return false;
    return true;
}

static bool all_pass(void *context)
{
    struct together *t = context;
    for (int i = 0; i < t->n && !t->begun; i++)
        come(&t->exchanges[i]);
    t->begun = true;
    for (int i = 0; i < t->n; i++)
        if (!exchange_passes(&t->exchanges[i]))
            return false;
    return true;
}

/* Exchanges of one stream run together. */
static void put_on_streams(void)
{
    bool thread = false;
    for (int first = 0; first < group.n; first++) {
        cudaStream_t stream = group.streams[first];
        struct together *t = calloc(1, sizeof *t + (size_t)group.n * sizeof *t->exchanges);
        bool earlier = false;
        for (int i = 0; i < group.n; i++) {
            earlier |= i < first && group.streams[i] == stream;
            if (group.streams[i] == stream)
                t->exchanges[t->n++] = group.exchanges[i];
            thread |= !group.exchanges[i].comm->blocking;
        }
        if (earlier)
            free(t);
        else
            null_stream_expect(stream, all_pass, t);
    }
    counts.groups += group.n > 0;
    counts.threads += thread;
    group.n = 0;
}

static uint64_t describe(int function, size_t count, ncclDataType_t type, int more)
{
    return ((count * 31 + (uint64_t)function) * 31 + (uint64_t)type) * 31 + (uint64_t)more;
}

static ncclResult_t enqueue(struct ncclComm *comm, enum kind kind, int peer, uint64_t what, cudaStream_t stream)
{
    if (!comm || comm->number < 0 || comm->aborted)
        broken("an exchange of a communicator that is not there");
    if (kind != COLLECTIVE && (peer < 0 || peer >= comm->n))
        broken("a message to member %d of %d", peer, comm->n);
    if (group.n == GROUP_MAX)
        broken("more than %d exchanges in a group", GROUP_MAX);
    counts.exchanges++;
    group.streams[group.n] = stream;
    group.exchanges[group.n++] = (struct exchange){.comm = comm, .kind = kind, .peer = peer, .what = what};
    if (group.depth == 0)
        put_on_streams();
    return ncclSuccess;
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
    if (group.depth == 0)
        return ncclInvalidUsage;
    if (--group.depth == 0)
        put_on_streams();
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    (void)from;
    return enqueue(comm, SEND, peer, describe(1, count, type, 0), stream);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    (void)to;
    return enqueue(comm, RECEIVE, peer, describe(1, count, type, 0), stream);
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    (void)in, (void)out;
    return enqueue(comm, COLLECTIVE, 0, describe(2, count, type, (int)op), stream);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream)
{
    (void)in, (void)out;
    return enqueue(comm, COLLECTIVE, 0, describe(3, count, type, (int)op), stream);
}

ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                        cudaStream_t stream)
{
    (void)in, (void)out;
    return enqueue(comm, COLLECTIVE, 0, describe(4, count, type, 16 * root + (int)op), stream);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    (void)in, (void)out;
    return enqueue(comm, COLLECTIVE, 0, describe(5, count, type, 0), stream);
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    (void)in, (void)out;
    return enqueue(comm, COLLECTIVE, 0, describe(6, count, type, root), stream);
}

/* --- communicators */

static void remove_job(void)
{
    if (*job_path)
        unlink(job_path);
    *job_path = '\0';
}

/* Its file's name is the job's id. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    const char *folder = getenv("TMPDIR");
    memset(id, 0, sizeof *id);
    snprintf(job_path, sizeof job_path, "%s/null_nccl.XXXXXX", folder ? folder : "/tmp");
    const int file = mkstemp(job_path);
    if (file < 0 || ftruncate(file, sizeof(struct job)) != 0)
        return ncclSystemError;
    close(file);
    atexit(remove_job);
    memcpy(id->internal, job_path, sizeof job_path);
    return ncclSuccess;
}

/* The members of a split that has all ranks: true when this one's communicator is there. */
static bool split_passes(struct ncclComm *all)
{
    struct job *job = all->job;
    const int split = all->n_splits - 1;
    int n = 0, me = 0, first = -1, number;
    for (int r = 0; r < all->n; r++) {
        if (atomic_load(&job->colours[split][r]) == 0)
            return false;
        if (atomic_load(&job->colours[split][r]) != all->colour + 2)
            continue;
        first = first < 0 ? r : first;
        me +=
            job->keys[split][r] < job->keys[split][all->me] || (job->keys[split][r] == job->keys[split][all->me] && r < all->me);
        n++;
    }
    if (all->colour == NCCL_SPLIT_NOCOLOR)
        return true;
    if (first == all->me)
        atomic_store(&job->made[split][first], atomic_fetch_add(&job->n_comms, 1) + 1);
    if ((number = atomic_load(&job->made[split][first])) == 0)
        return false;
    if (number >= COMMS_MAX)
        broken("more than %d communicators", COMMS_MAX);
    *all->split_to = calloc(1, sizeof **all->split_to);
    **all->split_to = (struct ncclComm){.job = job, .number = number, .n = n, .me = me, .blocking = all->split_blocking};
    return true;
}

/* What was asked for last is there. */
static bool is_ready(struct ncclComm *comm)
{
    if (comm->number < 0 && atomic_load(&comm->job->joined) == comm->expected) {
        comm->number = 0;
        remove_job();
    }
    if (comm->split_to && split_passes(comm))
        comm->split_to = NULL;
    return comm->number >= 0 && !comm->split_to;
}

static ncclResult_t settle(struct ncclComm *comm, bool blocking)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    const time_t began = time(NULL);
    counts.threads += !blocking;
    while (blocking && !is_ready(comm)) {
        if (time(NULL) - began > PATIENCE_S)
            return ncclRemoteError;
        nanosleep(&nap, NULL);
    }
    return blocking ? ncclSuccess : ncclInProgress;
}

static bool is_blocking(const ncclConfig_t *config)
{
    return !config || config->blocking != 0;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    const int file = open(id.internal, O_RDWR);
    struct job *job = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (job == MAP_FAILED)
        return ncclSystemError;
    if (n > RANKS_MAX)
        broken("more than %d ranks", RANKS_MAX);
    if (getenv("MSIM_NULL_REPORT"))
        atexit(report);
    *comm = calloc(1, sizeof **comm);
    **comm = (struct ncclComm){.job = job, .number = -1, .n = n, .me = rank, .expected = n, .blocking = is_blocking(config)};
    atomic_fetch_add(&job->joined, 1);
    return settle(*comm, (*comm)->blocking);
}

ncclResult_t ncclCommSplit(ncclComm_t all, int colour, int key, ncclComm_t *made, ncclConfig_t *config)
{
    if (!is_ready(all) || all->number != 0)
        broken("a split of a communicator that is not there, or not of all ranks");
    if (all->n_splits == SPLITS_MAX)
        broken("more than %d splits", SPLITS_MAX);
    counts.splits++;
    *made = NULL;
    all->split_to = made;
    all->colour = colour;
    all->split_blocking = is_blocking(config);
    all->job->keys[all->n_splits][all->me] = key;
    atomic_store(&all->job->colours[all->n_splits++][all->me], colour + 2);
    return settle(all, all->blocking);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result)
{
    if (!comm)
        return ncclInvalidArgument;
    *result = is_ready(comm) ? ncclSuccess : ncclInProgress;
    return ncclSuccess;
}

/* Streams may still hold what it was used for: its memory stays. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    comm->aborted = true;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    return ncclCommAbort(comm);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    return is_ready(comm) ? ncclSuccess : ncclInvalidUsage;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = NULL_VERSION;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError ? "remote process exited or there was a network error" : "null NCCL";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}
