/* megatron_export_model.c - the arguments of a model and its job: sizes, precision, features, documents. */
#include "traces/launch/megatron/megatron_export_internal.h"

#include <string.h>

/* Megatron-LM's hybrids are of Mamba-2's mixers and of layers that are one part. */
bool exports_pattern(const struct export_writer *w)
{
    const struct transformer *model = &w->job->model;
    return transformer_is_hybrid(model) && !strpbrk(model->layer_pattern, "amp") &&
           (!model->mixer.heads || model->mixer.kind == MIXER_MAMBA2);
}

/* --- the model --- */

static void write_vocabulary(struct export_writer *w)
{
    const struct launch_job *job = w->job;
    int64_t divisor = 128;
    while (divisor > 1 && job->model.vocab % (divisor * job->layout.tp) != 0)
        divisor /= 2;
    export_set(w, ARGUMENT_VOCAB, "%lld", (long long)job->model.vocab);
    if (divisor != 128)
        export_set(w, ARGUMENT_VOCAB_DIVISOR, "%lld", (long long)divisor);
}

/* Shapes and vectors of newer models, which need a model provider of their own. */
static void lose_shapes(struct export_writer *w, const struct transformer *m)
{
    const struct {
        bool has;
        const char *what;
    } details[] = {
        {m->output_gate, "output_gate: attention's output as it is"},
        {m->windowed.kv_heads || m->windowed.head_dim || m->windowed.heads, "windowed: all layers have the same heads"},
        {m->value_dim && m->value_dim != m->head_dim, "value_dim: values as wide as keys"},
        {m->query_rank > 0, "query_rank: queries by one matrix"},
        {m->values_are_keys || m->shared_kv_layers, "keys and values of every layer"},
        {m->indexer.heads > 0, "indexer: attention to all keys"},
        {m->layer_embedding > 0, "layer_embedding: tokens have one vector"},
        {m->moe.zero_experts > 0, "zero_experts: all experts compute"},
        {m->moe.last_dense_layers > 0, "last_dense_layers: the last layers are mixtures"},
        {m->layer_norms == 4 || m->layer_norms == 1, "layer_norms: two norms in each layer"},
        {m->qk_norm_whole, "qk_norm_whole: a norm for each head"},
        {m->attention_sinks, "attention_sinks: a softmax without them"},
        {m->output_bias && !m->linear_bias, "output_bias: a projection without a bias"},
        {m->moe.shared_gate, "shared_gate: a shared expert without a gate"},
    };
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        if (details[i].has)
            export_lose(w, "%s", details[i].what);
}

static void write_mixture(struct export_writer *w)
{
    const struct transformer *model = &w->job->model;
    const struct mixture *moe = &model->moe;
    if (!moe->experts)
        return;
    export_set(w, ARGUMENT_EXPERTS, "%d", moe->experts);
    int64_t shared = moe->shared_ffn ? moe->shared_ffn : moe->shared_experts * moe->expert_ffn;
    if (shared)
        export_set(w, ARGUMENT_SHARED_FFN, "%lld", (long long)shared);
    int every = moe->every > 1 ? moe->every : 1, periods = (model->layers - moe->first_dense_layers) / every;
    int rest = model->layers - moe->first_dense_layers - periods * every;
    if (transformer_is_hybrid(model))
        every = 1; /* its pattern says */
    if (every > 1)
        export_set(w, ARGUMENT_MIXTURE_FREQ, "([0]*%d+([0]*%d+[1])*%d+[0]*%d)", moe->first_dense_layers, every - 1, periods,
                   rest);
    else if (moe->first_dense_layers)
        export_set(w, ARGUMENT_MIXTURE_FREQ, "([0]*%d+[1]*%d)", moe->first_dense_layers, periods);
    const struct expert_load *load = &w->job->job.load;
    if (load->capacity > 0)
        export_set(w, ARGUMENT_CAPACITY, "%.15g", load->capacity);
    if (load->capacity > 0 && load->padded)
        export_flag(w, ARGUMENT_PAD_TO_CAPACITY);
    if (load->busiest > 1)
        export_lose(w, "expert_load %.15g: no argument describes how even routing is", load->busiest);
    export_flag(w, ARGUMENT_GROUPED_GEMM);
    export_set(w, ARGUMENT_DISPATCHER, "alltoall");
}

