/* layer_mixture_rows.c - the routing of a mixture of experts, its rows between ranks, and the products of experts, for both
 * passes. */
#include "runtime/layer/layer_mixture.h"

const struct mixture_shape *mixture_sizes(const struct layer_context *c)
{
    return &c->shape->moe;
}

/* Copies of tokens that this rank sends. */
int64_t mixture_copies(const struct layer_context *c)
{
    return mixture_sizes(c)->tokens * mixture_sizes(c)->top_k;
}

int64_t mixture_room(const struct layer_context *c)
{
    return mixture_sizes(c)->share * mixture_sizes(c)->top_k;
}

static bool has_all_tokens(const struct shape *s)
{
    return s->tp > 1 && !s->sequence_parallel;
}

struct tensor *mixture_shares(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    return layer_tensor(c, has_all_tokens(s) ? s->tp * s->moe.share : s->local_tokens, s->hidden);
}

void *mixture_own(const struct layer_context *c, struct tensor *tensor)
{
    const struct shape *s = c->shape;
    return layer_row(c, tensor_data(tensor), has_all_tokens(s) ? s->tp_rank * s->moe.share * s->hidden : 0);
}

/* --- routing */

struct tensor *routing_new(const struct layer_context *c)
{
    const struct mixture_shape *m = mixture_sizes(c);
    int64_t n = mixture_room(c), sources = (int64_t)m->tp * m->ep;
    int64_t integers = m->experts + sources * m->local + 2 * m->ep + m->tp + m->local + 1 + 2 * n + m->most;
    return tensor_new(c->rank, (size_t)integers * sizeof(int32_t));
}

struct routing routing_of(const struct layer_context *c)
{
    const struct mixture_shape *m = mixture_sizes(c);
    struct routing r = {.counts = tensor_data(c->state->mixture.plan)};
    if (!r.counts)
        return r;
    r.arrived = r.counts + m->experts;
    r.sent = r.arrived + (int64_t)m->tp * m->ep * m->local;
    r.received = r.sent + m->ep;
    r.members = r.received + m->ep;
    r.offsets = r.members + m->tp;
    r.expert = r.offsets + m->local + 1;
    r.place = r.expert + mixture_room(c);
    r.order = r.place + mixture_room(c);
    return r;
}

const int32_t *routing_rows(const struct layer_context *c)
{
    struct routing r = routing_of(c);
    return r.offsets ? r.offsets + mixture_sizes(c)->local : NULL;
}

static void exchange_counts(const struct layer_context *c, enum group_kind group, enum exchange exchange, const int32_t *in,
                            int32_t *out, int64_t count)
{
    struct exchange_call call = {
        .exchange = exchange, .element = ELEMENT_INT32, .in = in, .out = out, .count = count, .what = "numbers of tokens"};
    rank_exchange(c->rank, c->rank->side[group], c->step->stream, &call);
}

/* How many copies come from whom for which expert: every rank tells those that hold the experts, and they tell each other. */
static void spread_counts(const struct layer_context *c, const struct routing *r, int me)
{
    const struct mixture_shape *m = mixture_sizes(c);
    int32_t *own = r->arrived + (int64_t)me * m->ep * m->local;
    struct kernel_call copy = {.kernel = KERNEL_COPY,
                               .copy = {own, r->counts, (size_t)m->experts * sizeof(int32_t)}}; /* ep * local of them */
    if (m->ep > 1)
        exchange_counts(c, GROUP_EP, EXCHANGE_ALL_TO_ALL, r->counts, own, m->local);
    else
        layer_launch(c, &copy);
    if (m->tp > 1)
        exchange_counts(c, GROUP_TP, EXCHANGE_ALL_GATHER, own, r->arrived, (int64_t)m->ep * m->local);
}

void mixture_route(const struct layer_context *c)
{
    const struct mixture_shape *m = mixture_sizes(c);
    struct routing r = routing_of(c);
    int me = m->tp > 1 ? c->shape->tp_rank : 0;
    struct kernel_call sort = {
        .kernel = KERNEL_EXPERT_SORT,
        .expert_sort = {.n = mixture_copies(c), .experts = m->experts, .expert = r.expert, .counts = r.counts, .place = r.place}};
    struct kernel_call arrivals = {.kernel = KERNEL_EXPERT_ARRIVALS,
                                   .expert_arrivals = {.ep = m->ep,
                                                       .tp = m->tp,
                                                       .me = me,
                                                       .experts = m->local,
                                                       .counts = r.counts,
                                                       .arrived = r.arrived,
                                                       .sent = r.sent,
                                                       .received = r.received,
                                                       .members = r.members,
                                                       .offsets = r.offsets,
                                                       .order = r.order}};
    layer_launch(c, &sort);
    spread_counts(c, &r, me);
    layer_launch(c, &arrivals);
}

