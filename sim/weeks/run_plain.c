/*
 * run_plain.c - the plain rules for faults: every failure is noticed after `detect` and repaired by one restart of `restart`.
 */
#include "sim/weeks/run_internal.h"

static void fail(struct run *run, struct incident *incident)
{
    const struct recovery_plan plan = recovery_plain_plan(&run->recovery.policy);
    const struct fault *fault = incident->fault;
    run->counts.failures++;
    if (run->replicas->survives(run, fault->node)) {
        run->replicas->leave(run, incident, fault, plan.detect, 0);
        return;
    }
    run_lose_work(run, incident, MEMORY_STAYS);
    int32_t n_down = run->replicas->stop(run, fault->down > 0 ? fault : NULL, incident->time + plan.detect);
    run_stop(run, RUN_RECOVERING, incident->time, n_down, &plan);
}

static void plain_fault(struct run *run, const struct fault *fault)
{
    cluster_state_begin(&run->cluster, fault);
    if (fault->kind == FAULT_PLANNED) {
        run_leave_as_planned(run, fault);
        return;
    }
    struct incident *incident = run_add_incident(run, fault, fault->time);
    if (fault->kind == FAULT_NODE) {
        fail(run, incident);
    } else {
        run->counts.slowdowns++;
        run_set_speed(run);
    }
}

static void plain_restart(struct run *run, nanos time)
{
    (void)time;
    run_set_speed(run);
}

static nanos plain_next(const struct run *run)
{
    (void)run;
    return NEVER;
}

static void plain_happen(struct run *run, nanos time)
{
    (void)run;
    (void)time;
}

static double plain_drift(const struct run *run)
{
    (void)run;
    return 0;
}

const struct fault_rules plain_fault_rules = {
    .fault = plain_fault,
    .restart = plain_restart,
    .next = plain_next,
    .happen = plain_happen,
    .drift = plain_drift,
};
