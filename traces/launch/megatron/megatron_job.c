/* megatron_job.c - translates arguments for precision, features, recomputation and offloading. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/units.h"
#include "traces/launch/megatron/megatron_translate_internal.h"

/* --- precision --- */

static enum precision eight_bits(struct translation *m)
{
    if (translate_is(m, ARGUMENT_FP8_RECIPE, "mxfp8"))
        return PRECISION_MXFP8;
    if (translate_is(m, ARGUMENT_FP8_RECIPE, "blockwise"))
        translate_not_modelled(m, ARGUMENT_FP8_RECIPE, "a scale per block; msim assumes one per tensor");
    if (translate_is(m, ARGUMENT_FP8_RECIPE, "rowwise") || translate_is(m, ARGUMENT_FP8_RECIPE, "rowwise_with_gw_hp"))
        translate_not_modelled(m, ARGUMENT_FP8_RECIPE, "a scale per row; msim assumes one per tensor");
    return PRECISION_FP8;
}

static void read_precision(struct translation *m)
{
    static const enum argument eights[] = {ARGUMENT_FP8, ARGUMENT_FP8_HYBRID, ARGUMENT_FP8_E4M3};
    struct job *job = &m->description->job.job;
    enum argument by = translate_true(m, ARGUMENT_FP16) ? ARGUMENT_FP16 : ARGUMENT_BF16;
    bool sixteen = translate_true(m, by);
    job->precision = !sixteen ? PRECISION_FP32 : by == ARGUMENT_FP16 ? PRECISION_FP16 : PRECISION_BF16;
    for (size_t i = 0; i < sizeof eights / sizeof eights[0]; i++)
        if (eights[i] == ARGUMENT_FP8 ? translate_has(m, eights[i]) : translate_true(m, eights[i])) {
            by = eights[i];
            job->precision = eight_bits(m);
        }
    if (translate_has(m, ARGUMENT_FP4)) {
        by = ARGUMENT_FP4;
        job->precision = PRECISION_NVFP4;
    }
    translate_from(m, "job.precision", by);
}

/* In bf16, DeepSpeed also reduces gradients in bf16. Without a ZeRO stage, its optimizer sums them in fp32, unless
 * grad_accum_dtype specifies a type (BF16_Optimizer, from memory). */
static bool sums_by_optimizer(struct translation *m)
{
    const char *spelling = m->arguments->of[ARGUMENT_GRADIENTS_BF16].spelling;
    return translate_deepspeed_alone(m) && spelling && !strstr(spelling, "grad_accum_dtype");
}

/* With bf16 weights, gradients are summed and reduced in fp32 by default; with fp16 weights only if the arguments specify it.
 * In other frameworks fp32 gradients apply to all precisions. */
static void read_gradients(struct translation *m)
{
    struct job *job = &m->description->job.job;
    bool fp16 = translate_true(m, ARGUMENT_FP16);
    enum argument by = fp16 ? ARGUMENT_GRADIENTS_FP32 : ARGUMENT_GRADIENTS_BF16;
    job->gradient_precision = PRECISION_FP32;
    if (fp16 && !translate_true(m, ARGUMENT_GRADIENTS_FP32))
        job->gradient_precision = PRECISION_FP16;
    else if (!fp16 && (job->precision != PRECISION_FP32 || !m->arguments->foreign) &&
             translate_true(m, ARGUMENT_GRADIENTS_BF16) && !sums_by_optimizer(m))
        job->gradient_precision = PRECISION_BF16;
    translate_from(m, "job.gradient_precision", by);
}

/* As Megatron-LM, torch and JAX call them, and as libraries count bits; -1: none of these. */
static int moment_width(const char *text)
{
    static const struct {
        const char *name;
        enum precision precision;
    } names[] = {{"fp32", PRECISION_FP32},     {"float32", PRECISION_FP32}, {"float", PRECISION_FP32},   {"bf16", PRECISION_BF16},
                 {"bfloat16", PRECISION_BF16}, {"fp16", PRECISION_FP16},    {"float16", PRECISION_FP16}, {"half", PRECISION_FP16},
                 {"fp8", PRECISION_FP8},       {"uint8", PRECISION_FP8},    {"8 bits", PRECISION_FP8}};
    text += strncmp(text, "torch.", 6) == 0 ? 6 : 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i].name) == 0)
            return (int)names[i].precision;
    return -1;
}

