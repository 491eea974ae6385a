/* process_run.c - runs this process as one rank, and gathers the measurements of all ranks. */
#include "runtime/run/process_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "runtime/comm/comm_alone.h"
#include "runtime/run/measured.h"
#include "runtime/run/rank_record.h"

static void pass_on(const struct rank *rank, struct diags *diags)
{
    for (size_t i = 0; i < rank->diags.n_items && i < 1; i++)
        diag_error(diags, PLACE_NONE, "%s", rank->diags.items[i].text);
}

/* --- results of all ranks, by way of the device */

struct gathering {
    struct rank *rank;
    struct communicator *all;
};

static bool gathering_open(struct gathering *g, struct rank *rank)
{
    int n = rank->world->n_ranks;
    int *members = memory_new((size_t)n, sizeof *members);
    for (int i = 0; i < n; i++)
        members[i] = i;
    *g = (struct gathering){.rank = rank};
    if (rank->status == STATUS_OK)
        rank->status = rank->world->api->communicator_new(rank->world, members, n, &g->all, &rank->diags);
    free(members);
    return rank->status == STATUS_OK;
}

/* `call` with device memory behind it: n_in elements from `in`, n_out to `out` of the host (which may be one). */
static void gather(struct gathering *g, struct exchange_call call, const void *in, int64_t n_in, void *out, int64_t n_out)
{
    struct rank *rank = g->rank;
    const struct device_api *api = rank->device->api;
    struct device_stream *stream = rank->streams[STREAM_COMPUTE];
    size_t size = element_bytes(call.element), bytes_in = (size_t)n_in * size, bytes_out = (size_t)n_out * size;
    void *from = NULL, *to = NULL;
    enum status status = rank->status;
    if (status == STATUS_OK)
        status = api->memory_new(rank->device, bytes_in, &from, &rank->diags);
    if (status == STATUS_OK)
        status = api->memory_new(rank->device, bytes_out, &to, &rank->diags);
    if (status == STATUS_OK)
        status = api->copy_in(stream, from, in, bytes_in, &rank->diags);
    call.in = from;
    call.out = to;
    call.what = "results";
    if (status == STATUS_OK)
        status = rank->world->api->enqueue(g->all, stream, &call, &rank->diags);
    if (status == STATUS_OK)
        status = api->copy_out(stream, out, to, bytes_out, &rank->diags);
    if (status == STATUS_OK)
        status = api->stream_synchronise(stream, &rank->diags);
    api->memory_free(rank->device, from, bytes_in);
    api->memory_free(rank->device, to, bytes_out);
    rank->status = status;
}

static void all_reduce(struct gathering *g, enum reduction reduction, double *numbers, int64_t n)
{
    struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE, .element = ELEMENT_FP64, .reduction = reduction, .count = n};
    gather(g, call, numbers, n, numbers, n);
}

static void broadcast(struct gathering *g, int from, void *words, int64_t n_words)
{
    struct exchange_call call = {.exchange = EXCHANGE_BROADCAST, .element = ELEMENT_INT32, .count = n_words, .peer = from};
    gather(g, call, words, n_words, words, n_words);
}

/* Losses and norms of all steps, and how long they took. */
static void gather_steps(struct gathering *g, const struct rank_record *record, struct thread_run *result)
{
    size_t n = (size_t)record->steps;
    double *numbers = memory_new(3 * n, sizeof *numbers);
    for (size_t s = 0; s < n; s++) {
        numbers[s] = rank_has_loss(g->rank->layout, g->rank->rank) ? record->losses[s] : 0;
        numbers[n + s] = g->rank->rank == 0 ? record->square_norms[s] : 0;
        numbers[2 * n + s] = (double)rank_record_end(record, (int)s);
    }
    all_reduce(g, REDUCTION_SUM, numbers, 2 * record->steps);
    all_reduce(g, REDUCTION_MAX, numbers + 2 * n, record->steps);
    for (size_t s = 0; s < n; s++)
        result->steps[s] = (struct thread_run_step){
            .loss = numbers[s], .gradient_norm = sqrt(numbers[n + s]), .duration = (nanos)numbers[2 * n + s]};
    free(numbers);
}

static void gather_memory(struct gathering *g, const struct rank_record *record, struct thread_run *result)
{
    size_t n = (size_t)result->n_ranks;
    double *peaks = memory_new(2 * n, sizeof *peaks);
    peaks[g->rank->rank] = (double)record->peak;
    peaks[n + (size_t)g->rank->rank] = (double)record->host_peak;
    all_reduce(g, REDUCTION_SUM, peaks, 2 * result->n_ranks);
    for (size_t i = 0; i < n; i++) {
        result->memory_peak[i] = (size_t)peaks[i];
        result->host_peak[i] = (size_t)peaks[n + i];
    }
    free(peaks);
}

static void gather_timeline(struct gathering *g, const struct program *program, const struct rank_record *record,
                            struct thread_run *result)
{
    size_t n = (size_t)result->n_ranks;
    const struct rank_timing *own = &record->timings[result->timeline_step];
    struct rank_timing *timings = memory_new(n, sizeof *timings);
    for (size_t i = 0; i < n; i++) {
        uint32_t n_ops = program->scripts[program->ranks[i].script].n_ops;
        timings[i].start = memory_new(2 * (size_t)n_ops, sizeof(nanos));
        timings[i].end = timings[i].start + n_ops;
        if ((int)i == g->rank->rank) {
            memcpy(timings[i].start, own->start, n_ops * sizeof(nanos));
            memcpy(timings[i].end, own->end, n_ops * sizeof(nanos));
        }
        broadcast(g, (int)i, timings[i].start, 4 * (int64_t)n_ops);
    }
    if (g->rank->status == STATUS_OK)
        measured_timeline(program, timings, &result->timeline);
    for (size_t i = 0; i < n; i++)
        free(timings[i].start);
    free(timings);
}

