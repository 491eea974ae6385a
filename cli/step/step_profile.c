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

struct kernel {
    const struct profile_kernel *of;
};

/* Kernels' names run to a thousand characters of template arguments; the beginning tells them apart. */
#define KERNEL_ROWS(ROW)                                                                                                         \
    ROW(kernel, name, as_text(s->of->name), "", JSON, "its name in the trace", .title = "longest kernels", .show = "%.60s")      \
    ROW(kernel, kind, as_text(profile_kind_name(s->of->kind)), "", JSON, "the class it counts for", .title = "taken for",        \
        .show = "%s")                                                                                                            \
    ROW(kernel, launches, as_count(s->of->launches), "", JSON, "launches in the trace", .show = "%.0f")                          \
    ROW(kernel, seconds, as_real(s->of->seconds), "s", JSON, "their time", .title = "time", .show = "%.4f")                      \
    ROW(kernel, each_s, as_real(s->of->seconds / (double)s->of->launches), "s", 0, "time of one", .title = "each",               \
        .text_unit = "us", .scale = 1e6, .show = "%.1f")
RESULT_ROWS(profile_kernel_rows, KERNEL_ROWS)

static void write_kernels(const struct step_profile *with, const struct invocation *call)
{
    const struct profile *p = &with->profile;
    size_t steps = p->n_steps * (size_t)p->steps_each;
    struct table table = {0};
    rows_columns(profile_kernel_rows, &(struct kernel){&(struct profile_kernel){.launches = 1}}, &table);
    for (size_t i = 0; i < p->n_kernels && i < KERNELS_SHOWN; i++)
        rows_cells(profile_kernel_rows, &(struct kernel){&p->kernels[i]}, &table);
    table_write_text(&table, call);
    table_free(&table);
    if (steps > 1)
        fprintf(call->out, "(launches and times of the whole trace, %zu steps)\n", steps);
}

struct idle {
    const struct profile *profile;
    const struct profile_idle *gaps;
    double steps;
};

/* A kernel, or where the step begins or ends. */
static struct value side_of(const struct idle *idle, int64_t kernel, const char *end)
{
    const struct profile *p = idle->profile;
    if (kernel >= 0)
        return as_text(p->kernels[kernel].name);
    return shown_as(as_json(json_string("")), "(the %s %s)", p->marked ? "step" : "trace", end);
}

static struct value gaps_of(const struct idle *idle)
{
    double gaps = (double)idle->gaps->gaps / idle->steps;
    return gaps < 1000 ? as_real(gaps) : shown_as(as_real(gaps), "%.0f", gaps);
}

#define IDLE_ROWS(ROW)                                                                                                           \
    ROW(idle, after, side_of(s, s->gaps->after, "begins"), "", JSON, "kernel before the gaps", .title = "idle after",            \
        .show = "%.40s")                                                                                                         \
    ROW(idle, before, side_of(s, s->gaps->before, "ends"), "", JSON, "kernel behind them", .title = "until", .show = "%.40s")    \
    ROW(idle, gaps_per_step, gaps_of(s), "", JSON, "gaps in a step", .title = "gaps", .text_unit = "a step", .show = "%.4g")     \
    ROW(idle, seconds_per_step, as_real(s->gaps->seconds / s->steps), "s", JSON, "their time in a step", .title = "time",        \
        .text_unit = "s a step", .show = "%.4f")                                                                                 \
    ROW(idle, longest_s, as_real(s->gaps->longest_s), "s", JSON, "the longest", .title = "longest", .text_unit = "ms",           \
        .scale = 1e3, .show = "%.3f")                                                                                            \
    ROW(idle, longest_at_s, as_real(s->gaps->longest_at_s), "s", JSON, "when it began, in its step or in an unmarked trace",     \
        .title = "which began", .text_unit = "s into the step or trace", .show = "%.4f")                                         \
    ROW(idle, longest_step, as_count((int64_t)s->gaps->longest_step), "", JSON, "the step that it is in")
RESULT_ROWS(profile_idle_rows, IDLE_ROWS)

/* Where the device waits for the host, as far as that is worth a line. */
static void write_idles(const struct step_profile *with, const struct invocation *call)
{
    const struct profile *p = &with->profile;
    double steps = (double)p->n_steps * p->steps_each;
    struct profile_idle idles[IDLES_SHOWN];
    size_t n = profile_idles_of(p, idles, IDLES_SHOWN), shown = 0;
    struct table table = {0};
    for (; shown < n && idles[shown].seconds / steps >= IDLE_SHOWN * with->measured.step_s; shown++) {
        const struct idle idle = {p, &idles[shown], steps};
        if (shown == 0)
            rows_columns(profile_idle_rows, &idle, &table);
        rows_cells(profile_idle_rows, &idle, &table);
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
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list,
                              rows_object(profile_idle_rows, &(struct idle){p, &idles[i], (double)p->n_steps * p->steps_each}));
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
    fputs("(exchanges: only the exposed part; measured times include waiting for the last rank)\n\n", call->out);
    write_idles(with, call);
    write_kernels(with, call);
    fputc('\n', call->out);
}

static json_t *kernels_json(const struct profile *p)
{
    json_t *kernels = json_array();
    for (size_t i = 0; i < p->n_kernels; i++)
        json_array_append_new(kernels, rows_object(profile_kernel_rows, &(struct kernel){&p->kernels[i]}));
    return kernels;
}

static json_t *kinds_json(const double seconds[N_PROFILE_KINDS])
{
    json_t *kinds = json_object();
    for (int k = 0; k < N_PROFILE_KINDS; k++)
        json_object_set_new(kinds, profile_kind_name((enum profile_kind)k), json_real(seconds[k]));
    return kinds;
}

#define PROFILE_ROWS(ROW)                                                                                                        \
    ROW(step_profile, file, as_text(s->path), "", JSON, "file of the trace")                                                     \
    ROW(step_profile, gpu, as_text(s->profile.gpu), "", JSON, "GPU that it was recorded on")                                     \
    ROW(step_profile, rank, as_count(s->profile.rank), "", JSON, "rank that was traced; -1: unknown")                            \
    ROW(step_profile, stage, as_count(s->stage), "", JSON, "its pipeline stage; -1: unknown")                                    \
    ROW(step_profile, steps, as_count((int)s->profile.n_steps * s->profile.steps_each), "", JSON, "steps in the trace")          \
    ROW(step_profile, marked, as_flag(s->profile.marked), "", JSON, "whether it marks its steps")                                \
    ROW(step_profile, predicted_s, as_real(s->step_s), "s", JSON, "predicted time of the step")                                  \
    ROW(step_profile, measured_s, as_real(s->measured.step_s), "s", JSON, "measured time of the step")                           \
    ROW(step_profile, predicted, as_json(kinds_json(s->predicted_s)), "s", JSON, "predicted time by kind of work")               \
    ROW(step_profile, measured, as_json(kinds_json(s->measured.exposed_s)), "s", JSON, "measured time by kind of work")          \
    ROW(step_profile, hidden, as_json(kinds_json(s->measured.hidden_s)), "s", JSON, "measured time behind other work")           \
    ROW(step_profile, kernels, as_json(kernels_json(&s->profile)), "", JSON, "each kernel, longest first")                       \
    ROW(step_profile, idle, as_json(idles_json(&s->profile)), "", JSON, "longest gaps between kernels")
RESULT_ROWS(profile_rows, PROFILE_ROWS)

json_t *step_profile_json(const struct step_profile *with)
{
    return rows_object(profile_rows, with);
}
