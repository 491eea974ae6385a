/* fold_check.c - the exact check of a division into classes. */
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/order.h"
#include "sim/network/fold_internal.h"

/* Sort the classes of a list. Most are short. */
static void colours_sort(uint32_t *colours, size_t n)
{
    if (n > 32) {
        qsort(colours, n, sizeof *colours, uint32_compare);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        uint32_t colour = colours[i];
        size_t at = i;
        for (; at > 0 && colours[at - 1] > colour; at--)
            colours[at] = colours[at - 1];
        colours[at] = colour;
    }
}

static bool lists_agree(const struct refinement *r, enum part part, const struct colour_lists *lists)
{
    uint32_t *example = memory_new(r->n_colours[part], sizeof *example);
    bool agree = true;

    for (size_t i = r->n[part]; i-- > 0;)
        example[r->colour[part][i]] = (uint32_t)i;
    for (size_t i = 0; i < r->n[part] && !lists->ordered; i++)
        colours_sort(lists->items + lists->first[i], lists->first[i + 1] - lists->first[i]);
    for (size_t i = 0; i < r->n[part] && agree; i++) {
        uint32_t e = example[r->colour[part][i]], n = lists->first[i + 1] - lists->first[i];
        agree = n == lists->first[e + 1] - lists->first[e] &&
                memcmp(lists->items + lists->first[i], lists->items + lists->first[e], n * sizeof *lists->items) == 0;
    }
    free(example);
    return agree;
}

struct colour_lists fold_links_list(const struct refinement *r)
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
        for (int shape = 0; shape < N_COLLECTIVE_SHAPES; shape++) {
            const struct fold_edges *edges = &r->fold->edges[g * N_COLLECTIVE_SHAPES + (size_t)shape];
            for (uint32_t e = edges->first; e < edges->first + edges->n; e++)
                lists.items[filled++] = r->n_colours[PART_RANKS] + r->colour[PART_CONNECTIONS][e];
        }
        lists.first[g + 1] = filled;
    }
    return lists;
}

static void rank_list(const struct refinement *r, size_t i, struct colour_lists *lists, uint32_t *filled)
{
    const struct program_rank *rank = &r->fold->whole->ranks[i];

    lists->items[(*filled)++] = (uint32_t)rank->script;
    for (int p = 0; p < N_PEERS; p++) {
        uint32_t connection = r->fold->message_first[i * N_PEERS + (size_t)p];
        lists->items[(*filled)++] = rank->peers[p] >= 0 ? r->colour[PART_RANKS][rank->peers[p]] + 1 : 0;
        lists->items[(*filled)++] = connection != UINT32_MAX ? r->colour[PART_CONNECTIONS][connection] + 1 : 0;
    }
    for (int kind = 0; kind < N_GROUP_KINDS; kind++)
        lists->items[(*filled)++] = rank->groups[kind] >= 0 ? r->colour[PART_GROUPS][rank->groups[kind]] + 1 : 0;
}

/* What a rank sees: script, peers, messages, groups; and the classes in its block, sorted. */
static struct colour_lists ranks_list(const struct refinement *r)
{
    int32_t block_size = r->blocks.n_blocks > 0 ? r->blocks.first[1] : 0;
    size_t n = r->n[PART_RANKS], each = 1 + 2 * N_PEERS + N_GROUP_KINDS + (size_t)block_size;
    struct colour_lists lists = {
        .first = memory_new(n + 1, sizeof(uint32_t)), .items = memory_new(n * each, sizeof(uint32_t)), .ordered = true};
    uint32_t filled = 0;

    for (size_t i = 0; i < n; i++) {
        rank_list(r, i, &lists, &filled);
        uint32_t *block = lists.items + filled;
        for (int32_t m = 0; m < block_size; m++)
            lists.items[filled++] = r->colour[PART_RANKS][r->blocks.members[r->blocks.first[r->blocks.block[i]] + m]];
        colours_sort(block, (size_t)block_size);
        lists.first[i + 1] = filled;
    }
    return lists;
}

/* The classes of the ends of each connection and of its links. */
static struct colour_lists ways_list(const struct refinement *r)
{
    const struct fold *fold = r->fold;
    struct colour_lists lists = {.first = memory_new(r->n[PART_CONNECTIONS] + 1, sizeof(uint32_t)),
                                 .items = memory_new(fold->n_hops + 2 * fold->n_connections, sizeof(uint32_t)),
                                 .ordered = true};
    uint32_t filled = 0;

    for (size_t i = 0; i < fold->n_connections; i++) {
        const struct fold_connection *c = &fold->connections[i];
        uint32_t ends[2];
        fold_ends_seen(r, c, ends);
        lists.items[filled++] = ends[0];
        lists.items[filled++] = ends[1];
        for (uint32_t h = c->first_hop; h < c->first_hop + c->n_hops; h++)
            if (r->live[fold->hops[h]])
                lists.items[filled++] = r->colour[PART_LINKS][fold->hops[h]];
        lists.first[i + 1] = filled;
    }
    return lists;
}

bool fold_check(const struct refinement *r)
{
    static struct colour_lists (*const list[N_PARTS])(const struct refinement *) = {ranks_list, groups_list, ways_list,
                                                                                    fold_links_list};
    bool agree = true;

    for (int part = 0; part < N_PARTS && agree; part++) {
        struct colour_lists lists = list[part](r);
        agree = lists_agree(r, (enum part)part, &lists);
        free(lists.first);
        free(lists.items);
    }
    return agree;
}
