#include "traces/launch/megatron/megatron_export.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "traces/launch/megatron/megatron_translate.h"

struct writing {
    const struct launch_job *job;
    struct megatron_export *to;
};

/* --- values --- */

static void set(struct writing *w, enum argument argument, const char *format, ...) PRINTF_LIKE(3, 4);
static void set(struct writing *w, enum argument argument, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = arena_new(&w->to->arena, (size_t)n + 1, 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)n + 1, format, arguments);
    va_end(arguments);
    w->to->arguments.of[argument].text = text;
}

/* A flag that is there. */
static void flag(struct writing *w, enum argument argument)
{
    set(w, argument, "%s", megatron_rows[argument].type == ARGUMENT_FALSE ? "false" : "true");
}

static void leave_out(struct writing *w, enum argument argument)
{
    w->to->arguments.of[argument].text = NULL;
}

static void lose_all(struct megatron_export *e, const char *format, va_list arguments)
{
    if (e->n_lost < EXPORT_LOST)
        vsnprintf(e->lost[e->n_lost++], EXPORT_TEXT, format, arguments);
}

static void lose(struct writing *w, const char *format, ...) PRINTF_LIKE(2, 3);
static void lose(struct writing *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    lose_all(w->to, format, arguments);
    va_end(arguments);
}

/* --- arguments that mean one thing --- */

static void write_number(struct writing *w, enum argument argument, const void *member)
{
    const struct argument_row *row = &megatron_rows[argument];
    int whole;
    int64_t wide;
    double real;
    if (row->type == ARGUMENT_REAL) {
        memcpy(&real, member, sizeof real);
        if (!row->fallback || real < strtod(row->fallback, NULL) || real > strtod(row->fallback, NULL))
            set(w, argument, "%.15g", real);
        return;
    }
    memcpy(&whole, member, sizeof whole);
    wide = whole;
    if (row->size == sizeof wide)
        memcpy(&wide, member, sizeof wide);
    if (wide != (row->fallback ? strtoll(row->fallback, NULL, 10) : 0))
        set(w, argument, "%lld", (long long)wide);
}

static void write_row(struct writing *w, enum argument argument)
{
    const struct argument_row *row = &megatron_rows[argument];
    const void *member = (const char *)w->job + row->offset;
    bool truth;
    int choice;
    switch (row->map) {
    case MAP_APART: return;
    case MAP_NUMBER: write_number(w, argument, member); return;
    case MAP_CHOICE:
        memcpy(&choice, member, sizeof choice);
        if (strcmp(row->choices[choice], row->fallback) != 0)
            set(w, argument, "%s", row->choices[choice]);
        return;
    case MAP_BOOL:
    case MAP_NOT:
        memcpy(&truth, member, sizeof truth);
        if ((truth != (row->map == MAP_NOT)) == (row->type == ARGUMENT_TRUE))
            flag(w, argument);
    }
}

/* Megatron-LM's hybrids are of Mamba-2's mixers and of layers that are one part. */
static bool writes_pattern(const struct writing *w)
{
    const struct transformer *model = &w->job->model;
    return transformer_is_hybrid(model) && !strpbrk(model->layer_pattern, "amp") &&
           (!model->mixer.heads || model->mixer.kind == MIXER_MAMBA2);
}

static void write_rows(struct writing *w)
{
    const bool active[N_WHENS] = {[WHEN_ALWAYS] = true,
                                  [WHEN_MIXTURE] = w->job->model.moe.experts > 0,
                                  [WHEN_LATENT] = w->job->model.attention == ATTENTION_LATENT,
                                  [WHEN_CONTEXT] = w->job->layout.cp > 1,
                                  [WHEN_HYBRID] = writes_pattern(w),
                                  [WHEN_ROTARY] = w->job->model.position == POSITION_ROTARY && w->job->model.rope_theta > 0};
    for (int i = 0; i < N_ARGUMENTS; i++)
        if (active[megatron_rows[i].when])
            write_row(w, (enum argument)i);
}

/* --- the pipeline --- */

