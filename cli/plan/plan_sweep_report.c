/* The best plan at each point of a sweep, for people: what the points share, and a table of them. */
#include <string.h>

#include "cli/job/plan_record.h"
#include "cli/options/next_command.h"
#include "cli/output/expectation.h"
#include "cli/plan/plan_sweep.h"
#include "model/base/append.h"

/* --- the heading --- */

/* Those that every point allows, and whether some allow more. */
static void write_features(const struct plan_sweep *sweep, FILE *out)
{
    feature_set all = sweep_first_experiment(sweep)->job.features, any = 0;
    for (int i = 0; i < sweep->found.n; i++)
        if (sweep->found.points[i].status == STATUS_OK) {
            all &= sweep->found.points[i].experiment.job.features;
            any |= sweep->found.points[i].experiment.job.features;
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
    const struct experiment *first = sweep_first_experiment(sweep);
    size_t name = model_name_length(first->model.name);
    bool model = true, unlike = false, cluster = true, gpus = true, batch = true, seq_len = true, precision = true;
    for (int i = 0; i < sweep->found.n; i++) {
        const struct experiment *e = &sweep->found.points[i].experiment;
        if (sweep->found.points[i].status != STATUS_OK)
            continue;
        model &= model_name_length(e->model.name) == name && strncmp(e->model.name, first->model.name, name) == 0;
        unlike |= strcmp(e->model.name, first->model.name) != 0; /* some change the model, some do not */
        cluster &= strcmp(e->cluster.name, first->cluster.name) == 0 && strcmp(e->cluster.gpu.name, first->cluster.gpu.name) == 0;
        gpus &= e->gpus == first->gpus;
        batch &= e->job.global_batch == first->job.global_batch;
        seq_len &= e->job.seq_len == first->job.seq_len;
        precision &= e->job.precision == first->job.precision;
    }
    char text[512] = "", number[32];
    if (model)
        text_append(text, sizeof text, ", %.*s", unlike ? (int)name : -1, first->model.name);
    if (gpus)
        text_append(text, sizeof text, ", %s GPU%s", grouped(first->gpus, number, sizeof number), first->gpus == 1 ? "" : "s");
    if (cluster)
        text_append(text, sizeof text, ", %s (%s)", first->cluster.name, first->cluster.gpu.name);
    if (batch)
        text_append(text, sizeof text, ", batch %s", grouped(first->job.global_batch, number, sizeof number));
    if (seq_len)
        text_append(text, sizeof text, batch ? " x %lld tokens" : ", %lld tokens a sequence", (long long)first->job.seq_len);
    if (precision)
        text_append(text, sizeof text, ", %s", precision_name(first->job.precision));
    fprintf(out, "%s%sbest layout of each\n", text[0] ? text + 2 : "", text[0] ? ": " : "");
    write_features(sweep, out);
}

/* --- text --- */

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
    const struct experiment *first = sweep_first_experiment(sweep);
    for (int i = 0; i < sweep->found.n; i++)
        if (sweep->found.points[i].status == STATUS_OK &&
            sweep->found.points[i].experiment.job.global_batch != first->job.global_batch)
            return true;
    return false;
}

/* Several usual nodes of a GPU that is named alone. */
static bool is_usual(const struct cluster *cluster)
{
    return cluster->as_needed && cluster->nodes > 1;
}

static struct sweep_traits traits_of(const struct plan_sweep *sweep)
{
    bool follows = batch_varies(sweep) && !sweeps_key(sweep, "job.global_batch");
    struct sweep_traits some = {.batch_follows = follows,
                                .batch_is_one_sequence = follows && !sweeps_key(sweep, "job.batch_tokens")};
    for (int i = 0; i < sweep->found.n; i++) {
        const struct plan_point *point = &sweep->found.points[i];
        const struct experiment *e = &point->experiment;
        bool read = point->status == STATUS_OK;
        some.grown |= read && e->grown;
        some.margins_differ |= read && e->job.memory_margin != sweep_first_experiment(sweep)->job.memory_margin;
        some.usual |= read && is_usual(&e->cluster);
        some.batch_is_one_sequence &= !read || e->job.global_batch == e->gpus;
        if (!point->fits)
            continue;
        const struct setting setting = experiment_setting(e);
        const struct shown_plan plan = shown_plan_of(&point->best, &setting);
        some.fits = true;
        some.uneven |= plan.uneven;
        some.drops |= e->job.load.dropped > 0;
        some.masks |= job_masks_documents(&e->job);
        some.costs |= point->cost > 0;
        some.energy |= point->energy_j > 0;
        some.offloads |= !offload_is_none(&plan.layout->offload);
        some.rates_differ |= plan_rates_differ(&plan.rates);
    }
    return some;
}

