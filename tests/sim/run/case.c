#include "case.h"
#include "four_units.h"

#include <check.h>

const struct run_failover four_units = {.units = UNITS,
                                        .replicas = 1,
                                        .tp = 1,
                                        .span = UNITS,
                                        .size = 1,
                                        .gpus_per_node = 1,
                                        .step = SECONDS(STEP),
                                        .regroup = SECONDS(REGROUP),
                                        .rejoin = SECONDS(REJOIN),
                                        .rejoin_hot = SECONDS(REJOIN)};

void trace_outage(struct fault_trace *trace, double time_s, int node, double down_s)
{
    fault_trace_add(trace,
                    (struct fault){.time = nanos_from_seconds(time_s),
                                   .down = nanos_from_seconds(down_s),
                                   .node = node,
                                   .speed = FULL_SPEED,
                                   .kind = FAULT_NODE},
                    NULL);
}

void trace_slow(struct fault_trace *trace, double time_s, int node, double down_s, double factor)
{
    fault_trace_add(trace,
                    (struct fault){.time = nanos_from_seconds(time_s),
                                   .down = nanos_from_seconds(down_s),
                                   .node = node,
                                   .speed = (int32_t)(factor * FULL_SPEED + 0.5),
                                   .kind = FAULT_STRAGGLER},
                    NULL);
}

struct run_options case_options(int nodes, double horizon, double interval, double block, double restart, int spares)
{
    return (struct run_options){
        .nodes = nodes,
        .horizon = nanos_from_seconds(horizon),
        .checkpoint = {.interval = nanos_from_seconds(interval), .block = nanos_from_seconds(block)},
        .recovery = {.restart = nanos_from_seconds(restart), .spares = spares},
    };
}

static void check_sums(const struct run_result *result)
{
    nanos total = 0;
    nanos by_use[N_TIME_USES] = {0};
    for (size_t i = 0; i < result->n_series; i++) {
        nanos sum = 0;
        for (int use = 0; use < N_TIME_USES; use++) {
            ck_assert_int_ge(result->series[i].use[use], 0);
            sum += result->series[i].use[use];
            by_use[use] += result->series[i].use[use];
        }
        ck_assert_int_eq(sum, run_bin_length(result, i));
    }
    for (int use = 0; use < N_TIME_USES; use++) {
        ck_assert_int_eq(by_use[use], result->use[use]);
        total += result->use[use];
    }
    ck_assert_int_eq(total, result->horizon);
    ck_assert_int_eq(result->failures + result->slowdowns + result->planned + result->relapses + result->alarms,
                     (int64_t)result->n_incidents);
}

static void check_incidents(const struct run_result *result)
{
    nanos lost = 0;
    int64_t interruptions = 0;
    for (size_t i = 0; i < result->n_incidents; i++) {
        const struct incident *incident = &result->incidents[i];
        ck_assert_int_ge(incident->resumed, incident->fault->time);
        lost += incident->lost;
        interruptions += incident->interrupted;
    }
    ck_assert_int_eq(lost, result->use[USE_LOST]);
    ck_assert_int_eq(interruptions, result->interruptions);
}

struct run_result case_run(const struct run_options *options, const struct fault_trace *trace)
{
    struct run_result result;
    struct diags diags = {0};
    enum status status = run_simulate(options, trace, &result, &diags);
    diags_print(&diags, stderr, false);
    diags_free(&diags);
    ck_assert_int_eq(status, STATUS_OK);
    check_sums(&result);
    check_incidents(&result);
    return result;
}

double seconds_of(const struct run_result *result, enum time_use use)
{
    return (double)result->use[use] / 1e9;
}

struct fault_model case_fault_model(const char *name)
{
    struct fault_model model;
    struct diags diags = {0};
    ck_assert_int_eq(fault_model_load(name, &model, &diags), STATUS_OK);
    diags_free(&diags);
    return model;
}

struct robust_policy case_policy(const char *name)
{
    struct robust_policy policy;
    struct diags diags = {0};
    ck_assert_int_eq(robust_policy_load(name, &policy, &diags), STATUS_OK);
    diags_free(&diags);
    return policy;
}
