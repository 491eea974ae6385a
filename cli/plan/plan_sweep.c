#include "cli/plan/plan_sweep.h"

#include <stdlib.h>
#include <string.h>

#include "cli/job/plan_find.h"
#include "cli/options/shared_options.h"
#include "cli/output/progress.h"
#include "model/base/append.h"
#include "model/base/memory.h"

const char *const sweep_least_choices[] = {
    [LEAST_GPU_HOURS] = "gpu-hours", [LEAST_ENERGY] = "energy", [LEAST_COST] = "cost", NULL};

/* What one point sets: overrides of the experiment beside those of the call, and flags. */
struct point_flags {
    struct experiment_flags flags;
    const char **overrides;
    char texts[SWEEP_AXES * SWEEP_KEYS + 1][sizeof((struct sweep_key){0}).path + SWEEP_TEXT + 2];
};

static void set_key(struct point_flags *point, const struct sweep_key *key, const char *value)
{
    struct experiment_flags *flags = &point->flags;
    if (strcmp(key->path, "model") == 0)
        flags->model = value;
    else if (strcmp(key->path, "cluster") == 0)
        flags->cluster = value;
    else if (strcmp(key->path, "gpu") == 0)
        flags->gpu = value;
    else if (strcmp(key->path, "layout") == 0)
        flags->layout = value;
    else {
        int i = flags->n_overrides++;
        size_t text = 0;
        while (point->texts[text][0])
            text++;
        snprintf(point->texts[text], sizeof point->texts[text], "%s=%s", key->path, value);
        point->overrides[i] = point->texts[text];
    }
}

static struct point_flags *point_flags_new(const struct invocation *call, const struct plan_sweep *sweep, int point)
{
    const struct plan_axes *axes = &sweep->axes;
    struct point_flags *p = memory_new(1, sizeof *p);
    p->flags = sweep->flags;
    p->flags.grows = true;
    p->overrides = memory_new((size_t)call->n_overrides + SWEEP_AXES * SWEEP_KEYS + 1, sizeof *p->overrides);
    for (int i = 0; i < call->n_overrides; i++)
        p->overrides[i] = call->overrides[i];
    p->flags.overrides = p->overrides;
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++) {
            const struct sweep_key *key = &axes->axes[a].keys[k];
            set_key(p, key, key->values[plan_axes_index(axes, a, point)]);
        }
    return p;
}

static void point_flags_free(struct point_flags *p)
{
    free(p->overrides);
    free(p);
}

/* Where no layout is legal: what those break that come furthest through the checks. */
static enum layout_reason last_reason(const struct search_counts *counts)
{
    int last = 0;
    for (int reason = 1; reason < N_LAYOUT_REASONS; reason++)
        if (counts->rejected[reason] > 0)
            last = reason;
    return (enum layout_reason)last;
}

static void search_point(const struct space *space, struct invocation *call, struct sweep_point *point)
{
    struct plans_found found;
    plans_find(space, call, &found);
    point->legal = found.search.counts.legal > 0;
    point->reason = last_reason(&found.search.counts);
    point->fits = found.plans != NULL;
    point->missing_bytes = found.search.least_bytes - found.search.limit_bytes;
    if (point->fits) {
        point->best = best_plan_of(&found, space_setting(space));
        point->kind = run_kind_of(&point->best.ranked.plan.layout, space_setting(space)->model);
        const struct cluster *cluster = space_setting(space)->cluster;
        point->load = oversubscribed_text(&point->best.ranked.plan.layout, cluster, point->narrow, sizeof point->narrow);
        expectation_unheard(&point->best.ranked.plan.layout, space_setting(space), point->unheard, sizeof point->unheard);
        point->drops = space_setting(space)->job->load.dropped > 0;
        point->masks = job_masks_documents(space_setting(space)->job);
    }
    plans_found_free(&found);
}

