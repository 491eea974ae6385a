/*
 * step_explain.h - why a step takes its time: every kernel of a layer pass and every exchange, with the parts of its cost.
 *
 *     msim step job.yaml --explain
 */
#ifndef MSIM_CLI_STEP_STEP_EXPLAIN_H
#define MSIM_CLI_STEP_STEP_EXPLAIN_H

#include <jansson.h>

#include "cli/job/job_setup.h"
#include "cli/output/result_row.h"
#include "model/program/program.h"

/* The works of one micro-batch (explain.h), then the messages and collectives of the program; tables on call->out. */
void step_explain(const struct job_setup *setup, const struct program *program, const struct invocation *call);

/* {works[], exchanges[]}, with explain_work_rows (explain.h) and exchange_rows. */
extern const struct result_row exchange_rows[];
json_t *step_explain_json(const struct job_setup *setup, const struct program *program);

#endif
