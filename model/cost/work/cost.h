/*
 * cost.h - a time in seconds with the parts it consists of.
 *
 * Example: a GEMM of 662 us that arithmetic limits, and its sum with an exchange.
 *
 *     struct cost gemm = {.launch_s = 2.3e-6, .compute_s = 659.3e-6, .memory_s = 0.1e-6};
 *     cost_seconds(cost_add(gemm, exchange))
 *
 * The parts are those of a roofline and of alpha-beta: they add up to the time, so an estimate can explain itself. `compute_s`
 * is the time of the arithmetic. `memory_s` is the time that memory traffic adds to it (0 where arithmetic limits). `latency_s`
 * and `bandwidth_s` belong to communication.
 */
#ifndef MSIM_MODEL_COST_WORK_COST_H
#define MSIM_MODEL_COST_WORK_COST_H

#include <stddef.h>

struct cost {
    double launch_s;
    double compute_s;
    double memory_s;
    double latency_s;
    double bandwidth_s;
};

static inline double cost_seconds(struct cost c)
{
    return c.launch_s + c.compute_s + c.memory_s + c.latency_s + c.bandwidth_s;
}

static inline struct cost cost_add(struct cost a, struct cost b)
{
    return (struct cost){a.launch_s + b.launch_s, a.compute_s + b.compute_s, a.memory_s + b.memory_s, a.latency_s + b.latency_s,
                         a.bandwidth_s + b.bandwidth_s};
}

static inline struct cost cost_scale(struct cost a, double factor)
{
    return (struct cost){a.launch_s * factor, a.compute_s * factor, a.memory_s * factor, a.latency_s * factor,
                         a.bandwidth_s * factor};
}

/* The classes of time in a step: computations first, then communication by the group that exchanges. */
#define WORK_CLASSES(X)                                                                                                          \
    X(GEMM, "gemm", "matrix multiplications of the layers")                                                                      \
    X(ATTENTION, "attention", "attention kernels")                                                                               \
    X(SCAN, "scan", "convolutions, gates and scans of mixers with a state")                                                      \
    X(MEMORY_BOUND, "memory_bound", "norms, activations, residuals, casts, dropout")                                             \
    X(EMBEDDING, "embedding", "token and position embedding")                                                                    \
    X(HEAD, "head", "output projection and cross entropy")                                                                       \
    X(EXPERTS, "experts", "router, permutation and expert matrices")                                                             \
    X(RECOMPUTE, "recompute", "forward work repeated in the backward pass")                                                      \
    X(OPTIMIZER, "optimizer", "optimizer step, gradient norm and casts")                                                         \
    X(HOST, "host", "data loading and host time that the device waits for")                                                      \
    X(TP_COMM, "tp_comm", "exposed tensor and sequence parallel exchanges")                                                      \
    X(CP_COMM, "cp_comm", "exposed context parallel exchanges")                                                                  \
    X(EP_COMM, "ep_comm", "exposed expert dispatch and combine")                                                                 \
    X(PP_COMM, "pp_comm", "exposed pipeline sends and receives")                                                                 \
    X(DP_COMM, "dp_comm", "exposed gradient and parameter exchanges")                                                            \
    X(BUBBLE, "bubble", "waiting for another pipeline stage")

enum work_class {
#define X(id, name, text) CLASS_##id,
    WORK_CLASSES(X)
#undef X
        N_WORK_CLASSES
};
const char *work_class_name(enum work_class c);

/* Seconds by class, of a pass or a step. */
struct cost_by_class {
    double s[N_WORK_CLASSES];
};
static inline double cost_by_class_total(const struct cost_by_class *by)
{
    double total = 0;
    for (int i = 0; i < N_WORK_CLASSES; i++)
        total += by->s[i];
    return total;
}
static inline void cost_by_class_add(struct cost_by_class *to, const struct cost_by_class *from, double times)
{
    for (int i = 0; i < N_WORK_CLASSES; i++)
        to->s[i] += times * from->s[i];
}

#endif
