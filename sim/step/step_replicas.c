#include "sim/step/step_replicas.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "sim/base/thread_pool.h"

enum { PURPOSE_STEP_JITTER = 0x736a, PURPOSE_STEP_DOCUMENTS = 0x7364 };

struct batch {
    const struct step_replicas_request *request;
    struct step_outcome *outcomes;
};

/* The slowest GPU of each team in z, and of all in the outcome. */
static void draw(const struct step_replicas_request *request, int64_t replica, double *z, struct step_outcome *outcome)
{
    int n_teams = pipelines_teams(request->pipelines);
    double most = -INFINITY;
    for (int t = 0; t < n_teams; t++)
        z[t] = -INFINITY;
    for (int gpu = 0; gpu < request->gpus; gpu++) {
        struct random_stream stream = random_stream_named(request->seed + (uint64_t)replica, PURPOSE_STEP_JITTER, (uint64_t)gpu);
        double drawn = gsl_cdf_ugaussian_Pinv(random_uniform(&stream));
        int team = pipelines_team_of(request->pipelines, gpu);
        z[team] = fmax(z[team], drawn);
        if (drawn > most)
            outcome->slowest = gpu;
        most = fmax(most, drawn);
    }
    outcome->pace = llround(1e9 * (1 + request->jitter * most));
}

/* Pairs of each micro-batch relative to the mean, minus 1; NULL: all have the mean. */
static double *draw_documents(const struct step_replicas_request *request, int64_t replica)
{
    size_t n = request->packing != NULL ? pipelines_draws(request->pipelines) : 0;
    if (n == 0)
        return NULL;
    double *draws = memory_new(n, sizeof *draws);
    for (size_t i = 0; i < n; i++) {
        for (int s = 0; s < request->sequences; s++) {
            uint64_t sequence = (uint64_t)i * (uint64_t)request->sequences + (uint64_t)s;
            struct random_stream stream =
                random_stream_named(request->seed + (uint64_t)replica, PURPOSE_STEP_DOCUMENTS, sequence);
            draws[i] += packing_draw(request->packing, &stream) / request->sequences;
        }
        draws[i] -= 1;
    }
    return draws;
}

static enum status work(void *context, int64_t replica, struct diags *diags)
{
    const struct batch *batch = context;
    struct step_outcome outcome = {0};
    double *z = memory_new((size_t)pipelines_teams(batch->request->pipelines), sizeof *z);
    draw(batch->request, replica, z, &outcome);
    double *draws = draw_documents(batch->request, replica);
    enum status status = pipelines_time(batch->request->pipelines, z, draws, &outcome.step, diags);
    free(draws);
    free(z);
    if (status == STATUS_OK)
        batch->outcomes[replica] = outcome;
    return status;
}

static bool is_finished(void *context, int64_t replica)
{
    const struct batch *batch = context;
    return batch->request->finished(batch->request->context, replica);
}

enum status step_replicas_run(const struct step_replicas_request *request, struct step_outcome *outcomes, struct diags *diags)
{
    struct batch batch = {.request = request, .outcomes = outcomes};
    const struct parallel_task task = {.n = request->n,
                                       .first = request->first,
                                       .stride = request->stride,
                                       .threads = request->threads,
                                       .work = work,
                                       .finished = request->finished ? is_finished : NULL,
                                       .context = &batch};
    return parallel_for(&task, diags);
}

enum status step_replicas_share(const struct processes *processes, struct step_outcome *outcomes, int64_t n, enum status status)
{
    int64_t bad = status != STATUS_OK;
    processes->sum(processes->context, &bad, 1);
    if (bad > 0)
        return status != STATUS_OK ? status : STATUS_FAILED;
    processes->sum(processes->context, (int64_t *)outcomes, (size_t)n * STEP_OUTCOME_WORDS);
    return STATUS_OK;
}
