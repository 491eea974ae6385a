#include "runtime/probe_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/cost/work.h"
#include "runtime/parameters.h"

enum { TOKENS = 0, SECOND_MOMENTS = 6 }; /* buffers that not every number suits */

static struct probe_case *add(struct probe_cases *cases, const char *op, size_t bytes)
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

static void add_product(struct probe_cases *cases, enum kernel kernel, int64_t t, int64_t in, int64_t out)
{
    struct probe_case *c = add(cases, "gemm", (size_t)largest(t * in, t * out, in * out) * sizeof(float));
    c->call = (struct kernel_call){.kernel = kernel, .linear = {.t = t, .in = in, .out = out}};
    c->row.m = kernel == KERNEL_LINEAR_BACKWARD_WEIGHT ? out : t;
    c->row.n = kernel == KERNEL_LINEAR_FORWARD ? out : in;
    c->row.k = kernel == KERNEL_LINEAR_FORWARD ? in : kernel == KERNEL_LINEAR_BACKWARD_INPUT ? out : t;
    c->row.flops = 2.0 * (double)t * (double)in * (double)out;
}

/* Cases from `first` on are executed so often. */
static void executed(struct probe_cases *cases, int first, double times)
{
    for (int i = first; i < cases->n_items; i++)
        cases->items[i].row.times = times;
}

static void add_products(struct probe_cases *cases, double times, int64_t t, int64_t in, int64_t out)
{
    int first = cases->n_items;
    add_product(cases, KERNEL_LINEAR_FORWARD, t, in, out);
    add_product(cases, KERNEL_LINEAR_BACKWARD_INPUT, t, in, out);
    add_product(cases, KERNEL_LINEAR_BACKWARD_WEIGHT, t, in, out);
    executed(cases, first, times);
}

/* --- attention */

static void add_attention(struct probe_cases *cases, const struct attention_call *shape)
{
    size_t row = (size_t)(shape->heads + 2 * shape->kv_heads) * (size_t)shape->head_dim;
    size_t tokens = (size_t)(shape->batch * shape->seq_len);
    for (int backward = 0; backward < 2; backward++) {
        struct probe_case *c = add(cases, backward ? "attention_backward" : "attention_forward", tokens * row * sizeof(float));
        c->call =
            (struct kernel_call){.kernel = backward ? KERNEL_ATTENTION_BACKWARD : KERNEL_ATTENTION_FORWARD, .attention = *shape};
        c->row.batch = shape->batch;
        c->row.seq_len = shape->seq_len;
        c->row.heads = shape->heads;
        c->row.kv_heads = shape->kv_heads;
        c->row.head_dim = shape->head_dim;
        c->row.flops = 4.0 * shape->head_dim * attended_pairs((double)shape->seq_len, (double)shape->window) *
                       (double)shape->batch * shape->heads * (backward ? 2.5 : 1);
    }
}

/* --- kernels limited by memory: bytes are those the operands have */

static void add_streaming(struct probe_cases *cases, struct kernel_call call, const char *op, int64_t operand, double passes)
{
    struct probe_case *c = add(cases, op, (size_t)operand * sizeof(float));
    c->call = call;
    c->row.bytes = (double)operand * passes * (double)cases->element_bytes;
}

static void add_copy(struct probe_cases *cases, int64_t operand)
{
    struct kernel_call call = {.kernel = KERNEL_COPY, .copy.bytes = (size_t)operand * cases->element_bytes};
    add_streaming(cases, call, "copy", operand, 2);
}

