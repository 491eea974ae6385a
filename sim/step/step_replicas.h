/*
 * step_replicas.h - the same step many times, each on GPUs that draw their own speed: how long steps take, and how unequally.
 *
 * A GPU's arithmetic takes 1 + jitter z of the mean, z standard normal and one for each GPU and step; a job is as fast as those
 * it waits for (step_pipelines.h). Where attention is masked between documents, each sequence of a step draws those it has, from
 * a stream named by (seed + r, s), s its place among the step's. GPU g of replica r draws from a stream named by (seed + r, g):
 * the same in any batch, on any thread or process, under any layout and in jobs of any size. Steps are whole nanoseconds kept by
 * r.
 */
#ifndef MSIM_SIM_STEP_STEP_REPLICAS_H
#define MSIM_SIM_STEP_STEP_REPLICAS_H

#include "model/cost/step/packing.h"
#include "sim/base/processes.h"
#include "sim/step/step_pipelines.h"

struct step_outcome {
    int64_t step;    /* nanoseconds */
    int64_t slowest; /* the rank whose arithmetic takes longest, the first of equals */
    int64_t pace;    /* how long: billionths of the mean */
};
enum { STEP_OUTCOME_WORDS = sizeof(struct step_outcome) / sizeof(int64_t) };

struct step_replicas_request {
    const struct pipelines *pipelines;
    int gpus;
    double jitter;                 /* as the pipelines were created with */
    const struct packing *packing; /* NULL: sequences are alike */
    int sequences;                 /* of a micro-batch, with packing */
    uint64_t seed;
    int64_t n;
    int64_t first, stride;                            /* this process does first, first + stride, ...; 0: stride 1 */
    int threads;                                      /* at least 1 */
    bool (*finished)(void *context, int64_t replica); /* after each one, by one thread at a time; NULL none. False: stop. */
    void *context;
};

/* Fills the outcomes [n] of this process. */
MUST_CHECK enum status step_replicas_run(const struct step_replicas_request *request, struct step_outcome *outcomes,
                                         struct diags *diags);
/* Every process gets all outcomes [n], of which it has its own share (first: its rank, stride: their number) and
 * zeros. `status` of that share: when one process failed, all return a failure. */
MUST_CHECK enum status step_replicas_share(const struct processes *processes, struct step_outcome *outcomes, int64_t n,
                                           enum status status);

#endif
