/*
 * closed_form_schedule.h - how long a pipeline schedule takes for passes of given times (private to the closed form).
 *
 * p stages of v chunks, m micro-batches; F, B, I, W the passes' times on a stage (closed_form_passes.h), T their sum on a stage;
 * S the sum of a pass over all stages. Every schedule is bounded from below by some paths through its passes, and takes about as
 * long as the longest:
 *
 *   the slowest stage    waits for its first input, then works through all micro-batches, and what it made last goes back
 *   the first stage      has its forwards in flight and waits for the first gradient
 *   a micro-batch        goes through all stages and back
 *
 * The paths of each schedule are with its function.
 */
#ifndef MSIM_MODEL_COST_STEP_CLOSED_FORM_SCHEDULE_H
#define MSIM_MODEL_COST_STEP_CLOSED_FORM_SCHEDULE_H

#include "model/cost/step/closed_form_passes.h"

struct schedule_time {
    double alone, paired;      /* micro-batches whose passes run alone, and in pairs */
    struct layer_count layers; /* of a stage, on average */
    double ends;               /* embeddings, and as many heads, that a stage works through on average */
    double alone_s;            /* its passes other than layers in pairs, pauses not counted */
    double pauses_s, messages_s;
    double total_s;  /* all micro-batches */
    double bubble_s; /* what the schedule takes beyond all that: of a slow stage's work too, what others wait for it */
};

/* Weights' gradients fill up the end of the step: they are a stage's last passes, and all stages end at about the same time. */
bool schedule_ends_with_weights(enum schedule schedule);
/* Micro-batches whose forward and backward passes run in pairs. */
double schedule_paired(const struct layout *l, double m);

/* Seconds that schedule_time_of's total_s is not below, rounding aside, of what inner_times_of fills in alone; whatever pauses,
 * messages, ends and copies take, they only add. 0 where passes both ways overlap so that nothing is certain. */
double schedule_least(const struct layout *l, const struct stage_times *stages, double pair, double m);

/* What messages that block add to that at least; 0 where they do not. */
double schedule_least_messages(const struct layout *l, double m, double message);

/* closed_form_rounds.c: interleaved chunks that differ are followed pass by pass, where nothing is copied and no passes run in
 * pairs; the stage times then know how long that takes without pauses. Asked before schedule_time_of. */
void stage_times_follow(struct pass_costs *costs, const struct layout *layout, double m, double message);

/* `pair`: seconds of a layer forward and backward in a pair; `pause`: of one layer's pause; `message`: of one message. */
struct schedule_time schedule_time_of(const struct layout *l, const struct setting *setting, const struct stage_times *stages,
                                      double pair, double m, double pause, double message);

#endif
