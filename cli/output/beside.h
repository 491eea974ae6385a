/*
 * beside.h - two predictions side by side: what `msim plan --explain` and `msim step A B` have in common.
 */
#ifndef MSIM_CLI_OUTPUT_BESIDE_H
#define MSIM_CLI_OUTPUT_BESIDE_H

#include "cli/output/table.h"
#include "model/cost/memory/footprint.h"

/* "+1.25", and "0.00" for what the digits shown make none. */
void difference_cell(struct table *table, double value, int digits);

/* What is in the memory of a GPU, by use, in bytes; the parts sum to footprint.total. */
enum { N_MEMORY_PARTS = 6 };
struct memory_part {
    const char *name;
    double bytes;
};
void memory_parts(const struct footprint *memory, struct memory_part parts[N_MEMORY_PARTS]);

#endif
