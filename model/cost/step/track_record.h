/*
 * track_record.h - how far predictions have been from real runs.
 *
 * Step times. Kinds of runs differ in what decides how their time is spent: whether there are experts, whether FSDP shards the
 * weights, and whether kernels are fused. For each kind there is what the published runs of the accuracy record (tests/accuracy)
 * say of the ratio of measured over predicted step time: its 10th, 50th and 90th percentile, each source weighing the same
 * whatever the number of its runs, for a new job is one more source. Parameters were fitted to at most half of these runs
 * (model/cost/step/RECORD.md), so it is not all out of sample; RECORD.md says how well the range of some sources holds for
 * another.
 *
 * Memory. Of a run whose predicted use of the memory is u = need / capacity it is known whether it ran. With the true need over
 * the predicted one log-logistic (median m, scale s; fitted to the outcomes as traces/table/outcomes.h says) the share of such
 * runs that run out of memory is 1 / (1 + (m u)^(-1/s)). Most of the outcomes are of eager stacks, and the constants of their
 * memory were calibrated to the same ones: RECORD.md says how well the shares hold for outcomes left out.
 */
#ifndef MSIM_MODEL_COST_STEP_TRACK_RECORD_H
#define MSIM_MODEL_COST_STEP_TRACK_RECORD_H

#include "model/layout/layout.h"

enum run_kind {
    RUN_FUSED,   /* dense, fused or compiled kernels */
    RUN_EAGER,   /* dense, one kernel an operator */
    RUN_SHARDED, /* dense, ZeRO-3 (FSDP) */
    RUN_MIXTURE, /* mixture of experts */
    N_RUN_KINDS
};

enum run_kind run_kind_of(const struct layout *layout, const struct transformer *model);
const char *run_kind_name(enum run_kind kind); /* one word: fused, eager, sharded, mixture */
const char *run_kind_text(enum run_kind kind); /* "dense, fused kernels" */

struct track_record {
    int runs, sources;
    double low, middle, high; /* measured over predicted: 10th, 50th and 90th percentile */
    const char *gpus;         /* catalog names of those the runs had, between spaces */
    int outcomes;             /* runs of sources that tell of failures, too: what the record of memory has of this kind */
};

const struct track_record *track_record_of(enum run_kind kind);
bool track_record_has_gpu(const struct track_record *record, const char *gpu);

/* What no run of the record of its kind has, though the job does: bits 1 << enum record_gap. */
#define RECORD_GAPS(X)                                                                                                           \
    X(GPU, "gpu")                                                                                                                \
    X(HYBRID, "hybrid")                                                                                                          \
    X(MUON, "muon")                                                                                                              \
    X(ADAPTER, "adapter")                                                                                                        \
    X(DOCUMENTS, "documents")                                                                                                    \
    X(EXPERT_LOAD, "expert_load")                                                                                                \
    X(CAPACITY, "capacity_factor")                                                                                               \
    X(OFFLOAD, "offload")                                                                                                        \
    X(CP_COMM, "cp_comm")                                                                                                        \
    X(RECOMPUTE, "recompute")
enum record_gap {
#define X(id, key) GAP_##id,
    RECORD_GAPS(X)
#undef X
        N_RECORD_GAPS
};
const char *record_gap_key(enum record_gap gap);
unsigned track_record_gaps(const struct layout *layout, const struct setting *setting);

struct memory_record {
    int runs, failed, sources;
    double median, scale; /* of the need over the predicted one */
};

const struct memory_record *memory_record(void);
/* What a share `below` (0 to 1) of runs needs at most, over the prediction, of a record's log-logistic. */
double memory_quantile(double median, double scale, double below);
/* Share of the runs of a predicted use that run out of memory, and the use of which that is the share (0 < share < 1). */
double memory_record_share(double use);
double memory_record_use(double share);

/* A share nearer than this to none or all of the runs is not worth a word. */
#define SHARE_WORTH_TELLING 0.05
/* The margin of memory that leaves this share of runs out of memory: a fraction of the capacity, in whole percent. */
#define SHARE_WITH_MARGIN 0.1
double memory_record_margin(void);

#endif
