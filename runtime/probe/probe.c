/* probe.c - runs the cases of a probe on all ranks and computes each row's time. */
#include "runtime/probe/probe.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/order.h"
#include "runtime/base/cores.h"
#include "runtime/base/parameters.h"
#include "runtime/comm/comm_threads.h"
#include "runtime/device/device_cpu.h"
#include "runtime/probe/probe_cases.h"

enum { BATCHES = 5, REPEATS_MAX = 2000, MARKED_REPEATS_MAX = 40, EXCHANGE_BATCH_BYTES = 1 << 24, GROUPS_MAX = 4 };
enum { HEAD_START_NS = 100000 }; /* of the host, for each exchange: NCCL hands those that do not block to a thread of their own */

/* Neighbours that exchange with each other while others do. */
struct exchange_group {
    int ranks;
    struct communicator *communicator;
};

/* One rank of a probe. */
struct prober {
    pthread_t thread;
    const struct probe_options *options;
    struct probe_cases cases;
    struct hub *hub; /* of ranks that are threads */
    int rank;
    struct device *device;
    struct world *world;
    struct device_stream *stream, *beside; /* where kernels run, where exchanges do */
    struct communicator *everybody;
    struct exchange_group groups[GROUPS_MAX];
    int n_groups;
    struct device_event *events[2 * MARKED_REPEATS_MAX], *exchanging, *exchanged;
    struct device_event *beside_events[2]; /* around a batch */
    void *buffers[PROBE_BUFFERS], *flush, *host;
    double *shared; /* device memory: numbers that ranks tell one another */
    double *times;  /* [n_cases][BATCHES], own, in the end the mean over ranks */
    double *works;  /* of that, what the exchange had a core for */
    uint64_t turn;  /* of calls */
    enum status status;
    struct diags diags;
};

/* --- one case */

/* Between two uses of a place lies as much as there is of it. */
static void enqueue_host_copy(struct prober *p, const struct probe_case *c)
{
    size_t bytes = c->call.copy.bytes, at = p->turn++ % (p->cases.copied_bytes / bytes) * bytes;
    if (p->status == STATUS_OK)
        p->status =
            p->device->api->copy_between(p->stream, (char *)p->host + at, (const char *)p->buffers[1] + at, bytes, &p->diags);
}

static void enqueue_host_update(struct prober *p, const struct probe_case *c)
{
    struct kernel_call call = c->call;
    bool copies = device_element_bytes(p->device) != sizeof(float);
    float *at = p->host;
    if (call.kernel == KERNEL_SGD) {
        const int64_t n = call.sgd.n;
        call.sgd.p = at, call.sgd.m = at + n, call.sgd.g = at + 2 * n, call.sgd.compute = copies ? at + 3 * n : NULL;
    } else {
        const int64_t n = call.adam.n;
        call.adam.p = at, call.adam.m = at + n, call.adam.v = at + 2 * n, call.adam.g = at + 3 * n;
        call.adam.compute = copies ? at + 4 * n : NULL;
    }
    if (p->status == STATUS_OK)
        p->status = p->device->api->launch_host(p->stream, &call, &p->diags);
}

static void enqueue_kernel(struct prober *p, const struct probe_case *c)
{
    struct kernel_call call = probe_case_place(c, p->buffers, device_element_bytes(p->device));
    probe_case_turn(&call, p->cases.weight_bytes, device_element_bytes(p->device), p->turn++);
    if (call.kernel == KERNEL_ATTENTION_BACKWARD)
        call.attention.workspace = p->buffers[6];
    if (call.kernel == KERNEL_QUERY_RANGE_BACKWARD)
        call.query_range.workspace = p->buffers[6];
    if (p->status == STATUS_OK)
        p->status = p->device->api->launch(p->stream, &call, &p->diags);
}

static void let_wait(struct prober *p, struct device_event *event, struct device_stream *stream)
{
    if (p->status == STATUS_OK)
        p->status = p->device->api->event_wait(event, stream, &p->diags);
}

static struct communicator *group_of(const struct prober *p, const struct probe_case *c)
{
    for (int i = 0; i < p->n_groups; i++)
        if (p->groups[i].ranks == c->row.ranks)
            return p->groups[i].communicator;
    return p->everybody;
}

