/*
 * schedule_interleaved.c - interleaved 1F1B (Narayanan et al. 2021, section 2.2.2; the order is Megatron-LM's).
 *
 * A stage works on its m * v (micro-batch, chunk) pairs in rounds of p micro-batches: p of them through chunk 0, the same p
 * through chunk 1, and so on; backward from the last chunk to the first. Stage r fills the pipeline with 2(p - r - 1) + (v -
 * 1)p forward passes, or with all of them when there is only one round, and then alternates.
 *
 * m need not be a multiple of p (Llama 3, arXiv:2407.21783, section 3.3.2). The last round is then a round of p micro-batches
 * without the passes of those that do not exist. Every wait in it also exists in the whole round, so nothing waits in a circle.
 * The micro-batches of the short round still go round the ring of p stages once per chunk.
 *
 * Pairs (ep_overlap; Megatron-Core's overlap of expert exchanges in 1F1B): a forward pass and the backward pass after it are
 * one, and the exchanges of either hide under the other. They must belong to different micro-batches, which they would not on
 * the last stage. So every stage fills the pipeline with one more forward pass. Passes of a short round wait for the ring and
 * are not paired.
 *
 * Where exchanges block, Megatron-LM does those of a forward and a backward pass together once the alternation has begun.
 */
#include "model/program/schedule.h"

/* The k-th pass in one direction of rounds of p micro-batches; false: its micro-batch does not exist. */
static bool add_pass(int p, int v, int64_t m, int64_t k, enum pass pass, struct slots *slots)
{
    int64_t round = (int64_t)p * v, within = k % round, micro_batch = k / round * p + within % p;
    int chunk = (int)(within / p);
    if (micro_batch >= m)
        return false;
    slots_add(slots, pass, pass == PASS_FORWARD ? chunk : v - 1 - chunk, micro_batch);
    return true;
}

void interleaved_slots(int p, int v, int64_t m, int stage, bool paired, struct slots *slots)
{
    int64_t total = (m + p - 1) / p * p * v, warm_up = 2 * (int64_t)(p - stage - 1) + (int64_t)(v - 1) * p + paired;
    if (warm_up > total || m <= p)
        warm_up = total;
    for (int64_t k = 0; k < warm_up; k++)
        add_pass(p, v, m, k, PASS_FORWARD, slots);
    for (int64_t k = 0; k < total; k++) {
        bool forward = k + warm_up < total && add_pass(p, v, m, k + warm_up, PASS_FORWARD, slots);
        bool backward = add_pass(p, v, m, k, PASS_BACKWARD, slots);
        if (!forward || !backward)
            continue;
        struct slot *first = &slots->items[slots->n_items - 2];
        first->exchanges = false;
        first->paired = paired && first->micro_batch < m / p * p;
    }
}
