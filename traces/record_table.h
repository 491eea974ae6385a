/*
 * record_table.h - tables of jobs and nodes as schedulers write them: columns under several names, times as seconds or dates.
 * Private to the readers of trace_convert.h.
 */
#ifndef MSIM_TRACES_RECORD_TABLE_H
#define MSIM_TRACES_RECORD_TABLE_H

#include "traces/csv.h"
#include "traces/trace_convert.h"

/* "Node_List" as "nodelist", "NODE_FAIL" as "nodefail": letters and digits in lower case. */
void record_word(const char *text, char *word, size_t size);
/* The column under the first of these names (record_word's, NULL at the end) that is there; -1: none. */
int record_column(const struct csv_table *table, const char *const *names);
bool record_has_any(const char *word, const char *const *parts);

/* Of all times read: those that are dates, and those that name a zone. */
struct record_times {
    size_t n_dates, n_zoned;
};
/* Seconds, or a date such as 2024-03-03T12:01:02, with a fraction, which is left aside, and a zone. False: neither, and told. */
MUST_CHECK bool record_time(const struct csv_table *table, size_t row, int column, struct record_times *times, nanos *time,
                            struct diags *diags);
/* Some times have zones and others have not. */
void record_tell_zones(const struct record_times *times, struct place at, struct diags *diags);
/* Seconds of before 1973 count from the table's own start, not from 1970: a date --from says nothing of them, which is told. */
MUST_CHECK bool record_from_fits(const struct fault_trace *trace, const struct convert_options *options,
                                 const struct record_times *times, const char *path, struct diags *diags);

#endif
