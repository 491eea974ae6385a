/*
 * outcomes.h - how predictions of memory compare with what real runs needed, learnt from whether they ran.
 *
 * What a run needed is seldom known, but an outcome bounds it: a run of predicted use u (memory over capacity) that ran needed at
 * most 1 / u of what was predicted, one that ran out of memory needed more. Taking need over prediction to be log-logistic, with
 * median m and scale s (a tenth of the runs need more than m 9^s of their prediction, a tenth less than m 9^-s), the share of
 * runs of use u that run out of memory is
 *
 *     share(u) = 1 / (1 + (m u)^(-1/s)),
 *
 * whose likelihood, over all outcomes, has one maximum in (1/s, ln m / s): logistic regression on ln u. Log-logistic rather than
 * log-normal because of its longer tails: a run may fail for reasons that no prediction of memory knows.
 *
 * Sources that tell of no failure are left out: a table of what ran says nothing about what would have failed. Among the others
 * every run counts the same, as each is one trial at its own use.
 */
#ifndef MSIM_TRACES_TABLE_OUTCOMES_H
#define MSIM_TRACES_TABLE_OUTCOMES_H

#include "traces/table/accuracy.h"

struct outcomes {
    size_t runs, failed, sources; /* of sources that tell of failures and predictions that there are */
    double median, scale;         /* 0: outcomes do not tell them */
};

/* What the items' sources tell, and the fit. There is none (median and scale 0) when all failed runs have larger uses than all
 * that ran, as any steep curve would then do, or when larger uses did not fail more often. */
struct outcomes outcomes_of(const struct comparison *items, size_t n);

#endif
