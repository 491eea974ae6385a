/* kernel_draw_mixture.c - calls of experts, of other kinds of attention, of optimizers in parts. */
#include <math.h>

#include "tests/kernels/kernel_draw.h"

void draw_rows(struct draw *d)
{
    struct rows_call *call = &d->c->call.rows;
    int form = (int)draw_between(d, 0, 3); /* as they are, fetched, spread, folded */
    *call = (struct rows_call){.n = draw_between(d, 1, d->size), .width = draw_width(d), .accumulate = draw_coin(d)};
    int64_t ratio = draw_between(d, 1, 3), from = call->n, to = call->n;
    call->from_row = call->width + 8 * draw_between(d, 0, 1);
    call->to_row = call->width + draw_between(d, 0, 3);
    draw_text(d, "n %lld width %lld form %d ratio %lld%s", (long long)call->n, (long long)call->width, form, (long long)ratio,
              call->accumulate ? " added" : "");
    if (form == 1)
        draw_indices(d, "index", SLOT(rows.index), call->n, from);
    if (form == 2) {
        call->scatter = true;
        call->share = ratio;
        to = call->n + 2;
        draw_places(d, "index", SLOT(rows.index), call->n, to);
    }
    if (form == 3) {
        call->fold = ratio;
        from = ratio * call->n;
    }
    if (draw_coin(d))
        *(int32_t *)operand_data(draw_operand(d, "count", OPERAND_INT32, ROLE_IN, SLOT(rows.count), 1)) = (int32_t)(call->n - 1);
    IN("from", rows.from, from * call->from_row);
    draw_numbers(d, "to", OPERAND_ACTIVATION, ROLE_IN_OUT, SLOT(rows.to), to * call->to_row, -1, 1);
}

void draw_route(struct draw *d)
{
    struct route_call *call = &d->c->call.route;
    *call = (struct route_call){.t = draw_between(d, 1, d->size), .experts = (int)draw_between(d, 1, 40)};
    call->top_k = (int)draw_between(d, 1, call->experts < 8 ? call->experts : 8);
    if (draw_coin(d)) { /* eight groups of the largest size, two of them open */
        call->experts = (call->experts + 7) / 8 * 8;
        call->groups = 8;
        call->top_groups = 2;
        call->top_k = (int)draw_between(d, 1, call->experts / 4 < 8 ? call->experts / 4 : 8);
    }
    bool forward = d->kernel == KERNEL_ROUTE_FORWARD;
    int64_t n = call->t * call->top_k;
    draw_text(d, "t %lld experts %d top %d", (long long)call->t, call->experts, call->top_k);
    draw_numbers(d, "logits", OPERAND_ACTIVATION, ROLE_IN, SLOT(route.logits), call->t * call->experts, -4, 4);
    FLOATS("gate", forward ? ROLE_OUT : ROLE_IN, route.gate, n);
    draw_operand(d, "expert", OPERAND_INT32, forward ? ROLE_OUT : ROLE_IN, SLOT(route.expert), n);
    if (forward)
        return;
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_ROUTE_FORWARD, .route = *call});
    FLOATS("dgate", ROLE_IN, route.dgate, n);
    OUT("dlogits", route.dlogits, call->t * call->experts);
}

void draw_expert_sort(struct draw *d)
{
    struct expert_sort_call *call = &d->c->call.expert_sort;
    *call = (struct expert_sort_call){.n = draw_between(d, 1, 8 * d->size), .experts = (int)draw_between(d, 1, 40)};
    draw_text(d, "n %lld experts %d", (long long)call->n, call->experts);
    draw_indices(d, "expert", SLOT(expert_sort.expert), call->n, call->experts);
    draw_operand(d, "counts", OPERAND_INT32, ROLE_OUT, SLOT(expert_sort.counts), call->experts);
    draw_operand(d, "place", OPERAND_INT32, ROLE_OUT, SLOT(expert_sort.place), call->n);
}

