/* update_muon.c - Muon's step (model/cost/work/muon.h explains it and the division of work).
 *
 * There are three computations with two exchanges between them, each an operation of the program. First, each rank updates its
 * momenta and writes its updates directly to the send buffer. Owners assemble matrices, orthogonalise them, and write the
 * results into the buffer they received. The same exchange sends that buffer back, so every part returns to where it came from.
 * If no other rank has parts, the send buffer is also the receive buffer.
 *
 * All ranks of a group and of the tensor-parallel group have its matrices in the same order, the largest first, and deal them to
 * owners in turn. Each rank's slice of a unit has a range of some of its matrices. */
#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/cost/work/muon.h"
#include "runtime/update/update_muon.h"

enum division { WHOLE, BY_ROWS, BY_COLUMNS };

struct matrix {
    struct unit_state *unit;
    int64_t first;      /* element of the unit */
    int64_t rows, cols; /* on this rank */
    int64_t model_rows, model_cols;
    int tp, sharers; /* ranks that divide it; of these those with the same rows */
    enum division division;
    int index, owner;
};

/* The elements to, or from, each rank follow one another; each rank's begin at a multiple of GRAIN. */
enum { GRAIN = 8 }; /* 16 bytes of bf16 */
struct parts {
    int64_t *first; /* [ranks + 1] element */
    int32_t *rows;  /* device, [ranks] of GRAIN elements */
    void *data;     /* device precision */
};

/* The matrices that one group divides: of dense weights or of experts. */
struct dealing {
    struct matrix *items;
    size_t n, capacity;
    int ranks, me;
    struct parts out, in; /* to owners, to this one; the same where ranks is 1 */
    bool returns;         /* the next exchange is the way back */
};

struct muon {
    struct dealing dealings[2];    /* dense, experts */
    int64_t elements, parts, gram; /* of the largest matrix, gathered parts, Gram matrix */
    void *x, *y, *gathered, *a, *aa;
    float *wide, *square;
};

/* --- which matrices there are */

static enum division division_of(enum parameter_kind kind)
{
    switch (kind) {
    case PARAMETER_PROJECTION:
    case PARAMETER_DOWN:
    case PARAMETER_SHARED_DOWN:
    case PARAMETER_EXPERT_DOWN: return BY_COLUMNS;
    case PARAMETER_Q_DOWN:
    case PARAMETER_KV_DOWN:
    case PARAMETER_ROUTER: return WHOLE;
    default: return BY_ROWS;
    }
}

bool muon_has(enum parameter_kind kind)
{
    switch (kind) {
    case PARAMETER_QKV:
    case PARAMETER_Q_UP:
    case PARAMETER_KV_UP:
    case PARAMETER_UP:
    case PARAMETER_SHARED_UP:
    case PARAMETER_EXPERT_UP:
    case PARAMETER_PREDICTION_PROJECTION: return true;
    default: return division_of(kind) != BY_ROWS;
    }
}

int64_t muon_adam_elements(const struct unit_state *u)
{
    int64_t n = 0;
    for (int k = 0; k < u->unit->n_parameters; k++) {
        const struct parameter *p = &u->unit->parameters[k];
        if (!muon_has(p->kind))
            n += owned_range(u, p->offset, p->rows * p->cols).n;
    }
    return n;
}

/* Piece i of expert (or the only) block k of a parameter. */
static struct matrix matrix_of(const struct rank *rank, struct unit_state *u, const struct parameter *p, int64_t k, int i)
{
    const struct shape *s = &rank->shape;
    struct matrix m = {.unit = u, .rows = p->pieces[i].count, .cols = p->cols, .sharers = 1, .division = division_of(p->kind)};
    m.first = p->offset + (k * p->block + p->pieces[i].local) * p->cols;
    m.tp = m.division == WHOLE ? 1 : u->unit->is_experts ? s->moe.tp : s->tp;
    if (p->kind == PARAMETER_QKV && i > 0 && s->model_kv_heads < s->tp)
        m.sharers = s->tp / s->model_kv_heads;
    m.model_rows = m.division == BY_ROWS ? m.rows * m.tp / m.sharers : m.rows;
    m.model_cols = m.division == BY_COLUMNS ? m.cols * m.tp : m.cols;
    return m;
}

