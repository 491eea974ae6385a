/* fault_fit_numbers.c - statistics that the parts of a fit share: moments, quantiles, a minimum, the Kolmogorov-Smirnov test. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

#include "model/base/order.h"
#include "sim/faults/fault_fit_internal.h"

double ks_p_value(double distance, size_t n)
{
    double root = sqrt((double)n), t = (root + 0.12 + 0.11 / root) * distance, sum = 0;
    if (n == 0 || t < 0.2)
        return 1;
    for (int j = 1; j <= 100; j++)
        sum += (j % 2 ? 2 : -2) * exp(-2.0 * j * j * t * t);
    return fmin(fmax(sum, 0), 1);
}

double ks_uniform_distance(double *u, size_t n)
{
    double distance = 0;
    if (n > 1)
        qsort(u, n, sizeof *u, double_compare);
    for (size_t i = 0; i < n; i++)
        distance = fmax(distance, fmax(u[i] - (double)i / (double)n, (double)(i + 1) / (double)n - u[i]));
    return distance;
}

double fit_minimum(gsl_multimin_function *f, gsl_vector *x, double step, int iterations)
{
    gsl_vector *steps = gsl_vector_alloc(x->size);
    gsl_multimin_fminimizer *simplex = gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, x->size);
    gsl_vector_set_all(steps, step);
    gsl_multimin_fminimizer_set(simplex, f, x, steps);
    for (int i = 0; i < iterations; i++)
        if (gsl_multimin_fminimizer_iterate(simplex) != GSL_SUCCESS ||
            gsl_multimin_test_size(gsl_multimin_fminimizer_size(simplex), 1e-5) == GSL_SUCCESS)
            break;
    gsl_vector_memcpy(x, simplex->x);
    double value = simplex->fval;
    gsl_multimin_fminimizer_free(simplex);
    gsl_vector_free(steps);
    return value;
}

double fit_moments(const double *x, size_t n, double *deviation)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    *deviation = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    return mean;
}

double chi_squared_quantile(double p, double degrees)
{
    double low = 0, high = degrees + 20 * sqrt(2 * degrees) + 50; /* beyond any tail that a double tells from 0 */
    for (int i = 0; i < 200 && high - low > 1e-14 * high; i++) {
        double middle = (low + high) / 2;
        *(gsl_cdf_chisq_P(middle, degrees) < p ? &low : &high) = middle;
    }
    return high;
}