static void write_hybrid(struct export_writer *w)
{
    enum { CONV = 4, CHUNK = 128 }; /* of its mixer */
    const struct transformer *model = &w->job->model;
    const struct state_mixer *mixer = &model->mixer;
    size_t period = strlen(model->layer_pattern);
    char letters[PATTERN_SIZE] = "";
    if (!transformer_is_hybrid(model))
        return;
    if (!exports_pattern(w) || model->layers >= PATTERN_SIZE) {
        export_lose(
            w,
            "layer_pattern %.24s: Megatron-LM has Mamba-2's mixers, attention, feed-forward parts and mixtures in layers of "
            "their "
            "own",
            model->layer_pattern);
        return;
    }
    for (int i = 0; i < model->layers; i++)
        letters[i] = model->layer_pattern[(size_t)i % period];
    export_flag(w, ARGUMENT_HYBRID);
    export_set(w, ARGUMENT_PATTERN, "%s", letters);
    if (mixer->heads && (mixer->conv != CONV || mixer->chunk != CHUNK))
        export_lose(w, "mixer.conv %d, mixer.chunk %d: Megatron-LM's are %d and %d", mixer->conv, mixer->chunk, CONV, CHUNK);
}

void export_model(struct export_writer *w)
{
    const struct transformer *model = &w->job->model;
    if (model->attention == ATTENTION_LATENT) {
        export_flag(w, ARGUMENT_LATENT);
        export_flag(w, ARGUMENT_QK_NORM);
    } else if (model->kv_heads != model->heads) {
        export_flag(w, ARGUMENT_GROUPED_QUERIES);
        export_set(w, ARGUMENT_QUERY_GROUPS, "%d", model->kv_heads);
    }
    if (model->attention == ATTENTION_LATENT || (int64_t)model->head_dim * model->heads == model->hidden)
        export_leave_out(w, ARGUMENT_HEAD_DIM);
    if (model->linear_bias)
        export_leave_out(w, ARGUMENT_QKV_BIAS);
    if (model->window) {
        export_set(w, ARGUMENT_WINDOW, "%lld,0", (long long)model->window);
        if (model->window_every)
            export_set(w, ARGUMENT_WINDOW_EVERY, "%d", model->window_every);
    }
    if (model->position == POSITION_ALIBI)
        export_lose(w, "positions: only BLOOM's Megatron-DeepSpeed has alibi");
    if (model->mlp_limit > 0)
        export_lose(w, "mlp_limit %g: a clamp of the activation has an argument in few versions", model->mlp_limit);
    lose_shapes(w, model);
    write_vocabulary(w);
    write_mixture(w);
    write_hybrid(w);
}

/* --- precision and features --- */

void export_precision(struct export_writer *w)
{
    const struct job *job = &w->job->job;
    bool fp16 = job->precision == PRECISION_FP16;
    if (job->precision != PRECISION_FP32)
        export_flag(w, fp16 ? ARGUMENT_FP16 : ARGUMENT_BF16);
    if (job->precision == PRECISION_FP8)
        export_set(w, ARGUMENT_FP8, "hybrid");
    if (job->precision == PRECISION_MXFP8) {
        export_set(w, ARGUMENT_FP8, "e4m3");
        export_set(w, ARGUMENT_FP8_RECIPE, "mxfp8");
    }
    if (job->precision == PRECISION_NVFP4)
        export_set(w, ARGUMENT_FP4, "e2m1");
    if (fp16 && job->gradient_precision == PRECISION_FP32)
        export_flag(w, ARGUMENT_GRADIENTS_FP32);
    else if (!fp16 && job->gradient_precision == PRECISION_BF16)
        export_flag(w, ARGUMENT_GRADIENTS_BF16);
    else if (job->gradient_precision != (fp16 ? PRECISION_FP16 : PRECISION_FP32))
        export_lose(w, "gradients in %s with %s", precision_name(job->gradient_precision), precision_name(job->precision));
    if (job->tokens > 0)
        export_set(w, ARGUMENT_TRAIN_SAMPLES, "%.0f", job->tokens / (double)job->seq_len);
}

/* Moments that are narrower than the master weight: of Adam, and where it is divided. */
void export_moments(struct export_writer *w)
{
    const struct job *job = &w->job->job;
    const char *name = precision_name(job->moment_precision);
    if (job->moment_precision == PRECISION_FP32)
        return;
    if (job->optimizer != OPTIMIZER_ADAM || w->job->layout.zero == 0) {
        export_lose(w, "the optimizer's moments in %s: %s", name,
                    job->optimizer != OPTIMIZER_ADAM ? "only Adam's can be" : "only those of --use-distributed-optimizer can be");
        return;
    }
    export_flag(w, ARGUMENT_PRECISE_OPTIMIZER);
    export_set(w, ARGUMENT_MOMENT, "%s", name);
    export_set(w, ARGUMENT_MOMENT2, "%s", name);
}

