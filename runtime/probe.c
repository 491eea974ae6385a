#include "runtime/probe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "runtime/comm_threads.h"
#include "runtime/device_cpu.h"
#include "runtime/parameters.h"
#include "runtime/probe_cases.h"

enum { BATCHES = 5, REPEATS_MAX = 2000, EXCHANGE_BATCH_BYTES = 1 << 24, EXCHANGE_REPEATS_MAX = 50 };

struct prober {
    pthread_t thread;
    const struct probe_options *options;
    const struct probe_cases *cases;
    struct hub *hub;
    int rank;
    struct device *device;
    struct world *world;
    struct device_stream *stream;
    struct communicator *everybody;
    struct device_event *event;
    void *buffers[PROBE_BUFFERS];
    double (*times)[BATCHES]; /* [n_cases] */
    enum status status;
    struct diags diags;
};

/* --- one case */

static void enqueue_kernel(struct prober *p, const struct probe_case *c)
{
    struct kernel_call call = c->call;
    probe_case_place(&call, p->buffers);
    if (p->status == STATUS_OK)
        p->status = p->device->api->launch(p->stream, &call, &p->diags);
}

static void enqueue_exchange(struct prober *p, const struct probe_case *c)
{
    struct exchange_call call = c->exchange;
    call.in = p->buffers[0];
    call.out = p->buffers[1];
    if (p->status == STATUS_OK)
        p->status = p->world->api->enqueue(p->everybody, p->stream, &call, &p->diags);
}

/* As the executor does it: a mark before, the work, a mark after. */
static void enqueue(struct prober *p, const struct probe_case *c, int repeats)
{
    for (int i = 0; i < repeats && p->status == STATUS_OK; i++) {
        p->status = p->device->api->event_record(p->event, p->stream, &p->diags);
        if (c->is_exchange)
            enqueue_exchange(p, c);
        else
            enqueue_kernel(p, c);
        if (p->status == STATUS_OK)
            p->status = p->device->api->event_record(p->event, p->stream, &p->diags);
    }
}

static double timed(struct prober *p, const struct probe_case *c, int repeats)
{
    if (p->status == STATUS_OK)
        p->status = p->world->api->barrier(p->world, false, &p->diags);
    nanos begin = clock_monotonic();
    enqueue(p, c, repeats);
    if (p->status == STATUS_OK)
        p->status = p->device->api->stream_synchronise(p->stream, &p->diags);
    return (double)(clock_monotonic() - begin) * 1e-9 / repeats;
}

/* All ranks repeat an exchange equally often, so that follows from its size. */
static int repeats_of(const struct prober *p, const struct probe_case *c, double once)
{
    if (c->is_exchange) {
        double n = EXCHANGE_BATCH_BYTES / (c->row.bytes + 1);
        return n > EXCHANGE_REPEATS_MAX ? EXCHANGE_REPEATS_MAX : n < 2 ? 2 : (int)n;
    }
    double n = p->options->seconds / BATCHES / (once > 1e-9 ? once : 1e-9);
    return n > REPEATS_MAX ? REPEATS_MAX : n < 1 ? 1 : (int)n;
}

static void run_case(struct prober *p, const struct probe_case *c, double times[BATCHES])
{
    double once = timed(p, c, 1);
    int repeats = repeats_of(p, c, once);
    for (int b = 0; b < BATCHES && p->status == STATUS_OK; b++)
        times[b] = timed(p, c, repeats);
}

/* --- one rank */

static void prober_open(struct prober *p)
{
    const struct device_api *api;
    p->world = hub_join(p->hub, p->rank);
    p->status = device_cpu_open(p->rank, NULL, 0, &p->device, &p->diags);
    if (p->status != STATUS_OK)
        return;
    api = p->device->api;
    p->status = api->stream_new(p->device, false, &p->stream, &p->diags);
    if (p->status == STATUS_OK)
        p->status = api->event_new(p->device, &p->event, &p->diags);
    for (int b = 0; b < PROBE_BUFFERS && p->status == STATUS_OK; b++)
        p->status = api->memory_new(p->device, p->cases->buffer_bytes, &p->buffers[b], &p->diags);
    int *members = memory_new((size_t)p->options->ranks, sizeof *members);
    for (int i = 0; i < p->options->ranks; i++)
        members[i] = i;
    if (p->status == STATUS_OK)
        p->status = p->world->api->communicator_new(p->world, members, p->options->ranks, &p->everybody, &p->diags);
    free(members);
}

