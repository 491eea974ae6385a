/*
 * closed_form_replicas.h - what replicas exchange and the optimizer's step, for the closed form (private to it).
 */
#ifndef MSIM_MODEL_COST_CLOSED_FORM_REPLICAS_H
#define MSIM_MODEL_COST_CLOSED_FORM_REPLICAS_H

#include "model/cost/closed_form_passes.h"

/* Adds the part of the exchanges that passes do not hide, and the optimizer. */
void replicas_add(const struct setting *setting, const struct layout *l, const struct pass_costs *c,
                  const struct stage_times *stages, double m, struct cost_by_class *by);

#endif
