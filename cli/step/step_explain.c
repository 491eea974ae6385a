#include "cli/step/step_explain.h"

#include <stdlib.h>

#include "cli/output/explain.h"
#include "cli/output/table.h"
#include "model/base/memory.h"
#include "model/cost/kernel/machine.h"

#define US 1e6

static void cost_columns(struct table *table)
{
    static const char *const parts[] = {"launch", "compute", "memory", "latency", "bandwidth", "total"};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        table_column(table, parts[i], "us", ALIGN_RIGHT);
}

static void cost_cells(struct table *table, struct cost cost)
{
    const double parts[] = {cost.launch_s, cost.compute_s, cost.memory_s, cost.latency_s, cost.bandwidth_s, cost_seconds(cost)};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        table_cell(table, "%.1f", parts[i] * US);
}

static bool same_exchange(const struct op *a, const struct op *b)
{
    bool collective = a->kind == OP_COLLECTIVE;

    return a->kind == b->kind && a->bytes == b->bytes &&
           (!collective || (a->collective == b->collective && a->role == b->role)) && a->class == b->class;
}

/* The distinct sends and collectives of all scripts, one of each stage, in order of appearance, with how often one rank of the
 * stage that has most executes them, and which stages do. */
struct exchange {
    const struct op *op;
    uint32_t times, in_script;
    int first_stage, last_stage, n_stages;
};

static void exchange_count(const struct op *op, int stage, struct exchange **found, size_t *capacity, size_t *n)
{
    size_t k = 0;

    while (k < *n && !same_exchange((*found)[k].op, op))
        k++;
    if (k == *n) {
        *found = memory_grow(*found, capacity, *n + 1, sizeof **found);
        (*found)[(*n)++] = (struct exchange){.op = op, .first_stage = stage};
    }
    struct exchange *at = &(*found)[k];
    at->n_stages += at->in_script == 0;
    at->last_stage = stage;
    if (++at->in_script > at->times)
        at->times = at->in_script;
}

/* "3", "0-7", "0, 7", "1-6 (4)": four of a range. */
static char *stages_format(const struct exchange *exchange, char *text, size_t size)
{
    int first = exchange->first_stage, last = exchange->last_stage, n = exchange->n_stages;
    if (n == 1)
        snprintf(text, size, "%d", first);
    else if (n == last - first + 1)
        snprintf(text, size, "%d-%d", first, last);
    else if (n == 2)
        snprintf(text, size, "%d, %d", first, last);
    else
        snprintf(text, size, "%d-%d (%d)", first, last, n);
    return text;
}

static struct exchange *exchanges_list(const struct program *program, size_t *n)
{
    struct exchange *found = NULL;
    size_t capacity = 0;

    *n = 0;
    for (int32_t s = 0; s < program->n_scripts; s++) {
        const struct script *script = &program->scripts[s];
        for (size_t k = 0; k < *n; k++)
            found[k].in_script = 0;
        for (uint32_t i = 0; i < script->n_ops; i++) {
            const struct op *op = &program->ops[script->first_op + i];
            if (op->kind == OP_SEND || op->kind == OP_COLLECTIVE)
                exchange_count(op, s, &found, &capacity, n);
        }
    }
    return found;
}

static struct cost exchange_cost(const struct machine *machine, const struct op *op)
{
    if (op->kind == OP_COLLECTIVE)
        return collective_cost(machine, op->collective, machine->spans[op->role], op->bytes);
    return p2p_cost(machine, op->bytes);
}

static double over_of(const struct machine *machine, const struct op *op)
{
    if (op->kind == OP_COLLECTIVE)
        return collective_over(machine, op->collective, machine->spans[op->role], op->bytes);
    return p2p_over(machine);
}

