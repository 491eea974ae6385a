/* candidates.c - candidate values of each dimension. */
#include "model/plan/candidates.h"

#include <limits.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/order.h"

enum {
    TILE_TOKENS = 128,          /* rows of a fused attention kernel's tile (FlashAttention-2 and -3: 128) */
    LONG_SEQUENCE = 32768,      /* assumption: below, what attention exchanges is small beside what the rest computes */
    MICRO_BATCH_TOKENS = 65536, /* assumption: no kernel of a layer gains from more rows than this */
};

void int_list_add(struct int_list *list, int value)
{
    list->items = memory_grow(list->items, &list->capacity, list->n + 1, sizeof *list->items);
    list->items[list->n++] = value;
}

void int_list_free(struct int_list *list)
{
    free(list->items);
    *list = (struct int_list){0};
}

static void int_list_sort_unique(struct int_list *list)
{
    if (list->n == 0)
        return;
    qsort(list->items, list->n, sizeof *list->items, int_compare);
    size_t kept = 1;
    for (size_t i = 1; i < list->n; i++)
        if (list->items[i] != list->items[kept - 1])
            list->items[kept++] = list->items[i];
    list->n = kept;
}

static void add_if_within(struct int_list *out, int64_t value, int low, int high)
{
    if (value >= low && value <= high)
        int_list_add(out, (int)value);
}

/* Divisors of n within [low, high], in no order. */
static void add_divisors(struct int_list *out, int64_t n, int low, int high)
{
    for (int64_t d = 1; d * d <= n; d++)
        if (n % d == 0) {
            add_if_within(out, d, low, high);
            if (d != n / d)
                add_if_within(out, n / d, low, high);
        }
}

static void add_all(struct int_list *out, int low, int high)
{
    for (int64_t value = low; value <= high; value++)
        int_list_add(out, (int)value);
}

/* Numbers as they are, ranges as the divisors of n within them. */
static void add_limit_divisors(struct int_list *out, const struct space_limit *limit, int64_t n)
{
    for (int i = 0; i < limit->n; i++)
        if (limit->ranges[i].low == limit->ranges[i].high)
            int_list_add(out, limit->ranges[i].low);
        else
            add_divisors(out, n, limit->ranges[i].low, limit->ranges[i].high);
    int_list_sort_unique(out);
}

/* n / d where d divides n, otherwise 1: what is left to divide. */
static int64_t quotient(int64_t n, int64_t d)
{
    return d > 0 && n % d == 0 ? n / d : 1;
}

void candidates_tp(struct int_list *out, const struct space_limit *limit, int most, int gpus)
{
    if (limit->n == 0)
        add_divisors(out, gpus, 1, most);
    else
        add_limit_divisors(out, limit, gpus);
    int_list_sort_unique(out);
}

static int attention_tiles(int64_t seq_len)
{
    int64_t blocks = seq_len / (2 * TILE_TOKENS); /* two blocks per rank balance causal attention */
    return blocks < 1 ? 1 : blocks > INT_MAX ? INT_MAX : (int)blocks;
}

void candidates_cp(struct int_list *out, const struct space_limit *limit, int64_t seq_len, int gpus, int tp)
{
    int64_t left = quotient(gpus, tp);
    if (limit->n > 0) {
        add_limit_divisors(out, limit, left);
        return;
    }
    struct int_list divisors = {0};
    add_divisors(&divisors, left, 1, attention_tiles(seq_len));
    for (size_t i = 0; i < divisors.n; i++)
        if (divisors.items[i] == 1 || seq_len % (2 * (int64_t)divisors.items[i]) == 0)
            int_list_add(out, divisors.items[i]);
    int_list_free(&divisors);
    int_list_sort_unique(out);
}

static bool may_swap(const struct setting *setting, int tp, int cp, enum cp_comm comm)
{
    const struct layout layout = {.tp = tp, .cp = cp, .cp_comm = comm};
    return layout_head_exchange_legal(&layout, setting->model, NULL, 0);
}

/* All ranks, where they can, and where not all have NVLink between them as many neighbours as can and have. */
static void add_swaps(struct int_list *out, const struct setting *setting, int tp, int cp)
{
    for (int parts = cp; parts > 1; parts--) {
        enum cp_comm comm = cp_comm_settled(cp_comm_of(parts, false), cp);
        bool near = (int64_t)tp * parts <= setting->cluster->nvlink_domain;
        if ((!near && parts < cp) || cp % parts || !may_swap(setting, tp, cp, comm))
            continue;
        int_list_add(out, (int)comm);
        if (near)
            return;
    }
}

