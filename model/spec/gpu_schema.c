#include "model/spec/gpu.h"
#include "model/spec/schemas.h"

/*
 * gpu_schema.c - the rows of a GPU.
 *
 * A new parameter is its member in gpu.h and one row here; give it a default if there are entries without it.
 */
#define EACH_PRECISION(ROW)                                                                                                      \
    ROW("fp32", PRECISION_FP32), ROW("bf16", PRECISION_BF16), ROW("fp16", PRECISION_FP16), ROW("fp8", PRECISION_FP8),            \
        ROW("mxfp8", PRECISION_MXFP8), ROW("nvfp4", PRECISION_NVFP4)

#define PEAK_ROW(name, p) QUANTITY(name, struct gpu, peak_flops[p], DIM_FLOPS, 1e9, 1e18, UNSET, "dense peak in " name)
static const struct field peak_rows[] = {EACH_PRECISION(PEAK_ROW)};
static const struct schema peak_schema = SCHEMA("peak", peak_rows);

#define GEMM(k, member, dim, lo, hi, def, what) QUANTITY(k, struct gemm_parameters, member, dim, lo, hi, def, what)
static const struct field gemm_precision_rows[] = {
    GEMM("peak_fraction", peak_fraction, DIM_FRACTION, 0.01, 1.2, REQUIRED,
         "fraction of the dense peak that a long main loop sustains"),
    GEMM("tile_overhead", tile_overhead_s, DIM_TIME, 0, 1e-3, "1us", "prologue and epilogue of a 256 x 128 tile"),
    GEMM("small_tile_fraction", small_tile_fraction, DIM_FRACTION, 0.01, 1, "0.9",
         "speed of a 128 x 128 tile relative to 256 x 128"),
    GEMM("smallest_tile_fraction", smallest_tile_fraction, DIM_FRACTION, 0.01, 1, "0.75",
         "relative speed after each further halving of the tile"),
    GEMM("quantisation", quantisation, DIM_FRACTION, 0, 1, "0.7",
         "cost of a partial last wave of tiles: 1 a whole wave, 0 its share"),
    GEMM("fixed", fixed_s, DIM_TIME, 0, 1e-3, "3us", "start-up and drain of one kernel"),
    GEMM("split", split_s, DIM_TIME, 0, 1e-3, "1us", "cost of dividing k among SMs, without the partial sums"),
    GEMM("memory_fraction", memory_fraction, DIM_FRACTION, 0.01, 1, "0.85",
         "fraction of HBM bandwidth if operand traffic limits"),
    GEMM("overlap", overlap, DIM_FRACTION, 0, 0.9, "0.667", "overlap of arithmetic and traffic: 0 their sum, 1 the longer one"),
    GEMM("droop", droop, DIM_FRACTION, 0, 1, "0", "slowdown of long kernels as clocks fall"),
    GEMM("droop_time", droop_s, DIM_TIME, 1e-5, 0.1, "500us", "arithmetic time at which half of the droop is reached"),
};
static const struct schema gemm_precision_schema = SCHEMA("gemm in one precision", gemm_precision_rows);

#define GEMM_ROW(name, p) GROUP(name, struct gpu, gemm[p], gemm_precision_schema, UNSET, "matrix multiplication in " name)
static const struct field gemm_rows[] = {
    TEXT("source", struct gpu, gemm_source, REQUIRED, "what the parameters were fitted to"),
    EACH_PRECISION(GEMM_ROW),
};
static const struct schema gemm_schema = SCHEMA("gemm", gemm_rows);

/* `T` and `in` say where a kernel's parameters are: in struct gpu, or alone. */
#define ATTENTION_ROWS(T, in, needs_backward)                                                                                    \
    QUANTITY("forward_fraction", T, in forward_fraction, DIM_FRACTION, 0.01, 1.2, REQUIRED,                                      \
             "fraction of the dense peak that the main loop sustains"),                                                          \
        QUANTITY("backward_fraction", T, in backward_fraction, DIM_FRACTION, 0.01, 1.2, needs_backward,                          \
                 "the same, in the backward pass"),                                                                              \
        QUANTITY("exposed", T, in exposed, DIM_FRACTION, 0, 1, "0.6",                                                            \
                 "exposed fraction of the shorter of products and exponentials"),                                                \
        QUANTITY("tile_overhead", T, in tile_overhead_s, DIM_TIME, 0, 1e-3, "2us",                                               \
                 "prologue and epilogue of a tile of queries"),                                                                  \
        QUANTITY("quantisation", T, in quantisation, DIM_FRACTION, 0, 1, "0.5",                                                  \
                 "exposed fraction of the longest tile at the end"),                                                             \
        QUANTITY("fixed", T, in fixed_s, DIM_TIME, 0, 1e-3, "4us", "start-up and drain of one kernel"),                          \
        INTEGER("tile", T, in tile, 0, 1024, "128", "queries per tile and keys per block; 0: pairs are counted singly")

