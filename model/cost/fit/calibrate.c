#include "model/cost/fit/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>

#include "model/base/memory.h"
#include "model/cost/fit/calibrate_fit.h"

#define PROBE       1.0  /* of z: how far a parameter is moved to see which rows it touches */
#define COLLINEAR   1e-3 /* smallest singular value over the largest */
#define VAGUE       1.0  /* standard error of z */
#define START_ABOVE 1e-3 /* of the range, above the lower bound: where a parameter starts whose start is that bound */
#define START_BELOW 1e-2 /* below the upper one */
#define INVOLVED    0.5  /* in a combination: a part at least this much of the largest */
#define LEAST_ERROR 1e-9 /* of z, that a standard error is taken to be: exact rows leave none */

const char *calibrate_outcome_name(enum calibrate_outcome outcome)
{
    static const char *const names[] = {
        [CALIBRATE_FITTED] = "fitted",        [CALIBRATE_AT_BOUND] = "at_bound",   [CALIBRATE_NO_INFLUENCE] = "no_influence",
        [CALIBRATE_TOO_FEW] = "too_few_rows", [CALIBRATE_COLLINEAR] = "collinear", [CALIBRATE_UNDETERMINED] = "undetermined",
    };
    return names[outcome];
}

/* --- which rows a parameter touches ---------------------------------------------------------------------------------- */

struct influence {
    bool *touches;  /* [n_parameters][n_rows] */
    size_t *leader; /* [n_parameters] of the parameters that rows connect, the first one */
};

/* A start on a bound is moved inside, where a step can tell it from the bound. */
static double inside(const struct calibrate_parameter *p)
{
    double range = p->high - p->low, value = fmin(fmax(p->start, p->low), p->high);
    if (value - p->low < 1e-8 * range)
        return p->low + START_ABOVE * range;
    return p->high - value < 1e-8 * range ? p->high - START_BELOW * range : value;
}

static void probe(const struct calibrate_problem *problem, double *values, const size_t *rows, const double *base, double *moved,
                  size_t k, bool *touches)
{
    double start = values[k], z = calibrate_z(&problem->parameters[k], start);
    for (int side = -1; side <= 1; side += 2) {
        values[k] = calibrate_value(&problem->parameters[k], z + side * PROBE);
        problem->predict(problem->context, values, rows, problem->n_rows, moved);
        for (size_t i = 0; i < problem->n_rows; i++)
            touches[i] |= moved[i] < base[i] || moved[i] > base[i];
    }
    values[k] = start;
}

static void connect(struct influence *influence, size_t n_parameters, size_t n_rows)
{
    for (size_t k = 0; k < n_parameters; k++)
        influence->leader[k] = k;
    for (size_t i = 0; i < n_rows; i++) {
        size_t first = n_parameters;
        for (size_t k = 0; k < n_parameters; k++) {
            if (!influence->touches[k * n_rows + i])
                continue;
            if (first == n_parameters) {
                first = influence->leader[k];
                continue;
            }
            size_t a = influence->leader[k], low = a < first ? a : first, high = a < first ? first : a;
            for (size_t j = 0; j < n_parameters && low != high; j++)
                if (influence->leader[j] == high)
                    influence->leader[j] = low;
            first = low;
        }
    }
}

static struct influence influence_of(const struct calibrate_problem *problem, double *values, const size_t *all_rows)
{
    size_t n = problem->n_rows, p = problem->n_parameters;
    struct influence influence = {.touches = memory_new(n * p, sizeof(bool)), .leader = memory_new(p, sizeof(size_t))};
    double *base = memory_new(n, sizeof *base), *moved = memory_new(n, sizeof *moved);
    problem->predict(problem->context, values, all_rows, n, base);
    for (size_t k = 0; k < p; k++)
        probe(problem, values, all_rows, base, moved, k, influence.touches + k * n);
    free(base);
    free(moved);
    connect(&influence, p, n);
    return influence;
}

/* --- what the rows can tell ------------------------------------------------------------------------------------------ */

static int compare_cases(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static size_t count_cases(const struct calibrate_problem *problem, const size_t *rows, size_t n_rows)
{
    uint64_t *cases = memory_new(n_rows, sizeof *cases);
    for (size_t i = 0; i < n_rows; i++)
        cases[i] = problem->cases[rows[i]];
    qsort(cases, n_rows, sizeof *cases, compare_cases); /* equal ones are interchangeable */
    size_t n = n_rows > 0;
    for (size_t i = 1; i < n_rows; i++)
        n += cases[i] != cases[i - 1];
    free(cases);
    return n;
}

static double column_norm(const double *jacobian, size_t n, size_t p, size_t j)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += jacobian[i * p + j] * jacobian[i * p + j];
    return sqrt(sum);
}

