/*
 * run_sweep.h - `msim run --sweep`: goodput at values of one thing, or at every combination of several.
 */
#ifndef MSIM_CLI_RUN_RUN_SWEEP_H
#define MSIM_CLI_RUN_RUN_SWEEP_H

#include "cli/run/run_many.h"
#include "sim/search/run_grid.h"

extern const struct result_row run_point_rows[], run_axis_rows[]; /* of the rows of sweep.points and sweep.axes */
/* In the call's format. */
MUST_CHECK enum status run_sweep_report(struct invocation *call, const struct run_session *s, const struct run_grid *grid,
                                        const struct run_point *points, int64_t n);

#endif
