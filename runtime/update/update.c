/* update.c - the end of the step: gradients that are still in parts, their norm, the optimizer. */
#include <string.h>

#include "runtime/update/update_muon.h"

/* --- gradients of which each tensor-parallel rank has a part
 *
 * All such parameters stand one after the other in a buffer by their place in the whole model, each rank puts in what it has
 * (owned elements), the rest is zero, and the sums come back. */

/* Rows of a parameter that stand there, as the model has them, and the first of those: of queries, keys and values only the last
 * two, as a query head belongs to one rank. */
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
        const struct stretch s = owned_stretch(u, p->offset + p->pieces[i].local * p->cols, p->pieces[i].count * p->cols);
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

/* What is owned of the elements [first, first + n) of a unit; `owned`: its gradients. */
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
static void finish_gradients(struct rank *rank, struct device_stream *stream)
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
    finish_gradients(rank, stream);
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

/* --- the update */

static struct clipping clipping_by(const struct rank *rank, const float *norm)
{
    return rank->clip > 0 ? (struct clipping){norm, rank->clip} : (struct clipping){0};
}

struct clipping update_clipping(const struct rank *rank)
{
    return clipping_by(rank, rank->norm);
}

/* What is updated at once: the elements of a unit whose states the device has, or those whose states the host has. */
struct update_part {
    int64_t n;
    float *p, *m, *v;
    const float *g;
    void *compute;
    struct clipping clip;
};

static struct update_part part_of_device(const struct rank *rank, const struct unit_state *u)
{
    void *weights = unit_kept_weights(rank, u);
    return (struct update_part){.n = u->owned - u->host.n,
                                .p = u->master,
                                .m = u->m,
                                .v = u->v,
                                .g = u->owned_gradients + (rank_gradients_leave(rank) ? 0 : u->host.n),
                                .compute = (void *)u->master == weights ? NULL : weights,
                                .clip = clipping_by(rank, rank->norm)};
}

static struct update_part part_of_host(const struct rank *rank, const struct unit_state *u)
{
    const struct host_share *host = &u->host;
    return (struct update_part){.n = host->n,
                                .p = host->master,
                                .m = host->m,
                                .v = host->v,
                                .g = host->gradients,
                                .compute = (void *)host->master == host->weights ? NULL : host->weights,
                                .clip = clipping_by(rank, rank->host_norm)};
}

static struct kernel_call adam_call(const struct rank *rank, const struct update_part *part)
{
    return (struct kernel_call){.kernel = KERNEL_ADAM,
                                .adam = {.n = part->n,
                                         .p = part->p,
                                         .m = part->m,
                                         .v = part->v,
                                         .g = part->g,
                                         .compute = part->compute,
                                         .rate = rank->rate,
                                         .beta1 = OPTIMIZER_BETA1,
                                         .beta2 = OPTIMIZER_BETA2,
                                         .epsilon = OPTIMIZER_EPSILON,
                                         .gradient_scale = 1,
                                         .clip = part->clip,
                                         .step = rank->step + 1}};
}

static struct kernel_call sgd_call(const struct rank *rank, const struct update_part *part)
{
    return (struct kernel_call){.kernel = KERNEL_SGD,
                                .sgd = {.n = part->n,
                                        .p = part->p,
                                        .m = part->m,
                                        .g = part->g,
                                        .compute = part->compute,
                                        .rate = rank->rate,
                                        .momentum = OPTIMIZER_BETA1,
                                        .clip = part->clip}};
}

struct stretch owned_stretch(const struct unit_state *u, int64_t first, int64_t n)
{
    int64_t begin = first > u->first ? first : u->first;
    int64_t end = first + n < u->first + u->owned ? first + n : u->first + u->owned;
    return (struct stretch){begin - u->first, end > begin ? end - begin : 0};
}

void update_adam(struct rank *rank, const struct unit_state *u, struct stretch s, int64_t second_moment,
                 struct device_stream *stream)
{
    struct update_part part = part_of_device(rank, u);
    part.n = s.n;
    part.p += s.first, part.m += s.first, part.g += s.first, part.v += second_moment;
    if (part.compute)
        part.compute = (char *)part.compute + (size_t)s.first * device_element_bytes(rank->device);
    struct kernel_call call = adam_call(rank, &part);
    rank_launch(rank, stream, &call);
}

static struct kernel_call update_call(const struct rank *rank, struct update_part part)
{
    return rank->setting->job->optimizer == OPTIMIZER_SGD ? sgd_call(rank, &part) : adam_call(rank, &part);
}

/* --- LAMB
 *
 * The length of a step is measured against that of the tensor it belongs to: a parameter of the whole model, or one expert's.
 * What a rank has of a tensor are stretches of the unit, one per piece and expert. Every rank adds what it has to the tensors'
 * two numbers; the sums over the ranks among which a tensor is divided come back. Experts are divided otherwise than the rest, so
 * their numbers stand behind the others'. */

