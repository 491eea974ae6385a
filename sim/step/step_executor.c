#include "sim/step/step_executor.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/step/step_executor_internal.h"

/* The end of an operation is known. By data flow it ends at once, otherwise when the clock gets there. */
static void op_end_at(struct executor *x, int32_t rank, uint32_t i, nanos end)
{
    struct actor *actor = &x->actors[rank];

    if (x->engine == NULL) {
        op_complete(x, actor, i, end);
        return;
    }
    actor->busy |= (uint8_t)(1u << actor->ops[i].stream);
    engine_schedule(x->engine, end, EVENT_OP, (uint64_t)rank << 32 | i);
}

/* ---- collectives */

static nanos collective_lasts(const struct executor *x, int32_t rank, const struct step_op *op, uint32_t i)
{
    const struct program_rank *at = &x->program->ranks[rank];
    const struct op *source = &x->tables->scripts[at->script].source[i];
    if (x->network == NULL || source->work >= 0) /* it overlaps a computation: the pair is costed as one */
        return op->duration;
    return x->network->collective(x->network->state, source->collective, op->role, at->groups[op->role], source->bytes);
}

static void collective_enter(struct executor *x, int32_t rank, uint32_t i, nanos ready)
{
    struct actor *actor = &x->actors[rank];
    const struct step_op *op = &actor->ops[i];
    int32_t group = x->program->ranks[rank].groups[op->role];
    struct collective_entry *entry = &x->entries[group];

    actor->busy |= (uint8_t)(1u << op->stream);
    op_know_start(actor, i, ready);
    if (ready > entry->latest)
        entry->latest = ready;
    if (++entry->entered < x->program->groups[group].n_members)
        return;
    if (x->contended) {
        contended_collective_begin(x, rank, i, entry->latest);
        return;
    }
    nanos end = entry->latest + collective_lasts(x, rank, op, i);
    if (x->engine == NULL)
        collective_end(x, group, op->ordinal, entry->latest, end);
    else
        engine_schedule(x->engine, end, EVENT_COLLECTIVE, (uint64_t)group << 32 | op->ordinal);
}

/* ---- messages */

static nanos message_lasts(const struct executor *x, int32_t rank, const struct step_op *op, uint32_t i)
{
    int32_t peer = x->actors[rank].peers[op->role];

    if (x->network == NULL || x->contended)
        return op->duration;
    double bytes = x->tables->scripts[x->program->ranks[rank].script].source[i].bytes;
    return op->kind == OP_SEND ? x->network->message(x->network->state, rank, peer, bytes)
                               : x->network->message(x->network->state, peer, rank, bytes);
}

/* ---- the start of an operation */

/* The compute stream has waited for operation `last`. When steps roll into one another a rank's step begins when its pipeline
 * input is there: waiting for the first one belongs to the step before. */
static void gap_account(struct executor *x, struct actor *actor, uint32_t last, bool first)
{
    struct class_nanos *by = actor_account(x, actor), gap = {{0}};

    if (!x->program->rolling || !first) {
        gap_attribute(actor->ops, actor->times, last, actor->free_at[STREAM_COMPUTE], by);
        return;
    }
    gap_attribute(actor->ops, actor->times, last, actor->free_at[STREAM_COMPUTE], &gap);
    actor->before = gap.ns[CLASS_BUBBLE] + gap.ns[CLASS_PP_COMM];
    gap.ns[CLASS_BUBBLE] = gap.ns[CLASS_PP_COMM] = 0;
    for (int c = 0; c < N_WORK_CLASSES; c++)
        by->ns[c] += gap.ns[c];
}

/* When stream and dependencies let operation i start. *last is the dependency that ended last; NO_OP: the stream itself. Returns
 * false if a dependency has not ended. */
static bool op_ready(const struct actor *actor, const struct step_op *op, nanos *ready, uint32_t *last)
{
    *ready = actor->free_at[op->stream];
    *last = NO_OP;
    for (int d = 0; d < OP_DEPS && op->deps[d] != NO_OP; d++) {
        nanos end = op_end(actor->times, actor->ops, op->deps[d]);
        if (end == 0)
            return false;
        if (end > *ready) {
            *ready = end;
            *last = op->deps[d];
        }
    }
    return true;
}

/* Does the stream have an operation that may begin? */
static inline bool stream_idle(const struct actor *actor, unsigned stream)
{
    return actor->head[stream] != NO_OP && !(actor->busy >> stream & 1u);
}

/* The time that its micro-batch's draw adds to a computation; may be negative. */
static nanos drawn_beyond(const struct executor *x, int32_t rank, size_t i, size_t kind)
{
    const struct step_paces *paces = x->paces;
    int32_t micro_batch = x->program->ops[i].micro_batch;
    if (micro_batch < 0)
        return 0;
    double drawn = paces->draws[paces->first_draw[rank] + micro_batch];
    return llround(drawn * (double)(drawn > 0 ? paces->more[kind] : paces->less[kind]));
}