/* The columns behind the swept keys: of the plan, and of the point. */
struct sweep_columns {
    struct result_row plan[MAX_PICKED], point[MAX_PICKED];
};

static void pick_columns(const struct plan_sweep *sweep, const struct sweep_traits *some, struct sweep_columns *columns)
{
    const char *const of_plan[] = {"layout",
                                   "step_time_s",
                                   "mfu_pct",
                                   some->rates_differ ? "mfu_causal_pct" : "",
                                   "memory_pct",
                                   "out_of_memory_pct",
                                   some->offloads ? "host_memory_gib" : "",
                                   "exposed_pct",
                                   "bubble_pct",
                                   "tokens_per_s",
                                   "tokens_per_s_per_gpu",
                                   NULL};
    const char *const of_point[] = {plan_axes_gpus(&sweep->axes) >= 0 ? "scaling_pct" : "",
                                    sweep->budgeted ? "days" : "",
                                    sweep->budgeted ? "gpu_hours" : "",
                                    some->energy ? "energy_at_most_j" : "",
                                    some->costs ? "cost" : "",
                                    NULL};
    rows_pick(plan_rows, of_plan, columns->plan);
    rows_pick(point_rows, of_point, columns->point);
    columns->plan->view = VIEW_BOTH; /* the layout has no other columns here */
    for (struct result_row *row = columns->plan; row->key; row++)
        if (strcmp(row->key, "exposed_pct") == 0 || strcmp(row->key, "bubble_pct") == 0)
            row->view = VIEW_ALL;
    for (struct result_row *row = columns->point; row->key; row++)
        if (strcmp(row->key, "energy_at_most_j") == 0 && sweep->found.least != LEAST_ENERGY)
            row->view = VIEW_ALL;
}

static void text_columns(const struct plan_sweep *sweep, const struct sweep_traits *some, const struct sweep_columns *columns,
                         struct table *table)
{
    const struct plan_axes *axes = &sweep->axes;
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            table_column(table, sweep_key_at(axes, a, k)->word, NULL, ALIGN_RIGHT);
    if (some->batch_follows)
        table_column(table, "batch", NULL, ALIGN_RIGHT);
    rows_columns(columns->plan, NULL, table);
    rows_columns(columns->point, NULL, table);
}

/* The value of a key at a point, and marks where a note below the table explains it. */
static void swept_cell(const struct sweep_line *line, int axis, int k, struct table *table)
{
    const struct plan_axes *axes = &line->sweep->axes;
    const struct sweep_key *key = sweep_key_at(axes, axis, k);
    char number[32], brief[SWEEP_TEXT], unheard[UNHEARD_TEXT];
    bool first = axis + k == 0, gpus = strcmp(key->path, "cluster.gpus") == 0, read = line->point->status == STATUS_OK;
    bool starred = gpus || (plan_axes_gpus(axes) < 0 && first);
    table_tint(table, line->i == line->sweep->found.cheapest ? TINT_GOOD : TINT_NONE);
    table_cell(table, "%s%s%s",
               gpus && read
                   ? grouped(line->e->gpus, number, sizeof number)
                   : sweep_value_brief(key, axes->axes[axis].n_values, plan_axes_index(axes, axis, line->i), brief, sizeof brief),
               starred && read && line->e->grown ? "*" : "",
               first && sweep_point_unheard(line->point, unheard, sizeof unheard)[0] ? "^" : "");
}

/* The cell of a point without a plan: why it has none. */
static void no_plan_cell(const struct plan_point *point, struct table *table)
{
    table_tint(table, TINT_WARN);
    if (point->status != STATUS_OK)
        table_cell(table, "not possible");
    else if (point->legal)
        table_cell(table, "none fits: %.1f GiB too large", point->missing_bytes / GIB);
    else
        table_cell(table, "none is legal");
}

