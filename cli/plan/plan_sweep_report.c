/* The best plan at each point of a sweep, for people: what the points share, and a table of them. */
#include <string.h>

#include "cli/output/expectation.h"
#include "cli/output/notes.h"
#include "cli/output/table.h"
#include "cli/plan/plan_sweep_report.h"
#include "model/base/append.h"
#include "model/base/units.h"
#include "model/cost/step/track_record.h"

/* --- points and keys --- */

const struct sweep_key *sweep_key_at(const struct plan_axes *axes, int axis, int key)
{
    return &axes->axes[axis].keys[key];
}

const char *sweep_value_at(const struct plan_axes *axes, int axis, int key, int point)
{
    return sweep_key_at(axes, axis, key)->values[plan_axes_index(axes, axis, point)];
}

static double tokens_per_gpu(const struct sweep_point *point)
{
    return point->best.tokens_per_s / point->gpus;
}

double sweep_scaling(const struct plan_sweep *sweep, int i)
{
    int axis = plan_axes_gpus(&sweep->axes);
    if (axis < 0 || !sweep->points[i].fits)
        return 0;
    int first = plan_axes_first(&sweep->axes, axis, i);
    for (int other = 0; other <= i; other++)
        if (sweep->points[other].fits && plan_axes_first(&sweep->axes, axis, other) == first)
            return tokens_per_gpu(&sweep->points[i]) / tokens_per_gpu(&sweep->points[other]);
    return 0;
}

const struct sweep_point *sweep_first_real(const struct plan_sweep *sweep)
{
    const struct sweep_point *point = sweep->points;
    while (point->why[0])
        point++;
    return point;
}

char *sweep_point_why(const struct sweep_point *point, char *buffer, size_t size)
{
    if (point->why[0])
        snprintf(buffer, size, "%s", point->why);
    else if (point->legal)
        snprintf(buffer, size, "no layout fits: the smallest is %.1f GiB too large", point->missing_bytes / GIB);
    else
        snprintf(buffer, size, "no layout on %d GPU%s is legal: %s", point->gpus, plural(point->gpus),
                 layout_reason_text(point->reason));
    return buffer;
}

bool sweep_is_unpriced(const struct plan_sweep *sweep, int i)
{
    return sweep->points[i].gpu_hours > 0 && sweep->points[i].cost <= 0 && sweep->prices.n_items > 0;
}

/* --- the heading --- */

/* Those that every point allows, and whether some allow more. */
static void write_features(const struct plan_sweep *sweep, FILE *out)
{
    feature_set all = sweep_first_real(sweep)->features, any = 0;
    for (int i = 0; i < sweep->axes.n_points; i++)
        if (!sweep->points[i].why[0]) {
            all &= sweep->points[i].features;
            any |= sweep->points[i].features;
        }
    char text[FEATURES_TEXT], others[FEATURES_TEXT];
    fprintf(out, "features allowed: %s", all ? features_text(all, ", ", text, sizeof text) : "none");
    if (any != all)
        fprintf(out, "; not at every point: %s", features_text(any & ~all, ", ", others, sizeof others));
    fputs("\n\n", out);
}

/* What all points share: "llama3-70b, dgx-h100 (h100-sxm), batch 1,024 x 8192 tokens, bf16". */
static void write_heading(const struct plan_sweep *sweep, FILE *out)
{
    const struct sweep_point *first = sweep_first_real(sweep);
    size_t name = model_name_length(first->model);
    bool model = true, unlike = false, cluster = true, gpus = true, batch = true, seq_len = true, precision = true;
    for (int i = 0; i < sweep->axes.n_points; i++) {
        const struct sweep_point *point = &sweep->points[i];
        if (point->why[0])
            continue;
        model = model && model_name_length(point->model) == name && strncmp(point->model, first->model, name) == 0;
        unlike = unlike || strcmp(point->model, first->model) != 0; /* some change the model, some do not */
        cluster = cluster && strcmp(point->cluster, first->cluster) == 0 && strcmp(point->gpu, first->gpu) == 0;
        gpus = gpus && point->gpus == first->gpus;
        batch = batch && point->global_batch == first->global_batch;
        seq_len = seq_len && point->seq_len == first->seq_len;
        precision = precision && strcmp(point->precision, first->precision) == 0;
    }
    char text[512] = "", number[32];
    if (model)
        text_append(text, sizeof text, ", %.*s", unlike ? (int)name : -1, first->model);
    if (gpus)
        text_append(text, sizeof text, ", %s GPU%s", grouped(first->gpus, number, sizeof number), first->gpus == 1 ? "" : "s");
    if (cluster)
        text_append(text, sizeof text, ", %s (%s)", first->cluster, first->gpu);
    if (batch)
        text_append(text, sizeof text, ", batch %s", grouped(first->global_batch, number, sizeof number));
    if (seq_len)
        text_append(text, sizeof text, batch ? " x %lld tokens" : ", %lld tokens a sequence", (long long)first->seq_len);
    if (precision)
        text_append(text, sizeof text, ", %s", first->precision);
    fprintf(out, "%s%sbest layout of each\n", text[0] ? text + 2 : "", text[0] ? ": " : "");
    write_features(sweep, out);
}

