/*
 * journal.h - finished replicas in a file, so that a long search can be killed and resumed.
 *
 * Example: `msim run --replicas 10000 --resume file` writes one line for each finished replica. When the same command runs again,
 * it takes the outcomes of the replicas in the file and simulates only the others:
 *
 *     msim-replica COMMAND STATE REPLICA WORD... CHECKSUM
 *
 * COMMAND is a fingerprint of the command. STATE is a fingerprint of the run that the replica is one of; a sweep or a search has
 * many such runs. So a command finds its own replicas again, whatever processes and threads it had and has.
 *
 * Several processes may share the file, on a network's file system too: each line is one write to the end of the file under a
 * lock. A process that is killed loses the replicas in flight and nothing else.
 */
#ifndef MSIM_SIM_SEARCH_JOURNAL_H
#define MSIM_SIM_SEARCH_JOURNAL_H

#include "sim/weeks/run_replicas.h"

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

/* Reads the file, which need not exist yet, and opens it for more. Leaves out a torn line, with a note. STATUS_BAD_INPUT when the
 * file holds replicas of another command, or something else. `path` NULL: a journal that keeps nothing. */
MUST_CHECK enum status journal_open(const char *path, uint64_t command, struct journal *journal, struct diags *diags);
/* Fills the outcomes [n] of a state that are known. */
void journal_recall(const struct journal *journal, uint64_t state, struct replica_outcome *outcomes, int64_t n);
/* One line in one write. False: it could not be written; errno says why. */
bool journal_append(const struct journal *journal, uint64_t state, int64_t replica, const struct replica_outcome *outcome);
void journal_close(struct journal *journal);

/* The lines by themselves: n bytes, followed by a NUL, become entries in order; an entry becomes a line, whose length is
 * returned. */
enum { JOURNAL_LINE_MAX = 72 + 24 * (OUTCOME_WORDS + 4) };
void journal_parse(struct journal *journal, const char *bytes, size_t n, size_t *torn, size_t *foreign);
size_t journal_format(char *line, uint64_t command, const struct journal_entry *entry);

#endif