/* --- rows between ranks */

/* `rows` become what an exchange makes of them, `room` rows at most. */
static void exchange_rows(const struct layer_context *c, enum group_kind group, enum exchange exchange, struct ragged parts,
                          int64_t room, const char *what)
{
    struct mixture_state *m = &c->state->mixture;
    struct tensor *made = layer_tensor(c, room, c->shape->hidden);
    parts.even = mixture_copies(c);
    struct exchange_call call = {.exchange = exchange,
                                 .element = rank_element(c->rank),
                                 .in = tensor_data(m->rows),
                                 .out = tensor_data(made),
                                 .count = c->shape->hidden,
                                 .parts = parts,
                                 .what = what};
    rank_exchange(c->rank, c->rank->groups[group], c->step->stream, &call);
    layer_drop(c, &m->rows);
    m->rows = made;
}

void mixture_dispatch(const struct layer_context *c, const char *what)
{
    struct routing r = routing_of(c);
    exchange_rows(c, GROUP_EP, EXCHANGE_ALL_TO_ALL, (struct ragged){.sent = r.sent, .received = r.received},
                  mixture_sizes(c)->most / mixture_sizes(c)->tp, what);
}

void mixture_dispatch_tp(const struct layer_context *c, const char *what)
{
    struct routing r = routing_of(c);
    exchange_rows(c, GROUP_TP, EXCHANGE_ALL_GATHER, (struct ragged){.received = r.members}, mixture_sizes(c)->most, what);
}

void mixture_combine_tp(const struct layer_context *c, const char *what)
{
    struct routing r = routing_of(c);
    exchange_rows(c, GROUP_TP, EXCHANGE_REDUCE_SCATTER, (struct ragged){.sent = r.members},
                  mixture_sizes(c)->most / mixture_sizes(c)->tp, what);
}

void mixture_combine(const struct layer_context *c, const char *what)
{
    struct routing r = routing_of(c);
    exchange_rows(c, GROUP_EP, EXCHANGE_ALL_TO_ALL, (struct ragged){.sent = r.received, .received = r.sent}, mixture_room(c),
                  what);
}

/* From one source they arrive in the order of experts. */
static bool arrives_sorted(const struct mixture_shape *m)
{
    return m->tp * m->ep == 1;
}

static void reorder(const struct layer_context *c, struct tensor *from, struct tensor *to, bool scatter)
{
    int64_t h = c->shape->hidden;
    layer_rows(c, (struct rows_call){.n = mixture_sizes(c)->most,
                                     .width = h,
                                     .from_row = h,
                                     .to_row = h,
                                     .scatter = scatter,
                                     .index = routing_of(c).order,
                                     .count = routing_rows(c),
                                     .from = tensor_data(from),
                                     .to = tensor_data(to)});
}

struct tensor *mixture_sort(const struct layer_context *c)
{
    struct mixture_state *m = &c->state->mixture;
    struct tensor *sorted = m->rows;
    if (!arrives_sorted(mixture_sizes(c))) {
        sorted = layer_tensor(c, mixture_sizes(c)->most, c->shape->hidden);
        reorder(c, m->rows, sorted, true);
        layer_drop(c, &m->rows);
    }
    m->rows = NULL;
    return sorted;
}

void mixture_unsort(const struct layer_context *c, struct tensor **sorted)
{
    struct mixture_state *m = &c->state->mixture;
    if (arrives_sorted(mixture_sizes(c))) {
        m->rows = *sorted;
        *sorted = NULL;
        return;
    }
    m->rows = layer_tensor(c, mixture_sizes(c)->most, c->shape->hidden);
    reorder(c, *sorted, m->rows, false);
    layer_drop(c, sorted);
}

