#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/status.h"
#include "tests/kernels/kernel_case.h"

enum { GUARD_PATTERN = 0x5a };

float float_of_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

uint16_t bf16_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static size_t host_element_bytes(enum operand_type type)
{
    return type == OPERAND_DOUBLE ? 8 : type == OPERAND_SCRATCH || type == OPERAND_BYTE ? 1 : 4;
}

size_t operand_element_bytes(const struct operand *operand, bool device)
{
    return device && operand->type == OPERAND_ACTIVATION ? 2 : host_element_bytes(operand->type);
}

void *operand_data(const struct operand *operand)
{
    return operand->block + GUARD_BYTES;
}

/* --- drawing */

struct draw {
    struct kernel_case *c;
    struct random_stream *random;
    int64_t size;
};

static int64_t between(struct draw *d, int64_t low, int64_t high)
{
    return low + (int64_t)random_below(d->random, (uint64_t)(high - low + 1));
}

static bool coin(struct draw *d)
{
    return random_below(d->random, 2) == 1;
}

/* A width: mostly multiples of 8 (the vector path), sometimes not. */
static int64_t width(struct draw *d)
{
    int64_t n = between(d, 1, d->size);
    return between(d, 0, 3) == 0 ? n : (n + 7) / 8 * 8;
}

static float value(struct draw *d, double low, double high)
{
    return float_of_bf16(bf16_of_float((float)(low + (high - low) * random_uniform(d->random))));
}

static struct operand *operand_add(struct draw *d, const char *name, enum operand_type type, enum operand_role role, size_t slot,
                                   int64_t count)
{
    struct operand *operand = &d->c->operands[d->c->n_operands++];
    *operand = (struct operand){.name = name, .type = type, .role = role, .count = (size_t)count, .slots = {slot}, .n_slots = 1};
    operand->block = memory_new(1, 2 * GUARD_BYTES + operand->count * host_element_bytes(type));
    void *data = operand_data(operand);
    memcpy((char *)&d->c->call + slot, &data, sizeof data);
    return operand;
}

static float *numbers(struct draw *d, const char *name, enum operand_type type, enum operand_role role, size_t slot,
                      int64_t count, double low, double high)
{
    float *data = operand_data(operand_add(d, name, type, role, slot, count));
    for (int64_t i = 0; i < count; i++)
        data[i] = value(d, low, high);
    return data;
}

/* The operand is in and out at once: its pointer stands in a second place. */
static void alias(struct draw *d, const char *name, size_t slot)
{
    for (int i = 0; i < d->c->n_operands; i++) {
        struct operand *operand = &d->c->operands[i];
        if (strcmp(operand->name, name) != 0)
            continue;
        void *data = operand_data(operand);
        operand->role = ROLE_IN_OUT;
        operand->slots[operand->n_slots++] = slot;
        memcpy((char *)&d->c->call + slot, &data, sizeof data);
    }
}

static void text(struct draw *d, const char *format, ...) PRINTF_LIKE(2, 3);
static void text(struct draw *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(d->c->text, sizeof d->c->text, format, args);
    va_end(args);
}

#define SLOT(field)                   offsetof(struct kernel_call, field)
#define IN(name, slot, n)             numbers(d, name, OPERAND_ACTIVATION, ROLE_IN, SLOT(slot), n, -1, 1)
#define OUT(name, slot, n)            numbers(d, name, OPERAND_ACTIVATION, ROLE_OUT, SLOT(slot), n, -1, 1)
#define FLOATS(name, role, slot, n)   numbers(d, name, OPERAND_FLOAT, role, SLOT(slot), n, -1, 1)
#define POSITIVE(name, role, slot, n) numbers(d, name, OPERAND_FLOAT, role, SLOT(slot), n, 0.01, 1)

static void draw_norm_forward(struct draw *d)
{
    struct norm_forward_call *call = &d->c->call.norm_forward;
    *call = (struct norm_forward_call){.t = between(d, 1, d->size), .h = width(d), .rms = coin(d), .epsilon = 1e-5f};
    text(d, "t %lld h %lld %s", (long long)call->t, (long long)call->h, call->rms ? "rms" : "layer");
    IN("x", norm_forward.x, call->t * call->h);
    IN("gain", norm_forward.gain, call->h);
    if (coin(d))
        IN("bias", norm_forward.bias, call->h);
    OUT("y", norm_forward.y, call->t * call->h);
    if (!call->rms)
        FLOATS("mean", ROLE_OUT, norm_forward.mean, call->t);
    FLOATS("rstd", ROLE_OUT, norm_forward.rstd, call->t);
}

static void draw_norm_backward(struct draw *d)
{
    struct norm_backward_call *call = &d->c->call.norm_backward;
    *call = (struct norm_backward_call){.t = between(d, 1, d->size), .h = width(d), .rms = coin(d)};
    int64_t n = call->t * call->h;
    int shape = (int)between(d, 0, 3);
    text(d, "t %lld h %lld %s shape %d", (long long)call->t, (long long)call->h, call->rms ? "rms" : "layer", shape);
    IN("dy", norm_backward.dy, n);
    IN("x", norm_backward.x, n);
    IN("gain", norm_backward.gain, call->h);
    if (!call->rms)
        FLOATS("mean", ROLE_IN, norm_backward.mean, call->t);
    POSITIVE("rstd", ROLE_IN, norm_backward.rstd, call->t);
    if (shape == 1 || shape == 2)
        IN("add", norm_backward.add, n);
    if (shape == 2)
        alias(d, "add", SLOT(norm_backward.dx));
    else if (shape == 3)
        alias(d, "dy", SLOT(norm_backward.dx));
    else
        OUT("dx", norm_backward.dx, n);
    FLOATS("dgain", ROLE_IN_OUT, norm_backward.dgain, call->h);
    if (coin(d))
        FLOATS("dbias", ROLE_IN_OUT, norm_backward.dbias, call->h);
}

