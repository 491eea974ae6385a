/*
 * msim run - weeks of training with failures.
 */
#include <stdlib.h>

#include "cli/options/command.h"
#include "cli/options/fabric_options.h"
#include "cli/options/next_command.h"
#include "cli/options/shared_options.h"
#include "cli/options/sweep_values.h"
#include "cli/output/result.h"
#include "cli/run/run_many.h"
#include "cli/run/run_setup.h"
#include "cli/run/run_sweep.h"
#include "model/base/memory.h"

static struct run_closed_form closed_form_of(const struct run_session *s)
{
    struct run_account account = {.failures = (double)s->result.failures, .interruptions = (double)s->result.interruptions};
    struct run_options options = s->options;
    options.horizon = s->result.horizon;
    for (int i = 0; i < N_TIME_USES; i++)
        account.use_s[i] = nanos_to_seconds(s->result.use[i]);
    return run_closed_form_of(&options, &account);
}

/* A trace says nothing of the days after it. */
static void note_short_trace(struct invocation *call, const struct run_session *s)
{
    if (s->options.goal > 0 && !s->result.reached && !s->has_model && s->experiment.faults.horizon_s <= 0)
        diag_note(&call->diags, PLACE_NONE,
                  "the trace ends before the tokens are trained; --fault-model draws faults for any length");
}

/* Nobody can have failed often enough at first: a short run is better than what comes behind it. */
static void note_young_list(struct invocation *call, const struct run_session *s)
{
    char window[32], listed[32];
    const struct robust_policy *policy = &s->policy;
    if (!s->has_policy || s->result.listed == 0 || policy->blocklist_window_s <= 0 ||
        nanos_to_seconds(s->result.horizon) >= 3 * (policy->blocklist_window_s + policy->blocklist_s))
        return;
    diag_note(&call->diags, PLACE_NONE,
              "policy %s blocks nodes that fail %d times within %s, for %s. The list is empty at first, so a longer run has more "
              "unavailable nodes on average and needs more spares",
              policy->name, policy->blocklist_failures,
              quantity_format(policy->blocklist_window_s, DIM_TIME, window, sizeof window),
              quantity_format(policy->blocklist_s, DIM_TIME, listed, sizeof listed));
}

/* What is waited for is not broken. */
static void note_long_list(struct invocation *call, const struct run_session *s)
{
    const struct run_result *result = &s->result;
    double waiting = (double)result->use[USE_WAITING] / (double)result->horizon, listed = result->away[AWAY_LISTED];
    if (!s->has_policy || waiting < 0.01 || listed <= result->away[AWAY_OUTAGE])
        return;
    diag_note(&call->diags, PLACE_NONE,
              "the job waits for nodes %.1f %% of the time; on average %.2f nodes are blocklisted and %.2f in repair; more than "
              "--spares %d, or a shorter blocklist in policy %s, would shorten the wait",
              100 * waiting, listed, result->away[AWAY_OUTAGE], s->options.recovery.spares, s->policy.name);
}

/* Many runs with random faults: a single one can be lucky. */
static void write_next(const struct invocation *call, const struct run_session *s)
{
    static const char *const without[] = {"incidents", NULL}, *const of_traces[] = {"faults", "incidents", NULL};
    if (s->has_model)
        next_command_write(call, "run", without, "--replicas 64");
    else
        next_command_write(call, "run", of_traces, "--fault-model llama3 --replicas 64");
}

static enum status write_report(struct invocation *call, struct run_session *s)
{
    s->report.experiment = &s->experiment;
    s->report.trace = &s->trace;
    s->report.options = &s->options;
    s->report.result = &s->result;
    s->report.policy = s->has_policy ? &s->policy : NULL;
    s->report.startup = s->has_policy ? &s->startup : NULL;
    s->report.cost = s->has_cost && s->experiment.faults.checkpoint[0] ? &s->cost : NULL;
    s->report.memoryless = closed_form_of(s);
    FILE *incidents;
    enum status status = output_option(call, "incidents", &incidents);
    if (status == STATUS_OK && incidents)
        run_report_incidents_csv(&s->report, incidents);
    if (status == STATUS_OK)
        status = run_report_write(call, &s->report);
    if (status == STATUS_OK && call->format == FORMAT_TEXT)
        write_next(call, s);
    return status;
}

