/*
 * robust_policy.h - a recovery policy: how a training system notices faults, finds the broken node and resumes. Modelled on
 * MegaScale's robust training (arXiv:2402.15627, section 4), with its numbers as parameters.
 *
 * Example: msim run --policy megascale. A file of your own has the same keys (msim catalog template policy):
 *
 *     name: mine
 *     source: measured in May
 *     heartbeat: 10s
 *     heartbeat_timeout: 60s
 *     tests: [{name: gpu, time: 2min, finds: {gpu: 90%, hbm: 80%}, false_positive: 0.1%}]
 *
 * Noticing. One executor per node sends a heartbeat to the driver every `heartbeat`. The driver learns of a fault through
 *
 *   heartbeats   no heartbeat for `heartbeat_timeout`: the node is unreachable
 *   logs         a process ended, or wrote a keyword; reported with the next heartbeat, after `log_delay` for the filter
 *   traffic      no RDMA traffic for `traffic_window`: a hang; 0: nobody watches
 *   timeouts     a collective waited for `collective_timeout`, if nobody watches the traffic
 *   numbers      silent corruption shows in loss or gradient norm after an exponential time of mean `silent_detect`
 *
 * Finding. The driver suspends the job and runs the tests of its diagnostic suite in order until one finds the node. Each test
 * has a probability of finding a fault per component, and condemns a healthy node with probability `false_positive`. Found nodes
 * are evicted and replaced by spares. If no test finds the node, the job restarts in place. That is right if no node is broken.
 * Otherwise the fault comes back after an exponential time of training of mean `relapse`, up to `attempts` times; then a person
 * looks for it (lognormal time). Faults outside the share `automatic` go to a person at once. A hang without a broken node (a
 * bug of the job, a bad batch of data) comes back in the same way with probability `hang_recurs`.
 *
 * False alarms. Healthy executors fall silent now and then, and healthy jobs stall for a moment. Pauses have exponential length
 * with mean `pause`, at `pause_rate` per node and day. Those longer than the heartbeat's timeout are false alarms, at a rate of
 *
 *     nodes * pause_rate * exp(-heartbeat_timeout / pause)        per day of training.
 *
 * Stalls of the job at `stall_rate` per day do the same to the hang detector (window or timeout). A false alarm suspends the
 * job, runs the whole suite in vain, and restarts. This keeps the best timeouts from being arbitrarily short.
 *
 * Each policy file says which of its numbers its source prints and which are assumptions.
 */
#ifndef MSIM_SIM_WEEKS_ROBUST_POLICY_H
#define MSIM_SIM_WEEKS_ROBUST_POLICY_H

#include "sim/faults/fault_model.h"

enum { MAX_TESTS = 12 };

struct diagnostic_test {
    char name[CAUSE_SIZE];
    double seconds;
    double false_positive;      /* per healthy node and run */
    double finds[N_COMPONENTS]; /* probability */
};

struct diagnostic_suite {
    struct diagnostic_test items[MAX_TESTS];
    int n;
};

struct robust_policy {
    char name[CAUSE_SIZE];
    char source[1024];
    double heartbeat_s, heartbeat_timeout_s, log_delay_s;
    double traffic_window_s, collective_timeout_s;
    double silent_detect_s;
    double automatic; /* share of faults handled without a person */
    double human_median_s, human_sigma;
    int attempts;
    double relapse_s;
    double hang_recurs;         /* probability */
    double pause_rate, pause_s; /* of a healthy node: number per day, mean length */
    double stall_rate, stall_s; /* of a healthy job: number per day, mean length */
    double straggler_find_s;    /* until monitoring finds a slow node, which leaves at the next restart; 0: never */
    double recheck_s;           /* how long a condemned healthy node or a straggler is away */
    int blocklist_failures;     /* a node that failed this often; 0: no blocklist ... */
    double blocklist_window_s;  /* ... within this time (0: ever) ... */
    double blocklist_s;         /* ... is away for at least this long, and its count starts again */
    int hot_spares;             /* spares that are ready, with image and process: no scheduling for these */
    double drift_per_day;       /* fraction of the speed lost per day since the last restart, from per-rank jitter */
    double drift_limit;         /* maximum of that loss */
    bool elastic;               /* go on with fewer data-parallel replicas instead of waiting for nodes */
    struct diagnostic_suite tests;
};

/* Loads a policy by name (one of sim/policies) or file. Mistakes are reported with their places. */
MUST_CHECK enum status robust_policy_load(const char *name, struct robust_policy *policy, struct diags *diags);
MUST_CHECK enum status robust_policy_parse(const char *name, const char *bytes, size_t n, struct robust_policy *policy,
                                           struct diags *diags);
/* The policies that come with msim, and the keys of a policy. */
extern const struct shipped robust_policies;
extern const struct schema robust_policy_schema; /* struct robust_policy */
char *robust_policy_to_json(const struct robust_policy *policy);

/* Does missing traffic reveal a hang before the collective timeout does? */
bool robust_policy_watches_traffic(const struct robust_policy *policy);

/* False alarms per day of training on `nodes` nodes: of the heartbeats, and of the hang detector. */
void robust_policy_alarms(const struct robust_policy *policy, int32_t nodes, double *heartbeat, double *hang);

#endif
