/*
 * launch_command.h - commands of a script as jobs that they might launch. Private to launch_shell.c, which reads the script.
 */
#ifndef MSIM_TRACES_LAUNCH_COMMAND_H
#define MSIM_TRACES_LAUNCH_COMMAND_H

#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/shell/shell_script.h"

/* Of the commands so far the one that says most of a job. */
struct launch_choice {
    struct launch_words words; /* items only: texts are in the arena of the script's words */
    size_t count;              /* of its words that describe a job; 0: none does */
    size_t rivals;             /* commands with more than a few of them */
    struct place at;
    const char *program; /* one that trains what msim does not have; NULL: none */
};

/* A command, which becomes the choice where it says more than that. The first n_around of its fields start the shell that it is
 * given to (srun --nodes 4 bash -c ...), so that no value of theirs is a word of its own. */
void launch_command_try(const struct frameworks *frameworks, struct shell_state *state, const struct shell_fields *given,
                        size_t n_around, struct place at, struct launch_choice *best);

#endif