/* Each virtual stage's layers as one text: "Et*3|t*2|...|mL". */
static void write_stage_layout(struct writing *w)
{
    const struct launch_job *job = w->job;
    int stages = layout_virtual_stages(&job->layout);
    size_t size = 16 * (size_t)stages + 64;
    char *text = memory_new(size, 1);
    for (int v = 0; v < stages; v++) {
        int n = layout_layers(&job->layout, &job->model, v).count;
        text_append(text, size, "%s%s", v ? "|" : "", v ? "" : "E");
        if (n)
            text_append(text, size, n > 1 ? "t*%d" : "t", n);
    }
    for (int i = 0; i < job->model.mtp_layers; i++)
        text_append(text, size, "m");
    text_append(text, size, "L");
    set(w, ARGUMENT_STAGE_LAYOUT, "%s", text);
    free(text);
}

/* Do virtual stages have `each` layers, the first and the last one fewer by these numbers? */
static bool divides_so(const struct launch_job *job, int each, int less)
{
    int stages = layout_virtual_stages(&job->layout);
    for (int v = 0; v < stages; v++)
        if (layout_layers(&job->layout, &job->model, v).count != each - (v == 0 || v == stages - 1 ? less : 0))
            return false;
    return true;
}

static void write_stages(struct writing *w)
{
    const struct launch_job *job = w->job;
    const struct layout *l = &job->layout;
    int stages = layout_virtual_stages(l);
    if (l->pp == 1)
        return;
    int ends =
        !job->model.mtp_layers && (job->model.layers + 2) % stages == 0 && divides_so(job, (job->model.layers + 2) / stages, 1);
    bool even = !job->model.mtp_layers && job->model.layers % stages == 0 && divides_so(job, job->model.layers / stages, 0);
    if (!even && !ends) {
        write_stage_layout(w);
        return;
    }
    if (!even) {
        flag(w, ARGUMENT_EMBEDDING_COUNTS);
        flag(w, ARGUMENT_LOSS_COUNTS);
    }
    if (l->vpp > 1)
        set(w, ARGUMENT_CHUNK_LAYERS, "%d", (job->model.layers + (even ? 0 : 2)) / stages);
}

static void write_schedule(struct writing *w)
{
    const struct layout *l = &w->job->layout;
    switch (l->schedule) {
    case SCHEDULE_NONE:
    case SCHEDULE_1F1B:
    case SCHEDULE_INTERLEAVED: return;
    case SCHEDULE_ZBV: flag(w, ARGUMENT_ZERO_BUBBLE_V); /* fall through */
    case SCHEDULE_ZB1P:
    case SCHEDULE_ZB2P:
        flag(w, ARGUMENT_ZERO_BUBBLE);
        if (l->schedule == SCHEDULE_ZB2P)
            set(w, ARGUMENT_ZERO_BUBBLE_PENDING, "%d", 2 * l->pp);
        lose(w, "schedule %s: only the zero-bubble fork of Megatron-LM has it", schedule_name(l->schedule));
        return;
    default: lose(w, "schedule %s: Megatron-LM has no such schedule", schedule_name(l->schedule));
    }
}

/* --- the rest of the layout --- */

/* Of Muon's states Megatron-Core has one division, by whole parameters. */
static void write_muon_zero(struct writing *w)
{
    const struct layout *l = &w->job->layout;
    set(w, ARGUMENT_OPTIMIZER, "dist_muon");
    if (w->job->job.muon_shard != MUON_LAYER_WISE)
        lose(w, "muon_shard elements: one rank has the states of a whole parameter, and gradients are all-reduced");
    if (l->zero >= 2 || l->shard)
        lose(w, "zero %d%s: Muon's states alone are divided, among all replicas", l->zero, l->shard ? " with shard" : "");
}

static void write_zero(struct writing *w)
{
    int zero = w->job->layout.zero;
    if (zero >= 1 && w->job->job.optimizer == OPTIMIZER_MUON) {
        write_muon_zero(w);
        return;
    }
    if (zero >= 1)
        flag(w, ARGUMENT_DISTRIBUTED_OPTIMIZER);
    if (w->job->layout.shard)
        set(w, ARGUMENT_OPTIMIZER_INSTANCES, "%d", w->job->layout.dp * w->job->layout.cp / w->job->layout.shard);
    if (zero >= 2) {
        flag(w, ARGUMENT_MEGATRON_FSDP);
        set(w, ARGUMENT_SHARDING, "%s", megatron_shardings[zero]);
    }
}