static enum precision read_moment(struct translation *m, enum argument argument)
{
    const char *text = translate_text(m, argument);
    int width = text ? moment_width(text) : PRECISION_FP32;
    if (width < 0)
        translate_not_modelled(m, argument, "a moment of the optimizer in %.40s; msim assumes fp32", text);
    return width < 0 ? PRECISION_FP32 : (enum precision)width;
}

/* Both of Adam's moments are kept alike here: of two widths the larger one is taken, so that memory is not less than it is. */
static void read_moments(struct translation *m)
{
    static const int bytes[N_PRECISIONS] = {
        [PRECISION_FP32] = 4, [PRECISION_BF16] = 2, [PRECISION_FP16] = 2, [PRECISION_FP8] = 1};
    struct job *job = &m->description->job.job;
    const enum precision first = read_moment(m, ARGUMENT_MOMENT), second = read_moment(m, ARGUMENT_MOMENT2);
    bool one = job->optimizer == OPTIMIZER_SGD, wider = !one && bytes[second] > bytes[first];
    job->moment_precision = wider ? second : first;
    if (!one && first != second)
        translate_not_modelled(m, wider ? ARGUMENT_MOMENT : ARGUMENT_MOMENT2,
                               "the optimizer's first moment in %s and its second in %s; msim assumes %s for both",
                               precision_name(first), precision_name(second), precision_name(job->moment_precision));
    if (job->moment_precision != PRECISION_FP32)
        translate_from(m, "job.moment_precision", wider ? ARGUMENT_MOMENT2 : ARGUMENT_MOMENT);
}

/* --- features --- */

/* Does it say what was no argument any more when Transformer Engine became the default (Megatron-Core 0.6)? */
static bool is_old(struct translation *m)
{
    static const enum argument gone[] = {ARGUMENT_DEEPSPEED, ARGUMENT_DDP_IMPLEMENTATION, ARGUMENT_DATA_IMPLEMENTATION,
                                         ARGUMENT_CHECKPOINT_ACTIVATIONS, ARGUMENT_CHECKPOINT_METHOD};
    bool old = m->arguments->logged;
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
        old |= megatron_given(m->arguments, gone[i]);
    return old;
}

/* Transformer Engine's attention is one kernel by default; local modules hold the scores unless --use-flash-attn. */
static bool is_flash(struct translation *m)
{
    bool old = is_old(m) && !megatron_given(m->arguments, ARGUMENT_IMPLEMENTATION);
    if (translate_true(m, ARGUMENT_FLASH))
        return true;
    if (old || translate_is(m, ARGUMENT_IMPLEMENTATION, "local"))
        return false;
    return !translate_is(m, ARGUMENT_ATTENTION, "unfused") && !translate_is(m, ARGUMENT_ATTENTION, "local") &&
           !translate_is(m, ARGUMENT_ATTENTION, "AttnBackend.unfused") &&
           !translate_is(m, ARGUMENT_ATTENTION, "AttnBackend.local");
}

static bool is_fused(struct translation *m)
{
    enum argument activation = m->description->job.model.gated_mlp ? ARGUMENT_NO_SWIGLU_FUSION : ARGUMENT_NO_GELU_FUSION;
    return translate_usual(m, activation) || translate_usual(m, ARGUMENT_NO_DROPOUT_FUSION);
}

static bool overlaps_replicas(struct translation *m)
{
    const struct layout *l = &m->description->job.layout;
    bool gradients = translate_true(m, ARGUMENT_GRADIENT_OVERLAP) || l->zero == 3;
    bool parameters = translate_true(m, ARGUMENT_PARAMETER_OVERLAP) || l->zero == 3 || l->zero == 0;
    if (gradients && !parameters && l->dp > 1)
        translate_not_modelled(
            m, ARGUMENT_PARAMETER_OVERLAP,
            "not set: the job gathers parameters after the step; msim assumes that it overlaps this exchange as well");
    return gradients;
}

static bool uses_graphs(struct translation *m)
{
    bool named = megatron_given(m->arguments, ARGUMENT_GRAPHS) && !translate_is(m, ARGUMENT_GRAPHS, "none");
    return named || translate_true(m, ARGUMENT_GRAPHS_LOCAL) || translate_true(m, ARGUMENT_GRAPHS_OUTSIDE);
}

