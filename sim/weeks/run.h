/*
 * run.h - simulates weeks of one training job on a cluster whose nodes fail.
 *
 * Example: replay one fault of a trace. A node of 128 fails after 10 hours and is repaired 5 hours later; there is one spare.
 * Work since the last checkpoint is undone (at most 30 min), and training goes on after 1 + 9 min.
 *
 *     const struct run_options options = {.nodes = 128, .horizon = nanos_from_seconds(86400),
 *                                         .checkpoint = {.interval = 1800 * NANOS_PER_SECOND, .block = 60 * NANOS_PER_SECOND},
 *                                         .recovery = {.detect = 60 * NANOS_PER_SECOND, .restart = 540 * NANOS_PER_SECOND,
 *                                                      .spares = 1}};
 *     status = run_simulate(&options, &trace, &result, &diags);
 *     ... result.ettr, result.use[USE_LOST] ...
 *     run_result_free(&result);
 *
 * The job uses all `nodes` nodes from time 0 to the horizon H. Training alternates `interval` of work with a checkpoint that
 * blocks it for `block` (sim/weeks/checkpoint.h). A node outage of the fault trace stops training. Work since the last safe
 * checkpoint is lost, and training resumes as sim/weeks/recovery.h describes. A straggler or slow link does not stop training:
 * it goes on at the speed of the slowest (sim/weeks/cluster_state.h). Faults at or after H do not happen. Work in progress at H
 * counts.
 *
 * Order at equal times: repairs, then failures in the order of the trace, then ends of outages of length 0. If training is due
 * to resume exactly when a failure happens, it resumes first and is interrupted at once.
 *
 * Results. T is the time of work that counts, at full speed. S is the extra time that this work took on slow hardware. With the
 * other uses of sim/weeks/ledger.h they add up to H exactly, in integer nanoseconds:
 *
 *     ETTR     = (T + S) / H   effective training time ratio: fraction of time spent on training that counts
 *     goodput  =  T / H        work that counts, relative to a cluster without faults and checkpoints
 *     MFU      = goodput * MFU of one step;   tokens = T / step time * tokens per step
 *
 * ETTR and goodput differ only where stragglers or slow links slow the step.
 *
 * Robust policy (options->robust, sim/weeks/robust_policy.h). Each failure goes through the state machine of
 * sim/weeks/recovery_machine.h, instead of a fixed detection and restart time:
 *
 *   - the fault's own random stream decides when it is noticed, whether it is found, who is called, and whether it comes back
 *   - blocklist: a node that fails too often within a window stays away longer, and its count starts again. This happens even if
 *     the job waits for nodes. The list is empty at first; it reaches its steady length after the window plus one listing
 *   - condemned healthy nodes, blocklisted nodes and found stragglers are away like failed nodes, and use up spares. Stragglers
 *     leave at a restart, the slowest first, as long as a spare can replace them: a slow node is better than none
 *   - a failure or planned outage of a node outside the job (down or listed) does not affect the job
 *   - a restart lasts `restart`, or `restart_hot` while hot spares can replace all nodes that are down
 *   - a link below 5 % of its speed for longer than the collective timeout stops training as a hang
 *   - elastic: if nodes are short the job goes on with fewer replicas. When a node returns, a planned restart adds its replica
 *   - drift: the speed falls in steps of one hour since the last restart
 *
 * Planned outages of the trace are announced at their time. Training stops and saves everything (checkpoint time: the block,
 * plus the time until storage has it). Then the node leaves and the job restarts. Nothing is lost, and there is no detection or
 * diagnosis. If the notice is shorter than the save, the outage is a failure that is noticed at once (with failover it only ends
 * the step under way). A planned outage of length 0 is a planned restart, for example with new code.
 *
 * Failover (options->failover, sim/weeks/failover.h): a failure takes some replicas out and the others go on. Without it a
 * failure stops the job.
 *
 * Speed of a degraded cluster: options->degraded, if given, simulates the step (sim/weeks/degraded.h). Without it the slowest
 * node or link sets the speed.
 *
 * Goal. With options->goal = G of work, the run ends before H once G is done and safe. Training stops at G and saves everything
 * (checkpoint time, as above). A failure during this save undoes work as usual, and training goes on. The result covers the time
 * until then; its `horizon` is that time. Work in progress at the horizon does not reach the goal.
 *
 * sim/weeks/run_closed_form.h has the closed form for memoryless failures.
 *
 * Cost: O((faults + bins) log faults), plus one multiplication per bin for any number of checkpoints. 4,424 faults over 974 days
 * need well under a millisecond. Tests compare with an independent event-list program and a published replay (tests/sim/run).
 */
