#include "cli/job/plan_find.h"

#include <stdlib.h>
#include <string.h>

#include "cli/job/plan_world.h"
#include "cli/options/shared_options.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "model/base/append.h"
#include "model/base/clock.h"
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
                       "%s: the layout fixes it to something else; name it in one of the two",
                       space_dimension_name((enum space_dimension)d));
            status = STATUS_BAD_INPUT;
        }
    return status;
}

void batch_fit_warn(const struct experiment *experiment, const struct space_limits *limits, struct diags *diags)
{
    const struct job *job = &experiment->job;
    const struct batch_fit fit = batch_fit_of(experiment->gpus, job->global_batch);
    char text[512], gpus[32];
    if (limits->dimensions[SPACE_DP].n > 0 || !batch_fits_badly(&fit))
        return;
    snprintf(text, sizeof text, "a batch of %lld sequences leaves %d of the %d numbers of replicas that %s GPUs could have",
             (long long)job->global_batch, fit.left, fit.sizes, grouped(experiment->gpus, gpus, sizeof gpus));
    if (fit.better) {
        double tokens = (double)fit.better * (double)job->seq_len;
        text_append(text, sizeof text, ": %lld would leave %d: --global-batch %lld", (long long)fit.better, fit.better_left,
                    (long long)fit.better);
        if (tokens <= JOB_TOKENS_MAX)
            text_append(text, sizeof text, ", --batch-tokens %.0f", tokens);
        text_append(text, sizeof text, " or --set job.global_batch=%lld", (long long)fit.better);
    }
    diag_warning(diags, (struct place){0}, "%s", text);
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
                  "these schedules alone are searched, and no layout without a pipeline; 'none' beside them keeps those");
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
        batch_fit_warn(experiment, limits, diags);
        schedules_note(experiment, &fixed, limits, diags);
    }
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
