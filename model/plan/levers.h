/*
 * levers.h - changes of a job, its layouts or its cluster, one at a time, to find out which would help most.
 *
 * Example: the job with twice the bandwidth between nodes, searched like the job itself:
 *
 *     struct plan_lever lever = plan_lever_at(i);                       "network between nodes x2"
 *     struct experiment changed = *experiment;
 *     if (lever.turn(&changed, &limits, lever.argument))
 *         ... search changed under limits ...
 *
 * Levers are software features that the job does not name, precisions that the GPU has, layouts that are searched only on
 * request, a larger batch, balanced experts, and other hardware.
 */
#ifndef MSIM_MODEL_PLAN_LEVERS_H
#define MSIM_MODEL_PLAN_LEVERS_H

#include "model/plan/space.h"
#include "model/spec/experiment.h"

/* Who can make the change. */
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

enum plan_change {
    CHANGE_FEATURE,   /* argument: enum feature */
    CHANGE_PRECISION, /* argument: enum precision */
    CHANGE_GRADIENTS_BF16,
    CHANGE_SCHEDULES, /* RARE_SCHEDULES */
    CHANGE_OFFLOAD,   /* any amount */
    CHANGE_SHARD,     /* also within an NVLink domain */
    CHANGE_BATCH,
    CHANGE_EXPERT_LOAD,
    CHANGE_NETWORK,
    CHANGE_NVLINK,
    CHANGE_MEMORY_SIZE,
    CHANGE_MEMORY_RATE,
    CHANGE_ARITHMETIC,
    CHANGE_HOST_LAUNCH,
};

/* Schedules that few frameworks run, and that are searched only on request. */
#define RARE_SCHEDULES "schedule=zb-2p,zb-v,dualpipe,dualpipe-v"

struct plan_lever {
    enum plan_lever_kind kind;
    enum plan_change what;
    char change[64]; /* "feature ep_overlap" */
    /* Changes an experiment or the limits of its layouts. False: there is nothing to change, and both are then undefined. */
    bool (*turn)(struct experiment *experiment, struct space_limits *limits, int argument);
    int argument; /* for turn */
};

/* One lever per feature, in the order of features, then the others. */
enum { N_PLAN_LEVERS = N_FEATURES + 16 };
struct plan_lever plan_lever_at(int i);

#endif