static void prober_close(struct prober *p)
{
    if (p->stream)
        p->device->api->stream_free(p->stream);
    for (int b = 0; p->device && b < PROBE_BUFFERS; b++)
        p->device->api->memory_free(p->device, p->buffers[b], p->cases->buffer_bytes);
    if (p->event)
        p->device->api->event_free(p->event);
    p->world->api->close(p->world);
    if (p->device)
        p->device->api->close(p->device);
}

static void *prober_main(void *argument)
{
    struct prober *p = argument;
    prober_open(p);
    for (int b = 0; b < PROBE_BUFFERS && p->status == STATUS_OK; b++)
        probe_buffer_fill(p->buffers[b], p->cases->buffer_bytes, b);
    for (int i = 0; i < p->cases->n_items && p->status == STATUS_OK; i++)
        run_case(p, &p->cases->items[i], p->times[i]);
    if (p->status != STATUS_OK)
        p->world->api->abandon(p->world, p->diags.n_items ? p->diags.items[0].text : "probing failed");
    return NULL;
}

/* --- all ranks */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Batch by batch the mean over ranks; of those the median. */
static void summarise(const struct prober *probers, int n, int i, struct probe_row *row)
{
    double means[BATCHES] = {0};
    for (int b = 0; b < BATCHES; b++)
        for (int r = 0; r < n; r++)
            means[b] += probers[r].times[i][b] / n;
    qsort(means, BATCHES, sizeof means[0], by_value);
    row->seconds = means[BATCHES / 2];
    row->fastest = means[0];
    row->spread = row->seconds > 0 ? (means[BATCHES - 1] - means[0]) / row->seconds : 0;
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
        diag_error(diags, (struct place){0}, "probing %d ranks needs a thread each; the machine gave %d", n, started);
    for (int i = 0; i < started; i++) {
        if (probers[i].status != STATUS_OK && status == STATUS_OK && probers[i].diags.n_items)
            diag_error(diags, (struct place){0}, "%s", probers[i].diags.items[0].text);
        status = probers[i].status != STATUS_OK ? probers[i].status : status;
    }
    return status;
}

enum status probe_cpu(const struct probe_options *options, struct probe_result *result, struct diags *diags)
{
    static const nanos timeout = 60 * NANOS_PER_SECOND;
    int n = options->ranks;
    struct probe_cases cases;
    probe_cases_make(options, &cases);
    struct hub *hub = hub_new(n, timeout);
    struct prober *probers = memory_new((size_t)n, sizeof *probers);
    for (int i = 0; i < n; i++) {
        probers[i] = (struct prober){.options = options, .cases = &cases, .hub = hub, .rank = i};
        probers[i].times = memory_new((size_t)cases.n_items, sizeof *probers[i].times);
    }
    enum status status = run_probers(probers, n, diags);
    if (status == STATUS_OK) {
        result->n_rows = cases.n_items;
        result->rows = memory_new((size_t)cases.n_items, sizeof *result->rows);
        for (int i = 0; i < cases.n_items; i++) {
            result->rows[i] = cases.items[i].row;
            summarise(probers, n, i, &result->rows[i]);
        }
        result->launch_s = result->rows[0].fastest;
    }
    for (int i = 0; i < n; i++) {
        if (probers[i].world)
            prober_close(&probers[i]);
        diags_free(&probers[i].diags);
        free(probers[i].times);
    }
    free(probers);
    hub_free(hub);
    probe_cases_free(&cases);
    return status;
}

void probe_result_free(struct probe_result *result)
{
    free(result->rows);
    *result = (struct probe_result){0};
}
