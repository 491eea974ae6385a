/*
 * operation_trace.h - timed operations of real 1F1B jobs (ByteDance-Seed/StragglerAnalysis): step, dp and pp rank, operation,
 * micro-batch, start and duration in whole microseconds. Communication there begins when both sides are ready, so durations of
 * sends and receives are those of the transfer.
 */
#ifndef MSIM_TESTS_ACCURACY_OPERATION_TRACE_H
#define MSIM_TESTS_ACCURACY_OPERATION_TRACE_H

#include <stdint.h>

#include "model/base/diag.h"
#include "model/base/status.h"

#define TRACED_KINDS(X)                                                                                                          \
    X(PARAMS_ALL_GATHER, "params-all-gather")                                                                                    \
    X(FORWARD, "forward-compute")                                                                                                \
    X(BACKWARD, "backward-compute")                                                                                              \
    X(FORWARD_SEND, "forward-send")                                                                                              \
    X(FORWARD_RECV, "forward-recv")                                                                                              \
    X(BACKWARD_SEND, "backward-send")                                                                                            \
    X(BACKWARD_RECV, "backward-recv")                                                                                            \
    X(LAYERNORM_ALL_REDUCE, "layernorm-grads-all-reduce")                                                                        \
    X(EMBEDDING_ALL_REDUCE, "embedding-grads-all-reduce")                                                                        \
    X(GRADS_REDUCE_SCATTER, "grads-reduce-scatter")                                                                              \
    X(CLIP, "optimizer-clip-main-grad")                                                                                          \
    X(OPTIMIZER, "optimizer")

enum traced_kind {
#define X(id, name) TRACED_##id,
    TRACED_KINDS(X)
#undef X
        N_TRACED_KINDS
};

struct traced_op {
    enum traced_kind kind;
    int32_t micro_batch; /* -1 none */
    int32_t ordinal;     /* how many of its kind stand before it on its rank */
    int64_t start_us, dur_us;
    int64_t idle_us; /* between the end of all earlier operations of its rank and its start, 0 or more; 0 of the first */
};

struct traced_rank { /* one rank in one step */
    struct traced_op *ops;
    size_t n_ops;
};

struct operation_trace {
    int n_steps, dp, pp, micro_batches;
    int64_t *steps;            /* [n_steps]: their numbers */
    struct traced_rank *ranks; /* [n_steps][pp][dp] */
    struct traced_op *ops;     /* of all of them */
};

/* Rows must be grouped by step, dp and pp, operations in the order of their starts. */
MUST_CHECK enum status operation_trace_read(const char *path, struct operation_trace *trace, struct diags *diags);
void operation_trace_free(struct operation_trace *trace);

static inline const struct traced_rank *traced_rank_at(const struct operation_trace *trace, int step, int dp, int pp)
{
    return &trace->ranks[((size_t)step * (size_t)trace->pp + (size_t)pp) * (size_t)trace->dp + (size_t)dp];
}
/* The n-th of a kind on a rank; NULL when there is none. */
const struct traced_op *traced_rank_find(const struct traced_rank *rank, enum traced_kind kind, int32_t ordinal);

#endif
