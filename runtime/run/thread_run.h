/*
 * thread_run.h - a program executed by all its ranks on this machine: threads that share its memory and cores.
 *
 * Every step all ranks begin together. What comes back: loss and gradient norm of every step, how long it took, and the timeline
 * of the step with the median duration, with the simulator's conventions: a collective begins when its last member is there, a
 * receive when both sides are.
 *
 * Deterministic: the same seed gives the same losses and gradients to the last bit.
 */
#ifndef MSIM_RUNTIME_RUN_THREAD_RUN_H
#define MSIM_RUNTIME_RUN_THREAD_RUN_H

#include "runtime/run/executor.h"
#include "traces/timeline/timeline.h"

struct thread_run_options {
    int steps; /* at least 1 */
    uint64_t seed;
    float rate;                /* learning rate; 0: weights stay as they are */
    const unsigned char *text; /* NULL: synthetic tokens */
    size_t n_text;
    nanos timeout;                     /* of any wait for another rank; 0: a minute */
    size_t memory_limit;               /* bytes per rank; 0: none */
    const struct injection *injection; /* NULL: none */
    bool gradients;                    /* of the last step, wanted */
};

struct thread_run_step {
    double loss;
    double gradient_norm; /* NAN where it is not exchanged (rolling schedules that clip nothing) */
    nanos duration;       /* from the common beginning to the end of the last operation of any rank */
};

struct thread_run {
    struct thread_run_step *steps;
    int n_steps;
    float *gradients, *weights; /* of the whole model (model_map) after the last step; NULL: not asked for */
    int64_t n_gradients;
    struct timeline timeline; /* of the median step (without the first, which warms up, when there are others) */
    int timeline_step;
    /* Seconds in that step of all ranks' computations, and of their exchanges: what they had a processor for, without what they
     * waited for one or for others (device.h, event_work). */
    double computed[N_WORK_CLASSES], exchanged[N_WORK_CLASSES];
    double rested[N_WORK_CLASSES]; /* of the spans of exchanges: what their pieces waited for those of a product */
    size_t *memory_peak;           /* [n_ranks] bytes of device memory */
    size_t *host_peak;             /* [n_ranks] bytes of the host's memory that copies go to and come from */
    int n_ranks;
};

/* Execute. STATUS_MISSING when the runtime cannot execute such a program, STATUS_FAILED when a rank failed: diags have one line
 * per rank that did, the first cause among them. *result is written only on success; free it with thread_run_free. */
MUST_CHECK enum status run_on_threads(const struct program *program, const struct setting *setting,
                                      const struct thread_run_options *options, struct thread_run *result, struct diags *diags);
void thread_run_free(struct thread_run *result);

#endif