/* Megatron-Core's `linear` is the projection and the loss in one kernel, whose backward pass computes the logits again. */
static feature_set loss_of(struct translation *m)
{
    if (translate_true(m, ARGUMENT_LOSS_CUT))
        return FEATURE_BIT(CUT_LOSS);
    if (translate_true(m, ARGUMENT_LOSS_BY_CHUNKS))
        return FEATURE_BIT(FUSED_LINEAR_LOSS);
    if (!translate_true(m, ARGUMENT_LOSS_FUSION))
        return translate_true(m, ARGUMENT_LOSS_EAGER) && !translate_true(m, ARGUMENT_LOSS_COMPILED) ? FEATURE_BIT(EAGER_LOSS) : 0;
    return translate_is(m, ARGUMENT_LOSS_FUSION_BY, "linear") ? FEATURE_BIT(CUT_LOSS) : FEATURE_BIT(FUSED_LOSS);
}

static void read_features(struct translation *m)
{
    const struct layout *l = &m->description->job.layout;
    bool chunked = l->pp > 1 && l->vpp > 1 && l->schedule == SCHEDULE_INTERLEAVED;
    bool whole = l->tp > 1 && l->pp > 1 && !l->sequence_parallel; /* each rank of tp would send the same */
    const struct {
        bool on;
        feature_set bit;
    } features[] = {
        {is_flash(m), FEATURE_BIT(FLASH_ATTENTION2)},
        {is_fused(m), FEATURE_BIT(FUSED_OPS)},
        {l->tp > 1 && translate_true(m, ARGUMENT_TP_OVERLAP), FEATURE_BIT(TP_OVERLAP)},
        {chunked && translate_usual(m, ARGUMENT_NO_PP_OVERLAP) &&
             (!m->arguments->logged || megatron_given(m->arguments, ARGUMENT_NO_PP_OVERLAP)),
         FEATURE_BIT(PP_OVERLAP)},
        {overlaps_replicas(m), FEATURE_BIT(DP_OVERLAP)},
        {whole && translate_usual(m, ARGUMENT_NO_SCATTER_GATHER), FEATURE_BIT(SCATTER_GATHER_P2P)},
        {translate_int(m, ARGUMENT_WORKERS, 0, 2) > 0, FEATURE_BIT(ASYNC_DATA)},
        {uses_graphs(m), FEATURE_BIT(CUDA_GRAPHS)},
        {translate_true(m, ARGUMENT_COMPILE), FEATURE_BIT(COMPILE)},
        {l->tp > 1 && translate_true(m, ARGUMENT_ASYNC_TP), FEATURE_BIT(ASYNC_TP)},
        {translate_true(m, ARGUMENT_EP_OVERLAP), FEATURE_BIT(EP_OVERLAP)},
        {translate_true(m, ARGUMENT_FP8_INPUT_STORE), FEATURE_BIT(FP8_ACTIVATION_INPUT)},
    };
    feature_set set = loss_of(m);
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++)
        set |= features[i].on ? features[i].bit : 0;
    m->description->job.job.features = m->description->job.layout.features = set;
    const char *attention = !(set & FEATURE_BIT(FLASH_ATTENTION2)) ? "attention by scores in memory"
                            : megatron_given(m->arguments, ARGUMENT_IMPLEMENTATION)
                                ? m->arguments->foreign ? "attention in one kernel" : "attention by --transformer-impl"
                                : "Transformer Engine's attention by default";
    launch_originate(m->description, "job.features", "fusions, overlaps; %s", attention);
}

static void read_budget(struct translation *m)
{
    struct job *job = &m->description->job.job;
    enum argument by = translate_has(m, ARGUMENT_TRAIN_TOKENS)    ? ARGUMENT_TRAIN_TOKENS
                       : translate_has(m, ARGUMENT_TRAIN_SAMPLES) ? ARGUMENT_TRAIN_SAMPLES
                                                                  : ARGUMENT_TRAIN_ITERS;
    double samples;
    if (!translate_has(m, by) || !megatron_number(&m->arguments->of[by], &megatron_rows[by], 0, 1e15, &samples, m->diags))
        return;
    samples *= by == ARGUMENT_TRAIN_ITERS ? (double)job->global_batch : 1;
    job->tokens = by == ARGUMENT_TRAIN_TOKENS ? samples : samples * (double)job->seq_len;
    if (job->tokens > 0 && job->tokens <= 1e18)
        translate_from(m, "job.tokens", by);
    else
        job->tokens = 0;
}

void translate_job(struct translation *m)
{
    read_precision(m);
    read_gradients(m);
    read_moments(m);
    read_features(m);
    read_budget(m);
}

/* --- recomputation --- */

