/*
 * run_interval.h - the 80 % interval of the end of a training, from the interval of its predicted step
 * (cli/output/expectation.h).
 *
 * Replicas differ in their failures. The step is the same in all, and its prediction has an error of some per cent. If a step
 * takes f times as long, training takes f times as long, failures included: failures come per hour and last as long as before.
 * This is exact for a long run at a steady rate, and nearly so for a short one.
 */
#ifndef MSIM_CLI_RUN_RUN_INTERVAL_H
#define MSIM_CLI_RUN_RUN_INTERVAL_H

#include <jansson.h>
#include <stdio.h>

#include "cli/run/run_report.h"

struct run_interval {
    const struct run_report *report; /* with `simulated`: nothing is known of a step that was given */
    double end_s;                    /* when training ends, by the predicted step; infinite: not before the horizon */
    double paid_gpus, gpu_price;     /* price 0: not given */
};

/* Of one run. */
struct run_interval report_interval(const struct run_report *report);
/* "likely: ...", with a blank line before it, or nothing. */
void run_interval_write(const struct run_interval *interval, FILE *out);
/* What msim step calls "likely", and end_low_s, end_high_s, gpu_hours_low, gpu_hours_high, with a price cost_low, cost_high;
 * NULL: nothing is known. */
json_t *run_interval_json(const struct run_interval *interval);

#endif