static void draw_linear(struct draw *d, enum kernel kernel)
{
    struct linear_call *call = &d->c->call.linear;
    *call = (struct linear_call){.t = (between(d, 1, d->size) + 7) / 8 * 8,
                                 .in = (between(d, 1, d->size) + 7) / 8 * 8,
                                 .out = (between(d, 1, d->size) + 7) / 8 * 8,
                                 .accumulate = coin(d)};
    text(d, "t %lld in %lld out %lld%s", (long long)call->t, (long long)call->in, (long long)call->out,
         call->accumulate ? " accumulate" : "");
    enum operand_role role = call->accumulate ? ROLE_IN_OUT : ROLE_OUT;
    if (kernel != KERNEL_LINEAR_FORWARD)
        IN("dy", linear.dy, call->t * call->out);
    if (kernel != KERNEL_LINEAR_BACKWARD_INPUT)
        IN("x", linear.x, call->t * call->in);
    if (kernel != KERNEL_LINEAR_BACKWARD_WEIGHT)
        IN("w", linear.w, call->out * call->in);
    if (kernel == KERNEL_LINEAR_FORWARD) {
        if (coin(d))
            IN("bias", linear.bias, call->out);
        numbers(d, "y", OPERAND_ACTIVATION, role, SLOT(linear.y), call->t * call->out, -1, 1);
    } else if (kernel == KERNEL_LINEAR_BACKWARD_INPUT) {
        numbers(d, "dx", OPERAND_ACTIVATION, role, SLOT(linear.dx), call->t * call->in, -1, 1);
    } else {
        FLOATS("dw", ROLE_IN_OUT, linear.dw, call->out * call->in);
        if (coin(d))
            FLOATS("dbias", ROLE_IN_OUT, linear.dbias, call->out);
    }
}

static void draw_rotary(struct draw *d)
{
    struct rotary_call *call = &d->c->call.rotary;
    int kv = (int)between(d, 1, 3);
    *call = (struct rotary_call){.seq_len = between(d, 1, d->size),
                                 .kv_heads = kv,
                                 .heads = kv * (int)between(d, 1, 3),
                                 .head_dim = coin(d) ? 64 : 128,
                                 .base = 10000,
                                 .inverse = coin(d)};
    if (coin(d)) /* as on a context-parallel rank */
        call->positions = (struct positions){between(d, 0, 9), between(d, 0, 9)};
    call->t = call->seq_len * between(d, 1, 2);
    text(d, "t %lld seq %lld heads %d/%d dim %d", (long long)call->t, (long long)call->seq_len, call->heads, call->kv_heads,
         call->head_dim);
    numbers(d, "qkv", OPERAND_ACTIVATION, ROLE_IN_OUT, SLOT(rotary.qkv),
            call->t * (call->heads + 2 * call->kv_heads) * call->head_dim, -1, 1);
}

static void round_to_bf16(float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        values[i] = float_of_bf16(bf16_of_float(values[i]));
}

static void draw_attention(struct draw *d, enum kernel kernel)
{
    struct attention_call *call = &d->c->call.attention;
    int kv = (int)between(d, 1, 2);
    *call = (struct attention_call){.batch = between(d, 1, 2),
                                    .seq_len = between(d, 1, 2 * d->size),
                                    .kv_heads = kv,
                                    .heads = kv * (int)between(d, 1, 3),
                                    .head_dim = coin(d) ? 64 : 128};
    call->window = coin(d) ? between(d, 1, call->seq_len + 3) : 0;
    text(d, "batch %lld seq %lld window %lld heads %d/%d dim %d", (long long)call->batch, (long long)call->seq_len,
         (long long)call->window, call->heads, call->kv_heads, call->head_dim);
    int64_t row = (int64_t)(call->heads + 2 * call->kv_heads) * call->head_dim, t = call->batch * call->seq_len;
    int64_t out_row = (int64_t)call->heads * call->head_dim;
    enum operand_role role = kernel == KERNEL_ATTENTION_FORWARD ? ROLE_OUT : ROLE_IN;
    numbers(d, "qkv", OPERAND_ACTIVATION, ROLE_IN, SLOT(attention.qkv), t * row, -2, 2);
    numbers(d, "out", OPERAND_ACTIVATION, role, SLOT(attention.out), t * out_row, -1, 1);
    FLOATS("log_sum_exp", role, attention.log_sum_exp, t * call->heads);
    if (kernel == KERNEL_ATTENTION_FORWARD)
        return;
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_ATTENTION_FORWARD, .attention = *call});
    round_to_bf16(call->out, t * out_row);
    IN("dout", attention.dout, t * out_row);
    OUT("dqkv", attention.dqkv, t * row);
    operand_add(d, "workspace", OPERAND_SCRATCH, ROLE_OUT, SLOT(attention.workspace), t * call->heads * 4 + 16);
}

static void draw_activation(struct draw *d, enum kernel kernel)
{
    struct activation_call *call = &d->c->call.activation;
    *call = (struct activation_call){.t = between(d, 1, d->size), .f = width(d), .gated = coin(d)};
    int64_t n = call->t * call->f, wide = n * (call->gated ? 2 : 1);
    text(d, "t %lld f %lld%s", (long long)call->t, (long long)call->f, call->gated ? " gated" : "");
    if (coin(d))
        *(int32_t *)operand_data(operand_add(d, "count", OPERAND_INT32, ROLE_IN, SLOT(activation.count), 1)) = (int32_t)call->t;
    numbers(d, "u", OPERAND_ACTIVATION, ROLE_IN, SLOT(activation.u), wide, -4, 4);
    if (kernel == KERNEL_ACTIVATION_FORWARD) {
        OUT("a", activation.a, n);
    } else {
        IN("da", activation.da, n);
        OUT("du", activation.du, wide);
    }
}

