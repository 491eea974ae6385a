/*
 * record_table.h - tables of schedulers, of jobs and nodes: several names per column, times as seconds or dates.
 */
#ifndef MSIM_TRACES_FAULT_RECORD_TABLE_H
#define MSIM_TRACES_FAULT_RECORD_TABLE_H

#include "traces/fault/trace_convert.h"
#include "traces/table/csv.h"

/* "Node_List" as "nodelist", "NODE_FAIL" as "nodefail": letters and digits in lower case. */
void record_word(const char *text, char *word, size_t size);
/* The column with the first of these names (in the form of record_word, NULL at the end); -1: none. */
int record_column(const struct csv_table *table, const char *const *names);
bool record_has_any(const char *word, const char *const *parts);

/* A table on its way to a fault trace; its reader fills it row by row. */
struct records {
    struct csv_table table;
    const char *path;
    const struct convert_options *options;
    struct host_table hosts;
    struct fault_trace trace;
    size_t n_dates, n_zoned; /* numbers of times that are dates, and of those with a zone */
    const char *own;         /* the first time in seconds since the table's own start; NULL: none */
    struct place own_at;
    size_t errors; /* errors in diags when the table was opened */
    struct diags *diags;
};
MUST_CHECK enum status records_open(struct records *records, const char *path, const struct convert_options *options,
                                    struct diags *diags);
/* Was there no mistake so far? */
bool records_good(const struct records *records);
/* Seconds, or a date such as 2024-03-03T12:01:02, with a fraction, which is ignored, and a zone. False, and reported: neither.
 * */
MUST_CHECK bool records_time(struct records *records, size_t row, int column, nanos *time);
/* A duration in seconds. False, and reported: it is no such number. */
MUST_CHECK bool records_duration(struct records *records, size_t row, int column, nanos *duration);
/* Do some times have a zone and others none? */
void records_tell_zones(const struct records *records);
/* The trace, with the hosts' names and repeats within `merge` joined (convert_finish), if there was no mistake. Frees the
 * records. */
MUST_CHECK enum status records_finish(struct records *records, nanos merge, struct fault_trace *trace);

#endif
