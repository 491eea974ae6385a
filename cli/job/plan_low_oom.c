/*
 * plan_low_oom.c - the plan that rarely runs out of memory, as a line below a table and as JSON.
 */
#include "cli/job/plan_low_oom.h"

#include <string.h>

#include "cli/job/plan_find.h"
#include "cli/job/plan_record.h"
#include "cli/output/notes.h"
#include "model/cost/step/track_record.h"

void low_oom_plan_search(const struct ranked_plan *first, const struct space *space, const struct invocation *call,
                         struct low_oom_plan *low)
{
    struct progress progress;
    const struct plan_search_options options = plan_search_options_of(call, &progress);
    low_oom_plan_find(first, space, &options, low);
    progress_end(&progress);
}

/* Its place among plans in order, from 1; 0: it is none of them. */
static int place_among(const struct low_oom_plan *low, const struct ranked_plan *plans, int n_plans)
{
    char own[LAYOUT_TEXT], other[LAYOUT_TEXT];
    layout_format(&low->plan.plan.layout, own, sizeof own);
    for (int i = 0; i < n_plans; i++)
        if (plans[i].plan.layout.features == low->plan.plan.layout.features &&
            strcmp(layout_format(&plans[i].plan.layout, other, sizeof other), own) == 0)
            return i + 1;
    return 0;
}

void low_oom_plan_write(const struct low_oom_plan *low, const struct ranked_plan *plans, int n_plans, FILE *out)
{
    char text[LOW_OOM_TEXT], place[32] = "";
    int rank = low->found ? place_among(low, plans, n_plans) : 0;
    if (!low->wanted)
        return;
    if (rank > 0)
        snprintf(place, sizeof place, " (rank %d)", rank);
    if (low->found)
        note_write(out, 2,
                   "Plan 1 leaves little memory: %.0f %% of such runs ran out of it. Fastest with --memory-margin %.0f%%: %s%s.",
                   100 * low->share, 100 * memory_record_margin(), low_oom_plan_text(low, text, sizeof text), place);
    else
        note_write(out, 2,
                   "Plan 1 leaves little memory: %.0f %% of such runs ran out of it. No plan fits with --memory-margin %.0f%%.",
                   100 * low->share, 100 * memory_record_margin());
}

json_t *low_oom_plan_json(const struct low_oom_plan *low, const struct setting *setting)
{
    if (!low->wanted)
        return NULL;
    json_t *json = json_pack("{s:f}", "memory_margin_pct", 100 * memory_record_margin());
    if (low->found)
        json_object_set_new(json, "slower_pct", json_real(low_oom_slower_pct(low)));
    json_object_set_new(json, "plan", low->found ? plan_json(&low->plan, setting) : json_null());
    return json;
}
