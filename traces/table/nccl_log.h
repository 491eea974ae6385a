/*
 * nccl_log.h - the output of nccl-tests (all_reduce_perf and its relatives) as a table of kernels.
 *
 *     #  Rank  0 Group  0 Pid 100 on node-a device 0 [0x18] NVIDIA H100 80GB HBM3        h100, all_reduce of 16 ranks on 2 nodes,
 *     ...                                                                          ->    1 GiB in 6500 us
 *      1073741824 268435456 float sum -1 6500.0 165.19 309.73 0 6510.0 164.94 309.26 0
 *
 * One file may hold several runs; each begins with a line "# nThread" or a line that names the test. Rank lines give the number
 * of ranks, their hosts and the GPU. Times are those of the out-of-place columns. Launchers that put a rank before each line
 * ("[1,0]<stdout>:", "0: ") are understood.
 *
 * The operation: from the name of the test in the log ("all_reduce_perf", "Collective test starting: ...") or in the file's name;
 * else from the columns. With n ranks, the ratio of bus to algorithm bandwidth is 2 (n-1)/n for all-reduce and (n-1)/n for
 * reduce-scatter, all-gather and all-to-all; a reduction has a redop, the others have none. All-gather and all-to-all look alike:
 * where nothing names the test, their rows are an error that says so.
 *
 * Format: nccl-tests 2.0 to 2.17, src/common.cu (the table) and doc/PERFORMANCE.md (the bandwidths).
 */
#ifndef MSIM_TRACES_TABLE_NCCL_LOG_H
#define MSIM_TRACES_TABLE_NCCL_LOG_H

#include "traces/table/csv.h"

/* Does this text hold output of nccl-tests? */
bool nccl_log_is(const char *text, size_t n);

/* The rows as a table with the columns gpu, op, dtype, ranks, nodes, bytes and time_us. STATUS_BAD_INPUT with the line of what
 * cannot be read; *table is written only on success. */
MUST_CHECK enum status nccl_log_parse(const char *path, const char *text, size_t n, struct csv_table *table, struct diags *diags);

#endif
