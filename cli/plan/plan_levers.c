#include "cli/plan/plan_levers.h"

#include <stdlib.h>

#include "cli/job/plan_find.h"
#include "cli/output/progress.h"
#include "model/base/memory.h"

/* The best layout; a space that restrictions leave empty has none that is legal. */
static void search(const struct experiment *experiment, const struct space_limits *limits, const struct invocation *call,
                   struct levered_plan *plan)
{
    struct setting setting = {&experiment->model, &experiment->cluster, &experiment->job, experiment->gpus};
    struct invocation inner = *call;
    inner.progress = false;
    inner.diags = (struct diags){0};
    struct space *space;
    if (space_create(&setting, limits, &space, &inner.diags) == STATUS_OK) {
        struct plans_found found;
        plans_find(space, &inner, &found);
        plan->legal = found.search.counts.legal > 0;
        plan->fits = found.plans != NULL;
        if (plan->fits)
            plan->best = best_plan_of(&found, &setting);
        plans_found_free(&found);
        space_destroy(space);
    }
    diags_free(&inner.diags);
}

char *plan_lever_option(const struct plan_lever *lever, const struct experiment *experiment, char *buffer, size_t size)
{
    buffer[0] = '\0';
    switch (lever->what) {
    case CHANGE_FEATURE: snprintf(buffer, size, "--features +%s", feature_name((enum feature)lever->argument)); break;
    case CHANGE_PRECISION: snprintf(buffer, size, "--precision %s", precision_name((enum precision)lever->argument)); break;
    case CHANGE_GRADIENTS_BF16: snprintf(buffer, size, "--set job.gradient_precision=bf16"); break;
    case CHANGE_SCHEDULES: snprintf(buffer, size, "--space " RARE_SCHEDULES); break;
    case CHANGE_OFFLOAD: snprintf(buffer, size, "--space offload=auto"); break;
    case CHANGE_SHARD: snprintf(buffer, size, "--space shard=0,%d", experiment->cluster.nvlink_domain); break;
    case CHANGE_BATCH: snprintf(buffer, size, "--global-batch %lld", (long long)experiment->job.global_batch * 2); break;
    case CHANGE_EXPERT_LOAD: snprintf(buffer, size, "--expert-load 1"); break;
    default: break; /* hardware */
    }
    return buffer;
}

static void pull(struct plan_levers *levers, const struct space_limits *limits, const struct plan_lever *lever,
                 const struct invocation *call)
{
    struct experiment *changed = memory_new(1, sizeof *changed);
    struct space_limits searched = *limits;
    *changed = *levers->experiment;
    if (lever->turn(changed, &searched, lever->argument)) {
        struct levered_plan *plan = &levers->items[levers->n_items++];
        plan->kind = lever->kind;
        snprintf(plan->change, sizeof plan->change, "%s", lever->change);
        plan_lever_option(lever, levers->experiment, plan->option, sizeof plan->option);
        search(changed, &searched, call, plan);
        if (plan->fits && levers->base.fits)
            plan->gain = plan->best.tokens_per_s / levers->base.best.tokens_per_s - 1;
    }
    free(changed);
}

/* Fastest first; those that have no plan last, in the order of the table. */
static void sort(struct plan_levers *levers)
{
    for (int i = 1; i < levers->n_items; i++) {
        struct levered_plan item = levers->items[i];
        int at = i;
        for (; at > 0 && levers->items[at - 1].best.tokens_per_s < item.best.tokens_per_s; at--)
            levers->items[at] = levers->items[at - 1];
        levers->items[at] = item;
    }
}

static bool any_fits(const struct plan_levers *levers)
{
    bool any = levers->base.fits;
    for (int i = 0; i < levers->n_items; i++)
        any |= levers->items[i].fits;
    return any;
}

enum status plan_levers(const struct experiment *experiment, struct invocation *call)
{
    struct plan_levers levers = {.experiment = experiment, .items = memory_new(N_PLAN_LEVERS, sizeof *levers.items)};
    struct space_limits limits;
    enum status status = plan_limits(call, experiment, &limits, &call->diags);
    if (status == STATUS_OK) {
        struct progress progress = progress_begin(call, "levers");
        snprintf(levers.base.change, sizeof levers.base.change, "as it is");
        search(experiment, &limits, call, &levers.base);
        for (int i = 0; i < N_PLAN_LEVERS; i++) {
            struct plan_lever lever = plan_lever_at(i);
            pull(&levers, &limits, &lever, call);
            progress_update(&progress, i + 1, N_PLAN_LEVERS);
        }
        progress_end(&progress);
        sort(&levers);
        if (any_fits(&levers)) {
            status = plan_levers_report(&levers, call);
        } else {
            diag_error(&call->diags, PLACE_NONE,
                       "no layout fits, not even with one of the %d changes; msim plan without --levers reports what would help",
                       levers.n_items);
            status = STATUS_BAD_INPUT;
        }
    }
    json_decref(levers.base.best.json);
    for (int i = 0; i < levers.n_items; i++)
        json_decref(levers.items[i].best.json);
    free(levers.items);
    return status;
}
