#include <stdlib.h>

#include "cli/job/launch_export.h"
#include "cli/job/plan_safer.h"
#include "cli/options/command.h"
#include "cli/options/experiment_options.h"
#include "cli/options/fabric_options.h"
#include "cli/options/shared_options.h"
#include "cli/options/sweep_values.h"
#include "cli/plan/plan_levers.h"
#include "cli/plan/plan_report.h"
#include "cli/plan/plan_sweep.h"
#include "model/base/clock.h"
#include "model/base/memory.h"
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

static enum status check_axis(const char *text, char *why, size_t size)
{
    struct sweep_axis *axis = memory_new(1, sizeof *axis);
    enum status status = sweep_axis_parse(text, axis, why, size);
    free(axis);
    return status;
}

#define TEXT_OF_TOKENS(x) #x
#define TEXT_OF(x)        TEXT_OF_TOKENS(x)

static const struct option_row options[] = {
    {.name = "space",
     .argument = "KEY=VALUES",
     .type = OPTION_REPEAT,
     .check = check_restriction,
     .help = "restrict a dimension that the layout does not fix: tp=1,2,4,8 or pp=8..64 or schedule=1f1b,interleaved, or look at "
             "what is not searched unasked: schedule=zb-v,dualpipe,dualpipe-v; repeatable",
     .group = "Search"},
    {.name = "top", COUNT_FIELDS, .low = 1, .high = 100000, .initial = "20", .help = "plans to show", .group = "Search"},
    {.name = "rerank",
     COUNT_FIELDS,
     .high = 100000,
     .initial = TEXT_OF(PLANS_SIMULATED),
     .help = "of the closed form's best, so many are simulated and ranked again; 0: none",
     .group = "Search"},
    {.name = "variants",
     .type = OPTION_FLAG,
     .help = "also plans that differ only in zero, sp, recomputation, schedule or overlaps; otherwise the best of such a family",
     .group = "Search"},
    {.name = "explain",
     TEXT_FIELDS("RANK|LAYOUT"),
     .help =
         "one plan in full beside the best: where every second and byte goes, or why it is out; what tp=4,pp=16 leaves out is "
         "as it is best, 'tp4 pp16 mb1 z1' out of a table leaves out nothing",
     .group = "Search"},
    {.name = "levers",
     .type = OPTION_FLAG,
     .help = "what would make it faster: the best layout with one thing changed at a time: each feature that the job does not "
             "name, precision, what the search leaves out unasked (offload, shard, the schedules zb-v, dualpipe and dualpipe-v), "
             "batch, twice the network, memory, arithmetic; with the option that says each",
     .group = "Search"},
    THREADS_ROW("Search"),
    EXPORT_ROW("instead of the table a script or configuration that launches the best layout of those that the framework can "
               "say; --space wins "
               "over what it cannot"),
    {.name = "sweep",
     .argument = "KEY=VALUES",
     .type = OPTION_REPEAT,
     .check = check_axis,
     .help = "the best plan at each value of a key of the experiment: gpus=256..4096, precision=bf16,fp8, "
             "cluster=dgx-h100,gb200-nvl72; " SWEEP_FORMS
             "; gpus=256..1024+global-batch=512..2048 change together; values with commas stand in braces, "
             "layout={tp=8,pp=2},{tp=4,pp=4}; repeatable: every combination",
     .group = "Scaling"},
    {.name = "within",
     TIME_FIELDS,
     .help = "with --sweep and --tokens: the point that is done in this time in the fewest GPU-hours; exit with 5 when none is",
     .group = "Scaling"},
    {.name = "least",
     CHOICE_FIELDS("WHAT", sweep_least_choices),
     .initial = "gpu-hours",
     .help = "with --within: what the point that is chosen takes the least of; cost is by --gpu-price; energy is an upper bound, "
             "at the power that is "
             "published of nodes or, where that is not known of all points, of GPUs",
     .group = "Scaling"},
    PRICE_ROW("Scaling",
              "money per GPU and hour, such as 2.5, or of each GPU, h200=3,b200=5.5: with --sweep and --tokens adds the "
              "cost"),
    NETWORK_ROW("network", FABRIC_GROUP,
                "flow: simulate the best plans also with flows that share the links of the fabric, and rank them by that"),
    {.name = "flow-top",
     COUNT_FIELDS,
     .low = 1,
     .high = 1000,
     .initial = "3",
     .help = "so many plans, with --network flow",
     .group = FABRIC_GROUP},
    {.name = "placement",
     CHOICE_FIELDS("HOW", placement_choices_all),
     .initial = "all",
     .help = "which hosts the ranks sit on, with --network flow; all: each way, and the best counts",
     .group = FABRIC_GROUP},
    FABRIC_OPTION_ROWS,
    {0},
};

