/* kernel_reference.c - calls the reference of an operation. */
#include <string.h>

#include "kernels/reference.h"

void zero_reference(const struct zero_call *call)
{
    memset(call->at, 0, call->bytes);
}

void copy_reference(const struct copy_call *call)
{
    memmove(call->to, call->from, call->bytes);
}

void kernel_reference_run(const struct kernel_call *call)
{
    switch (call->kernel) {
#define X(ID, stem, of)                                                                                                          \
    case KERNEL_##ID: stem##_reference(&call->of); break;
        KERNELS(X, X)
#undef X
    case N_KERNELS: break;
    }
}
