/*
 * kernel_table.h - tables of measured kernels and collectives: one row, one time.
 *
 *     gpu,op,dtype,m,n,k,time_us
 *     h100-sxm,gemm,bf16,8192,8192,8192,1650
 *
 * One file may have rows of several kinds. Cells that a kind does not use are empty.
 *
 *     gpu op dtype time_us                       every row
 *     m n k [count]                              op gemm: C[m,n] = A[m,k] B[k,n], FLOPs 2mnk; count: equal ones in one launch
 *     m n k count                                op grouped_gemm: the products of count experts, as in the cost model
 *     batch seq_len heads kv_heads head_dim      op attention_forward, attention_backward; window 0 or empty: full;
 *       [window] [causal]                        causal 1 or empty: the lower triangle
 *     ranks [nodes] bytes                        op all_reduce, all_gather, reduce_scatter, all_to_all, broadcast: bytes of the
 *                                                full buffer, as in nccl-tests
 *
 * dtype is a precision (bf16, fp8, ...). For attention it is fp8, or any other text for operands of 16 bits; for collectives any
 * text. time_us is in microseconds, above 0.
 *
 * A cell that cannot be read is an error with its line and column; all errors are reported, and no table is returned. A row with
 * an unknown op or precision is skipped and counted, with one warning per word.
 *
 * Cost: 60,768 rows take about 50 ms.
 */
#ifndef MSIM_TRACES_TABLE_KERNEL_TABLE_H
#define MSIM_TRACES_TABLE_KERNEL_TABLE_H

#include "model/cost/work/work.h"
#include "traces/table/csv.h"

enum measured_op { MEASURED_GEMM, MEASURED_ATTENTION, MEASURED_ATTENTION_BACKWARD, MEASURED_COLLECTIVE, N_MEASURED_OPS };

struct kernel_collective {
    enum collective collective;
    int ranks, nodes;
    double bytes;
};

struct kernel_measurement {
    size_t row;      /* of the table, for csv_place */
    const char *gpu; /* belongs to the table */
    enum measured_op op;
    double seconds;
    union {
        struct work_gemm gemm;           /* 2 bytes per element of C */
        struct work_attention attention; /* with the GPU's fastest kernel, which its parameters describe */
        struct kernel_collective collective;
    };
};

struct kernel_table {
    struct csv_table csv; /* owns the texts above */
    struct kernel_measurement *items;
    size_t n_items;   /* usable rows, in the file's order */
    size_t n_skipped; /* unusable ones */
};

/* Is this the header of a kernel table? It has `op` and `time_us`. */
bool kernel_table_is(const struct csv_table *csv);

/* Reads a table; takes over `csv`, also on failure. *table is written only on success; free it with kernel_table_free. */
MUST_CHECK enum status kernel_table_build(struct csv_table *csv, struct kernel_table *table, struct diags *diags);
void kernel_table_free(struct kernel_table *table);

/* A hash of what was timed, without the time: equal for equal conditions; different ones collide with a chance of 2^-64 per
 * pair. */
uint64_t kernel_case(const struct kernel_measurement *kernel);

#endif
