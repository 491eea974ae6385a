/* cuda_comm.c - a world of processes with one GPU each, through NCCL. */
#include "runtime/cuda/cuda_comm.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/base/clock.h"
#include "model/base/memory.h"
#include "runtime/base/comm_collective.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_meeting.h"

#define NCCL_FUNCTIONS(X)                                                                                                        \
    X(GetVersion)                                                                                                                \
    X(GetUniqueId)                                                                                                               \
    X(GetErrorString)                                                                                                            \
    X(GetLastError)                                                                                                              \
    X(CommInitRankConfig)                                                                                                        \
    X(CommSplit)                                                                                                                 \
    X(CommGetAsyncError)                                                                                                         \
    X(CommAbort)                                                                                                                 \
    X(CommFinalize)                                                                                                              \
    X(CommDestroy)                                                                                                               \
    X(GroupStart)                                                                                                                \
    X(GroupEnd)                                                                                                                  \
    X(Send)                                                                                                                      \
    X(Recv)                                                                                                                      \
    X(AllReduce)                                                                                                                 \
    X(AllGather)                                                                                                                 \
    X(ReduceScatter)                                                                                                             \
    X(Reduce)                                                                                                                    \
    X(Broadcast)

#define FIELD(name) __typeof__(nccl##name) *name;
struct nccl {
    void *handle;
    NCCL_FUNCTIONS(FIELD)
};

enum { TIMEOUT_S = 60, PENDING = 64, LOOK_NS = 20000000, SPIN_NS = 100000 };

/* An exchange on its way: what, and an event behind it. */
struct pending {
    enum exchange exchange;
    const char *what;
    cudaEvent_t behind;
};

struct cuda_communicator {
    struct communicator base;
    ncclComm_t comm;                 /* NULL for one member, and after an abort */
    struct pending pending[PENDING]; /* ring; when it is full the oldest are forgotten */
    uint64_t enqueued, completed;
    struct exchange_call grouped; /* the last one between group_begin and group_end, which is what puts it on its stream */
    cudaStream_t grouped_on;
};

struct cuda_world {
    struct world base;
    struct nccl nccl;
    struct device *device;
    struct device_stream *stream; /* of barriers and of connecting */
    void *scratch;
    size_t scratch_bytes;
    struct cuda_meeting meeting;
    struct meeting_guard *guard;
    struct cuda_communicator *all; /* of all ranks */
    ncclComm_t outside;            /* what a split gives to who is no member: nothing */
    struct cuda_communicator **communicators;
    size_t n_communicators, capacity;
    uint64_t completed; /* exchanges, of all communicators, when last looked */
    nanos quiet_since;  /* of the wait under way */
    nanos looked;
    bool joined, broken, abandoned, in_group;
};

/* --- NCCL's answers */

static enum status report(const struct cuda_world *world, const char *what, ncclResult_t result, struct diags *diags)
{
    const char *more = world->nccl.GetLastError(NULL);
    (void)cudaGetLastError();
    diag_error(diags, PLACE_NONE, "rank %d: %s: %s (NCCL error %d)%s%s", world->base.rank, what,
               world->nccl.GetErrorString(result), (int)result, more && *more ? "; " : "", more ? more : "");
    return STATUS_FAILED;
}