static void add_unit(struct rank *rank, struct dealing *d, struct unit_state *u)
{
    for (int k = 0; k < u->unit->n_parameters; k++) {
        const struct parameter *p = &u->unit->parameters[k];
        for (int64_t b = 0; muon_has(p->kind) && b < p->rows / p->block; b++)
            for (int i = 0; i < p->n_pieces; i++) {
                d->items = memory_grow(d->items, &d->capacity, d->n + 1, sizeof *d->items);
                d->items[d->n] = matrix_of(rank, u, p, b, i);
                d->items[d->n].index = (int)d->n;
                d->n++;
            }
    }
    if (rank->layout->zero)
        d->ranks = u->unit->copies.n, d->me = u->unit->copies.index;
}

static int by_size(const void *a, const void *b)
{
    const struct matrix *x = a, *y = b;
    int64_t x_size = x->rows * x->cols, y_size = y->rows * y->cols;
    return x_size != y_size ? (x_size < y_size) - (x_size > y_size) : (x->index > y->index) - (x->index < y->index);
}

/* Elements of a matrix in a rank's slice of its unit, counted from the matrix's first. */
static struct element_range range_of(const struct dealing *d, const struct matrix *m, int rank)
{
    const struct unit *unit = m->unit->unit;
    int64_t first = d->ranks > 1 ? rank * unit->slice : 0, end = d->ranks > 1 ? first + unit->slice : unit->elements;
    int64_t begin = m->first > first ? m->first : first, last = m->first + m->rows * m->cols;
    last = last < end ? last : end;
    return (struct element_range){begin - m->first, last > begin ? last - begin : 0};
}

/* Elements become places. */
static void line_up(int64_t *first, int ranks)
{
    int64_t at = 0;
    for (int r = 0; r <= ranks; r++) {
        int64_t n = r < ranks ? (first[r] + GRAIN - 1) / GRAIN * GRAIN : 0;
        first[r] = at;
        at += n;
    }
}

static void deal(struct dealing *d)
{
    if (d->n) /* a unit of no matrices has no list of them */
        qsort(d->items, d->n, sizeof *d->items, by_size);
    d->out.first = memory_new((size_t)d->ranks + 1, sizeof *d->out.first);
    d->in.first = memory_new((size_t)d->ranks + 1, sizeof *d->in.first);
    for (size_t i = 0; i < d->n; i++) {
        struct matrix *m = &d->items[i];
        m->owner = (int)(i % (size_t)d->ranks);
        d->out.first[m->owner] += range_of(d, m, d->me).n;
        for (int r = 0; r < d->ranks && m->owner == d->me; r++)
            d->in.first[r] += range_of(d, m, r).n;
    }
    line_up(d->out.first, d->ranks);
    line_up(d->in.first, d->ranks);
}

static bool is_gathered(const struct rank *rank, const struct matrix *m)
{
    return m->tp > m->sharers && rank->setting->job->muon_tp == MUON_DUPLICATED;
}

/* --- memory */

static size_t bytes_of(const struct rank *rank, int64_t elements)
{
    return (size_t)elements * device_element_bytes(rank->device);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void measure(const struct rank *rank, struct muon *muon, const struct matrix *m)
{
    bool gathered = is_gathered(rank, m);
    int64_t rows = gathered ? m->model_rows : m->rows, cols = gathered ? m->model_cols : m->cols;
    int64_t least = rows < cols ? rows : cols;
    muon->elements = larger(muon->elements, rows * cols);
    muon->gram = larger(muon->gram, least * least);
    if (gathered)
        muon->parts = larger(muon->parts, m->rows * m->cols * m->tp);
}

static void open_parts(struct rank *rank, struct parts *parts, int ranks)
{
    int32_t *rows = memory_new((size_t)ranks, sizeof *rows);
    for (int r = 0; r < ranks; r++)
        rows[r] = (int32_t)((parts->first[r + 1] - parts->first[r]) / GRAIN);
    parts->data = rank_memory(rank, bytes_of(rank, parts->first[ranks]));
    parts->rows = rank_memory(rank, (size_t)ranks * sizeof *rows);
    rank_upload(rank, parts->rows, rows, (size_t)ranks * sizeof *rows);
    free(rows);
}

static void close_parts(struct rank *rank, struct parts *parts, int ranks)
{
    const struct device_api *api = rank->device->api;
    api->memory_free(rank->device, parts->data, bytes_of(rank, parts->first[ranks]));
    api->memory_free(rank->device, parts->rows, (size_t)ranks * sizeof *parts->rows);
}

static void allocate(struct rank *rank, struct muon *muon)
{
    for (int k = 0; k < 2; k++) {
        struct dealing *d = &muon->dealings[k];
        for (size_t i = 0; i < d->n; i++)
            if (d->items[i].owner == d->me)
                measure(rank, muon, &d->items[i]);
        open_parts(rank, &d->out, d->ranks);
        if (d->ranks > 1)
            open_parts(rank, &d->in, d->ranks);
    }
    muon->x = rank_memory(rank, bytes_of(rank, muon->elements));
    muon->y = rank_memory(rank, bytes_of(rank, muon->elements));
    muon->gathered = rank_memory(rank, bytes_of(rank, muon->parts));
    muon->a = rank_memory(rank, bytes_of(rank, muon->gram));
    muon->aa = rank_memory(rank, bytes_of(rank, muon->gram));
    muon->wide = rank_memory(rank, (size_t)muon->elements * sizeof(float));
    muon->square = rank_memory(rank, sizeof(float));
}

static void open(struct rank *rank)
{
    struct muon *muon = rank->muon = memory_new(1, sizeof *muon);
    for (int k = 0; k < 2; k++)
        muon->dealings[k].ranks = 1;
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++) {
            struct unit_state *u = &rank->chunks[c].states[i];
            add_unit(rank, &muon->dealings[u->unit->is_experts], u);
        }
    for (int k = 0; k < 2; k++)
        deal(&muon->dealings[k]);
    allocate(rank, muon);
}