static void draw_add(struct draw *d)
{
    struct add_call *call = &d->c->call.add;
    *call = (struct add_call){.h = width(d), .wide = coin(d)};
    call->n = call->h * between(d, 1, d->size);
    const enum operand_type type = call->wide ? OPERAND_FLOAT : OPERAND_ACTIVATION;
    bool in_place = coin(d);
    text(d, "n %lld h %lld%s%s", (long long)call->n, (long long)call->h, call->wide ? " fp32" : "", in_place ? " in place" : "");
    numbers(d, "a", type, ROLE_IN, SLOT(add.a), call->n, -1, 1);
    numbers(d, "b", type, ROLE_IN, SLOT(add.b), call->n, -1, 1);
    if (coin(d))
        numbers(d, "bias", type, ROLE_IN, SLOT(add.bias), call->h, -1, 1);
    if (in_place)
        alias(d, "b", SLOT(add.y));
    else
        numbers(d, "y", type, ROLE_OUT, SLOT(add.y), call->n, -1, 1);
}

static void draw_dropout(struct draw *d, enum kernel kernel)
{
    struct dropout_call *call = &d->c->call.dropout;
    *call = (struct dropout_call){
        .h = width(d), .p = (float)between(d, 0, 3) / 8, .seed = random_bits(d->random), .first = between(d, 0, 1000)};
    call->n = call->h * between(d, 1, d->size);
    text(d, "n %lld h %lld p %g", (long long)call->n, (long long)call->h, (double)call->p);
    if (kernel == KERNEL_DROPOUT_BACKWARD) {
        IN("dy", dropout.dy, call->n);
        OUT("dx", dropout.dx, call->n);
        return;
    }
    IN("x", dropout.x, call->n);
    if (coin(d))
        IN("bias", dropout.bias, call->h);
    if (coin(d))
        IN("residual", dropout.residual, call->n);
    OUT("y", dropout.y, call->n);
}

static void draw_column_sum(struct draw *d)
{
    struct column_sum_call *call = &d->c->call.column_sum;
    *call = (struct column_sum_call){.t = between(d, 1, 4 * d->size), .h = width(d)};
    text(d, "t %lld h %lld", (long long)call->t, (long long)call->h);
    IN("x", column_sum.x, call->t * call->h);
    FLOATS("sum", ROLE_IN_OUT, column_sum.sum, call->h);
}

/* Of all sizes, so that all exponents occur. */
static void draw_quantise(struct draw *d)
{
    struct quantise_call *call = &d->c->call.quantise;
    *call = (struct quantise_call){.n = between(d, 1, d->size * d->size)};
    text(d, "n %lld", (long long)call->n);
    float *x = IN("x", quantise.x, call->n);
    for (int64_t i = 0; i < call->n; i++)
        x[i] = float_of_bf16(bf16_of_float(ldexpf(x[i], (int)between(d, -20, 3))));
    operand_add(d, "y", OPERAND_BYTE, ROLE_OUT, SLOT(quantise.y), call->n);
    FLOATS("scale", ROLE_OUT, quantise.scale, 1);
}

static int32_t *indices(struct draw *d, const char *name, size_t slot, int64_t count, int64_t below)
{
    int32_t *data = operand_data(operand_add(d, name, OPERAND_INT32, ROLE_IN, slot, count));
    for (int64_t i = 0; i < count; i++)
        data[i] = (int32_t)between(d, 0, below - 1);
    return data;
}

static void draw_embedding(struct draw *d, enum kernel kernel)
{
    struct embedding_call *call = &d->c->call.embedding;
    int64_t vocab = between(d, 1, d->size);
    *call = (struct embedding_call){.h = width(d), .seq_len = between(d, 1, d->size), .first = between(d, 0, vocab - 1)};
    call->t = call->seq_len * between(d, 1, 3);
    call->count = between(d, 1, vocab - call->first);
    text(d, "t %lld h %lld seq %lld vocabulary [%lld, +%lld) of %lld", (long long)call->t, (long long)call->h,
         (long long)call->seq_len, (long long)call->first, (long long)call->count, (long long)vocab);
    indices(d, "tokens", SLOT(embedding.tokens), call->t, vocab);
    if (kernel == KERNEL_EMBEDDING_FORWARD) {
        IN("table", embedding.table, call->count * call->h);
        call->at = (struct positions){between(d, 0, 5), between(d, 0, 5)};
        if (coin(d))
            IN("positions", embedding.positions, (call->seq_len + 10) * call->h);
        OUT("x", embedding.x, call->t * call->h);
        return;
    }
    IN("dx", embedding.dx, call->t * call->h);
    FLOATS("dtable", ROLE_IN_OUT, embedding.dtable, call->count * call->h);
    if (coin(d))
        FLOATS("dpositions", ROLE_IN_OUT, embedding.dpositions, (call->seq_len + 10) * call->h);
    call->at = (struct positions){between(d, 0, 5), between(d, 0, 5)};
}

