#include "cli/plan/plan_explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/job/plan_record.h"
#include "cli/options/next_command.h"
#include "cli/output/layout_json.h"
#include "cli/output/table.h"
#include "model/base/append.h"
#include "model/base/units.h"

/* --- what is asked for --- */

static enum status find_rank(const char *asked, const struct ranked_plan *plans, int n_plans, struct ranked_plan *found,
                             struct diags *diags)
{
    char *end;
    long rank = strtol(asked, &end, 10);
    if (*end != '\0' || rank < 1 || rank > n_plans) {
        diag_error(diags, PLACE_NONE, "--explain %s: there is no such rank; ranks are 1 to %d, and --top shows more", asked,
                   n_plans);
        return STATUS_USAGE;
    }
    *found = plans[rank - 1];
    return STATUS_OK;
}

static bool is_rank(const char *asked)
{
    return asked[0] != '\0' && asked[strspn(asked, "0123456789")] == '\0';
}

enum status explanation_make(const char *asked, const struct setting *setting, const struct ranked_plan *plans, int n_plans,
                             int threads, struct explanation *explanation, struct diags *diags)
{
    struct ranked_plan plan = {0};
    enum status status = is_rank(asked)
                             ? find_rank(asked, plans, n_plans, &plan, diags)
                             : plan_complete(asked, (struct place){.file = "--explain"}, setting, threads, &plan.plan, diags);
    if (status == STATUS_OK)
        plan_explain(&plan, setting, explanation, diags);
    return status;
}

/* --- text --- */

/* The plan that is explained, and another one: the best, or the next where the best is explained. In text they are called by
 * their ranks, and a layout without rank is "explained"; in CSV "this" and "best" or "next". */
struct beside {
    char explained[24], other[24], difference[56];
    const struct ranked_plan *plan; /* the other */
};

static void write_layout(const char *what, const struct layout *layout, FILE *out)
{
    char text[LAYOUT_TEXT];
    fprintf(out, "%-11s%s", what, layout_format(layout, text, sizeof text));
    for (int i = 0; i < N_FEATURES; i++)
        if (layout->features >> i & 1)
            fprintf(out, " %s", feature_name((enum feature)i));
    fputc('\n', out);
}

/* "tp: 8 GPUs, all within one NVLink domain" */
static void write_group(const struct layout *layout, const struct setting *setting, enum group_kind kind, FILE *out)
{
    struct group_span span = layout_span(layout, setting->cluster, kind);
    if (span.ranks <= 1)
        return;
    fprintf(out, "           %-10s %6d ranks", group_kind_name(kind), span.ranks);
    if (span.domains == 1)
        fprintf(out, " in one NVLink domain\n");
    else
        fprintf(out, " over %d NVLink domains, %d %s, %d pod%s; ", span.domains, span.leaves,
                span.leaves == 1 ? "leaf" : "leaves", span.pods, span.pods == 1 ? "" : "s");
    if (span.domains > 1 && span.sharing == 1)
        fputs("no other such group on its NICs\n", out);
    else if (span.domains > 1)
        fprintf(out, "%d such groups share a NIC\n", span.sharing);
}

static bool has_groups(const struct transformer *model, const struct layout *layout, enum group_kind kind)
{
    switch (kind) {
    case GROUP_EP:
    case GROUP_EXPERT_DP: return model->moe.experts > 0;
    case GROUP_REPLICA: return layout->shard > 0;
    case GROUP_CP: return layout_cp_keys(layout) > 1 || layout->cp == 1;
    case GROUP_CP_HEADS: return layout_cp_heads(layout) > 1;
    default: return true;
    }
}

static void write_facts(const struct explanation *x, const struct setting *setting, FILE *out)
{
    const struct layout *layout = &x->plan.plan.layout;
    double step_s = ranked_step_s(&x->plan);
    long long micro_batches = layout_micro_batches(layout, setting->job);
    int chunks = layout->pp * layout->vpp, decimals = step_s < 0.1 ? 6 : 3;
    double apart = 100 * (x->plan.plan.estimate.step_s / step_s - 1);
    fprintf(out, "           %lld micro-batch%s of %d per replica, %d model chunk%s of %.1f layers\n", micro_batches,
            micro_batches == 1 ? "" : "es", layout->micro_batch, chunks, chunks == 1 ? "" : "s",
            (double)setting->model->layers / chunks);
    static const enum group_kind kinds[] = {GROUP_TP, GROUP_CP_HEADS,  GROUP_CP,     GROUP_DP,
                                            GROUP_EP, GROUP_EXPERT_DP, GROUP_REPLICA};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (has_groups(setting->model, layout, kinds[i]))
            write_group(layout, setting, kinds[i], out);
    fprintf(out, "           step %.*f s, MFU %.1f %% (%s); closed form %.*f s (%+.1f %%)\n\n", decimals, step_s,
            100 * ranked_mfu(&x->plan, setting), x->plan.simulated ? "simulated" : "closed form", decimals,
            x->plan.plan.estimate.step_s, fabs(apart) < 0.05 ? 0 : apart); /* not -0.0 */
}