void muon_close(struct rank *rank)
{
    const struct device_api *api = rank->device->api;
    struct muon *muon = rank->muon;
    if (!muon)
        return;
    for (int k = 0; k < 2; k++) {
        struct dealing *d = &muon->dealings[k];
        if (d->ranks > 1)
            close_parts(rank, &d->in, d->ranks);
        close_parts(rank, &d->out, d->ranks);
        free(d->out.first);
        free(d->in.first);
        free(d->items);
    }
    api->memory_free(rank->device, muon->x, bytes_of(rank, muon->elements));
    api->memory_free(rank->device, muon->y, bytes_of(rank, muon->elements));
    api->memory_free(rank->device, muon->gathered, bytes_of(rank, muon->parts));
    api->memory_free(rank->device, muon->a, bytes_of(rank, muon->gram));
    api->memory_free(rank->device, muon->aa, bytes_of(rank, muon->gram));
    api->memory_free(rank->device, muon->wide, (size_t)muon->elements * sizeof(float));
    api->memory_free(rank->device, muon->square, sizeof(float));
    free(muon);
    rank->muon = NULL;
}

/* --- parts */

static void *element_at(const struct rank *rank, const void *base, int64_t i)
{
    return (char *)base + bytes_of(rank, i);
}

static void copy(struct rank *rank, struct device_stream *stream, void *to, const void *from, int64_t n)
{
    struct kernel_call call = {.kernel = KERNEL_COPY, .copy = {to, from, bytes_of(rank, n)}};
    if (n)
        rank_launch(rank, stream, &call);
}

struct enqueueing {
    struct rank *rank;
    struct device_stream *stream;
};

/* Updates of this rank's range of a matrix, or the weights by what came back. */
static void update_range(const struct enqueueing *at, const struct matrix *m, struct element_range s, void *update, bool apply)
{
    struct rank *rank = at->rank;
    const struct unit_state *u = m->unit;
    int64_t own = m->first + s.first - u->first;
    double scale = MUON_SCALE * sqrt((double)larger(m->model_rows, m->model_cols));
    void *compute = (void *)u->master == u->shard ? NULL : element_at(rank, u->shard, own);
    struct kernel_call call = {.kernel = apply ? KERNEL_MUON_APPLY : KERNEL_MUON_UPDATE,
                               .muon = {.n = s.n,
                                        .m = u->m + own,
                                        .g = u->owned_gradients + own,
                                        .update = update,
                                        .p = u->master + own,
                                        .compute = compute,
                                        .momentum = (float)MUON_MOMENTUM,
                                        .rate = (float)(rank->rate * scale),
                                        .clip = update_clipping(rank)}};
    rank_launch(rank, at->stream, &call);
}

static void update_own(const struct enqueueing *at, const struct dealing *d, bool apply)
{
    int64_t *sent = memory_new((size_t)d->ranks, sizeof *sent);
    for (size_t i = 0; i < d->n; i++) {
        const struct matrix *m = &d->items[i];
        struct element_range s = range_of(d, m, d->me);
        if (s.n)
            update_range(at, m, s, element_at(at->rank, d->out.data, d->out.first[m->owner] + sent[m->owner]), apply);
        sent[m->owner] += s.n;
    }
    free(sent);
}

/* --- Newton-Schulz */

static void product(const struct enqueueing *at, enum kernel kernel, struct linear_call linear)
{
    struct kernel_call call = {.kernel = kernel, .linear = linear};
    rank_launch(at->rank, at->stream, &call);
}

