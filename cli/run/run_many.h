/*
 * run_many.h - many runs: replicas, sweeps, the search for the best policy. Shared over threads and ranks.
 */
#ifndef MSIM_CLI_RUN_RUN_MANY_H
#define MSIM_CLI_RUN_RUN_MANY_H

#include "cli/output/progress.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "cli/run/run_setup.h"
#include "sim/weeks/run_replicas.h"

/* The three ways of `msim run` that need more than one run; each writes its report. */
MUST_CHECK enum status run_replicas(struct invocation *call, struct run_session *s);
MUST_CHECK enum status run_optimise(struct invocation *call, struct run_session *s);
MUST_CHECK enum status run_sweep(struct invocation *call, struct run_session *s);

/* Replicas with the seed, threads and processes of this call; `total` 0: not known ahead. Begins the progress line, which the
 * caller ends. campaign_open comes next. */
struct campaign run_campaign(const struct invocation *call, int64_t total, struct progress *progress);

/* One number of every outcome, estimated: by a function of the outcome. */
typedef double outcome_function(const struct run_session *s, const struct replica_outcome *outcome);
struct estimate run_estimate(const struct run_session *s, const struct replica_outcome *outcomes, int64_t n, outcome_function *f);
double run_end_s(const struct run_session *s, const struct replica_outcome *outcome);
double outcome_goodput_pct(const struct run_session *s, const struct replica_outcome *outcome);
/* Money per million tokens at a mean goodput (percent), spares included; 0 without a price. */
double run_token_cost(const struct run_session *s, double goodput_pct);
double outcome_ettr_pct(const struct run_session *s, const struct replica_outcome *outcome);

/* Replicas for a search when the user does not say. */
enum { SEARCH_REPLICAS = 64 };
int64_t run_replica_count(const struct invocation *call, int64_t otherwise);

/* What is only known to be beyond the horizon is null, and "-" in a table. */
extern const struct result_row estimate_rows[]; /* of a struct estimate */
json_t *estimate_json(struct estimate e);
void number_cell(struct table *table, const char *format, double x);

/* Of --replicas: the result, and of each replica its quantities, of which there are `estimates`, and its `outcomes`. */
extern const struct result_row replicas_rows[], replica_rows[], outcome_rows[];
/* Of --optimise: `optimum`, and each of its `levers`. */
extern const struct result_row optimum_rows[], policy_lever_rows[];

#endif
