/*
 * fault_fit_nodes.c - failures of single nodes: renewal processes with lemons and bursts, by maximum likelihood (fault_fit.h).
 */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <stdlib.h>

#include "model/base/hash.h"
#include "model/base/memory.h"
#include "sim/faults/fault_fit_internal.h"

enum { SHORTEST_S = 60, LONGEST_BURST_S = 2 * 86400, MAX_PARAMETERS = 6 };
/* What two parameters have to gain in log-likelihood: one chance in a hundred for lemons, one in fifty for bursts. */
#define LEMONS_GAIN 4.605
#define BURSTS_GAIN 4

/* --- up times by node --- */

struct life_history {
    double first_s;  /* to the first failure; the horizon if it never fails */
    double last_s;   /* from the last repair to the horizon; < 0: still down */
    size_t begin, n; /* of gaps */
    bool failed;
};

struct sample {
    bool lemons, bursts; /* which parameters there are */
    struct life_history *nodes;
    int32_t n_nodes;
    double *gaps, *limits; /* up times, and how long each could have been within the horizon */
    double *log_gaps;
    size_t n_gaps;
    double horizon_s;
};

static int compare_by_node(const void *left, const void *right)
{
    const struct fault *a = left, *b = right;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return (a->time > b->time) - (a->time < b->time);
}

static void add_gap(struct sample *sample, double gap_s, double limit_s)
{
    gap_s = fmax(gap_s, SHORTEST_S);
    sample->gaps[sample->n_gaps] = gap_s;
    sample->log_gaps[sample->n_gaps] = log(gap_s);
    sample->limits[sample->n_gaps++] = fmax(limit_s, gap_s);
}

static void read_node(struct sample *sample, const struct fault *faults, size_t n)
{
    struct life_history *node = &sample->nodes[faults[0].node];
    double back_s = 0;
    node->failed = true;
    node->first_s = fmax(nanos_to_seconds(faults[0].time), 1);
    node->begin = sample->n_gaps;
    for (size_t i = 0; i < n; i++) {
        double time_s = nanos_to_seconds(faults[i].time), end_s = time_s + nanos_to_seconds(faults[i].down);
        if (i > 0)
            add_gap(sample, time_s - back_s, sample->horizon_s - back_s);
        back_s = fmax(back_s, end_s);
    }
    node->n = sample->n_gaps - node->begin;
    node->last_s = sample->horizon_s - back_s;
}

/* As good as drawn, the same in every run. */
static int32_t some_node(uint64_t i, int32_t nodes)
{
    return (int32_t)((hash_key(&i, sizeof i) >> 20) % (uint64_t)nodes);
}

/* `mistaken`: the node whose failures are those of unknown nodes; -1: none. They are spread over all. */
static void sample_read(const struct fault_trace *trace, const bool *grouped, int32_t nodes, int32_t mistaken, nanos horizon,
                        struct sample *sample)
{
    struct fault *sorted = memory_new(trace->n_items, sizeof *sorted);
    size_t n = 0;
    for (size_t i = 0; i < trace->n_items; i++)
        if (trace->items[i].kind == FAULT_NODE && trace->items[i].time < horizon && !grouped[i])
            sorted[n++] = trace->items[i];
    for (size_t i = 0; i < n; i++)
        if (sorted[i].node == mistaken)
            sorted[i].node = some_node(i, nodes);
    if (n > 1)
        qsort(sorted, n, sizeof *sorted, compare_by_node); /* the order of equal times does not matter */
    *sample = (struct sample){.n_nodes = nodes,
                              .nodes = memory_new((size_t)nodes, sizeof *sample->nodes),
                              .gaps = memory_new(n, sizeof(double)),
                              .limits = memory_new(n, sizeof(double)),
                              .log_gaps = memory_new(n, sizeof(double)),
                              .horizon_s = nanos_to_seconds(horizon)};
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && sorted[end].node == sorted[i].node)
            end++;
        read_node(sample, &sorted[i], end - i);
        i = end;
    }
    free(sorted);
}

static void sample_free(struct sample *sample)
{
    free(sample->nodes);
    free(sample->gaps);
    free(sample->limits);
    free(sample->log_gaps);
}

/* --- likelihood --- */