/* Adds the reduced gradients to those of other micro-batches. */
static void enqueue_sum(struct prober *p, const struct exchange_call *reduced)
{
    struct kernel_call add = {
        .kernel = KERNEL_ADD,
        .add = {
            .n = reduced->count, .h = reduced->count, .wide = true, .a = p->buffers[3], .b = reduced->out, .y = p->buffers[3]}};
    if (p->status == STATUS_OK)
        p->status = p->device->api->launch(p->beside, &add, &p->diags);
}

/* On a stream of its own, between two operations of the other: `ready` is recorded there, and it goes on behind the exchange. */
static void enqueue_exchange(struct prober *p, const struct probe_case *c, struct device_event *ready)
{
    struct communicator *group = group_of(p, c);
    struct exchange_call call = probe_exchange_place(c, group->me, p->buffers, p->cases.weight_bytes, p->turn++);
    let_wait(p, ready, p->beside);
    if (p->status == STATUS_OK) /* as the executor does it */
        p->status = p->device->api->event_record(p->exchanging, p->beside, &p->diags);
    if (p->status == STATUS_OK)
        p->status = p->world->api->enqueue(group, p->beside, &call, &p->diags);
    if (c->travels && call.exchange == EXCHANGE_REDUCE_SCATTER)
        enqueue_sum(p, &call);
    if (p->status == STATUS_OK)
        p->status = p->device->api->event_record(p->exchanged, p->beside, &p->diags);
    let_wait(p, p->exchanged, p->stream);
}

/* Writes the data of an exchange just before it, so the data are in the caches of the core that wrote them and of no other. */
static void enqueue_producer(struct prober *p, const struct probe_case *c)
{
    struct kernel_call made = {.kernel = KERNEL_COPY, .copy = {p->buffers[1], p->buffers[3], (size_t)c->row.bytes}};
    if (p->status == STATUS_OK)
        p->status = p->device->api->launch(p->stream, &made, &p->diags);
}

static void enqueue_flush(struct prober *p)
{
    struct kernel_call zero = {.kernel = KERNEL_ZERO, .zero = {p->flush, p->options->flush_bytes}};
    if (p->status == STATUS_OK)
        p->status = p->device->api->launch(p->stream, &zero, &p->diags);
}

static void mark(struct prober *p, int event)
{
    if (p->status == STATUS_OK)
        p->status = p->device->api->event_record(p->events[event], p->stream, &p->diags);
}

static void mark_beside(struct prober *p, int event)
{
    if (p->status == STATUS_OK)
        p->status = p->device->api->event_record(p->beside_events[event], p->beside, &p->diags);
}

enum { BATCH_BEGIN = 2, BATCH_END = 3 }; /* events, while calls have 0 and 1 */

/* Timed call by call, between the device's marks; as a batch otherwise. */
static bool is_marked(const struct prober *p, const struct probe_case *c)
{
    return c->is_exchange || p->options->flush_bytes > 0;
}

/* In a step the host is ahead of a GPU by many operations. In front of a kernel it comes to be while the cache is flushed. */
static void get_ahead(struct prober *p, const struct probe_case *c, int repeats)
{
    if (c->is_exchange && p->options->flush_bytes && p->device->api->pause && p->status == STATUS_OK)
        p->status = p->device->api->pause(p->stream, (nanos)repeats * HEAD_START_NS, &p->diags);
}

/* As the executor does it: a mark before, the work, a mark after. */
static void enqueue(struct prober *p, const struct probe_case *c, int repeats)
{
    bool marked = is_marked(p, c);
    get_ahead(p, c, repeats);
    mark_beside(p, 0);
    if (!marked)
        mark(p, BATCH_BEGIN);
    for (int i = 0; i < repeats && p->status == STATUS_OK; i++) {
        int before = marked ? 2 * i : 0;
        if (c->is_exchange && !c->of_weights)
            enqueue_producer(p, c);
        else if (!c->is_exchange && marked)
            enqueue_flush(p);
        mark(p, before);
        if (c->is_exchange)
            enqueue_exchange(p, c, p->events[before]);
        else if (c->to_host)
            enqueue_host_copy(p, c);
        else if (c->by_host)
            enqueue_host_update(p, c);
        else
            enqueue_kernel(p, c);
        mark(p, before + 1);
    }
    if (!marked)
        mark(p, BATCH_END);
    mark_beside(p, 1);
    if (p->status == STATUS_OK)
        p->status = p->device->api->stream_synchronise(p->stream, &p->diags);
    if (p->status == STATUS_OK)
        p->status = p->device->api->stream_synchronise(p->beside, &p->diags);
}

