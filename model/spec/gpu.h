/*
 * gpu.h - one GPU: numbers of its data sheet and fitted parameters of its kernels.
 *
 * Example: h100-sxm
 *
 *     peak_flops[PRECISION_BF16] 989e12, hbm_bytes 79.1 GiB, hbm_rate 3.35e12 B/s, sms 132
 *     gemm[PRECISION_BF16].peak_fraction, attention.forward_fraction, nccl_rate, ...: fitted by msim calibrate
 *
 * Peaks are dense (no structured sparsity), per precision, in FLOP/s; 0 means that the GPU lacks such a unit. The headers of
 * the cost models explain the fitted parameters (model/cost/kernel/gemm.h, attention.h, ...). Each catalog entry states the
 * measurements behind them and the errors of the fit.
 */
#ifndef MSIM_MODEL_SPEC_GPU_H
#define MSIM_MODEL_SPEC_GPU_H

#include "model/spec/transformer.h"

enum precision { PRECISION_FP32, PRECISION_BF16, PRECISION_FP16, PRECISION_FP8, PRECISION_MXFP8, PRECISION_NVFP4, N_PRECISIONS };

extern const char *const precision_names[N_PRECISIONS + 1]; /* by enum precision; NULL after the last, here and below */
const char *precision_name(enum precision precision);
int precision_parse(const char *name); /* -1: unknown */
/* Narrower than bf16, the format of weights and activations in memory: operands are cast for the multiplication. */
static inline bool precision_is_narrow(enum precision precision)
{
    return precision == PRECISION_FP8 || precision == PRECISION_MXFP8 || precision == PRECISION_NVFP4;
}

/* Decides which kernels exist for a GPU. NVIDIA's by compute capability (7.0, 7.5, 8.0, 8.9, 9.0, 10.x), AMD's by generation,
 * others by family. */
enum architecture {
    ARCHITECTURE_UNKNOWN,
    ARCHITECTURE_VOLTA,
    ARCHITECTURE_TURING,
    ARCHITECTURE_AMPERE,
    ARCHITECTURE_ADA,
    ARCHITECTURE_HOPPER,
    ARCHITECTURE_BLACKWELL,
    ARCHITECTURE_BLACKWELL_RTX, /* workstations: tensor cores of Ada's kind */
    ARCHITECTURE_CDNA,
    ARCHITECTURE_CDNA2,
    ARCHITECTURE_CDNA3,
    ARCHITECTURE_CDNA4,
    ARCHITECTURE_GAUDI,
    ARCHITECTURE_TPU,
    ARCHITECTURE_TRAINIUM,
    N_ARCHITECTURES
};

/* Matrix multiplication in one precision; see model/cost/kernel/gemm.h. */
struct gemm_parameters {
    double peak_fraction;       /* fraction of the dense peak that a long main loop on 256 x 128 tiles sustains, all SMs busy */
    double tile_overhead_s;     /* prologue and epilogue of a 256 x 128 tile; of others in proportion to their area */
    double small_tile_fraction; /* throughput of half a tile, 128 x 128, relative to 256 x 128 */
    double smallest_tile_fraction; /* of each halving further; of areas between by their logarithm */
    double quantisation;           /* 1: whole waves of tiles only; 0: the tail wave is shared out perfectly */
    double fixed_s;                /* start-up and drain of one kernel */
    double split_s;                /* cost of dividing k among SMs, without the traffic of the partial sums */
    double memory_fraction;        /* fraction of HBM bandwidth when the traffic of operands limits */
    double overlap;                /* 0: arithmetic and operands' traffic follow each other, 1: the shorter one is hidden */
    double droop;                  /* relative slow-down of long kernels: clocks fall under sustained tensor-core load */
    double droop_s;                /* arithmetic time at which half of the droop has set in */
};

/* Fused attention in one precision of its operands; see model/cost/kernel/attention.h. */
struct attention_parameters {
    double forward_fraction;  /* fraction of the dense peak that the main loop sustains, all SMs busy, head_dim 128 */
    double backward_fraction; /* the same for the backward kernel */
    double exposed;           /* part of the shorter of products and exponentials of a block that the longer one does not hide */
    double tile_overhead_s;   /* prologue and epilogue of one tile of queries */
    double quantisation;      /* part of the longest tile that is exposed at the end of the kernel */
    double fixed_s;           /* start-up and drain of one kernel */
    int tile;                 /* queries of a tile and keys of a block; 0: pairs count one by one */
};

/* Kernels that stream memory and may have a measured rate of their own, because exponentials, divisions or scattered accesses
 * limit them and not bandwidth. All other streaming kernels are MEMORY_STREAM. */