static void combine(const struct enqueueing *at, struct muon_call muon)
{
    struct kernel_call call = {.kernel = KERNEL_MUON_COMBINE, .muon = muon};
    rank_launch(at->rank, at->stream, &call);
}

/* x / |x|: of rounding that products read, so the norm is taken of that. */
static void normalise(const struct enqueueing *at, const struct muon *muon, int64_t n)
{
    struct kernel_call zero = {.kernel = KERNEL_ZERO, .zero = {muon->square, sizeof *muon->square}};
    struct kernel_call cast = {.kernel = KERNEL_CAST, .cast = {.n = n, .from = muon->x, .to = muon->wide, .widen = true}};
    struct kernel_call squares = {.kernel = KERNEL_SQUARE_SUM, .square_sum = {n, muon->wide, muon->square}};
    rank_launch(at->rank, at->stream, &zero);
    rank_launch(at->rank, at->stream, &cast);
    rank_launch(at->rank, at->stream, &squares);
    combine(at, (struct muon_call){.n = n, .x = muon->x, .square = muon->square, .y = muon->x, .alpha = 1});
}

/* a = x x^T, or x^T x where x [rows, cols] has more rows: that comes in fp32. */
static void gram(const struct enqueueing *at, const struct muon *muon, int64_t rows, int64_t cols)
{
    if (rows <= cols) {
        product(at, KERNEL_LINEAR_FORWARD,
                (struct linear_call){.t = rows, .in = cols, .out = rows, .x = muon->x, .w = muon->x, .y = muon->a});
        return;
    }
    product(at, KERNEL_LINEAR_BACKWARD_WEIGHT,
            (struct linear_call){
                .t = rows, .in = cols, .out = cols, .x = muon->x, .dy = muon->x, .dw = muon->wide, .overwrite = true});
    struct kernel_call cast = {.kernel = KERNEL_CAST, .cast = {.n = cols * cols, .from = muon->wide, .to = muon->a}};
    rank_launch(at->rank, at->stream, &cast);
}

/* y = a x, or x a; a is symmetric. */
static void multiply(const struct enqueueing *at, const struct muon *muon, int64_t rows, int64_t cols)
{
    if (rows <= cols)
        product(at, KERNEL_LINEAR_BACKWARD_INPUT,
                (struct linear_call){.t = rows, .in = cols, .out = rows, .dy = muon->a, .w = muon->x, .dx = muon->y});
    else
        product(at, KERNEL_LINEAR_FORWARD,
                (struct linear_call){.t = rows, .in = cols, .out = cols, .x = muon->x, .w = muon->a, .y = muon->y});
}

/* x [rows, cols] in place. */
static void newton_schulz(const struct enqueueing *at, const struct muon *muon, int64_t rows, int64_t cols)
{
    int64_t n = rows * cols, least = rows < cols ? rows : cols;
    normalise(at, muon, n);
    for (int i = 0; i < MUON_ITERATIONS; i++) {
        gram(at, muon, rows, cols);
        product(at, KERNEL_LINEAR_FORWARD,
                (struct linear_call){.t = least, .in = least, .out = least, .x = muon->a, .w = muon->a, .y = muon->aa});
        combine(
            at,
            (struct muon_call){
                .n = least * least, .x = muon->a, .z = muon->aa, .y = muon->a, .alpha = (float)MUON_B, .beta = (float)MUON_C});
        multiply(at, muon, rows, cols);
        combine(at, (struct muon_call){.n = n, .x = muon->x, .z = muon->y, .y = muon->x, .alpha = (float)MUON_A, .beta = 1});
    }
}

/* --- owners */

/* A rank's columns of x, to y or back from there. */
static void move_columns(const struct enqueueing *at, const struct matrix *m, int tp_rank, const void *from, void *to, bool out)
{
    int64_t first = tp_rank * m->cols, wide = m->cols * m->tp;
    struct kernel_call call = {.kernel = KERNEL_ROWS,
                               .rows = {.n = m->rows,
                                        .width = m->cols,
                                        .from_row = out ? wide : m->cols,
                                        .to_row = out ? m->cols : wide,
                                        .from = out ? element_at(at->rank, from, first) : from,
                                        .to = out ? to : element_at(at->rank, to, first)}};
    rank_launch(at->rank, at->stream, &call);
}