void draw_expert_arrivals(struct draw *d)
{
    struct expert_arrivals_call *call = &d->c->call.expert_arrivals;
    *call = (struct expert_arrivals_call){
        .ep = (int)draw_between(d, 1, 4), .tp = (int)draw_between(d, 1, 3), .experts = (int)draw_between(d, 1, 5)};
    call->me = (int)draw_between(d, 0, call->tp - 1);
    int64_t own = call->ep * call->experts, all = own * call->tp, rows = 0;
    draw_text(d, "ep %d tp %d (%d) experts %d", call->ep, call->tp, call->me, call->experts);
    draw_indices(d, "counts", SLOT(expert_arrivals.counts), own, 9);
    int32_t *arrived = draw_indices(d, "arrived", SLOT(expert_arrivals.arrived), all, 9);
    for (int64_t i = 0; i < all; i++)
        rows += arrived[i];
    draw_operand(d, "sent", OPERAND_INT32, ROLE_OUT, SLOT(expert_arrivals.sent), call->ep);
    draw_operand(d, "received", OPERAND_INT32, ROLE_OUT, SLOT(expert_arrivals.received), call->ep);
    draw_operand(d, "members", OPERAND_INT32, ROLE_OUT, SLOT(expert_arrivals.members), call->tp);
    draw_operand(d, "offsets", OPERAND_INT32, ROLE_OUT, SLOT(expert_arrivals.offsets), call->experts + 1);
    draw_operand(d, "order", OPERAND_INT32, ROLE_OUT, SLOT(expert_arrivals.order), rows);
}

void draw_combine(struct draw *d)
{
    struct combine_call *call = &d->c->call.combine;
    *call = (struct combine_call){.t = draw_between(d, 1, d->size), .h = draw_width(d), .top_k = (int)draw_between(d, 1, 4)};
    int64_t copies = call->t * call->top_k;
    bool forward = d->kernel == KERNEL_COMBINE_FORWARD;
    draw_text(d, "t %lld h %lld top %d", (long long)call->t, (long long)call->h, call->top_k);
    IN("rows", combine.rows, copies * call->h);
    draw_places(d, "place", SLOT(combine.place), copies, copies);
    if (!forward || draw_coin(d))
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
    int32_t *offsets = operand_data(draw_operand(d, "offsets", OPERAND_INT32, ROLE_IN, slot, groups + 1));
    offsets[0] = 0;
    for (int g = 0; g < groups; g++)
        offsets[g + 1] = offsets[g] + (int32_t)(draw_coin(d) ? draw_between(d, 0, d->size / 2) : 0);
    return offsets;
}

/* In the device's precision or, one time in two, in bytes. */
static void draw_grouped_operands(struct draw *d, const struct grouped_call *call)
{
    static const float scaled;
    bool weight = d->kernel == KERNEL_GROUPED_BACKWARD_WEIGHT, narrow = draw_coin(d);
    struct narrow_operand how = {.format = NARROW_E4M3, .scale = draw_coin(d) ? &scaled : NULL, .down = weight}, down = how;
    down.down = d->kernel != KERNEL_GROUPED_FORWARD;
    if (d->kernel != KERNEL_GROUPED_BACKWARD_WEIGHT && narrow)
        draw_narrow(d, "w", SLOT(grouped.w), SLOT(grouped.w_as), call->groups * call->out, call->in, down);
    else if (d->kernel != KERNEL_GROUPED_BACKWARD_WEIGHT)
        IN("w", grouped.w, call->groups * call->out * call->in);
    if (d->kernel != KERNEL_GROUPED_BACKWARD_INPUT && narrow)
        draw_narrow(d, "x", SLOT(grouped.x), SLOT(grouped.x_as), call->most, call->in, how);
    else if (d->kernel != KERNEL_GROUPED_BACKWARD_INPUT)
        IN("x", grouped.x, call->most * call->in);
    how.format = NARROW_E5M2;
    if (d->kernel != KERNEL_GROUPED_FORWARD && narrow)
        draw_narrow(d, "dy", SLOT(grouped.dy), SLOT(grouped.dy_as), call->most, call->out, how);
    else if (d->kernel != KERNEL_GROUPED_FORWARD)
        IN("dy", grouped.dy, call->most * call->out);
    struct kernel_call whole = {.kernel = d->kernel, .grouped = *call};
    if (narrow)
        draw_operand(d, "scratch", OPERAND_SCRATCH, ROLE_OUT, SLOT(grouped.scratch), (int64_t)linear_reference_scratch(&whole));
}

