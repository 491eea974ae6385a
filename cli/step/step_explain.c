#include "cli/step/step_explain.h"

#include <stdlib.h>

#include "cli/output/explain.h"
#include "cli/output/table.h"
#include "model/base/memory.h"
#include "model/cost/kernel/machine.h"

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
    int ranks, domains; /* of its group */
    struct cost cost;
    double over;
    bool over_shown; /* of some exchange, in the table */
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

static struct exchange *exchanges_find(const struct program *program, size_t *n)
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

static void exchange_price(struct exchange *exchange, const struct machine *machine)
{
    const struct op *op = exchange->op;
    if (op->kind == OP_COLLECTIVE) {
        struct group_span span = machine->spans[op->role];
        exchange->ranks = span.ranks;
        exchange->domains = span.domains;
        exchange->cost = collective_cost(machine, op->collective, span, op->bytes);
        exchange->over = collective_over(machine, op->collective, span, op->bytes);
    } else {
        exchange->ranks = 2;
        exchange->cost = p2p_cost(machine, op->bytes);
        exchange->over = p2p_over(machine);
    }
}

/* All of them with their costs. *over: an oversubscribed fabric slows one. */
static struct exchange *exchanges_list(const struct job_setup *setup, const struct program *program, size_t *n, bool *over)
{
    struct machine machine = machine_of(&setup->layout, &setup->setting);
    struct exchange *found = exchanges_find(program, n);
    *over = false;
    for (size_t k = 0; k < *n; k++) {
        exchange_price(&found[k], &machine);
        *over |= found[k].over > EXPLAIN_OVER;
    }
    for (size_t k = 0; k < *n; k++)
        found[k].over_shown = *over;
    return found;
}

static const char *name_of(const struct exchange *exchange)
{
    return exchange->op->kind == OP_COLLECTIVE ? collective_name(exchange->op->collective) : "message";
}

static const char *group_of(const struct exchange *exchange)
{
    return exchange->op->kind == OP_COLLECTIVE ? group_kind_name(exchange->op->role) : "pp";
}

static struct value span_of(const struct exchange *exchange)
{
    int domains = exchange->domains;
    if (domains == 0)
        return shown_as(as_count(exchange->ranks), "%d ranks", exchange->ranks);
    return shown_as(as_count(exchange->ranks), "%d ranks, %d domain%s", exchange->ranks, domains, domains == 1 ? "" : "s");
}

static struct value bytes_of(const struct exchange *exchange)
{
    char bytes[32];
    return shown_as(as_real(exchange->op->bytes), "%s", quantity_format(exchange->op->bytes, DIM_BYTES, bytes, sizeof bytes));
}

static struct value stages_of(const struct exchange *exchange)
{
    char stages[48];
    return as_text(stages_format(exchange, stages, sizeof stages));
}

#define EXCHANGE_ROWS(ROW)                                                                                                       \
    ROW(exchange, exchange, as_text(name_of(s)), "", JSON, "message, or the collective", .show = "%s")                           \
    ROW(exchange, group, as_text(group_of(s)), "", JSON, "ranks that exchange: tp, pp, dp ...", .show = "%s")                    \
    ROW(exchange, span, span_of(s), "", 0, "ranks of the group, and NVLink domains that they are in", .show = "%s")              \
    ROW(exchange, bytes, bytes_of(s), "", JSON, "bytes of one", .show = "%.0f")                                                  \
    ROW(exchange, stages, stages_of(s), "", JSON, "pipeline stages that have it", .show = "%s")                                  \
    ROW(exchange, times, as_count(s->times), "", JSON, "times in a step", .title = "per step", .show = "%.0f")                   \
    EXPLAIN_COST_ROWS(ROW, exchange)                                                                                             \
    ROW(exchange, fabric, as_over(s->over, s->over_shown), "", JSON, EXPLAIN_OVER_MEANING, .show = "%.2f")
RESULT_ROWS(exchange_rows, EXCHANGE_ROWS)

void step_explain(const struct job_setup *setup, const struct program *program, const struct invocation *call)
{
    struct table table = {0};
    size_t n;
    bool over;
    struct exchange *found = exchanges_list(setup, program, &n, &over);

    explain_works_text(&setup->layout, &setup->setting, call);
    fputc('\n', call->out);
    if (n > 0)
        rows_columns(exchange_rows, found, &table);
    for (size_t k = 0; k < n; k++)
        rows_cells(exchange_rows, &found[k], &table);
    if (n > 0)
        table_write_text(&table, call);
    if (over)
        fputs("fabric: " EXPLAIN_OVER_MEANING "\n", call->out);
    fputs(n > 0 ? "\n" : "no exchanges between ranks outside the passes\n\n", call->out);
    table_free(&table);
    free(found);
}

json_t *step_explain_json(const struct job_setup *setup, const struct program *program)
{
    json_t *exchanges = json_array();
    size_t n;
    bool over;
    struct exchange *found = exchanges_list(setup, program, &n, &over);

    for (size_t k = 0; k < n; k++)
        json_array_append_new(exchanges, rows_object(exchange_rows, &found[k]));
    free(found);
    return json_pack("{s:o,s:o}", "works", explain_works_json(&setup->layout, &setup->setting), "exchanges", exchanges);
}
