#include "sim/fold.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/fold_internal.h"

/* Everything that is divided into classes. */
enum part { PART_RANKS, PART_GROUPS, PART_CONNECTIONS, PART_LINKS, N_PARTS };

struct refinement {
    struct fold *fold;
    const struct fold_network *network;
    size_t n[N_PARTS];
    uint32_t *colour[N_PARTS]; /* classes so far, numbered as they are met */
    uint32_t n_colours[N_PARTS];
    uint64_t *seen[N_PARTS]; /* what each sees, as a hash */
    bool *live;              /* [links] used, and may be full */
    struct lockstep blocks;
    uint32_t *table; /* scratch for numbering */
    size_t table_size;
};

/* ---- numbering */

/* Classes of equal hashes, numbered in order of appearance. */
static void colours_number(struct refinement *r, enum part part)
{
    const uint64_t *seen = r->seen[part];
    uint32_t *colour = r->colour[part], *first = r->table, n_colours = 0;
    uint64_t *keys = (uint64_t *)(void *)(r->table + r->table_size);

    memset(first, 0xff, r->table_size * sizeof *first);
    for (size_t i = 0; i < r->n[part]; i++) {
        size_t slot = (size_t)(fold_mix(seen[i]) & (r->table_size - 1));
        while (first[slot] != UINT32_MAX && keys[slot] != seen[i])
            slot = (slot + 1) & (r->table_size - 1);
        if (first[slot] == UINT32_MAX) {
            first[slot] = n_colours++;
            keys[slot] = seen[i];
        }
        colour[i] = first[slot];
    }
    r->n_colours[part] = n_colours;
}

/* ---- links that can never be full */

/* How many messages between two ranks may be under way at once: each is held by a receive on a stream of the receiver. */
static int messages_at_once(const struct program *program)
{
    unsigned most = 0;

    for (int32_t s = 0; s < program->n_scripts; s++) {
        unsigned streams = 0;
        for (uint32_t i = 0; i < program->scripts[s].n_ops; i++) {
            const struct op *op = &program->ops[program->scripts[s].first_op + i];
            streams |= op->kind == OP_RECV ? 1u << op->stream : 0;
        }
        unsigned n = (unsigned)__builtin_popcount(streams);
        most = n > most ? n : most;
    }
    return (int)most;
}

static double way_rate(const struct refinement *r, const struct fold_connection *c)
{
    double rate = 1e16;

    for (uint32_t h = c->first_hop; h < c->first_hop + c->n_hops; h++)
        if (r->network->rates[r->fold->hops[h]] < rate)
            rate = r->network->rates[r->fold->hops[h]];
    return rate;
}

static void live_links_find(struct refinement *r)
{
    const struct fold *fold = r->fold;
    double *most = memory_new(r->n[PART_LINKS], sizeof *most);
    int messages = messages_at_once(fold->whole);

    for (size_t i = 0; i < fold->n_connections; i++) {
        const struct fold_connection *c = &fold->connections[i];
        double rate = way_rate(r, c) * (c->owner == N_GROUP_KINDS ? messages : 1);
        for (uint32_t h = c->first_hop; h < c->first_hop + c->n_hops; h++)
            most[fold->hops[h]] += rate;
    }
    for (size_t l = 0; l < r->n[PART_LINKS]; l++)
        r->live[l] = most[l] > r->network->rates[l] * (1 + 1e-12);
    for (int i = 0; i < r->network->options->n_events; i++) /* what changes is told apart */
        r->live[r->network->options->events[i].link] = true;
    free(most);
}

/* ---- what each sees at first */

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void begin_links(struct refinement *r)
{
    const struct network_flow_options *options = r->network->options;

    for (uint32_t l = 0; l < r->n[PART_LINKS]; l++)
        r->seen[PART_LINKS][l] =
            r->live[l] ? fold_then((uint64_t)fabric_layer_of(options->fabric, l), bits_of(r->network->rates[l])) : 0;
    for (int i = 0; i < options->n_events; i++)
        r->seen[PART_LINKS][options->events[i].link] = fold_then(1, options->events[i].link);
}

