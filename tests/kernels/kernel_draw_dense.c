/* kernel_draw_dense.c - calls of what every transformer is made of. */
#include <math.h>

#include "tests/kernels/kernel_draw.h"

void draw_norm_forward(struct draw *d)
{
    struct norm_forward_call *call = &d->c->call.norm_forward;
    *call =
        (struct norm_forward_call){.t = draw_between(d, 1, d->size), .h = draw_width(d), .rms = draw_coin(d), .epsilon = 1e-5f};
    draw_text(d, "t %lld h %lld %s", (long long)call->t, (long long)call->h, call->rms ? "rms" : "layer");
    IN("x", norm_forward.x, call->t * call->h);
    IN("gain", norm_forward.gain, call->h);
    if (draw_coin(d))
        IN("bias", norm_forward.bias, call->h);
    OUT("y", norm_forward.y, call->t * call->h);
    if (!call->rms)
        FLOATS("mean", ROLE_OUT, norm_forward.mean, call->t);
    FLOATS("rstd", ROLE_OUT, norm_forward.rstd, call->t);
}

void draw_norm_backward(struct draw *d)
{
    struct norm_backward_call *call = &d->c->call.norm_backward;
    *call = (struct norm_backward_call){.t = draw_between(d, 1, d->size), .h = draw_width(d), .rms = draw_coin(d)};
    int64_t n = call->t * call->h;
    int shape = (int)draw_between(d, 0, 3);
    draw_text(d, "t %lld h %lld %s shape %d", (long long)call->t, (long long)call->h, call->rms ? "rms" : "layer", shape);
    IN("dy", norm_backward.dy, n);
    IN("x", norm_backward.x, n);
    IN("gain", norm_backward.gain, call->h);
    if (!call->rms)
        FLOATS("mean", ROLE_IN, norm_backward.mean, call->t);
    POSITIVE("rstd", ROLE_IN, norm_backward.rstd, call->t);
    if (shape == 1 || shape == 2)
        IN("add", norm_backward.add, n);
    if (shape == 2)
        draw_alias(d, "add", SLOT(norm_backward.dx));
    else if (shape == 3)
        draw_alias(d, "dy", SLOT(norm_backward.dx));
    else
        OUT("dx", norm_backward.dx, n);
    FLOATS("dgain", ROLE_IN_OUT, norm_backward.dgain, call->h);
    if (draw_coin(d))
        FLOATS("dbias", ROLE_IN_OUT, norm_backward.dbias, call->h);
}

void draw_linear(struct draw *d)
{
    struct linear_call *call = &d->c->call.linear;
    *call = (struct linear_call){.t = (draw_between(d, 1, d->size) + 7) / 8 * 8,
                                 .in = (draw_between(d, 1, d->size) + 7) / 8 * 8,
                                 .out = (draw_between(d, 1, d->size) + 7) / 8 * 8,
                                 .accumulate = draw_coin(d)};
    draw_text(d, "t %lld in %lld out %lld%s", (long long)call->t, (long long)call->in, (long long)call->out,
              call->accumulate ? " accumulate" : "");
    enum operand_role role = call->accumulate ? ROLE_IN_OUT : ROLE_OUT;
    if (d->kernel != KERNEL_LINEAR_FORWARD)
        IN("dy", linear.dy, call->t * call->out);
    if (d->kernel != KERNEL_LINEAR_BACKWARD_INPUT)
        IN("x", linear.x, call->t * call->in);
    if (d->kernel != KERNEL_LINEAR_BACKWARD_WEIGHT)
        IN("w", linear.w, call->out * call->in);
    if (d->kernel == KERNEL_LINEAR_FORWARD) {
        if (draw_coin(d))
            IN("bias", linear.bias, call->out);
        draw_numbers(d, "y", OPERAND_ACTIVATION, role, SLOT(linear.y), call->t * call->out, -1, 1);
    } else if (d->kernel == KERNEL_LINEAR_BACKWARD_INPUT) {
        draw_numbers(d, "dx", OPERAND_ACTIVATION, role, SLOT(linear.dx), call->t * call->in, -1, 1);
    } else {
        call->overwrite = draw_coin(d);
        FLOATS("dw", call->overwrite ? ROLE_OUT : ROLE_IN_OUT, linear.dw, call->out * call->in);
        if (draw_coin(d))
            FLOATS("dbias", ROLE_IN_OUT, linear.dbias, call->out);
    }
}

