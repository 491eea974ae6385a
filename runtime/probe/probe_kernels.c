/* probe_kernels.c - the kernels and exchanges that a probe can measure, each added to a list of cases. */
#include "runtime/probe/probe_cases.h"

#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/cost/work/host_memory.h"
#include "model/cost/work/work.h"

struct probe_case *probe_add(struct probe_cases *cases, const char *op, size_t bytes)
{
    cases->items = memory_grow(cases->items, &cases->capacity, (size_t)cases->n_items + 1, sizeof *cases->items);
    struct probe_case *c = &cases->items[cases->n_items++];
    *c = (struct probe_case){0};
    snprintf(c->row.op, sizeof c->row.op, "%s", op);
    c->row.times = 1;
    cases->buffer_bytes = bytes > cases->buffer_bytes ? bytes : cases->buffer_bytes;
    return c;
}

static int64_t largest(int64_t a, int64_t b, int64_t c)
{
    int64_t ab = a > b ? a : b;
    return ab > c ? ab : c;
}

/* --- matrix products */

/* Operands of 8 bits have one scale here, also where a job has one for each block. */
static bool set_narrow(const struct probe_cases *cases, struct narrow_operand *x, struct narrow_operand *w,
                       struct narrow_operand *dy)
{
    x->format = w->format = cases->recipe.activations;
    dy->format = cases->recipe.gradients;
    return x->format != NARROW_NONE;
}

static const char *given_by(bool forward, bool weight)
{
    return forward ? "output" : weight ? "weight gradient" : "input gradient";
}

static void add_product(struct probe_cases *cases, enum kernel kernel, bool biased, int64_t t, int64_t in, int64_t out)
{
    struct linear_call linear = {.t = t, .in = in, .out = out};
    bool narrow = set_narrow(cases, &linear.x_as, &linear.w_as, &linear.dy_as);
    int64_t operand = narrow ? t * in + t * out + in * out : largest(t * in, t * out, in * out); /* or room for their numbers */
    struct probe_case *c = probe_add(cases, narrow ? "narrow_gemm" : "gemm", (size_t)operand * sizeof(float));
    c->call = (struct kernel_call){.kernel = kernel, .linear = linear};
    c->extras = biased && !narrow;
    c->row.m = kernel == KERNEL_LINEAR_BACKWARD_WEIGHT ? out : t;
    c->row.n = kernel == KERNEL_LINEAR_FORWARD ? out : in;
    c->row.k = kernel == KERNEL_LINEAR_FORWARD ? in : kernel == KERNEL_LINEAR_BACKWARD_INPUT ? out : t;
    c->row.gives = given_by(kernel == KERNEL_LINEAR_FORWARD, kernel == KERNEL_LINEAR_BACKWARD_WEIGHT);
    c->row.flops = 2.0 * (double)t * (double)in * (double)out;
}

/* Cases from `first` on are executed that many times. */
static void executed(struct probe_cases *cases, int first, double times)
{
    for (int i = first; i < cases->n_items; i++)
        cases->items[i].row.times = times;
}

void probe_add_products(struct probe_cases *cases, double times, bool biased, int64_t t, int64_t in, int64_t out)
{
    int first = cases->n_items;
    add_product(cases, KERNEL_LINEAR_FORWARD, biased, t, in, out);
    add_product(cases, KERNEL_LINEAR_BACKWARD_INPUT, biased, t, in, out);
    add_product(cases, KERNEL_LINEAR_BACKWARD_WEIGHT, biased, t, in, out);
    executed(cases, first, times);
}

/* --- attention */

/* One pass of attention as a table describes it: heads of keys and of values are `row` elements wide together. */
static void add_attention(struct probe_cases *cases, struct kernel_call call, bool backward, const struct query_range_call *shape)
{
    size_t row =
        (size_t)(shape->heads + shape->kv_heads) * (size_t)shape->head_dim + (size_t)(shape->kv_heads * shape->value_dim);
    size_t tokens = (size_t)(shape->batch * shape->queries);
    struct probe_case *c = probe_add(cases, backward ? "attention_backward" : "attention_forward", tokens * row * sizeof(float));
    c->call = call;
    c->row.batch = shape->batch;
    c->row.seq_len = shape->queries;
    c->row.heads = shape->heads;
    c->row.kv_heads = shape->kv_heads;
    c->row.head_dim = shape->head_dim;
    c->row.flops = 2.0 * (shape->head_dim + shape->value_dim) * attended_pairs((double)shape->queries, (double)shape->window) *
                   (double)shape->batch * shape->heads * (backward ? 2.5 : 1);
}

