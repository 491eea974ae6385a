/* Tables of jobs: those that failed, as failures at their ends. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "traces/csv.h"
#include "traces/lanl_trace.h"
#include "traces/trace_convert.h"

/* The same column under the names that public tables use. */
static const char *const state_names[] = {"state", "status", "job_state", NULL};
static const char *const end_names[] = {"end_s", "end", "end_time", "finished_time", NULL};
static const char *const start_names[] = {"start_s", "start", "start_time", "submit_s", "submit_time", "submitted_time", NULL};
static const char *const duration_names[] = {"duration_s", "duration", "run_time", NULL};
static const char *const node_names[] = {"node", "nodes", "host", "hosts", "node_list", NULL};

struct columns {
    int state, end, start, duration, node;
};

static int find(const struct csv_table *table, const char *const *names)
{
    for (; *names; names++)
        if (csv_table_column(table, *names) >= 0)
            return csv_table_column(table, *names);
    return -1;
}

static bool failed(const char *state)
{
    static const char *const words[] = {"fail", "error", "timeout", "crash"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(state, words[i]))
            return true;
    return false;
}

/* Seconds, or a date. */
static bool cell_time(const struct csv_table *table, size_t row, int column, nanos *time, struct diags *diags)
{
    const char *text = csv_cell(table, row, column);
    char *end;
    double seconds = strtod(text, &end);
    if (end != text && !*end && isfinite(seconds) && fabs(seconds) < 4e9) {
        *time = nanos_from_seconds(seconds);
        return true;
    }
    if (local_time_parse(text, time))
        return true;
    diag_error(diags, csv_place(table, row, column), "'%.40s' is neither seconds nor a time such as 2017-10-03T07:15:00", text);
    return false;
}

static bool end_of(const struct csv_table *table, const struct columns *columns, size_t row, nanos *end, struct diags *diags)
{
    nanos duration = 0;
    if (columns->end >= 0)
        return cell_time(table, row, columns->end, end, diags);
    if (!cell_time(table, row, columns->start, end, diags) || !cell_time(table, row, columns->duration, &duration, diags))
        return false;
    *end += duration;
    return true;
}

/* The first of a list such as "n17,n18" or "n17 n18". */
static int32_t node_of(const struct csv_table *table, const struct columns *columns, size_t row,
                       const struct convert_options *options, struct host_table *hosts)
{
    const char *text = csv_cell(table, row, columns->node);
    size_t length = strcspn(text, ",; |");
    if (columns->node >= 0 && length > 0)
        return host_number(hosts, text, length);
    return (int32_t)(row % (size_t)(options->nodes > 0 ? options->nodes : 1));
}

static bool find_columns(const struct csv_table *table, struct columns *columns, struct diags *diags)
{
    *columns = (struct columns){find(table, state_names), find(table, end_names), find(table, start_names),
                                find(table, duration_names), find(table, node_names)};
    if (columns->state < 0)
        diag_error(diags, csv_header_place(table, 0), "no column says how a job ended; name it state or status");
    if (columns->end < 0 && (columns->start < 0 || columns->duration < 0))
        diag_error(diags, csv_header_place(table, 0),
                   "no column says when a job ended; name it end_s, or give start_s (or submit_s) and duration_s");
    return columns->state >= 0 && (columns->end >= 0 || (columns->start >= 0 && columns->duration >= 0));
}

enum status job_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                           struct diags *diags)
{
    struct csv_table table;
    struct fault_trace read = {0};
    struct host_table hosts = {0};
    struct columns columns;
    size_t errors = diags->n_errors;
    enum status status = csv_table_read(path, &table, diags);
    if (status != STATUS_OK)
        return status;
    bool good = find_columns(&table, &columns, diags);
    for (size_t row = 0; good && row < table.n_rows; row++) {
        struct fault fault = {.down = options->down, .speed = FULL_SPEED, .kind = FAULT_NODE};
        const char *state = csv_cell(&table, row, columns.state);
        if (!failed(state) || !end_of(&table, &columns, row, &fault.time, diags))
            continue;
        fault.node = node_of(&table, &columns, row, options, &hosts);
        fault_trace_add(&read, fault, state);
    }
    host_table_free(&hosts);
    csv_table_free(&table);
    if (!good || diags->n_errors > errors) {
        fault_trace_free(&read);
        return STATUS_BAD_INPUT;
    }
    status = convert_finish(&read, options, -1, path, diags);
    if (status == STATUS_OK)
        *trace = read;
    return status;
}
