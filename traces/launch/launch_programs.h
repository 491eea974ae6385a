/*
 * launch_programs.h - programs that start others: on how many nodes and GPUs where nothing says it, and the configuration that a
 * command names. Private to launch_command.c and launch_read.c;
 * launch_hosts.c has what deepspeed is told of hosts.
 *
 * What torchrun, deepspeed, accelerate, composer, llamafactory-cli and torchtitan's run_train.sh do unasked, from memory:
 *
 *     torchrun (torch.distributed.run, .launch)   one node, one process
 *     deepspeed                                   one node, all GPUs that are visible; a hostfile's nodes and slots
 *     accelerate launch, llamafactory-cli train   one node, all GPUs that are visible
 *     composer                                    one node, all GPUs that are visible
 *     run_train.sh                                one node, 8 processes (NGPU)
 *
 * What starts them on several machines (srun, mpirun, ssh) knows how many, so nothing is taken of nodes behind it. GPUs are
 * visible as CUDA_VISIBLE_DEVICES says, and where nobody sets it nothing is known of them.
 */
#ifndef MSIM_TRACES_LAUNCH_PROGRAMS_H
#define MSIM_TRACES_LAUNCH_PROGRAMS_H

#include "traces/launch/shell/shell_state.h"

/* A program that starts the job's processes on a node. */
struct launcher {
    const char *name, *behind;                  /* what stands behind it; NULL: anything */
    const char *nodes, *gpus;                   /* unless told; gpus NULL: all that are visible */
    const char *nodes_variable, *gpus_variable; /* which tell it; NULL: none */
};

/* The first of a command; NULL: none. *at is its field. */
const struct launcher *launch_programs_find(const struct shell_fields *fields, size_t *at);

/* Words of a command: "launched-nodes" and "launched-gpus", which count where nothing else says it; "nnodes", "ntasks",
 * "world-size" of short options; among `words`, the command's own, what is no number (gpu, 1:4) becomes unknown with a reason. */
void launch_programs_tell(struct shell_state *state, const struct shell_fields *fields, struct launch_words *words);

/* "configuration-file", the file that a command reads its job from, and "configuration-folder", where else than beside the script
 * it may be. How sure it is that this is a training job: 0 where there is no such file, 2 of a program that is known for it. */
size_t launch_configuration(struct shell_state *state, const struct shell_fields *fields, struct launch_words *words);

/* deepspeed --include=worker-0@worker-1:0,2: nodes, and of each all GPUs or some. Words "launched-nodes" and "launched-gpus", or
 * "world-size" where nodes have different numbers; "launched-gpus" is unknown, with a reason, where the value is no such list. */
void launch_hosts_included(struct launch_word include, struct launch_words *words);

/* The same of the hosts of a file with a line "NAME slots=GPUS" each, less those that --include and --exclude among the words
 * leave out. */
void launch_programs_hosts(const char *path, const char *bytes, size_t n, struct launch_words *words, struct diags *diags);

/* May a field be the value of the flag in front, which has two dashes and none of its own? */
bool launch_may_be_value(const struct shell_fields *fields, size_t i);

#endif