/* Numbers become their sums or largest ones over ranks, on each of them. */
static void share(struct prober *p, struct communicator *ranks, enum reduction reduction, double *numbers, size_t n)
{
    const struct device_api *api = p->device->api;
    size_t bytes = n * sizeof *numbers;
    struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE,
                                 .element = ELEMENT_FP64,
                                 .reduction = reduction,
                                 .in = p->shared,
                                 .out = p->shared,
                                 .count = (int64_t)n,
                                 .what = "times"};
    if (p->status == STATUS_OK)
        p->status = api->copy_in(p->stream, p->shared, numbers, bytes, &p->diags);
    if (p->status == STATUS_OK)
        p->status = p->world->api->enqueue(ranks, p->stream, &call, &p->diags);
    if (p->status == STATUS_OK)
        p->status = api->copy_out(p->stream, numbers, p->shared, bytes, &p->diags);
    if (p->status == STATUS_OK)
        p->status = api->stream_synchronise(p->stream, &p->diags);
}

static double mark_time(struct prober *p, int event)
{
    nanos time = 0;
    if (p->status == STATUS_OK)
        p->status = p->device->api->event_time(p->events[event], &time, &p->diags);
    return (double)time * 1e-9;
}

/* Mean of what the device says each call took; an exchange begins when the last rank is there. */
static double between_marks(struct prober *p, const struct probe_case *c, int repeats)
{
    double begin[MARKED_REPEATS_MAX], total = 0;
    for (int i = 0; i < repeats; i++)
        begin[i] = mark_time(p, 2 * i);
    if (c->is_exchange)
        share(p, group_of(p, c), REDUCTION_MAX, begin, (size_t)repeats);
    for (int i = 0; i < repeats; i++)
        total += mark_time(p, 2 * i + 1) - begin[i];
    return total / repeats;
}

/* Time between two marks per call: what was worked, where a device knows that, so that what else runs here does not count. */
static double of_batch(struct prober *p, struct device_event *from, struct device_event *to, int repeats)
{
    const struct device_api *api = p->device->api;
    enum status (*clock)(struct device_event *, nanos *, struct diags *) = api->event_work ? api->event_work : api->event_time;
    nanos begin = 0, end = 0;
    if (p->status == STATUS_OK)
        p->status = clock(from, &begin, &p->diags);
    if (p->status == STATUS_OK)
        p->status = clock(to, &end, &p->diags);
    return (double)(end - begin) * 1e-9 / repeats;
}

/* Of one call, and what of it an exchange worked. */
static double timed(struct prober *p, const struct probe_case *c, int repeats, double *worked)
{
    if (p->status == STATUS_OK)
        p->status = p->world->api->barrier(p->world, is_marked(p, c), &p->diags); /* short times are exact times */
    enqueue(p, c, repeats);
    double seconds =
        is_marked(p, c) ? between_marks(p, c, repeats) : of_batch(p, p->events[BATCH_BEGIN], p->events[BATCH_END], repeats);
    bool tells = c->is_exchange && p->device->api->event_work;
    *worked = tells ? of_batch(p, p->beside_events[0], p->beside_events[1], repeats) : seconds;
    return seconds;
}

/* All ranks repeat an exchange equally often, so that follows from its size. */
static int repeats_of(const struct prober *p, const struct probe_case *c, double once)
{
    int most = is_marked(p, c) ? MARKED_REPEATS_MAX : REPEATS_MAX;
    double n =
        c->is_exchange ? EXCHANGE_BATCH_BYTES / (c->row.bytes + 1) : p->options->seconds / BATCHES / (once > 1e-9 ? once : 1e-9);
    int least = c->is_exchange ? 2 : 1;
    return n > most ? most : n < least ? least : (int)n;
}