void draw_grouped(struct draw *d)
{
    struct grouped_call *call = &d->c->call.grouped;
    *call = (struct grouped_call){.groups = (int)draw_between(d, 1, 5), .in = draw_width(d), .out = draw_width(d)};
    call->most = group_offsets(d, SLOT(grouped.offsets), call->groups)[call->groups];
    bool biased = draw_coin(d);
    int64_t weights = call->groups * call->out * call->in;
    draw_text(d, "groups %d rows %lld in %lld out %lld%s", call->groups, (long long)call->most, (long long)call->in,
              (long long)call->out, biased ? " bias" : "");
    draw_grouped_operands(d, call);
    if (d->kernel == KERNEL_GROUPED_FORWARD && biased)
        IN("bias", grouped.bias, call->groups * call->out);
    if (d->kernel == KERNEL_GROUPED_FORWARD)
        OUT("y", grouped.y, call->most * call->out);
    if (d->kernel == KERNEL_GROUPED_BACKWARD_INPUT)
        OUT("dx", grouped.dx, call->most * call->in);
    if (d->kernel != KERNEL_GROUPED_BACKWARD_WEIGHT)
        return;
    call->overwrite = draw_coin(d);
    FLOATS("dw", call->overwrite ? ROLE_OUT : ROLE_IN_OUT, grouped.dw, weights);
    if (biased)
        FLOATS("dbias", ROLE_IN_OUT, grouped.dbias, call->groups * call->out);
}

/* Sizes of heads: mostly small ones, each width of tiles wholly filled, anything up to the widest, and some that are not in
 * vectors. */
static void draw_heads(struct draw *d, struct query_range_call *call)
{
    static const int sizes[][2] = {{192, 128}, {256, 256}, {96, 96}, {128, 128}, {64, 64}};
    int form = (int)draw_between(d, 0, 6 + (int64_t)(sizeof sizes / sizeof *sizes));
    call->head_dim = 8 * (int)draw_between(d, 1, form > 3 ? 32 : 9);
    call->value_dim = 8 * (int)draw_between(d, 1, form > 3 ? 32 : 9);
    if (form == 0) {
        call->head_dim = (int)draw_between(d, 1, 140);
        call->value_dim = draw_coin(d) ? (int)draw_between(d, 1, 140) : call->value_dim;
    } else if (form > 6) {
        call->head_dim = sizes[form - 7][0];
        call->value_dim = sizes[form - 7][1];
    }
}

/* Where rows lie: side by side, or with something between them that is nobody's, as where queries, keys and values are packed;
 * sometimes not in vectors. */
static struct strided draw_strides(struct draw *d, int64_t width, int64_t rows, bool apart)
{
    int64_t unit = draw_between(d, 0, 5) ? 8 : 1;
    int64_t row = width + (apart ? unit * draw_between(d, 0, 2) : 0);
    return (struct strided){row, rows * row + (apart ? unit * draw_between(d, 0, 1) : 0)};
}

/* From 1 to about `most`: anything, or beside a multiple of 64, where tiles and their steps end. */
static int64_t draw_length(struct draw *d, int64_t most)
{
    int64_t steps = (most + 32) / 64;
    return draw_coin(d) || steps == 0 ? draw_between(d, 1, most) : 64 * draw_between(d, 1, steps) + draw_between(d, -1, 1);
}

/* Queries among the keys, or some of them or all before or behind: as far as a rank's late range is from the first keys. */
static void draw_place(struct draw *d, struct query_range_call *call)
{
    int form = (int)draw_between(d, 0, 2);
    call->keys = draw_length(d, d->size);
    call->queries = draw_length(d, call->keys);
    call->queries = call->queries < call->keys ? call->queries : call->keys;
    call->first = form == 0   ? draw_between(d, 0, call->keys - call->queries)
                  : form == 1 ? draw_between(d, -call->queries, 2 * call->keys + 70)
                              : 64 * draw_between(d, -1, 3) + draw_between(d, -1, 1);
    call->window = draw_coin(d) ? draw_length(d, (call->first > 0 ? call->first : 0) + call->keys + 3) : 0;
}

/* Whether any query sees two keys. */
static bool sees_two(const struct query_range_call *call)
{
    for (int64_t position = call->first; position < call->first + call->queries; position++) {
        int64_t begin = call->window > 0 && position + 1 > call->window ? position + 1 - call->window : 0;
        int64_t end = position < call->keys ? position + 1 : call->keys;
        if (end - begin > 1)
            return true;
    }
    return false;
}

