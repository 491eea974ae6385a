/*
 * launch.h - what a real job says about itself, in msim's terms.
 *
 * Engineers have their jobs as launch scripts, logs and configuration files of a framework. Readers (launch_shell.h,
 * megatron_log.h, framework_config.h) turn these into words, megatron_arguments.h knows what the words are, megatron_translate.h
 * what they mean together: a launch_job. launch_write.h writes it as an experiment or as a row of a measurement table;
 * megatron_export.h goes the other way, from a layout to the arguments that launch it.
 *
 * Megatron-LM's arguments are the language in between: other frameworks' keys are renamed to them.
 */
#ifndef MSIM_TRACES_LAUNCH_JOB_LAUNCH_H
#define MSIM_TRACES_LAUNCH_JOB_LAUNCH_H

#include "model/layout/layout.h"

struct launch_job {
    struct transformer model;
    struct job job;
    struct layout layout;
    int gpus;          /* of the whole job; 0: not said */
    int gpus_per_node; /* 0: not said */
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
    const char *missing[LAUNCH_MISSING]; /* what must be known and is not said, as a person can say it */
    int n_missing;
};

/* Adds an origin, or changes the one of that key; key must outlive the description. */
void launch_originate(struct launch_description *description, const char *key, const char *format, ...) PRINTF_LIKE(3, 4);
/* The text of a key's origin, NULL when there is none. */
const char *launch_origin_of(const struct launch_description *description, const char *key);

#endif
