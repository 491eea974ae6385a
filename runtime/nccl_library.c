#include "runtime/nccl_library.h"

#include <dlfcn.h>
#include <stdbool.h>

static const struct place nowhere = {0};

enum status nccl_load(struct nccl *nccl, struct diags *diags)
{
    nccl->handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!nccl->handle) {
        diag_error(diags, nowhere, "cannot load NCCL (%s); install it or set LD_LIBRARY_PATH", dlerror());
        return STATUS_MISSING;
    }
#define LOOK_UP(name) *(void **)&nccl->name = dlsym(nccl->handle, #name);
    NCCL_FUNCTIONS(LOOK_UP)
#define IS_MISSING(name) || !nccl->name
    if (false NCCL_FUNCTIONS(IS_MISSING)) {
        diag_error(diags, nowhere, "the NCCL that was found is too old; 2.19 or later is needed");
        return STATUS_MISSING;
    }
    return STATUS_OK;
}