static void add_layer_kernels(struct probe_cases *cases, int64_t t, int64_t h, int64_t f, bool rms, bool gated)
{
    struct kernel_call norm = {.kernel = KERNEL_NORM_FORWARD, .norm_forward = {.t = t, .h = h, .rms = rms, .epsilon = 1e-5f}};
    struct kernel_call back = {.kernel = KERNEL_NORM_BACKWARD, .norm_backward = {.t = t, .h = h, .rms = rms}};
    struct kernel_call act = {.kernel = KERNEL_ACTIVATION_FORWARD, .activation = {.t = t, .f = f, .gated = gated}};
    struct kernel_call sum = {.kernel = KERNEL_ADD, .add = {.n = t * h, .h = h}};
    add_streaming(cases, norm, "norm_forward", t * h, 2);
    add_streaming(cases, back, "norm_backward", t * h, 4);
    add_streaming(cases, act, "activation_forward", t * f * (gated ? 2 : 1), gated ? 1.5 : 2);
    act.kernel = KERNEL_ACTIVATION_BACKWARD;
    add_streaming(cases, act, "activation_backward", t * f * (gated ? 2 : 1), gated ? 2.5 : 3);
    add_streaming(cases, sum, "add", t * h, 3);
}

static void add_loss_kernels(struct probe_cases *cases, int64_t t, int64_t v)
{
    struct kernel_call call = {.kernel = KERNEL_LOGITS_MAX, .logits = {.t = t, .v = v, .scale = 1e-3f}};
    add_streaming(cases, call, "logits_max", t * v, 1);
    call.kernel = KERNEL_LOGITS_SUM;
    add_streaming(cases, call, "logits_sum", t * v, 1);
    call.kernel = KERNEL_LOGITS_BACKWARD;
    add_streaming(cases, call, "logits_backward", t * v, 2);
}

double probe_adam_bytes(size_t element_bytes)
{
    return 7 * sizeof(float) + (element_bytes == sizeof(float) ? 0.0 : (double)element_bytes);
}

static void add_optimizer(struct probe_cases *cases, int64_t n)
{
    struct kernel_call call = {.kernel = KERNEL_ADAM,
                               .adam = {.n = n, .rate = 1e-6f, .beta1 = 0.9f, .beta2 = 0.95f, .epsilon = 1e-8f, .step = 10}};
    struct probe_case *c = add(cases, "adam", (size_t)n * sizeof(float));
    c->call = call;
    c->row.bytes = (double)n * probe_adam_bytes(cases->element_bytes);
}

/* --- exchanges */

static void add_exchange(struct probe_cases *cases, enum exchange exchange, int ranks, int64_t elements)
{
    struct probe_case *c = add(cases, exchange_name(exchange), (size_t)elements * sizeof(float));
    int64_t part = elements / ranks;
    c->is_exchange = true;
    c->exchange = (struct exchange_call){.exchange = exchange,
                                         .element = cases->element_bytes == sizeof(float) ? ELEMENT_FP32 : ELEMENT_BF16,
                                         .count = exchange == EXCHANGE_ALL_REDUCE ? part * ranks : part,
                                         .what = "probe"};
    c->row.ranks = ranks;
    c->row.bytes = (double)(part * ranks) * (double)cases->element_bytes;
}

static void add_exchanges(struct probe_cases *cases, int ranks, int64_t elements)
{
    if (ranks < 2)
        return;
    add_exchange(cases, EXCHANGE_ALL_REDUCE, ranks, elements);
    add_exchange(cases, EXCHANGE_ALL_GATHER, ranks, elements);
    add_exchange(cases, EXCHANGE_REDUCE_SCATTER, ranks, elements);
}

/* --- experts, to which copies of tokens spread evenly */

struct experts {
    int64_t tokens, h, ffn, up; /* that are routed; of an expert here, of its first product */
    int n, local, top_k;
    int64_t copies; /* that the local ones work on */
};

static void set_routing(struct probe_cases *cases, struct probe_case *c, struct probe_routing routing)
{
    size_t bytes = (size_t)probe_routing_integers(&routing) * sizeof(int32_t);
    c->routing = routing;
    cases->buffer_bytes = bytes > cases->buffer_bytes ? bytes : cases->buffer_bytes;
}