#ifndef MSIM_SIM_WEEKS_RUN_H
#define MSIM_SIM_WEEKS_RUN_H

#include "model/base/diag.h"
#include "sim/weeks/checkpoint.h"
#include "sim/weeks/cluster_state.h"
#include "sim/weeks/failover.h"
#include "sim/weeks/recovery.h"
#include "sim/weeks/recovery_machine.h"
#include "traces/fault/fault_trace.h"

/* What a step depends on. */
struct cluster_condition {
    int32_t compute_speed, link_speed; /* of the slowest straggler and link, in parts of FULL_SPEED */
    int32_t missing_replicas;          /* at most those of the layout, less one */
};

/* Returns the speed of training under a condition, in parts of FULL_SPEED, at least 1. */
struct degraded_speed {
    int32_t (*speed)(void *context, const struct cluster_condition *condition);
    void *context;
};

struct run_robust {
    const struct robust_policy *policy;
    nanos restart, restart_hot;
    nanos reload;     /* added when neighbours lost their copies and the state is read from storage */
    uint64_t seed;    /* of the recovery machine's random streams */
    int32_t replicas; /* data-parallel replicas, for elastic jobs; 0 or 1: none to spare */
};

struct run_options {
    int32_t nodes; /* used by the job */
    nanos horizon;
    nanos goal; /* work at full speed that ends the run; 0: none, the run ends at the horizon */
    nanos bin;  /* bin width of the time series; 0: one bin */
    struct checkpoint_policy checkpoint;
    struct recovery_policy recovery;
    const struct run_robust *robust;       /* NULL: plain rules */
    const struct degraded_speed *degraded; /* NULL: the slowest sets the speed */
    const struct run_failover *failover;   /* NULL: a failure stops the job */
    nanos notice;                          /* of planned outages; 0: always long enough */
    bool lean;                             /* keep no incidents; for many replicas */
};

/* The effect of one fault on the job. Incidents are in the order of the trace. */
struct incident {
    const struct fault *fault; /* in the trace given to run_simulate */
    bool interrupted;          /* training ran and was stopped */
    bool borne;                /* some replicas stopped, the others went on */
    int32_t n_down;            /* nodes down, this one included */
    nanos lost;                /* training time undone */
    nanos resumed;             /* when training went on; NEVER: not before the horizon; the fault's time if it did not stop */
    /* With a robust policy: */
    bool alarm;             /* false alarm; `fault` then has no node and no cause */
    bool relapse;           /* `fault` happened before, was not found, and came back at `time` */
    nanos time;             /* of the fault, or of its return */
    struct verdict verdict; /* all zero if nothing stopped */
};

struct run_result {
    nanos horizon;                  /* or the time when the goal was reached */
    bool reached;                   /* the goal was reached */
    nanos use[N_TIME_USES];         /* sums to horizon */
    double ettr, goodput;           /* fractions */
    int64_t failures;               /* node outages before the horizon */
    int64_t slowdowns;              /* stragglers and slow links before the horizon */
    int64_t interruptions;          /* of training */
    int64_t checkpoints;            /* completed */
    struct incident *incidents;     /* [n_incidents] */
    size_t n_incidents;             /* failures + slowdowns + planned + relapses + alarms */
    int64_t relapses;               /* faults that were not found and came back */
    int64_t alarms;                 /* false alarms */
    int64_t outside;                /* failures and planned outages of nodes outside the job */
    int64_t planned;                /* announced outages before the horizon */
    int64_t borne;                  /* failures after which other replicas went on */
    int64_t called;                 /* faults that needed a person, including those during a stop */
    int64_t condemned;              /* healthy nodes evicted */
    int64_t listed;                 /* nodes put on the blocklist */
    double away[N_AWAY_REASONS];    /* average number of nodes; overlapping outages of one node count each */
    int64_t by_channel[N_CHANNELS]; /* faults, relapses and alarms by the channel that noticed them */
    nanos bin;                      /* width of the series */
    struct ledger_bin *series;      /* [n_series]; the last bin may be shorter */
    size_t n_series;
    bool ended_waiting;  /* at the horizon the job waited for nodes */
    nanos waiting_since; /* since then */
    nanos next_repair;   /* when the next node comes back; NEVER: none does */
};

/* Replays a trace. Its nodes must be below options->nodes, and it must outlive the incidents. All mistakes in the options are
 * reported together. *result is written only on success; free it with run_result_free. */
MUST_CHECK enum status run_simulate(const struct run_options *options, const struct fault_trace *trace, struct run_result *result,
                                    struct diags *diags);
void run_result_free(struct run_result *result);

/* Length of bin i of the series; the last bin may be shorter than the others. */
nanos run_bin_length(const struct run_result *result, size_t i);

#endif