/* Megatron-LM counts recomputed layers per chunk, too; it cannot recompute every N-th layer. */
static void write_recomputed_layers(struct writing *w)
{
    struct recompute r = w->job->layout.recompute;
    if (r.of == RECOMPUTE_EVERY)
        lose(w, "one layer in %d is recomputed: Megatron-LM recomputes the first ones of each chunk, or all", r.layers);
    set(w, ARGUMENT_RECOMPUTE_METHOD, r.of == RECOMPUTE_FIRST ? "block" : "uniform");
    set(w, ARGUMENT_RECOMPUTE_LAYERS, "%d", r.of == RECOMPUTE_FIRST || r.of == RECOMPUTE_GROUPS ? r.layers : 1);
}

static void write_recompute(struct writing *w)
{
    enum recompute_what recompute = w->job->layout.recompute.what;
    char modules[RECOMPUTE_TEXT];
    if (recompute == RECOMPUTE_NONE)
        return;
    set(w, ARGUMENT_RECOMPUTE, recompute == RECOMPUTE_FULL ? "full" : "selective");
    if (recompute == RECOMPUTE_FULL) {
        write_recomputed_layers(w);
    } else if (recompute != RECOMPUTE_SELECTIVE) {
        if (recompute & RECOMPUTE_MLP_ACT)
            lose(w, "recompute mlp_act: Megatron-LM has no such module");
        recompute_format((struct recompute){.what = (enum recompute_what)((int)recompute & ~RECOMPUTE_MLP_ACT)}, modules,
                         sizeof modules);
        for (char *p = modules; *p; p++)
            *p = *p == '+' ? ' ' : *p;
        if ((int)recompute & ~RECOMPUTE_MLP_ACT)
            set(w, ARGUMENT_RECOMPUTE_MODULES, "%s", modules);
        else
            leave_out(w, ARGUMENT_RECOMPUTE);
    }
}

/* Those who exchange heads stand together; the others' keys and values go around. */
static void write_context(struct writing *w)
{
    const struct layout *l = &w->job->layout;
    char text[CP_COMM_TEXT];
    int parts = layout_cp_heads(l);
    if (l->cp == 1 || l->cp_comm == CP_RING)
        return;
    if (parts == 1 || parts == l->cp) {
        set(w, ARGUMENT_CP_COMM, "%s", cp_comm_format(l->cp_comm, text, sizeof text));
        return;
    }
    set(w, ARGUMENT_CP_COMM, "a2a+p2p");
    set(w, ARGUMENT_CP_LEVELS, "%d %d", parts, layout_cp_keys(l));
    if (cp_comm_gathers(l->cp_comm))
        lose(w, "cp_comm %s: with an exchange of heads Megatron-LM has a ring", cp_comm_format(l->cp_comm, text, sizeof text));
}

static void write_layout(struct writing *w)
{
    const struct launch_job *job = w->job;
    const struct layout *l = &job->layout;
    write_context(w);
    write_schedule(w);
    write_stages(w);
    write_zero(w);
    write_recompute(w);
    if (job->model.moe.experts && layout_expert_tp(l) != l->tp)
        set(w, ARGUMENT_ETP, "%d", layout_expert_tp(l));
    if (layout_offloads(l, OFFLOAD_OPTIMIZER)) {
        flag(w, ARGUMENT_OFFLOAD_OPTIMIZER);
        flag(w, ARGUMENT_PRECISE_OPTIMIZER);
        if (offload_share(&l->offload, OFFLOAD_OPTIMIZER) < 1)
            set(w, ARGUMENT_OFFLOAD_FRACTION, "%.2f", offload_share(&l->offload, OFFLOAD_OPTIMIZER));
    }
    if (layout_offloads(l, OFFLOAD_ACTIVATIONS)) { /* of a stage; of all, the last one's stay */
        bool all = l->offload.of[OFFLOAD_ACTIVATIONS].percent == OFFLOAD_WHOLE;
        int but_last = job->model.layers > 1 ? job->model.layers - 1 : 1;
        int layers = offload_layers(&l->offload, (job->model.layers + l->pp - 1) / l->pp);
        set(w, ARGUMENT_OFFLOAD_LAYERS, "%d", all ? but_last : layers);
    }
    if (layout_offloads(l, OFFLOAD_PARAMETERS))
        lose(w, "offload parameters: Megatron-LM keeps weights on the GPU");
    if (job->model.moe.experts && l->tp > 1 && !l->sequence_parallel)
        lose(w, "no sequence_parallel: its mixtures of experts require it with tensor parallelism");
    if (job->gpus) {
        int per_node = job->gpus_per_node && job->gpus_per_node < job->gpus ? job->gpus_per_node : job->gpus;
        set(w, ARGUMENT_NODE_GPUS, "%d", per_node);
        set(w, ARGUMENT_NODES, "%d", job->gpus / per_node);
    }
}

