/*
 * run_report.h - what a run delivered, for people and for programs.
 */
#ifndef MSIM_CLI_RUN_RUN_REPORT_H
#define MSIM_CLI_RUN_RUN_REPORT_H

#include <jansson.h>

#include "cli/output/result_row.h"
#include "model/cost/step/energy.h"
#include "model/layout/layout.h"
#include "model/spec/experiment.h"
#include "sim/weeks/checkpoint_cost.h"
#include "sim/weeks/run_closed_form.h"
#include "sim/weeks/startup.h"

enum { MAX_ASSUMPTIONS = 12 };

struct run_report {
    const struct experiment *experiment; /* with the effective faults */
    const struct fault_trace *trace;
    const struct run_options *options;
    const struct run_result *result;
    struct run_closed_form memoryless;
    const char *layout;             /* text; NULL when the step time was given */
    const struct layout *simulated; /* whose step was predicted; NULL when its time was given */
    double step_time_s;
    double step_mfu;                    /* fraction; 0 unknown */
    const struct robust_policy *policy; /* NULL: the plain rules */
    const struct startup *startup;      /* NULL: a given restart time */
    const struct checkpoint_cost *cost; /* NULL: a given block */
    double gpu_price;                   /* money per GPU-hour; 0: not given */
    double repair_s;                    /* mean of the repairs; 0: no failure takes a node away */
    const char *assumptions[MAX_ASSUMPTIONS];
    int n_assumptions;
};

/* GPUs that are paid for: the job's and the spares'. */
double run_paid_gpus(const struct experiment *experiment, const struct run_options *options);

double report_paid_hours(const struct run_report *report);

double report_tokens(const struct run_report *report);
/* Days that the job's token budget takes at the pace of this horizon; 0 without a budget or tokens. */
double report_budget_days(const struct run_report *report);
/* GPU-hours until the budget was trained, spares included; 0 when it was not. */
double report_gpu_hours(const struct run_report *report);
/* Money per million tokens, spares included; 0 without a price or tokens. */
double report_token_cost(const struct run_report *report);
/* J that the horizon, or what of it the budget took, needs at most (model/cost/step/energy.h): at full power all the time; 0
 * where no power is published. */
double report_energy(const struct run_report *report);
/* Uses of time that the report shows: those of the plain rules, or all. */
int report_uses(const struct run_report *report);

/* What nobody said; the text stays the caller's. */
void run_assume(struct run_report *report, const char *text);
/* All of it: below a report in text, if there is anything; as a list. */
void run_assumptions_write(const struct run_report *report, FILE *out);
json_t *run_assumptions_json(const struct run_report *report);

/* To call->out, in the call's format: text; JSON; CSV of the time series. */
MUST_CHECK enum status run_report_write(struct invocation *call, const struct run_report *report);

/* Of a struct run_report; of its policy, closed form, time series and incidents. */
extern const struct result_row run_rows[], run_step_rows[];
extern const struct result_row policy_rows[], memoryless_rows[], series_rows[], series_mfu_rows[], incident_rows[];

/* The parts of it for programs (run_record.c). */
MUST_CHECK enum status run_report_json(struct invocation *call, const struct run_report *report);
void run_report_series_csv(const struct run_report *report, FILE *out);
/* One row per fault. */
void run_report_incidents_csv(const struct run_report *report, FILE *out);

/* Why: the fault's cause, or that there was none. */
const char *incident_cause(const struct run_report *report, const struct incident *incident);
/* The name of its node, "" where the trace has none. */
const char *incident_host(const struct run_report *report, const struct incident *incident);

/* "54 d", or what suits less than a day. Returns buffer. */
char *horizon_text(nanos horizon, char *buffer, size_t size);

#endif
