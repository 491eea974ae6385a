/*
 * cuda_launch.h - the operations of kernels.h on a CUDA device.
 *
 * A launch puts one or more kernels on a stream and returns; it never synchronises, allocates or prints. `void` operands are
 * bf16, sums are fp32. Pointers are device memory; vectorised paths (16-byte accesses) are taken where widths are multiples of 8
 * and pointers of 16 bytes, and slower paths otherwise. Results do not depend on the path beyond the order of sums.
 *
 * What one stream's launches share in scratch memory is the launch's workspace: partial sums and cuBLASLt's. Two streams need
 * two.
 *
 * Errors: STATUS_FAILED with the operation, CUDA's or cuBLASLt's text and code in `diags`; the sticky error is cleared. What
 * fails inside a kernel shows when the stream is synchronised.
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
    bool portable;             /* only kernels that run on every architecture, none made for the device's own */
};

enum status kernel_cuda_launch(const struct cuda_launch *launch, const struct kernel_call *call, struct diags *diags) MUST_CHECK;

/* Whether the current device computes this call with sm_90a's own instructions, where the launch does not ask for portable
 * kernels. */
bool attention_forward_has_hopper(const struct attention_call *call);
bool attention_backward_has_hopper(const struct attention_call *call);

/* Puts a small case of attention, forward and backward, on the stream twice: by sm_90a's own instructions and by portable
 * kernels, all in the launch's workspace, inputs too. *difference, in the workspace: their largest difference over the largest
 * number, infinite where one is none; above ATTENTION_TRIAL_TOLERANCE the two do not compute the same. Head dimension 64 or 128.
 * CUDA's error code; cudaErrorNotSupported where there is only one kernel, and nothing to be compared. */
#define ATTENTION_TRIAL_TOLERANCE 0.05f
int attention_trial_cuda(const struct cuda_launch *launch, int head_dim, bool windowed, const float **difference);

/* Bytes of the workspace of attention_call and query_range_call on a CUDA device, for `rows` rows (queries of all sequences and
 * heads): one float each, backward only. */
size_t attention_cuda_workspace(int64_t rows, bool backward);
/* The same of scan_call, in both passes. */
size_t scan_cuda_workspace(const struct scan_call *call, bool backward);
/* Whether attention has heads of this size, keys' or values'. */
bool attention_cuda_fits(int head_dim);

#endif
