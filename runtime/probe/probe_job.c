/*
 * probe_job.c - the kernels and exchanges of one rank of a job, with the operands that a step gives them (layer_forward.c,
 * layer_backward.c, ends.c and update_part.c launch them).
 */
#include "model/base/memory.h"
#include "model/cost/work/work.h"
#include "runtime/base/parameters.h"
#include "runtime/probe/probe_cases.h"

struct job_probe {
    struct probe_cases *cases;
    const struct layout *layout;
    const struct setting *setting;
    struct shape s;
    int ranks;
    double layers; /* of a stage, on average; how many of them */
    double attend, keep_states, dense, mixtures;
    int with_state; /* one that has one; -1: none */
};

/* --- experts */

/* All ranks of an expert-parallel group together send here the number of copies that this rank sends. */
static struct probe_experts experts_of(const struct shape *s)
{
    const struct mixture_shape *moe = &s->moe;
    int64_t copies = moe->share * moe->tp * moe->top_k, local = moe->local;
    return (struct probe_experts){.tokens = moe->share,
                                  .h = s->hidden,
                                  .ffn = moe->ffn,
                                  .up = moe->up_width,
                                  .n = moe->experts,
                                  .local = moe->local,
                                  .top_k = moe->top_k,
                                  .copies = copies > local ? copies / local * local : local};
}

static void add_mixtures(const struct job_probe *j)
{
    const struct shape *s = &j->s;
    if (j->mixtures <= 0)
        return;
    struct probe_experts experts = experts_of(s);
    probe_add_experts(j->cases, j->mixtures, &experts);
    if (!s->moe.shared)
        return;
    probe_add_products(j->cases, j->mixtures, false, s->tokens, s->hidden, s->moe.shared_up);
    probe_add_products(j->cases, j->mixtures, false, s->tokens, s->moe.shared, s->hidden);
}

/* --- products and attention */

static void add_job_products(const struct job_probe *j)
{
    const struct shape *s = &j->s;
    double heads = (1 + s->predictions) / (double)j->layout->pp;
    if (j->attend > 0) {
        probe_add_products(j->cases, j->attend, s->qkv_bias, s->tokens, s->hidden, s->qkv_width);
        probe_add_products(j->cases, j->attend, false, s->tokens, s->context_width, s->hidden);
    }
    if (j->keep_states > 0) {
        probe_add_products(j->cases, j->keep_states, s->linear_bias, s->tokens, s->hidden, s->mixer.in);
        probe_add_products(j->cases, j->keep_states, false, s->tokens, s->mixer.values, s->hidden);
    }
    if (j->dense > 0) {
        probe_add_products(j->cases, j->dense, s->linear_bias, s->tokens, s->hidden, s->up_width);
        probe_add_products(j->cases, j->dense, false, s->tokens, s->ffn, s->hidden);
    }
    add_mixtures(j);
    j->cases->recipe = (struct narrow_recipe){0};
    probe_add_products(j->cases, heads, false, s->tokens, s->hidden, s->vocab_count);
}

/* By the kernels that execute it. */
static void add_job_core(const struct job_probe *j)
{
    const struct shape *s = &j->s;
    int64_t window = (int64_t)sliding_window_width(j->setting, j->layout->features, 0);
    struct attention_call packed = {.batch = s->micro_batch,
                                    .seq_len = s->seq_len,
                                    .window = window,
                                    .heads = s->heads,
                                    .kv_heads = s->kv_heads,
                                    .head_dim = s->head_dim};
    struct query_range_call range = {.batch = s->micro_batch,
                                     .queries = s->seq_len,
                                     .keys = s->seq_len,
                                     .window = window,
                                     .heads = s->heads,
                                     .kv_heads = s->kv_heads,
                                     .head_dim = s->head_dim,
                                     .value_dim = (int)(s->context_width / s->heads)};
    if (shape_is_packed(s, j->cases->device))
        probe_add_attention(j->cases, &packed);
    else
        probe_add_query_range(j->cases, &range);
}

static void add_job_attention(const struct job_probe *j)
{
    const struct shape *s = &j->s;
    struct kernel_call rotary = {.kernel = KERNEL_ROTARY,
                                 .rotary = {.t = s->tokens,
                                            .seq_len = s->seq_len,
                                            .heads = s->heads,
                                            .kv_heads = s->kv_heads,
                                            .head_dim = s->head_dim,
                                            .base = ROTARY_BASE}};
    add_job_core(j);
    if (s->rotary && !s->latent.used) /* a latent one turns other rows */
        probe_add_streaming(j->cases, rotary, MEMORY_ROTARY, 1, "rotary", s->tokens * s->qkv_width, 2);
}

/* --- kernels that stream */

static bool drops(const struct job_probe *j)
{
    return j->setting->job->dropout > 0;
}

/* A residual's bias comes with it; backward the bias's gradient is the columns' sum, and one of two residuals of a layer adds
 * what went around the branch (the other one's is added by a norm). */
