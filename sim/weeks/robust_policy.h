/*
 * robust_policy.h - how a training system notices faults, finds what is broken and goes on: MegaScale's robust training
 * (arXiv:2402.15627, section 4) with its numbers as parameters.
 *
 * A driver hears from one executor per node every `heartbeat`. It learns of a fault through
 *   heartbeats   an executor that was not heard of for `heartbeat_timeout` (an unreachable node)
 *   logs         a process that ended, or a keyword in its output; reported with the next heartbeat, `log_delay` to filter
 *   traffic      RDMA traffic that has been zero for `traffic_window` (a hang); 0: nobody watches it
 *   timeouts     a collective that has waited for `collective_timeout`, when nobody watches the traffic
 *   numbers      silent corruption shows in loss or gradient norm after an exponential time of mean `silent_detect`
 * It then suspends the job and runs the tests of its diagnostic suite in order, until one finds the node. A test finds a fault of
 * a component with the probability given for it, and condemns each healthy node with probability `false_positive`. Found nodes
 * are evicted and replaced by spares. When the suite finds nothing the job is restarted where it is: right, if nothing was
 * broken; otherwise the fault is back an exponential time of mean `relapse` after training went on, up to `attempts` times, after
 * which a person looks for it (lognormal time), as one does at once for the share of faults that is not handled automatically.
 * A hang without a broken node (a bug of the job, a bad batch of data) comes back in the same way with probability `hang_recurs`.
 *
 * Watching has a price: healthy executors fall silent now and then, and healthy jobs stand still for a moment. With pauses of
 * exponential length at `pause_rate` per node and day, those longer than the heartbeat's timeout are false alarms, at
 *
 *     nodes * pause_rate * exp(-heartbeat_timeout / pause)        per day of training;
 *
 * stalls of the job at `stall_rate` per day do the same to whatever watches for hangs (window or timeout). A false alarm suspends
 * the job, runs the whole suite in vain and restarts. This is what keeps timeouts from being as short as can be.
 *
 * Which of these numbers a source prints and which are assumptions is said in the policy's file.
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
    double automatic; /* share of faults that nobody has to touch */
    double human_median_s, human_sigma;
    int attempts;
    double relapse_s;
    double hang_recurs;         /* probability */
    double pause_rate, pause_s; /* of a healthy node: per day, mean length */
    double stall_rate, stall_s; /* of a healthy job: per day, mean length */
    double straggler_find_s;    /* until monitoring has found a slow node, which leaves at the next restart; 0: never */
    double recheck_s;           /* how long a condemned healthy node, or a straggler, is away */
    int blocklist_failures;     /* a node that failed this often ... 0: no blocklist */
    double blocklist_window_s;  /* ... within this time (0: in its life) ... */
    double blocklist_s;         /* ... is away for this long at least, and counts anew */
    int hot_spares;             /* of the spares, nodes that stand ready with image and process: no scheduling for so many */
    double drift_per_day;       /* loss of speed per day since the last restart, from per-rank jitter */
    double drift_limit;         /* most that is lost */
    bool elastic;               /* go on with fewer data-parallel replicas instead of waiting for nodes */
    struct diagnostic_suite tests;
};

/* A policy by name (one of sim/policies) or file; mistakes are reported with their places. */
MUST_CHECK enum status robust_policy_load(const char *name, struct robust_policy *policy, struct diags *diags);
MUST_CHECK enum status robust_policy_parse(const char *name, const char *bytes, size_t n, struct robust_policy *policy,
                                           struct diags *diags);
/* Those that come with msim, and the keys of one. */
extern const struct shipped robust_policies;
extern const struct schema robust_policy_schema; /* struct robust_policy */
char *robust_policy_to_json(const struct robust_policy *policy);

/* A hang is noticed by its traffic, not by the collective's timeout. */
bool robust_policy_watches_traffic(const struct robust_policy *policy);

/* False alarms per day of training on `nodes` nodes: of the heartbeats, and of what watches for hangs. */
void robust_policy_alarms(const struct robust_policy *policy, int32_t nodes, double *heartbeat, double *hang);

#endif