static void add_grouped(struct probe_cases *cases, enum kernel kernel, const struct experts *e, int64_t in, int64_t out)
{
    int64_t each = e->copies / e->local;
    bool weight = kernel == KERNEL_GROUPED_BACKWARD_WEIGHT, forward = kernel == KERNEL_GROUPED_FORWARD;
    size_t bytes = (size_t)largest(e->copies * in, e->copies * out, e->local * in * out) * sizeof(float);
    struct probe_case *c = add(cases, "grouped_gemm", bytes);
    c->call = (struct kernel_call){.kernel = kernel, .grouped = {.groups = e->local, .most = e->copies, .in = in, .out = out}};
    set_routing(cases, c, (struct probe_routing){each * e->local, e->local});
    c->row.count = e->local;
    c->row.m = weight ? out : each;
    c->row.n = forward ? out : in;
    c->row.k = forward ? in : weight ? each : out;
    c->row.flops = 2.0 * (double)(each * e->local) * (double)in * (double)out;
}

static void add_grouped_products(struct probe_cases *cases, const struct experts *e, int64_t in, int64_t out)
{
    add_grouped(cases, KERNEL_GROUPED_FORWARD, e, in, out);
    add_grouped(cases, KERNEL_GROUPED_BACKWARD_INPUT, e, in, out);
    add_grouped(cases, KERNEL_GROUPED_BACKWARD_WEIGHT, e, in, out);
}

/* A kernel that goes by a routing of the tokens here; `bytes` it moves. */
static void add_routed(struct probe_cases *cases, struct kernel_call call, const char *op, const struct experts *e,
                       int64_t operand, double bytes)
{
    struct probe_case *c = add(cases, op, (size_t)operand * sizeof(float));
    c->call = call;
    set_routing(cases, c, (struct probe_routing){e->tokens * e->top_k, e->n});
    c->row.bytes = bytes;
}

static void add_routing(struct probe_cases *cases, const struct experts *e)
{
    int64_t n = e->tokens * e->top_k;
    double element = (double)cases->element_bytes, row = (double)e->h * element, integers = 4.0 * (double)n;
    struct kernel_call route = {.kernel = KERNEL_ROUTE_FORWARD, .route = {.t = e->tokens, .experts = e->n, .top_k = e->top_k}};
    struct kernel_call sort = {.kernel = KERNEL_EXPERT_SORT, .expert_sort = {.n = n, .experts = e->n}};
    struct kernel_call rows = {
        .kernel = KERNEL_ROWS,
        .rows = {.n = n, .width = e->h, .from_row = e->h, .to_row = e->h, .share = e->top_k, .scatter = true}};
    struct kernel_call combine = {.kernel = KERNEL_COMBINE_FORWARD, .combine = {.t = e->tokens, .h = e->h, .top_k = e->top_k}};
    add_routed(cases, route, "top_k", e, e->tokens * e->n, (double)(e->tokens * e->n) * element + 2 * integers);
    add_routed(cases, sort, "expert_sort", e, n, 2 * integers);
    add_routed(cases, rows, "permute", e, n * e->h, (double)(e->tokens + n) * row);
    add_routed(cases, combine, "combine_forward", e, n * e->h, (double)(e->tokens + n) * row);
    combine.kernel = KERNEL_COMBINE_BACKWARD;
    add_routed(cases, combine, "combine_backward", e, n * e->h, (double)(e->tokens + 2 * n) * row);
}

static void add_experts(struct probe_cases *cases, double times, const struct experts *e)
{
    int first = cases->n_items;
    add_grouped_products(cases, e, e->h, e->up);
    add_grouped_products(cases, e, e->ffn, e->h);
    add_routing(cases, e);
    executed(cases, first, times);
    add_products(cases, times, e->tokens, e->h, e->n); /* the router */
}

/* --- sizes */