static void text_row(const struct sweep_line *line, const struct sweep_traits *some, const struct sweep_columns *columns,
                     struct table *table)
{
    const struct plan_axes *axes = &line->sweep->axes;
    char number[32];
    size_t before = table->n_cells;
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            swept_cell(line, a, k, table);
    if (some->batch_follows)
        table_cell(table, "%s",
                   line->point->status != STATUS_OK ? "-" : grouped(line->e->job.global_batch, number, sizeof number));
    if (line->point->fits) {
        const struct setting setting = experiment_setting(line->e);
        const struct shown_plan plan = shown_plan_of(&line->point->best, &setting);
        rows_cells(columns->plan, &plan, table);
        rows_cells(columns->point, line, table);
        return;
    }
    no_plan_cell(line->point, table);
    while (table->n_cells - before < table->n_columns)
        table_cell(table, "-");
}

/* The point that a deadline chooses, or the fastest one; -1: none that msim plan finds without a sweep. */
static int next_point(const struct plan_points *found)
{
    int best = found->cheapest;
    for (int i = 0; i < found->n && found->cheapest < 0; i++)
        if (found->points[i].fits && (best < 0 || found->points[i].tokens_per_s > found->points[best].tokens_per_s))
            best = i;
    return best >= 0 && !found->points[best].experiment.grown ? best : -1;
}

/* All plans of one point. */
static void write_next(const struct plan_sweep *sweep, const struct invocation *call)
{
    static const char *const of_sweeps[] = {"sweep", "within", "least", "gpu-price"};
    const char *without[SWEEP_AXES * SWEEP_KEYS + sizeof of_sweeps / sizeof *of_sweeps + 1];
    char more[SWEEP_AXES * SWEEP_KEYS * (sizeof((struct sweep_key){0}).path + SWEEP_TEXT)] = "";
    int n = 0, point = next_point(&sweep->found);
    for (; n < (int)(sizeof of_sweeps / sizeof *of_sweeps); n++)
        without[n] = of_sweeps[n];
    for (int a = 0; a < sweep->axes.n_axes && point >= 0; a++)
        for (int k = 0; k < sweep->axes.axes[a].n_keys; k++) {
            const struct sweep_key *key = sweep_key_at(&sweep->axes, a, k);
            const char *value = sweep_value_at(&sweep->axes, a, k, point);
            if (strchr(value, '\''))
                return;
            const char *quote = strpbrk(value, " {}[]()&|;<>*?$\"\\#~!^") ? "'" : "";
            if (key->option)
                without[n++] = key->option;
            text_append(more, sizeof more, "%s--%s %s%s%s%s%s", *more ? " " : "", key->option ? key->option : "set", quote,
                        key->option ? "" : key->path, key->option ? "" : "=", value, quote);
        }
    without[n] = NULL;
    if (point >= 0)
        next_command_write(call, "plan", without, more);
}

static void write_text(const struct plan_sweep *sweep, const struct invocation *call)
{
    const struct sweep_traits some = traits_of(sweep);
    struct table table = {.all = option_choice(call, "columns") > 0};
    struct sweep_columns columns;
    write_heading(sweep, call->out);
    pick_columns(sweep, &some, &columns);
    text_columns(sweep, &some, &columns, &table);
    for (int i = 0; i < sweep->found.n; i++) {
        const struct sweep_line line = sweep_line_at(sweep, i);
        text_row(&line, &some, &columns, &table);
    }
    table_write(&table, call);
    table_free(&table);
    sweep_notes_write(sweep, &some, call->out);
    write_next(sweep, call);
}

/* A table for programs has no place for it. */
static void talk_about_reasons(const struct plan_sweep *sweep, const struct invocation *call)
{
    char text[512], why[SWEEP_WHY_TEXT];
    for (int i = 0; i < sweep->found.n; i++)
        if (!sweep->found.points[i].fits)
            info(call, 0, "%s: %s: %s", sweep->found.points[i].status != STATUS_OK ? "left out" : "no plan",
                 plan_axes_text(&sweep->axes, i, text, sizeof text), sweep_point_why(&sweep->found.points[i], why));
}

enum status plan_sweep_report(const struct plan_sweep *sweep, struct invocation *call)
{
    if (call->format == FORMAT_JSON)
        return sweep_write_json(sweep, call);
    if (call->format == FORMAT_CSV) {
        sweep_write_csv(sweep, call->out);
        talk_about_reasons(sweep, call);
    } else {
        write_text(sweep, call);
    }
    return STATUS_OK;
}
