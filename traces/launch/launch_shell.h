/*
 * launch_shell.h - the words of a launch script.
 *
 * Reads a shell script as far as launch scripts go: comments, quotes, line continuations, here-documents (files that they become,
 * and commands for another shell), assignments, arrays, $NAME, ${NAME}, ${NAME:-default}, ${ARRAY[@]}, $((whole numbers)), if and
 * case with tests that can be told, export and its kind; #SBATCH lines; lines that another shell is given (bash -c). Of the
 * commands that it would run the one with the most Megatron-LM arguments is the job; lines that begin with a flag belong
 * together, so a file of plain arguments is a script, too. What cannot be told (a command's output, a variable nobody sets, what
 * is set under a condition that cannot be told) makes the words that depend on it unknown, with the reason; only who needs the
 * word complains.
 *
 * Nothing is executed. Cost: linear in the script, plus what variables expand to (at most SHELL_EXPANSION bytes in all;
 * more is an error).
 */
#ifndef MSIM_TRACES_LAUNCH_SHELL_H
#define MSIM_TRACES_LAUNCH_SHELL_H

#include "traces/launch/launch_words.h"

enum { SHELL_BYTES_MAX = 1 << 18, SHELL_EXPANSION = 1 << 24 };

/* Variables that the script expects from outside: "NAME=VALUE". */
struct launch_environment {
    const char *const *settings;
    int n;
};

/* The words of the job. `name` is what diagnostics call the script; it must outlive the words. STATUS_BAD_INPUT when the script
 * cannot be read (a quote that never ends) or launches nothing that has Megatron-LM's arguments, sets keys of a configuration or
 * names one. */
MUST_CHECK enum status launch_shell_parse(const char *name, const char *bytes, size_t n,
                                          const struct launch_environment *environment, struct launch_words *words,
                                          struct diags *diags);

/* Words of a command line, such as the value of an option; quotes as in a script. */
MUST_CHECK enum status launch_shell_words(const char *name, const char *text, struct launch_words *words, struct diags *diags);

#endif
