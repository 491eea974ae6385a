/* work_moe.c - a mixture-of-experts feed-forward part: router, dispatch, grouped GEMMs, combine. Counted on the rank whose
 * experts get the most tokens (job.load; all equal by default), because the other ranks of its expert-parallel group wait for
 * it. */
#include "model/cost/work/precision_bytes.h"
#include "model/cost/work/work_layer.h"

struct experts_shape {
    int64_t rows;      /* token copies all local experts work on */
    int64_t rows_mean; /* the same, on average over the ranks */
    int64_t largest;   /* those of the busiest expert; 0: all alike */
    int32_t local;     /* experts on this rank */
    int64_t width;     /* of one expert on this rank */
    double sent;       /* bytes of token copies this rank dispatches */
    double held;       /* bytes of those that it gets for its experts */
    bool split;        /* experts are split over tp as well */
};

static int64_t at_least_one(double rows)
{
    return (int64_t)(rows < 1 ? 1 : rows);
}

static struct experts_shape experts_shape(const struct layer_builder *b)
{
    const struct mixture *moe = &b->model->moe;
    const struct layout *l = b->layout;
    bool split = layout_expert_tp(l) > 1;
    double own_tokens = b->tokens / l->tp; /* each rank dispatches its share of the sequence */
    double rows = (split ? b->tokens : own_tokens) * moe->top_k;
    double sent = own_tokens * moe->top_k * (double)b->model->hidden * 2;
    const struct expert_load *load = &b->job->load;
    double busiest = expert_load_rank(load, l->ep), mean = expert_load_mean(load);
    struct experts_shape e = {
        .rows = at_least_one(rows * busiest),
        .rows_mean = at_least_one(rows * mean),
        .local = moe->experts / l->ep > 0 ? moe->experts / l->ep : 1,
        .width = split ? moe->expert_ffn / l->tp : moe->expert_ffn,
        .sent = sent * mean,
        .held = sent * busiest,
        .split = split,
    };
    if (expert_load_largest(load, l->ep) > busiest)
        e.largest = at_least_one(rows / e.local * expert_load_largest(load, l->ep));
    return e;
}

static void experts_gemm(struct layer_builder *b, const struct experts_shape *e, const char *label, int64_t in, int64_t out,
                         enum pass pass)
{
    int64_t each = e->rows / e->local > 0 ? e->rows / e->local : 1;
    struct work_gemm gemm = builder_gemm(b, each, in, out, pass, b->job->precision);
    gemm.count = e->local;
    gemm.apart = true;
    gemm.largest = e->largest;
    gemm.along_k = pass == PASS_BACKWARD_WEIGHT;
    struct work work = {.kind = WORK_GEMM,
                        .class = b->recomputing ? CLASS_RECOMPUTE : CLASS_EXPERTS,
                        .label = label,
                        .flops = 2.0 * (double)e->rows_mean * (double)in * (double)out,
                        .gemm = gemm};
    builder_append(b, work_add(b->table, work));
}

/* Copies of tokens over the expert-parallel group. Every rank sends as many; the busiest gets most, and sends most back. */
static void exchange_copies(struct layer_builder *b, const struct experts_shape *e, const char *label)
{
    const struct mixture *moe = &b->model->moe;
    if (b->layout->ep == 1)
        return;
    int32_t id = builder_exchange(b, CLASS_EP_COMM, label, COLLECTIVE_ALL_TO_ALL, GROUP_EP, e->held);
    if (builder_is_current(b)) { /* a token crosses to a node once, whatever number of its experts are there */
        struct token_copies tokens = {moe->top_k, moe->groups, moe->top_groups, 0, 0};
        if (expert_load_given(&b->job->load)) {
            const struct expert_load *load = &b->job->load;
            int domains = layout_span(b->layout, b->cluster, GROUP_EP).domains;
            tokens.rank_load = expert_load_rank(load, b->layout->ep) / expert_load_mean(load);
            tokens.domain_load = expert_load_rank(load, domains) / expert_load_mean(load);
        }
        b->table->items[id].collective.tokens = tokens;
    }
    builder_append(b, id);
}

