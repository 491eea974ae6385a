/*
 * reconcile.h - assumptions of a table against its own numbers, the dates of its sources and the memory of its GPUs.
 *
 *     flash_attention in a row of arXiv 2104.04473     taken away: the paper appeared before FlashAttention
 *     micro_batch assumed 1 in a pipeline              the one that `msim plan` would choose
 *     recompute assumed none, which does not fit       the least recomputation that fits
 *     vocab assumed 51,200                             the one that the printed MFU counts
 *
 * A source leaves columns open, by an empty cell or by the column `assumed`, and a table fills in the usual values, which may be
 * wrong. reconcile_internal.h says how each is decided. No decision looks at a measured time. A time that contradicts its MFU is
 * reported and stays.
 */
#ifndef MSIM_TRACES_TABLE_RECONCILE_H
#define MSIM_TRACES_TABLE_RECONCILE_H

#include "traces/table/measurement.h"

/* Changes rows of a table, with one warning per reason. */
void measurement_reconcile(struct measurement_table *table, struct diags *diags);

#endif
