/*
 * msim run - weeks of training with failures.
 */
#include <stdlib.h>

#include "cli/options/command.h"
#include "cli/options/fabric_options.h"
#include "cli/options/shared_options.h"
#include "cli/options/sweep_values.h"
#include "cli/output/result.h"
#include "cli/run/run_many.h"
#include "cli/run/run_setup.h"
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
        diag_note(&call->diags, (struct place){0},
                  "the trace ends before the tokens are trained; --fault-model draws faults for as long as that takes");
}

/* Nobody can have failed often enough at first: a short run is better than what comes behind it. */
static void note_young_list(struct invocation *call, const struct run_session *s)
{
    char window[32], listed[32];
    const struct robust_policy *policy = &s->policy;
    if (!s->has_policy || s->result.listed == 0 || policy->blocklist_window_s <= 0 ||
        nanos_to_seconds(s->result.horizon) >= 3 * (policy->blocklist_window_s + policy->blocklist_s))
        return;
    diag_note(
        &call->diags, (struct place){0},
        "policy %s lists nodes that fail %d times within %s, for %s: its list is empty at first, so that a longer run has more "
        "nodes away in the mean and needs more spares",
        policy->name, policy->blocklist_failures, quantity_format(policy->blocklist_window_s, DIM_TIME, window, sizeof window),
        quantity_format(policy->blocklist_s, DIM_TIME, listed, sizeof listed));
}

/* What is waited for is not broken. */
static void note_long_list(struct invocation *call, const struct run_session *s)
{
    const struct run_result *result = &s->result;
    double waiting = (double)result->use[USE_WAITING] / (double)result->horizon, listed = result->away[AWAY_LISTED];
    if (!s->has_policy || waiting < 0.01 || listed <= result->away[AWAY_OUTAGE])
        return;
    diag_note(
        &call->diags, (struct place){0},
        "%.1f %% of the time is spent waiting for nodes, and of those that are away %.2f in the mean are blocklisted, %.2f in "
        "repair: more than --spares %d, or a shorter list in policy %s, would shorten that",
        100 * waiting, listed, result->away[AWAY_OUTAGE], s->options.recovery.spares, s->policy.name);
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
    return status == STATUS_OK ? run_report_write(call, &s->report) : status;
}

