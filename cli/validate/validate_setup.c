/*
 * validate_setup.c - from options to a job that the devices of this machine can execute.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/options/experiment_options.h"
#include "cli/output/table.h"
#include "cli/validate/validate_internal.h"
#include "cli/world/world.h"
#include "model/base/memory.h"
#include "model/cost/work/precision_bytes.h"
#include "sim/search/layout_choice.h"

enum { RANKS_DEFAULT = 4, RANKS_MAX = 64, OVERRIDES_MAX = 256 };
enum { GPU_HEAD_MAX = 256 };              /* of attention's kernels, ATTENTION_MOST_DIM in kernels/attention_tile.cuh */
enum { GPU_STATE_MAX = 256 };             /* of the scan's, LANES MOST_ROWS in kernels/scan.cu */
static const double PROBE_SECONDS = 0.02; /* per kernel and size */

/* What the runtime does not do beside computing: it would be predicted and not happen. */
#define NOT_EXECUTED                                                                                                             \
    (FEATURE_BIT(SCATTER_GATHER_P2P) | FEATURE_BIT(EP_OVERLAP) | FEATURE_BIT(FP8_ACTIVATION_INPUT) |                             \
     FEATURE_BIT(FP12_ATTENTION_OUTPUT))

static bool is_overridden(const struct invocation *call, const char *key)
{
    size_t n = strlen(key);
    for (int i = 0; i < call->n_overrides; i++)
        if (strncmp(call->overrides[i], key, n) == 0 && call->overrides[i][n] == '=')
            return true;
    return false;
}

static bool is_given(const struct invocation *call, const char *override)
{
    for (int i = 0; i < call->n_overrides; i++)
        if (strcmp(call->overrides[i], override) == 0)
            return true;
    return false;
}

/* The experiment with defaults where neither a file nor a flag says anything. The cluster is a stand-in until it is measured. */
static enum status load(struct invocation *call, const struct devices *devices, struct experiment *experiment)
{
    struct experiment_flags flags = experiment_flags_of(call);
    const char *overrides[OVERRIDES_MAX];
    int n = 0;
    bool own_cluster = flags.cluster || flags.gpu;
    for (; n < flags.n_overrides && n < OVERRIDES_MAX - 4; n++)
        overrides[n] = flags.overrides[n];
    if (!flags.file && !flags.model) {
        flags.model = "tiny-gpt";
        if (devices->kind == DEVICE_CUDA && !is_overridden(call, "model.heads")) /* the smallest heads there */
            overrides[n++] = "model.heads=4", overrides[n++] = "model.kv_heads=4";
    }
    if (!flags.file && !is_overridden(call, "job.global_batch"))
        overrides[n++] = "job.global_batch=4";
    bool alone = devices->alone >= 0; /* of a cluster as large as its job */
    if (!flags.file && !own_cluster)
        flags.gpu = is_given(call, "job.precision=mxfp8") ? "b200" : "h100-sxm"; /* the first one has it */
    if (!flags.file && !flags.cluster && (alone || !own_cluster) && !is_overridden(call, "cluster.nodes"))
        overrides[n++] = alone ? "cluster.nodes=16384" : "cluster.nodes=8";
    flags.overrides = overrides;
    flags.n_overrides = n;
    return experiment_read(call, &flags, experiment);
}

/* Check the number of ranks: threads up to the limit, processes the number that mpirun started. */
static enum status check_ranks(struct invocation *call, const struct devices *devices, int64_t ranks)
{
    bool threads = devices->kind == DEVICE_CPU && devices->n_processes == 1;
    if (devices->alone >= 0 || (threads ? ranks <= RANKS_MAX : ranks == devices->n_processes))
        return STATUS_OK;
    if (threads)
        diag_error(&call->diags, PLACE_NONE,
                   "%lld ranks are too many; at most %d run as threads, and for good times one per core", (long long)ranks,
                   RANKS_MAX);
    else if (devices->n_processes == 1)
        diag_error(&call->diags, PLACE_NONE,
                   "%lld ranks on GPUs need one process each: mpirun -n %lld msim validate ...; or execute one of them with "
                   "--alone RANK",
                   (long long)ranks, (long long)ranks);
    else
        diag_error(&call->diags, PLACE_NONE, "the layout has %lld ranks, but %d processes were started; start one per rank",
                   (long long)ranks, devices->n_processes);
    return STATUS_MISSING;
}

