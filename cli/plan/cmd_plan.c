#include <stdlib.h>

#include "cli/job/launch_export.h"
#include "cli/job/plan_low_oom.h"
#include "cli/options/command.h"
#include "cli/options/experiment_options.h"
#include "cli/options/fabric_options.h"
#include "cli/options/shared_options.h"
#include "cli/options/sweep_values.h"
#include "cli/output/expectation.h"
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
    enum status status = space_restrict(&limits, text, PLACE_NONE, &diags);
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

static const char *const column_choices[] = {"usual", "all", NULL};

static const struct option_row options[] = {
    {.name = "space",
     .argument = "KEY=VALUES",
     .type = OPTION_REPEAT,
     .check = check_restriction,
     .help = "restrict a dimension: tp=1,2,4,8 or pp=8..64; or search values that are not searched by default: "
             "schedule=zb-2p,zb-v,dualpipe,dualpipe-v; repeatable",
     .group = "Search"},
    {.name = "framework",
     CHOICE_FIELDS("WHICH", framework_choices),
     .initial = "any",
     .help = "search only layouts that this framework runs: its schedules, ZeRO stages and numbers of micro-batches; with "
             "--export, its framework is used",
     .group = "Search"},
    {.name = "top", COUNT_FIELDS, .low = 1, .high = 100000, .initial = "20", .help = "show the N best plans", .group = "Search"},
    {.name = "columns",
     CHOICE_FIELDS("WHICH", column_choices),
     .initial = "usual",
     .help = "show a text table of 100 columns, or all columns: each dimension of the layout, the closed form's time",
     .group = "Search"},
    {.name = "rerank",
     COUNT_FIELDS,
     .high = 100000,
     .initial = TEXT_OF(PLANS_SIMULATED),
     .help = "simulate the N best closed-form layouts and re-rank them; 0: none",
     .group = "Search"},
    {.name = "variants",
     .type = OPTION_FLAG,
     .help = "also show plans that differ only in zero, sp, recomputation, schedule or overlaps; by default only the best of "
             "each family is shown",
     .group = "Search"},
    {.name = "explain",
     TEXT_FIELDS("RANK|LAYOUT"),
     .help = "explain one plan next to the best one: where the time and the memory go, or why it was rejected. tp=4,pp=16 picks "
             "the best such plan; 'tp4 pp16 mb1 z1', copied from the table, names one plan exactly",
     .group = "Search"},
    {.name = "levers",
     .type = OPTION_FLAG,
     .help = "list what would make the job faster: search again with one change at a time (a feature, precision, offload, shard, "
             "other schedules, batch, twice the network, memory or arithmetic), and show the option for each",
     .group = "Sweeps and levers"},
    THREADS_ROW("Search"),
    EXPORT_ROW("write a launch script or configuration for the best layout that the framework supports, instead of the table; "
               "--space wins over the limits of the framework"),
    {.name = "sweep",
     .argument = "KEY=VALUES",
     .type = OPTION_REPEAT,
     .check = check_axis,
     .help = "show the best plan for each value of a key: gpus=256..4096, precision=bf16,fp8, "
             "cluster=dgx-h100,gb200-nvl72. " SWEEP_FORMS
             ". gpus=256..1024+global-batch=512..2048 changes both together; braces hold values with commas: "
             "layout={tp=8,pp=2},{tp=4,pp=4}. Repeat to search every combination",
     .group = "Sweeps and levers"},
    {.name = "within",
     TIME_FIELDS,
     .help = "with --sweep and --tokens: choose the point that finishes within this time for the fewest GPU-hours; exit with 5 "
             "if there is none",
     .group = "Sweeps and levers"},
    {.name = "least",
     CHOICE_FIELDS("WHAT", sweep_least_choices),
     .initial = "gpu-hours",
     .help = "with --within: choose the point by this criterion instead; cost needs --gpu-price, energy is an upper bound from "
             "published node or GPU power",
     .group = "Sweeps and levers"},
    PRICE_ROW(
        "Sweeps and levers",
        "set the price per GPU-hour, such as 2.5, or for each GPU: h200=3,b200=5.5; with --sweep and --tokens, adds the cost"),
    NETWORK_ROW("network", FABRIC_GROUP,
                "flow: also simulate the best plans with flows that share the links of the fabric, and rank them by the result"),
    {.name = "flow-top",
     COUNT_FIELDS,
     .low = 1,
     .high = 1000,
     .initial = "3",
     .help = "with --network flow: simulate the N best plans",
     .group = FABRIC_GROUP},
    {.name = "placement",
     CHOICE_FIELDS("HOW", placement_choices_all),
     .initial = "all",
     .help = "with --network flow: place the ranks on hosts this way; all: try each, and keep the best",
     .group = FABRIC_GROUP},
    FABRIC_OPTION_ROWS,
    {0},
};

