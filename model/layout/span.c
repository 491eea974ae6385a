/*
 * span.c - the places of groups of a kind on NVLink domains, ToR sets and pods.
 *
 * All of it is arithmetic on regular grids of ranks, so that the search can afford it for every layout. A unit is a piece of
 * the machine of `size` GPUs (a node, a domain, ...); unit u holds ranks [u * size, (u + 1) * size).
 */
#include "model/layout/ranks.h"

#include "model/base/order.h"

static int divide_up(int a, int b)
{
    return (a + b - 1) / b;
}

/* The largest k * block mod size over 0 <= k < n_blocks. */
static int worst_block_offset(int block, int n_blocks, int size)
{
    if ((int64_t)block * n_blocks <= size)
        return block * (n_blocks - 1);
    int divisor = int_common_divisor(block, size);
    if (n_blocks >= size / divisor)
        return size - divisor; /* every multiple of the divisor occurs */
    int worst = 0, offset = 0, step = block % size;
    for (int k = 1; k < n_blocks; k++) {
        offset += step;
        offset -= offset >= size ? size : 0;
        worst = offset > worst ? offset : worst;
    }
    return worst;
}

/* The largest offset within a unit at which a group begins. */
static int worst_offset(const struct group_shape *shape, int size)
{
    if (shape->width >= size)
        return size - 1;
    int block = worst_block_offset(shape->block, shape->n_blocks, size);
    return int_min(block + shape->width - 1, size - 1);
}

struct reach {
    int units;    /* touched by the worst placed group */
    int per_unit; /* members in one unit, at most */
};

static struct reach reach_of_line(const struct group_shape *shape, int size)
{
    if (shape->stride >= size || shape->n == 1)
        return (struct reach){shape->n, 1};
    /* Members are closer than a unit is wide: none between the first and the last member's is skipped. */
    int last = worst_offset(shape, size) + (shape->n - 1) * shape->stride;
    return (struct reach){last / size + 1, int_min(shape->n, divide_up(size, shape->stride))};
}

static struct reach reach_of(const struct group_shape *shape, int world, int size)
{
    if (size >= world)
        return (struct reach){1, shape->n * shape->outer_n};
    struct reach line = reach_of_line(shape, size);
    if (shape->outer_n == 1)
        return line;
    if (shape->outer_stride >= size)
        return (struct reach){line.units * shape->outer_n, line.per_unit};
    int last = worst_offset(shape, size) + (shape->outer_n - 1) * shape->outer_stride + shape->n - 1;
    return (struct reach){last / size + 1,
                          int_min(shape->n, size) * int_min(shape->outer_n, divide_up(size, shape->outer_stride))};
}

/* GPUs that the job uses of each NVLink domain; see the header. */
static int used_domain(int world, const struct cluster *cluster)
{
    int node = cluster->gpus_per_node, domain = cluster->nvlink_domain > node ? cluster->nvlink_domain : node;
    if (domain == node || world <= domain)
        return domain;
    for (int used = domain - domain % node; 2 * used >= domain; used -= node)
        if (world % used == 0)
            return used;
    return domain;
}

/* A group with several members in a node spreads over as many NICs; what all groups of a node want is divided by the NICs. */
static int nic_sharing(const struct group_shape *shape, int world, const struct cluster *cluster)
{
    int node = int_min(cluster->gpus_per_node, world), nics = cluster->nics_per_node > 0 ? cluster->nics_per_node : 1;
    int members = int_min(reach_of(shape, world, node).per_unit, node);
    int groups = node / members;
    int sharing = divide_up(groups * int_min(members, nics), nics);
    return sharing > 1 ? sharing : 1;
}

/* NVLink islands that the members in one node are spread over. */
static int islands_of(const struct group_shape *shape, int world, const struct cluster *cluster)
{
    if (cluster->nvlink_domain <= 0 || cluster->nvlink_domain >= cluster->gpus_per_node)
        return 1;
    return divide_up(reach_of(shape, world, cluster->nvlink_domain).units, reach_of(shape, world, cluster->gpus_per_node).units);
}

static int gpus_under(int nodes, const struct cluster *cluster, int world)
{
    int64_t gpus = (int64_t)nodes * cluster->gpus_per_node;
    return nodes <= 0 || gpus > world ? world : (int)gpus;
}

