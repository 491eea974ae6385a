#include "cli/output/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/table.h"
#include "model/base/memory.h"
#include "model/cost/kernel/machine.h"
#include "model/cost/work/muon.h"

/* One leaf of a pass, or of the optimizer's step (N_PASSES). */
struct leaf {
    enum pass pass;
    const struct work *work;
    int times;
    struct cost cost; /* of one */
    double over;      /* what an oversubscribed fabric makes longer of its exchange: work_over */
    bool over_shown;  /* of some leaf, in the table */
    char what[96];    /* its size */
};

struct leaves {
    struct work_table works;
    struct leaf *items;
    size_t n, capacity;
};

/* A sequence still to be opened, and how often it runs. */
struct pending {
    int32_t work;
    int times;
};

static void describe(const struct work *w, char *text, size_t size)
{
    *text = '\0';
    if (w->kind == WORK_GEMM)
        snprintf(text, size, "%lld x %lld x %lld%s%s", (long long)w->gemm.m, (long long)w->gemm.n, (long long)w->gemm.k,
                 w->gemm.count > 1 ? " grouped " : " ", precision_name(w->gemm.precision));
    else if (w->kind == WORK_ATTENTION || w->kind == WORK_ATTENTION_BACKWARD)
        snprintf(text, size, "%lld x %d heads, %lld tokens", (long long)w->attention.batch, w->attention.heads,
                 (long long)w->attention.query_tokens);
    else if (w->kind == WORK_MEMORY_BOUND)
        snprintf(text, size, "%.1f MiB, %d kernel%s", w->memory.bytes / 0x1p20, w->memory.count, w->memory.count == 1 ? "" : "s");
    else if (w->kind == WORK_COLLECTIVE)
        snprintf(text, size, "%s of %.1f MiB over %s", collective_name(w->collective.collective), w->collective.bytes / 0x1p20,
                 group_kind_name(w->collective.group));
    else if (w->kind == WORK_OVERLAPPED)
        snprintf(text, size, "with its exchange");
}

/* Leaves in the order of execution; an overlapped pair counts as one. */
static void collect(struct leaves *leaves, const struct machine *machine, enum pass pass, int32_t root)
{
    struct pending *stack = NULL;
    size_t depth = 0, capacity = 0;
    stack = memory_grow(stack, &capacity, 1, sizeof *stack);
    stack[depth++] = (struct pending){root, 1};
    while (depth > 0) {
        struct pending at = stack[--depth];
        const struct work *work = &leaves->works.items[at.work];
        if (work->kind == WORK_SEQUENCE) {
            stack = memory_grow(stack, &capacity, depth + (size_t)work->sequence.n_children, sizeof *stack);
            for (int32_t i = work->sequence.n_children - 1; i >= 0; i--)
                stack[depth++] =
                    (struct pending){leaves->works.children[work->sequence.first_child + i], at.times * work->sequence.repeat};
            continue;
        }
        leaves->items = memory_grow(leaves->items, &leaves->capacity, leaves->n + 1, sizeof *leaves->items);
        struct leaf *leaf = &leaves->items[leaves->n++];
        *leaf = (struct leaf){.pass = pass,
                              .work = work,
                              .times = at.times,
                              .cost = work_cost(machine, &leaves->works, at.work),
                              .over = work_over(machine, &leaves->works, at.work)};
        describe(work, leaf->what, sizeof leaf->what);
    }
    free(stack);
}

/* Layers that are explained: one from the middle of the model, with a mixture of experts one of those; by a pattern those from
 * there on until each kind was there, or all. */
static struct layer_range shown_layers(const struct transformer *model)
{
    bool seen[N_LAYER_KINDS] = {0};
    struct layer_range range = {.first = model->layers / 2, .count = 1};
    int left = 0;
    if (!transformer_is_hybrid(model))
        return range;
    for (int i = 0; i < model->layers; i++) {
        bool *kind = &seen[layer_kind_index(layer_kind_of(model, i))];
        left += !*kind;
        *kind = true;
    }
    for (int i = range.first; i < model->layers && left > 0; i++) {
        bool *kind = &seen[layer_kind_index(layer_kind_of(model, i))];
        left -= *kind;
        *kind = false;
        range.count = i - range.first + 1;
    }
    return left > 0 ? (struct layer_range){0, model->layers} : range;
}

