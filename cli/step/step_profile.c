#include "cli/step/step_profile.h"

#include <string.h>

#include "cli/output/explain.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "model/spec/catalog.h"
#include "model/spec/json_text.h"

enum { KERNELS_SHOWN = 12, IDLES_SHOWN = 5 };
#define IDLE_SHOWN 0.005 /* of a step: less is not worth a line */

/* --- reading ------------------------------------------------------------------------------------------------------- */

static void check_machine(const struct step_profile *with, const struct job_setup *setup, bool told, struct diags *diags)
{
    const struct profile *p = &with->profile;
    struct place at = {.file = with->path};
    struct diags quiet = {0};
    struct gpu gpu;
    if (*p->gpu && catalog_gpu(p->gpu, &gpu, &quiet) == STATUS_OK && strcmp(gpu.name, setup->experiment.cluster.gpu.name) != 0)
        diag_warning(diags, at, "the trace was recorded on %s, but the prediction is for %s", p->gpu,
                     setup->experiment.cluster.gpu.name);
    diags_free(&quiet);
    if (p->world > 0 && p->world != setup->experiment.gpus)
        diag_warning(diags, at, "the trace is from a job of %d ranks, but the prediction is for %d", p->world,
                     setup->experiment.gpus);
    if (!p->marked)
        diag_note(diags, at, "the trace marks no steps; msim takes all of it as %d step%s%s", p->steps_each,
                  p->steps_each == 1 ? "" : "s", told ? "" : "; --profile-steps sets their number");
    else if (told)
        diag_note(diags, at, "--profile-steps has no effect, because the trace marks its steps");
}

static void tell_of_launches(void *progress, double done, double total)
{
    progress_turn(progress, "launches of the profile");
    progress_update(progress, done, total);
}

static enum status read_profile(struct invocation *call, const struct job_setup *setup, struct step_profile *with)
{
    struct progress progress = progress_begin(call, "reading the profile");
    const struct profile_watch watch = {.file = {progress_update, &progress}, .text = {tell_of_launches, &progress}};
    size_t limit = (size_t)option_quantity(call, "profile-limit");
    enum status status = profile_read(with->path, limit, &setup->layout, &watch, &with->profile, &call->diags);
    progress_end(&progress);
    return status;
}

enum status step_profile_load(struct invocation *call, const struct job_setup *setup, struct step_profile *with, bool *given)
{
    const char *path = option_text(call, "profile");
    *given = path != NULL;
    if (!path)
        return STATUS_OK;
    *with = (struct step_profile){.path = path, .stage = -1};
    enum status status = read_profile(call, setup, with);
    if (status != STATUS_OK) {
        *given = false;
        return status;
    }
    bool told = option_given(call, "profile-steps");
    if (!with->profile.marked)
        with->profile.steps_each = (int)option_count(call, "profile-steps");
    check_machine(with, setup, told, &call->diags);
    with->measured = profile_account_of(&with->profile);
    if (with->profile.rank >= 0 && with->profile.rank < setup->experiment.gpus && with->profile.world == setup->experiment.gpus)
        with->stage = layout_coordinates(&setup->layout, with->profile.rank).pp;
    return STATUS_OK;
}

void step_profile_free(struct step_profile *with)
{
    profile_free(&with->profile);
}

/* --- predicting ---------------------------------------------------------------------------------------------------- */

void step_profile_complete(struct step_profile *with, const struct job_setup *setup, const struct breakdown *stages)
{
    static const struct {
        enum work_class class;
        enum profile_kind kind;
    } wholes[] = {{CLASS_OPTIMIZER, PROFILE_OPTIMIZER}, {CLASS_HOST, PROFILE_IDLE},  {CLASS_TP_COMM, PROFILE_TP},
                  {CLASS_CP_COMM, PROFILE_CP},          {CLASS_EP_COMM, PROFILE_EP}, {CLASS_PP_COMM, PROFILE_PP},
                  {CLASS_BUBBLE, PROFILE_PP},           {CLASS_DP_COMM, PROFILE_DP}};
    struct cost_by_class mean = breakdown_mean(stages, with->stage);
    double share[N_WORK_CLASSES][N_PROFILE_KINDS];
    explain_kinds(&setup->layout, &setup->setting, share);
    memset(with->predicted_s, 0, sizeof with->predicted_s);
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
        with->predicted_s[wholes[i].kind] += mean.s[wholes[i].class];
        mean.s[wholes[i].class] = 0;
    }
    for (int c = 0; c < N_WORK_CLASSES; c++)
        for (int k = 0; k < N_PROFILE_KINDS; k++)
            with->predicted_s[k] += mean.s[c] * share[c][k];
    with->step_s = 0;
    for (int k = 0; k < N_PROFILE_KINDS; k++)
        with->step_s += with->predicted_s[k];
}