/* Writes the integers of a case's routing, or zeros, to the buffer of integers. */
static void place_integers(struct prober *p, const struct probe_case *c, bool back)
{
    size_t bytes = (size_t)probe_routing_integers(&c->routing) * sizeof(int32_t);
    if (!c->routing.copies || p->status != STATUS_OK)
        return;
    int32_t *integers = memory_new(bytes / sizeof *integers, sizeof *integers);
    if (!back)
        probe_routing_fill(&c->routing, integers);
    p->status = p->device->api->copy_in(p->stream, p->buffers[0], integers, bytes, &p->diags);
    if (p->status == STATUS_OK)
        p->status = p->device->api->stream_synchronise(p->stream, &p->diags);
    free(integers);
}

static void run_case(struct prober *p, const struct probe_case *c, double *times, double *works)
{
    place_integers(p, c, false);
    if (p->options->flush_bytes) /* a GPU's first call is that which loads the kernel, and chooses an algorithm */
        (void)timed(p, c, 1, works);
    double once = timed(p, c, 1, works);
    int repeats = repeats_of(p, c, once);
    for (int b = 0; b < BATCHES && p->status == STATUS_OK; b++)
        times[b] = timed(p, c, repeats, &works[b]);
    place_integers(p, c, true);
}

/* --- one rank */

static void allocate(struct prober *p, size_t bytes, void **memory)
{
    if (p->status == STATUS_OK)
        p->status = p->device->api->memory_new(p->device, bytes, memory, &p->diags);
}

static size_t buffer_bytes(const struct prober *p, int which)
{
    const struct probe_cases *cases = &p->cases;
    return probe_holds_weights(which) && cases->weight_bytes > cases->buffer_bytes ? cases->weight_bytes : cases->buffer_bytes;
}

static size_t shared_bytes(const struct prober *p)
{
    size_t times = (size_t)p->cases.n_items * BATCHES;
    return (times > MARKED_REPEATS_MAX ? times : MARKED_REPEATS_MAX) * sizeof *p->shared;
}

/* Groups of that many neighbours, this rank's among them. */
static struct communicator *open_group(struct prober *p, int ranks)
{
    struct communicator *own = NULL;
    int *members = memory_new((size_t)ranks, sizeof *members);
    for (int first = 0; first < p->world->n_ranks && p->status == STATUS_OK; first += ranks) {
        struct communicator *group = NULL;
        for (int i = 0; i < ranks; i++)
            members[i] = first + i;
        p->status = p->world->api->communicator_new(p->world, members, ranks, &group, &p->diags);
        own = group ? group : own;
    }
    free(members);
    return own;
}

static void open_groups(struct prober *p)
{
    p->everybody = open_group(p, p->world->n_ranks);
    for (int i = 0; i < p->cases.n_items && p->n_groups < GROUPS_MAX; i++) {
        const struct probe_case *c = &p->cases.items[i];
        if (c->is_exchange && p->status == STATUS_OK && group_of(p, c)->n != c->row.ranks)
            p->groups[p->n_groups++] = (struct exchange_group){c->row.ranks, open_group(p, c->row.ranks)};
    }
}

static void prober_open(struct prober *p)
{
    const struct device_api *api = p->device->api;
    probe_cases_make(p->options, p->device, &p->cases);
    p->times = memory_new((size_t)p->cases.n_items * BATCHES, sizeof *p->times);
    p->works = memory_new((size_t)p->cases.n_items * BATCHES, sizeof *p->works);
    p->status = api->stream_new(p->device, false, &p->stream, &p->diags);
    if (p->status == STATUS_OK)
        p->status = api->stream_new(p->device, true, &p->beside, &p->diags);
    if (p->status == STATUS_OK)
        p->status = api->event_new(p->device, &p->exchanging, &p->diags);
    if (p->status == STATUS_OK)
        p->status = api->event_new(p->device, &p->exchanged, &p->diags);
    for (int i = 0; i < 2 * MARKED_REPEATS_MAX && p->status == STATUS_OK; i++)
        p->status = api->event_new(p->device, &p->events[i], &p->diags);
    for (int i = 0; i < 2 && p->status == STATUS_OK; i++)
        p->status = api->event_new(p->device, &p->beside_events[i], &p->diags);
    for (int b = 0; b < PROBE_BUFFERS; b++)
        allocate(p, buffer_bytes(p, b), &p->buffers[b]);
    if (p->options->flush_bytes)
        allocate(p, p->options->flush_bytes, &p->flush);
    allocate(p, shared_bytes(p), (void **)&p->shared);
    if (p->cases.host_bytes && p->status == STATUS_OK)
        p->status = api->host_new(p->device, p->cases.host_bytes, &p->host, &p->diags);
    if (p->host)
        memset(p->host, 0, p->cases.host_bytes);
    open_groups(p);
}

