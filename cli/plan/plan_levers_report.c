#include <stdlib.h>
#include <string.h>

#include "cli/output/expectation.h"
#include "cli/output/notes.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "cli/plan/plan_levers.h"
#include "cli/plan/plan_report.h"
#include "model/base/append.h"

static const double WORTH_A_LINE = 0.001; /* of the tokens a second */

/* --- JSON and CSV: every lever --- */

/* The gain is null where there is nothing to gain on. */
static json_t *levered_json(const struct levered_plan *plan, bool base_fits)
{
    json_t *json = json_pack("{s:s, s:s, s:s, s:b, s:b}", "change", plan->change, "kind", plan_lever_kind_names[plan->kind],
                             "option", plan->option, "legal", plan->legal, "fits", plan->fits);
    if (!plan->fits)
        return json;
    json_object_set_new(json, "tokens_per_s", json_real(plan->best.tokens_per_s));
    json_object_set_new(json, "gain_pct", base_fits ? json_real(100 * plan->gain) : json_null());
    json_object_set(json, "plan", plan->best.json);
    return json;
}

static enum status report_json(const struct plan_levers *levers, struct invocation *call)
{
    char *config = experiment_to_json(levers->experiment);
    json_t *root = result_create(call, config), *items = json_array();
    free(config);
    for (int i = 0; i < levers->n_items; i++)
        json_array_append_new(items, levered_json(&levers->items[i], levers->base.fits));
    json_t *base = levers->base.fits ? json_incref(levers->base.best.json) : json_null();
    json_object_set_new(root, "levers", json_pack("{s:o, s:o}", "plan", base, "changes", items));
    return result_write(call, root);
}

static void csv_row(struct table *table, const struct levered_plan *plan, const char *kind, bool base_fits)
{
    size_t before = table->n_cells;
    table_cell(table, "%s", plan->change);
    table_cell(table, "%s", kind);
    if (plan->fits) {
        table_cell(table, "%.12g", plan->best.tokens_per_s);
        if (base_fits)
            table_cell(table, "%.12g", 100 * plan->gain);
        else
            table_cell(table, "%s", "");
        plan_cells_csv(table, &plan->best.ranked, &plan->best.rates, plan->best.use, plan->best.host_bytes);
    }
    while (table->n_cells - before < table->n_columns - 1)
        table_cell(table, "%s", "");
    table_cell(table, "%s", plan->option);
}

static void report_csv(const struct plan_levers *levers, const struct invocation *call)
{
    struct table table = {0};
    table_column(&table, "change", NULL, ALIGN_LEFT);
    table_column(&table, "kind", NULL, ALIGN_LEFT);
    table_column(&table, "tokens_per_s", NULL, ALIGN_LEFT);
    table_column(&table, "gain", "%", ALIGN_LEFT);
    plan_columns_csv(&table);
    table_column(&table, "option", NULL, ALIGN_LEFT);
    csv_row(&table, &levers->base, "", levers->base.fits);
    for (int i = 0; i < levers->n_items; i++)
        csv_row(&table, &levers->items[i], plan_lever_kind_names[levers->items[i].kind], levers->base.fits);
    table_write(&table, call);
    table_free(&table);
}

/* --- text: what makes a difference in a table, the rest by name --- */

static bool has_line(const struct plan_levers *levers, const struct levered_plan *plan)
{
    return plan->fits && (!levers->base.fits || plan->gain > WORTH_A_LINE || plan->gain < -WORTH_A_LINE);
}

/* Has a lever over schedules a line? */
static bool lists_schedule(const struct plan_levers *levers)
{
    for (int i = 0; i < levers->n_items; i++)
        if (strcmp(levers->items[i].change, "rare schedules") == 0 && has_line(levers, &levers->items[i]))
            return true;
    return false;
}

static void text_row(struct table *table, const struct levered_plan *plan, const char *kind, bool base_fits)
{
    char text[128], number[48];
    double share = memory_record_share(plan->best.use);
    table_cell(table, "%s", plan->change);
    table_cell(table, "%s", kind);
    table_cell(table, "%s%s", layout_brief(&plan->best.ranked.plan.layout, text, sizeof text), plan->best.uneven ? " ~" : "");
    table_cell(table, plan->best.step_s < 1 ? "%.4f" : "%.3f", plan->best.step_s);
    table_cell(table, "%.1f", 100 * plan->best.mfu);
    table_cell(table, "%.0f", 100 * plan->best.use);
    table_tint(table, share > SHARE_WITH_MARGIN ? TINT_WARN : TINT_NONE);
    table_cell(table, "%.0f", 100 * share);
    table_cell(table, "%s", quantity_format(plan->best.tokens_per_s, DIM_COUNT, number, sizeof number));
    if (!*kind || !base_fits) {
        table_cell(table, "-");
    } else {
        table_tint(table, plan->gain > 0 ? TINT_GOOD : TINT_WARN);
        table_cell(table, "%+.1f", 100 * plan->gain);
    }
    table_cell(table, "%s", *plan->option ? plan->option : "-");
}