/* --- showing ------------------------------------------------------------------------------------------------------- */

/* The unit of a profile's times: milliseconds where a step takes less than a tenth of a second. */
struct unit {
    const char *name, *each; /* of a time, of a time in each step */
    double per_s;
};

static struct unit unit_of(const struct step_profile *with)
{
    return with->measured.step_s < 0.1 ? (struct unit){"ms", "ms a step", 1e3} : (struct unit){"s", "s a step", 1};
}

static void off_cells(struct table *table, struct unit unit, double predicted_s, double measured_s, double step_s)
{
    table_cell(table, "%.4f", unit.per_s * predicted_s);
    table_cell(table, "%.4f", unit.per_s * measured_s);
    table_cell(table, "%+.4f", unit.per_s * (predicted_s - measured_s));
    table_cell(table, "%+.1f", 100 * (predicted_s - measured_s) / step_s);
}

static void write_kinds(const struct step_profile *with, const struct invocation *call)
{
    struct unit unit = unit_of(with);
    struct table table = {0};
    table_column(&table, "on the device", NULL, ALIGN_LEFT);
    table_column(&table, "predicted", unit.name, ALIGN_RIGHT);
    table_column(&table, "measured", unit.name, ALIGN_RIGHT);
    table_column(&table, "off", unit.name, ALIGN_RIGHT);
    table_column(&table, "off", "% of step", ALIGN_RIGHT);
    table_column(&table, "hidden", unit.name, ALIGN_RIGHT);
    for (int k = 0; k < N_PROFILE_KINDS; k++) {
        double predicted = with->predicted_s[k], measured = with->measured.exposed_s[k], hidden = with->measured.hidden_s[k];
        if (!(predicted > 0) && !(measured > 0) && !(hidden > 0))
            continue;
        table_cell(&table, "%s", profile_kind_text((enum profile_kind)k));
        off_cells(&table, unit, predicted, measured, with->measured.step_s);
        table_cell(&table, hidden > 0 ? "%.4f" : "-", unit.per_s * hidden);
    }
    table_cell(&table, "step");
    off_cells(&table, unit, with->step_s, with->measured.step_s, with->measured.step_s);
    table_cell(&table, "%s", "");
    table_write_text(&table, call);
    table_free(&table);
}

/* Kernels' names run to a thousand characters of template arguments; the beginning tells them apart. */
static void write_kernels(const struct step_profile *with, const struct invocation *call)
{
    const struct profile *p = &with->profile;
    struct unit unit = unit_of(with);
    size_t steps = p->n_steps * (size_t)p->steps_each;
    struct table table = {0};
    table_column(&table, "longest kernels", NULL, ALIGN_LEFT);
    table_column(&table, "taken for", NULL, ALIGN_LEFT);
    table_column(&table, "launches", NULL, ALIGN_RIGHT);
    table_column(&table, "time", unit.name, ALIGN_RIGHT);
    table_column(&table, "each", "us", ALIGN_RIGHT);
    for (size_t i = 0; i < p->n_kernels && i < KERNELS_SHOWN; i++) {
        const struct profile_kernel *k = &p->kernels[i];
        table_cell(&table, "%.60s", k->name);
        table_cell(&table, "%s", profile_kind_name(k->kind));
        table_cell(&table, "%lld", (long long)k->launches);
        table_cell(&table, "%.4f", unit.per_s * k->seconds);
        table_cell(&table, "%.1f", 1e6 * k->seconds / (double)k->launches);
    }
    table_write_text(&table, call);
    table_free(&table);
    if (steps > 1)
        fprintf(call->out, "(launches and times of the whole trace, %zu steps)\n", steps);
}

/* A kernel, or where the step begins or ends. */
static const char *side_of(const struct profile *p, int64_t kernel, const char *none)
{
    return kernel < 0 ? none : p->kernels[kernel].name;
}

