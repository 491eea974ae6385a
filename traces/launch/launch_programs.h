/*
 * launch_programs.h - programs that start others: the nodes and GPUs that they use by default, and the configuration that a
 * command names. launch_hosts.c reads the hosts of deepspeed.
 *
 * Defaults, from memory:
 *
 *     torchrun (torch.distributed.run, .launch)   one node, one process
 *     deepspeed                                   one node, all visible GPUs; or the nodes and slots of a hostfile
 *     accelerate launch, llamafactory-cli train   one node, all visible GPUs
 *     composer                                    one node, all visible GPUs
 *     run_train.sh                                one node, 8 processes (NGPU)
 *
 * A program that starts them on several machines (srun, mpirun, ssh) decides how many nodes there are, so the default does not
 * count after one. CUDA_VISIBLE_DEVICES says which GPUs are visible; without it their number is unknown.
 */
#ifndef MSIM_TRACES_LAUNCH_PROGRAMS_H
#define MSIM_TRACES_LAUNCH_PROGRAMS_H

#include "traces/launch/shell/shell_state.h"

/* A program that starts the job's processes on a node. */
struct launcher {
    const char *name, *behind;                  /* the word that must follow; NULL: any */
    const char *nodes, *gpus;                   /* by default; gpus NULL: all visible GPUs */
    const char *nodes_variable, *gpus_variable; /* variables that change them; NULL: none */
};

/* The first one in a command; NULL: none. *at is the index of its field. */
const struct launcher *launch_programs_find(const struct shell_fields *fields, size_t *at);

/* Adds words of a command: "launched-nodes" and "launched-gpus", which count if nothing else says how many; "nnodes", "ntasks"
 * and "world-size" of short options. Where a value among `words` is no number (gpu, 1:4), it becomes unknown, with a reason. */
void launch_programs_tell(struct shell_state *state, const struct shell_fields *fields, struct launch_words *words);

/* Adds "configuration-file", the file that a command reads its job from, and "configuration-folder", a further folder to look
 * for it. Returns how sure it is that this is a training job: 0 without such a file, 2 for a known program. */
size_t launch_configuration(struct shell_state *state, const struct shell_fields *fields, struct launch_words *words);

/* Reads deepspeed --include=worker-0@worker-1:0,2: nodes, and all or some GPUs of each. Adds "launched-nodes" and
 * "launched-gpus", or "world-size" if nodes have different numbers of GPUs. "launched-gpus" is unknown, with a reason, if the
 * value is no such list. */
void launch_hosts_included(struct launch_word include, struct launch_words *words);

/* The same for a hostfile, whose lines are "NAME slots=GPUS", without the hosts that --include and --exclude among the words
 * leave out. */
void launch_programs_hosts(const char *path, const char *bytes, size_t n, struct launch_words *words, struct diags *diags);

/* May a field be the value of the flag before it? That flag has two dashes and no value of its own. */
bool launch_may_be_value(const struct shell_fields *fields, size_t i);

#endif