static void exchange_split(struct layer_builder *b, const struct experts_shape *e, enum collective collective)
{
    if (e->split)
        builder_append(b, builder_exchange(b, CLASS_TP_COMM, "expert_tp", collective, GROUP_TP, e->held * b->layout->tp));
}

/* Copies to their experts; experts split over tp need those of all of its ranks. */
static void to_experts(struct layer_builder *b, const struct experts_shape *e, const char *label)
{
    exchange_copies(b, e, label);
    exchange_split(b, e, COLLECTIVE_ALL_GATHER);
}

/* Results back to the tokens: partial sums of split experts are added up first. */
static void from_experts(struct layer_builder *b, const struct experts_shape *e, const char *label)
{
    exchange_split(b, e, COLLECTIVE_REDUCE_SCATTER);
    exchange_copies(b, e, label);
}

/* Without sequence parallelism all ranks of a tensor-parallel group have all tokens, but each sends a share of them to experts
 * and gets results for that share. */
static void gather_shares(struct layer_builder *b)
{
    const struct layout *l = b->layout;
    double bytes = b->tokens * (double)b->model->hidden * 2;
    if (l->tp > 1 && !l->sequence_parallel)
        builder_append(b, builder_exchange(b, CLASS_TP_COMM, "mixture_gather", COLLECTIVE_ALL_GATHER, GROUP_TP, bytes));
}

/* Gather token copies into expert order (read, write) and its inverse with the weighted sum (read k, write 1). */
static void permute(struct layer_builder *b, const struct experts_shape *e, const char *label)
{
    builder_memory(b, CLASS_EXPERTS, MEMORY_PERMUTATION, label,
                   2.0 * e->sent + 2.0 * (double)e->rows * (double)b->model->hidden * 2, 3);
}

/* Products of narrow operands want multiples of 16 or 32 rows an expert: Megatron-Core copies the tokens between rows filled up
 * with zeros and without (Fp8Padding; read, write). */
static void pad(struct layer_builder *b, const struct experts_shape *e, const char *label)
{
    if (precision_is_narrow(b->job->precision))
        builder_memory(b, CLASS_EXPERTS, MEMORY_STREAM, label, (double)e->rows * (double)b->model->hidden * 2 * 2, 1);
}

/* The operand of a grouped product, `width` wide: each expert's rows are a tensor with scales of its own (Transformer Engine,
 * split_quantize). */
static void cast_of_each(struct layer_builder *b, const struct experts_shape *e, const char *label, int64_t width)
{
    builder_casts(b, label, (double)e->rows * (double)width, e->local);
}

/* Bytes of clamping both halves before a gated activation, an element of the width: each half read and written, the two put
 * side by side (4 + 4 + 8); backward each half's gradient where its input was inside (6 + 6), put side by side (8). A pass of its
 * own in Megatron-Core's weighted_bias_quick_geglu_impl and in Hugging Face's code. */
static double clamp_bytes(const struct layer_builder *b, bool backward)
{
    if (!b->model->gated_mlp || b->model->mlp_limit <= 0)
        return 0;
    return backward ? 20 : 16;
}

/* Between an expert's products, `rows` of `width`. */
static void expert_activation(struct layer_builder *b, double rows, int64_t width, bool backward)
{
    double passes = b->model->gated_mlp ? (backward ? 5 : 3) : (backward ? 3 : 2), clamp = clamp_bytes(b, backward);
    if (clamp > 0)
        builder_memory(b, CLASS_EXPERTS, MEMORY_STREAM, "expert_clamp", rows * (double)width * clamp, 3);
    builder_memory(b, CLASS_EXPERTS, backward ? MEMORY_ACTIVATION_BACKWARD : MEMORY_ACTIVATION, "expert_activation",
                   rows * (double)width * passes * 2, 1);
    kept_activation_input(b, CLASS_EXPERTS, rows * (double)width);
}

