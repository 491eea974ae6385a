/*
 * cuda_launch.h - executes the operations of kernels.h on a CUDA device.
 *
 * Example:
 *
 *     struct cuda_launch launch = {.stream = stream, .workspace = scratch, .workspace_bytes = CUDA_WORKSPACE_BYTES,
 *                                  .multiprocessors = 132, .gemm = library};
 *     kernel_cuda_launch(&launch, &call, &diags);        returns at once; results are there when the stream has passed it
 *
 * A launch enqueues one or more kernels. It never synchronises, allocates or prints. `void` operands are bf16, sums are fp32.
 * Pointers are device memory. Accesses are 16 bytes wide if widths are multiples of 8 elements and pointers multiples of 16
 * bytes; other shapes are slower. The path changes only the order of sums.
 *
 * All launches of one stream share the workspace (partial sums, cuBLASLt). Two streams need two workspaces.
 *
 * Errors: STATUS_FAILED with the operation and CUDA's or cuBLASLt's text and code in `diags`; the sticky error is cleared.
 * Errors inside a kernel appear when the stream is synchronised.
 */
#ifndef MSIM_KERNELS_CUDA_LAUNCH_H
#define MSIM_KERNELS_CUDA_LAUNCH_H

#include "kernels/kernels.h"
#include "model/base/diag.h"

struct CUstream_st; /* cudaStream_t is a pointer to it */
struct gemm_library;

enum { CUDA_WORKSPACE_BYTES = 64 << 20 }; /* cuBLASLt wants 32 MiB on sm_90 (cuBLAS documentation); as much for partial sums */

struct cuda_launch {
    struct CUstream_st *stream;
    void *workspace; /* device memory of this stream, aligned to 256 bytes */
    size_t workspace_bytes;
    int multiprocessors;       /* of the device */
    struct gemm_library *gemm; /* of the device; NULL: linear layers are refused */
    bool portable;             /* use only kernels that run on every architecture */
};

enum status kernel_cuda_launch(const struct cuda_launch *launch, const struct kernel_call *call, struct diags *diags) MUST_CHECK;

/* Whether the current device computes this call with instructions that only sm_90a has, if the launch is not `portable`. */
bool attention_forward_has_hopper(const struct attention_call *call);
bool attention_backward_has_hopper(const struct attention_call *call);

/* Enqueues a small case of attention, forward and backward, twice: with the instructions of sm_90a and with portable kernels. All
 * tensors are in the launch's workspace. *difference, also there, is their largest difference relative to the largest number;
 * infinite if there is a NaN. Above ATTENTION_TRIAL_TOLERANCE the two disagree. Head dimension 64 or 128. Returns CUDA's error
 * code; cudaErrorNotSupported if there is only one kernel. */
#define ATTENTION_TRIAL_TOLERANCE 0.05f
int attention_trial_cuda(const struct cuda_launch *launch, int head_dim, bool windowed, const float **difference);

/* Bytes of the workspace of attention_call and query_range_call on a CUDA device, for `rows` rows (queries of all sequences and
 * heads): one float each, backward only. */
size_t attention_cuda_workspace(int64_t rows, bool backward);
/* The same for scan_call, in both passes. */
size_t scan_cuda_workspace(const struct scan_call *call, bool backward);
/* Whether the kernels of attention support this head size, of keys or values. */
bool attention_cuda_fits(int head_dim);

#endif
