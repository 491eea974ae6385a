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
#include "runtime/probe/probe_internal.h"

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
        if (c->is_exchange && p->status == STATUS_OK && prober_group(p, c)->n != c->row.ranks)
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
    prober_share(p, p->everybody, REDUCTION_SUM, times, n);
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
        prober_run_case(p, &p->cases.items[i], p->times + i * BATCHES, p->works + i * BATCHES);
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
