/*
 * run_many.h - many runs: replicas, sweeps, the search for the best policy. Shared over threads and ranks.
 */
#ifndef MSIM_CLI_RUN_MANY_H
#define MSIM_CLI_RUN_MANY_H

#include "cli/run_setup.h"
#include "sim/run_replicas.h"

/* The three ways of `msim run` that need more than one run; each writes its report. */
MUST_CHECK enum status run_replicas(struct invocation *call, struct run_session *s);
MUST_CHECK enum status run_optimise(struct invocation *call, struct run_session *s);
MUST_CHECK enum status run_sweep(struct invocation *call, struct run_session *s);

/* n replicas of the session as it is now, over threads and ranks; outcomes [n] are whole on every rank. `journal`: file of
 * finished ones, NULL none. */
MUST_CHECK enum status run_batch(struct invocation *call, const struct run_session *s, int64_t n, const char *journal,
                                 struct replica_outcome *outcomes);

/* One number of every outcome, estimated: by a function of the outcome. */
typedef double outcome_function(const struct run_session *s, const struct replica_outcome *outcome);
struct estimate run_estimate(const struct run_session *s, const struct replica_outcome *outcomes, int64_t n, outcome_function *f);
double outcome_goodput_pct(const struct run_session *s, const struct replica_outcome *outcome);
double outcome_ettr_pct(const struct run_session *s, const struct replica_outcome *outcome);

/* Replicas for a search when the user does not say. */
enum { SEARCH_REPLICAS = 64 };
int64_t run_replica_count(const struct invocation *call, int64_t otherwise);

/* run_many_report.c */
MUST_CHECK enum status run_replicas_report(struct invocation *call, const struct run_session *s,
                                           const struct replica_outcome *outcomes, int64_t n);

/* run_journal.c: finished replicas in a file, one line each, with the fingerprint of what was run and a checksum. */
struct journal {
    int fd; /* -1: none */
    uint64_t fingerprint;
};
uint64_t journal_fingerprint(const struct invocation *call, const struct run_session *s);
/* Reads what is there into the outcomes, and opens the file for more. A torn last line is left out. */
MUST_CHECK enum status journal_open(struct invocation *call, const char *path, uint64_t fingerprint,
                                    struct replica_outcome *outcomes, int64_t n, struct journal *journal);
/* One line in one write. False: it could not be written; errno says why. */
bool journal_append(const struct journal *journal, int64_t replica, const struct replica_outcome *outcome);
void journal_close(struct journal *journal);

#endif