static void begin_connections(struct refinement *r)
{
    const struct fabric *fabric = r->network->options->fabric;

    for (size_t i = 0; i < r->n[PART_CONNECTIONS]; i++) {
        const struct fold_connection *c = &r->fold->connections[i];
        bool nvlink = c->n_hops == 2 && fabric_layer_of(fabric, r->fold->hops[c->first_hop]) == LAYER_NVLINK_OUT;
        r->seen[PART_CONNECTIONS][i] = fold_then(fold_then(c->owner, bits_of(way_rate(r, c))), nvlink);
    }
}

static void begin_groups(struct refinement *r)
{
    const struct program *whole = r->fold->whole;
    const struct network_flow_options *options = r->network->options;

    for (size_t g = 0; g < r->n[PART_GROUPS]; g++) {
        const struct rank_group *group = &whole->groups[g];
        int *gpus = memory_new((size_t)group->n_members, sizeof *gpus);
        for (int32_t m = 0; m < group->n_members; m++) {
            int rank = whole->members[group->first_member + m];
            gpus[m] = options->placement != NULL ? options->placement[rank] : rank;
        }
        struct group_span span = collective_span(options->fabric, gpus, group->n_members);
        const uint64_t words[] = {(uint64_t)span.ranks, (uint64_t)span.ranks_per_domain, (uint64_t)span.domains,
                                  (uint64_t)span.leaves, (uint64_t)span.pods};
        uint64_t seen = group->kind;
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            seen = fold_then(seen, words[w]);
        r->seen[PART_GROUPS][g] = seen;
        free(gpus);
    }
}

static void refinement_begin(struct refinement *r)
{
    for (size_t i = 0; i < r->n[PART_RANKS]; i++)
        r->seen[PART_RANKS][i] = (uint64_t)r->fold->whole->ranks[i].script;
    begin_groups(r);
    begin_connections(r);
    begin_links(r);
    for (int part = 0; part < N_PARTS; part++)
        colours_number(r, (enum part)part);
}

/* ---- what each sees of the others */

static uint64_t message_seen(const struct refinement *r, size_t rank, int role)
{
    uint32_t first = r->fold->message_first[rank * N_PEERS + (size_t)role];
    uint64_t seen = 0;

    for (int q = 0; first != UINT32_MAX && q < r->network->options->queue_pairs; q++)
        seen = fold_then(seen, r->colour[PART_CONNECTIONS][first + (uint32_t)q]);
    return seen;
}

static uint64_t block_seen(const struct refinement *r, size_t rank)
{
    uint64_t sum = 0;

    if (r->blocks.n_blocks == 0)
        return 0;
    int32_t block = r->blocks.block[rank];
    for (int32_t m = r->blocks.first[block]; m < r->blocks.first[block + 1]; m++)
        sum += fold_mix(r->colour[PART_RANKS][r->blocks.members[m]] + UINT64_C(1));
    return sum;
}

static void look_ranks(struct refinement *r)
{
    for (size_t i = 0; i < r->n[PART_RANKS]; i++) {
        const struct program_rank *rank = &r->fold->whole->ranks[i];
        uint64_t seen = r->colour[PART_RANKS][i];
        for (int p = 0; p < N_PEERS; p++) {
            seen = fold_then(seen, rank->peers[p] >= 0 ? r->colour[PART_RANKS][rank->peers[p]] + UINT64_C(1) : 0);
            seen = fold_then(seen, message_seen(r, i, p));
        }
        for (int kind = 0; kind < N_GROUP_KINDS; kind++)
            seen = fold_then(seen, rank->groups[kind] >= 0 ? r->colour[PART_GROUPS][rank->groups[kind]] + UINT64_C(1) : 0);
        r->seen[PART_RANKS][i] = fold_then(seen, block_seen(r, i));
    }
}

static void look_groups(struct refinement *r)
{
    const struct program *whole = r->fold->whole;

    for (size_t g = 0; g < r->n[PART_GROUPS]; g++) {
        const struct rank_group *group = &whole->groups[g];
        uint64_t members = 0, seen = r->colour[PART_GROUPS][g];
        for (int32_t m = 0; m < group->n_members; m++)
            members += fold_mix(r->colour[PART_RANKS][whole->members[group->first_member + m]] + UINT64_C(1));
        seen = fold_then(seen, members);
        for (int shape = 0; shape <= SHAPE_ALL_TO_ALL; shape++) {
            const struct fold_edges *edges = &r->fold->edges[g * (SHAPE_ALL_TO_ALL + 1) + (size_t)shape];
            uint64_t sum = 0;
            for (uint32_t e = edges->first; e < edges->first + edges->n; e++)
                sum += fold_mix(r->colour[PART_CONNECTIONS][e] + UINT64_C(1));
            seen = fold_then(seen, sum);
        }
        r->seen[PART_GROUPS][g] = seen;
    }
}

