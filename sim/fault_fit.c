#include "sim/fault_fit.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multimin.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/fault_statistics.h"

#define DAY_S 86400.0
enum { SHORTEST_S = 60, LEAST_FAILURES = 5, MAX_PARAMETERS = 4 };

/* --- up times by node --------------------------------------------------------------------------------------------------------
 */

struct life_history {
    double first_s;  /* to the first failure; the horizon when there is none */
    double last_s;   /* from the last repair to the horizon; below 0: still down */
    size_t begin, n; /* of gaps */
    bool failed;
};

struct sample {
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
    node->first_s = fmax((double)faults[0].time / 1e9, 1);
    node->begin = sample->n_gaps;
    for (size_t i = 0; i < n; i++) {
        double time_s = (double)faults[i].time / 1e9, end_s = time_s + (double)faults[i].down / 1e9;
        if (i > 0)
            add_gap(sample, time_s - back_s, sample->horizon_s - back_s);
        back_s = fmax(back_s, end_s);
    }
    node->n = sample->n_gaps - node->begin;
    node->last_s = sample->horizon_s - back_s;
}

static void sample_read(const struct fault_trace *trace, int32_t nodes, nanos horizon, struct sample *sample)
{
    struct fault *sorted = memory_new(trace->n_items, sizeof *sorted);
    size_t n = 0;
    for (size_t i = 0; i < trace->n_items; i++)
        if (trace->items[i].kind == FAULT_NODE && trace->items[i].time < horizon)
            sorted[n++] = trace->items[i];
    if (n > 1)
        qsort(sorted, n, sizeof *sorted, compare_by_node); /* equal times of a node are alike here */
    *sample = (struct sample){.n_nodes = nodes,
                              .nodes = memory_new((size_t)nodes, sizeof *sample->nodes),
                              .gaps = memory_new(n, sizeof(double)),
                              .limits = memory_new(n, sizeof(double)),
                              .log_gaps = memory_new(n, sizeof(double)),
                              .horizon_s = (double)horizon / 1e9};
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

/* --- likelihood --------------------------------------------------------------------------------------------------------------
 */

/* Parameters as the simplex moves them: ln k, ln mean of an ordinary node [s], then logit share and ln (factor - 1). */
struct parameters {
    double shape, mean_s, share, factor;
};

static struct parameters decode(const gsl_vector *x)
{
    struct parameters p = {.shape = exp(gsl_vector_get(x, 0)), .mean_s = exp(gsl_vector_get(x, 1)), .factor = 1};
    if (x->size == MAX_PARAMETERS) {
        p.share = 0.5 / (1 + exp(-gsl_vector_get(x, 2))); /* lemons are the minority */
        p.factor = 1 + exp(gsl_vector_get(x, 3));
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

static double node_log_likelihood(const struct sample *sample, const struct life_history *node, const struct kind *kind)
{
    if (!node->failed)
        return kind->log_never;
    double k = kind->shape, log_scale = log(kind->scale_s), sum = -pow(node->first_s / kind->scale_s, k) - kind->log_mean;
    for (size_t i = node->begin; i < node->begin + node->n; i++) {
        double z = k * (sample->log_gaps[i] - log_scale);
        sum += log(k) - sample->log_gaps[i] + z - exp(z);
    }
    if (node->last_s > 0)
        sum -= pow(node->last_s / kind->scale_s, k);
    return sum;
}

static double log_of_mixture(double a, double b, double share)
{
    if (share <= 0)
        return a;
    double x = log1p(-share) + a, y = log(share) + b, high = fmax(x, y);
    return high + log(exp(x - high) + exp(y - high));
}

static double minus_log_likelihood(const gsl_vector *x, void *data)
{
    const struct sample *sample = data;
    struct parameters p = decode(x);
    if (p.shape < 0.05 || p.shape > 20 || p.mean_s < 1 || p.mean_s > 1e13 || p.factor > 1e5)
        return 1e18;
    struct kind ordinary = kind_of(p.shape, p.mean_s, sample->horizon_s);
    struct kind lemon = kind_of(p.shape, p.mean_s / p.factor, sample->horizon_s);
    double sum = 0;
    for (int32_t i = 0; i < sample->n_nodes; i++) {
        double a = node_log_likelihood(sample, &sample->nodes[i], &ordinary);
        double b = p.share > 0 ? node_log_likelihood(sample, &sample->nodes[i], &lemon) : 0;
        sum += log_of_mixture(a, b, p.share);
    }
    return isfinite(sum) ? -sum : 1e18;
}

static double maximise(struct sample *sample, gsl_vector *x)
{
    gsl_multimin_function f = {.f = minus_log_likelihood, .n = x->size, .params = sample};
    gsl_vector *steps = gsl_vector_alloc(x->size);
    gsl_multimin_fminimizer *simplex = gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, x->size);
    gsl_vector_set_all(steps, 0.4);
    gsl_multimin_fminimizer_set(simplex, &f, x, steps);
    for (int i = 0; i < 600; i++)
        if (gsl_multimin_fminimizer_iterate(simplex) != GSL_SUCCESS ||
            gsl_multimin_test_size(gsl_multimin_fminimizer_size(simplex), 1e-5) == GSL_SUCCESS)
            break;
    gsl_vector_memcpy(x, simplex->x);
    double value = simplex->fval;
    gsl_multimin_fminimizer_free(simplex);
    gsl_vector_free(steps);
    return value;
}

/* Standard errors of the parameters: the diagonal of the inverse of the second derivatives; 0 where that says nothing. */
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

static double share_of(double logit)
{
    return 0.5 / (1 + exp(-logit));
}

static void keep_parameters(struct sample *sample, const gsl_vector *x, struct fault_fit *fit)
{
    double errors[MAX_PARAMETERS] = {0};
    struct parameters p = decode(x);
    standard_errors(sample, x, errors);
    fit->shape = log_interval(p.shape, errors[0]);
    fit->lemon_factor = (struct interval_estimate){1, 1, 1};
    if (x->size == MAX_PARAMETERS) {
        double logit = gsl_vector_get(x, 2), excess = gsl_vector_get(x, 3);
        fit->lemon_share =
            (struct interval_estimate){p.share, share_of(logit - 1.96 * errors[2]), share_of(logit + 1.96 * errors[2])};
        fit->lemon_factor =
            (struct interval_estimate){p.factor, 1 + exp(excess - 1.96 * errors[3]), 1 + exp(excess + 1.96 * errors[3])};
    }
}

/* --- goodness of fit ---------------------------------------------------------------------------------------------------------
 */

double ks_p_value(double distance, size_t n)
{
    double root = sqrt((double)n), t = (root + 0.12 + 0.11 / root) * distance, sum = 0;
    if (n == 0 || t < 0.2)
        return 1;
    for (int j = 1; j <= 100; j++)
        sum += (j % 2 ? 2 : -2) * exp(-2.0 * j * j * t * t);
    return fmin(fmax(sum, 0), 1);
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Distance of numbers from the uniform distribution; sorts them. */
static double uniform_distance(double *u, size_t n)
{
    double distance = 0;
    if (n > 1)
        qsort(u, n, sizeof *u, compare_doubles);
    for (size_t i = 0; i < n; i++)
        distance = fmax(distance, fmax(u[i] - (double)i / (double)n, (double)(i + 1) / (double)n - u[i]));
    return distance;
}

static void judge_gaps(const struct sample *sample, const gsl_vector *x, struct fault_fit *fit)
{
    struct parameters p = decode(x);
    struct kind kinds[2] = {kind_of(p.shape, p.mean_s, sample->horizon_s),
                            kind_of(p.shape, p.mean_s / p.factor, sample->horizon_s)};
    double *u = memory_new(sample->n_gaps, sizeof *u);
    for (int32_t i = 0; i < sample->n_nodes; i++) {
        const struct life_history *node = &sample->nodes[i];
        double ordinary = node_log_likelihood(sample, node, &kinds[0]), lemon = node_log_likelihood(sample, node, &kinds[1]);
        bool sour = p.share > 0 && log(p.share) + lemon > log1p(-p.share) + ordinary;
        for (size_t j = node->begin; j < node->begin + node->n; j++) {
            double x_cdf = -expm1(-pow(sample->gaps[j] / kinds[sour].scale_s, p.shape));
            double limit = -expm1(-pow(sample->limits[j] / kinds[sour].scale_s, p.shape));
            u[j] = limit > 0 ? x_cdf / limit : 0;
        }
    }
    fit->n_gaps = sample->n_gaps;
    fit->ks = uniform_distance(u, sample->n_gaps);
    fit->p = ks_p_value(fit->ks, sample->n_gaps);
    free(u);
}

static void fit_nodes(struct sample *sample, struct fault_fit *fit)
{
    double up_s = sample->horizon_s * sample->n_nodes, failures = (double)fit->n_failures;
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    gsl_vector *plain = gsl_vector_alloc(2), *mixed = gsl_vector_alloc(MAX_PARAMETERS);
    gsl_vector_set(plain, 0, log(0.8));
    gsl_vector_set(plain, 1, log(up_s / failures));
    double without = maximise(sample, plain);
    gsl_vector_set(mixed, 0, gsl_vector_get(plain, 0) + 0.1);
    gsl_vector_set(mixed, 1, gsl_vector_get(plain, 1));
    gsl_vector_set(mixed, 2, log(0.02 / 0.48));
    gsl_vector_set(mixed, 3, log(7));
    double with = maximise(sample, mixed);
    with = fmin(with, maximise(sample, mixed)); /* once more from there: a simplex can fold up early */
    fit->log_likelihood = -with;
    fit->log_likelihood_plain = -without;
    fit->lemons = with + 2 < without; /* Akaike: two parameters more */
    const gsl_vector *best = fit->lemons ? mixed : plain;
    keep_parameters(sample, best, fit);
    judge_gaps(sample, best, fit);
    gsl_vector_free(plain);
    gsl_vector_free(mixed);
    gsl_set_error_handler(before);
}

/* --- causes, repairs, slow things ---------------------------------------------------------------------------------------------
 */

static enum repair_kind repair_of_component(enum component component)
{
    switch (component) {
    case COMPONENT_NIC:
    case COMPONENT_LINK:
    case COMPONENT_SWITCH: return REPAIR_NETWORK;
    case COMPONENT_SOFTWARE: return REPAIR_SOFTWARE;
    case COMPONENT_POWER: return REPAIR_FACILITY;
    default: return REPAIR_HARDWARE;
    }
}

static void keep_cause(struct fault_causes *causes, const char *name, size_t n, size_t n_empty)
{
    enum component component = component_of_text(name);
    int at = causes->n < MAX_CAUSES ? causes->n++ : MAX_CAUSES - 1; /* the rest shares the last row */
    struct fault_cause *cause = &causes->items[at];
    snprintf(cause->name, sizeof cause->name, "%s", *name ? name : "unknown");
    cause->component = (int)component;
    cause->repair = 2 * n_empty > n ? REPAIR_NONE : (int)repair_of_component(component);
    cause->weight += (double)n;
}

static void fit_causes(const struct fault_trace *trace, struct fault_model *model)
{
    size_t n = trace->n_details + 1;
    size_t *counts = memory_new(2 * n, sizeof *counts);
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        size_t at = fault->detail < 0 ? n - 1 : (size_t)fault->detail;
        if (fault->kind == FAULT_NODE) {
            counts[2 * at]++;
            counts[2 * at + 1] += fault->down == 0;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (counts[2 * i] > 0)
            keep_cause(&model->causes, i + 1 < n ? trace->details[i] : "", counts[2 * i], counts[2 * i + 1]);
    free(counts);
}

static double log_moments(const double *x, size_t n, double *deviation)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    *deviation = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    return mean;
}

static void fit_repair(const struct fault_trace *trace, enum repair_kind kind, struct fault_fit *fit)
{
    double *x = memory_new(trace->n_items, sizeof *x), sigma;
    struct repair_goodness *goodness = &fit->repairs[kind];
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        if (fault->kind == FAULT_NODE && fault->down > 0 &&
            repair_of_component(component_of_text(fault_trace_detail(trace, fault))) == kind)
            x[goodness->n++] = log((double)fault->down / 3600e9);
    }
    double n = (double)goodness->n, mu = log_moments(x, goodness->n, &sigma);
    if (goodness->n >= LEAST_FAILURES && sigma > 0) {
        double t = gsl_cdf_tdist_Pinv(0.975, n - 1) * sigma / sqrt(n);
        goodness->mu = (struct interval_estimate){mu, mu - t, mu + t};
        goodness->sigma = (struct interval_estimate){sigma, sigma * sqrt((n - 1) / gsl_cdf_chisq_Pinv(0.975, n - 1)),
                                                     sigma * sqrt((n - 1) / gsl_cdf_chisq_Pinv(0.025, n - 1))};
        fit->model.repairs[kind] = (struct repair_time){mu, sigma};
        for (size_t i = 0; i < goodness->n; i++)
            x[i] = gsl_cdf_ugaussian_P((x[i] - mu) / sigma);
        goodness->ks = uniform_distance(x, goodness->n);
        goodness->p = ks_p_value(goodness->ks, goodness->n);
    } else {
        goodness->n = 0;
    }
    free(x);
}

static void fit_slow(const struct fault_trace *trace, enum fault_kind kind, double node_days, struct fault_model *model)
{
    double *x = memory_new(trace->n_items, sizeof *x), factor = 0, sigma;
    size_t n = 0;
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        if (fault->kind != kind || fault->down <= 0)
            continue;
        x[n++] = log((double)fault->down / 1e9);
        factor += (double)fault->speed / FULL_SPEED;
    }
    if (n > 0 && model->slow.n < MAX_SLOW) {
        struct fault_slow *slow = &model->slow.items[model->slow.n++];
        snprintf(slow->name, sizeof slow->name, "%s", fault_kind_name(kind));
        slow->kind = kind == FAULT_LINK;
        slow->rate = (double)n / node_days;
        slow->factor = fmax(factor / (double)n, 1e-6);
        slow->median_s = exp(log_moments(x, n, &sigma));
        slow->sigma = sigma;
    }
    free(x);
}

/* --- the whole ---------------------------------------------------------------------------------------------------------------
 */

static void fit_rate(const struct fault_trace *trace, int32_t nodes, nanos horizon, struct fault_fit *fit)
{
    double down_s = 0, n = (double)fit->n_failures;
    size_t together = 0;
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        if (fault->kind != FAULT_NODE)
            continue;
        nanos end = fault->time + fault->down < horizon ? fault->time + fault->down : horizon;
        down_s += end > fault->time ? (double)(end - fault->time) / 1e9 : 0;
        bool same =
            (i > 0 && trace->items[i - 1].time == fault->time && trace->items[i - 1].node != fault->node) ||
            (i + 1 < trace->n_items && trace->items[i + 1].time == fault->time && trace->items[i + 1].node != fault->node);
        together += same;
    }
    struct fault_statistics statistics;
    fault_statistics(trace, nodes, horizon, &statistics);
    double spread = sqrt(fmax(1, statistics.variance_to_mean));
    fault_statistics_free(&statistics);
    double days = fmax((double)horizon / 1e9 * nodes - down_s, 1) / DAY_S;
    double low = gsl_cdf_chisq_Pinv(0.025, 2 * n) / 2, high = gsl_cdf_chisq_Pinv(0.975, 2 * n + 2) / 2;
    fit->rate = (struct interval_estimate){n / days, fmax(n - (n - low) * spread, 0) / days, (n + (high - n) * spread) / days};
    fit->simultaneous = (double)together / n;
}

