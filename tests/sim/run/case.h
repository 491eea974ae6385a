/* case.h - small replays, written down in seconds. */
#ifndef MSIM_TESTS_SIM_RUN_CASE_H
#define MSIM_TESTS_SIM_RUN_CASE_H

#include "sim/faults/fault_model.h"
#include "sim/weeks/robust_policy.h"
#include "sim/weeks/run.h"

#define SECONDS(s) ((nanos)(s)*NANOS_PER_SECOND)
#define DAYS(n)    SECONDS((nanos)(n)*86400)

void trace_outage(struct fault_trace *trace, double time_s, int node, double down_s);
void trace_slow(struct fault_trace *trace, double time_s, int node, double down_s, double factor);

/* nodes, horizon, interval, block, restart, spares in seconds and counts; no detection time. */
struct run_options case_options(int nodes, double horizon, double interval, double block, double restart, int spares);

/* Runs it, checks what holds for every run (uses add up to the horizon, in every bin and in the whole), and returns it. */
struct run_result case_run(const struct run_options *options, const struct fault_trace *trace);

/* A policy, and a fault model, that come with the program. */
struct robust_policy case_policy(const char *name);
struct fault_model case_fault_model(const char *name);

double seconds_of(const struct run_result *result, enum time_use use);

#endif
