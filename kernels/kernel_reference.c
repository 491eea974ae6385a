/* kernel_reference.c - the names of operations, and their execution by the reference. */
#include <string.h>

#include "kernels/reference.h"

static const char *const names[N_KERNELS] = {
#define X(ID, stem, of) #stem,
    KERNELS(X, X)
#undef X
};

const char *kernel_name(enum kernel kernel)
{
    return (unsigned)kernel < N_KERNELS ? names[kernel] : "unknown";
}

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
