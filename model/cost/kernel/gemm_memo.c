#include "model/cost/kernel/gemm_memo.h"

#include <stdint.h>
#include <stdlib.h>

#include "model/base/memory.h"

enum { FIRST_SLOTS = 256 };

struct gemm_answer {
    struct work_gemm gemm; /* count 0: free */
    struct cost cost;
};

static size_t gemm_hash(const struct work_gemm *g)
{
    const uint64_t fields[] = {(uint64_t)g->m, (uint64_t)g->n, (uint64_t)g->k,
                               (uint64_t)g->count << 16 | (uint64_t)g->precision << 2 | (uint64_t)g->apart << 1 | g->sliced};
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        h = (h ^ fields[i] ^ h >> 29) * UINT64_C(0xff51afd7ed558ccd);
    return (size_t)(h ^ (h >> 32));
}

static bool gemm_equal(const struct work_gemm *a, const struct work_gemm *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->count == b->count && a->apart == b->apart &&
           a->largest == b->largest && a->along_k == b->along_k && a->sliced == b->sliced && a->serial == b->serial &&
           a->scan == b->scan && a->precision == b->precision && !(a->output_bytes < b->output_bytes) &&
           !(a->output_bytes > b->output_bytes);
}

static struct gemm_answer *slot_of(struct gemm_answer *slots, size_t n, const struct work_gemm *gemm)
{
    size_t i = gemm_hash(gemm) % n;
    while (slots[i].gemm.count != 0 && !gemm_equal(&slots[i].gemm, gemm))
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
