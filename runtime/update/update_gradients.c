/* update_gradients.c - completes the gradients of a step: adds up partial ones, gathers them for Muon, takes their norm. */
#include "runtime/update/update_internal.h"

/* --- partial gradients: each tensor-parallel rank has a part of the sum
 *
 * A buffer has all such parameters one after the other, as in the whole model. Each rank writes its owned elements, other
 * elements are zero, and an all-reduce gives the sums. */

/* The rows of a parameter in that buffer, and the first of them. Of queries, keys and values only keys and values: a query head
 * belongs to one rank. */
struct partial_rows {
    int first_piece;
    int64_t first, n;
};

static struct partial_rows partial_rows_of(const struct shape *s, const struct parameter *p)
{
    if (p->kind != PARAMETER_QKV && p->kind != PARAMETER_QKV_BIAS)
        return (struct partial_rows){.n = p->rows};
    return (struct partial_rows){1, (int64_t)s->model_heads * s->head_dim, 2 * (int64_t)s->model_kv_heads * s->head_dim};
}

double partial_gradients_bytes(const struct layout *layout, const struct setting *setting, int stage)
{
    struct shape shape = shape_of(layout, setting, layout_rank(layout, (struct coordinates){.pp = stage}));
    double bytes = 0;
    for (int chunk = 0; chunk < layout->vpp; chunk++) {
        int v = layout_virtual_stage(layout, stage, chunk);
        struct stage_content content = {.range = layout_layers(layout, setting->model, v),
                                        .head = v == layout_virtual_stages(layout) - 1};
        struct stage_units units;
        stage_units_build(&shape, setting->model, content, &units);
        for (int i = 0; i < units.n_items; i++)
            for (int k = 0; k < units.items[i].n_parameters; k++) {
                const struct parameter *p = &units.items[i].parameters[k];
                bytes += p->partial ? (double)partial_rows_of(&shape, p).n * (double)p->cols * sizeof(float) : 0;
            }
        stage_units_free(&units);
    }
    return bytes;
}

static int64_t copy_partial(struct rank *rank, struct device_stream *stream, const struct unit_state *u,
                            const struct parameter *p, int64_t at, bool back)
{
    const struct partial_rows rows = partial_rows_of(&rank->shape, p);
    for (int i = rows.first_piece; i < p->n_pieces && rank->partial; i++) {
        const struct element_range s = owned_range(u, p->offset + p->pieces[i].local * p->cols, p->pieces[i].count * p->cols);
        if (!s.n)
            continue;
        int64_t begin = u->first + s.first - p->offset - p->pieces[i].local * p->cols;
        float *whole = rank->partial + at + (p->pieces[i].whole - rows.first) * p->cols + begin;
        host_states_gradients(rank, u, s.first, s.n, whole, back, stream);
    }
    return rows.n * p->cols;
}

static int64_t copy_partials(struct rank *rank, struct device_stream *stream, bool back)
{
    int64_t at = 0;
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++) {
            const struct unit_state *u = &rank->chunks[c].states[i];
            for (int k = 0; k < u->unit->n_parameters; k++)
                if (u->unit->parameters[k].partial)
                    at += copy_partial(rank, stream, u, &u->unit->parameters[k], at, back);
        }
    return at;
}

static void add_up_partials(struct rank *rank, struct device_stream *stream)
{
    if (!rank->n_partial) { /* the first time only counts */
        rank->n_partial = copy_partials(rank, stream, false);
        if (rank->n_partial)
            rank->partial = rank_memory(rank, (size_t)rank->n_partial * sizeof(float));
    }
    if (!rank->partial || rank->status != STATUS_OK)
        return;
    struct kernel_call zero = {.kernel = KERNEL_ZERO, .zero = {rank->partial, (size_t)rank->n_partial * sizeof(float)}};
    rank_launch(rank, stream, &zero);
    copy_partials(rank, stream, false);
    struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE,
                                 .element = ELEMENT_FP32,
                                 .in = rank->partial,
                                 .out = rank->partial,
                                 .count = rank->n_partial,
                                 .what = "gradients of norms and biases"};
    rank_exchange(rank, rank->side[GROUP_TP], stream, &call);
    copy_partials(rank, stream, true);
}

/* --- the gradient norm */

