/*
 * bench_corners SEED SETTINGS [WORST] - the closed form against the simulation over settings drawn at random, each with a layout
 * of its own: what nobody looks at. The same seed draws the same. The command:
 *
 *     build/tests/bench/bench_corners 1 8000 20
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "model/cost/memory/footprint.h"
#include "model/spec/catalog.h"
#include "tests/plan/population.h"

static const char *const models[] = {
    "llama3.2-1b",        "llama3-8b",         "llama3-70b",   "llama2-13b",      "gpt3-125m",           "gpt3-1.3b",
    "gpt3-13b",           "gpt-22b",           "gpt-oss-20b",  "qwen2.5-7b",      "qwen3-30b-a3b",       "deepseek-v2-lite",
    "deepseek-v3",        "mixtral-8x7b",      "gpt-oss-120b", "nemotron-h-8b",   "gemma3-1b",           "gemma2-9b",
    "pythia-70m",         "tiny-gpt",          "smollm2-135m", "bloom-7b",        "olmoe-1b-7b",         "falcon-7b",
    "llama4-scout",       "minimax-m2",        "opt-6.7b",     "granite4-h-tiny", "kimi-linear-48b-a3b", "moonlight-16b-a3b",
    "gpt-175b-megascale", "qwen3-next-80b-a3b"};
static const char *const clusters[] = {"alps",          "dgx-h100",    "frontier",       "gb200-nvl72", "gb300-nvl72",
                                       "jean-zay-a100", "llama3-h100", "megascale-a100", "perlmutter",  "selene-a100"};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static uint64_t below(struct random_stream *random, size_t n)
{
    return random_below(random, n);
}

static bool chance(struct random_stream *random, double share)
{
    return random_uniform(random) < share;
}

/* A power of two up to n. */
static int power(struct random_stream *random, int n)
{
    int most = 0;
    while ((2 << most) <= n)
        most++;
    return 1 << below(random, (size_t)most + 1);
}

static feature_set draw_features(struct random_stream *random)
{
    static const feature_set kernels[] = {FEATURE_BIT(FUSED_OPS), FEATURE_BIT(FUSED_OPS), 0, FEATURE_BIT(COMPILE)};
    static const struct {
        feature_set feature;
        double share;
    } others[] = {{FEATURE_BIT(TP_OVERLAP), 0.7}, {FEATURE_BIT(PP_OVERLAP), 0.7},        {FEATURE_BIT(DP_OVERLAP), 0.6},
                  {FEATURE_BIT(ASYNC_DATA), 0.6}, {FEATURE_BIT(EP_OVERLAP), 0.3},        {FEATURE_BIT(CUDA_GRAPHS), 0.2},
                  {FEATURE_BIT(FUSED_LOSS), 0.5}, {FEATURE_BIT(SCATTER_GATHER_P2P), 0.2}};
    feature_set features = FEATURE_BIT(FLASH_ATTENTION2) | kernels[below(random, COUNT(kernels))];
    for (size_t i = 0; i < COUNT(others); i++)
        features |= chance(random, others[i].share) ? others[i].feature : 0;
    return features;
}

static void draw_job(struct random_stream *random, int gpus, struct job *job)
{
    static const int64_t batches[] = {1, 1, 2, 4, 8, 16, 32}, tokens[] = {512, 1024, 2048, 4096, 8192, 32768};
    *job = (struct job){.global_batch = gpus * batches[below(random, COUNT(batches))],
                        .seq_len = tokens[below(random, COUNT(tokens))],
                        .precision = PRECISION_BF16,
                        .gradient_precision = chance(random, 0.7) ? PRECISION_FP32 : PRECISION_BF16,
                        .optimizer = chance(random, 0.1) ? OPTIMIZER_SGD : OPTIMIZER_ADAM,
                        .features = draw_features(random)};
    if (chance(random, 0.2))
        job->precision = chance(random, 0.7) ? PRECISION_FP8 : PRECISION_FP16;
    if (chance(random, 0.15)) {
        job->optimizer = OPTIMIZER_MUON;
        job->muon_tp = chance(random, 0.5) ? MUON_DUPLICATED : MUON_BLOCKWISE;
        job->muon_shard = chance(random, 0.5) ? MUON_LAYER_WISE : MUON_ELEMENTS;
    }
    if (chance(random, 0.1))
        job->adapter =
            (struct adapter){.rank = 16, .targets = 1 + (uint32_t)below(random, 15), .whole = chance(random, 0.3) ? 3 : 0};
}