/*
 * The bias behind the down-projection is weighted by each copy's probability, which is in fp32, expert by expert (Megatron-Core,
 * TEGroupedMLP._apply_bias): bias times probability (write 4), plus the product's output (2 + 4 + 4), the experts' rows put
 * together (4 + 4), to bf16 (4 + 2) = 28 bytes an element. Backward: to fp32 (2 + 4); each expert's gradient to bf16 (4 + 2), put
 * together (2 + 2); the sums over rows and over columns, a product (4 + 4) and a sum (4) each = 40. The bias of the up-projection
 * is added, and its gradient summed, inside the products.
 */
static void expert_bias(struct layer_builder *b, const struct experts_shape *e, bool backward)
{
    double elements = (double)e->rows * (double)b->model->hidden;
    if (b->model->linear_bias)
        builder_memory(b, CLASS_EXPERTS, MEMORY_STREAM, "expert_bias", elements * (backward ? 40 : 28),
                       2 + (backward ? 5 : 2) * e->local);
}

static void router(struct layer_builder *b, bool backward)
{
    double tokens = b->tokens / b->layout->tp, experts = b->model->moe.experts;
    struct work_gemm gemm = {
        .m = (int64_t)tokens, .n = b->model->moe.experts, .k = b->model->hidden, .count = backward && !b->frozen ? 2 : 1};
    gemm.precision = PRECISION_BF16;
    gemm.output_bytes = 4;
    struct work work = {.kind = WORK_GEMM,
                        .class = b->recomputing ? CLASS_RECOMPUTE : CLASS_EXPERTS,
                        .label = "router",
                        .flops = 2.0 * tokens * experts * (double)b->model->hidden * gemm.count,
                        .gemm = gemm};
    builder_append(b, work_add(b->table, work));
    builder_memory(b, CLASS_EXPERTS, MEMORY_ROUTING, "top_k", tokens * experts * 4 * 4,
                   6); /* softmax, top-k, masks, counts in fp32 */
}

static int64_t shared_width(const struct layer_builder *b)
{
    const struct mixture *moe = &b->model->moe;
    int64_t width = moe->shared_ffn ? moe->shared_ffn : moe->shared_experts * moe->expert_ffn;
    return width / b->layout->tp;
}

static void append_exchange(struct layer_builder *b, int32_t exchange)
{
    if (exchange >= 0)
        builder_append(b, exchange);
}

static void shared_linear(struct layer_builder *b, const char *label, int64_t in, int64_t out, enum pass pass)
{
    builder_append(b, builder_linear(b, CLASS_EXPERTS, label, b->tokens, in, out, pass));
}

/* Experts that every token passes: column- and row-parallel, as a dense feed-forward part. */
static void shared_forward(struct layer_builder *b)
{
    int64_t h = b->model->hidden, shared = shared_width(b), up = b->model->gated_mlp ? 2 : 1;
    if (shared == 0)
        return;
    append_exchange(b, builder_tp_gather(b, "shared_gather"));
    builder_cast(b, "cast", b->tokens * (double)h);
    shared_linear(b, "shared_up", h, up * shared, PASS_FORWARD);
    expert_activation(b, b->tokens, shared, false);
    builder_cast(b, "cast", b->tokens * (double)shared);
    shared_linear(b, "shared_down", shared, h, PASS_FORWARD);
    append_exchange(b, builder_tp_reduce(b, "shared_reduce"));
}

