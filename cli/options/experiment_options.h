/*
 * experiment_options.h - the options that describe an experiment: model, cluster, batch, layout and so on.
 *
 *     msim plan job.yaml --gpus 512 --set job.seq_len=4096
 *
 * A command with `.experiment = true` has these options, and an experiment file as its operand. An option with a key becomes the
 * override "cluster.gpus=512" of the file.
 *
 *     struct experiment_flags flags = experiment_flags_of(call);
 *     struct experiment experiment;
 *     enum status status = experiment_read(call, &flags, &experiment);
 */
#ifndef MSIM_CLI_OPTIONS_EXPERIMENT_OPTIONS_H
#define MSIM_CLI_OPTIONS_EXPERIMENT_OPTIONS_H

#include "cli/options/command.h"
#include "model/spec/experiment.h"

extern const struct option_row experiment_options[];

/* The flags of this call: the experiment file (the first operand, when command->experiment), names, and every override. Points
 * into the call. */
struct experiment_flags experiment_flags_of(const struct invocation *call);
/* Where the experiment is read from standard input: reads it, for all ranks though only one has it, into flags->text, which the
 * caller frees through *text. Nothing happens where it is a file, or flags->text is there already: *text is NULL. */
MUST_CHECK enum status experiment_input(struct invocation *call, struct experiment_flags *flags, char **text);
/* The same of a pipe, or standard input, that --model names: for commands that load an experiment more than once. */
MUST_CHECK enum status experiment_model_input(struct invocation *call, struct experiment_flags *flags, char **text);
/* experiment_input and experiment_load; the call's seed is the experiment's from then on. */
MUST_CHECK enum status experiment_read(struct invocation *call, const struct experiment_flags *flags,
                                       struct experiment *experiment);

#endif
