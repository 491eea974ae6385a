/* What stands below the table of a sweep: what its columns mean, why points have no plan, and which point a deadline chooses. */
#include <string.h>

#include "cli/job/plan_low_oom.h"
#include "cli/job/plan_record.h"
#include "cli/output/expectation.h"
#include "cli/output/notes.h"
#include "cli/plan/plan_sweep.h"
#include "model/base/append.h"
#include "model/cost/step/track_record.h"

/* --- of one point --- */

const struct experiment *sweep_first_experiment(const struct plan_sweep *sweep)
{
    const struct plan_point *point = sweep->found.points;
    while (point->status != STATUS_OK)
        point++;
    return &point->experiment;
}

bool sweep_is_unpriced(const struct plan_sweep *sweep, const struct plan_point *point)
{
    return point->gpu_hours > 0 && point->cost <= 0 && sweep->prices.n_items > 0;
}

char *sweep_point_why(const struct plan_point *point, char buffer[SWEEP_WHY_TEXT])
{
    const struct diags *diags = &point->diags;
    size_t error = 0;
    while (error < diags->n_items && diags->items[error].severity != SEVERITY_ERROR)
        error++;
    buffer[0] = '\0';
    if (point->status != STATUS_OK)
        return text_append(buffer, SWEEP_WHY_TEXT, "%s", error < diags->n_items ? diags->items[error].text : "it cannot be read");
    if (point->legal)
        return text_append(buffer, SWEEP_WHY_TEXT, "no layout fits: the smallest is %.1f GiB too large",
                           point->missing_bytes / GIB);
    return text_append(buffer, SWEEP_WHY_TEXT, "no layout on %d GPU%s is legal: %s", point->experiment.gpus,
                       plural(point->experiment.gpus), layout_reason_text(point->reason));
}

char *sweep_point_unheard(const struct plan_point *point, char *buffer, size_t size)
{
    const struct setting setting = experiment_setting(&point->experiment);
    buffer[0] = '\0';
    return point->fits ? expectation_unheard(&point->best.plan.layout, &setting, buffer, size) : buffer;
}

/* --- below the table --- */

/* What values with commas have in common stands here instead of in each row. */
static void write_common(const struct plan_axes *axes, FILE *out)
{
    char common[SWEEP_TEXT];
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            if (sweep_values_common(sweep_key_at(axes, a, k), axes->axes[a].n_values, common, sizeof common) > 0)
                fprintf(out, "%s: all rows have %s; the column shows the differences\n", sweep_key_at(axes, a, k)->word, common);
}

/* Why points have no plan. */
static void write_reasons(const struct plan_sweep *sweep, FILE *out)
{
    char text[512], why[SWEEP_WHY_TEXT];
    for (int i = 0; i < sweep->found.n; i++)
        if (!sweep->found.points[i].fits)
            fprintf(out, "%s: %s\n", plan_axes_text(&sweep->axes, i, text, sizeof text),
                    sweep_point_why(&sweep->found.points[i], why));
}

/* The range that predictions of these steps can be expected to keep: of each kind of run among them. */
static void write_expectation(const struct plan_sweep *sweep, FILE *out)
{
    bool there[N_RUN_KINDS] = {false};
    int n_kinds = 0;
    for (int i = 0; i < sweep->found.n; i++) {
        const struct plan_point *point = &sweep->found.points[i];
        enum run_kind kind = point->fits ? run_kind_of(&point->best.plan.layout, &point->experiment.model) : 0;
        n_kinds += point->fits && !there[kind];
        there[kind] |= point->fits;
    }
    for (int kind = 0; kind < N_RUN_KINDS; kind++) {
        const struct track_record *record = track_record_of((enum run_kind)kind);
        if (!there[kind])
            continue;
        if (n_kinds > 1)
            note_write(
                out, 2,
                "Expect %.2f to %.2f times the predicted step of layouts that are %s: 80 %% interval from %d published runs.",
                record->low, record->high, run_kind_text((enum run_kind)kind), record->runs);
        else
            note_write(out, 2,
                       "Expect %.2f to %.2f times each predicted step: 80 %% interval from %d published runs of this kind (%s).",
                       record->low, record->high, record->runs, run_kind_text((enum run_kind)kind));
    }
}

