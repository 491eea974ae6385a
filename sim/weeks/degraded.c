#include "sim/weeks/degraded.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/step/step.h"

struct answer {
    struct cluster_condition condition;
    int32_t speed;
};

struct degraded {
    struct layout layout;
    const struct setting *setting;
    double healthy_s;
    pthread_mutex_t lock;
    struct answer *answers;
    size_t n, capacity;
};

/* Speed during a stall: bounds the time while a link carries nothing. */
enum { STEPS = 1000, STANDSTILL = FULL_SPEED / 1000000 };

static double simulate(const struct layout *layout, const struct setting *setting)
{
    struct step_options options = {.detail = DETAIL_CHUNK};
    struct step_result step;
    struct diags ignored = {0};
    enum status status = step_simulate(layout, setting, &options, &step, NULL, NULL, &ignored);
    diags_free(&ignored);
    return status == STATUS_OK ? step.step_time_s : 0;
}

static void slow_products(struct gemm_parameters *gemm, double factor)
{
    gemm->tile_overhead_s /= factor;
    gemm->fixed_s /= factor;
    gemm->split_s /= factor;
    gemm->droop_s /= factor; /* as much of the droop at the same work */
}

static void slow_attention(struct attention_parameters *attention, double factor)
{
    attention->tile_overhead_s /= factor;
    attention->fixed_s /= factor;
}

/* All that a device computes and streams, its kernels' start-up and drain with it; what it exchanges and what its host does keep
 * their pace. */
static void slow_gpu(struct gpu *gpu, double factor)
{
    for (int i = 0; i < N_PRECISIONS; i++) {
        gpu->peak_flops[i] *= factor;
        slow_products(&gpu->gemm[i], factor);
    }
    slow_attention(&gpu->attention, factor);
    slow_attention(&gpu->attention_fp8, factor);
    gpu->scan_flops *= factor;
    gpu->exp_rate *= factor;
    gpu->hbm_rate *= factor;
    gpu->memory.fixed_s /= factor;
    for (int i = 0; i < N_MEMORY_KERNELS; i++)
        gpu->memory.rate[i] *= factor;
}

/* The global batch, rounded up to whole micro-batches of fewer replicas. */
static int64_t batch_of(const struct job *job, const struct layout *layout)
{
    int64_t unit = (int64_t)layout->dp * layout->micro_batch;
    return (job->global_batch + unit - 1) / unit * unit;
}

static double simulate_condition(const struct degraded *degraded, const struct cluster_condition *condition)
{
    struct cluster cluster = *degraded->setting->cluster;
    struct job job = *degraded->setting->job;
    struct layout layout = degraded->layout;
    struct setting setting = *degraded->setting;
    slow_gpu(&cluster.gpu, (double)condition->compute_speed / FULL_SPEED);
    cluster.nic_rate *= (double)condition->link_speed / FULL_SPEED;
    cluster.gpu.nic_rate *= (double)condition->link_speed / FULL_SPEED;
    layout.dp -= condition->missing_replicas;
    setting.gpus = setting.gpus / degraded->layout.dp * layout.dp;
    if (layout.shard && (layout.dp * layout.cp) % layout.shard)
        layout.shard = 0; /* shard among all that are left */
    layout_complete(&layout, &setting);
    job.global_batch = batch_of(&job, &layout);
    setting.cluster = &cluster;
    setting.job = &job;
    return simulate(&layout, &setting);
}

static int32_t rounded(int32_t speed)
{
    int32_t steps = (int32_t)(((int64_t)speed * STEPS + FULL_SPEED / 2) / FULL_SPEED);
    return (steps > 0 ? steps : 1) * (FULL_SPEED / STEPS);
}

static int32_t ask(struct degraded *degraded, const struct cluster_condition *condition)
{
    double step_s = simulate_condition(degraded, condition);
    double slowest = fmin((double)condition->compute_speed, (double)condition->link_speed) / FULL_SPEED;
    double share = 1 - (double)condition->missing_replicas / degraded->layout.dp;
    double speed =
        step_s > 0 ? fmin(1, degraded->healthy_s / step_s) : slowest * share; /* the step cannot be simulated: the plain rule */
    return (int32_t)lround(fmax(speed, 1e-6) * FULL_SPEED);
}

static int32_t speed_of(void *context, const struct cluster_condition *asked)
{
    struct degraded *degraded = context;
    struct cluster_condition c = {rounded(asked->compute_speed), rounded(asked->link_speed), asked->missing_replicas};
    if (c.compute_speed == FULL_SPEED && c.link_speed == FULL_SPEED && c.missing_replicas == 0)
        return FULL_SPEED;
    if (asked->link_speed <= FULL_SPEED / STEPS)
        return STANDSTILL;
    pthread_mutex_lock(&degraded->lock);
    size_t i = 0;
    while (i < degraded->n && (degraded->answers[i].condition.compute_speed != c.compute_speed ||
                               degraded->answers[i].condition.link_speed != c.link_speed ||
                               degraded->answers[i].condition.missing_replicas != c.missing_replicas))
        i++;
    if (i == degraded->n) {
        degraded->answers = memory_grow(degraded->answers, &degraded->capacity, i + 1, sizeof *degraded->answers);
        degraded->answers[degraded->n++] = (struct answer){c, ask(degraded, &c)};
    }
    int32_t speed = degraded->answers[i].speed;
    pthread_mutex_unlock(&degraded->lock);
    return speed;
}

struct degraded *degraded_create(const struct layout *layout, const struct setting *setting, struct diags *diags)
{
    struct degraded *degraded = memory_new(1, sizeof *degraded);
    *degraded = (struct degraded){.layout = *layout, .setting = setting, .healthy_s = simulate(layout, setting)};
    if (degraded->healthy_s <= 0) {
        diag_error(diags, PLACE_NONE, "the step of this layout cannot be simulated");
        free(degraded);
        return NULL;
    }
    pthread_mutex_init(&degraded->lock, NULL);
    return degraded;
}

void degraded_destroy(struct degraded *degraded)
{
    if (!degraded)
        return;
    pthread_mutex_destroy(&degraded->lock);
    free(degraded->answers);
    free(degraded);
}

struct degraded_speed degraded_speed_of(struct degraded *degraded)
{
    return (struct degraded_speed){.speed = speed_of, .context = degraded};
}
