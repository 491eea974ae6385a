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

/*
 * run_journal.c: finished replicas in a file, one line each,
 *
 *     msim-replica COMMAND STATE REPLICA WORD... CHECKSUM
 *
 * COMMAND is a fingerprint of what was asked, STATE one of the run that the replica is of (a sweep or a search has many), so a
 * command that was killed finds its own work again, whatever ranks and threads it had and has. All ranks share the file.
 */
struct journal_entry {
    uint64_t state;
    int64_t replica;
    struct replica_outcome outcome;
};
struct journal {
    int fd; /* -1: none */
    uint64_t command;
    struct journal_entry *entries; /* by state and replica */
    size_t n, capacity;
};
/* Of the session as it is now, and of what makes a command of it (may be NULL). */
uint64_t journal_fingerprint(const struct invocation *call, const struct run_session *s, const char *more);
/* Reads what --resume names and opens it for more; nothing without --resume. A torn line is left out. `what` is the sweep or the
 * search, NULL for replicas. */
MUST_CHECK enum status journal_open(struct invocation *call, const struct run_session *s, const char *what,
                                    struct journal *journal);
/* Fills the outcomes [n] of a state that are known. */
void journal_recall(const struct journal *journal, uint64_t state, struct replica_outcome *outcomes, int64_t n);
/* One line in one write. False: it could not be written; errno says why. */
bool journal_append(const struct journal *journal, uint64_t state, int64_t replica, const struct replica_outcome *outcome);
void journal_close(struct journal *journal);

/* Its lines: n bytes with a NUL behind them become entries, in order; a line as it is written, its length returned. */
enum { JOURNAL_LINE_MAX = 72 + 24 * (OUTCOME_WORDS + 4) };
void journal_parse(struct journal *journal, const char *bytes, size_t n, size_t *torn, size_t *foreign);
size_t journal_format(char *line, uint64_t command, const struct journal_entry *entry);

/* What the batches of one command share. */
struct campaign {
    struct journal journal;
    struct progress progress;
    int64_t done, total; /* replicas, of all ranks; total 0: nobody knows how many it will be */
};
/* Opens the journal, as journal_open, and the progress line. campaign_close always. */
MUST_CHECK enum status campaign_open(struct invocation *call, const struct run_session *s, const char *what, int64_t total,
                                     struct campaign *campaign);
void campaign_close(struct campaign *campaign);

/* n replicas of the session as it is now, over threads and ranks; outcomes [n] are whole on every rank. Those that the journal
 * has are taken from it, the others go into it. */
MUST_CHECK enum status run_batch(struct invocation *call, const struct run_session *s, int64_t n, struct campaign *campaign,
                                 struct replica_outcome *outcomes);
/* Its two halves: this rank's share of n; then every rank gets all. Between them a rank waits for no other, so several batches
 * may be shared at once. `status` of the first half; a rank that failed takes the others with it. */
MUST_CHECK enum status run_own_share(struct invocation *call, const struct run_session *s, int64_t n, struct campaign *campaign,
                                     struct replica_outcome *outcomes);
MUST_CHECK enum status run_share(struct replica_outcome *outcomes, int64_t n, int64_t batches, enum status status);

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

/* run_many_report.c: what is only known to be beyond the horizon is null, and "-" in a table. */
json_t *number_json(double x);
json_t *estimate_json(struct estimate e);
void number_cell(struct table *table, const char *format, double x);
MUST_CHECK enum status run_replicas_report(struct invocation *call, const struct run_session *s,
                                           const struct replica_outcome *outcomes, int64_t n);

#endif
