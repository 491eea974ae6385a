/*
 * step_explain.h - why a step costs what it costs: every kernel of a layer pass and every exchange, with the parts of its cost.
 */
#ifndef MSIM_CLI_STEP_EXPLAIN_H
#define MSIM_CLI_STEP_EXPLAIN_H

#include "cli/job_setup.h"
#include "model/program/program.h"

/* One micro-batch through one virtual stage (embedding, layers, loss head), forward and backward, then the messages and
 * collectives of the program; tables for people. */
void step_explain(const struct job_setup *setup, const struct program *program, const struct invocation *call);

#endif