static void write_table(const struct plan_levers *levers, const struct invocation *call)
{
    struct table table = {0};
    table_column(&table, "change", NULL, ALIGN_LEFT);
    table_column(&table, "kind", NULL, ALIGN_LEFT);
    table_column(&table, "layout", NULL, ALIGN_LEFT);
    table_column(&table, "step", "s", ALIGN_RIGHT);
    table_column(&table, "MFU", "%", ALIGN_RIGHT);
    table_column(&table, "used", "%", ALIGN_RIGHT);
    table_column(&table, "OOM", "%", ALIGN_RIGHT);
    table_column(&table, "tokens/s", NULL, ALIGN_RIGHT);
    table_column(&table, "gain", "%", ALIGN_RIGHT);
    table_column(&table, "option", NULL, ALIGN_LEFT);
    if (levers->base.fits)
        text_row(&table, &levers->base, "", true);
    for (int i = 0; i < levers->n_items; i++)
        if (has_line(levers, &levers->items[i]))
            text_row(&table, &levers->items[i], plan_lever_kind_names[levers->items[i].kind], levers->base.fits);
    table_write(&table, call);
    table_free(&table);
}

/* One line: the levers without a line of their own that fit, or do not. */
static void write_others(const struct plan_levers *levers, bool fits, const char *title, FILE *out)
{
    char text[2048] = "";
    for (int i = 0; i < levers->n_items; i++)
        if (levers->items[i].fits == fits && !has_line(levers, &levers->items[i]))
            text_append(text, sizeof text, "%s%s", *text ? ", " : "", levers->items[i].change);
    if (*text)
        fprintf(out, "%s: %s.\n", title, text);
}

static void report_text(const struct plan_levers *levers, const struct invocation *call)
{
    const struct experiment *e = levers->experiment;
    bool uneven = levers->base.best.uneven;
    char gpus[32], batch[32];
    for (int i = 0; i < levers->n_items; i++)
        uneven |= levers->items[i].best.uneven;
    fprintf(call->out, "%s on %s x %s (%s), batch %s x %lld tokens, %s: best layout with one change each\n", e->model.name,
            grouped(e->gpus, gpus, sizeof gpus), e->cluster.gpu.name, e->cluster.name,
            grouped(e->job.global_batch, batch, sizeof batch), (long long)e->job.seq_len, precision_name(e->job.precision));
    plan_features_write(&e->job, call->out);
    fputc('\n', call->out);
    if (!levers->base.fits)
        fprintf(call->out, "Without a change nothing fits%s.\n\n", levers->base.legal ? "" : ": no layout is legal");
    write_table(levers, call);
    fputs("gain: increase in tokens per second. Changes of the model or the job also change how it learns.\n", call->out);
    if (lists_schedule(levers))
        fputs("Rare schedules: only zb-v, dualpipe and dualpipe-v, which few frameworks support.\n", call->out);
    fputs("MFU counts attention in full.\n", call->out);
    if (e->job.load.dropped > 0)
        note_write(call->out, 2, DROPPED_NOTE);
    if (job_masks_documents(&e->job))
        note_write(call->out, 2, PACKED_MFU_NOTE);
    fputs("OOM: share of runs that fill as much memory and ran out of it; --memory-margin leaves room.\n", call->out);
    if (uneven)
        note_write(call->out, 2, UNEVEN_NOTE);
    write_others(levers, true, "No effect (below 0.1 %)", call->out);
    write_others(levers, false, "Not possible, or does not fit", call->out);
}

enum status plan_levers_report(const struct plan_levers *levers, struct invocation *call)
{
    if (call->format == FORMAT_JSON)
        return report_json(levers, call);
    if (call->format == FORMAT_CSV)
        report_csv(levers, call);
    else
        report_text(levers, call);
    return STATUS_OK;
}
