#include "reference_executor.h"

#include <stdlib.h>

#include "model/base/memory.h"

static const struct op *ops_of(const struct program *program, int rank, uint32_t *n)
{
    const struct script *script = &program->scripts[program->ranks[rank].script];
    *n = script->n_ops;
    return program->ops + script->first_op;
}

static int64_t later(int64_t a, int64_t b)
{
    return a < 0 || b < 0 ? -1 : a > b ? a : b;
}

/* How many messages of this kind, tag and peer stand before operation i. */
static int ordinal_of_message(const struct op *ops, uint32_t i, const int32_t *peers)
{
    int ordinal = 0;
    for (uint32_t j = 0; j < i; j++)
        ordinal += ops[j].kind == ops[i].kind && ops[j].tag == ops[i].tag && peers[ops[j].role] == peers[ops[i].role];
    return ordinal;
}

/* When the send that matches receive i of `rank` has ended. */
static int64_t sent_at(const struct reference_run *run, const struct program *program, int rank, uint32_t i)
{
    uint32_t n, m;
    const struct op *mine = ops_of(program, rank, &n);
    int sender = program->ranks[rank].peers[mine[i].role];
    const struct op *its = ops_of(program, sender, &m);
    int wanted = ordinal_of_message(mine, i, program->ranks[rank].peers);
    for (uint32_t j = 0; j < m; j++)
        if (its[j].kind == OP_SEND && its[j].tag == mine[i].tag && program->ranks[sender].peers[its[j].role] == rank &&
            wanted-- == 0)
            return run->end[sender][j];
    return -1;
}

/* When operation i of `rank` could start if it were alone: its stream and its dependencies. */
static int64_t ready_at(const struct reference_run *run, const struct op *ops, int rank, uint32_t i)
{
    int64_t ready = 0;
    for (uint32_t j = i; j-- > 0;) {
        if (ops[j].stream == ops[i].stream) {
            ready = run->end[rank][j];
            break;
        }
    }
    for (int d = 0; d < OP_DEPS; d++)
        if (ops[i].deps[d] != NO_OP)
            ready = later(ready, run->end[rank][ops[i].deps[d]]);
    return ready;
}

static int64_t entered_at(const struct reference_run *run, const struct program *program, int rank, uint32_t i)
{
    uint32_t n;
    const struct op *ops = ops_of(program, rank, &n);
    uint8_t kind = ops[i].role;
    const struct rank_group *group = &program->groups[program->ranks[rank].groups[kind]];
    int ordinal = 0;
    for (uint32_t j = 0; j < i; j++)
        ordinal += ops[j].kind == OP_COLLECTIVE && ops[j].role == kind;
    int64_t all = 0;
    for (int m = 0; m < group->n_members; m++) {
        int member = program->members[group->first_member + m], left = ordinal;
        const struct op *its = ops_of(program, member, &n);
        int64_t its_ready = -1;
        for (uint32_t j = 0; j < n; j++) {
            if (its[j].kind == OP_COLLECTIVE && its[j].role == kind && left-- == 0) {
                its_ready = ready_at(run, its, member, j);
                break;
            }
        }
        all = later(all, its_ready);
    }
    return all;
}

static int64_t start_of(const struct reference_run *run, const struct program *program, int rank, uint32_t i)
{
    uint32_t n;
    const struct op *ops = ops_of(program, rank, &n);
    if (ops[i].kind == OP_COLLECTIVE)
        return entered_at(run, program, rank, i);
    int64_t start = ready_at(run, ops, rank, i);
    return ops[i].kind == OP_RECV && start >= 0 ? later(start, sent_at(run, program, rank, i)) : start;
}

struct reference_run reference_execute(const struct program *program, const int64_t pass_time[N_PASSES])
{
    struct reference_run run = {.n_ranks = program->n_ranks};
    run.start = memory_new((size_t)program->n_ranks, sizeof *run.start);
    run.end = memory_new((size_t)program->n_ranks, sizeof *run.end);
    for (int r = 0; r < program->n_ranks; r++) {
        uint32_t n;
        ops_of(program, r, &n);
        run.start[r] = memory_new(n, sizeof **run.start);
        run.end[r] = memory_new(n, sizeof **run.end);
        for (uint32_t i = 0; i < n; i++)
            run.start[r][i] = run.end[r][i] = -1;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int r = 0; r < program->n_ranks; r++) {
            uint32_t n;
            const struct op *ops = ops_of(program, r, &n);
            for (uint32_t i = 0; i < n; i++) {
                if (run.end[r][i] >= 0)
                    continue;
                int64_t start = start_of(&run, program, r, i);
                if (start < 0)
                    continue;
                run.start[r][i] = start;
                run.end[r][i] = start + (ops[i].kind == OP_COMPUTE && ops[i].pass < N_PASSES ? pass_time[ops[i].pass] : 0);
                run.makespan = run.end[r][i] > run.makespan ? run.end[r][i] : run.makespan;
                changed = true;
            }
        }
    }
    return run;
}

void reference_free(struct reference_run *run)
{
    for (int r = 0; r < run->n_ranks; r++) {
        free(run->start[r]);
        free(run->end[r]);
    }
    free(run->start);
    free(run->end);
}

int64_t reference_busy_span(const struct reference_run *run, const struct program *program, int rank)
{
    uint32_t n;
    const struct op *ops = ops_of(program, rank, &n);
    int64_t first = -1, last = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (ops[i].kind != OP_COMPUTE || ops[i].pass >= N_PASSES)
            continue;
        first = first < 0 ? run->start[rank][i] : first;
        last = run->end[rank][i];
    }
    return last - first;
}
