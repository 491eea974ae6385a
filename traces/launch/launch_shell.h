/*
 * launch_shell.h - the job that a launch script starts, as words.
 *
 * Of the commands that the script would run (shell_script.h), the one with the most Megatron-LM arguments is the job. Lines that
 * begin with a flag belong together, so a file of plain arguments is a script, too.
 */
#ifndef MSIM_TRACES_LAUNCH_LAUNCH_SHELL_H
#define MSIM_TRACES_LAUNCH_LAUNCH_SHELL_H

#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/shell/shell_script.h"

/* The words of the job. `name` is the name of the script in diagnostics; it must outlive the words. STATUS_BAD_INPUT if the
 * script cannot be read (a quote that never ends), or if no command has arguments of Megatron-LM, sets keys of a configuration
 * or names one. */
MUST_CHECK enum status launch_shell_parse(const struct frameworks *frameworks, const char *name, const char *bytes, size_t n,
                                          const struct launch_environment *environment, struct launch_words *words,
                                          struct diags *diags);

#endif