struct lamb {
    struct rank *rank;
    struct device_stream *stream;
    bool apply, on_host;
    int64_t tensor, element; /* next of each */
};

/* A stretch that other ranks of the tensor-parallel group have too adds nothing to the sums over that group: its lengths go to
 * the place behind all tensors. */
static void lamb_stretch(struct lamb *b, const struct unit_state *u, struct stretch s, float *norms)
{
    struct rank *rank = b->rank;
    const struct update_part part = b->on_host ? part_of_host(rank, u) : part_of_device(rank, u);
    struct kernel_call call = {
        .kernel = b->apply ? KERNEL_LAMB_APPLY : KERNEL_LAMB_UPDATE,
        .lamb_part = {.n = s.n,
                      .p = part.p + s.first,
                      .m = part.m + s.first,
                      .v = part.v + s.first,
                      .g = part.g + s.first,
                      .update = rank->update + b->element,
                      .norms = norms,
                      .compute =
                          part.compute ? (char *)part.compute + (size_t)s.first * device_element_bytes(rank->device) : NULL,
                      .rate = rank->rate,
                      .beta1 = OPTIMIZER_BETA1,
                      .beta2 = OPTIMIZER_BETA2,
                      .epsilon = OPTIMIZER_EPSILON,
                      .clip = part.clip,
                      .step = rank->step + 1}};
    b->element += s.n;
    if (!s.n)
        return;
    if (!b->on_host)
        rank_launch(rank, b->stream, &call);
    else if (rank->status == STATUS_OK)
        rank->status = rank->device->api->launch_host(b->stream, &call, &rank->diags);
}

static void lamb_parameter(struct lamb *b, const struct unit_state *u, const struct parameter *p)
{
    int64_t blocks = p->rows / p->block;
    for (int64_t k = 0; k < blocks; k++, b->tensor++)
        for (int i = 0; i < p->n_pieces; i++) {
            int64_t first = p->offset + (k * p->block + p->pieces[i].local) * p->cols;
            bool measured = b->apply || p->pieces[i].counted;
            float *norms = b->rank->norms + 2 * (measured ? b->tensor : b->rank->n_norms);
            lamb_stretch(b, u, owned_stretch(u, first, p->pieces[i].count * p->cols), norms);
        }
}

static void lamb_unit(struct lamb *b, const struct unit_state *u)
{
    for (int k = 0; k < u->unit->n_parameters; k++)
        lamb_parameter(b, u, &u->unit->parameters[k]);
}

static void lamb_units(struct lamb *b, bool experts)
{
    for (int c = 0; c < b->rank->layout->vpp; c++)
        for (int i = 0; i < b->rank->chunks[c].units.n_items; i++)
            if (b->rank->chunks[c].units.items[i].is_experts == experts)
                lamb_unit(b, &b->rank->chunks[c].states[i]);
}

static void add_norms(struct rank *rank, struct device_stream *stream, enum group_kind group, int64_t first, int64_t n)
{
    struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE,
                                 .element = ELEMENT_FP32,
                                 .in = rank->norms + 2 * first,
                                 .out = rank->norms + 2 * first,
                                 .count = 2 * n,
                                 .what = "lengths of tensors"};
    if (n)
        rank_exchange(rank, rank->side[group], stream, &call);
}

/* The sums over the ranks among which tensors are divided. */
static void add_all_norms(struct rank *rank, struct device_stream *stream, bool experts, int64_t first, int64_t n)
{
    if (!experts || rank->shape.moe.tp > 1)
        add_norms(rank, stream, GROUP_TP, first, n);
    if (rank->layout->zero)
        add_norms(rank, stream, experts ? GROUP_EXPERT_DP : GROUP_DP, first, n);
}

static int64_t tensors_of(const struct unit *unit)
{
    int64_t n = 0;
    for (int k = 0; k < unit->n_parameters; k++)
        n += unit->parameters[k].rows / unit->parameters[k].block;
    return n;
}

/* Of one kind, before a unit; NULL: all. */
static int64_t count_tensors(const struct rank *rank, bool experts, const struct unit *before)
{
    int64_t n = 0;
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++) {
            const struct unit *unit = &rank->chunks[c].units.items[i];
            if (unit == before)
                return n;
            n += unit->is_experts == experts ? tensors_of(unit) : 0;
        }
    return n;
}

/* Updates of all that the device updates at once, or of one unit at a time by the host. */
static void lamb_memory(struct rank *rank, bool on_host)
{
    if (rank->update)
        return;
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++) {
            int64_t owned = rank->chunks[c].states[i].owned, least = on_host && rank->n_update > owned ? rank->n_update : owned;
            rank->n_update = on_host ? least : rank->n_update + owned;
        }
    rank->n_norms = count_tensors(rank, false, NULL) + count_tensors(rank, true, NULL);
    size_t bytes = (size_t)rank->n_update * sizeof(float);
    rank->update = on_host ? rank_host_memory(rank, bytes) : rank_memory(rank, bytes);
    rank->norms = rank_memory(rank, 2 * (size_t)(rank->n_norms + 1) * sizeof(float));
}

