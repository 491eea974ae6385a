/* thread_run.c - runs all ranks of a program as threads. */
#include "runtime/run/thread_run.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "runtime/base/cores.h"
#include "runtime/comm/comm_threads.h"
#include "runtime/device/device_cpu.h"
#include "runtime/run/measured.h"
#include "runtime/run/rank_record.h"

enum { TIMEOUT_S = 60 };

struct worker {
    pthread_t thread;
    const struct thread_run_options *options;
    const struct rank_options *rank_options;
    struct hub *hub;
    struct rank rank;
    struct rank_record record;
    enum status status;
    bool opened;
};

static void *worker_main(void *argument)
{
    struct worker *w = argument;
    struct device *device = NULL;
    cores_keep(w->rank.rank, w->rank_options->program->n_ranks);
    struct world *world = hub_join(w->hub, w->rank.rank);
    w->status = device_cpu_open(w->rank.rank, hub_epoch(w->hub), w->options->memory_limit, &device, &w->rank.diags);
    if (w->status != STATUS_OK) {
        world->api->close(world);
        return NULL;
    }
    w->opened = true;
    w->status = rank_run(w->rank_options, w->options->injection, device, world, &w->rank, &w->record);
    return NULL;
}

static void worker_release(struct worker *w)
{
    if (w->opened)
        rank_close(&w->rank);
    else
        diags_free(&w->rank.diags);
    rank_record_free(&w->record);
}

static bool start_workers(struct worker *workers, int n, struct diags *diags)
{
    int started = 0;
    while (started < n && pthread_create(&workers[started].thread, NULL, worker_main, &workers[started]) == 0)
        started++;
    if (started < n)
        diag_error(diags, PLACE_NONE, "%d ranks need a thread each (and some for their streams); the machine gave %d", n,
                   started);
    for (int i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = started; i < n; i++)
        workers[i].status = STATUS_FAILED;
    return started == n;
}

/* One line per rank that failed. */
static enum status gather_failures(const struct worker *workers, int n, struct diags *diags)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < n; i++) {
        if (workers[i].status == STATUS_OK)
            continue;
        status = workers[i].status;
        if (workers[i].rank.diags.n_items)
            diag_error(diags, PLACE_NONE, "%s", workers[i].rank.diags.items[0].text);
        if (status == STATUS_MISSING) /* the same on every rank */
            break;
    }
    return status;
}

/* --- results */

static struct thread_run_step step_of(const struct worker *workers, int n, const struct layout *layout, int s)
{
    struct thread_run_step step = {0};
    for (int i = 0; i < n; i++) {
        nanos end = rank_record_end(&workers[i].record, s);
        if (rank_has_loss(layout, i))
            step.loss += workers[i].record.losses[s];
        step.duration = end > step.duration ? end : step.duration;
    }
    step.gradient_norm = sqrt(workers[0].record.square_norms[s]);
    return step;
}

static enum status collect(struct worker *workers, int n, const struct setting *setting, struct thread_run *result)
{
    struct model_map map = model_map_of(setting);
    result->n_gradients = map.total;
    result->gradients = memory_new((size_t)map.total, sizeof *result->gradients);
    result->weights = memory_new((size_t)map.total, sizeof *result->weights);
    for (int i = n - 1; i >= 0; i--) {
        enum status status = rank_collect(&workers[i].rank, true, result->gradients);
        if (status == STATUS_OK)
            status = rank_collect(&workers[i].rank, false, result->weights);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status summarise(struct worker *workers, const struct program *program, const struct setting *setting,
                             const struct thread_run_options *options, struct thread_run *result)
{
    int n = program->n_ranks;
    *result = (struct thread_run){.n_steps = options->steps, .n_ranks = n};
    result->steps = memory_new((size_t)options->steps, sizeof *result->steps);
    result->memory_peak = memory_new((size_t)n, sizeof *result->memory_peak);
    result->host_peak = memory_new((size_t)n, sizeof *result->host_peak);
    for (int s = 0; s < options->steps; s++)
        result->steps[s] = step_of(workers, n, &program->layout, s);
    for (int i = 0; i < n; i++) {
        result->memory_peak[i] = workers[i].record.peak;
        result->host_peak[i] = workers[i].record.host_peak;
    }
    result->timeline_step = run_median_step(result->steps, options->steps);
    struct rank_timing *timings = memory_new((size_t)n, sizeof *timings);
    for (int i = 0; i < n; i++) {
        timings[i] = workers[i].record.timings[result->timeline_step];
        rank_record_add_work(&workers[i].record, result->timeline_step, program, i, result);
    }
    measured_timeline(program, timings, &result->timeline);
    free(timings);
    return options->gradients ? collect(workers, n, setting, result) : STATUS_OK;
}

enum status run_on_threads(const struct program *program, const struct setting *setting, const struct thread_run_options *options,
                           struct thread_run *result, struct diags *diags)
{
    int n = program->n_ranks;
    struct rank_options rank_options = run_rank_options(program, setting, options);
    struct hub *hub = hub_new(n, options->timeout ? options->timeout : TIMEOUT_S * NANOS_PER_SECOND);
    struct worker *workers = memory_new((size_t)n, sizeof *workers);
    for (int i = 0; i < n; i++) {
        workers[i] = (struct worker){.options = options, .rank_options = &rank_options, .hub = hub, .rank.rank = i};
        rank_record_new(&workers[i].record, program, i, options->steps);
    }
    bool started = start_workers(workers, n, diags);
    enum status status = gather_failures(workers, n, diags);
    struct thread_run made = {0};
    if (started && status == STATUS_OK)
        status = summarise(workers, program, setting, options, &made);
    for (int i = 0; i < n; i++)
        worker_release(&workers[i]);
    free(workers);
    hub_free(hub);
    if (status == STATUS_OK)
        *result = made;
    else
        thread_run_free(&made);
    return status;
}

void thread_run_free(struct thread_run *result)
{
    free(result->steps);
    free(result->gradients);
    free(result->weights);
    free(result->memory_peak);
    free(result->host_peak);
    timeline_free(&result->timeline);
    *result = (struct thread_run){0};
}
