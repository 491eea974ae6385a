/*
 * run.h - weeks of training on a cluster where things fail.
 *
 * One job uses all `nodes` nodes from time 0 to the horizon H. Training alternates `interval` of work with a checkpoint that
 * blocks it for `block` (sim/checkpoint.h). A node outage of the fault trace stops training if it was going on: work since the
 * last safe checkpoint is lost, and training resumes as sim/recovery.h says. A straggler or slow link lets training go on at
 * the speed of the slowest (sim/cluster_state.h). Faults at or after H do not happen; work in progress at H counts.
 *
 * At equal times: repairs, then failures in the order of the trace, then ends of outages of no length. Training that is due to
 * resume exactly at a failure's time does so first and is interrupted at once.
 *
 * Answers. With T the time of work that counts at full speed, S the extra time this work took on slow hardware, and the other
 * uses of sim/ledger.h, all in integer nanoseconds and adding up to H exactly:
 *
 *     ETTR     = (T + S) / H   share of the time spent on training that counts (effective training time ratio)
 *     goodput  =  T / H        work that counts, over what a cluster without faults and checkpoints would have done
 *     MFU      = goodput * MFU of one step;   tokens = T / step time * tokens per step
 *
 * The two differ only where stragglers or slow links slow the step.
 *
 * For plausibility, the memoryless answers with unlimited spares (failures at rate L, recovery R = detect + restart, interval D,
 * block w, q = exp(-L (D + w))):
 *
 *     first order   (1 - L (R + D/2)) / (1 + w/D)
 *     exponential   D q/(1 - q) / (1/L + (exp(L R) - 1)/L)
 *
 * and Young and Daly's first-order optimum of the interval, sqrt(2 w / L). The first counts one interval half lost and one
 * recovery per failure; it is good while L (R + D/2) is small. The second is exact for a Poisson process of failures.
 *
 * Cost: O((faults + bins) log faults), and one multiplication per bin however many checkpoints; 4,424 faults over 974 days take
 * well under a millisecond. Checked against an independent event-list program and a published replay (tests/sim/run).
 */
#ifndef MSIM_SIM_RUN_H
#define MSIM_SIM_RUN_H

#include "model/base/diag.h"
#include "sim/checkpoint.h"
#include "sim/recovery.h"
#include "traces/fault_trace.h"

struct run_options {
    int32_t nodes; /* used by the job */
    nanos horizon;
    nanos bin; /* width of the time series; 0: the horizon in one */
    struct checkpoint_policy checkpoint;
    struct recovery_policy recovery;
};

/* One fault as the job met it; incidents stand in the order of the trace. */
struct incident {
    const struct fault *fault; /* in the trace given to run_simulate */
    bool interrupted;          /* training was going on and stopped */
    int32_t n_down;            /* nodes down, this one included */
    nanos lost;                /* training undone */
    nanos resumed;             /* when training went on; NEVER: not before the horizon. The fault's time when it did not stop */
};

struct run_result {
    nanos horizon;
    nanos use[N_TIME_USES];     /* adds up to horizon */
    double ettr, goodput;       /* fractions */
    int64_t failures;           /* node outages before the horizon */
    int64_t slowdowns;          /* stragglers and slow links before the horizon */
    int64_t interruptions;      /* of training */
    int64_t checkpoints;        /* completed */
    struct incident *incidents; /* [n_incidents] */
    size_t n_incidents;         /* failures + slowdowns */
    nanos bin;                  /* width of the series */
    struct ledger_bin *series;  /* [n_series]; the last bin may be shorter */
    size_t n_series;
    bool ended_waiting;  /* at the horizon too many nodes were down ... */
    nanos waiting_since; /* ... since then */
};

/* Replay a trace, whose nodes must be below options->nodes. The trace must outlive the incidents. Mistakes in the options are
 * reported together; *result is written only on success and released with run_result_free. */
MUST_CHECK enum status run_simulate(const struct run_options *options, const struct fault_trace *trace, struct run_result *result,
                                    struct diags *diags);
void run_result_free(struct run_result *result);

/* Length of bin i of the series. */
nanos run_bin_length(const struct run_result *result, size_t i);

/* The memoryless answers above for `failures` over the horizon. */
struct run_closed_form {
    double first_order, exponential;
    double best_interval_s; /* Young and Daly; 0 when checkpoints cost nothing or nothing fails */
};
struct run_closed_form run_closed_form(const struct run_options *options, int64_t failures);

#endif
