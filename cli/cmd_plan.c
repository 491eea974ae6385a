#include <stdlib.h>

#include "cli/command.h"
#include "cli/experiment_options.h"
#include "cli/fabric_options.h"
#include "cli/plan_report.h"
#include "cli/plan_world.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "model/base/clock.h"
#include "model/plan/remedy.h"
#include "model/plan/search.h"

static enum status check_restriction(const char *text, char *why, size_t size)
{
    struct space_limits limits = {0};
    struct diags diags = {0};
    enum status status = space_restrict(&limits, text, (struct place){0}, &diags);
    if (status != STATUS_OK)
        snprintf(why, size, "%s", diags.n_items > 0 ? diags.items[0].text : "it cannot be read");
    diags_free(&diags);
    return status;
}

static const char *const placement_choices_all[] = {"data_first", "pipeline_first", "random", "fragmented", "all", NULL};

#define TEXT_OF_TOKENS(x) #x
#define TEXT_OF(x)        TEXT_OF_TOKENS(x)

static const struct option_row options[] = {
    {.name = "space",
     .argument = "KEY=VALUES",
     .type = OPTION_REPEAT,
     .help = "restrict a dimension: tp=1,2,4,8 or pp=8..64 or schedule=1f1b,interleaved; repeatable",
     .group = "Search",
     .check = check_restriction},
    {.name = "top",
     .argument = "N",
     .type = OPTION_COUNT,
     .low = 1,
     .high = 100000,
     .initial = "20",
     .help = "plans to show",
     .group = "Search"},
    {.name = "rerank",
     .argument = "N",
     .type = OPTION_COUNT,
     .high = 100000,
     .initial = TEXT_OF(PLANS_SIMULATED),
     .help = "of the closed form's best, so many are simulated and ranked again; 0: none",
     .group = "Search"},
    {.name = "variants",
     .type = OPTION_FLAG,
     .help = "also plans that differ only in zero, sp, recomputation, schedule or overlaps; otherwise the best of such a family",
     .group = "Search"},
    {.name = "explain",
     .argument = "RANK|LAYOUT",
     .type = OPTION_TEXT,
     .help = "one plan in full beside the best: where every second and byte goes, or why it is out",
     .group = "Search"},
    THREADS_ROW("Search"),
    NETWORK_ROW("network", FABRIC_GROUP,
                "flow: simulate the best plans also with flows that share the links of the fabric, and rank them by that"),
    {.name = "flow-top",
     .argument = "N",
     .type = OPTION_COUNT,
     .low = 1,
     .high = 1000,
     .initial = "3",
     .group = FABRIC_GROUP,
     .help = "so many plans, with --network flow"},
    {.name = "placement",
     .argument = "HOW",
     .type = OPTION_CHOICE,
     .choices = placement_choices_all,
     .initial = "all",
     .group = FABRIC_GROUP,
     .help = "which hosts the ranks sit on, with --network flow; all: each way, and the best counts"},
    FABRIC_OPTION_ROWS,
    {0},
};

/* The layout of the experiment, as far as it is given, and --space. */
static enum status read_limits(const struct invocation *call, const struct experiment *experiment, struct space_limits *limits,
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
    struct search_options options_ = {.keep = top > rerank ? top : rerank,
                                      .variants = option_flag(call, "variants"),
                                      .threads = thread_option(call),
                                      .progress = progress_update,
                                      .progress_context = &progress};
    search_run_on_world(space, &options_, result);
    progress_end(&progress);
}

static void rank(struct plan_outcome *outcome, struct invocation *call)
{
    struct progress progress = progress_begin(call, "plans simulated");
    struct ranking_options ranking = {.n_simulate = (int)option_count(call, "rerank"),
                                      .threads = thread_option(call),
                                      .progress = progress_update,
                                      .progress_context = &progress};
    plans_rank(outcome->search.plans, outcome->search.n_plans, outcome->setting, &ranking, &outcome->plans, &call->diags);
    progress_end(&progress);
}