static bool sweeps_key(const struct plan_sweep *sweep, const char *path)
{
    for (int a = 0; a < sweep->axes.n_axes; a++)
        for (int k = 0; k < sweep->axes.axes[a].n_keys; k++)
            if (strcmp(sweep_key_at(&sweep->axes, a, k)->path, path) == 0)
                return true;
    return false;
}

static bool batch_varies(const struct plan_sweep *sweep)
{
    const struct sweep_point *first = sweep_first_real(sweep);
    for (int i = 0; i < sweep->axes.n_points; i++)
        if (!sweep->points[i].why[0] && sweep->points[i].global_batch != first->global_batch)
            return true;
    return false;
}

static struct sweep_traits traits_of(const struct plan_sweep *sweep)
{
    bool follows = batch_varies(sweep) && !sweeps_key(sweep, "job.global_batch");
    struct sweep_traits some = {.batch_follows = follows,
                                .batch_is_one_sequence = follows && !sweeps_key(sweep, "job.batch_tokens")};
    for (int i = 0; i < sweep->axes.n_points; i++) {
        const struct sweep_point *point = &sweep->points[i];
        some.grown |= point->grown;
        some.usual |= point->usual;
        some.batch_is_one_sequence &= point->why[0] || point->global_batch == point->gpus;
        if (!point->fits)
            continue;
        some.fits = true;
        some.uneven |= point->best.uneven;
        some.drops |= point->drops;
        some.masks |= point->masks;
        some.costs |= point->cost > 0;
        some.energy |= point->energy_j > 0;
        some.offloads |= !offload_is_none(&point->best.ranked.plan.layout.offload);
        some.rates_differ |= plan_rates_differ(&point->best.rates);
    }
    return some;
}

static void text_columns(const struct plan_sweep *sweep, const struct sweep_traits *some, struct table *table)
{
    const struct plan_axes *axes = &sweep->axes;
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            table_column(table, sweep_key_at(axes, a, k)->word, NULL, ALIGN_RIGHT);
    if (some->batch_follows)
        table_column(table, "batch", NULL, ALIGN_RIGHT);
    table_column(table, "layout", NULL, ALIGN_LEFT);
    table_column(table, "step", "s", ALIGN_RIGHT);
    table_column(table, "MFU", "%", ALIGN_RIGHT);
    if (some->rates_differ)
        table_column(table, "causal", "%", ALIGN_RIGHT);
    table_column(table, "used", "%", ALIGN_RIGHT);
    table_column(table, "OOM", "%", ALIGN_RIGHT);
    if (some->offloads)
        table_column(table, "host", "GiB", ALIGN_RIGHT);
    table_column(table, "exposed", "%", ALIGN_RIGHT);
    table_column_view(table, VIEW_ALL);
    table_column(table, "bubble", "%", ALIGN_RIGHT);
    table_column_view(table, VIEW_ALL);
    table_column(table, "tokens/s", NULL, ALIGN_RIGHT);
    table_column(table, "a GPU", NULL, ALIGN_RIGHT);
    table_column_view(table, VIEW_ALL);
    if (plan_axes_gpus(axes) >= 0)
        table_column(table, "scaling", "%", ALIGN_RIGHT);
    if (sweep->budgeted) {
        table_column(table, "days", NULL, ALIGN_RIGHT);
        table_column(table, "GPU-hours", NULL, ALIGN_RIGHT);
    }
    if (some->energy) {
        table_column(table, "energy", "MWh", ALIGN_RIGHT);
        table_column_view(table, sweep->least == LEAST_ENERGY ? VIEW_BOTH : VIEW_ALL);
    }
    if (some->costs)
        table_column(table, "cost", NULL, ALIGN_RIGHT);
}

/* Tokens a second of one GPU: four digits, or all before the point, grouped: "9.203", "9,203", "10,183". */
static char *rate_text(double rate, char *buffer, size_t size)
{
    if (rate >= 999.95)
        return grouped((int64_t)(rate + 0.5), buffer, size);
    snprintf(buffer, size, "%#.4g", rate); /* as many digits in each row */
    return buffer;
}

