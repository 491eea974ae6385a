/* bind.c - finds the steps of each operation of a script, and refuses programs that differ from the steps of the runtime. */
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/cost/kernel/machine.h"
#include "model/cost/work/precision_bytes.h"
#include "runtime/base/steps.h"

enum { WORK_DEPTH_MAX = 16 };

/* --- leaves of an operation's work */

struct leaf {
    int32_t work;
    bool exchange;
    uint8_t collective, group;
    int32_t pair; /* pipelined with the next one, which are two steps in either order: the WORK_OVERLAPPED; -1: not */
};

struct leaves {
    struct leaf *items;
    size_t n_items, capacity;
};

static void add_leaf(struct leaves *leaves, const struct work_table *works, int32_t id, int32_t pair)
{
    const struct work *work = &works->items[id];
    struct leaf leaf = {.work = id, .exchange = work->kind == WORK_COLLECTIVE, .pair = pair};
    if (leaf.exchange) {
        leaf.collective = (uint8_t)work->collective.collective;
        leaf.group = (uint8_t)work->collective.group;
    }
    leaves->items = memory_grow(leaves->items, &leaves->capacity, leaves->n_items + 1, sizeof *leaves->items);
    leaves->items[leaves->n_items++] = leaf;
}

static void add_work(struct leaves *leaves, const struct work_table *works, int32_t id)
{
    const struct work *work = &works->items[id];
    if (work->kind != WORK_OVERLAPPED) {
        add_leaf(leaves, works, id, -1);
        return;
    }
    const int32_t *children = &works->children[work->sequence.first_child];
    add_leaf(leaves, works, children[0], work->sequence.pieces > 0 ? id : -1);
    add_leaf(leaves, works, children[1], -1);
}

static void add_leaves(struct leaves *leaves, const struct work_table *works, int32_t root)
{
    struct {
        int32_t id, child, rounds;
    } stack[WORK_DEPTH_MAX];
    int depth = 1;
    if (works->items[root].kind == WORK_PART) /* executed one after the other */
        root = works->children[works->items[root].sequence.first_child];
    stack[0].id = root;
    stack[0].child = 0;
    stack[0].rounds = works->items[root].kind == WORK_SEQUENCE ? works->items[root].sequence.repeat : 1;
    while (depth) {
        const struct work *work = &works->items[stack[depth - 1].id];
        if (work->kind != WORK_SEQUENCE || depth == WORK_DEPTH_MAX) {
            add_work(leaves, works, stack[--depth].id);
            continue;
        }
        if (stack[depth - 1].child == work->sequence.n_children) {
            stack[depth - 1].child = 0;
            stack[depth - 1].rounds--;
        }
        if (stack[depth - 1].rounds == 0 || work->sequence.n_children == 0) {
            depth--;
            continue;
        }
        int32_t child = works->children[work->sequence.first_child + stack[depth - 1].child++];
        stack[depth].id = child;
        stack[depth].child = 0;
        stack[depth].rounds = works->items[child].kind == WORK_SEQUENCE ? works->items[child].sequence.repeat : 1;
        depth++;
    }
}

/* --- matching */

static bool matches(const struct work_table *works, const struct leaf *leaf, const struct step *step)
{
    if (leaf->exchange != step->exchange)
        return false;
    if (leaf->exchange)
        return leaf->collective == step->collective && leaf->group == step->group;
    const char *label = works->items[leaf->work].label;
    return label && strcmp(label, step->label) == 0;
}

static const char *leaf_name(const struct work_table *works, const struct leaf *leaf)
{
    if (leaf->exchange)
        return collective_name((enum collective)leaf->collective);
    return works->items[leaf->work].label ? works->items[leaf->work].label : "?";
}

struct binder {
    const struct program *program;
    const struct script *script;
    struct binding *binding;
    struct diags *diags;
    struct machine machine;
    struct leaves leaves;
    /* the pass under way */
    int pass, chunk, micro_batch;
    uint32_t at;
};

static enum status refuse(struct binder *b, const struct leaf *leaf, const struct step_list *list)
{
    const char *expected = b->at < list->n_items
                               ? (list->items[b->at].exchange ? collective_name((enum collective)list->items[b->at].collective)
                                                              : list->items[b->at].label)
                               : "the end";
    diag_error(b->diags, PLACE_NONE,
               "the runtime cannot execute this program: the %s pass of chunk %d asks for %s where %s comes next",
               pass_name((enum pass)b->pass), b->chunk, leaf_name(&b->program->works, leaf), expected);
    return STATUS_MISSING;
}

/* Steps without an operation belong to that of the next step. */
static void pass_silent(struct binder *b, const struct step_list *list)
{
    while (b->at < list->n_items && step_is_silent(&list->items[b->at]))
        b->at++;
}

/* Two steps that were matched by a pipelined pair are done in its pieces, where the exchange is one of a sequence's parts. */
static void set_pieces(const struct binder *b, int32_t pair, struct step *two)
{
    if (two[0].leads)
        return;
    two[0].leads = true;
    two[0].pieces = two[1].pieces = work_parts_of(&b->machine, &b->program->works, pair).pieces;
}