void draw_rotary(struct draw *d)
{
    struct rotary_call *call = &d->c->call.rotary;
    int kv = (int)draw_between(d, 1, 3);
    *call = (struct rotary_call){.seq_len = draw_between(d, 1, d->size),
                                 .kv_heads = kv,
                                 .heads = kv * (int)draw_between(d, 1, 3),
                                 .head_dim = draw_coin(d) ? 64 : 128,
                                 .base = 10000,
                                 .inverse = draw_coin(d)};
    if (draw_coin(d)) /* as on a context-parallel rank */
        call->positions = (struct positions){draw_between(d, 0, 9), draw_between(d, 0, 9)};
    call->t = call->seq_len * draw_between(d, 1, 2);
    draw_text(d, "t %lld seq %lld heads %d/%d dim %d", (long long)call->t, (long long)call->seq_len, call->heads, call->kv_heads,
              call->head_dim);
    draw_numbers(d, "qkv", OPERAND_ACTIVATION, ROLE_IN_OUT, SLOT(rotary.qkv),
                 call->t * (call->heads + 2 * call->kv_heads) * call->head_dim, -1, 1);
}

/* A head's size: mostly those that the kernels for sm_90a have, else any, sometimes not in vectors. */
static int draw_head_dim(struct draw *d)
{
    int form = (int)draw_between(d, 0, 7);
    return form < 4 ? (form % 2 ? 64 : 128) : form < 7 ? 8 * (int)draw_between(d, 1, 32) : (int)draw_between(d, 1, 140);
}

void draw_attention(struct draw *d)
{
    struct attention_call *call = &d->c->call.attention;
    int kv = (int)draw_between(d, 1, 2);
    *call = (struct attention_call){.batch = draw_between(d, 1, 2),
                                    .seq_len = draw_between(d, 1, 2 * d->size),
                                    .kv_heads = kv,
                                    .heads = kv * (int)draw_between(d, 1, 3),
                                    .head_dim = draw_head_dim(d)};
    call->window = draw_coin(d) ? draw_between(d, 1, call->seq_len + 3) : 0;
    draw_text(d, "batch %lld seq %lld window %lld heads %d/%d dim %d", (long long)call->batch, (long long)call->seq_len,
              (long long)call->window, call->heads, call->kv_heads, call->head_dim);
    int64_t row = (int64_t)(call->heads + 2 * call->kv_heads) * call->head_dim, t = call->batch * call->seq_len;
    int64_t out_row = (int64_t)call->heads * call->head_dim;
    enum operand_role role = d->kernel == KERNEL_ATTENTION_FORWARD ? ROLE_OUT : ROLE_IN;
    draw_numbers(d, "qkv", OPERAND_ACTIVATION, ROLE_IN, SLOT(attention.qkv), t * row, -2, 2);
    draw_numbers(d, "out", OPERAND_ACTIVATION, role, SLOT(attention.out), t * out_row, -1, 1);
    FLOATS("log_sum_exp", role, attention.log_sum_exp, t * call->heads);
    if (d->kernel == KERNEL_ATTENTION_FORWARD)
        return;
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_ATTENTION_FORWARD, .attention = *call});
    draw_rounded(call->out, t * out_row);
    IN("dout", attention.dout, t * out_row);
    OUT("dqkv", attention.dqkv, t * row);
    draw_operand(d, "workspace", OPERAND_SCRATCH, ROLE_OUT, SLOT(attention.workspace), t * call->heads * 4 + 16);
}

void draw_activation(struct draw *d)
{
    struct activation_call *call = &d->c->call.activation;
    *call = (struct activation_call){.t = draw_between(d, 1, d->size), .f = draw_width(d), .gated = draw_coin(d)};
    bool apart = call->gated && draw_coin(d);
    call->limit = call->gated && draw_coin(d) ? 2 : 0;
    int64_t n = call->t * call->f, wide = n * (call->gated && !apart ? 2 : 1);
    draw_text(d, "t %lld f %lld%s%s%s", (long long)call->t, (long long)call->f, call->gated ? " gated" : "",
              apart ? " apart" : "", call->limit > 0 ? " clamped" : "");
    if (draw_coin(d))
        *(int32_t *)operand_data(draw_operand(d, "count", OPERAND_INT32, ROLE_IN, SLOT(activation.count), 1)) = (int32_t)call->t;
    draw_numbers(d, "u", OPERAND_ACTIVATION, ROLE_IN, SLOT(activation.u), wide, -4, 4);
    if (apart)
        draw_numbers(d, "gate", OPERAND_ACTIVATION, ROLE_IN, SLOT(activation.gate), n, -4, 4);
    if (d->kernel == KERNEL_ACTIVATION_FORWARD) {
        OUT("a", activation.a, n);
    } else {
        IN("da", activation.da, n);
        OUT("du", activation.du, wide);
        if (apart)
            OUT("dgate", activation.dgate, n);
    }
}