/* Parameters as the simplex moves them: ln k, ln mean of an ordinary node [s]; with lemons logit share and ln (factor - 1); with
 * bursts logit probability and ln mean gap [s]. */
struct parameters {
    double shape, mean_s, share, factor, burst, burst_s;
};

/* Shares stay below a half: lemons are the minority, and so are failures that follow another at once. */
static double share_of(double logit)
{
    return 0.5 / (1 + exp(-logit));
}

static struct parameters decode(const struct sample *sample, const gsl_vector *x)
{
    struct parameters p = {.shape = exp(gsl_vector_get(x, 0)), .mean_s = exp(gsl_vector_get(x, 1)), .factor = 1, .burst_s = 1};
    size_t at = 2;
    if (sample->lemons) {
        p.share = share_of(gsl_vector_get(x, at++));
        p.factor = 1 + exp(gsl_vector_get(x, at++));
    }
    if (sample->bursts) {
        p.burst = share_of(gsl_vector_get(x, at++));
        p.burst_s = exp(gsl_vector_get(x, at++));
    }
    return p;
}

struct kind {
    double shape, scale_s, log_mean, log_never;
};

static struct kind kind_of(double shape, double mean_s, double horizon_s)
{
    struct kind kind = {.shape = shape, .scale_s = mean_s / gsl_sf_gamma(1 + 1 / shape), .log_mean = log(mean_s)};
    double never = gsl_cdf_gamma_Q(pow(horizon_s / kind.scale_s, shape), 1 / shape, 1);
    kind.log_never = log(fmax(never, 1e-300));
    return kind;
}

static double log_of_mixture(double a, double b, double share)
{
    if (share <= 0)
        return a;
    double x = log1p(-share) + a, y = log(share) + b, high = fmax(x, y);
    return high + log(exp(x - high) + exp(y - high));
}

static double node_log_likelihood(const struct sample *sample, const struct life_history *node, const struct kind *kind,
                                  const struct parameters *p)
{
    if (!node->failed)
        return kind->log_never;
    double k = kind->shape, log_scale = log(kind->scale_s), log_burst = log(p->burst_s);
    double sum = -pow(node->first_s / kind->scale_s, k) - kind->log_mean;
    for (size_t i = node->begin; i < node->begin + node->n; i++) {
        double z = k * (sample->log_gaps[i] - log_scale), weibull = log(k) - sample->log_gaps[i] + z - exp(z);
        sum += log_of_mixture(weibull, -log_burst - sample->gaps[i] / p->burst_s, p->burst);
    }
    if (node->last_s > 0)
        sum += log_of_mixture(-pow(node->last_s / kind->scale_s, k), -node->last_s / p->burst_s, p->burst);
    return sum;
}

static double minus_log_likelihood(const gsl_vector *x, void *data)
{
    const struct sample *sample = data;
    struct parameters p = decode(sample, x);
    if (p.shape < 0.05 || p.shape > 20 || p.mean_s < 1 || p.mean_s > 1e13 || p.factor > 1e5 || p.burst_s < 1 ||
        p.burst_s > LONGEST_BURST_S)
        return 1e18;
    struct kind ordinary = kind_of(p.shape, p.mean_s, sample->horizon_s);
    struct kind lemon = kind_of(p.shape, p.mean_s / p.factor, sample->horizon_s);
    double sum = 0;
    for (int32_t i = 0; i < sample->n_nodes; i++) {
        double a = node_log_likelihood(sample, &sample->nodes[i], &ordinary, &p);
        double b = p.share > 0 ? node_log_likelihood(sample, &sample->nodes[i], &lemon, &p) : 0;
        sum += log_of_mixture(a, b, p.share);
    }
    return isfinite(sum) ? -sum : 1e18;
}

static double maximise(struct sample *sample, gsl_vector *x)
{
    gsl_multimin_function f = {.f = minus_log_likelihood, .n = x->size, .params = sample};
    return fit_minimum(&f, x, 0.4, 600);
}