static void seconds_row(struct table *table, const char *name, double here, double step_s, double best, double closed)
{
    table_cell(table, "%s", name);
    table_cell(table, "%.4f", here);
    table_cell(table, "%.1f", 100 * here / step_s);
    table_cell(table, "%.4f", best);
    table_tint(table, here - best > 0.005 * step_s ? TINT_BAD : best - here > 0.005 * step_s ? TINT_GOOD : TINT_NONE);
    difference_cell(table, here - best, 4);
    table_cell(table, "%.4f", closed);
}

static void write_seconds(const struct explanation *x, const struct beside *beside, struct invocation *call)
{
    const struct cost_by_class *here = ranked_breakdown(&x->plan), *there = ranked_breakdown(beside->plan);
    const struct cost_by_class *closed = &x->plan.plan.estimate.by_class;
    double step_s = ranked_step_s(&x->plan);
    struct table table = {0};
    table_column(&table, "where the time goes", NULL, ALIGN_LEFT);
    table_column(&table, beside->explained, "s", ALIGN_RIGHT);
    table_column(&table, "of step", "%", ALIGN_RIGHT);
    table_column(&table, beside->other, "s", ALIGN_RIGHT);
    table_column(&table, beside->difference, "s", ALIGN_RIGHT);
    table_column(&table, "closed form", "s", ALIGN_RIGHT);
    for (int i = 0; i < N_WORK_CLASSES; i++)
        if (here->s[i] > 0 || there->s[i] > 0 || closed->s[i] > 0)
            seconds_row(&table, work_class_name((enum work_class)i), here->s[i], step_s, there->s[i], closed->s[i]);
    seconds_row(&table, "step", step_s, step_s, ranked_step_s(beside->plan), x->plan.plan.estimate.step_s);
    table_write(&table, call);
    table_free(&table);
}

static void memory_row(struct table *table, const char *name, double here, double best)
{
    table_cell(table, "%s", name);
    table_cell(table, "%.2f", here / GIB);
    table_cell(table, "%.2f", best / GIB);
    difference_cell(table, (here - best) / GIB, 2);
}

static void write_memory(const struct explanation *x, const struct beside *beside, const struct setting *setting,
                         struct invocation *call)
{
    const struct footprint *here = &x->memory;
    struct footprint there;
    footprint_peak(&beside->plan->plan.layout, setting, &there, NULL);
    struct table table = {0};
    table_column(&table, "where the memory goes", NULL, ALIGN_LEFT);
    table_column(&table, beside->explained, "GiB", ALIGN_RIGHT);
    table_column(&table, beside->other, "GiB", ALIGN_RIGHT);
    table_column(&table, beside->difference, "GiB", ALIGN_RIGHT);
    struct memory_part this_one[N_MEMORY_PARTS], that_one[N_MEMORY_PARTS];
    memory_parts(here, this_one);
    memory_parts(&there, that_one);
    for (int i = 0; i < N_MEMORY_PARTS; i++)
        memory_row(&table, this_one[i].name, this_one[i].bytes, that_one[i].bytes);
    memory_row(&table, "total", here->total, there.total);
    fputc('\n', call->out);
    table_write(&table, call);
    table_free(&table);
    fprintf(call->out, "stage %d of %d is the fullest: it needs %.1f of %.1f GiB", x->memory_stage, x->plan.plan.layout.pp,
            here->total / GIB, x->capacity_bytes / GIB);
    if (here->total > x->capacity_bytes)
        fprintf(call->out, ", so it does not fit\n");
    else if (here->total > memory_limit(setting))
        fprintf(call->out, ", but the memory margin leaves %.1f GiB\n", memory_limit(setting) / GIB);
    else
        fputc('\n', call->out);
}

void plan_step_write(const struct layout *layout, const struct job *job, const char *more, const struct invocation *call)
{
    char text[LAYOUT_TEXT], names[FEATURES_TEXT], command[LAYOUT_TEXT + FEATURES_TEXT + 64];
    bool features = layout->features != job->features || option_given(call, "features");
    const char *const without[] = {"layout", features ? "features" : NULL, NULL};
    snprintf(command, sizeof command, "--layout %s%s%s%s", layout_format(layout, text, sizeof text),
             features ? " --features " : "", features ? features_text(layout->features, ",", names, sizeof names) : "", more);
    next_command_write(call, "step", without, command);
}

static bool same_layout(const struct layout *a, const struct layout *b)
{
    char texts[2][LAYOUT_TEXT];
    return a->features == b->features &&
           strcmp(layout_format(a, texts[0], sizeof texts[0]), layout_format(b, texts[1], sizeof texts[1])) == 0;
}

