/* low_oom_plan.c - the fastest plan that rarely runs out of memory, if the fastest of all often does. */
#include "sim/search/low_oom_plan.h"

#include <math.h>
#include <stdio.h>

#include "model/base/append.h"
#include "model/cost/step/track_record.h"

static bool begin(const struct ranked_plan *first, const struct setting *setting, struct low_oom_plan *low)
{
    double share = memory_record_share(plan_use(first, setting));
    *low = (struct low_oom_plan){.wanted = share > SHARE_RISKY, .share = share, .first_s = ranked_step_s(first)};
    return low->wanted;
}

static void take(const struct ranked_plan *plan, const struct setting *setting, struct low_oom_plan *low)
{
    low->found = true;
    low->plan = *plan;
    low->safer_share = memory_record_share(plan_use(plan, setting));
}

void low_oom_plan_find(const struct ranked_plan *first, const struct space *space, const struct plan_search_options *options,
                       struct low_oom_plan *low)
{
    const struct setting *setting = space_setting(space);
    struct diags known = {0}; /* the first search has reported the same */
    struct plans_found found;
    if (!begin(first, setting, low))
        return;
    plans_search_with_margin(space, memory_record_margin(), options, &found, &known);
    if (found.plans)
        take(&found.plans[0], setting, low);
    plans_found_free(&found);
    diags_free(&known);
}

void low_oom_plan_choose(const struct ranked_plan *chosen, const struct setting *setting, const char *restrictions, int threads,
                         struct low_oom_plan *low)
{
    struct job job = *setting->job;
    struct setting roomy = *setting;
    struct diags known = {0};
    struct ranked_plan plan;
    if (!begin(chosen, setting, low))
        return;
    job.memory_margin = memory_record_margin();
    roomy.job = &job;
    if (plan_choose(&roomy, restrictions, threads, &plan, &known) == STATUS_OK)
        take(&plan, setting, low);
    diags_free(&known);
}

double low_oom_slower_pct(const struct low_oom_plan *low)
{
    return 100 * (ranked_step_s(&low->plan) / low->first_s - 1);
}

char *low_oom_plan_text(const struct low_oom_plan *low, char *buffer, size_t size)
{
    char layout[LAYOUT_TEXT];
    snprintf(buffer, size, "%s, %.1f %% %s, %.0f %% OOM", layout_brief(&low->plan.plan.layout, layout, sizeof layout),
             fabs(low_oom_slower_pct(low)), low_oom_slower_pct(low) < 0 ? "faster" : "slower", 100 * low->safer_share);
    return buffer;
}

void low_oom_plan_warn(const struct low_oom_plan *low, const char *what, struct diags *diags)
{
    char instead[LOW_OOM_TEXT], text[LAYOUT_TEXT + 256];
    if (!low->wanted)
        return;
    snprintf(text, sizeof text, "%s: %.0f %% of runs that fill as much memory ran out of it", what, 100 * low->share);
    if (low->found)
        text_append(text, sizeof text, "; --memory-margin %.0f%% chooses %s", 100 * memory_record_margin(),
                    low_oom_plan_text(low, instead, sizeof instead));
    else
        text_append(text, sizeof text, "; no layout leaves more room");
    diag_warning(diags, PLACE_NONE, "%s", text);
}
