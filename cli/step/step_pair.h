/*
 * step_pair.h - `msim step A.yaml B.yaml`: two experiments side by side, and why one is faster.
 *
 * If both train the same number of tokens on the same number of GPUs, the seconds of a step show it. In general a token costs,
 * in GPU-seconds,
 *
 *     c = sum over classes i of  s_i GPUs / tokens of a step,
 *
 * with s_i the mean time of a rank in class i. The change of class i is (c_i of B - c_i of A) / c of A. These changes add up to
 * the change of the whole.
 */
#ifndef MSIM_CLI_STEP_STEP_PAIR_H
#define MSIM_CLI_STEP_STEP_PAIR_H

#include "cli/job/job_setup.h"
#include "cli/options/command.h"
#include "cli/step/step_report.h"

struct step_side {
    const char *file;
    struct job_setup setup; /* the struct is not copied: setup.setting points into it */
    struct step_result result;
    struct step_report report; /* setup, result, capacity and price; for what step_report.h says of these alone */
};

struct step_pair {
    struct step_side sides[2]; /* A and B */
};

/* Loads, simulates and reports the two files of this call, with its options for both. STATUS_USAGE with options that go with one
 * step only. */
MUST_CHECK enum status step_pair(struct invocation *call);

MUST_CHECK enum status step_pair_report(const struct step_pair *pair, struct invocation *call);

/* What a class of time takes of the GPU-seconds a token, of B more than of A, as a share of all that A takes; of all classes for
 * N_WORK_CLASSES. */
double step_pair_change(const struct step_pair *pair, int work_class);

#endif