/* Options that belong to one run, or to many. */
static enum status check_modes(struct invocation *call)
{
    bool optimise = option_given(call, "optimise"), sweep = option_given(call, "sweep");
    bool many = optimise || sweep || option_given(call, "replicas");
    if (optimise && sweep)
        diag_error(&call->diags, PLACE_NONE, "--optimise and --sweep exclude each other; remove one");
    if (many && option_given(call, "incidents"))
        diag_error(&call->diags, PLACE_NONE,
                   "--incidents lists the faults of one run; remove --replicas, --optimise and --sweep");
    if (!many && option_given(call, "resume"))
        diag_error(&call->diags, PLACE_NONE, "--resume keeps finished replicas; add --replicas, --optimise or --sweep");
    return diags_status(&call->diags) == STATUS_OK ? STATUS_OK : STATUS_USAGE;
}

static enum status simulate(struct invocation *call, struct run_session *s)
{
    if (option_text(call, "optimise"))
        return run_optimise(call, s);
    if (option_given(call, "sweep"))
        return run_sweep(call, s);
    run_warn_interval(call, s, s->options.checkpoint.interval);
    run_note_hot_spares(call, s, s->options.recovery.spares);
    if (option_given(call, "replicas"))
        return run_replicas(call, s);
    enum status status = run_simulate(&s->options, &s->trace, &s->result, &call->diags);
    if (status != STATUS_OK)
        return status;
    note_short_trace(call, s);
    note_young_list(call, s);
    note_long_list(call, s);
    return write_report(call, s);
}

static enum status run(struct invocation *call)
{
    struct run_session *s = memory_new(1, sizeof *s);
    enum status status = check_modes(call);
    if (status == STATUS_OK)
        status = run_session_load(call, s);
    if (status == STATUS_OK)
        status = run_session_prepare(call, s);
    if (status == STATUS_OK)
        status = simulate(call, s);
    run_session_free(s);
    free(s);
    return status;
}

/* --- the command --- */

/* What a name in the experiment has room for. */
#define BYTES_OF(MEMBER) (sizeof((struct faults_request *)0)->MEMBER - 1)
#define TIME_OPTION      TIME_FIELDS, .high = TIME_LONGEST_S

static const char *const loads[] = {"all", "broadcast", NULL};
static const char *const stores[] = {"tcp", "redis", "ordered", NULL};
static const char *const failovers[] = {[FAILOVER_JOB] = "job", [FAILOVER_REPLICA] = "replica", NULL};
static const char *const degraded[] = {[DEGRADED_AUTO] = "auto", [DEGRADED_FACTOR] = "factor", [DEGRADED_STEP] = "step", NULL};
static const char *const optimised[] = {
    "all",   "checkpoint", "checkpoint-interval", "spares", "hot-spares", "heartbeat-timeout", "traffic-window", "attempts",
    "tests", NULL};