/* --- the model --- */

static void write_vocabulary(struct writing *w)
{
    const struct launch_job *job = w->job;
    int64_t divisor = 128;
    while (divisor > 1 && job->model.vocab % (divisor * job->layout.tp) != 0)
        divisor /= 2;
    set(w, ARGUMENT_VOCAB, "%lld", (long long)job->model.vocab);
    if (divisor != 128)
        set(w, ARGUMENT_VOCAB_DIVISOR, "%lld", (long long)divisor);
}

static void write_mixture(struct writing *w)
{
    const struct transformer *model = &w->job->model;
    const struct mixture *moe = &model->moe;
    if (!moe->experts)
        return;
    set(w, ARGUMENT_EXPERTS, "%d", moe->experts);
    int64_t shared = moe->shared_ffn ? moe->shared_ffn : moe->shared_experts * moe->expert_ffn;
    if (shared)
        set(w, ARGUMENT_SHARED_FFN, "%lld", (long long)shared);
    int every = moe->every > 1 ? moe->every : 1, periods = (model->layers - moe->first_dense_layers) / every;
    int rest = model->layers - moe->first_dense_layers - periods * every;
    if (transformer_is_hybrid(model))
        every = 1; /* its pattern says */
    if (every > 1)
        set(w, ARGUMENT_MIXTURE_FREQ, "([0]*%d+([0]*%d+[1])*%d+[0]*%d)", moe->first_dense_layers, every - 1, periods, rest);
    else if (moe->first_dense_layers)
        set(w, ARGUMENT_MIXTURE_FREQ, "([0]*%d+[1]*%d)", moe->first_dense_layers, periods);
    const struct expert_load *load = &w->job->job.load;
    if (load->capacity > 0)
        set(w, ARGUMENT_CAPACITY, "%.15g", load->capacity);
    if (load->capacity > 0 && load->padded)
        flag(w, ARGUMENT_PAD_TO_CAPACITY);
    if (load->busiest > 1)
        lose(w, "expert_load %.15g: no argument describes how even routing is", load->busiest);
    flag(w, ARGUMENT_GROUPED_GEMM);
    set(w, ARGUMENT_DISPATCHER, "alltoall");
}

static void write_hybrid(struct writing *w)
{
    enum { CONV = 4, CHUNK = 128 }; /* of its mixer */
    const struct transformer *model = &w->job->model;
    const struct state_mixer *mixer = &model->mixer;
    size_t period = strlen(model->layer_pattern);
    char letters[PATTERN_SIZE] = "";
    if (!transformer_is_hybrid(model))
        return;
    if (!writes_pattern(w) || model->layers >= PATTERN_SIZE) {
        lose(w,
             "layer_pattern %.24s: Megatron-LM has Mamba-2's mixers, attention, feed-forward parts and mixtures in layers of "
             "their "
             "own",
             model->layer_pattern);
        return;
    }
    for (int i = 0; i < model->layers; i++)
        letters[i] = model->layer_pattern[(size_t)i % period];
    flag(w, ARGUMENT_HYBRID);
    set(w, ARGUMENT_PATTERN, "%s", letters);
    if (mixer->heads && (mixer->conv != CONV || mixer->chunk != CHUNK))
        lose(w, "mixer.conv %d, mixer.chunk %d: Megatron-LM's are %d and %d", mixer->conv, mixer->chunk, CONV, CHUNK);
}