static int64_t layers_of_a_chunk(const struct translation *m)
{
    const struct launch_job *job = &m->description->job;
    int64_t stages = (int64_t)job->layout.pp * job->layout.vpp, most = (job->model.layers + stages - 1) / stages;
    return most < RECOMPUTE_LAYERS_MAX ? most : RECOMPUTE_LAYERS_MAX;
}

/* Whole layers, N of each chunk: the first N (block), or all in groups of N (uniform). A chunk with at most N layers is repeated
 * as a whole. */
static struct recompute whole_layers(struct translation *m)
{
    const struct launch_job *job = &m->description->job;
    const struct layout *l = &job->layout;
    int64_t n = translate_int(m, ARGUMENT_RECOMPUTE_LAYERS, 0, 1), most = layers_of_a_chunk(m);
    bool block = translate_is(m, ARGUMENT_RECOMPUTE_METHOD, "block");
    if (block && n == 0)
        return (struct recompute){.what = RECOMPUTE_NONE};
    if ((block && n >= most) || (!block && n <= 1))
        return (struct recompute){.what = RECOMPUTE_FULL};
    if (!block && (job->model.mtp_layers || l->zero == 3)) {
        translate_not_modelled(m, ARGUMENT_RECOMPUTE_LAYERS, "%lld layers at once with %s; msim assumes each by itself",
                               (long long)n, l->zero == 3 ? "sharded weights" : "prediction modules");
        return (struct recompute){.what = RECOMPUTE_FULL};
    }
    return (struct recompute){RECOMPUTE_FULL, block ? RECOMPUTE_FIRST : RECOMPUTE_GROUPS, (int)(n < most ? n : most)};
}

/* Every n-th layer of a chunk, whole: PyTorch's other way to be selective. "op" is the one that keeps products. */
static struct recompute layers_between(struct translation *m)
{
    if (translate_is(m, ARGUMENT_LAYERS_BETWEEN, "op"))
        return (struct recompute){.what = RECOMPUTE_SELECTIVE};
    int64_t n = translate_int(m, ARGUMENT_LAYERS_BETWEEN, 1, 1);
    if (n > layers_of_a_chunk(m))
        return (struct recompute){.what = RECOMPUTE_NONE};
    return n > 1 ? (struct recompute){RECOMPUTE_FULL, RECOMPUTE_EVERY, (int)n} : (struct recompute){.what = RECOMPUTE_FULL};
}

/* Adds a module by the name that Megatron has for it; no short words, and none of the words for whole layers. */
static void add_module(struct translation *m, const char *name, int *set)
{
    char hint[160];
    struct recompute module;
    const char *const *names = recompute_words + N_RECOMPUTES;
    for (int i = 0; i < N_RECOMPUTE_MODULES; i++)
        if (strcmp(name, names[i]) == 0 && recompute_parse(name, &module, NULL, 0)) {
            *set |= (int)module.what;
            return;
        }
    translate_not_modelled(m, ARGUMENT_RECOMPUTE_MODULES, "'%s' is unknown; %s", name,
                           name_hint(name, names, N_RECOMPUTE_MODULES,
                                     "known are core_attn, layernorm, mla_up_proj, mlp_act, moe_act, mlp, shared_experts, moe",
                                     hint, sizeof hint));
}

/* Names between blanks, or as a log has them: ['core_attn', 'mlp']. */
static enum recompute_what modules_of(struct translation *m)
{
    const char *text = translate_text(m, ARGUMENT_RECOMPUTE_MODULES);
    int set = 0;
    for (const char *p = text ? text : ""; *(p += strspn(p, " ,'\"[]"));) {
        char name[40];
        size_t n = strcspn(p, " ,'\"[]");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        add_module(m, name, &set);
        p += n;
    }
    set &= ~0u & (unsigned)layout_modules_of(&m->description->job.model);
    return set ? (enum recompute_what)set : RECOMPUTE_SELECTIVE;
}

