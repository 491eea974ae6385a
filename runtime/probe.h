/*
 * probe.h - how fast this machine's CPU is as a device: kernels, exchanges, and a GPU entry that says so.
 *
 * Every case is run by all ranks at the same time, as training would: ranks share cores, caches and memory. A case is enqueued on
 * a device stream like any operation of a program; its time is the median of several batches, after one to warm up, per call.
 *
 * Sizes are those of a job, when one is given (the matrices, sequences and vocabulary of one rank), and a ladder of sizes
 * otherwise.
 *
 * The fit is simple: rates are totals of work over totals of time, so a step's total comes out right and single kernels may not
 * (the C references run at very different speeds per byte). The cost model counts activations with 2 bytes an element, this
 * device has 4: rates of memory and exchanges in the entry are per counted byte. The entry is meant for predictions on this
 * machine, now.
 */
#ifndef MSIM_RUNTIME_PROBE_H
#define MSIM_RUNTIME_PROBE_H

#include "model/layout/layout.h"

enum { PROBE_OP_SIZE = 24 };
struct probe_row {
    char op[PROBE_OP_SIZE];
    int64_t m, n, k;               /* gemm, 0 otherwise */
    int64_t batch, seq_len;        /* attention */
    int heads, kv_heads, head_dim; /* attention */
    int ranks;                     /* of an exchange */
    double bytes;                  /* of an exchange (full buffer), or moved by a memory-bound kernel */
    double flops;
    double seconds; /* median of one call */
    double fastest; /* what the machine does when nobody else disturbs it */
    double spread;  /* (largest - smallest) / median */
};

struct probe_options {
    int ranks;                     /* run at the same time */
    double seconds;                /* per case */
    const struct layout *layout;   /* NULL: a ladder of sizes */
    const struct setting *setting; /* with layout */
};

struct probe_result {
    struct probe_row *rows;
    int n_rows;
    double launch_s; /* of an operation that does nothing */
};

MUST_CHECK enum status probe_cpu(const struct probe_options *options, struct probe_result *result, struct diags *diags);
void probe_result_free(struct probe_result *result);

/* A cluster of one node with `ranks` such devices, at least those probed. More ranks than cores take turns: computations are then
 * expected to last ranks / cores times as long. Fitted to the fastest batches. */
void probe_fit(const struct probe_options *options, const struct probe_result *result, int ranks, struct cluster *cluster);
/* Cores that this process may use. */
int probe_cores(void);

#endif
