#include "sim/step/step_costs.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/hash.h"
#include "model/base/memory.h"
#include "model/cost/work/documents.h"

/* Transfers already costed. A program has few distinct ones, and they come in runs. */
enum { KNOWN_BITS = 8, N_KNOWN = 1 << KNOWN_BITS };

struct known_transfer {
    double bytes, interference_s;
    nanos time;
    uint8_t kind, collective, role;
    bool timed, interferes; /* time, interference_s are known */
};

void class_nanos_split(nanos total, const struct cost_by_class *by, enum work_class fallback, struct class_nanos *split)
{
    double whole = cost_by_class_total(by);
    nanos left = total;
    int largest = (int)fallback;

    *split = (struct class_nanos){{0}};
    if (whole > 0) {
        largest = 0;
        for (int c = 0; c < N_WORK_CLASSES; c++) {
            split->ns[c] = (nanos)(by->s[c] / whole * (double)total);
            left -= split->ns[c];
            if (by->s[c] > by->s[largest])
                largest = c;
        }
    }
    split->ns[largest] += left;
}

/* Works already costed: each is timed at its first use. */
struct known_works {
    nanos *total;
    bool *timed;
};

static nanos work_time(const struct program *program, const struct machine *machine, struct step_costs *costs,
                       struct known_works *known, const struct op *op)
{
    struct cost_by_class by = {{0}};
    int32_t work = op->work;

    if (known->timed[work])
        return known->total[work];
    known->timed[work] = true;
    known->total[work] = nanos_from_seconds(cost_seconds(work_cost(machine, &program->works, work)));
    work_cost_by_class(machine, &program->works, work, &by);
    class_nanos_split(known->total[work], &by, op->class, &costs->works[work]);
    costs->flops[work] = work_flops(&program->works, work);
    return known->total[work];
}

/* Sums over children; a work's children come before it in the table. */
static void causal_flops_sum(const struct work_table *table, double *causal)
{
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct work *work = &table->items[i];
        if (work->kind == WORK_ATTENTION || work->kind == WORK_ATTENTION_BACKWARD)
            causal[i] = work->flops;
        if (work->kind == WORK_PART)
            causal[i] = causal[table->children[work->sequence.first_child]];
        if (work->kind != WORK_SEQUENCE && work->kind != WORK_OVERLAPPED)
            continue;
        for (int32_t c = 0; c < work->sequence.n_children; c++)
            causal[i] += causal[table->children[work->sequence.first_child + c]];
        causal[i] *= work->kind == WORK_SEQUENCE ? work->sequence.repeat : 1;
    }
}

/* The place of a transfer in the cache, used or free. */
static struct known_transfer *transfer_slot(const struct op *op, struct known_transfer *known)
{
    uint64_t bits;
    memcpy(&bits, &op->bytes, sizeof bits);
    bits = (bits ^ op->kind ^ (uint64_t)op->collective << 2 ^ (uint64_t)op->role << 5) * HASH_GOLDEN;
    struct known_transfer *slot = &known[bits >> (64 - KNOWN_BITS)];
    bool same = memcmp(&slot->bytes, &op->bytes, sizeof op->bytes) == 0 && slot->kind == op->kind &&
                slot->collective == op->collective && slot->role == op->role;

    if (!same)
        *slot = (struct known_transfer){.bytes = op->bytes, .kind = op->kind, .collective = op->collective, .role = op->role};
    return slot;
}

static nanos transfer_time(const struct op *op, const struct network *network, struct known_transfer *known)
{
    struct known_transfer *slot = transfer_slot(op, known);

    if (!slot->timed)
        slot->time = op->kind == OP_COLLECTIVE ? network->collective(network->state, op->collective, op->role, -1, op->bytes)
                                               : network->message(network->state, -1, -1, op->bytes);
    slot->timed = true;
    return slot->time;
}

/* ---- interference */

bool is_replica_exchange(const struct op *op)
{
    return op->kind == OP_COLLECTIVE && op->class == CLASS_DP_COMM &&
           (op->role == GROUP_DP || op->role == GROUP_EXPERT_DP || op->role == GROUP_REPLICA);
}

static double interference_of(const struct machine *machine, const struct op *op, struct known_transfer *known)
{
    struct known_transfer *slot = transfer_slot(op, known);

    if (!slot->interferes) {
        struct group_span span = machine->spans[op->role];
        double alone = cost_seconds(collective_cost(machine, op->collective, span, op->bytes));
        slot->interference_s = overlap_interference_s(machine->cluster, op->collective, span, op->bytes, alone);
    }
    slot->interferes = true;
    return slot->interference_s;
}

