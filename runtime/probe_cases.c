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

static void add_products(struct probe_cases *cases, int64_t t, int64_t in, int64_t out)
{
    add_product(cases, KERNEL_LINEAR_FORWARD, t, in, out);
    add_product(cases, KERNEL_LINEAR_BACKWARD_INPUT, t, in, out);
    add_product(cases, KERNEL_LINEAR_BACKWARD_WEIGHT, t, in, out);
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

/* --- sizes */

static void add_ladder(struct probe_cases *cases, int ranks)
{
    static const int64_t widths[] = {64, 128, 256, 512};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        int64_t w = widths[i];
        add_products(cases, 128, w, w);
        add_products(cases, w, w, 4 * w);
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
    static const int64_t widths[] = {1024, 2048, 4096, 8192};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        int64_t w = widths[i], t = 4096;
        add_products(cases, t, w, w);
        add_products(cases, t, w, 4 * w);
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

static void add_job(struct probe_cases *cases, const struct probe_options *options)
{
    struct shape s = shape_of(options->layout, options->setting, options->shape_rank);
    add_products(cases, s.tokens, s.hidden, s.qkv_width);
    add_products(cases, s.tokens, s.query_width, s.hidden);
    add_products(cases, s.tokens, s.hidden, s.up_width);
    add_products(cases, s.tokens, s.ffn, s.hidden);
    add_products(cases, s.tokens, s.hidden, s.vocab_count);
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

static void place_linear(struct linear_call *c, void *const b[PROBE_BUFFERS])
{
    c->x = b[1];
    c->w = b[2];
    c->y = c->dx = b[3];
    c->dy = b[4];
    c->dw = b[5];
}

void probe_case_place(struct kernel_call *call, void *const b[PROBE_BUFFERS], size_t element_bytes)
{
    switch (call->kernel) {
    case KERNEL_LINEAR_FORWARD:
    case KERNEL_LINEAR_BACKWARD_INPUT:
    case KERNEL_LINEAR_BACKWARD_WEIGHT: place_linear(&call->linear, b); break;
    case KERNEL_ATTENTION_FORWARD:
    case KERNEL_ATTENTION_BACKWARD:
        call->attention.qkv = b[1];
        call->attention.out = b[2];
        call->attention.log_sum_exp = b[3];
        call->attention.dout = b[4];
        call->attention.dqkv = b[5];
        break;
    case KERNEL_NORM_FORWARD:
        call->norm_forward.x = b[1];
        call->norm_forward.gain = b[2];
        call->norm_forward.y = b[3];
        call->norm_forward.mean = b[4];
        call->norm_forward.rstd = b[5];
        break;
    case KERNEL_NORM_BACKWARD:
        call->norm_backward.dy = b[1];
        call->norm_backward.x = b[2];
        call->norm_backward.gain = b[1];
        call->norm_backward.mean = call->norm_backward.rstd = b[4];
        call->norm_backward.dx = b[3];
        call->norm_backward.dgain = b[5];
        break;
    case KERNEL_ACTIVATION_FORWARD:
    case KERNEL_ACTIVATION_BACKWARD:
        call->activation.u = b[1];
        call->activation.a = call->activation.du = b[3];
        call->activation.da = b[2];
        break;
    case KERNEL_ADD:
        call->add.a = b[1];
        call->add.b = b[2];
        call->add.y = b[3];
        break;
    case KERNEL_LOGITS_MAX:
    case KERNEL_LOGITS_SUM:
    case KERNEL_LOGITS_BACKWARD:
        call->logits.targets = b[TOKENS];
        call->logits.logits = b[3];
        call->logits.max = b[4];
        call->logits.sums = b[5];
        break;
    case KERNEL_ADAM:
        call->adam.p = b[3];
        call->adam.m = b[4];
        call->adam.v = b[SECOND_MOMENTS];
        call->adam.g = b[1];
        call->adam.compute = element_bytes == sizeof(float) ? NULL : b[7];
        break;
    case KERNEL_ZERO: call->zero.at = b[7]; break;
    case KERNEL_COPY:
        call->copy.from = b[1];
        call->copy.to = b[2];
        break;
    default: break;
    }
}
