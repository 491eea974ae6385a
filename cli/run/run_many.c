#include "cli/run/run_many.h"

#include <math.h>
#include <stdlib.h>

#include "cli/options/shared_options.h"
#include "cli/world/world.h"
#include "model/base/memory.h"

struct campaign run_campaign(const struct invocation *call, int64_t total, struct progress *progress)
{
    *progress = progress_begin(call, "replicas");
    return (struct campaign){.version = MSIM_VERSION,
                             .seed = call->seed,
                             .threads = thread_option(call),
                             .processes = world_processes(),
                             .watch = {progress_update, progress},
                             .total = total};
}

int64_t run_replica_count(const struct invocation *call, int64_t otherwise)
{
    return option_given(call, "replicas") ? option_count(call, "replicas") : otherwise;
}

/* --- estimates --- */

struct estimate run_estimate(const struct run_session *s, const struct replica_outcome *outcomes, int64_t n, outcome_function *f)
{
    double *x = memory_new((size_t)n, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = f(s, &outcomes[i]);
    struct estimate estimate = estimate_of(x, (size_t)n);
    free(x);
    return estimate;
}

double outcome_goodput_pct(const struct run_session *s, const struct replica_outcome *outcome)
{
    (void)s;
    return 100 * outcome_goodput(outcome);
}

double outcome_ettr_pct(const struct run_session *s, const struct replica_outcome *outcome)
{
    (void)s;
    return 100 * outcome_ettr(outcome);
}

double run_end_s(const struct run_session *s, const struct replica_outcome *outcome)
{
    (void)s;
    return outcome_end_s(outcome);
}

double run_token_cost(const struct run_session *s, double goodput_pct)
{
    const struct experiment *e = &s->experiment;
    double gpus = run_paid_gpus(e, &s->options);
    double tokens_per_s = goodput_pct / 100 / s->report.step_time_s * (double)e->job.global_batch * (double)e->job.seq_len;
    return tokens_per_s > 0 ? s->report.gpu_price * gpus / 3600 / tokens_per_s * 1e6 : 0;
}

void number_cell(struct table *table, const char *format, double x)
{
    char text[32];
    snprintf(text, sizeof text, isfinite(x) ? format : "-", x);
    table_cell(table, "%s", text);
}

#define ESTIMATE_ROWS(ROW)                                                                                                       \
    ROW(estimate, mean, as_number(s->mean), "", JSON, "mean of the replicas")                                                    \
    ROW(estimate, ci95_low, as_number(s->mean - s->half_width), "", JSON, "low end of the 95 % interval of the mean")            \
    ROW(estimate, ci95_high, as_number(s->mean + s->half_width), "", JSON, "its high end")                                       \
    ROW(estimate, deviation, as_number(s->deviation), "", JSON, "standard deviation of the replicas")                            \
    ROW(estimate, p05, as_number(s->p05), "", JSON, "5th percentile of the replicas")                                            \
    ROW(estimate, median, as_number(s->median), "", JSON, "their median")                                                        \
    ROW(estimate, p95, as_number(s->p95), "", JSON, "their 95th percentile")
RESULT_ROWS(estimate_rows, ESTIMATE_ROWS)

json_t *estimate_json(struct estimate e)
{
    return rows_object(estimate_rows, &e);
}
