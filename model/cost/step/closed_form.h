/*
 * closed_form.h - estimate the step time and memory of a layout by formula. The search for layouts calls it millions of times.
 *
 * Example: gpt-175b-megascale on 12,288 A100 with tp=8, pp=3, vpp=32, micro-batch 2, ZeRO-1.
 *
 *     struct closed_form *form = closed_form_create(&setting);
 *     closed_form_estimate(form, &layout, &estimate);     estimate.step_s = 6.372 (event simulation: 6.374)
 *     closed_form_memory(form, &layout)                   61.6 GiB, in bytes
 *     closed_form_destroy(form);
 *
 * The estimate is within a few percent of the event simulation at a thousandth of its cost (tests/bench has the distribution).
 * TIME.md explains the formula.
 *
 * Cost. The time of a pass depends on few dimensions (tp, cp, ep, sp, micro-batch, recomputation, features), so a cache keeps
 * it. A layout that differs only in pp, vpp, dp, zero or schedule then needs well under a microsecond. A lower bound of its
 * step time needs a tenth of that. For passes that are not in the cache, the bound needs a fraction of their full computation.
 */
#ifndef MSIM_MODEL_COST_STEP_CLOSED_FORM_H
#define MSIM_MODEL_COST_STEP_CLOSED_FORM_H

#include "model/cost/work/cost.h"
#include "model/layout/layout.h"

struct closed_form; /* one setting and its cache; not shared between threads */

struct closed_form *closed_form_create(const struct setting *setting);
void closed_form_destroy(struct closed_form *form);

struct step_estimate {
    double step_s;
    struct cost_by_class by_class; /* seconds, average over ranks as in a simulated step; the sum is step_s */
    double memory_bytes;           /* peak over stages, equal to the total of footprint_peak */
};
/* Estimates a legal layout. */
void closed_form_estimate(struct closed_form *form, const struct layout *layout, struct step_estimate *out);
/* The same for a layout whose step takes at most `limit_s`. Returns false as soon as it is known to take longer; *out is then
 * not written. INFINITY means no limit. */
bool closed_form_within(struct closed_form *form, const struct layout *layout, double limit_s, struct step_estimate *out);
/* A lower bound of the step time in seconds: the work of the slowest stage, and the time until its first input arrives. It is
 * equal for layouts that differ only in CLOSED_FORM_BOUND_IGNORES. */
#define CLOSED_FORM_BOUND_IGNORES (FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP))
double closed_form_at_least(struct closed_form *form, const struct layout *layout);
/* Bytes of GPU memory of the fullest stage. This is cheaper than an estimate, so ask for it first. A second call for the same
 * layout, or for one that differs only in FOOTPRINT_IGNORES, costs nothing. */
double closed_form_memory(struct closed_form *form, const struct layout *layout);
/* Bytes of the host's memory that a rank needs; costs the same. */
double closed_form_host_memory(struct closed_form *form, const struct layout *layout);

#endif
