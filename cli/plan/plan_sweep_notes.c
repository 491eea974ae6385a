/* What stands below the table of a sweep: what its columns mean, why points have no plan, and which point a deadline chooses. */
#include <string.h>

#include "cli/job/plan_low_oom.h"
#include "cli/output/expectation.h"
#include "cli/output/notes.h"
#include "cli/plan/plan_sweep_report.h"
#include "model/cost/step/track_record.h"

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
    char text[512], why[sizeof sweep->points->why];
    for (int i = 0; i < sweep->axes.n_points; i++)
        if (!sweep->points[i].fits)
            fprintf(out, "%s: %s\n", plan_axes_text(&sweep->axes, i, text, sizeof text),
                    sweep_point_why(&sweep->points[i], why, sizeof why));
}

/* The range that predictions of these steps can be expected to keep: of each kind of run among them. */
static void write_expectation(const struct plan_sweep *sweep, FILE *out)
{
    bool there[N_RUN_KINDS] = {false};
    int n_kinds = 0;
    for (int i = 0; i < sweep->axes.n_points; i++)
        if (sweep->points[i].fits && !there[sweep->points[i].kind]) {
            there[sweep->points[i].kind] = true;
            n_kinds++;
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
    for (int i = 0; i < sweep->axes.n_points; i++) {
        bool told = !sweep->points[i].unheard[0];
        for (int other = 0; other < i && !told; other++)
            told = strcmp(sweep->points[other].unheard, sweep->points[i].unheard) == 0;
        if (told)
            continue;
        fprintf(out, "%s%s", before, sweep->points[i].unheard);
        before = "; ";
    }
    if (before[0] == ';')
        fputs(": the interval is less reliable for these\n", out);
}

/* Of the point whose layout fills an oversubscribed fabric most. */
static void write_fabric_note(const struct plan_sweep *sweep, FILE *out)
{
    char text[512];
    int n = 0, most = 0;
    for (int i = 0; i < sweep->axes.n_points; i++) {
        n += sweep->points[i].narrow[0] != '\0';
        most = sweep->points[i].load > sweep->points[most].load ? i : most;
    }
    if (n > 0)
        note_write(out, 2, "Network at %s%s: %s.", plan_axes_text(&sweep->axes, most, text, sizeof text),
                   n > 1 ? " (highest load)" : "", sweep->points[most].narrow);
}

/* What the columns of plans mean, where they have a number. */
static void write_column_notes(const struct sweep_traits *some, FILE *out)
{
    if (!some->fits)
        return;
    fprintf(out, "MFU counts attention in full%s.\n", some->rates_differ ? "; 'causal' counts only the causal half" : "");
    if (some->drops)
        note_write(out, 2, DROPPED_NOTE);
    if (some->masks)
        note_write(out, 2, PACKED_MFU_NOTE);
    fputs("OOM: share of runs that fill as much memory and ran out of it; --memory-margin leaves room.\n", out);
    if (some->offloads)
        fputs("host: host memory per rank.\n", out);
}

/* What the column energy counts, and of which points nobody knows it. */
static void write_energy_note(const struct plan_sweep *sweep, FILE *out)
{
    const struct power_bound *first = NULL;
    char text[512];
    bool alike = true;
    for (int i = 0; i < sweep->axes.n_points; i++) {
        const struct power_bound *bound = &sweep->points[i].power[sweep->counted];
        if (sweep->points[i].energy_j <= 0)
            continue;
        alike = alike && (!first || power_bounds_alike(bound, first));
        first = first ? first : bound;
    }
    if (!first)
        return;
    note_write(out, 2, "Energy is an upper bound: %s.",
               alike ? power_bound_text(first, text, sizeof text) : power_count_text(sweep->counted));
    for (int i = 0; i < sweep->axes.n_points; i++)
        if (sweep->points[i].tokens > 0 && sweep->points[i].fits && sweep->points[i].energy_j <= 0)
            fprintf(out, "%s: the power of %s is not published.\n", plan_axes_text(&sweep->axes, i, text, sizeof text),
                    sweep->points[i].gpu);
}

/* Whose cost is left out of the column. */
static void write_price_note(const struct plan_sweep *sweep, FILE *out)
{
    for (int i = 0; i < sweep->axes.n_points; i++) {
        const struct sweep_point *point = &sweep->points[i];
        bool told = !sweep_is_unpriced(sweep, i);
        for (int other = 0; other < i && !told; other++)
            told = sweep_is_unpriced(sweep, other) && strcmp(sweep->points[other].gpu, point->gpu) == 0;
        if (!told)
            fprintf(out, "%s has no price, so its cost is left out: --gpu-price %s=X\n", point->gpu, point->gpu);
    }
}

static const char *const least_texts[] = {
    [LEAST_GPU_HOURS] = "in the fewest GPU-hours", [LEAST_ENERGY] = "with the least energy", [LEAST_COST] = "at the least cost"};

/* Which point meets the deadline with the least; where none does, the one that comes closest. */
static void write_choice(const struct plan_sweep *sweep, FILE *out)
{
    char number[48], within[48], energy[48], text[512];
    int shown = sweep->cheapest;
    for (int i = 0; sweep->cheapest < 0 && i < sweep->axes.n_points; i++)
        if (sweep->points[i].fits && (shown < 0 || sweep->points[i].days < sweep->points[shown].days))
            shown = i;
    if (sweep->within_s <= 0 || shown < 0)
        return;
    quantity_format(sweep->within_s, DIM_TIME, within, sizeof within);
    if (sweep->cheapest >= 0)
        fprintf(out, "Done within %s %s: ", within, least_texts[sweep->least]);
    else if (sweep->points[shown].days * 86400 <= sweep->within_s)
        fprintf(out, "No point that is done within %s has a %s; the fastest: ", within,
                sweep->least == LEAST_COST ? "price" : "published power");
    else
        fprintf(out, "None is done within %s; the fastest: ", within);
    fprintf(out, "%s (%.1f days, %s GPU-hours", plan_axes_text(&sweep->axes, shown, text, sizeof text), sweep->points[shown].days,
            grouped((int64_t)(sweep->points[shown].gpu_hours + 0.5), number, sizeof number));
    if (sweep->points[shown].cost > 0)
        fprintf(out, ", cost %s", grouped((int64_t)(sweep->points[shown].cost + 0.5), number, sizeof number));
    if (sweep->points[shown].energy_j > 0)
        fprintf(out, ", at most %s", energy_text(sweep->points[shown].energy_j, energy, sizeof energy));
    double share = memory_record_share(sweep->points[shown].best.use);
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
    write_column_notes(some, out);
    write_energy_note(sweep, out);
    write_price_note(sweep, out);
    write_choice(sweep, out);
    if (sweep->budgeted)
        fputs("Days do not include failures; msim run adds them.\n", out);
}
