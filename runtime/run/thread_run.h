/*
 * thread_run.h - executes a program with all its ranks as threads of this process, on CPUs.
 *
 * Example: three steps.
 *
 *     struct thread_run_options options = {.steps = 3, .seed = 1, .rate = 1e-3f};
 *     run_on_threads(&program, &setting, &options, &run, &diags);
 *     run.steps[2].loss, run.steps[2].duration
 *     thread_run_free(&run);
 *
 * All ranks begin each step together. The timeline is that of the step with the median duration. It has the simulator's
 * conventions: a collective begins when its last member is ready, a receive when both sides are.
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
    bool gradients;                    /* return the gradients of the last step */
};

struct thread_run_step {
    double loss;
    double gradient_norm; /* NAN: not exchanged (rolling schedules without clipping) */
    nanos duration;       /* from the common start to the end of the last operation of any rank */
};

struct thread_run {
    struct thread_run_step *steps;
    int n_steps;
    float *gradients, *weights; /* of the whole model (model_map) after the last step; NULL: not requested */
    int64_t n_gradients;
    struct timeline timeline; /* of the median step; the first step, which warms up, counts only if it is the only one */
    int timeline_step;
    /* Processor seconds of all ranks' computations and exchanges in that step, without waiting for a core or for other ranks
     * (device.h, event_work). */
    double computed[N_WORK_CLASSES], exchanged[N_WORK_CLASSES];
    double rested[N_WORK_CLASSES]; /* seconds within exchanges in which their pieces waited for pieces of a product */
    size_t *memory_peak;           /* [n_ranks] bytes of device memory */
    size_t *host_peak;             /* [n_ranks] bytes of host memory of offloaded tensors (device.h, host_new) */
    int n_ranks;
};

/* STATUS_MISSING if the runtime cannot execute the program. STATUS_FAILED if ranks failed: diags have a message of each of them,
 * including the first cause. *result is written only on success; free it with thread_run_free. */
MUST_CHECK enum status run_on_threads(const struct program *program, const struct setting *setting,
                                      const struct thread_run_options *options, struct thread_run *result, struct diags *diags);
void thread_run_free(struct thread_run *result);

#endif
