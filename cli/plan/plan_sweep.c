#include "cli/plan/plan_sweep.h"

#include <stdlib.h>
#include <string.h>

#include "cli/job/plan_find.h"
#include "cli/options/shared_options.h"
#include "cli/output/progress.h"
#include "model/base/memory.h"

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

/* The experiment and the restrictions of one point. */
static enum status read_point(struct invocation *call, const struct plan_sweep *sweep, int i)
{
    struct plan_point *point = &sweep->found.points[i];
    struct point_flags *flags = point_flags_new(call, sweep, i);
    struct invocation inner = *call;
    inner.diags = (struct diags){0};
    enum status status = experiment_read(&inner, &flags->flags, &point->experiment);
    if (status == STATUS_OK)
        status = plan_limits(&inner, &point->experiment, &point->limits, &inner.diags);
    int gpus = plan_axes_gpus(&sweep->axes);
    point->group = gpus >= 0 ? plan_axes_first(&sweep->axes, gpus, i) : -1;
    point->diags = inner.diags;
    call->seed = inner.seed;
    point_flags_free(flags);
    return status;
}

/* Messages of a point: an error stays with it; warnings and notes about --space and --framework are reported once for all points.
 */
static void take_diags(struct invocation *call, const struct diags *said)
{
    for (size_t i = 0; i < said->n_items; i++) {
        const struct diag *item = &said->items[i];
        bool known = false;
        for (size_t k = 0; k < call->diags.n_items && !known; k++)
            known = strcmp(call->diags.items[k].text, item->text) == 0;
        if (item->severity == SEVERITY_WARNING && !known)
            diag_warning(&call->diags, (struct place){item->file, item->line, item->column}, "%s", item->text);
        else if (item->severity == SEVERITY_NOTE && item->file && strncmp(item->file, "--space", 7) == 0 && !known)
            diag_note(&call->diags, (struct place){.file = item->file}, "%s", item->text);
        else if (item->severity == SEVERITY_NOTE && strncmp(item->text, "--framework", 11) == 0 && !known)
            diag_note(&call->diags, PLACE_NONE, "%s", item->text);
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

/* Prices by name are of the GPUs of the points. */
static enum status set_prices(struct invocation *call, struct plan_sweep *sweep)
{
    struct plan_points *found = &sweep->found;
    const char **gpus = memory_new((size_t)found->n, sizeof *gpus);
    size_t n = 0;
    for (int i = 0; i < found->n; i++)
        if (found->points[i].status == STATUS_OK)
            gpus[n++] = found->points[i].experiment.cluster.gpu.name;
    enum status status = n > 0 && sweep->prices.n_items > 0 ? gpu_prices_check(call, &sweep->prices, gpus, n) : STATUS_OK;
    for (int i = 0; i < found->n; i++)
        found->points[i].gpu_price = gpu_prices_of(&sweep->prices, found->points[i].experiment.cluster.gpu.name);
    free(gpus);
    return status;
}

/* Each point by itself: one that cannot be says why, and leaves the others. */
static enum status read_points(struct invocation *call, struct plan_sweep *sweep)
{
    struct plan_points *found = &sweep->found;
    *found = (struct plan_points){.points = memory_new((size_t)sweep->axes.n_points, sizeof *found->points),
                                  .n = sweep->axes.n_points,
                                  .within_s = option_quantity(call, "within"),
                                  .least = (enum sweep_least)option_choice(call, "least")};
    for (int i = 0; i < found->n; i++) {
        found->points[i].status = read_point(call, sweep, i);
        sweep->budgeted |= found->points[i].status == STATUS_OK && found->points[i].experiment.job.tokens > 0;
    }
    return set_prices(call, sweep);
}

static enum status search_points(struct invocation *call, struct plan_sweep *sweep)
{
    struct progress progress;
    const struct plan_search_options options = plan_points_options(call, "points", &progress);
    enum status worst = STATUS_OK;
    int n_good = 0;
    plan_points_search(&sweep->found, &options, &(struct watch){progress_update, &progress});
    progress_end(&progress);
    for (int i = 0; i < sweep->found.n; i++) {
        const struct plan_point *point = &sweep->found.points[i];
        take_diags(call, &point->diags);
        n_good += point->status == STATUS_OK;
        worst = worst == STATUS_OK ? point->status : worst;
    }
    if (n_good > 0)
        return check_budget(call, sweep);
    char text[512], why[SWEEP_WHY_TEXT];
    for (int i = 0; i < sweep->found.n; i++)
        diag_error(&call->diags, PLACE_NONE, "%s: %s", plan_axes_text(&sweep->axes, i, text, sizeof text),
                   sweep_point_why(&sweep->found.points[i], why));
    return worst;
}

/* Energy and cost can only be compared where any is known. */
static enum status check_least(struct invocation *call, const struct plan_sweep *sweep)
{
    const struct plan_points *found = &sweep->found;
    bool known = !plan_points_fit(found);
    for (int i = 0; i < found->n; i++)
        known = known || plan_point_needs(&found->points[i], found->least) > 0;
    if (known || found->least == LEAST_GPU_HOURS)
        return STATUS_OK;
    if (found->least == LEAST_COST)
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
    if (!plan_points_fit(&sweep->found)) {
        diag_error(&call->diags, PLACE_NONE,
                   sweep->axes.n_points == 1 ? "no layout fits; msim plan without --sweep reports what would help"
                                             : "no layout fits at any point; msim plan at one of them reports what would help");
        return STATUS_CHECK;
    }
    return option_given(call, "within") && sweep->found.cheapest < 0 ? STATUS_CHECK : STATUS_OK;
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
        status = experiment_model_input(call, &sweep->flags, &sweep->model);
    if (status == STATUS_OK)
        status = gpu_prices_read(call, &sweep->prices);
    if (status == STATUS_OK)
        status = read_points(call, sweep);
    if (status == STATUS_OK)
        status = search_points(call, sweep);
    if (status == STATUS_OK) {
        plan_points_count(&sweep->found);
        status = check_least(call, sweep);
    }
    if (status == STATUS_OK)
        status = plan_sweep_report(sweep, call);
    if (status == STATUS_OK)
        status = judge(call, sweep);
    for (int i = 0; i < sweep->found.n; i++)
        diags_free(&sweep->found.points[i].diags);
    free(sweep->found.points);
    free(sweep->input);
    free(sweep->model);
    free(sweep);
    return status;
}