/* Options that belong to one run, or to many. */
static enum status check_modes(struct invocation *call)
{
    bool optimise = option_given(call, "optimise"), sweep = option_given(call, "sweep");
    bool many = optimise || sweep || option_given(call, "replicas");
    const struct place nowhere = {0};
    if (optimise && sweep)
        diag_error(&call->diags, nowhere, "--optimise and --sweep: one at a time");
    if (many && option_given(call, "incidents"))
        diag_error(&call->diags, nowhere,
                   "--incidents lists the faults of one run; leave out --replicas, --optimise and --sweep");
    if (!many && option_given(call, "resume"))
        diag_error(&call->diags, nowhere, "--resume keeps finished replicas; give --replicas, --optimise or --sweep too");
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
     .help = "fault trace: a shipped one (llama3-54d, megascale-30d) or a CSV file, also .gz; llama3-54d when left out",
     .group = "Run",
     .key = "faults.trace",
     .verbatim = true,
     .high = BYTES_OF(trace)},
    {.name = "horizon",
     TIME_OPTION,
     .low = 1,
     .help =
         "how long to look; when left out to the trace's last day, with a model 30d, or with --tokens until they are trained, "
         "ten times what that takes without failures at most",
     .group = "Run",
     .key = "faults.horizon"},
    {.name = "checkpoint-interval",
     TIME_OPTION,
     .low = 1e-3,
     .help = "useful work between checkpoints; 30min when left out",
     .group = "Run",
     .key = "faults.checkpoint_interval"},
    {.name = "checkpoint-steps",
     COUNT_FIELDS,
     .low = 1,
     .high = 1e12,
     .help = "the same in steps",
     .group = "Run",
     .key = "faults.checkpoint_steps"},
    {.name = "checkpoint-block",
     TIME_OPTION,
     .help = "how long a checkpoint stops training; when left out 0s, with --checkpoint what its kind takes",
     .group = "Run",
     .key = "faults.checkpoint_block"},
    {.name = "detect",
     TIME_OPTION,
     .help = "from a failure until it is noticed; 0s when left out; a policy has its own",
     .group = "Run",
     .key = "faults.detect"},
    {.name = "restart",
     TIME_OPTION,
     .help = "from enough healthy nodes until training goes on; when left out 15min, with a policy what starting up takes",
     .group = "Run",
     .key = "faults.restart"},
    {.name = "repair",
     TIME_OPTION,
     .low = 1,
     .help = "mean time that a failed node is away: all unannounced outages of some length of the trace, or lognormal repairs of "
             "the model, are "
             "scaled by one factor to it; when left out as they are there",
     .group = "Run",
     .key = "faults.repair"},
    {.name = "spares",
     COUNT_FIELDS,
     .high = 1e6,
     .help = "nodes that stand by; 4 when left out",
     .group = "Run",
     .key = "faults.spares"},
    {.name = "step-time",
     TIME_OPTION,
     .low = 1e-6,
     .help = "time of one step, instead of simulating one for the layout",
     .group = "Run"},
    {.name = "series",
     TIME_OPTION,
     .low = 60,
     .help = "width of the time series; a day, or an hour for horizons up to 4 days",
     .group = "Run"},
    FILE_ROW("incidents", "Run", "also write every fault as CSV"),
    {.name = "fault-model",
     TEXT_FIELDS("NAME|FILE"),
     .help =
         "draw faults from a model instead of replaying a trace: delta, lanl, llama3, megascale, rsc-1, rsc-2, titan or a file",
     .group = "Recovery",
     .key = "faults.model",
     .verbatim = true,
     .high = BYTES_OF(model)},
    {.name = "policy",
     TEXT_FIELDS("NAME|FILE"),
     .help = "how faults are noticed, found and repaired: replay (fixed times), megascale, byterobust, manual or a file",
     .group = "Recovery",
     .key = "faults.policy",
     .verbatim = true,
     .high = BYTES_OF(policy)},
    {.name = "failover",
     CHOICE_FIELDS("WHAT", failovers),
     .initial = "job",
     .help =
         "what a failed node takes with it: the job, back to its checkpoint, or its data-parallel replica, while the others go "
         "on (torchft, FT-HSDP; needs zero=0 or shard=N)",
     .group = "Recovery"},
    {.name = "notice",
     TIME_OPTION,
     .help = "at which planned outages are announced (maintenance and preemptions of a trace or model); one shorter than saving "
             "takes makes them failures; early enough when left out",
     .group = "Recovery"},
    {.name = "regroup",
     TIME_OPTION,
     .help = "with --failover replica: how long the others stop for it, to make their groups anew; from the store when left out",
     .group = "Recovery"},
    {.name = "checkpoint",
     TEXT_FIELDS("KIND"),
     .help = "blocking, two-stage, memory (of a neighbour) or step (every one, to memory): with times from sizes and rates",
     .group = "Recovery",
     .key = "faults.checkpoint",
     .verbatim = true,
     .high = BYTES_OF(checkpoint)},
    {.name = "storage-rate",
     QUANTITY_FIELDS("RATE", DIM_RATE),
     .low = 1,
     .help = "of the checkpoint store; the cluster's when left out",
     .group = "Recovery"},
    NETWORK_ROW("checkpoint-network", "Recovery",
                "what takes checkpoints to neighbours and a loaded one to the replicas: rates, or every flow on the fabric"),
    {.name = "load",
     CHOICE_FIELDS("HOW", loads),
     .initial = "broadcast",
     .help = "who reads a checkpoint: everybody, or one of each group, who sends it to the others",
     .group = "Recovery"},
    {.name = "store",
     CHOICE_FIELDS("NAME", stores),
     .initial = "ordered",
     .help = "how communicators are made; ordered: groups without global barriers",
     .group = "Recovery"},
    {.name = "scheduling",
     TIME_OPTION,
     .help = "until nodes are allocated, at a restart that needs new ones; 60s when left out",
     .group = "Recovery"},
    {.name = "image",
     QUANTITY_FIELDS("SIZE", DIM_BYTES),
     .help = "of the container that a new node fetches; 0B when left out: it is there",
     .group = "Recovery"},
    {.name = "registry-rate",
     QUANTITY_FIELDS("RATE", DIM_RATE),
     .low = 1,
     .initial = "10Gbps",
     .help = "at which the registry sends it",
     .group = "Recovery"},
    {.name = "warm-up",
     TIME_OPTION,
     .help = "compilation, the data loader's first batch; 60s when left out",
     .group = "Recovery"},
    {.name = "degraded",
     CHOICE_FIELDS("HOW", degraded),
     .initial = "auto",
     .help = "speed with slow nodes or fewer replicas: by their shares, or the step simulation; auto: step where it is "
             "simulated, that is without --step-time",
     .group = "Recovery"},
    {.name = "replicas",
     COUNT_FIELDS,
     .low = 2,
     .high = 1e7,
     .help = "run so often, each with its own luck; means with 95 % confidence intervals, 5th, 50th and 95th percentiles "
             "(csv: a row for each)",
     .group = "Many runs"},
    THREADS_ROW("Many runs"),
    {.name = "resume",
     TEXT_FIELDS("FILE"),
     .help = "keep finished replicas in this file, and go on from it",
     .group = "Many runs",
     .aside = true},
    {.name = "optimise",
     .argument = "WHAT,...",
     .type = OPTION_LIST,
     .choices = optimised,
     .help =
         "what makes a trained token cheapest, on the same luck, and which change helps most; checkpoint is its kind, hot-spares "
         "to tests are of the policy",
     .group = "Many runs"},
    {.name = "sweep",
     .argument = "KEY=VALUES",
     .type = OPTION_REPEAT,
     .help = "a line for each value of gpus (batch and spares grow with them), mttf, repair, restart, detect, "
             "checkpoint-interval, checkpoint-block or spares: restart=5min,15min,1h or restart=5min:1h:8; " SWEEP_FORMS
             "; repeatable: every combination",
     .group = "Many runs"},
    PRICE_ROW("Many runs", "money per GPU and hour, such as 2.5, or of several GPUs, h200=3,b200=5.5: adds the cost per token "
                           "and of a budget, spares included"),
    FABRIC_OPTION_ROWS,
    {0},
};

