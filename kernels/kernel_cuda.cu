/* kernel_cuda.cu - calls the launcher of an operation. */
#include "kernels/vector.cuh"

extern "C" {
#include "kernels/gemm_library.h"
}

int zero_cuda(const struct cuda_launch *launch, const struct zero_call *call)
{
    return cudaMemsetAsync(call->at, 0, call->bytes, launch->stream);
}

int copy_cuda(const struct cuda_launch *launch, const struct copy_call *call)
{
    return cudaMemcpyAsync(call->to, call->from, call->bytes, cudaMemcpyDeviceToDevice, launch->stream);
}

static int launch_operation(const struct cuda_launch *launch, const struct kernel_call *call)
{
    switch (call->kernel) {
#define X(ID, stem, of)                                                                                                          \
    case KERNEL_##ID: return stem##_cuda(launch, &call->of);
        KERNELS(X, KERNEL_SKIPPED)
#undef X
    case KERNEL_GROUPED_FORWARD:
    case KERNEL_GROUPED_BACKWARD_INPUT:
    case KERNEL_GROUPED_BACKWARD_WEIGHT: return grouped_narrow_cuda(launch, call->kernel, &call->grouped);
    default: return cudaErrorInvalidValue;
    }
}

enum status kernel_cuda_launch(const struct cuda_launch *launch, const struct kernel_call *call, struct diags *diags)
{
    if (call->kernel == KERNEL_LINEAR_FORWARD || call->kernel == KERNEL_LINEAR_BACKWARD_INPUT ||
        call->kernel == KERNEL_LINEAR_BACKWARD_WEIGHT)
        return call->linear.x_as.format || call->linear.dy_as.format
                   ? linear_narrow_cuda(launch, call->kernel, &call->linear, diags)
                   : linear_cuda(launch, call->kernel, &call->linear, diags);
    return kernel_cuda_status(call->kernel, launch_operation(launch, call), diags);
}