static const struct option_row options[] = {
    {.name = "faults",
     TEXT_FIELDS("NAME|FILE"),
     .fallback = "llama3-54d",
     .help = "replay this fault trace: a shipped one (llama3-54d, megascale-30d) or a CSV file, also .gz",
     .group = "Faults",
     .key = "faults.trace",
     .verbatim = true,
     .high = BYTES_OF(trace)},
    {.name = "horizon",
     TIME_OPTION,
     .low = 1,
     .fallback = "to the trace's last day, 30d with a model; with --tokens until the budget is trained, at most ten times the "
                 "failure-free time",
     .help = "simulate this long",
     .group = "Faults",
     .key = "faults.horizon"},
    {.name = "checkpoint-interval",
     TIME_OPTION,
     .low = 1e-3,
     .fallback = "30min",
     .help = "save a checkpoint after this much useful work",
     .group = "Checkpoints",
     .key = "faults.checkpoint_interval"},
    {.name = "checkpoint-steps",
     COUNT_FIELDS,
     .low = 1,
     .high = 1e12,
     .help = "save a checkpoint after this many steps instead",
     .group = "Checkpoints",
     .key = "faults.checkpoint_steps"},
    {.name = "checkpoint-block",
     TIME_OPTION,
     .fallback = "0s; with --checkpoint, from its kind",
     .help = "let a checkpoint stop training for this long",
     .group = "Checkpoints",
     .key = "faults.checkpoint_block"},
    {.name = "detect",
     TIME_OPTION,
     .fallback = "0s; with --policy, from the policy",
     .help = "notice a failure after this time",
     .group = "Recovery",
     .key = "faults.detect"},
    {.name = "restart",
     TIME_OPTION,
     .fallback = "15min; with --policy, the simulated start-up",
     .help = "restart this long after enough healthy nodes are available",
     .group = "Recovery",
     .key = "faults.restart"},
    {.name = "repair",
     TIME_OPTION,
     .low = 1,
     .fallback = "as in the trace or model",
     .help = "scale repair times so that a failed node is away this long on average",
     .group = "Faults",
     .key = "faults.repair"},
    {.name = "spares",
     COUNT_FIELDS,
     .high = 1e6,
     .fallback = "4",
     .help = "keep N spare nodes",
     .group = "Faults",
     .key = "faults.spares"},
    {.name = "step-time",
     TIME_OPTION,
     .low = 1e-6,
     .help = "use this step time instead of simulating a step",
     .group = "Results"},
    {.name = "series",
     TIME_OPTION,
     .low = 60,
     .fallback = "1d; 1h for horizons up to 4d",
     .help = "set the width of the time series",
     .group = "Results"},
    FILE_ROW("incidents", "Results", "write every fault as CSV"),
    {.name = "fault-model",
     TEXT_FIELDS("NAME|FILE"),
     .help =
         "draw faults from a model instead of replaying a trace: delta, lanl, llama3, megascale, rsc-1, rsc-2, titan or a file",
     .group = "Faults",
     .key = "faults.model",
     .verbatim = true,
     .high = BYTES_OF(model)},
    {.name = "policy",
     TEXT_FIELDS("NAME|FILE"),
     .help =
         "choose how faults are detected, diagnosed and repaired: replay (fixed times), megascale, byterobust, manual or a file",
     .group = "Recovery",
     .key = "faults.policy",
     .verbatim = true,
     .high = BYTES_OF(policy)},
    {.name = "failover",
     CHOICE_FIELDS("WHAT", failovers),
     .initial = "job",
     .help = "choose what a node failure stops: the whole job, which returns to its checkpoint, or only its data-parallel "
             "replica (torchft, FT-HSDP; needs zero=0 or shard=N)",
     .group = "Recovery"},
    {.name = "notice",
     TIME_OPTION,
     .fallback = "early enough to save",
     .help =
         "announce planned outages (maintenance, preemptions) this long before; if saving takes longer, they count as failures",
     .group = "Faults"},
    {.name = "regroup",
     TIME_OPTION,
     .fallback = "from --store",
     .help = "with --failover replica: stop the other replicas this long to rebuild their groups",
     .group = "Recovery"},
    {.name = "checkpoint",
     TEXT_FIELDS("KIND"),
     .help = "choose the kind of checkpoint: blocking, two-stage, memory (of a neighbour) or step (every step, to memory); times "
             "follow from sizes and rates",
     .group = "Checkpoints",
     .key = "faults.checkpoint",
     .verbatim = true,
     .high = BYTES_OF(checkpoint)},
    {.name = "storage-rate",
     QUANTITY_FIELDS("RATE", DIM_RATE),
     .low = 1,
     .fallback = "the cluster's",
     .help = "set the bandwidth of the checkpoint store",
     .group = "Checkpoints"},
    NETWORK_ROW("checkpoint-network", "Checkpoints",
                "simulate checkpoint traffic (to neighbours, and from one replica to the others) by rates, or flow by flow on "
                "the fabric"),
    {.name = "load",
     CHOICE_FIELDS("HOW", loads),
     .initial = "broadcast",
     .help = "let every rank read the checkpoint, or one of each group, which broadcasts it",
     .group = "Checkpoints"},
    {.name = "store",
     CHOICE_FIELDS("NAME", stores),
     .initial = "ordered",
     .help = "choose how communicators are created; ordered: groups without global barriers",
     .group = "Recovery"},
    {.name = "scheduling", TIME_OPTION, .fallback = "60s", .help = "allocate new nodes in this time", .group = "Recovery"},
    {.name = "image",
     QUANTITY_FIELDS("SIZE", DIM_BYTES),
     .fallback = "0B, already there",
     .help = "fetch a container image of this size on each new node",
     .group = "Recovery"},
    {.name = "registry-rate",
     QUANTITY_FIELDS("RATE", DIM_RATE),
     .low = 1,
     .initial = "10Gbps",
     .help = "set the bandwidth of the image registry",
     .group = "Recovery"},
    {.name = "warm-up",
     TIME_OPTION,
     .fallback = "60s",
     .help = "spend this time on compilation and the first batch after a start",
     .group = "Recovery"},
    {.name = "degraded",
     CHOICE_FIELDS("HOW", degraded),
     .initial = "auto",
     .help = "compute the speed with slow nodes or fewer replicas from their shares (factor) or by simulating a step (step); "
             "auto: step, unless --step-time is given",
     .group = "Recovery"},
    {.name = "replicas",
     COUNT_FIELDS,
     .low = 2,
     .high = 1e7,
     .help = "repeat the run N times with independent random faults; report means with 95 % confidence intervals and percentiles "
             "(csv: a row for each)",
     .group = "Many runs"},
    THREADS_ROW("Many runs"),
    {.name = "resume",
     TEXT_FIELDS("FILE"),
     .help = "keep finished replicas in this file, and continue from it",
     .group = "Many runs",
     .aside = true},
    {.name = "optimise",
     .argument = "WHAT,...",
     .type = OPTION_LIST,
     .choices = optimised,
     .help = "find the settings that make a trained token cheapest, and the change that helps most; every setting is tested on "
             "the same faults. hot-spares to tests belong to the policy",
     .group = "Many runs"},
    {.name = "sweep",
     .argument = "KEY=VALUES",
     .type = OPTION_REPEAT,
     .help = "run for each value of gpus (batch and spares grow with it), mttf, repair, restart, detect, checkpoint-interval, "
             "checkpoint-block or spares: restart=5min,15min,1h. " SWEEP_FORMS ". Repeat to run every combination",
     .group = "Many runs"},
    PRICE_ROW("Many runs", "set the price per GPU-hour, such as 2.5, or for each GPU: h200=3,b200=5.5; adds the cost per token "
                           "and of the budget, spares included"),
    FABRIC_OPTION_ROWS,
    {0},
};

