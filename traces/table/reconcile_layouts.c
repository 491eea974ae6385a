/* reconcile_layouts.c - micro-batches and recomputation that a table assumes. */
#include <math.h>

#include "model/cost/memory/footprint.h"
#include "model/cost/step/closed_form.h"
#include "model/cost/step/min_recompute_layers.h"
#include "traces/table/reconcile_internal.h"

static bool fits(const struct measurement *row, const struct layout *layout)
{
    struct setting setting = measurement_setting(row);
    struct footprint peak;
    if (layout_check(layout, &setting, NULL, 0) != LAYOUT_LEGAL)
        return false;
    footprint_peak(layout, &setting, &peak, NULL);
    return peak.total <= footprint_capacity(&row->cluster);
}

static struct layout with_recompute(const struct measurement *row, struct recompute recompute)
{
    struct layout layout = row->layout;
    layout.recompute = recompute;
    return layout;
}

/* --- micro-batches */

/* The least multiple of the assumed micro-batch, by doubling, that the fused softmax takes; itself when none does, or when that
 * one does not fit and it does. */
static int fusing_micro_batch(const struct measurement *row)
{
    struct layout l = row->layout;
    int64_t replica = row->job.global_batch / l.dp;
    bool fuses = l.features & (FEATURE_BIT(FUSED_SOFTMAX) | FEATURE_BIT(FUSED_OPS)) && !(l.features & FEATURES_FLASH);
    while (fuses && replica % l.micro_batch == 0) {
        if (layout_fuses_softmax(&l, row->model.heads))
            return fits(row, &l) || !fits(row, &row->layout) ? l.micro_batch : row->layout.micro_batch;
        l.micro_batch *= 2;
    }
    return row->layout.micro_batch;
}

/* The choice of the planner instead of an assumed one; the assumed one if none fits. */
static int tuned_micro_batch(const struct measurement *row)
{
    enum { LARGEST = 8 };
    struct layout l = row->layout;
    struct setting setting = measurement_setting(row);
    struct closed_form *form = closed_form_create(&setting);
    double best = HUGE_VAL, capacity = footprint_capacity(&row->cluster);
    int taken = l.micro_batch;
    for (l.micro_batch = 1; l.micro_batch <= LARGEST; l.micro_batch *= 2) {
        struct step_estimate estimate;
        if (layout_check(&l, &setting, NULL, 0) != LAYOUT_LEGAL || closed_form_memory(form, &l) > capacity)
            continue;
        closed_form_estimate(form, &l, &estimate);
        if (estimate.step_s < best) {
            best = estimate.step_s;
            taken = l.micro_batch;
        }
    }
    closed_form_destroy(form);
    return taken;
}

static int likely_micro_batch(const struct measurement *row)
{
    if (row->oom || row->layout.dp < 1 || !(row->open & OPEN_MICRO_BATCH))
        return row->layout.micro_batch;
    return row->layout.pp > 1 ? tuned_micro_batch(row) : fusing_micro_batch(row);
}

void reconcile_micro_batches(struct measurement_table *table, struct diags *diags)
{
    size_t n = 0, first = 0;
    for (size_t i = 0; i < table->n_items; i++) {
        struct measurement *row = &table->items[i];
        int micro_batch = likely_micro_batch(row);
        if (micro_batch != row->layout.micro_batch && n++ == 0)
            first = i;
        row->layout.micro_batch = micro_batch;
    }
    if (n)
        diag_warning(
            diags, table->items[first].at,
            "%zu row%s assume%s a micro-batch that a fused softmax does not support, or one that is not the fastest for the "
            "pipeline; msim uses the one that the authors are likely to have run",
            n, n == 1 ? "" : "s", n == 1 ? "s" : "");
}

/* --- recomputation */

/* The fewest of each virtual stage's layers that are to be repeated whole; none where all of them are not enough. */
static struct recompute fewest_whole_layers(const struct measurement *row)
{
    struct recompute taken = {.what = RECOMPUTE_FULL};
    struct layout full = with_recompute(row, taken);
    if (!fits(row, &full))
        return (struct recompute){0};
    struct setting setting = measurement_setting(row);
    struct closed_form *form = closed_form_create(&setting);
    taken.layers = min_recompute_layers(form, &setting, &full, footprint_capacity(&row->cluster));
    taken.of = taken.layers ? RECOMPUTE_FIRST : RECOMPUTE_ALL;
    closed_form_destroy(form);
    return taken;
}

/* A row that ran cannot have kept everything where that does not fit: the least with which it fits; nothing where it is not
 * asked, or nothing makes it fit. */
static struct recompute fitting_recompute(const struct measurement *row)
{
    const struct recompute none = {0}, light = {.what = layout_light_modules(&row->model)};
    const struct layout repeating = with_recompute(row, light);
    bool ran = !row->oom && !row->outcome_unknown && row->layout.dp >= 1;
    if (!ran || row->layout.recompute.what != RECOMPUTE_NONE || !(row->open & OPEN_RECOMPUTE) || fits(row, &row->layout))
        return none;
    if (fits(row, &repeating))
        return light;
    return row->cluster.gpu.host_rate > 0 ? none : fewest_whole_layers(row);
}

void reconcile_recomputation(struct measurement_table *table, struct diags *diags)
{
    size_t n = 0, n_full = 0, first = 0;
    for (size_t i = 0; i < table->n_items; i++) {
        struct measurement *row = &table->items[i];
        const struct recompute recompute = fitting_recompute(row);
        if (recompute.what == RECOMPUTE_NONE)
            continue;
        if (n++ == 0)
            first = i;
        n_full += recompute.what == RECOMPUTE_FULL;
        row->layout.recompute = recompute;
    }
    if (n)
        diag_warning(
            diags, table->items[first].at,
            "%zu row%s assume%s that nothing was recomputed, with which %s not fit, and ran; the least that fits is taken: "
            "norms and activations (and latent attention's up-projections) in %zu, whole layers in %zu",
            n, n == 1 ? "" : "s", n == 1 ? "s" : "", n == 1 ? "it does" : "they do", n - n_full, n_full);
}
