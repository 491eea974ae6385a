/* plan_search.c - finds the best layouts of a space: a search in closed form, then a ranking by simulation. */
#include "sim/search/plan_search.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/memory.h"
#include "model/cost/step/track_record.h"
#include "model/plan/remedy.h"

/* What one rank found, flat: search_result without its pointer, then `keep` plans. */
struct parcel {
    struct search_result found;
    struct plan plans[];
};

static size_t parcel_size(const struct search_options *options)
{
    return sizeof(struct parcel) + (size_t)options->keep * sizeof(struct plan);
}

static void pack(const struct search_result *result, struct parcel *parcel)
{
    parcel->found = *result;
    parcel->found.plans = NULL;
    if (result->n_plans > 0)
        memcpy(parcel->plans, result->plans, (size_t)result->n_plans * sizeof *result->plans);
}

static struct search_result unpack(const struct parcel *parcel)
{
    struct search_result part = parcel->found;
    part.plans = memory_new((size_t)part.n_plans, sizeof *part.plans);
    if (part.n_plans > 0)
        memcpy(part.plans, parcel->plans, (size_t)part.n_plans * sizeof *part.plans);
    return part;
}

void search_run_shared(const struct space *space, const struct search_options *options, const struct processes *processes,
                       struct search_result *result)
{
    struct search_options own = *options;
    own.share = (uint32_t)processes->rank;
    own.n_shares = (uint32_t)processes->size;
    search_run(space, &own, result);
    if (processes->size == 1)
        return;
    size_t size = parcel_size(options);
    struct parcel *own_parcel = memory_new(1, size);
    char *all = memory_new((size_t)processes->size, size);
    pack(result, own_parcel);
    processes->gather(processes->context, own_parcel, size, all);
    search_result_free(result);
    for (int rank = 0; rank < processes->size; rank++) {
        struct search_result part = unpack((const struct parcel *)(all + (size_t)rank * size));
        search_merge(result, &part, options);
    }
    free(own_parcel);
    free(all);
}

static void search_by_time(const struct space *space, const struct plan_search_options *options, struct plans_found *found,
                           struct diags *diags)
{
    double started_s = clock_seconds();
    const struct search_options search = {.keep = options->keep,
                                          .variants = options->variants,
                                          .threads = options->threads,
                                          .progress = options->searched.tell,
                                          .progress_context = options->searched.context};
    const struct ranking_options ranking = {.n_simulate = options->n_simulate,
                                            .threads = options->threads,
                                            .processes = options->processes,
                                            .watch = options->simulated};
    *found = (struct plans_found){0};
    search_run_shared(space, &search, &options->processes, &found->search);
    found->search_s = clock_seconds() - started_s;
    if (found->search.n_plans > 0)
        plans_rank(found->search.plans, found->search.n_plans, space_setting(space), &ranking, &found->plans, diags);
}

/* --- the safe plan first ------------------------------------------------------------------------------------------ */

static bool is_risky(const struct ranked_plan *plan, const struct setting *setting)
{
    return memory_record_share(plan_use(plan, setting)) > SHARE_WITH_MARGIN;
}

#define SAME_MEMORY 0.02 /* of a GPU's memory: as exact as such predictions are */

/* Is `a` the better first plan, of two that take the same time? */
static bool is_leaner(const struct ranked_plan *a, const struct ranked_plan *b, const struct setting *setting)
{
    double more = plan_use(a, setting) - plan_use(b, setting);
    return more < -SAME_MEMORY || (more <= SAME_MEMORY && a->plan.layout.vpp < b->plan.layout.vpp);
}

/* Predictions do not tell such plans apart; memory does. */
#define SAME_TIME 1.005

static void prefer_less_memory(const struct setting *setting, struct plans_found *found)
{
    int best = 0;
    for (int i = 1; i < found->search.n_plans; i++) {
        const struct ranked_plan *plan = &found->plans[i];
        bool same =
            plan->simulated == found->plans[0].simulated && ranked_step_s(plan) <= SAME_TIME * ranked_step_s(&found->plans[0]);
        if (same && is_leaner(plan, &found->plans[best], setting))
            best = i;
    }
    struct ranked_plan first = found->plans[best];
    memmove(found->plans + 1, found->plans, (size_t)best * sizeof *found->plans);
    found->plans[0] = first;
}

