/*
 * closed_form_schedule.h - the time of a pipeline schedule, computed from the times of its passes (private to the closed form).
 *
 * Example: 1F1B with p = 4 equal stages, m = 16 micro-batches, F = 1 ms and B = 2 ms per stage, no message time.
 *
 *     total_s  = (m + p - 1) (F + B) = 57 ms
 *     bubble_s = (p - 1) (F + B)     =  9 ms
 *
 * Symbols: p stages of v chunks, m micro-batches; F, B, I, W the times of passes on a stage (closed_form_passes.h), T their sum
 * on a stage; S the sum of a pass over all stages. Every schedule is bounded from below by a few paths through its passes, and
 * takes about as long as the longest:
 *
 *     the slowest stage    waits for its first input, works through all micro-batches, then its last output goes back
 *     the first stage      has its forward passes in flight and waits for the first gradient
 *     a micro-batch        goes through all stages and back
 *
 * The function of each schedule lists its paths.
 */
#ifndef MSIM_MODEL_COST_STEP_CLOSED_FORM_SCHEDULE_H
#define MSIM_MODEL_COST_STEP_CLOSED_FORM_SCHEDULE_H

#include "model/cost/step/closed_form_passes.h"

struct schedule_time {
    double alone, paired;      /* number of micro-batches whose passes run alone, and in pairs */
    struct layer_count layers; /* of a stage, on average */
    double ends;               /* embeddings (and the same number of heads) that a stage computes on average */
    double alone_s;            /* passes that do not run in pairs, without pauses */
    double pauses_s, messages_s;
    double total_s;  /* of all micro-batches */
    double bubble_s; /* total_s minus all of the above; includes the time that other stages wait for a slow one */
};

/* Whether weight gradients fill the end of the step: they are the last passes of a stage, and all stages end at about the same
 * time. */
bool schedule_ends_with_weights(enum schedule schedule);
/* The number of micro-batches whose forward and backward passes run in pairs. */
double schedule_paired(const struct layout *l, double m);

/* A lower bound, rounding aside, of total_s of schedule_time_of. It uses only what inner_times_of fills in; pauses, messages,
 * ends and copies only add to it. 0 where passes of both directions overlap, so that no bound is known. */
double schedule_least(const struct layout *l, const struct stage_times *stages, double pair, double m);

/* What blocking messages add to that bound at least; 0 where messages do not block. */
double schedule_least_messages(const struct layout *l, double m, double message);

/* closed_form_rounds.c: follows interleaved pipelines with different chunks pass by pass, unless something is copied or passes
 * run in pairs. Stores the time without pauses in the stage times. Call it before schedule_time_of. */
void stage_times_follow(struct pass_costs *costs, const struct layout *layout, double m, double message);

/* The time of m micro-batches. `pair`: seconds of one layer forward and backward in a pair; `pause`: of one pause of a layer;
 * `message`: of one message. */
struct schedule_time schedule_time_of(const struct layout *l, const struct setting *setting, const struct stage_times *stages,
                                      double pair, double m, double pause, double message);

#endif