/* d z / d log x */
static double z_per_log(const struct calibrate_parameter *p, double x)
{
    return fabs(x) * (p->high - p->low) / fmax((x - p->low) * (p->high - x), 1e-300);
}

static double sensitivity_of(const struct calibrate_fit *fit, const double *jacobian, size_t j)
{
    size_t k = fit->active[j];
    return column_norm(jacobian, fit->n_rows, fit->n_active, j) / sqrt((double)fit->n_rows) *
           z_per_log(&fit->problem->parameters[k], fit->values[k]);
}

/* Singular values and right vectors of the Jacobian with columns of one length. */
static gsl_matrix *scaled_svd(const struct calibrate_fit *fit, const double *jacobian, gsl_vector *singular)
{
    size_t n = fit->n_rows, p = fit->n_active;
    gsl_matrix *a = gsl_matrix_alloc(n, p), *v = gsl_matrix_alloc(p, p);
    gsl_vector *work = gsl_vector_alloc(p);
    for (size_t j = 0; j < p; j++) {
        double norm = column_norm(jacobian, n, p, j);
        for (size_t i = 0; i < n; i++)
            gsl_matrix_set(a, i, j, norm > 0 ? jacobian[i * p + j] / norm : 0);
    }
    gsl_linalg_SV_decomp(a, v, singular, work);
    gsl_matrix_free(a);
    gsl_vector_free(work);
    return v;
}

/* A parameter to hold because its column is a combination of others; n_active when all are independent. */
static size_t find_collinear(const struct calibrate_fit *fit, const double *jacobian, struct calibrate_estimate *estimates)
{
    size_t p = fit->n_active;
    gsl_vector *singular = gsl_vector_alloc(p);
    gsl_matrix *v = scaled_svd(fit, jacobian, singular);
    size_t held = p, with = p;
    double largest = 0, strongest = -1;
    if (gsl_vector_get(singular, p - 1) < COLLINEAR * gsl_vector_get(singular, 0)) {
        for (size_t j = 0; j < p; j++)
            largest = fmax(largest, fabs(gsl_matrix_get(v, j, p - 1)));
        for (size_t j = 0; j < p; j++)
            if (fabs(gsl_matrix_get(v, j, p - 1)) >= INVOLVED * largest)
                held = j;
        for (size_t j = 0; j < p; j++) {
            double part = fabs(gsl_matrix_get(v, j, p - 1));
            if (j != held && part > strongest) {
                strongest = part;
                with = j;
            }
        }
        if (with < p)
            estimates[fit->active[held]].with = fit->active[with];
    }
    gsl_matrix_free(v);
    gsl_vector_free(singular);
    return held;
}

/* Inverse of a symmetric matrix whose diagonal is one, made invertible by a ridge that limits errors to about 1e5 times those of
 * independent columns. */
static void invert_scaled(gsl_matrix *h)
{
    for (size_t j = 0; j < h->size1; j++)
        *gsl_matrix_ptr(h, j, j) += 1e-10;
    if (gsl_linalg_cholesky_decomp1(h) != 0 || gsl_linalg_cholesky_invert(h) != 0)
        gsl_matrix_set_identity(h);
}

/* Standard errors of z by the sandwich H^-1 M H^-1 with H = sum psi' JJ', M = sum (psi s)^2 JJ'; infinite where a column is zero.
 * Columns are scaled to one length on the way. */
