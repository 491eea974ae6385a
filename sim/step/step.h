/*
 * step.h - one training step in virtual time.
 *
 * A program is built for the layout (model/program), its operations are timed by the cost model and the network, and the step
 * executor gives each one a start and an end: streams are in-order queues; an operation starts when its predecessor on the
 * stream, its dependencies and, for messages and collectives, its partners are ready (step_executor.h has the semantics and their
 * reasons). Deterministic: whole nanoseconds, and no order that the program does not give.
 *
 * Folding. On healthy nodes the ranks of one stage behave alike, so one rank per stage is simulated and stands for all of them;
 * a collective within a stage then starts when the representative arrives. Simulating every rank gives the same times to the
 * nanosecond.
 *
 * Breakdown: each instant of a rank belongs to what its compute stream does (by class, a pass split in the proportions of its
 * works); where compute waits, to the exchange it waits for, or to the bubble when it waits for another stage's work
 * (breakdown.h). The reported breakdown is the mean over ranks and sums to the step time (exactly, in nanoseconds over all
 * ranks).
 *
 * With flows on a fabric ranks of a stage are alike only where their routes are; classes of them are found for the placement and
 * routing at hand, and stand for all (fold.h). Again to the nanosecond.
 *
 * Packet by packet (network_flow_options, packets) nothing folds, and a step costs what its packets do: 8 to 13 million of them
 * over links a second.
 *
 * Cost: 12,288 GPUs folded, chunk detail, take below a millisecond; with all ranks 14 million operations, below half a second
 * and 122 MiB, twice that where a timeline is recorded. Calls share nothing: threads may simulate at the same time.
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
    const int *trace_ranks; /* whose spans go into the timeline (folded: stages) */
    int n_trace_ranks;      /* -1: all ranks */
    bool verify;            /* run program_verify first */
    bool time_order;        /* execute through the event queue instead of by data flow: slower, the same times */
    /* NULL: the analytic network. Otherwise flows on this fabric (all_ranks must be set: the program has every rank); with
     * `fold_flow` one of each class of ranks that are provably alike is simulated, if there are any (fold.h). `seen` (may be
     * NULL) looks at the network after the run. */
    bool fold_flow;
    const struct network_flow_options *flow;
    void (*seen)(void *context, struct network_flow *network, const struct step_result *result);
    void *seen_context;
    const struct step_watch *watch; /* how far it is; NULL: nobody looks */
    struct breakdown *stages;       /* NULL, or gets the breakdown by stage; the caller frees it (breakdown_free) */
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

/* Has a step so many passes, of all stages, that simulating it takes more than a second or so? Behind its first few hundred
 * micro-batches a pipeline repeats itself, which the closed form takes it to do from the beginning. */
bool step_is_long(const struct layout *layout, const struct job *job);

/* `timeline` and `program` may be NULL; when given they are filled (and then freed by the caller). */
MUST_CHECK enum status step_simulate(const struct layout *layout, const struct setting *setting,
                                     const struct step_options *options, struct step_result *result, struct timeline *timeline,
                                     struct program *program, struct diags *diags);

#endif
