#include "cli/job/plan_find.h"

#include <string.h>

#include "cli/job/launch_export.h"
#include "cli/options/shared_options.h"
#include "cli/world/world.h"
#include "model/plan/batch_fit.h"

static bool same_limit(const struct space_limit *a, const struct space_limit *b)
{
    return a->n == b->n && memcmp(a->ranges, b->ranges, (size_t)a->n * sizeof a->ranges[0]) == 0;
}

/* The layout fixes what it names: that --space asks for something else is a slip, and no row of a sweep over layouts would be
 * what it is labelled. */
static enum status check_fixed(const struct space_limits *fixed, const struct space_limits *asked, struct diags *diags)
{
    enum status status = STATUS_OK;
    for (int d = 0; d < N_SPACE_DIMENSIONS; d++)
        if (fixed->dimensions[d].n > 0 && !same_limit(&fixed->dimensions[d], &asked->dimensions[d])) {
            diag_error(diags, (struct place){.file = "--space"},
                       "%s: the layout already fixes this dimension to another value; specify it in only one of the two",
                       space_dimension_name((enum space_dimension)d));
            status = STATUS_BAD_INPUT;
        }
    return status;
}

/* Schedules that are asked for are all that is searched: whoever wants to see one more may not mean to give up going without a
 * pipeline, which is often the fastest. */
static void schedules_note(const struct experiment *experiment, const struct space_limits *fixed,
                           const struct space_limits *limits, struct diags *diags)
{
    const struct space_limit *schedules = &limits->dimensions[SPACE_SCHEDULE];
    const struct space_limit *pp = &limits->dimensions[SPACE_PP], *vpp = &limits->dimensions[SPACE_VPP];
    bool asked = schedules->n > 0 && fixed->dimensions[SPACE_SCHEDULE].n == 0;
    bool could = experiment->gpus > 1 && (pp->n == 0 || space_limit_allows(pp, 1)) && (vpp->n == 0 || space_limit_allows(vpp, 1));
    if (asked && could && !space_limit_allows(schedules, SCHEDULE_NONE))
        diag_note(diags, (struct place){.file = "--space schedule"},
                  "only these schedules are searched, and no layout without a pipeline; add 'none' to keep those");
}

enum status plan_limits(const struct invocation *call, const struct experiment *experiment, struct space_limits *limits,
                        struct diags *diags)
{
    enum status status = STATUS_OK;
    *limits = (struct space_limits){0};
    if (experiment->layout.text[0] != '\0')
        status = space_restrict(limits, experiment->layout.text, (struct place){.file = "layout"}, diags);
    const struct space_limits fixed = *limits;
    int n;
    const char *const *texts = option_list(call, "space", &n);
    for (int i = 0; i < n && status == STATUS_OK; i++)
        status = space_restrict(limits, texts[i], (struct place){.file = "--space"}, diags);
    if (status == STATUS_OK)
        status = check_fixed(&fixed, limits, diags);
    if (status == STATUS_OK) {
        batch_fit_warn(experiment->gpus, &experiment->job, limits, diags);
        schedules_note(experiment, &fixed, limits, diags);
        status = framework_limit(call, experiment, limits, diags);
    }
    return status;
}

/* Two parts of the work share one line of progress. */
static void tell_layouts(void *progress, double done, double total)
{
    progress_turn(progress, "layouts");
    progress_update(progress, done, total);
}

static void tell_simulated(void *progress, double done, double total)
{
    progress_turn(progress, "plans simulated");
    progress_update(progress, done, total);
}

struct plan_search_options plan_search_options_of(const struct invocation *call, struct progress *progress)
{
    int top = (int)option_count(call, "top"), rerank = (int)option_count(call, "rerank");
    *progress = progress_begin(call, "layouts");
    return (struct plan_search_options){.keep = top > rerank ? top : rerank,
                                        .variants = option_flag(call, "variants"),
                                        .n_simulate = rerank,
                                        .threads = thread_option(call),
                                        .processes = world_processes(),
                                        .searched = {tell_layouts, progress},
                                        .simulated = {tell_simulated, progress}};
}

struct plan_search_options plan_points_options(const struct invocation *call, const char *what, struct progress *progress)
{
    struct plan_search_options options = plan_search_options_of(call, progress);
    *progress = progress_begin(call, what);
    options.searched = options.simulated = (struct watch){0};
    return options;
}

void plans_find(const struct space *space, struct invocation *call, struct plans_found *found)
{
    struct progress progress;
    struct plan_search_options options = plan_search_options_of(call, &progress);
    options.fuller = true;
    plans_search(space, &options, found, &call->diags);
    progress_end(&progress);
}
