#include "cli/plan_levers.h"

#include <stdlib.h>

#include "cli/plan_find.h"
#include "cli/plan_report.h"
#include "cli/progress.h"
#include "model/base/memory.h"

const char *const lever_kind_names[N_LEVER_KINDS] = {
    [LEVER_SOFTWARE] = "software", [LEVER_PRECISION] = "precision", [LEVER_LAYOUT] = "layout", [LEVER_MODEL] = "model",
    [LEVER_JOB] = "job",           [LEVER_HARDWARE] = "hardware",
};

/* One change of an experiment, or of what is searched. `turn` is false where there is nothing to change. */
struct lever {
    enum lever_kind kind;
    const char *change;
    bool (*turn)(struct experiment *experiment, struct space_limits *limits, int argument);
    int argument;
};

/* --- software */

/* Features that a better one, which the job has, stands in for: they would not be used. */
static feature_set stood_in_for(feature_set has)
{
    static const struct {
        feature_set better, lesser;
    } stands[] = {
        {FEATURE_BIT(FLASH_ATTENTION3), FEATURES_FLASH | FEATURE_BIT(FUSED_SOFTMAX)},
        {FEATURE_BIT(FLASH_ATTENTION2), FEATURE_BIT(FLASH_ATTENTION) | FEATURE_BIT(FUSED_SOFTMAX)},
        {FEATURE_BIT(FLASH_ATTENTION), FEATURE_BIT(FUSED_SOFTMAX)},
        {FEATURES_FUSING, FEATURES_FUSING | FEATURE_BIT(FUSED_RMSNORM)},
        {FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP), FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP)},
    };
    feature_set lesser = 0;
    for (size_t i = 0; i < sizeof stands / sizeof stands[0]; i++)
        if (has & stands[i].better)
            lesser |= stands[i].lesser;
    return lesser;
}

static bool add_feature(struct experiment *experiment, struct space_limits *limits, int feature)
{
    (void)limits;
    feature_set bit = (feature_set)1 << feature, has = experiment->job.features;
    if ((has | stood_in_for(has)) & bit)
        return false;
    if (bit & FEATURES_FLASH)
        has &= ~FEATURES_FLASH;
    experiment->job.features = has | bit;
    return true;
}

/* --- precision */

static bool take_precision(struct experiment *experiment, struct space_limits *limits, int precision)
{
    (void)limits;
    const double *peak = experiment->cluster.gpu.peak_flops;
    bool there = peak[precision] > peak[experiment->job.precision];
    experiment->job.precision = (enum precision)precision;
    return there;
}

static bool reduce_in_bf16(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)limits, (void)unused;
    bool there = experiment->job.gradient_precision != PRECISION_BF16;
    experiment->job.gradient_precision = PRECISION_BF16;
    return there;
}

/* --- what is searched only where asked for */

static bool widen(struct space_limits *limits, enum space_dimension dimension, const char *text)
{
    struct diags diags = {0};
    bool done = limits->dimensions[dimension].n == 0 && space_restrict(limits, text, (struct place){0}, &diags) == STATUS_OK;
    diags_free(&diags);
    return done;
}

static bool offload_any(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)experiment, (void)unused;
    return widen(limits, SPACE_OFFLOAD, "offload=auto");
}

static bool shard_near(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)unused;
    char text[64];
    int near = experiment->cluster.nvlink_domain;
    if (near < 2 || near >= experiment->gpus)
        return false;
    snprintf(text, sizeof text, "shard=0,%d", near);
    return widen(limits, SPACE_SHARD, text);
}

/* --- the job, and what it runs on */

static bool double_batch(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)limits, (void)unused;
    experiment->job.global_batch *= 2;
    return true;
}

static bool double_network(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)limits, (void)unused;
    struct cluster *c = &experiment->cluster;
    c->nic_rate *= 2;
    c->pcie_rate *= 2; /* what a faster NIC is put behind; a host's memory is no nearer for it */
    return c->nic_rate > 0 && experiment->gpus > c->gpus_per_node;
}

static bool double_nvlink(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)limits, (void)unused;
    struct gpu *gpu = &experiment->cluster.gpu;
    gpu->nvlink_rate *= 2;
    gpu->nccl_rate *= 2;
    gpu->nvls_rate *= 2;
    return experiment->gpus > 1 && gpu->nvlink_rate > 0;
}

static bool double_memory(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)limits, (void)unused;
    experiment->cluster.gpu.hbm_bytes *= 2;
    return true;
}

static bool double_memory_rate(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)limits, (void)unused;
    struct gpu *gpu = &experiment->cluster.gpu;
    gpu->hbm_rate *= 2;
    for (int kernel = 0; kernel < N_MEMORY_KERNELS; kernel++)
        gpu->memory.rate[kernel] *= 2;
    return true;
}

static bool double_arithmetic(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)limits, (void)unused;
    struct gpu *gpu = &experiment->cluster.gpu;
    for (int precision = 0; precision < N_PRECISIONS; precision++)
        gpu->peak_flops[precision] *= 2;
    gpu->exp_rate *= 2;
    return true;
}

static bool halve_host_launch(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)limits, (void)unused;
    experiment->cluster.gpu.host_launch_s /= 2;
    return true;
}

