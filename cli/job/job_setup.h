/*
 * job_setup.h - from options and files to a job that can be simulated: the experiment and its layout, completed and checked.
 *
 *     struct job_setup setup;
 *     enum status status = job_setup_load(call, &setup);    reports every error
 *
 * Without a layout, or with `layout: auto`, the layout is the first plan of msim plan.
 */
#ifndef MSIM_CLI_JOB_JOB_SETUP_H
#define MSIM_CLI_JOB_JOB_SETUP_H

#include "cli/options/command.h"
#include "model/layout/layout.h"
#include "model/spec/experiment.h"

struct job_setup {
    struct experiment experiment;
    struct setting setting; /* points into `experiment`: do not copy the struct */
    struct layout layout;
    bool chosen;      /* the layout was left to msim (auto) */
    double gpu_price; /* money per GPU and hour, where a command asks for it; 0: not given */
};

/* Loads the experiment of this call (its file, flags and overrides) and finds its layout (layout_choice.h). STATUS_BAD_INPUT,
 * with the reason and its numbers, when the layout is not legal. */
MUST_CHECK enum status job_setup_load(struct invocation *call, struct job_setup *setup);

#endif
