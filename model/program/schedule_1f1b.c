/*
 * 1F1B (PipeDream-Flush; Narayanan et al. 2021, section 2.2.1): stage r runs p - r - 1 forward passes to fill the pipeline, then
 * one forward and one backward pass in turn, and drains. It never holds more than p - r micro-batches.
 */
#include "model/program/schedule.h"

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