/* The number of ranks: requested, or of the layout, or of the processes. */
static enum status count_ranks(struct invocation *call, const struct devices *devices, struct experiment *experiment)
{
    struct layout layout = {0};
    int64_t ranks = option_given(call, "gpus") ? option_count(call, "gpus") : 0;
    if (!ranks && experiment->layout.given) {
        enum status status = layout_parse(experiment->layout.text, &layout, &call->diags);
        if (status != STATUS_OK)
            return status;
        ranks = (int64_t)(layout.tp ? layout.tp : 1) * (layout.cp ? layout.cp : 1) * (layout.pp ? layout.pp : 1) *
                (layout.dp ? layout.dp : 1);
    }
    if (!ranks && option_text(call, "cluster"))
        ranks = experiment->gpus;
    if (!ranks)
        ranks = devices->n_processes > 1 || devices->kind == DEVICE_CUDA ? devices->n_processes : RANKS_DEFAULT;
    experiment->gpus = (int)(ranks < INT32_MAX ? ranks : INT32_MAX);
    return check_ranks(call, devices, ranks);
}

static void make_executable(struct invocation *call, const struct devices *devices, struct experiment *experiment)
{
    feature_set dropped = experiment->job.features & NOT_EXECUTED;
    bool cuda = devices->kind == DEVICE_CUDA;
    experiment->job.features &= ~NOT_EXECUTED;
    if (!precision_is_narrow(experiment->job.precision))
        experiment->job.precision = cuda ? PRECISION_BF16 : PRECISION_FP32;
    /* On the CPU counted with two bytes an element like all else; see runtime/probe/probe.h. */
    experiment->job.gradient_precision = cuda ? PRECISION_FP32 : PRECISION_BF16;
    for (int f = 0; f < N_FEATURES; f++)
        if (dropped >> f & 1u)
            info(call, 1, "%s is ignored: the runtime does not support it", feature_name((enum feature)f));
}

static enum status check_device(struct invocation *call, const struct validation *v)
{
    const struct transformer *model = &v->setup->experiment.model;
    int64_t ranks = v->setup->experiment.gpus;
    if (v->devices.alone >= ranks) {
        diag_error(&call->diags, PLACE_NONE, "--alone: there is no rank %d; the layout has %lld ranks, numbered from 0",
                   v->devices.alone, (long long)ranks);
        return STATUS_USAGE;
    }
    const struct latent_attention *latent = &model->latent;
    bool is_latent = model->attention == ATTENTION_LATENT;
    int keys = is_latent ? latent->qk_nope_dim + latent->qk_rope_dim : model->head_dim;
    int head = is_latent && latent->v_dim > keys ? latent->v_dim : keys;
    if (v->devices.kind != DEVICE_CPU && model->mixer.state > GPU_STATE_MAX) {
        diag_error(&call->diags, PLACE_NONE,
                   "on GPUs the runtime supports mixers with states of at most %d rows; those of %s have %d", GPU_STATE_MAX,
                   model->name, model->mixer.state);
        return STATUS_MISSING;
    }
    if (v->devices.kind == DEVICE_CPU || head <= GPU_HEAD_MAX)
        return STATUS_OK;
    diag_error(&call->diags, PLACE_NONE, "on GPUs the runtime supports attention heads of at most %d; those of %s have %d",
               GPU_HEAD_MAX, model->name, head);
    return STATUS_MISSING;
}

/* Ranks on CPUs share the machine's memory; what is far beyond it would end in swapping, or by the kernel's hand. */
static enum status check_memory(struct invocation *call, const struct validation *v)
{
    char wanted[32], there[32];
    double needed = validate_memory_of_all(v), memory = probe_this_cpu(1).memory_bytes;
    if (v->devices.kind != DEVICE_CPU || needed <= memory)
        return STATUS_OK;
    diag_error(
        &call->diags, PLACE_NONE, "memory: the ranks here need %s by prediction, this machine has %s; execute a smaller model",
        quantity_format(needed, DIM_BYTES, wanted, sizeof wanted), quantity_format(memory, DIM_BYTES, there, sizeof there));
    return STATUS_MISSING;
}

