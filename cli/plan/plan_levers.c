#include "cli/plan/plan_levers.h"

#include <stdlib.h>
#include <string.h>

#include "cli/job/plan_find.h"
#include "cli/job/plan_record.h"
#include "cli/options/next_command.h"
#include "cli/output/notes.h"
#include "cli/output/progress.h"
#include "cli/output/result.h"
#include "model/base/append.h"
#include "model/cost/step/track_record.h"
#include "traces/table/csv.h"

static const double WORTH_A_LINE = 0.001; /* of the tokens a second */

/* Room for an option of a lever. */
enum { OPTION_TEXT_SIZE = 64 };

char *plan_lever_option(const struct plan_lever *lever, const struct experiment *experiment, char *buffer, size_t size)
{
    buffer[0] = '\0';
    switch (lever->what) {
    case CHANGE_FEATURE: snprintf(buffer, size, "--features +%s", feature_name((enum feature)lever->argument)); break;
    case CHANGE_PRECISION: snprintf(buffer, size, "--precision %s", precision_name((enum precision)lever->argument)); break;
    case CHANGE_GRADIENTS_BF16: snprintf(buffer, size, "--set job.gradient_precision=bf16"); break;
    case CHANGE_SCHEDULES: snprintf(buffer, size, "--space " RARE_SCHEDULES); break;
    case CHANGE_OFFLOAD: snprintf(buffer, size, "--space offload=auto"); break;
    case CHANGE_SHARD: snprintf(buffer, size, "--space shard=0,%d", experiment->cluster.nvlink_domain); break;
    case CHANGE_BATCH: snprintf(buffer, size, "--global-batch %lld", (long long)experiment->job.global_batch * 2); break;
    case CHANGE_EXPERT_LOAD: snprintf(buffer, size, "--expert-load 1"); break;
    default: break; /* hardware */
    }
    return buffer;
}

/* --- rows --- */

/* A row of the report: the job without a change, or with one. */
struct lever_line {
    const struct levered_plan *plan;
    const struct levered_plan *base;
};

static bool is_base(const struct lever_line *s)
{
    return s->plan == s->base;
}

static const char *change_of(const struct lever_line *s)
{
    return is_base(s) ? "as it is" : s->plan->lever.change;
}

/* All zero where nothing fits. */
static struct shown_plan shown_of(const struct lever_line *s, struct setting *setting)
{
    *setting = experiment_setting(&s->plan->point.experiment);
    return s->plan->point.fits ? shown_plan_of(&s->plan->point.best, setting) : (struct shown_plan){0};
}

static struct value option_value(const struct lever_line *s)
{
    char option[OPTION_TEXT_SIZE] = "";
    if (!is_base(s))
        plan_lever_option(&s->plan->lever, &s->base->point.experiment, option, sizeof option);
    return shown_as(as_text(option), "%s", *option ? option : "-");
}

/* Unknown where there is nothing to gain on. */
static struct value gain_value(const struct lever_line *s)
{
    double gain = s->plan->gain;
    bool fits = s->plan->point.fits, known = fits && s->base->point.fits;
    struct value value = tinted(known_if(known, as_real(100 * gain)), gain > 0 ? TINT_GOOD : TINT_WARN);
    if (is_base(s))
        value = tinted(shown_as(value, "-"), TINT_NONE);
    return in_json_if(fits, value);
}

static json_t *best_json(const struct levered_plan *plan)
{
    const struct setting setting = experiment_setting(&plan->point.experiment);
    return plan->point.fits ? plan_json(&plan->point.best, &setting) : NULL;
}

static struct value if_fits(const struct lever_line *s, struct value value)
{
    return in_json_if(s->plan->point.fits, known_if(s->plan->point.fits, value));
}

#define LEVER_ROWS(ROW)                                                                                                          \
    ROW(lever_line, change, as_text(change_of(s)), "", JSON | CSV, "what is changed", .show = "%s")                              \
    ROW(lever_line, kind, as_text(is_base(s) ? "" : plan_lever_kind_names[s->plan->lever.kind]), "", JSON | CSV,                 \
        "what it is part of: software, precision, layout, model, job or hardware", .show = "%s")                                 \
    ROW(lever_line, option, option_value(s), "", JSON | CSV, "the option that makes the change", .show = "%s")                   \
    ROW(lever_line, legal, as_flag(s->plan->point.legal), "", JSON, "whether any layout is legal")                               \
    ROW(lever_line, fits, as_flag(s->plan->point.fits), "", JSON, "whether any fits")                                            \
    ROW(lever_line, tokens_per_s, if_fits(s, as_real(s->plan->point.tokens_per_s)), "1/s", JSON | CSV, "tokens per second",      \
        TWELVE_DIGITS)                                                                                                           \
    ROW(lever_line, gain_pct, gain_value(s), "%", JSON | CSV, "increase of tokens per second", TWELVE_DIGITS, .title = "gain",   \
        .show = "%+.1f")                                                                                                         \
    ROW(lever_line, plan, as_json(best_json(s->plan)), "", JSON, "best plan after the change")
