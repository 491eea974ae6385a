/*
 * profile.h - a profile of real steps: where the time of a device went.
 *
 *     step 212 ms = products 120 + attention 31 + other 24 + tp_comm 15 + pp_comm 14 + idle 8     (exposed)
 *                   dp_comm 22 hidden under computations
 *
 * Formats: tables of launches (CSV) of one device, from Nsight Systems (nsys stats -r cuda_gpu_trace --format csv) and rocprofv3
 * (--kernel-trace); Chrome-trace JSON that torch.profiler (Kineto) exports for a rank, {"traceEvents": [...], ...} or the bare
 * array; JAX's
 * *.trace.json.gz (profile_jax.h). All may be compressed (".gz"). Of torch.profiler's complete events (ph "X"; ts and dur in
 * microseconds) these count:
 *
 *     cat kernel, gpu_memcpy, gpu_memset   work of the device; names distinguish kernels (profile_kernel_kind)
 *     ProfilerStep#N (any cat)             beginnings of steps. Those on the device's clock (gpu_user_annotation), one per
 * stream, win
 *
 * Launches on other devices than the first one are left out, with a warning.
 *
 * An exchange belongs to the group that its arguments name ("Process Group Description"), else to the only group of the layout
 * with its size or operation, else to none.
 *
 * Accounting: every instant of a step goes to one kind, the first in the order of enum profile_kind that is busy on any stream.
 * So an exchange that overlaps with a computation is hidden, and the exposed seconds of all kinds sum to the step. A message that
 * waits for its sender is busy, so the bubble of a pipeline appears in PROFILE_PP, and the delay by late ranks in their
 * exchanges.
 */
#ifndef MSIM_TRACES_PROFILE_PROFILE_H
#define MSIM_TRACES_PROFILE_PROFILE_H

#include <stdint.h>

#include "model/base/diag.h"
#include "model/base/watch.h"
#include "model/layout/layout.h"

#define PROFILE_KINDS(X)                                                                                                         \
    X(PRODUCTS, "products", "matrix products")                                                                                   \
    X(ATTENTION, "attention", "attention")                                                                                       \
    X(OTHER, "other", "other kernels")                                                                                           \
    X(OPTIMIZER, "optimizer", "optimizer")                                                                                       \
    X(COPIES, "copies", "copies and fills")                                                                                      \
    X(TP, "tp_comm", "tensor-parallel exchanges")                                                                                \
    X(CP, "cp_comm", "context-parallel exchanges")                                                                               \
    X(EP, "ep_comm", "expert-parallel exchanges")                                                                                \
    X(PP, "pp_comm", "pipeline: messages, bubble")                                                                               \
    X(DP, "dp_comm", "data-parallel exchanges")                                                                                  \
    X(EXCHANGE, "exchange", "exchanges of unknown groups")                                                                       \
    X(IDLE, "idle", "idle: waiting for the host")

enum profile_kind {
#define X(id, name, text) PROFILE_##id,
    PROFILE_KINDS(X)
#undef X
        N_PROFILE_KINDS
};
const char *profile_kind_name(enum profile_kind kind);
const char *profile_kind_text(enum profile_kind kind);

/* The kind of a kernel by its name, as CUDA and ROCm libraries and compilers spell it; PROFILE_EXCHANGE for NCCL and RCCL,
 * PROFILE_OTHER for unknown names. */
enum profile_kind profile_kernel_kind(const char *name);

struct profile_span {
    double start_s, end_s;
    enum profile_kind kind;
    int32_t kernel; /* index in the profile's kernels */
};

/* All launches of one name. */
struct profile_kernel {
    char *name;
    enum profile_kind kind;
    int64_t launches;
    double seconds; /* sum of their durations */
    int32_t number; /* in the order of their first launches */
};

struct profile_step {
    double start_s, end_s;
};

struct profile {
    char gpu[64];    /* as the driver calls it; "": unknown */
    int rank, world; /* -1, 0: unknown */
    struct profile_span *spans;
    size_t n_spans;
    struct profile_kernel *kernels; /* longest first, then by name */
    size_t n_kernels;
    struct profile_step *steps; /* in order, without overlaps; the whole trace if nothing marks them */
    size_t n_steps;
    int steps_each; /* steps of the job in each of `steps`: 1 if they are marked */
    bool marked;    /* the trace marks its steps */
};

/* Progress of reading: of the file, then of its text. */
struct profile_watch {
    struct watch file, text;
};

/* Reads a profile of at most `limit` bytes of text (FILE_TEXT_MAX, unless the user wants more). Text that cannot be read is an
 * error with its line and column; so is a trace without work of a device. *profile is written on success only; free it with
 * profile_free. A watch may be NULL. */
MUST_CHECK enum status profile_read(const char *path, size_t limit, const struct layout *layout,
                                    const struct profile_watch *watch, struct profile *profile, struct diags *diags);
/* The same for text in memory; `path` is its name in errors. */
MUST_CHECK enum status profile_parse(const char *text, size_t n, const char *path, const struct layout *layout,
                                     const struct watch *watch, struct profile *profile, struct diags *diags);
void profile_free(struct profile *profile);

/* Seconds of a step, averaged over the steps of the profile. */
struct profile_account {
    double step_s;
    double exposed_s[N_PROFILE_KINDS]; /* sum to step_s */
    double hidden_s[N_PROFILE_KINDS];  /* busy while a kind that comes first is busy, too */
};
/* O(spans log spans) time, and 32 bytes per span. */
struct profile_account profile_account_of(const struct profile *profile);

/* Idle time of the device: all gaps between a launch of one kernel and one of another. A gap of 180 ms at the beginning of a
 * step is a data loader; thousands of microseconds between any two kernels are a host that is too slow. */
struct profile_idle {
    int64_t after, before; /* indices in the profile's kernels; -1: the beginning or end of a step */
    int64_t gaps;          /* in all steps */
    double seconds;        /* of all gaps, in all steps */
    double longest_s;      /* the longest gap, */
    double longest_at_s;   /* its time since the beginning of its step */
    size_t longest_step;   /* index in the profile's steps */
};
/* The idles with the most time, at most `most` of them; returns their number. O(spans log spans) time, and 24 to 64 bytes per
 * span. */
size_t profile_idles_of(const struct profile *profile, struct profile_idle *idles, size_t most);

#endif
