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

/* Groups that operations name, in the program's order. */
static void open_groups(struct rank *rank)
{
    const struct program *program = rank->program;
    int *members = memory_new((size_t)program->n_ranks, sizeof *members);
    for (int g = 0; g < program->n_groups; g++) {
        const struct rank_group *group = &program->groups[g];
        if (is_inner(group->kind))
            continue;
        for (int i = 0; i < group->n_members; i++)
            members[i] = program->members[group->first_member + i];
        struct communicator *communicator = make(rank, members, group->n_members);
        if (communicator)
            rank->groups[group->kind] = communicator;
    }
    free(members);
}

/* Every group of a kind that has more than one member. */
static void open_kind(struct rank *rank, enum group_kind kind, struct communicator **mine)
{
    const struct layout *layout = rank->layout;
    int n = layout_group_size(layout, kind);
    int *members = memory_new((size_t)n, sizeof *members);
    for (int r = 0; r < rank->program->n_ranks && n > 1; r++) {
        layout_group_members(layout, kind, r, members);
        struct communicator *communicator = members[0] == r ? make(rank, members, n) : NULL;
        if (communicator)
            *mine = communicator;
    }
    free(members);
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

static void open_channels(struct rank *rank)
{
    const struct program *program = rank->program;
    int n = rank->n_tags = count_tags(program), *peers = peers_by_tag(program, n);
    rank->sends = memory_new((size_t)n, sizeof(struct communicator *));
    rank->receives = memory_new((size_t)n, sizeof(struct communicator *));
    for (int tag = 0; tag < n; tag++)
        for (int r = 0; r < program->n_ranks; r++) {
            int peer = peers[program->ranks[r].script * n + tag];
            if (peer < 0)
                continue;
            int members[2] = {r, program->ranks[r].peers[peer]}; /* from, to */
            struct communicator *communicator = make(rank, members, 2);
            if (communicator && communicator->me == 0)
                rank->sends[tag] = communicator;
            else if (communicator)
                rank->receives[tag] = communicator;
        }
    free(peers);
}

void rank_open_communicators(struct rank *rank)
{
    open_groups(rank);
    open_inner_groups(rank);
    open_channels(rank);
}

void rank_close_communicators(struct rank *rank)
{
    free(rank->sends);
    free(rank->receives);
}
