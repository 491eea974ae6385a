/*
 * options.h - turn argv into an invocation, by the rows of a command.
 *
 *     struct invocation call;
 *     enum status status = invocation_parse(commands, &command_plan, argc, argv, &call);
 *     ...
 *     invocation_free(&call);    in any case
 *
 * The parser reports all mistakes at once, in call.diags.
 */
#ifndef MSIM_CLI_OPTIONS_OPTIONS_H
#define MSIM_CLI_OPTIONS_OPTIONS_H

#include "cli/options/command.h"

/* The rows that every command has: --format, --output, --quiet ... */
extern const struct option_row common_options[];

/* All rows of a command in help's order: experiment, own, late experiment and common ones. Returns their number. */
int command_rows(const struct command *command, const struct option_row *rows[MAX_OPTIONS]);

/* Parse argv[1..argc-1] (argv[0] is ignored) with glibc's argp. `commands` is the program's table, which ends with NULL: a
 * message names the commands that have an option which this one lacks. Every mistake goes to call->diags; STATUS_USAGE then.
 * Release the call with invocation_free in any case. argv must outlive the call. Prints nothing. */
MUST_CHECK enum status invocation_parse(const struct command *const *commands, const struct command *command, int argc,
                                        char **argv, struct invocation *call);
void invocation_free(struct invocation *call);

/* One value as its row wants it. *number (may be NULL) is the parsed number or choice; *why says what is wrong. */
MUST_CHECK enum status option_check(const struct option_row *row, const char *text, double *number, char *why, size_t size);
/* Does a number lie within the bounds of a count or quantity of the call, as if it were given? *why says what is wrong. */
MUST_CHECK enum status option_check_number(const struct invocation *call, const char *name, double value, char *why, size_t size);

#endif
