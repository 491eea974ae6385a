#include "model/cost/calibrate_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_errno.h>
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

/* The times at the fit's values, predicted if they are not known. */
static const double *predicted(const struct calibrate_fit *fit)
{
    const struct calibrate_problem *problem = fit->problem;
    struct calibrate_known *known = fit->known;
    size_t p = problem->n_parameters;

    for (size_t i = 0; i < known->n; i++)
        if (memcmp(known->values + i * p, fit->values, p * sizeof *fit->values) == 0)
            return known->seconds + i * fit->n_rows;
    double *seconds = known->seconds + known->next * fit->n_rows;
    memcpy(known->values + known->next * p, fit->values, p * sizeof *fit->values);
    problem->predict(problem->context, fit->values, fit->rows, fit->n_rows, seconds);
    known->next = (known->next + 1) % CALIBRATE_KNOWN;
    known->n += known->n < CALIBRATE_KNOWN;
    return seconds;
}

/* log(predicted / measured) of the fit's rows at its values. */
static void find_residuals(const struct calibrate_fit *fit, double *residuals)
{
    const struct calibrate_problem *problem = fit->problem;
    const double *seconds = predicted(fit);
    for (size_t i = 0; i < fit->n_rows; i++) {
        bool good = isfinite(seconds[i]) && seconds[i] > 0;
        residuals[i] = good ? log(seconds[i] / problem->measured[fit->rows[i]]) : FAR_OFF;
    }
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

/* The residuals with one parameter `by` of z further on; not moved they are those of the fit. */
static const double *moved_residuals(struct calibrate_fit *fit, size_t k, double by)
{
    double before = fit->values[k];
    if (by == 0)
        return fit->residuals;
    fit->values[k] = calibrate_value(&fit->problem->parameters[k], fit->z[k] + by);
    find_residuals(fit, fit->scratch);
    fit->values[k] = before;
    return fit->scratch;
}

/* Differences between z + below and z + above, over how far these are apart. */
static void differences(struct calibrate_fit *fit, double below, double above, double *jacobian)
{
    size_t p = fit->n_active;
    find_residuals(fit, fit->residuals);
    for (size_t j = 0; j < p; j++) {
        const double *moved = moved_residuals(fit, fit->active[j], below);
        for (size_t i = 0; i < fit->n_rows; i++)
            jacobian[i * p + j] = moved[i];
        moved = moved_residuals(fit, fit->active[j], above);
        for (size_t i = 0; i < fit->n_rows; i++)
            jacobian[i * p + j] = (moved[i] - jacobian[i * p + j]) / (above - below);
    }
}

void calibrate_jacobian(struct calibrate_fit *fit, double *jacobian)
{
    differences(fit, 0, CALIBRATE_STEP, jacobian);
}

void calibrate_slopes(struct calibrate_fit *fit, double *jacobian)
{
    differences(fit, -CALIBRATE_REACH, CALIBRATE_REACH, jacobian);
}

/* --- GSL's view ---------------------------------------------------------------------------------------------------- */

static int gsl_residuals(const gsl_vector *x, void *params, gsl_vector *f)
{
    struct calibrate_fit *fit = params;
    set_values(fit, x);
    find_residuals(fit, f->data);
    return GSL_SUCCESS;
}

static int gsl_jacobian(const gsl_vector *x, void *params, gsl_matrix *jacobian)
{
    struct calibrate_fit *fit = params;
    set_values(fit, x);
    calibrate_jacobian(fit, jacobian->data); /* freshly allocated by GSL: rows are adjacent */
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
        fit->scratch[i] = fabs(fit->residuals[i]);
    gsl_sort(fit->scratch, 1, fit->n_rows);
    return fmax(1.4826 * gsl_stats_median_from_sorted_data(fit->scratch, 1, fit->n_rows), SCALE_MIN);
}

/* One weighted least-squares problem; the largest move of a z. */
static double solve_weighted(struct calibrate_fit *fit, gsl_multifit_nlinear_workspace *workspace, gsl_vector *x,
                             const gsl_vector *weights)
{
    gsl_multifit_nlinear_fdf functions = {
        .f = gsl_residuals, .df = gsl_jacobian, .n = fit->n_rows, .p = fit->n_active, .params = fit};
    int info;
    double largest = 0;
    if (gsl_multifit_nlinear_winit(x, weights, &functions, workspace) == GSL_SUCCESS)
        gsl_multifit_nlinear_driver(ITERATIONS_MAX, 1e-7, 1e-9, 1e-9, NULL, NULL, &info, workspace);
    const gsl_vector *found = gsl_multifit_nlinear_position(workspace);
    for (size_t j = 0; j < fit->n_active; j++)
        largest = fmax(largest, fabs(gsl_vector_get(found, j) - gsl_vector_get(x, j)));
    gsl_vector_memcpy(x, found);
    set_values(fit, x);
    find_residuals(fit, fit->residuals);
    return largest;
}

void calibrate_minimise(struct calibrate_fit *fit)
{
    find_residuals(fit, fit->residuals);
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
