#include "cli/job/plan_safer.h"

#include <math.h>
#include <string.h>

#include "cli/job/plan_record.h"
#include "cli/output/expectation.h"
#include "model/base/append.h"
#include "model/cost/step/track_record.h"

/* The experiment with the room that leaves SHARE_WITH_MARGIN. Points into *job. */
static struct setting setting_with_room(const struct setting *setting, struct job *job)
{
    struct setting roomy = *setting;
    *job = *setting->job;
    job->memory_margin = expectation_margin();
    roomy.job = job;
    return roomy;
}

static bool begin(const struct ranked_plan *first, const struct setting *setting, struct safer_plan *safer)
{
    double share = memory_record_share(plan_use(first, setting));
    *safer = (struct safer_plan){.wanted = share > SHARE_RISKY, .share = share, .first_s = ranked_step_s(first)};
    return safer->wanted;
}

static void take(const struct ranked_plan *plan, const struct setting *setting, struct safer_plan *safer)
{
    safer->found = true;
    safer->plan = *plan;
    safer->safer_share = memory_record_share(plan_use(plan, setting));
}

void safer_plan_find(const struct ranked_plan *first, const struct setting *setting, const struct space_limits *limits,
                     struct invocation *call, struct safer_plan *safer)
{
    struct job job;
    struct setting roomy = setting_with_room(setting, &job);
    struct invocation inner = *call;
    struct space *space;
    struct plans_found found = {0};
    if (!begin(first, setting, safer))
        return;
    inner.diags = (struct diags){0}; /* said of the first search already */
    if (space_create(&roomy, limits, &space, &inner.diags) == STATUS_OK) {
        plans_find(space, &inner, &found);
        if (found.plans)
            take(&found.plans[0], setting, safer);
        plans_found_free(&found);
        space_destroy(space);
    }
    diags_free(&inner.diags);
}

void safer_plan_choose(const struct ranked_plan *chosen, const struct setting *setting, const char *restrictions,
                       struct safer_plan *safer)
{
    struct job job;
    struct setting roomy = setting_with_room(setting, &job);
    struct diags unsaid = {0};
    struct ranked_plan plan;
    if (!begin(chosen, setting, safer))
        return;
    if (plan_choose(&roomy, restrictions, &plan, &unsaid) == STATUS_OK)
        take(&plan, setting, safer);
    diags_free(&unsaid);
}

static double slower_pct(const struct safer_plan *safer)
{
    return 100 * (ranked_step_s(&safer->plan) / safer->first_s - 1);
}

/* "8 in 100 do with tp4 mb1 z2 norm, 1.2 % slower"; what is simulated last can be faster than what the formula put first. */
static char *safer_text(const struct safer_plan *safer, char *buffer, size_t size)
{
    char layout[LAYOUT_TEXT];
    snprintf(buffer, size, "%.0f in 100 do with %s, %.1f %% %s", 100 * safer->safer_share,
             layout_brief(&safer->plan.plan.layout, layout, sizeof layout), fabs(slower_pct(safer)),
             slower_pct(safer) < 0 ? "faster" : "slower");
    return buffer;
}

/* Its place among plans in order, from 1; 0: it is none of them. */
static int place_among(const struct safer_plan *safer, const struct ranked_plan *plans, int n_plans)
{
    char own[LAYOUT_TEXT], other[LAYOUT_TEXT];
    layout_format(&safer->plan.plan.layout, own, sizeof own);
    for (int i = 0; i < n_plans; i++)
        if (plans[i].plan.layout.features == safer->plan.plan.layout.features &&
            strcmp(layout_format(&plans[i].plan.layout, other, sizeof other), own) == 0)
            return i + 1;
    return 0;
}

void safer_plan_write(const struct safer_plan *safer, const struct ranked_plan *plans, int n_plans, FILE *out)
{
    char text[LAYOUT_TEXT + 64], place[32] = "";
    int rank = safer->found ? place_among(safer, plans, n_plans) : 0;
    if (!safer->wanted)
        return;
    fprintf(out, "Of runs as full as the first %.0f in 100 run out of memory; ", 100 * safer->share);
    if (rank > 0)
        snprintf(place, sizeof place, " (rank %d)", rank);
    if (safer->found)
        fprintf(out, "%s%s: the fastest of --memory-margin %.0f%%.\n", safer_text(safer, text, sizeof text), place,
                100 * expectation_margin());
    else
        fprintf(out, "no plan leaves the room of --memory-margin %.0f%%, with which at most %.0f do.\n",
                100 * expectation_margin(), 100 * SHARE_WITH_MARGIN);
}

void safer_plan_warn(const struct safer_plan *safer, const char *what, struct diags *diags)
{
    char instead[LAYOUT_TEXT + 64], text[LAYOUT_TEXT + 256];
    if (!safer->wanted)
        return;
    snprintf(text, sizeof text, "%s: of runs as full as this %.0f in 100 run out of memory", what, 100 * safer->share);
    if (safer->found)
        text_append(text, sizeof text, "; %s: --memory-margin %.0f%% takes that", safer_text(safer, instead, sizeof instead),
                    100 * expectation_margin());
    else
        text_append(text, sizeof text, ", and no layout leaves more room");
    diag_warning(diags, (struct place){0}, "%s", text);
}

json_t *safer_plan_json(const struct safer_plan *safer, const struct setting *setting)
{
    if (!safer->wanted)
        return NULL;
    json_t *json = json_pack("{s:f}", "memory_margin_pct", 100 * expectation_margin());
    if (safer->found)
        json_object_set_new(json, "slower_pct", json_real(slower_pct(safer)));
    json_object_set_new(json, "plan", safer->found ? plan_json(&safer->plan, setting) : json_null());
    return json;
}