/* What GPUs [from, to) have of a block of neighbouring groups; those of a group are `step` apart, or as near as a domain. */
struct piece {
    int block, inside, step;
};

/* Each of `step` neighbours sends from its last one here to its next one there, if it has both. */
static double piece_to_next(struct piece p)
{
    return int_min(p.step, int_min(p.inside, p.block - p.inside));
}

/* Each here sends to the block but for its own domain, and what is not here is beyond: at most all that it sends, where a group
 * has no two of its domains here. Groups of less than a domain lie across two: there one sends for each that receives. */
static double piece_to_all(struct piece p)
{
    int beyond = p.block - p.inside;
    if (p.block <= p.step)
        return int_min(p.inside, beyond);
    return (double)p.inside * int_min(beyond, p.block - p.step) / (p.block - p.step);
}

static struct piece piece_of(int at, int from, int to, int block, int step)
{
    int first = at / block * block, last = first + block;
    return (struct piece){block, int_min(last, to) - (first > from ? first : from), step};
}

/* Of the first `world` GPUs, which blocks tile, in units of `size`: only the first and the last block of a unit can reach beyond
 * it, and units begin at the same place of a block again after block / divisor of them. */
static struct group_exits most_leaving(int world, int size, int block, int step)
{
    int units = divide_up(world, size), period = block / int_common_divisor(block, size);
    struct group_exits most = {.units = units};
    for (int i = 0; i < units && i < period; i++) {
        int from = i * size, to = int_min(from + size, world);
        struct piece first = piece_of(from, from, to, block, step), last = piece_of(to - 1, from, to, block, step);
        bool two = from / block != (to - 1) / block;
        double next = piece_to_next(first) + (two ? piece_to_next(last) : 0);
        double all = piece_to_all(first) + (two ? piece_to_all(last) : 0);
        most.to_next = next / size > most.to_next ? next / size : most.to_next;
        most.to_all = all / size > most.to_all ? all / size : most.to_all;
    }
    return most;
}

static struct group_exits exits_of(const struct layout *layout, enum group_kind kind, int size, int domain)
{
    struct group_shape shape = group_shape_of(layout, kind);
    int world = world_ranks(layout), stage = stage_ranks(layout), apart = shape.outer_n > 1 ? shape.outer_stride : shape.stride;
    if (kind == GROUP_EMBEDDING) { /* the first stage to the last one */
        double part = (double)int_min(stage, size) / size;
        return (struct group_exits){part, part, divide_up(world, size)};
    }
    if (kind == GROUP_MIRROR)
        return (struct group_exits){1, 1, divide_up(world, size)};
    return most_leaving(world, size, kind == GROUP_MODEL ? world : shape.block,
                        kind == GROUP_PP || apart > domain ? apart : domain);
}

struct group_span layout_span(const struct layout *layout, const struct cluster *cluster, enum group_kind kind)
{
    struct group_shape shape = group_shape_of(layout, kind);
    int ranks = shape.n * shape.outer_n, world = world_ranks(layout);
    if (ranks == 1)
        return (struct group_span){1, 1, 1, 1, 1, 1, 1, {0, 0, 1}, {0, 0, 1}};
    int domain = used_domain(world, cluster), leaf = gpus_under(cluster_leaf_nodes(cluster), cluster, world),
        pod = gpus_under(cluster_pod_nodes(cluster), cluster, world);
    struct reach domains = reach_of(&shape, world, domain);
    struct group_span span = {
        .ranks = ranks,
        .ranks_per_domain = domains.per_unit,
        .domains = domains.units,
        .leaves = 1,
        .pods = 1,
        .sharing = 1,
        .islands = islands_of(&shape, world, cluster),
    };
    if (span.domains == 1)
        return span;
    span.leaves = reach_of(&shape, world, leaf).units;
    span.pods = reach_of(&shape, world, pod).units;
    span.sharing = nic_sharing(&shape, world, cluster);
    if (span.leaves > 1)
        span.leaf_exits = exits_of(layout, kind, leaf, domain);
    if (span.pods > 1)
        span.pod_exits = exits_of(layout, kind, pod, domain);
    return span;
}