static void draw_logits(struct draw *d, enum kernel kernel)
{
    struct logits_call *call = &d->c->call.logits;
    *call = (struct logits_call){.t = between(d, 1, d->size), .v = width(d), .first = between(d, 0, 20), .scale = 0.125f};
    text(d, "t %lld v %lld first %lld", (long long)call->t, (long long)call->v, (long long)call->first);
    indices(d, "targets", SLOT(logits.targets), call->t, call->v + 40);
    numbers(d, "logits", OPERAND_ACTIVATION, kernel == KERNEL_LOGITS_BACKWARD ? ROLE_IN_OUT : ROLE_IN, SLOT(logits.logits),
            call->t * call->v, -4, 4);
    FLOATS("max", kernel == KERNEL_LOGITS_MAX ? ROLE_OUT : ROLE_IN, logits.max, call->t);
    FLOATS("sums", kernel == KERNEL_LOGITS_SUM ? ROLE_OUT : ROLE_IN, logits.sums, 2 * call->t);
    double *loss = operand_data(operand_add(d, "loss", OPERAND_DOUBLE, ROLE_IN_OUT, SLOT(logits.loss), 1));
    *loss = 0.5;
    if (kernel != KERNEL_LOGITS_MAX)
        kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_LOGITS_MAX, .logits = *call});
    if (kernel == KERNEL_LOGITS_LOSS || kernel == KERNEL_LOGITS_BACKWARD)
        kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_LOGITS_SUM, .logits = *call});
}

static void draw_square_sum(struct draw *d)
{
    struct square_sum_call *call = &d->c->call.square_sum;
    *call = (struct square_sum_call){.n = between(d, 1, d->size * d->size)};
    text(d, "n %lld", (long long)call->n);
    FLOATS("x", ROLE_IN, square_sum.x, call->n);
    FLOATS("sum", ROLE_IN_OUT, square_sum.sum, 1);
}

static void draw_clipping(struct draw *d, size_t square, float *most)
{
    if (coin(d))
        return;
    *(float *)operand_data(operand_add(d, "square", OPERAND_FLOAT, ROLE_IN, square, 1)) = 4;
    *most = coin(d) ? 1.5f : 3;
}

static void draw_adam(struct draw *d)
{
    struct adam_call *call = &d->c->call.adam;
    *call = (struct adam_call){.n = between(d, 1, d->size * d->size),
                               .rate = 0.01f,
                               .beta1 = 0.9f,
                               .beta2 = 0.95f,
                               .epsilon = 1e-5f,
                               .decay = 0.1f,
                               .gradient_scale = 0.5f,
                               .step = between(d, 1, 100)};
    text(d, "n %lld step %lld", (long long)call->n, (long long)call->step);
    FLOATS("p", ROLE_IN_OUT, adam.p, call->n);
    FLOATS("m", ROLE_IN_OUT, adam.m, call->n);
    POSITIVE("v", ROLE_IN_OUT, adam.v, call->n);
    FLOATS("g", ROLE_IN, adam.g, call->n);
    if (coin(d))
        OUT("compute", adam.compute, call->n);
    draw_clipping(d, SLOT(adam.clip.square), &call->clip.most);
}

static void draw_lamb(struct draw *d)
{
    struct lamb_call *call = &d->c->call.lamb;
    *call = (struct lamb_call){.n = between(d, 1, d->size * d->size),
                               .rate = 0.01f,
                               .beta1 = 0.9f,
                               .beta2 = 0.95f,
                               .epsilon = 1e-5f,
                               .decay = 0.1f,
                               .gradient_scale = 0.5f,
                               .step = between(d, 1, 100)};
    text(d, "n %lld step %lld", (long long)call->n, (long long)call->step);
    FLOATS("p", ROLE_IN_OUT, lamb.p, call->n);
    FLOATS("m", ROLE_IN_OUT, lamb.m, call->n);
    POSITIVE("v", ROLE_IN_OUT, lamb.v, call->n);
    FLOATS("g", ROLE_IN, lamb.g, call->n);
    FLOATS("update", ROLE_OUT, lamb.update, call->n);
    FLOATS("norms", ROLE_OUT, lamb.norms, 2);
    if (coin(d))
        OUT("compute", lamb.compute, call->n);
}

/* Distinct places: a permutation of `count` out of `below`. */
static int32_t *places(struct draw *d, const char *name, size_t slot, int64_t count, int64_t below)
{
    int32_t *data = operand_data(operand_add(d, name, OPERAND_INT32, ROLE_IN, slot, count));
    int32_t *all = memory_new((size_t)below, sizeof *all);
    for (int64_t i = 0; i < below; i++)
        all[i] = (int32_t)i;
    for (int64_t i = 0; i < count; i++) {
        int64_t j = between(d, i, below - 1);
        data[i] = all[j];
        all[j] = all[i];
    }
    free(all);
    return data;
}

static void draw_rows(struct draw *d)
{
    struct rows_call *call = &d->c->call.rows;
    int form = (int)between(d, 0, 3); /* as they are, fetched, spread, folded */
    *call = (struct rows_call){.n = between(d, 1, d->size), .width = width(d), .accumulate = coin(d)};
    int64_t ratio = between(d, 1, 3), from = call->n, to = call->n;
    call->from_row = call->width + 8 * between(d, 0, 1);
    call->to_row = call->width + between(d, 0, 3);
    text(d, "n %lld width %lld form %d ratio %lld%s", (long long)call->n, (long long)call->width, form, (long long)ratio,
         call->accumulate ? " added" : "");
    if (form == 1)
        indices(d, "index", SLOT(rows.index), call->n, from);
    if (form == 2) {
        call->scatter = true;
        call->share = ratio;
        to = call->n + 2;
        places(d, "index", SLOT(rows.index), call->n, to);
    }
    if (form == 3) {
        call->fold = ratio;
        from = ratio * call->n;
    }
    if (coin(d))
        *(int32_t *)operand_data(operand_add(d, "count", OPERAND_INT32, ROLE_IN, SLOT(rows.count), 1)) = (int32_t)(call->n - 1);
    IN("from", rows.from, from * call->from_row);
    numbers(d, "to", OPERAND_ACTIVATION, ROLE_IN_OUT, SLOT(rows.to), to * call->to_row, -1, 1);
}

