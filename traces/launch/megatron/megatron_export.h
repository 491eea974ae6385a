/*
 * megatron_export.h - the arguments with which Megatron-LM runs a layout.
 *
 *     ARGUMENTS=(
 *         --tensor-model-parallel-size 8
 *         --pipeline-model-parallel-size 4
 *         ...
 *     )
 *     torchrun --nproc_per_node 8 --nnodes 8 pretrain_gpt.py "${ARGUMENTS[@]}"
 *
 * The result is a bash script; data and tokenizer must be added. Reading it again (msim import) gives the same model, job and
 * layout. Whatever Megatron-LM cannot do appears in a comment and a warning: schedules that it does not have, features of other
 * stacks, modules that it does not recompute.
 *
 * Layers on stages: no argument where they divide evenly; the embedding and the loss count as a layer each where msim divides
 * them so; otherwise --pipeline-model-parallel-layout. The vocabulary is not padded: --make-vocab-size-divisible-by is the
 * largest power of two, at most 128, that divides it. --rotary-base is written if the model's base is known and not 10000.
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_EXPORT_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_EXPORT_H

#include <stdio.h>

#include "traces/launch/megatron/megatron_arguments.h"

enum { EXPORT_LOST = 16, EXPORT_TEXT = 160 };
struct megatron_export {
    struct megatron_arguments arguments; /* the arguments to write */
    char lost[EXPORT_LOST][EXPORT_TEXT]; /* what no argument can say */
    int n_lost;
    struct arena arena; /* of the values */
};

/* A job into arguments; free with megatron_export_free. job->job.features are the features that the layout uses. */
void megatron_export(const struct launch_job *job, struct megatron_export *export_);
void megatron_export_free(struct megatron_export *export_);
/* Adds something that no argument can say. */
void megatron_export_lose(struct megatron_export *export_, const char *format, ...) PRINTF_LIKE(2, 3);

/* Writes the script; `heading` are lines of comment at the top. What is lost goes to diags, too. */
void megatron_write_script(const struct launch_job *job, const char *const *heading, int n_heading, FILE *out,
                           struct diags *diags);

#endif
