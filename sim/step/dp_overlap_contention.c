#include "sim/step/dp_overlap_contention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/cost/kernel/collective.h"
#include "sim/step/step_executor.h"
#include "sim/step/step_tables.h"

/* Something goes on from start to end; of an exchange what it takes of NICs, and of the speed of passes. */
struct spell {
    nanos start, end;
    double of_nics, of_passes;
};

struct spells {
    struct spell *at; /* in the order of time */
    size_t n;
};

/* The transfers of a stage. Messages: when there are any. */
struct stage_transfers {
    struct spells sends, receives, messages, exchanges;
};

struct contention {
    const struct program *program; /* of one rank a stage, which runs the script of its number */
    const struct machine *machine;
    bool nics_shared;               /* messages leave nodes */
    nanos message_waits;            /* of a message, before its bytes are on their way */
    nanos *alone;                   /* [program.n_ops] */
    double *computes;               /* [program.works.n_items], the share of a work that is not an exchange inside layers */
    struct stage_transfers *stages; /* [program.n_scripts] */
};

bool has_dp_overlap_contention(const struct layout *layout)
{
    return layout->pp > 1 && (layout->features & FEATURE_BIT(DP_OVERLAP)) != 0 &&
           (layout_group_size(layout, GROUP_DP) > 1 || layout_group_size(layout, GROUP_EXPERT_DP) > 1);
}

/* --- which transfers there are */

static struct spell exchange_of(const struct contention *b, const struct op *op)
{
    struct group_span span = b->machine->spans[op->role];
    struct cost cost = collective_cost(b->machine, op->collective, span, op->bytes);
    double alone = cost_seconds(cost);
    if (alone <= 0)
        return (struct spell){0};
    return (struct spell){
        .of_nics = b->nics_shared ? collective_sending_s(b->machine->cluster, op->collective, span, op->bytes, cost) / alone : 0,
        .of_passes = overlap_interference_s(b->machine->cluster, op->collective, span, op->bytes, alone) / alone,
    };
}

static void find_transfers(struct contention *b, int32_t stage)
{
    const struct script *script = &b->program->scripts[stage];
    const struct op *ops = &b->program->ops[script->first_op];
    struct stage_transfers *t = &b->stages[stage];
    size_t sends = 0, receives = 0, exchanges = 0;
    for (uint32_t i = 0; i < script->n_ops; i++) {
        sends += ops[i].kind == OP_SEND;
        receives += ops[i].kind == OP_RECV;
        exchanges += is_replica_exchange(&ops[i]);
    }
    t->sends.at = memory_new(sends, sizeof *t->sends.at);
    t->receives.at = memory_new(receives, sizeof *t->receives.at);
    t->messages.at = memory_new(sends + receives, sizeof *t->messages.at);
    t->exchanges.at = memory_new(exchanges, sizeof *t->exchanges.at);
    for (uint32_t i = 0; i < script->n_ops; i++)
        if (is_replica_exchange(&ops[i]))
            t->exchanges.at[t->exchanges.n++] = exchange_of(b, &ops[i]);
}

/* It hangs on nothing that messages differ in. */
static void find_message_waits(struct contention *b)
{
    uint32_t i = 0;
    while (i < b->program->n_ops && b->program->ops[i].kind != OP_SEND)
        i++;
    if (i == b->program->n_ops)
        return;
    struct cost cost = p2p_cost(b->machine, b->program->ops[i].bytes);
    b->message_waits = nanos_from_seconds(cost.launch_s + cost.latency_s);
}

/* --- when they are under way */

static void spell_add(struct spells *spells, const struct op_time *time)
{
    spells->at[spells->n++] = (struct spell){.start = time->start, .end = time->end};
}

/* The times at which there are any of two streams' messages. */
static void join_spells(const struct spells *a, const struct spells *b, struct spells *joined)
{
    struct spell *last = NULL;
    joined->n = 0;
    for (size_t i = 0, j = 0; i < a->n || j < b->n;) {
        bool first = j == b->n || (i < a->n && a->at[i].start <= b->at[j].start);
        const struct spell *next = first ? &a->at[i++] : &b->at[j++];
        if (last == NULL || next->start > last->end) {
            last = &joined->at[joined->n++];
            *last = *next;
        } else if (next->end > last->end) {
            last->end = next->end;
        }
    }
}

