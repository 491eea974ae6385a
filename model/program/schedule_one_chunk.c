/* schedule_one_chunk.c - schedules of one chunk per stage: GPipe, 1F1B and the zero-bubble schedules by hand. */
#include "model/program/schedule.h"

/*
 * GPipe (Huang et al. 2019): all micro-batches forward, then all backward, the last one first: its activations are the freshest,
 * and the last stage turns round without waiting.
 */
void gpipe_slots(int64_t m, struct slots *slots)
{
    for (int64_t i = 0; i < m; i++)
        slots_add(slots, PASS_FORWARD, 0, i);
    for (int64_t i = m - 1; i >= 0; i--)
        slots_add(slots, PASS_BACKWARD, 0, i);
}

/*
 * 1F1B (PipeDream-Flush; Narayanan et al. 2021, section 2.2.1): stage r runs p - r - 1 forward passes to fill the pipeline, then
 * one forward and one backward pass in turn, and drains. It never holds more than p - r micro-batches.
 */
void one_f_one_b_slots(int p, int64_t m, int stage, struct slots *slots)
{
    int64_t warm_up = p - stage - 1 < m ? p - stage - 1 : m;
    for (int64_t i = 0; i < warm_up; i++)
        slots_add(slots, PASS_FORWARD, 0, i);
    for (int64_t i = 0; i < m; i++) {
        if (i + warm_up < m)
            slots_add(slots, PASS_FORWARD, 0, i + warm_up);
        slots_add(slots, PASS_BACKWARD, 0, i);
    }
}

/*
 * Zero-bubble schedules by hand (Qi et al., ICLR 2024, sections 2.1 and 2.2).
 *
 * The backward pass is split: only its input-gradient part B is on the path to the stage before, so it goes first and the
 * weight-gradient part W of a micro-batch waits until there would be a gap. Stage r runs W for micro-batch i - lag after B of
 * micro-batch i.
 *
 *   ZB-H1  warm-up p - r - 1 (as 1F1B), lag r: at most p micro-batches in flight on every stage; bubble (p - 1)(F + B - W), all
 *          of it before the first stage's first backward pass
 *   ZB-H2  warm-up 2(p - r - 1), lag 2r: at most 2p - 1 in flight; no stage waits between its first and its last pass (F = B = W)
 *
 * Under ZB-H2 stages begin and end one after another, so its gain shows only when the next step begins without a barrier (the
 * paper's post-validation of the optimizer step): program.rolling.
 */
void zero_bubble_slots(int p, int64_t m, int stage, int lead, struct slots *slots)
{
    int64_t warm_up = (int64_t)(p - stage - 1) * (1 + lead), lag = (int64_t)stage * (1 + lead);
    warm_up = warm_up < m ? warm_up : m;
    for (int64_t i = 0; i < warm_up; i++)
        slots_add(slots, PASS_FORWARD, 0, i);
    for (int64_t i = 0; i < m; i++) {
        if (i + warm_up < m)
            slots_add(slots, PASS_FORWARD, 0, i + warm_up);
        slots_add(slots, PASS_BACKWARD_INPUT, 0, i);
        if (i >= lag)
            slots_add(slots, PASS_BACKWARD_WEIGHT, 0, i - lag);
    }
    for (int64_t i = m > lag ? m - lag : 0; i < m; i++)
        slots_add(slots, PASS_BACKWARD_WEIGHT, 0, i);
}
