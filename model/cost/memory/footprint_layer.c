/*
 * footprint_layer.c - bytes that a layer keeps, and bytes that it needs while it is recomputed.
 *
 * Activations follow Korthikanti et al. (arXiv:2205.05198), as bytes kept per token and layer for the backward pass.
 */
#include "model/cost/memory/footprint_layer.h"

#include <math.h>

#include "model/cost/work/adapter.h"
#include "model/cost/work/precision_bytes.h"

/* Recipes since FlashAttention-2 train without dropout (assumption; GPT-line models before it used 0.1). */
static bool drops_out(const struct layout *layout, const struct transformer *m)
{
    return m->linear_bias && !has_any(layout, FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FLASH_ATTENTION3));
}

/* Bytes per token of one layer that tensor parallelism splits, that only sequence parallelism splits, and that nothing does. */
struct kept {
    double split, local, whole;
};

/* Of narrow precisions Transformer Engine keeps the cast copy of a product's input for the weights' gradient (saved_inputmat of
 * its linear layers); eager stacks cast again. */
static bool keeps_casts(const struct layout *layout, const struct setting *setting)
{
    return precision_is_narrow(setting->job->precision) && has_any(layout, FEATURE_BIT(FUSED_OPS));
}

/* Bytes an element of it. */
static double operand_bytes(const struct layout *layout, const struct setting *setting)
{
    return keeps_casts(layout, setting) ? precision_bytes(setting->job->precision) : 2;
}

/* Whether the gradient of a matrix, or of its adapter, needs what the matrix reads; a frozen one alone needs nothing of it. */
static bool keeps_input(const struct setting *setting, enum adapter_target target)
{
    return !job_adapts(setting->job) || job_adapts_target(setting->job, target);
}

/* What an activation function reads, bytes an element of what it gives: two halves where it is gated. */
static double activation_input_bytes(const struct layout *layout, const struct transformer *m)
{
    return (m->gated_mlp ? 2 : 1) * (has_any(layout, FEATURE_BIT(FP8_ACTIVATION_INPUT)) ? 1 : 2);
}

/* Dense feed-forward: input of the first matrix is counted in `local`; its output(s); what an eager activation keeps between its
 * passes, and its output. */
static struct kept kept_by_mlp(const struct layout *layout, const struct setting *setting, enum recompute_what modules)
{
    const struct transformer *m = setting->model;
    bool eager = !has_any(layout, FEATURES_FUSING);
    double read = activation_input_bytes(layout, m), between = eager ? (m->gated_mlp ? 2 : 1) : 0;
    double given = keeps_input(setting, ADAPT_MLP_DOWN) ? operand_bytes(layout, setting) : 0;
    if (modules & RECOMPUTE_MLP)
        return (struct kept){0};
    return (struct kept){.split = (double)m->ffn_hidden * (read + (modules & RECOMPUTE_MLP_ACT ? 0 : between + given))};
}

/* Token copies before the experts; gated halves, before and after clamping, and their product; router scores in fp32. What
 * experts give is kept where it is weighted behind them: Megatron-Core weighs the activation (weighted_bias_swiglu_impl). Frozen
 * experts, which have no adapters, need neither the copies nor the product. Of a rank whose experts get most: the routing is
 * taken to stay as it is over the micro-batches in flight, and the same rank to be the busiest in all layers (an upper bound). */
static struct kept kept_by_experts(const struct layout *layout, const struct setting *setting, enum recompute_what modules)
{
    const struct transformer *m = setting->model;
    const struct mixture *moe = &m->moe;
    double shared = moe->shared_ffn ? (double)moe->shared_ffn : (double)moe->shared_experts * (double)moe->expert_ffn;
    double busiest = expert_load_rank(&setting->job->load, layout->ep);
    double routed = (double)moe->expert_ffn * moe->top_k * busiest,
           operand = job_adapts(setting->job) ? 0 : operand_bytes(layout, setting);
    double read = activation_input_bytes(layout, m), given = (m->gated_mlp && m->mlp_limit > 0 ? 4 : 0) + operand;
    double copies = operand + (has_any(layout, FEATURE_BIT(FUSED_OPS)) ? 0 : 2);
    if (modules & RECOMPUTE_MOE)
        return (struct kept){0};
    if (modules & RECOMPUTE_SHARED_EXPERTS)
        shared = 0;
    double activations = shared * (read + given) + routed * (read + (modules & RECOMPUTE_MOE_ACT ? 0 : given));
    return (struct kept){.split = activations + (double)m->hidden * moe->top_k * busiest * copies + 8.0 * moe->experts};
}

