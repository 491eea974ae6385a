#include <stdlib.h>
#include <string.h>

#include "cli/job/launch_export.h"
#include "cli/options/command.h"
#include "cli/options/fabric_options.h"
#include "cli/options/shared_options.h"
#include "cli/output/progress.h"
#include "cli/output/result.h"
#include "cli/step/step_flow.h"
#include "cli/step/step_many.h"
#include "cli/step/step_pair.h"
#include "cli/step/step_report.h"
#include "model/base/memory.h"
#include "model/base/order.h"

static const struct place NOWHERE;

enum { RANKS_FOLDED, RANKS_ALL };

static const char *const ranks_choices[] = {"folded", "all", NULL};
static const char *const detail_choices[] = {"chunk", "layer", "kernel", NULL};
static const char *const step_network_choices[] = {"analytic", "flow", "packet", NULL};
static const char *const collectives_choices[] = {"steady", "per-step", NULL};

static const struct option_row options[] = {
    {.name = "ranks",
     CHOICE_FIELDS("WHICH", ranks_choices),
     .initial = "folded",
     .help = "simulate one rank for all that behave alike, or every rank",
     .group = "Simulation"},
    {.name = "detail",
     CHOICE_FIELDS("LEVEL", detail_choices),
     .initial = "chunk",
     .help = "one operation per model chunk and micro-batch, per layer, or per kernel; by kernel passes in pairs (ep_overlap, "
             "dualpipe) hide nothing of one another, and the host is taken to be ahead",
     .group = "Simulation"},
    {.name = "explain",
     .type = OPTION_FLAG,
     .help = "print the cost of each kernel and exchange by parts",
     .group = "Simulation"},
    {.name = "network",
     CHOICE_FIELDS("MODEL", step_network_choices),
     .initial = "analytic",
     .help = "closed-form transfer times, flows that share the links of a fabric, or, for small jobs, packet by packet between "
             "nodes with queues, marks and pauses",
     .group = FABRIC_GROUP},
    FABRIC_OPTION_ROWS,
    {.name = "placement",
     CHOICE_FIELDS("HOW", placement_choices),
     .initial = "data_first",
     .help = "which hosts the ranks sit on, with --network flow or packet",
     .group = FABRIC_GROUP},
    {.name = "collectives",
     CHOICE_FIELDS("DETAIL", collectives_choices),
     .initial = "steady",
     .help = "rings as long transfers, or part by part as each arrives, with --network flow or packet",
     .group = FABRIC_GROUP},
    {.name = "flap",
     .argument = "LINK@START+TIME",
     .type = OPTION_REPEAT,
     .help = "a cable that is down for a while, tor:17@2s+50ms: its transfers stall until NICs send again",
     .group = FABRIC_GROUP},
    {.name = "retransmit-exponent",
     .argument = "T",
     .type = OPTION_COUNT,
     .low = 1,
     .high = RETRANSMIT_EXPONENT_MAX,
     .initial = "20",
     .help = "NICs send again after 4.096 us x 2^T, up to 7 times",
     .group = FABRIC_GROUP},
    {.name = "adaptive-retransmission", .type = OPTION_FLAG, .help = "NICs send again sooner at first", .group = FABRIC_GROUP},
    PACKETS_OPTION_ROWS,
    PRICE_ROW(
        "Budget",
        "money per GPU and hour, such as 2.5, or of several GPUs, h200=3,b200=5.5: adds the cost of the budget, with --tokens"),
    STEP_MANY_OPTION_ROWS,
    FILE_ROW("link-map", "Files", "write what every link carried as CSV, with --network flow or packet; msim plot draws it"),
    EXPORT_ROW("instead of a report a script or configuration that launches the layout"),
    FILE_ROW("trace", "Files", "write a Chrome trace (opens in ui.perfetto.dev)"),
    FILE_ROW("timeline", "Files", "write every operation's start and end as CSV; msim plot draws it"),
    {.name = "profile",
     TEXT_FIELDS("TRACE"),
     .help = "where the time of a rank of the real job went, beside the prediction: a trace that torch.profiler or JAX wrote "
             "(.json), or a table of launches by Nsight Systems or rocprofv3 (.csv); or .gz",
     .group = "Files"},
    {.name = "profile-steps",
     COUNT_FIELDS,
     .low = 1,
     .high = 1000000,
     .initial = "1",
     .help = "steps in a trace that marks none",
     .group = "Files"},
    {.name = "trace-ranks",
     .argument = "N,...",
     .type = OPTION_LIST,
     .help = "ranks in trace and timeline, or 'all'; the first rank of each stage otherwise",
     .group = "Files"},
    {0}};

