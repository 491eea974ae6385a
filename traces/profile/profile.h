/*
 * profile.h - what a profiler saw of real steps: where a device's time went.
 *
 * Read are tables of launches (CSV) of one device, as Nsight Systems (nsys stats -r cuda_gpu_trace --format csv) and rocprofv3
 * (--kernel-trace) write them, and the Chrome-trace JSON that torch.profiler (Kineto) exports for a rank: {"traceEvents": [...],
 * ...} or the bare array; also compressed (".gz"). Of the latter's complete events (ph "X"; ts and dur in microseconds) these
 * count:
 *
 *   cat kernel, gpu_memcpy, gpu_memset   what the device does; kernels are told apart by their names (profile_kernel_kind)
 *   ProfilerStep#N (any cat)             where steps begin; those on the device's clock (gpu_user_annotation) win, of which each
 *                                        of its streams has one
 *
 * The same format holds what JAX writes (*.trace.json.gz), where names of processes and threads say what counts: profile_jax.h.
 *
 * Launches on other devices than the first's are left out, with a warning.
 *
 * An exchange belongs to the group that its arguments name ("Process Group Description"), else to the one whose size or
 * operation only one group of the layout has, else to none.
 *
 * Accounting: every instant of a step goes to one kind, the first in the order of enum profile_kind that is busy on any stream,
 * so an exchange beside a computation counts as hidden, and the seconds of all kinds sum to the step. A message that waits for
 * its sender is busy, so the bubble of a pipeline shows in PROFILE_PP, and what late ranks cost in their exchanges.
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

/* Of a kernel by its name, as CUDA and ROCm libraries and compilers spell them; PROFILE_EXCHANGE for those of NCCL and RCCL,
 * PROFILE_OTHER for what is none of the known. */
enum profile_kind profile_kernel_kind(const char *name);

struct profile_span {
    double start_s, end_s;
    enum profile_kind kind;
    int32_t kernel; /* of the profile's kernels */
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
    char gpu[64];    /* as the driver calls it; "" not told */
    int rank, world; /* -1, 0: not told */
    struct profile_span *spans;
    size_t n_spans;
    struct profile_kernel *kernels; /* longest first, then by name */
    size_t n_kernels;
    struct profile_step *steps; /* in order, none overlaps another; of the whole trace where nothing marks them */
    size_t n_steps;
    int steps_each; /* of the job in each of `steps`: 1 where they are marked */
    bool marked;    /* steps are those that the trace marks */
};

/* Told while a profile is read: how much of the file, then how much of its text has been taken apart. */
struct profile_watch {
    struct watch file, text;
};

/* What cannot be read is an error with its line and column; so is a trace without any work of a device. *profile is written on
 * success only; free it with profile_free. A watch may be NULL. */
MUST_CHECK enum status profile_read(const char *path, const struct layout *layout, const struct profile_watch *watch,
                                    struct profile *profile, struct diags *diags);
/* The same of text in memory; `path` is what errors call it. */
MUST_CHECK enum status profile_parse(const char *text, size_t n, const char *path, const struct layout *layout,
                                     const struct watch *watch, struct profile *profile, struct diags *diags);
void profile_free(struct profile *profile);

/* Seconds of a step, mean over those of the profile. */
struct profile_account {
    double step_s;
    double exposed_s[N_PROFILE_KINDS]; /* sum to step_s */
    double hidden_s[N_PROFILE_KINDS];  /* busy, beside a kind that comes first */
};
/* O(spans log spans) time, and 32 bytes a span meanwhile. */
struct profile_account profile_account_of(const struct profile *profile);

/* When nothing on the device was busy: all gaps between a launch of one kernel and one of another. A gap of 180 ms where a step
 * begins is a data loader's; thousands of microseconds between any two kernels are a host that is too slow. */
struct profile_idle {
    int64_t after, before; /* of the profile's kernels; -1: the step began, ended */
    int64_t gaps;          /* in all steps */
    double seconds;        /* all of them, in all steps */
    double longest_s;      /* of one gap, */
    double longest_at_s;   /* which began so long after its step */
    size_t longest_step;   /* of the profile's steps */
};
/* Those that took most, at most so many; how many. O(spans log spans) time, and 24 to 64 bytes a span meanwhile. */
size_t profile_idles_of(const struct profile *profile, struct profile_idle *idles, size_t most);

#endif