static void describe(const struct experiment *experiment, struct sweep_point *point)
{
    point->config = experiment_to_json(experiment);
    snprintf(point->model, sizeof point->model, "%s", experiment->model.name);
    snprintf(point->cluster, sizeof point->cluster, "%s", experiment->cluster.name);
    snprintf(point->gpu, sizeof point->gpu, "%s", experiment->cluster.gpu.name);
    point->precision = precision_name(experiment->job.precision);
    point->features = experiment->job.features;
    point->gpus = experiment->gpus;
    point->grown = experiment->grown;
    point->usual = experiment->cluster.as_needed && experiment->cluster.nodes > 1;
    point->global_batch = experiment->job.global_batch;
    point->seq_len = experiment->job.seq_len;
    point->tokens = experiment->job.tokens;
    for (int count = POWER_BOARDS; count <= POWER_NODES; count++)
        point->power[count] = power_bound_of(&experiment->cluster, experiment->gpus, (enum power_count)count);
}

static enum status plan_point(struct invocation *call, struct plan_sweep *sweep, int i)
{
    struct sweep_point *point = &sweep->points[i];
    struct point_flags *flags = point_flags_new(call, sweep, i);
    struct experiment *experiment = memory_new(1, sizeof *experiment);
    struct space_limits limits;
    struct space *space;
    enum status status = experiment_read(call, &flags->flags, experiment);
    if (status == STATUS_OK) {
        struct setting setting = {&experiment->model, &experiment->cluster, &experiment->job, experiment->gpus};
        describe(experiment, point);
        status = plan_limits(call, experiment, &limits, &call->diags);
        if (status == STATUS_OK)
            status = space_create(&setting, &limits, &space, &call->diags);
        if (status == STATUS_OK) {
            search_point(space, call, point);
            space_destroy(space);
        }
    }
    free(experiment);
    point_flags_free(flags);
    return status;
}

/* Messages of a point: an error stays with it; warnings and notes about --space are reported once for all points. */
static void take_diags(struct invocation *call, struct sweep_point *point, const struct diags *said)
{
    for (size_t i = 0; i < said->n_items; i++) {
        const struct diag *item = &said->items[i];
        bool known = false;
        for (size_t k = 0; k < call->diags.n_items && !known; k++)
            known = strcmp(call->diags.items[k].text, item->text) == 0;
        if (item->severity == SEVERITY_ERROR && !point->why[0])
            text_append(point->why, sizeof point->why, "%s", item->text);
        else if (item->severity == SEVERITY_WARNING && !known)
            diag_warning(&call->diags, (struct place){item->file, item->line, item->column}, "%s", item->text);
        else if (item->severity == SEVERITY_NOTE && item->file && strncmp(item->file, "--space", 7) == 0 && !known)
            diag_note(&call->diags, (struct place){.file = item->file}, "%s", item->text);
    }
}

static enum status check_budget(struct invocation *call, const struct plan_sweep *sweep)
{
    static const char *const about_budgets[] = {"within", "gpu-price", "least"};
    for (size_t i = 0; i < sizeof about_budgets / sizeof about_budgets[0] && !sweep->budgeted; i++)
        if (option_given(call, about_budgets[i])) {
            diag_error(&call->diags, PLACE_NONE, "--%s needs the training budget; add --tokens, such as --tokens 300B",
                       about_budgets[i]);
            return STATUS_USAGE;
        }
    return STATUS_OK;
}

