/*
 * record_table.h - tables of jobs and nodes as schedulers write them: columns under several names, times as seconds or dates.
 * Private to the readers of trace_convert.h.
 */
#ifndef MSIM_TRACES_FAULT_RECORD_TABLE_H
#define MSIM_TRACES_FAULT_RECORD_TABLE_H

#include "traces/fault/trace_convert.h"
#include "traces/table/csv.h"

/* "Node_List" as "nodelist", "NODE_FAIL" as "nodefail": letters and digits in lower case. */
void record_word(const char *text, char *word, size_t size);
/* The column under the first of these names (record_word's, NULL at the end) that is there; -1: none. */
int record_column(const struct csv_table *table, const char *const *names);
bool record_has_any(const char *word, const char *const *parts);

/* A table on its way to a fault trace, which its reader fills row by row. */
struct records {
    struct csv_table table;
    const char *path;
    const struct convert_options *options;
    struct host_table hosts;
    struct fault_trace trace;
    size_t n_dates, n_zoned; /* of all times read: those that are dates, and those that name a zone */
    const char *own;         /* the first of them in seconds that count from the table's own start; NULL: none */
    struct place own_at;
    size_t errors; /* in diags when it was opened */
    struct diags *diags;
};
MUST_CHECK enum status records_open(struct records *records, const char *path, const struct convert_options *options,
                                    struct diags *diags);
/* Nothing was wrong so far. */
bool records_good(const struct records *records);
/* Seconds, or a date such as 2024-03-03T12:01:02, with a fraction, which is left aside, and a zone. False: neither, and told. */
MUST_CHECK bool records_time(struct records *records, size_t row, int column, nanos *time);
/* How long something lasted, in seconds. False: it is no such number, and told. */
MUST_CHECK bool records_duration(struct records *records, size_t row, int column, nanos *duration);
/* Some times have zones and others have not. */
void records_tell_zones(const struct records *records);
/* The trace, with the hosts' names and repeats within `merge` as one (convert_finish), where nothing was wrong; the records are
 * freed. */
MUST_CHECK enum status records_finish(struct records *records, nanos merge, struct fault_trace *trace);

#endif