/* Whose it is: ranks, or a group and a shape. */
static void ends_seen(const struct refinement *r, const struct fold_connection *c, uint32_t ends[2])
{
    bool message = c->owner == N_GROUP_KINDS;

    ends[0] = message ? r->colour[PART_RANKS][c->from] : r->colour[PART_GROUPS][c->from];
    ends[1] = message ? r->colour[PART_RANKS][c->to] : (uint32_t)c->to;
}

static void look_connections(struct refinement *r)
{
    const struct fold *fold = r->fold;

    for (size_t i = 0; i < r->n[PART_CONNECTIONS]; i++) {
        const struct fold_connection *c = &fold->connections[i];
        uint32_t ends[2];
        ends_seen(r, c, ends);
        uint64_t seen = fold_then(fold_then(r->colour[PART_CONNECTIONS][i], ends[0]), ends[1]);
        for (uint32_t h = c->first_hop; h < c->first_hop + c->n_hops; h++)
            if (r->live[fold->hops[h]])
                seen = fold_then(seen, r->colour[PART_LINKS][fold->hops[h]]);
        r->seen[PART_CONNECTIONS][i] = seen;
    }
}

static void look_links(struct refinement *r)
{
    const struct fold *fold = r->fold;
    uint64_t *seen = r->seen[PART_LINKS];

    for (size_t l = 0; l < r->n[PART_LINKS]; l++)
        seen[l] = fold_mix(r->colour[PART_LINKS][l]);
    for (size_t i = 0; i < fold->n_connections; i++) {
        const struct fold_connection *c = &fold->connections[i];
        uint64_t crossed = fold_mix(r->colour[PART_CONNECTIONS][i] + UINT64_C(0x517CC1B727220A95));
        for (uint32_t h = c->first_hop; h < c->first_hop + c->n_hops; h++)
            if (r->live[fold->hops[h]])
                seen[fold->hops[h]] += crossed;
    }
}

/* Split until nothing splits. False: too many classes of ranks are left to be worth it. */
static bool refine(struct refinement *r)
{
    static void (*const look[N_PARTS])(struct refinement *) = {look_ranks, look_groups, look_connections, look_links};
    uint64_t before, after = 0;

    refinement_begin(r);
    do {
        before = after;
        after = 0;
        for (int k = 0; k < N_PARTS; k++) {
            static const enum part order[N_PARTS] = {PART_CONNECTIONS, PART_LINKS, PART_GROUPS, PART_RANKS};
            look[order[k]](r);
            colours_number(r, order[k]);
            after += r->n_colours[order[k]];
        }
        if (2 * (size_t)r->n_colours[PART_RANKS] > r->n[PART_RANKS])
            return false;
    } while (after != before);
    return true;
}

/* ---- the check: every member sees exactly what the first of its class sees */

static int colour_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Lists of colours, one for each of n: sorted, equal within a class. */
struct colour_lists {
    uint32_t *first; /* [n + 1] */
    uint32_t *items;
};

static bool lists_agree(const struct refinement *r, enum part part, const struct colour_lists *lists)
{
    uint32_t *example = memory_new(r->n_colours[part], sizeof *example);
    bool agree = true;

    for (size_t i = r->n[part]; i-- > 0;)
        example[r->colour[part][i]] = (uint32_t)i;
    for (size_t i = 0; i < r->n[part]; i++)
        qsort(lists->items + lists->first[i], lists->first[i + 1] - lists->first[i], sizeof *lists->items, colour_compare);
    for (size_t i = 0; i < r->n[part] && agree; i++) {
        uint32_t e = example[r->colour[part][i]], n = lists->first[i + 1] - lists->first[i];
        agree = n == lists->first[e + 1] - lists->first[e] &&
                memcmp(lists->items + lists->first[i], lists->items + lists->first[e], n * sizeof *lists->items) == 0;
    }
    free(example);
    return agree;
}

