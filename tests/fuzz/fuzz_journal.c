/* Journals of finished replicas: what is read is in order, and is written again as it was. */
#include <stdlib.h>
#include <string.h>

#include "sim/search/journal.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct journal *journal)
{
    char line[JOURNAL_LINE_MAX];
    for (size_t i = 0; i < journal->n; i++) {
        const struct journal_entry *entry = &journal->entries[i], *before = i ? entry - 1 : entry;
        fuzz_expect(entry->replica >= 0 && entry->outcome.horizon > 0 && entry->outcome.use[0] >= 0 &&
                        entry->outcome.use[0] <= INT64_C(1) << 60,
                    "an outcome is possible");
        fuzz_expect(before->state < entry->state || (before->state == entry->state && before->replica <= entry->replica),
                    "in order of state and replica");
        struct journal again = {.fd = -1, .command = journal->command};
        size_t n = journal_format(line, journal->command, entry), torn, foreign;
        fuzz_expect(n < sizeof line, "a line fits");
        journal_parse(&again, line, n, &torn, &foreign);
        fuzz_expect(again.n == 1 && torn == 0 && foreign == 0, "a line as it is written is good");
        fuzz_expect(memcmp(&again.entries[0], entry, sizeof *entry) == 0, "and says the same");
        struct replica_outcome outcome = {0};
        journal_recall(&again, entry->state, &outcome, 1);
        journal_close(&again);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct journal journal = {.fd = -1, .command = 0x1234};
    size_t torn, foreign;
    char *text = fuzz_text(data, size);
    journal_parse(&journal, text, size, &torn, &foreign);
    check(&journal);
    journal_close(&journal);
    free(text);
    return 0;
}