/* What stands between latent attention's products, on each rank whole: what the down-projections give, and, where they are
 * needed, the latents behind their norms, which the up-projections read. */
static double latent_bytes(const struct latent_attention *l, bool reads)
{
    double copies = reads ? 2 : 1;
    return 2 * (copies * l->q_lora_rank + copies * l->kv_lora_rank + l->qk_rope_dim);
}

/* Elements of a token's query, and of its key and value, over all tensor-parallel ranks. */
struct token_width {
    double query, value, key_value; /* value: what attention gives */
};

static struct token_width token_width_seen(const struct layout *layout, const struct transformer *m)
{
    bool latent = m->attention == ATTENTION_LATENT;
    double qk = latent ? m->latent.qk_nope_dim + m->latent.qk_rope_dim : m->head_dim;
    double v = latent ? m->latent.v_dim : transformer_value_dim(m);
    double kv_heads = latent ? m->heads : fmax(m->kv_heads, layout->tp);
    return (struct token_width){m->heads * qk, m->heads * v, kv_heads * (qk + v)};
}

/* Of all layers on average, where those with a window have heads of their own. */
static struct token_width token_width_of(const struct layout *layout, const struct transformer *m)
{
    struct transformer view;
    const struct transformer *windowed = transformer_view(m, true, &view);
    struct token_width full = token_width_seen(layout, m);
    if (windowed == m)
        return full;
    struct token_width own = token_width_seen(layout, windowed);
    double share = m->window_every > 0 ? 1 - 1.0 / m->window_every : 1;
    return (struct token_width){full.query + share * (own.query - full.query), full.value + share * (own.value - full.value),
                                full.key_value + share * (own.key_value - full.key_value)};
}

/* Queries, keys and values as ranks that exchange heads get them: key/value heads that are fewer go to several. */
static double sent_width_of(const struct layout *layout, const struct transformer *m, struct token_width width)
{
    double copies = (double)layout_sent_kv_heads(layout, m) / layout_kv_heads(layout, m);
    return width.query + copies * width.key_value;
}

static struct kept kept_by_attention(const struct layout *layout, const struct setting *setting, enum recompute_what modules)
{
    const struct transformer *m = setting->model;
    struct token_width width = token_width_of(layout, m);
    bool latent = m->attention == ATTENTION_LATENT;
    bool swaps = layout_cp_heads(layout) > 1, repeats = modules & RECOMPUTE_CORE_ATTN;
    bool projects = keeps_input(setting, ADAPT_PROJECTION),
         reads = keeps_input(setting, ADAPT_QKV) || modules & RECOMPUTE_MLA_UP_PROJ;
    bool needs = !repeats && !swaps && has_any(layout, FEATURES_FLASH); /* attention itself its output */
    bool narrow = has_any(layout, FEATURE_BIT(FP12_ATTENTION_OUTPUT));
    double given = narrow ? 1.5 * width.value : 2 * width.value;
    struct kept k = {.split = projects || needs || m->output_gate ? given : 0,
                     .whole = latent ? latent_bytes(&m->latent, reads) : 0}; /* the output */
    if (swaps && !repeats) /* as they were sent to other ranks, and the output as it was made there */
        k.split += 2 * sent_width_of(layout, m, width) + given;
    else if (!(modules & RECOMPUTE_MLA_UP_PROJ))
        k.split += 2 * (width.query + width.key_value); /* q; k, v */
    if (keeps_casts(layout, setting) && !narrow)
        k.split += width.value * operand_bytes(layout, setting); /* the output once more, as the projection reads it */
    if (m->output_gate)
        k.split += (projects ? 2 : 1) * 2 * width.value; /* the gate, and the output behind it */
    if (!repeats &&
        !has_any(layout,
                 FEATURES_FLASH)) /* softmax output, dropout mask and output: 5 bytes a score (2 + 1 + 2); 2 more when eager */
        k.split += (drops_out(layout, m) ? 5.0 : stack_is_eager(layout) ? 6.0 : 2.0) * m->heads * (double)setting->job->seq_len;
    else
        k.split += 4.0 * m->heads; /* log-sum-exp */
    return k;
}