/* Communicators do not block the host: an answer may be "in progress". Waits for the real one, at most the timeout. */
static enum status settle(struct cuda_world *world, ncclComm_t comm, ncclResult_t result, const char *what, struct diags *diags)
{
    const struct timespec nap = {.tv_nsec = 20000};
    const nanos began = clock_monotonic();
    nanos waited = 0, looked = 0;
    char why[MEETING_REASON];
    for (; result == ncclInProgress && waited < world->base.timeout; waited = clock_monotonic() - began) {
        ncclResult_t asked = world->nccl.CommGetAsyncError(comm, &result);
        if (asked != ncclSuccess)
            result = asked;
        if (result == ncclInProgress && waited > SPIN_NS)
            nanosleep(&nap, NULL);
        if (waited - looked < LOOK_NS)
            continue;
        looked = waited;
        if (meeting_abandoned(&world->meeting, why))
            break;
    }
    if (result == ncclSuccess)
        return STATUS_OK;
    if (result != ncclInProgress)
        return report(world, what, result, diags);
    if (meeting_abandoned(&world->meeting, why))
        diag_error(diags, PLACE_NONE, "rank %d: %s: given up: %s", world->base.rank, what, why);
    else
        diag_error(diags, PLACE_NONE, "rank %d: %s: another rank did not come within %g s", world->base.rank, what,
                   (double)world->base.timeout * 1e-9);
    return STATUS_FAILED;
}

static enum status nccl_load(struct nccl *nccl, struct diags *diags)
{
    nccl->handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!nccl->handle) {
        diag_error(diags, PLACE_NONE, "cannot load NCCL (%s); install it or set LD_LIBRARY_PATH", dlerror());
        return STATUS_MISSING;
    }
#define LOOK_UP(name) *(void **)&nccl->name = dlsym(nccl->handle, "nccl" #name);
    NCCL_FUNCTIONS(LOOK_UP)
#define IS_MISSING(name) || !nccl->name
    if (false NCCL_FUNCTIONS(IS_MISSING)) {
        diag_error(diags, PLACE_NONE, "the NCCL that was found is too old; 2.19 or later is needed");
        return STATUS_MISSING;
    }
    return STATUS_OK;
}

/* --- watching over waits */

static bool advanced(struct cuda_world *world)
{
    uint64_t completed = 0;
    for (size_t i = 0; i < world->n_communicators; i++) {
        struct cuda_communicator *c = world->communicators[i];
        while (c->completed < c->enqueued && cudaEventQuery(c->pending[c->completed % PENDING].behind) == cudaSuccess)
            c->completed++;
        completed += c->completed;
    }
    (void)cudaGetLastError(); /* "not ready" is no error */
    bool news = completed != world->completed;
    world->completed = completed;
    return news;
}

/* Aborts all in one group. An abort frees memory, which waits for the whole device, so also for kernels of communicators that are
 * not aborted yet. */
static void abort_all(struct cuda_world *world)
{
    if (!world->all) /* opening failed before the meeting */
        return;
    (void)world->nccl.GroupStart();
    for (size_t i = 0; i < world->n_communicators; i++)
        if (world->communicators[i]->comm) {
            (void)world->nccl.CommAbort(world->communicators[i]->comm);
            world->communicators[i]->comm = NULL;
        }
    (void)world->nccl.GroupEnd();
    world->broken = true;
}

/* The exchange that has waited longest. */
static const struct pending *oldest_pending(const struct cuda_world *world)
{
    for (size_t i = 0; i < world->n_communicators; i++) {
        const struct cuda_communicator *c = world->communicators[i];
        if (c->completed < c->enqueued)
            return &c->pending[c->completed % PENDING];
    }
    return NULL;
}

static enum status give_up(struct cuda_world *world, const char *why, struct diags *diags)
{
    const struct pending *pending = oldest_pending(world);
    char gone[160];
    meeting_gone(&world->meeting, gone, sizeof gone);
    diag_error(diags, PLACE_NONE, "rank %d: %s %s: %s%s%s", world->base.rank,
               pending ? exchange_name(pending->exchange) : "compute", pending ? pending->what : "", why, *gone ? "; " : "",
               gone);
    world->base.api->abandon(&world->base, diags->n_items ? diags->items[diags->n_items - 1].text : why);
    abort_all(world);
    return STATUS_FAILED;
}

