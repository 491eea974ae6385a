/* journal.c - finished replicas in a file, so that a long search can be killed and resumed. */
#include "sim/search/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/file.h"
#include "model/base/hash.h"
#include "model/base/memory.h"

#define MARK "msim-replica"

static uint64_t checksum_of(const char *line, size_t n)
{
    return hash_bytes(HASH_BEGIN, line, n) & UINT64_C(0xffffffffffff);
}

size_t journal_format(char *line, uint64_t command, const struct journal_entry *entry)
{
    int64_t words[OUTCOME_WORDS];
    memcpy(words, &entry->outcome, sizeof words);
    size_t n = (size_t)snprintf(line, JOURNAL_LINE_MAX, MARK " %016" PRIx64 " %016" PRIx64 " %" PRId64, command, entry->state,
                                entry->replica);
    for (int i = 0; i < OUTCOME_WORDS; i++)
        n += (size_t)snprintf(line + n, JOURNAL_LINE_MAX - n, " %" PRId64, words[i]);
    return n + (size_t)snprintf(line + n, JOURNAL_LINE_MAX - n, " %012" PRIx64 "\n", checksum_of(line, n));
}

/* --- reading --- */

/* Can a run have this outcome? The checksum finds accidents; a line written by hand may hold any values. */
static bool is_possible(const struct replica_outcome *outcome)
{
    const int64_t longest = INT64_C(1) << 60; /* ns, 36 years: sums of a few stay in 64 bits */
    int64_t words[OUTCOME_WORDS];
    memcpy(words, outcome, sizeof words);
    bool possible = outcome->done <= 1 && outcome->reached <= 1 && outcome->horizon > 0;
    for (int i = 0; i < OUTCOME_WORDS; i++)
        possible = possible && words[i] >= 0 && words[i] <= longest;
    return possible;
}

enum line_fate { LINE_GOOD, LINE_TORN, LINE_FOREIGN };

static enum line_fate read_line(struct journal *journal, const char *line, size_t n)
{
    const size_t check = 13; /* a blank and twelve digits */
    int64_t words[OUTCOME_WORDS];
    struct journal_entry entry;
    char *end;
    if (n < sizeof MARK + 34 + check || strncmp(line, MARK " ", sizeof MARK) != 0 ||
        strtoull(line + n - check + 1, &end, 16) != checksum_of(line, n - check))
        return LINE_TORN;
    if (strtoull(line + sizeof MARK, &end, 16) != journal->command)
        return LINE_FOREIGN;
    entry.state = strtoull(end, &end, 16);
    entry.replica = strtoll(end, &end, 10);
    for (int i = 0; i < OUTCOME_WORDS; i++)
        words[i] = strtoll(end, &end, 10);
    memcpy(&entry.outcome, words, sizeof words);
    if (entry.replica < 0 || !is_possible(&entry.outcome))
        return LINE_TORN;
    journal->entries = memory_grow(journal->entries, &journal->capacity, journal->n + 1, sizeof *journal->entries);
    journal->entries[journal->n++] = entry;
    return LINE_GOOD;
}

/* Lines of the same state and replica are alike. */
static int compare_entries(const void *left, const void *right)
{
    const struct journal_entry *a = left, *b = right;
    if (a->state != b->state)
        return a->state < b->state ? -1 : 1;
    return (a->replica > b->replica) - (a->replica < b->replica);
}

static enum status report(const char *path, size_t torn, size_t foreign, struct diags *diags)
{
    if (foreign > 0) {
        diag_error(
            diags, (struct place){.file = path},
            "this file holds replicas of another run (other options, seed or version); specify another file, or remove this one");
        return STATUS_BAD_INPUT;
    }
    if (torn > 0)
        diag_note(diags, (struct place){.file = path}, "%zu line%s incomplete or damaged; these replicas run again", torn,
                  torn == 1 ? " is" : "s are");
    return STATUS_OK;
}