/* The classes of connections over each link. */
static struct colour_lists links_list(const struct refinement *r)
{
    const struct fold *fold = r->fold;
    struct colour_lists lists = {.first = memory_new(r->n[PART_LINKS] + 2, sizeof(uint32_t))};

    for (size_t i = 0; i < fold->n_hops; i++)
        lists.first[fold->hops[i] + 2] += r->live[fold->hops[i]];
    for (size_t l = 0; l < r->n[PART_LINKS]; l++)
        lists.first[l + 2] += lists.first[l + 1];
    lists.items = memory_new(lists.first[r->n[PART_LINKS] + 1], sizeof *lists.items);
    for (size_t i = 0; i < fold->n_connections; i++) {
        const struct fold_connection *c = &fold->connections[i];
        for (uint32_t h = c->first_hop; h < c->first_hop + c->n_hops; h++)
            if (r->live[fold->hops[h]])
                lists.items[lists.first[fold->hops[h] + 1]++] = r->colour[PART_CONNECTIONS][i];
    }
    return lists;
}

/* The classes of members and edges of each group. */
static struct colour_lists groups_list(const struct refinement *r)
{
    const struct program *whole = r->fold->whole;
    struct colour_lists lists = {.first = memory_new(r->n[PART_GROUPS] + 1, sizeof(uint32_t)),
                                 .items = memory_new((size_t)whole->n_members + r->n[PART_CONNECTIONS], sizeof(uint32_t))};
    uint32_t filled = 0;

    for (size_t g = 0; g < r->n[PART_GROUPS]; g++) {
        for (int32_t m = 0; m < whole->groups[g].n_members; m++)
            lists.items[filled++] = r->colour[PART_RANKS][whole->members[whole->groups[g].first_member + m]];
        for (int shape = 0; shape <= SHAPE_ALL_TO_ALL; shape++) {
            const struct fold_edges *edges = &r->fold->edges[g * (SHAPE_ALL_TO_ALL + 1) + (size_t)shape];
            for (uint32_t e = edges->first; e < edges->first + edges->n; e++)
                lists.items[filled++] = r->n_colours[PART_RANKS] + r->colour[PART_CONNECTIONS][e];
        }
        lists.first[g + 1] = filled;
    }
    return lists;
}

/* What a rank sees, in words: script, peers, groups, messages, and then its block's classes, sorted by the list check. */
static struct colour_lists ranks_list(const struct refinement *r)
{
    const struct program *whole = r->fold->whole;
    int32_t block_size = r->blocks.n_blocks > 0 ? r->blocks.first[1] : 0, queue_pairs = r->network->options->queue_pairs;
    size_t each = 1 + N_PEERS * (1 + (size_t)queue_pairs) + N_GROUP_KINDS + (size_t)block_size, n = r->n[PART_RANKS];
    struct colour_lists lists = {.first = memory_new(n + 1, sizeof(uint32_t)), .items = memory_new(n * each, sizeof(uint32_t))};
    uint32_t base = r->n_colours[PART_RANKS] + r->n_colours[PART_GROUPS] + r->n_colours[PART_CONNECTIONS] + 1;
    uint32_t filled = 0;

    /* Each word in a range of its own, so that sorting does not mix them up. */
    for (size_t i = 0; i < n; i++) {
        const struct program_rank *rank = &whole->ranks[i];
        uint32_t slot = 1;
        lists.items[filled++] = (uint32_t)rank->script;
        for (int p = 0; p < N_PEERS; p++) {
            uint32_t first = r->fold->message_first[i * N_PEERS + (size_t)p];
            lists.items[filled++] = slot++ * base + (rank->peers[p] >= 0 ? r->colour[PART_RANKS][rank->peers[p]] + 1 : 0);
            for (int q = 0; q < queue_pairs; q++)
                lists.items[filled++] =
                    slot++ * base + (first != UINT32_MAX ? r->colour[PART_CONNECTIONS][first + (uint32_t)q] + 1 : 0);
        }
        for (int kind = 0; kind < N_GROUP_KINDS; kind++)
            lists.items[filled++] =
                slot++ * base + (rank->groups[kind] >= 0 ? r->colour[PART_GROUPS][rank->groups[kind]] + 1 : 0);
        for (int32_t m = 0; m < block_size; m++)
            lists.items[filled++] =
                slot * base + r->colour[PART_RANKS][r->blocks.members[r->blocks.first[r->blocks.block[i]] + m]];
        lists.first[i + 1] = filled;
    }
    return lists;
}

