/*
 * plan_lever.h - what could be different about a job, one thing at a time: software that it does not name, precisions that the
 * GPU has, what layouts are searched only where asked for, a larger batch, other hardware.
 */
#ifndef MSIM_CLI_PLAN_PLAN_LEVER_H
#define MSIM_CLI_PLAN_PLAN_LEVER_H

#include "model/plan/space.h"
#include "model/spec/experiment.h"

/* Who can pull it. */
enum plan_lever_kind {
    LEVER_SOFTWARE,
    LEVER_PRECISION,
    LEVER_LAYOUT,
    LEVER_MODEL,
    LEVER_JOB,
    LEVER_HARDWARE,
    N_PLAN_LEVER_KINDS
};
extern const char *const plan_lever_kind_names[N_PLAN_LEVER_KINDS];

struct plan_lever {
    enum plan_lever_kind kind;
    char change[64]; /* "feature ep_overlap" */
    /* Changes an experiment, or what is searched of its layouts; false where there is nothing to change, and whatever it changed
     * then means nothing. */
    bool (*turn)(struct experiment *experiment, struct space_limits *limits, int argument);
    int argument; /* of turn */
    const char
        *option; /* what says so on the command line: "--space offload=auto"; NULL: plan_lever_option knows, or none does */
};

/* One for each feature, in their order, and others. */
enum { N_PLAN_LEVERS = N_FEATURES + 16 };
struct plan_lever plan_lever_at(int i);

/* What to type beside the rest for a change of this experiment; "" where no one option says it. Returns buffer. */
char *plan_lever_option(const struct plan_lever *lever, const struct experiment *experiment, char *buffer, size_t size);

#endif
