/*
 * next_command.h - the line that ends a report: the command to run next, with the operands and options of this call.
 *
 *     static const char *const without[] = {"layout", NULL};
 *     next_command_write(call, "plan", without, "--layout auto");
 *
 *     next: msim plan job.yaml --gpus 512 --layout auto
 *
 * An empty line goes before it. The line can be copied into a shell. With --quiet, and for an experiment on standard input, there
 * is none.
 */
#ifndef MSIM_CLI_OPTIONS_NEXT_COMMAND_H
#define MSIM_CLI_OPTIONS_NEXT_COMMAND_H

#include "cli/options/command.h"

/* Repeats the options of this call that change the result: for another command only those of the experiment, and none that
 * `without` names (NULL: all). `more` goes behind them. */
void next_command_write(const struct invocation *call, const char *command, const char *const *without, const char *more);
/* msim plot FILE. */
void next_plot_write(const struct invocation *call, const char *file);

#endif