static enum status look(void *context, nanos waited, struct diags *diags)
{
    struct cuda_world *world = context;
    char why[MEETING_REASON + 64];
    if (world->broken)
        return STATUS_FAILED;
    if (waited < world->looked) /* a new wait */
        world->looked = world->quiet_since = 0;
    if (waited - world->looked < LOOK_NS)
        return STATUS_OK;
    world->looked = waited;
    if (advanced(world))
        world->quiet_since = waited;
    for (size_t i = 0; i < world->n_communicators; i++) {
        ncclResult_t result = ncclSuccess;
        if (world->communicators[i]->comm)
            (void)world->nccl.CommGetAsyncError(world->communicators[i]->comm, &result);
        if (result != ncclSuccess && result != ncclInProgress)
            return give_up(world, world->nccl.GetErrorString(result), diags);
    }
    if (meeting_abandoned(&world->meeting, why))
        return give_up(world, why, diags);
    if (oldest_pending(world) && waited - world->quiet_since > world->base.timeout) {
        snprintf(why, sizeof why, "nothing was exchanged for %g s", (double)world->base.timeout * 1e-9);
        return give_up(world, why, diags);
    }
    return STATUS_OK;
}

/* --- exchanges */

static ncclDataType_t type_of(enum element element)
{
    switch (element) {
    case ELEMENT_BF16: return ncclBfloat16;
    case ELEMENT_FP64: return ncclFloat64;
    case ELEMENT_INT32: return ncclInt32;
    default: return ncclFloat32;
    }
}

