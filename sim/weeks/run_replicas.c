#include "sim/weeks/run_replicas.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/order.h"
#include "sim/base/thread_pool.h"
#include "sim/faults/faults.h"

/* --- one replica --- */

#define AWAY_UNITS 1e6 /* of a node */

static void keep_outcome(const struct run_result *result, struct replica_outcome *outcome)
{
    *outcome = (struct replica_outcome){
        .done = 1,
        .reached = result->reached,
        .horizon = result->horizon,
        .failures = result->failures,
        .interruptions = result->interruptions,
        .called = result->called,
        .relapses = result->relapses,
        .alarms = result->alarms,
        .condemned = result->condemned,
        .checkpoints = result->checkpoints,
        .slowdowns = result->slowdowns,
        .ended_waiting = result->ended_waiting,
    };
    memcpy(outcome->use, result->use, sizeof outcome->use);
    double away = 0;
    for (int i = 0; i < N_AWAY_REASONS; i++)
        away += result->away[i];
    outcome->away = llround(away * AWAY_UNITS);
}

static void draw(const struct replicas_request *request, const struct run_options *options, uint64_t seed,
                 struct fault_trace *drawn)
{
    *drawn = (struct fault_trace){0};
    if (request->model && request->poisson)
        faults_generate_poisson(request->model, options->nodes, options->horizon, seed, drawn);
    else if (request->model)
        faults_generate(request->model, options->nodes, options->horizon, seed, drawn);
}

/* Most runs reach their goal long before the horizon, so faults are first drawn for a nearer horizon. The same faults happen
 * before it. */
static nanos first_look(const struct replicas_request *request)
{
    const struct run_options *options = request->options;
    return options->goal > 0 && options->goal < options->horizon / 2 ? 2 * options->goal : options->horizon;
}

static nanos further_look(const struct replicas_request *request, nanos horizon)
{
    return horizon < request->options->horizon / 4 ? 4 * horizon : request->options->horizon;
}

static enum status run_one(const struct replicas_request *request, int64_t replica, struct replica_outcome *outcome,
                           struct diags *diags)
{
    uint64_t seed = faults_replica_seed(request->seed, (uint64_t)replica);
    struct run_options options = *request->options;
    struct run_robust robust = {0};
    struct fault_trace drawn = {0};
    struct run_result result;
    options.lean = true;
    if (options.robust) {
        robust = *options.robust;
        robust.seed = seed;
        options.robust = &robust;
    }
    for (options.horizon = first_look(request);; options.horizon = further_look(request, options.horizon)) {
        draw(request, &options, seed, &drawn);
        enum status status = run_simulate(&options, request->model ? &drawn : request->trace, &result, diags);
        fault_trace_free(&drawn);
        if (status != STATUS_OK)
            return status;
        bool enough = result.reached || options.horizon == request->options->horizon;
        if (enough)
            keep_outcome(&result, outcome);
        run_result_free(&result);
        if (enough)
            return STATUS_OK;
    }
}

/* --- many --- */

struct batch {
    const struct replicas_request *request;
    struct replica_outcome *outcomes;
};

static enum status work(void *context, int64_t replica, struct diags *diags)
{
    const struct batch *batch = context;
    return run_one(batch->request, replica, &batch->outcomes[replica], diags);
}

static bool is_wanted(void *context, int64_t replica)
{
    const struct batch *batch = context;
    return !batch->outcomes[replica].done;
}

static bool is_finished(void *context, int64_t replica)
{
    const struct batch *batch = context;
    return batch->request->finished(batch->request->context, replica, &batch->outcomes[replica]);
}

enum status replicas_run(const struct replicas_request *request, struct replica_outcome *outcomes, struct diags *diags)
{
    struct batch batch = {.request = request, .outcomes = outcomes};
    const struct parallel_task task = {.n = request->n,
                                       .first = request->first,
                                       .stride = request->stride,
                                       .threads = request->threads,
                                       .work = work,
                                       .wanted = is_wanted,
                                       .finished = request->finished ? is_finished : NULL,
                                       .context = &batch};
    return parallel_for(&task, diags);
}

/* --- statistics --- */

static void take_spread(const double *x, size_t n, struct estimate *e)
{
    for (size_t i = 0; i < n; i++)
        e->deviation += (x[i] - e->mean) * (x[i] - e->mean);
    e->deviation = n > 1 ? sqrt(e->deviation / (double)(n - 1)) : 0;
    if (n > 1)
        e->half_width = gsl_cdf_tdist_Pinv(0.975, (double)(n - 1)) * e->deviation / sqrt((double)n);
}

struct estimate estimate_of(double *x, size_t n)
{
    struct estimate e = {0};
    if (n == 0)
        return e;
    qsort(x, n, sizeof *x, double_compare); /* the order of equal numbers does not matter */
    for (size_t i = 0; i < n; i++)
        e.mean += x[i];
    e.mean = x[n - 1] > x[0] ? e.mean / (double)n : x[0]; /* exact if all are equal */
    if (isinf(e.mean))
        e.deviation = e.half_width = e.mean;
    else
        take_spread(x, n, &e);
    e.low = x[0];
    e.high = x[n - 1];
    e.p05 = double_quantile(x, n, 0.05);
    e.median = double_quantile(x, n, 0.5);
    e.p95 = double_quantile(x, n, 0.95);
    return e;
}

void share_interval(double mean, int64_t n, double *low, double *high)
{
    double z = gsl_cdf_ugaussian_Pinv(0.975), t = z * z / (double)n;
    double centre = (mean + t / 2) / (1 + t), half = sqrt(mean * (1 - mean) * t + t * t / 4) / (1 + t);
    *low = fmax(centre - half, 0);
    *high = fmin(centre + half, 1);
}

double outcome_goodput(const struct replica_outcome *outcome)
{
    return (double)outcome->use[USE_TRAINING] / (double)outcome->horizon;
}

double outcome_ettr(const struct replica_outcome *outcome)
{
    return (double)(outcome->use[USE_TRAINING] + outcome->use[USE_DEGRADED]) / (double)outcome->horizon;
}

double outcome_away(const struct replica_outcome *outcome)
{
    return (double)outcome->away / AWAY_UNITS;
}

nanos outcomes_horizon(const struct replica_outcome *outcomes, int64_t n)
{
    nanos mean = 0;
    int64_t rest = 0;
    for (int64_t i = 0; i < n; i++) { /* the sum would overflow */
        mean += outcomes[i].horizon / n;
        rest += outcomes[i].horizon % n;
    }
    return mean + rest / n;
}

double outcome_end_s(const struct replica_outcome *outcome)
{
    return outcome->reached ? nanos_to_seconds(outcome->horizon) : HUGE_VAL;
}

struct estimate outcomes_estimate(const struct replica_outcome *outcomes, int64_t n,
                                  double (*number)(const struct replica_outcome *outcome))
{
    double *x = memory_new((size_t)n, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = number(&outcomes[i]);
    struct estimate estimate = estimate_of(x, (size_t)n);
    free(x);
    return estimate;
}
