/*
 * step_report.h - what `msim step` says about one step: for people, as JSON, as one row of CSV.
 */
#ifndef MSIM_CLI_STEP_STEP_REPORT_H
#define MSIM_CLI_STEP_STEP_REPORT_H

#include <jansson.h>

#include "cli/job/job_setup.h"
#include "cli/output/notes.h"
#include "cli/step/step_flow.h"
#include "cli/step/step_profile.h"
#include "sim/step/step.h"

struct step_report {
    const struct job_setup *setup;
    const struct step_result *result;
    const struct breakdown *stages;
    const struct step_flow *flow;       /* NULL: the analytic network */
    const struct program *program;      /* explained when given */
    const struct step_profile *profile; /* NULL: none */
    enum detail detail;
    bool folded;
    double capacity_bytes;                     /* of one GPU */
    double gpu_price;                          /* money per GPU-hour; 0: not given */
    double documents_wait_s;                   /* of the replica with the longest documents, in addition to the step */
    char assumptions[18][OVERSUBSCRIBED_TEXT]; /* the longest of them */
    int n_assumptions;
};

/* Job, layout, batch and features, and an empty line. */
void step_report_header(const struct job_setup *setup, FILE *out);

/* Fills capacity and assumptions from the rest (step_assumptions.c). */
void step_report_complete(struct step_report *report);

/* What the steps of several draws have in common with one (step_many.c), from setup, result and capacity alone: */

/* Do the GPUs hold it, and the host what is offloaded, as far as its size is known? */
bool step_report_runs(const struct step_report *report);
/* Bytes of the host's memory that are a rank's; 0: unknown. */
double step_report_host_capacity(const struct step_report *report);
/* For the job's budget of tokens; 0: it has none. */
double step_report_days(const struct step_report *report);
double step_report_gpu_hours(const struct step_report *report);
/* That they do not, where they do not. */
void step_report_write_misfit(const struct step_report *report, const struct invocation *call);
/* Days and GPU-hours of the job's budget of tokens, where it has one, their cost, and energy at most. */
void step_report_write_budget(const struct step_report *report, FILE *out);
/* Tokens a second, the budget, power and energy, and memory: "tokens_per_s", "days", "gpu_hours", "cost", "energy_at_most" (null
 * where no power is published), "memory_gib", "memory_capacity_gib", "fits", and "host_memory_gib", "host_memory_capacity_gib"
 * where something is offloaded. */
void step_report_put_size(const struct step_report *report, json_t *result);

/* To call->out, in the call's format: text; JSON and CSV by the other two (step_record.c). */
MUST_CHECK enum status step_report_write(const struct step_report *report, struct invocation *call);
MUST_CHECK enum status step_report_write_json(const struct step_report *report, struct invocation *call);
/* A heading and a row, so that results of several calls can be put under one another. */
void step_report_write_csv(const struct step_report *report, const struct invocation *call);

#endif
