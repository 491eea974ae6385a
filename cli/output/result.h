/*
 * result.h - files that appear whole, and the envelope of JSON results.
 *
 * Every JSON result begins with the same keys, enough to repeat it: "msim" (version), "command", "seed", "config" (the effective
 * experiment) and "options" (what else the user gave that the result depends on; without an experiment all of it, and
 * "operands"). Reals have 12 significant digits: what is computed is the same to the last bit on every compiler, what is printed
 * need not be.
 */
#ifndef MSIM_CLI_OUTPUT_RESULT_H
#define MSIM_CLI_OUTPUT_RESULT_H

#include <jansson.h>

#include "cli/options/command.h"

/* Another file to write besides call->out ("-": standard output). NULL, with a diagnostic, when it cannot be written. The
 * framework commits it when the run function succeeds, and removes what was written otherwise, also on SIGINT, SIGTERM and
 * SIGPIPE. */
FILE *output_open(struct invocation *call, const char *path);

/* The file that an option names, opened; *file is NULL where the option is not given. */
MUST_CHECK enum status output_option(struct invocation *call, const char *name, FILE **file);

/* A new result object with the envelope; `config` is a JSON text (experiment_to_json), NULL none. */
json_t *result_create(const struct invocation *call, const char *config);
/* Writes the object and a newline to call->out and releases it. */
MUST_CHECK enum status result_write(struct invocation *call, json_t *result);

/* Framework only: open call->out; commit or abandon everything. */
MUST_CHECK enum status outputs_open(struct invocation *call, const char *path);
MUST_CHECK enum status outputs_close(struct invocation *call, bool commit);
/* Framework only: on SIGINT, SIGTERM, SIGHUP and SIGPIPE unfinished files are removed and the process ends by that signal. */
void outputs_guard(void);

#endif