/* ---- which ranks are recorded */

static bool rank_parse(const char *text, int limit, int *rank)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end != '\0' || value < 0 || value >= limit)
        return false;
    *rank = (int)value;
    return true;
}

/* Numbers of the job's ranks as the program knows them: themselves, or their stage when ranks are folded. NULL and -1: all.
 * False: a text is not a rank. */
static bool trace_ranks(struct invocation *call, const struct job_setup *setup, bool folded, int **ranks, int *n_ranks)
{
    int n, world = setup->experiment.gpus;
    const char *const *texts = option_list(call, "trace-ranks", &n);
    bool all = n == 1 && strcmp(texts[0], "all") == 0;

    *ranks = NULL;
    *n_ranks = -1;
    if (all || (n == 0 && folded))
        return true;
    *n_ranks = n > 0 ? n : setup->layout.pp;
    *ranks = memory_new((size_t)*n_ranks, sizeof **ranks);
    for (int i = 0; i < *n_ranks; i++) {
        int rank = layout_rank(&setup->layout, (struct coordinates){.pp = i});
        if (n > 0 && !rank_parse(texts[i], world, &rank)) {
            diag_error(&call->diags, NOWHERE, "--trace-ranks: '%.40s' is not a rank; ranks are 0 to %d, or 'all'", texts[i],
                       world - 1);
            free(*ranks);
            return false;
        }
        (*ranks)[i] = folded ? layout_coordinates(&setup->layout, rank).pp : rank;
    }
    return true;
}

/* Ranks in order, each once: several may have been folded into one. */
static int ranks_unique(int *ranks, int n)
{
    int kept = 0;

    if (n <= 0)
        return n;
    qsort(ranks, (size_t)n, sizeof *ranks, int_compare);
    for (int i = 0; i < n; i++)
        if (kept == 0 || ranks[kept - 1] != ranks[i])
            ranks[kept++] = ranks[i];
    return kept;
}

/* ---- files */

/* Opened before the simulation: a path that cannot be written is better known at once. */
struct step_files {
    FILE *trace, *timeline; /* NULL: not wanted */
};

static enum status files_open(struct invocation *call, struct step_files *files)
{
    enum status status = output_option(call, "trace", &files->trace);
    return status == STATUS_OK ? output_option(call, "timeline", &files->timeline) : status;
}

static enum status files_write(struct invocation *call, const struct step_files *files, const struct timeline *timeline,
                               const struct program *program)
{
    if (files->timeline != NULL)
        timeline_write_csv(timeline, program, files->timeline);
    if (files->trace != NULL)
        return timeline_write_chrome(timeline, program, "predicted", files->trace, &call->diags);
    return STATUS_OK;
}

/* ---- the command */

static enum status report(struct invocation *call, const struct job_setup *setup, const struct step_options *how,
                          const struct step_result *result, const struct program *program)
{
    struct step_profile profile;
    bool profiled;
    enum status status = step_profile_load(call, setup, &profile, &profiled);

    if (status != STATUS_OK)
        return status;
    if (profiled)
        step_profile_complete(&profile, setup, how->stages);
    struct step_report report = {.setup = setup,
                                 .profile = profiled ? &profile : NULL,
                                 .flow = how->seen_context,
                                 .result = result,
                                 .stages = how->stages,
                                 .program = option_flag(call, "explain") ? program : NULL,
                                 .detail = how->detail,
                                 .folded = !how->all_ranks,
                                 .gpu_price = setup->gpu_price};

    step_report_complete(&report);
    status = step_report_write(&report, call);
    if (profiled)
        step_profile_free(&profile);
    return status;
}