/* Owned gradients one after the other in device memory: those that left come up once more. */
static const float *gathered_gradients(struct rank *rank, const struct unit_state *u, struct device_stream *stream)
{
    if (!rank_gradients_leave(rank))
        return u->owned_gradients;
    host_states_gradients(rank, u, 0, u->owned, rank->gathered_gradients, false, stream);
    return rank->gathered_gradients;
}

static void open_gathered_gradients(struct rank *rank)
{
    if (rank->gathered_gradients || !rank_gradients_leave(rank))
        return;
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++)
            if (rank->chunks[c].states[i].owned > rank->n_gathered_gradients)
                rank->n_gathered_gradients = rank->chunks[c].states[i].owned;
    rank->gathered_gradients = rank_memory(rank, (size_t)rank->n_gathered_gradients * sizeof(float));
}

/* Adds the squares of the owned elements among [first, first + n) of a unit; `owned`: their gradients. */
static void square_sum_of(struct rank *rank, struct device_stream *stream, const struct unit_state *u, const float *owned,
                          int64_t first, int64_t n)
{
    int64_t begin = first > u->first ? first : u->first;
    int64_t end = first + n < u->first + u->owned ? first + n : u->first + u->owned;
    if (end <= begin)
        return;
    struct kernel_call call = {.kernel = KERNEL_SQUARE_SUM,
                               .square_sum = {.n = end - begin, .x = owned + (begin - u->first), .sum = rank->norm}};
    rank_launch(rank, stream, &call);
}

/* Whether another rank counts this unit for all that hold copies of it. */
static bool is_counted_elsewhere(const struct rank *rank, const struct unit *unit)
{
    bool replica = rank->norm_over_replicas && !rank->layout->zero && unit->copies.index > 0;
    bool copy = unit->is_experts && !rank->layout->zero && unit->copies.index > 0;
    return replica || copy || unit->elsewhere || rank->shape.mirrored;
}

/* Elements of a parameter, piece by piece; experts whole. */
static void square_sum(struct rank *rank, struct device_stream *stream, const struct unit_state *u)
{
    const float *owned = gathered_gradients(rank, u, stream);
    for (int k = 0; k < u->unit->n_parameters; k++) {
        const struct parameter *p = &u->unit->parameters[k];
        if (u->unit->is_experts && p->pieces[0].counted)
            square_sum_of(rank, stream, u, owned, p->offset, p->rows * p->cols);
        for (int i = 0; i < p->n_pieces && !u->unit->is_experts; i++)
            if (p->pieces[i].counted)
                square_sum_of(rank, stream, u, owned, p->offset + p->pieces[i].local * p->cols, p->pieces[i].count * p->cols);
    }
}

/* Once per step, before the norm is exchanged or, where it is not, before the update. */
void update_finish_gradients(struct rank *rank, struct device_stream *stream)
{
    if (rank->gradients_finished)
        return;
    rank->gradients_finished = true;
    open_gathered_gradients(rank);
    if (rank->status != STATUS_OK)
        return;
    if (rank->shape.tp > 1)
        add_up_partials(rank, stream);
    struct kernel_call zero = {.kernel = KERNEL_ZERO, .zero = {rank->norm, sizeof *rank->norm}};
    rank_launch(rank, stream, &zero);
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++)
            if (!is_counted_elsewhere(rank, &rank->chunks[c].units.items[i]))
                square_sum(rank, stream, &rank->chunks[c].states[i]);
    rank_record(rank, rank->finished, stream);
}

static void add_up_norm(struct rank *rank, struct communicator *among, const char *what, struct device_stream *stream)
{
    update_finish_gradients(rank, stream);
    struct exchange_call call = {
        .exchange = EXCHANGE_ALL_REDUCE, .element = ELEMENT_FP32, .in = rank->norm, .out = rank->norm, .count = 1, .what = what};
    rank_exchange(rank, among, stream, &call);
}

void update_exchange_norm(struct rank *rank, const struct op *op, struct device_stream *stream)
{
    add_up_norm(rank, rank->groups[op->role], "gradient norm", stream);
}

void update_settle_norm(struct rank *rank, struct device_stream *stream)
{
    if (rank->side[GROUP_MODEL] && !rank->norm_settled)
        add_up_norm(rank, rank->side[GROUP_MODEL], "gradient norm of all stages", stream);
    rank->norm_settled = true;
}