/* Newton-Schulz on those matrices of the middle layer that the fullest owner has; -1: there are none. */
static int32_t newton_schulz_of(struct work_table *works, const struct layout *layout, const struct setting *setting)
{
    struct muon_matrices matrices = {.n = 0};
    muon_matrices_add(&matrices, layout, setting, (struct layer_range){setting->model->layers / 2, 1}, false);
    return work_add_newton_schulz(works, layout, setting, &matrices);
}

/* All works stand before the first is taken: leaves point at them. */
static struct leaves leaves_of(const struct layout *layout, const struct setting *setting, bool optimizer)
{
    struct leaves leaves = {0};
    struct machine machine = machine_of(layout, setting);
    struct layer_range range = shown_layers(setting->model);
    int32_t forward = work_add_pass(&leaves.works, layout, setting, PASS_FORWARD, range, true, true);
    int32_t backward = work_add_pass(&leaves.works, layout, setting, PASS_BACKWARD, range, true, true);
    int32_t products = optimizer ? newton_schulz_of(&leaves.works, layout, setting) : -1;
    collect(&leaves, &machine, PASS_FORWARD, forward);
    collect(&leaves, &machine, PASS_BACKWARD, backward);
    if (products >= 0)
        collect(&leaves, &machine, N_PASSES, products);
    return leaves;
}

static const char *pass_of(const struct leaf *leaf)
{
    return leaf->pass == N_PASSES ? "optimizer" : pass_name(leaf->pass);
}

static void leaves_free(struct leaves *leaves)
{
    work_table_free(&leaves->works);
    free(leaves->items);
}

struct value as_part(double seconds)
{
    return seconds > 0 ? as_real(seconds) : shown_as(as_real(seconds), "-");
}

struct value as_over(double over, bool shown)
{
    char ratio[32];
    struct value value = in_text_if(shown, as_real(over));
    return over > EXPLAIN_OVER ? shown_as(value, "x %s", ratio_text(over, ratio, sizeof ratio)) : shown_as(value, "-");
}

/* FLOPs of what is timed: of experts' products the busiest rank's, where `flops` are those of a rank on average. */
static double flops_of(const struct work *work)
{
    const struct work_gemm *g = &work->gemm;
    if (work->kind != WORK_GEMM || !g->apart)
        return work->flops;
    return fmax(work->flops, 2.0 * g->count * (double)g->m * (double)g->n * (double)g->k);
}

static struct value rate_of(const struct leaf *leaf)
{
    double seconds = cost_seconds(leaf->cost);
    bool known = leaf->work->flops > 0 && seconds > 0;
    return known_if(known, as_real(known ? flops_of(leaf->work) / seconds : 0));
}

#define LEAF_ROWS(ROW)                                                                                                           \
    ROW(leaf, pass, as_text(pass_of(s)), "", JSON, "forward, backward or optimizer", .show = "%s")                               \
    ROW(leaf, class, as_text(work_class_name(s->work->class)), "", JSON, "class of time", .show = "%s")                          \
    ROW(leaf, work, as_text(s->work->label), "", JSON, "the kernel or exchange", .show = "%s")                                   \
    ROW(leaf, size, as_text(s->what), "", JSON, "its size", .show = "%s")                                                        \
    ROW(leaf, times, as_count(s->times), "", JSON, "times in the pass", .show = "%.0f")                                          \
    EXPLAIN_COST_ROWS(ROW, leaf)                                                                                                 \
    ROW(leaf, fabric, as_over(s->over, s->over_shown), "", JSON, EXPLAIN_OVER_MEANING, .show = "%.2f")                           \
    ROW(leaf, flops, as_real(s->work->flops), "", JSON, "FLOPs of one")                                                          \
    ROW(leaf, rate, rate_of(s), "FLOP/s", 0, "FLOPs per second", .title = "TFLOP/s", .text_unit = "", .scale = 1e-12,            \
        .show = "%.0f")
