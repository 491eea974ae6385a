/*
 * run_replicas.h - the same run many times, each with its own luck: distributions instead of one number.
 *
 * Replica r draws its faults and its recoveries from streams named by (seed, r), so replica r is the same in any batch, on any
 * thread or process, and under any policy (common random numbers: differences between policies have far less noise than the
 * answers themselves). Outcomes stand in an array by r and are only added up in that order, in integers where they are times: the
 * summary has the same bytes however the work was divided.
 *
 * Confidence intervals of means (of shares of the replicas: share_interval) are Student's at 95 %: mean +- t(0.975, n - 1) s /
 * sqrt(n). Percentiles are of all n outcomes sorted, none left out or binned: the share q is at place q (n - 1), counted from 0,
 * and between two neighbours in proportion (definition 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996;
 * the usual one of R and NumPy).
 *
 * An outcome whose value is only known to be beyond the horizon (when a goal was reached that was not) counts as infinite:
 * percentiles below it are what they would be, those that reach it infinite, and there is no mean.
 */
#ifndef MSIM_SIM_WEEKS_RUN_REPLICAS_H
#define MSIM_SIM_WEEKS_RUN_REPLICAS_H

#include "sim/weeks/run.h"

struct replica_outcome {
    int64_t done;    /* 1: the rest is filled */
    int64_t reached; /* 1: the goal */
    nanos horizon;   /* of the run, or when it reached its goal */
    nanos use[N_TIME_USES];
    int64_t failures, interruptions, called, relapses, alarms, condemned, checkpoints, slowdowns, ended_waiting;
    int64_t away; /* millionths of a node that are away for any reason, mean over the run */
};
enum { OUTCOME_WORDS = sizeof(struct replica_outcome) / sizeof(int64_t) };

struct replicas_request {
    const struct run_options *options; /* robust->seed is the replica's own */
    const struct fault_model *model;   /* NULL: `trace` every time */
    const struct fault_trace *trace;
    bool poisson; /* memoryless arrivals at the model's rate */
    uint64_t seed;
    int64_t n;
    int64_t first, stride; /* this process does first, first + stride, ...; 0: stride 1 */
    int threads;           /* at least 1 */
    /* Called after each one, by one thread at a time; NULL none. False: stop. */
    bool (*finished)(void *context, int64_t replica, const struct replica_outcome *outcome);
    void *context;
};

/* Fills the outcomes [n] of this process that are not done yet. */
MUST_CHECK enum status replicas_run(const struct replicas_request *request, struct replica_outcome *outcomes,
                                    struct diags *diags);

/* --- what they say together --- */

struct estimate {
    double mean, half_width; /* of the 95 % confidence interval of the mean */
    double deviation, low, p05, median, p95, high;
};
/* n numbers, sorted in passing. Where some are infinite, so are mean and half_width, and deviation. */
struct estimate estimate_of(double *x, size_t n);

/* 95 % interval of a probability of which n replicas, above 0, say the share `mean`: Wilson's score interval (JASA 22, 1927),
 * which is of some width where none or all of them say so. */
void share_interval(double mean, int64_t n, double *low, double *high);

/* Mean length of the runs, rounded. */
nanos outcomes_horizon(const struct replica_outcome *outcomes, int64_t n);
/* When the goal was reached, in seconds; infinite when it was not before the horizon. */
double outcome_end_s(const struct replica_outcome *outcome);
double outcome_ettr(const struct replica_outcome *outcome);
double outcome_goodput(const struct replica_outcome *outcome);
/* Nodes that were away, for whatever reason, in the mean. */
double outcome_away(const struct replica_outcome *outcome);

#endif
