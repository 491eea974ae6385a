/*
 * step_executor_actors.c - ranks before the first event and after the last, and where several of them end a collective together.
 */
#include "model/base/memory.h"
#include "sim/step/step_executor_internal.h"

static void times_create(struct executor *x)
{
    const struct program *program = x->program;
    struct execution *out = x->out;
    int32_t together = x->contended ? RANKS_TOGETHER : 1;
    size_t n_times = 0;

    out->offsets = memory_new((size_t)program->n_ranks, sizeof *out->offsets);
    out->strides = memory_new((size_t)program->n_ranks, sizeof *out->strides);
    for (int32_t r = 0, n; r < program->n_ranks; r += n) {
        int32_t script = program->ranks[r].script;
        for (n = 1; n < together && r + n < program->n_ranks && program->ranks[r + n].script == script; n++)
            ;
        for (int32_t k = 0; k < n; k++) {
            out->offsets[r + k] = n_times + (size_t)k;
            out->strides[r + k] = (uint8_t)n;
        }
        out->n_ops += (uint64_t)n * program->scripts[script].n_ops;
        n_times += (size_t)n * (x->ends_only ? x->tables->scripts[script].n_slots : program->scripts[script].n_ops);
    }
    if (x->ends_only)
        x->ends = memory_new(n_times, sizeof *x->ends);
    else
        out->times = memory_new(n_times, sizeof *out->times);
}

static struct op_times times_of(const struct executor *x, int32_t rank)
{
    if (x->ends_only)
        return (struct op_times){.ends = x->ends + x->out->offsets[rank]};
    return execution_times(x->out, rank);
}

int32_t executor_stage(const struct executor *x, int32_t rank)
{
    if (x->fold != NULL)
        return program_rank_place(x->fold->whole, x->fold->rank_of[rank]).at.pp;
    return program_rank_place(x->program, rank).at.pp;
}

void actors_create(struct executor *x)
{
    const struct program *program = x->program;
    struct execution *out = x->out;

    times_create(x);
    out->breakdown.n_stages = program_stages(x->fold != NULL ? x->fold->whole : program);
    out->breakdown.stages = memory_new((size_t)out->breakdown.n_stages, sizeof *out->breakdown.stages);
    x->accounts = memory_new((size_t)(x->fold != NULL ? program->n_ranks : out->breakdown.n_stages), sizeof *x->accounts);
    x->actors = memory_new((size_t)program->n_ranks, sizeof *x->actors);
    x->queue = memory_new((size_t)program->n_ranks, sizeof *x->queue);
    x->entries = memory_new((size_t)program->n_groups, sizeof *x->entries);
    for (int32_t r = 0; r < program->n_ranks; r++) {
        const struct step_script *script = &x->tables->scripts[program->ranks[r].script];
        struct actor *actor = &x->actors[r];
        *actor = (struct actor){.ops = script->ops,
                                .times = times_of(x, r),
                                .match = x->tables->neighbourhoods[x->tables->rank_neighbourhood[r]].match,
                                .account = x->fold != NULL ? r : executor_stage(x, r)};
        for (int p = 0; p < N_PEERS; p++)
            actor->peers[p] = program->ranks[r].peers[p];
        for (int s = 0; s < N_STREAMS; s++) {
            actor->free_at[s] = STEP_EPOCH;
            actor->head[s] = script->first[s];
        }
    }
}

void collective_end(struct executor *x, int32_t group, uint32_t ordinal, nanos start, nanos end)
{
    const struct rank_group *members = &x->program->groups[group];

    x->entries[group] = (struct collective_entry){0};
    for (int32_t m = 0; m < members->n_members; m++) {
        int32_t rank = x->program->members[members->first_member + m];
        struct actor *actor = &x->actors[rank];
        uint32_t i = x->tables->scripts[x->program->ranks[rank].script].collectives[members->kind][ordinal];
        const struct step_op *op = &actor->ops[i];

        if (op->stream == STREAM_COMPUTE) {
            struct class_nanos *by = actor_account(x, actor);
            by->ns[op->wait_class] += start - op_known_start(actor, i);
            by->ns[op->class] += end - start;
        }
        op_start_set(actor, i, start);
        op_complete(x, actor, i, end);
        actor_wake(x, rank, 0);
    }
}

bool actors_finished(const struct executor *x, struct diags *diags)
{
    size_t before = diags->n_errors;

    for (int32_t r = 0; r < x->program->n_ranks && diags->n_errors - before < 8; r++)
        for (int s = 0; s < N_STREAMS; s++) {
            uint32_t i = x->actors[r].head[s];
            if (i == NO_OP)
                continue;
            static const char *const kinds[N_OP_KINDS] = {"computation", "send", "receive", "collective", "join"};
            const struct op *op = &x->tables->scripts[x->program->ranks[r].script].source[i];
            diag_error(diags, PLACE_NONE, "the program waits in a circle: rank %d never ends %s %u (micro-batch %d, chunk %d)", r,
                       kinds[op->kind], i, op->micro_batch, op->chunk);
        }
    return diags->n_errors == before;
}

int actor_last_stream(const struct actor *actor)
{
    int last = STREAM_COMPUTE;

    for (int s = 0; s < N_STREAMS; s++)
        if (actor->free_at[s] > actor->free_at[last])
            last = s;
    return last;
}

nanos actor_span(const struct actor *actor)
{
    return actor->free_at[actor_last_stream(actor)] - STEP_EPOCH - actor->before;
}

nanos actors_end(const struct executor *x)
{
    nanos end = 0;

    for (int32_t r = 0; r < x->program->n_ranks; r++)
        end = nanos_later(end, actor_span(&x->actors[r]));
    return end;
}
