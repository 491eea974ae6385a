/*
 * faults_report.h - the report of a fault trace, and of a model fitted to it, as text, CSV and JSON.
 */
#ifndef MSIM_CLI_FAULTS_FAULTS_REPORT_H
#define MSIM_CLI_FAULTS_FAULTS_REPORT_H

#include "cli/options/command.h"
#include "sim/faults/fault_fit.h"
#include "sim/faults/fault_statistics.h"

struct faults_report {
    const char *name; /* of the trace, as the user gave it */
    const struct fault_trace *trace;
    struct fault_statistics statistics;
};

/* To call->out: text, JSON, or the quantities as CSV. */
MUST_CHECK enum status faults_report_write(struct invocation *call, const struct faults_report *report);

/* A trace as JSON; its own form is CSV (fault_trace_write). */
MUST_CHECK enum status faults_report_trace(struct invocation *call, const struct fault_trace *trace);

/* A model fitted to a trace (faults_fit_report.c). */
MUST_CHECK enum status faults_report_fit(struct invocation *call, const struct fault_fit *fit);

#endif
