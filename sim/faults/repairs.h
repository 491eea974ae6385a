/*
 * repairs.h - scales repair times: how long failed nodes are away, and the same faults with longer or shorter repairs.
 *
 * Example: a fleet's repairs average 3.2 h. What if they averaged 12 h?
 *
 *     struct repairs repairs = repairs_of_model(&model);      repairs.mean_s = 11520
 *     repairs_set_model(&repairs, 12 * 3600, &model);         all repairs 3.75 times as long
 *
 * No fleet of GPUs publishes its repair times, and the number of spares that a job needs depends on them. So all repairs can be
 * scaled by one factor to a given mean:
 *
 *   of a model   the mean over its causes that take a node away, by their weights, of the lognormal hours of their kind of
 *                repair, exp(mu + sigma^2 / 2). One factor scales every kind, and the unplanned outages of groups: it adds ln
 *                factor to mu, so spreads and proportions stay. (Outages are drawn in whole seconds, rounded up.)
 *   of a trace   the mean of its unplanned outages of length above 0; each is scaled. The times of failures stay
 *
 * Planned outages, and failures that take no node away, stay as they are.
 */
#ifndef MSIM_SIM_FAULTS_REPAIRS_H
#define MSIM_SIM_FAULTS_REPAIRS_H

#include "sim/faults/fault_model.h"
#include "traces/fault/fault_trace.h"

/* The original repair times, so that they can be scaled again and again. */
struct repairs {
    double mean_s; /* 0: no failure takes a node away */
    struct repair_time kinds[N_REPAIR_KINDS], groups[MAX_GROUPS];
    nanos *down; /* [n_items] of a trace */
};
struct repairs repairs_of_model(const struct fault_model *model);
struct repairs repairs_of_trace(const struct fault_trace *trace);
void repairs_free(struct repairs *repairs);

/* Scales the repairs of the original (or a copy of it) to a mean above 0. Does nothing if mean_s is 0. */
void repairs_set_model(const struct repairs *repairs, double mean_s, struct fault_model *model);
void repairs_set_trace(const struct repairs *repairs, double mean_s, struct fault_trace *trace);

#endif
