/*
 * reconcile.h - what a table assumes against what its own numbers, its sources' dates and the memory of its GPUs say.
 *
 * What a source leaves open, by an empty cell or by the column `assumed`, a table fills in as usual, which may be wrong: what was
 * published after the source was written gives way to what there was; an assumed micro-batch to the one that its authors are
 * likely to have run, assumed recomputation of none to the least that fits, an assumed vocabulary to the one that the printed MFU
 * counts. How each is decided stands in reconcile_internal.h. A measured time is never looked at for any of them; one that
 * contradicts its MFU is told, and stays.
 */
#ifndef MSIM_TRACES_TABLE_RECONCILE_H
#define MSIM_TRACES_TABLE_RECONCILE_H

#include "traces/table/measurement.h"

/* Changes rows of a table; what was changed is warned of, once for each reason. */
void measurement_reconcile(struct measurement_table *table, struct diags *diags);

#endif
