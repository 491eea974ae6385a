/* levers.c - the table of levers, and the functions that make each change. */
#include "model/plan/levers.h"

#include <stdio.h>

const char *const plan_lever_kind_names[N_PLAN_LEVER_KINDS] = {
    [LEVER_SOFTWARE] = "software", [LEVER_PRECISION] = "precision", [LEVER_LAYOUT] = "layout", [LEVER_MODEL] = "model",
    [LEVER_JOB] = "job",           [LEVER_HARDWARE] = "hardware",
};

/* --- software */

/* Features that a better one, which the job has, stands in for: they would not be used; and what nobody would want. */
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
    feature_set lesser = FEATURE_BIT(EAGER_LOSS);
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
    experiment->job.features = features_with(has, (enum feature)feature);
    return true;
}

/* --- precision */

static bool take_precision(struct experiment *experiment, struct space_limits *limits, int precision)
{
    (void)limits;
    const double *peak = experiment->cluster.gpu.peak_flops;
    bool modelled = !job_adapts(&experiment->job) || !precision_is_narrow((enum precision)precision);
    bool there = modelled && peak[precision] > peak[experiment->job.precision];
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
    bool done = limits->dimensions[dimension].n == 0 && space_restrict(limits, text, PLACE_NONE, &diags) == STATUS_OK;
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

/* Of these, which few frameworks run, alone: what is searched anyway stands in the plan without. */
static bool schedule_rarely(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)unused;
    return experiment->gpus > 1 && widen(limits, SPACE_SCHEDULE, RARE_SCHEDULES);
}

/* --- the job, and what it runs on */

static bool double_batch(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)limits, (void)unused;
    experiment->job.global_batch *= 2;
    return experiment->job.global_batch <= JOB_SEQUENCES_MAX;
}

static bool balance_experts(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)limits, (void)unused;
    const struct mixture *moe = &experiment->model.moe;
    struct expert_load *load = &experiment->job.load;
    bool there = load->busiest > 1;
    load->busiest = 1;
    if (there)
        expert_load_complete(load, moe->experts, moe->top_k);
    return there;
}

static bool double_network(struct experiment *experiment, struct space_limits *limits, int unused)
{
    (void)limits, (void)unused;
    struct cluster *c = &experiment->cluster;
    c->nic_rate *= 2;
    c->dragonfly.link_rate *= 2; /* cables between switches of a dragonfly; a Clos follows the NICs */
    c->pcie_rate *= 2;           /* what a faster NIC is put behind; a host's memory is no nearer for it */
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

static const struct plan_lever LEVERS[] = {
    {LEVER_PRECISION, CHANGE_PRECISION, "precision bf16", take_precision, PRECISION_BF16},
    {LEVER_PRECISION, CHANGE_PRECISION, "precision fp8", take_precision, PRECISION_FP8},
    {LEVER_PRECISION, CHANGE_PRECISION, "precision mxfp8", take_precision, PRECISION_MXFP8},
    {LEVER_PRECISION, CHANGE_PRECISION, "precision nvfp4", take_precision, PRECISION_NVFP4},
    {LEVER_PRECISION, CHANGE_GRADIENTS_BF16, "gradients reduced in bf16", reduce_in_bf16, 0},
    {LEVER_LAYOUT, CHANGE_SCHEDULES, "rare schedules", schedule_rarely, 0},
    {LEVER_LAYOUT, CHANGE_OFFLOAD, "offload=auto", offload_any, 0},
    {LEVER_LAYOUT, CHANGE_SHARD, "shard in an NVLink domain", shard_near, 0},
    {LEVER_JOB, CHANGE_BATCH, "global batch x2", double_batch, 0},
    {LEVER_JOB, CHANGE_EXPERT_LOAD, "experts balanced", balance_experts, 0},
    {LEVER_HARDWARE, CHANGE_NETWORK, "network between nodes x2", double_network, 0},
    {LEVER_HARDWARE, CHANGE_NVLINK, "NVLink x2", double_nvlink, 0},
    {LEVER_HARDWARE, CHANGE_MEMORY_SIZE, "memory size x2", double_memory, 0},
    {LEVER_HARDWARE, CHANGE_MEMORY_RATE, "memory rate x2", double_memory_rate, 0},
    {LEVER_HARDWARE, CHANGE_ARITHMETIC, "arithmetic peak x2", double_arithmetic, 0},
    {LEVER_HARDWARE, CHANGE_HOST_LAUNCH, "host's time per launch /2", halve_host_launch, 0},
};
_Static_assert(sizeof LEVERS / sizeof LEVERS[0] == N_PLAN_LEVERS - N_FEATURES, "levers beside the features");

struct plan_lever plan_lever_at(int i)
{
    static const feature_set changes_model = FEATURE_BIT(PARALLEL_BLOCK) | FEATURE_BIT(SLIDING_WINDOW);
    if (i >= N_FEATURES)
        return LEVERS[i - N_FEATURES];
    struct plan_lever lever = {changes_model >> i & 1 ? LEVER_MODEL : LEVER_SOFTWARE, CHANGE_FEATURE, "", add_feature, i};
    snprintf(lever.change, sizeof lever.change, "feature %s", feature_names[i]);
    return lever;
}
