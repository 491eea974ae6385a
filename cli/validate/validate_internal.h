/*
 * validate_internal.h - one validation: a program, the predicted time of its operations, and the measured one.
 *
 * All processes of a job execute. Only rank 0 compares.
 */
#ifndef MSIM_CLI_VALIDATE_VALIDATE_INTERNAL_H
#define MSIM_CLI_VALIDATE_VALIDATE_INTERNAL_H

#include "cli/job/job_setup.h"
#include "cli/validate/devices.h"
#include "runtime/run/numerics.h"
#include "sim/step/shared_cores.h"
#include "sim/step/step.h"

/* Mean over ranks of the time their operations of a class took. Computations: as long as they had a processor. Exchanges: the
 * same where ranks share cores (an exchange whose threads wait for a core takes no longer by itself), elsewhere from when their
 * last rank was ready, without what their pieces waited. */
struct class_comparison {
    double predicted_s, measured_s;
    uint64_t operations;
};

struct rank_comparison {
    double predicted_s, measured_s;           /* end of its last operation */
    double predicted_busy_s, measured_busy_s; /* of its compute stream */
};

struct validation {
    struct job_setup *setup;
    struct devices devices;
    double waking_s;               /* of an exchange: what nobody needs a core for */
    double copy_rate, copy_base_s; /* of a rank alone: what its exchanges are predicted with */
    struct program program;
    struct timeline predicted;
    struct thread_run run;
    struct class_comparison classes[N_WORK_CLASSES];
    struct rank_comparison *ranks; /* [program.n_ranks] */
    struct numerics numerics;
    double memory_predicted, memory_measured; /* bytes, of the fullest rank */
    double host_predicted, host_measured;     /* the same of the host's memory that copies go to and come from */
    double predicted_s, measured_s, error_pct;
    double predicted_work_s[N_WORK_CLASSES]; /* of ranks that share cores: what their operations have one for, sum over ranks */
    struct core_waiting predicted_waiting, measured_waiting;
    int slices;     /* most pieces that a product and its exchange are cut into */
    double seconds; /* this command took */
    bool probed;    /* the entry was measured here */
};

/* Ranks that execute. */
static inline int validation_ranks(const struct validation *v)
{
    return v->devices.alone < 0 ? v->program.n_ranks : 1;
}

/* A job for this machine's devices: experiment and layout of the call with tiny-gpt and a small batch where it says nothing.
 * Fills in v->devices; v->setup must stay where it is. */
MUST_CHECK enum status validate_setup(struct invocation *call, struct validation *v);
/* The cluster of the job, measured unless one is given: seconds, so after all that can be wrong with a call. */
MUST_CHECK enum status validate_measure(struct invocation *call, struct validation *v);
/* Bytes that the ranks of one machine are predicted to need, all together. The layout is there. */
double validate_memory_of_all(const struct validation *v);
/* Predict, execute, compare. Free it with validation_free. */
MUST_CHECK enum status validate_run(struct invocation *call, const struct thread_run_options *options,
                                    struct validation *validation);
void validation_free(struct validation *validation);

MUST_CHECK enum status validate_report(struct invocation *call, const struct validation *validation);
/* Both timelines as CSV (traces/timeline/timeline.h), with a first column `source`: predicted or measured. */
void validate_timeline(const struct validation *validation, FILE *out);
/* Both as a figure, two lanes a rank; `path` says which kind of file. */
MUST_CHECK enum status validate_figure(struct invocation *call, const struct validation *validation, const char *path, FILE *out);
/* One Chrome trace with a row of what was predicted and one of what was measured for each rank. */
MUST_CHECK enum status validate_trace(struct invocation *call, const struct validation *validation, FILE *out);

#endif