static void time_transfers(struct contention *b, int32_t stage, const struct execution *execution)
{
    const struct script *script = &b->program->scripts[stage];
    struct stage_transfers *t = &b->stages[stage];
    size_t exchanges = 0;
    t->sends.n = t->receives.n = 0;
    for (uint32_t i = 0; i < script->n_ops; i++) {
        const struct op *op = &b->program->ops[script->first_op + i];
        const struct op_time *time = execution_time(execution, stage, i);
        if (op->kind == OP_SEND)
            spell_add(&t->sends, time);
        if (op->kind == OP_RECV)
            spell_add(&t->receives, time);
        if (is_replica_exchange(op)) {
            t->exchanges.at[exchanges].start = time->start;
            t->exchanges.at[exchanges++].end = time->end;
        }
    }
    join_spells(&t->sends, &t->receives, &t->messages);
}

/* --- what they take beside one another */

/* Speed of something that overlaps a spell, of which `share` is slowed. */
typedef double (*speed_function)(const struct spell *spell, double share);

/* The first spell that ends after `time`. */
static size_t first_after(const struct spells *spells, nanos time)
{
    size_t low = 0, high = spells->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spells->at[middle].end <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Duration of something that takes `alone` without overlap, started at `start`. */
static nanos nanos_contended(nanos start, nanos alone, const struct spells *spells, speed_function speed_of, double share)
{
    size_t i = first_after(spells, start);
    if (alone <= 0 || i == spells->n || spells->at[i].start >= start + alone)
        return alone;
    double now = 0, left = (double)alone; /* since the start */
    for (; i < spells->n; i++) {
        double begins = fmax(now, (double)(spells->at[i].start - start)), ends = (double)(spells->at[i].end - start);
        if (left <= begins - now)
            break;
        left -= begins - now;
        double speed = speed_of(&spells->at[i], share);
        if (left <= (ends - begins) * speed)
            return llround(begins + left / speed);
        left -= (ends - begins) * speed;
        now = ends;
    }
    return llround(now + left);
}

/* A NIC is shared fairly, so a message gets at least half. */
static double of_message(const struct spell *exchange, double share)
{
    (void)share;
    return 1 - fmin(0.5, exchange->of_nics);
}

/* Bytes that the exchange sends take twice as long. */
static double of_exchange(const struct spell *message, double share)
{
    (void)message;
    return 1 / (1 + share);
}

static double of_pass(const struct spell *exchange, double share)
{
    double left = 1 - exchange->of_passes;
    return share > 0 ? left / (left + share * exchange->of_passes) : 1;
}

static nanos message_contended(const struct contention *b, int32_t stage, const struct op *op, nanos start, nanos alone)
{
    int32_t peer = b->program->ranks[stage].peers[op->role];
    nanos leaves = start + b->message_waits, bytes = alone - b->message_waits;
    nanos sent = nanos_contended(leaves, bytes, &b->stages[stage].exchanges, of_message, 1);
    nanos received = nanos_contended(leaves, bytes, &b->stages[peer].exchanges, of_message, 1);
    return b->message_waits + nanos_later(sent, received);
}

/* A computation, or a pair of one and an exchange in pieces beside it. */
static bool is_pass(const struct program *program, const struct op *op)
{
    if (op->kind == OP_COMPUTE)
        return op->stream == STREAM_COMPUTE;
    return op->kind == OP_COLLECTIVE && op->work >= 0 && program->works.items[op->work].kind == WORK_OVERLAPPED;
}

/* What the operations of a stage take; returned is by how much that is longer than alone, exchanges apart. */
static nanos ops_contended(const struct contention *b, int32_t stage, const struct execution *execution, nanos *ops)
{
    const struct script *script = &b->program->scripts[stage];
    const struct spells *exchanges = &b->stages[stage].exchanges;
    const struct spell *exchange = exchanges->at;
    nanos longer = 0;
    for (uint32_t i = 0, at = script->first_op; i < script->n_ops; i++, at++) {
        const struct op *op = &b->program->ops[at];
        nanos start = execution_time(execution, stage, i)->start;
        if (is_pass(b->program, op))
            ops[at] = nanos_contended(start, b->alone[at], exchanges, of_pass, op->work >= 0 ? b->computes[op->work] : 1);
        else if (is_replica_exchange(op))
            ops[at] = nanos_contended(start, b->alone[at], &b->stages[stage].messages, of_exchange, (exchange++)->of_nics);
        else if (b->nics_shared && (op->kind == OP_SEND || op->kind == OP_RECV))
            ops[at] = message_contended(b, stage, op, start, b->alone[at]);
        longer += is_replica_exchange(op) ? 0 : ops[at] - b->alone[at];
    }
    return longer;
}

/* Looks what lies beside what as the program is executed; `lost` is what its operations take longer by that, of the fullest
 * stage as a share of the step. */
static enum status look_at_contention(struct contention *b, const struct step_tables *tables, nanos *ops, double *lost,
                                      struct diags *diags)
{
    struct execution execution;
    enum status status = program_execute_prepared(b->program, tables, NULL, 0, &execution, diags);
    if (status != STATUS_OK)
        return status;
    for (int32_t s = 0; s < b->program->n_scripts; s++)
        time_transfers(b, s, &execution);
    *lost = 0;
    for (int32_t s = 0; s < b->program->n_scripts; s++)
        *lost = fmax(*lost, (double)ops_contended(b, s, &execution, ops) / (double)execution.end);
    execution_free(&execution);
    return STATUS_OK;
}

/* First as if nothing were shared; if that changes the step, again with the new times. */
static enum status find_contention(struct contention *b, nanos *ops, struct diags *diags)
{
    static const double little = 0.002;
    static const int rounds = 3;
    struct step_tables tables;
    double lost = 0;
    enum status status = step_tables_create(b->program, b->alone, &tables, diags);
    if (status != STATUS_OK)
        return status;
    status = look_at_contention(b, &tables, ops, &lost, diags);
    bool again = lost > little;
    for (int round = 1; again && status == STATUS_OK && round < rounds; round++) {
        status = step_tables_time(&tables, b->program, ops, NULL, diags);
        if (status == STATUS_OK)
            status = look_at_contention(b, &tables, ops, &lost, diags);
    }
    step_tables_free(&tables);
    return status;
}

static double share_that_computes(const struct class_nanos *by)
{
    nanos all = 0, exchanged = by->ns[CLASS_TP_COMM] + by->ns[CLASS_CP_COMM] + by->ns[CLASS_EP_COMM];
    for (int c = 0; c < N_WORK_CLASSES; c++)
        all += by->ns[c];
    return all > 0 ? 1 - (double)exchanged / (double)all : 1;
}

static void contention_free(struct contention *b)
{
    for (int32_t s = 0; s < b->program->n_scripts; s++) {
        free(b->stages[s].sends.at);
        free(b->stages[s].receives.at);
        free(b->stages[s].messages.at);
        free(b->stages[s].exchanges.at);
    }
    free(b->stages);
    free(b->alone);
    free(b->computes);
}

enum status dp_overlap_contention_time(const struct program *program, const struct machine *machine,
                                       const struct class_nanos *works, nanos *ops, struct diags *diags)
{
    struct program stages;
    program_fold(program, &stages);
    struct contention b = {.program = &stages,
                           .machine = machine,
                           .nics_shared = !stages_share_domain(machine),
                           .alone = memory_new(program->n_ops, sizeof *b.alone),
                           .computes = memory_new((size_t)program->works.n_items, sizeof *b.computes),
                           .stages = memory_new((size_t)program->n_scripts, sizeof *b.stages)};
    memcpy(b.alone, ops, program->n_ops * sizeof *ops);
    for (int32_t w = 0; w < program->works.n_items; w++)
        b.computes[w] = share_that_computes(&works[w]);
    for (int32_t s = 0; s < stages.n_scripts; s++)
        find_transfers(&b, s);
    find_message_waits(&b);
    enum status status = find_contention(&b, ops, diags);
    if (status != STATUS_OK)
        memcpy(ops, b.alone, program->n_ops * sizeof *ops);
    contention_free(&b);
    program_fold_free(&stages);
    return status;
}
