#include "sim/network/collective_flows.h"

#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/order.h"
#include "model/base/random.h"

enum { PURPOSE_PARTNERS = 0x7061 };

/* ---- how a group lies */

static int domain_of(const struct fabric *fabric, int gpu)
{
    int domain = fabric_domain_gpus(fabric);
    return domain > 1 ? gpu / domain : gpu;
}

static int set_of(const struct fabric *fabric, int gpu)
{
    return gpu / fabric->shape.gpus_per_host / fabric->hosts_per_set;
}

static int pod_of(const struct fabric *fabric, int gpu)
{
    return fabric_pod_of_tor(fabric, set_of(fabric, gpu) * fabric->shape.tors_per_set);
}

/* Distinct values among values[n], which are sorted on the way; *most of one value. */
static int distinct(int *values, int n, int *most)
{
    int n_distinct = 0, run = 0;

    qsort(values, (size_t)n, sizeof *values, int_compare);
    *most = 0;
    for (int i = 0; i < n; i++) {
        bool fresh = i == 0 || values[i] != values[i - 1];
        n_distinct += fresh;
        run = fresh ? 1 : run + 1;
        *most = run > *most ? run : *most;
    }
    return n_distinct;
}

/* NVLink islands that members in one host are spread over, as layout_span counts them. */
static int islands_of(const struct fabric *fabric, const int *gpus, int n, int n_hosts, int *values)
{
    int island = fabric->shape.nvlink_domain, most;

    if (island <= 1 || island >= fabric->shape.gpus_per_host)
        return 1;
    for (int i = 0; i < n; i++)
        values[i] = gpus[i] / island;
    return (distinct(values, n, &most) + n_hosts - 1) / n_hosts;
}

struct group_span collective_span(const struct fabric *fabric, const int *gpus, int n)
{
    struct group_span span = {.ranks = n, .sharing = 1};
    int *values = memory_new((size_t)n, sizeof *values), most;

    for (int i = 0; i < n; i++)
        values[i] = domain_of(fabric, gpus[i]);
    span.domains = distinct(values, n, &span.ranks_per_domain);
    span.islands = islands_of(fabric, gpus, n, span.domains, values);
    for (int i = 0; i < n; i++)
        values[i] = set_of(fabric, gpus[i]);
    span.leaves = distinct(values, n, &most);
    for (int i = 0; i < n; i++)
        values[i] = pod_of(fabric, gpus[i]);
    span.pods = distinct(values, n, &most);
    free(values);
    return span;
}

struct work_collective op_exchange(const struct program *program, const struct op *op)
{
    struct work_collective exchange = {
        .collective = (enum collective)op->collective, .group = (enum group_kind)op->role, .bytes = op->bytes};

    if (op->work >= 0 && program->works.items[op->work].kind == WORK_COLLECTIVE)
        exchange.tokens = program->works.items[op->work].collective.tokens;
    return exchange;
}

static bool is_dispatch(const struct work_collective *exchange)
{
    return exchange->collective == COLLECTIVE_ALL_TO_ALL && exchange->tokens.copies > 1;
}

enum collective_shape collective_shape_of(const struct cluster *cluster, struct group_span span,
                                          const struct work_collective *exchange)
{
    if (span.domains <= 1)
        return SHAPE_NONE;
    if (exchange->collective == COLLECTIVE_ALL_TO_ALL)
        return is_dispatch(exchange) ? SHAPE_DISPATCH : SHAPE_ALL_TO_ALL;
    return exchange->collective == COLLECTIVE_ALL_REDUCE && collective_takes_tree(cluster, span, exchange->bytes) ? SHAPE_TREE
                                                                                                                  : SHAPE_RING;
}

struct collective_phases exchange_phases(const struct cluster *cluster, struct group_span span,
                                         const struct work_collective *exchange)
{
    if (is_dispatch(exchange))
        return (struct collective_phases){.network = dispatch_time(cluster, span, exchange->bytes, exchange->tokens)};
    return collective_phases(cluster, exchange->collective, span, exchange->bytes);
}

