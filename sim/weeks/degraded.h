/*
 * degraded.h - how fast training goes on a cluster that is not whole: asked of the step simulation, remembered by condition.
 *
 * A condition is (speed of the slowest node's compute, speed of the slowest link, replicas missing). For each the step is
 * simulated once, with
 *
 *   - compute and memory rates of every GPU at the slowest's: in a pipeline the slowest stage sets the pace, and every replica
 *     waits for the slowest at the gradient exchange. The warm-up and cool-down of the pipeline are then charged too much, by
 *     (p - 1) / (v m) at most
 *   - NIC rates at the slowest's: a ring is as fast as its slowest link
 *   - fewer replicas: each gets more micro-batches, rounded up, of the same global batch
 *
 * and the speed is the healthy step time over that one. Factors are rounded to 1/1000 (down to 1/1000, below which the link
 * counts as standing still for as long as it lasts). Threads may ask at the same time.
 */
#ifndef MSIM_SIM_WEEKS_DEGRADED_H
#define MSIM_SIM_WEEKS_DEGRADED_H

#include "model/layout/layout.h"
#include "sim/weeks/run.h"

struct degraded;

/* `setting` must outlive it. NULL with a diagnostic when the healthy step cannot be simulated. */
struct degraded *degraded_create(const struct layout *layout, const struct setting *setting, struct diags *diags);
void degraded_destroy(struct degraded *degraded);
/* For struct run_options. */
struct degraded_speed degraded_speed_of(struct degraded *degraded);

#endif