static void prober_close(struct prober *p)
{
    const struct device_api *api = p->device->api;
    if (p->beside)
        api->stream_free(p->beside);
    api->stream_free(p->stream);
    for (int b = 0; b < PROBE_BUFFERS; b++)
        api->memory_free(p->device, p->buffers[b], buffer_bytes(p, b));
    api->memory_free(p->device, p->flush, p->options->flush_bytes);
    api->memory_free(p->device, p->shared, shared_bytes(p));
    if (p->host)
        api->host_free(p->device, p->host, p->cases.host_bytes);
    for (int i = 0; i < 2 * MARKED_REPEATS_MAX; i++)
        api->event_free(p->events[i]);
    api->event_free(p->exchanging);
    api->event_free(p->exchanged);
    for (int i = 0; i < 2; i++)
        api->event_free(p->beside_events[i]);
    p->world->api->close(p->world);
    api->close(p->device);
}

/* The same piece of numbers over and over. */
static void fill(struct prober *p, int which)
{
    enum { PIECE = 1 << 20 };
    void *piece = memory_new(1, PIECE);
    probe_buffer_fill(piece, PIECE, device_element_bytes(p->device), which);
    size_t bytes = buffer_bytes(p, which);
    for (size_t at = 0; at < bytes && p->status == STATUS_OK; at += PIECE) {
        size_t part = bytes - at < PIECE ? bytes - at : PIECE;
        p->status = p->device->api->copy_in(p->stream, (char *)p->buffers[which] + at, piece, part, &p->diags);
    }
    if (p->status == STATUS_OK)
        p->status = p->device->api->stream_synchronise(p->stream, &p->diags);
    free(piece);
}

/* Times become the mean over all ranks, on every rank. */
static void share_times(struct prober *p, double *times)
{
    size_t n = (size_t)p->cases.n_items * BATCHES;
    share(p, p->everybody, REDUCTION_SUM, times, n);
    for (size_t i = 0; i < n; i++)
        times[i] /= p->world->n_ranks;
}

/* Device and world are there; what was measured is in `times`. */
static void prober_run(struct prober *p)
{
    prober_open(p);
    for (int b = 0; b < PROBE_BUFFERS && p->status == STATUS_OK; b++)
        fill(p, b);
    if (p->status == STATUS_OK)
        p->status = p->world->api->barrier(p->world, true, &p->diags); /* events count from here */
    for (int i = 0; i < p->cases.n_items && p->status == STATUS_OK; i++)
        run_case(p, &p->cases.items[i], p->times + i * BATCHES, p->works + i * BATCHES);
    if (p->status == STATUS_OK)
        share_times(p, p->times);
    if (p->status == STATUS_OK)
        share_times(p, p->works);
    if (p->status != STATUS_OK)
        p->world->api->abandon(p->world, p->diags.n_items ? p->diags.items[0].text : "probing failed");
    prober_close(p);
}

static void prober_free(struct prober *p)
{
    diags_free(&p->diags);
    free(p->times);
    free(p->works);
    probe_cases_free(&p->cases);
}

/* --- what was measured */

static void summarise(double *times, double *works, struct probe_row *row)
{
    qsort(times, BATCHES, sizeof times[0], double_compare);
    qsort(works, BATCHES, sizeof works[0], double_compare);
    row->worked = works[BATCHES / 2];
    row->seconds = times[BATCHES / 2];
    row->fastest = times[0];
    row->spread = row->seconds > 0 ? (times[BATCHES - 1] - times[0]) / row->seconds : 0;
}

