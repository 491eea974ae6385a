/*
 * rank_record.h - all steps of one rank, and the measurements that it takes from them (private to the runtime).
 *
 * Example:
 *
 *     rank_record_new(&record, &program, rank_number, options.steps);
 *     rank_run(&rank_options, NULL, device, world, &rank, &record);        executes all steps
 *     rank_record_end(&record, 2)                                          when the last operation of step 2 ended
 *     rank_close(&rank);
 *     rank_record_free(&record);
 */
#ifndef MSIM_RUNTIME_RUN_RANK_RECORD_H
#define MSIM_RUNTIME_RUN_RANK_RECORD_H

#include "runtime/run/thread_run.h"

struct rank_record {
    uint32_t n_ops;
    int steps;
    struct rank_timing *timings;   /* [steps], each [n_ops] */
    double *losses, *square_norms; /* [steps] */
    size_t peak, host_peak;        /* bytes of device memory, of host memory */
};

/* The options of a run that are the same for every rank. */
struct rank_options run_rank_options(const struct program *program, const struct setting *setting,
                                     const struct thread_run_options *options);

void rank_record_new(struct rank_record *record, const struct program *program, int rank, int steps);
void rank_record_free(struct rank_record *record);

/* Opens the rank, which takes ownership of device and world, and executes all steps. Call rank_close afterwards, also after a
 * failure; the other ranks have then been informed of it. */
MUST_CHECK enum status rank_run(const struct rank_options *options, const struct injection *injection, struct device *device,
                                struct world *world, struct rank *rank, struct rank_record *record);

/* When the rank's last operation of a step ended. */
nanos rank_record_end(const struct rank_record *record, int step);
/* Adds to `run`, by class of work, the processor seconds of the rank's operations in a step, and the seconds that its exchanges
 * paused between pieces. */
void rank_record_add_work(const struct rank_record *record, int step, const struct program *program, int rank,
                          struct thread_run *run);
/* Whether this rank's loss counts: the mean over the batch is the sum over the ranks that count. */
bool rank_has_loss(const struct layout *layout, int rank);
/* The step with the (lower) median duration, without the first step. */
int run_median_step(const struct thread_run_step *steps, int n);

#endif
