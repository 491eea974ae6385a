#include "model/cost/fit/calibrate_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>

#include "model/base/memory.h"

enum { REWEIGHTINGS_MAX = 30, ITERATIONS_MAX = 60 };
#define SETTLED   1e-4 /* of z, between reweightings */
#define SCALE_MIN 1e-7 /* measurements are not better than that, and nanoseconds are not either */
#define FAR_OFF   7.0  /* |residual| of a prediction that is none: a factor of 1000 */
#define EDGE      1e-9 /* z of a value on its bound: 1e-9 of the range inside */

/* --- bounds -------------------------------------------------------------------------------------------------------- */

double calibrate_z(const struct calibrate_parameter *p, double value)
{
    double u = (value - p->low) / (p->high - p->low);
    u = fmin(fmax(u, EDGE), 1 - EDGE);
    return log(u / (1 - u));
}

double calibrate_value(const struct calibrate_parameter *p, double z)
{
    return p->low + (p->high - p->low) / (1 + exp(-z));
}

/* --- residuals ----------------------------------------------------------------------------------------------------- */

/* The times that are known by `key`, or where to put them. */
static double *known_seconds(struct calibrate_known *known, const double *key, size_t width, size_t n_rows, bool *found)
{
    size_t i = 0;
    while (i < known->n && memcmp(known->keys + i * width, key, width * sizeof *key) != 0)
        i++;
    *found = i < known->n;
    if (!*found) {
        i = known->next;
        memcpy(known->keys + i * width, key, width * sizeof *key);
        known->next = (i + 1) % CALIBRATE_KNOWN;
        known->n += known->n < CALIBRATE_KNOWN;
    }
    return known->seconds + i * n_rows;
}

/* The times at some values. */
static const double *predicted_at(const struct calibrate_fit *fit, const double *values)
{
    const struct calibrate_problem *problem = fit->problem;
    struct calibrate_predictions *all = fit->predictions;
    size_t p = problem->n_parameters;
    bool known;
    double *seconds = known_seconds(&all->whole, values, p, fit->n_rows, &known);
    if (!known) {
        problem->predict(problem->context, values, fit->rows, fit->n_rows, seconds);
        memcpy(all->last, values, p * sizeof *values);
    }
    return seconds;
}

static const double *predicted(const struct calibrate_fit *fit)
{
    return predicted_at(fit, fit->values);
}

/* What is near is from here on what is near the fit's values. */
static void come_near(const struct calibrate_fit *fit)
{
    struct calibrate_predictions *all = fit->predictions;
    memcpy(all->key, fit->values, fit->problem->n_parameters * sizeof *all->key);
}

/* The times at the fit's values, near those of come_near. */
static const double *predicted_near(const struct calibrate_fit *fit)
{
    const struct calibrate_problem *problem = fit->problem;
    struct calibrate_predictions *all = fit->predictions;
    size_t p = problem->n_parameters;
    bool known;
    if (problem->predict_near == NULL || memcmp(all->key, fit->values, p * sizeof *all->key) == 0)
        return predicted(fit);
    memcpy(all->key + p, fit->values, p * sizeof *all->key);
    double *seconds = known_seconds(&all->near, all->key, 2 * p, fit->n_rows, &known);
    if (known)
        return seconds;
    if (memcmp(all->last, all->key, p * sizeof *all->key) != 0) { /* seconds is written twice: what it was near must be last */
        problem->predict(problem->context, all->key, fit->rows, fit->n_rows, seconds);
        memcpy(all->last, all->key, p * sizeof *all->key);
    }
    problem->predict_near(problem->context, fit->values, fit->rows, fit->n_rows, seconds);
    return seconds;
}

/* log(predicted / measured) of the fit's rows, times their weights. */
static void residuals_of(const struct calibrate_fit *fit, const double *seconds, double *residuals)
{
    const struct calibrate_problem *problem = fit->problem;
    for (size_t i = 0; i < fit->n_rows; i++) {
        bool good = isfinite(seconds[i]) && seconds[i] > 0;
        double weight = problem->weights ? problem->weights[fit->rows[i]] : 1;
        residuals[i] = good ? weight * log(seconds[i] / problem->measured[fit->rows[i]]) : FAR_OFF;
    }
}

static void find_residuals(const struct calibrate_fit *fit)
{
    residuals_of(fit, predicted(fit), fit->residuals);
}

double calibrate_loss(const struct calibrate_fit *fit, const double *residuals)
{
    double sum = 0;
    for (size_t i = 0; i < fit->n_rows; i++) {
        double u = fabs(residuals[i]) / fit->scale;
        sum += u <= CALIBRATE_HUBER ? 0.5 * u * u : CALIBRATE_HUBER * (u - 0.5 * CALIBRATE_HUBER);
    }
    return sum;
}

static void set_values(struct calibrate_fit *fit, const gsl_vector *x)
{
    for (size_t j = 0; j < fit->n_active; j++) {
        size_t k = fit->active[j];
        fit->z[k] = gsl_vector_get(x, j);
        fit->values[k] = calibrate_value(&fit->problem->parameters[k], fit->z[k]);
    }
}

typedef const double *predicting(const struct calibrate_fit *fit);

/* The residuals with one parameter `by` of z further on. */
static void moved_residuals(const struct calibrate_fit *fit, size_t k, double by, predicting *predict, double *residuals)
{
    double before = fit->values[k];
    fit->values[k] = calibrate_value(&fit->problem->parameters[k], fit->z[k] + by);
    residuals_of(fit, predict(fit), residuals);
    fit->values[k] = before;
}