/*
 * A mixer with a state. Mamba's kernel keeps what the input projection gives (it repeats the convolution), what its heads give,
 * and the projection behind it reads the normed; others keep what the convolution, or the activation in its place, gives as well.
 * The delta rule keeps its inverse triangles, C a head, and decays in fp32; heads of a group have keys and queries of their own.
 */
static struct kept kept_by_mixer(const struct layout *layout, const struct setting *setting)
{
    const struct state_mixer *m = &setting->model->mixer;
    struct mixer_columns columns = mixer_columns_of(m);
    struct mixer_width width = mixer_width_of(m);
    bool delta = m->kind == MIXER_GATED_DELTA || m->kind == MIXER_KIMI_DELTA;
    double rows = (double)m->heads * m->state, given = 2 * width.values + width.values * operand_bytes(layout, setting);
    struct kept k = {.split = 2 * (columns.mixed + columns.gate + columns.scalars) + given};
    if (m->kind != MIXER_MAMBA2)
        k.split += 2 * (width.values + 2 * (delta ? rows : width.keys));
    if (delta)
        k.split += 2.0 * m->chunk * m->heads + 4 * (columns.ranks ? rows : 2.0 * m->heads);
    if (columns.ranks) { /* what the down-projections give; decays and gate before their activation */
        k.whole = 2.0 * columns.ranks * m->head_dim;
        k.split += 2 * (rows + width.values);
    }
    return k;
}

/* Inputs of column-parallel layers, of which the two parts of a layer have one each. */
struct inputs {
    int own;      /* that a rank keeps its part of the sequence of */
    int gathered; /* of all of it, as their adapters read them */
};

/* What frozen layers need of them: what adapters read, and what modules are repeated from. */
static struct inputs inputs_kept(const struct setting *setting, enum recompute_what modules, struct layer_kind kind)
{
    const struct latent_attention *latent = &setting->model->latent;
    struct inputs kept = {0};
    if (!job_adapts(setting->job)) {
        kept.own = layer_kind_parts(kind);
        return kept;
    }
    if (kind.mixers & MIXES_BY_ATTENTION) {
        kept.gathered += job_adapts_target(setting->job, ADAPT_QKV);
        kept.own += !kept.gathered && modules & RECOMPUTE_MLA_UP_PROJ && !latent->q_lora_rank;
    }
    if (kind.feed == FEEDS_EXPERTS)
        kept.own += (modules & (RECOMPUTE_MOE | RECOMPUTE_SHARED_EXPERTS)) != 0;
    else if (kind.feed == FEEDS_DENSE && modules & RECOMPUTE_MLP)
        kept.own++;
    else if (kind.feed == FEEDS_DENSE)
        kept.gathered += job_adapts_target(setting->job, ADAPT_MLP_UP);
    return kept;
}

/* Inputs of the two norms and of the two column-parallel layers, dropout masks of the GPT line or of a job that names dropout; an
 * eager RMS norm keeps fp32 copies. With sequence parallelism Megatron's line keeps its own part of what the column-parallel
 * layers read and gathers it again; in eager stacks gathering is a step of its own, and the layer behind it keeps what it read,
 * as adapters do.
 */
static struct kept kept_by_stream(const struct layout *layout, const struct setting *setting, enum recompute_what modules,
                                  struct layer_kind kind)
{
    const struct transformer *m = setting->model;
    int parts = layer_kind_parts(kind), norms = m->layer_norms == 4 ? 2 * parts : parts;
    double h = (double)m->hidden;
    bool parallel = has_any(layout, FEATURE_BIT(PARALLEL_BLOCK)); /* one norm, and one input for both branches */
    struct inputs inputs = inputs_kept(setting, modules, kind);
    if (parallel)
        inputs = (struct inputs){.own = inputs.own && !inputs.gathered, .gathered = inputs.gathered > 0};
    double read = 2 * h * (parallel ? 1 : norms), between = 0, own = 2 * h * inputs.own, gathered = 2 * h * inputs.gathered;
    if (m->norm == NORM_RMS && !has_any(layout, FEATURE_BIT(FUSED_RMSNORM) | FEATURES_FUSING))
        between = norms * (4 + 2 + 1) * h; /* fp32 input, its product, scale, per norm */
    if (modules & RECOMPUTE_LAYERNORM)
        between = own = 0, gathered = layout->tp > 1 && layout->sequence_parallel ? gathered : 0;
    double masks = drops_out(layout, m) || setting->job->dropout > 0 ? parts * h : 0;
    return layout_follows_llama(layout, m) ? (struct kept){.local = read + between + masks, .whole = own + gathered}
                                           : (struct kept){.local = read + between + masks + own, .whole = gathered};
}

