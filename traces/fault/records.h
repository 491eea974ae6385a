/*
 * records.h - turns a table of records (traces/table/record_table.h) into a fault trace, row by row.
 *
 * Example: a row of a table of jobs, whose nodes n1 and n2 failed.
 *
 *     records_open(&records, path, options, &diags);
 *     records_add(&records, "n[1-2]", (struct fault){.time = end, .kind = FAULT_NODE}, "node_fail");        two faults
 *     records_finish(&records, merge, &trace);
 */
#ifndef MSIM_TRACES_FAULT_RECORDS_H
#define MSIM_TRACES_FAULT_RECORDS_H

#include "traces/fault/trace_convert.h"
#include "traces/table/record_table.h"

struct records {
    struct record_table rows;
    const char *path;
    const struct convert_options *options;
    struct host_table hosts;
    struct fault_trace trace;
    size_t n_cut; /* node lists that a column of fixed width cut */
    struct diags *diags;
};
MUST_CHECK enum status records_open(struct records *records, const char *path, const struct convert_options *options,
                                    struct diags *diags);
/* A duration in seconds. False, and reported: it is no such number. */
MUST_CHECK bool records_duration(struct records *records, size_t row, int column, nanos *duration);
/* A fault of each node of a list (node_list.h); how many there are. A list that its column cut names none. */
int64_t records_add(struct records *records, const char *nodes, struct fault fault, const char *detail);
/* Is this cell of a column of fixed width cut? Counts it. */
bool records_is_cut(struct records *records, const char *cell);
/* The trace, with the hosts' names and repeats within `merge` joined (convert_finish), if there was no mistake. Frees the
 * records. */
MUST_CHECK enum status records_finish(struct records *records, nanos merge, struct fault_trace *trace);

#endif