static const struct lever LEVERS[] = {
    {LEVER_PRECISION, "precision bf16", take_precision, PRECISION_BF16},
    {LEVER_PRECISION, "precision fp8", take_precision, PRECISION_FP8},
    {LEVER_PRECISION, "precision mxfp8", take_precision, PRECISION_MXFP8},
    {LEVER_PRECISION, "precision nvfp4", take_precision, PRECISION_NVFP4},
    {LEVER_PRECISION, "gradients reduced in bf16", reduce_in_bf16, 0},
    {LEVER_LAYOUT, "offload=auto", offload_any, 0},
    {LEVER_LAYOUT, "shard in an NVLink domain", shard_near, 0},
    {LEVER_JOB, "global batch x2", double_batch, 0},
    {LEVER_HARDWARE, "network between nodes x2", double_network, 0},
    {LEVER_HARDWARE, "NVLink x2", double_nvlink, 0},
    {LEVER_HARDWARE, "memory size x2", double_memory, 0},
    {LEVER_HARDWARE, "memory rate x2", double_memory_rate, 0},
    {LEVER_HARDWARE, "arithmetic peak x2", double_arithmetic, 0},
    {LEVER_HARDWARE, "host's time per launch /2", halve_host_launch, 0},
};
enum { N_LEVERS = sizeof LEVERS / sizeof LEVERS[0], MOST_LEVERS = N_FEATURES + N_LEVERS };

/* --- searches */

/* The best layout; a space that restrictions leave empty has none that is legal. */
static void search(const struct experiment *experiment, const struct space_limits *limits, const struct invocation *call,
                   struct levered_plan *plan)
{
    struct setting setting = {&experiment->model, &experiment->cluster, &experiment->job, experiment->gpus};
    struct invocation inner = *call;
    inner.progress = false;
    inner.diags = (struct diags){0};
    struct space *space;
    if (space_create(&setting, limits, &space, &inner.diags) == STATUS_OK) {
        struct plans_found found;
        plans_find(space, &inner, &found);
        plan->legal = found.search.counts.legal > 0;
        plan->fits = found.plans != NULL;
        if (plan->fits)
            plan->best = best_plan_of(&found, &setting);
        plans_found_free(&found);
        space_destroy(space);
    }
    diags_free(&inner.diags);
}

/* The levers that there are for this job: of all features, and of LEVERS. */
static struct lever lever_at(int i)
{
    static const feature_set changes_model = FEATURE_BIT(PARALLEL_BLOCK) | FEATURE_BIT(SLIDING_WINDOW);
    if (i >= N_FEATURES)
        return LEVERS[i - N_FEATURES];
    return (struct lever){changes_model >> i & 1 ? LEVER_MODEL : LEVER_SOFTWARE, feature_names[i], add_feature, i};
}

static void pull(struct plan_levers *levers, const struct space_limits *limits, const struct lever *lever,
                 const struct invocation *call)
{
    struct experiment *changed = memory_new(1, sizeof *changed);
    struct space_limits searched = *limits;
    *changed = *levers->experiment;
    if (lever->turn(changed, &searched, lever->argument)) {
        struct levered_plan *plan = &levers->items[levers->n_items++];
        plan->kind = lever->kind;
        snprintf(plan->change, sizeof plan->change, "%s%s", lever->turn == add_feature ? "feature " : "", lever->change);
        search(changed, &searched, call, plan);
        if (plan->fits && levers->base.fits)
            plan->gain = plan->best.tokens_per_s / levers->base.best.tokens_per_s - 1;
    }
    free(changed);
}

/* Fastest first; those that have no plan last, in the order of the table. */
static void sort(struct plan_levers *levers)
{
    for (int i = 1; i < levers->n_items; i++) {
        struct levered_plan item = levers->items[i];
        int at = i;
        for (; at > 0 && levers->items[at - 1].best.tokens_per_s < item.best.tokens_per_s; at--)
            levers->items[at] = levers->items[at - 1];
        levers->items[at] = item;
    }
}

static bool any_fits(const struct plan_levers *levers)
{
    bool any = levers->base.fits;
    for (int i = 0; i < levers->n_items; i++)
        any |= levers->items[i].fits;
    return any;
}

enum status plan_levers(const struct experiment *experiment, struct invocation *call)
{
    struct plan_levers levers = {.experiment = experiment, .items = memory_new(MOST_LEVERS, sizeof *levers.items)};
    struct space_limits limits;
    enum status status = plan_limits(call, experiment, &limits, &call->diags);
    if (status == STATUS_OK) {
        struct progress progress = progress_begin(call, "levers");
        snprintf(levers.base.change, sizeof levers.base.change, "as it is");
        search(experiment, &limits, call, &levers.base);
        for (int i = 0; i < MOST_LEVERS; i++) {
            struct lever lever = lever_at(i);
            pull(&levers, &limits, &lever, call);
            progress_update(&progress, i + 1, MOST_LEVERS);
        }
        progress_end(&progress);
        sort(&levers);
        if (any_fits(&levers)) {
            status = plan_levers_report(&levers, call);
        } else {
            diag_error(&call->diags, (struct place){0},
                       "no layout fits, nor with any of %d changes; msim plan says what would help", levers.n_items);
            status = STATUS_BAD_INPUT;
        }
    }
    json_decref(levers.base.best.json);
    for (int i = 0; i < levers.n_items; i++)
        json_decref(levers.items[i].best.json);
    free(levers.items);
    return status;
}