/* Which points have what no run of the record has. */
static void write_unheard(const struct plan_sweep *sweep, FILE *out)
{
    const char *before = "^ none of these runs is ";
    char own[UNHEARD_TEXT], other[UNHEARD_TEXT];
    for (int i = 0; i < sweep->found.n; i++) {
        bool told = !sweep_point_unheard(&sweep->found.points[i], own, sizeof own)[0];
        for (int k = 0; k < i && !told; k++)
            told = strcmp(sweep_point_unheard(&sweep->found.points[k], other, sizeof other), own) == 0;
        if (told)
            continue;
        fprintf(out, "%s%s", before, own);
        before = "; ";
    }
    if (before[0] == ';')
        fputs(": the interval is less reliable for these\n", out);
}

/* Of the point whose layout fills an oversubscribed fabric most. */
static void write_fabric_note(const struct plan_sweep *sweep, FILE *out)
{
    char text[512], narrow[OVERSUBSCRIBED_TEXT], worst[OVERSUBSCRIBED_TEXT] = "";
    double most = 0;
    int n = 0, at = 0;
    for (int i = 0; i < sweep->found.n; i++) {
        const struct plan_point *point = &sweep->found.points[i];
        double load = 0;
        if (point->fits)
            load = oversubscribed_text(&point->best.plan.layout, &point->experiment.cluster, narrow, sizeof narrow);
        n += load > 0;
        if (load > most) {
            most = load;
            at = i;
            memcpy(worst, narrow, sizeof worst);
        }
    }
    if (n > 0)
        note_write(out, 2, "Network at %s%s: %s.", plan_axes_text(&sweep->axes, at, text, sizeof text),
                   n > 1 ? " (highest load)" : "", worst);
}

/* What the columns of plans mean, where they have a number. */
static void write_column_notes(const struct plan_sweep *sweep, const struct sweep_traits *some, FILE *out)
{
    if (!some->fits)
        return;
    fprintf(out, "MFU counts attention in full%s.\n", some->rates_differ ? "; 'causal' counts only the causal half" : "");
    if (some->drops)
        note_write(out, 2, DROPPED_NOTE);
    if (some->masks)
        note_write(out, 2, PACKED_MFU_NOTE);
    if (some->margins_differ)
        fputs("OOM: share of runs that fill as much memory and ran out of it.\n", out);
    else
        note_write(out, 2, OOM_MARGIN_NOTE, 100 * sweep_first_experiment(sweep)->job.memory_margin);
    if (some->offloads)
        fputs("host: host memory per rank.\n", out);
}

/* What the column energy counts, and of which points nobody knows it. */
static void write_energy_note(const struct plan_sweep *sweep, FILE *out)
{
    const struct power_bound *first = NULL;
    char text[512];
    bool alike = true;
    for (int i = 0; i < sweep->found.n; i++) {
        const struct power_bound *bound = &sweep->found.points[i].power;
        if (sweep->found.points[i].energy_j <= 0)
            continue;
        alike = alike && (!first || power_bounds_alike(bound, first));
        first = first ? first : bound;
    }
    if (!first)
        return;
    note_write(out, 2, "Energy is an upper bound: %s.",
               alike ? power_bound_text(first, text, sizeof text) : power_count_text(sweep->found.counted));
    for (int i = 0; i < sweep->found.n; i++)
        if (sweep->found.points[i].experiment.job.tokens > 0 && sweep->found.points[i].fits &&
            sweep->found.points[i].energy_j <= 0)
            fprintf(out, "%s: the power of %s is not published.\n", plan_axes_text(&sweep->axes, i, text, sizeof text),
                    sweep->found.points[i].experiment.cluster.gpu.name);
}

