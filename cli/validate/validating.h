/*
 * validating.h - one validation: a program, how long its operations were predicted to take, and how long they took.
 *
 * Processes of one job all execute; the comparison is rank 0's.
 */
#ifndef MSIM_CLI_VALIDATE_VALIDATING_H
#define MSIM_CLI_VALIDATE_VALIDATING_H

#include "cli/job/job_setup.h"
#include "cli/validate/devices.h"
#include "sim/step/step.h"

/* Mean over ranks of the time their operations of a class took. Computations: as long as they had a processor. Exchanges: the
 * same where ranks share cores (an exchange whose threads wait for a core takes no longer by itself), elsewhere from when their
 * last rank was ready, without what their pieces waited. */
struct class_comparison {
    double predicted_s, measured_s;
    uint64_t operations;
};

/* Of the spans of all ranks' operations that share cores, seconds in which they had none. */
struct waiting {
    double computations; /* others have it */
    double exchanges;    /* the same, or threads are being woken, or another member is not as far */
};

struct rank_comparison {
    double predicted_s, measured_s;           /* end of its last operation */
    double predicted_busy_s, measured_busy_s; /* of its compute stream */
};

struct numerics {
    bool compared;         /* with one rank on the CPU; of operands of 8 bits: in fp32 */
    double loss_error;     /* relative */
    double gradient_error; /* of the worst tensor: largest difference over its largest gradient; of operands of 8 bits: length of
                            * the difference over its length */
    double allowed;        /* of that */
    char worst[64];        /* the tensor */
    double max_rel_error;  /* the larger one */
    bool held;
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
    struct waiting predicted_waiting, measured_waiting;
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
/* What one rank does when the others' messages are copies: the operations of its script, each when its stream and what it waits
 * for are ready. Fills in v->predicted and v->predicted_s; the program is there. */
void validate_predict_alone(struct validation *v);
/* What ranks do that share `n_cores` cores. Fills in v->predicted, v->predicted_s, v->predicted_work_s and v->predicted_waiting;
 * the program is there. */
MUST_CHECK enum status validate_predict_shared(struct validation *v, int n_cores, struct diags *diags);
/* own[program.n_ops]: what the two operations of each pair of a computation and an exchange that run beside one another take by
 * themselves, without `waking_s` of each exchange; -1 of other operations. */
void validate_pair_times(const struct validation *v, double waking_s, nanos *own);
/* Bytes that the ranks of one machine are predicted to need, all together. The layout is there. */
double validate_memory_of_all(const struct validation *v);
/* Predict, execute, compare. Free it with validation_free. */
MUST_CHECK enum status validate_run(struct invocation *call, const struct thread_run_options *options,
                                    struct validation *validation);
/* What of a step of all ranks, with gradients, equals one of one rank on the CPU: v->numerics (validate_numerics.c says how). */
MUST_CHECK enum status validate_numerics(struct invocation *call, const struct thread_run_options *options,
                                         const struct thread_run *many, struct validation *v);
void validation_free(struct validation *validation);

MUST_CHECK enum status validate_report(struct invocation *call, const struct validation *validation);
/* Both timelines as CSV (traces/timeline/timeline.h), with a first column `source`: predicted or measured. */
void validate_timeline(const struct validation *validation, FILE *out);
/* Both as a figure, two lanes a rank; `path` says which kind of file. */
MUST_CHECK enum status validate_figure(struct invocation *call, const struct validation *validation, const char *path, FILE *out);
/* One Chrome trace with a row of what was predicted and one of what was measured for each rank. */
MUST_CHECK enum status validate_trace(struct invocation *call, const struct validation *validation, FILE *out);

#endif
