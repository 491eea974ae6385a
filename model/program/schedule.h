/*
 * schedule.h - the order in which a pipeline stage works on its micro-batches (private to the program folder).
 *
 * Example: 1F1B, p = 2 stages, m = 3 micro-batches. Slots of stage 0 (F forward, B backward, numbers are micro-batches):
 *
 *     F0 F1 B0 F2 B1 B2
 *
 * A schedule is, for each stage, a list of slots: one pass of one micro-batch through one model chunk. emit.c derives all
 * messages and dependencies from the slots, in the same way for every schedule.
 *
 * Symbols: p stages, r the stage (0-based), v chunks per stage, m micro-batches; F, B, W the times of a forward pass, of the
 * backward pass and, where it is split, of its input-gradient part B and its weight-gradient part W.
 *
 *     none, gpipe   schedule_one_chunk.c       GPipe bubble (p - 1)(F + B), all m micro-batches in flight
 *     1f1b          schedule_one_chunk.c       the same bubble, p - r in flight
 *     interleaved   schedule_interleaved.c     bubble (p - 1)(F + B) / v where p divides m; with ep_overlap forward and backward
 *                                              passes in pairs
 *     zb-1p, zb-2p  schedule_one_chunk.c       bubble (p - 1)(F + B - W) with p in flight; none with 2p - 1 in flight
 *     zb-v          schedule_zero_bubble_v.c   none with 2p chunks of 1 / (2p) of the model in flight
 *     dualpipe, -v  schedule_dualpipe.c        bubble (p/2 - 1)(F&B + (B + W) - 3 W) with p + 1 in flight, F&B a pair of a
 * forward and a backward pass; -v the same for p = 2 pp
 */
#ifndef MSIM_MODEL_PROGRAM_SCHEDULE_H
#define MSIM_MODEL_PROGRAM_SCHEDULE_H

#include "model/cost/work/work.h"

struct slot {
    int32_t micro_batch;
    int16_t chunk;
    uint8_t pass;   /* enum pass */
    bool exchanges; /* frameworks with blocking messages do them after this slot */
    /* Paired with the next slot: the two begin with the inputs of both, the exchanges of either pass hide under the other, and
     * the outputs leave when both are done. */
    bool paired;
};

struct slots {
    struct slot *items;
    size_t n_items, capacity;
};

/* schedule_slots.c */
void slots_add(struct slots *slots, enum pass pass, int chunk, int64_t micro_batch);
void slots_free(struct slots *slots);

/* Appends the slots of one stage of a legal layout. */
void schedule_slots(const struct layout *layout, int64_t micro_batches, int stage, struct slots *slots);
/* Whether the backward pass has two parts, everywhere or where it fills a gap. */
bool schedule_splits_backward(enum schedule schedule);

void gpipe_slots(int64_t m, struct slots *slots);
void one_f_one_b_slots(int p, int64_t m, int stage, struct slots *slots);
void interleaved_slots(int p, int v, int64_t m, int stage, bool paired, struct slots *slots);
/* `lead`: forward passes, per stage after this one, beyond those of 1F1B: 0 for ZB-H1, 1 for ZB-H2. */
void zero_bubble_slots(int p, int64_t m, int stage, int lead, struct slots *slots);
void zero_bubble_v_slots(int p, int64_t m, int stage, struct slots *slots);
void dualpipe_slots(int p, int64_t m, int stage, struct slots *slots);
void dualpipe_v_slots(int p, int64_t m, int stage, struct slots *slots);

#endif