static void read_recompute(struct translation *m)
{
    struct layout *l = &m->description->job.layout;
    enum argument by = ARGUMENT_RECOMPUTE;
    l->recompute = (struct recompute){.what = RECOMPUTE_NONE};
    if (translate_is(m, ARGUMENT_RECOMPUTE, "full")) {
        l->recompute = whole_layers(m);
    } else if (translate_is(m, ARGUMENT_RECOMPUTE, "selective") && translate_has(m, ARGUMENT_LAYERS_BETWEEN)) {
        l->recompute = layers_between(m);
        by = ARGUMENT_LAYERS_BETWEEN;
    } else if (translate_is(m, ARGUMENT_RECOMPUTE, "selective")) {
        l->recompute.what = modules_of(m);
        by = megatron_given(m->arguments, ARGUMENT_RECOMPUTE_MODULES) ? ARGUMENT_RECOMPUTE_MODULES : by;
    } else if (translate_true(m, by = ARGUMENT_RECOMPUTE_SELECTIVE)) {
        l->recompute.what = modules_of(m);
    } else if (translate_true(m, by = ARGUMENT_CHECKPOINT_ACTIVATIONS) || translate_has(m, by = ARGUMENT_CHECKPOINT_METHOD)) {
        l->recompute.what = RECOMPUTE_FULL;
    } else {
        by = ARGUMENT_RECOMPUTE;
    }
    translate_from(m, "layout.recompute", by);
}

/* --- offloading --- */

static const struct offload none = {.of = {{0}}};

/* Does DeepSpeed's configuration name a device to offload to? */
static bool names_device(struct translation *m, enum argument by)
{
    if (translate_is(m, by, "nvme"))
        translate_not_modelled(m, by, "on disks; msim assumes the host's memory");
    return megatron_given(m->arguments, by) && !translate_is(m, by, "none");
}

static struct offload read_offloaded_states(struct translation *m)
{
    const struct megatron_value *fraction = &m->arguments->of[ARGUMENT_OFFLOAD_FRACTION];
    double share = 1;
    enum argument by = ARGUMENT_OFFLOAD_OPTIMIZER_TO;
    if (!names_device(m, by) && !translate_true(m, by = ARGUMENT_OFFLOAD_OPTIMIZER_OLD) &&
        !translate_true(m, by = ARGUMENT_OFFLOAD_OPTIMIZER))
        return none;
    translate_from(m, "layout.offload", by);
    if (!fraction->unknown && !megatron_number(fraction, &megatron_rows[ARGUMENT_OFFLOAD_FRACTION], 0, 1, &share, m->diags))
        return none;
    int amount = (int)rint(100 * share);
    if (fabs(amount - 100 * share) > 1e-6)
        translate_not_modelled(m, ARGUMENT_OFFLOAD_FRACTION, "%s of the optimizer's states; msim assumes %d %% of them",
                               fraction->text, amount);
    return (struct offload){.of = {[OFFLOAD_OPTIMIZER] = {.percent = (int16_t)amount}}};
}

/* Parameters follow all of their states, and are fetched for ZeRO-3's gathers. */
static struct offload read_offloaded_parameters(struct translation *m, struct offload states)
{
    enum argument by = ARGUMENT_OFFLOAD_PARAMETERS_TO;
    if (!names_device(m, by))
        return none;
    int zero = m->description->job.layout.zero;
    if (zero == 3 && offload_share(&states, OFFLOAD_OPTIMIZER) >= 1)
        return offload_all(OFFLOAD_PARAMETERS);
    if (zero == 3)
        translate_not_modelled(m, by,
                               "the host keeps weights without their optimizer states; msim assumes that the GPU keeps both");
    else
        translate_not_modelled(m, by, "not with ZeRO stage %d; msim assumes that the GPU keeps the weights", zero);
    return none;
}

bool translate_offloads_none(struct translation *m)
{
    enum argument by = ARGUMENT_OFFLOAD_ACTIVATIONS;
    return m->arguments->foreign && megatron_given(m->arguments, by) && !translate_true(m, by);
}

static struct offload read_offloaded_activations(struct translation *m)
{
    int64_t layers = translate_offloads_none(m) ? 0 : translate_int(m, ARGUMENT_OFFLOAD_LAYERS, 0, 0);
    if (!translate_true(m, ARGUMENT_OFFLOAD_ACTIVATIONS) && layers == 0)
        return none;
    translate_from(m, "layout.offload", ARGUMENT_OFFLOAD_LAYERS);
    bool all = layers == 0 || layers + 1 >= m->description->job.model.layers || layers > OFFLOAD_LAYERS_MAX;
    if (all)
        return offload_all(OFFLOAD_ACTIVATIONS);
    return (struct offload){.of = {[OFFLOAD_ACTIVATIONS] = {.layers = (int16_t)layers}}};
}

static void read_offload(struct translation *m)
{
    struct offload states = read_offloaded_states(m);
    struct offload kept = offload_join(states, read_offloaded_parameters(m, states));
    m->description->job.layout.offload = offload_join(kept, read_offloaded_activations(m));
}

void translate_memory(struct translation *m)
{
    read_recompute(m);
    read_offload(m);
}
