/* step_spread.c - step times when GPUs differ in speed. */
#include "sim/search/step_spread.h"

#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/order.h"

struct step_count {
    const struct step_spread_request *request;
    int64_t done; /* of this process */
};

static bool finished(void *context, int64_t replica)
{
    struct step_count *counted = context;
    const struct step_spread_request *request = counted->request;
    (void)replica;
    counted->done++;
    watch_tell(&request->watch, (double)(counted->done * request->processes.size), (double)request->n);
    return true;
}

/* Attention that is not fused computes every pair, however long documents are. */
bool step_draws_documents(const struct layout *layout, const struct setting *setting)
{
    if (!job_masks_documents(setting->job))
        return false;
    struct packing packing = packing_of(setting, layout->features);
    return packing.skips && packing.pairs > 0;
}

static enum status draw(const struct step_spread_request *request, struct step_spread *spread, struct diags *diags)
{
    struct pipelines *pipelines = NULL;
    struct step_count counted = {.request = request};
    struct packing packing = packing_of(request->setting, request->layout->features);
    enum status status = pipelines_create(request->layout, request->setting, request->jitter, false, &pipelines, diags);
    if (status == STATUS_OK) {
        const struct step_replicas_request replicas = {
            .pipelines = pipelines,
            .gpus = request->setting->gpus,
            .jitter = request->jitter,
            .packing = step_draws_documents(request->layout, request->setting) ? &packing : NULL,
            .sequences = request->layout->micro_batch,
            .seed = request->seed,
            .n = request->n,
            .first = request->processes.rank,
            .stride = request->processes.size,
            .threads = request->threads,
            .finished = finished,
            .context = &counted};
        status = step_replicas_run(&replicas, spread->outcomes, diags);
    }
    pipelines_destroy(pipelines);
    return step_replicas_share(&request->processes, spread->outcomes, spread->n, status);
}

static enum status simulate_at(const struct step_spread_request *request, double spread, struct step_result *result,
                               struct diags *diags)
{
    struct cluster cluster = *request->setting->cluster;
    struct setting setting = *request->setting;
    const struct step_options options = {.detail = DETAIL_CHUNK, .verify = true};
    cluster.gpu.clock_spread = spread;
    setting.cluster = &cluster;
    return step_simulate(request->layout, &setting, &options, result, NULL, NULL, diags);
}

static void summarise(struct step_spread *spread, const struct step_result *alike)
{
    static const double shares[N_SPREAD_SHARES] = {0.5, 0.9, 0.99, 1};
    double *seconds = memory_new((size_t)spread->n, sizeof *seconds);
    for (int64_t i = 0; i < spread->n; i++)
        seconds[i] = nanos_to_seconds(spread->outcomes[i].step);
    spread->time = estimate_of(seconds, (size_t)spread->n); /* sorts them */
    for (int i = 0; i < N_SPREAD_SHARES; i++)
        spread->at[i] = double_quantile(seconds, (size_t)spread->n, shares[i]);
    double rate = spread->time.mean > 0 ? alike->step_time_s / spread->time.mean : 0;
    spread->mean = *alike;
    spread->mean.step_time_s = spread->time.mean;
    spread->mean.mfu *= rate;
    spread->mean.mfu_masked *= rate;
    spread->mean.tokens_per_s *= rate;
    free(seconds);
}

enum status step_spread_run(const struct step_spread_request *request, struct step_spread *spread, struct diags *diags)
{
    struct step_result alike, expected;
    *spread = (struct step_spread){.jitter = request->jitter, .n = request->n};
    enum status status = simulate_at(request, 0, &alike, diags);
    if (status == STATUS_OK)
        status = simulate_at(request, request->jitter, &expected, diags);
    if (status != STATUS_OK)
        return status;
    spread->alike_s = alike.step_time_s;
    spread->expected_s = expected.step_time_s;
    spread->outcomes = memory_new((size_t)spread->n, sizeof *spread->outcomes);
    status = draw(request, spread, diags);
    if (status == STATUS_OK)
        summarise(spread, &alike);
    return status;
}

void step_spread_free(struct step_spread *spread)
{
    free(spread->outcomes);
    spread->outcomes = NULL;
}
