#include <stdlib.h>
#include <string.h>

#include "cli/job/launch_export.h"
#include "cli/options/command.h"
#include "cli/options/fabric_options.h"
#include "cli/options/shared_options.h"
#include "cli/output/expectation.h"
#include "cli/output/explain.h"
#include "cli/output/layout_json.h"
#include "cli/output/progress.h"
#include "cli/output/result.h"
#include "cli/step/step_explain.h"
#include "cli/step/step_flow.h"
#include "cli/step/step_many.h"
#include "cli/step/step_pair.h"
#include "cli/step/step_report.h"
#include "model/base/memory.h"
#include "model/base/order.h"

enum { RANKS_FOLDED, RANKS_ALL };

static const char *const ranks_choices[] = {"folded", "all", NULL};
static const char *const detail_choices[] = {"chunk", "layer", "kernel", NULL};
static const char *const step_network_choices[] = {"analytic", "flow", "packet", NULL};
static const char *const step_network_meanings[] = {"closed-form transfer times", "flows that share the links of the fabric",
                                                    "packets with queues, marks and pauses between nodes; for small jobs", NULL};
static const char *const collectives_choices[] = {"steady", "per-step", NULL};

static const struct option_row options[] = {
    {.name = "ranks",
     CHOICE_FIELDS("WHICH", ranks_choices),
     .initial = "folded",
     .help = "simulate one rank of each group that behaves alike, or every rank",
     .group = "Simulation"},
    {.name = "detail",
     CHOICE_FIELDS("LEVEL", detail_choices),
     .initial = "chunk",
     .help = "simulate one operation per model chunk and micro-batch, per layer, or per kernel. With kernel, passes that run in "
             "pairs (ep_overlap, dualpipe) do not hide each other, and the host never delays the GPU",
     .group = "Simulation"},
    {.name = "explain",
     .type = OPTION_FLAG,
     .help = "show the cost of each kernel and exchange, part by part",
     .group = "Simulation"},
    {.name = "network",
     CHOICE_FIELDS("MODEL", step_network_choices),
     .meanings = step_network_meanings,
     .initial = "analytic",
     .help = "choose how transfers are simulated",
     .group = "Simulation"},
    FILE_ROW("trace", "Files", "write a Chrome trace (opens in ui.perfetto.dev)"),
    FILE_ROW("timeline", "Files", "write every operation's start and end as CSV; msim plot draws it"),
    FABRIC_OPTION_ROWS,
    {.name = "placement",
     CHOICE_FIELDS("HOW", placement_choices),
     .initial = "data_first",
     .help = "with --network flow or packet: place the ranks on hosts this way",
     .group = FABRIC_GROUP},
    {.name = "collectives",
     CHOICE_FIELDS("DETAIL", collectives_choices),
     .initial = "steady",
     .help = "with --network flow or packet: simulate a ring as long transfers, or step by step as parts arrive",
     .group = FABRIC_GROUP},
    {.name = "flap",
     .argument = "LINK@START+TIME",
     .type = OPTION_REPEAT,
     .help = "take a cable down for a while: tor:17@2s+50ms; repeatable. Transfers stall until the NIC retransmits",
     .group = FABRIC_GROUP},
    {.name = "retransmit-exponent",
     .argument = "T",
     .type = OPTION_COUNT,
     .low = 1,
     .high = RETRANSMIT_EXPONENT_MAX,
     .initial = "20",
     .help = "retransmit after 4.096 us x 2^T, up to 7 times",
     .group = FABRIC_GROUP},
    {.name = "adaptive-retransmission", .type = OPTION_FLAG, .help = "retransmit sooner at first", .group = FABRIC_GROUP},
    PACKETS_OPTION_ROWS,
    PRICE_ROW(
        "Cost",
        "set the price per GPU-hour, such as 2.5, or for each GPU: h200=3,b200=5.5; with --tokens, adds the cost of the budget"),
    STEP_MANY_OPTION_ROWS,
    FILE_ROW("link-map", "Files", "with --network flow or packet: write the traffic of every link as CSV; msim plot draws it"),
    EXPORT_ROW("write a launch script or configuration for the layout, instead of the report"),
    {.name = "profile",
     TEXT_FIELDS("TRACE"),
     .help = "compare with one rank of the real job: a trace of torch.profiler or JAX (.json), or a kernel table of Nsight "
             "Systems or rocprofv3 (.csv), also .gz",
     .group = "Files"},
    {.name = "profile-steps",
     COUNT_FIELDS,
     .low = 1,
     .high = 1000000,
     .initial = "1",
     .help = "set the number of steps in a trace that does not mark them",
     .group = "Files"},
    {.name = "profile-limit",
     QUANTITY_FIELDS("SIZE", DIM_BYTES),
     .low = 1,
     .initial = "1GiB",
     .help = "read a profile of at most this much text, uncompressed; reading needs up to 1.3 times that memory",
     .group = "Files"},
    {.name = "trace-ranks",
     .argument = "N,...",
     .type = OPTION_LIST,
     .fallback = "the first rank of each stage",
     .help = "write these ranks to --trace and --timeline, or 'all'",
     .group = "Files"},
    {0},
};

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
            diag_error(&call->diags, PLACE_NONE, "--trace-ranks: '%.40s' is not a rank; ranks are 0 to %d, or 'all'", texts[i],
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
    struct step_record record = step_record_of(setup, result);
    record.profile = profiled ? &profile : NULL;
    record.flow = how->seen_context;
    record.stages = how->stages;
    record.program = option_flag(call, "explain") ? program : NULL;
    record.detail = how->detail;
    record.folded = !how->all_ranks;
    record.timing = option_flag(call, "timing");
    step_assume(&record);
    status = step_report_write(&record, call);
    if (profiled)
        step_profile_free(&profile);
    return status;
}