static void standard_errors(const struct calibrate_fit *fit, const double *jacobian, double *errors)
{
    size_t n = fit->n_rows, p = fit->n_active;
    double norms[CALIBRATE_ACTIVE_MAX], limit = CALIBRATE_HUBER * fit->scale,
                                        correction = n > p ? (double)n / (double)(n - p) : INFINITY;
    gsl_matrix *h = gsl_matrix_calloc(p, p), *m = gsl_matrix_calloc(p, p);
    for (size_t j = 0; j < p; j++)
        norms[j] = fmax(column_norm(jacobian, n, p, j), 1e-300);
    for (size_t i = 0; i < n; i++) {
        double r = fit->residuals[i], psi = fmin(fmax(r, -limit), limit), slope = fabs(r) <= limit;
        for (size_t j = 0; j < p; j++)
            for (size_t k = 0; k < p; k++) {
                double product = jacobian[i * p + j] / norms[j] * (jacobian[i * p + k] / norms[k]);
                *gsl_matrix_ptr(h, j, k) += slope * product;
                *gsl_matrix_ptr(m, j, k) += psi * psi * product;
            }
    }
    invert_scaled(h);
    for (size_t j = 0; j < p; j++) {
        double sum = 0;
        for (size_t a = 0; a < p; a++)
            for (size_t b = 0; b < p; b++)
                sum += gsl_matrix_get(h, j, a) * gsl_matrix_get(m, a, b) * gsl_matrix_get(h, b, j);
        errors[j] = sqrt(fmax(sum, 0) * correction) / norms[j];
    }
    gsl_matrix_free(h);
    gsl_matrix_free(m);
}

/* --- holding --------------------------------------------------------------------------------------------------------- */

static void deactivate(struct calibrate_fit *fit, size_t j)
{
    for (size_t i = j; i + 1 < fit->n_active; i++)
        fit->active[i] = fit->active[i + 1];
    fit->n_active--;
}

static void hold(struct calibrate_fit *fit, size_t j, double value, enum calibrate_outcome outcome,
                 struct calibrate_estimate *estimates)
{
    size_t k = fit->active[j];
    fit->values[k] = value;
    estimates[k].outcome = outcome;
    estimates[k].value = estimates[k].low = estimates[k].high = value;
    deactivate(fit, j);
}

/* The loss with a parameter at a value and the others fitted anew: they may make up for it. */
static double profile_loss(struct calibrate_fit *fit, size_t j, double value)
{
    struct calibrate_fit others = *fit;
    size_t n_parameters = fit->problem->n_parameters, k = fit->active[j];
    others.values = memory_new(n_parameters, sizeof *others.values);
    others.z = memory_new(n_parameters, sizeof *others.z);
    others.residuals = memory_new(fit->n_rows, sizeof *others.residuals);
    memcpy(others.values, fit->values, n_parameters * sizeof *others.values);
    memcpy(others.z, fit->z, n_parameters * sizeof *others.z);
    others.values[k] = value;
    deactivate(&others, j);
    calibrate_minimise(&others);
    double loss = calibrate_loss(fit, others.residuals);
    free(others.values);
    free(others.z);
    free(others.residuals);
    return loss;
}

/* How much more loss is none: half the 95 % quantile of F with one and n - p degrees of freedom, in units of the residuals'
 * variance by Huber's second proposal. The median that the fit's scale rests on is too rough where rows are few. */
static double loss_margin(const struct calibrate_fit *fit)
{
    double expected = 0.7102, sum = 0; /* of psi^2 under normal errors of variance 1 */
    size_t n = fit->n_rows, p = fit->n_active;
    for (size_t i = 0; i < n; i++)
        sum += pow(fmin(fabs(fit->residuals[i]) / fit->scale, CALIBRATE_HUBER), 2);
    double freedom = n > p ? (double)(n - p) : 1, variance = sum / (freedom * expected);
    return 0.5 * gsl_cdf_fdist_Pinv(0.95, 1, freedom) * fmax(variance, 1);
}

/* A parameter whose error is so large that its start or one of its bounds does as well is put there. True when it was. */
static bool settle_vague(struct calibrate_fit *fit, size_t j, struct calibrate_estimate *estimates)
{
    size_t k = fit->active[j];
    const struct calibrate_parameter *p = &fit->problem->parameters[k];
    double limit = calibrate_loss(fit, fit->residuals) + loss_margin(fit), near = fit->z[k] < 0 ? p->low : p->high;
    double places[] = {p->start, near, p->low + p->high - near};
    for (int i = 0; i < 3; i++) {
        if (profile_loss(fit, j, places[i]) > limit)
            continue;
        bool bound = places[i] <= p->low || places[i] >= p->high;
        hold(fit, j, places[i], bound ? CALIBRATE_AT_BOUND : CALIBRATE_UNDETERMINED, estimates);
        return true;
    }
    return false;
}

