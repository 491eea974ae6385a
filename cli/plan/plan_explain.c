#include "cli/plan/plan_explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/layout_json.h"
#include "cli/output/table.h"
#include "cli/plan/plan_report.h"
#include "model/base/units.h"
#include "model/spec/json_text.h"

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

/* What a plan is shown beside. */
struct beside {
    const char *name;
    const struct ranked_plan *plan;
};

static void write_layout(const char *what, const struct layout *layout, FILE *out)
{
    char text[LAYOUT_TEXT];
    fprintf(out, "%-8s%s", what, layout_format(layout, text, sizeof text));
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
    fprintf(out, "        %-10s %6d ranks", group_kind_name(kind), span.ranks);
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
    fprintf(out, "        %lld micro-batch%s of %d per replica, %d model chunk%s of %.1f layers\n", micro_batches,
            micro_batches == 1 ? "" : "es", layout->micro_batch, chunks, chunks == 1 ? "" : "s",
            (double)setting->model->layers / chunks);
    static const enum group_kind kinds[] = {GROUP_TP, GROUP_CP_HEADS,  GROUP_CP,     GROUP_DP,
                                            GROUP_EP, GROUP_EXPERT_DP, GROUP_REPLICA};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (has_groups(setting->model, layout, kinds[i]))
            write_group(layout, setting, kinds[i], out);
    fprintf(out, "        step %.*f s, MFU %.1f %% (%s); closed form %.*f s (%+.1f %%)\n\n", decimals, step_s,
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
    table_column(&table, "this", "s", ALIGN_RIGHT);
    table_column(&table, "of step", "%", ALIGN_RIGHT);
    table_column(&table, beside->name, "s", ALIGN_RIGHT);
    table_column(&table, "more", "s", ALIGN_RIGHT);
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
    table_column(&table, "this", "GiB", ALIGN_RIGHT);
    table_column(&table, beside->name, "GiB", ALIGN_RIGHT);
    table_column(&table, "more", "GiB", ALIGN_RIGHT);
    struct memory_part this_one[N_MEMORY_PARTS], that_one[N_MEMORY_PARTS];
    memory_parts(here, this_one);
    memory_parts(&there, that_one);
    for (int i = 0; i < N_MEMORY_PARTS; i++)
        memory_row(&table, this_one[i].name, this_one[i].bytes, that_one[i].bytes);
    memory_row(&table, "total", here->total, there.total);
    fputc('\n', call->out);
    table_write(&table, call);
    table_free(&table);
    double left = x->capacity_bytes - here->total;
    fprintf(call->out, "stage %d of %d is the fullest; ", x->memory_stage, x->plan.plan.layout.pp);
    if (left >= 0)
        fprintf(call->out, "%.1f of %.1f GiB stay free%s\n", left / GIB, x->capacity_bytes / GIB,
                here->total > memory_limit(setting) ? ", less than the margin" : "");
    else
        fprintf(call->out, "it does not fit: %.1f GiB more than the %.1f there are\n", -left / GIB, x->capacity_bytes / GIB);
}

/* How to look closer; features are no part of a layout's text. */
static void write_hint(const struct layout *layout, const struct setting *setting, const struct invocation *call)
{
    char text[LAYOUT_TEXT];
    FILE *out = call->out;
    bool from_file = call->n_operands > 0 && strcmp(call->operands[0], "-") != 0;
    fprintf(out, "\nmsim step %s%s--layout %s", from_file ? call->operands[0] : "", from_file ? " " : "",
            layout_format(layout, text, sizeof text));
    const char *before = " --features ";
    for (int i = 0; layout->features != setting->job->features && i < N_FEATURES; i++)
        if (layout->features >> i & 1) {
            fprintf(out, "%s%s", before, feature_name((enum feature)i));
            before = ",";
        }
    fprintf(out, " --explain shows each kernel and exchange%s\n",
            from_file && call->n_overrides == 0 ? "" : " (with the job's options as here)");
}

/* The best plan, or the next one where the best is what is explained. */
static struct beside beside_of(const struct explanation *x, const struct ranked_plan *plans, int n_plans)
{
    const struct layout *this = &x->plan.plan.layout, *best = &plans[0].plan.layout;
    char texts[2][LAYOUT_TEXT];
    bool same = n_plans > 1 && this->features == best->features &&
                strcmp(layout_format(this, texts[0], sizeof texts[0]), layout_format(best, texts[1], sizeof texts[1])) == 0;
    return (struct beside){.name = same ? "next" : "best", .plan = &plans[same]};
}

void explanation_write(const struct explanation *explanation, const struct ranked_plan *plans, int n_plans,
                       const struct setting *setting, struct invocation *call)
{
    struct beside beside = beside_of(explanation, plans, n_plans);
    bool text = call->format == FORMAT_TEXT;
    if (text) {
        plan_job_write(setting, call->out);
        fputc('\n', call->out);
        write_layout("this", &explanation->plan.plan.layout, call->out);
        if (explanation->reason != LAYOUT_LEGAL)
            fprintf(call->out, "        is not legal: %s\n", explanation->why);
        else
            write_facts(explanation, setting, call->out);
        write_layout(beside.name, &beside.plan->plan.layout, call->out);
        fputc('\n', call->out);
    }
    if (explanation->reason != LAYOUT_LEGAL)
        return;
    write_seconds(explanation, &beside, call);
    if (!text)
        return;
    write_memory(explanation, &beside, setting, call);
    write_hint(&explanation->plan.plan.layout, setting, call);
}

/* --- JSON --- */

static json_t *footprint_json(const struct footprint *f)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "weights", f->weights / GIB, "gradients", f->gradients / GIB,
                     "optimizer", f->optimizer / GIB, "activations", f->activations / GIB, "buffers", f->buffers / GIB,
                     "framework", f->framework / GIB, "total", f->total / GIB);
}

json_t *explanation_json(const struct explanation *x, const struct setting *setting)
{
    const struct plan *plan = &x->plan.plan;
    json_t *json = json_object();
    json_object_set_new(json, "layout", layout_json(&plan->layout));
    json_object_set_new(json, "features", features_json(plan->layout.features));
    json_object_set_new(json, "legal", json_boolean(x->reason == LAYOUT_LEGAL));
    if (x->reason != LAYOUT_LEGAL) {
        json_object_set_new(json, "reason", json_string(layout_reason_key(x->reason)));
        json_object_set_new(json, "why", json_text(x->why));
        return json;
    }
    json_object_set_new(json, "fits", json_boolean(x->memory.total <= x->capacity_bytes));
    json_object_set_new(json, "step_time_s", json_real(ranked_step_s(&x->plan)));
    json_object_set_new(json, "simulated", json_boolean(x->plan.simulated));
    json_object_set_new(json, "mfu_pct", json_real(100 * ranked_mfu(&x->plan, setting)));
    json_object_set_new(json, "breakdown", cost_by_class_json(ranked_breakdown(&x->plan)));
    json_object_set_new(json, "closed_form_s", json_real(plan->estimate.step_s));
    json_object_set_new(json, "closed_form_breakdown", cost_by_class_json(&plan->estimate.by_class));
    json_object_set_new(json, "memory_gib", footprint_json(&x->memory));
    json_object_set_new(json, "memory_stage", json_integer(x->memory_stage));
    return json;
}