static void draw_route(struct draw *d, enum kernel kernel)
{
    struct route_call *call = &d->c->call.route;
    *call = (struct route_call){.t = between(d, 1, d->size), .experts = (int)between(d, 1, 40)};
    call->top_k = (int)between(d, 1, call->experts < 8 ? call->experts : 8);
    if (coin(d)) { /* eight groups of the largest size, two of them open */
        call->experts = (call->experts + 7) / 8 * 8;
        call->groups = 8;
        call->top_groups = 2;
        call->top_k = (int)between(d, 1, call->experts / 4 < 8 ? call->experts / 4 : 8);
    }
    bool forward = kernel == KERNEL_ROUTE_FORWARD;
    int64_t n = call->t * call->top_k;
    text(d, "t %lld experts %d top %d", (long long)call->t, call->experts, call->top_k);
    numbers(d, "logits", OPERAND_ACTIVATION, ROLE_IN, SLOT(route.logits), call->t * call->experts, -4, 4);
    FLOATS("gate", forward ? ROLE_OUT : ROLE_IN, route.gate, n);
    operand_add(d, "expert", OPERAND_INT32, forward ? ROLE_OUT : ROLE_IN, SLOT(route.expert), n);
    if (forward)
        return;
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_ROUTE_FORWARD, .route = *call});
    FLOATS("dgate", ROLE_IN, route.dgate, n);
    OUT("dlogits", route.dlogits, call->t * call->experts);
}

static void draw_expert_sort(struct draw *d)
{
    struct expert_sort_call *call = &d->c->call.expert_sort;
    *call = (struct expert_sort_call){.n = between(d, 1, 8 * d->size), .experts = (int)between(d, 1, 40)};
    text(d, "n %lld experts %d", (long long)call->n, call->experts);
    indices(d, "expert", SLOT(expert_sort.expert), call->n, call->experts);
    operand_add(d, "counts", OPERAND_INT32, ROLE_OUT, SLOT(expert_sort.counts), call->experts);
    operand_add(d, "place", OPERAND_INT32, ROLE_OUT, SLOT(expert_sort.place), call->n);
}

static void draw_expert_arrivals(struct draw *d)
{
    struct expert_arrivals_call *call = &d->c->call.expert_arrivals;
    *call =
        (struct expert_arrivals_call){.ep = (int)between(d, 1, 4), .tp = (int)between(d, 1, 3), .experts = (int)between(d, 1, 5)};
    call->me = (int)between(d, 0, call->tp - 1);
    int64_t own = call->ep * call->experts, all = own * call->tp, rows = 0;
    text(d, "ep %d tp %d (%d) experts %d", call->ep, call->tp, call->me, call->experts);
    indices(d, "counts", SLOT(expert_arrivals.counts), own, 9);
    int32_t *arrived = indices(d, "arrived", SLOT(expert_arrivals.arrived), all, 9);
    for (int64_t i = 0; i < all; i++)
        rows += arrived[i];
    operand_add(d, "sent", OPERAND_INT32, ROLE_OUT, SLOT(expert_arrivals.sent), call->ep);
    operand_add(d, "received", OPERAND_INT32, ROLE_OUT, SLOT(expert_arrivals.received), call->ep);
    operand_add(d, "members", OPERAND_INT32, ROLE_OUT, SLOT(expert_arrivals.members), call->tp);
    operand_add(d, "offsets", OPERAND_INT32, ROLE_OUT, SLOT(expert_arrivals.offsets), call->experts + 1);
    operand_add(d, "order", OPERAND_INT32, ROLE_OUT, SLOT(expert_arrivals.order), rows);
}

static void draw_combine(struct draw *d, enum kernel kernel)
{
    struct combine_call *call = &d->c->call.combine;
    *call = (struct combine_call){.t = between(d, 1, d->size), .h = width(d), .top_k = (int)between(d, 1, 4)};
    int64_t copies = call->t * call->top_k;
    bool forward = kernel == KERNEL_COMBINE_FORWARD;
    text(d, "t %lld h %lld top %d", (long long)call->t, (long long)call->h, call->top_k);
    IN("rows", combine.rows, copies * call->h);
    places(d, "place", SLOT(combine.place), copies, copies);
    if (!forward || coin(d))
        FLOATS("gate", ROLE_IN, combine.gate, copies);
    if (forward) {
        OUT("y", combine.y, call->t * call->h);
        return;
    }
    IN("dy", combine.dy, call->t * call->h);
    OUT("drows", combine.drows, copies * call->h);
    FLOATS("dgate", ROLE_OUT, combine.dgate, copies);
}

/* Groups of rows, some empty; the rows fill what there is room for. */
static int32_t *group_offsets(struct draw *d, size_t slot, int groups)
{
    int32_t *offsets = operand_data(operand_add(d, "offsets", OPERAND_INT32, ROLE_IN, slot, groups + 1));
    offsets[0] = 0;
    for (int g = 0; g < groups; g++)
        offsets[g + 1] = offsets[g] + (int32_t)(coin(d) ? between(d, 0, d->size / 2) : 0);
    return offsets;
}