static void add_ladder(struct probe_cases *cases, int ranks)
{
    static const int64_t widths[] = {64, 128, 256, 512};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        int64_t w = widths[i];
        struct experts experts = {.tokens = 128, .h = w, .ffn = w, .up = w, .n = 8, .local = 8, .top_k = 2, .copies = 256};
        add_products(cases, 1, 128, w, w);
        add_products(cases, 1, w, w, 4 * w);
        add_experts(cases, 1, &experts);
        add_layer_kernels(cases, 128, w, 4 * w, false, false);
        struct attention_call attention = {.batch = 1, .seq_len = w, .heads = 4, .kv_heads = 4, .head_dim = 64};
        add_attention(cases, &attention);
        add_loss_kernels(cases, 128, 8 * w);
        add_optimizer(cases, w * w);
        add_exchanges(cases, ranks, w * 64);
        add_copy(cases, w * w);
    }
}

/* Sizes that fill a GPU. */
static void add_large_ladder(struct probe_cases *cases, int ranks)
{
    enum { LARGEST_EXPERT = 4096 };
    static const int64_t widths[] = {1024, 2048, 4096, 8192};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        int64_t w = widths[i], t = 4096;
        struct experts experts = {.tokens = t, .h = w, .ffn = w / 2, .up = w, .n = 8, .local = 8, .top_k = 2, .copies = 2 * t};
        add_products(cases, 1, t, w, w);
        add_products(cases, 1, t, w, 4 * w);
        if (w <= LARGEST_EXPERT) /* larger ones take seconds and gigabytes */
            add_experts(cases, 1, &experts);
        add_layer_kernels(cases, t, w, 4 * w, false, false);
        struct attention_call attention = {.batch = 16384 / w, .seq_len = w, .heads = 16, .kv_heads = 16, .head_dim = 128};
        add_attention(cases, &attention);
        add_loss_kernels(cases, t, 4 * w);
        add_optimizer(cases, w * w);
        add_exchanges(cases, ranks, w * w);
        add_copy(cases, w * w);
    }
    add_exchanges(cases, ranks, 1 << 14);
}

/* The copies that all ranks of an expert-parallel group send here are as many as this rank sends. */
static struct experts experts_of(const struct shape *s)
{
    const struct mixture_shape *moe = &s->moe;
    int64_t copies = moe->tokens * moe->tp * moe->top_k, local = moe->local;
    return (struct experts){.tokens = moe->tokens,
                            .h = s->hidden,
                            .ffn = moe->ffn,
                            .up = moe->up_width,
                            .n = moe->experts,
                            .local = moe->local,
                            .top_k = moe->top_k,
                            .copies = copies > local ? copies / local * local : local};
}

static void add_mixtures(struct probe_cases *cases, const struct shape *s, double times)
{
    struct experts experts = experts_of(s);
    if (times <= 0)
        return;
    add_experts(cases, times, &experts);
    if (!s->moe.shared)
        return;
    add_products(cases, times, s->tokens, s->hidden, s->moe.shared_up);
    add_products(cases, times, s->tokens, s->moe.shared, s->hidden);
}

static void add_job_products(struct probe_cases *cases, const struct probe_options *options, const struct shape *s)
{
    const struct transformer *m = options->setting->model;
    double pp = options->layout->pp, mixtures = 0;
    for (int i = 0; i < s->layers; i++)
        mixtures += layer_is_mixture(m, i);
    add_products(cases, s->layers / pp, s->tokens, s->hidden, s->qkv_width);
    add_products(cases, s->layers / pp, s->tokens, s->context_width, s->hidden);
    if (s->layers > mixtures) {
        add_products(cases, (s->layers - mixtures) / pp, s->tokens, s->hidden, s->up_width);
        add_products(cases, (s->layers - mixtures) / pp, s->tokens, s->ffn, s->hidden);
    }
    add_mixtures(cases, s, mixtures / pp);
    add_products(cases, (1 + s->predictions) / pp, s->tokens, s->hidden, s->vocab_count);
}