void plans_search_with_margin(const struct space *space, double margin, const struct plan_search_options *options,
                              struct plans_found *found, struct diags *diags)
{
    struct job job = *space_setting(space)->job;
    struct setting other = *space_setting(space);
    struct space *same;
    job.memory_margin = margin;
    other.job = &job;
    *found = (struct plans_found){0};
    if (space_create(&other, space_limits_of(space), &same, diags) != STATUS_OK)
        return;
    search_by_time(same, options, found, diags);
    if (found->plans && margin > 0)
        prefer_less_memory(&other, found);
    space_destroy(same);
}

/* Takes the plans of a search with more room; false if none fits. */
static bool leave_more_room(const struct space *space, const struct plan_search_options *options, struct plans_found *found,
                            struct diags *diags)
{
    struct plans_found safe;
    plans_search_with_margin(space, memory_record_margin(), options, &safe, diags);
    if (!safe.plans)
        return false;
    free(found->plans);
    found->plans = safe.plans;
    found->search.n_plans = safe.search.n_plans;
    safe.plans = NULL;
    plans_found_free(&safe);
    return true;
}

static void find_fuller(const struct space *space, const struct plan_search_options *options, struct plans_found *found,
                        struct diags *diags)
{
    struct plans_found by_time;
    plans_search_with_margin(space, 0, options, &by_time, diags);
    for (int i = 0; by_time.plans && i < by_time.search.n_plans && found->n_fuller < FULLER_PLANS_MAX; i++) {
        const struct ranked_plan *plan = &by_time.plans[i];
        if (ranked_step_s(plan) < ranked_step_s(&found->plans[0]) && is_risky(plan, space_setting(space)))
            found->fuller[found->n_fuller++] = *plan;
    }
    plans_found_free(&by_time);
}

void plans_search(const struct space *space, const struct plan_search_options *options, struct plans_found *found,
                  struct diags *diags)
{
    const struct setting *setting = space_setting(space);
    double margin = setting->job->memory_margin;
    search_by_time(space, options, found, diags);
    if (!found->plans || !(margin > 0))
        return;
    bool needs_room = is_risky(&found->plans[0], setting) && margin < memory_record_margin();
    if (!needs_room || !leave_more_room(space, options, found, diags))
        prefer_less_memory(setting, found);
    if (options->fuller)
        find_fuller(space, options, found, diags);
}

enum status plan_choose(const struct setting *setting, const char *restrictions, int threads, struct ranked_plan *chosen,
                        struct diags *diags)
{
    const struct plan_search_options options = {
        .keep = PLANS_SIMULATED, .n_simulate = PLANS_SIMULATED, .threads = threads, .processes = one_process};
    struct plans_found found;
    enum status status = plans_choose(setting, restrictions, &options, &found, diags);
    if (status != STATUS_OK)
        return status;
    *chosen = found.plans[0];
    plans_found_free(&found);
    return STATUS_OK;
}

enum status plans_choose(const struct setting *setting, const char *restrictions, const struct plan_search_options *options,
                         struct plans_found *found, struct diags *diags)
{
    struct space_limits limits = {0};
    struct space *space;
    enum status status = STATUS_OK;
    if (restrictions && *restrictions)
        status = space_restrict(&limits, restrictions, PLACE_NONE, diags);
    if (status == STATUS_OK)
        status = space_create(setting, &limits, &space, diags);
    if (status != STATUS_OK)
        return status;
    plans_search(space, options, found, diags);
    if (!found->plans) {
        status = found->search.counts.legal > 0 ? STATUS_CHECK : STATUS_BAD_INPUT;
        remedies_report(space, &limits, options->threads, &found->search, diags);
        plans_found_free(found);
    }
    space_destroy(space);
    return status;
}

void plans_found_free(struct plans_found *found)
{
    search_result_free(&found->search);
    free(found->plans);
    *found = (struct plans_found){0};
}
