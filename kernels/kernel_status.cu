/* kernel_status.cu - turns the error code of a launcher into a status and a message. */
#include "kernels/vector.cuh"

enum status kernel_cuda_status(enum kernel kernel, int code, struct diags *diags)
{
    const struct place nowhere = {};
    const cudaError_t error = (cudaError_t)code;
    if (error == cudaSuccess)
        return STATUS_OK;
    (void)cudaGetLastError();
    if (error == cudaErrorInvalidValue)
        diag_error(diags, nowhere, "%s: this shape or alignment cannot be done on a CUDA device", kernel_name(kernel));
    else
        diag_error(diags, nowhere, "%s: %s (CUDA error %d)", kernel_name(kernel), cudaGetErrorString(error), code);
    return STATUS_FAILED;
}