/* Megatron-LM masks at the ends of what its data has for documents. */
void export_documents(struct export_writer *w)
{
    if (!job_masks_documents(&w->job->job))
        return;
    export_flag(w, ARGUMENT_TOLD_DOCUMENTS);
    export_flag(w, ARGUMENT_TOLD_POSITIONS);
    export_lose(w, "the length of documents (%g tokens on average)", w->job->job.documents.mean);
}

/* Features of other stacks, and such as a layout has no use for in Megatron-LM. */
static void lose_features(struct export_writer *w, feature_set used)
{
    static const feature_set foreign = FEATURE_BIT(PARALLEL_BLOCK) | FEATURE_BIT(COMPILE) | FEATURE_BIT(ASYNC_TP) |
                                       FEATURE_BIT(FUSED_LINEAR_LOSS) | FEATURE_BIT(EAGER_LOSS) |
                                       FEATURE_BIT(FP12_ATTENTION_OUTPUT);
    const struct layout *l = &w->job->layout;
    for (int i = 0; i < N_FEATURES; i++)
        if (used & foreign & (feature_set)1 << i)
            export_lose(w, "%s: %s", feature_name((enum feature)i), "Megatron-LM has none");
    if (used & FEATURE_BIT(FP8_ACTIVATION_INPUT))
        export_lose(
            w, "fp8_activation_input: activation_func_fp8_input_store of the model's configuration, which older releases have no "
               "argument for");
    if ((used & FEATURE_BIT(SLIDING_WINDOW)) && !w->job->model.window)
        export_lose(w, "sliding_window: add --window-size with the width");
    if ((used & FEATURE_BIT(PP_OVERLAP)) && l->pp > 1 && l->schedule != SCHEDULE_INTERLEAVED)
        export_lose(w, "pp_overlap: only the interleaved schedule hides its messages");
    if ((used & FEATURE_BIT(TP_OVERLAP)) && l->tp > 1 && !l->sequence_parallel)
        export_lose(w, "tp_overlap: --tp-comm-overlap requires --sequence-parallel");
    if (!(used & FEATURE_BIT(DP_OVERLAP)) && l->zero == 3)
        export_lose(w, "no dp_overlap: FSDP overlaps its exchanges");
}

void export_features(struct export_writer *w)
{
    const struct layout *l = &w->job->layout;
    feature_set used = w->job->job.features;
    if (!(used & FEATURES_FLASH))
        export_set(w, ARGUMENT_ATTENTION, "unfused");
    if (!(used & FEATURE_BIT(FUSED_OPS))) {
        export_flag(w, w->job->model.gated_mlp ? ARGUMENT_NO_SWIGLU_FUSION : ARGUMENT_NO_GELU_FUSION);
        export_flag(w, ARGUMENT_NO_DROPOUT_FUSION);
    }
    if ((used & FEATURE_BIT(TP_OVERLAP)) && l->tp > 1)
        export_flag(w, ARGUMENT_TP_OVERLAP);
    if (!(used & FEATURE_BIT(PP_OVERLAP)) && l->schedule == SCHEDULE_INTERLEAVED)
        export_flag(w, ARGUMENT_NO_PP_OVERLAP);
    if (used & FEATURE_BIT(DP_OVERLAP)) {
        export_flag(w, ARGUMENT_GRADIENT_OVERLAP);
        if (l->zero)
            export_flag(w, ARGUMENT_PARAMETER_OVERLAP);
    }
    if (!(used & FEATURE_BIT(SCATTER_GATHER_P2P)) && l->tp > 1 && l->pp > 1 && !l->sequence_parallel)
        export_flag(w, ARGUMENT_NO_SCATTER_GATHER);
    if (used & FEATURE_BIT(EP_OVERLAP))
        export_flag(w, ARGUMENT_EP_OVERLAP);
    if (used & FEATURE_BIT(CUDA_GRAPHS))
        export_set(w, ARGUMENT_GRAPHS, "local");
    if (used & FEATURES_LOSS & ~FEATURE_BIT(EAGER_LOSS))
        export_flag(w, ARGUMENT_LOSS_FUSION);
    if (used & FEATURE_BIT(CUT_LOSS))
        export_set(w, ARGUMENT_LOSS_FUSION_BY, "linear");
    if (!(used & FEATURE_BIT(ASYNC_DATA)))
        export_set(w, ARGUMENT_WORKERS, "0");
    if (w->job->job.dropout < 0.1 || w->job->job.dropout > 0.1)
        export_set(w, ARGUMENT_ATTENTION_DROPOUT, "%.15g", w->job->job.dropout);
    lose_features(w, used);
}
