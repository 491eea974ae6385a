/*
 * calibrate.h - fit parameters of a model to measured times, and hold those that the times cannot determine.
 *
 * Example: 40 measured all-gathers, two parameters.
 *
 *     struct calibrate_parameter p[] = {{"nccl.rate", 300e9, 1e9, 1e12}, {"nccl.base", 1e-5, 1e-7, 1e-3}};
 *     calibrate_fit(&problem, estimates);
 *     estimates[0]      value 3.35e11, 95 % interval 3.2e11 to 3.5e11, CALIBRATE_FITTED
 *     estimates[1]      value 1e-5, CALIBRATE_UNDETERMINED: held at its start
 *
 * Theory. Given n rows with measured times t_i, a model T_i(x) and p parameters x within bounds, find the x that minimises
 *
 *     sum_i rho(r_i / s),   r_i = log(T_i(x) / t_i),   rho Huber's: u^2/2 up to |u| = 1.345, linear beyond
 *
 * Errors are relative, so a kernel of a microsecond weighs as much as a step of a minute. A row that is far off pulls no harder
 * than one that is a little off. The scale s is 1.4826 times the median of |r|. The minimum is found by a sequence of weighted
 * least squares (Holland and Welsch 1977), each solved by GSL's trust-region Levenberg-Marquardt on z = log((x - low) / (high -
 * x)). z keeps x inside its bounds, and is the logarithm of x where the range spans decades. Derivatives are differences.
 * Within each least squares, values that hardly change may stay as they were at its start (predict_near).
 *
 * A parameter that the rows cannot determine is held at its start, with the reason:
 *     no influence    no time changes with the parameter
 *     too few rows    there are not more distinct cases than parameters that they depend on
 *     collinear       the Jacobian's columns, scaled to one length, have a singular value below 1/1000 of the largest: only a
 *                     combination of this parameter and another is determined. The parameter of the combination that is last in
 *                     the list is held: order is priority
 *     undetermined    the standard error of z is above 1 (the interval spans two decades), and the start value fits as well when
 *                     the others are fitted again
 * A parameter that the rows push against a bound is set to the bound and reported as such.
 *
 * Parameters that no row connects are fitted separately. This makes large tables cheap: an entry with 32 parameters of four
 * precisions is four fits of eight.
 *
 * Intervals are at 95 %: Student's quantile times the sandwich estimate of the standard error (Huber 1967), scaled by n/(n - p)
 * and carried through the transformation. They state how well the rows determine the value *given the model*. Where residuals
 * come from errors of the model and not from noise, another set of rows may lie outside.
 *
 * Cost: about 50 (p + 1) predictions of every row. The last 256 predictions are kept and not repeated, which costs 2 KiB per
 * row, and the same for predict_near. Deterministic; at most 64 connected parameters. The call switches off GSL's error
 * handler, which is one per process, so no other thread should use GSL meanwhile. This code does not know tables, GPUs or
 * entries.
 */
#ifndef MSIM_MODEL_COST_FIT_CALIBRATE_H
#define MSIM_MODEL_COST_FIT_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct calibrate_parameter {
    const char *name;
    double start;     /* moved inside if it lies on a bound */
    double low, high; /* low < high */
};

/* Predicts the times in seconds of the rows given by index, for values[n_parameters]. A time that is not finite and positive
 * counts as a very bad prediction. */
typedef void calibrate_predict_function(void *context, const double *values, const size_t *rows, size_t n_rows, double *seconds);

struct calibrate_problem {
    const struct calibrate_parameter *parameters;
    size_t n_parameters;
    const double *measured; /* [n_rows] seconds, above 0 */
    const double *weights;  /* [n_rows] above 0: a factor of r_i; NULL: all 1 */
    const uint64_t *cases;  /* [n_rows] rows of the same case differ only by noise */
    size_t n_rows;
    calibrate_predict_function *predict;
    /* A faster or smoother prediction near the values of the last call of `predict`, where both are equal. NULL: use predict. */
    calibrate_predict_function *predict_near;
    void *context;
};

enum calibrate_outcome {
    CALIBRATE_FITTED,
    CALIBRATE_AT_BOUND,     /* the best value is the bound */
    CALIBRATE_NO_INFLUENCE, /* this and the following: held at its start */
    CALIBRATE_TOO_FEW,
    CALIBRATE_COLLINEAR,
    CALIBRATE_UNDETERMINED,
};
const char *calibrate_outcome_name(enum calibrate_outcome outcome);

struct calibrate_estimate {
    double value;
    double low, high; /* 95 % interval; both the value unless fitted */
    enum calibrate_outcome outcome;
    size_t n_rows, n_cases; /* number of rows and cases that depend on it */
    size_t with;            /* collinear: the parameter that is fitted instead */
    double moved;           /* distance from its start in standard errors of z; 0 unless fitted */
    double sensitivity;     /* root mean square over its rows of d log T / d log x, at the solution */
};

/* Fills in estimates[n_parameters]. False: nothing could be fitted, every parameter is held. */
bool calibrate_fit(const struct calibrate_problem *problem, struct calibrate_estimate *estimates);

#endif
