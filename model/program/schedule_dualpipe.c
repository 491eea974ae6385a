/*
 * schedule_dualpipe.c - DualPipe (DeepSeek-V3 technical report, arXiv:2412.19437, section 3.2.1, and its published
 * implementation).
 *
 * P pipeline places. Half of the micro-batches enter at either end, and every place holds the layers that it needs for both
 * directions, so each weight is held twice. In the steady phase each forward pass of one direction is paired with a backward
 * pass of the other. The weight-gradient part is divided off the backward pass only where it fills a gap, at the beginning and
 * at the end. The bubble is (P/2 - 1)(F&B + B - 3W), with B the whole backward pass and F&B a pair, in which the exchanges of
 * either pass hide under the computation of the other. P + 1 of the micro-batches fill and drain the pipeline unpaired, in F +
 * B. A place holds the activations of P + 1 micro-batches, each of 1/P of the model.
 *
 * Chunk 0 is the direction that reaches a place first: for the first half of the places the micro-batches that entered at place
 * 0, for the second half the others. So place r and its mirror image P - 1 - r run the same list of slots. With h = min(r, P -
 * 1 - r), H = P / 2, n micro-batches per direction:
 *
 *     1. 2(H - h - 1) times F0            5. H - h - 1 times B1, F1 with B0
 *     2. h + 1 times F0 F1                6. h + 1 times B1 B0, the later half without W
 *     3. H - h - 1 times B1 W F1          7. H - h - 1 times W, B0 without W
 *     4. n - P + h + 1 times F0 with B1, F1 with B0    8. h + 1 times W
 *
 * DualPipe-V is one half of it: p = H places run the lists of the first half. Messages for the second half come back as the
 * other arm of a V, and all n micro-batches pass both arms. There is one copy of the weights.
 */
#include "model/program/schedule.h"

#include <stdlib.h>

#include "model/base/memory.h"

/* Weight gradients wait in line. */
struct both_ways {
    struct slots *slots;
    struct slot *waiting;
    size_t first, last;
    int64_t forward[2], backward[2]; /* next micro-batch, by chunk */
    int64_t offset[2];               /* the number of its first */
};

static void forward(struct both_ways *way, int chunk)
{
    slots_add(way->slots, PASS_FORWARD, chunk, way->offset[chunk] + way->forward[chunk]++);
}

static void backward(struct both_ways *way, int chunk, bool divided)
{
    int64_t i = way->offset[chunk] + way->backward[chunk]++;
    slots_add(way->slots, divided ? PASS_BACKWARD_INPUT : PASS_BACKWARD, chunk, i);
    if (divided)
        way->waiting[way->last++] = (struct slot){.micro_batch = (int32_t)i, .chunk = (int16_t)chunk};
}

static void weight(struct both_ways *way)
{
    const struct slot *slot = &way->waiting[way->first++];
    slots_add(way->slots, PASS_BACKWARD_WEIGHT, slot->chunk, slot->micro_batch);
}

static void fill(struct both_ways *way, int outer, int inner)
{
    for (int i = 0; i < 2 * outer; i++)
        forward(way, 0);
    for (int i = 0; i < inner; i++) {
        forward(way, 0);
        forward(way, 1);
    }
    for (int i = 0; i < outer; i++) {
        backward(way, 1, true);
        weight(way);
        forward(way, 1);
    }
}

static void pair(struct both_ways *way, int chunk, bool together)
{
    forward(way, chunk);
    way->slots->items[way->slots->n_items - 1].paired = together;
    backward(way, 1 - chunk, false);
}

/* The innermost places do the first pair apart, which spares their neighbour a wait. */
static void steady(struct both_ways *way, int64_t rounds, bool innermost)
{
    for (int64_t i = 0; i < rounds; i++) {
        pair(way, 0, i > 0 || !innermost);
        pair(way, 1, true);
    }
}

static void drain(struct both_ways *way, int outer, int inner)
{
    int h = inner - 1;
    for (int i = 0; i < outer; i++) {
        backward(way, 1, false);
        pair(way, 1, true);
    }
    for (int i = 0; i < inner; i++) {
        backward(way, 1, i > inner / 2 || (i == inner / 2 && h % 2 == 1));
        backward(way, 0, i >= inner / 2);
    }
    for (int i = 0; i < outer; i++) {
        weight(way);
        backward(way, 0, true);
    }
    while (way->first < way->last)
        weight(way);
}

/* Place h of the first half of 2 * half places. */
static void both_ways_slots(int half, int h, int64_t n, const int64_t offset[2], struct slots *slots)
{
    struct both_ways way = {.slots = slots, .offset = {offset[0], offset[1]}};
    way.waiting = memory_new(4 * (size_t)half, sizeof *way.waiting); /* at most 2 half + 2 are ever divided */
    fill(&way, half - h - 1, h + 1);
    steady(&way, n - 2 * half + h + 1, h == half - 1);
    drain(&way, half - h - 1, h + 1);
    free(way.waiting);
}

void dualpipe_slots(int p, int64_t m, int stage, struct slots *slots)
{
    bool second = 2 * stage >= p;
    const int64_t offset[2] = {second ? m / 2 : 0, second ? 0 : m / 2};
    both_ways_slots(p / 2, second ? p - 1 - stage : stage, m / 2, offset, slots);
}

void dualpipe_v_slots(int p, int64_t m, int stage, struct slots *slots)
{
    both_ways_slots(p, stage, m, (const int64_t[2]){0, 0}, slots);
}
