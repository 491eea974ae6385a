/*
 * recovery_machine.h - how one fault is noticed, diagnosed and repaired under the policy of sim/weeks/robust_policy.h.
 *
 *     training ──fault── unnoticed ──(heartbeat, log, traffic, timeout, numbers)── suspended ── test 1 ── test 2 ... ──┐
 *         ^                                                                                                           │
 *         └── restart ── (wait for nodes) ── evict ── found ──────────────────────────────────────────────────────────┤
 *         └── restart in place ── not found; a broken node fails again later, up to `attempts` times ─────────────────┤
 *         └── restart ── evict ── a person has found it ── no test finds it, or automation does not handle it ────────┘
 *
 * Example: a GPU falls off the bus. Its process ends, so the log shows it with the next heartbeat (channel log). Test 2 finds
 * the node after 2 min. The node is evicted, and the job restarts.
 *
 *     struct verdict verdict = recovery_machine_run(&policy, &fault, &random);   ... verdict.detect, verdict.diagnose ...
 *
 * Durations come from the fault's own random stream. So a fault draws the same numbers whatever the rest of the run does: common
 * random numbers between policies. Times are rounded to the millisecond.
 */
#ifndef MSIM_SIM_WEEKS_RECOVERY_MACHINE_H
#define MSIM_SIM_WEEKS_RECOVERY_MACHINE_H

#include "model/base/random.h"
#include "sim/weeks/ledger.h"
#include "sim/weeks/robust_policy.h"

#define CHANNELS(X)                                                                                                              \
    X(AT_ONCE, "at once")                                                                                                        \
    X(HEARTBEAT, "heartbeat")                                                                                                    \
    X(LOG, "log")                                                                                                                \
    X(TRAFFIC, "traffic")                                                                                                        \
    X(TIMEOUT, "timeout")                                                                                                        \
    X(NUMBERS, "numbers")

enum channel {
#define X(id, name) CHANNEL_##id,
    CHANNELS(X)
#undef X
        N_CHANNELS
};
const char *channel_name(enum channel channel);

/* A fault as the machine sees it. */
struct fault_case {
    enum component component;
    enum symptom symptom;
    bool broken;   /* a node is broken: the fault comes back until it leaves */
    int32_t nodes; /* on which the diagnostic suite runs */
    int attempt;   /* how often this fault came back before */
};

struct verdict {
    enum channel channel; /* that noticed the fault */
    nanos detect, diagnose, human;
    int found_by;    /* index of the test; -1: none */
    bool found;      /* the node is known and leaves; also if a person found it */
    bool called;     /* a person was called */
    int n_condemned; /* healthy nodes that leave as well */
    nanos relapse;   /* > 0: the fault comes back after this much training */
};

struct verdict recovery_machine_run(const struct robust_policy *policy, const struct fault_case *fault,
                                    struct random_stream *random);

/* A false alarm: the suite finds nothing, and may condemn healthy nodes. */
struct verdict recovery_machine_alarm(const struct robust_policy *policy, enum channel channel, int32_t nodes,
                                      struct random_stream *random);

#endif
