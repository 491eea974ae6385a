#include "model/cost/kernel/gemm_memo.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/hash.h"
#include "model/base/memory.h"

enum { FIRST_SLOTS = 256 };

struct gemm_answer {
    struct work_gemm gemm; /* count 0: free */
    struct cost cost;
};

static_assert(sizeof(struct work_gemm) == 4 * sizeof(int64_t) + sizeof(double) + 2 * sizeof(int) + 8 * sizeof(bool),
              "no padding: GEMMs are hashed and compared by their bytes");

static struct gemm_answer *slot_of(struct gemm_answer *slots, size_t n, const struct work_gemm *gemm)
{
    size_t i = (size_t)hash_key(gemm, sizeof *gemm) % n;
    while (slots[i].gemm.count != 0 && memcmp(&slots[i].gemm, gemm, sizeof *gemm) != 0)
        i = (i + 1) % n;
    return &slots[i];
}

static void memo_grow(struct gemm_memo *memo)
{
    size_t n = memo->n_slots > 0 ? memo->n_slots * 2 : FIRST_SLOTS;
    struct gemm_answer *bigger = memory_new(n, sizeof *bigger);
    for (size_t i = 0; i < memo->n_slots; i++)
        if (memo->slots[i].gemm.count != 0)
            *slot_of(bigger, n, &memo->slots[i].gemm) = memo->slots[i];
    free(memo->slots);
    memo->slots = bigger;
    memo->n_slots = n;
}

struct cost gemm_memo_cost(struct gemm_memo *memo, const struct gpu *gpu, const struct work_gemm *gemm)
{
    if (gemm->count == 0)
        return gemm_cost(gpu, gemm);
    if (2 * (memo->n_used + 1) > memo->n_slots)
        memo_grow(memo);
    struct gemm_answer *answer = slot_of(memo->slots, memo->n_slots, gemm);
    if (answer->gemm.count == 0) {
        *answer = (struct gemm_answer){*gemm, gemm_cost(gpu, gemm)};
        memo->n_used++;
    }
    return answer->cost;
}

void gemm_memo_free(struct gemm_memo *memo)
{
    free(memo->slots);
    *memo = (struct gemm_memo){0};
}
