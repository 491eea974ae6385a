/*
 * layout_choice.h - the layout that an experiment means: the one it gives, or the best one.
 *
 * Example: `layout: tp=8,pp=8` is completed (dp follows from the number of GPUs) and checked; `layout: auto` and a layout with
 * open dimensions, `layout: {tp: 8}`, mean what `msim plan` ranks first under these restrictions (plan_choose).
 */
#ifndef MSIM_SIM_SEARCH_LAYOUT_CHOICE_H
#define MSIM_SIM_SEARCH_LAYOUT_CHOICE_H

#include "model/base/diag.h"
#include "model/layout/layout.h"
#include "model/spec/experiment.h"

/* STATUS_BAD_INPUT, with the reason and its numbers, when the layout is not legal or no layout fits. Warnings where the chosen
 * layout may well run out of memory (low_oom_plan.h), and where the batch leaves few numbers of replicas. */
MUST_CHECK enum status layout_choose(const struct experiment *experiment, int threads, struct layout *layout,
                                     struct diags *diags);

#endif
