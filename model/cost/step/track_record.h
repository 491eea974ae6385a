/*
 * track_record.h - how predictions compared with published runs: intervals for step times, and risk of running out of memory.
 *
 * Example: a dense job with ZeRO-3 whose predicted step is 3.00 s.
 *
 *     track_record_of(RUN_SHARDED)      low 0.93, high 1.05: 80 % interval 2.80 s to 3.16 s, from 151 runs of 3 sources
 *     memory_record_share(0.97)         share of the runs with this predicted use of memory that ran out of it
 *
 * Step times. Runs are grouped by what decides how their time is spent: experts, sharded weights (FSDP), fused kernels. For
 * each kind the record holds the 10th, 50th and 90th percentile of measured over predicted step time, over the published runs
 * of the accuracy record (tests/accuracy). Each source has the same weight whatever the number of its runs, because a new job
 * is one more source. Parameters were fitted to at most half of these runs, so the record is not entirely out of sample.
 * RECORD.md reports how well the interval from some sources holds for another source.
 *
 * Memory. For a run with a predicted use u = need / capacity it is known whether it ran. The true need over the predicted one
 * is log-logistic (median m, scale s; traces/table/outcomes.h fits them to the outcomes). The share of such runs that run out
 * of memory is then 1 / (1 + (m u)^(-1/s)). Most outcomes come from eager stacks, and the constants of their memory were
 * calibrated to the same outcomes. RECORD.md reports how well the shares hold for outcomes that were left out.
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
    const char *gpus;         /* catalog names of the GPUs of these runs, between spaces */
    int outcomes;             /* runs from sources that report failures, too: this kind's part of the memory record */
};

const struct track_record *track_record_of(enum run_kind kind);
bool track_record_has_gpu(const struct track_record *record, const char *gpu);

/* Properties of a job that no run in the record of its kind has: bits 1 << enum record_gap. */
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
    double median, scale; /* of the true need over the predicted one */
};

const struct memory_record *memory_record(void);
/* The need over the prediction that a share `below` (0 to 1) of runs does not exceed, by the log-logistic of a record. */
double memory_quantile(double median, double scale, double below);
/* The share of runs with a predicted use that run out of memory, and the inverse: the use with that share (0 < share < 1). */
double memory_record_share(double use);
double memory_record_use(double share);

/* A share closer than this to 0 or 1 is not reported. */
#define SHARE_WORTH_TELLING 0.05
/* The margin of memory, as a fraction of the capacity in whole percent, with which this share of runs runs out of memory. */
#define SHARE_WITH_MARGIN 0.1
double memory_record_margin(void);

#endif
