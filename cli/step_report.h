/*
 * step_report.h - what `msim step` says about one step: for people, as JSON, as one row of CSV.
 */
#ifndef MSIM_CLI_STEP_REPORT_H
#define MSIM_CLI_STEP_REPORT_H

#include "cli/job_setup.h"
#include "cli/step_flow.h"
#include "cli/step_profile.h"
#include "sim/step.h"

struct step_report {
    const struct job_setup *setup;
    const struct step_result *result;
    const struct breakdown *stages;
    const struct step_flow *flow;       /* NULL: the analytic network */
    const struct program *program;      /* explained when given */
    const struct step_profile *profile; /* NULL: none */
    enum detail detail;
    bool folded;
    double capacity_bytes; /* of one GPU */
    char assumptions[12][256];
    int n_assumptions;
};

/* Job, layout, batch and features, and an empty line. */
void step_report_header(const struct job_setup *setup, FILE *out);

/* Fills capacity and assumptions from the rest. */
void step_report_complete(struct step_report *report);

MUST_CHECK enum status step_report_write(const struct step_report *report, struct invocation *call);

#endif