/* False: the cluster has fewer GPUs. */
static bool draw_case(struct random_stream *random, struct job_case *c)
{
    static const int sizes[] = {1, 2, 4, 8, 16, 24, 32, 64, 128, 256, 512};
    static const double slower[] = {0.5, 0.25, 0.1};
    struct diags diags = {0};
    memset(c, 0, sizeof *c);
    bool known = catalog_model(models[below(random, COUNT(models))], &c->model, &diags) == STATUS_OK &&
                 catalog_cluster(clusters[below(random, COUNT(clusters))], &c->cluster, &diags) == STATUS_OK;
    diags_free(&diags);
    int gpus = sizes[below(random, COUNT(sizes))], each = c->cluster.gpus_per_node;
    draw_job(random, gpus, &c->job);
    if (chance(random, 0.25))
        c->cluster.nic_rate *= slower[below(random, COUNT(slower))];
    c->setting = (struct setting){&c->model, &c->cluster, &c->job, gpus};
    return known && gpus <= (int64_t)c->cluster.nodes * each && (gpus <= each || gpus % each == 0);
}

static void draw_pipeline(struct random_stream *random, struct layout *l)
{
    if (l->pp == 1)
        return;
    l->schedule = (enum schedule)(1 + below(random, N_SCHEDULES - 1));
    if (l->schedule == SCHEDULE_INTERLEAVED)
        l->vpp = 2 + (int)below(random, 5);
    if (l->schedule >= SCHEDULE_ZBV)
        l->vpp = 2;
}

static void draw_states(struct random_stream *random, const struct transformer *model, struct layout *l)
{
    struct offload sets[OFFLOAD_SETS];
    int n;
    double of = random_uniform(random);
    l->zero = l->dp * l->cp == 1 ? 0 : (int)below(random, l->pp > 1 ? 3 : 4);
    if (l->zero > 0 && chance(random, 0.15))
        l->shard = power(random, l->dp * l->cp);
    layout_settle_shard(l);
    if (of < 0.2)
        l->recompute.what = RECOMPUTE_FULL;
    else if (of < 0.3)
        l->recompute.what = RECOMPUTE_SELECTIVE;
    else if (of < 0.4)
        l->recompute = (struct recompute){RECOMPUTE_FULL, (enum recompute_of)(1 + below(random, 3)), 1 + (int)below(random, 4)};
    else if (of < 0.5)
        l->recompute.what = layout_light_modules(model);
    if (chance(random, 0.15) && offload_sets_of(chance(random, 0.5) ? "auto" : "auto:50%", sets, &n))
        l->offload = sets[below(random, (size_t)n)];
}

