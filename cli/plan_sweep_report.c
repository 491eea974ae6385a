#include <stdlib.h>
#include <string.h>

#include "cli/energy_report.h"
#include "cli/expectation.h"
#include "cli/packed.h"
#include "cli/plan_report.h"
#include "cli/plan_safer.h"
#include "cli/plan_sweep.h"
#include "cli/result.h"
#include "cli/routing.h"
#include "cli/table.h"
#include "model/base/append.h"
#include "model/cost/track_record.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

static const struct sweep_key *key_at(const struct plan_axes *axes, int axis, int key)
{
    return &axes->axes[axis].keys[key];
}

static const char *value_of(const struct plan_axes *axes, int axis, int key, int point)
{
    return key_at(axes, axis, key)->values[plan_axes_index(axes, axis, point)];
}

static double tokens_per_gpu(const struct sweep_point *point)
{
    return point->best.tokens_per_s / point->gpus;
}

/* Tokens a second and GPU over those of the first GPU count that fits, everything else the same; 0: not a question of GPUs. */
static double scaling(const struct plan_sweep *sweep, int i)
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

static const struct sweep_point *first_real(const struct plan_sweep *sweep)
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

/* Are there prices, but none of this point's GPU? */
static bool is_unpriced(const struct plan_sweep *sweep, int i)
{
    return sweep->points[i].gpu_hours > 0 && sweep->points[i].cost <= 0 && sweep->prices.n_items > 0;
}

/* --- JSON --- */

/* A diagnostic, which may quote a name cut within a letter: such bytes become question marks. */
static json_t *diagnostic_json(const char *text)
{
    char ascii[sizeof((struct sweep_point){0}.why)];
    size_t n = 0;
    json_t *json = json_string(text);
    for (; text[n]; n++)
        ascii[n] = (unsigned char)text[n] < 128 ? text[n] : '?';
    ascii[n] = '\0';
    return json ? json : json_string(ascii);
}

static json_t *point_json(const struct plan_sweep *sweep, int i)
{
    const struct sweep_point *point = &sweep->points[i];
    char why[sizeof point->why];
    json_t *values = json_object();
    for (int a = 0; a < sweep->axes.n_axes; a++)
        for (int k = 0; k < sweep->axes.axes[a].n_keys; k++)
            json_object_set_new(values, key_at(&sweep->axes, a, k)->word, json_string(value_of(&sweep->axes, a, k, i)));
    if (point->why[0])
        return json_pack("{s:o, s:o, s:b}", "values", values, "why", diagnostic_json(point->why), "fits", 0);
    json_t *json =
        json_pack("{s:o, s:s, s:s, s:s, s:i, s:I, s:I, s:s, s:b}", "values", values, "model", point->model, "cluster",
                  point->cluster, "gpu", point->gpu, "gpus", point->gpus, "global_batch", (json_int_t)point->global_batch,
                  "seq_len", (json_int_t)point->seq_len, "precision", point->precision, "fits", point->fits);
    if (!point->fits) {
        json_object_set_new(json, "why", diagnostic_json(sweep_point_why(point, why, sizeof why)));
        return json;
    }
    json_object_set_new(json, "tokens_per_s", json_real(point->best.tokens_per_s));
    if (scaling(sweep, i) > 0)
        json_object_set_new(json, "scaling_pct", json_real(100 * scaling(sweep, i)));
    if (point->tokens > 0) {
        json_object_set_new(json, "tokens", json_real(point->tokens));
        json_object_set_new(json, "days", json_real(point->days));
        json_object_set_new(json, "gpu_hours", json_real(point->gpu_hours));
    }
    if (point->cost > 0) {
        json_object_set_new(json, "gpu_price", json_real(point->gpu_price));
        json_object_set_new(json, "cost", json_real(point->cost));
    } else if (is_unpriced(sweep, i))
        json_object_set_new(json, "cost", json_null());
    json_object_set_new(json, "energy_at_most",
                        energy_json(&point->power[sweep->counted], point->gpus, point->gpu_hours, point->best.tokens_per_s));
    json_object_set(json, "plan", point->best.json);
    return json;
}

