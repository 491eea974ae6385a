/*
 * Interleaved 1F1B (Narayanan et al. 2021, section 2.2.2; the order is Megatron-LM's).
 *
 * A stage works on its m * v (micro-batch, chunk) pairs in rounds of p micro-batches: p of them through chunk 0, the same p
 * through chunk 1, and so on; backward from the last chunk to the first. m is a multiple of p. Stage r fills the pipeline with
 * 2(p - r - 1) + (v - 1)p forward passes, or with all of them when there is only one round, and then alternates.
 *
 * Where exchanges block, Megatron-LM does those of a forward and a backward pass together once the alternation has begun.
 */
#include "model/program/schedule.h"

static void add_pair(int p, int v, int64_t k, enum pass pass, struct slots *slots)
{
    int64_t round = (int64_t)p * v, within = k % round;
    int chunk = (int)(within / p);
    slots_add(slots, pass, pass == PASS_FORWARD ? chunk : v - 1 - chunk, k / round * p + within % p);
}

void interleaved_slots(int p, int v, int64_t m, int stage, struct slots *slots)
{
    int64_t total = m * v, warm_up = 2 * (int64_t)(p - stage - 1) + (int64_t)(v - 1) * p;
    if (warm_up > total || m == p)
        warm_up = total;
    for (int64_t k = 0; k < warm_up; k++)
        add_pair(p, v, k, PASS_FORWARD, slots);
    for (int64_t k = 0; k < total; k++) {
        if (k + warm_up < total) {
            add_pair(p, v, k + warm_up, PASS_FORWARD, slots);
            slots->items[slots->n_items - 1].exchanges = false;
        }
        add_pair(p, v, k, PASS_BACKWARD, slots);
    }
}
