/*
 * closed_form.h - a step's time as a formula, for the search. It is within a few percent of the event simulation (tests/bench has
 * the distribution) at a thousandth of its cost.
 *
 * The cost of a pass depends on few dimensions (tp, cp, ep, sp, micro-batch, recomputation, features), so a cache keeps it. A
 * layout that differs only in pp, vpp, dp, zero or schedule then needs well under a microsecond. A lower bound of the step's time
 * needs a tenth of that; for passes that are not in the cache it needs a fraction of their full computation.
 */
#ifndef MSIM_MODEL_COST_STEP_CLOSED_FORM_H
#define MSIM_MODEL_COST_STEP_CLOSED_FORM_H

#include "model/cost/work/cost.h"
#include "model/layout/layout.h"

struct closed_form; /* one setting, its cache; not shared between threads */

struct closed_form *closed_form_create(const struct setting *setting);
void closed_form_destroy(struct closed_form *form);

struct step_estimate {
    double step_s;
    struct cost_by_class by_class; /* mean over ranks, as a simulated step's; sums to step_s */
    double memory_bytes;           /* peak over stages, as footprint_peak's total */
};
/* The layout must be legal. */
void closed_form_estimate(struct closed_form *form, const struct layout *layout, struct step_estimate *out);
/* The same of a layout that does not take longer than `limit_s`: of one that does, false as soon as that is seen, and *out is not
 * written. A limit of INFINITY is none. */
bool closed_form_within(struct closed_form *form, const struct layout *layout, double limit_s, struct step_estimate *out);
/* What the step takes at least, in a fraction of the time: the slowest stage's work and what fills the pipeline before it. It is
 * the same for layouts that differ in CLOSED_FORM_BOUND_IGNORES only. */
#define CLOSED_FORM_BOUND_IGNORES (FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP))
double closed_form_at_least(struct closed_form *form, const struct layout *layout);
/* Memory alone: cheaper, asked first. Asked again, or for a layout that differs in FOOTPRINT_IGNORES only, it costs nothing. */
double closed_form_memory(struct closed_form *form, const struct layout *layout);
/* What it needs of the host's memory a rank, in the same way. */
double closed_form_host_memory(struct closed_form *form, const struct layout *layout);

#endif
