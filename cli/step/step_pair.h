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
#include "cli/step/step_record.h"

struct step_side {
    const char *file;
    struct job_setup setup; /* the struct is not copied: setup.setting points into it */
    struct step_result result;
    struct step_record record;
    enum power_count counted; /* nodes where their power is known of both, so that energies can be compared; boards otherwise */
};

struct step_pair {
    struct step_side sides[2]; /* A and B */
};

/* Loads, simulates and reports the two files of this call, with its options for both. STATUS_USAGE with options that go with one
 * step only, STATUS_CHECK where one of the two does not fit. */
MUST_CHECK enum status step_pair(struct invocation *call);

MUST_CHECK enum status step_pair_report(const struct step_pair *pair, struct invocation *call);

/* Of a side; the third set has no differences. */
extern const struct result_row pair_rows[], pair_memory_rows[], pair_side_rows[];

#endif