static void draw_grouped(struct draw *d, enum kernel kernel)
{
    struct grouped_call *call = &d->c->call.grouped;
    *call = (struct grouped_call){.groups = (int)between(d, 1, 5), .in = width(d), .out = width(d)};
    call->most = group_offsets(d, SLOT(grouped.offsets), call->groups)[call->groups];
    int64_t weights = call->groups * call->out * call->in;
    text(d, "groups %d rows %lld in %lld out %lld", call->groups, (long long)call->most, (long long)call->in,
         (long long)call->out);
    if (kernel != KERNEL_GROUPED_FORWARD)
        IN("dy", grouped.dy, call->most * call->out);
    if (kernel != KERNEL_GROUPED_BACKWARD_INPUT)
        IN("x", grouped.x, call->most * call->in);
    if (kernel != KERNEL_GROUPED_BACKWARD_WEIGHT)
        IN("w", grouped.w, weights);
    if (kernel == KERNEL_GROUPED_FORWARD && coin(d))
        IN("bias", grouped.bias, call->groups * call->out);
    if (kernel == KERNEL_GROUPED_FORWARD)
        OUT("y", grouped.y, call->most * call->out);
    if (kernel == KERNEL_GROUPED_BACKWARD_INPUT)
        OUT("dx", grouped.dx, call->most * call->in);
    if (kernel != KERNEL_GROUPED_BACKWARD_WEIGHT)
        return;
    FLOATS("dw", ROLE_IN_OUT, grouped.dw, weights);
    if (coin(d))
        FLOATS("dbias", ROLE_IN_OUT, grouped.dbias, call->groups * call->out);
}

static void draw_stretch(struct draw *d, enum kernel kernel)
{
    struct stretch_call *call = &d->c->call.stretch;
    int kv = (int)between(d, 1, 2);
    *call = (struct stretch_call){.batch = between(d, 1, 2),
                                  .keys = between(d, 1, d->size),
                                  .kv_heads = kv,
                                  .heads = kv * (int)between(d, 1, 3),
                                  .head_dim = 8 * (int)between(d, 1, 9),
                                  .value_dim = 8 * (int)between(d, 1, 9)};
    call->queries = between(d, 1, call->keys);
    call->first = between(d, 0, call->keys - call->queries);
    call->window = coin(d) ? between(d, 1, call->keys + 3) : 0;
    int64_t q = call->heads * call->head_dim, k = kv * call->head_dim, v = kv * call->value_dim;
    int64_t out = call->heads * call->value_dim, queries = call->batch * call->queries, keys = call->batch * call->keys;
    call->q_at = (struct strided){q, call->queries * q};
    call->k_at = (struct strided){k, call->keys * k};
    call->v_at = (struct strided){v, call->keys * v};
    call->out_at = (struct strided){out, call->queries * out};
    bool forward = kernel == KERNEL_STRETCH_FORWARD;
    text(d, "batch %lld queries %lld from %lld of %lld window %lld heads %d/%d dims %d %d", (long long)call->batch,
         (long long)call->queries, (long long)call->first, (long long)call->keys, (long long)call->window, call->heads,
         call->kv_heads, call->head_dim, call->value_dim);
    if (coin(d))
        POSITIVE("slopes", ROLE_IN, stretch.slopes, call->heads);
    numbers(d, "q", OPERAND_ACTIVATION, ROLE_IN, SLOT(stretch.q), queries * q, -2, 2);
    numbers(d, "k", OPERAND_ACTIVATION, ROLE_IN, SLOT(stretch.k), keys * k, -2, 2);
    numbers(d, "v", OPERAND_ACTIVATION, ROLE_IN, SLOT(stretch.v), keys * v, -2, 2);
    numbers(d, "out", OPERAND_ACTIVATION, forward ? ROLE_OUT : ROLE_IN, SLOT(stretch.out), queries * out, -1, 1);
    FLOATS("log_sum_exp", forward ? ROLE_OUT : ROLE_IN, stretch.log_sum_exp, queries * call->heads);
    if (forward)
        return;
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_STRETCH_FORWARD, .stretch = *call});
    round_to_bf16(call->out, queries * out);
    IN("dout", stretch.dout, queries * out);
    OUT("dq", stretch.dq, queries * q);
    numbers(d, "dk", OPERAND_ACTIVATION, ROLE_IN_OUT, SLOT(stretch.dk), keys * k, -1, 1);
    numbers(d, "dv", OPERAND_ACTIVATION, ROLE_IN_OUT, SLOT(stretch.dv), keys * v, -1, 1);
}

static void draw_head_norm(struct draw *d, enum kernel kernel)
{
    struct head_norm_call *call = &d->c->call.head_norm;
    *call = (struct head_norm_call){.t = between(d, 1, d->size),
                                    .heads = (int)between(d, 1, 3),
                                    .head_dim = 4 * (int)between(d, 1, 20),
                                    .rms = coin(d),
                                    .epsilon = 1e-5f};
    int64_t head = (int64_t)call->heads * call->head_dim;
    call->x_row = head + 8 * between(d, 0, 1);
    call->y_row = head;
    text(d, "t %lld heads %d dim %d %s", (long long)call->t, call->heads, call->head_dim, call->rms ? "rms" : "layer");
    IN("x", head_norm.x, call->t * call->x_row);
    IN("gain", head_norm.gain, call->head_dim);
    if (kernel == KERNEL_HEAD_NORM_FORWARD) {
        if (coin(d))
            IN("bias", head_norm.bias, call->head_dim);
        OUT("y", head_norm.y, call->t * call->y_row);
        return;
    }
    IN("dy", head_norm.dy, call->t * call->y_row);
    if (coin(d))
        alias(d, "dy", SLOT(head_norm.dx));
    else
        OUT("dx", head_norm.dx, call->t * call->y_row);
    FLOATS("dgain", ROLE_IN_OUT, head_norm.dgain, call->head_dim);
    if (coin(d))
        FLOATS("dbias", ROLE_IN_OUT, head_norm.dbias, call->head_dim);
}