/* Settle the vaguest of those that can be. */
static bool settle_one(struct calibrate_fit *fit, const double *errors, struct calibrate_estimate *estimates)
{
    bool tried[CALIBRATE_ACTIVE_MAX] = {false};
    for (size_t round = 0; round < fit->n_active; round++) {
        size_t worst = fit->n_active;
        for (size_t j = 0; j < fit->n_active; j++)
            if (!tried[j] && errors[j] > VAGUE && (worst == fit->n_active || errors[j] > errors[worst]))
                worst = j;
        if (worst == fit->n_active)
            return false;
        tried[worst] = true;
        if (settle_vague(fit, worst, estimates))
            return true;
    }
    return false;
}

/* Hold the one parameter that the rows tell least about; false when all are determined. First those that would be vague if all
 * others were known, then a collinear one, then those that are vague because of the others. */
static bool hold_one(struct calibrate_fit *fit, struct calibrate_estimate *estimates)
{
    size_t p = fit->n_active;
    double *jacobian = memory_new(fit->n_rows * p, sizeof *jacobian), alone[CALIBRATE_ACTIVE_MAX], together[CALIBRATE_ACTIVE_MAX];
    calibrate_slopes(fit, jacobian);
    standard_errors(fit, jacobian, together);
    for (size_t j = 0; j < p; j++)
        alone[j] = fit->scale / fmax(column_norm(jacobian, fit->n_rows, p, j), 1e-300);
    bool held = settle_one(fit, alone, estimates);
    size_t collinear = held ? p : find_collinear(fit, jacobian, estimates);
    if (collinear < p) {
        size_t k = fit->active[collinear];
        hold(fit, collinear, fit->problem->parameters[k].start, CALIBRATE_COLLINEAR, estimates);
        held = true;
    }
    held = held || settle_one(fit, together, estimates);
    free(jacobian);
    return held;
}

/* --- one component --------------------------------------------------------------------------------------------------- */

static void report(struct calibrate_fit *fit, struct calibrate_estimate *estimates)
{
    size_t p = fit->n_active;
    if (p == 0)
        return;
    double *jacobian = memory_new(fit->n_rows * p, sizeof *jacobian), errors[CALIBRATE_ACTIVE_MAX];
    calibrate_slopes(fit, jacobian);
    standard_errors(fit, jacobian, errors);
    double quantile = fit->n_rows > p ? gsl_cdf_tdist_Pinv(0.975, (double)(fit->n_rows - p)) : INFINITY;
    for (size_t j = 0; j < p; j++) {
        size_t k = fit->active[j];
        const struct calibrate_parameter *parameter = &fit->problem->parameters[k];
        struct calibrate_estimate *e = &estimates[k];
        e->outcome = CALIBRATE_FITTED;
        e->value = fit->values[k];
        e->low = calibrate_value(parameter, fit->z[k] - quantile * errors[j]);
        e->high = calibrate_value(parameter, fit->z[k] + quantile * errors[j]);
        e->moved = fabs(fit->z[k] - calibrate_z(parameter, inside(parameter))) / fmax(errors[j], LEAST_ERROR);
        e->sensitivity = sensitivity_of(fit, jacobian, j);
    }
    free(jacobian);
}

static void hold_all(struct calibrate_fit *fit, enum calibrate_outcome outcome, struct calibrate_estimate *estimates)
{
    while (fit->n_active > 0)
        hold(fit, 0, fit->problem->parameters[fit->active[0]].start, outcome, estimates);
}

/* Where starts are bounds, the others are fitted first and the bounds released then: a step far away from a bound must do better
 * than the best on it. */
static void fit_from_bounds(struct calibrate_fit *fit)
{
    struct calibrate_fit first = *fit;
    const struct calibrate_parameter *parameters = fit->problem->parameters;
    first.n_active = 0;
    for (size_t j = 0; j < fit->n_active; j++) {
        size_t k = fit->active[j];
        bool moved = fabs(fit->values[k] - parameters[k].start) > 0;
        fit->z[k] = calibrate_z(&parameters[k], fit->values[k]);
        fit->values[k] = moved ? parameters[k].start : fit->values[k];
        if (!moved)
            first.active[first.n_active++] = k;
    }
    if (first.n_active > 0 && first.n_active < fit->n_active)
        calibrate_minimise(&first);
    for (size_t j = 0; j < fit->n_active; j++) {
        size_t k = fit->active[j];
        if (fabs(parameters[k].start - inside(&parameters[k])) > 0)
            fit->values[k] = inside(&parameters[k]);
    }
}

static struct calibrate_known known_create(size_t width, size_t n_rows)
{
    return (struct calibrate_known){.keys = memory_new(CALIBRATE_KNOWN * width, sizeof(double)),
                                    .seconds = memory_new(CALIBRATE_KNOWN * n_rows, sizeof(double))};
}