void probe_add_attention(struct probe_cases *cases, const struct attention_call *shape)
{
    struct query_range_call whole = {.batch = shape->batch,
                                     .queries = shape->seq_len,
                                     .window = shape->window,
                                     .heads = shape->heads,
                                     .kv_heads = shape->kv_heads,
                                     .head_dim = shape->head_dim,
                                     .value_dim = shape->head_dim};
    for (int backward = 0; backward < 2; backward++) {
        struct kernel_call call = {.kernel = backward ? KERNEL_ATTENTION_BACKWARD : KERNEL_ATTENTION_FORWARD,
                                   .attention = *shape};
        add_attention(cases, call, backward, &whole);
    }
}

void probe_add_query_range(struct probe_cases *cases, const struct query_range_call *shape)
{
    for (int backward = 0; backward < 2; backward++) {
        struct kernel_call call = {.kernel = backward ? KERNEL_QUERY_RANGE_BACKWARD : KERNEL_QUERY_RANGE_FORWARD,
                                   .query_range = *shape};
        add_attention(cases, call, backward, shape);
    }
}

/* --- kernels limited by memory: bytes are those the operands have */

struct probe_case *probe_add_streaming(struct probe_cases *cases, struct kernel_call call, enum memory_kernel part, double times,
                                       const char *op, int64_t operand, double passes)
{
    struct probe_case *c = probe_add(cases, op, (size_t)operand * sizeof(float));
    c->call = call;
    c->row.bytes = (double)operand * passes * (double)cases->element_bytes;
    c->row.elements = (double)operand;
    c->row.part = part;
    c->row.times = times;
    return c;
}

void probe_add_copy(struct probe_cases *cases, int64_t operand)
{
    struct kernel_call call = {.kernel = KERNEL_COPY, .copy.bytes = (size_t)operand * cases->element_bytes};
    probe_add_streaming(cases, call, MEMORY_STREAM, 1, "copy", operand, 2);
}

static void set_host_bytes(struct probe_cases *cases, size_t bytes)
{
    cases->host_bytes = bytes > cases->host_bytes ? bytes : cases->host_bytes;
}

void probe_add_host_copy(struct probe_cases *cases, int64_t operand)
{
    size_t bytes = (size_t)operand * cases->element_bytes;
    struct kernel_call call = {.kernel = KERNEL_COPY, .copy.bytes = bytes};
    probe_add_streaming(cases, call, MEMORY_STREAM, 1, "host_copy", operand, 1)->to_host = true;
    cases->copied_bytes = bytes > cases->weight_bytes ? bytes : cases->weight_bytes;
    set_host_bytes(cases, cases->copied_bytes);
}

void probe_add_casts(struct probe_cases *cases, int64_t rows, int64_t cols)
{
    const struct narrow_recipe *recipe = &cases->recipe;
    int64_t n = rows * cols;
    if (recipe->activations == NARROW_NONE)
        return;
    struct kernel_call most = {.kernel = KERNEL_LARGEST, .largest = {.rows = rows, .cols = cols}};
    struct kernel_call cast = {.kernel = KERNEL_QUANTISE,
                               .quantise = {.rows = rows, .cols = cols, .format = recipe->activations}};
    struct kernel_call blocks = {.kernel = KERNEL_QUANTISE_BLOCKS,
                                 .quantise_blocks = {.rows = rows, .cols = cols, .format = recipe->activations}};
    if (!recipe->in_blocks) {
        probe_add_streaming(cases, most, MEMORY_STREAM, 1, "cast_largest", n, 1);
        probe_add_streaming(cases, cast, MEMORY_STREAM, 1, "cast", n, 1.25);
        return;
    }
    for (int down = 0; down < 2; down++) {
        blocks.quantise_blocks.down = down;
        probe_add_streaming(cases, blocks, MEMORY_STREAM, 1, "cast", n, 1.25);
    }
}

