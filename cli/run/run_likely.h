/*
 * run_likely.h - what the range that a predicted step can be expected to keep (cli/output/expectation.h) makes of the end of a
 * training.
 *
 * Replicas differ by their luck with failures; the step is the same in all, and it is known to some per cent only. A step that
 * takes f times as long makes training take f times as long, failures included, for those come by the hour and take as long as
 * before: of a long run at a steady rate exact, of a short one nearly so.
 */
#ifndef MSIM_CLI_RUN_RUN_LIKELY_H
#define MSIM_CLI_RUN_RUN_LIKELY_H

#include <jansson.h>
#include <stdio.h>

#include "cli/run/run_report.h"

struct run_likely {
    const struct run_report *report; /* with `simulated`: nothing is known of a step that was given */
    double end_s;                    /* when training ends, by the predicted step; infinite: not before the horizon */
    double paid_gpus, gpu_price;     /* price 0: not given */
};

/* Of one run. */
struct run_likely report_likely(const struct run_report *report);
/* "likely: ...", with a blank line before it, or nothing. */
void run_likely_write(const struct run_likely *likely, FILE *out);
/* What msim step calls "likely", and end_low_s, end_high_s, gpu_hours_low, gpu_hours_high, with a price cost_low, cost_high;
 * NULL: nothing is known. */
json_t *run_likely_json(const struct run_likely *likely);

#endif