static void shared_backward(struct layer_builder *b, enum pass pass)
{
    int64_t h = b->model->hidden, shared = shared_width(b), up = b->model->gated_mlp ? 2 : 1;
    bool input = pass == PASS_BACKWARD_INPUT;
    if (shared == 0)
        return;
    if (input) {
        append_exchange(b, builder_tp_gather(b, "shared_gather"));
        builder_cast(b, "cast_gradient", b->tokens * (double)h);
    }
    shared_linear(b, "shared_down", shared, h, pass);
    if (input) {
        expert_activation(b, b->tokens, shared, true);
        builder_cast(b, "cast_gradient", b->tokens * (double)(up * shared));
    }
    shared_linear(b, "shared_up", h, up * shared, pass);
    if (input) {
        append_exchange(b, b->frozen ? -1 : builder_tp_gather(b, "gather_input_again"));
        append_exchange(b, builder_tp_reduce(b, "shared_reduce"));
    }
}

void mixture_forward(struct layer_builder *b)
{
    struct experts_shape e = experts_shape(b);
    int64_t h = b->model->hidden, up = b->model->gated_mlp ? 2 : 1;
    router(b, false);
    permute(b, &e, "permute");
    to_experts(b, &e, "dispatch");
    pad(b, &e, "pad");
    cast_of_each(b, &e, "cast", h);
    experts_gemm(b, &e, "expert_up", h, up * e.width, PASS_FORWARD);
    expert_activation(b, (double)e.rows, e.width, false);
    cast_of_each(b, &e, "cast", e.width);
    experts_gemm(b, &e, "expert_down", e.width, h, PASS_FORWARD);
    pad(b, &e, "unpad");
    expert_bias(b, &e, false);
    from_experts(b, &e, "combine");
    permute(b, &e, "unpermute");
    gather_shares(b);
    shared_forward(b);
}

void mixture_modules(struct layer_builder *b, enum recompute_what modules)
{
    struct experts_shape e = experts_shape(b);
    if (modules & RECOMPUTE_MOE) {
        mixture_forward(b);
        return;
    }
    if (modules & RECOMPUTE_MOE_ACT) {
        expert_activation(b, (double)e.rows, e.width, false);
        cast_of_each(b, &e, "cast", e.width);
    }
    if (modules & RECOMPUTE_SHARED_EXPERTS)
        shared_forward(b);
}

static void experts_backward(struct layer_builder *b, const struct experts_shape *e, enum pass pass)
{
    int64_t h = b->model->hidden, up = b->model->gated_mlp ? 2 : 1;
    bool input = pass == PASS_BACKWARD_INPUT;
    experts_gemm(b, e, "expert_down", e->width, h, pass);
    if (input) {
        expert_activation(b, (double)e->rows, e->width, true);
        cast_of_each(b, e, "cast_gradient", up * e->width);
    }
    experts_gemm(b, e, "expert_up", h, up * e->width, pass);
    shared_backward(b, pass);
}

/* Of all local experts, whichever got tokens, and the shared ones, as weights outside mixtures (builder_weight_gradient). */
static void sum_gradients(struct layer_builder *b, const struct experts_shape *e)
{
    double matrices = b->model->gated_mlp ? 3 : 2, h = (double)b->model->hidden;
    if (!work_sums_gradients(b->layout, b->job))
        return;
    builder_gradient_sum(b, matrices * h * (double)e->width * e->local);
    if (shared_width(b) > 0)
        builder_gradient_sum(b, matrices * h * (double)shared_width(b));
}

void mixture_backward(struct layer_builder *b, bool input, bool weight)
{
    struct experts_shape e = experts_shape(b);
    if (input) {
        permute(b, &e, "unpermute");
        to_experts(b, &e, "combine");
        expert_bias(b, &e, true);
        pad(b, &e, "unpad");
        cast_of_each(b, &e, "cast_gradient", b->model->hidden);
        experts_backward(b, &e, PASS_BACKWARD_INPUT);
        pad(b, &e, "pad");
        from_experts(b, &e, "dispatch");
        permute(b, &e, "permute");
        router(b, true);
        gather_shares(b);
    }
    if (weight && !b->frozen) {
        experts_backward(b, &e, PASS_BACKWARD_WEIGHT);
        sum_gradients(b, &e);
    }
}