/* Duration of a computation if ranks differ in speed. */
static nanos paced_duration(const struct executor *x, int32_t rank, const struct step_op *op)
{
    const struct step_paces *paces = x->paces;
    size_t i = (size_t)(op - x->tables->ops), kind = paces->kind != NULL ? paces->kind[i] : i;
    double level = paces->level[rank];
    int below = level < 1 ? 0 : level >= paces->n_levels - 2 ? paces->n_levels - 2 : (int)level;
    const nanos *at = paces->durations + (size_t)below * paces->n_kinds + kind;
    nanos apart = at[paces->n_kinds] - at[0], alone = apart == 0 ? at[0] : at[0] + llround((level - below) * (double)apart);
    nanos duration = op->duration + alone - paces->durations[(size_t)paces->level_of_tables * paces->n_kinds + kind];
    return paces->draws == NULL ? duration : duration + drawn_beyond(x, rank, i, kind);
}

/* Starts the head of an idle stream; returns false if it cannot start now. */
static bool stream_advance(struct executor *x, int32_t rank, unsigned stream)
{
    struct actor *actor = &x->actors[rank];
    uint32_t i = actor->head[stream], last;
    nanos ready;

    const struct step_op *op = &actor->ops[i];
    if (!op_ready(actor, op, &ready, &last))
        return false;
    nanos start = ready, duration = op->duration;
    if (x->paces != NULL && op->kind == OP_COMPUTE)
        duration = paced_duration(x, rank, op);
    if (op->kind == OP_RECV) {
        nanos sent = op_known_start(actor, i);
        if (sent == 0)
            return false;
        start = sent > ready ? sent : ready;
    }
    if (stream == STREAM_COMPUTE && last != NO_OP)
        gap_account(x, actor, last, op->previous == NO_OP);
    if (op->kind == OP_COLLECTIVE) {
        collective_enter(x, rank, i, ready);
        return true;
    }
    if (op->together && x->lockstep->n_blocks > 0) {
        block_enter(x, rank, i, ready);
        return true;
    }
    if (op->kind == OP_SEND || op->kind == OP_RECV) {
        duration = message_lasts(x, rank, op, i);
        if (stream == STREAM_COMPUTE) {
            struct class_nanos *by = actor_account(x, actor);
            by->ns[op->wait_class] += start - ready;
            by->ns[op->class] += x->contended ? 0 : duration;
        }
    }
    op_start_set(actor, i, start);
    if (x->contended && op->kind == OP_SEND) {
        contended_send_begin(x, rank, i, start);
        return true;
    }
    if (x->contended && op->kind == OP_RECV) {
        contended_receive_begin(x, rank, i, start);
        return true;
    }
    if (op->kind == OP_SEND)
        message_deliver(x, rank, i, start);
    op_end_at(x, rank, i, start + duration);
    return true;
}

static void watch_tell(struct executor *x)
{
    enum { ADVANCES_BETWEEN = 1024 }; /* because the watch reads the clock */
    if (x->watch != NULL && x->n_advanced++ % ADVANCES_BETWEEN == 0)
        x->watch->tell(x->watch->context, (double)x->out->events, (double)x->out->n_ops);
}

static void actors_advance(struct executor *x)
{
    while (x->n_queued > 0) {
        watch_tell(x);
        int32_t rank = x->queue[--x->n_queued];
        struct actor *actor = &x->actors[rank];
        actor->queued = false;
        while (actor->runnable) {
            unsigned stream = (unsigned)__builtin_ctz(actor->runnable);
            actor->runnable &= (uint8_t) ~(1u << stream);
            while (stream_idle(actor, stream) && stream_advance(x, rank, stream))
                ;
        }
    }
}

static void event_handle(struct executor *x, const struct event *event)
{
    int32_t who = (int32_t)(event->payload >> 32);
    uint32_t what = (uint32_t)event->payload;

    if (event->priority >= EVENT_NETWORK) {
        contended_event(x, event);
        return;
    }
    if (event->priority == EVENT_COLLECTIVE) {
        collective_end(x, who, what, x->entries[who].latest, event->time);
        return;
    }
    if (x->contended && x->actors[who].ops[what].kind == OP_SEND) {
        contended_message_end(x, who, what, event->time);
        return;
    }
    if (x->lockstep->n_blocks > 0 && x->actors[who].ops[what].together) {
        block_end(x, x->lockstep->block[who], what, event->time);
        return;
    }
    op_complete(x, &x->actors[who], what, event->time);
    actor_wake(x, who, 0);
}