/* ---- members by domain */

struct membership {
    int n_domains, per_domain;
    int *first; /* [n_domains + 1]: in `gpus` */
    int *gpus;  /* by domain in order of appearance, group order within */
};

static struct membership membership_of(const struct fabric *fabric, const int *gpus, int n)
{
    struct membership m = {.first = memory_new((size_t)n + 1, sizeof *m.first), .gpus = memory_new((size_t)n, sizeof *m.gpus)};
    int *place = memory_new((size_t)domain_of(fabric, fabric->n_gpus - 1) + 1, sizeof *place); /* domain -> 1 + its number here */
    int *of = memory_new((size_t)n, sizeof *of), *filled;

    for (int i = 0; i < n; i++) {
        int domain = domain_of(fabric, gpus[i]);
        if (place[domain] == 0)
            place[domain] = ++m.n_domains;
        of[i] = place[domain] - 1;
        m.first[of[i] + 1]++;
    }
    for (int d = 0; d < m.n_domains; d++) {
        m.per_domain = m.first[d + 1] > m.per_domain ? m.first[d + 1] : m.per_domain;
        m.first[d + 1] += m.first[d];
    }
    filled = memory_new((size_t)m.n_domains, sizeof *filled);
    for (int i = 0; i < n; i++)
        m.gpus[m.first[of[i]] + filled[of[i]]++] = gpus[i];
    free(place);
    free(of);
    free(filled);
    return m;
}

static int member(const struct membership *m, int domain, int channel)
{
    return m->gpus[m->first[domain] + channel % (m->first[domain + 1] - m->first[domain])];
}

static void edge_add(struct collective_plan *plan, int from, int to)
{
    plan->edges[plan->n_edges++] = (struct collective_edge){from, to};
}

/* ---- shapes */

static void ring_plan(const struct membership *m, int channels, struct collective_plan *plan)
{
    plan->edges = memory_new((size_t)m->n_domains * (size_t)channels, sizeof *plan->edges);
    plan->share = 1;
    plan->ring = m->n_domains;
    for (int channel = 0; channel < channels; channel++)
        for (int d = 0; d < m->n_domains; d++)
            edge_add(plan, member(m, d, channel), member(m, (d + 1) % m->n_domains, channel));
}

/* Parent of node x in NCCL's first tree over n nodes, -1 the root: clear the lowest set bit and set the next one. */
static int tree_parent(int n, int x)
{
    int bit = 1;

    while (bit < n && !(bit & x))
        bit <<= 1;
    if (x == 0)
        return -1;
    int up = (x ^ bit) | (bit << 1);
    return up < n ? up : x ^ bit;
}

/* The second tree is the first one shifted by a node (mirrored when n is even), so that leaves and inner nodes change places. */
static int second_tree_node(int n, int x)
{
    return n % 2 ? (x + 1) % n : n - 1 - x;
}

static void tree_plan(const struct membership *m, int channels, struct collective_plan *plan)
{
    int n = m->n_domains;

    plan->edges = memory_new(4 * (size_t)n * (size_t)channels, sizeof *plan->edges);
    plan->share = 1.0 / (n < 4 ? n : 4); /* as many edges leave the busiest node */
    for (int channel = 0; channel < channels; channel++)
        for (int x = 1; x < n; x++) {
            int parent = tree_parent(n, x);
            for (int tree = 0; tree < 2; tree++) {
                int low = member(m, tree ? second_tree_node(n, x) : x, channel);
                int high = member(m, tree ? second_tree_node(n, parent) : parent, channel);
                edge_add(plan, low, high);
                edge_add(plan, high, low);
            }
        }
}

/* Every pair of members in different domains. */
static void all_pairs_plan(const struct fabric *fabric, const int *gpus, int n, struct collective_plan *plan)
{
    plan->edges = memory_new((size_t)n * (size_t)n, sizeof *plan->edges);
    for (int i = 0; i < n; i++)
        for (int step = 1; step < n; step++) {
            int to = (i + step) % n;
            if (domain_of(fabric, gpus[to]) != domain_of(fabric, gpus[i]))
                edge_add(plan, gpus[i], gpus[to]);
        }
}

