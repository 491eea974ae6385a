/*
 * run_sweep.h - `msim run --sweep`: goodput at values of one thing, or at every combination of several.
 */
#ifndef MSIM_CLI_RUN_RUN_SWEEP_H
#define MSIM_CLI_RUN_RUN_SWEEP_H

#include "cli/run/run_many.h"
#include "sim/search/run_grid.h"

const char *run_sweep_key_name(enum run_sweep_key key);

/* In the call's format. */
MUST_CHECK enum status run_sweep_report(struct invocation *call, const struct run_session *s, const struct run_grid *grid,
                                        const struct run_point *points, int64_t n);

#endif
