/* validate_setup.c - a job that this machine's CPU can execute. */
#include <stdlib.h>
#include <string.h>

#include "cli/experiment_options.h"
#include "cli/layout_choice.h"
#include "cli/validating.h"
#include "model/base/memory.h"
#include "runtime/probe.h"

static const struct place NOWHERE;

enum { RANKS_DEFAULT = 4, RANKS_MAX = 64, OVERRIDES_MAX = 256 };
static const double PROBE_SECONDS = 0.02; /* per kernel and size */

/* What the CPU backend cannot do beside computing: it would be predicted and not happen. */
#define NOT_ON_CPU (FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP) | FEATURE_BIT(SCATTER_GATHER_P2P))

static bool is_overridden(const struct invocation *call, const char *key)
{
    size_t n = strlen(key);
    for (int i = 0; i < call->n_overrides; i++)
        if (strncmp(call->overrides[i], key, n) == 0 && call->overrides[i][n] == '=')
            return true;
    return false;
}

/* The experiment with defaults where neither a file nor a flag says anything. The cluster is a stand-in until it is measured. */
static enum status load(struct invocation *call, struct experiment *experiment)
{
    struct experiment_flags flags = experiment_flags_of(call);
    const char *overrides[OVERRIDES_MAX];
    int n = 0;
    bool own_cluster = flags.cluster || flags.gpu;
    for (; n < flags.n_overrides && n < OVERRIDES_MAX - 2; n++)
        overrides[n] = flags.overrides[n];
    if (!flags.file && !flags.model)
        flags.model = "tiny-gpt";
    if (!flags.file && !is_overridden(call, "job.global_batch"))
        overrides[n++] = "job.global_batch=4";
    if (!flags.file && !own_cluster) {
        flags.gpu = "h100-sxm";
        if (!is_overridden(call, "cluster.nodes"))
            overrides[n++] = "cluster.nodes=8";
    }
    flags.overrides = overrides;
    flags.n_overrides = n;
    return experiment_load(&flags, experiment, &call->diags);
}

/* Ranks: as many as asked for, or as the layout has. */
static enum status count_ranks(struct invocation *call, struct experiment *experiment)
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
    experiment->gpus = ranks ? (int)(ranks < INT32_MAX ? ranks : INT32_MAX) : RANKS_DEFAULT;
    if (ranks <= RANKS_MAX)
        return STATUS_OK;
    diag_error(&call->diags, NOWHERE,
               "%lld ranks are more than this machine executes; up to %d run as threads, as many as there are cores run well",
               (long long)ranks, RANKS_MAX);
    return STATUS_MISSING;
}

static void make_executable(struct invocation *call, struct experiment *experiment)
{
    feature_set dropped = experiment->job.features & NOT_ON_CPU;
    experiment->job.features &= ~NOT_ON_CPU;
    experiment->job.precision = PRECISION_FP32;
    /* Counted with two bytes an element like all else; see runtime/probe.h. */
    experiment->job.gradient_precision = PRECISION_BF16;
    for (int f = 0; f < N_FEATURES; f++)
        if (dropped >> f & 1u)
            talk(call, 1, "%s is left out: the CPU backend does not have it", feature_name((enum feature)f));
}

static enum status measure(struct invocation *call, const struct layout *layout, struct job_setup *setup)
{
    int ranks = setup->experiment.gpus, cores = probe_cores(), at_once = cores > 2 ? cores : 2;
    struct probe_options options = {
        .ranks = ranks < at_once ? ranks : at_once, .seconds = PROBE_SECONDS, .layout = layout, .setting = &setup->setting};
    struct probe_result result;
    talk(call, 0, "probing: kernels and exchanges of this job, %d ranks at the same time", options.ranks);
    if (ranks > cores)
        talk(call, 0, "%d ranks share %d cores and take turns: the prediction is rough, above all of single operations", ranks,
             cores);
    enum status status = probe_cpu(&options, &result, &call->diags);
    if (status != STATUS_OK)
        return status;
    probe_fit(&options, &result, ranks, &setup->experiment.cluster);
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

enum status validate_setup(struct invocation *call, struct job_setup *setup, bool *probed)
{
    struct experiment *experiment = &setup->experiment;
    enum status status = load(call, experiment);
    if (status == STATUS_OK)
        status = count_ranks(call, experiment);
    if (status != STATUS_OK)
        return status;
    *probed = !option_text(call, "cluster") && !option_text(call, "gpu");
    bool nothing_said = !experiment->layout.given && !option_given(call, "gpus") && !call->n_operands;
    if (nothing_said) {
        snprintf(experiment->layout.text, sizeof experiment->layout.text, "tp=2,pp=2");
        experiment->layout.given = true;
    }
    make_executable(call, experiment);
    stand_in(&experiment->cluster, experiment->gpus);
    setup->setting = experiment_setting(experiment);
    setup->chosen = !experiment->layout.given;
    status = layout_choose(experiment, &setup->layout, &call->diags);
    if (status == STATUS_OK)
        status = runtime_supports(&setup->layout, &setup->setting, &call->diags);
    if (status == STATUS_OK && *probed)
        status = measure(call, &setup->layout, setup);
    char text[192];
    if (status == STATUS_OK)
        talk(call, 0, "layout: %s%s", setup->chosen ? "auto chose " : "", layout_format(&setup->layout, text, sizeof text));
    return status;
}
