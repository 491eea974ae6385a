/*
 * step_report.h - one step for people; and what reports of many steps and of two experiments say in the same words.
 */
#ifndef MSIM_CLI_STEP_STEP_REPORT_H
#define MSIM_CLI_STEP_STEP_REPORT_H

#include "cli/step/step_record.h"

/* Job, layout, batch and features, and an empty line. */
void step_report_header(const struct job_setup *setup, FILE *out);
/* The first lines of a report, where the layout does not fit; with a name before it, if that is not "". */
void step_report_write_misfit(const struct step_record *record, const char *name, const struct invocation *call);
/* Days and GPU-hours of the job's budget of tokens, where it has one, their cost, and energy at most. */
void step_report_write_budget(const struct step_record *record, FILE *out);
/* Which command finds a layout that fits. */
void step_report_write_plan(const struct invocation *call);

/* To call->out, in the call's format. STATUS_CHECK where the layout does not fit. */
MUST_CHECK enum status step_report_write(const struct step_record *record, struct invocation *call);

#endif