/* `around`: of the backward ones, the share that adds the gradient which went around the branch. */
void probe_add_norms(struct probe_cases *cases, const struct probe_layer *l, double around)
{
    int64_t n = l->t * l->h;
    struct kernel_call norm = {.kernel = KERNEL_NORM_FORWARD,
                               .norm_forward = {.t = l->t, .h = l->h, .rms = l->rms, .epsilon = NORM_EPSILON}};
    struct kernel_call back = {.kernel = KERNEL_NORM_BACKWARD, .norm_backward = {.t = l->t, .h = l->h, .rms = l->rms}};
    probe_add_streaming(cases, norm, MEMORY_NORM, 1, "norm_forward", n, 2);
    if (around < 1)
        probe_add_streaming(cases, back, MEMORY_NORM_BACKWARD, 1 - around, "norm_backward", n, 4);
    if (around > 0)
        probe_add_streaming(cases, back, MEMORY_NORM_BACKWARD, around, "norm_backward", n, 5)->extras = true;
}

void probe_add_activation(struct probe_cases *cases, const struct probe_layer *l)
{
    int64_t n = l->activated * l->f * (l->gated ? 2 : 1);
    struct kernel_call call = {.kernel = KERNEL_ACTIVATION_FORWARD,
                               .activation = {.t = l->activated, .f = l->f, .gated = l->gated}};
    probe_add_streaming(cases, call, MEMORY_ACTIVATION, 1, "activation_forward", n, l->gated ? 1.5 : 2);
    call.kernel = KERNEL_ACTIVATION_BACKWARD;
    probe_add_streaming(cases, call, MEMORY_ACTIVATION_BACKWARD, 1, "activation_backward", n, l->gated ? 2.5 : 3);
}

void probe_add_loss(struct probe_cases *cases, int64_t t, int64_t v)
{
    struct kernel_call call = {.kernel = KERNEL_LOGITS_MAX, .logits = {.t = t, .v = v, .scale = 1e-3f}};
    probe_add_streaming(cases, call, MEMORY_LOSS, 1, "logits_max", t * v, 1);
    call.kernel = KERNEL_LOGITS_SUM;
    probe_add_streaming(cases, call, MEMORY_LOSS, 1, "logits_sum", t * v, 1);
    call.kernel = KERNEL_LOGITS_BACKWARD;
    probe_add_streaming(cases, call, MEMORY_LOSS_BACKWARD, 1, "logits_backward", t * v, 2);
}

/* Numbers that keep weights where they are, however often. */
#define OPTIMIZER_FIELDS(n_) .n = (n_), .rate = 1e-6f
#define ADAM_FIELDS          .beta1 = OPTIMIZER_BETA1, .beta2 = OPTIMIZER_BETA2, .epsilon = OPTIMIZER_EPSILON, .step = 10

void probe_add_optimizer(struct probe_cases *cases, enum optimizer optimizer, int64_t n)
{
    struct kernel_call squares = {.kernel = KERNEL_SQUARE_SUM, .square_sum = {.n = n}};
    struct kernel_call adam = {.kernel = KERNEL_ADAM, .adam = {OPTIMIZER_FIELDS(n), ADAM_FIELDS}};
    struct kernel_call sgd = {.kernel = KERNEL_SGD, .sgd = {OPTIMIZER_FIELDS(n), .momentum = OPTIMIZER_BETA1}};
    struct kernel_call lamb = {.kernel = KERNEL_LAMB_UPDATE, .lamb_part = {OPTIMIZER_FIELDS(n), ADAM_FIELDS}};
    double floats = sizeof(float) / (double)cases->element_bytes; /* weights and moments have four bytes everywhere */
    double copy = cases->element_bytes == sizeof(float) ? 0 : 1;  /* and what the device computes with is another tensor */
    probe_add_streaming(cases, squares, MEMORY_OPTIMIZER, 1, "square_sum", n, floats);
    if (optimizer == OPTIMIZER_ADAM || optimizer == OPTIMIZER_MUON) {
        probe_add_streaming(cases, adam, MEMORY_OPTIMIZER, 1, "adam", n, 7 * floats + copy);
    } else if (optimizer == OPTIMIZER_SGD) {
        probe_add_streaming(cases, sgd, MEMORY_OPTIMIZER, 1, "sgd", n, 5 * floats + copy);
    } else {
        probe_add_streaming(cases, lamb, MEMORY_OPTIMIZER, 1, "lamb_update", n, 7 * floats);
        lamb.kernel = KERNEL_LAMB_APPLY;
        probe_add_streaming(cases, lamb, MEMORY_OPTIMIZER, 1, "lamb_apply", n, 3 * floats + copy);
    }
}

