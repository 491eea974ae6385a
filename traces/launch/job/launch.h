/*
 * launch.h - a job, and where each of its values came from.
 *
 *     layout.tp = 4        "--tensor-model-parallel-size, train.sh:31"
 *     model.vocab = 128256 "--tokenizer-type, train.sh:12"
 *
 * Readers of scripts (launch_shell.h), logs (megatron_log.h) and configurations (framework_config.h) produce words.
 * megatron_arguments.h knows each word, megatron_translate.h what they mean together: a launch_job. launch_write.h writes it as
 * an experiment or as a row of a measurement table. megatron_export.h and framework_export.h are the way back: from a layout to
 * the arguments that launch it.
 */
#ifndef MSIM_TRACES_LAUNCH_JOB_LAUNCH_H
#define MSIM_TRACES_LAUNCH_JOB_LAUNCH_H

#include "model/layout/layout.h"

struct launch_job {
    struct transformer model;
    struct job job;
    struct layout layout;
    int gpus;          /* of the whole job; 0: unknown */
    int gpus_per_node; /* 0: unknown */
};

/* Where a value of the job came from. */
enum { LAUNCH_ORIGIN = 128 };
struct launch_origin {
    const char *key;          /* "layout.tp" */
    char text[LAUNCH_ORIGIN]; /* "--tensor-model-parallel-size, train.sh:31" */
};

enum { LAUNCH_ORIGINS = 96, LAUNCH_MISSING = 16 };
struct launch_description {
    struct launch_job job;
    struct launch_origin origins[LAUNCH_ORIGINS];
    int n_origins;
    const char *missing[LAUNCH_MISSING]; /* required values that nothing specifies, as a person would name them */
    int n_missing;
};

/* Adds an origin, or changes the one of that key. `key` must outlive the description. */
void launch_originate(struct launch_description *description, const char *key, const char *format, ...) PRINTF_LIKE(3, 4);
/* The origin of a key; NULL: none. */
const char *launch_origin_of(const struct launch_description *description, const char *key);

#endif