static const struct example examples[] = {
    {"msim run --model gpt-175b-megascale --cluster megascale-a100 --global-batch 6144 --faults megascale-30d",
     "replay a month of faults, generated at Llama 3's failure rate, on 12,288 GPUs"},
    {"msim run experiment.yaml --fault-model llama3 --policy megascale --tokens 15T --replicas 1000 --gpu-price "
     "2.5",
     "predict when training ends, and its cost"},
    {"msim run --model gpt-175b-megascale --cluster megascale-a100 --global-batch 6144 --fault-model megascale "
     "--policy megascale --checkpoint two-stage --replicas 1000",
     "simulate a month with MegaScale's robust training, 1000 times"},
    {"msim run experiment.yaml --faults lanl.csv.gz --horizon 974d --checkpoint-interval 30min "
     "--checkpoint-block 30s --restart 15min --spares 2 --format json -o run.json",
     "replay your own trace, and write JSON"},
    {"msim run experiment.yaml --layout tp=8,pp=16,zero=1,shard=16 --fault-model llama3 --failover replica "
     "--detect 30s",
     "let groups of 16 replicas fail independently, with hybrid sharding"},
    {"msim run experiment.yaml --fault-model llama3 --sweep restart=1min:30min:8 --replicas 50 --format json -o "
     "sweep.json",
     "compute goodput for eight restart times; msim plot draws it"},
    {0},
};