RESULT_ROWS(explain_work_rows, LEAF_ROWS)

void explain_works_text(const struct layout *layout, const struct setting *setting, const struct invocation *call)
{
    struct leaves leaves = leaves_of(layout, setting, true);
    struct table table = {0};
    bool over = false;
    for (size_t i = 0; i < leaves.n; i++)
        over |= leaves.items[i].over > EXPLAIN_OVER;
    for (size_t i = 0; i < leaves.n; i++) {
        leaves.items[i].over_shown = over;
        if (i == 0)
            rows_columns(explain_work_rows, leaves.items, &table);
        rows_cells(explain_work_rows, &leaves.items[i], &table);
    }
    table_write_text(&table, call);
    if (over)
        fputs("fabric: " EXPLAIN_OVER_MEANING "\n", call->out);
    table_free(&table);
    leaves_free(&leaves);
}

json_t *explain_works_json(const struct layout *layout, const struct setting *setting)
{
    struct leaves leaves = leaves_of(layout, setting, true);
    json_t *array = json_array();
    for (size_t i = 0; i < leaves.n; i++)
        json_array_append_new(array, rows_object(explain_work_rows, &leaves.items[i]));
    leaves_free(&leaves);
    return array;
}

static enum profile_kind kind_of_work(enum work_kind kind)
{
    switch (kind) {
    case WORK_GEMM:
    case WORK_OVERLAPPED: return PROFILE_PRODUCTS;
    case WORK_ATTENTION:
    case WORK_ATTENTION_BACKWARD: return PROFILE_ATTENTION;
    default: return PROFILE_OTHER;
    }
}

void explain_kinds(const struct layout *layout, const struct setting *setting, double share[N_WORK_CLASSES][N_PROFILE_KINDS])
{
    struct leaves leaves = leaves_of(layout, setting, false);
    double whole[N_WORK_CLASSES] = {0};
    memset(share, 0, N_WORK_CLASSES * sizeof *share);
    for (size_t i = 0; i < leaves.n; i++) {
        const struct leaf *leaf = &leaves.items[i];
        double seconds = leaf->times * cost_seconds(leaf->cost);
        if (leaf->work->kind == WORK_COLLECTIVE)
            continue;
        share[leaf->work->class][kind_of_work(leaf->work->kind)] += seconds;
        whole[leaf->work->class] += seconds;
    }
    for (int c = 0; c < N_WORK_CLASSES; c++)
        for (int k = 0; k < N_PROFILE_KINDS && whole[c] > 0; k++)
            share[c][k] /= whole[c];
    leaves_free(&leaves);
}

void explain_breakdown_text(const struct cost_by_class *by, const struct invocation *call)
{
    static const char *const meanings[] = {
#define X(id, name, what) what,
        WORK_CLASSES(X)
#undef X
    };
    struct table table = {0};
    double total = cost_by_class_total(by);
    int decimals = total < 0.1 ? 6 : 4; /* of all alike, so that points stand below one another */
    table_column(&table, "class", NULL, ALIGN_LEFT);
    table_column(&table, "time", "s", ALIGN_RIGHT);
    table_column(&table, "share", "%", ALIGN_RIGHT);
    table_column(&table, "", NULL, ALIGN_LEFT);
    for (int c = 0; c < N_WORK_CLASSES; c++) {
        if (!(by->s[c] > 0))
            continue;
        table_cell(&table, "%s", work_class_name((enum work_class)c));
        table_cell(&table, "%.*f", decimals, by->s[c]);
        table_cell(&table, "%.1f", 100 * by->s[c] / total);
        table_cell(&table, "%s", meanings[c]);
    }
    table_cell(&table, "total");
    table_cell(&table, "%.*f", decimals, total);
    table_cell(&table, "100.0");
    table_cell(&table, "%s", "");
    table_write_text(&table, call);
    table_free(&table);
}
