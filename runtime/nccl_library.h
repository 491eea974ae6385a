/*
 * nccl_library.h - NCCL's functions, loaded when ranks have to exchange and not when the program starts: a machine may not have
 * it.
 */
#ifndef MSIM_RUNTIME_NCCL_LIBRARY_H
#define MSIM_RUNTIME_NCCL_LIBRARY_H

#include <nccl.h>

#include "model/base/diag.h"

#define NCCL_FUNCTIONS(X)                                                                                                        \
    X(ncclGetVersion)                                                                                                            \
    X(ncclGetUniqueId)                                                                                                           \
    X(ncclGetErrorString)                                                                                                        \
    X(ncclGetLastError)                                                                                                          \
    X(ncclCommInitRankConfig)                                                                                                    \
    X(ncclCommSplit)                                                                                                             \
    X(ncclCommGetAsyncError)                                                                                                     \
    X(ncclCommAbort)                                                                                                             \
    X(ncclCommFinalize)                                                                                                          \
    X(ncclCommDestroy)                                                                                                           \
    X(ncclGroupStart)                                                                                                            \
    X(ncclGroupEnd)                                                                                                              \
    X(ncclSend)                                                                                                                  \
    X(ncclRecv)                                                                                                                  \
    X(ncclAllReduce)                                                                                                             \
    X(ncclAllGather)                                                                                                             \
    X(ncclReduceScatter)                                                                                                         \
    X(ncclReduce)                                                                                                                \
    X(ncclBroadcast)

#define FIELD(name) __typeof__(name) *name;
struct nccl {
    void *handle;
    NCCL_FUNCTIONS(FIELD)
};
#undef FIELD

/* STATUS_MISSING with a sentence where there is none, or one that is too old. It stays loaded: its threads may outlive an abort.
 */
MUST_CHECK enum status nccl_load(struct nccl *nccl, struct diags *diags);

#endif