/* y is this rank's block: x becomes the whole, of the blocks of all. */
static void gather_blocks(const struct enqueueing *at, const struct muon *muon, const struct matrix *m)
{
    int64_t n = m->rows * m->cols;
    struct exchange_call call = {.exchange = EXCHANGE_ALL_GATHER,
                                 .element = rank_element(at->rank),
                                 .in = muon->y,
                                 .out = muon->gathered,
                                 .count = n,
                                 .what = "blocks of updates"};
    rank_exchange(at->rank, at->rank->side[GROUP_TP], at->stream, &call);
    for (int j = 0; j < m->tp; j += m->sharers) {
        const void *block = element_at(at->rank, muon->gathered, j * n);
        if (m->division == BY_COLUMNS)
            move_columns(at, m, j, block, muon->x, false);
        else
            copy(at->rank, at->stream, element_at(at->rank, muon->x, j / m->sharers * n), block, n);
    }
}

/* This rank's block of x; in y where it has to be put together. */
static void *own_block(const struct enqueueing *at, const struct muon *muon, const struct matrix *m)
{
    int tp_rank = at->rank->shape.tp_rank;
    if (m->division == BY_ROWS)
        return element_at(at->rank, muon->x, tp_rank / m->sharers * m->rows * m->cols);
    move_columns(at, m, tp_rank, muon->x, muon->y, true);
    return muon->y;
}

/* Ranges of a matrix among what was received, to or from it in one piece. */
static void move_ranges(const struct enqueueing *at, const struct dealing *d, const struct matrix *m, int64_t *received,
                        void *matrix, bool back)
{
    const struct parts *in = d->ranks > 1 ? &d->in : &d->out;
    for (int r = 0; r < d->ranks; r++) {
        struct element_range s = range_of(d, m, r);
        void *part = element_at(at->rank, in->data, in->first[r] + received[r]), *place = element_at(at->rank, matrix, s.first);
        copy(at->rank, at->stream, back ? part : place, back ? place : part, s.n);
        if (back)
            received[r] += s.n;
    }
}

static void make_orthogonal(const struct enqueueing *at, const struct dealing *d)
{
    const struct muon *muon = at->rank->muon;
    int64_t *received = memory_new((size_t)d->ranks, sizeof *received);
    for (size_t i = 0; i < d->n && at->rank->status == STATUS_OK; i++) {
        const struct matrix *m = &d->items[i];
        bool gathered = is_gathered(at->rank, m);
        if (m->owner != d->me)
            continue;
        move_ranges(at, d, m, received, gathered ? muon->y : muon->x, false);
        if (gathered)
            gather_blocks(at, muon, m);
        newton_schulz(at, muon, gathered ? m->model_rows : m->rows, gathered ? m->model_cols : m->cols);
        move_ranges(at, d, m, received, gathered ? own_block(at, muon, m) : muon->x, true);
    }
    free(received);
}

void muon_exchange(struct rank *rank, const struct op *op, struct device_stream *stream)
{
    if (rank->status != STATUS_OK)
        return;
    struct dealing *d = &rank->muon->dealings[op->role == GROUP_EXPERT_DP];
    const struct parts *from = d->returns ? &d->in : &d->out, *to = d->returns ? &d->out : &d->in;
    int64_t sent = from->first[d->ranks], received = to->first[d->ranks];
    struct exchange_call call = {
        .exchange = EXCHANGE_ALL_TO_ALL,
        .element = rank_element(rank),
        .in = from->data,
        .out = to->data,
        .count = GRAIN,
        .parts = {.sent = from->rows, .received = to->rows, .even = (sent < received ? sent : received) / GRAIN},
        .what = "updates of matrices"};
    rank_exchange(rank, rank->groups[op->role], stream, &call);
    d->returns = !d->returns;
}

/* --- the three computations */

static void update_adam_rest(struct rank *rank, struct device_stream *stream)
{
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++) {
            struct unit_state *u = &rank->chunks[c].states[i];
            int64_t second_moment = 0;
            for (int k = 0; k < u->unit->n_parameters; k++) {
                const struct parameter *p = &u->unit->parameters[k];
                struct element_range s = owned_range(u, p->offset, p->rows * p->cols);
                if (muon_has(p->kind) || !s.n)
                    continue;
                update_adam(rank, u, s, second_moment, stream);
                second_moment += s.n;
            }
        }
}

void muon_compute(struct rank *rank, enum muon_part part, struct device_stream *stream)
{
    if (!rank->muon)
        open(rank);
    if (rank->status != STATUS_OK)
        return;
    struct enqueueing at = {rank, stream};
    if (part == MUON_UPDATE)
        update_adam_rest(rank, stream);
    for (int k = 0; k < 2; k++) {
        struct dealing *d = &rank->muon->dealings[k];
        if (part == MUON_PRODUCTS)
            make_orthogonal(&at, d);
        else
            update_own(&at, d, part == MUON_APPLY);
        if (part == MUON_UPDATE)
            d->returns = false;
    }
}