/* Standard errors of the parameters: the diagonal of the inverse of the second derivatives; 0 if that is not positive. */
static void standard_errors(struct sample *sample, const gsl_vector *x, double *errors)
{
    const double h = 1e-2;
    size_t n = x->size;
    gsl_matrix *hessian = gsl_matrix_alloc(n, n);
    gsl_vector *y = gsl_vector_alloc(n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (int a = -1; a <= 1; a += 2)
                for (int b = -1; b <= 1; b += 2) {
                    gsl_vector_memcpy(y, x);
                    gsl_vector_set(y, i, gsl_vector_get(y, i) + a * h);
                    gsl_vector_set(y, j, gsl_vector_get(y, j) + b * h);
                    sum += a * b * minus_log_likelihood(y, sample);
                }
            gsl_matrix_set(hessian, i, j, sum / (4 * h * h));
        }
    bool good = gsl_linalg_cholesky_decomp1(hessian) == GSL_SUCCESS && gsl_linalg_cholesky_invert(hessian) == GSL_SUCCESS;
    for (size_t i = 0; i < n; i++)
        errors[i] = good ? sqrt(fmax(gsl_matrix_get(hessian, i, i), 0)) : 0;
    gsl_matrix_free(hessian);
    gsl_vector_free(y);
}

static struct interval_estimate log_interval(double value, double error)
{
    return (struct interval_estimate){value, value * exp(-1.96 * error), value * exp(1.96 * error)};
}

static struct interval_estimate share_interval(double logit, double error)
{
    return (struct interval_estimate){share_of(logit), share_of(logit - 1.96 * error), share_of(logit + 1.96 * error)};
}

static void keep_parameters(struct sample *sample, const gsl_vector *x, struct fault_fit *fit)
{
    double errors[MAX_PARAMETERS] = {0};
    struct parameters p = decode(sample, x);
    size_t at = 2;
    standard_errors(sample, x, errors);
    fit->shape = log_interval(p.shape, errors[0]);
    fit->lemon_factor = (struct interval_estimate){1, 1, 1};
    if (sample->lemons) {
        double excess = gsl_vector_get(x, at + 1), error = errors[at + 1];
        fit->lemon_share = share_interval(gsl_vector_get(x, at), errors[at]);
        fit->lemon_factor = (struct interval_estimate){p.factor, 1 + exp(excess - 1.96 * error), 1 + exp(excess + 1.96 * error)};
        at += 2;
    }
    if (sample->bursts) {
        fit->burst_probability = share_interval(gsl_vector_get(x, at), errors[at]);
        fit->burst_hours = log_interval(p.burst_s / 3600, errors[at + 1]);
    }
}

/* --- goodness of fit --- */

static double gap_cdf(const struct kind *kind, const struct parameters *p, double gap_s)
{
    double weibull = -expm1(-pow(gap_s / kind->scale_s, kind->shape));
    return (1 - p->burst) * weibull - p->burst * expm1(-gap_s / p->burst_s);
}

static void judge_gaps(const struct sample *sample, const gsl_vector *x, struct fault_fit *fit)
{
    struct parameters p = decode(sample, x);
    struct kind kinds[2] = {kind_of(p.shape, p.mean_s, sample->horizon_s),
                            kind_of(p.shape, p.mean_s / p.factor, sample->horizon_s)};
    double *u = memory_new(sample->n_gaps, sizeof *u);
    for (int32_t i = 0; i < sample->n_nodes; i++) {
        const struct life_history *node = &sample->nodes[i];
        double ordinary = node_log_likelihood(sample, node, &kinds[0], &p);
        double lemon = node_log_likelihood(sample, node, &kinds[1], &p);
        bool sour = p.share > 0 && log(p.share) + lemon > log1p(-p.share) + ordinary;
        for (size_t j = node->begin; j < node->begin + node->n; j++) {
            double limit = gap_cdf(&kinds[sour], &p, sample->limits[j]);
            u[j] = limit > 0 ? gap_cdf(&kinds[sour], &p, sample->gaps[j]) / limit : 0;
        }
    }
    fit->n_gaps = sample->n_gaps;
    fit->ks = ks_uniform_distance(u, sample->n_gaps);
    fit->p = ks_p_value(fit->ks, sample->n_gaps);
    free(u);
}

/* Adds two parameters, starting at (logit, log), to the best fit without them. Returns whether that gains `worth` in likelihood.
 */