static void draw_lamb_part(struct draw *d, enum kernel kernel)
{
    struct lamb_part_call *call = &d->c->call.lamb_part;
    bool apply = kernel == KERNEL_LAMB_APPLY;
    *call = (struct lamb_part_call){.n = between(d, 1, d->size * d->size),
                                    .rate = 0.01f,
                                    .beta1 = 0.9f,
                                    .beta2 = 0.95f,
                                    .epsilon = 1e-5f,
                                    .decay = 0.1f,
                                    .step = between(d, 1, 100)};
    text(d, "n %lld step %lld", (long long)call->n, (long long)call->step);
    FLOATS("p", apply ? ROLE_IN_OUT : ROLE_IN, lamb_part.p, call->n);
    FLOATS("update", apply ? ROLE_IN : ROLE_OUT, lamb_part.update, call->n);
    POSITIVE("norms", apply ? ROLE_IN : ROLE_IN_OUT, lamb_part.norms, 2);
    if (apply) {
        if (coin(d))
            OUT("compute", lamb_part.compute, call->n);
        return;
    }
    FLOATS("m", ROLE_IN_OUT, lamb_part.m, call->n);
    POSITIVE("v", ROLE_IN_OUT, lamb_part.v, call->n);
    FLOATS("g", ROLE_IN, lamb_part.g, call->n);
    draw_clipping(d, SLOT(lamb_part.clip.square), &call->clip.most);
}

static void draw_sgd(struct draw *d)
{
    struct sgd_call *call = &d->c->call.sgd;
    *call = (struct sgd_call){.n = between(d, 1, d->size * d->size), .rate = 0.1f, .momentum = 0.9f, .decay = 0.1f};
    text(d, "n %lld", (long long)call->n);
    FLOATS("p", ROLE_IN_OUT, sgd.p, call->n);
    FLOATS("m", ROLE_IN_OUT, sgd.m, call->n);
    FLOATS("g", ROLE_IN, sgd.g, call->n);
    if (coin(d))
        OUT("compute", sgd.compute, call->n);
    draw_clipping(d, SLOT(sgd.clip.square), &call->clip.most);
}

static void draw_zero(struct draw *d)
{
    int64_t n = between(d, 1, d->size * d->size);
    d->c->call.zero = (struct zero_call){.bytes = (size_t)n * 4};
    text(d, "n %lld", (long long)n);
    FLOATS("at", ROLE_OUT, zero.at, n);
}

static void draw_copy(struct draw *d)
{
    int64_t n = between(d, 1, d->size * d->size);
    d->c->call.copy = (struct copy_call){.bytes = (size_t)n * 4};
    text(d, "n %lld", (long long)n);
    FLOATS("from", ROLE_IN, copy.from, n);
    FLOATS("to", ROLE_OUT, copy.to, n);
}

static void draw_cast(struct draw *d)
{
    struct cast_call *call = &d->c->call.cast;
    *call = (struct cast_call){.n = between(d, 1, d->size * d->size), .widen = coin(d)};
    text(d, "n %lld %s", (long long)call->n, call->widen ? "widen" : "narrow");
    numbers(d, "from", call->widen ? OPERAND_ACTIVATION : OPERAND_FLOAT, ROLE_IN, SLOT(cast.from), call->n, -9, 9);
    numbers(d, "to", call->widen ? OPERAND_FLOAT : OPERAND_ACTIVATION, ROLE_OUT, SLOT(cast.to), call->n, -9, 9);
}

static void draw_operands(struct draw *d, enum kernel kernel)
{
    switch (kernel) {
    case KERNEL_NORM_FORWARD: draw_norm_forward(d); break;
    case KERNEL_NORM_BACKWARD: draw_norm_backward(d); break;
    case KERNEL_LINEAR_FORWARD:
    case KERNEL_LINEAR_BACKWARD_INPUT:
    case KERNEL_LINEAR_BACKWARD_WEIGHT: draw_linear(d, kernel); break;
    case KERNEL_ROTARY: draw_rotary(d); break;
    case KERNEL_ATTENTION_FORWARD:
    case KERNEL_ATTENTION_BACKWARD: draw_attention(d, kernel); break;
    case KERNEL_ACTIVATION_FORWARD:
    case KERNEL_ACTIVATION_BACKWARD: draw_activation(d, kernel); break;
    case KERNEL_ADD: draw_add(d); break;
    case KERNEL_DROPOUT_FORWARD:
    case KERNEL_DROPOUT_BACKWARD: draw_dropout(d, kernel); break;
    case KERNEL_COLUMN_SUM: draw_column_sum(d); break;
    case KERNEL_QUANTISE: draw_quantise(d); break;
    case KERNEL_EMBEDDING_FORWARD:
    case KERNEL_EMBEDDING_BACKWARD: draw_embedding(d, kernel); break;
    case KERNEL_LOGITS_MAX:
    case KERNEL_LOGITS_SUM:
    case KERNEL_LOGITS_LOSS:
    case KERNEL_LOGITS_BACKWARD: draw_logits(d, kernel); break;
    case KERNEL_SQUARE_SUM: draw_square_sum(d); break;
    case KERNEL_ADAM: draw_adam(d); break;
    case KERNEL_LAMB: draw_lamb(d); break;
    case KERNEL_ZERO: draw_zero(d); break;
    case KERNEL_COPY: draw_copy(d); break;
    case KERNEL_CAST: draw_cast(d); break;
    case KERNEL_ROWS: draw_rows(d); break;
    case KERNEL_ROUTE_FORWARD:
    case KERNEL_ROUTE_BACKWARD: draw_route(d, kernel); break;
    case KERNEL_EXPERT_SORT: draw_expert_sort(d); break;
    case KERNEL_EXPERT_ARRIVALS: draw_expert_arrivals(d); break;
    case KERNEL_COMBINE_FORWARD:
    case KERNEL_COMBINE_BACKWARD: draw_combine(d, kernel); break;
    case KERNEL_GROUPED_FORWARD:
    case KERNEL_GROUPED_BACKWARD_INPUT:
    case KERNEL_GROUPED_BACKWARD_WEIGHT: draw_grouped(d, kernel); break;
    case KERNEL_STRETCH_FORWARD:
    case KERNEL_STRETCH_BACKWARD: draw_stretch(d, kernel); break;
    case KERNEL_HEAD_NORM_FORWARD:
    case KERNEL_HEAD_NORM_BACKWARD: draw_head_norm(d, kernel); break;
    case KERNEL_LAMB_UPDATE:
    case KERNEL_LAMB_APPLY: draw_lamb_part(d, kernel); break;
    case KERNEL_SGD: draw_sgd(d); break;
    case N_KERNELS: break;
    }
}