/* Fair flows go before packets: how much there is to do, and what to compare with. */
static enum status simulate_fair(struct invocation *call, const struct job_setup *setup, const struct step_options *how,
                                 struct step_flow *flow)
{
    struct step_options fair = *how;
    struct step_result result;

    fair.n_trace_ranks = 0;
    fair.stages = NULL;
    enum status status = step_simulate(&setup->layout, &setup->setting, &fair, &result, NULL, NULL, &call->diags);
    if (status == STATUS_OK)
        status = step_packets_check(call, &flow->packets);
    flow->options.packets = &flow->packets.options;
    return status;
}

static void tell_of_packets(void *progress, double done, double total)
{
    progress_turn(progress, "packets");
    progress_update(progress, done, total);
}

/* The time left is that of executing: building the program goes before it. */
static void tell_of_operations(void *progress, double done, double total)
{
    progress_turn(progress, "operations");
    progress_update(progress, done, total);
}

static enum status simulate(struct invocation *call, const struct job_setup *setup, const struct step_options *how,
                            const struct step_files *files, struct step_flow *flow)
{
    bool record = files->trace != NULL || files->timeline != NULL;
    struct step_result result;
    struct timeline timeline = {0};
    struct program program;
    struct progress progress = progress_begin(call, "building the program");
    const struct step_watch watch = {tell_of_operations, &progress};
    struct step_options watched = *how;
    watched.watch = &watch;
    enum status status = STATUS_OK;
    if (flow->packets.wanted) {
        status = simulate_fair(call, setup, &watched, flow);
        watched.watch = NULL;
        flow->packets.options.progress = tell_of_packets;
        flow->packets.options.context = &progress;
    }
    if (status == STATUS_OK)
        status =
            step_simulate(&setup->layout, &setup->setting, &watched, &result, record ? &timeline : NULL, &program, &call->diags);

    progress_end(&progress);
    if (status != STATUS_OK)
        return status;
    if (option_given(call, "export"))
        status = launch_export_write(call, &setup->layout, &setup->setting, result.step_time_s);
    else
        status = report(call, setup, how, &result, &program);
    if (status == STATUS_OK)
        status = files_write(call, files, &timeline, &program);
    timeline_free(&timeline);
    breakdown_free(how->stages);
    program_free(&program);
    return status;
}

/* Options that need another one. */
static enum status check_modes(struct invocation *call, bool flows)
{
    if (option_flag(call, "explain") && call->format == FORMAT_CSV)
        diag_note(&call->diags, NOWHERE, "--explain changes nothing with --format csv");
    if (option_given(call, "profile") && call->format == FORMAT_CSV)
        diag_note(&call->diags, NOWHERE, "--profile changes nothing with --format csv");
    if (option_given(call, "gpu-price") && call->format == FORMAT_CSV)
        diag_note(&call->diags, NOWHERE, "--gpu-price changes nothing with --format csv");
    if (option_given(call, "profile-steps") && !option_given(call, "profile"))
        diag_note(&call->diags, NOWHERE, "--profile-steps changes nothing without --profile");
    if (flows)
        return STATUS_OK;
    fabric_options_note_idle(call, "network", "flow or packet");
    if (!option_given(call, "link-map"))
        return STATUS_OK;
    diag_error(&call->diags, NOWHERE, "--link-map: only --network flow and packet know what links carry");
    return STATUS_USAGE;
}

