/*
 * plan_levers.h - what would make a job faster: the best plan after one change at a time.
 *
 *     msim plan job.yaml --levers
 *
 * Each lever (model/plan/levers.h) is a search of its own, so its gain is that of the best layout after the change.
 */
#ifndef MSIM_CLI_PLAN_PLAN_LEVERS_H
#define MSIM_CLI_PLAN_PLAN_LEVERS_H

#include <jansson.h>

#include "cli/job/plan_record.h"
#include "cli/options/command.h"
#include "model/plan/levers.h"

/* The best plan as the job is, or with one change. */
struct levered_plan {
    char change[64]; /* the lever's; of the job as it is "as it is" */
    char option[64]; /* what to type for it; "" none */
    enum plan_lever_kind kind;
    bool legal, fits; /* some layout is, does; the rest only if it fits */
    struct best_plan best;
    double gain; /* tokens/s more than as it is, as a fraction; 0 where that does not fit */
};

struct plan_levers {
    const struct experiment *experiment;
    struct levered_plan base;
    struct levered_plan *items; /* best first */
    int n_items;
};

/* The option that makes this change of an experiment: "--space offload=auto"; "" where no one option does. Returns buffer. */
char *plan_lever_option(const struct plan_lever *lever, const struct experiment *experiment, char *buffer, size_t size);

/* `msim plan --levers` of an experiment. */
MUST_CHECK enum status plan_levers(const struct experiment *experiment, struct invocation *call);

/* In call->format. */
MUST_CHECK enum status plan_levers_report(const struct plan_levers *levers, struct invocation *call);

#endif