static struct kept kept_by_feed(const struct layout *layout, const struct setting *setting, enum recompute_what modules,
                                enum layer_feed feed)
{
    switch (feed) {
    case FEEDS_EXPERTS: return kept_by_experts(layout, setting, modules);
    case FEEDS_DENSE: return kept_by_mlp(layout, setting, modules);
    default: return (struct kept){0};
    }
}

/* Where `modules` are repeated and the rest is kept. */
static double layer_bytes_but(enum recompute_what modules, const struct layout *layout, const struct setting *setting,
                              struct layer_kind kind)
{
    bool attends = kind.mixers & MIXES_BY_ATTENTION, has_state = kind.mixers & MIXES_BY_STATE;
    struct kept a = attends ? kept_by_attention(layout, setting, modules) : (struct kept){0};
    struct kept c = has_state ? kept_by_mixer(layout, setting) : (struct kept){0};
    struct kept f = kept_by_feed(layout, setting, modules, kind.feed);
    struct kept s = kept_by_stream(layout, setting, modules, kind);
    double local = s.local / (layout->sequence_parallel ? layout->tp : 1);
    if (modules & RECOMPUTE_MLP)
        kind.feed = FEEDS_NOT;
    double thin = 2.0 * (double)setting->job->adapter.rank * adapter_count(layout, setting, kind);
    return tokens_per_micro_batch(layout, setting) *
           ((a.split + f.split + c.split) / layout->tp + local + a.whole + s.whole + c.whole + thin);
}

/* What the products of a layer give, an element a word, in the order in which PyTorch's policy counts them: those of an expert
 * layer's feed-forward part are not among them. */
enum { PRODUCTS_MAX = 16 };

static int products_of_attention(const struct layout *layout, const struct transformer *m, struct kept *out)
{
    const struct latent_attention *l = &m->latent;
    double kv = fmax(m->kv_heads, layout->tp) * m->head_dim, q = m->heads * (double)m->head_dim;
    int n = 0;
    if (m->attention == ATTENTION_LATENT) {
        if (l->q_lora_rank)
            out[n++].local = (double)l->q_lora_rank;
        out[n++].split = m->heads * (double)(l->qk_nope_dim + l->qk_rope_dim);
        out[n++].local = (double)(l->kv_lora_rank + l->qk_rope_dim);
        out[n++].split = m->heads * (double)(l->qk_nope_dim + l->v_dim);
    } else if (m->gated_mlp) { /* matrices apart */
        out[n++].split = q;
        out[n++].split = kv;
        out[n++].split = kv;
    } else {
        out[n++].split = q + 2 * kv;
    }
    out[n++].local = (double)m->hidden;
    return n;
}

static int products_of_mlp(const struct transformer *m, struct kept *out)
{
    int n = 0;
    for (int i = 0; i <= m->gated_mlp; i++)
        out[n++].split = (double)m->ffn_hidden;
    out[n++].local = (double)m->hidden;
    return n;
}

static int products_of_mixer(const struct transformer *m, struct kept *out)
{
    struct mixer_columns columns = mixer_columns_of(&m->mixer);
    int n = 0;
    out[n++].split = columns.mixed + columns.gate + columns.scalars;
    if (columns.ranks) {
        out[n++].local = (double)columns.ranks * m->mixer.head_dim;
        out[n++].split = (double)m->mixer.heads * m->mixer.state;
        out[n++].split = mixer_width_of(&m->mixer).values;
    }
    out[n++].local = (double)m->hidden;
    return n;
}