void candidates_cp_comm(struct int_list *out, const struct space_limit *limit, const struct setting *setting, int tp, int cp)
{
    for (int i = 0; cp > 1 && i < limit->n; i++)
        int_list_add(out, (int)cp_comm_settled((enum cp_comm)limit->ranges[i].low, cp));
    if (out->n == 0)
        int_list_add(out, (int)CP_RING);
    if (cp > 1 && limit->n == 0 && setting->job->seq_len >= LONG_SEQUENCE) {
        int_list_add(out, (int)CP_ALL_GATHER);
        add_swaps(out, setting, tp, cp);
    }
    int_list_sort_unique(out);
}

void candidates_pp(struct int_list *out, const struct space_limit *limit, int layers, int gpus, int64_t inner)
{
    int64_t left = quotient(gpus, inner);
    if (limit->n == 0) {
        add_divisors(out, left, 1, layers);
        if (left % (layers + 2) == 0) /* the embedding and the head on stages of their own */
            int_list_add(out, layers + 2);
    } else {
        add_limit_divisors(out, limit, left);
    }
    int_list_sort_unique(out);
}

/* Layers of the largest of n virtual stages. */
static int largest_chunk(const struct transformer *model, int64_t parts)
{
    return (int)((model->layers + model->mtp_layers + parts - 1) / parts);
}

/* Is pp * vpp worth a look? Where pp itself divides nothing no vpp gives even chunks; of those with the same largest chunk, which
 * sets the pace of all, the fewest have the fewest turns. */
static bool is_sensible(const struct transformer *model, int64_t pp, int64_t vpp)
{
    if (vpp == 1 || layers_divide(model, pp * vpp))
        return true;
    return !layers_divide(model, pp) && largest_chunk(model, pp * vpp) < largest_chunk(model, pp * (vpp - 1));
}

void candidates_vpp(struct int_list *out, const struct space_limit *limit, const struct transformer *model, int pp)
{
    if (pp == 1) {
        if (space_limit_allows(limit, 1))
            int_list_add(out, 1);
        return;
    }
    int layers = model->layers + model->mtp_layers, ends = model->layers + 2;
    int most = ends % pp == 0 && ends > layers ? ends / pp : layers > pp ? layers / pp : 1;
    if (limit->n > 0) {
        for (int i = 0; i < limit->n; i++)
            if (limit->ranges[i].low == limit->ranges[i].high)
                int_list_add(out, limit->ranges[i].low);
            else
                add_all(out, limit->ranges[i].low, limit->ranges[i].high < most ? limit->ranges[i].high : most);
        int_list_sort_unique(out);
        return;
    }
    for (int vpp = 1; vpp <= most; vpp++)
        if (is_sensible(model, pp, vpp))
            int_list_add(out, vpp);
}

void candidates_ep(struct int_list *out, const struct space_limit *limit, const struct transformer *model, int64_t ranks)
{
    if (model->moe.experts == 0) {
        int_list_add(out, 1);
        return;
    }
    int shared = int_common_divisor((int)ranks, model->moe.experts);
    if (limit->n == 0)
        add_divisors(out, shared, 1, INT_MAX);
    else
        add_limit_divisors(out, limit, shared);
    int_list_sort_unique(out);
}

void candidates_etp(struct int_list *out, const struct space_limit *limit, const struct transformer *model, int tp)
{
    if (limit->n == 0 || model->moe.experts == 0 || tp == 1)
        int_list_add(out, 0);
    else
        add_limit_divisors(out, limit, tp);
    int_list_sort_unique(out);
}

void candidates_shard(struct int_list *out, const struct space_limit *limit, int gpus, int replicas)
{
    if (limit->n == 0)
        int_list_add(out, 0);
    else
        add_limit_divisors(out, limit, gpus);
    for (size_t i = 0; i < out->n; i++)
        out->items[i] = out->items[i] == replicas ? 0 : out->items[i];
    int_list_sort_unique(out);
}

void candidates_micro_batch(struct int_list *out, const struct space_limit *limit, const struct job *job, int dp)
{
    int64_t share = quotient(job->global_batch, dp);
    if (limit->n > 0) {
        add_limit_divisors(out, limit, share);
        return;
    }
    int64_t most = MICRO_BATCH_TOKENS / job->seq_len;
    add_divisors(out, share, 1, most < 1 ? 1 : (int)most);
    int_list_sort_unique(out);
}