/* What only a budget of tokens has. */
static enum status take_price(struct invocation *call, struct job_setup *setup)
{
    if (!option_given(call, "gpu-price") || setup->experiment.job.tokens > 0)
        return gpu_price_option(call, setup->experiment.cluster.gpu.name, &setup->gpu_price);
    diag_error(&call->diags, NOWHERE, "--gpu-price needs to know how much is trained: --tokens, such as 300B");
    return STATUS_USAGE;
}

static enum status run(struct invocation *call)
{
    struct job_setup setup;
    struct breakdown stages = {0};
    int *ranks, n_ranks;
    bool flows = option_choice(call, "network") != NETWORK_ANALYTIC;
    bool all = option_choice(call, "ranks") == RANKS_ALL || flows;
    if (call->n_operands == 2)
        return step_pair(call);
    enum status status = check_modes(call, flows);

    if (option_choice(call, "network") != NETWORK_PACKET)
        fabric_packets_note_idle(call);
    if (status == STATUS_OK)
        status = step_many_check(call);
    if (status == STATUS_OK)
        status = job_setup_load(call, &setup);
    if (status == STATUS_OK)
        status = take_price(call, &setup);
    if (status == STATUS_OK && option_given(call, "replicas"))
        return step_many(call, &setup);
    if (status != STATUS_OK)
        return status;
    if (!trace_ranks(call, &setup, !all, &ranks, &n_ranks))
        return STATUS_USAGE;
    struct step_options how = {.all_ranks = all,
                               .detail = (enum detail)option_choice(call, "detail"),
                               .trace_ranks = ranks,
                               .n_trace_ranks = ranks_unique(ranks, n_ranks),
                               .verify = !all,
                               .fold_flow = option_choice(call, "ranks") == RANKS_FOLDED,
                               .stages = &stages};
    struct step_files files;
    struct step_flow flow = {0};
    status = files_open(call, &files);
    if (status == STATUS_OK && flows)
        status = step_flow_load(call, &setup, &flow, &how);
    if (status == STATUS_OK)
        status = simulate(call, &setup, &how, &files, &flow);
    step_flow_free(&flow);
    free(ranks);
    return status;
}

static const struct example examples[] = {
    {"msim step --model gpt-175b-megascale --cluster megascale-a100 --gpus 12288 --global-batch 6144 --layout tp=8,pp=8,vpp=6",
     "175B on 12,288 GPUs"},
    {"msim step experiment.yaml --layout tp=8,pp=8,vpp=6,mb=1 --trace step.json", "a trace for ui.perfetto.dev"},
    {"msim step experiment.yaml --explain -v", "the cost of every kernel, every stage"},
    {"msim step experiment.yaml --export megatron -o launch.sh", "the Megatron-LM arguments of this layout"},
    {"msim step experiment.yaml --export nemo2 -o recipe.py", "a program that changes a recipe of NeMo 2 to it"},
    {"msim step experiment.yaml --replicas 100 --jitter 0.5%", "how unequal steps are when GPUs are, and what that costs"},
    {"msim step dense.yaml sparse.yaml --gpus 512", "two experiments side by side: why is one faster?"},
    {"msim step experiment.yaml --profile rank0.pt.trace.json.gz", "where a real step's time went, beside the prediction"},
    {0}};