static enum status export(struct invocation *call, const struct job_setup *setup, const struct step_result *result) {
    const struct step_record record = step_record_of(setup, result); enum status fit = step_check_fit(&record, NULL, call);
    enum status status = launch_export_write(call, &setup->layout, &setup->setting, result->step_time_s);
    return status == STATUS_OK ? fit : status;
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
        status = export(call, setup, &result);
    else
        status = report(call, setup, how, &result, &program);
    if (status == STATUS_OK || status == STATUS_CHECK) {
        enum status written = files_write(call, files, &timeline, &program);
        status = written == STATUS_OK ? status : written;
    }
    timeline_free(&timeline);
    breakdown_free(how->stages);
    program_free(&program);
    return status;
}

/* Options that need another one. */
static enum status check_modes(struct invocation *call, bool flows)
{
    if (option_flag(call, "explain") && call->format == FORMAT_CSV)
        diag_note(&call->diags, PLACE_NONE, "--explain has no effect with --format csv");
    if (option_given(call, "profile") && call->format == FORMAT_CSV)
        diag_note(&call->diags, PLACE_NONE, "--profile has no effect with --format csv");
    if (option_given(call, "gpu-price") && call->format == FORMAT_CSV)
        diag_note(&call->diags, PLACE_NONE, "--gpu-price has no effect with --format csv");
    for (int i = 0; i < 2 && !option_given(call, "profile"); i++) {
        static const char *const names[] = {"profile-steps", "profile-limit"};
        if (option_given(call, names[i]))
            diag_note(&call->diags, PLACE_NONE, "--%s has no effect without --profile", names[i]);
    }
    if (flows)
        return STATUS_OK;
    fabric_options_note_idle(call, "network", "flow or packet");
    if (!option_given(call, "link-map"))
        return STATUS_OK;
    diag_error(&call->diags, PLACE_NONE, "--link-map needs --network flow or packet");
    return STATUS_USAGE;
}

