/* The best layout of a setting: what `layout: auto` means. */
#include "model/plan/remedy.h"
#include "model/plan/search.h"

static enum status best_in(const struct space *space, const struct space_limits *limits, int threads, struct plan *best,
                           struct diags *diags)
{
    struct search_options options = {.keep = 1, .threads = threads};
    struct search_result result;
    search_run(space, &options, &result);
    bool found = result.n_plans > 0;
    if (found)
        *best = result.plans[0];
    else
        remedies_report(space, limits, threads, &result, diags);
    search_result_free(&result);
    return found ? STATUS_OK : STATUS_BAD_INPUT;
}

enum status plan_best(const struct setting *setting, const char *restrictions, int threads, struct plan *best,
                      struct diags *diags)
{
    struct space_limits limits = {0};
    struct space *space;
    enum status status = STATUS_OK;
    if (restrictions != NULL && restrictions[0] != '\0')
        status = space_restrict(&limits, restrictions, (struct place){0}, diags);
    if (status == STATUS_OK)
        status = space_create(setting, &limits, &space, diags);
    if (status != STATUS_OK)
        return status;
    status = best_in(space, &limits, threads, best, diags);
    space_destroy(space);
    return status;
}