/* The classes of the ends of each connection and of its links. */
static struct colour_lists ways_list(const struct refinement *r)
{
    const struct fold *fold = r->fold;
    struct colour_lists lists = {.first = memory_new(r->n[PART_CONNECTIONS] + 1, sizeof(uint32_t)),
                                 .items = memory_new(fold->n_hops + 2 * fold->n_connections, sizeof(uint32_t))};
    uint32_t filled = 0, base = r->n_colours[PART_RANKS] + r->n_colours[PART_GROUPS] + SHAPE_ALL_TO_ALL;

    for (size_t i = 0; i < fold->n_connections; i++) {
        const struct fold_connection *c = &fold->connections[i];
        uint32_t ends[2];
        ends_seen(r, c, ends);
        lists.items[filled++] = ends[0];
        lists.items[filled++] = base + ends[1];
        for (uint32_t h = c->first_hop; h < c->first_hop + c->n_hops; h++)
            if (r->live[fold->hops[h]])
                lists.items[filled++] = 2 * base + r->colour[PART_LINKS][fold->hops[h]];
        lists.first[i + 1] = filled;
    }
    return lists;
}

static bool equitable(const struct refinement *r)
{
    static struct colour_lists (*const list[N_PARTS])(const struct refinement *) = {ranks_list, groups_list, ways_list,
                                                                                    links_list};
    bool agree = true;

    for (int part = 0; part < N_PARTS && agree; part++) {
        struct colour_lists lists = list[part](r);
        agree = lists_agree(r, (enum part)part, &lists);
        free(lists.first);
        free(lists.items);
    }
    return agree;
}

/* ---- the small program */

static void ranks_fold(struct refinement *r)
{
    struct fold *fold = r->fold;
    const struct program *whole = fold->whole;
    size_t n = r->n_colours[PART_RANKS];

    fold->program = (struct program){.layout = whole->layout,
                                     .detail = whole->detail,
                                     .rolling = whole->rolling,
                                     .ops = whole->ops,
                                     .n_ops = whole->n_ops,
                                     .scripts = whole->scripts,
                                     .n_scripts = whole->n_scripts,
                                     .n_ranks = (int32_t)n,
                                     .n_groups = (int32_t)r->n_colours[PART_GROUPS],
                                     .works = whole->works};
    fold->program.ranks = memory_new(n, sizeof *fold->program.ranks);
    fold->rank_class = memory_new(r->n[PART_RANKS], sizeof *fold->rank_class);
    fold->rank_of = memory_new(n, sizeof *fold->rank_of);
    fold->rank_count = memory_new(n, sizeof *fold->rank_count);
    for (size_t i = r->n[PART_RANKS]; i-- > 0;) {
        fold->rank_class[i] = (int32_t)r->colour[PART_RANKS][i];
        fold->rank_of[fold->rank_class[i]] = (int32_t)i;
        fold->rank_count[fold->rank_class[i]]++;
    }
    for (size_t c = 0; c < n; c++) {
        struct program_rank *rank = &fold->program.ranks[c];
        *rank = whole->ranks[fold->rank_of[c]];
        for (int p = 0; p < N_PEERS; p++)
            rank->peers[p] = rank->peers[p] >= 0 ? fold->rank_class[rank->peers[p]] : -1;
        for (int kind = 0; kind < N_GROUP_KINDS; kind++)
            rank->groups[kind] = rank->groups[kind] >= 0 ? (int32_t)r->colour[PART_GROUPS][rank->groups[kind]] : -1;
    }
}

/* The classes among n ranks, each once, in order of appearance; *out has room. Returns how many. */
static int32_t classes_among(const struct fold *fold, const int32_t *ranks, int32_t n, bool *met, int32_t *out)
{
    int32_t found = 0;

    for (int32_t m = 0; m < n; m++) {
        int32_t class = fold->rank_class[ranks[m]];
        if (!met[class])
            out[found++] = class;
        met[class] = true;
    }
    for (int32_t m = 0; m < found; m++)
        met[out[m]] = false;
    return found;
}