/* What only a budget of tokens has. */
static enum status take_price(struct invocation *call, struct job_setup *setup)
{
    if (!option_given(call, "gpu-price") || setup->experiment.job.tokens > 0)
        return gpu_price_option(call, setup->experiment.cluster.gpu.name, &setup->gpu_price);
    diag_error(&call->diags, PLACE_NONE, "--gpu-price needs the training budget; add --tokens, such as --tokens 300B");
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
    {"msim step --model gpt-175b-megascale --cluster megascale-a100 --gpus 12288 --global-batch 6144 --layout "
     "tp=8,pp=8,vpp=6",
     "simulate a step of 175B on 12,288 GPUs"},
    {"msim step experiment.yaml --explain -v", "show the cost of every kernel, and every stage"},
    {"msim step experiment.yaml --layout tp=8,pp=8,vpp=6,mb=1 --trace step.json", "write a trace for ui.perfetto.dev"},
    {"msim step dense.yaml sparse.yaml --gpus 512", "compare two experiments"},
    {"msim step experiment.yaml --replicas 100 --jitter 0.5%", "show how GPUs of unequal speed change the step time"},
    {"msim step experiment.yaml --profile rank0.pt.trace.json.gz", "compare a real step with the prediction"},
    {"msim step experiment.yaml --export megatron -o launch.sh", "write Megatron-LM's launch script for this layout"},
    {"msim step experiment.yaml --export nemo2 -o recipe.py", "write a program that changes a NeMo 2 recipe to this layout"},
    {0},
};

static const struct command_note notes[] = {
    {"Where the time goes",
     "msim builds the program of the step: for each rank, an ordered list of computations, messages and "
     "collectives on its streams. It executes this program in virtual time. Each nanosecond of a rank belongs "
     "to the operation on its compute stream or, while that stream waits, to the exchange it waits for (while "
     "data moves) or to the pipeline bubble (while another stage has not started). The classes add up to the "
     "step time."},
    {"Folded ranks", "On healthy nodes all ranks of a stage behave alike, and msim simulates one of them. With --network flow "
                     "it folds ranks only if their connections provably meet the same traffic: many with routing by "
                     "destination, none with hashing. --ranks all simulates every rank; the result is the same."},
    {"Packets", "--network packet simulates every rank, and cuts all traffic that leaves an NVLink domain into packets. "
                "Packets wait in queues, are marked and paused, and senders react. msim first simulates the step with fair "
                "flows and counts the packets. The limit is about 5 billion packets times links, six to ten minutes of one "
                "CPU. A larger --mtu makes fewer packets."},
    {"Repeated steps",
     "With --replicas the step runs N times, with GPU speeds drawn for each (replica r uses seed + r): "
     "arithmetic takes 1 + jitter * z times its mean, with z normal. Ranks that exchange inside a layer run at "
     "the pace of the slowest. Stages wait for messages, replicas for gradients. With job.documents every "
     "sequence also draws its documents. A single step uses the expected pace of the slowest GPU and average "
     "documents. Without --jitter, GPUs differ by the clock_spread of their entry (up to 20 %), which is fitted "
     "to whole jobs; two traced jobs showed 0.3 to 0.5 %. Days and GPU-hours of --tokens follow from the mean "
     "step."},
    {"Memory",
     "A layout that does not fit in memory is simulated, too: the report begins with a warning, and the exit code is 5."},
    {"Energy", "The energy of --tokens is an upper bound: GPUs at board power all the time, or nodes at their node_power, "
               "times pue."},
    {"Two experiments",
     "msim step A.yaml B.yaml shows time by class, memory by use and MFU of both, and lists their differences. "
     "Options apply to both. For each class of time it shows by how many percent the GPU-seconds per token "
     "change, relative to the total of the first. This explains why one is faster, even with different GPUs or "
     "batches."},
    {"Profiles", "--profile reads a trace of one rank: torch.profiler's export_chrome_trace, JAX's *.trace.json.gz, 'nsys "
                 "stats -r cuda_gpu_trace --format csv', or rocprofv3 --kernel-trace. Kernels are classified by name, "
                 "exchanges by group, and each instant of the step counts for one class. The table shows measured and "
                 "predicted time of that rank's stage."},
    {"Layout: recompute",
     "none, full (whole layers; full:4 the first four of each virtual stage, full:every2 every second, "
     "full:groups4 all, four at a time), selective (the core of attention, or PyTorch's policy in stacks that "
     "shard by module), or the modules to repeat in the backward pass, as in recompute=layernorm+moe_act: "
     "core_attn, layernorm, mla_up_proj, mlp_act, moe_act, mlp, shared_experts, moe. Tables use short words: "
     "sel, attn, norm, mla, act (mlp_act), shared."},
    {"Layout: cp_comm",
     "How cp ranks exchange: ring (keys and values circulate during attention; p2p), all_gather (of keys and "
     "values, before attention; Llama 3), a2a (heads for tokens around attention; Ulysses; cp * tp must divide "
     "the heads), or both: a2a:8+ring exchanges heads among 8 neighbours, and keys and values among the rest."},
    {"Layout: shard", "shard=N: ZeRO shards over N neighbours of the dp * cp replicas instead of all (hybrid sharding: HSDP, "
                      "MiCS, several instances of the distributed optimizer). Ranks with the same shard reduce its gradients "
                      "once per step."},
    {"Layout: offload",
     "none, or the data in host memory, joined by '+': optimizer (states and master weights; the host's cores "
     "update them), activations (kept for the backward pass; copied during the passes), parameters (the shards "
     "of ZeRO-3, fetched for each gather; requires optimizer). An amount after a colon leaves the rest on the "
     "GPU: optimizer:50% is half of the states of every layer, activations:25% a quarter of the layers of each "
     "stage, activations:16 sixteen layers. The cluster sets the memory and its bandwidth (host_memory, "
     "host_memory_rate), the GPU the link (host_rate or pcie_rate)."},
    {0},
};

