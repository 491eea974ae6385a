/*
 * repairs.h - how long failed nodes are away, and the same faults with longer or shorter repairs.
 *
 * No fleet of GPUs publishes its repair times, and how many spares a job needs hangs on them. So all repairs can be scaled by one
 * factor, to a mean that is given:
 *
 *   of a model   the mean over its causes, by their weights, of those that take a node away: the lognormal hours of their kind of
 *                repair, exp(mu + sigma^2 / 2). Every kind is scaled, and the outages of groups that are not announced, by the
 *                same factor: ln factor on mu, so spreads and proportions stay. (Outages are drawn in whole seconds, rounded up.)
 *   of a trace   the mean of its unannounced outages of some length; each is scaled. When failures come stays as it is
 *
 * Announced outages, and failures that take no node away, stay as they are.
 */
#ifndef MSIM_SIM_FAULTS_REPAIRS_H
#define MSIM_SIM_FAULTS_REPAIRS_H

#include "sim/faults/fault_model.h"
#include "traces/fault/fault_trace.h"

/* As they were read, so that they can be set again and again. */
struct repairs {
    double mean_s; /* 0: no failure takes a node away */
    struct repair_time kinds[N_REPAIR_KINDS], groups[MAX_GROUPS];
    nanos *down; /* [n_items] of a trace */
};
struct repairs repairs_of_model(const struct fault_model *model);
struct repairs repairs_of_trace(const struct fault_trace *trace);
void repairs_free(struct repairs *repairs);

/* To this mean, above 0; of what they were taken of, or a copy of it. Nothing without a mean of their own. */
void repairs_set_model(const struct repairs *repairs, double mean_s, struct fault_model *model);
void repairs_set_trace(const struct repairs *repairs, double mean_s, struct fault_trace *trace);

#endif