static bool is_better_with(struct sample *sample, gsl_vector **best, double *value, double worth, double logit, double log_size,
                           double *found)
{
    gsl_vector *more = gsl_vector_alloc((*best)->size + 2);
    for (size_t i = 0; i < (*best)->size; i++)
        gsl_vector_set(more, i, gsl_vector_get(*best, i) + (i == 0 ? 0.1 : 0));
    gsl_vector_set(more, (*best)->size, logit);
    gsl_vector_set(more, (*best)->size + 1, log_size);
    double with = maximise(sample, more);
    *found = fmin(with, maximise(sample, more)); /* once more from there: a simplex can collapse early */
    bool better = *found + worth < *value;
    if (better) {
        gsl_vector *worse = *best;
        *best = more;
        *value = *found;
        more = worse;
    }
    gsl_vector_free(more);
    return better;
}

/* How many nodes are more likely lemons than not, at x. */
static int32_t count_lemons(const struct sample *sample, const gsl_vector *x)
{
    struct parameters p = decode(sample, x);
    struct kind ordinary = kind_of(p.shape, p.mean_s, sample->horizon_s);
    struct kind lemon = kind_of(p.shape, p.mean_s / p.factor, sample->horizon_s);
    int32_t n = 0;
    for (int32_t i = 0; i < sample->n_nodes; i++) {
        const struct life_history *node = &sample->nodes[i];
        n += log(p.share) + node_log_likelihood(sample, node, &lemon, &p) >
             log1p(-p.share) + node_log_likelihood(sample, node, &ordinary, &p);
    }
    return n;
}

/* Lemons stay where their likelihood ratio and some node speak for them. */
static void fit_lemons(struct sample *sample, gsl_vector **best, double *value, struct fault_fit *fit)
{
    struct lemon_evidence *e = &fit->evidence;
    double with, plain = *value;
    e->worst_p = fit_chance_of_worst(e->worst_failures, exp(gsl_vector_get(*best, 0)), exp(gsl_vector_get(*best, 1)),
                                     sample->horizon_s, sample->n_nodes);
    gsl_vector *alike = gsl_vector_alloc((*best)->size);
    gsl_vector_memcpy(alike, *best);
    sample->lemons = true;
    bool better = is_better_with(sample, best, value, LEMONS_GAIN, log(0.02 / 0.48), log(7), &with);
    with = fmin(with, plain); /* a fleet of nodes alike is one of lemons too: of none */
    e->gain = plain - with;
    e->p = exp(-e->gain);
    e->n_lemons = better ? count_lemons(sample, *best) : 0;
    fit->lemons = sample->lemons = better && e->n_lemons > 0;
    fit->log_likelihood = -with;
    if (better && !fit->lemons) {
        gsl_vector *worse = *best;
        *best = alike;
        *value = plain;
        alike = worse;
    }
    gsl_vector_free(alike);
}

void fit_nodes(const struct fault_trace *trace, const bool *grouped, int32_t nodes, nanos horizon, struct fault_fit *fit)
{
    struct sample sample;
    fit_worst_node(trace, grouped, nodes, horizon, &fit->evidence);
    int32_t mistaken = fit->evidence.all_on_one ? fit->evidence.worst_node : -1;
    sample_read(trace, grouped, nodes, mistaken, horizon, &sample);
    double up_s = sample.horizon_s * sample.n_nodes, failures = (double)fit->n_failures, with;
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    gsl_vector *best = gsl_vector_alloc(2);
    gsl_vector_set(best, 0, log(0.8));
    gsl_vector_set(best, 1, log(up_s / failures));
    double value = maximise(&sample, best);
    fit->log_likelihood_plain = fit->log_likelihood = -value;
    if (mistaken < 0)
        fit_lemons(&sample, &best, &value, fit);
    sample.bursts = true;
    fit->bursts = sample.bursts = is_better_with(&sample, &best, &value, BURSTS_GAIN, log(0.05 / 0.45), log(6 * 3600), &with);
    fit->log_likelihood_bursts = -with;
    keep_parameters(&sample, best, fit);
    judge_gaps(&sample, best, fit);
    gsl_vector_free(best);
    gsl_set_error_handler(before);
    sample_free(&sample);
}
