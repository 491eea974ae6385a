/*
 * calibrate_fit.h - one robust fit of connected parameters. Private to the files calibrate*.c.
 */
#ifndef MSIM_MODEL_COST_FIT_CALIBRATE_FIT_H
#define MSIM_MODEL_COST_FIT_CALIBRATE_FIT_H

#include "model/cost/fit/calibrate.h"

#define CALIBRATE_STEP  1e-4  /* of z, for derivatives: truncation and whole nanoseconds both stay below 1e-4 */
#define CALIBRATE_REACH 0.02  /* of z to either side, for standard errors: see calibrate_slopes */
#define CALIBRATE_HUBER 1.345 /* 95 % efficiency under normal errors (Huber 1981) */

enum { CALIBRATE_ACTIVE_MAX = 64, CALIBRATE_KNOWN = 256 };

struct calibrate_known {
    double *keys;    /* [CALIBRATE_KNOWN], each as wide as a key is */
    double *seconds; /* [CALIBRATE_KNOWN][n_rows] */
    size_t n, next;  /* known; the one to be written next, the oldest where all are known */
};

/* Times of the rows of one component that were predicted before: a fit asks for those of one point again and again (a residual,
 * then the derivatives there, then both under other weights), and settles a parameter by fits that the next round repeats. */
struct calibrate_predictions {
    struct calibrate_known whole; /* by the values of all parameters */
    struct calibrate_known near;  /* by predict_near: by the values that it was near, and the values */
    double *last;                 /* [n_parameters], the values that predict was last asked for */
    double *key;                  /* [2][n_parameters], of near: first the values that are near now */
};

/* Rows that share parameters, and those parameters that are being fitted. */
struct calibrate_fit {
    const struct calibrate_problem *problem;
    const size_t *rows; /* of the problem */
    size_t n_rows;
    size_t active[CALIBRATE_ACTIVE_MAX]; /* of the problem's parameters */
    size_t n_active;
    double *values;                            /* [problem's n_parameters] */
    double *z;                                 /* [problem's n_parameters], of the active ones */
    double scale;                              /* of the residuals */
    double *residuals;                         /* [n_rows] */
    double *below, *above;                     /* [n_rows] scratch */
    struct calibrate_predictions *predictions; /* of the component */
};

double calibrate_z(const struct calibrate_parameter *parameter, double value);
double calibrate_value(const struct calibrate_parameter *parameter, double z);

/* sum of rho(r / scale) */
double calibrate_loss(const struct calibrate_fit *fit, const double *residuals);
/* d r / d z of the active parameters, [n_rows][n_active], for standard errors: over CALIBRATE_REACH to either side, since a
 * predicted step may jump by a few parts in a thousand where a choice flips (an algorithm, a schedule), and a minimum often lies
 * beside such a jump. Over CALIBRATE_STEP that would be a slope hundreds of times the true one, and an interval as many times too
 * narrow. Leaves the values as they are, and their residuals. */
void calibrate_slopes(struct calibrate_fit *fit, double *jacobian);
/* The robust minimum over the active parameters from where they stand; updates values, z, scale and residuals. */
void calibrate_minimise(struct calibrate_fit *fit);

#endif
