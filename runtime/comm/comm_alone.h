/*
 * comm_alone.h - one rank of a program without the others: their messages become copies on this rank's device.
 *
 * A whole stage of a large job then runs on one device at full shape: every kernel is the real one, and every exchange moves as
 * many bytes through the device's memory as its full buffer has:
 *
 *   send             its message, to a buffer that nobody reads
 *   receive          its message, from a buffer of small random numbers
 *   all-reduce       the buffer, to the result; beside, when both are one
 *   all-gather       own part, to every place of the result
 *   reduce-scatter   all parts, to a buffer that nobody reads; own part to the result
 *   all-to-all       all parts, to the result
 *   broadcast        like a send at its root, like a receive elsewhere
 *
 * Nothing waits, so only what the device does is timed. Losses and gradients are those of no model: sums lack the others' terms.
 */
#ifndef MSIM_RUNTIME_COMM_COMM_ALONE_H
#define MSIM_RUNTIME_COMM_COMM_ALONE_H

#include "runtime/base/comm.h"

/* Rank `rank` of `n_ranks`; `device` outlives the world. */
MUST_CHECK enum status comm_alone_open(int rank, int n_ranks, struct device *device, struct world **world, struct diags *diags);
/* Bytes of device memory that stand in for the others. */
size_t comm_alone_bytes(const struct world *world);

#endif