const struct command command_step = {
    .name = "step",
    .summary = "one training step of one layout: time, MFU, where every second went, memory",
    .description =
        "Builds the program of one training step (for each rank an ordered list of computations, messages and collectives on its "
        "streams) and executes it in virtual time.\n"
        "\n"
        "Where the time goes: each nanosecond of a rank belongs to what its compute stream does, or, where that waits, to the "
        "exchange it waits for (the part during which data moves) or to the bubble (the part during which another stage has not "
        "yet begun). The classes sum to the step.\n"
        "\n"
        "Ranks of one stage behave alike on healthy nodes and are folded into one; with --network flow those are folded whose "
        "connections provably meet the same (routing by destination leaves many, hashing none). --ranks all simulates each, "
        "with the same result.\n"
        "\n"
        "With --network packet every rank is simulated and what leaves an NVLink domain is cut into packets, which wait in "
        "queues, are marked and paused while senders react. The step by fair flows goes before it and counts them: some 5 "
        "billion over links, six to ten minutes of a processor, are the most. A larger --mtu makes fewer.\n"
        "\n"
        "With --replicas the step is taken so often, each time on GPUs that draw their own speed (replica r by the seed plus r): "
        "arithmetic takes 1 + jitter z of its mean, z normal. Ranks that exchange inside layers go on together, at the pace of "
        "the slowest; stages wait for one another's messages, replicas for each other's gradients. With job.documents every "
        "sequence draws its documents, too. A step without --replicas has every GPU at the pace expected of the slowest "
        "('expected') and average documents. Without --jitter GPUs differ by their entry's clock_spread (up to 20 %), fitted to "
        "whole jobs; in two traced jobs it was 0.3 to 0.5 %. Days and GPU-hours of --tokens are those of the mean step.\n"
        "\n"
        "Energy of --tokens is an upper bound: GPUs at board power all the time, or nodes at their node_power, times pue.\n"
        "\n"
        "Of two experiments (the call's options are for both) it shows time by class, memory by use and MFU side by side, what "
        "differs, and by class of time how many percent more or fewer GPU-seconds a token takes, of all that it takes in the "
        "first: that says why one is faster whatever the GPUs and the batch.\n"
        "\n"
        "With --profile a trace of one rank of the real job is read (torch.profiler's export_chrome_trace, JAX's "
        "*.trace.json.gz, 'nsys stats -r cuda_gpu_trace --format csv', rocprofv3 --kernel-trace), its kernels are told apart by "
        "their names and its exchanges by their groups, and every instant of its steps is given to one of them: what the device "
        "did stands beside what was predicted for that rank's stage.",
    .more =
        "Without a layout, or with `layout: auto`, the one that msim plan puts first is taken. Its recompute is none, full "
        "(whole layers; full:4 the first four of each virtual stage, full:every2 every second, full:groups4 all, four at a "
        "time), selective (attention's core; PyTorch's policy where stacks shard by module), or the modules that are repeated in "
        "the backward pass, as in recompute=layernorm+moe_act: core_attn, layernorm, mla_up_proj, mlp_act, moe_act, mlp, "
        "shared_experts, moe. Tables have short words, which mean the same: sel, attn, norm, mla, act (mlp_act), shared.\n"
        "\n"
        "Its cp_comm says how cp ranks exchange: ring (keys and values go around beside attention; p2p), all_gather (of keys and "
        "values, before attention; Llama 3), a2a (heads for tokens around attention; Ulysses; cp * tp has to divide the heads), "
        "or both: a2a:8+ring exchanges heads among 8 neighbours, keys and values among the rest.\n"
        "\n"
        "Its shard=N says that ZeRO shards over N neighbours of the dp * cp replicas instead of all (hybrid sharding: HSDP, "
        "MiCS, several instances of the distributed optimizer); those who hold the same shard add up its gradients once a step.\n"
        "\n"
        "Its offload is none, or what is in the memory of the host, joined by '+': optimizer (states and master weights, updated "
        "by the host's cores), activations (what layers keep for the backward pass, down and up beside the passes), parameters "
        "(the shards of ZeRO-3, fetched for each gather; with optimizer). An amount behind a colon leaves the rest on the GPU: "
        "optimizer:50% is half of every layer's states, activations:25% a quarter of each stage's layers, activations:16 sixteen "
        "of them. Memory and its bandwidth are the cluster's host_memory and host_memory_rate, the link the GPU's host_rate or "
        "pcie_rate.",
    .operands = "[EXPERIMENT.yaml [OTHER.yaml]]",
    .max_operands = 2,
    .experiment = true,
    .options = options,
    .examples = examples,
    .run = run,
};
