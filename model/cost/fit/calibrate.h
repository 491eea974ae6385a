/*
 * calibrate.h - parameters of a model fitted to measured times, and only those that the times can tell.
 *
 * Given n rows with measured times t_i, a model T_i(x) and p parameters x within bounds, find the x that minimises
 *
 *     sum_i rho(r_i / s),   r_i = log(T_i(x) / t_i),   rho Huber's: u^2/2 up to |u| = 1.345, linear beyond
 *
 * Errors are relative, so a kernel of a microsecond weighs as much as a step of a minute, and a row that is far off pulls no
 * harder than one that is a little off. The scale s is 1.4826 times the median of |r|. Solved as a sequence of weighted least
 * squares (Holland and Welsch 1977), each by GSL's trust-region Levenberg-Marquardt on z = log((x - low) / (high - x)), which
 * keeps x inside its bounds and is the logarithm of x where the range spans decades. Derivatives are differences. Each of the
 * least squares may hold what hardly changes as it was where it began (predict_near).
 *
 * What the rows cannot tell is not fitted but held, with the reason:
 *   no influence    no time changes however the parameter moves
 *   too few rows    not more distinct cases than parameters that they depend on
 *   collinear       the Jacobian's columns, scaled to one length, have a singular value below 1/1000 of the largest: only a
 *                   combination of this parameter and another is determined. Of those in the combination the last in the
 *                   list is held: order is priority
 *   undetermined    the standard error of z is above 1 (the interval spans two decades) and the value held fits as well, the
 *                   others fitted anew beside it
 * A parameter that the rows push against a bound is set to the bound and reported as such. Held parameters keep their start.
 *
 * Parameters that no row connects are fitted apart, which is what makes large tables cheap: an entry with 32 parameters of four
 * precisions is four fits of eight.
 *
 * Intervals are at 95 %: Student's quantile times the sandwich estimate of the standard error (Huber 1967), scaled by n/(n - p),
 * carried through the transformation. They say how well the rows determine the value *given the model*; where residuals are
 * the model's own misfit rather than noise, another set of rows may lie outside.
 *
 * Cost: about 50 (p + 1) predictions of every row: none that was among the last 256 is made again, which takes 2 KiB a row, and
 * as much for those by predict_near.
 * Deterministic; at most 64 connected parameters. GSL's error handler, which is the process's, is off during the call: no other
 * thread should use GSL meanwhile. Knows nothing of tables, GPUs or entries.
 */
#ifndef MSIM_MODEL_COST_FIT_CALIBRATE_H
#define MSIM_MODEL_COST_FIT_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct calibrate_parameter {
    const char *name;
    double start;     /* moved inside when it lies on a bound */
    double low, high; /* low < high */
};

/* Times of the rows given by index, in seconds; values[n_parameters]. A time that is not finite and positive counts as a very
 * bad prediction. */
typedef void calibrate_predict_function(void *context, const double *values, const size_t *rows, size_t n_rows, double *seconds);

struct calibrate_problem {
    const struct calibrate_parameter *parameters;
    size_t n_parameters;
    const double *measured; /* [n_rows] seconds, above 0 */
    const double *weights;  /* [n_rows] above 0: a factor of r_i; NULL: all 1 */
    const uint64_t *cases;  /* [n_rows] rows of the same case differ in nothing but noise */
    size_t n_rows;
    calibrate_predict_function *predict;
    /* The same in less time, or smoother, near the values that `predict` was last asked for, where both are equal; NULL: predict.
     */
    calibrate_predict_function *predict_near;
    void *context;
};

enum calibrate_outcome {
    CALIBRATE_FITTED,
    CALIBRATE_AT_BOUND,     /* the best value is the bound */
    CALIBRATE_NO_INFLUENCE, /* this and below: held at its start */
    CALIBRATE_TOO_FEW,
    CALIBRATE_COLLINEAR,
    CALIBRATE_UNDETERMINED,
};
const char *calibrate_outcome_name(enum calibrate_outcome outcome);

struct calibrate_estimate {
    double value;
    double low, high; /* 95 % interval; both the value unless fitted */
    enum calibrate_outcome outcome;
    size_t n_rows, n_cases; /* that depend on it */
    size_t with;            /* collinear: the parameter that is fitted instead */
    double moved;           /* standard errors of z between its start and the value; 0 unless fitted */
    double sensitivity;     /* root mean square over its rows of d log T / d log x, at the solution */
};

/* estimates[n_parameters]. False when nothing at all could be fitted (every parameter is held). */
bool calibrate_fit(const struct calibrate_problem *problem, struct calibrate_estimate *estimates);

#endif