/* Where the device waits for the host, as far as that is worth a line. */
static void write_idles(const struct step_profile *with, const struct invocation *call)
{
    const struct profile *p = &with->profile;
    struct unit unit = unit_of(with);
    double steps = (double)p->n_steps * p->steps_each;
    struct profile_idle idles[IDLES_SHOWN];
    size_t n = profile_idles_of(p, idles, IDLES_SHOWN), shown = 0;
    struct table table = {0};
    table_column(&table, "idle after", NULL, ALIGN_LEFT);
    table_column(&table, "until", NULL, ALIGN_LEFT);
    table_column(&table, "gaps", "a step", ALIGN_RIGHT);
    table_column(&table, "time", unit.each, ALIGN_RIGHT);
    table_column(&table, "longest", "ms", ALIGN_RIGHT);
    table_column(&table, "which began", p->marked ? "s into its step" : "s into the trace", ALIGN_RIGHT);
    for (; shown < n && idles[shown].seconds / steps >= IDLE_SHOWN * with->measured.step_s; shown++) {
        const struct profile_idle *idle = &idles[shown];
        table_cell(&table, "%.40s", side_of(p, idle->after, p->marked ? "(the step begins)" : "(the trace begins)"));
        table_cell(&table, "%.40s", side_of(p, idle->before, p->marked ? "(the step ends)" : "(the trace ends)"));
        table_cell(&table, (double)idle->gaps / steps < 1000 ? "%.4g" : "%.0f", (double)idle->gaps / steps);
        table_cell(&table, "%.4f", unit.per_s * idle->seconds / steps);
        table_cell(&table, "%.3f", 1e3 * idle->longest_s);
        table_cell(&table, "%.4f", idle->longest_at_s);
    }
    if (shown > 0) {
        table_write_text(&table, call);
        fputc('\n', call->out);
    }
    table_free(&table);
}

static json_t *idles_json(const struct profile *p)
{
    struct profile_idle idles[IDLES_SHOWN];
    size_t n = profile_idles_of(p, idles, IDLES_SHOWN);
    double steps = (double)p->n_steps * p->steps_each;
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:I}", "after", side_of(p, idles[i].after, ""),
                                              "before", side_of(p, idles[i].before, ""), "gaps_per_step",
                                              (double)idles[i].gaps / steps, "seconds_per_step", idles[i].seconds / steps,
                                              "longest_s", idles[i].longest_s, "longest_at_s", idles[i].longest_at_s,
                                              "longest_step", (json_int_t)idles[i].longest_step));
    return list;
}

void step_profile_write(const struct step_profile *with, const struct invocation *call)
{
    const struct profile *p = &with->profile;
    size_t steps = p->n_steps * (size_t)p->steps_each;
    fprintf(call->out, "compared with %s:\n", with->path);
    if (with->stage >= 0)
        fprintf(call->out, "rank %d of %d, stage %d, ", p->rank, p->world, with->stage);
    fprintf(call->out, "%s%smean of %zu step%s; predicted for %s\n", p->gpu, *p->gpu ? ", " : "", steps, steps == 1 ? "" : "s",
            with->stage >= 0 ? "that stage" : "the mean of all ranks");
    write_kinds(with, call);
    fputs("(exchanges: the part beside which nothing is computed; measured ones include waiting for the last rank)\n\n",
          call->out);
    write_idles(with, call);
    write_kernels(with, call);
    fputc('\n', call->out);
}

static json_t *kernels_json(const struct profile *p)
{
    json_t *kernels = json_array();
    for (size_t i = 0; i < p->n_kernels; i++) {
        const struct profile_kernel *k = &p->kernels[i];
        json_array_append_new(kernels, json_pack("{s:s, s:s, s:I, s:f}", "name", k->name, "kind", profile_kind_name(k->kind),
                                                 "launches", (json_int_t)k->launches, "seconds", k->seconds));
    }
    return kernels;
}

static json_t *kinds_json(const double seconds[N_PROFILE_KINDS])
{
    json_t *kinds = json_object();
    for (int k = 0; k < N_PROFILE_KINDS; k++)
        json_object_set_new(kinds, profile_kind_name((enum profile_kind)k), json_real(seconds[k]));
    return kinds;
}

json_t *step_profile_json(const struct step_profile *with)
{
    const struct profile *p = &with->profile;
    return json_pack("{s:o, s:s, s:i, s:i, s:i, s:b, s:f, s:f, s:o, s:o, s:o, s:o, s:o}", "file", json_text(with->path), "gpu",
                     p->gpu, "rank", p->rank, "stage", with->stage, "steps", (int)p->n_steps * p->steps_each, "marked", p->marked,
                     "predicted_s", with->step_s, "measured_s", with->measured.step_s, "predicted", kinds_json(with->predicted_s),
                     "measured", kinds_json(with->measured.exposed_s), "hidden", kinds_json(with->measured.hidden_s), "kernels",
                     kernels_json(p), "idle", idles_json(p));
}