static void add_job(struct probe_cases *cases, const struct probe_options *options)
{
    struct shape s = shape_of(options->layout, options->setting, options->shape_rank);
    add_job_products(cases, options, &s);
    struct attention_call attention = {
        .batch = s.micro_batch, .seq_len = s.seq_len, .heads = s.heads, .kv_heads = s.kv_heads, .head_dim = s.head_dim};
    attention.window = (int64_t)sliding_window_width(options->setting, options->layout->features, 0);
    add_attention(cases, &attention);
    add_layer_kernels(cases, s.local_tokens, s.hidden, s.ffn * s.tokens / s.local_tokens, s.rms, s.gated);
    add_loss_kernels(cases, s.tokens, s.vocab_count);
    add_optimizer(cases, s.hidden * (s.qkv_width + s.query_width + s.up_width + s.ffn));
    add_exchanges(cases, options->ranks, 1024);
    add_exchanges(cases, options->ranks, s.tokens * s.hidden);
    add_exchanges(cases, options->ranks, 8 * s.tokens * s.hidden);
    add_copy(cases, s.tokens * s.hidden);
    add_copy(cases, 8 * s.tokens * s.hidden);
}

void probe_cases_make(const struct probe_options *options, size_t element_bytes, struct probe_cases *cases)
{
    *cases = (struct probe_cases){.element_bytes = element_bytes};
    struct probe_case *nothing = add(cases, "nothing", 64);
    nothing->call = (struct kernel_call){.kernel = KERNEL_ZERO, .zero.bytes = sizeof(float)};
    if (options->layout)
        add_job(cases, options);
    else if (element_bytes < sizeof(float))
        add_large_ladder(cases, options->ranks);
    else
        add_ladder(cases, options->ranks);
}

void probe_cases_free(struct probe_cases *cases)
{
    free(cases->items);
    *cases = (struct probe_cases){0};
}

/* --- operands */

void probe_buffer_fill(void *buffer, size_t bytes, size_t element_bytes, int which)
{
    uint32_t state = 12345u + (uint32_t)which;
    for (size_t i = 0; i < bytes / element_bytes; i++) {
        state = state * 1664525u + 1013904223u;
        float value = which == TOKENS ? 0 : (float)(state >> 8) / 16777216.0f - (which == SECOND_MOMENTS ? 0 : 0.5f);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        uint16_t upper = (uint16_t)(bits >> 16);
        memcpy((char *)buffer + i * element_bytes, element_bytes == sizeof value ? (const void *)&value : &upper, element_bytes);
    }
}

/* Integers of a routing, one part behind the other: [copies] experts, [copies] places, [experts + 1] offsets, [experts] counts.
 */
int64_t probe_routing_integers(const struct probe_routing *r)
{
    return 2 * r->copies + 2 * r->experts + 1;
}

void probe_routing_fill(const struct probe_routing *r, int32_t *integers)
{
    int64_t n = r->copies;
    int32_t *place = integers + n, *offsets = place + n, *counts = offsets + r->experts + 1;
    offsets[0] = 0;
    for (int e = 0; e < r->experts; e++) {
        counts[e] = (int32_t)((n + r->experts - 1 - e) / r->experts);
        offsets[e + 1] = offsets[e] + counts[e];
    }
    for (int64_t i = 0; i < n; i++) { /* copy i goes to expert i mod experts, as the i / experts-th */
        integers[i] = (int32_t)(i % r->experts);
        place[i] = offsets[i % r->experts] + (int32_t)(i / r->experts);
    }
}

typedef void *const buffers[PROBE_BUFFERS];

static void place_linear(struct linear_call *c, buffers b)
{
    c->x = b[1];
    c->w = b[2];
    c->y = c->dx = b[3];
    c->dy = b[4];
    c->dw = b[5];
}

static void place_attention(struct attention_call *c, buffers b)
{
    c->qkv = b[1];
    c->out = b[2];
    c->log_sum_exp = b[3];
    c->dout = b[4];
    c->dqkv = b[5];
}

static void place_norm_forward(struct norm_forward_call *c, buffers b)
{
    c->x = b[1];
    c->gain = b[2];
    c->y = b[3];
    c->mean = b[4];
    c->rstd = b[5];
}

static void place_norm_backward(struct norm_backward_call *c, buffers b)
{
    c->dy = b[1];
    c->x = b[2];
    c->gain = b[1];
    c->mean = c->rstd = b[4];
    c->dx = b[3];
    c->dgain = b[5];
}

