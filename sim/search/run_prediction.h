/*
 * run_prediction.h - what is predicted for one measured run: its step time and its memory.
 *
 * Example: a row of a table of published runs, against the simulation:
 *
 *     run_predict(PREDICT_BY_SIMULATION, &table.items[0], &prediction, &diags);
 *     prediction.step_s / table.items[0].step_s              predicted over measured
 *     prediction.memory.total > prediction.capacity          predicted to run out of memory
 */
#ifndef MSIM_SIM_SEARCH_RUN_PREDICTION_H
#define MSIM_SIM_SEARCH_RUN_PREDICTION_H

#include "model/cost/memory/footprint.h"
#include "model/cost/work/cost.h"
#include "traces/table/measurement.h"

enum predict_method { PREDICT_BY_SIMULATION, PREDICT_BY_FORMULA };

struct run_prediction {
    bool legal;                     /* false: the layout cannot be simulated, and nothing is predicted */
    double step_s, mfu;             /* 0: not predicted (also for runs that ended out of memory) */
    struct cost_by_class breakdown; /* of step_s */
    struct footprint memory;
    double capacity; /* bytes a rank may use */
};

/* Warns of a run that cannot be predicted; notes one whose simulation would take long, which the formula predicts instead. */
void run_predict(enum predict_method method, const struct measurement *run, struct run_prediction *prediction,
                 struct diags *diags);

#endif