void draw_add(struct draw *d)
{
    struct add_call *call = &d->c->call.add;
    *call = (struct add_call){.h = draw_width(d), .wide = draw_coin(d)};
    call->n = call->h * draw_between(d, 1, d->size);
    const enum operand_type type = call->wide ? OPERAND_FLOAT : OPERAND_ACTIVATION;
    bool in_place = draw_coin(d);
    draw_text(d, "n %lld h %lld%s%s", (long long)call->n, (long long)call->h, call->wide ? " fp32" : "",
              in_place ? " in place" : "");
    draw_numbers(d, "a", type, ROLE_IN, SLOT(add.a), call->n, -1, 1);
    draw_numbers(d, "b", type, ROLE_IN, SLOT(add.b), call->n, -1, 1);
    if (draw_coin(d))
        draw_numbers(d, "bias", type, ROLE_IN, SLOT(add.bias), call->h, -1, 1);
    if (in_place)
        draw_alias(d, "b", SLOT(add.y));
    else
        draw_numbers(d, "y", type, ROLE_OUT, SLOT(add.y), call->n, -1, 1);
}

void draw_dropout(struct draw *d)
{
    struct dropout_call *call = &d->c->call.dropout;
    *call = (struct dropout_call){.h = draw_width(d),
                                  .p = (float)draw_between(d, 0, 3) / 8,
                                  .seed = random_bits(d->random),
                                  .first = draw_between(d, 0, 1000)};
    call->n = call->h * draw_between(d, 1, d->size);
    draw_text(d, "n %lld h %lld p %g", (long long)call->n, (long long)call->h, (double)call->p);
    if (d->kernel == KERNEL_DROPOUT_BACKWARD) {
        IN("dy", dropout.dy, call->n);
        OUT("dx", dropout.dx, call->n);
        return;
    }
    IN("x", dropout.x, call->n);
    if (draw_coin(d))
        IN("bias", dropout.bias, call->h);
    if (draw_coin(d))
        IN("residual", dropout.residual, call->n);
    OUT("y", dropout.y, call->n);
}

void draw_column_sum(struct draw *d)
{
    struct column_sum_call *call = &d->c->call.column_sum;
    *call = (struct column_sum_call){.t = draw_between(d, 1, 4 * d->size), .h = draw_width(d)};
    draw_text(d, "t %lld h %lld", (long long)call->t, (long long)call->h);
    IN("x", column_sum.x, call->t * call->h);
    FLOATS("sum", ROLE_IN_OUT, column_sum.sum, call->h);
}

/* A matrix to be cast: of all sizes, so that all exponents occur; sometimes not all of its rows. */
static float *draw_cast_input(struct draw *d, int64_t *rows, int64_t *cols, size_t count, size_t x)
{
    *rows = draw_between(d, 1, d->size);
    *cols = draw_width(d);
    draw_text(d, "rows %lld cols %lld", (long long)*rows, (long long)*cols);
    float *values = draw_numbers(d, "x", OPERAND_ACTIVATION, ROLE_IN, x, *rows * *cols, -1, 1);
    for (int64_t i = 0; i < *rows * *cols; i++)
        values[i] = float_of_bf16(bf16_of_float(ldexpf(values[i], (int)draw_between(d, -40, 3))));
    if (draw_coin(d))
        draw_indices(d, "count", count, 1, *rows);
    return values;
}

static enum narrow_format draw_format(struct draw *d)
{
    return draw_coin(d) ? NARROW_E4M3 : NARROW_E5M2;
}

void draw_largest(struct draw *d)
{
    struct largest_call *call = &d->c->call.largest;
    *call = (struct largest_call){0};
    draw_cast_input(d, &call->rows, &call->cols, SLOT(largest.count), SLOT(largest.x));
    FLOATS("largest", ROLE_OUT, largest.largest, 1);
}

