/*
 * gemm_memo.h - what the products of one GPU take, remembered.
 *
 * Passes of different layouts share most of their products: recomputation, sequence parallelism and overlaps change the work
 * around them. All zero is an empty memo; it belongs to one GPU and one thread, and answers what gemm_cost does.
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