static enum status export_first(struct plan_outcome *outcome, struct invocation *call)
{
    const struct ranked_plan *first = &outcome->found.plans[0];
    safer_plan_warn(&outcome->safer, "--export", &call->diags);
    return launch_export_write(call, &first->plan.layout, outcome->setting, ranked_step_s(first));
}

static enum status finish_and_report(struct plan_outcome *outcome, struct invocation *call, double started_s)
{
    int threads = thread_option(call), top = (int)option_count(call, "top"), n_plans = outcome->found.search.n_plans;
    const char *explain = option_text(call, "explain");
    enum status status = plan_flow_run(call, outcome->setting, outcome->found.plans, n_plans, &outcome->flow);
    outcome->n_shown = n_plans < top ? n_plans : top;
    outcome->explained = explain != NULL;
    if (status == STATUS_OK && outcome->explained)
        status = explanation_make(explain, outcome->setting, outcome->found.plans, n_plans, threads, &outcome->explanation,
                                  &call->diags);
    outcome->total_s = clock_seconds() - started_s;
    if (status == STATUS_OK && option_given(call, "export"))
        status = export_first(outcome, call);
    else if (status == STATUS_OK)
        status = plan_report(outcome, call);
    plan_flow_free(&outcome->flow);
    return status;
}

static enum status plan_in(const struct space *space, const struct space_limits *limits, const struct experiment *experiment,
                           struct invocation *call)
{
    double started_s = clock_seconds();
    struct plan_outcome outcome = {.experiment = experiment, .setting = space_setting(space)};
    plans_find(space, call, &outcome.found);
    enum status status = STATUS_BAD_INPUT;
    if (outcome.found.plans) {
        if (!option_given(call, "explain"))
            safer_plan_find(&outcome.found.plans[0], outcome.setting, limits, call, &outcome.safer);
        status = finish_and_report(&outcome, call, started_s);
    } else
        remedies_report(space, limits, thread_option(call), &outcome.found.search, &call->diags);
    plans_found_free(&outcome.found);
    return status;
}

/* What only a sweep answers. */
static enum status check_alone(struct invocation *call)
{
    static const char *const sweeping[] = {"within", "gpu-price", "least"};
    for (size_t i = 0; i < sizeof sweeping / sizeof sweeping[0]; i++)
        if (option_given(call, sweeping[i])) {
            diag_error(&call->diags, (struct place){0},
                       "--%s is about the points of a sweep; give --sweep too, such as gpus=256..4096", sweeping[i]);
            return STATUS_USAGE;
        }
    return STATUS_OK;
}

/* What levers, which are searches of their own, leave no place for. */
static enum status check_levers(struct invocation *call)
{
    static const char *const others[] = {"sweep", "top", "variants", "explain", "network", "export"};
    for (size_t i = 0; i < sizeof others / sizeof others[0] && option_flag(call, "levers"); i++)
        if (option_given(call, others[i])) {
            diag_error(&call->diags, (struct place){0},
                       "--levers shows the best plan with each change; --%s asks for something else", others[i]);
            return STATUS_USAGE;
        }
    return STATUS_OK;
}

