/*
 * step_replicas.h - repeats a step many times with random GPU speeds and documents: the distribution of step times.
 *
 * Example: 1,000 steps of one job on 8 threads. outcomes[r].step is the time of step r.
 *
 *     const struct step_replicas_request request = {.pipelines = p, .gpus = 512, .jitter = 0.02, .n = 1000, .threads = 8};
 *     status = step_replicas_run(&request, outcomes, &diags);
 *
 * A GPU's arithmetic takes 1 + jitter z of the mean, with one standard normal z per GPU and step. A job is as fast as the GPUs
 * it waits for (step_pipelines.h). If attention is masked between documents, each sequence of a step draws its documents from a
 * stream named by (seed + r, s), where s is its index in the step. GPU g of replica r draws from a stream named by (seed + r,
 * g). So draws are the same in any batch, on any thread or process, under any layout, and in jobs of any size. Steps are whole
 * nanoseconds, stored by r.
 */
#ifndef MSIM_SIM_STEP_STEP_REPLICAS_H
#define MSIM_SIM_STEP_STEP_REPLICAS_H

#include "model/cost/step/packing.h"
#include "sim/base/processes.h"
#include "sim/step/step_pipelines.h"

struct step_outcome {
    int64_t step;    /* nanoseconds */
    int64_t slowest; /* rank with the slowest arithmetic; the first of equals */
    int64_t pace;    /* its time, in billionths of the mean */
};
enum { STEP_OUTCOME_WORDS = sizeof(struct step_outcome) / sizeof(int64_t) };

struct step_replicas_request {
    const struct pipelines *pipelines;
    int gpus;
    double jitter;                 /* that of pipelines_create */
    const struct packing *packing; /* NULL: sequences are alike */
    int sequences;                 /* of a micro-batch, with packing */
    uint64_t seed;
    int64_t n;
    int64_t first, stride;                            /* this process runs first, first + stride, ...; 0: stride 1 */
    int threads;                                      /* at least 1 */
    bool (*finished)(void *context, int64_t replica); /* after each one, by one thread at a time; false: stop; NULL: none */
    void *context;
};

/* Fills those outcomes [n] that belong to this process. */
MUST_CHECK enum status step_replicas_run(const struct step_replicas_request *request, struct step_outcome *outcomes,
                                         struct diags *diags);
/* Gives every process all outcomes [n]. Each comes with its own share (first: its rank, stride: their number) and zeros.
 * `status`: that of its share. If one process failed, all return a failure. */
MUST_CHECK enum status step_replicas_share(const struct processes *processes, struct step_outcome *outcomes, int64_t n,
                                           enum status status);

#endif