/* Gathers the parts of all ranks; if several ranks have a number, the lowest rank's counts. A rank sends NAN for numbers that it
 * does not hold; numbers that no rank holds become 0. */
static void gather_whole(struct gathering *g, bool gradients, float *whole, int64_t n)
{
    float *part = memory_new((size_t)n, sizeof *part);
    for (int from = g->rank->world->n_ranks - 1; from >= 0; from--) {
        for (int64_t i = 0; i < n; i++)
            part[i] = NAN;
        if (from == g->rank->rank && g->rank->status == STATUS_OK)
            g->rank->status = rank_collect(g->rank, gradients, part);
        broadcast(g, from, part, n);
        for (int64_t i = 0; i < n; i++)
            whole[i] = isnan(part[i]) ? whole[i] : part[i];
    }
    free(part);
}

static enum status gather_all(struct rank *rank, const struct rank_record *record, const struct thread_run_options *options,
                              struct thread_run *result)
{
    const struct program *program = rank->program;
    struct gathering g;
    if (!gathering_open(&g, rank))
        return rank->status;
    gather_steps(&g, record, result);
    gather_memory(&g, record, result);
    result->timeline_step = run_median_step(result->steps, record->steps);
    gather_timeline(&g, program, record, result);
    rank_record_add_work(record, result->timeline_step, program, rank->rank, result);
    all_reduce(&g, REDUCTION_SUM, result->computed, N_WORK_CLASSES);
    all_reduce(&g, REDUCTION_SUM, result->exchanged, N_WORK_CLASSES);
    all_reduce(&g, REDUCTION_SUM, result->rested, N_WORK_CLASSES);
    if (options->gradients) {
        struct model_map map = model_map_of(rank->setting);
        result->n_gradients = map.total;
        result->gradients = memory_new((size_t)map.total, sizeof *result->gradients);
        result->weights = memory_new((size_t)map.total, sizeof *result->weights);
        gather_whole(&g, true, result->gradients, map.total);
        gather_whole(&g, false, result->weights, map.total);
    }
    return rank->status;
}

static struct thread_run result_new(const struct program *program, int steps)
{
    struct thread_run result = {.n_steps = steps, .n_ranks = program->n_ranks};
    result.steps = memory_new((size_t)steps, sizeof *result.steps);
    result.memory_peak = memory_new((size_t)program->n_ranks, sizeof *result.memory_peak);
    result.host_peak = memory_new((size_t)program->n_ranks, sizeof *result.host_peak);
    return result;
}

enum status run_as_rank(const struct program *program, const struct setting *setting, const struct thread_run_options *options,
                        struct device *device, struct world *world, struct thread_run *result, struct diags *diags)
{
    struct rank_options rank_options = run_rank_options(program, setting, options);
    struct rank rank = {0};
    struct rank_record record;
    struct thread_run made = result_new(program, options->steps);
    rank_record_new(&record, program, world->rank, options->steps);
    enum status status = rank_run(&rank_options, options->injection, device, world, &rank, &record);
    if (status == STATUS_OK)
        status = gather_all(&rank, &record, options, &made);
    if (status == STATUS_OK)
        *result = made;
    else
        thread_run_free(&made);
    pass_on(&rank, diags);
    rank_close(&rank);
    rank_record_free(&record);
    return status;
}

/* --- alone */

static void alone_result(const struct rank *rank, const struct rank_record *record, struct thread_run *result)
{
    const struct rank_timing *timing;
    for (int s = 0; s < record->steps; s++)
        result->steps[s] = (struct thread_run_step){.loss = NAN, .gradient_norm = NAN, .duration = rank_record_end(record, s)};
    result->timeline_step = run_median_step(result->steps, record->steps);
    result->memory_peak[rank->rank] = record->peak - comm_alone_bytes(rank->world);
    result->host_peak[rank->rank] = record->host_peak;
    timing = &record->timings[result->timeline_step];
    rank_record_add_work(record, result->timeline_step, rank->program, rank->rank, result);
    for (uint32_t i = 0; i < record->n_ops; i++)
        timeline_record(&result->timeline,
                        (struct span){.rank = rank->rank, .op = i, .start = timing->start[i], .end = timing->end[i]});
    timeline_close(&result->timeline);
}

enum status run_alone(const struct program *program, const struct setting *setting, const struct thread_run_options *options,
                      int number, struct device *device, struct thread_run *result, struct diags *diags)
{
    struct rank_options rank_options = run_rank_options(program, setting, options);
    struct rank rank = {0};
    struct rank_record record;
    struct world *world = NULL;
    enum status status = comm_alone_open(number, program->n_ranks, device, &world, diags);
    if (status != STATUS_OK) {
        device->api->close(device);
        return status;
    }
    rank_record_new(&record, program, number, options->steps);
    status = rank_run(&rank_options, options->injection, device, world, &rank, &record);
    if (status == STATUS_OK) {
        *result = result_new(program, options->steps);
        alone_result(&rank, &record, result);
    }
    pass_on(&rank, diags);
    rank_close(&rank);
    rank_record_free(&record);
    return status;
}
