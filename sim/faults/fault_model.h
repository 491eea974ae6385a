/*
 * fault_model.h - how a fleet fails: rates, unevenness, causes, repairs; what traces are drawn from (sim/faults/faults.h).
 *
 *   rate       failures per node and day, all causes, mean over the fleet
 *   shape      of the Weibull time from a node's repair to its next failure; below 1: failures come in clusters
 *   lemons     a share of the nodes fails `factor` times as often as the rest; the fleet's mean rate stays
 *   early      a share of the nodes is defective from the start and fails once more, after an exponential time of mean `days`
 *   burst      with `probability` a failure is followed by another one on the same node, an exponential gap of mean `hours` later
 *   causes     component, weight (a published count) and how it is repaired, both what the name speaks of when left out
 *   repairs    lognormal hours by kind of repair: ln hours is normal (mu, sigma)
 *   groups     events that hit many nodes at once: a rack, a ToR switch, a power feed. Nodes [i * nodes, (i + 1) * nodes) are a
 *              group; events are a Poisson process of `rate` per group and day; each node of the group is hit with probability
 *              `share`, all for the same time. With `planned` it is maintenance, or a preemption: announced (fault_trace.h)
 *   slow       stragglers, fail-slow links, flaps: a share of the nodes has it all the time, and more begin at `rate` per node
 *              and day for a lognormal time; `factor` is the speed that is left
 *
 * A model is a YAML file; those that come with msim stand in sim/fault_models, and each names its source. A rate may be given
 * directly, or as `failures` over `nodes` and `days`, or as the sum of its causes' own rates when each gives one.
 */
#ifndef MSIM_SIM_FAULTS_FAULT_MODEL_H
#define MSIM_SIM_FAULTS_FAULT_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/base/diag.h"
#include "model/spec/shipped.h"

#define COMPONENTS(X)                                                                                                            \
    X(GPU, "gpu")                                                                                                                \
    X(HBM, "hbm")                                                                                                                \
    X(NVLINK, "nvlink")                                                                                                          \
    X(NIC, "nic")                                                                                                                \
    X(LINK, "link")                                                                                                              \
    X(SWITCH, "switch")                                                                                                          \
    X(HOST, "host")                                                                                                              \
    X(POWER, "power")                                                                                                            \
    X(SOFTWARE, "software")                                                                                                      \
    X(STORAGE, "storage")                                                                                                        \
    X(SILENT, "silent")                                                                                                          \
    X(UNKNOWN, "unknown")

enum component {
#define X(id, name) COMPONENT_##id,
    COMPONENTS(X)
#undef X
        N_COMPONENTS
};
const char *component_name(enum component component);

/* What a job sees of a failure. */
enum symptom {
    SYMPTOM_EXIT,        /* a process ends with an error that names it */
    SYMPTOM_UNREACHABLE, /* the node falls silent */
    SYMPTOM_HANG,        /* nothing ends, nothing moves */
    SYMPTOM_SILENT,      /* training goes on with wrong numbers */
    N_SYMPTOMS
};

enum repair_kind {
    REPAIR_NONE,
    REPAIR_HARDWARE,
    REPAIR_NETWORK,
    REPAIR_SOFTWARE,
    REPAIR_FACILITY,
    REPAIR_REBOOT,
    N_REPAIR_KINDS
};

/* The component and symptom that a cause's name speaks of, as a log filter would tell them: by keywords. And how such a thing is
 * repaired; none: the node is not taken away. */
enum component component_of_text(const char *cause);
enum symptom symptom_of_text(const char *cause);
enum repair_kind repair_of_text(const char *cause);

enum { MAX_CAUSES = 64, MAX_GROUPS = 8, MAX_SLOW = 8, CAUSE_SIZE = 64 };

struct fault_cause {
    char name[CAUSE_SIZE];
    int component; /* enum component */
    int repair;    /* enum repair_kind */
    double weight; /* published count, or rate per node and day */
};

/* Logarithm of the hours a repair takes: normal with these. */
struct repair_time {
    double mu, sigma;
};

struct fault_group {
    char name[CAUSE_SIZE]; /* also the cause of its faults */
    int nodes;
    double rate, share;
    bool planned; /* announced: training is saved before */
    struct repair_time repair;
};

enum slow_kind { SLOW_STRAGGLER, SLOW_LINK };
struct fault_slow {
    char name[CAUSE_SIZE];
    int kind;        /* enum slow_kind */
    double share;    /* of the nodes, for the whole time */
    double rate;     /* per node and day */
    double factor;   /* of the speed, left */
    double median_s; /* of its duration */
    double sigma;    /* of ln duration */
};

struct fault_causes {
    struct fault_cause items[MAX_CAUSES];
    int n;
};
struct fault_groups {
    struct fault_group items[MAX_GROUPS];
    int n;
};
struct fault_slows {
    struct fault_slow items[MAX_SLOW];
    int n;
};

struct fault_model {
    char name[CAUSE_SIZE];
    char source[1024];
    double rate;        /* failures per node and day */
    double shape;       /* Weibull k of one node */
    double lemon_share; /* of the nodes */
    double lemon_factor;
    double early_share, early_days;
    double burst_probability, burst_hours;
    int nodes; /* of the published fleet */
    int gpus_per_node;
    double days;     /* observed */
    double failures; /* observed; 0: the rate is given */
    struct repair_time repairs[N_REPAIR_KINDS];
    struct fault_causes causes;
    struct fault_groups groups;
    struct fault_slows slow;
};

/* A model by name (one of sim/fault_models) or file. Every mistake is reported with its place; *model is written on success. */
MUST_CHECK enum status fault_model_load(const char *name, struct fault_model *model, struct diags *diags);
MUST_CHECK enum status fault_model_parse(const char *name, const char *bytes, size_t n, struct fault_model *model,
                                         struct diags *diags);

/* Those that come with msim, and the keys of one. */
extern const struct shipped fault_models;
struct schema;
extern const struct schema fault_model_schema; /* struct fault_model */

/* All its causes' repairs are the fallback's, LANL's of 1996-2005: of no fleet of GPUs. */
bool fault_model_repairs_are_lanls(const struct fault_model *model);

/* A JSON text that fault_model_parse turns into an equal model; the caller frees it. */
char *fault_model_to_json(const struct fault_model *model);

/* Rate of failures and of group hits together, per node and day: what a trace of many nodes shows. */
double fault_model_total_rate(const struct fault_model *model);

#endif
