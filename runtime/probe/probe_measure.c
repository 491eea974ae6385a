/* probe_measure.c - measures one case of a probe: enqueues its calls in batches and takes their times. */
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "runtime/base/parameters.h"
#include "runtime/probe/probe_internal.h"

enum { HEAD_START_NS = 100000 }; /* of the host, for each exchange: NCCL hands those that do not block to a thread of their own */

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

struct communicator *prober_group(const struct prober *p, const struct probe_case *c)
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
    struct communicator *group = prober_group(p, c);
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
void prober_share(struct prober *p, struct communicator *ranks, enum reduction reduction, double *numbers, size_t n)
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
        prober_share(p, prober_group(p, c), REDUCTION_MAX, begin, (size_t)repeats);
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

void prober_run_case(struct prober *p, const struct probe_case *c, double *times, double *works)
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