static enum status measure(struct invocation *call, struct validation *v)
{
    struct job_setup *setup = v->setup;
    int ranks = setup->experiment.gpus, cores = v->devices.n_cores, at_once = 2 * cores;
    int probed = ranks < at_once ? ranks : at_once;
    struct probe_options options = {.ranks = probed,
                                    .seconds = PROBE_SECONDS,
                                    .layout = &setup->layout,
                                    .setting = &setup->setting,
                                    .shape_rank = v->devices.alone >= 0 ? v->devices.alone : 0};
    struct probe_result result;
    info(call, 0, "probing the kernels and exchanges of this job");
    if (v->devices.kind == DEVICE_CPU && v->devices.alone < 0 && ranks > cores)
        info(call, 0, "%d ranks share %d core%s: operations wait for each other and for other programs on this machine", ranks,
             cores, plural(cores));
    enum status status = devices_probe(call, &v->devices, &options, ranks, &result, &setup->experiment.cluster);
    if (status != STATUS_OK)
        return status;
    v->copy_rate = probe_copy_rate(&result) * 2 / (double)result.element_bytes; /* of what the program counts as two bytes */
    v->copy_base_s = result.launch_s;
    v->waking_s = result.waking_s;
    probe_result_free(&result);
    return STATUS_OK;
}

/* A machine to choose a layout on before it is measured. */
static void stand_in(struct cluster *cluster, int ranks)
{
    cluster->nodes = 1;
    cluster->gpus_per_node = cluster->nvlink_domain = ranks;
    if (cluster->gpu.peak_flops[PRECISION_FP32] <= 0)
        cluster->gpu.peak_flops[PRECISION_FP32] = cluster->gpu.peak_flops[PRECISION_BF16] / 16;
}

/* Without probing: a copy reads and writes the memory of the entry. */
static void assume_copies(struct validation *v)
{
    const struct gpu *gpu = &v->setup->experiment.cluster.gpu;
    v->copy_rate = gpu->hbm_rate * (gpu->memory.bandwidth_fraction > 0 ? gpu->memory.bandwidth_fraction : 1) / 2;
    v->copy_base_s = gpu->launch_s;
    v->waking_s = gpu->nccl_base_s;
}

static void default_layout(struct invocation *call, const struct validation *v)
{
    struct experiment *experiment = &v->setup->experiment;
    bool said = experiment->layout.given || option_given(call, "gpus") || call->n_operands;
    if (said || experiment->gpus != RANKS_DEFAULT)
        return;
    snprintf(experiment->layout.text, sizeof experiment->layout.text, "tp=2,pp=2");
    experiment->layout.given = true;
}

enum status validate_setup(struct invocation *call, struct validation *v)
{
    struct job_setup *setup = v->setup;
    struct experiment *experiment = &setup->experiment;
    enum status status = devices_open(call, &v->devices);
    if (option_given(call, "alone"))
        v->devices.alone = (int)option_count(call, "alone");
    if (status == STATUS_OK)
        status = load(call, &v->devices, experiment);
    if (status == STATUS_OK)
        status = count_ranks(call, &v->devices, experiment);
    if (status == STATUS_OK)
        status = check_device(call, v);
    if (status != STATUS_OK)
        return status;
    v->probed = !option_text(call, "cluster") && !option_text(call, "gpu");
    default_layout(call, v);
    make_executable(call, &v->devices, experiment);
    stand_in(&experiment->cluster, experiment->gpus);
    setup->setting = experiment_setting(experiment);
    setup->chosen = !experiment->layout.given;
    status = layout_choose(experiment, world_processors(), &setup->layout, &call->diags);
    if (status == STATUS_OK)
        status = runtime_supports(&setup->setting, &call->diags);
    if (status == STATUS_OK)
        status = check_memory(call, v);
    assume_copies(v);
    return status;
}

enum status validate_measure(struct invocation *call, struct validation *v)
{
    const struct job_setup *setup = v->setup;
    enum status status = v->probed ? measure(call, v) : STATUS_OK;
    char text[LAYOUT_TEXT];
    if (status == STATUS_OK)
        info(call, 0, "layout: %s%s", setup->chosen ? "auto chose " : "", layout_format(&setup->layout, text, sizeof text));
    return status;
}