void probe_add_host_update(struct probe_cases *cases, const struct job *job, int64_t n)
{
    struct kernel_call call = {.kernel = KERNEL_ADAM, .adam = {OPTIMIZER_FIELDS(n), ADAM_FIELDS}};
    if (job->optimizer == OPTIMIZER_SGD)
        call = (struct kernel_call){.kernel = KERNEL_SGD, .sgd = {OPTIMIZER_FIELDS(n), .momentum = OPTIMIZER_BETA1}};
    struct probe_case *c = probe_add_streaming(cases, call, MEMORY_STREAM, 1, "host_update", n, 1);
    c->row.bytes = (double)n * host_update_bytes(job);
    c->by_host = true;
    set_host_bytes(cases, (size_t)n * HOST_UPDATE_ARRAYS * sizeof(float));
}

/* --- exchanges */

struct probe_case *probe_add_exchange(struct probe_cases *cases, enum exchange exchange, double times, int ranks,
                                      int64_t elements)
{
    struct probe_case *c = probe_add(cases, exchange_name(exchange), (size_t)elements * sizeof(float));
    int64_t part = elements / ranks;
    c->is_exchange = true;
    c->exchange = (struct exchange_call){.exchange = exchange,
                                         .element = cases->element_bytes == sizeof(float) ? ELEMENT_FP32 : ELEMENT_BF16,
                                         .count = exchange == EXCHANGE_ALL_REDUCE ? part * ranks : part,
                                         .what = "probe"};
    c->row.times = times;
    c->row.ranks = ranks;
    c->row.bytes = (double)(part * ranks) * (double)cases->element_bytes;
    return c;
}

void probe_add_exchanges(struct probe_cases *cases, int ranks, int64_t elements)
{
    if (ranks < 2)
        return;
    probe_add_exchange(cases, EXCHANGE_ALL_REDUCE, 1, ranks, elements);
    probe_add_exchange(cases, EXCHANGE_ALL_GATHER, 1, ranks, elements);
    probe_add_exchange(cases, EXCHANGE_REDUCE_SCATTER, 1, ranks, elements);
}

/* --- experts, to which copies of tokens spread evenly */

/* Integers of a routing, one part behind the other: [copies] experts, [copies] places, [experts + 1] offsets, [experts] counts.
 */
int64_t probe_routing_integers(const struct probe_routing *r)
{
    return 2 * r->copies + 2 * r->experts + 1;
}

void probe_case_route(struct probe_cases *cases, struct probe_case *c, struct probe_routing routing)
{
    size_t bytes = (size_t)probe_routing_integers(&routing) * sizeof(int32_t);
    c->routing = routing;
    cases->buffer_bytes = bytes > cases->buffer_bytes ? bytes : cases->buffer_bytes;
}

