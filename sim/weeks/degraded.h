/*
 * degraded.h - the speed of training on a degraded cluster, from simulated steps.
 *
 * Example: all nodes run at 100 %, but one GPU computes at 90 %. The step simulated with all GPUs at 90 % takes, say, 1.07 times
 * the healthy step, so the speed is 0.93: communication is not slowed.
 *
 *     struct degraded *degraded = degraded_create(&layout, &setting, &diags);
 *     struct degraded_speed speed = degraded_speed_of(degraded);   options.degraded = &speed;
 *
 * A condition is (speed of the slowest node's compute, speed of the slowest link, missing replicas). The step of each condition
 * is simulated once and remembered:
 *
 *   - compute and memory rates of every GPU are those of the slowest. In a pipeline the slowest stage sets the pace, and every
 *     replica waits for the slowest at the gradient exchange. This charges too much for warm-up and cool-down of the pipeline, by
 *     at most (p - 1) / (v m)
 *   - NIC rates are those of the slowest: a ring is as fast as its slowest link
 *   - fewer replicas: each gets more micro-batches of the same global batch, rounded up
 *
 * The speed is the healthy step time divided by this one. Speeds of nodes and links are rounded to 1/1000. A link below 1/1000
 * stands still for as long as this lasts. Several threads may ask at the same time.
 */
#ifndef MSIM_SIM_WEEKS_DEGRADED_H
#define MSIM_SIM_WEEKS_DEGRADED_H

#include "model/layout/layout.h"
#include "sim/weeks/run.h"

struct degraded;

/* `setting` must outlive it. Returns NULL, with a diagnostic, if the healthy step cannot be simulated. */
struct degraded *degraded_create(const struct layout *layout, const struct setting *setting, struct diags *diags);
void degraded_destroy(struct degraded *degraded);
/* The function for struct run_options. */
struct degraded_speed degraded_speed_of(struct degraded *degraded);

#endif
