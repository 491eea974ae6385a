#include "tests/sim/step/tiny_program.h"

#include <stdlib.h>

void tiny_script(struct tiny *tiny)
{
    struct program *p = &tiny->program;

    p->scripts = memory_grow(p->scripts, &tiny->script_capacity, (size_t)p->n_scripts + 1, sizeof *p->scripts);
    p->scripts[p->n_scripts++] = (struct script){.first_op = p->n_ops};
}

static uint32_t tiny_op(struct tiny *tiny, struct op op, nanos duration)
{
    struct program *p = &tiny->program;
    struct script *script = &p->scripts[p->n_scripts - 1];

    op.pass = N_PASSES;
    op.micro_batch = op.layer = op.work = -1;
    op.chunk = -1;
    for (int d = 0; d < OP_DEPS; d++)
        op.deps[d] = NO_OP;
    p->ops = memory_grow(p->ops, &tiny->op_capacity, p->n_ops + 1, sizeof *p->ops);
    tiny->costs.ops = memory_grow(tiny->costs.ops, &tiny->cost_capacity, p->n_ops + 1, sizeof *tiny->costs.ops);
    tiny->costs.ops[p->n_ops] = duration;
    p->ops[p->n_ops++] = op;
    return script->n_ops++;
}

uint32_t tiny_compute(struct tiny *tiny, enum stream stream, enum work_class class, nanos duration)
{
    return tiny_op(tiny, (struct op){.kind = OP_COMPUTE, .stream = stream, .class = class}, duration);
}

uint32_t tiny_send(struct tiny *tiny, enum stream stream, enum peer peer, uint32_t tag, nanos duration)
{
    return tiny_op(tiny, (struct op){.kind = OP_SEND, .stream = stream, .class = CLASS_PP_COMM, .role = peer, .tag = tag},
                   duration);
}

uint32_t tiny_receive(struct tiny *tiny, enum stream stream, enum peer peer, uint32_t tag, nanos duration)
{
    return tiny_op(tiny, (struct op){.kind = OP_RECV, .stream = stream, .class = CLASS_PP_COMM, .role = peer, .tag = tag},
                   duration);
}

uint32_t tiny_collective(struct tiny *tiny, enum stream stream, enum group_kind kind, enum work_class class, nanos duration)
{
    return tiny_op(tiny, (struct op){.kind = OP_COLLECTIVE, .stream = stream, .class = class, .role = kind}, duration);
}

void tiny_after(struct tiny *tiny, uint32_t op, uint32_t dependency)
{
    struct program *p = &tiny->program;
    uint32_t *deps = p->ops[p->scripts[p->n_scripts - 1].first_op + op].deps;

    for (int d = 0; d < OP_DEPS; d++)
        if (deps[d] == NO_OP) {
            deps[d] = dependency;
            return;
        }
}

int32_t tiny_rank(struct tiny *tiny, int32_t script, int32_t previous, int32_t next)
{
    struct program *p = &tiny->program;
    struct program_rank rank = {.script = script, .peers = {[PEER_PREVIOUS] = previous, [PEER_NEXT] = next}};

    for (int kind = 0; kind < N_GROUP_KINDS; kind++)
        rank.groups[kind] = -1;
    p->ranks = memory_grow(p->ranks, &tiny->rank_capacity, (size_t)p->n_ranks + 1, sizeof *p->ranks);
    p->ranks[p->n_ranks] = rank;
    return p->n_ranks++;
}

void tiny_group(struct tiny *tiny, enum group_kind kind, const int32_t *members, int n)
{
    struct program *p = &tiny->program;

    p->groups = memory_grow(p->groups, &tiny->group_capacity, (size_t)p->n_groups + 1, sizeof *p->groups);
    p->members = memory_grow(p->members, &tiny->member_capacity, (size_t)(p->n_members + n), sizeof *p->members);
    p->groups[p->n_groups] = (struct rank_group){.kind = kind, .first_member = p->n_members, .n_members = n};
    for (int m = 0; m < n; m++) {
        p->members[p->n_members++] = members[m];
        p->ranks[members[m]].groups[kind] = p->n_groups;
    }
    p->n_groups++;
}

void tiny_free(struct tiny *tiny)
{
    struct program *p = &tiny->program;

    free(p->ops);
    free(p->scripts);
    free(p->ranks);
    free(p->groups);
    free(p->members);
    free(tiny->costs.ops);
    *tiny = (struct tiny){0};
}
