/*
 * calibrate_fit.h - one robust fit of connected parameters. Private to the files calibrate*.c.
 *
 * Example: rows 0-39 depend on parameters 0 and 1 and on no others; a struct calibrate_fit holds these rows and parameters.
 */
#ifndef MSIM_MODEL_COST_FIT_CALIBRATE_FIT_H
#define MSIM_MODEL_COST_FIT_CALIBRATE_FIT_H

#include "model/cost/fit/calibrate.h"

#define CALIBRATE_STEP  1e-4  /* step of z for derivatives: truncation and whole nanoseconds both stay below 1e-4 */
#define CALIBRATE_REACH 0.02  /* step of z to either side for standard errors: see calibrate_slopes */
#define CALIBRATE_HUBER 1.345 /* 95 % efficiency under normal errors (Huber 1981) */

enum { CALIBRATE_ACTIVE_MAX = 64, CALIBRATE_KNOWN = 256 };

struct calibrate_known {
    double *keys;    /* [CALIBRATE_KNOWN], each of the width of a key */
    double *seconds; /* [CALIBRATE_KNOWN][n_rows] */
    size_t n, next;  /* number known; index of the next to be written, which is the oldest when all are known */
};

/* Earlier predictions of the rows of one component. A fit needs those of one point repeatedly (a residual, then the derivatives
 * there, then both under other weights), and decides about a parameter by fits that the next round repeats. */
struct calibrate_predictions {
    struct calibrate_known whole; /* key: the values of all parameters */
    struct calibrate_known near;  /* of predict_near; key: the values of the last `predict`, and the values */
    double *last;                 /* [n_parameters], the values of the last call of predict */
    double *key;                  /* [2][n_parameters], key of `near`; the first half is `last` */
};

/* Rows that share parameters, and the parameters that are being fitted. */
struct calibrate_fit {
    const struct calibrate_problem *problem;
    const size_t *rows; /* indices of rows of the problem */
    size_t n_rows;
    size_t active[CALIBRATE_ACTIVE_MAX]; /* indices of parameters of the problem */
    size_t n_active;
    double *values;                            /* [problem's n_parameters] */
    double *z;                                 /* [problem's n_parameters], valid for the active ones */
    double scale;                              /* of the residuals */
    double *residuals;                         /* [n_rows] */
    double *below, *above;                     /* [n_rows] scratch */
    struct calibrate_predictions *predictions; /* of the component */
};

double calibrate_z(const struct calibrate_parameter *parameter, double value);
double calibrate_value(const struct calibrate_parameter *parameter, double z);

/* sum of rho(r / scale) */
double calibrate_loss(const struct calibrate_fit *fit, const double *residuals);
/* d r / d z of the active parameters, [n_rows][n_active], for standard errors. Differences are over CALIBRATE_REACH to either
 * side. A predicted step may jump by a few parts in a thousand where a choice flips (an algorithm, a schedule), and a minimum
 * often lies next to such a jump. Over CALIBRATE_STEP this would be a slope hundreds of times the true one, and an interval too
 * narrow by that factor. Leaves values and residuals unchanged. */
void calibrate_slopes(struct calibrate_fit *fit, double *jacobian);
/* Finds the robust minimum over the active parameters from the current values. Updates values, z, scale and residuals. */
void calibrate_minimise(struct calibrate_fit *fit);

#endif