static void place_activation(struct activation_call *c, buffers b)
{
    c->u = b[1];
    c->a = c->du = b[3];
    c->da = b[2];
}

static void place_logits(struct logits_call *c, buffers b)
{
    c->targets = b[TOKENS];
    c->logits = b[3];
    c->max = b[4];
    c->sums = b[5];
}

static void place_adam(struct adam_call *c, buffers b, size_t element_bytes)
{
    c->p = b[3];
    c->m = b[4];
    c->v = b[SECOND_MOMENTS];
    c->g = b[1];
    c->compute = element_bytes == sizeof(float) ? NULL : b[7];
}

static void place_grouped(struct grouped_call *c, const struct probe_routing *r, buffers b)
{
    c->offsets = (const int32_t *)b[TOKENS] + 2 * r->copies;
    c->x = b[1];
    c->w = b[2];
    c->y = c->dx = b[3];
    c->dy = b[4];
    c->dw = b[5];
}

static void place_routing(struct kernel_call *call, const struct probe_routing *r, buffers b)
{
    int32_t *expert = b[TOKENS], *place = expert + r->copies, *counts = place + r->copies + r->experts + 1;
    switch (call->kernel) {
    case KERNEL_ROUTE_FORWARD:
        call->route.logits = b[1];
        call->route.gate = b[2];
        call->route.expert = b[3]; /* what it chooses is not what the even spread says */
        break;
    case KERNEL_EXPERT_SORT:
        call->expert_sort.expert = expert;
        call->expert_sort.counts = counts;
        call->expert_sort.place = b[3];
        break;
    case KERNEL_ROWS:
        call->rows.index = place;
        call->rows.from = b[1];
        call->rows.to = b[2];
        break;
    default: /* combine */
        call->combine.rows = b[1];
        call->combine.place = place;
        call->combine.gate = b[2];
        call->combine.y = b[3];
        call->combine.dy = b[4];
        call->combine.drows = b[5];
        call->combine.dgate = b[7];
        break;
    }
}

struct kernel_call probe_case_place(const struct probe_case *c, void *const b[PROBE_BUFFERS], size_t element_bytes)
{
    struct kernel_call call = c->call;
    switch (call.kernel) {
    case KERNEL_LINEAR_FORWARD:
    case KERNEL_LINEAR_BACKWARD_INPUT:
    case KERNEL_LINEAR_BACKWARD_WEIGHT: place_linear(&call.linear, b); break;
    case KERNEL_GROUPED_FORWARD:
    case KERNEL_GROUPED_BACKWARD_INPUT:
    case KERNEL_GROUPED_BACKWARD_WEIGHT: place_grouped(&call.grouped, &c->routing, b); break;
    case KERNEL_ATTENTION_FORWARD:
    case KERNEL_ATTENTION_BACKWARD: place_attention(&call.attention, b); break;
    case KERNEL_NORM_FORWARD: place_norm_forward(&call.norm_forward, b); break;
    case KERNEL_NORM_BACKWARD: place_norm_backward(&call.norm_backward, b); break;
    case KERNEL_ACTIVATION_FORWARD:
    case KERNEL_ACTIVATION_BACKWARD: place_activation(&call.activation, b); break;
    case KERNEL_ADD: call.add = (struct add_call){call.add.n, call.add.h, .a = b[1], .b = b[2], .y = b[3]}; break;
    case KERNEL_LOGITS_MAX:
    case KERNEL_LOGITS_SUM:
    case KERNEL_LOGITS_BACKWARD: place_logits(&call.logits, b); break;
    case KERNEL_ADAM: place_adam(&call.adam, b, element_bytes); break;
    case KERNEL_ZERO: call.zero.at = b[7]; break;
    case KERNEL_COPY: call.copy = (struct copy_call){b[2], b[1], call.copy.bytes}; break;
    default: place_routing(&call, &c->routing, b); break;
    }
    return call;
}