static void draw_layout(struct random_stream *random, const struct setting *setting, struct layout *l)
{
    int left = setting->gpus;
    *l = (struct layout){.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 1, .ep = 1, .features = setting->job->features};
    if (chance(random, 0.75))
        l->pp = left % 3 == 0 && chance(random, 0.3) ? 3 : power(random, left < 16 ? left : 16);
    left /= l->pp;
    l->tp = chance(random, 0.5) ? power(random, left < 8 ? left : 8) : 1;
    left /= l->tp;
    l->cp = chance(random, 0.15) ? power(random, left < 8 ? left : 8) : 1;
    l->dp = left / l->cp;
    if (l->cp > 1)
        l->cp_comm = (enum cp_comm)below(random, 3);
    if (setting->model->moe.experts > 0 && chance(random, 0.7))
        l->ep = power(random, left * l->tp < 32 ? left * l->tp : 32);
    l->sequence_parallel = l->tp > 1 && chance(random, 0.6);
    int64_t samples = l->dp > 0 ? setting->job->global_batch / l->dp : 1;
    l->micro_batch = chance(random, 0.4) ? 1 : power(random, (int)(samples < 8 ? samples : 8));
    draw_pipeline(random, l);
    draw_states(random, setting->model, l);
}

/* A setting and a layout that is legal, fits and has not too many passes. */
static bool draw(uint64_t seed, uint64_t number, struct job_case *c, struct layout *l)
{
    enum { CASES = 400, LAYOUTS = 20, PASSES_MAX = 6000 };
    for (uint64_t i = 0; i < CASES; i++) {
        struct random_stream random = random_stream_named(seed, number, i);
        for (int k = draw_case(&random, c) ? 0 : LAYOUTS; k < LAYOUTS; k++) {
            struct footprint footprint;
            draw_layout(&random, &c->setting, l);
            if (layout_check(l, &c->setting, NULL, 0) != LAYOUT_LEGAL ||
                layout_micro_batches(l, &c->job) * l->pp * l->vpp > PASSES_MAX)
                continue;
            footprint_peak(l, &c->setting, &footprint, NULL);
            if (footprint.total <= footprint_capacity(&c->cluster))
                return true;
        }
    }
    return false;
}

struct drawn {
    uint64_t number;
    double error;
};

static int by_error(const void *a, const void *b)
{
    double x = fabs(((const struct drawn *)a)->error), y = fabs(((const struct drawn *)b)->error);
    return (x < y) - (x > y);
}

static void print_one(uint64_t seed, const struct drawn *d)
{
    struct job_case c;
    struct layout l;
    char text[LAYOUT_TEXT], features[FEATURES_TEXT];
    if (draw(seed, d->number, &c, &l))
        printf("  %+6.2f %%  %s on %d of %s, batch %lld x %lld, %s, %s, adapters %lld, NICs %.3g GB/s\n             %s\n         "
               "    %s\n",
               100 * d->error, c.model.name, c.setting.gpus, c.cluster.name, (long long)c.job.global_batch,
               (long long)c.job.seq_len, precision_name(c.job.precision), optimizer_names[c.job.optimizer],
               (long long)c.job.adapter.rank, c.cluster.nic_rate / 1e9, layout_format(&l, text, sizeof text),
               features_text(l.features, ",", features, sizeof features));
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("bench_corners SEED SETTINGS [WORST]\n", stderr);
        return 2;
    }
    uint64_t seed = strtoull(argv[1], NULL, 10), n = strtoull(argv[2], NULL, 10);
    size_t worst = argc > 3 ? strtoul(argv[3], NULL, 10) : 0, count = 0;
    struct drawn *all = memory_new(n, sizeof *all);
    for (uint64_t i = 0; i < n; i++) {
        struct job_case c;
        struct layout l;
        struct population_times times;
        if (draw(seed, i, &c, &l) && population_time(&c.setting, &l, &times))
            all[count++] = (struct drawn){i, times.formula_s / times.simulated_s - 1};
    }
    qsort(all, count, sizeof *all, by_error);
    if (count > 0)
        printf("%zu settings  median %.3f %%  p90 %.2f %%  p99 %.2f %%  largest %.2f %%\n", count,
               100 * fabs(all[count / 2].error), 100 * fabs(all[count / 10].error), 100 * fabs(all[count / 100].error),
               100 * fabs(all[0].error));
    for (size_t i = 0; i < worst && i < count; i++)
        print_one(seed, &all[i]);
    free(all);
    return 0;
}