static enum status report_json(const struct plan_sweep *sweep, struct invocation *call)
{
    const struct plan_axes *axes = &sweep->axes;
    json_t *root = result_create(call, first_real(sweep)->config), *keys = json_array(), *points = json_array();
    for (int a = 0; a < axes->n_axes; a++) {
        json_t *together = json_array();
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            json_array_append_new(together, json_string(key_at(axes, a, k)->word));
        json_array_append_new(keys, json_pack("{s:o, s:i}", "keys", together, "values", axes->axes[a].n_values));
    }
    for (int i = 0; i < axes->n_points; i++)
        json_array_append_new(points, point_json(sweep, i));
    json_t *scaling_ = json_pack("{s:o, s:o}", "axes", keys, "points", points);
    if (sweep->cheapest >= 0)
        json_object_set_new(scaling_, "cheapest", json_integer(sweep->cheapest));
    if (sweep->within_s > 0)
        json_object_set_new(scaling_, "least", json_string(sweep_least_choices[sweep->least]));
    json_object_set_new(root, "scaling", scaling_);
    return result_write(call, root);
}

/* --- CSV --- */

static void csv_numbers(struct table *table, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] > 0)
            table_cell(table, "%.12g", values[i]);
        else
            table_cell(table, "%s", "");
}

/* Has every row a column of its own for this key? Dimensions of layouts have none where nothing fits. */
static bool has_column(const struct sweep_key *key)
{
    static const char *const paths[] = {"model",       "cluster",      "gpu", "cluster.gpus", "job.global_batch",
                                        "job.seq_len", "job.precision"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (strcmp(key->path, paths[i]) == 0)
            return true;
    return false;
}

/* What else is swept, as it was asked for: of point `i`, or their titles where it is -1. Behind all others, which keep their
 * places. */
static void csv_swept(const struct plan_axes *axes, int i, struct table *table)
{
    char title[sizeof axes->axes->keys->word + sizeof "sweep "];
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            if (has_column(key_at(axes, a, k)))
                continue;
            else if (i >= 0)
                table_cell(table, "%s", value_of(axes, a, k, i));
            else {
                snprintf(title, sizeof title, "sweep %s", key_at(axes, a, k)->word);
                table_column(table, title, NULL, ALIGN_LEFT);
            }
}

static void report_csv(const struct plan_sweep *sweep, const struct invocation *call)
{
    static const struct {
        const char *title, *unit;
    } columns[] = {{"model", NULL},        {"cluster", NULL}, {"gpu", NULL},       {"gpus", NULL},
                   {"global batch", NULL}, {"seq len", NULL}, {"precision", NULL}, {"tokens_per_s", NULL},
                   {"scaling", "%"},       {"days", NULL},    {"gpu_hours", NULL}, {"cost", NULL}};
    struct table table = {0};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        table_column(&table, columns[i].title, columns[i].unit, ALIGN_LEFT);
    size_t own = table.n_columns;
    plan_columns_csv(&table);
    table_column(&table, "energy at most", "j", ALIGN_LEFT);
    table_column(&table, "energy counted", NULL, ALIGN_LEFT);
    size_t swept = table.n_columns;
    csv_swept(&sweep->axes, -1, &table);
    for (int i = 0; i < sweep->axes.n_points; i++) {
        const struct sweep_point *point = &sweep->points[i];
        const double values[] = {point->best.tokens_per_s, 100 * scaling(sweep, i), point->days, point->gpu_hours, point->cost};
        if (point->why[0])
            continue;
        table_cell(&table, "%s", point->model);
        table_cell(&table, "%s", point->cluster);
        table_cell(&table, "%s", point->gpu);
        table_cell(&table, "%d", point->gpus);
        table_cell(&table, "%lld", (long long)point->global_batch);
        table_cell(&table, "%lld", (long long)point->seq_len);
        table_cell(&table, "%s", point->precision);
        csv_numbers(&table, values, sizeof values / sizeof values[0]);
        if (point->fits) {
            plan_cells_csv(&table, &point->best.ranked, &point->best.rates, point->best.use, point->best.host_bytes);
            csv_numbers(&table, &point->energy_j, 1);
            table_cell(&table, "%s", point->energy_j > 0 ? power_count_name(sweep->counted) : "");
        }
        for (size_t c = own; c < swept && !point->fits; c++)
            table_cell(&table, "%s", "");
        csv_swept(&sweep->axes, i, &table);
    }
    table_write(&table, call);
    table_free(&table);
}

/* --- text --- */

/* Those that every point allows, and whether some allow more. */
static void write_features(const struct plan_sweep *sweep, FILE *out)
{
    feature_set all = first_real(sweep)->features, any = 0;
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
    const struct sweep_point *first = first_real(sweep);
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
    fprintf(out, "%s%sthe best layout of each\n", text[0] ? text + 2 : "", text[0] ? ": " : "");
    write_features(sweep, out);
}

/* Does a plan keep anything in the memory of the host? */
static bool any_offloads(const struct plan_sweep *sweep)
{
    for (int i = 0; i < sweep->axes.n_points; i++)
        if (sweep->points[i].fits && !offload_is_none(&sweep->points[i].best.ranked.plan.layout.offload))
            return true;
    return false;
}

static bool sweeps_key(const struct plan_sweep *sweep, const char *path)
{
    for (int a = 0; a < sweep->axes.n_axes; a++)
        for (int k = 0; k < sweep->axes.axes[a].n_keys; k++)
            if (strcmp(key_at(&sweep->axes, a, k)->path, path) == 0)
                return true;
    return false;
}

/* Does the batch, in sequences, vary without a column of its own? */
static bool batch_follows(const struct plan_sweep *sweep)
{
    const struct sweep_point *first = first_real(sweep);
    bool varies = false;
    for (int i = 0; i < sweep->axes.n_points; i++)
        varies |= !sweep->points[i].why[0] && sweep->points[i].global_batch != first->global_batch;
    return varies && !sweeps_key(sweep, "job.global_batch");
}

/* Does the convention of MFU make a difference to a plan? */
static bool any_rates_differ(const struct plan_sweep *sweep)
{
    for (int i = 0; i < sweep->axes.n_points; i++)
        if (sweep->points[i].fits && plan_rates_differ(&sweep->points[i].best.rates))
            return true;
    return false;
}

static bool any_energy(const struct plan_sweep *sweep)
{
    for (int i = 0; i < sweep->axes.n_points; i++)
        if (sweep->points[i].energy_j > 0)
            return true;
    return false;
}

static void text_columns(const struct plan_sweep *sweep, struct table *table)
{
    const struct plan_axes *axes = &sweep->axes;
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            table_column(table, key_at(axes, a, k)->word, NULL, ALIGN_RIGHT);
    if (batch_follows(sweep))
        table_column(table, "batch", NULL, ALIGN_RIGHT);
    table_column(table, "layout", NULL, ALIGN_LEFT);
    table_column(table, "step", "s", ALIGN_RIGHT);
    table_column(table, "MFU", "%", ALIGN_RIGHT);
    if (any_rates_differ(sweep))
        table_column(table, "causal", "%", ALIGN_RIGHT);
    table_column(table, "used", "%", ALIGN_RIGHT);
    table_column(table, "OOM", "%", ALIGN_RIGHT);
    if (any_offloads(sweep))
        table_column(table, "host", "GiB", ALIGN_RIGHT);
    table_column(table, "exposed", "%", ALIGN_RIGHT);
    table_column(table, "bubble", "%", ALIGN_RIGHT);
    table_column(table, "tokens/s", NULL, ALIGN_RIGHT);
    table_column(table, "a GPU", NULL, ALIGN_RIGHT);
    if (plan_axes_gpus(axes) >= 0)
        table_column(table, "scaling", "%", ALIGN_RIGHT);
    if (sweep->budgeted) {
        table_column(table, "days", NULL, ALIGN_RIGHT);
        table_column(table, "GPU-hours", NULL, ALIGN_RIGHT);
    }
    if (any_energy(sweep))
        table_column(table, "energy", "MWh", ALIGN_RIGHT);
}

/* Tokens a second of one GPU: four digits, or all before the point, grouped: "9.203", "9,203", "10,183". */
static char *rate_text(double rate, char *buffer, size_t size)
{
    if (rate >= 999.95)
        return grouped((int64_t)(rate + 0.5), buffer, size);
    snprintf(buffer, size, "%#.4g", rate); /* as many digits in each row */
    return buffer;
}

static void measure_cells(const struct plan_sweep *sweep, int i, struct table *table)
{
    const struct sweep_point *point = &sweep->points[i];
    double share = memory_record_share(point->best.use);
    char number[48];
    table_cell(table, point->best.step_s < 1 ? "%.4f" : "%.3f", point->best.step_s);
    table_cell(table, "%.1f", 100 * point->best.mfu);
    if (any_rates_differ(sweep))
        table_cell(table, "%.1f", 100 * point->best.rates.mfu_causal);
    table_cell(table, "%.0f", 100 * point->best.use);
    table_tint(table, share > SHARE_WITH_MARGIN ? TINT_WARN : TINT_NONE);
    table_cell(table, "%.0f", 100 * share);
    if (any_offloads(sweep))
        table_cell(table, "%.1f", point->best.host_bytes / GIB);
    table_cell(table, "%.1f", 100 * ranked_exposed_s(&point->best.ranked) / point->best.step_s);
    table_cell(table, "%.1f", 100 * ranked_breakdown(&point->best.ranked)->s[CLASS_BUBBLE] / point->best.step_s);
    table_cell(table, "%s", quantity_format(point->best.tokens_per_s, DIM_COUNT, number, sizeof number));
    table_cell(table, "%s", rate_text(point->best.rates.tokens_per_gpu, number, sizeof number));
    if (plan_axes_gpus(&sweep->axes) >= 0)
        table_cell(table, "%.1f", 100 * scaling(sweep, i));
    if (sweep->budgeted) {
        table_cell(table, "%.1f", point->days);
        table_cell(table, "%s", grouped((int64_t)(point->gpu_hours + 0.5), number, sizeof number));
    }
    if (any_energy(sweep))
        table_cell(table, "%s", point->energy_j > 0 ? megawatt_hours_text(point->energy_j, number, sizeof number) : "-");
}

static void text_row(const struct plan_sweep *sweep, int i, bool costs, struct table *table)
{
    const struct plan_axes *axes = &sweep->axes;
    const struct sweep_point *point = &sweep->points[i];
    char text[128], number[32], brief[SWEEP_TEXT];
    size_t before = table->n_cells;
    bool no_gpus = plan_axes_gpus(axes) < 0;
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++) {
            bool gpus = strcmp(key_at(axes, a, k)->path, "cluster.gpus") == 0, starred = gpus || (no_gpus && a + k == 0);
            table_tint(table, i == sweep->cheapest ? TINT_GOOD : TINT_NONE);
            table_cell(table, "%s%s%s",
                       gpus && !point->why[0] ? grouped(point->gpus, number, sizeof number)
                                              : sweep_value_brief(key_at(axes, a, k), axes->axes[a].n_values,
                                                                  plan_axes_index(axes, a, i), brief, sizeof brief),
                       starred && point->grown ? "*" : "", a + k == 0 && point->unheard[0] ? "^" : "");
        }
    if (batch_follows(sweep))
        table_cell(table, "%s", point->why[0] ? "-" : grouped(point->global_batch, number, sizeof number));
    if (point->fits) {
        table_cell(table, "%s%s", layout_brief(&point->best.ranked.plan.layout, text, sizeof text),
                   point->best.uneven ? " ~" : "");
        measure_cells(sweep, i, table);
        if (costs)
            table_cell(table, "%s", point->cost > 0 ? grouped((int64_t)(point->cost + 0.5), number, sizeof number) : "-");
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

/* What values with commas have in common stands here instead of in each row. */
static void write_common(const struct plan_axes *axes, FILE *out)
{
    char common[SWEEP_TEXT];
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            if (sweep_values_common(key_at(axes, a, k), axes->axes[a].n_values, common, sizeof common) > 0)
                fprintf(out, "%s: every one with %s; the column has what differs\n", key_at(axes, a, k)->word, common);
}

/* Without a batch there is one sequence for each GPU, and with more GPUs more work. */
static void write_batch_note(const struct plan_sweep *sweep, FILE *out)
{
    bool each = batch_follows(sweep) && !sweeps_key(sweep, "job.batch_tokens");
    for (int i = 0; i < sweep->axes.n_points; i++)
        each &= sweep->points[i].why[0] || sweep->points[i].global_batch == sweep->points[i].gpus;
    if (each)
        fputs("The batch is one sequence per GPU and grows with them (weak scaling); --global-batch keeps it.\n", out);
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
            fprintf(out,
                    "Expect %.2f to %.2f times the predicted step of a layout that is %s, as eight in ten of %d real runs.\n",
                    record->low, record->high, run_kind_text((enum run_kind)kind), record->runs);
        else
            fprintf(out, "Expect %.2f to %.2f times each predicted step, as eight in ten of %d real runs of their kind (%s).\n",
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
        fputs(": the range says less of their steps\n", out);
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
        fprintf(out, "Network at %s%s: %s.\n", plan_axes_text(&sweep->axes, most, text, sizeof text),
                n > 1 ? ", the fullest" : "", sweep->points[most].narrow);
}

static bool any_drops(const struct plan_sweep *sweep)
{
    for (int i = 0; i < sweep->axes.n_points; i++)
        if (sweep->points[i].fits && sweep->points[i].drops)
            return true;
    return false;
}

static bool any_masks(const struct plan_sweep *sweep)
{
    for (int i = 0; i < sweep->axes.n_points; i++)
        if (sweep->points[i].fits && sweep->points[i].masks)
            return true;
    return false;
}

/* What the column OOM means, where it has a number. */
static void write_memory_note(const struct plan_sweep *sweep, FILE *out)
{
    for (int i = 0; i < sweep->axes.n_points; i++)
        if (sweep->points[i].fits) {
            fprintf(out, "MFU counts attention in full%s.\n",
                    any_rates_differ(sweep) ? ", 'causal' only the half that a causal mask leaves" : "");
            if (any_drops(sweep))
                fputs(DROPPED_NOTE, out);
            if (any_masks(sweep))
                fputs(PACKED_MFU_NOTE, out);
            fputs("OOM: the share of runs this full that run out of memory; --memory-margin leaves room.\n", out);
            if (any_offloads(sweep))
                fputs("host: what a rank keeps in the memory of its host.\n", out);
            return;
        }
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
    fprintf(out, "Energy is an upper bound: %s.\n",
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
        bool told = !is_unpriced(sweep, i);
        for (int other = 0; other < i && !told; other++)
            told = is_unpriced(sweep, other) && strcmp(sweep->points[other].gpu, point->gpu) == 0;
        if (!told)
            fprintf(out, "No price is given of %s, so its cost is left out: --gpu-price %s=X\n", point->gpu, point->gpu);
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
        fprintf(out, "None that is done within %s has a %s; the fastest: ", within,
                sweep->least == LEAST_COST ? "price" : "published power");
    else
        fprintf(out, "None is done within %s; the fastest: ", within);
    fprintf(out, "%s (%.1f days, %s GPU-hours", plan_axes_text(&sweep->axes, shown, text, sizeof text), sweep->points[shown].days,
            grouped((int64_t)(sweep->points[shown].gpu_hours + 0.5), number, sizeof number));
    if (sweep->points[shown].cost > 0)
        fprintf(out, ", which cost %s", grouped((int64_t)(sweep->points[shown].cost + 0.5), number, sizeof number));
    if (sweep->points[shown].energy_j > 0)
        fprintf(out, ", at most %s", energy_text(sweep->points[shown].energy_j, energy, sizeof energy));
    double share = memory_record_share(sweep->points[shown].best.use);
    if (share > SHARE_RISKY)
        fprintf(out, "; of runs as full %.0f in 100 run out of memory: --memory-margin leaves room", 100 * share);
    fputs(").\n", out);
}

static void report_text(const struct plan_sweep *sweep, const struct invocation *call)
{
    struct table table = {0};
    bool grown = false, usual = false, uneven = false, costs = false;
    for (int i = 0; i < sweep->axes.n_points; i++) {
        grown |= sweep->points[i].grown;
        usual |= sweep->points[i].usual;
        uneven |= sweep->points[i].best.uneven;
        costs |= sweep->points[i].cost > 0;
    }
    write_heading(sweep, call->out);
    text_columns(sweep, &table);
    if (costs)
        table_column(&table, "cost", NULL, ALIGN_RIGHT);
    for (int i = 0; i < sweep->axes.n_points; i++)
        text_row(sweep, i, costs, &table);
    table_write(&table, call);
    table_free(&table);
    if (grown)
        fputs("* more GPUs than the cluster has: with more nodes of its kind\n", call->out);
    if (usual)
        fputs("Where only a GPU is named its usual nodes on a non-blocking fabric are assumed.\n", call->out);
    if (uneven)
        fputs(UNEVEN_NOTE, call->out);
    write_common(&sweep->axes, call->out);
    write_batch_note(sweep, call->out);
    write_reasons(sweep, call->out);
    write_expectation(sweep, call->out);
    write_unheard(sweep, call->out);
    write_fabric_note(sweep, call->out);
    write_memory_note(sweep, call->out);
    write_energy_note(sweep, call->out);
    write_price_note(sweep, call->out);
    write_choice(sweep, call->out);
    if (sweep->budgeted)
        fputs("Days are those of steps alone; msim run adds what failures cost.\n", call->out);
}

enum status plan_sweep_report(const struct plan_sweep *sweep, struct invocation *call)
{
    char text[512], why[sizeof sweep->points->why];
    if (call->format == FORMAT_JSON)
        return report_json(sweep, call);
    if (call->format == FORMAT_CSV) {
        report_csv(sweep, call);
        for (int i = 0; i < sweep->axes.n_points; i++)
            if (!sweep->points[i].fits)
                talk(call, 0, "%s: %s: %s", sweep->points[i].why[0] ? "left out" : "no plan",
                     plan_axes_text(&sweep->axes, i, text, sizeof text), sweep_point_why(&sweep->points[i], why, sizeof why));
    } else {
        report_text(sweep, call);
    }
    return STATUS_OK;
}
