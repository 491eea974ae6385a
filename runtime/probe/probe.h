/*
 * probe.h - how fast this machine's devices are: kernels, exchanges, and a GPU entry that says so.
 *
 * Every case is run by all ranks at the same time, as training would: ranks share cores, caches and memory. A case is enqueued on
 * a device stream like any operation of a program; its time is the median of several batches, after one to warm up (two on a GPU,
 * whose first call of a kernel loads it), per call, averaged over ranks. With flush_bytes (GPUs) that much memory is written
 * before each kernel, so that operands come from memory and not from the second-level cache, and times are between the device's
 * marks. On a CPU the time of a kernel is what its thread had a core for, so ranks that share cores and other programs do not
 * make kernels slower than they are; how operations share cores is the prediction's business.
 *
 * Where a job keeps activations in the memory of the host, copies there are timed as a kernel is, of operands as large as the
 * tensors are that stand between the products of a layer.
 *
 * An exchange is timed as a step has it: what it carries has just been written by the rank that gives it, it runs on a stream of
 * its own, and its time is from when the last rank's kernel has ended to when the kernel behind it may begin. As many ranks meet
 * as the job's groups have, in all groups at the same time. On a GPU they are enqueued while the device is kept waiting, so that
 * what the host takes for them is no part of their time. On a CPU most of a short one is waking threads; what its stream had a
 * core for (the marks around it and noticing that it may begin are part of that) is measured separately, since that alone keeps
 * others from the core.
 *
 * The products of a job, its optimizer, and exchanges of weights and gradients take those of one layer after the other, which in
 * a step come from memory: between two uses lies as much as all ranks hold. So do kernels with what a forward pass leaves for the
 * backward pass of its layer: it is written to memory, and read when caches have long held something else.
 *
 * Sizes and operands are those of a job, when one is given (the matrices, sequences and vocabulary of one rank, with biases where
 * they are), and a ladder of sizes otherwise.
 *
 * Operands of 8 bits are probed as bytes, with what the device does to them before it multiplies (a CPU widens them), and their
 * casts for themselves; those products have a rate of their own.
 *
 * The fit is simple: rates are totals of work over totals of time. All products have one rate, weighted as the job executes them;
 * every kind of kernel that streams memory has its own (memory_parameters.rate: C references are limited by exponentials and
 * divisions rather than by memory), and a copy's is the bandwidth. The cost model counts activations with 2 bytes an element, the
 * CPU backend has 4, and the runtime's kernels do not always move the bytes that the model counts for an operation: rates in the
 * entry are per counted byte. The entry is meant for predictions on this machine, now.
 */
#ifndef MSIM_RUNTIME_PROBE_PROBE_H
#define MSIM_RUNTIME_PROBE_PROBE_H

#include "model/layout/layout.h"
#include "runtime/base/comm.h"

enum { PROBE_OP_SIZE = 24 };
struct probe_row {
    char op[PROBE_OP_SIZE];
    int64_t m, n, k;        /* gemm, grouped_gemm; 0 otherwise */
    int64_t count;          /* grouped_gemm: equal ones, of m rows each, in one call */
    const char *gives;      /* of a product, which of a linear layer's three: "output", "input gradient", "weight gradient" */
    int64_t batch, seq_len; /* attention */
    int heads, kv_heads, head_dim; /* attention */
    int ranks;                     /* that exchange with each other; as many groups do so as there are */
    double bytes;                  /* of an exchange (full buffer), or moved by a memory-bound kernel */
    double flops;
    double elements;         /* of a kernel that streams: of its operand */
    enum memory_kernel part; /* of which operations it is a kernel */
    double times;   /* of such a kernel: that an operation executes it, on average; of others that a micro-batch of the job
                     * executes it here, on average over stages. 1 without a job */
    double seconds; /* median of one call */
    double worked;  /* of it, what a rank's exchange had a core for; all of it where the device does not tell */
    double fastest; /* what the machine does when nobody else disturbs it */
    double spread;  /* (largest - smallest) / median */
};

struct probe_options {
    int ranks;                     /* run at the same time */
    int cores;                     /* that they may use, all of them together; 0: those of this process */
    double seconds;                /* per case */
    const struct layout *layout;   /* NULL: a ladder of sizes */
    const struct setting *setting; /* with layout */
    int shape_rank;                /* whose shapes, of the layout's ranks */
    size_t flush_bytes;            /* 0: caches stay warm */
};

struct probe_result {
    struct probe_row *rows;
    int n_rows;
    double launch_s;      /* of an operation that does nothing */
    double waking_s;      /* of an exchange, whatever it carries, and nobody has a core for it */
    size_t element_bytes; /* of activations: 4 on the CPU, 2 on GPUs */
};

/* This process's rank, with the others of `world`; takes device and world over and closes them. Every rank gets the result. */
MUST_CHECK enum status probe_rank(const struct probe_options *options, struct device *device, struct world *world,
                                  struct probe_result *result, struct diags *diags);
/* All ranks as threads of this process, on CPUs. */
MUST_CHECK enum status probe_cpu(const struct probe_options *options, struct probe_result *result, struct diags *diags);
void probe_result_free(struct probe_result *result);

/* How many cores the ranks of a probe have together. */
int probe_cores(const struct probe_options *options);

/* What was probed. */
struct probe_device {
    const char *name;    /* of a GPU, NULL: the CPU */
    double memory_bytes; /* of one rank */
};
struct probe_device probe_this_cpu(int ranks);

/* A cluster of one node with `ranks` such devices, at least those probed. Fitted to the medians. */
void probe_fit(const struct probe_options *options, const struct probe_result *result, const struct probe_device *device,
               int ranks, struct cluster *cluster);
/* Bytes per second that a copy on the device moves, each read and written once; 1e9 where none was measured. */
double probe_copy_rate(const struct probe_result *result);
/* Bytes of the shortest exchange that was measured; infinity: none was. */
double probe_shortest_exchange(const struct probe_result *result);

#endif
