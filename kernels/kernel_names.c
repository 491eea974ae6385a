/* kernel_names.c - the names of kernels. */
#include "kernels/kernels.h"

static const char *const names[N_KERNELS] = {
#define X(ID, stem, of) #stem,
    KERNELS(X, X)
#undef X
};

const char *kernel_name(enum kernel kernel)
{
    return (unsigned)kernel < N_KERNELS ? names[kernel] : "unknown";
}