static void add_grouped(struct probe_cases *cases, enum kernel kernel, const struct probe_experts *e, int64_t in, int64_t out)
{
    int64_t each = e->copies / e->local;
    bool weight = kernel == KERNEL_GROUPED_BACKWARD_WEIGHT, forward = kernel == KERNEL_GROUPED_FORWARD;
    struct grouped_call grouped = {.groups = e->local, .most = e->copies, .in = in, .out = out};
    bool narrow = set_narrow(cases, &grouped.x_as, &grouped.w_as, &grouped.dy_as);
    int64_t x = e->copies * in, y = e->copies * out, w = e->local * in * out;
    size_t bytes = (size_t)(narrow ? x + y + w : largest(x, y, w)) * sizeof(float);
    struct probe_case *c = probe_add(cases, narrow ? "narrow_grouped_gemm" : "grouped_gemm", bytes);
    c->call = (struct kernel_call){.kernel = kernel, .grouped = grouped};
    probe_case_route(cases, c, (struct probe_routing){each * e->local, e->local});
    c->row.count = e->local;
    c->row.m = weight ? out : each;
    c->row.n = forward ? out : in;
    c->row.k = forward ? in : weight ? each : out;
    c->row.gives = given_by(forward, weight);
    c->row.flops = 2.0 * (double)(each * e->local) * (double)in * (double)out;
}

static void add_grouped_products(struct probe_cases *cases, const struct probe_experts *e, int64_t in, int64_t out)
{
    add_grouped(cases, KERNEL_GROUPED_FORWARD, e, in, out);
    add_grouped(cases, KERNEL_GROUPED_BACKWARD_INPUT, e, in, out);
    add_grouped(cases, KERNEL_GROUPED_BACKWARD_WEIGHT, e, in, out);
}

/* A kernel that goes by a routing of the tokens here; `bytes` it moves. `times` in an operation of `part`: permutations are four,
 * there and back in both passes. */
static void add_routed(struct probe_cases *cases, struct kernel_call call, enum memory_kernel part, double times, const char *op,
                       const struct probe_experts *e, int64_t operand, double bytes)
{
    struct probe_case *c = probe_add(cases, op, (size_t)operand * sizeof(float));
    c->call = call;
    c->row.part = part;
    c->row.times = times;
    probe_case_route(cases, c, (struct probe_routing){e->tokens * e->top_k, e->n});
    c->row.bytes = bytes;
}

static void add_routing(struct probe_cases *cases, const struct probe_experts *e)
{
    int64_t n = e->tokens * e->top_k;
    double element = (double)cases->element_bytes, row = (double)e->h * element, integers = 4.0 * (double)n;
    struct kernel_call route = {.kernel = KERNEL_ROUTE_FORWARD, .route = {.t = e->tokens, .experts = e->n, .top_k = e->top_k}};
    struct kernel_call sort = {.kernel = KERNEL_EXPERT_SORT, .expert_sort = {.n = n, .experts = e->n}};
    struct kernel_call rows = {
        .kernel = KERNEL_ROWS,
        .rows = {.n = n, .width = e->h, .from_row = e->h, .to_row = e->h, .share = e->top_k, .scatter = true}};
    struct kernel_call combine = {.kernel = KERNEL_COMBINE_FORWARD, .combine = {.t = e->tokens, .h = e->h, .top_k = e->top_k}};
    add_routed(cases, route, MEMORY_ROUTING, 1, "top_k", e, e->tokens * e->n,
               (double)(e->tokens * e->n) * element + 2 * integers);
    add_routed(cases, sort, MEMORY_PERMUTATION, 0.25, "expert_sort", e, n, 2 * integers);
    add_routed(cases, rows, MEMORY_PERMUTATION, 0.25, "permute", e, n * e->h, (double)(e->tokens + n) * row);
    add_routed(cases, combine, MEMORY_PERMUTATION, 0.5, "combine_forward", e, n * e->h, (double)(e->tokens + n) * row);
    combine.kernel = KERNEL_COMBINE_BACKWARD;
    add_routed(cases, combine, MEMORY_PERMUTATION, 0.25, "combine_backward", e, n * e->h, (double)(e->tokens + 2 * n) * row);
}

void probe_add_experts(struct probe_cases *cases, double times, const struct probe_experts *e)
{
    int first = cases->n_items;
    add_grouped_products(cases, e, e->h, e->up);
    add_grouped_products(cases, e, e->ffn, e->h);
    executed(cases, first, times);
    add_routing(cases, e);
    struct narrow_recipe recipe = cases->recipe;
    cases->recipe = (struct narrow_recipe){0};
    probe_add_products(cases, times, false, e->tokens, e->h, e->n); /* the router */
    cases->recipe = recipe;
}