/* Partners of each member, one from each of `partners` equal parts of those outside its domain, at a random place in it that is
 * the same for all: the x-th after its own domain, counted domain by domain and from its own place in one. So where domains have
 * as many members everybody also receives from as many. */
static void sampled_plan(const struct membership *m, int outside, int partners, struct collective_plan *plan)
{
    struct random_stream stream = random_stream_named(0, PURPOSE_PARTNERS, (uint64_t)partners);

    plan->edges = memory_new((size_t)m->first[m->n_domains] * (size_t)partners, sizeof *plan->edges);
    for (int64_t p = 0; p < partners; p++) {
        int64_t low = p * outside / partners, high = (p + 1) * outside / partners;
        int x = (int)(low + (int64_t)random_below(&stream, (uint64_t)(high - low)));
        for (int d = 0; d < m->n_domains; d++)
            for (int i = 0; i < m->first[d + 1] - m->first[d]; i++)
                edge_add(plan, m->gpus[m->first[d] + i],
                         member(m, (d + 1 + x / m->per_domain) % m->n_domains, i + x % m->per_domain));
    }
}

static void all_to_all_plan(const struct fabric *fabric, const int *gpus, int n, const struct membership *m, int partners,
                            struct collective_plan *plan)
{
    int outside = n - m->per_domain;

    plan->share = 1.0 / (partners < outside ? partners : outside);
    if (partners < outside)
        sampled_plan(m, outside, partners, plan);
    else
        all_pairs_plan(fabric, gpus, n, plan);
}

/* Every member to the one at its place in each other domain. */
static void dispatch_plan(const struct membership *m, struct collective_plan *plan)
{
    plan->edges = memory_new((size_t)m->first[m->n_domains] * (size_t)m->n_domains, sizeof *plan->edges);
    plan->share = 1.0 / (m->n_domains - 1);
    for (int d = 0; d < m->n_domains; d++)
        for (int i = 0; i < m->first[d + 1] - m->first[d]; i++)
            for (int step = 1; step < m->n_domains; step++)
                edge_add(plan, member(m, d, i), member(m, (d + step) % m->n_domains, i));
}

void collective_all_to_all_create(const struct fabric *fabric, const int *gpus, int n, int partners, struct collective_plan *plan)
{
    struct membership m = membership_of(fabric, gpus, n);

    *plan = (struct collective_plan){.shape = SHAPE_ALL_TO_ALL};
    all_to_all_plan(fabric, gpus, n, &m, partners, plan);
    free(m.first);
    free(m.gpus);
}

static int partners_of(int n, int outside)
{
    int partners = ALL_TO_ALL_EDGES / n;

    if ((int64_t)n * outside <= ALL_TO_ALL_EDGES)
        return outside;
    return partners > ALL_TO_ALL_PARTNERS ? partners : ALL_TO_ALL_PARTNERS;
}

void collective_plan_create(const struct fabric *fabric, enum collective_shape shape, const int *gpus, int n, bool in_turn,
                            struct collective_plan *plan)
{
    *plan = (struct collective_plan){.shape = shape};
    if (shape == SHAPE_NONE)
        return;
    struct membership m = membership_of(fabric, gpus, n);
    int channels = in_turn ? 1 : m.per_domain;
    if (shape == SHAPE_RING)
        ring_plan(&m, channels, plan);
    else if (shape == SHAPE_TREE)
        tree_plan(&m, channels, plan);
    else if (shape == SHAPE_DISPATCH)
        dispatch_plan(&m, plan);
    else
        all_to_all_plan(fabric, gpus, n, &m, partners_of(n, n - m.per_domain), plan);
    free(m.first);
    free(m.gpus);
}

void collective_plan_free(struct collective_plan *plan)
{
    free(plan->edges);
    *plan = (struct collective_plan){0};
}
