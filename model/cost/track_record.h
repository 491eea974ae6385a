/*
 * track_record.h - how far predictions of step times have been from real runs.
 *
 * Runs are told apart by what decides how their time is spent: whether there are experts, whether FSDP shards the weights, and
 * whether kernels are fused. For each kind there is what the published runs of the accuracy record (tests/accuracy) say of the
 * ratio of measured over predicted step time: its 10th, 50th and 90th percentile, each source weighing the same whatever the
 * number of its runs, for a new job is one more source. Parameters were fitted to at most half of these runs
 * (model/cost/STEP.md), so it is not all out of sample; STEP.md says how well the range of some sources holds for another.
 */
#ifndef MSIM_MODEL_COST_TRACK_RECORD_H
#define MSIM_MODEL_COST_TRACK_RECORD_H

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
};

const struct track_record *track_record_of(enum run_kind kind);
bool track_record_has_gpu(const struct track_record *record, const char *gpu);

#endif