static void zero_norms(struct rank *rank, struct device_stream *stream, int64_t first, int64_t n)
{
    struct kernel_call zero = {.kernel = KERNEL_ZERO, .zero = {rank->norms + 2 * first, 2 * (size_t)n * sizeof(float)}};
    rank_launch(rank, stream, &zero);
}

static void update_lamb(struct rank *rank, struct device_stream *stream)
{
    lamb_memory(rank, false);
    if (rank->status != STATUS_OK)
        return;
    int64_t dense = count_tensors(rank, false, NULL);
    zero_norms(rank, stream, 0, rank->n_norms + 1);
    for (int apply = 0; apply < 2; apply++) {
        struct lamb b = {.rank = rank, .stream = stream, .apply = apply};
        lamb_units(&b, false);
        lamb_units(&b, true);
        if (apply)
            break;
        add_all_norms(rank, stream, false, 0, dense);
        add_all_norms(rank, stream, true, dense, rank->n_norms - dense);
    }
}

/* A tensor is in one unit, so what its parts need of one another is known when the unit has been gone through once. */
static void update_lamb_on_host(struct rank *rank, const struct unit_state *u, struct device_stream *stream)
{
    const bool experts = u->unit->is_experts;
    lamb_memory(rank, true);
    if (rank->status != STATUS_OK)
        return;
    int64_t first = count_tensors(rank, experts, u->unit) + (experts ? count_tensors(rank, false, NULL) : 0);
    zero_norms(rank, stream, first, tensors_of(u->unit));
    for (int apply = 0; apply < 2; apply++) {
        struct lamb b = {.rank = rank, .stream = stream, .apply = apply, .on_host = true, .tensor = first};
        lamb_unit(&b, u);
        if (!apply)
            add_all_norms(rank, stream, experts, first, tensors_of(u->unit));
    }
}

/* Which part of Muon's step an operation is, by the name of its work. */
static enum muon_part muon_part_of(const struct work *work)
{
    return strcmp(work->label, "muon") == 0 ? MUON_PRODUCTS : strcmp(work->label, "muon_apply") == 0 ? MUON_APPLY : MUON_UPDATE;
}

static void update_each(struct rank *rank, struct device_stream *stream)
{
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++) {
            struct kernel_call call = update_call(rank, part_of_device(rank, &rank->chunks[c].states[i]));
            rank_launch(rank, stream, &call);
        }
}

static void update_weights(struct rank *rank, const struct work *work, struct device_stream *stream)
{
    enum optimizer optimizer = rank->setting->job->optimizer;
    finish_gradients(rank, stream);
    if (optimizer == OPTIMIZER_MUON)
        muon_compute(rank, muon_part_of(work), stream);
    else if (optimizer == OPTIMIZER_LAMB)
        update_lamb(rank, stream);
    else
        update_each(rank, stream);
}

static void update_on_host(struct rank *rank, const struct op *op, struct unit_state *u, struct device_stream *stream)
{
    (void)op;
    if (rank->setting->job->optimizer == OPTIMIZER_LAMB) {
        update_lamb_on_host(rank, u, stream);
        return;
    }
    struct kernel_call call = update_call(rank, part_of_host(rank, u));
    if (rank->status == STATUS_OK && u->host.n)
        rank->status = rank->device->api->launch_host(stream, &call, &rank->diags);
}

/* Casts are made by the first pass that reads them (casts.h). */
void update_enqueue(struct rank *rank, const struct op *op, struct device_stream *stream)
{
    const struct work *work = &rank->program->works.items[op->work];
    if (work->kind == WORK_HOST_UPDATE) {
        shards_visit(rank, op, update_on_host, stream);
    } else if (strcmp(work->label, WORK_NORM_LABEL) == 0) {
        finish_gradients(rank, stream);
        rank_copy(rank, stream, rank->host_norm, rank->norm, sizeof *rank->norm);
    } else if (strcmp(work->label, WORK_CAST_LABEL) != 0) {
        update_weights(rank, work, stream);
    }
}

void update_close(struct rank *rank)
{
    muon_close(rank);
    const struct device_api *api = rank->device->api;
    void (*release)(struct device * device, void *memory, size_t bytes) =
        layout_offloads(rank->layout, OFFLOAD_OPTIMIZER) ? api->host_free : api->memory_free;
    release(rank->device, rank->update, (size_t)rank->n_update * sizeof(float));
    api->memory_free(rank->device, rank->norms, 2 * (size_t)(rank->n_norms + 1) * sizeof(float));
    api->memory_free(rank->device, rank->partial, (size_t)rank->n_partial * sizeof *rank->partial);
    api->memory_free(rank->device, rank->gathered_gradients, (size_t)rank->n_gathered_gradients * sizeof(float));
}