void mixture_gather_shares(const struct layer_context *c, struct tensor *tensor, const char *what)
{
    const struct shape *s = c->shape;
    struct exchange_call call = {.exchange = EXCHANGE_ALL_GATHER,
                                 .element = rank_element(c->rank),
                                 .in = mixture_own(c, tensor),
                                 .out = tensor_data(tensor),
                                 .count = s->moe.share * s->hidden,
                                 .what = what};
    rank_exchange(c->rank, c->rank->groups[GROUP_TP], c->step->stream, &call);
}

/* --- products */

struct kernel_call expert_product_of(const struct layer_context *c, enum expert_product product, enum kernel kernel)
{
    const struct shape *s = c->shape;
    bool up = product == EXPERT_PRODUCT_UP;
    enum parameter_kind weights = up ? PARAMETER_EXPERT_UP : PARAMETER_EXPERT_DOWN;
    enum parameter_kind bias = up ? PARAMETER_EXPERT_UP_BIAS : PARAMETER_EXPERT_DOWN_BIAS;
    bool adds = up || s->moe.tp == 1 || s->tp_rank == 0; /* of partial sums one has the bias */
    const struct tensor *cast = narrow_weights_of(c->experts, weights);
    struct operand w = cast ? operand_of(cast, kernel == KERNEL_GROUPED_BACKWARD_INPUT)
                            : operand_wide(unit_weights(c->rank, c->experts, weights));
    if (kernel == KERNEL_GROUPED_BACKWARD_WEIGHT)
        w = operand_wide(NULL);
    return (struct kernel_call){.kernel = kernel,
                                .grouped = {.groups = s->moe.local,
                                            .most = s->moe.most,
                                            .in = up ? s->hidden : s->moe.ffn,
                                            .out = up ? s->moe.up_width : s->hidden,
                                            .offsets = routing_of(c).offsets,
                                            .w = w.data,
                                            .w_as = w.as,
                                            .bias = adds ? unit_weights(c->rank, c->experts, bias) : NULL,
                                            .dw = unit_gradients(c->experts, weights),
                                            .dbias = unit_gradients(c->experts, bias)}};
}

void expert_operands(struct kernel_call *call, const struct tensor *x, const struct tensor *dy)
{
    bool weight = call->kernel == KERNEL_GROUPED_BACKWARD_WEIGHT;
    struct operand left = operand_of(x, weight), right = operand_of(dy, weight);
    call->grouped.x = left.data;
    call->grouped.x_as = left.as;
    call->grouped.dy = right.data;
    call->grouped.dy_as = right.as;
    if (right.as.format) /* its bias's gradient was summed when it was cast */
        call->grouped.dbias = NULL;
}

void expert_launch(const struct layer_context *c, struct kernel_call *call)
{
    call->grouped.scratch = product_scratch(c->rank, call);
    layer_launch(c, call);
}

void expert_cast_gradient(const struct layer_context *c, enum expert_product product, struct tensor **dy)
{
    struct kernel_call biases = expert_product_of(c, product, KERNEL_GROUPED_BACKWARD_WEIGHT);
    if (c->rank->recipe.gradients == NARROW_NONE || !*dy || (*dy)->format != NARROW_NONE)
        return;
    biases.grouped.dw = NULL;
    biases.grouped.dy = tensor_data(*dy);
    if (biases.grouped.dbias)
        layer_launch(c, &biases);
    layer_cast(c, dy, biases.grouped.out, (struct cast){.gradient = true, .count = routing_rows(c)});
}

struct product shared_up_of(const struct layer_context *c)
{
    struct product p = layer_product(c, PARAMETER_SHARED_UP, c->shape->hidden, mixture_sizes(c)->shared_up);
    p.bias = PARAMETER_SHARED_UP_BIAS;
    p.biased = c->shape->linear_bias;
    return p;
}

struct product shared_down_of(const struct layer_context *c)
{
    return layer_product(c, PARAMETER_SHARED_DOWN, mixture_sizes(c)->shared, c->shape->hidden);
}

struct product router_of(const struct layer_context *c)
{
    struct product p = layer_product(c, PARAMETER_ROUTER, c->shape->hidden, mixture_sizes(c)->experts);
    p.tokens = mixture_sizes(c)->tokens;
    p.wide = true;
    p.bias = PARAMETER_ROUTER_BIAS;
    p.biased = c->shape->linear_bias;
    return p;
}