/* The gradient of a query that sees one key is 0 but for rounding, which no relative error bounds: added to something it does. */
static struct query_range_call query_range_shape(struct draw *d, bool forward)
{
    int kv = (int)draw_between(d, 1, 2);
    struct query_range_call call = {
        .batch = draw_between(d, 1, 2), .kv_heads = kv, .heads = kv * (int)draw_between(d, 1, 3), .accumulate = draw_coin(d)};
    draw_heads(d, &call);
    draw_place(d, &call);
    call.accumulate |= !forward && !sees_two(&call);
    int64_t q = call.heads * call.head_dim, k = kv * call.head_dim, v = kv * call.value_dim, out = call.heads * call.value_dim;
    call.q_at = draw_strides(d, q, call.queries, forward || call.accumulate);
    call.k_at = draw_strides(d, k, call.keys, true);
    call.v_at = draw_strides(d, v, call.keys, true);
    call.out_at = draw_strides(d, out, call.queries, !forward || call.accumulate);
    draw_text(d, "batch %lld queries %lld from %lld of %lld window %lld heads %d/%d dims %d %d%s", (long long)call.batch,
              (long long)call.queries, (long long)call.first, (long long)call.keys, (long long)call.window, call.heads,
              call.kv_heads, call.head_dim, call.value_dim, call.accumulate ? " more" : "");
    return call;
}

void draw_query_range_operands(struct draw *d)
{
    struct query_range_call *call = &d->c->call.query_range;
    bool forward = d->kernel == KERNEL_QUERY_RANGE_FORWARD;
    int64_t queries = call->batch * call->queries, q = call->batch * call->q_at.batch, k = call->batch * call->k_at.batch;
    int64_t v = call->batch * call->v_at.batch, out = call->batch * call->out_at.batch;
    bool accumulate = call->accumulate;
    enum operand_role role = !forward ? ROLE_IN : accumulate ? ROLE_IN_OUT : ROLE_OUT;
    if (draw_coin(d))
        POSITIVE("slopes", ROLE_IN, query_range.slopes, call->heads);
    draw_numbers(d, "q", OPERAND_ACTIVATION, ROLE_IN, SLOT(query_range.q), q, -2, 2);
    draw_numbers(d, "k", OPERAND_ACTIVATION, ROLE_IN, SLOT(query_range.k), k, -2, 2);
    draw_numbers(d, "v", OPERAND_ACTIVATION, ROLE_IN, SLOT(query_range.v), v, -2, 2);
    draw_numbers(d, "out", OPERAND_ACTIVATION, role, SLOT(query_range.out), out, -1, 1);
    float *lse = draw_numbers(d, "log_sum_exp", OPERAND_FLOAT, role, SLOT(query_range.log_sum_exp), queries * call->heads, -1, 3);
    for (int64_t i = 0; forward && accumulate && i < queries * call->heads; i += 5)
        lse[i] = -INFINITY; /* nothing seen so far */
    if (forward)
        return;
    call->accumulate = false;
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_QUERY_RANGE_FORWARD, .query_range = *call});
    call->accumulate = accumulate;
    draw_rounded(call->out, out);
    IN("dout", query_range.dout, out);
    draw_numbers(d, "dq", OPERAND_ACTIVATION, accumulate ? ROLE_IN_OUT : ROLE_OUT, SLOT(query_range.dq), q, -1, 1);
    draw_numbers(d, "dk", OPERAND_ACTIVATION, ROLE_IN_OUT, SLOT(query_range.dk), k, -1, 1);
    draw_numbers(d, "dv", OPERAND_ACTIVATION, ROLE_IN_OUT, SLOT(query_range.dv), v, -1, 1);
    draw_operand(d, "workspace", OPERAND_SCRATCH, ROLE_OUT, SLOT(query_range.workspace), queries * call->heads * 4 + 16);
}

void draw_query_range(struct draw *d)
{
    d->c->call.query_range = query_range_shape(d, d->kernel == KERNEL_QUERY_RANGE_FORWARD);
    draw_query_range_operands(d);
}