/* Within a group nothing has happened yet, and a communicator that does not block may say so. */
static bool goes_on(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

/* Of an exchange with parts of different sizes: [members]. */
struct part_rows {
    int32_t *sent, *received;
};

/* The calls of one member for the part of another, which begins at `in` and `out`. */
static ncclResult_t ragged_part(const struct nccl *nccl, const struct cuda_communicator *c, const struct exchange_call *call,
                                int peer, const char *in, char *out, size_t sent, size_t received, cudaStream_t stream)
{
    const ncclDataType_t type = type_of(call->element);
    if (call->exchange == EXCHANGE_ALL_GATHER)
        return nccl->Broadcast(call->in, out, received, type, peer, c->comm, stream);
    if (call->exchange == EXCHANGE_REDUCE_SCATTER)
        return nccl->Reduce(in, call->out, sent, type, ncclSum, peer, c->comm, stream);
    ncclResult_t result = nccl->Send(in, sent, type, peer, c->comm, stream);
    return goes_on(result) ? nccl->Recv(out, received, type, peer, c->comm, stream) : result;
}

/* Without `rows`: one to everybody, one from everybody. */
static ncclResult_t ragged(const struct nccl *nccl, const struct cuda_communicator *c, const struct exchange_call *call,
                           const struct part_rows *rows, cudaStream_t stream)
{
    const size_t width = (size_t)call->count, bytes = width * element_bytes(call->element);
    const char *in = call->in;
    char *out = call->out;
    ncclResult_t result = nccl->GroupStart();
    for (int peer = 0; peer < c->base.n && goes_on(result); peer++) {
        const size_t s = rows ? (size_t)rows->sent[peer] : 1, r = rows ? (size_t)rows->received[peer] : 1;
        if (s || r)
            result = ragged_part(nccl, c, call, peer, in, out, s * width, r * width, stream);
        in += s * bytes;
        out += r * bytes;
    }
    ncclResult_t ended = nccl->GroupEnd();
    return goes_on(result) ? ended : result;
}

static ncclResult_t whole_exchange(const struct nccl *nccl, const struct cuda_communicator *c, const struct exchange_call *call,
                                   cudaStream_t stream)
{
    const size_t count = (size_t)call->count;
    const ncclDataType_t type = type_of(call->element);
    const ncclRedOp_t op = call->reduction == REDUCTION_MAX ? ncclMax : ncclSum;
    switch (call->exchange) {
    case EXCHANGE_SEND: return nccl->Send(call->in, count, type, call->peer, c->comm, stream);
    case EXCHANGE_RECV: return nccl->Recv(call->out, count, type, call->peer, c->comm, stream);
    case EXCHANGE_ALL_REDUCE: return nccl->AllReduce(call->in, call->out, count, type, op, c->comm, stream);
    case EXCHANGE_ALL_GATHER: return nccl->AllGather(call->in, call->out, count, type, c->comm, stream);
    case EXCHANGE_REDUCE_SCATTER: return nccl->ReduceScatter(call->in, call->out, count, type, op, c->comm, stream);
    case EXCHANGE_ALL_TO_ALL: return ragged(nccl, c, call, NULL, stream);
    case EXCHANGE_BROADCAST: return nccl->Broadcast(call->in, call->out, count, type, call->peer, c->comm, stream);
    case N_EXCHANGES: break;
    }
    return ncclInvalidArgument;
}

/* One launch for all blocks. */
static ncclResult_t exchange(const struct nccl *nccl, const struct cuda_communicator *c, const struct exchange_call *call,
                             cudaStream_t stream)
{
    if (exchange_blocks(call) == 1)
        return whole_exchange(nccl, c, call, stream);
    ncclResult_t result = nccl->GroupStart();
    for (int b = 0; b < call->blocks && goes_on(result); b++) {
        const struct exchange_call block = parts_block(call, c->base.n, b);
        result = whole_exchange(nccl, c, &block, stream);
    }
    ncclResult_t ended = nccl->GroupEnd();
    return goes_on(result) ? ended : result;
}

/* One member: what is in goes out. */
static enum status exchange_alone(const struct exchange_call *call, struct device_stream *stream, struct diags *diags)
{
    const size_t bytes = (size_t)call->count * element_bytes(call->element);
    const struct kernel_call copy = {.kernel = KERNEL_COPY, .copy = {call->out, call->in, bytes}};
    return call->in && call->out && call->in != call->out ? stream->device->api->launch(stream, &copy, diags) : STATUS_OK;
}

static void remember(struct cuda_communicator *c, const struct exchange_call *call, cudaStream_t stream)
{
    struct pending *pending = &c->pending[c->enqueued % PENDING];
    if (!pending->behind && cudaEventCreateWithFlags(&pending->behind, cudaEventDisableTiming) != cudaSuccess) {
        (void)cudaGetLastError();
        return;
    }
    pending->exchange = call->exchange;
    pending->what = call->what ? call->what : "";
    (void)cudaEventRecord(pending->behind, stream);
    c->enqueued++;
    if (c->enqueued - c->completed > PENDING)
        c->completed = c->enqueued - PENDING;
}

/* Numbers of rows from device memory. The host waits for what makes them, as long as for anything. */
static enum status fetch_rows(struct device_stream *stream, const int32_t *rows, int n, int32_t *host, struct diags *diags)
{
    const struct device_api *api = stream->device->api;
    if (!rows)
        return STATUS_OK;
    enum status status = api->copy_out(stream, host, rows, (size_t)n * sizeof *host, diags);
    return status == STATUS_OK ? api->stream_synchronise(stream, diags) : status;
}

static enum status exchange_ragged(struct cuda_communicator *c, struct device_stream *stream, const struct exchange_call *call,
                                   const char *what, struct diags *diags)
{
    struct cuda_world *world = (struct cuda_world *)c->base.world;
    int32_t *numbers = memory_new(2 * (size_t)c->base.n, sizeof *numbers);
    struct part_rows rows = {numbers, numbers + c->base.n};
    enum status status = fetch_rows(stream, call->parts.sent, c->base.n, rows.sent, diags);
    if (status == STATUS_OK)
        status = fetch_rows(stream, call->parts.received, c->base.n, rows.received, diags);
    if (status == STATUS_OK)
        status = settle(world, c->comm, ragged(&world->nccl, c, call, &rows, cuda_device_stream(stream)), what, diags);
    free(numbers);
    return status;
}

static enum status cuda_enqueue(struct communicator *base, struct device_stream *stream, const struct exchange_call *call,
                                struct diags *diags)
{
    struct cuda_communicator *c = (struct cuda_communicator *)base;
    struct cuda_world *world = (struct cuda_world *)base->world;
    char what[96];
    if (base->n == 1)
        return exchange_alone(call, stream, diags);
    snprintf(what, sizeof what, "%s %s", exchange_name(call->exchange), call->what ? call->what : "");
    if (world->broken || !c->comm) {
        diag_error(diags, PLACE_NONE, "rank %d: %s: the exchange was given up after an earlier failure", world->base.rank, what);
        return STATUS_FAILED;
    }
    enum status status = call->parts.sent || call->parts.received
                             ? exchange_ragged(c, stream, call, what, diags)
                             : settle(world, c->comm, exchange(&world->nccl, c, call, cuda_device_stream(stream)), what, diags);
    if (status == STATUS_OK && world->in_group)
        c->grouped = *call, c->grouped_on = cuda_device_stream(stream);
    else if (status == STATUS_OK)
        remember(c, call, cuda_device_stream(stream));
    return status;
}

static enum status cuda_group_begin(struct world *base, struct diags *diags)
{
    struct cuda_world *world = (struct cuda_world *)base;
    ncclResult_t result = world->nccl.GroupStart();
    world->in_group = result == ncclSuccess;
    return result == ncclSuccess ? STATUS_OK : report(world, "ncclGroupStart", result, diags);
}

static enum status cuda_group_end(struct world *base, struct diags *diags)
{
    struct cuda_world *world = (struct cuda_world *)base;
    ncclResult_t result = world->nccl.GroupEnd();
    enum status status = goes_on(result) ? STATUS_OK : report(world, "ncclGroupEnd", result, diags);
    for (size_t i = 0; result == ncclInProgress && i < world->n_communicators && status == STATUS_OK; i++)
        if (world->communicators[i]->comm)
            status = settle(world, world->communicators[i]->comm, ncclInProgress, "ncclGroupEnd", diags);
    for (size_t i = 0; i < world->n_communicators; i++) {
        struct cuda_communicator *c = world->communicators[i];
        if (c->grouped_on && status == STATUS_OK)
            remember(c, &c->grouped, c->grouped_on);
        c->grouped_on = NULL;
    }
    world->in_group = false;
    return status;
}

/* --- communicators */

static struct cuda_communicator *communicator_add(struct cuda_world *world, int n, int me)
{
    struct cuda_communicator *c = memory_new(1, sizeof *c);
    c->base = (struct communicator){.world = &world->base, .n = n, .me = me};
    world->communicators =
        memory_grow(world->communicators, &world->capacity, world->n_communicators + 1, sizeof *world->communicators);
    world->communicators[world->n_communicators++] = c;
    return c;
}

/* Pairs connect at their first message and wait for one another then; so they exchange one now. */
static enum status connect_pairs(struct cuda_world *world, struct cuda_communicator *c, struct diags *diags)
{
    if (2 * (size_t)c->base.n * sizeof(float) > world->scratch_bytes)
        return STATUS_OK; /* too many to be a channel */
    struct exchange_call call = {.exchange = EXCHANGE_ALL_TO_ALL,
                                 .element = ELEMENT_FP32,
                                 .in = world->scratch,
                                 .out = (float *)world->scratch + c->base.n,
                                 .count = 1,
                                 .what = "connecting"};
    enum status status = cuda_enqueue(&c->base, world->stream, &call, diags);
    return status == STATUS_OK ? world->device->api->stream_synchronise(world->stream, diags) : status;
}

/* Which group of several a rank is in, and as which member of it. */
struct place_in_sets {
    int set, me, n; /* set -1: none */
    bool alone;     /* no group has a second member */
};

static struct place_in_sets place_in_sets(const struct rank_sets *sets, int rank)
{
    struct place_in_sets place = {.set = -1, .alone = true};
    const int *members = sets->members;
    for (int s = 0; s < sets->n; members += sets->sizes[s++]) {
        place.alone &= sets->sizes[s] == 1;
        for (int i = 0; i < sets->sizes[s]; i++)
            if (members[i] == rank)
                place.set = s, place.me = i, place.n = sets->sizes[s];
    }
    return place;
}

/* One split, in which each group has a colour: it is collective over all ranks, so one for each group would cost all of them as
 * many. */
static enum status cuda_communicators_new(struct world *base, const struct rank_sets *sets, struct communicator **communicator,
                                          struct diags *diags)
{
    struct cuda_world *world = (struct cuda_world *)base;
    const struct place_in_sets place = place_in_sets(sets, base->rank);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    /* NCCL writes the result when it is there, perhaps after it was given up here; the world frees it in any case. */
    struct cuda_communicator *made = place.set < 0 ? NULL : communicator_add(world, place.n, place.me);
    bool splits = made && place.n > 1;
    *communicator = NULL;
    if (place.alone) { /* nothing to split off: everybody knows that everybody knows */
        *communicator = made ? &made->base : NULL;
        return STATUS_OK;
    }
    enum status status = settle(world, world->all->comm,
                                world->nccl.CommSplit(world->all->comm, splits ? place.set : NCCL_SPLIT_NOCOLOR, place.me,
                                                      splits ? &made->comm : &world->outside, &config),
                                "splitting a communicator", diags);
    if (status == STATUS_OK && splits)
        status = settle(world, made->comm, ncclInProgress, "splitting a communicator", diags);
    if (status == STATUS_OK && splits)
        status = connect_pairs(world, made, diags);
    if (status == STATUS_OK && made)
        *communicator = &made->base;
    return status;
}

static enum status cuda_communicator_new(struct world *base, const int *members, int n, struct communicator **communicator,
                                         struct diags *diags)
{
    return cuda_communicators_new(base, &(struct rank_sets){members, &n, 1}, communicator, diags);
}

/* --- the world */

static void cuda_abandon(struct world *base, const char *why)
{
    struct cuda_world *world = (struct cuda_world *)base;
    world->abandoned = true;
    meeting_abandon(&world->meeting, why);
}

/* An all-reduce of one number ends everywhere within microseconds; the epoch is right behind it on the device. */
static enum status cuda_barrier(struct world *base, bool clock, struct diags *diags)
{
    struct cuda_world *world = (struct cuda_world *)base;
    enum status status = STATUS_OK;
    if (base->n_ranks > 1) {
        struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE,
                                     .element = ELEMENT_FP32,
                                     .in = world->scratch,
                                     .out = world->scratch,
                                     .count = 1,
                                     .what = "barrier"};
        status = cuda_enqueue(&world->all->base, world->stream, &call, diags);
    }
    if (status == STATUS_OK && clock)
        status = world->device->api->mark_epoch(world->device, world->stream, diags);
    return status == STATUS_OK ? world->device->api->stream_synchronise(world->stream, diags) : status;
}

