/*
 * schedule_zero_bubble_v.c - ZB-V (Qi et al., ICLR 2024, section 6).
 *
 * The model is folded into a V of two chunks per stage. So the first stage has both ends, and every stage gets its first
 * gradient equally late. There is no bubble, with the activations of 1F1B's first stage (2p chunks).
 *
 * Stage r of p:
 *     1. 2(p - r) - 1 forward passes of chunk 0, then r pairs of a forward pass of chunk 1 and one of chunk 0: 2p - 1 in flight
 *     2. p - r times F1 B1 W1: at the point of the V micro-batches turn round at once
 *     3. in turn F0 B0 W0 F1 B1 W1, until all micro-batches are forward
 *     4. r pairs B0 B1 without their weight gradients, then p - r times B0 with the weight gradient of an earlier one; then the
 * rest
 *
 * With F = B = W no stage waits between its first and its last pass. Stages begin and end one after another, so, as with ZB-H2,
 * the gain needs the next step to begin without a barrier (program.rolling). The pattern is that of at least 2p - 1
 * micro-batches; with fewer, the passes of those that do not exist are left out.
 */
#include "model/program/schedule.h"

struct fold {
    struct slots *slots;
    int64_t m;                 /* micro-batches that exist */
    int64_t next[N_PASSES][2]; /* by pass and chunk */
};

static void pass(struct fold *fold, enum pass pass, int chunk)
{
    int64_t i = fold->next[pass][chunk]++;
    if (i < fold->m)
        slots_add(fold->slots, pass, chunk, i);
}

static void backward(struct fold *fold, int chunk)
{
    pass(fold, PASS_BACKWARD_INPUT, chunk);
    pass(fold, PASS_BACKWARD_WEIGHT, chunk);
}

static void fill(struct fold *fold, int p, int stage)
{
    for (int i = 0; i < 2 * (p - stage) - 1; i++)
        pass(fold, PASS_FORWARD, 0);
    for (int i = 0; i < stage; i++) {
        pass(fold, PASS_FORWARD, 1);
        pass(fold, PASS_FORWARD, 0);
    }
    for (int i = 0; i < p - stage; i++) {
        pass(fold, PASS_FORWARD, 1);
        backward(fold, 1);
    }
}

static void drain(struct fold *fold, int p, int stage)
{
    for (int i = 0; i < stage; i++) {
        pass(fold, PASS_BACKWARD_INPUT, 0);
        pass(fold, PASS_BACKWARD_INPUT, 1);
    }
    for (int i = 0; i < p - stage; i++)
        backward(fold, 0);
    for (int chunk = 1; chunk >= 0; chunk--)
        while (fold->next[PASS_BACKWARD_WEIGHT][chunk] < fold->next[PASS_BACKWARD_INPUT][chunk])
            pass(fold, PASS_BACKWARD_WEIGHT, chunk);
}

void zero_bubble_v_slots(int p, int64_t m, int stage, struct slots *slots)
{
    struct fold fold = {.slots = slots, .m = m};
    int64_t pattern = m > 2 * p - 1 ? m : 2 * p - 1, *forward = fold.next[PASS_FORWARD];
    fill(&fold, p, stage);
    while (forward[1] < forward[0] || forward[0] < pattern) {
        if (forward[0] < pattern)
            pass(&fold, PASS_FORWARD, 0);
        backward(&fold, 0);
        pass(&fold, PASS_FORWARD, 1);
        backward(&fold, 1);
    }
    drain(&fold, p, stage);
}
