#include "cli/step_explain.h"

#include <stdlib.h>

#include "cli/table.h"
#include "model/base/memory.h"
#include "model/cost/machine.h"

#define US 1e6

/* ---- kernels */

static void work_shape(const struct work *work, char *text, size_t size)
{
    const struct work_attention *a = &work->attention;
    char bytes[32];

    text[0] = '\0';
    switch (work->kind) {
    case WORK_GEMM:
        snprintf(text, size, "%lld x %lld x %lld%s", (long long)work->gemm.m, (long long)work->gemm.n, (long long)work->gemm.k,
                 work->gemm.count > 1 ? " grouped" : "");
        break;
    case WORK_ATTENTION:
    case WORK_ATTENTION_BACKWARD:
        snprintf(text, size, "%lld x %d heads x %lld x %lld x %d", (long long)a->batch, a->heads, (long long)a->query_tokens,
                 (long long)a->key_tokens, a->head_dim);
        break;
    case WORK_MEMORY_BOUND:
        snprintf(text, size, "%s in %d kernel%s", quantity_format(work->memory.bytes, DIM_BYTES, bytes, sizeof bytes),
                 work->memory.count, work->memory.count == 1 ? "" : "s");
        break;
    case WORK_COLLECTIVE:
        snprintf(text, size, "%s %s, %s", collective_name(work->collective.collective), group_kind_name(work->collective.group),
                 quantity_format(work->collective.bytes, DIM_BYTES, bytes, sizeof bytes));
        break;
    case WORK_SEQUENCE:
        if (work->sequence.repeat > 1)
            snprintf(text, size, "%d times", work->sequence.repeat);
        break;
    case WORK_OVERLAPPED: snprintf(text, size, "the next two side by side"); break;
    }
}

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

/* A work waiting to be shown, and how deep it lies. */
struct shown {
    int32_t work;
    int depth;
};

/* Depth first with a list of its own: works are a graph of unknown depth. */
static void explain_pass(const struct machine *machine, const struct work_table *works, int32_t pass, struct table *table)
{
    struct shown *stack = NULL;
    size_t capacity = 0, n = 0;
    char shape[96];

    stack = memory_grow(stack, &capacity, 1, sizeof *stack);
    stack[n++] = (struct shown){pass, 0};
    while (n > 0) {
        struct shown at = stack[--n];
        const struct work *work = &works->items[at.work];
        work_shape(work, shape, sizeof shape);
        table_cell(table, "%*s%s", 2 * at.depth, "", work->label != NULL ? work->label : "");
        table_cell(table, "%s", work_class_name(work->class));
        table_cell(table, "%s", shape);
        table_cell(table, "%.1f", work->flops / 1e9);
        cost_cells(table, work_cost(machine, works, at.work));
        if (work->kind != WORK_SEQUENCE && work->kind != WORK_OVERLAPPED)
            continue;
        stack = memory_grow(stack, &capacity, n + (size_t)work->sequence.n_children, sizeof *stack);
        for (int32_t c = work->sequence.n_children - 1; c >= 0; c--)
            stack[n++] = (struct shown){works->children[work->sequence.first_child + c], at.depth + 1};
    }
    free(stack);
}

static void explain_kernels(const struct job_setup *setup, const struct machine *machine, const struct invocation *call)
{
    const struct layout *layout = &setup->layout;
    struct layer_range range = layout_layers(layout, setup->experiment.model.layers, 0);

    for (enum pass pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
        struct work_table works = {0};
        struct table table = {0};
        char title[64];
        int32_t index = work_add_pass(&works, layout, &setup->setting, pass, range, true, true);
        snprintf(title, sizeof title, "%s, one micro-batch, %d layer%s", pass_name(pass), range.count,
                 range.count == 1 ? "" : "s");
        table_column(&table, title, NULL, ALIGN_LEFT);
        table_column(&table, "class", NULL, ALIGN_LEFT);
        table_column(&table, "shape", NULL, ALIGN_LEFT);
        table_column(&table, "work", "GFLOP", ALIGN_RIGHT);
        cost_columns(&table);
        explain_pass(machine, &works, index, &table);
        table_write_text(&table, call->out, call->colour);
        fputc('\n', call->out);
        table_free(&table);
        work_table_free(&works);
    }
}

/* ---- exchanges */

static bool same_exchange(const struct op *a, const struct op *b)
{
    bool collective = a->kind == OP_COLLECTIVE;

    return a->kind == b->kind && a->bytes == b->bytes &&
           (!collective || (a->collective == b->collective && a->role == b->role)) && a->class == b->class;
}

/* The distinct sends and collectives of all scripts, in order of appearance, with how often one rank of the script that has most
 * executes them. */
struct exchange {
    const struct op *op;
    uint32_t times, in_script;
};

static void exchange_count(const struct op *op, struct exchange **found, size_t *capacity, size_t *n)
{
    size_t k = 0;

    while (k < *n && !same_exchange((*found)[k].op, op))
        k++;
    if (k == *n) {
        *found = memory_grow(*found, capacity, *n + 1, sizeof **found);
        (*found)[(*n)++] = (struct exchange){.op = op};
    }
    struct exchange *at = &(*found)[k];
    if (++at->in_script > at->times)
        at->times = at->in_script;
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
                exchange_count(op, &found, &capacity, n);
        }
    }
    return found;
}

static void exchange_row(const struct machine *machine, const struct exchange *exchange, struct table *table)
{
    const struct op *op = exchange->op;
    struct group_span span = machine->spans[op->role];
    bool collective = op->kind == OP_COLLECTIVE;
    char bytes[32];

    table_cell(table, "%s", collective ? collective_name(op->collective) : "message");
    table_cell(table, "%s", collective ? group_kind_name(op->role) : "pp");
    if (collective)
        table_cell(table, "%d ranks, %d domain%s", span.ranks, span.domains, span.domains == 1 ? "" : "s");
    else
        table_cell(table, "2 ranks");
    table_cell(table, "%s", quantity_format(op->bytes, DIM_BYTES, bytes, sizeof bytes));
    table_cell(table, "%u", exchange->times);
    cost_cells(table, collective ? collective_cost(machine, op->collective, span, op->bytes) : p2p_cost(machine, op->bytes));
}

static void explain_exchanges(const struct program *program, const struct machine *machine, const struct invocation *call)
{
    struct table table = {0};
    size_t n;
    struct exchange *found = exchanges_list(program, &n);

    table_column(&table, "exchange", NULL, ALIGN_LEFT);
    table_column(&table, "group", NULL, ALIGN_LEFT);
    table_column(&table, "span", NULL, ALIGN_LEFT);
    table_column(&table, "bytes", NULL, ALIGN_RIGHT);
    table_column(&table, "per step", NULL, ALIGN_RIGHT);
    cost_columns(&table);
    for (size_t k = 0; k < n; k++)
        exchange_row(machine, &found[k], &table);
    if (n > 0)
        table_write_text(&table, call->out, call->colour);
    else
        fputs("no exchanges between ranks outside the passes\n", call->out);
    fputc('\n', call->out);
    table_free(&table);
    free(found);
}

void step_explain(const struct job_setup *setup, const struct program *program, const struct invocation *call)
{
    struct machine machine = machine_of(&setup->layout, &setup->setting);

    explain_kernels(setup, &machine, call);
    explain_exchanges(program, &machine, call);
}