RESULT_ROWS(lever_rows, LEVER_ROWS)

/* --- JSON and CSV: every lever --- */

static enum status report_json(const struct lever_search *levers, struct invocation *call)
{
    char *config = experiment_to_json(&levers->base->point.experiment);
    json_t *root = result_create(call, config), *changes = json_array(), *base = best_json(levers->base);
    free(config);
    for (int i = 0; i < levers->n_items; i++)
        json_array_append_new(changes, rows_object(lever_rows, &(struct lever_line){&levers->items[i], levers->base}));
    json_object_set_new(root, "levers", json_pack("{s:o, s:o}", "plan", base ? base : json_null(), "changes", changes));
    return result_write(call, root);
}

static void report_csv(const struct lever_search *levers, FILE *out)
{
    static const char *const first[] = {"change", "kind", "tokens_per_s", "gain_pct", NULL}, *const last[] = {"option", NULL};
    struct result_row before[MAX_PICKED], behind[MAX_PICKED];
    rows_csv_heading(rows_pick(lever_rows, first, before), NULL, true, out);
    plan_csv_heading(false, out);
    rows_csv_heading(rows_pick(lever_rows, last, behind), NULL, false, out);
    fputc('\n', out);
    for (int i = -1; i < levers->n_items; i++) {
        const struct lever_line line = {i < 0 ? levers->base : &levers->items[i], levers->base};
        struct setting setting;
        const struct shown_plan shown = shown_of(&line, &setting);
        rows_csv_cells(before, &line, true, out);
        plan_csv_cells(line.plan->point.fits ? &shown : NULL, false, out);
        rows_csv_cells(behind, &line, false, out);
        fputc('\n', out);
    }
}

/* --- text: what makes a difference in a table, the rest by name --- */

static bool has_line(const struct lever_search *levers, const struct levered_plan *plan)
{
    return plan->point.fits && (!levers->base->point.fits || plan->gain > WORTH_A_LINE || plan->gain < -WORTH_A_LINE);
}

/* Has a lever over schedules a line? */
static bool lists_schedule(const struct lever_search *levers)
{
    for (int i = 0; i < levers->n_items; i++)
        if (levers->items[i].lever.what == CHANGE_SCHEDULES && has_line(levers, &levers->items[i]))
            return true;
    return false;
}

static void write_table(const struct lever_search *levers, const struct invocation *call)
{
    static const char *const first[] = {"change", "kind", NULL}, *const last[] = {"gain_pct", "option", NULL};
    static const char *const of_plan[] = {"layout",       "step_time_s", "mfu_pct", "memory_pct", "out_of_memory_pct",
                                          "tokens_per_s", NULL};
    struct result_row before[MAX_PICKED], plan[MAX_PICKED], behind[MAX_PICKED];
    struct table table = {0};
    rows_columns(rows_pick(lever_rows, first, before), NULL, &table);
    rows_pick(plan_rows, of_plan, plan);
    plan->view = VIEW_BOTH; /* the layout has no other columns here */
    rows_columns(plan, NULL, &table);
    rows_columns(rows_pick(lever_rows, last, behind), NULL, &table);
    for (int i = -1; i < levers->n_items; i++) {
        const struct lever_line line = {i < 0 ? levers->base : &levers->items[i], levers->base};
        if (i < 0 ? !levers->base->point.fits : !has_line(levers, line.plan))
            continue;
        struct setting setting;
        const struct shown_plan shown = shown_of(&line, &setting);
        rows_cells(before, &line, &table);
        rows_cells(plan, &shown, &table);
        rows_cells(behind, &line, &table);
    }
    table_write(&table, call);
    table_free(&table);
}