/* The steps of the leaves gathered, from the cursor on. */
static enum status match_leaves(struct binder *b, struct bound_op *bound)
{
    const struct step_list *list = binding_list(b->binding, b->chunk, b->pass);
    const struct work_table *works = &b->program->works;
    bound->first = b->at;
    for (size_t i = 0; i < b->leaves.n_items; i++) {
        pass_silent(b, list);
        const struct leaf *leaf = &b->leaves.items[i];
        struct step *step = &list->items[b->at];
        bool two = leaf->pair >= 0 && b->at + 1 < list->n_items;
        bool exchange_first = two && matches(works, leaf, step + 1) && matches(works, leaf + 1, step);
        if (exchange_first || (two && matches(works, leaf, step) && matches(works, leaf + 1, step + 1))) {
            set_pieces(b, leaf->pair, step);
            b->at += 2;
            i++;
        } else if (b->at < list->n_items && matches(works, leaf, step)) {
            b->at++;
        } else {
            return refuse(b, leaf, list);
        }
    }
    bound->n = b->at - bound->first;
    return STATUS_OK;
}

static bool begins_pass(const struct binder *b, const struct op *op)
{
    return op->pass != b->pass || op->chunk != b->chunk || op->micro_batch != b->micro_batch;
}

/* Operation `i` computes, the next one is the exchange that it is pipelined with. */
static bool begins_pair(const struct binder *b, uint32_t i)
{
    const struct op *op = &b->program->ops[b->script->first_op + i];
    if (op->kind != OP_COMPUTE || i + 1 == b->script->n_ops)
        return false;
    const struct op *next = op + 1;
    return next->kind == OP_COLLECTIVE && next->work >= 0 && b->program->works.items[next->work].kind == WORK_OVERLAPPED &&
           next->pass == op->pass && b->program->works.items[next->work].sequence.pieces > 0;
}

/* Two steps matched for both become one for each; silent ones before them go with the first. */
static void divide_pair(struct bound_op *compute, const struct step_list *list)
{
    struct bound_op *exchange = compute + 1;
    uint32_t first = compute->first, n = compute->n - 1;
    bool before = list->items[first + n - 1].exchange;
    int pieces = list->items[first + n].pieces;
    *exchange = before ? (struct bound_op){.first = first, .n = n} : (struct bound_op){.first = first + n, .n = 1};
    *compute = before ? (struct bound_op){.first = first + n, .n = 1} : (struct bound_op){.first = first, .n = n};
    if (before)
        compute->pairing = PAIRING_AFTER_NEXT;
    else
        exchange->pairing = PAIRING_AFTER_PREVIOUS;
    compute->pieces = exchange->pieces = pieces;
}

/* Operation `i` at kernel detail: one kernel, an exchange, or a pair of both in pieces. */
static void gather_leaves(struct binder *b, uint32_t i)
{
    const struct op *ops = &b->program->ops[b->script->first_op], *op = &ops[i];
    const struct work_table *works = &b->program->works;
    b->leaves.n_items = 0;
    if (op->kind == OP_COMPUTE) {
        if (begins_pair(b, i))
            add_work(&b->leaves, works, ops[i + 1].work);
        else
            add_leaves(&b->leaves, works, op->work);
        return;
    }
    struct leaf leaf = {.work = -1, .exchange = true, .collective = op->collective, .group = op->role, .pair = -1};
    b->leaves.items = memory_grow(b->leaves.items, &b->leaves.capacity, 1, sizeof *b->leaves.items);
    b->leaves.items[b->leaves.n_items++] = leaf;
}

static enum status bind_op(struct binder *b, uint32_t i)
{
    const struct op *op = &b->program->ops[b->script->first_op + i];
    bool computes = op->pass < N_PASSES && (op->kind == OP_COMPUTE || op->kind == OP_COLLECTIVE);
    if (!computes || (i > 0 && begins_pair(b, i - 1)))
        return STATUS_OK;
    if (begins_pass(b, op)) {
        b->pass = op->pass;
        b->chunk = op->chunk;
        b->micro_batch = op->micro_batch;
        b->at = 0;
    }
    gather_leaves(b, i);
    enum status status = match_leaves(b, &b->binding->ops[i]);
    if (status == STATUS_OK && begins_pair(b, i))
        divide_pair(&b->binding->ops[i], binding_list(b->binding, b->chunk, b->pass));
    return status;
}

enum status binding_build(const struct program *program, int script, const struct setting *setting, struct binding *result,
                          struct diags *diags)
{
    const struct layout *layout = &program->layout;
    struct binding binding = {.vpp = layout->vpp};
    enum status status = runtime_supports_layout(layout, setting, diags);
    if (status != STATUS_OK)
        return status;
    binding.lists = memory_new((size_t)layout->vpp * N_PASSES, sizeof *binding.lists);
    binding.ops = memory_new(program->scripts[script].n_ops, sizeof *binding.ops);
    int last = layout_virtual_stages(layout) - 1;
    for (int c = 0; c < layout->vpp; c++) {
        int v = layout_virtual_stage(layout, script, c);
        for (int pass = 0; pass < N_PASSES; pass++)
            step_list_build(layout, setting, (enum pass)pass, layout_layers(layout, setting->model, v), v == 0, v == last,
                            &binding.lists[c * N_PASSES + pass]);
    }
    struct binder b = {.program = program,
                       .script = &program->scripts[script],
                       .binding = &binding,
                       .diags = diags,
                       .machine = machine_of(layout, setting),
                       .pass = -1,
                       .chunk = -1,
                       .micro_batch = -1};
    binding.slices = work_slices(&b.machine, &program->works);
    for (uint32_t i = 0; i < b.script->n_ops && status == STATUS_OK; i++)
        status = bind_op(&b, i);
    free(b.leaves.items);
    if (status == STATUS_OK)
        *result = binding;
    else
        binding_free(&binding);
    return status;
}

void binding_free(struct binding *binding)
{
    for (int i = 0; binding->lists && i < binding->vpp * N_PASSES; i++)
        free(binding->lists[i].items);
    free(binding->lists);
    free(binding->ops);
    *binding = (struct binding){0};
}
