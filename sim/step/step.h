/*
 * step.h - simulates one training step: its time, MFU, and where the time goes.
 *
 * Example:
 *
 *     struct step_options options = {.detail = DETAIL_CHUNK};
 *     status = step_simulate(&layout, &setting, &options, &result, NULL, NULL, &diags);
 *     ... result.step_time_s, result.mfu, result.breakdown ...
 *
 * A program is built for the layout (model/program). The cost model and the network time its operations, and the step executor
 * gives each one a start and an end. Streams are in-order queues. An operation starts when its predecessor on the stream and its
 * dependencies have ended, and, for messages and collectives, its partners are ready. step_executor.h has the semantics and the
 * reasons. Results are deterministic: whole nanoseconds, and no order that the program does not define.
 *
 * Folding. On healthy nodes the ranks of one stage behave alike. So one rank per stage is simulated and represents all; a
 * collective within a stage starts when that rank arrives. Simulating every rank gives the same times to the nanosecond. With
 * flows on a fabric, ranks of a stage are alike only if their routes are. Classes of such ranks are found for the placement and
 * routing, and one rank per class is simulated (fold.h), again with the same times to the nanosecond. With packets
 * (network_flow_options, packets) nothing folds; the simulator moves 8 to 13 million packets over links per second.
 *
 * Breakdown. Each instant of a rank belongs to the work on its compute stream (by class; a pass is split in the proportions of
 * its works). While compute waits, it belongs to the exchange it waits for, or to the bubble if it waits for another stage
 * (breakdown.h). The reported breakdown is the mean over ranks and sums to the step time, exactly if summed over all ranks in
 * nanoseconds.
 *
 * Cost: 12,288 GPUs folded, chunk detail: less than a millisecond. With all ranks (14 million operations): less than half a
 * second and 122 MiB, twice that if a timeline is recorded. Calls share nothing, so threads may simulate at the same time.
 */
#ifndef MSIM_SIM_STEP_STEP_H
#define MSIM_SIM_STEP_STEP_H

#include "model/base/diag.h"
#include "model/cost/memory/footprint.h"
#include "sim/network/network_flow.h"
#include "sim/step/step_executor.h"

struct step_result;

struct step_options {
    bool all_ranks; /* simulate every rank, fold nothing */
    enum detail detail;
    const int *trace_ranks; /* ranks whose spans go into the timeline (folded: stages) */
    int n_trace_ranks;      /* -1: all ranks */
    bool verify;            /* run program_verify first */
    bool time_order;        /* execute through the event queue instead of by data flow: slower, same times */
    /* NULL: the analytic network. Otherwise flows on this fabric (all_ranks must be set: the program has every rank); with
     * `fold_flow` one of each class of ranks that are provably alike is simulated, if there are any (fold.h). `seen` (may be
     * NULL) looks at the network after the run. */
    bool fold_flow;
    const struct network_flow_options *flow;
    void (*seen)(void *context, struct network_flow *network, const struct step_result *result);
    void *seen_context;
    const struct step_watch *watch; /* receives progress; NULL: none */
    struct breakdown *stages;       /* receives the breakdown by stage, which the caller frees (breakdown_free); NULL: none */
};

struct step_result {
    nanos step;
    double step_time_s;
    struct cost_by_class breakdown; /* seconds, sums to step_time_s */
    double mfu, hfu;                /* fractions; FLOPS_FULL convention */
    double mfu_causal, hfu_causal;  /* FLOPS_CAUSAL convention */
    double mfu_masked;              /* FLOPS_MASKED */
    double tokens_per_s;
    struct footprint memory; /* of the fullest stage */
    int memory_stage;
    uint64_t events;
    double seconds; /* wall time of the simulation */
    int actors;     /* ranks simulated */
};

/* Would simulating the passes of all stages need more than about a second? After a few hundred micro-batches a pipeline repeats
 * itself; the closed form assumes that it does from the start. */
bool step_is_long(const struct layout *layout, const struct job *job);

/* `timeline` and `program` may be NULL; otherwise they are filled, and the caller frees them. */
MUST_CHECK enum status step_simulate(const struct layout *layout, const struct setting *setting,
                                     const struct step_options *options, struct step_result *result, struct timeline *timeline,
                                     struct program *program, struct diags *diags);

#endif
