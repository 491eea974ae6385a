/*
 * megatron_export.h - the arguments with which Megatron-LM runs a layout: the other way through the table of arguments.
 *
 * A script of bash, ready to paste: an array of arguments and the torchrun that uses it, to which the data and the tokenizer are
 * to be added. Reading it again (msim import) gives the same model, job and layout. What Megatron-LM cannot do is told, in a
 * comment and as a warning: schedules that it does not have, features of other stacks, modules that it does not recompute.
 *
 * Layers on stages: plainly where they divide; with the embedding and the loss counted as a layer each where that is how msim
 * divides them; otherwise by --pipeline-model-parallel-layout. Words beyond the vocabulary are not added:
 * --make-vocab-size-divisible-by is the largest power of two, at most 128, for which there are none. --rotary-base is there where
 * the model's is known and not 10000.
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_EXPORT_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_EXPORT_H

#include <stdio.h>

#include "traces/launch/megatron/megatron_arguments.h"

enum { EXPORT_LOST = 16, EXPORT_TEXT = 160 };
struct megatron_export {
    struct megatron_arguments arguments; /* those that are to be written */
    char lost[EXPORT_LOST][EXPORT_TEXT]; /* what no argument says */
    int n_lost;
    struct arena arena; /* of the values */
};

/* A job into arguments; free with megatron_export_free. job->job.features are those used. */
void megatron_export(const struct launch_job *job, struct megatron_export *export_);
void megatron_export_free(struct megatron_export *export_);
/* One more thing that is lost. */
void megatron_export_lose(struct megatron_export *export_, const char *format, ...) PRINTF_LIKE(2, 3);

/* The whole script; `heading` lines of comment in front. What is lost goes to diags, too. */
void megatron_write_script(const struct launch_job *job, const char *const *heading, int n_heading, FILE *out,
                           struct diags *diags);

#endif