static void exchange_row(const struct machine *machine, const struct exchange *exchange, bool over, struct table *table)
{
    const struct op *op = exchange->op;
    bool collective = op->kind == OP_COLLECTIVE;
    char bytes[32], stages[48];

    table_cell(table, "%s", collective ? collective_name(op->collective) : "message");
    table_cell(table, "%s", collective ? group_kind_name(op->role) : "pp");
    if (collective) {
        struct group_span span = machine->spans[op->role];
        table_cell(table, "%d ranks, %d domain%s", span.ranks, span.domains, span.domains == 1 ? "" : "s");
    } else {
        table_cell(table, "2 ranks");
    }
    table_cell(table, "%s", quantity_format(op->bytes, DIM_BYTES, bytes, sizeof bytes));
    table_cell(table, "%s", stages_format(exchange, stages, sizeof stages));
    table_cell(table, "%u", exchange->times);
    cost_cells(table, exchange_cost(machine, op));
    if (over)
        explain_over_cell(table, over_of(machine, op));
}

static void explain_exchanges(const struct program *program, const struct machine *machine, const struct invocation *call)
{
    struct table table = {0};
    size_t n;
    struct exchange *found = exchanges_list(program, &n);
    bool over = false;

    for (size_t k = 0; k < n; k++)
        over |= over_of(machine, found[k].op) > EXPLAIN_OVER;
    table_column(&table, "exchange", NULL, ALIGN_LEFT);
    table_column(&table, "group", NULL, ALIGN_LEFT);
    table_column(&table, "span", NULL, ALIGN_LEFT);
    table_column(&table, "bytes", NULL, ALIGN_RIGHT);
    table_column(&table, "stages", NULL, ALIGN_LEFT);
    table_column(&table, "per step", NULL, ALIGN_RIGHT);
    cost_columns(&table);
    if (over)
        table_column(&table, "fabric", NULL, ALIGN_RIGHT);
    for (size_t k = 0; k < n; k++)
        exchange_row(machine, &found[k], over, &table);
    if (n > 0)
        table_write_text(&table, call);
    if (over)
        fputs(EXPLAIN_OVER_MEANS, call->out);
    if (n == 0)
        fputs("no exchanges between ranks outside the passes\n", call->out);
    fputc('\n', call->out);
    table_free(&table);
    free(found);
}

void step_explain(const struct job_setup *setup, const struct program *program, const struct invocation *call)
{
    struct machine machine = machine_of(&setup->layout, &setup->setting);

    explain_works_text(&setup->layout, &setup->setting, call);
    fputc('\n', call->out);
    explain_exchanges(program, &machine, call);
}

static json_t *exchange_json(const struct machine *machine, const struct exchange *exchange)
{
    const struct op *op = exchange->op;
    bool collective = op->kind == OP_COLLECTIVE;
    struct cost cost = exchange_cost(machine, op);
    char stages[48];

    return json_pack("{s:s,s:s,s:f,s:s,s:i,s:f,s:{s:f,s:f,s:f,s:f,s:f},s:f}", "exchange",
                     collective ? collective_name(op->collective) : "message", "group",
                     collective ? group_kind_name(op->role) : "pp", "bytes", op->bytes, "stages",
                     stages_format(exchange, stages, sizeof stages), "times", (int)exchange->times, "seconds", cost_seconds(cost),
                     "parts", "launch_s", cost.launch_s, "compute_s", cost.compute_s, "memory_s", cost.memory_s, "latency_s",
                     cost.latency_s, "bandwidth_s", cost.bandwidth_s, "fabric", over_of(machine, op));
}

json_t *step_explain_json(const struct job_setup *setup, const struct program *program)
{
    struct machine machine = machine_of(&setup->layout, &setup->setting);
    json_t *exchanges = json_array();
    size_t n;
    struct exchange *found = exchanges_list(program, &n);

    for (size_t k = 0; k < n; k++)
        json_array_append_new(exchanges, exchange_json(&machine, &found[k]));
    free(found);
    return json_pack("{s:o,s:o}", "works", explain_works_json(&setup->layout, &setup->setting), "exchanges", exchanges);
}
