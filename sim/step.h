/*
 * step.h - one training step in virtual time.
 *
 * The engine runs a program: every stream of every rank is an in-order queue; an operation starts when its predecessor on
 * the stream, its dependencies and, for messages and collectives, its partners are ready, and takes what the cost model (or the
 * network) says. Deterministic: events are ordered by (time, class, sequence).
 *
 * Breakdown: each instant of a rank belongs to what its compute stream does (by class, a pass split in the proportions of its
 * works); where compute waits, to the exchange it waits for, or to the bubble when it waits for another stage's work. The
 * reported breakdown is the mean over ranks and sums to the step time exactly (in nanoseconds).
 */
#ifndef MSIM_SIM_STEP_H
#define MSIM_SIM_STEP_H

#include "model/base/diag.h"
#include "model/cost/footprint.h"
#include "sim/breakdown.h"
#include "traces/timeline.h"

struct step_options {
    bool all_ranks; /* simulate every rank, fold nothing */
    enum detail detail;
    const int *trace_ranks; /* whose spans are kept (folded: stages); NULL with n = -1: all */
    int n_trace_ranks;
    bool verify;              /* run program_verify first */
    bool time_order;          /* execute through the event queue instead of by data flow: slower, the same times */
    struct breakdown *stages; /* NULL, or gets the breakdown by stage; the caller frees it (breakdown_free) */
};

struct step_result {
    nanos step;
    double step_time_s;
    struct cost_by_class breakdown; /* seconds, sums to step_time_s */
    double mfu, hfu;                /* fractions; FLOPS_FULL convention */
    double mfu_causal, hfu_causal;  /* FLOPS_CAUSAL convention */
    double tokens_per_s;
    struct footprint memory; /* of the fullest stage */
    int memory_stage;
    uint64_t events;
    double seconds; /* wall time of the simulation */
    int actors;     /* ranks simulated */
};

/* `timeline` and `program` may be NULL; when given they are filled (and then freed by the caller). */
MUST_CHECK enum status step_simulate(const struct layout *layout, const struct setting *setting,
                                     const struct step_options *options, struct step_result *result, struct timeline *timeline,
                                     struct program *program, struct diags *diags);

#endif
