/*
 * kernel_table.h - tables of measured kernels and collectives: one row, one time.
 *
 * Columns; one file may hold rows of several kinds, and leaves empty what a kind does not have:
 *
 *     gpu op dtype time_us                       of every row
 *     m n k [count]                              op gemm: C[m,n] = A[m,k] B[k,n], FLOPs 2mnk; count equal ones in one launch
 *     m n k count                                op grouped_gemm: count of them, experts' products, as the cost model has these
 *     batch seq_len heads kv_heads head_dim      op attention_forward, attention_backward; window 0 or empty: full;
 *       [window] [causal]                          causal 1 or empty: the lower triangle
 *     ranks [nodes] bytes                        op all_reduce, all_gather, reduce_scatter, all_to_all, broadcast: bytes of the
 *                                                  full buffer, as nccl-tests counts it
 *
 * dtype is a precision (bf16, fp8, ...); of attention fp8 or any other text for operands of 16 bits, of collectives any text.
 * time_us in microseconds, above 0.
 *
 * A cell that cannot be read is an error with its line and column; all are reported and no table comes back. An op or a precision
 * that nobody here knows makes the row unusable: it is skipped and counted, with one warning for each such word.
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
        struct work_gemm gemm;           /* 2 bytes an element of C */
        struct work_attention attention; /* by the GPU's fastest kernel, which its parameters are of */
        struct kernel_collective collective;
    };
};

struct kernel_table {
    struct csv_table csv; /* owns the texts above */
    struct kernel_measurement *items;
    size_t n_items;   /* usable rows, in the file's order */
    size_t n_skipped; /* unusable ones */
};

/* Whether a table's header is a kernel table's: it has `op` and `time_us`. */
bool kernel_table_is(const struct csv_table *csv);

/* Read a table; takes over `csv`, also on failure. *table is written only on success; free it with kernel_table_free. */
MUST_CHECK enum status kernel_table_build(struct csv_table *csv, struct kernel_table *table, struct diags *diags);
void kernel_table_free(struct kernel_table *table);

/* What was timed, without how long it took: equal numbers for equal conditions, other ones (but for a chance of 2^-64 a pair) for
 * different ones. */
uint64_t kernel_case(const struct kernel_measurement *kernel);

#endif