static const struct example examples[] = {
    {"msim run --model gpt-175b-megascale --cluster megascale-a100 --global-batch 6144 --faults megascale-30d",
     "a month on 12,288 GPUs at Llama 3's failure rate"},
    {"msim run experiment.yaml --faults lanl.csv.gz --horizon 974d --checkpoint-interval 30min --checkpoint-block 30s --restart "
     "15min --spares 2 --format json -o run.json",
     "a trace of one's own, for programs"},
    {"msim run --model gpt-175b-megascale --cluster megascale-a100 --global-batch 6144 --fault-model megascale --policy "
     "megascale --checkpoint two-stage --replicas 1000",
     "a month with MegaScale's robust training, a thousand times: what is delivered, and how certain that is"},
    {"msim run experiment.yaml --fault-model llama3 --policy megascale --tokens 15T --replicas 1000 --gpu-price 2.5",
     "when training will end, and what it will cost"},
    {"msim run experiment.yaml --layout tp=8,pp=16,zero=1,shard=16 --fault-model llama3 --failover replica --detect 30s",
     "replicas of 16 that fail alone, as in hybrid sharding"},
    {"msim run experiment.yaml --fault-model llama3 --sweep restart=1min:30min:8 --replicas 50 --format json -o sweep.json",
     "goodput against restart time, to be drawn by msim plot"},
    {0},
};

const struct command command_run = {
    .name = "run",
    .summary = "weeks of training with failures: goodput, lost work, MFU over time",
    .description =
        "Replays a fault trace over a training job. Training alternates an interval of work with a checkpoint that may block it. "
        "A node failure undoes the work since the last checkpoint; training goes on once it is noticed, no more nodes are down "
        "than there are spares, and the job has restarted. Stragglers and slow links slow training down to the slowest. Before "
        "an outage of kind planned everything is saved.\n"
        "\n"
        "ETTR is the share of the time spent on training that counts; goodput is the work that counts over that of a cluster "
        "without faults and checkpoints. They differ only where nodes or links are slow. Every second of the horizon is booked "
        "to one use.\n"
        "\n"
        "With --tokens the run is over when so many are trained and their last checkpoint is written, if that is before the "
        "horizon: it says when training ends, in how many GPU-hours and, with --gpu-price, at what cost; with --replicas how "
        "certain that is: their spread is by failures alone, and what the range of the predicted step (msim step's 'likely') "
        "makes of "
        "the end stands beside. Percentiles are of all replicas in order, the share q at place q (n - 1) counted from 0, in "
        "proportion "
        "between two neighbours; replicas that do not end in time count as later than all others.\n"
        "\n"
        "Memoryless and first-order ETTR are what exponential failures and unlimited spares would make of the same checkpoints "
        "and "
        "recoveries. MTBF is the mean time that the job ran between interruptions; Young's and Daly's intervals follow from it "
        "and "
        "from what a checkpoint blocks. One that goes to storage in the background is safe a while later: an interval below that "
        "makes training wait for the one before, and none below it is better than it while it is shorter than the MTBF.\n"
        "\n"
        "Power and energy are upper bounds: the job's GPUs and the spares at board power, or nodes at their node_power, times "
        "pue, "
        "all the time: waiting, idle and down too.\n"
        "\n"
        "--fault-model draws faults from how a published fleet fails; --policy sends each through detection, diagnosis, eviction "
        "and restart as MegaScale's robust training does. With --failover replica a failure only takes the replicas of its node "
        "out: the others drop the step under way, regroup and go on with fewer until it is back with a peer's state; --restart "
        "is then what it takes to come back. --replicas, --optimise and --sweep run many times over threads and MPI ranks "
        "(mpirun -n N msim run ...), with the same bytes out for any number of either. --optimise recommends no change whose "
        "gain, "
        "with all the others made, the replicas do not tell apart from none: such a lever is left as it was, and named.",
    .experiment = true,
    .options = options,
    .examples = examples,
    .run = run,
};