static void executor_run(struct executor *x)
{
    struct event event;

    for (int32_t r = 0; r < x->program->n_ranks; r++) {
        actor_wake(x, r, (1u << N_STREAMS) - 1);
        actors_advance(x);
    }
    while (x->engine != NULL && (!x->contended || contended_go_on(x)) && engine_next(x->engine, &event)) {
        event_handle(x, &event);
        actors_advance(x);
    }
}

/* Executes with prepared tables. `costs` NULL: no breakdown. */
static enum status execute_prepared(struct executor *x, const struct step_costs *costs, struct execution *execution,
                                    struct diags *diags)
{
    struct execution out = {.program = x->program, .fold = x->fold};
    enum status status = STATUS_OK;

    x->out = &out;
    x->ends_only = x->ends_only && x->network == NULL && step_tables_agree(x->tables, x->program);
    x->free_transfer = NO_OP;
    x->blocks = memory_new((size_t)x->lockstep->n_blocks, sizeof *x->blocks);
    actors_create(x);
    executor_run(x);
    if (!x->stopped && actors_finished(x, diags)) {
        out.end = actors_end(x);
        if (costs != NULL)
            breakdown_finish(x, costs);
        *execution = out;
    } else {
        execution_free(&out);
        status = STATUS_FAILED;
    }
    free(x->actors);
    free(x->queue);
    free(x->entries);
    free(x->blocks);
    free(x->accounts);
    free(x->transfers);
    free(x->sends);
    free(x->ends);
    return status;
}

static enum status execute(struct executor *x, const struct step_costs *costs, struct execution *execution, struct diags *diags)
{
    struct step_tables tables;
    enum status status = step_tables_create(x->program, costs->ops, &tables, diags);

    if (status != STATUS_OK)
        return status;
    x->tables = &tables;
    if (x->ends_only)
        step_tables_slots(&tables, x->program);
    status = execute_prepared(x, costs, execution, diags);
    step_tables_free(&tables);
    return status;
}

enum status program_execute(const struct program *program, const struct step_costs *costs, const struct network *network,
                            unsigned how, const struct step_watch *watch, struct execution *execution, struct diags *diags)
{
    bool contended = network != NULL && network->begin_message != NULL;
    struct lockstep lockstep = {0};

    if (contended)
        lockstep_create(program, &lockstep);
    struct executor x = {
        .program = program,
        .network = network != NULL && (contended || !network->uniform) ? network : NULL,
        .watch = watch,
        .contended = contended,
        .lockstep = &lockstep,
        .ends_only = (how & EXECUTE_TOTALS) != 0,
        .engine = (how & EXECUTE_TIME_ORDER) != 0 || contended ? engine_create((size_t)program->n_ranks * N_STREAMS) : NULL};
    enum status status = execute(&x, costs, execution, diags);
    engine_destroy(x.engine);
    lockstep_free(&lockstep);
    return status;
}

enum status program_execute_prepared(const struct program *program, const struct step_tables *tables,
                                     const struct step_paces *paces, unsigned how, struct execution *execution,
                                     struct diags *diags)
{
    struct lockstep nobody = {0};
    bool totals = (how & EXECUTE_TOTALS) != 0;
    struct executor x = {.program = program, .lockstep = &nobody, .tables = tables, .paces = paces, .ends_only = totals};
    return execute_prepared(&x, NULL, execution, diags);
}

enum status program_execute_folded(const struct fold *fold, const struct step_costs *costs, const struct network *network,
                                   const struct step_watch *watch, struct execution *execution, struct diags *diags)
{
    struct executor x = {.program = &fold->program,
                         .fold = fold,
                         .network = network,
                         .watch = watch,
                         .contended = true,
                         .lockstep = &fold->lockstep,
                         .engine = engine_create((size_t)fold->program.n_ranks * N_STREAMS)};
    enum status status = execute(&x, costs, execution, diags);

    engine_destroy(x.engine);
    return status;
}

void execution_free(struct execution *execution)
{
    breakdown_free(&execution->breakdown);
    free(execution->times);
    free(execution->offsets);
    free(execution->strides);
    *execution = (struct execution){0};
}

void execution_record(const struct execution *execution, int rank, struct timeline *timeline)
{
    const struct program *program = execution->program;
    int of = execution->fold != NULL ? execution->fold->rank_class[rank] : rank;
    uint32_t n = program->scripts[program->ranks[of].script].n_ops;

    for (uint32_t i = 0; i < n; i++) {
        const struct op_time *at = execution_time(execution, of, i);
        timeline_record(timeline,
                        (struct span){.rank = rank, .op = i, .start = at->start - STEP_EPOCH, .end = at->end - STEP_EPOCH});
    }
}