/* Who never met the others, or left them, would wait for them in vain. A communicator that does not block ends in two steps;
 * those that were split off first. */
static void leave(struct cuda_world *world)
{
    struct diags nobody = {0};
    bool together = world->joined && !world->abandoned;
    for (size_t i = world->n_communicators; i-- > 0 && together;) {
        struct cuda_communicator *c = world->communicators[i];
        if (c->comm)
            together = settle(world, c->comm, world->nccl.CommFinalize(c->comm), "leaving", &nobody) == STATUS_OK;
        if (c->comm && together)
            (void)world->nccl.CommDestroy(c->comm);
        c->comm = together ? NULL : c->comm;
    }
    if (!together)
        abort_all(world);
    diags_free(&nobody);
}

static void communicator_free(struct cuda_communicator *c)
{
    for (int j = 0; j < PENDING; j++)
        if (c->pending[j].behind)
            (void)cudaEventDestroy(c->pending[j].behind);
    free(c);
}

static void cuda_close(struct world *base)
{
    struct cuda_world *world = (struct cuda_world *)base;
    if (!world)
        return;
    cuda_device_set_watch(world->device, (struct cuda_device_watch){0});
    leave(world);
    for (size_t i = 0; i < world->n_communicators; i++)
        communicator_free(world->communicators[i]);
    free(world->communicators);
    world->device->api->stream_free(world->stream);
    world->device->api->memory_free(world->device, world->scratch, world->scratch_bytes);
    (void)cudaGetLastError(); /* NCCL stays loaded: its threads may outlive an abort */
    meeting_guard_free(world->guard);
    free(world);
}

