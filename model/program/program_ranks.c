#include "model/program/emit.h"

#include <stdlib.h>

struct group_list {
    struct program *program;
    size_t group_capacity, member_capacity;
};

/* Bit k: the script has a collective over a group of kind k. */
static uint32_t kinds_of_script(const struct program *program, int32_t script)
{
    const struct script *s = &program->scripts[script];
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < s->n_ops; i++) {
        const struct op *op = &program->ops[s->first_op + i];
        kinds |= op->kind == OP_COLLECTIVE ? 1u << op->role : 0;
    }
    return kinds;
}

static void add_group(struct group_list *list, enum group_kind kind, const int *members, int n)
{
    struct program *program = list->program;
    size_t needed = (size_t)program->n_members + (size_t)n;
    program->groups = memory_grow(program->groups, &list->group_capacity, (size_t)program->n_groups + 1, sizeof *program->groups);
    program->members = memory_grow(program->members, &list->member_capacity, needed, sizeof *program->members);
    for (int i = 0; i < n; i++) {
        program->ranks[members[i]].groups[kind] = program->n_groups;
        program->members[program->n_members + i] = members[i];
    }
    program->groups[program->n_groups++] = (struct rank_group){.kind = kind, .first_member = program->n_members, .n_members = n};
    program->n_members += n;
}

/* The members of a rank's group among the ranks of the program; folded, a stage is one rank. */
static int members_of(const struct program *program, enum group_kind kind, int rank, bool folded, int *members)
{
    if (!folded) {
        layout_group_members(&program->layout, kind, rank, members);
        return layout_group_size(&program->layout, kind);
    }
    int pp = program->layout.pp, n = 0;
    if (kind == GROUP_PP || kind == GROUP_MODEL) {
        for (; n < pp; n++)
            members[n] = n;
    } else if (kind == GROUP_EMBEDDING) {
        members[n++] = 0;
        if (pp > 1)
            members[n++] = pp - 1;
    } else if (kind == GROUP_MIRROR) {
        members[n++] = rank < pp - 1 - rank ? rank : pp - 1 - rank;
        members[n++] = pp - 1 - members[0];
    } else {
        members[n++] = rank;
    }
    return n;
}

static void build_groups(struct program *program, bool folded)
{
    struct group_list list = {.program = program};
    uint32_t *kinds = memory_new((size_t)program->n_scripts, sizeof *kinds);
    int *members = memory_new((size_t)program->n_ranks, sizeof *members);
    for (int32_t s = 0; s < program->n_scripts; s++)
        kinds[s] = kinds_of_script(program, s);
    for (int kind = 0; kind < N_GROUP_KINDS; kind++) {
        for (int32_t r = 0; r < program->n_ranks; r++) {
            const struct program_rank *rank = &program->ranks[r];
            if (rank->groups[kind] >= 0 || !(kinds[rank->script] >> kind & 1))
                continue;
            int n = members_of(program, (enum group_kind)kind, r, folded, members);
            add_group(&list, (enum group_kind)kind, members, n);
        }
    }
    free(members);
    free(kinds);
}

void program_ranks_build(struct program *program, bool folded)
{
    const struct layout *layout = &program->layout;
    int stage_ranks = folded ? 1 : layout->tp * layout->cp * layout->dp, n = stage_ranks * layout->pp;
    program->ranks = memory_new((size_t)n, sizeof *program->ranks);
    program->n_ranks = n;
    for (int r = 0; r < n; r++) {
        struct program_rank *rank = &program->ranks[r];
        rank->script = r / stage_ranks;
        rank->peers[PEER_PREVIOUS] = layout->pp > 1 ? (r + n - stage_ranks) % n : -1;
        rank->peers[PEER_NEXT] = layout->pp > 1 ? (r + stage_ranks) % n : -1;
        for (int kind = 0; kind < N_GROUP_KINDS; kind++)
            rank->groups[kind] = -1;
    }
    build_groups(program, folded);
}