/* A column of the Jacobian, from `below` to `above`, which are `apart`. */
static void differences(const struct calibrate_fit *fit, size_t j, double apart, double *jacobian)
{
    for (size_t i = 0; i < fit->n_rows; i++)
        jacobian[i * fit->n_active + j] = (fit->above[i] - fit->below[i]) / apart;
}

void calibrate_slopes(struct calibrate_fit *fit, double *jacobian)
{
    find_residuals(fit);
    for (size_t j = 0; j < fit->n_active; j++) {
        moved_residuals(fit, fit->active[j], -CALIBRATE_REACH, predicted, fit->below);
        moved_residuals(fit, fit->active[j], CALIBRATE_REACH, predicted, fit->above);
        differences(fit, j, 2 * CALIBRATE_REACH, jacobian);
    }
}

/* --- GSL's view ---------------------------------------------------------------------------------------------------- */

static int gsl_residuals(const gsl_vector *x, void *params, gsl_vector *f)
{
    struct calibrate_fit *fit = params;
    set_values(fit, x);
    residuals_of(fit, predicted_near(fit), f->data);
    return GSL_SUCCESS;
}

static int gsl_jacobian(const gsl_vector *x, void *params, gsl_matrix *jacobian)
{
    struct calibrate_fit *fit = params;
    set_values(fit, x);
    residuals_of(fit, predicted_near(fit), fit->below);
    for (size_t j = 0; j < fit->n_active; j++) {
        moved_residuals(fit, fit->active[j], CALIBRATE_STEP, predicted_near, fit->above);
        differences(fit, j, CALIBRATE_STEP, jacobian->data); /* freshly allocated by GSL: rows are adjacent */
    }
    return GSL_SUCCESS;
}

static void weigh(const struct calibrate_fit *fit, gsl_vector *weights)
{
    for (size_t i = 0; i < fit->n_rows; i++) {
        double u = fabs(fit->residuals[i]) / fit->scale;
        gsl_vector_set(weights, i, u <= CALIBRATE_HUBER ? 1 : CALIBRATE_HUBER / u);
    }
}

static double scale_of(const struct calibrate_fit *fit)
{
    for (size_t i = 0; i < fit->n_rows; i++)
        fit->above[i] = fabs(fit->residuals[i]);
    gsl_sort(fit->above, 1, fit->n_rows);
    return fmax(1.4826 * gsl_stats_median_from_sorted_data(fit->above, 1, fit->n_rows), SCALE_MIN);
}

/* The largest move of a z in one step of Gauss and Newton. */
static double newton_step(const struct calibrate_fit *fit, const gsl_multifit_nlinear_workspace *workspace)
{
    size_t n = fit->n_rows, p = fit->n_active;
    gsl_matrix *jacobian = gsl_matrix_alloc(n, p);
    gsl_vector *tau = gsl_vector_alloc(p), *step = gsl_vector_alloc(p), *left = gsl_vector_alloc(n);
    double largest = 0;
    gsl_matrix_memcpy(jacobian, gsl_multifit_nlinear_jac(workspace));
    gsl_linalg_QR_decomp(jacobian, tau);
    bool solved = gsl_linalg_QR_lssolve(jacobian, tau, gsl_multifit_nlinear_residual(workspace), step, left) == GSL_SUCCESS;
    for (size_t j = 0; j < p; j++)
        largest = fmax(largest, fabs(gsl_vector_get(step, j)));
    gsl_matrix_free(jacobian);
    gsl_vector_free(tau);
    gsl_vector_free(step);
    gsl_vector_free(left);
    return solved && isfinite(largest) ? largest : INFINITY;
}

/* One weighted least-squares problem, of what is predicted near where it begins; the largest move of a z. Where a step would be
 * that small already there is none: GSL would try ever smaller ones, as predictions are whole nanoseconds. */
static double solve_weighted(struct calibrate_fit *fit, gsl_multifit_nlinear_workspace *workspace, gsl_vector *x,
                             const gsl_vector *weights)
{
    gsl_multifit_nlinear_fdf functions = {
        .f = gsl_residuals, .df = gsl_jacobian, .n = fit->n_rows, .p = fit->n_active, .params = fit};
    int info;
    double largest = 0;
    set_values(fit, x);
    come_near(fit);
    if (gsl_multifit_nlinear_winit(x, weights, &functions, workspace) == GSL_SUCCESS && newton_step(fit, workspace) >= SETTLED)
        gsl_multifit_nlinear_driver(ITERATIONS_MAX, 1e-5, 1e-9, 1e-9, NULL, NULL, &info, workspace);
    const gsl_vector *found = gsl_multifit_nlinear_position(workspace);
    for (size_t j = 0; j < fit->n_active; j++)
        largest = fmax(largest, fabs(gsl_vector_get(found, j) - gsl_vector_get(x, j)));
    gsl_vector_memcpy(x, found);
    set_values(fit, x);
    find_residuals(fit);
    return largest;
}

void calibrate_minimise(struct calibrate_fit *fit)
{
    find_residuals(fit);
    fit->scale = scale_of(fit);
    if (fit->n_active == 0)
        return;
    gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_workspace *workspace =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how, fit->n_rows, fit->n_active);
    gsl_vector *x = gsl_vector_alloc(fit->n_active), *weights = gsl_vector_alloc(fit->n_rows);
    for (size_t j = 0; j < fit->n_active; j++)
        gsl_vector_set(x, j, fit->z[fit->active[j]]);
    for (int i = 0; i < REWEIGHTINGS_MAX; i++) {
        weigh(fit, weights);
        double moved = solve_weighted(fit, workspace, x, weights);
        fit->scale = scale_of(fit);
        if (moved < SETTLED)
            break;
    }
    gsl_vector_free(weights);
    gsl_vector_free(x);
    gsl_multifit_nlinear_free(workspace);
}
