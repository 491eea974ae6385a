/*
 * run.h - weeks of training on a cluster where things fail.
 *
 * One job uses all `nodes` nodes from time 0 to the horizon H. Training alternates `interval` of work with a checkpoint that
 * blocks it for `block` (sim/weeks/checkpoint.h). A node outage of the fault trace stops training if it was going on: work since
 * the last safe checkpoint is lost, and training resumes as sim/weeks/recovery.h says. A straggler or slow link lets training go
 * on at the speed of the slowest (sim/weeks/cluster_state.h). Faults at or after H do not happen; work in progress at H counts.
 *
 * At equal times: repairs, then failures in the order of the trace, then ends of outages of no length. Training that is due to
 * resume exactly at a failure's time does so first and is interrupted at once.
 *
 * Answers. With T the time of work that counts at full speed, S the extra time this work took on slow hardware, and the other
 * uses of sim/weeks/ledger.h, all in integer nanoseconds and adding up to H exactly:
 *
 *     ETTR     = (T + S) / H   share of the time spent on training that counts (effective training time ratio)
 *     goodput  =  T / H        work that counts, over what a cluster without faults and checkpoints would have done
 *     MFU      = goodput * MFU of one step;   tokens = T / step time * tokens per step
 *
 * The two differ only where stragglers or slow links slow the step.
 *
 * With a robust policy (options->robust, sim/weeks/robust_policy.h) each failure goes through the state machine of
 * sim/weeks/recovery_machine.h instead of a fixed detection and restart time:
 *
 *   - what is noticed when, what is found, who is called, and whether the fault comes back, is drawn from the fault's own stream
 *   - a node whose outages within the blocklist's window are too many stays away for longer, and counts anew; it does so though
 *     the job waits for nodes. The list is empty at first and as long as it gets after a window and a listing's length
 *   - condemned healthy nodes, blocklisted nodes and found stragglers are away as failed ones are, and use up spares; stragglers
 *     leave at a restart, the slowest first, as many as it need not wait for: a slow node is better than none
 *   - a failure or planned outage of a node that is not in the job (down, or listed) does nothing to the job
 *   - restarts take `restart`, or `restart_hot` while no more nodes are down than spares stand ready as hot ones
 *   - a link that is gone (below 5 % of its speed) for longer than the collective timeout ends training as a hang
 *   - elastic: when nodes are short the job goes on with fewer replicas; a returned node lets them grow after a planned restart
 *   - the speed drifts down since the last restart, in steps of an hour
 *
 * A planned outage of the trace is announced at its time. Training stops, everything is saved (checkpoint time: the block, and
 * until storage has it), then the node leaves and the job restarts: nothing is lost, noticed late or looked for. With a notice
 * shorter than saving takes it is a failure that is noticed at once (replicas that leave alone only end the step under way). One
 * of no length is a restart of the job by plan, with new code.
 *
 * With options->failover (sim/weeks/failover.h) a failure takes replicas out, and the others go on, where it otherwise stops the
 * job.
 *
 * What a slow cluster does to the speed is asked of options->degraded where it is given (sim/weeks/degraded.h: the step
 * simulation, memoised); without it the speed is that of the slowest, the plain rule.
 *
 * With a goal G of work (options->goal) the run is over before H when so much has been done and is safe: training stops at G and
 * everything is saved (checkpoint time: the block, and until storage has it); a failure meanwhile undoes what it undoes
 * otherwise, and training goes on. The result is that of the time until then, and `horizon` in it is when that was. Work in
 * progress at the horizon does not reach the goal.
 *
 * What memoryless failures would make of the same stands in sim/weeks/run_closed_form.h.
 *
 * Cost: O((faults + bins) log faults), and one multiplication per bin however many checkpoints; 4,424 faults over 974 days take
 * well under a millisecond. Checked against an independent event-list program and a published replay (tests/sim/run).
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

/* The state of the cluster as far as a step depends on it. */
struct cluster_condition {
    int32_t compute_speed, link_speed; /* of the slowest straggler and link, in parts of FULL_SPEED */
    int32_t missing_replicas;          /* of those that the layout has */
};