static const struct command_note notes[] = {
    {"Results", "ETTR is the share of time spent on training that counts. Goodput is the useful work, relative to a "
                "cluster without faults and checkpoints. The two differ only if nodes or links are slow. Every second of "
                "the horizon counts for exactly one use. MTBF is the mean time between interruptions of the job. Young's "
                "and Daly's intervals follow from it and from the time that a checkpoint blocks training. Memoryless and "
                "first-order ETTR assume exponential failures and unlimited spares. A checkpoint that is written to "
                "storage in the background is safe only later. A shorter interval then waits for the previous checkpoint, "
                "and does not help while it is below the MTBF."},
    {"Training budget",
     "With --tokens the run ends when the tokens are trained and the last checkpoint is written, if that is "
     "before the horizon. The report shows the end, the GPU-hours and, with --gpu-price, the cost. With "
     "--replicas it adds their spread, which comes from failures only, and the effect of the 80 % interval of "
     "the predicted step. Percentile q is at place q (n - 1), counted from 0, of all replicas in order, and is "
     "interpolated between neighbours. A replica that does not finish counts as later than all others."},
    {"Recovery", "--policy simulates detection, diagnosis, eviction and restart, as in MegaScale's robust training. With "
                 "--failover replica a failure stops only the replicas of its node. The others drop the current step, "
                 "regroup and continue with fewer replicas until the node returns with the state of a peer; --restart is "
                 "then the time until it returns."},
    {"Many runs", "--replicas, --optimise and --sweep run many simulations on threads and MPI ranks (mpirun -n N msim run "
                  "...). The result does not depend on their number. --optimise recommends a change only if its gain, with "
                  "all other changes made, is significant over the replicas. It names the settings that it leaves unchanged "
                  "for this reason."},
    {"Energy", "Power and energy are upper bounds: the job's GPUs and spares at board power, or nodes at their "
               "node_power, times pue, at all times, also while they wait or are down."},
    {0},
};

static const struct result_table keys[] = {{"policy", policy_rows},
                                           {"", run_rows},
                                           {"", run_step_rows},
                                           {"memoryless", memoryless_rows},
                                           {"series[]", series_rows},
                                           {"series[]", series_mfu_rows},
                                           {"incidents[]", incident_rows},
                                           {"", replicas_rows},
                                           {"estimates", replica_rows},
                                           {"estimates.*", estimate_rows},
                                           {"outcomes[]", outcome_rows},
                                           {"sweep.axes[]", run_axis_rows},
                                           {"sweep.points[]", run_point_rows},
                                           {"optimum", optimum_rows},
                                           {"optimum.levers[]", policy_lever_rows},
                                           {0}};

const struct command command_run = {
    .name = "run",
    .summary = "simulate weeks of training with failures: goodput, lost work, cost",
    .description = "Simulates a training job over weeks, with the faults of a trace (--faults) or of a model (--fault-model), "
                   "and reports goodput, lost work and MFU over time.\n"
                   "\n"
                   "Training alternates between work and checkpoints. A node failure loses the work since the last "
                   "checkpoint. Training continues after the failure is noticed, enough healthy nodes are available, and the "
                   "job has restarted. Slow nodes and slow links slow the whole job. Planned outages save a checkpoint first.",
    .experiment = true,
    .options = options,
    .notes = notes,
    .examples = examples,
    .keys = keys,
    .run = run,
};
