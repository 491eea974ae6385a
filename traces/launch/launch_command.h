/*
 * launch_command.h - which command of a script is the job.
 *
 *     cd /data                                        0 words of a job
 *     python prepare.py --seed 3                      0
 *     torchrun pretrain_gpt.py --num-layers 80 ...    24: the job
 *
 * The command with the most words that describe a job wins. Commands of other programs have none.
 */
#ifndef MSIM_TRACES_LAUNCH_COMMAND_H
#define MSIM_TRACES_LAUNCH_COMMAND_H

#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/shell/shell_script.h"

/* The command that describes most of a job so far. */
struct launch_choice {
    struct launch_words words; /* items only: the texts are in the arena of the script's words */
    size_t count;              /* number of its words that describe a job; 0: no command has any */
    size_t rivals;             /* number of commands with more than two of them */
    struct place at;
    const char *program; /* a program of Megatron-LM that msim does not model; NULL: none */
};

/* Tries a command: it becomes the choice if it describes more than the choice so far. The first n_around of its fields start
 * the shell that runs it (srun --nodes 4 bash -c ...); no value of them is a word of its own. */
void launch_command_try(const struct frameworks *frameworks, struct shell_state *state, const struct shell_fields *given,
                        size_t n_around, struct place at, struct launch_choice *best);

#endif