double probe_shortest_exchange(const struct probe_result *result)
{
    double shortest = INFINITY;
    for (int i = 0; i < result->n_rows; i++)
        if (result->rows[i].ranks)
            shortest = fmin(shortest, result->rows[i].bytes);
    return shortest;
}

int probe_cores(const struct probe_options *options)
{
    return options->cores > 0 ? options->cores : cores_here();
}

/* Of the shortest exchanges: their mean time but for what all ranks on a core worked one after the other. */
static double waking_of(const struct prober *p, const struct probe_result *result)
{
    int cores = probe_cores(p->options), together = (p->options->ranks + cores - 1) / cores, n = 0;
    double shortest = probe_shortest_exchange(result), left = 0;
    for (int i = 0; i < result->n_rows; i++) {
        const struct probe_row *row = &result->rows[i];
        if (!row->ranks || row->bytes > shortest)
            continue;
        left += row->seconds - together * row->worked;
        n++;
    }
    return left > 0 ? left / n : 0;
}

static void result_make(struct prober *p, struct probe_result *result)
{
    *result = (struct probe_result){.n_rows = p->cases.n_items, .element_bytes = p->cases.element_bytes};
    result->rows = memory_new((size_t)result->n_rows, sizeof *result->rows);
    for (int i = 0; i < result->n_rows; i++) {
        result->rows[i] = p->cases.items[i].row;
        summarise(p->times + i * BATCHES, p->works + i * BATCHES, &result->rows[i]);
    }
    result->launch_s = result->rows[0].seconds;
    result->waking_s = waking_of(p, result);
}

enum status probe_rank(const struct probe_options *options, struct device *device, struct world *world,
                       struct probe_result *result, struct diags *diags)
{
    struct prober p = {.options = options, .rank = world->rank, .device = device, .world = world};
    prober_run(&p);
    if (p.status == STATUS_OK)
        result_make(&p, result);
    else if (p.diags.n_items)
        diag_error(diags, PLACE_NONE, "%s", p.diags.items[0].text);
    prober_free(&p);
    return p.status;
}

/* --- ranks as threads */

static void *prober_main(void *argument)
{
    struct prober *p = argument;
    cores_keep(p->rank, p->options->ranks);
    p->world = hub_join(p->hub, p->rank);
    p->status = device_cpu_open(p->rank, hub_epoch(p->hub), 0, &p->device, &p->diags);
    if (p->status == STATUS_OK)
        prober_run(p);
    else
        p->world->api->close(p->world);
    return NULL;
}

static enum status run_probers(struct prober *probers, int n, struct diags *diags)
{
    int started = 0;
    while (started < n && pthread_create(&probers[started].thread, NULL, prober_main, &probers[started]) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(probers[i].thread, NULL);
    enum status status = started == n ? STATUS_OK : STATUS_FAILED;
    if (started < n)
        diag_error(diags, PLACE_NONE, "probing %d ranks needs a thread each; the machine gave %d", n, started);
    for (int i = 0; i < started; i++) {
        if (probers[i].status != STATUS_OK && status == STATUS_OK && probers[i].diags.n_items)
            diag_error(diags, PLACE_NONE, "%s", probers[i].diags.items[0].text);
        status = probers[i].status != STATUS_OK ? probers[i].status : status;
    }
    return status;
}

enum status probe_cpu(const struct probe_options *options, struct probe_result *result, struct diags *diags)
{
    static const nanos timeout = 60 * NANOS_PER_SECOND;
    int n = options->ranks;
    struct hub *hub = hub_new(n, timeout);
    struct prober *probers = memory_new((size_t)n, sizeof *probers);
    for (int i = 0; i < n; i++)
        probers[i] = (struct prober){.options = options, .hub = hub, .rank = i};
    enum status status = run_probers(probers, n, diags);
    if (status == STATUS_OK)
        result_make(&probers[0], result);
    for (int i = 0; i < n; i++)
        prober_free(&probers[i]);
    free(probers);
    hub_free(hub);
    return status;
}

void probe_result_free(struct probe_result *result)
{
    free(result->rows);
    *result = (struct probe_result){0};
}