/* Whose cost is left out of the column. */
static void write_price_note(const struct plan_sweep *sweep, FILE *out)
{
    const struct plan_point *points = sweep->found.points;
    for (int i = 0; i < sweep->found.n; i++) {
        const char *gpu = points[i].experiment.cluster.gpu.name;
        bool told = !sweep_is_unpriced(sweep, &points[i]);
        for (int k = 0; k < i && !told; k++)
            told = sweep_is_unpriced(sweep, &points[k]) && strcmp(points[k].experiment.cluster.gpu.name, gpu) == 0;
        if (!told)
            fprintf(out, "%s has no price, so its cost is left out: --gpu-price %s=X\n", gpu, gpu);
    }
}

static const char *const least_texts[] = {
    [LEAST_GPU_HOURS] = "in the fewest GPU-hours", [LEAST_ENERGY] = "with the least energy", [LEAST_COST] = "at the least cost"};

/* Which point meets the deadline with the least; where none does, the one that comes closest. */
static void write_choice(const struct plan_sweep *sweep, FILE *out)
{
    const struct plan_points *found = &sweep->found;
    char number[48], within[48], energy[48], text[512];
    int shown = found->cheapest;
    for (int i = 0; found->cheapest < 0 && i < found->n; i++)
        if (found->points[i].fits && (shown < 0 || found->points[i].days < found->points[shown].days))
            shown = i;
    if (found->within_s <= 0 || shown < 0)
        return;
    const struct plan_point *point = &found->points[shown];
    const struct setting setting = experiment_setting(&point->experiment);
    quantity_format(found->within_s, DIM_TIME, within, sizeof within);
    if (found->cheapest >= 0)
        fprintf(out, "Done within %s %s: ", within, least_texts[found->least]);
    else if (point->days * 86400 <= found->within_s)
        fprintf(out, "No point that is done within %s has a %s; the fastest: ", within,
                found->least == LEAST_COST ? "price" : "published power");
    else
        fprintf(out, "None is done within %s; the fastest: ", within);
    fprintf(out, "%s (%.1f days, %s GPU-hours", plan_axes_text(&sweep->axes, shown, text, sizeof text), point->days,
            grouped((int64_t)(point->gpu_hours + 0.5), number, sizeof number));
    if (point->cost > 0)
        fprintf(out, ", cost %s", grouped((int64_t)(point->cost + 0.5), number, sizeof number));
    if (point->energy_j > 0)
        fprintf(out, ", at most %s", energy_text(point->energy_j, energy, sizeof energy));
    double share = memory_record_share(plan_use(&point->best, &setting));
    if (share > SHARE_RISKY)
        fprintf(out, "; %.0f %% of runs that fill as much memory ran out of it: --memory-margin leaves room", 100 * share);
    fputs(").\n", out);
}

void sweep_notes_write(const struct plan_sweep *sweep, const struct sweep_traits *some, FILE *out)
{
    if (some->grown)
        fputs("* more GPUs than the cluster entry has: nodes of the same kind are added\n", out);
    if (some->usual)
        fputs("A GPU without a cluster is assumed in its usual nodes on a non-blocking fabric.\n", out);
    if (some->uneven)
        note_write(out, 2, UNEVEN_NOTE);
    write_common(&sweep->axes, out);
    if (some->batch_is_one_sequence) /* there was no other batch, and with more GPUs there is more work */
        fputs("The batch is one sequence per GPU, so it grows with the GPUs (weak scaling); --global-batch fixes it.\n", out);
    write_reasons(sweep, out);
    write_expectation(sweep, out);
    write_unheard(sweep, out);
    write_fabric_note(sweep, out);
    write_column_notes(sweep, some, out);
    write_energy_note(sweep, out);
    write_price_note(sweep, out);
    write_choice(sweep, out);
    if (sweep->budgeted)
        fputs("Days do not include failures; msim run adds them.\n", out);
}
