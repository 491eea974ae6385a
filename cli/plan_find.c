#include "cli/plan_find.h"

#include <stdlib.h>

#include "cli/plan_world.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "model/base/clock.h"

enum status plan_limits(const struct invocation *call, const struct experiment *experiment, struct space_limits *limits,
                        struct diags *diags)
{
    enum status status = STATUS_OK;
    *limits = (struct space_limits){0};
    if (experiment->layout.text[0] != '\0')
        status = space_restrict(limits, experiment->layout.text, (struct place){.file = "layout"}, diags);
    int n;
    const char *const *texts = option_list(call, "space", &n);
    for (int i = 0; i < n && status == STATUS_OK; i++)
        status = space_restrict(limits, texts[i], (struct place){.file = "--space"}, diags);
    return status;
}

static void search_space(const struct space *space, struct invocation *call, struct search_result *result)
{
    struct progress progress = progress_begin(call, "layouts");
    int top = (int)option_count(call, "top"), rerank = (int)option_count(call, "rerank");
    struct search_options options = {.keep = top > rerank ? top : rerank,
                                     .variants = option_flag(call, "variants"),
                                     .threads = thread_option(call),
                                     .progress = progress_update,
                                     .progress_context = &progress};
    search_run_on_world(space, &options, result);
    progress_end(&progress);
}

static void rank(const struct setting *setting, struct invocation *call, struct plans_found *found)
{
    struct progress progress = progress_begin(call, "plans simulated");
    struct ranking_options ranking = {.n_simulate = (int)option_count(call, "rerank"),
                                      .threads = thread_option(call),
                                      .progress = progress_update,
                                      .progress_context = &progress};
    plans_rank(found->search.plans, found->search.n_plans, setting, &ranking, &found->plans, &call->diags);
    progress_end(&progress);
}

void plans_find(const struct space *space, struct invocation *call, struct plans_found *found)
{
    double started_s = clock_seconds();
    *found = (struct plans_found){0};
    search_space(space, call, &found->search);
    found->search_s = clock_seconds() - started_s;
    if (found->search.n_plans > 0)
        rank(space_setting(space), call, found);
}

void plans_found_free(struct plans_found *found)
{
    search_result_free(&found->search);
    free(found->plans);
    *found = (struct plans_found){0};
}
