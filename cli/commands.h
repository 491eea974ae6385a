/*
 * commands.h - the table of commands.
 */
#ifndef MSIM_CLI_COMMANDS_H
#define MSIM_CLI_COMMANDS_H

#include "cli/options/command.h"

/* In the order in which help lists them; ends with NULL. */
extern const struct command *const commands[];

/* By name; NULL when unknown, and *near (may be NULL) is then the nearest name or NULL. */
const struct command *command_find(const char *name, const char **near);

#endif
