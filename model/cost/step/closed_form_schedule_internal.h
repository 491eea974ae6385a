/*
 * closed_form_schedule_internal.h - the timing of one layout, from which each schedule's step time is computed.
 *
 * Private to closed_form_schedule.c, which has most schedules, and closed_form_folded.c, which has ZB-V and DualPipe.
 */
#ifndef MSIM_MODEL_COST_STEP_CLOSED_FORM_SCHEDULE_INTERNAL_H
#define MSIM_MODEL_COST_STEP_CLOSED_FORM_SCHEDULE_INTERNAL_H

#include "model/cost/step/closed_form_schedule.h"

/* The inputs of a schedule's formula. The times of backward passes include pauses. */
struct schedule_timing {
    const struct layout *layout;
    const struct transformer *model;
    struct stage_times t;
    double m, p;
    double pair;       /* one micro-batch through the fullest stage, forward and backward in a pair; seconds */
    double message;    /* seconds */
    double pauses;     /* of the fullest stage */
    bool blocking;     /* messages block the compute stream */
    int first_layers;  /* of the first chunk of the model */
    bool shares_table; /* first and last stage share the token table and all-reduce its gradients */
};

/* Seconds of all passes of a micro-batch. */
static inline double work_of(const struct pass_times *t, bool divided)
{
    double backward = divided ? t->s[PASS_BACKWARD_INPUT] + t->s[PASS_BACKWARD_WEIGHT] : t->s[PASS_BACKWARD];
    return t->s[PASS_FORWARD] + backward;
}

/* Seconds in which a stage inside the pipeline sends messages for `chunks` chunks per micro-batch. It sends and receives one at
 * a time. */
static inline double sent_seconds(const struct schedule_timing *timing, double chunks)
{
    double each = timing->p > 2 ? 2 * chunks : timing->layout->schedule == SCHEDULE_INTERLEAVED ? 2 * chunks - 1 : chunks;
    return timing->m * each * timing->message;
}

/* closed_form_folded.c: ZB-V, whose slowest stage takes `slowest` seconds; DualPipe and DualPipe-V. */
double zero_bubble_v_seconds(const struct schedule_timing *timing, double slowest);
double both_ways_seconds(const struct schedule_timing *timing);

#endif