void draw_quantise(struct draw *d)
{
    struct quantise_call *call = &d->c->call.quantise;
    *call = (struct quantise_call){.format = draw_format(d)};
    const float *x = draw_cast_input(d, &call->rows, &call->cols, SLOT(quantise.count), SLOT(quantise.x));
    float *most = FLOATS("largest", ROLE_IN, quantise.largest, 1);
    *most = 0;
    for (int64_t i = 0; i < call->rows * call->cols; i++)
        *most = fmaxf(*most, fabsf(x[i]));
    draw_operand(d, "y", OPERAND_BYTE, ROLE_OUT, SLOT(quantise.y), call->rows * call->cols);
    FLOATS("scale", ROLE_OUT, quantise.scale, 1);
}

void draw_quantise_blocks(struct draw *d)
{
    struct quantise_blocks_call *call = &d->c->call.quantise_blocks;
    *call = (struct quantise_blocks_call){.format = draw_format(d), .down = draw_coin(d)};
    draw_cast_input(d, &call->rows, &call->cols, SLOT(quantise_blocks.count), SLOT(quantise_blocks.x));
    draw_operand(d, "y", OPERAND_BYTE, ROLE_OUT, SLOT(quantise_blocks.y), call->rows * call->cols);
    draw_operand(d, "blocks", OPERAND_BYTE, ROLE_OUT, SLOT(quantise_blocks.blocks),
                 narrow_blocks(call->rows, call->cols, call->down));
}

void draw_embedding(struct draw *d)
{
    struct embedding_call *call = &d->c->call.embedding;
    int64_t vocab = draw_between(d, 1, d->size);
    *call = (struct embedding_call){
        .h = draw_width(d), .seq_len = draw_between(d, 1, d->size), .first = draw_between(d, 0, vocab - 1)};
    call->t = call->seq_len * draw_between(d, 1, 3);
    call->count = draw_between(d, 1, vocab - call->first);
    draw_text(d, "t %lld h %lld seq %lld vocabulary [%lld, +%lld) of %lld", (long long)call->t, (long long)call->h,
              (long long)call->seq_len, (long long)call->first, (long long)call->count, (long long)vocab);
    draw_indices(d, "tokens", SLOT(embedding.tokens), call->t, vocab);
    if (d->kernel == KERNEL_EMBEDDING_FORWARD) {
        IN("table", embedding.table, call->count * call->h);
        call->at = (struct positions){draw_between(d, 0, 5), draw_between(d, 0, 5)};
        if (draw_coin(d))
            IN("positions", embedding.positions, (call->seq_len + 10) * call->h);
        OUT("x", embedding.x, call->t * call->h);
        return;
    }
    IN("dx", embedding.dx, call->t * call->h);
    FLOATS("dtable", ROLE_IN_OUT, embedding.dtable, call->count * call->h);
    if (draw_coin(d))
        FLOATS("dpositions", ROLE_IN_OUT, embedding.dpositions, (call->seq_len + 10) * call->h);
    call->at = (struct positions){draw_between(d, 0, 5), draw_between(d, 0, 5)};
}

void draw_logits(struct draw *d)
{
    struct logits_call *call = &d->c->call.logits;
    *call = (struct logits_call){
        .t = draw_between(d, 1, d->size), .v = draw_width(d), .first = draw_between(d, 0, 20), .scale = 0.125f};
    draw_text(d, "t %lld v %lld first %lld", (long long)call->t, (long long)call->v, (long long)call->first);
    draw_indices(d, "targets", SLOT(logits.targets), call->t, call->v + 40);
    draw_numbers(d, "logits", OPERAND_ACTIVATION, d->kernel == KERNEL_LOGITS_BACKWARD ? ROLE_IN_OUT : ROLE_IN,
                 SLOT(logits.logits), call->t * call->v, -4, 4);
    FLOATS("max", d->kernel == KERNEL_LOGITS_MAX ? ROLE_OUT : ROLE_IN, logits.max, call->t);
    FLOATS("sums", d->kernel == KERNEL_LOGITS_SUM ? ROLE_OUT : ROLE_IN, logits.sums, 2 * call->t);
    double *loss = operand_data(draw_operand(d, "loss", OPERAND_DOUBLE, ROLE_IN_OUT, SLOT(logits.loss), 1));
    *loss = 0.5;
    if (d->kernel != KERNEL_LOGITS_MAX)
        kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_LOGITS_MAX, .logits = *call});
    if (d->kernel == KERNEL_LOGITS_LOSS || d->kernel == KERNEL_LOGITS_BACKWARD)
        kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_LOGITS_SUM, .logits = *call});
}