/* Each point by itself: one that cannot be says why, and leaves the others. */
static enum status plan_points(struct invocation *call, struct plan_sweep *sweep)
{
    struct progress progress = progress_begin(call, "points");
    enum status worst = STATUS_OK;
    int n_good = 0;
    for (int i = 0; i < sweep->axes.n_points; i++) {
        struct invocation inner = *call;
        inner.progress = false;
        inner.diags = (struct diags){0};
        progress_update(&progress, i, sweep->axes.n_points);
        enum status status = plan_point(&inner, sweep, i);
        take_diags(call, &sweep->points[i], &inner.diags);
        call->seed = inner.seed;
        n_good += status == STATUS_OK;
        sweep->budgeted |= sweep->points[i].tokens > 0;
        worst = worst == STATUS_OK ? status : worst;
        diags_free(&inner.diags);
    }
    progress_end(&progress);
    if (n_good > 0)
        return check_budget(call, sweep);
    char text[512];
    for (int i = 0; i < sweep->axes.n_points; i++)
        diag_error(&call->diags, PLACE_NONE, "%s: %s", plan_axes_text(&sweep->axes, i, text, sizeof text), sweep->points[i].why);
    return worst;
}

/* Nodes where they are known of every point of which anything is, so that points can be compared; boards otherwise. */
static enum power_count counted_power(const struct plan_sweep *sweep)
{
    bool nodes = true;
    for (int i = 0; i < sweep->axes.n_points; i++)
        nodes = nodes && (!sweep->points[i].fits || sweep->points[i].power[POWER_NODES].count != POWER_UNKNOWN ||
                          sweep->points[i].power[POWER_BOARDS].count == POWER_UNKNOWN);
    return nodes ? POWER_NODES : POWER_BOARDS;
}

/* What a point needs least of; 0: not known. */
static double needed(const struct plan_sweep *sweep, int i)
{
    const struct sweep_point *point = &sweep->points[i];
    switch (sweep->least) {
    case LEAST_ENERGY: return point->energy_j;
    case LEAST_COST: return point->cost;
    default: return point->gpu_hours;
    }
}

/* What the points' budgets of tokens take, and the point that takes least in time. */
static void count_budget(struct invocation *call, struct plan_sweep *sweep)
{
    sweep->within_s = option_quantity(call, "within");
    sweep->least = (enum sweep_least)option_choice(call, "least");
    sweep->counted = counted_power(sweep);
    sweep->cheapest = -1;
    for (int i = 0; i < sweep->axes.n_points; i++) {
        struct sweep_point *point = &sweep->points[i];
        if (!point->fits || point->tokens <= 0)
            continue;
        double seconds = point->tokens / point->best.tokens_per_s;
        point->days = seconds / 86400;
        point->gpu_hours = seconds / 3600 * point->gpus;
        point->gpu_price = gpu_prices_of(&sweep->prices, point->gpu);
        point->cost = point->gpu_price * point->gpu_hours;
        point->energy_j = power_bound_energy(&point->power[sweep->counted], point->gpu_hours);
        if (seconds <= sweep->within_s && needed(sweep, i) > 0 &&
            (sweep->cheapest < 0 || needed(sweep, i) < needed(sweep, sweep->cheapest)))
            sweep->cheapest = i;
    }
}

static bool any_fits(const struct plan_sweep *sweep)
{
    for (int i = 0; i < sweep->axes.n_points; i++)
        if (sweep->points[i].fits)
            return true;
    return false;
}

/* Energy and cost can only be compared where any is known. */
static enum status check_least(struct invocation *call, const struct plan_sweep *sweep)
{
    bool known = !any_fits(sweep);
    for (int i = 0; i < sweep->axes.n_points; i++)
        known = known || needed(sweep, i) > 0;
    if (known || sweep->least == LEAST_GPU_HOURS)
        return STATUS_OK;
    if (sweep->least == LEAST_COST)
        diag_error(&call->diags, PLACE_NONE, "--least cost: --gpu-price has no price for the GPUs of these points; add theirs");
    else
        diag_error(&call->diags, PLACE_NONE,
                   "--least energy: the power of these GPUs is unknown; specify it with --set cluster.gpu.power=700W or --set "
                   "cluster.node_power=10kW");
    return STATUS_BAD_INPUT;
}

