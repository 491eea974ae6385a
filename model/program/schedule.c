/*
 * schedule.c - choose the function that fills the slots of a schedule.
 */
#include "model/program/schedule.h"

bool schedule_splits_backward(enum schedule schedule)
{
    return schedule >= SCHEDULE_ZB1P;
}

/* Without a pipeline every micro-batch goes forward and at once backward. */
static void serial_slots(int64_t m, struct slots *slots)
{
    for (int64_t i = 0; i < m; i++) {
        slots_add(slots, PASS_FORWARD, 0, i);
        slots_add(slots, PASS_BACKWARD, 0, i);
    }
}

void schedule_slots(const struct layout *layout, int64_t m, int stage, struct slots *slots)
{
    switch (layout->schedule) {
    case SCHEDULE_GPIPE: gpipe_slots(m, slots); break;
    case SCHEDULE_1F1B: one_f_one_b_slots(layout->pp, m, stage, slots); break;
    case SCHEDULE_INTERLEAVED:
        interleaved_slots(layout->pp, layout->vpp, m, stage, layout->features & FEATURE_BIT(EP_OVERLAP), slots);
        break;
    case SCHEDULE_ZB1P: zero_bubble_slots(layout->pp, m, stage, 0, slots); break;
    case SCHEDULE_ZB2P: zero_bubble_slots(layout->pp, m, stage, 1, slots); break;
    case SCHEDULE_ZBV: zero_bubble_v_slots(layout->pp, m, stage, slots); break;
    case SCHEDULE_DUALPIPE: dualpipe_slots(layout->pp, m, stage, slots); break;
    case SCHEDULE_DUALPIPEV: dualpipe_v_slots(layout->pp, m, stage, slots); break;
    default: serial_slots(m, slots); break;
    }
}