void draw_square_sum(struct draw *d)
{
    struct square_sum_call *call = &d->c->call.square_sum;
    *call = (struct square_sum_call){.n = draw_between(d, 1, d->size * d->size)};
    draw_text(d, "n %lld", (long long)call->n);
    FLOATS("x", ROLE_IN, square_sum.x, call->n);
    FLOATS("sum", ROLE_IN_OUT, square_sum.sum, 1);
}

void draw_adam(struct draw *d)
{
    struct adam_call *call = &d->c->call.adam;
    *call = (struct adam_call){.n = draw_between(d, 1, d->size * d->size),
                               .rate = 0.01f,
                               .beta1 = 0.9f,
                               .beta2 = 0.95f,
                               .epsilon = 1e-5f,
                               .decay = 0.1f,
                               .gradient_scale = 0.5f,
                               .step = draw_between(d, 1, 100)};
    draw_text(d, "n %lld step %lld", (long long)call->n, (long long)call->step);
    FLOATS("p", ROLE_IN_OUT, adam.p, call->n);
    FLOATS("m", ROLE_IN_OUT, adam.m, call->n);
    POSITIVE("v", ROLE_IN_OUT, adam.v, call->n);
    FLOATS("g", ROLE_IN, adam.g, call->n);
    if (draw_coin(d))
        OUT("compute", adam.compute, call->n);
    draw_clipping(d, SLOT(adam.clip.square), &call->clip.most);
}

void draw_lamb(struct draw *d)
{
    struct lamb_call *call = &d->c->call.lamb;
    *call = (struct lamb_call){.n = draw_between(d, 1, d->size * d->size),
                               .rate = 0.01f,
                               .beta1 = 0.9f,
                               .beta2 = 0.95f,
                               .epsilon = 1e-5f,
                               .decay = 0.1f,
                               .gradient_scale = 0.5f,
                               .step = draw_between(d, 1, 100)};
    draw_text(d, "n %lld step %lld", (long long)call->n, (long long)call->step);
    FLOATS("p", ROLE_IN_OUT, lamb.p, call->n);
    FLOATS("m", ROLE_IN_OUT, lamb.m, call->n);
    POSITIVE("v", ROLE_IN_OUT, lamb.v, call->n);
    FLOATS("g", ROLE_IN, lamb.g, call->n);
    FLOATS("update", ROLE_OUT, lamb.update, call->n);
    FLOATS("norms", ROLE_OUT, lamb.norms, 2);
    if (draw_coin(d))
        OUT("compute", lamb.compute, call->n);
}

void draw_zero(struct draw *d)
{
    int64_t n = draw_between(d, 1, d->size * d->size);
    d->c->call.zero = (struct zero_call){.bytes = (size_t)n * 4};
    draw_text(d, "n %lld", (long long)n);
    FLOATS("at", ROLE_OUT, zero.at, n);
}

void draw_copy(struct draw *d)
{
    int64_t n = draw_between(d, 1, d->size * d->size);
    d->c->call.copy = (struct copy_call){.bytes = (size_t)n * 4};
    draw_text(d, "n %lld", (long long)n);
    FLOATS("from", ROLE_IN, copy.from, n);
    FLOATS("to", ROLE_OUT, copy.to, n);
}

void draw_cast(struct draw *d)
{
    struct cast_call *call = &d->c->call.cast;
    *call = (struct cast_call){.n = draw_between(d, 1, d->size * d->size), .widen = draw_coin(d)};
    draw_text(d, "n %lld %s", (long long)call->n, call->widen ? "widen" : "narrow");
    draw_numbers(d, "from", call->widen ? OPERAND_ACTIVATION : OPERAND_FLOAT, ROLE_IN, SLOT(cast.from), call->n, -9, 9);
    draw_numbers(d, "to", call->widen ? OPERAND_FLOAT : OPERAND_ACTIVATION, ROLE_OUT, SLOT(cast.to), call->n, -9, 9);
}
