/*
 * thread_pool.h - runs independent tasks 0 to n - 1 on worker threads.
 *
 * Example: simulate 1,000 replicas on 8 threads; work(context, i, diags) computes results[i].
 *
 *     const struct parallel_task task = {.n = 1000, .threads = 8, .work = simulate_one, .context = results};
 *     status = parallel_for(&task, &diags);
 *
 * Scheduling depends on the speed of the threads. So the result of task i must depend on i alone, and be stored at index i.
 */
#ifndef MSIM_SIM_BASE_THREAD_POOL_H
#define MSIM_SIM_BASE_THREAD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/diag.h"

struct parallel_task {
    int64_t n;             /* tasks are 0 to n - 1 */
    int64_t first, stride; /* this process runs first, first + stride, ...; 0: stride 1 */
    int threads;           /* at least 1 */
    /* Runs task i and reports errors in `diags`. Called by many threads at a time. */
    enum status (*work)(void *context, int64_t i, struct diags *diags);
    /* Returns whether task i is still to be run. NULL: all are. */
    bool (*wanted)(void *context, int64_t i);
    /* Called after each task, by one thread at a time; returns false to stop. NULL: none. */
    bool (*finished)(void *context, int64_t i);
    void *context;
};

/* The first failure stops all; its diagnostics become errors in `diags`. */
MUST_CHECK enum status parallel_for(const struct parallel_task *task, struct diags *diags);

#endif
