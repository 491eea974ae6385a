/*
 * run_faults.h - what fails in a run: the trace or the model that is asked for, and how long its repairs are.
 */
#ifndef MSIM_CLI_RUN_RUN_FAULTS_H
#define MSIM_CLI_RUN_RUN_FAULTS_H

#include "cli/run/run_setup.h"

/* Reads the trace, or the model, of an experiment whose nodes and spares are known. */
MUST_CHECK enum status run_read_faults(struct invocation *call, struct run_session *s);
/* Does a sweep say it, whatever it is otherwise? */
bool run_sweeps(const struct invocation *call, const char *key);

#endif
