/*
 * gemm_memo.h - a memo of gemm_cost for one GPU.
 *
 * Example:
 *
 *     struct gemm_memo memo = {0};
 *     gemm_memo_cost(&memo, gpu, &gemm)       computes; the second call looks it up
 *     gemm_memo_free(&memo);
 *
 * Passes of different layouts share most of their products: recomputation, sequence parallelism and overlaps change only the
 * work around them. An all-zero memo is empty. It belongs to one GPU and one thread, and returns the same values as gemm_cost.
 */
#ifndef MSIM_MODEL_COST_KERNEL_GEMM_MEMO_H
#define MSIM_MODEL_COST_KERNEL_GEMM_MEMO_H

#include "model/cost/kernel/gemm.h"

struct gemm_answer;
struct gemm_memo {
    struct gemm_answer *slots; /* open addressing */
    size_t n_slots, n_used;
};

struct cost gemm_memo_cost(struct gemm_memo *memo, const struct gpu *gpu, const struct work_gemm *gemm);
void gemm_memo_free(struct gemm_memo *memo);

#endif