/* One line: the levers without a line of their own that fit, or do not. */
static void write_others(const struct lever_search *levers, bool fits, const char *title, FILE *out)
{
    char text[2048] = "";
    for (int i = 0; i < levers->n_items; i++)
        if (levers->items[i].point.fits == fits && !has_line(levers, &levers->items[i]))
            text_append(text, sizeof text, "%s%s", *text ? ", " : "", levers->items[i].lever.change);
    if (*text)
        fprintf(out, "%s: %s.\n", title, text);
}

static bool any_uneven(const struct lever_search *levers)
{
    for (int i = -1; i < levers->n_items; i++) {
        const struct plan_point *point = i < 0 ? &levers->base->point : &levers->items[i].point;
        const struct setting setting = experiment_setting(&point->experiment);
        if (point->fits && plan_is_uneven(&point->best.plan.layout, &setting))
            return true;
    }
    return false;
}

/* The plans after the change that helps most, among those that leave model, job and hardware as they are. */
static void write_next(const struct lever_search *levers, const struct invocation *call)
{
    char option[OPTION_TEXT_SIZE] = "";
    for (int i = 0; i < levers->n_items && !*option && levers->items[i].point.fits; i++)
        if (levers->items[i].lever.kind < LEVER_MODEL && (!levers->base->point.fits || levers->items[i].gain > WORTH_A_LINE))
            plan_lever_option(&levers->items[i].lever, &levers->base->point.experiment, option, sizeof option);
    if (!*option)
        return;
    const char *const without[] = {"levers", strncmp(option, "--precision", 11) == 0 ? "precision" : NULL, NULL};
    next_command_write(call, "plan", without, option);
}

static void report_text(const struct lever_search *levers, const struct invocation *call)
{
    const struct experiment *e = &levers->base->point.experiment;
    char gpus[32], batch[32];
    fprintf(call->out, "%s on %s x %s (%s), batch %s x %lld tokens, %s: best layout with one change each\n", e->model.name,
            grouped(e->gpus, gpus, sizeof gpus), e->cluster.gpu.name, e->cluster.name,
            grouped(e->job.global_batch, batch, sizeof batch), (long long)e->job.seq_len, precision_name(e->job.precision));
    plan_features_write(&e->job, call->out);
    fputc('\n', call->out);
    if (!levers->base->point.fits)
        fprintf(call->out, "Without a change nothing fits%s.\n\n", levers->base->point.legal ? "" : ": no layout is legal");
    write_table(levers, call);
    fputs("gain: increase in tokens per second. Changes of the model or the job also change how it learns.\n", call->out);
    if (lists_schedule(levers))
        fputs("Rare schedules: only zb-2p, zb-v, dualpipe and dualpipe-v, which few frameworks support.\n", call->out);
    fputs("MFU counts attention in full.\n", call->out);
    if (e->job.load.dropped > 0)
        note_write(call->out, 2, DROPPED_NOTE);
    if (job_masks_documents(&e->job))
        note_write(call->out, 2, PACKED_MFU_NOTE);
    note_write(call->out, 2, OOM_MARGIN_NOTE, 100 * e->job.memory_margin);
    if (any_uneven(levers))
        note_write(call->out, 2, UNEVEN_NOTE);
    write_others(levers, true, "No effect (below 0.1 %)", call->out);
    write_others(levers, false, "Not possible, or does not fit", call->out);
    write_next(levers, call);
}

static bool any_fits(const struct lever_search *levers)
{
    bool any = levers->base->point.fits;
    for (int i = 0; i < levers->n_items; i++)
        any |= levers->items[i].point.fits;
    return any;
}

static enum status report(const struct lever_search *levers, struct invocation *call)
{
    if (!any_fits(levers)) {
        diag_error(&call->diags, PLACE_NONE,
                   "no layout fits, not even with one of the %d changes; msim plan without --levers reports what would help",
                   levers->n_items);
        return STATUS_CHECK;
    }
    if (call->format == FORMAT_JSON)
        return report_json(levers, call);
    if (call->format == FORMAT_CSV)
        report_csv(levers, call->out);
    else
        report_text(levers, call);
    return STATUS_OK;
}

enum status plan_levers(const struct experiment *experiment, struct invocation *call)
{
    struct space_limits limits;
    enum status status = plan_limits(call, experiment, &limits, &call->diags);
    if (status != STATUS_OK)
        return status;
    struct progress progress;
    struct lever_search levers;
    const struct plan_search_options options = plan_points_options(call, "levers", &progress);
    levers_search(experiment, &limits, &options, &(struct watch){progress_update, &progress}, &levers);
    progress_end(&progress);
    status = report(&levers, call);
    lever_search_free(&levers);
    return status;
}