void draw_head_norm(struct draw *d)
{
    struct head_norm_call *call = &d->c->call.head_norm;
    *call =
        (struct head_norm_call){.t = draw_between(d, 1, d->size),
                                .heads = (int)draw_between(d, 1, 3),
                                .head_dim = 4 * (int)(draw_between(d, 0, 3) ? draw_between(d, 1, 20) : draw_between(d, 60, 160)),
                                .rms = draw_coin(d),
                                .epsilon = 1e-5f};
    int64_t head = (int64_t)call->heads * call->head_dim;
    call->x_row = head + 8 * draw_between(d, 0, 1);
    call->y_row = head;
    draw_text(d, "t %lld heads %d dim %d %s", (long long)call->t, call->heads, call->head_dim, call->rms ? "rms" : "layer");
    IN("x", head_norm.x, call->t * call->x_row);
    IN("gain", head_norm.gain, call->head_dim);
    if (d->kernel == KERNEL_HEAD_NORM_FORWARD) {
        if (draw_coin(d))
            IN("bias", head_norm.bias, call->head_dim);
        OUT("y", head_norm.y, call->t * call->y_row);
        return;
    }
    IN("dy", head_norm.dy, call->t * call->y_row);
    if (draw_coin(d))
        draw_alias(d, "dy", SLOT(head_norm.dx));
    else
        OUT("dx", head_norm.dx, call->t * call->y_row);
    FLOATS("dgain", ROLE_IN_OUT, head_norm.dgain, call->head_dim);
    if (draw_coin(d))
        FLOATS("dbias", ROLE_IN_OUT, head_norm.dbias, call->head_dim);
}

void draw_lamb_part(struct draw *d)
{
    struct lamb_part_call *call = &d->c->call.lamb_part;
    bool apply = d->kernel == KERNEL_LAMB_APPLY;
    *call = (struct lamb_part_call){.n = draw_between(d, 1, d->size * d->size),
                                    .rate = 0.01f,
                                    .beta1 = 0.9f,
                                    .beta2 = 0.95f,
                                    .epsilon = 1e-5f,
                                    .decay = 0.1f,
                                    .step = draw_between(d, 1, 100)};
    draw_text(d, "n %lld step %lld", (long long)call->n, (long long)call->step);
    FLOATS("p", apply ? ROLE_IN_OUT : ROLE_IN, lamb_part.p, call->n);
    FLOATS("update", apply ? ROLE_IN : ROLE_OUT, lamb_part.update, call->n);
    POSITIVE("norms", apply ? ROLE_IN : ROLE_IN_OUT, lamb_part.norms, 2);
    if (apply) {
        if (draw_coin(d))
            OUT("compute", lamb_part.compute, call->n);
        return;
    }
    FLOATS("m", ROLE_IN_OUT, lamb_part.m, call->n);
    POSITIVE("v", ROLE_IN_OUT, lamb_part.v, call->n);
    FLOATS("g", ROLE_IN, lamb_part.g, call->n);
    draw_clipping(d, SLOT(lamb_part.clip.square), &call->clip.most);
}

void draw_sgd(struct draw *d)
{
    struct sgd_call *call = &d->c->call.sgd;
    *call = (struct sgd_call){.n = draw_between(d, 1, d->size * d->size), .rate = 0.1f, .momentum = 0.9f, .decay = 0.1f};
    draw_text(d, "n %lld", (long long)call->n);
    FLOATS("p", ROLE_IN_OUT, sgd.p, call->n);
    FLOATS("m", ROLE_IN_OUT, sgd.m, call->n);
    FLOATS("g", ROLE_IN, sgd.g, call->n);
    if (draw_coin(d))
        OUT("compute", sgd.compute, call->n);
    draw_clipping(d, SLOT(sgd.clip.square), &call->clip.most);
}

void draw_muon(struct draw *d)
{
    struct muon_call *call = &d->c->call.muon;
    *call = (struct muon_call){.n = draw_between(d, 1, d->size * d->size), .momentum = 0.95f, .rate = 0.1f, .decay = 0.1f};
    call->alpha = 3.4445f, call->beta = -4.775f;
    draw_text(d, "n %lld", (long long)call->n);
    if (d->kernel == KERNEL_MUON_COMBINE) {
        IN("x", muon.x, call->n);
        if (draw_coin(d))
            IN("z", muon.z, call->n);
        if (draw_coin(d))
            POSITIVE("square", ROLE_IN, muon.square, 1);
        OUT("y", muon.y, call->n);
        return;
    }
    if (d->kernel == KERNEL_MUON_APPLY) {
        FLOATS("p", ROLE_IN_OUT, muon.p, call->n);
        IN("update", muon.update, call->n);
        if (draw_coin(d))
            OUT("compute", muon.compute, call->n);
        return;
    }
    FLOATS("m", ROLE_IN_OUT, muon.m, call->n);
    FLOATS("g", ROLE_IN, muon.g, call->n);
    OUT("update", muon.update, call->n);
    draw_clipping(d, SLOT(muon.clip.square), &call->clip.most);
}
