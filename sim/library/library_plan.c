/* library_plan.c - the fastest layouts, and the layout of an experiment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/processors.h"
#include "sim/library/library_internal.h"
#include "sim/search/layout_choice.h"
#include "sim/search/plan_search.h"

struct msim_plans {
    struct search_counts counts;
    struct msim_plan *plans;
    size_t n;
};

enum status library_layout(const struct experiment *experiment, const char *text, struct layout *layout, struct diags *diags)
{
    if (!text)
        return layout_choose(experiment, processors_available(), layout, diags);
    struct experiment given = *experiment;
    given.layout.given = strcmp(text, "auto") != 0 && strncmp(text, "auto,", 5) != 0;
    if (!given.layout.given)
        text += text[4] ? 5 : 4;
    if (snprintf(given.layout.text, sizeof given.layout.text, "%s", text) >= (int)sizeof given.layout.text) {
        diag_error(diags, PLACE_NONE, "the layout has more than %zu characters", sizeof given.layout.text - 1);
        return STATUS_BAD_INPUT;
    }
    return layout_choose(&given, processors_available(), layout, diags);
}

static void plan_fill(const struct ranked_plan *from, const struct setting *setting, struct msim_plan *plan)
{
    const struct plan *found = &from->plan;
    plan->step_s = ranked_step_s(from);
    plan->mfu = ranked_mfu(from, setting);
    plan->memory_bytes = found->estimate.memory_bytes;
    plan->memory_share = plan_use(from, setting);
    plan->exposed_s = ranked_exposed_s(from);
    plan->bubble_s = ranked_breakdown(from)->s[CLASS_BUBBLE];
    plan->simulated = from->simulated;
    layout_format(&found->layout, plan->layout, sizeof plan->layout);
}

static struct msim_plans *plans_take(const struct plans_found *found, const struct setting *setting)
{
    struct msim_plans *plans = memory_new(1, sizeof *plans);
    plans->counts = found->search.counts;
    plans->n = (size_t)found->search.n_plans;
    plans->plans = memory_new(plans->n, sizeof *plans->plans);
    for (size_t i = 0; i < plans->n; i++)
        plan_fill(&found->plans[i], setting, &plans->plans[i]);
    return plans;
}

enum msim_status msim_plans_search(const struct msim_experiment *experiment, const struct msim_plan_options *options,
                                   struct msim_messages *messages, struct msim_plans **plans)
{
    static const struct msim_plan_options usual = {0};
    struct library_call call;
    struct diags *diags = library_begin(&call, messages);
    const struct experiment *asked = &experiment->experiment;
    struct setting setting = experiment_setting(asked);
    options = options ? options : &usual;
    const struct plan_search_options search = {
        .keep = options->keep > 0 ? options->keep : PLANS_SIMULATED,
        .n_simulate = options->simulate > 0   ? options->simulate
                      : options->simulate < 0 ? 0
                                              : PLANS_SIMULATED,
        .threads = options->threads > 0 ? options->threads : processors_available(),
        .processes = one_process,
    };
    struct plans_found found;
    *plans = NULL;
    if (options->keep > MSIM_PLANS_MAX) {
        diag_error(diags, PLACE_NONE, "options.keep is %d; it must be at most %d", options->keep, (int)MSIM_PLANS_MAX);
        return library_done(&call, STATUS_USAGE);
    }
    const char *restrictions = options->restrictions ? options->restrictions : asked->layout.text;
    enum status status = plans_choose(&setting, restrictions, &search, &found, diags);
    if (status == STATUS_OK) {
        *plans = plans_take(&found, &setting);
        plans_found_free(&found);
    }
    return library_done(&call, status);
}

size_t msim_plans_count(const struct msim_plans *plans)
{
    return plans->n;
}

enum msim_status msim_plans_get(const struct msim_plans *plans, size_t i, struct msim_plan *plan)
{
    if (i >= plans->n)
        return MSIM_USAGE;
    *plan = plans->plans[i];
    return MSIM_OK;
}

void msim_plans_examined(const struct msim_plans *plans, uint64_t *examined, uint64_t *legal, uint64_t *fit)
{
    *examined = plans->counts.examined;
    *legal = plans->counts.legal;
    *fit = plans->counts.fit;
}

void msim_plans_destroy(struct msim_plans *plans)
{
    if (plans)
        free(plans->plans);
    free(plans);
}
