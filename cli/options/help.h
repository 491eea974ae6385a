/*
 * help.h - what the program says about itself. All of it comes from the commands and their rows. `commands` is the program's
 * table, which ends with NULL.
 */
#ifndef MSIM_CLI_OPTIONS_HELP_H
#define MSIM_CLI_OPTIONS_HELP_H

#include "cli/options/command.h"

void help_program(const struct command *const *commands, FILE *out);    /* msim --help */
void help_command(const struct command *command, FILE *out);            /* msim COMMAND --help */
void help_usage(const struct command *command, FILE *out);              /* msim COMMAND -h: names only */
void help_manual(const struct command *const *commands, FILE *out);     /* msim help --man: msim.1 in man(7) macros */
void help_completion(const struct command *const *commands, FILE *out); /* msim help --completion: for bash */
void help_dictionary(const struct command *const *commands, FILE *out); /* msim help --dictionary: for fuzzers */
void help_version(FILE *out);                                           /* msim --version */

#endif
