/*
 * outcomes.h - predicted memory against what real runs needed, by whether they ran.
 *
 *     predicted use 0.8, it ran        it needed at most 1.25 of the prediction
 *     predicted use 0.9, out of memory it needed more than 1.11 of the prediction
 *
 * The need of a run is seldom known, but its outcome bounds it: a run of predicted use u (memory over capacity) that ran needed
 * at most 1 / u of the prediction; one that ran out of memory needed more. Let need over prediction be log-logistic, with median
 * m and scale s (a tenth of the runs need more than m 9^s of their prediction, a tenth less than m 9^-s). Then the share of runs
 * of use u that run out of memory is
 *
 *     share(u) = 1 / (1 + (m u)^(-1/s)),
 *
 * whose likelihood, over all outcomes, has one maximum in (1/s, ln m / s): logistic regression on ln u. Log-logistic rather than
 * log-normal because of its longer tails: a run may fail for reasons that no prediction of memory knows.
 *
 * Sources without failures are left out: a table of what ran says nothing about what would have failed. Among the others every
 * run counts the same, as each is one trial at its own use.
 */
#ifndef MSIM_TRACES_TABLE_OUTCOMES_H
#define MSIM_TRACES_TABLE_OUTCOMES_H

#include "traces/table/accuracy.h"

struct outcomes {
    size_t runs, failed, sources; /* runs of sources with failures that have a prediction */
    double median, scale;         /* 0: the outcomes do not determine them */
};

/* The counts and the fit. There is no fit (median and scale 0) if all failed runs have larger uses than all that ran, because
 * any steep curve would do, or if larger uses did not fail more often. */
struct outcomes outcomes_of(const struct comparison *items, size_t n);

#endif