static void write_model(struct writing *w)
{
    const struct transformer *model = &w->job->model;
    if (model->attention == ATTENTION_LATENT) {
        flag(w, ARGUMENT_LATENT);
        flag(w, ARGUMENT_QK_NORM);
    } else if (model->kv_heads != model->heads) {
        flag(w, ARGUMENT_GROUPED_QUERIES);
        set(w, ARGUMENT_QUERY_GROUPS, "%d", model->kv_heads);
    }
    if (model->attention == ATTENTION_LATENT || (int64_t)model->head_dim * model->heads == model->hidden)
        leave_out(w, ARGUMENT_HEAD_DIM);
    if (model->linear_bias)
        leave_out(w, ARGUMENT_QKV_BIAS);
    if (model->window) {
        set(w, ARGUMENT_WINDOW, "%lld,0", (long long)model->window);
        if (model->window_every)
            set(w, ARGUMENT_WINDOW_EVERY, "%d", model->window_every);
    }
    if (model->position == POSITION_ALIBI)
        lose(w, "positions: only BLOOM's Megatron-DeepSpeed has alibi");
    if (model->mlp_limit > 0)
        lose(w, "mlp_limit %g: a clamp of the activation has an argument in few versions", model->mlp_limit);
    if (model->output_gate)
        lose(w, "output_gate: attention's output as it is");
    write_vocabulary(w);
    write_mixture(w);
    write_hybrid(w);
}

/* --- precision and features --- */

static void write_precision(struct writing *w)
{
    const struct job *job = &w->job->job;
    bool fp16 = job->precision == PRECISION_FP16;
    if (job->precision != PRECISION_FP32)
        flag(w, fp16 ? ARGUMENT_FP16 : ARGUMENT_BF16);
    if (job->precision == PRECISION_FP8)
        set(w, ARGUMENT_FP8, "hybrid");
    if (job->precision == PRECISION_MXFP8) {
        set(w, ARGUMENT_FP8, "e4m3");
        set(w, ARGUMENT_FP8_RECIPE, "mxfp8");
    }
    if (job->precision == PRECISION_NVFP4)
        set(w, ARGUMENT_FP4, "e2m1");
    if (fp16 && job->gradient_precision == PRECISION_FP32)
        flag(w, ARGUMENT_GRADIENTS_FP32);
    else if (!fp16 && job->gradient_precision == PRECISION_BF16)
        flag(w, ARGUMENT_GRADIENTS_BF16);
    else if (job->gradient_precision != (fp16 ? PRECISION_FP16 : PRECISION_FP32))
        lose(w, "gradients in %s with %s", precision_name(job->gradient_precision), precision_name(job->precision));
    if (job->tokens > 0)
        set(w, ARGUMENT_TRAIN_SAMPLES, "%.0f", job->tokens / (double)job->seq_len);
}

/* Moments that are narrower than the master weight: of Adam, and where it is divided. */
static void write_moments(struct writing *w)
{
    const struct job *job = &w->job->job;
    const char *name = precision_name(job->moment_precision);
    if (job->moment_precision == PRECISION_FP32)
        return;
    if (job->optimizer != OPTIMIZER_ADAM || w->job->layout.zero == 0) {
        lose(w, "the optimizer's moments in %s: %s", name,
             job->optimizer != OPTIMIZER_ADAM ? "only Adam's can be" : "only those of --use-distributed-optimizer can be");
        return;
    }
    flag(w, ARGUMENT_PRECISE_OPTIMIZER);
    set(w, ARGUMENT_MOMENT, "%s", name);
    set(w, ARGUMENT_MOMENT2, "%s", name);
}

/* Megatron-LM masks at the ends of what its data has for documents. */
static void write_documents(struct writing *w)
{
    if (!job_masks_documents(&w->job->job))
        return;
    flag(w, ARGUMENT_TOLD_DOCUMENTS);
    flag(w, ARGUMENT_TOLD_POSITIONS);
    lose(w, "the length of documents (%g tokens on average)", w->job->job.documents.mean);
}

