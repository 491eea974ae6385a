/*
 * run_replicas.h - runs the same job many times with independent random faults: distributions instead of one number.
 *
 * Example: 1,000 replicas of a month, drawn from a fault model, on two threads.
 *
 *     const struct replicas_request request = {.options = &options, .model = &model, .seed = 1, .n = 1000, .threads = 2};
 *     status = replicas_run(&request, outcomes, &diags);
 *     for (i = 0; i < 1000; i++) x[i] = outcome_ettr(&outcomes[i]);
 *     struct estimate ettr = estimate_of(x, 1000);          ... ettr.mean, ettr.p05 ...
 *
 * Replica r draws its faults and recoveries from streams named by (seed, r). So it is the same in any batch, on any thread or
 * process, and under any policy. These common random numbers make differences between policies far less noisy than the answers
 * themselves. Outcomes are stored by r and summed in that order, as integers if they are times. So the summary has the same
 * bytes however the work was divided.
 *
 * The 95 % confidence interval of a mean is Student's: mean +- t(0.975, n - 1) s / sqrt(n). (share_interval is for fractions of
 * the replicas.) Percentiles are of all n sorted outcomes. The share q is at position q (n - 1), counted from 0, interpolated
 * between its two neighbours (definition 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996; the default of
 * R and NumPy).
 *
 * An outcome beyond the horizon (the time of a goal that was not reached) counts as infinite. Percentiles below it do not
 * change, those that reach it are infinite, and so is the mean.
 */
#ifndef MSIM_SIM_WEEKS_RUN_REPLICAS_H
#define MSIM_SIM_WEEKS_RUN_REPLICAS_H

#include "sim/weeks/run.h"

struct replica_outcome {
    int64_t done;    /* 1: the other members are set */
    int64_t reached; /* 1: the goal was reached */
    nanos horizon;   /* of the run, or the time when it reached its goal */
    nanos use[N_TIME_USES];
    int64_t failures, interruptions, called, relapses, alarms, condemned, checkpoints, slowdowns, ended_waiting;
    int64_t away; /* nodes away for any reason, average over the run, in millionths */
};
enum { OUTCOME_WORDS = sizeof(struct replica_outcome) / sizeof(int64_t) };

struct replicas_request {
    const struct run_options *options; /* each replica replaces robust->seed */
    const struct fault_model *model;   /* NULL: every replica replays `trace` */
    const struct fault_trace *trace;
    bool poisson; /* memoryless arrivals at the model's rate */
    uint64_t seed;
    int64_t n;
    int64_t first, stride; /* this process runs first, first + stride, ...; 0: stride 1 */
    int threads;           /* at least 1 */
    /* Called after each replica, by one thread at a time; returns false to stop. NULL: none. */
    bool (*finished)(void *context, int64_t replica, const struct replica_outcome *outcome);
    void *context;
};

/* Fills those outcomes [n] of this process that are not done. */
MUST_CHECK enum status replicas_run(const struct replicas_request *request, struct replica_outcome *outcomes,
                                    struct diags *diags);

/* --- statistics --- */

struct estimate {
    double mean, half_width; /* of the 95 % confidence interval of the mean */
    double deviation, low, p05, median, p95, high;
};
/* Statistics of n numbers; sorts them. If one is infinite, mean, half_width and deviation are infinite. */
struct estimate estimate_of(double *x, size_t n);

/* One number of each outcome, estimated. */
struct estimate outcomes_estimate(const struct replica_outcome *outcomes, int64_t n,
                                  double (*number)(const struct replica_outcome *outcome));

/* 95 % interval of a probability if a fraction `mean` of n > 0 replicas had the property: Wilson's score interval (JASA 22,
 * 1927). Its width is above 0 even if none or all had it. */
void share_interval(double mean, int64_t n, double *low, double *high);

/* Mean length of the runs, rounded. */
nanos outcomes_horizon(const struct replica_outcome *outcomes, int64_t n);
/* When the goal was reached, in seconds; infinite if it was not. */
double outcome_end_s(const struct replica_outcome *outcome);
double outcome_ettr(const struct replica_outcome *outcome);
double outcome_goodput(const struct replica_outcome *outcome);
/* Nodes away for any reason, average over the run. */
double outcome_away(const struct replica_outcome *outcome);

#endif