/* What two plans are called, of which `rank` (from 1; 0: it has none) is explained. */
static struct beside beside_of(int rank, const struct ranked_plan *plans, int n_plans, bool text)
{
    int other = rank == 1 && n_plans > 1;
    struct beside beside = {.plan = &plans[other]};
    snprintf(beside.explained, sizeof beside.explained, text && rank > 0 ? "plan %d" : text ? "explained" : "this", rank);
    if (text)
        snprintf(beside.other, sizeof beside.other, "plan %d", other + 1);
    else
        snprintf(beside.other, sizeof beside.other, "%s", other ? "next" : "best");
    snprintf(beside.difference, sizeof beside.difference, text ? "%s - %s" : "more", beside.explained, beside.other);
    return beside;
}

void explanation_write(const struct explanation *explanation, const struct ranked_plan *plans, int n_plans,
                       const struct setting *setting, struct invocation *call)
{
    const struct layout *layout = &explanation->plan.plan.layout;
    bool text = call->format == FORMAT_TEXT;
    int rank = n_plans;
    while (rank > 0 && !same_layout(&plans[rank - 1].plan.layout, layout))
        rank--;
    const struct beside beside = beside_of(rank, plans, n_plans, text);
    if (text) {
        plan_job_write(setting, call->out);
        fputc('\n', call->out);
        write_layout(beside.explained, layout, call->out);
        if (explanation->reason != LAYOUT_LEGAL)
            fprintf(call->out, "           is not legal: %s\n", explanation->why);
        else
            write_facts(explanation, setting, call->out);
        write_layout(beside.other, &beside.plan->plan.layout, call->out);
        fputc('\n', call->out);
    }
    if (explanation->reason != LAYOUT_LEGAL)
        return;
    write_seconds(explanation, &beside, call);
    if (!text)
        return;
    write_memory(explanation, &beside, setting, call);
    plan_step_write(layout, setting->job, " --explain", call);
}

/* --- JSON --- */

static json_t *footprint_json(const struct footprint *memory)
{
    json_t *json = memory_parts_json(memory);
    json_object_set_new(json, "total", json_real(memory->total / GIB));
    return json;
}

/* One plan in its setting. */
struct explained {
    const struct explanation *x;
    const struct ranked_plan *plan;
    const struct setting *setting;
};

static struct value if_legal(const struct explained *s, struct value value)
{
    return present_if(s->x->reason == LAYOUT_LEGAL, value);
}

static struct value if_not(const struct explained *s, const char *text)
{
    return present_if(s->x->reason != LAYOUT_LEGAL, as_text(text));
}

#define EXPLANATION_ROWS(ROW)                                                                                                    \
    ROW(explained, layout, as_json(layout_json(&s->plan->plan.layout)), "", JSON, "dimensions of the layout")                    \
    ROW(explained, features, as_json(features_json(s->plan->plan.layout.features)), "", JSON, "software features that it uses")  \
    ROW(explained, legal, as_flag(s->x->reason == LAYOUT_LEGAL), "", JSON, "whether the layout is legal")                        \
    ROW(explained, reason, if_not(s, layout_reason_key(s->x->reason)), "", JSON, "the rule that it breaks")                      \
    ROW(explained, why, if_not(s, s->x->why), "", JSON, "the same in a sentence")                                                \
    ROW(explained, fits, if_legal(s, as_flag(s->x->memory.total <= s->x->capacity_bytes)), "", JSON,                             \
        "whether it fits in memory")                                                                                             \
    ROW(explained, step_time_s, if_legal(s, as_real(ranked_step_s(s->plan))), "s", JSON, "duration of a step")                   \
    ROW(explained, simulated, if_legal(s, as_flag(s->plan->simulated)), "", JSON, "whether the time is simulated")               \
    ROW(explained, mfu_pct, if_legal(s, as_real(100 * ranked_mfu(s->plan, s->setting))), "%", JSON,                              \
        "MFU, attention counted in full")                                                                                        \
    ROW(explained, breakdown, if_legal(s, as_classes(ranked_breakdown(s->plan))), "s", JSON, "time by class of work")            \
    ROW(explained, closed_form_s, if_legal(s, as_real(s->plan->plan.estimate.step_s)), "s", JSON, "duration by the closed form") \
    ROW(explained, closed_form_breakdown, if_legal(s, as_classes(&s->plan->plan.estimate.by_class)), "s", JSON,                  \
        "its time by class of work")                                                                                             \
    ROW(explained, memory_gib, if_legal(s, as_json(footprint_json(&s->x->memory))), "GiB", JSON, "memory of the fullest stage")  \
    ROW(explained, memory_stage, if_legal(s, as_count(s->x->memory_stage)), "", JSON, "the fullest stage")
RESULT_ROWS(explanation_rows, EXPLANATION_ROWS)

json_t *explanation_json(const struct explanation *x, const struct setting *setting)
{
    return rows_object(explanation_rows, &(struct explained){x, &x->plan, setting});
}