static const struct comm_api cuda_comm_api = {.name = "nccl",
                                              .close = cuda_close,
                                              .communicator_new = cuda_communicator_new,
                                              .communicators_new = cuda_communicators_new,
                                              .enqueue = cuda_enqueue,
                                              .group_begin = cuda_group_begin,
                                              .group_end = cuda_group_end,
                                              .barrier = cuda_barrier,
                                              .abandon = cuda_abandon};

static enum status join(struct cuda_world *world, const struct cuda_comm_options *options, int version, struct diags *diags)
{
    char versions[MEETING_VERSIONS];
    ncclUniqueId id = {{0}};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int cuda = 0;
    (void)cudaRuntimeGetVersion(&cuda);
    world->guard = meeting_guard_new(&world->meeting, 2 * world->base.timeout, options->end);
    snprintf(versions, sizeof versions, "NCCL %d with CUDA %d", version, cuda);
    ncclResult_t result = options->rank == 0 ? world->nccl.GetUniqueId(&id) : ncclSuccess;
    if (result != ncclSuccess)
        return report(world, "ncclGetUniqueId", result, diags);
    enum status status = meeting_share(&world->meeting, versions, &id, sizeof id, options->share, diags);
    if (status != STATUS_OK)
        return status;
    config.blocking = 0;
    world->all = communicator_add(world, options->n_ranks, options->rank);
    result = world->nccl.CommInitRankConfig(&world->all->comm, options->n_ranks, id, options->rank, &config);
    return settle(world, world->all->comm, result, "joining the other ranks", diags);
}