static enum status export_first(struct plan_outcome *outcome, struct invocation *call)
{
    const struct ranked_plan *first = &outcome->found.plans[0];
    low_oom_plan_warn(&outcome->safer, "--export", &call->diags);
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
    struct plan_outcome outcome = {
        .experiment = experiment, .setting = space_setting(space), .timing = option_flag(call, "timing")};
    plans_find(space, call, &outcome.found);
    enum status status = outcome.found.search.counts.legal > 0 ? STATUS_CHECK : STATUS_BAD_INPUT;
    if (outcome.found.plans) {
        if (!option_given(call, "explain"))
            low_oom_plan_search(&outcome.found.plans[0], space, call, &outcome.safer);
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
            diag_error(&call->diags, PLACE_NONE,
                       "--%s applies to the points of a sweep; add --sweep, such as --sweep gpus=256..4096", sweeping[i]);
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
            diag_error(&call->diags, PLACE_NONE,
                       "--levers and --%s exclude each other; --levers shows the best plan after each change", others[i]);
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
    if (status == STATUS_OK)
        status = space_create(&setting, &limits, &space, &call->diags);
    if (status != STATUS_OK)
        return status;
    status = plan_in(space, &limits, experiment, call);
    space_destroy(space);
    return status;
}

static enum status run(struct invocation *call)
{
    if (option_given(call, "sweep") && option_given(call, "export")) {
        diag_error(&call->diags, PLACE_NONE,
                   "--export writes one layout, but a sweep has one for each point; remove one of the two");
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
    {"msim plan experiment.yaml --layout tp=8,pp=8 --top 5", "complete a partial layout"},
    {"msim plan --model llama3-70b --cluster dgx-h100 --gpus 512 --space tp=4,8 --space cp=1", "search a part of the space"},
    {"msim plan experiment.yaml --explain tp=4,pp=16", "explain why a layout is not the best"},
    {"msim plan experiment.yaml --export megatron -o launch.sh", "write Megatron-LM's launch script for the best layout"},
    {"msim plan experiment.yaml --framework megatron", "search only layouts that Megatron-LM runs"},
    {"msim plan experiment.yaml --export torchtitan -o job.toml",
     "write torchtitan's job_config for the best layout that it supports"},
    {"msim plan --model gpt-175b-megascale --cluster megascale-a100 --gpus 1024 --global-batch 512 --network "
     "flow",
     "find the best placement of the ranks on the fabric"},
    {"msim plan --model llama3-70b --cluster dgx-h100 --global-batch 1024 --sweep gpus=128..4096 --tokens 15T "
     "--within 60d",
     "find the number of GPUs that trains 15T tokens in 60 days"},
    {"msim plan --model llama3-70b --global-batch 1024 --gpus 512 --sweep cluster=dgx-h100,gb200-nvl72 --sweep "
     "precision=bf16,fp8",
     "compare clusters and precisions"},
    {"msim plan --model llama3-70b --gpus 2048 --global-batch 2048 --tokens 15T --sweep gpu=h200,b200,mi300x "
     "--gpu-price h200=3,b200=5.5,mi300x=2.4 --within 90d --least cost",
     "find the cheapest GPU"},
    {"msim plan --model deepseek-v3 --gpu h800 --gpus 2048 --global-batch 15360 --precision fp8 --levers",
     "list what would make the job faster"},
    {0},
};

static const struct command_note notes[] = {
    {"The table", "One row is the best layout of a family: layouts with the same tp, cp, pp, vpp, dp, ep and micro-batch. "
                  "--variants shows the others. MFU counts attention in full. If counting only the causal half changes it by "
                  "3 points or more, a second column shows that value. Below the table are the TFLOPS and tokens/s per GPU "
                  "of the first plan and, with --tokens, its days and GPU-hours. With --network flow they are those of its "
                  "best placement."},
    {"Memory", "A layout that fits by prediction can still run out of memory. The column OOM shows the share of real "
               "runs, equally full, that did. By default 10 % of the memory stays free, and the first plan is the fastest one "
               "for which at most 10 % of such runs failed; of plans within 0.5 % of its time, the one with the least memory. "
               "Faster plans that are nearly full have a table of their own. --memory-margin 0 ranks all plans by time. --export "
               "and layout auto use the first plan."},
    {"Recomputation", "The search tries none, full, selective, and the modules that are cheapest to repeat: layernorm, "
                      "mla_up_proj, mlp_act and moe_act, as far as the model has them (norm+mla+act+moe_act in the table). If "
                      "none does not fit but full does, msim also tries full for the smallest number of layers per virtual stage "
                      "(full:3: the first three). --space recompute=moe_act,mlp+core_attn tries other modules; --space "
                      "recompute=none,full tries only these two."},
    {"Searched only on request",
     "Expert tensor parallelism: by default each expert is whole on its rank; etp=8 splits experts over tp=8. "
     "Context-parallel exchange: from 32,768 tokens per sequence on, msim tries ring, all_gather, a2a and both "
     "(a2a:4+ring); below that only ring, unless --space cp_comm=ring,a2a. ZeRO shards over all replicas; "
     "--space shard=0,8,64 tries hybrid sharding. Offloading: --space offload=auto tries optimizer states, "
     "activations and parameters in host memory; offload=auto:25% also tries shares of them in steps of 25 % "
     "and keeps the smallest that fits, unless a larger one is faster; offload=optimizer:25%,optimizer:50% "
     "tries exactly these."},
    {"Pipeline schedules",
     "The search tries gpipe, 1f1b and zb-1p with one chunk per stage, and interleaved with several. "
     "zb-2p, and zb-v, dualpipe and dualpipe-v (two chunks), can be faster, but few frameworks run them. --space "
     "schedule=none,interleaved,zb-2p,zb-v,dualpipe,dualpipe-v tries exactly the schedules it lists; none means no "
     "pipeline."},
    {"Frameworks",
     "--framework megatron searches no layout that Megatron-Core refuses, such as an interleaved one in which pp does not "
     "divide the micro-batches of a replica. --framework torchtitan does the same for torchtitan. --space overrides the "
     "schedules, ZeRO stages and recomputation of a framework, but not this rule."},
    {"Batch size", "All replicas get the same number of sequences, so dp divides both the batch and the number of GPUs. A "
                   "batch with few divisors excludes most layouts: 4M tokens are 977 sequences of 4096, a prime. A warning "
                   "then names the nearest batch that excludes the fewest."},
    {"Sweeps", "--sweep searches again for each value of a key, such as the number of GPUs. Each row shows the best "
               "layout, tokens/s, scaling per GPU and, with --tokens, days, GPU-hours and an upper bound of energy: "
               "published node or board power, all the time, times PUE. A cluster with too few GPUs gets more nodes of "
               "its kind. The exit code is 5 if no point has a plan."},
    {"Levers", "--levers searches again with one change at a time: a feature that the job does not use, a narrower "
               "precision, twice the batch, twice the network, and more. Each row shows the best layout after the change."},
    {"Several machines", "mpirun -n N msim plan ... divides the search and the simulations among ranks and their threads. The "
                         "result does not depend on their number."},
    {0},
};

static const struct result_table keys[] = {{"", search_rows},
                                           {"plans[]", plan_rows},
                                           {"plans[].likely", likely_rows},
                                           {"plans[].out_of_memory", out_of_memory_rows},
                                           {"flow[]", flow_rows},
                                           {"flow[]", rate_rows},
                                           {"flow[].placements.*", placement_rows},
                                           {"explanation", explanation_rows},
                                           {"levers.changes[]", lever_rows},
                                           {"scaling.points[]", point_rows},
                                           {0}};

const struct command command_plan = {
    .name = "plan",
    .summary = "search parallel layouts for a training job, and rank them by step time",
    .description = "Searches every way to divide the job among its GPUs, checks each layout against the memory of the GPU, "
                   "times it with a formula, and simulates the best ones.\n"
                   "\n"
                   "The search covers tensor, context, pipeline, expert and data parallelism, model chunks, micro-batch, ZeRO "
                   "stage, sequence parallelism, recomputation, pipeline schedule and the overlaps that the job allows. A "
                   "layout in the experiment or in --layout fixes the dimensions that it names. If nothing fits, msim reports "
                   "by how many GiB the closest layout misses, and what would help.",
    .experiment = true,
    .options = options,
    .notes = notes,
    .examples = examples,
    .keys = keys,
    .run = run,
};