enum status fault_fit(const struct fault_trace *trace, const char *name, int32_t nodes, nanos horizon, struct fault_fit *fit,
                      struct diags *diags)
{
    struct fault_fit *f = memory_new(1, sizeof *f);
    struct sample sample;
    for (size_t i = 0; i < trace->n_items; i++)
        f->n_failures += trace->items[i].kind == FAULT_NODE && trace->items[i].time < horizon;
    if (f->n_failures < LEAST_FAILURES) {
        diag_error(diags, (struct place){.file = name}, "%zu failures are too few to fit; %d are needed", f->n_failures,
                   LEAST_FAILURES);
        free(f);
        return STATUS_BAD_INPUT;
    }
    sample_read(trace, nodes, horizon, &sample);
    fit_nodes(&sample, f);
    sample_free(&sample);
    fit_rate(trace, nodes, horizon, f);
    struct fault_model *model = &f->model;
    const char *slash = strrchr(name, '/');
    snprintf(model->name, sizeof model->name, "%.40s", slash ? slash + 1 : name);
    snprintf(model->source, sizeof model->source, "fitted to %zu failures of %.200s", f->n_failures, slash ? slash + 1 : name);
    model->rate = f->rate.value;
    model->shape = f->shape.value;
    model->lemon_share = f->lemon_share.value;
    model->lemon_factor = f->lemon_factor.value;
    model->nodes = nodes;
    model->gpus_per_node = 8;
    model->days = (double)horizon / 1e9 / DAY_S;
    fit_causes(trace, model);
    for (int kind = REPAIR_HARDWARE; kind < REPAIR_REBOOT; kind++)
        fit_repair(trace, (enum repair_kind)kind, f);
    fit_slow(trace, FAULT_STRAGGLER, nodes * model->days, model);
    fit_slow(trace, FAULT_LINK, nodes * model->days, model);
    *fit = *f;
    free(f);
    return STATUS_OK;
}