enum status cuda_comm_open(const struct cuda_comm_options *options, struct device *device, struct world **world,
                           struct diags *diags)
{
    struct cuda_world *made = memory_new(1, sizeof *made);
    int version = 0;
    const nanos timeout = options->timeout ? options->timeout : TIMEOUT_S * NANOS_PER_SECOND;
    made->base = (struct world){.api = &cuda_comm_api, .rank = options->rank, .n_ranks = options->n_ranks, .timeout = timeout};
    made->device = device;
    made->scratch_bytes = 1 << 16;
    enum status status = device->api->memory_new(device, made->scratch_bytes, &made->scratch, diags);
    if (status == STATUS_OK)
        status = device->api->stream_new(device, true, &made->stream, diags);
    if (status == STATUS_OK && options->n_ranks > 1) {
        status = nccl_load(&made->nccl, diags);
        if (status == STATUS_OK)
            (void)made->nccl.GetVersion(&version);
        cuda_comm_variables(options, version);
        if (status == STATUS_OK)
            status = meeting_enter(&made->meeting, options->folder, options->rank, options->n_ranks, made->base.timeout, diags);
        if (status == STATUS_OK)
            status = join(made, options, version, diags);
        made->joined = status == STATUS_OK;
        if (made->joined)
            cuda_device_set_watch(device, (struct cuda_device_watch){look, made});
    }
    if (status != STATUS_OK) {
        cuda_close(&made->base);
        return status;
    }
    *world = &made->base;
    return STATUS_OK;
}
