/*
 * comm_alone.h - one rank of a program without the others: its exchanges become copies on this rank's device.
 *
 * Example: `msim validate --alone 8 --layout tp=8,pp=8,mb=1 ...` runs rank 8 of 64 on one device. An all-gather of 8 parts copies
 * this rank's part to all 8 places of the result.
 *
 * A whole stage of a large job can so run on one device at full size. Every kernel is the real one, and every exchange moves as
 * many bytes through the device's memory as its full buffer has:
 *
 *   send             copies its message to a buffer that nobody reads
 *   receive          copies its message from a buffer of small random numbers
 *   all-reduce       copies the buffer to the result; within the buffer if both are the same
 *   all-gather       copies this rank's part to every place of the result
 *   reduce-scatter   copies all parts to a buffer that nobody reads, and this rank's part to the result
 *   all-to-all       copies all parts to the result
 *   broadcast        like a send at its root, like a receive elsewhere
 *
 * Nothing waits for other ranks, so only the device's work is timed. Losses and gradients are meaningless: sums lack the terms
 * of the other ranks.
 */
#ifndef MSIM_RUNTIME_COMM_COMM_ALONE_H
#define MSIM_RUNTIME_COMM_COMM_ALONE_H

#include "runtime/base/comm.h"

/* Rank `rank` of `n_ranks`; `device` outlives the world. */
MUST_CHECK enum status comm_alone_open(int rank, int n_ranks, struct device *device, struct world **world, struct diags *diags);
/* Bytes of device memory that the world uses in place of other ranks. */
size_t comm_alone_bytes(const struct world *world);

#endif
