/*
 * megatron_export_internal.h - the functions that the files of megatron_export share (private to them).
 *
 * Example: how a layout becomes arguments.
 *
 *     export_set(w, ARGUMENT_TP, "%d", layout->tp);                                 --tensor-model-parallel-size 8
 *     export_flag(w, ARGUMENT_OFFLOAD_OPTIMIZER);                                   --optimizer-cpu-offload
 *     export_lose(w, "offload parameters: Megatron-LM keeps weights on the GPU");   a comment in the script, and a warning
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_EXPORT_INTERNAL_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_EXPORT_INTERNAL_H

#include "traces/launch/megatron/megatron_export.h"

struct export_writer {
    const struct launch_job *job;
    struct megatron_export *to;
};

/* Writes an argument with a value; a flag without one; removes an argument. */
void export_set(struct export_writer *w, enum argument argument, const char *format, ...) PRINTF_LIKE(3, 4);
void export_flag(struct export_writer *w, enum argument argument);
void export_leave_out(struct export_writer *w, enum argument argument);
/* Notes something that no argument can express. */
void export_lose(struct export_writer *w, const char *format, ...) PRINTF_LIKE(2, 3);

/* megatron_export_layout.c */
void export_layout(struct export_writer *w);

/* megatron_export_model.c */

/* Whether a hybrid model is written as a pattern of layers. Megatron-LM's hybrids have Mamba-2 mixers and layers of one part. */
bool exports_pattern(const struct export_writer *w);
void export_model(struct export_writer *w);
void export_precision(struct export_writer *w);
void export_features(struct export_writer *w);
void export_documents(struct export_writer *w);
void export_moments(struct export_writer *w);

#endif