static enum status rank_and_report(struct plan_outcome *outcome, struct invocation *call, double started_s)
{
    int threads = thread_option(call), top = (int)option_count(call, "top");
    const char *explain = option_text(call, "explain");
    enum status status = STATUS_OK;
    rank(outcome, call);
    outcome->n_plans = outcome->search.n_plans;
    status = plan_flow_run(call, outcome->setting, outcome->plans, outcome->n_plans, &outcome->flow);
    outcome->n_shown = outcome->n_plans < top ? outcome->n_plans : top;
    outcome->explained = explain != NULL;
    if (status == STATUS_OK && outcome->explained)
        status = explanation_make(explain, outcome->setting, outcome->plans, outcome->n_plans, threads, &outcome->explanation,
                                  &call->diags);
    outcome->total_s = clock_seconds() - started_s;
    if (status == STATUS_OK)
        status = plan_report(outcome, call);
    plan_flow_free(&outcome->flow);
    free(outcome->plans);
    return status;
}

static enum status plan_in(const struct space *space, const struct space_limits *limits, const struct experiment *experiment,
                           struct invocation *call)
{
    double started_s = clock_seconds();
    struct plan_outcome outcome = {.experiment = experiment, .setting = space_setting(space)};
    search_space(space, call, &outcome.search);
    outcome.search_s = clock_seconds() - started_s;
    enum status status = STATUS_BAD_INPUT;
    if (outcome.search.n_plans > 0)
        status = rank_and_report(&outcome, call, started_s);
    else
        remedies_report(space, limits, thread_option(call), &outcome.search, &call->diags);
    search_result_free(&outcome.search);
    return status;
}

static enum status run(struct invocation *call)
{
    struct experiment_flags flags = experiment_flags_of(call);
    struct experiment experiment;
    struct space_limits limits;
    struct space *space;
    enum status status = experiment_read(call, &flags, &experiment);
    if (status != STATUS_OK)
        return status;
    struct setting setting = {&experiment.model, &experiment.cluster, &experiment.job, experiment.gpus};
    status = read_limits(call, &experiment, &limits, &call->diags);
    if (status == STATUS_OK)
        status = space_create(&setting, &limits, &space, &call->diags);
    if (status != STATUS_OK)
        return status;
    status = plan_in(space, &limits, &experiment, call);
    space_destroy(space);
    return status;
}

static const struct example examples[] = {
    {"msim plan --model gpt-175b-megascale --cluster megascale-a100 --gpus 12288 --global-batch 6144", "rank all layouts"},
    {"msim plan --model llama3-70b --cluster dgx-h100 --gpus 512 --space tp=4,8 --space cp=1", "part of the space"},
    {"msim plan --model gpt-175b-megascale --cluster megascale-a100 --gpus 1024 --global-batch 512 --network flow",
     "where the ranks of the best layouts should sit"},
    {"msim plan experiment.yaml --layout tp=8,pp=8 --top 5", "complete a partly given layout"},
    {"msim plan experiment.yaml --explain tp=4,pp=16", "why is this layout not the best?"},
    {0}};

const struct command command_plan = {
    .name = "plan",
    .summary = "search parallel layouts for a model on a cluster; rank them",
    .description =
        "Goes through every way to divide the job among its GPUs: tensor, context, pipeline, expert and data "
        "parallelism, model chunks, "
        "micro-batch, ZeRO stage, sequence parallelism, recomputation, pipeline schedule, and which of the overlaps "
        "that the job allows "
        "are used. Each layout is checked, weighed against the GPU's memory, and timed by a formula; the best are "
        "simulated and ranked "
        "again.\n\n"
        "With --network flow the best of these are simulated once more, on the fabric and in several placements of their ranks, "
        "and ranked by what that takes.\n\n"
        "By default the table shows the best of each family, that is of layouts with the same tp, cp, pp, vpp, dp, ep "
        "and micro-batch. A "
        "layout given in the experiment or with --layout fixes the dimensions it names. Experts are whole on their ranks; "
        "etp=8 in a layout or in --space looks at experts that are split over tp=8. Between none and full recomputation stand "
        "the modules that are cheapest to repeat (norm+mla+act in the table: layernorm, mla_up_proj, mlp_act and moe_act, what a "
        "model has of them), or selective; other modules by --space recompute=moe_act,mlp+core_attn.\n\n"
        "What fits by prediction may not in reality: the column OOM says which share of real runs that full ran out of memory, "
        "and "
        "--memory-margin keeps room.\n\n"
        "When nothing fits, the answer says by how many GiB the closest layout misses, and what would help.\n\n"
        "mpirun -n N msim plan ... shares the search and the simulations over ranks, and threads inside each; the "
        "answer is the same with any number of either.",
    .operands = "[EXPERIMENT.yaml]",
    .max_operands = 1,
    .experiment = true,
    .options = options,
    .examples = examples,
    .run = run,
};