static void add_residuals(const struct job_probe *j)
{
    const struct shape *s = &j->s;
    int64_t n = s->local_tokens * s->hidden;
    struct kernel_call sum = {.kernel = KERNEL_ADD, .add = {.n = n, .h = s->hidden}};
    struct kernel_call columns = {.kernel = KERNEL_COLUMN_SUM, .column_sum = {.t = s->local_tokens, .h = s->hidden}};
    struct kernel_call drop = {.kernel = KERNEL_DROPOUT_FORWARD,
                               .dropout = {.n = n, .h = s->hidden, .p = (float)j->setting->job->dropout, .seed = 1}};
    struct probe_case *forward = drops(j) ? probe_add_streaming(j->cases, drop, MEMORY_RESIDUAL, 1, "dropout_forward", n, 3)
                                          : probe_add_streaming(j->cases, sum, MEMORY_RESIDUAL, 1, "add", n, 3);
    forward->extras = s->linear_bias;
    drop.kernel = KERNEL_DROPOUT_BACKWARD;
    if (drops(j))
        probe_add_streaming(j->cases, drop, MEMORY_RESIDUAL_BACKWARD, 1, "dropout_backward", n, 2);
    if (s->linear_bias)
        probe_add_streaming(j->cases, columns, MEMORY_RESIDUAL_BACKWARD, s->parallel_block ? 2 : 1, "column_sum", n, 1);
    if (!s->parallel_block)
        probe_add_streaming(j->cases, sum, MEMORY_RESIDUAL_BACKWARD, 0.5, "add", n, 3);
}

/* Of the whole vocabulary in turn: every row that is read is another one. */
static void add_lookup(const struct job_probe *j, enum kernel kernel, enum memory_kernel part, const char *op, double bytes)
{
    const struct shape *s = &j->s;
    int64_t rows = s->tokens > s->vocab_count ? s->tokens : s->vocab_count; /* of the largest operand */
    struct kernel_call call = {.kernel = kernel,
                               .embedding = {.t = s->tokens, .h = s->hidden, .seq_len = s->seq_len, .count = s->vocab_count}};
    struct probe_case *c = probe_add_streaming(j->cases, call, part, 1, op, rows * s->hidden, 0);
    probe_case_route(j->cases, c, (struct probe_routing){s->tokens, (int)s->vocab_count});
    c->row.bytes = bytes * (double)(s->tokens * s->hidden);
    c->extras = s->learned_positions;
}

static void add_embedding(const struct job_probe *j)
{
    double element = (double)j->cases->element_bytes;
    add_lookup(j, KERNEL_EMBEDDING_FORWARD, MEMORY_EMBEDDING, "embedding_forward", 2 * element);
    add_lookup(j, KERNEL_EMBEDDING_BACKWARD, MEMORY_EMBEDDING_BACKWARD, "embedding_backward", element + 2 * sizeof(float));
}

static struct probe_layer layer_of(const struct job_probe *j)
{
    const struct shape *s = &j->s;
    bool dense = j->mixtures <= 0 || j->dense > 0;
    struct probe_experts experts = dense ? (struct probe_experts){0} : experts_of(s);
    return (struct probe_layer){.t = s->local_tokens,
                                .h = s->hidden,
                                .activated = dense ? s->tokens : experts.copies,
                                .f = dense ? s->ffn : experts.ffn,
                                .rms = s->rms,
                                .gated = s->gated};
}

/* --- exchanges */

static enum exchange exchange_of(enum collective collective)
{
    switch (collective) {
    case COLLECTIVE_ALL_GATHER: return EXCHANGE_ALL_GATHER;
    case COLLECTIVE_REDUCE_SCATTER: return EXCHANGE_REDUCE_SCATTER;
    default: return EXCHANGE_ALL_REDUCE;
    }
}

/* Ranks of a group here: its own number, if the probing ranks can be divided so. */
static int members_here(const struct job_probe *j, int members)
{
    return members > 1 && j->ranks % members == 0 ? members : j->ranks;
}

/* Those of the tensor-parallel group in a layer: works of one layer, both passes. */
static void add_layer_exchanges(const struct job_probe *j)
{
    struct work_table table = {0};
    int64_t elements = j->s.tokens * j->s.hidden;
    double times[N_EXCHANGES] = {0};
    for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++)
        work_add_pass(&table, j->layout, j->setting, (enum pass)pass, (struct layer_range){0, 1}, false, false);
    for (int32_t i = 0; i < table.n_items; i++)
        if (table.items[i].kind == WORK_COLLECTIVE && table.items[i].collective.group == GROUP_TP)
            times[exchange_of(table.items[i].collective.collective)] += j->layers;
    for (int e = 0; e < N_EXCHANGES; e++)
        if (times[e] > 0)
            probe_add_exchange(j->cases, (enum exchange)e, times[e], members_here(j, j->layout->tp), elements);
    work_table_free(&table);
}

static void add_replica_exchange(const struct job_probe *j, enum exchange exchange, double times, int ranks, int64_t elements)
{
    struct probe_case *c = probe_add_exchange(j->cases, exchange, times, members_here(j, ranks), elements);
    c->of_weights = true;
    c->travels = j->layout->zero == 3;
}

