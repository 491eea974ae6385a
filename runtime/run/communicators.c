/* communicators.c - the communicators of a rank: groups of the program, groups of exchanges inside computations, message
 * channels.
 *
 * All ranks make all communicators in the same order and keep those that they are members of. */
#include <stdlib.h>

#include "model/base/memory.h"
#include "runtime/base/rank.h"

static struct communicator *make(struct rank *rank, const int *members, int n)
{
    struct communicator *communicator = NULL;
    if (rank->status == STATUS_OK)
        rank->status = rank->world->api->communicator_new(rank->world, members, n, &communicator, &rank->diags);
    return communicator;
}

/* Groups whose exchanges are inside of computations: at chunk detail no operation names theirs. */
static bool is_inner(int kind)
{
    return kind == GROUP_TP || kind == GROUP_CP || kind == GROUP_CP_HEADS || kind == GROUP_EP;
}

/* This rank's communicator of groups that share no rank. */
static struct communicator *make_all(struct rank *rank, const struct rank_sets *sets)
{
    const struct comm_api *api = rank->world->api;
    struct communicator *mine = NULL;
    if (api->communicators_new) {
        if (rank->status == STATUS_OK && sets->n > 0)
            rank->status = api->communicators_new(rank->world, sets, &mine, &rank->diags);
        return mine;
    }
    const int *members = sets->members;
    for (int s = 0; s < sets->n; members += sets->sizes[s++]) {
        struct communicator *communicator = make(rank, members, sets->sizes[s]);
        mine = communicator ? communicator : mine;
    }
    return mine;
}

/* Groups of one kind that operations name. */
static void open_named(struct rank *rank, int kind)
{
    const struct program *program = rank->program;
    int *members = memory_new((size_t)program->n_ranks, sizeof *members),
        *sizes = memory_new((size_t)program->n_ranks, sizeof *sizes);
    struct rank_sets sets = {members, sizes, 0};
    for (int g = 0, n = 0; g < program->n_groups; g++) {
        const struct rank_group *group = &program->groups[g];
        if ((int)group->kind != kind)
            continue;
        for (int i = 0; i < group->n_members; i++)
            members[n++] = program->members[group->first_member + i];
        sizes[sets.n++] = group->n_members;
    }
    struct communicator *mine = make_all(rank, &sets);
    if (mine)
        rank->groups[kind] = mine;
    free(members);
    free(sizes);
}

/* Every group of a kind that has more than one member. */
static void open_kind(struct rank *rank, enum group_kind kind, struct communicator **mine)
{
    const struct layout *layout = rank->layout;
    int n = layout_group_size(layout, kind), n_ranks = rank->program->n_ranks;
    int *members = memory_new((size_t)(n_ranks + n), sizeof *members), *sizes = memory_new((size_t)n_ranks, sizeof *sizes);
    struct rank_sets sets = {members, sizes, 0};
    for (int r = 0; r < n_ranks && n > 1; r++) {
        int *group = members + sets.n * n;
        layout_group_members(layout, kind, r, group);
        if (group[0] == r)
            sizes[sets.n++] = n;
    }
    struct communicator *made = make_all(rank, &sets);
    *mine = made ? made : *mine;
    free(members);
    free(sizes);
}

static void open_inner_groups(struct rank *rank)
{
    bool divided = rank->layout->zero && rank->setting->job->optimizer == OPTIMIZER_LAMB;
    bool settles = rank->program->rolling && rank->clip > 0; /* the norm, for which the program has no exchange */
    for (int kind = 0; kind < N_GROUP_KINDS; kind++) {
        bool experts = kind == GROUP_EXPERT_DP && rank->shape.moe.experts;
        if (kind == GROUP_EP && !rank->shape.moe.experts)
            continue;
        if (is_inner(kind))
            open_kind(rank, (enum group_kind)kind, &rank->groups[kind]);
        if (is_inner(kind) || (divided && (kind == GROUP_DP || experts)) || (settles && kind == GROUP_MODEL))
            open_kind(rank, (enum group_kind)kind, &rank->side[kind]);
    }
}

/* --- channels: one per sender, receiver and tag */

static int count_tags(const struct program *program)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < program->n_ops; i++)
        if (program->ops[i].kind == OP_SEND && program->ops[i].tag >= n)
            n = program->ops[i].tag + 1;
    return (int)n;
}

/* peers[script][tag]: enum peer that a script's messages with a tag go to, -1: it sends none. */
static int *peers_by_tag(const struct program *program, int n_tags)
{
    int *peers = memory_new((size_t)program->n_scripts * (size_t)n_tags, sizeof *peers);
    for (int i = 0; i < program->n_scripts * n_tags; i++)
        peers[i] = -1;
    for (int s = 0; s < program->n_scripts; s++)
        for (uint32_t i = 0; i < program->scripts[s].n_ops; i++) {
            const struct op *op = &program->ops[program->scripts[s].first_op + i];
            if (op->kind == OP_SEND)
                peers[s * n_tags + (int)op->tag] = op->role;
        }
    return peers;
}

/* Opens channels with a tag that share no rank, of those that are not opened yet; false: there were none. peers[rank]: -1: none;
 * becomes -1. */
static bool open_apart(struct rank *rank, int tag, int *peers)
{
    const int n_ranks = rank->program->n_ranks;
    int *members = memory_new((size_t)n_ranks, sizeof *members), *sizes = memory_new((size_t)n_ranks, sizeof *sizes);
    bool *used = memory_new((size_t)n_ranks, sizeof *used);
    struct rank_sets sets = {members, sizes, 0};
    for (int r = 0; r < n_ranks; r++) {
        const int peer = peers[r];
        if (peer < 0 || used[r] || used[peer])
            continue;
        used[r] = used[peer] = true;
        members[2 * sets.n] = r, members[2 * sets.n + 1] = peer; /* from, to */
        sizes[sets.n++] = 2;
        peers[r] = -1;
    }
    const bool any = sets.n > 0;
    struct communicator *mine = make_all(rank, &sets);
    if (mine)
        *(mine->me == 0 ? &rank->sends[tag] : &rank->receives[tag]) = mine;
    free(members);
    free(sizes);
    free(used);
    return any;
}

static void open_channels(struct rank *rank)
{
    const struct program *program = rank->program;
    int n = rank->n_tags = count_tags(program), *by_tag = peers_by_tag(program, n);
    int *peers = memory_new((size_t)program->n_ranks, sizeof *peers);
    rank->sends = memory_new((size_t)n, sizeof(struct communicator *));
    rank->receives = memory_new((size_t)n, sizeof(struct communicator *));
    for (int tag = 0; tag < n; tag++) {
        for (int r = 0; r < program->n_ranks; r++) {
            const int peer = by_tag[program->ranks[r].script * n + tag];
            peers[r] = peer < 0 ? -1 : program->ranks[r].peers[peer];
        }
        while (open_apart(rank, tag, peers))
            ;
    }
    free(peers);
    free(by_tag);
}

void rank_open_communicators(struct rank *rank)
{
    for (int kind = 0; kind < N_GROUP_KINDS; kind++)
        if (!is_inner(kind))
            open_named(rank, kind);
    open_inner_groups(rank);
    open_channels(rank);
}

void rank_close_communicators(struct rank *rank)
{
    free(rank->sends);
    free(rank->receives);
}
