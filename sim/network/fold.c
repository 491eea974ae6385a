#include "sim/network/fold.h"

#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/network/fold_internal.h"

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

/* Queue pairs go over several links of a class. */
static bool way_has(const struct fold *fold, uint32_t first, uint32_t end, uint32_t link)
{
    for (uint32_t w = first; w < end; w++)
        if (fold->ways[w].link == link)
            return true;
    return false;
}

static void ways_fold(struct refinement *r)
{
    struct fold *fold = r->fold;
    size_t n = r->n_colours[PART_CONNECTIONS], filled = 0, capacity = 0;
    uint32_t *example = memory_new(n, sizeof *example);
    struct colour_lists over = fold_links_list(r);

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
        fold->way_rates[c] = of->rate;
        if (filled + of->n_hops > capacity)
            fold->ways = memory_grow(fold->ways, &capacity, filled + of->n_hops, sizeof *fold->ways);
        for (uint32_t h = of->first_hop; h < of->first_hop + of->n_hops; h++) {
            uint32_t link = fold->hops[h], class = (uint32_t)fold->link_class[link];
            if (!r->live[link] || way_has(fold, fold->way_first[c], (uint32_t)filled, class))
                continue;
            if (r->network->rates[link] <= of->rate)
                fold->way_rates[c] = 0;
            fold->ways[filled++] = (struct fold_way){class, crossings_count(&over, fold->link_of[class], c)};
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
        fold_live_links_find(&r);
        folds = fold_refine(&r) && fold_check(&r);
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

int32_t fold_message(const struct fold *fold, int from, int to)
{
    const uint32_t *first = &fold->message_first[(size_t)fold->rank_of[from] * N_PEERS];
    int role = 0;

    while (fold->program.ranks[from].peers[role] != to || first[role] == UINT32_MAX)
        role++;
    return fold->connections[first[role]].class;
}