#define MEMORY_KERNELS(X)                                                                                                        \
    X(NORM, "norm")                                                                                                              \
    X(NORM_BACKWARD, "norm_backward")                                                                                            \
    X(GATED_NORM, "gated_norm")                                                                                                  \
    X(GATED_NORM_BACKWARD, "gated_norm_backward")                                                                                \
    X(ROTARY, "rotary")                                                                                                          \
    X(ACTIVATION, "activation")                                                                                                  \
    X(ACTIVATION_BACKWARD, "activation_backward")                                                                                \
    X(RESIDUAL, "residual")                                                                                                      \
    X(RESIDUAL_BACKWARD, "residual_backward")                                                                                    \
    X(ROUTING, "routing")                                                                                                        \
    X(PERMUTATION, "permutation")                                                                                                \
    X(EMBEDDING, "embedding")                                                                                                    \
    X(EMBEDDING_BACKWARD, "embedding_backward")                                                                                  \
    X(LOSS, "loss")                                                                                                              \
    X(LOSS_BACKWARD, "loss_backward")                                                                                            \
    X(OPTIMIZER, "optimizer")

enum memory_kernel {
    MEMORY_STREAM, /* casts, sums of gradients, softmax of unfused attention */
#define X(id, name) MEMORY_##id,
    MEMORY_KERNELS(X)
#undef X
        N_MEMORY_KERNELS
};

/* Kernels limited by memory bandwidth; see model/cost/kernel/memory_bound.h. */
struct memory_parameters {
    double bandwidth_fraction;     /* of HBM bandwidth that streaming kernels reach */
    double fixed_s;                /* start-up and drain of one kernel */
    double rate[N_MEMORY_KERNELS]; /* B/s, read and written, that a kernel was measured to move; 0: as streaming kernels */
};

struct gpu {
    char name[NAME_SIZE];
    char source[SOURCE_SIZE];
    enum architecture architecture;
    double peak_flops[N_PRECISIONS]; /* FLOP/s, dense; fp32 is the tensor-core-free rate */
    double scan_flops;               /* FLOP/s of the products of a scan, where measured; 0: as other products */
    double exp_rate;                 /* exponentials per second of all special-function units; 0: never the limit */
    double hbm_bytes;                /* capacity as the driver reports it to a program */
    double hbm_rate;                 /* B/s */
    double l2_bytes;
    int sms;
    double power_w;     /* board power (TDP, TBP) by the data sheet; 0: not published */
    double nvlink_rate; /* B/s per direction and GPU, sum of all links */
    double pcie_rate;   /* B/s per direction */
    double host_rate;   /* B/s per direction and GPU of a coherent link to the host's memory (NVLink-C2C); 0: PCIe leads there */
    double host_memory; /* bytes of the usual host's memory, a GPU's share; 0: unknown */
    double host_memory_rate; /* B/s of that memory, data-sheet, a GPU's share; 0: unknown */
    int nvlink_domain;       /* GPUs connected by NVLink unless a cluster specifies it: 8, 72 */
    int gpus_per_node;       /* of the usual host */
    double nic_rate;         /* B/s per GPU and direction of the usual host's network */
    double sustained_clock;  /* fraction of the clock of kernels timed alone that remains when tensor cores work all the time
                                (power limit) */
    double clock_spread;     /* relative standard deviation of that clock between GPUs of one fleet */
    double exchange_share; /* fraction that a computation loses to an overlapping exchange on a device measured as a whole; 1: one
                              core does both */
    double launch_s;       /* gap between kernels on the device while the queue is kept full */
    double host_launch_s;  /* time for the host to enqueue one kernel from an eager framework; the device starves below it */
    double host_pause_s;   /* pause of the host per layer whose checkpoint is a Python object; see model/cost/kernel/machine.h */
    /* Sources of each group of fitted parameters. */
    char gemm_source[SOURCE_SIZE], attention_source[SOURCE_SIZE], memory_source[SOURCE_SIZE], nccl_source[SOURCE_SIZE];
    struct gemm_parameters gemm[N_PRECISIONS];
    struct attention_parameters attention;     /* operands of 16 bits, and of more */
    struct attention_parameters attention_fp8; /* forward_fraction 0: no such kernels */
    double flash_attention2; /* speed of FlashAttention-2 relative to `attention`, if that is a later kernel; 0: as 1 */
    struct memory_parameters memory;
    /* Collectives inside the NVLink domain; see model/cost/kernel/collective.h. */
    double nccl_rate;        /* B/s of bus bandwidth that all channels together sustain on long messages */
    double nccl_ramp_bytes;  /* bytes of a message whose ring pipeline costs as much as its bandwidth term */
    double nccl_own_part;    /* time to copy a rank's own part of the buffer, relative to the time to send it */
    double nccl_own_message; /* the same for an all-to-all, which sends it to itself */
    double nccl_base_s;      /* start and end of a collective */
    double nccl_hop_s;       /* each ring step */
    double nvls_rate;        /* B/s, size over time, of an all-reduce reduced in the switch (NVLS); 0: not available */
};

/*
 * The newest generation of FlashAttention (1 to 3) with kernels for the GPU. The second needs Ampere, Ada or CDNA 2. The third
 * needs the asynchronous tensor cores of Hopper (README of Dao-AILab/flash-attention). On older GPUs other fused kernels, such
 * as PyTorch's memory-efficient attention, count as the first. The own kernels of Gaudi, TPUs and Trainium count as the second.
 * An unknown architecture with fp8 units counts as Hopper or newer, without them as Ampere or newer.
 */
int gpu_flash_attention(const struct gpu *gpu);

#endif
