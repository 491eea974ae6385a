#include "model/cost/work/work.h"

#include <stdlib.h>

#include "model/base/memory.h"

const char *collective_name(enum collective collective)
{
    static const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"};
    return names[collective];
}

const char *pass_name(enum pass pass)
{
    static const char *const names[] = {"forward", "backward", "backward_input", "backward_weight"};
    return names[pass];
}

const char *work_class_name(enum work_class c)
{
    static const char *const names[] = {
#define X(id, name, what) [CLASS_##id] = name,
        WORK_CLASSES(X)
#undef X
    };
    return names[c];
}

void work_table_free(struct work_table *table)
{
    free(table->items);
    free(table->children);
    *table = (struct work_table){0};
}

int32_t work_add(struct work_table *table, struct work work)
{
    table->items = memory_grow(table->items, &table->capacity, (size_t)table->n_items + 1, sizeof *table->items);
    table->items[table->n_items] = work;
    return table->n_items++;
}

static struct work_sequence children_add(struct work_table *table, const int32_t *children, int32_t n, int32_t repeat)
{
    size_t needed = (size_t)table->n_children + (size_t)n;
    table->children = memory_grow(table->children, &table->children_capacity, needed, sizeof *table->children);
    struct work_sequence sequence = {.first_child = table->n_children, .n_children = n, .repeat = repeat};
    for (int32_t i = 0; i < n; i++)
        table->children[table->n_children++] = children[i];
    return sequence;
}

static double children_flops(const struct work_table *table, const int32_t *children, int32_t n)
{
    double flops = 0;
    for (int32_t i = 0; i < n; i++)
        flops += table->items[children[i]].flops;
    return flops;
}

int32_t work_add_sequence(struct work_table *table, enum work_class class, const char *label, const int32_t *children, int32_t n,
                          int32_t repeat)
{
    double flops = children_flops(table, children, n) * repeat;
    struct work_sequence sequence = children_add(table, children, n, repeat);
    return work_add(table,
                    (struct work){.kind = WORK_SEQUENCE, .class = class, .label = label, .flops = flops, .sequence = sequence});
}

int32_t work_add_overlapped(struct work_table *table, int32_t compute, int32_t exchange, int32_t pieces)
{
    const int32_t pair[] = {compute, exchange};
    const struct work *c = &table->items[compute];
    struct work work = {.kind = WORK_OVERLAPPED, .class = c->class, .label = c->label, .flops = c->flops};
    work.sequence = children_add(table, pair, 2, 1);
    work.sequence.pieces = pieces;
    return work_add(table, work);
}

static int32_t part_add(struct work_table *table, const int32_t *children, int32_t n)
{
    const struct work *p = &table->items[children[0]];
    struct work work = {.kind = WORK_PART, .class = p->class, .label = p->label, .flops = p->flops};
    work.sequence = children_add(table, children, n, 1);
    return work_add(table, work);
}

int32_t work_add_paired(struct work_table *table, int32_t part, int32_t own, int32_t other)
{
    const int32_t children[] = {part, own, other};
    return part_add(table, children, 3);
}

int32_t work_add_part(struct work_table *table, int32_t part, int32_t own)
{
    const int32_t children[] = {part, own};
    return part_add(table, children, 2);
}

double work_flops(const struct work_table *table, int32_t work)
{
    return table->items[work].flops;
}
