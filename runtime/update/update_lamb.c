/* update_lamb.c - LAMB (You and others, arXiv:1904.00962): the length of each step is that of its tensor times the learning
 * rate.
 *
 * The tensor is a parameter of the whole model, or one expert's. A rank has ranges of a tensor, one per piece and expert. Every
 * rank adds the squares of its part to the tensor's two numbers (|p|^2, |u|^2), and these are summed over the ranks that divide
 * the tensor. Experts are divided among other ranks than the rest, so their numbers follow those of the others. */
#include "runtime/update/update_internal.h"

struct lamb {
    struct rank *rank;
    struct device_stream *stream;
    bool apply, on_host;
    int64_t tensor, element; /* next of each */
};

/* A range that other ranks of the tensor-parallel group have too adds nothing to the sums over that group: its lengths go to
 * the place behind all tensors. */
static void lamb_range(struct lamb *b, const struct unit_state *u, struct element_range s, float *norms)
{
    struct rank *rank = b->rank;
    const struct update_part part = b->on_host ? update_part_of_host(rank, u) : update_part_of_device(rank, u);
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
            lamb_range(b, u, owned_range(u, first, p->pieces[i].count * p->cols), norms);
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

void update_lamb(struct rank *rank, struct device_stream *stream)
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
void update_lamb_on_host(struct rank *rank, const struct unit_state *u, struct device_stream *stream)
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