/* Features of other stacks, and such as a layout has no use for in Megatron-LM. */
static void lose_features(struct writing *w, feature_set used)
{
    static const feature_set foreign = FEATURE_BIT(PARALLEL_BLOCK) | FEATURE_BIT(COMPILE) | FEATURE_BIT(ASYNC_TP) |
                                       FEATURE_BIT(FUSED_LINEAR_LOSS) | FEATURE_BIT(EAGER_LOSS) |
                                       FEATURE_BIT(FP12_ATTENTION_OUTPUT);
    const struct layout *l = &w->job->layout;
    for (int i = 0; i < N_FEATURES; i++)
        if (used & foreign & (feature_set)1 << i)
            lose(w, "%s: %s", feature_name((enum feature)i), "Megatron-LM has none");
    if (used & FEATURE_BIT(FP8_ACTIVATION_INPUT))
        lose(w,
             "fp8_activation_input: activation_func_fp8_input_store of the model's configuration, which older releases have no "
             "argument for");
    if ((used & FEATURE_BIT(SLIDING_WINDOW)) && !w->job->model.window)
        lose(w, "sliding_window: add --window-size with the width");
    if ((used & FEATURE_BIT(PP_OVERLAP)) && l->pp > 1 && l->schedule != SCHEDULE_INTERLEAVED)
        lose(w, "pp_overlap: only the interleaved schedule hides its messages");
    if ((used & FEATURE_BIT(TP_OVERLAP)) && l->tp > 1 && !l->sequence_parallel)
        lose(w, "tp_overlap: --tp-comm-overlap requires --sequence-parallel");
    if (!(used & FEATURE_BIT(DP_OVERLAP)) && l->zero == 3)
        lose(w, "no dp_overlap: FSDP overlaps its exchanges");
}

static void write_features(struct writing *w)
{
    const struct layout *l = &w->job->layout;
    feature_set used = w->job->job.features;
    if (!(used & FEATURES_FLASH))
        set(w, ARGUMENT_ATTENTION, "unfused");
    if (!(used & FEATURE_BIT(FUSED_OPS))) {
        flag(w, w->job->model.gated_mlp ? ARGUMENT_NO_SWIGLU_FUSION : ARGUMENT_NO_GELU_FUSION);
        flag(w, ARGUMENT_NO_DROPOUT_FUSION);
    }
    if ((used & FEATURE_BIT(TP_OVERLAP)) && l->tp > 1)
        flag(w, ARGUMENT_TP_OVERLAP);
    if (!(used & FEATURE_BIT(PP_OVERLAP)) && l->schedule == SCHEDULE_INTERLEAVED)
        flag(w, ARGUMENT_NO_PP_OVERLAP);
    if (used & FEATURE_BIT(DP_OVERLAP)) {
        flag(w, ARGUMENT_GRADIENT_OVERLAP);
        if (l->zero)
            flag(w, ARGUMENT_PARAMETER_OVERLAP);
    }
    if (!(used & FEATURE_BIT(SCATTER_GATHER_P2P)) && l->tp > 1 && l->pp > 1 && !l->sequence_parallel)
        flag(w, ARGUMENT_NO_SCATTER_GATHER);
    if (used & FEATURE_BIT(EP_OVERLAP))
        flag(w, ARGUMENT_EP_OVERLAP);
    if (used & FEATURE_BIT(CUDA_GRAPHS))
        set(w, ARGUMENT_GRAPHS, "local");
    if (used & FEATURES_LOSS & ~FEATURE_BIT(EAGER_LOSS))
        flag(w, ARGUMENT_LOSS_FUSION);
    if (used & FEATURE_BIT(CUT_LOSS))
        set(w, ARGUMENT_LOSS_FUSION_BY, "linear");
    if (!(used & FEATURE_BIT(ASYNC_DATA)))
        set(w, ARGUMENT_WORKERS, "0");
    if (w->job->job.dropout < 0.1 || w->job->job.dropout > 0.1)
        set(w, ARGUMENT_ATTENTION_DROPOUT, "%.15g", w->job->job.dropout);
    lose_features(w, used);
}

