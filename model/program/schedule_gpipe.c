/*
 * GPipe (Huang et al. 2019): all micro-batches forward, then all backward, the last one first: its activations are the freshest,
 * and the last stage turns round without waiting.
 */
#include "model/program/schedule.h"

void gpipe_slots(int64_t m, struct slots *slots)
{
    for (int64_t i = 0; i < m; i++)
        slots_add(slots, PASS_FORWARD, 0, i);
    for (int64_t i = m - 1; i >= 0; i--)
        slots_add(slots, PASS_BACKWARD, 0, i);
}