/* Gradients, and with ZeRO parameters, of a layer: once a step; with ZeRO-3 in every pass, with ZeRO-2 without a pipeline
 * gradients. The second exchange of hybrid sharding: once a step. */
static void add_replica_exchanges(const struct job_probe *j, int64_t elements)
{
    double passes = j->layers, steps = passes / (double)layout_micro_batches(j->layout, j->setting->job);
    int shards = j->s.copies.n, replicas = layout_group_size(j->layout, GROUP_REPLICA);
    if (shards < 2)
        return;
    if (!j->layout->zero) {
        add_replica_exchange(j, EXCHANGE_ALL_REDUCE, steps, shards, elements);
        return;
    }
    add_replica_exchange(j, EXCHANGE_REDUCE_SCATTER, layout_scatters_gradients(j->layout) ? passes : steps, shards, elements);
    add_replica_exchange(j, EXCHANGE_ALL_GATHER, j->layout->zero == 3 ? 2 * passes : steps, shards, elements);
    if (replicas > 1)
        add_replica_exchange(j, EXCHANGE_ALL_REDUCE, steps, replicas, elements / shards);
}

/* Messages between stages, as an all-gather with the same bytes per rank: both are one copy out and one copy in. */
static void add_messages(const struct job_probe *j)
{
    const struct layout *l = j->layout;
    double boundaries = (double)l->vpp - 1.0 / l->pp; /* a stage, on average; crossed in both passes */
    int ranks = members_here(j, 2);
    if (l->pp > 1)
        probe_add_exchange(j->cases, EXCHANGE_ALL_GATHER, 2 * boundaries, ranks,
                           j->s.local_tokens * j->s.hidden * ranks / (ranks - 1));
}

/* Ranks that exchange most often with each other. */
static int usual_group(const struct job_probe *j)
{
    return j->layout->tp > 1 ? j->layout->tp : j->s.copies.n > 1 ? j->s.copies.n : 2;
}

/* --- all of it */

static struct job_probe job_probe_of(const struct probe_options *options, struct probe_cases *cases)
{
    struct job_probe j = {.cases = cases,
                          .layout = options->layout,
                          .setting = options->setting,
                          .s = shape_of(options->layout, options->setting, options->shape_rank),
                          .ranks = options->ranks};
    j.layers = (double)j.s.layers / options->layout->pp;
    j.with_state = -1;
    for (int i = 0; i < j.s.layers; i++) {
        struct layer_kind kind = layer_kind_of(options->setting->model, i);
        double one = 1.0 / options->layout->pp;
        j.attend += kind.mixers & MIXES_BY_ATTENTION ? one : 0;
        j.keep_states += kind.mixers & MIXES_BY_STATE ? one : 0;
        j.dense += kind.feed == FEEDS_DENSE ? one : 0;
        j.mixtures += kind.feed == FEEDS_EXPERTS ? one : 0;
        j.with_state = kind.mixers & MIXES_BY_STATE ? i : j.with_state;
    }
    return j;
}

/* Weights of all ranks of the job, divided among those that probe; limited, since more than the caches of a device has no effect.
 */
static size_t weight_bytes_of(const struct job_probe *j, int64_t layer_parameters)
{
    const double most = 32 << 20;
    double ranks = (double)j->setting->gpus / j->ranks, all = ranks * j->layers * (double)layer_parameters * sizeof(float);
    return (size_t)(all < most ? all : most);
}

void probe_cases_of_job(const struct probe_options *options, struct probe_cases *cases)
{
    struct job_probe j = job_probe_of(options, cases);
    const struct shape *s = &j.s;
    struct probe_layer layer = layer_of(&j);
    int64_t parameters = s->hidden * (s->qkv_width + s->query_width + s->up_width + s->ffn);
    cases->weight_bytes = weight_bytes_of(&j, parameters);
    cases->recipe = narrow_recipe_of(options->setting->job->precision);
    probe_add_casts(cases, s->tokens, s->hidden);
    add_job_products(&j);
    if (j.attend > 0)
        add_job_attention(&j);
    if (j.with_state >= 0)
        probe_add_mixer(cases, j.keep_states, options->layout, options->setting, s, j.with_state);
    probe_add_norms(cases, &layer, s->parallel_block ? 1 : 0.5);
    probe_add_activation(cases, &layer);
    add_residuals(&j);
    add_embedding(&j);
    probe_add_loss(cases, s->tokens, s->vocab_count);
    probe_add_optimizer(cases, options->setting->job->optimizer, parameters);
    probe_add_exchanges(cases, options->ranks > 1 ? members_here(&j, usual_group(&j)) : 1, PROBE_SHORT_EXCHANGE);
    if (options->ranks > 1) {
        add_layer_exchanges(&j);
        add_replica_exchanges(&j, parameters);
        add_messages(&j);
    }
    if (layout_offloads(options->layout, OFFLOAD_OPTIMIZER))
        probe_add_host_update(cases, options->setting->job, parameters);
    if (!offload_is_none(&options->layout->offload))
        probe_add_host_copy(cases, s->tokens * s->hidden);
    probe_add_copy(cases, s->tokens * s->hidden);
    probe_add_copy(cases, 8 * s->tokens * s->hidden);
}
