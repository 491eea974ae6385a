/* fold_refine.c - split classes until all members of a class see the same. */
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/network/fold_internal.h"

/* ---- numbering */

/* Classes of equal hashes, numbered in order of appearance. */
static void colours_number(struct refinement *r, enum part part)
{
    const uint64_t *seen = r->seen[part];
    uint32_t *colour = r->colour[part], *first = r->table, n_colours = 0;
    uint64_t *keys = (uint64_t *)(void *)(r->table + r->table_size);
    size_t size = 16;

    while (size < 2 * r->n[part])
        size *= 2;
    memset(first, 0xff, size * sizeof *first);
    for (size_t i = 0; i < r->n[part]; i++) {
        size_t slot = (size_t)(hash_mix(seen[i]) & (size - 1));
        while (first[slot] != UINT32_MAX && keys[slot] != seen[i])
            slot = (slot + 1) & (size - 1);
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

void fold_live_links_find(struct refinement *r)
{
    const struct fold *fold = r->fold;
    double *most = memory_new(r->n[PART_LINKS], sizeof *most);
    int messages = messages_at_once(fold->whole);

    for (size_t i = 0; i < fold->n_connections; i++) {
        const struct fold_connection *c = &fold->connections[i];
        double rate = c->rate * (c->owner == N_GROUP_KINDS ? messages : 1);
        for (uint32_t h = c->first_hop; h < c->first_hop + c->n_hops; h++)
            most[fold->hops[h]] += rate;
    }
    for (size_t l = 0; l < r->n[PART_LINKS]; l++)
        r->live[l] = most[l] > r->network->rates[l] * (1 + 1e-12);
    for (int i = 0; i < r->network->options->n_events; i++) /* changing links are distinguished */
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

/* What a message costs besides its way: whether its ends are in one domain. */
static bool in_one_domain(const struct refinement *r, const struct fold_connection *c)
{
    const struct network_flow_options *options = r->network->options;
    int domain = fabric_domain_gpus(options->fabric);
    int from = options->placement != NULL ? options->placement[c->from] : c->from;
    int to = options->placement != NULL ? options->placement[c->to] : c->to;

    return from == to || (domain > 1 && from / domain == to / domain);
}

static void begin_connections(struct refinement *r)
{
    for (size_t i = 0; i < r->n[PART_CONNECTIONS]; i++) {
        const struct fold_connection *c = &r->fold->connections[i];
        uint64_t seen = fold_then(c->owner, bits_of(c->rate));
        r->seen[PART_CONNECTIONS][i] = fold_then(seen, c->owner == N_GROUP_KINDS && in_one_domain(r, c));
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
        struct group_span span = network_flow_span(options->fabric, r->network->machine, group->kind, gpus, group->n_members);
        const uint64_t words[] = {(uint64_t)span.ranks,   (uint64_t)span.ranks_per_domain,
                                  (uint64_t)span.domains, (uint64_t)span.leaves,
                                  (uint64_t)span.pods,    (uint64_t)span.sharing};
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
    uint32_t connection = r->fold->message_first[rank * N_PEERS + (size_t)role];

    return connection != UINT32_MAX ? r->colour[PART_CONNECTIONS][connection] + UINT64_C(1) : 0;
}

static uint64_t block_seen(const struct refinement *r, size_t rank)
{
    uint64_t sum = 0;

    if (r->blocks.n_blocks == 0)
        return 0;
    int32_t block = r->blocks.block[rank];
    for (int32_t m = r->blocks.first[block]; m < r->blocks.first[block + 1]; m++)
        sum += hash_mix(r->colour[PART_RANKS][r->blocks.members[m]] + UINT64_C(1));
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
            members += hash_mix(r->colour[PART_RANKS][whole->members[group->first_member + m]] + UINT64_C(1));
        seen = fold_then(seen, members);
        for (int shape = 0; shape < N_COLLECTIVE_SHAPES; shape++) {
            const struct fold_edges *edges = &r->fold->edges[g * N_COLLECTIVE_SHAPES + (size_t)shape];
            uint64_t sum = 0;
            for (uint32_t e = edges->first; e < edges->first + edges->n; e++)
                sum += hash_mix(r->colour[PART_CONNECTIONS][e] + UINT64_C(1));
            seen = fold_then(seen, sum);
        }
        r->seen[PART_GROUPS][g] = seen;
    }
}

void fold_ends_seen(const struct refinement *r, const struct fold_connection *c, uint32_t ends[2])
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
        fold_ends_seen(r, c, ends);
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
        seen[l] = hash_mix(r->colour[PART_LINKS][l]);
    for (size_t i = 0; i < fold->n_connections; i++) {
        const struct fold_connection *c = &fold->connections[i];
        uint64_t crossed = hash_mix(r->colour[PART_CONNECTIONS][i] + UINT64_C(0x517CC1B727220A95));
        for (uint32_t h = c->first_hop; h < c->first_hop + c->n_hops; h++)
            if (r->live[fold->hops[h]])
                seen[fold->hops[h]] += crossed;
    }
}

/* One part looks at the others and splits; true: it did. */
static bool part_refine(struct refinement *r, enum part part)
{
    static void (*const look[N_PARTS])(struct refinement *) = {look_ranks, look_groups, look_connections, look_links};
    uint32_t before = r->n_colours[part];

    look[part](r);
    colours_number(r, part);
    return r->n_colours[part] != before;
}

/* A part looks again only when one that it sees has split since it looked. */
bool fold_refine(struct refinement *r)
{
    enum { RANKS = 1u << PART_RANKS, GROUPS = 1u << PART_GROUPS, CONNECTIONS = 1u << PART_CONNECTIONS, LINKS = 1u << PART_LINKS };
    static const unsigned seen_by[N_PARTS] = {RANKS | GROUPS | CONNECTIONS, RANKS | CONNECTIONS, RANKS | GROUPS | LINKS,
                                              CONNECTIONS};
    static const enum part order[N_PARTS] = {PART_CONNECTIONS, PART_LINKS, PART_GROUPS, PART_RANKS};
    unsigned stale = RANKS | GROUPS | CONNECTIONS | LINKS;

    refinement_begin(r);
    for (int k = 0; stale != 0; k = (k + 1) % N_PARTS) {
        if (!(stale >> order[k] & 1u))
            continue;
        stale &= ~(1u << order[k]);
        if (part_refine(r, order[k]))
            stale |= seen_by[order[k]];
        if (2 * (size_t)r->n_colours[PART_RANKS] > r->n[PART_RANKS])
            return false;
    }
    return true;
}