static struct calibrate_predictions predictions_create(const struct calibrate_fit *fit)
{
    size_t p = fit->problem->n_parameters;
    return (struct calibrate_predictions){
        .whole = known_create(p, fit->n_rows),
        .near = fit->problem->predict_near != NULL ? known_create(2 * p, fit->n_rows) : (struct calibrate_known){.n = 0},
        .last = memory_new(p, sizeof(double)),
        .key = memory_new(2 * p, sizeof(double)),
    };
}

static void predictions_free(struct calibrate_predictions *predictions)
{
    free(predictions->whole.keys);
    free(predictions->whole.seconds);
    free(predictions->near.keys);
    free(predictions->near.seconds);
    free(predictions->last);
    free(predictions->key);
}

static void fit_component(struct calibrate_fit *fit, struct calibrate_estimate *estimates)
{
    size_t n_cases = count_cases(fit->problem, fit->rows, fit->n_rows);
    for (size_t j = 0; j < fit->n_active; j++) {
        estimates[fit->active[j]].n_rows = fit->n_rows;
        estimates[fit->active[j]].n_cases = n_cases;
    }
    if (n_cases <= fit->n_active) {
        hold_all(fit, fit->n_rows ? CALIBRATE_TOO_FEW : CALIBRATE_NO_INFLUENCE, estimates);
        return;
    }
    fit->residuals = memory_new(fit->n_rows, sizeof *fit->residuals);
    fit->below = memory_new(fit->n_rows, sizeof *fit->below);
    fit->above = memory_new(fit->n_rows, sizeof *fit->above);
    struct calibrate_predictions predictions = predictions_create(fit);
    fit->predictions = &predictions;
    fit_from_bounds(fit);
    do {
        for (size_t j = 0; j < fit->n_active; j++)
            fit->z[fit->active[j]] = calibrate_z(&fit->problem->parameters[fit->active[j]], fit->values[fit->active[j]]);
        calibrate_minimise(fit);
    } while (fit->n_active > 0 && hold_one(fit, estimates));
    report(fit, estimates);
    predictions_free(&predictions);
    free(fit->residuals);
    free(fit->below);
    free(fit->above);
}

/* The rows that any parameter of a component touches. */
static size_t component_rows(const struct calibrate_problem *problem, const struct influence *influence, size_t leader,
                             size_t *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < problem->n_rows; i++) {
        bool touched = false;
        for (size_t k = leader; k < problem->n_parameters && !touched; k++)
            touched = influence->leader[k] == leader && influence->touches[k * problem->n_rows + i];
        if (touched)
            rows[n++] = i;
    }
    return n;
}

bool calibrate_fit(const struct calibrate_problem *problem, struct calibrate_estimate *estimates)
{
    size_t n = problem->n_rows, p = problem->n_parameters;
    size_t *rows = memory_new(n, sizeof *rows);
    double *values = memory_new(p, sizeof *values), *z = memory_new(p, sizeof *z);
    bool any = false;
    gsl_error_handler_t *handler = gsl_set_error_handler_off(); /* which would end the process over a singular matrix */
    for (size_t i = 0; i < n; i++)
        rows[i] = i;
    for (size_t k = 0; k < p; k++) {
        values[k] = inside(&problem->parameters[k]);
        double start = problem->parameters[k].start;
        estimates[k] = (struct calibrate_estimate){
            .value = start, .low = start, .high = start, .outcome = CALIBRATE_NO_INFLUENCE, .with = p};
    }
    struct influence influence = influence_of(problem, values, rows);
    for (size_t leader = 0; leader < p; leader++) {
        if (influence.leader[leader] != leader)
            continue;
        struct calibrate_fit fit = {.problem = problem, .rows = rows, .values = values, .z = z};
        fit.n_rows = component_rows(problem, &influence, leader, rows);
        for (size_t k = leader; k < p && fit.n_active < CALIBRATE_ACTIVE_MAX; k++)
            if (influence.leader[k] == leader)
                fit.active[fit.n_active++] = k;
        fit_component(&fit, estimates);
    }
    for (size_t k = 0; k < p; k++)
        any |= estimates[k].outcome <= CALIBRATE_AT_BOUND;
    gsl_set_error_handler(handler);
    free(influence.touches);
    free(influence.leader);
    free(values);
    free(z);
    free(rows);
    return any;
}
