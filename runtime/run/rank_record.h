/*
 * rank_record.h - all steps of one rank, and what it brings home of them (private to the runtime).
 */
#ifndef MSIM_RUNTIME_RUN_RANK_RECORD_H
#define MSIM_RUNTIME_RUN_RANK_RECORD_H

#include "runtime/run/thread_run.h"

struct rank_record {
    uint32_t n_ops;
    int steps;
    struct rank_timing *timings;   /* [steps], each [n_ops] */
    double *losses, *square_norms; /* [steps] */
    size_t peak, host_peak;        /* bytes of device memory, of the host's */
};

/* What is the same for every rank of a run. */
struct rank_options run_rank_options(const struct program *program, const struct setting *setting,
                                     const struct thread_run_options *options);

void rank_record_new(struct rank_record *record, const struct program *program, int rank, int steps);
void rank_record_free(struct rank_record *record);

/* Opens the rank, which takes device and world over, and executes all steps. Close it with rank_close whatever comes. After a
 * failure the others have been told. */
MUST_CHECK enum status rank_run(const struct rank_options *options, const struct injection *injection, struct device *device,
                                struct world *world, struct rank *rank, struct rank_record *record);

/* When the rank's last operation of a step ended. */
nanos rank_record_end(const struct rank_record *record, int step);
/* Adds what the rank's operations of a step worked, in seconds, by their class, and what its exchanges rested between pieces. */
void rank_record_add_work(const struct rank_record *record, int step, const struct program *program, int rank,
                          struct thread_run *run);
/* This rank's loss counts: the mean over the batch is the sum of those that do. */
bool rank_has_loss(const struct layout *layout, int rank);
/* The step with the (lower) median duration, the first aside. */
int run_median_step(const struct thread_run_step *steps, int n);

#endif