static const struct field attention_fp8_rows[] = {ATTENTION_ROWS(struct attention_parameters, , UNSET)};
static const struct schema attention_fp8_schema = SCHEMA("attention in fp8", attention_fp8_rows);

static const struct field attention_rows[] = {
    TEXT("source", struct gpu, attention_source, REQUIRED, "what the parameters were fitted to"),
    ATTENTION_ROWS(struct gpu, attention., REQUIRED),
    QUANTITY("flash_attention2", struct gpu, flash_attention2, DIM_FRACTION, 0.01, 1, "1",
             "relative speed of FlashAttention-2, if a later kernel was measured"),
    GROUP("fp8", struct gpu, attention_fp8, attention_fp8_schema, UNSET, "operands in fp8"),
};
static const struct schema attention_schema = SCHEMA("attention", attention_rows);

static const struct field memory_rows[] = {
    TEXT("source", struct gpu, memory_source, REQUIRED, "what the parameters were fitted to"),
    QUANTITY("bandwidth_fraction", struct gpu, memory.bandwidth_fraction, DIM_FRACTION, 0.01, 1, REQUIRED,
             "fraction of HBM bandwidth that streaming kernels reach"),
    QUANTITY("fixed", struct gpu, memory.fixed_s, DIM_TIME, 0, 1e-3, "2us", "start-up and drain of one kernel"),
#define X(id, key)                                                                                                               \
    QUANTITY(key "_rate", struct gpu, memory.rate[MEMORY_##id], DIM_RATE, 1e3, 1e14, UNSET,                                      \
             "bytes per second of this kernel, if slower than streaming kernels"),
    MEMORY_KERNELS(X)
#undef X
};
static const struct schema memory_schema = SCHEMA("memory", memory_rows);

static const struct field nccl_rows[] = {
    TEXT("source", struct gpu, nccl_source, REQUIRED, "what the parameters were fitted to"),
    QUANTITY("rate", struct gpu, nccl_rate, DIM_RATE, 1e8, 1e14, REQUIRED, "bus bandwidth that long messages sustain"),
    QUANTITY("ramp", struct gpu, nccl_ramp_bytes, DIM_BYTES, 0, 1e10, "256KiB",
             "message size at which the ring pipeline doubles the bandwidth term"),
    QUANTITY("own_part", struct gpu, nccl_own_part, DIM_FRACTION, 0, 2, "0",
             "time of a rank's own part of the buffer, relative to sending it"),
    QUANTITY("own_message", struct gpu, nccl_own_message, DIM_FRACTION, 0, 2, "0",
             "the same for an all-to-all, which sends it to itself"),
    QUANTITY("base", struct gpu, nccl_base_s, DIM_TIME, 0, 1e-3, "12us", "start and end of a collective"),
    QUANTITY("hop", struct gpu, nccl_hop_s, DIM_TIME, 0, 1e-3, "0.7us", "each ring step"),
    QUANTITY("nvls_rate", struct gpu, nvls_rate, DIM_RATE, 0, 1e14, UNSET,
             "size over time of an all-reduce reduced in the switch (NVLS)"),
};
static const struct schema nccl_schema = SCHEMA("nccl", nccl_rows);

static const char *const architectures[N_ARCHITECTURES + 1] = {
    [ARCHITECTURE_UNKNOWN] = "unknown",
    [ARCHITECTURE_VOLTA] = "volta",
    [ARCHITECTURE_TURING] = "turing",
    [ARCHITECTURE_AMPERE] = "ampere",
    [ARCHITECTURE_ADA] = "ada",
    [ARCHITECTURE_HOPPER] = "hopper",
    [ARCHITECTURE_BLACKWELL] = "blackwell",
    [ARCHITECTURE_BLACKWELL_RTX] = "blackwell_rtx",
    [ARCHITECTURE_CDNA] = "cdna",
    [ARCHITECTURE_CDNA2] = "cdna2",
    [ARCHITECTURE_CDNA3] = "cdna3",
    [ARCHITECTURE_CDNA4] = "cdna4",
    [ARCHITECTURE_GAUDI] = "gaudi",
    [ARCHITECTURE_TPU] = "tpu",
    [ARCHITECTURE_TRAINIUM] = "trainium",
};

static const struct field gpu_rows[] = {
    TEXT("name", struct gpu, name, UNSET, "name"),
    TEXT("source", struct gpu, source, UNSET, "where the data-sheet numbers come from"),
    CHOICE("architecture", struct gpu, architecture, architectures, UNSET, "selects the attention kernels that exist"),
    SECTION("peak", peak_schema, REQUIRED, "dense peak rate per precision"),
    QUANTITY("exp_rate", struct gpu, exp_rate, DIM_FLOPS, 1e9, 1e16, UNSET, "exponentials of all special-function units"),
    QUANTITY("hbm", struct gpu, hbm_bytes, DIM_BYTES, 1e9, 1e13, REQUIRED, "memory as the driver reports it to a program"),
    QUANTITY("hbm_rate", struct gpu, hbm_rate, DIM_RATE, 1e10, 1e14, REQUIRED, "memory bandwidth"),
    QUANTITY("l2", struct gpu, l2_bytes, DIM_BYTES, 1e5, 1e10, REQUIRED, "level-2 cache"),
    INTEGER("sms", struct gpu, sms, 1, 10000, REQUIRED, "streaming multiprocessors"),
    QUANTITY("power", struct gpu, power_w, DIM_POWER, 10, 1e5, UNSET,
             "board power (TDP, TBP) by the data sheet; left out where none is published"),
    QUANTITY("nvlink_rate", struct gpu, nvlink_rate, DIM_RATE, 1e9, 1e14, REQUIRED, "NVLink, one direction, all links together"),
    QUANTITY("pcie_rate", struct gpu, pcie_rate, DIM_RATE, 1e8, 1e13, REQUIRED, "PCIe, one direction"),
    QUANTITY("host_rate", struct gpu, host_rate, DIM_RATE, 1e9, 1e14, UNSET,
             "coherent link to the memory of the host (NVLink-C2C), one direction; none: PCIe leads there"),
    QUANTITY("host_memory", struct gpu, host_memory, DIM_BYTES, 1e9, 1e14, UNSET, "a GPU's share of the usual host's memory"),
    QUANTITY("host_memory_rate", struct gpu, host_memory_rate, DIM_RATE, 1e9, 1e13, UNSET,
             "a GPU's share of that memory's bandwidth, as data sheets give it"),
    INTEGER("nvlink_domain", struct gpu, nvlink_domain, 1, 100000, "8", "GPUs that NVLink joins"),
    INTEGER("gpus_per_node", struct gpu, gpus_per_node, 1, 1024, "8", "GPUs of the usual host"),
    PORT_RATE("nic_rate", struct gpu, nic_rate, 1e8, 1e13, REQUIRED, "network of the usual host, per GPU and direction"),
    QUANTITY("sustained_clock", struct gpu, sustained_clock, DIM_FRACTION, 0.1, 1, "1",
             "clock in training, relative to the clock of kernels timed alone"),
    QUANTITY("clock_spread", struct gpu, clock_spread, DIM_FRACTION, 0, 0.5, "0",
             "standard deviation of that clock between GPUs"),
    QUANTITY("launch", struct gpu, launch_s, DIM_TIME, 0, 1e-3, "1us", "gap between kernels while the queue is kept full"),
    QUANTITY("host_launch", struct gpu, host_launch_s, DIM_TIME, 0, 1e-3, "6us", "time the host needs to enqueue one kernel"),
    QUANTITY("host_pause", struct gpu, host_pause_s, DIM_TIME, 0, 1e-3, "0us",
             "time a host waits per layer that an eager stack recomputes"),
    SECTION("gemm", gemm_schema, REQUIRED, "matrix multiplication, fitted"),
    SECTION("attention", attention_schema, REQUIRED, "fused attention, fitted"),
    SECTION("memory", memory_schema, REQUIRED, "memory-bound kernels, fitted"),
    SECTION("nccl", nccl_schema, REQUIRED, "collectives inside the NVLink domain, fitted"),
};
const struct schema gpu_schema = SCHEMA("gpu", gpu_rows);