void kernel_case_draw(struct kernel_case *c, enum kernel kernel, struct random_stream *random, int64_t size)
{
    struct draw d = {.c = c, .random = random, .size = size};
    memset(c, 0, sizeof *c);
    draw_operands(&d, kernel);
    c->call.kernel = kernel;
    kernel_case_poison(c);
}

void kernel_case_free(struct kernel_case *c)
{
    for (int i = 0; i < c->n_operands; i++)
        free(c->operands[i].block);
    c->n_operands = 0;
}

/* --- running and comparing */

static size_t data_bytes(const struct operand *operand)
{
    return operand->count * host_element_bytes(operand->type);
}

void kernel_case_poison(struct kernel_case *c)
{
    for (int i = 0; i < c->n_operands; i++) {
        struct operand *operand = &c->operands[i];
        memset(operand->block, GUARD_PATTERN, GUARD_BYTES);
        memset(operand->block + GUARD_BYTES + data_bytes(operand), GUARD_PATTERN, GUARD_BYTES);
        if (operand->role == ROLE_OUT)
            memset(operand_data(operand), 0xff, data_bytes(operand)); /* NaN as fp32, fp64 and bf16 */
    }
}

static bool is_pattern(const char *bytes)
{
    for (int i = 0; i < GUARD_BYTES; i++)
        if (bytes[i] != GUARD_PATTERN)
            return false;
    return true;
}

const char *kernel_case_guards(const struct kernel_case *c)
{
    for (int i = 0; i < c->n_operands; i++) {
        const struct operand *operand = &c->operands[i];
        if (!is_pattern(operand->block) || !is_pattern(operand->block + GUARD_BYTES + data_bytes(operand)))
            return operand->name;
    }
    return NULL;
}

void kernel_case_bind(const struct kernel_case *c, struct kernel_call *call, void *const *buffers)
{
    *call = c->call;
    for (int i = 0; i < c->n_operands; i++)
        for (int j = 0; j < c->operands[i].n_slots; j++)
            memcpy((char *)call + c->operands[i].slots[j], &buffers[i], sizeof buffers[i]);
}

void kernel_case_reference(struct kernel_case *c)
{
    kernel_reference_run(&c->call);
}

static double element(const struct operand *operand, const void *data, size_t i, bool device)
{
    switch (operand->type) {
    case OPERAND_ACTIVATION: return (double)(device ? float_of_bf16(((const uint16_t *)data)[i]) : ((const float *)data)[i]);
    case OPERAND_FLOAT: return (double)((const float *)data)[i];
    case OPERAND_DOUBLE: return ((const double *)data)[i];
    case OPERAND_INT32: return ((const int32_t *)data)[i];
    case OPERAND_BYTE: return ((const uint8_t *)data)[i];
    case OPERAND_SCRATCH: return 0;
    }
    return 0;
}

double operand_error(const struct operand *expected, const void *got)
{
    double square = 0, scale = 0;
    for (size_t i = 0; i < expected->count; i++) {
        double want = element(expected, operand_data(expected), i, false), difference = element(expected, got, i, true) - want;
        if (isnan(difference))
            return INFINITY;
        square += difference * difference;
        scale += want * want;
    }
    if (square == 0)
        return 0;
    return scale > 0 ? sqrt(square / scale) : INFINITY;
}

/* One rounding to bf16 is a relative error of at most 2^-9, about 2e-3 in the mean of many. */
double kernel_tolerance(enum kernel kernel)
{
    switch (kernel) {
    case KERNEL_QUANTISE:
    case KERNEL_ZERO:
    case KERNEL_COPY:
    case KERNEL_EXPERT_SORT:
    case KERNEL_EXPERT_ARRIVALS: return 0;
    case KERNEL_ATTENTION_FORWARD: return 8e-3;
    case KERNEL_STRETCH_BACKWARD:
    case KERNEL_ATTENTION_BACKWARD: return 2e-2; /* p and ds are rounded before the products that sum them */
    case KERNEL_LOGITS_MAX: return 0;
    case KERNEL_LOGITS_SUM:
    case KERNEL_LOGITS_LOSS:
    case KERNEL_SQUARE_SUM:
    case KERNEL_COLUMN_SUM:
    case KERNEL_EMBEDDING_BACKWARD: return 1e-5;
    default: return 4e-3;
    }
}
