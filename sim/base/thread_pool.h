/*
 * thread_pool.h - run independent tasks 0 to n - 1 on worker threads.
 *
 *     const struct parallel_task task = {.n = 1000, .threads = 8, .work = replay_one, .context = &replicas};
 *     status = parallel_for(&task, &diags);
 *
 * Which thread runs which task depends on their speed. So task i must depend on i alone and keep its result at i: then results do
 * not depend on the number of threads.
 */
#ifndef MSIM_SIM_BASE_THREAD_POOL_H
#define MSIM_SIM_BASE_THREAD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/diag.h"

struct parallel_task {
    int64_t n;             /* numbers 0 to n - 1 */
    int64_t first, stride; /* of which this process does first, first + stride, ...; 0: stride 1 */
    int threads;           /* at least 1 */
    /* Number i, with what is wrong in `said`. By many threads at a time. */
    enum status (*work)(void *context, int64_t i, struct diags *said);
    /* Whether i is still to be done; NULL: all are. */
    bool (*wanted)(void *context, int64_t i);
    /* Called after each that was done, by one thread at a time; NULL: none. False: stop. */
    bool (*finished)(void *context, int64_t i);
    void *context;
};

/* The first failure ends it; its diagnostics are errors in `diags`. */
MUST_CHECK enum status parallel_for(const struct parallel_task *task, struct diags *diags);

#endif
