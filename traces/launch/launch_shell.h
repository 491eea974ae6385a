/*
 * launch_shell.h - finds the job that a launch script starts, and returns it as words.
 *
 * Example: a script with the lines
 *
 *     python prepare.py
 *     torchrun pretrain_gpt.py --num-layers 80 --bf16        the job: words num-layers = 80 and bf16
 *
 * Of the commands that the script would run (shell_script.h), the job is the one with the most arguments of Megatron-LM. Lines
 * that begin with a flag belong together, so a file with only arguments is also a script.
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
