/*
 * help.h - help, version, manual page and completion, all written from the commands and their rows.
 *
 *     help_command(&command_plan, stdout);    msim plan --help
 *
 * `commands` is the program's table, which ends with NULL.
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
/* What help adds to a row's sentence: " (a, b, c; default: a)", or nothing. */
void help_row_note(const struct option_row *row, char *buffer, size_t size);
void help_version(FILE *out); /* msim --version */
/* A command to copy, and a newline; its later lines begin with `indent` blanks, as its first one does already. */
void command_line_write(const char *text, int indent, FILE *out);

#endif
