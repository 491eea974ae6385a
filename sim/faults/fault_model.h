/*
 * fault_model.h - how a fleet of nodes fails: the model from which fault traces are drawn (sim/faults/faults.h).
 *
 * Example: a fleet with 419 failures of 2,048 nodes in 54 days, two causes:
 *
 *     name: mine
 *     source: our log of May and June
 *     failures: 419
 *     nodes: 2048
 *     days: 54
 *     causes: [{name: faulty gpu, count: 300}, {name: software bug, count: 119}]
 *
 *   rate       failures per node and day, all causes, averaged over the fleet
 *   shape      of the Weibull time from a node's repair to its next failure; below 1 failures come in clusters
 *   lemons     a share of the nodes fails `factor` times as often as the rest; the fleet's average rate does not change
 *   early      a share of the nodes is defective from the start and fails once more, after an exponential time of mean `days`
 *   burst      with `probability` a failure is followed by another on the same node, after an exponential gap of mean `hours`
 *   causes     component, weight (a published count) and kind of repair; by default the name gives component and repair
 *   repairs    lognormal hours per kind of repair: ln hours is normal (mu, sigma)
 *   groups     events that hit many nodes at once: a rack, a ToR switch, a power feed. Nodes [i * nodes, (i + 1) * nodes) are a
 *              group. Events are a Poisson process of `rate` per group and day. Each node of the group is hit with probability
 *              `share`, and all are away for the same time. With `planned` it is announced maintenance or preemption
 *              (fault_trace.h)
 *   slow       stragglers, fail-slow links, flaps. A share of the nodes is slow all the time; more begin at `rate` per node and
 *              day, for a lognormal time. `factor` is the remaining speed
 *
 * A model is a YAML file. The ones in sim/fault_models come with msim, and each names its source. The rate is given directly, or
 * as `failures` over `nodes` and `days`, or as the sum of the causes' rates if each has one.
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

/* How a failure shows in the job. */
enum symptom {
    SYMPTOM_EXIT,        /* a process ends with an error message */
    SYMPTOM_UNREACHABLE, /* the node falls silent */
    SYMPTOM_HANG,        /* nothing ends and nothing progresses */
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

/* The component, symptom and kind of repair of a cause, from keywords in its name, as a log filter does it. REPAIR_NONE: the node
 * stays. */
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

/* ln of the hours of a repair: normal (mu, sigma). */
struct repair_time {
    double mu, sigma;
};

struct fault_group {
    char name[CAUSE_SIZE]; /* also the cause of its faults */
    int nodes;
    double rate, share;
    bool planned; /* announced, so training is saved before */
    struct repair_time repair;
};

enum slow_kind { SLOW_STRAGGLER, SLOW_LINK };
struct fault_slow {
    char name[CAUSE_SIZE];
    int kind;        /* enum slow_kind */
    double share;    /* of the nodes, slow all the time */
    double rate;     /* per node and day */
    double factor;   /* remaining fraction of the speed */
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

/* Loads a model by name (one of sim/fault_models) or file. Reports every mistake with its place; writes *model on success. */
MUST_CHECK enum status fault_model_load(const char *name, struct fault_model *model, struct diags *diags);
MUST_CHECK enum status fault_model_parse(const char *name, const char *bytes, size_t n, struct fault_model *model,
                                         struct diags *diags);

/* The models that come with msim, and the keys of a model. */
extern const struct shipped fault_models;
struct schema;
extern const struct schema fault_model_schema; /* struct fault_model */

/* Are all its repair times the defaults: LANL's of 1996-2005, not those of a GPU fleet? */
bool fault_model_repairs_are_lanls(const struct fault_model *model);

/* JSON that fault_model_parse reads as an equal model. The caller frees it. */
char *fault_model_to_json(const struct fault_model *model);

/* Failures and group hits per node and day: the rate that a trace shows. */
double fault_model_total_rate(const struct fault_model *model);

#endif
