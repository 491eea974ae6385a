#include "traces/table/record_table.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "traces/table/date.h"

/* --- words --- */

void record_word(const char *text, char *word, size_t size)
{
    size_t n = 0;
    for (; *text && n + 1 < size; text++)
        if (isalnum((unsigned char)*text))
            word[n++] = (char)tolower((unsigned char)*text);
    word[n] = '\0';
}

int record_column(const struct csv_table *table, const char *const *names)
{
    char word[64];
    for (; *names; names++)
        for (int i = 0; i < table->n_columns; i++) {
            record_word(table->header[i], word, sizeof word);
            if (strcmp(word, *names) == 0)
                return i;
        }
    return -1;
}

bool record_has_any(const char *word, const char *const *parts)
{
    for (; *parts; parts++)
        if (strstr(word, *parts))
            return true;
    return false;
}

bool record_is_open(const char *text)
{
    static const char *const words[] = {"", "unknown", "none", "na", "nan", "null", "0"};
    char word[16];
    record_word(text, word, sizeof word);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

/* --- tables without a line of names --- */

/* The columns of Alibaba's PAI tables (cluster-trace-gpu-v2020), which come without their names. */
static const struct {
    int state; /* which column has states */
    int n;
    const char *names;
} headless[] = {
    {3, 6, "job_name,inst_id,user,status,start_time,end_time\n"},
    {3, 10, "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"},
    {5, 9, "job_name,task_name,inst_name,worker_name,inst_id,status,start_time,end_time,node\n"},
};

static bool is_pai_state(const char *cell, size_t n)
{
    static const char *const states[] = {"Terminated", "Failed", "Running", "Waiting", "Interrupted"};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (strlen(states[i]) == n && strncmp(cell, states[i], n) == 0)
            return true;
    return false;
}

/* The names of a table that begins with a row of values; NULL: it names its columns. */
static const char *missing_header(const char *bytes)
{
    int n = 0, state = -1;
    for (const char *at = bytes;; n++) {
        size_t length = strcspn(at, ",\r\n");
        state = is_pai_state(at, length) ? n : state;
        at += length;
        if (*at != ',')
            break;
        at++;
    }
    for (size_t i = 0; i < sizeof headless / sizeof *headless; i++)
        if (headless[i].state == state && headless[i].n == n + 1)
            return headless[i].names;
    return NULL;
}

enum status record_table_parse(struct record_table *records, const char *name, const char *bytes, size_t n, struct diags *diags)
{
    size_t n_csv;
    char *csv = fixed_table_as_csv(bytes, n, &n_csv);
    *records = (struct record_table){.fixed = csv != NULL, .errors = diags->n_errors, .diags = diags};
    enum status status = csv ? csv_table_parse(name, csv, n_csv, &records->table, diags)
                             : csv_table_parse_headed(name, missing_header(bytes), bytes, n, &records->table, diags);
    free(csv);
    return status;
}

enum status record_table_open(struct record_table *records, const char *path, struct diags *diags)
{
    enum { LIMIT = 1 << 30 };
    char *bytes;
    size_t n;
    enum status status = file_read(path, LIMIT, &bytes, &n, diags);
    if (status != STATUS_OK)
        return status;
    status = record_table_parse(records, path, bytes, n, diags);
    free(bytes);
    return status;
}

void record_table_close(struct record_table *records)
{
    csv_table_free(&records->table);
}

bool record_table_good(const struct record_table *records)
{
    return records->diags->n_errors == records->errors;
}

/* --- times --- */

bool record_table_time(struct record_table *records, size_t row, int column, nanos *time)
{
    const char *text = csv_cell(&records->table, row, column);
    char *end;
    bool zoned;
    double seconds = strtod(text, &end);
    if (end != text && !*end && isfinite(seconds) && fabs(seconds) < 4e9) {
        *time = nanos_from_seconds(seconds);
        if (!records->own && *time < RECORD_EARLIEST_OF_CALENDAR) {
            records->own = text;
            records->own_at = csv_place(&records->table, row, column);
        }
        return true;
    }
    if (zoned_time_parse(text, time, &zoned)) {
        records->n_zoned += zoned;
        records->n_dates++;
        return true;
    }
    diag_error(records->diags, csv_place(&records->table, row, column),
               "'%.40s' is neither seconds nor a time such as 2017-10-03T07:15:00, 2017-10-03T07:15:00Z or "
               "2017-10-03T07:15:00+08:00",
               text);
    return false;
}

/* "2-03:00:10", "03:00:10" */
static bool clock_duration(const char *text, nanos *duration)
{
    unsigned days = 0, hours, minutes, seconds;
    int end = 0;
    if (sscanf(text, "%5u-%n", &days, &end) == 1 && end > 0)
        text += end;
    else
        days = 0;
    if (sscanf(text, "%5u:%2u:%2u%n", &hours, &minutes, &seconds, &end) != 3 || text[end] || minutes > 59 || seconds > 60)
        return false;
    *duration = ((nanos)days * 86400 + (nanos)hours * 3600 + minutes * 60 + seconds) * NANOS_PER_SECOND;
    return true;
}

bool record_table_duration(struct record_table *records, size_t row, int column, nanos longest, nanos *duration)
{
    double seconds;
    if (clock_duration(csv_cell(&records->table, row, column), duration) && *duration <= longest)
        return true;
    if (csv_cell_number(&records->table, row, column, 0, nanos_to_seconds(longest), &seconds, records->diags) != STATUS_OK)
        return false;
    *duration = nanos_from_seconds(seconds);
    return true;
}

void record_table_tell_zones(const struct record_table *records)
{
    if (records->n_zoned > 0 && records->n_zoned < records->n_dates)
        diag_note(records->diags, (struct place){.file = records->table.name},
                  "%zu of %zu times name a zone; msim assumes universal time for the others", records->n_zoned, records->n_dates);
}

bool record_table_times_fit(const struct record_table *records)
{
    if (!records->own || records->n_dates == 0)
        return true;
    diag_error(records->diags, records->own_at,
               "'%.40s' are seconds since the table's own start, where other times are dates; write all of them one way",
               records->own);
    return false;
}
