/*
 * step_spread.h - how long steps take when GPUs are not equally fast: many steps, each with speeds drawn at random.
 *
 * Example: 1,000 steps on GPUs whose arithmetic differs by 0.5 % (standard deviation):
 *
 *     struct step_spread_request request = {.layout = &layout, .setting = &setting, .jitter = 0.005, .n = 1000, .seed = 1,
 *                                           .threads = 4, .processes = one_process};
 *     step_spread_run(&request, &spread, &diags);
 *     spread.time.mean / spread.alike_s                 what waiting for the slowest GPU costs
 *     spread.at[SPREAD_P99]                             99 of 100 steps are no longer
 *     step_spread_free(&spread);
 *
 * How one step draws its speeds is in sim/step/step_replicas.h. Jobs that mask between documents also draw the documents of each
 * sequence, where the attention kernel skips what is masked.
 */
#ifndef MSIM_SIM_SEARCH_STEP_SPREAD_H
#define MSIM_SIM_SEARCH_STEP_SPREAD_H

#include "model/base/watch.h"
#include "sim/step/step.h"
#include "sim/step/step_replicas.h"
#include "sim/weeks/run_replicas.h"

struct step_spread_request {
    const struct layout *layout;
    const struct setting *setting;
    double jitter; /* standard deviation of the time that arithmetic takes, over its mean */
    int64_t n;     /* steps, at least 2 */
    uint64_t seed; /* of the first step; step i has seed + i */
    int threads;   /* of each process, at least 1 */
    struct processes processes;
    struct watch watch; /* steps done, of all processes */
};

enum spread_share { SPREAD_P50, SPREAD_P90, SPREAD_P99, SPREAD_MAX, N_SPREAD_SHARES };
struct step_spread {
    double jitter;
    struct step_outcome *outcomes; /* [n], the same on every process */
    int64_t n;
    double alike_s;          /* a step of equal GPUs */
    double expected_s;       /* a step whose GPUs all have the pace that the slowest is expected to have */
    struct step_result mean; /* times and rates are those of the mean step */
    struct estimate time;    /* seconds */
    double at[N_SPREAD_SHARES];
};

/* Free with step_spread_free, also after a failure. */
MUST_CHECK enum status step_spread_run(const struct step_spread_request *request, struct step_spread *spread,
                                       struct diags *diags);
void step_spread_free(struct step_spread *spread);
/* Whether steps of this layout draw documents. */
bool step_draws_documents(const struct layout *layout, const struct setting *setting);

#endif