static const struct result_table keys[] = {{"", step_rows},
                                           {"", step_size_rows},
                                           {"", step_detail_rows},
                                           {"", step_flow_rows},
                                           {"", step_end_rows},
                                           {"documents", documents_rows},
                                           {"likely", likely_rows},
                                           {"energy_at_most", energy_rows},
                                           {"memory_parts_gib", memory_part_rows},
                                           {"out_of_memory", out_of_memory_rows},
                                           {"experts", experts_rows},
                                           {"stages[]", stage_rows},
                                           {"layers.*", fabric_layer_rows},
                                           {"contended_links[]", hot_link_rows},
                                           {"packets", step_packet_rows},
                                           {"explain.works[]", explain_work_rows},
                                           {"explain.exchanges[]", exchange_rows},
                                           {"profile", profile_rows},
                                           {"profile.kernels[]", profile_kernel_rows},
                                           {"profile.idle[]", profile_idle_rows},
                                           {"", step_many_rows},
                                           {"", step_spread_rows},
                                           {"outcomes[]", step_outcome_rows},
                                           {"a, b, difference", pair_rows},
                                           {"a, b, difference", pair_memory_rows},
                                           {"a, b", pair_side_rows},
                                           {0}};

const struct command command_step = {
    .name = "step",
    .summary = "simulate one training step of one layout: time, MFU and memory",
    .description = "Simulates one training step of a layout, and reports its time, its MFU, where the time goes, and the "
                   "memory of each stage.\n"
                   "\n"
                   "Without a layout, or with `layout: auto`, msim uses the first plan of msim plan. Two experiments are "
                   "compared side by side. With --replicas the step is repeated with GPUs of random speed. With --profile the "
                   "prediction is compared with a trace of a real job.",
    .operands = "[EXPERIMENT.yaml [OTHER.yaml]]",
    .max_operands = 2,
    .experiment = true,
    .options = options,
    .notes = notes,
    .examples = examples,
    .keys = keys,
    .run = run,
};