/* The speed of training under a condition, in parts of FULL_SPEED, at least 1. */
struct degraded_speed {
    int32_t (*speed)(void *context, const struct cluster_condition *condition);
    void *context;
};

struct run_robust {
    const struct robust_policy *policy;
    nanos restart, restart_hot;
    nanos reload;     /* longer by so much when what neighbours held is gone and the state comes from storage */
    uint64_t seed;    /* of what the machine draws */
    int32_t replicas; /* data-parallel ones, for elastic running; 0 or 1: none to spare */
};

struct run_options {
    int32_t nodes; /* used by the job */
    nanos horizon;
    nanos goal; /* work at full speed after which the run is over; 0: the horizon alone ends it */
    nanos bin;  /* width of the time series; 0: the horizon in one */
    struct checkpoint_policy checkpoint;
    struct recovery_policy recovery;
    const struct run_robust *robust;       /* NULL: the plain rules */
    const struct degraded_speed *degraded; /* NULL: the slowest decides */
    const struct run_failover *failover;   /* NULL: a failure stops the job */
    nanos notice;                          /* at which planned outages are announced; 0: early enough */
    bool lean;                             /* keep no incidents: for replicas */
};

/* One fault as the job met it; incidents stand in the order of the trace. */
struct incident {
    const struct fault *fault; /* in the trace given to run_simulate */
    bool interrupted;          /* training was going on and stopped */
    bool borne;                /* it took replicas out; the others went on */
    int32_t n_down;            /* nodes down, this one included */
    nanos lost;                /* training undone */
    nanos resumed;             /* when training went on; NEVER: not before the horizon. The fault's time when it did not stop */
    /* With a robust policy: */
    bool alarm;             /* a false one: `fault` is one of no node and no cause */
    bool relapse;           /* the fault was met before and not found; `fault` is that one, `time` when it came back */
    nanos time;             /* of this incident: the fault's, or the relapse's */
    struct verdict verdict; /* all zero when nothing stopped */
};

struct run_result {
    nanos horizon;                  /* or when the goal was reached */
    bool reached;                   /* the goal */
    nanos use[N_TIME_USES];         /* adds up to horizon */
    double ettr, goodput;           /* fractions */
    int64_t failures;               /* node outages before the horizon */
    int64_t slowdowns;              /* stragglers and slow links before the horizon */
    int64_t interruptions;          /* of training */
    int64_t checkpoints;            /* completed */
    struct incident *incidents;     /* [n_incidents] */
    size_t n_incidents;             /* failures + slowdowns + planned + relapses + alarms */
    int64_t relapses;               /* faults that came back because they were not found */
    int64_t alarms;                 /* false ones */
    int64_t outside;                /* failures and planned outages of nodes that were not in the job */
    int64_t planned;                /* announced outages before the horizon */
    int64_t borne;                  /* failures that took replicas out while the others went on */
    int64_t called;                 /* faults that needed a person, also while the job was stopped already */
    int64_t condemned;              /* healthy nodes that were evicted */
    int64_t listed;                 /* nodes put on the blocklist */
    double away[N_AWAY_REASONS];    /* nodes, mean over the horizon; overlapping outages of one count each */
    int64_t by_channel[N_CHANNELS]; /* faults, relapses and alarms by what noticed them, likewise */
    nanos bin;                      /* width of the series */
    struct ledger_bin *series;      /* [n_series]; the last bin may be shorter */
    size_t n_series;
    bool ended_waiting;  /* at the horizon too many nodes were down ... */
    nanos waiting_since; /* ... since then */
    nanos next_repair;   /* ... and the next node comes back then; NEVER: none does */
};

/* Replay a trace, whose nodes must be below options->nodes. The trace must outlive the incidents. Mistakes in the options are
 * reported together; *result is written only on success and released with run_result_free. */
MUST_CHECK enum status run_simulate(const struct run_options *options, const struct fault_trace *trace, struct run_result *result,
                                    struct diags *diags);
void run_result_free(struct run_result *result);

/* Length of bin i of the series. */
nanos run_bin_length(const struct run_result *result, size_t i);

#endif