/* --- all together --- */

void megatron_export(const struct launch_job *job, struct megatron_export *export_)
{
    struct writing w = {job, export_};
    *export_ = (struct megatron_export){0};
    write_rows(&w);
    write_model(&w);
    write_layout(&w);
    write_precision(&w);
    write_features(&w);
    write_documents(&w);
    write_moments(&w);
    if (job->job.optimizer == OPTIMIZER_LAMB) { /* nor has what takes its arguments from here */
        lose(&w, "optimizer lamb: Adam, which has the same number of moments, replaces it");
        export_->arguments.of[ARGUMENT_OPTIMIZER].text = NULL;
    }
}

void megatron_export_lose(struct megatron_export *export_, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    lose_all(export_, format, arguments);
    va_end(arguments);
}

void megatron_export_free(struct megatron_export *export_)
{
    arena_free(&export_->arena);
}

static bool is_launchers(enum argument argument)
{
    return argument == ARGUMENT_NODES || argument == ARGUMENT_NODE_GPUS;
}

/* What a shell would read otherwise stands in quotes. */
static void write_argument(const struct argument_row *row, const char *text, FILE *out)
{
    bool plain = strpbrk(text, "*|()[]'") == NULL;
    if (row->type == ARGUMENT_TRUE || row->type == ARGUMENT_FALSE)
        fprintf(out, "    --%s\n", row->flag);
    else
        fprintf(out, plain ? "    --%s %s\n" : "    --%s '%s'\n", row->flag, text);
}

/* The youngest of the arguments that are written, and since which release of Megatron-Core it is there. */
static void write_youngest(const struct megatron_export *e, FILE *out)
{
    const struct argument_row *youngest = NULL;
    long newest = 0;
    for (int i = 0; i < N_ARGUMENTS; i++) {
        const struct argument_row *row = &megatron_rows[i];
        bool released = e->arguments.of[i].text && row->since && strncmp(row->since, "0.", 2) == 0;
        long release = released ? strtol(row->since + 2, NULL, 10) : 0;
        if (release > newest) {
            newest = release;
            youngest = row;
        }
    }
    if (youngest)
        fprintf(out, "# Requires Megatron-Core %s or later (--%s).\n", youngest->since, youngest->flag);
}

void megatron_write_script(const struct launch_job *job, const char *const *heading, int n_heading, FILE *out,
                           struct diags *diags)
{
    struct megatron_export *e = memory_new(1, sizeof *e);
    megatron_export(job, e);
    if (job_adapts(&job->job))
        megatron_export_lose(e, "adapters of rank %lld: Megatron-LM's pretraining trains all weights; NeMo has them",
                             (long long)job->job.adapter.rank);
    fputs("#!/bin/bash\n", out);
    for (int i = 0; i < n_heading; i++)
        fprintf(out, "# %s\n", heading[i]);
    for (int i = 0; i < e->n_lost; i++) {
        fprintf(out, "# Not exported: %s.\n", e->lost[i]);
        diag_warning(diags, PLACE_NONE, "--export: no argument expresses %s", e->lost[i]);
    }
    write_youngest(e, out);
    fputs("ARGUMENTS=(\n", out);
    for (int i = 0; i < N_ARGUMENTS; i++)
        if (e->arguments.of[i].text && !is_launchers((enum argument)i))
            write_argument(&megatron_rows[i], e->arguments.of[i].text, out);
    fputs(")\n", out);
    if (job->layout.zero < 2)
        fputs("export CUDA_DEVICE_MAX_CONNECTIONS=1\n", out);
    fprintf(out, "torchrun --nproc-per-node %s --nnodes %s pretrain_%s.py \"${ARGUMENTS[@]}\" \"$@\"\n",
            e->arguments.of[ARGUMENT_NODE_GPUS].text, e->arguments.of[ARGUMENT_NODES].text,
            e->arguments.of[ARGUMENT_PATTERN].text ? "mamba" : "gpt");
    megatron_export_free(e);
    free(e);
}
