/*
 * fault_fit_early.c - early deaths: a wave of failures that decays from the start. A fraction f of the n failures has an
 * exponential density of mean tau, the rest is uniform:
 *
 *     p(t) = (1 - f) / H + f exp(-t/tau) / (tau (1 - exp(-H/tau)))
 *
 * Maximum likelihood over (f, tau), with tau at most a tenth of the horizon: a slower decay is a trend. Clustered failures make
 * a wave out of little. So the gain in likelihood is divided by the variance over mean of the daily counts before it is weighed
 * against two parameters.
 */
#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/faults/fault_fit_internal.h"
#include "sim/faults/fault_statistics.h"

enum { LONGEST_PART = 10 };

struct wave {
    double *times_s;
    size_t n;
    double horizon_s;
};

static double part_of(double logit)
{
    return 1 / (1 + exp(-logit));
}

static double minus_log_likelihood(const gsl_vector *x, void *data)
{
    const struct wave *wave = data;
    double f = part_of(gsl_vector_get(x, 0)), tau = exp(gsl_vector_get(x, 1)), sum = 0;
    if (tau > wave->horizon_s / LONGEST_PART || tau < 60)
        return 1e18;
    double even = (1 - f) / wave->horizon_s, height = f / (tau * -expm1(-wave->horizon_s / tau));
    for (size_t i = 0; i < wave->n; i++)
        sum += log(even + height * exp(-wave->times_s[i] / tau));
    return -sum;
}

static double maximise(struct wave *wave, gsl_vector *x, double tau_s)
{
    gsl_multimin_function f = {.f = minus_log_likelihood, .n = 2, .params = wave};
    gsl_vector_set(x, 0, log(0.1 / 0.9));
    gsl_vector_set(x, 1, log(tau_s));
    return fit_minimum(&f, x, 0.5, 400);
}

/* Standard error of one parameter, from the curvature along it. */
static double error_of(struct wave *wave, gsl_vector *x, size_t i)
{
    const double h = 0.02;
    double at = gsl_vector_get(x, i), middle = minus_log_likelihood(x, wave);
    gsl_vector_set(x, i, at + h);
    double above = minus_log_likelihood(x, wave);
    gsl_vector_set(x, i, at - h);
    double below = minus_log_likelihood(x, wave);
    gsl_vector_set(x, i, at);
    double curvature = (above + below - 2 * middle) / (h * h);
    return curvature > 0 ? 1 / sqrt(curvature) : 0;
}

/* Variance over mean of the daily counts, the burstiness of what is left. */
static double dispersion(const struct wave *wave)
{
    size_t days = (size_t)(wave->horizon_s / 86400) + 1;
    double *counts = memory_new(days, sizeof *counts), deviation;
    for (size_t i = 0; i < wave->n; i++)
        counts[(size_t)(wave->times_s[i] / 86400)]++;
    double mean = fit_moments(counts, days, &deviation);
    free(counts);
    return fmax(1, deviation * deviation / mean);
}

static void keep_wave(struct wave *wave, gsl_vector *x, int32_t nodes, double spread, struct fault_fit *fit)
{
    double logit = gsl_vector_get(x, 0), tau = exp(gsl_vector_get(x, 1));
    double error = sqrt(spread) * error_of(wave, x, 0), error_tau = sqrt(spread) * error_of(wave, x, 1);
    double each = (double)wave->n / (nodes * -expm1(-wave->horizon_s / tau));
    fit->early = true;
    fit->n_early = part_of(logit) * (double)wave->n;
    fit->early_share = (struct interval_estimate){fmin(1, each * part_of(logit)), fmin(1, each * part_of(logit - 1.96 * error)),
                                                  fmin(1, each * part_of(logit + 1.96 * error))};
    fit->early_days =
        (struct interval_estimate){tau / 86400, tau / 86400 * exp(-1.96 * error_tau), tau / 86400 * exp(1.96 * error_tau)};
}

void fit_early(const struct fault_trace *trace, const bool *grouped, int32_t nodes, nanos horizon, struct fault_fit *fit)
{
    struct wave wave = {.times_s = memory_new(trace->n_items, sizeof(double)), .horizon_s = nanos_to_seconds(horizon)};
    for (size_t i = 0; i < trace->n_items; i++)
        if (trace->items[i].kind == FAULT_NODE && trace->items[i].time < horizon && !grouped[i])
            wave.times_s[wave.n++] = nanos_to_seconds(trace->items[i].time);
    gsl_vector *x = gsl_vector_alloc(2), *best = gsl_vector_alloc(2);
    double least = 1e18, even = (double)wave.n * log(wave.horizon_s);
    for (int part = 2 * LONGEST_PART; part <= 200 * LONGEST_PART && wave.n >= LEAST_FAILURES; part *= 10) {
        double value = maximise(&wave, x, wave.horizon_s / part);
        if (value < least) {
            least = value;
            gsl_vector_memcpy(best, x);
        }
    }
    double spread = wave.n > 0 ? dispersion(&wave) : 1;
    fit->log_likelihood_early = even - least;
    bool trend = exp(gsl_vector_get(best, 1)) > 0.95 * wave.horizon_s / LONGEST_PART;
    if (!trend && (even - least) / spread > 4)
        keep_wave(&wave, best, nodes, spread, fit);
    gsl_vector_free(x);
    gsl_vector_free(best);
    free(wave.times_s);
}