static enum status plan_one(const struct experiment *experiment, struct invocation *call)
{
    struct setting setting = {&experiment->model, &experiment->cluster, &experiment->job, experiment->gpus};
    struct space_limits limits;
    struct space *space;
    enum status status = plan_limits(call, experiment, &limits, &call->diags);
    if (status == STATUS_OK) {
        launch_export_limit(call, &experiment->model, experiment->job.features, &limits);
        status = space_create(&setting, &limits, &space, &call->diags);
    }
    if (status != STATUS_OK)
        return status;
    status = plan_in(space, &limits, experiment, call);
    space_destroy(space);
    return status;
}

static enum status run(struct invocation *call)
{
    if (option_given(call, "sweep") && option_given(call, "export")) {
        diag_error(&call->diags, (struct place){0}, "--export writes one layout; a sweep has one for each point");
        return STATUS_USAGE;
    }
    if (check_levers(call) != STATUS_OK)
        return STATUS_USAGE;
    if (option_given(call, "sweep"))
        return plan_sweep(call);
    if (check_alone(call) != STATUS_OK)
        return STATUS_USAGE;
    struct experiment_flags flags = experiment_flags_of(call);
    struct experiment experiment;
    enum status status = experiment_read(call, &flags, &experiment);
    if (status != STATUS_OK)
        return status;
    return option_flag(call, "levers") ? plan_levers(&experiment, call) : plan_one(&experiment, call);
}

static const struct example examples[] = {
    {"msim plan --model gpt-175b-megascale --cluster megascale-a100 --gpus 12288 --global-batch 6144", "rank all layouts"},
    {"msim plan --model llama3-70b --cluster dgx-h100 --gpus 512 --space tp=4,8 --space cp=1", "part of the space"},
    {"msim plan --model gpt-175b-megascale --cluster megascale-a100 --gpus 1024 --global-batch 512 --network flow",
     "where the ranks of the best layouts should sit"},
    {"msim plan --model llama3-70b --cluster dgx-h100 --global-batch 1024 --sweep gpus=128..4096 --tokens 15T --within 60d",
     "how many GPUs does it take?"},
    {"msim plan --model llama3-70b --global-batch 1024 --gpus 512 --sweep cluster=dgx-h100,gb200-nvl72 --sweep "
     "precision=bf16,fp8",
     "on what hardware, in what precision?"},
    {"msim plan --model llama3-70b --gpus 2048 --global-batch 2048 --tokens 15T --sweep gpu=h200,b200,mi300x --gpu-price "
     "h200=3,b200=5.5,mi300x=2.4 --within 90d --least cost",
     "for the same money?"},
    {"msim plan --model deepseek-v3 --gpu h800 --gpus 2048 --global-batch 15360 --precision fp8 --levers",
     "what would make it faster?"},
    {"msim plan experiment.yaml --layout tp=8,pp=8 --top 5", "complete a partly given layout"},
    {"msim plan experiment.yaml --export megatron -o launch.sh", "the best layout as Megatron-LM's arguments"},
    {"msim plan experiment.yaml --export torchtitan -o job.toml", "the best of those that torchtitan can run, as its job_config"},
    {"msim plan experiment.yaml --explain tp=4,pp=16", "why is this layout not the best?"},
    {0}};