static void measure_cells(const struct plan_sweep *sweep, const struct sweep_traits *some, int i, struct table *table)
{
    const struct sweep_point *point = &sweep->points[i];
    double share = memory_record_share(point->best.use);
    char number[48];
    table_cell(table, point->best.step_s < 1 ? "%.4f" : "%.3f", point->best.step_s);
    table_cell(table, "%.1f", 100 * point->best.mfu);
    if (some->rates_differ)
        table_cell(table, "%.1f", 100 * point->best.rates.mfu_causal);
    table_cell(table, "%.0f", 100 * point->best.use);
    table_tint(table, share > SHARE_WITH_MARGIN ? TINT_WARN : TINT_NONE);
    table_cell(table, "%.0f", 100 * share);
    if (some->offloads)
        table_cell(table, "%.1f", point->best.host_bytes / GIB);
    table_cell(table, "%.1f", 100 * ranked_exposed_s(&point->best.ranked) / point->best.step_s);
    table_cell(table, "%.1f", 100 * ranked_breakdown(&point->best.ranked)->s[CLASS_BUBBLE] / point->best.step_s);
    table_cell(table, "%s", quantity_format(point->best.tokens_per_s, DIM_COUNT, number, sizeof number));
    table_cell(table, "%s", rate_text(point->best.rates.tokens_per_gpu, number, sizeof number));
    if (plan_axes_gpus(&sweep->axes) >= 0)
        table_cell(table, "%.1f", 100 * sweep_scaling(sweep, i));
    if (sweep->budgeted) {
        table_cell(table, "%.1f", point->days);
        table_cell(table, "%s", grouped((int64_t)(point->gpu_hours + 0.5), number, sizeof number));
    }
    if (some->energy)
        table_cell(table, "%s", point->energy_j > 0 ? megawatt_hours_text(point->energy_j, number, sizeof number) : "-");
    if (some->costs)
        table_cell(table, "%s", point->cost > 0 ? grouped((int64_t)(point->cost + 0.5), number, sizeof number) : "-");
}

static void text_row(const struct plan_sweep *sweep, const struct sweep_traits *some, int i, struct table *table)
{
    const struct plan_axes *axes = &sweep->axes;
    const struct sweep_point *point = &sweep->points[i];
    char text[128], number[32], brief[SWEEP_TEXT];
    size_t before = table->n_cells;
    bool no_gpus = plan_axes_gpus(axes) < 0;
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++) {
            bool gpus = strcmp(sweep_key_at(axes, a, k)->path, "cluster.gpus") == 0, starred = gpus || (no_gpus && a + k == 0);
            table_tint(table, i == sweep->cheapest ? TINT_GOOD : TINT_NONE);
            table_cell(table, "%s%s%s",
                       gpus && !point->why[0] ? grouped(point->gpus, number, sizeof number)
                                              : sweep_value_brief(sweep_key_at(axes, a, k), axes->axes[a].n_values,
                                                                  plan_axes_index(axes, a, i), brief, sizeof brief),
                       starred && point->grown ? "*" : "", a + k == 0 && point->unheard[0] ? "^" : "");
        }
    if (some->batch_follows)
        table_cell(table, "%s", point->why[0] ? "-" : grouped(point->global_batch, number, sizeof number));
    if (point->fits) {
        table_cell(table, "%s%s", layout_brief(&point->best.ranked.plan.layout, text, sizeof text),
                   point->best.uneven ? " ~" : "");
        measure_cells(sweep, some, i, table);
        return;
    }
    table_tint(table, TINT_WARN);
    if (point->why[0])
        table_cell(table, "not possible");
    else if (point->legal)
        table_cell(table, "none fits: %.1f GiB too large", point->missing_bytes / GIB);
    else
        table_cell(table, "none is legal");
    while (table->n_cells - before < table->n_columns)
        table_cell(table, "-");
}

static void write_text(const struct plan_sweep *sweep, const struct invocation *call)
{
    const struct sweep_traits some = traits_of(sweep);
    struct table table = {.all = option_choice(call, "columns") > 0};
    write_heading(sweep, call->out);
    text_columns(sweep, &some, &table);
    for (int i = 0; i < sweep->axes.n_points; i++)
        text_row(sweep, &some, i, &table);
    table_write(&table, call);
    table_free(&table);
    sweep_notes_write(sweep, &some, call->out);
}

/* A table for programs has no place for it. */
static void talk_about_reasons(const struct plan_sweep *sweep, const struct invocation *call)
{
    char text[512], why[sizeof sweep->points->why];
    for (int i = 0; i < sweep->axes.n_points; i++)
        if (!sweep->points[i].fits)
            info(call, 0, "%s: %s: %s", sweep->points[i].why[0] ? "left out" : "no plan",
                 plan_axes_text(&sweep->axes, i, text, sizeof text), sweep_point_why(&sweep->points[i], why, sizeof why));
}

enum status plan_sweep_report(const struct plan_sweep *sweep, struct invocation *call)
{
    if (call->format == FORMAT_JSON)
        return sweep_write_json(sweep, call);
    if (call->format == FORMAT_CSV) {
        sweep_write_csv(sweep, call);
        talk_about_reasons(sweep, call);
    } else {
        write_text(sweep, call);
    }
    return STATUS_OK;
}
