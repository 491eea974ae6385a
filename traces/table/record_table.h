/*
 * record_table.h - reads tables of records that schedulers and people write: names of columns vary, times are seconds or dates,
 * durations are seconds or clock times, columns may have fixed widths.
 *
 * Example: the cells "2024-03-03T12:01:02", "1709467262" and "1-02:00:00".
 *
 *     record_table_time(&records, row, start, &time)                        both of the first two
 *     record_table_duration(&records, row, elapsed, longest, &duration)     the third: one day and two hours
 *
 * A file has columns of fixed width if its second line is dashes (sacct, sacctmgr), or if its first line is names in capitals
 * with blanks between them (sinfo -R, kubectl get events). All others are comma-separated (csv.h). Alibaba's PAI tables have no
 * line of names; they are recognised by the word in their column of states.
 */
#ifndef MSIM_TRACES_TABLE_RECORD_TABLE_H
#define MSIM_TRACES_TABLE_RECORD_TABLE_H

#include "model/base/units.h"
#include "traces/table/csv.h"

/* "Node_List" as "nodelist", "NODE_FAIL" as "nodefail": letters and digits in lower case. */
void record_word(const char *text, char *word, size_t size);
/* The column with the first of these names (in the form of record_word, NULL at the end); -1: none. */
int record_column(const struct csv_table *table, const char *const *names);
bool record_has_any(const char *word, const char *const *parts);

struct record_table {
    struct csv_table table;
    bool fixed;              /* columns of fixed width: a cell that was cut ends with + */
    size_t n_dates, n_zoned; /* numbers of times that are dates, and of those with a zone */
    const char *own;         /* the first time in seconds since the table's own start; NULL: none */
    struct place own_at;
    size_t errors; /* errors in diags when the table was opened */
    struct diags *diags;
};
MUST_CHECK enum status record_table_open(struct record_table *records, const char *path, struct diags *diags);
/* The same from memory (copied), with a NUL behind its n bytes; `name` is the name of the table in diagnostics. */
MUST_CHECK enum status record_table_parse(struct record_table *records, const char *name, const char *bytes, size_t n,
                                          struct diags *diags);
void record_table_close(struct record_table *records);
/* Was there no mistake so far? */
bool record_table_good(const struct record_table *records);
/* Seconds, or a date such as 2024-03-03T12:01:02, with a fraction, which is ignored, and a zone. False, and reported: neither. */
MUST_CHECK bool record_table_time(struct record_table *records, size_t row, int column, nanos *time);
/* A duration in seconds, or as Slurm writes it, [DAYS-]HH:MM:SS. False, and reported: it is neither, or above `longest`. */
MUST_CHECK bool record_table_duration(struct record_table *records, size_t row, int column, nanos longest, nanos *duration);
/* An end that has not come: Unknown, None, a zero or nothing. */
bool record_is_open(const char *text);
/* Notes whether some times have a zone and others none. */
void record_table_tell_zones(const struct record_table *records);
/* Seconds from the table's own start lie nowhere among dates. False, and reported: it has both. */
MUST_CHECK bool record_table_times_fit(const struct record_table *records);

/* Seconds of before 1973 count from the table's own start, not from 1970. */
#define RECORD_EARLIEST_OF_CALENDAR ((nanos)100000000 * NANOS_PER_SECOND)

/* A table with columns of fixed width as comma-separated text of as many lines, to be freed; NULL: it is none. */
char *fixed_table_as_csv(const char *bytes, size_t n, size_t *n_csv);

#endif