const struct command command_plan = {
    .name = "plan",
    .summary = "search parallel layouts for a model on a cluster; rank them",
    .description =
        "Goes through every way to divide the job among its GPUs: tensor, context, pipeline, expert and data parallelism, model "
        "chunks, micro-batch, ZeRO stage, sequence parallelism, recomputation, pipeline schedule, and which of the overlaps that "
        "the job allows are used. Each layout is checked, weighed against the GPU's memory, and timed by a formula; the best are "
        "simulated and ranked again.\n"
        "\n"
        "With --network flow the best of these are simulated once more, on the fabric and in several placements of their ranks, "
        "and ranked by what that takes.\n"
        "\n"
        "By default the table shows the best of each family, that is of layouts with the same tp, cp, pp, vpp, dp, ep and "
        "micro-batch. A layout given in the experiment or with --layout fixes the dimensions it names. Experts are whole on "
        "their ranks; etp=8 in a layout or in --space looks at experts that are split over tp=8. Between none and full "
        "recomputation stand the modules that are cheapest to repeat (norm+mla+act+moe_act in the table: layernorm, mla_up_proj, "
        "mlp_act and moe_act, what a model has of them), or selective; other modules by --space recompute=moe_act,mlp+core_attn. "
        "Where "
        "keeping everything does not fit and full does, the fewest layers of each virtual stage that must be repeated (full:3 "
        "the first three) stand for full if that is faster; --space recompute=none,full looks at all or nothing. How cp "
        "exchanges is searched for sequences of 32,768 tokens and more (ring, all_gather, a2a, both as a2a:4+ring), and a ring "
        "below unless asked: --space cp_comm=ring,a2a. ZeRO shards over all replicas unless asked: --space shard=0,8,64 looks at "
        "hybrid sharding, too. Nothing is kept in the memory of the host unless asked: --space offload=auto looks at optimizer "
        "states, activations and parameters there (msim step --help), offload=auto:25% at shares of them in such steps too, of "
        "which the smallest that fits is taken unless a larger one is faster; offload=optimizer:25%,optimizer:50% at those.",
    .more =
        "Pipeline schedules: gpipe, 1f1b, zb-1p and zb-2p with one chunk a stage and interleaved with more are searched. zb-v, "
        "dualpipe and dualpipe-v, with two chunks, can be faster but few frameworks run them, so they are searched only where "
        "asked for: --space schedule=none,interleaved,zb-v,dualpipe,dualpipe-v, of which all are searched and no others; none "
        "stands for layouts without a pipeline.\n"
        "\n"
        "The batch is divided evenly, so the replicas are a divisor of it and of the GPUs: where most such numbers are out, as "
        "4M tokens (977 sequences of 4096, a prime) leave one of ten on 512 GPUs, a warning names the nearest batch that leaves "
        "most.\n"
        "\n"
        "What fits by prediction may not in reality: the column OOM says which share of real runs that full ran out of memory, "
        "and --memory-margin keeps room. Where more than 20 % of runs as full as the first plan do, a line below the table names "
        "what --memory-margin 15% puts first, for which at most 10 % do, and how much slower that is; --export, and layout auto "
        "elsewhere, take the first all the same and warn.\n"
        "\n"
        "MFU counts attention in full; where the causal half alone makes 3 points and more of a difference a column has that, "
        "too. "
        "The first plan's TFLOPS and tokens a second of a GPU stand below and, with --tokens, the days and GPU-hours of its "
        "steps; with --network flow in its best placement on the fabric.\n"
        "\n"
        "With --sweep the question is asked again for every value of a key, such as the number of GPUs, and the answer is a line "
        "for each: its best layout, tokens a second, how that scales per GPU and, with --tokens, days, GPU-hours and energy at "
        "most: "
        "what is published of the power of nodes at full load or of boards, all the time, times the PUE. A cluster "
        "with fewer GPUs than asked for gets more nodes of its kind. Points where nothing fits say so, and the exit code is 3 "
        "where no point has a plan, as it is without --sweep.\n"
        "\n"
        "With --levers it is asked once for each thing that could be different: a feature of the software that the job does not "
        "name, a narrower precision, twice the batch, twice the network. What is listed are the best layouts with each change, "
        "so a lever is worth what it brings when the layout follows.\n"
        "\n"
        "When nothing fits, the answer says by how many GiB the closest layout misses, and what would help.\n"
        "\n"
        "mpirun -n N msim plan ... shares the search and the simulations over ranks, and threads inside each; the answer is the "
        "same with any number of either.",
    .experiment = true,
    .options = options,
    .examples = examples,
    .run = run,
};