static void groups_fold(struct refinement *r)
{
    struct fold *fold = r->fold;
    const struct program *whole = fold->whole;
    struct program *small = &fold->program;
    bool *met = memory_new((size_t)small->n_ranks, sizeof *met);

    fold->group_of = memory_new((size_t)small->n_groups, sizeof *fold->group_of);
    small->groups = memory_new((size_t)small->n_groups, sizeof *small->groups);
    small->members = memory_new((size_t)whole->n_members, sizeof *small->members);
    for (size_t g = r->n[PART_GROUPS]; g-- > 0;)
        fold->group_of[r->colour[PART_GROUPS][g]] = (int32_t)g;
    for (int32_t c = 0; c < small->n_groups; c++) {
        const struct rank_group *of = &whole->groups[fold->group_of[c]];
        int32_t n = classes_among(fold, whole->members + of->first_member, of->n_members, met, small->members + small->n_members);
        small->groups[c] = (struct rank_group){.kind = of->kind, .first_member = small->n_members, .n_members = n};
        small->n_members += n;
    }
    free(met);
}

static void blocks_fold(struct refinement *r)
{
    struct fold *fold = r->fold;
    struct lockstep *small = &fold->lockstep;
    size_t n = (size_t)fold->program.n_ranks;
    int32_t filled = 0;

    *small = (struct lockstep){0};
    if (r->blocks.n_blocks == 0)
        return;
    bool *met = memory_new(n, sizeof *met);
    small->block = memory_new(n, sizeof *small->block);
    small->members = memory_new(n, sizeof *small->members);
    small->first = memory_new(n + 1, sizeof *small->first);
    for (size_t c = 0; c < n; c++)
        small->block[c] = FOLD_NO_CLASS;
    for (size_t c = 0; c < n; c++) {
        if (small->block[c] != FOLD_NO_CLASS)
            continue;
        const int32_t *first = r->blocks.first + r->blocks.block[fold->rank_of[c]];
        int32_t found = classes_among(fold, r->blocks.members + first[0], first[1] - first[0], met, small->members + filled);
        for (int32_t m = 0; m < found; m++)
            small->block[small->members[filled + m]] = small->n_blocks;
        filled += found;
        small->first[++small->n_blocks] = filled;
    }
    free(met);
}

/* ---- the small network */

static uint32_t crossings_count(const struct colour_lists *over, uint32_t link, uint32_t colour)
{
    uint32_t n = 0;

    for (uint32_t i = over->first[link]; i < over->first[link + 1]; i++)
        n += over->items[i] == colour;
    return n;
}

static void links_fold(struct refinement *r)
{
    struct fold *fold = r->fold;
    size_t n = r->n[PART_LINKS];
    int32_t *number = memory_new(r->n_colours[PART_LINKS], sizeof *number); /* 1 + class, 0 none yet */

    fold->link_class = memory_new(n, sizeof *fold->link_class);
    fold->link_of = memory_new(r->n_colours[PART_LINKS], sizeof *fold->link_of);
    for (uint32_t l = 0; l < n; l++) {
        uint32_t colour = r->colour[PART_LINKS][l];
        fold->link_class[l] = FOLD_NO_CLASS;
        if (!r->live[l])
            continue;
        if (number[colour] == 0) {
            fold->link_of[fold->n_link_classes] = l;
            number[colour] = ++fold->n_link_classes;
        }
        fold->link_class[l] = number[colour] - 1;
    }
    free(number);
}

static void ways_fold(struct refinement *r)
{
    struct fold *fold = r->fold;
    size_t n = r->n_colours[PART_CONNECTIONS], filled = 0, capacity = 0;
    uint32_t *example = memory_new(n, sizeof *example);
    struct colour_lists over = links_list(r);

    fold->n_connection_classes = (int32_t)n;
    fold->way_rates = memory_new(n, sizeof *fold->way_rates);
    fold->way_first = memory_new(n + 1, sizeof *fold->way_first);
    fold->ways = memory_new(0, sizeof *fold->ways);
    for (size_t i = r->n[PART_CONNECTIONS]; i-- > 0;) {
        fold->connections[i].class = (int32_t)r->colour[PART_CONNECTIONS][i];
        example[fold->connections[i].class] = (uint32_t)i;
    }
    for (uint32_t c = 0; c < n; c++) {
        const struct fold_connection *of = &fold->connections[example[c]];
        fold->way_rates[c] = way_rate(r, of);
        if (filled + of->n_hops > capacity)
            fold->ways = memory_grow(fold->ways, &capacity, filled + of->n_hops, sizeof *fold->ways);
        for (uint32_t h = of->first_hop; h < of->first_hop + of->n_hops; h++) {
            uint32_t link = fold->hops[h];
            if (r->live[link])
                fold->ways[filled++] = (struct fold_way){(uint32_t)fold->link_class[link],
                                                         crossings_count(&over, fold->link_of[fold->link_class[link]], c)};
        }
        fold->way_first[c + 1] = (uint32_t)filled;
    }
    free(over.first);
    free(over.items);
    free(example);
}

