/*
 * layout_choice.h - the layout that an experiment means.
 */
#ifndef MSIM_CLI_JOB_LAYOUT_CHOICE_H
#define MSIM_CLI_JOB_LAYOUT_CHOICE_H

#include "model/base/diag.h"
#include "model/layout/layout.h"
#include "model/spec/experiment.h"

/* What layouts are judged against in this experiment; points into it. */
struct setting experiment_setting(const struct experiment *experiment);

/* The layout as given, completed (layout_complete) and checked. When it is left to the search, the one that `msim plan`
 * puts first of those with the dimensions that are given (plan_choose): some tenths of a second for 12,288 GPUs. A warning, after
 * a search of its own, where that may well run out of memory (plan_safer.h). */
MUST_CHECK enum status layout_choose(const struct experiment *experiment, struct layout *layout, struct diags *diags);

#endif
