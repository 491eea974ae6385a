/*
 * probe.h - measures how fast this machine's kernels and exchanges are, and fits a GPU entry of the catalog to the measurements.
 *
 * Example: four ranks on CPUs, without a job.
 *
 *     struct probe_options options = {.ranks = 4, .seconds = 0.1};
 *     probe_cpu(&options, &result, &diags);                                     one row per case, such as gemm 128 x 64 x 64
 *     probe_fit(&options, &result, &device, 4, &cluster);                       a cluster of one node with four such devices
 *     probe_result_free(&result);
 *
 * Sizes. With a job: the matrices, sequences, vocabulary and biases of one of its ranks. Without: a ladder of sizes.
 *
 * Kernels. All ranks run each case at the same time, as in training, because ranks share cores, caches and memory. A case is
 * enqueued on a device stream like an operation of a program. Its time is that of one call: the median of several batches after
 * one to warm up (two on a GPU, where the first call loads the kernel), averaged over ranks. On a GPU, times are between events,
 * and flush_bytes of memory are written before each kernel, so operands come from memory and not from the second-level cache. On
 * a CPU, the time of a kernel is its thread's processor time. So ranks that share cores, and other programs, do not make kernels
 * slower; how operations share cores is part of the prediction.
 *
 * Weights. Products, the optimizer, and exchanges of weights or gradients use the weights of one layer after the other, so they
 * come from memory as in a step, where all other weights are used between two uses of one. Kernels that leave tensors for the
 * backward pass write to memory in the same way.
 *
 * Offloading. Copies to the memory of the host are measured with operands as large as the tensors between the products of a
 * layer.
 *
 * Exchanges are measured as in a step: a kernel has just written the data, the exchange has its own stream, and its time is from
 * the end of the last rank's kernel to when the next kernel may begin. The number of ranks is that of the job's groups, and all
 * groups exchange at the same time. On a GPU they are enqueued while the device is kept busy, so the host's time is not
 * included. On a CPU, most of the time of a short exchange is waking threads. Its processor time is measured separately, since
 * only that keeps other threads from the core.
 *
 * Operands of 8 bits: the rows have bytes as operands, and include preparing them for the product (a CPU widens them). Casts
 * have rows of their own, and these products a rate of their own.
 *
 * The fit is simple: a rate is total work over total time. All products have one rate, weighted as the job executes them. Each
 * kind of kernel that streams memory has its own rate (memory_parameters.rate), because exponentials and divisions limit the C
 * reference more than memory does; the bandwidth is that of a copy. The cost model counts 2 bytes per element of activations,
 * the CPU backend has 4, and kernels may move other bytes than the model counts, so the entry's rates are per counted byte. The
 * entry is for predictions on this machine at this time.
 */
#ifndef MSIM_RUNTIME_PROBE_PROBE_H
#define MSIM_RUNTIME_PROBE_PROBE_H

#include "model/layout/layout.h"
#include "runtime/base/comm.h"

enum { PROBE_OP_SIZE = 24 };
struct probe_row {
    char op[PROBE_OP_SIZE];
    int64_t m, n, k;               /* gemm, grouped_gemm; 0 otherwise */
    int64_t count;                 /* grouped_gemm: number of products of m rows in one call */
    const char *gives;             /* products: result, one of "output", "input gradient", "weight gradient" */
    int64_t batch, seq_len;        /* attention */
    int heads, kv_heads, head_dim; /* attention */
    int ranks;                     /* exchanges: members of a group; all groups exchange at the same time */
    double bytes;                  /* of an exchange (full buffer), or moved by a memory-bound kernel */
    double flops;
    double elements;         /* streaming kernels: of the operand */
    enum memory_kernel part; /* streaming kernels: kind of operation that contains them */
    double times;   /* streaming kernels: executions per operation, on average. Others: executions per micro-batch of the job, on
                     * average over stages. 1 without a job */
    double seconds; /* of one call, median */
    double worked;  /* exchanges: processor time in that, per rank; equal to seconds if the device does not measure it */
    double fastest; /* seconds of the fastest call, which other programs disturbed least */
    double spread;  /* (largest - smallest) / median */
};

struct probe_options {
    int ranks;                     /* run at the same time */
    int cores;                     /* that all ranks together may use; 0: those of this process */
    double seconds;                /* per case */
    const struct layout *layout;   /* NULL: a ladder of sizes */
    const struct setting *setting; /* with layout */
    int shape_rank;                /* the rank of the layout whose shapes are used */
    size_t flush_bytes;            /* 0: caches stay warm */
};

struct probe_result {
    struct probe_row *rows;
    int n_rows;
    double launch_s;      /* time of an operation that does nothing */
    double waking_s;      /* constant part of an exchange's time, in which no core works for it */
    size_t element_bytes; /* of activations: 4 on the CPU, 2 on GPUs */
};

/* Probes with this process as one rank of `world`. Takes ownership of device and world and closes them. Every rank gets the
 * result.
 */
MUST_CHECK enum status probe_rank(const struct probe_options *options, struct device *device, struct world *world,
                                  struct probe_result *result, struct diags *diags);
/* Probes with all ranks as threads of this process, on CPUs. */
MUST_CHECK enum status probe_cpu(const struct probe_options *options, struct probe_result *result, struct diags *diags);
void probe_result_free(struct probe_result *result);

/* Number of cores of all ranks of a probe together. */
int probe_cores(const struct probe_options *options);

/* The device that was probed. */
struct probe_device {
    const char *name;    /* of a GPU; NULL: the CPU */
    double memory_bytes; /* of one rank */
};
struct probe_device probe_this_cpu(int ranks);

/* Fits a cluster of one node with `ranks` such devices, at least those probed, to the medians. */
void probe_fit(const struct probe_options *options, const struct probe_result *result, const struct probe_device *device,
               int ranks, struct cluster *cluster);
/* Bytes per second of a copy on the device, where each byte is read and written once; 1e9 if no copy was measured. */
double probe_copy_rate(const struct probe_result *result);
/* Bytes of the shortest measured exchange; infinity without one. */
double probe_shortest_exchange(const struct probe_result *result);

#endif