/* By the policy that keeps every second product: these, what attention gives, and the layer's input. */
static double layer_bytes_selected(const struct layout *layout, const struct setting *setting, struct layer_kind kind)
{
    const struct transformer *m = setting->model;
    struct kept products[PRODUCTS_MAX] = {{0}};
    double value = m->attention == ATTENTION_LATENT ? m->latent.v_dim : m->head_dim;
    bool attends = kind.mixers & MIXES_BY_ATTENTION;
    double split = attends ? m->heads * (value + 2) : 0, local = (double)m->hidden; /* words; log-sum-exp is in fp32 */
    int n = attends ? products_of_attention(layout, m, products) : 0;
    if (kind.mixers & MIXES_BY_STATE)
        n += products_of_mixer(m, products + n);
    if (kind.feed == FEEDS_DENSE)
        n += products_of_mlp(m, products + n);
    for (int i = 0; i < n; i += 2) {
        split += products[i].split;
        local += products[i].local;
    }
    return tokens_per_micro_batch(layout, setting) * 2 *
           (split / layout->tp + local / (layout->sequence_parallel ? layout->tp : 1));
}

double footprint_layer_bytes(const struct layout *layout, const struct setting *setting, struct layer_kind kind)
{
    if (layout->recompute.what == RECOMPUTE_SELECTIVE && layout_recomputes_by_need(layout))
        return layer_bytes_selected(layout, setting, kind);
    if (layout->recompute.what != RECOMPUTE_FULL)
        return layer_bytes_but(layout_recomputed_modules(layout), layout, setting, kind);
    double input = tokens_per_micro_batch(layout, setting) * (double)setting->model->hidden * 2;
    return layout->sequence_parallel ? input / layout->tp : input;
}

double footprint_layer_whole(const struct layout *layout, const struct setting *setting, struct layer_kind kind)
{
    return layer_bytes_but(RECOMPUTE_NONE, layout, setting, kind);
}

double footprint_layer_repeated(const struct layout *layout, const struct setting *setting, struct layer_kind kind)
{
    if (layout->recompute.what == RECOMPUTE_NONE)
        return 0;
    double all = footprint_layer_whole(layout, setting, kind);
    return layout_recomputed_modules(layout) ? all - footprint_layer_bytes(layout, setting, kind) : all;
}

/* Of its own tokens and heads, a word an element: keys and values that a rank passes on, and all that it sends. */
struct travelling {
    double keys, heads;
};

static struct travelling travelling_of(const struct layout *layout, const struct setting *setting)
{
    const struct transformer *m = setting->model;
    struct token_width width = token_width_of(layout, m);
    double tokens = tokens_per_micro_batch(layout, setting) / layout->tp, sent = sent_width_of(layout, m, width);
    return (struct travelling){.keys = layout_cp_keys(layout) > 1 ? tokens * (sent - width.query) : 0,
                               .heads = layout_cp_heads(layout) > 1 ? tokens * sent : 0};
}

static double context_bytes(const struct layout *layout, const struct setting *setting, double blocks, double element_bytes)
{
    enum { GRADIENTS_STAGED = 3 };
    struct travelling t = travelling_of(layout, setting);
    return (blocks * t.keys + GRADIENTS_STAGED * t.heads) * element_bytes;
}

/* All keys and values, their gradients, these in the order of ranks, and the rank's own. */
static double gathered_blocks(const struct layout *layout)
{
    return 3 * layout_cp_keys(layout) + 1;
}

double footprint_context_bytes(const struct layout *layout, const struct setting *setting)
{
    enum { BLOCKS_OF_A_RING = 4 };
    double blocks = cp_comm_gathers(layout->cp_comm) ? gathered_blocks(layout) : BLOCKS_OF_A_RING;
    return context_bytes(layout, setting, blocks, 2);
}

double footprint_executed_context_bytes(const struct layout *layout, const struct setting *setting, double element_bytes)
{
    return context_bytes(layout, setting, gathered_blocks(layout), element_bytes);
}

double footprint_states_bytes(const struct layout *layout, const struct setting *setting)
{
    const struct state_mixer *m = &setting->model->mixer;
    double chunks = tokens_per_micro_batch(layout, setting) / fmax(1, m->chunk); /* as many with fewer tokens and more heads */
    return chunks * m->heads / layout->tp * m->state * m->head_dim * (2 + 4);
}