void journal_parse(struct journal *journal, const char *bytes, size_t n, size_t *torn, size_t *foreign)
{
    *torn = *foreign = 0;
    for (const char *line = bytes; line < bytes + n;) {
        const char *end = memchr(line, '\n', (size_t)(bytes + n - line));
        size_t length = (size_t)((end ? end : bytes + n) - line);
        enum line_fate fate = length ? read_line(journal, line, length) : LINE_GOOD;
        *torn += fate == LINE_TORN;
        *foreign += fate == LINE_FOREIGN;
        line += length + 1;
    }
    if (journal->n > 1)
        qsort(journal->entries, journal->n, sizeof *journal->entries, compare_entries);
}

/* Whether the file begins as a journal does, be it cut off after a few bytes; others are not appended to. */
static bool begins_as_journal(const char *bytes, size_t n)
{
    const size_t mark = sizeof MARK - 1;
    return memcmp(bytes, MARK, n < mark ? n : mark) == 0;
}

static enum status read_journal(const char *path, struct journal *journal, bool *torn_end, struct diags *diags)
{
    enum { LIMIT = 1 << 30 };
    char *bytes;
    size_t n, torn, foreign;
    enum status status = file_read(path, LIMIT, &bytes, &n, diags);
    if (status != STATUS_OK)
        return status;
    journal_parse(journal, bytes, n, &torn, &foreign);
    *torn_end = n > 0 && bytes[n - 1] != '\n';
    bool other = journal->n == 0 && foreign == 0 && !begins_as_journal(bytes, n);
    free(bytes);
    if (other) {
        diag_error(diags, (struct place){.file = path}, "this file does not hold replicas; specify another file");
        return STATUS_BAD_INPUT;
    }
    return report(path, torn, foreign, diags);
}

enum status journal_open(const char *path, uint64_t command, struct journal *journal, struct diags *diags)
{
    struct stat info;
    bool torn_end = false;
    *journal = (struct journal){.fd = -1, .command = command};
    if (!path)
        return STATUS_OK;
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        enum status status = read_journal(path, journal, &torn_end, diags);
        if (status != STATUS_OK)
            return status;
    }
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || (torn_end && write(fd, "\n", 1) != 1)) {
        diag_error(diags, (struct place){.file = path}, "cannot be written: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return STATUS_FAILED;
    }
    journal->fd = fd;
    return STATUS_OK;
}

/* --- use --- */

static size_t first_of(const struct journal *journal, uint64_t state)
{
    size_t low = 0, high = journal->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (journal->entries[middle].state < state)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void journal_recall(const struct journal *journal, uint64_t state, struct replica_outcome *outcomes, int64_t n)
{
    for (size_t i = first_of(journal, state); i < journal->n && journal->entries[i].state == state; i++)
        if (journal->entries[i].replica >= 0 && journal->entries[i].replica < n)
            outcomes[journal->entries[i].replica] = journal->entries[i].outcome;
}

/* Where files cannot be locked, the system's own promise about appending has to do. */
static void lock(int fd, short type)
{
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    while (fcntl(fd, F_SETLKW, &whole) < 0 && errno == EINTR)
        ;
}

bool journal_append(const struct journal *journal, uint64_t state, int64_t replica, const struct replica_outcome *outcome)
{
    char line[JOURNAL_LINE_MAX];
    struct journal_entry entry = {.state = state, .replica = replica, .outcome = *outcome};
    size_t n = journal_format(line, journal->command, &entry);
    lock(journal->fd, F_WRLCK);
    ssize_t written = write(journal->fd, line, n);
    int why = written >= 0 && (size_t)written < n ? ENOSPC : errno;
    lock(journal->fd, F_UNLCK);
    errno = why;
    return written == (ssize_t)n;
}

void journal_close(struct journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    free(journal->entries);
    *journal = (struct journal){.fd = -1};
}