/* ---- before and after */

static void refinement_create(struct refinement *r)
{
    size_t most = 0;

    r->n[PART_RANKS] = (size_t)r->fold->whole->n_ranks;
    r->n[PART_GROUPS] = (size_t)r->fold->whole->n_groups;
    r->n[PART_CONNECTIONS] = r->fold->n_connections;
    r->n[PART_LINKS] = fabric_links(r->network->options->fabric);
    for (int part = 0; part < N_PARTS; part++) {
        r->colour[part] = memory_new(r->n[part], sizeof *r->colour[part]);
        r->seen[part] = memory_new(r->n[part], sizeof *r->seen[part]);
        most = r->n[part] > most ? r->n[part] : most;
    }
    for (r->table_size = 1024; r->table_size < 2 * most; r->table_size *= 2)
        ;
    r->table = memory_new(r->table_size, sizeof *r->table + sizeof(uint64_t));
    r->live = memory_new(r->n[PART_LINKS], sizeof *r->live);
    lockstep_create(r->fold->whole, &r->blocks);
}

static void refinement_free(struct refinement *r)
{
    for (int part = 0; part < N_PARTS; part++) {
        free(r->colour[part]);
        free(r->seen[part]);
    }
    free(r->table);
    free(r->live);
    lockstep_free(&r->blocks);
}

/* A class whose peer is of the same class, or two peers of one class: the executor tells ranks apart by their numbers. */
static bool peers_distinct(const struct fold *fold)
{
    for (int32_t c = 0; c < fold->program.n_ranks; c++) {
        const int32_t *small = fold->program.ranks[c].peers, *whole = fold->whole->ranks[fold->rank_of[c]].peers;
        for (int p = 0; p < N_PEERS; p++) {
            if (small[p] == c)
                return false;
            for (int q = 0; q < p; q++)
                if (small[p] >= 0 && small[p] == small[q] && whole[p] != whole[q])
                    return false;
        }
    }
    return true;
}

bool fold_create(const struct program *whole, const struct fold_network *network, struct fold *fold)
{
    struct fold made = {.whole = whole};
    struct refinement r = {.fold = &made, .network = network};

    if (network->options->routing == ROUTING_ADAPTIVE)
        return false;
    bool folds = fold_connections_list(&made, network);
    if (folds) {
        refinement_create(&r);
        live_links_find(&r);
        folds = refine(&r) && equitable(&r);
        if (folds) {
            ranks_fold(&r);
            groups_fold(&r);
            blocks_fold(&r);
            links_fold(&r);
            ways_fold(&r);
            folds = peers_distinct(&made);
        }
        refinement_free(&r);
    }
    if (folds)
        *fold = made;
    else
        fold_free(&made);
    return folds;
}

void fold_free(struct fold *fold)
{
    free(fold->program.ranks);
    free(fold->program.groups);
    free(fold->program.members);
    lockstep_free(&fold->lockstep);
    free(fold->rank_class);
    free(fold->rank_of);
    free(fold->rank_count);
    free(fold->group_of);
    free(fold->connections);
    free(fold->hops);
    free(fold->message_first);
    free(fold->edges);
    free(fold->link_class);
    free(fold->link_of);
    free(fold->way_rates);
    free(fold->way_first);
    free(fold->ways);
    *fold = (struct fold){0};
}

int32_t fold_message(const struct fold *fold, int from, int to, int q)
{
    const struct program_rank *rank = &fold->program.ranks[from];
    int role = rank->peers[PEER_PREVIOUS] == to ? PEER_PREVIOUS : PEER_NEXT;
    uint32_t first = fold->message_first[(size_t)fold->rank_of[from] * N_PEERS + (size_t)role];

    return fold->connections[first + (uint32_t)q].class;
}
