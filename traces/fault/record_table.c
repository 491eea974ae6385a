#include "traces/fault/record_table.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "traces/fault/lanl_trace.h"
#include "traces/fault/log_time.h"

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

/* --- times --- */

static bool zoned_time_parse(const char *text, nanos *time, bool *zoned)
{
    char date[20];
    nanos ahead = 0;
    size_t n = strspn(text, "0123456789-"); /* the day */
    if (text[n] == 'T' || (text[n] == ' ' && isdigit((unsigned char)text[n + 1])))
        n += 1 + strspn(text + n + 1, "0123456789:");
    if (n == 0 || n >= sizeof date)
        return false;
    memcpy(date, text, n);
    date[n] = '\0';
    const char *rest = text + n;
    if (*rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    if (!local_time_parse(date, time) || !log_zone(rest, &ahead))
        return false;
    *zoned = *rest != '\0';
    *time -= ahead;
    return true;
}

/* Seconds of before 1973 count from the table's own start, not from 1970. */
static const nanos earliest_of_calendar = (nanos)100000000 * NANOS_PER_SECOND;

bool records_time(struct records *records, size_t row, int column, nanos *time)
{
    const char *text = csv_cell(&records->table, row, column);
    char *end;
    bool zoned;
    double seconds = strtod(text, &end);
    if (end != text && !*end && isfinite(seconds) && fabs(seconds) < 4e9) {
        *time = nanos_from_seconds(seconds);
        if (!records->own && *time < earliest_of_calendar) {
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

bool records_duration(struct records *records, size_t row, int column, nanos *duration)
{
    double seconds;
    if (csv_cell_number(&records->table, row, column, 0, nanos_to_seconds(FAULT_TRACE_LONGEST), &seconds, records->diags) !=
        STATUS_OK)
        return false;
    *duration = nanos_from_seconds(seconds);
    return true;
}

void records_tell_zones(const struct records *records)
{
    if (records->n_zoned > 0 && records->n_zoned < records->n_dates)
        diag_note(records->diags, (struct place){.file = records->table.name},
                  "%zu of %zu times name a zone; msim assumes universal time for the others", records->n_zoned, records->n_dates);
}

/* Seconds from the table's own start lie nowhere among dates. */
static bool times_fit(const struct records *records)
{
    if (!records->own || records->n_dates == 0)
        return true;
    diag_error(records->diags, records->own_at,
               "'%.40s' are seconds since the table's own start, where other times are dates; write all of them one way",
               records->own);
    return false;
}

/* A date --from says nothing of seconds from the table's own start. */
static bool from_fits(const struct records *records)
{
    const struct fault_trace *trace = &records->trace;
    nanos latest = 0;
    for (size_t i = 0; i < trace->n_items; i++)
        latest = trace->items[i].time > latest ? trace->items[i].time : latest;
    if (!records->options->has_from || records->n_dates > 0 || trace->n_items == 0 || latest >= earliest_of_calendar)
        return true;
    diag_error(records->diags, (struct place){.file = records->path},
               "--from is a date, and these times are seconds since the table's own start; --horizon alone cuts it");
    return false;
}

/* --- from the table to the trace --- */

enum status records_open(struct records *records, const char *path, const struct convert_options *options, struct diags *diags)
{
    *records = (struct records){.path = path, .options = options, .errors = diags->n_errors, .diags = diags};
    return csv_table_read(path, &records->table, diags);
}

bool records_good(const struct records *records)
{
    return records->diags->n_errors == records->errors;
}

enum status records_finish(struct records *records, nanos merge, struct fault_trace *trace)
{
    struct convert_options options = *records->options;
    bool good = records_good(records);
    options.merge = merge;
    good = good && times_fit(records); /* the table is still there, which has the text */
    host_table_name(&records->hosts, &records->trace);
    host_table_free(&records->hosts);
    csv_table_free(&records->table);
    enum status status = good && from_fits(records)
                             ? convert_finish(&records->trace, &options, NULL, -1, records->path, records->diags)
                             : STATUS_BAD_INPUT;
    if (status == STATUS_OK)
        *trace = records->trace;
    else
        fault_trace_free(&records->trace);
    return status;
}
