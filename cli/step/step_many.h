/*
 * step_many.h - `msim step --replicas N`: the same step on GPUs of random speed, and the distribution of its time.
 */
#ifndef MSIM_CLI_STEP_STEP_MANY_H
#define MSIM_CLI_STEP_STEP_MANY_H

#include "cli/job/job_setup.h"
#include "cli/options/shared_options.h"
#include "cli/output/result_row.h"

#define STEP_MANY_GROUP "Many steps"

/* The most that ranks may differ: at four deviations the fastest then still takes a fifth of the mean. */
#define STEP_JITTER_MAX 0.2

#define STEP_MANY_OPTION_ROWS                                                                                                    \
    {.name = "replicas",                                                                                                         \
     COUNT_FIELDS,                                                                                                               \
     .low = 2,                                                                                                                   \
     .high = 1e6,                                                                                                                \
     .group = STEP_MANY_GROUP,                                                                                                   \
     .help = "repeat the step N times; each draws the speed of every GPU at random (seeds S, S+1, ...). Report mean, p50, p90, " \
             "p99 and max; csv has a row for each"},                                                                             \
        {.name = "jitter",                                                                                                       \
         QUANTITY_FIELDS("SHARE", DIM_FRACTION),                                                                                 \
         .high = STEP_JITTER_MAX,                                                                                                \
         .group = STEP_MANY_GROUP,                                                                                               \
         .fallback = "the GPU's clock_spread",                                                                                   \
         .help = "with --replicas: set the standard deviation of arithmetic time between GPUs, such as 0.5%"},                   \
        THREADS_ROW(STEP_MANY_GROUP)

/* Options that go with one step only, and those that change nothing without --replicas. STATUS_USAGE after reporting. */
MUST_CHECK enum status step_many_check(struct invocation *call);

/* Keys of their result, before and behind step_size_rows of the mean, and of each step. */
extern const struct result_row step_many_rows[], step_spread_rows[], step_outcome_rows[];

/* Simulates and reports. Shared over threads and ranks. STATUS_CHECK where the layout does not fit. */
MUST_CHECK enum status step_many(struct invocation *call, const struct job_setup *setup);

#endif
