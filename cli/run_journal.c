/*
 * Finished replicas in a file: "msim-replica FINGERPRINT R WORD... CHECKSUM", one line each. A line is written by one write to
 * the end of the file, so several processes may share it, and a process that is killed loses the replicas in flight and nothing
 * else.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run_many.h"
#include "model/base/file.h"

#define MARK "msim-replica"
enum { LINE_MAX_BYTES = 48 + 24 * (OUTCOME_WORDS + 4) };

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * UINT64_C(1099511628211); /* FNV-1a */
    return hash;
}

static uint64_t hash_text(uint64_t hash, char *owned)
{
    hash = hash_bytes(hash, owned, strlen(owned) + 1);
    free(owned);
    return hash;
}

uint64_t journal_fingerprint(const struct invocation *call, const struct run_session *s)
{
    const struct checkpoint_policy *checkpoint = &s->options.checkpoint;
    const nanos numbers[] = {(nanos)call->seed,           s->options.horizon,         s->options.nodes,
                             checkpoint->interval,        checkpoint->block,          checkpoint->kind,
                             checkpoint->persist,         checkpoint->write,          checkpoint->storage_every,
                             s->robust.restart,           s->robust.restart_hot,      s->options.recovery.detect,
                             s->options.recovery.restart, s->options.recovery.spares, s->options.degraded != NULL};
    uint64_t hash = UINT64_C(14695981039346656037);
    hash = hash_bytes(hash, MSIM_VERSION, sizeof MSIM_VERSION);
    hash = hash_bytes(hash, numbers, sizeof numbers);
    hash = hash_text(hash, experiment_to_json(&s->experiment));
    if (s->has_model)
        hash = hash_text(hash, fault_model_to_json(&s->model));
    if (s->has_policy)
        hash = hash_text(hash, robust_policy_to_json(&s->policy));
    for (size_t i = 0; !s->has_model && i < s->trace.n_items; i++) {
        const struct fault *fault = &s->trace.items[i];
        const nanos row[] = {fault->time, fault->down, fault->node, fault->speed, fault->kind};
        hash = hash_bytes(hash, row, sizeof row);
    }
    return hash;
}

static uint64_t checksum_of(const char *line, size_t n)
{
    return hash_bytes(UINT64_C(14695981039346656037), line, n) & UINT64_C(0xffffffffffff);
}

static size_t format_line(char *line, uint64_t fingerprint, int64_t replica, const struct replica_outcome *outcome)
{
    int64_t words[OUTCOME_WORDS];
    memcpy(words, outcome, sizeof words);
    size_t n = (size_t)snprintf(line, LINE_MAX_BYTES, MARK " %016" PRIx64 " %" PRId64, fingerprint, replica);
    for (int i = 0; i < OUTCOME_WORDS; i++)
        n += (size_t)snprintf(line + n, LINE_MAX_BYTES - n, " %" PRId64, words[i]);
    return n + (size_t)snprintf(line + n, LINE_MAX_BYTES - n, " %012" PRIx64 "\n", checksum_of(line, n));
}

enum line_fate { LINE_GOOD, LINE_TORN, LINE_FOREIGN };

static enum line_fate read_line(const char *line, size_t n, uint64_t fingerprint, struct replica_outcome *outcomes,
                                int64_t n_outcomes)
{
    const size_t check = 13; /* a blank and twelve digits */
    int64_t words[OUTCOME_WORDS];
    char *end;
    if (n < sizeof MARK + 17 + check || strncmp(line, MARK " ", sizeof MARK) != 0 ||
        strtoull(line + n - check + 1, &end, 16) != checksum_of(line, n - check))
        return LINE_TORN;
    if (strtoull(line + sizeof MARK, &end, 16) != fingerprint)
        return LINE_FOREIGN;
    int64_t replica = strtoll(end, &end, 10);
    for (int i = 0; i < OUTCOME_WORDS; i++)
        words[i] = strtoll(end, &end, 10);
    if (replica >= 0 && replica < n_outcomes)
        memcpy(&outcomes[replica], words, sizeof words);
    return LINE_GOOD;
}

static enum status read_journal(struct invocation *call, const char *path, uint64_t fingerprint, struct replica_outcome *outcomes,
                                int64_t n_outcomes, bool *torn_end)
{
    enum { LIMIT = 1 << 30 };
    char *bytes;
    size_t n, torn = 0, foreign = 0;
    enum status status = file_read(path, LIMIT, &bytes, &n, &call->diags);
    if (status != STATUS_OK)
        return status;
    for (char *line = bytes; line < bytes + n;) {
        char *end = memchr(line, '\n', (size_t)(bytes + n - line));
        size_t length = (size_t)((end ? end : bytes + n) - line);
        enum line_fate fate = length ? read_line(line, length, fingerprint, outcomes, n_outcomes) : LINE_GOOD;
        torn += fate == LINE_TORN;
        foreign += fate == LINE_FOREIGN;
        line += length + 1;
    }
    *torn_end = n > 0 && bytes[n - 1] != '\n';
    free(bytes);
    if (foreign > 0) {
        diag_error(&call->diags, (struct place){.file = path},
                   "holds replicas of another run (other options, seed or version); give another file, or remove this one");
        return STATUS_BAD_INPUT;
    }
    if (torn > 0)
        diag_note(&call->diags, (struct place){.file = path}, "%zu line%s cut off or damaged and will be done again", torn,
                  torn == 1 ? " is" : "s are");
    return STATUS_OK;
}

enum status journal_open(struct invocation *call, const char *path, uint64_t fingerprint, struct replica_outcome *outcomes,
                         int64_t n, struct journal *journal)
{
    struct stat info;
    bool torn_end = false;
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        enum status status = read_journal(call, path, fingerprint, outcomes, n, &torn_end);
        if (status != STATUS_OK)
            return status;
    }
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || (torn_end && write(fd, "\n", 1) != 1)) {
        diag_error(&call->diags, (struct place){.file = path}, "cannot be written: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return STATUS_FAILED;
    }
    *journal = (struct journal){.fd = fd, .fingerprint = fingerprint};
    return STATUS_OK;
}

bool journal_append(const struct journal *journal, int64_t replica, const struct replica_outcome *outcome)
{
    char line[LINE_MAX_BYTES];
    size_t n = format_line(line, journal->fingerprint, replica, outcome);
    ssize_t written = write(journal->fd, line, n);
    if (written >= 0 && (size_t)written < n)
        errno = ENOSPC;
    return written == (ssize_t)n;
}

void journal_close(struct journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = -1;
}
