/*
 * recovery_machine.h - one fault's way through the robust training of sim/weeks/robust_policy.h, in virtual time.
 *
 *     training ──fault── unnoticed ──(heartbeat, log, traffic, timeout, numbers)── suspended ── test 1 ── test 2 ... ──┐
 *         ^                                                                                                           │
 *         └── restart ── (wait for nodes) ── evict ── found ──────────────────────────────────────────────────────────┤
 *         └── restart where it is ── not found; if something is broken it is back later, `attempts` times at most ────┤
 *         └── restart ── evict ── a person has found it ── nobody finds it, or the fault is none for automatics ──────┘
 *
 * Durations are drawn from the stream of the fault, so that a fault meets the same luck whatever the rest of the run does (common
 * random numbers between policies). Times are rounded to the millisecond.
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

/* What the machine is shown. */
struct fault_case {
    enum component component;
    enum symptom symptom;
    bool broken;   /* a node has to leave: without it the fault comes back */
    int32_t nodes; /* that the suite runs on */
    int attempt;   /* 0: the first time this fault shows */
};

struct verdict {
    enum channel channel; /* that noticed it */
    nanos detect, diagnose, human;
    int found_by;    /* test, -1 none */
    bool found;      /* the node is known and leaves; also when a person found it */
    bool called;     /* a person was */
    int n_condemned; /* healthy nodes that leave too */
    nanos relapse;   /* above 0: it is not over; from training on until it is back */
};

struct verdict recovery_machine_run(const struct robust_policy *policy, const struct fault_case *fault,
                                    struct random_stream *random);

/* A false alarm of one of the watchers: the suite runs in vain, and may condemn healthy nodes. */
struct verdict recovery_machine_alarm(const struct robust_policy *policy, enum channel channel, int32_t nodes,
                                      struct random_stream *random);

#endif