/* What the points do not have, after the report: a plan at all, or one in time. */
static enum status judge(struct invocation *call, const struct plan_sweep *sweep)
{
    if (!any_fits(sweep)) {
        diag_error(&call->diags, PLACE_NONE,
                   sweep->axes.n_points == 1 ? "no layout fits; msim plan without --sweep reports what would help"
                                             : "no layout fits at any point; msim plan at one of them reports what would help");
        return STATUS_BAD_INPUT;
    }
    return option_given(call, "within") && sweep->cheapest < 0 ? STATUS_CHECK : STATUS_OK;
}

/* Prices by name are of the GPUs of the points, which are read for that before any is searched. */
static enum status read_prices(struct invocation *call, struct plan_sweep *sweep)
{
    enum status status = gpu_prices_read(call, &sweep->prices);
    if (status != STATUS_OK || sweep->prices.n_items == 0)
        return status;
    const char **gpus = memory_new((size_t)sweep->axes.n_points, sizeof *gpus);
    struct experiment *experiment = memory_new(1, sizeof *experiment);
    struct arena names = {0};
    size_t n = 0;
    for (int i = 0; i < sweep->axes.n_points; i++) {
        struct invocation inner = *call;
        inner.diags = (struct diags){0};
        struct point_flags *flags = point_flags_new(call, sweep, i);
        if (experiment_read(&inner, &flags->flags, experiment) == STATUS_OK) /* others say so in their turn */
            gpus[n++] = arena_copy_text(&names, experiment->cluster.gpu.name);
        point_flags_free(flags);
        diags_free(&inner.diags);
    }
    if (n > 0)
        status = gpu_prices_check(call, &sweep->prices, gpus, n);
    arena_free(&names);
    free(experiment);
    free(gpus);
    return status;
}

/* What a sweep does not do. */
static enum status check_options(struct invocation *call)
{
    static const char *const others[] = {"top", "variants", "explain", "network"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (option_given(call, others[i])) {
            diag_error(
                &call->diags, PLACE_NONE,
                "--sweep shows the best plan at each point, and --%s applies to the plans at one point; remove one of the two",
                others[i]);
            return STATUS_USAGE;
        }
    if (option_given(call, "least") && !option_given(call, "within")) {
        diag_error(&call->diags, PLACE_NONE,
                   "--least chooses among the points that finish in time; add --within, such as --within 60d");
        return STATUS_USAGE;
    }
    if (option_choice(call, "least") == LEAST_COST && !option_given(call, "gpu-price")) {
        diag_error(&call->diags, PLACE_NONE, "--least cost needs prices; add --gpu-price, such as 2.5 or h200=3,b200=5.5");
        return STATUS_USAGE;
    }
    if (option_given(call, "within") && option_quantity(call, "within") <= 0) {
        diag_error(&call->diags, PLACE_NONE, "--within: the time must be above 0; write for example 60d");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

enum status plan_sweep(struct invocation *call)
{
    struct plan_sweep *sweep = memory_new(1, sizeof *sweep);
    enum status status = check_options(call);
    if (status == STATUS_OK)
        status = plan_axes_read(call, &sweep->axes);
    sweep->flags = experiment_flags_of(call);
    if (status == STATUS_OK)
        status = experiment_input(call, &sweep->flags, &sweep->input);
    if (status == STATUS_OK)
        status = read_prices(call, sweep);
    if (status == STATUS_OK) {
        sweep->points = memory_new((size_t)sweep->axes.n_points, sizeof *sweep->points);
        status = plan_points(call, sweep);
    }
    if (status == STATUS_OK) {
        count_budget(call, sweep);
        status = check_least(call, sweep);
    }
    if (status == STATUS_OK)
        status = plan_sweep_report(sweep, call);
    if (status == STATUS_OK)
        status = judge(call, sweep);
    for (int i = 0; sweep->points && i < sweep->axes.n_points; i++) {
        free(sweep->points[i].config);
        json_decref(sweep->points[i].best.json);
    }
    free(sweep->points);
    free(sweep->input);
    free(sweep);
    return status;
}