/* The last exchange between replicas that an operation waits for, or `before`. */
static uint32_t awaited_exchange(const struct op *ops, const struct op *op, uint32_t before)
{
    for (int d = 0; d < OP_DEPS && op->deps[d] != NO_OP; d++)
        if (ops[op->deps[d]].stream == STREAM_DP && (before == NO_OP || op->deps[d] > before))
            before = op->deps[d];
    return before;
}

/* Is it a kernel whose pair is timed as a whole? The exchange that follows would hide any longer kernel. */
static bool has_exchange_beside(const struct op *ops, uint32_t n, uint32_t i)
{
    return i + 1 < n && ops[i + 1].kind == OP_COLLECTIVE && ops[i + 1].work >= 0;
}

static void script_add_interference(const struct program *program, const struct machine *machine, const struct script *script,
                                    struct known_transfer *known, nanos *costs)
{
    const struct op *ops = &program->ops[script->first_op];
    uint32_t issued = 0, awaited = NO_OP; /* since the last computation */

    for (uint32_t i = 0; i < script->n_ops; i++) {
        if (ops[i].stream != STREAM_COMPUTE)
            continue;
        awaited = awaited_exchange(ops, &ops[i], awaited);
        if (ops[i].kind != OP_COMPUTE || ops[i].work < 0 || has_exchange_beside(ops, script->n_ops, i))
            continue;
        double seconds = 0;
        for (; issued < i; issued++)
            if (is_replica_exchange(&ops[issued]) && (awaited == NO_OP || issued > awaited))
                seconds += interference_of(machine, &ops[issued], known);
        costs[i] += nanos_from_seconds(seconds);
    }
}

void step_costs_create(const struct program *program, const struct machine *machine, const struct network *network,
                       struct step_costs *costs)
{
    struct known_transfer transfers[N_KNOWN] = {{0}};
    size_t n_works = (size_t)program->works.n_items;
    struct known_works works = {memory_new(n_works, sizeof(nanos)), memory_new(n_works, sizeof(bool))};
    struct documents_memo walks = {0};
    struct machine keeping = *machine;
    keeping.walks = &walks;

    costs->ops = memory_new(program->n_ops, sizeof *costs->ops);
    costs->works = memory_new(n_works, sizeof *costs->works);
    costs->flops = memory_new(n_works, sizeof *costs->flops);
    costs->causal_flops = memory_new(n_works, sizeof *costs->causal_flops);
    causal_flops_sum(&program->works, costs->causal_flops);
    for (uint32_t i = 0; i < program->n_ops; i++) {
        const struct op *op = &program->ops[i];
        if (op->work >= 0) /* a computation, or an exchange beside one */
            costs->ops[i] = work_time(program, &keeping, costs, &works, op);
        else if (op->kind != OP_JOIN && op->kind != OP_COMPUTE && network->uniform)
            costs->ops[i] = transfer_time(op, network, transfers);
    }
    for (int32_t s = 0; s < program->n_scripts && program->layout.pp == 1; s++)
        script_add_interference(program, machine, &program->scripts[s], transfers, &costs->ops[program->scripts[s].first_op]);
    free(works.total);
    free(works.timed);
}

void step_costs_free(struct step_costs *costs)
{
    free(costs->ops);
    free(costs->works);
    free(costs->flops);
    free(costs->causal_flops);
    *costs = (struct step_costs){0};
}

struct executed_flops step_costs_flops(const struct program *program, const struct step_costs *costs, double replicas)
{
    double *ranks = memory_new((size_t)program->n_scripts, sizeof *ranks);
    struct executed_flops all = {0, 0};

    for (int r = 0; r < program->n_ranks; r++)
        ranks[program->ranks[r].script] += replicas;
    for (int s = 0; s < program->n_scripts; s++) {
        const struct script *script = &program->scripts[s];
        struct executed_flops one = {0, 0};
        for (uint32_t i = 0; i < script->n_ops; i++) {
            const struct op *op = &program->ops[script->first_op + i];
            if (op->kind != OP_COMPUTE || op->work < 0)
                continue;
            one.total += costs->flops[op->work];
            one.causal += costs->causal_flops[op->work];
        }
        all.total += one.total * ranks[s];
        all.causal += one.causal * ranks[s];
    }
    free(ranks);
    return all;
}
