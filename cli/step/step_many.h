/*
 * step_many.h - `msim step --replicas N`: the same step on GPUs that draw their own speed, and how long steps then take.
 */
#ifndef MSIM_CLI_STEP_STEP_MANY_H
#define MSIM_CLI_STEP_STEP_MANY_H

#include "cli/job/job_setup.h"
#include "cli/options/shared_options.h"

#define STEP_MANY_GROUP "Many steps"

/* The most that ranks may differ: at four deviations the fastest then still takes a fifth of the mean. */
#define STEP_JITTER_MAX 0.2

#define STEP_MANY_OPTION_ROWS                                                                                                    \
    {.name = "replicas",                                                                                                         \
     COUNT_FIELDS,                                                                                                               \
     .low = 2,                                                                                                                   \
     .high = 1e6,                                                                                                                \
     .group = STEP_MANY_GROUP,                                                                                                   \
     .help =                                                                                                                     \
         "so many steps, each on GPUs that draw their own speed (seeds seed, seed + 1, ...): mean, p50, p90, p99 and max of "    \
         "the step time (csv: a row for each)"},                                                                                 \
        {.name = "jitter",                                                                                                       \
         QUANTITY_FIELDS("SHARE", DIM_FRACTION),                                                                                 \
         .high = STEP_JITTER_MAX,                                                                                                \
         .group = STEP_MANY_GROUP,                                                                                               \
         .help =                                                                                                                 \
             "by how much GPUs differ in a step, with --replicas: the standard deviation of the time that arithmetic takes, "    \
             "such as 0.5%; the GPU's clock_spread when left out"},                                                              \
        THREADS_ROW(STEP_MANY_GROUP)

/* Options that go with one step only, and those that change nothing without --replicas. STATUS_USAGE after reporting. */
MUST_CHECK enum status step_many_check(struct invocation *call);

/* Simulates and reports. Shared over threads and ranks. */
MUST_CHECK enum status step_many(struct invocation *call, const struct job_setup *setup);

#endif
