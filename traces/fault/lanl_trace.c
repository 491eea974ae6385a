#include "traces/fault/lanl_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "traces/table/csv.h"

#define DAY ((nanos)86400 * NANOS_PER_SECOND)
enum { MAX_SYSTEM = 1000, MAX_NODES = 1000000 };

/* --- local times --- */

/* Days from 1970-01-01 in the Gregorian calendar; a year is taken to begin in March, so that a leap day is its last one. */
static int64_t days_since_1970(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = y / 400, year_of_era = y % 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static bool date_exists(int year, int month, int day)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < 1970 || year > 2199 || month < 1 || month > 12 || day < 1)
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day <= lengths[month - 1] + (month == 2 && leap);
}

bool local_time_parse(const char *text, nanos *time)
{
    int year, month, day, hour = 0, minute = 0, second = 0, end = 0;
    char separator = 'T';
    if (sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &end) != 3)
        return false;
    const char *rest = text + end;
    if (*rest && sscanf(rest, "%c%2d:%2d%n", &separator, &hour, &minute, &end) != 3)
        return false;
    rest += *rest ? end : 0;
    if (*rest && sscanf(rest, ":%2d%n", &second, &end) == 1)
        rest += end;
    if (*rest || (separator != 'T' && separator != ' ') || !date_exists(year, month, day))
        return false;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    int64_t seconds = days_since_1970(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    *time = seconds * NANOS_PER_SECOND;
    return true;
}

/* --- the table --- */

enum column { SYSTEM, NODES, NODE, START, DOWNTIME, CATEGORY, DETAIL, N_COLUMNS };

static const struct csv_column expected[N_COLUMNS] = {
    [SYSTEM] = {"system", true},  [NODES] = {"nodes", false},          [NODE] = {"node", true},
    [START] = {"start", true},    [DOWNTIME] = {"downtime_min", true}, [CATEGORY] = {"category", false},
    [DETAIL] = {"detail", false},
};

struct outage {
    size_t row;
    int64_t system, node;
    nanos start, down;
};

struct reading {
    struct csv_table table;
    int columns[N_COLUMNS];
    const struct lanl_window *window;
    struct outage *outages;
    size_t n_outages, capacity;
    size_t n_unknown;                /* rows that name no node */
    int32_t sizes[MAX_SYSTEM + 1];   /* nodes of each system, 0: not in the table */
    int32_t offsets[MAX_SYSTEM + 1]; /* of its node 0 in the cluster, -1: not chosen */
    struct diags *diags;
};

static const char *cell(const struct reading *reading, size_t row, enum column column)
{
    return csv_cell(&reading->table, row, reading->columns[column]);
}

static void note_size(struct reading *reading, int64_t system, int64_t size)
{
    if (size > reading->sizes[system])
        reading->sizes[system] = (int32_t)size;
}

static void read_row(struct reading *reading, size_t row)
{
    struct outage outage = {.row = row};
    int64_t nodes = 0;
    double minutes = 0;
    const int *columns = reading->columns;
    bool good =
        csv_cell_integer(&reading->table, row, columns[SYSTEM], 0, MAX_SYSTEM, &outage.system, reading->diags) == STATUS_OK;
    good &= csv_cell_integer(&reading->table, row, columns[NODE], -1, MAX_NODES, &outage.node, reading->diags) == STATUS_OK;
    good &= csv_cell_number(&reading->table, row, columns[DOWNTIME], 0, 5e7, &minutes, reading->diags) == STATUS_OK;
    if (*cell(reading, row, NODES))
        good &= csv_cell_integer(&reading->table, row, columns[NODES], -1, MAX_NODES, &nodes, reading->diags) == STATUS_OK;
    if (!local_time_parse(cell(reading, row, START), &outage.start)) {
        diag_error(reading->diags, csv_place(&reading->table, row, columns[START]),
                   "'%.40s' is not a time; write it as 2003-01-31T07:15", cell(reading, row, START));
        good = false;
    }
    if (!good)
        return;
    if (outage.node < 0) {
        reading->n_unknown++;
        return;
    }
    outage.down = nanos_from_seconds(minutes * 60);
    note_size(reading, outage.system, nodes);
    note_size(reading, outage.system, outage.node + 1);
    reading->outages = memory_grow(reading->outages, &reading->capacity, reading->n_outages + 1, sizeof outage);
    reading->outages[reading->n_outages++] = outage;
}

/* Number the nodes of the chosen systems on. */
static void place_systems(struct reading *reading)
{
    int32_t next = 0;
    for (int system = 0; system <= MAX_SYSTEM; system++)
        reading->offsets[system] = -1;
    for (int i = 0; i < reading->window->n_systems; i++) {
        int system = reading->window->systems[i];
        if (system < 0 || system > MAX_SYSTEM || reading->sizes[system] == 0) {
            diag_error(reading->diags, (struct place){.file = reading->table.name}, "the table has no system %d", system);
            continue;
        }
        reading->offsets[system] = next;
        next += reading->sizes[system];
    }
    if (reading->window->n_systems > 0)
        return;
    for (int system = 0; system <= MAX_SYSTEM; system++)
        if (reading->sizes[system] > 0) {
            reading->offsets[system] = next;
            next += reading->sizes[system];
        }
}

static nanos window_start(const struct reading *reading)
{
    if (reading->window->from != LANL_FIRST_DAY)
        return reading->window->from;
    nanos first = INT64_MAX;
    for (size_t i = 0; i < reading->n_outages; i++)
        if (reading->offsets[reading->outages[i].system] >= 0 && reading->outages[i].start < first)
            first = reading->outages[i].start;
    return first == INT64_MAX ? 0 : first - (first % DAY + DAY) % DAY;
}

static void keep_outages(struct reading *reading, struct fault_trace *trace)
{
    nanos from = window_start(reading);
    for (size_t i = 0; i < reading->n_outages; i++) {
        const struct outage *outage = &reading->outages[i];
        nanos time = outage->start - from;
        int32_t offset = reading->offsets[outage->system];
        if (offset < 0 || time < 0 || time > FAULT_TRACE_LONGEST ||
            (reading->window->length > 0 && time >= reading->window->length))
            continue;
        char detail[256], host[64];
        snprintf(detail, sizeof detail, "%s/%s", cell(reading, outage->row, CATEGORY), cell(reading, outage->row, DETAIL));
        struct fault fault = {
            .time = time,
            .down = outage->down,
            .node = offset + (int32_t)outage->node,
            .speed = FULL_SPEED,
            .kind = FAULT_NODE,
        };
        snprintf(host, sizeof host, "system %" PRId64 " node %" PRId64, outage->system, outage->node);
        fault_trace_name_node(trace, fault.node, host);
        fault_trace_add(trace, fault, detail);
    }
    fault_trace_sort(trace);
}

enum status lanl_trace_read(const char *path, const struct lanl_window *window, struct fault_trace *trace, struct diags *diags)
{
    struct reading *reading = memory_new(1, sizeof *reading);
    reading->window = window;
    reading->diags = diags;
    size_t errors = diags->n_errors;
    enum status status = csv_table_read(path, &reading->table, diags);
    if (status == STATUS_OK)
        status = csv_table_columns(&reading->table, expected, N_COLUMNS, reading->columns, diags);
    if (status == STATUS_OK) {
        for (size_t row = 0; row < reading->table.n_rows; row++)
            read_row(reading, row);
        place_systems(reading);
        status = diags->n_errors > errors ? STATUS_BAD_INPUT : STATUS_OK;
    }
    if (status == STATUS_OK) {
        *trace = (struct fault_trace){.n_outside = reading->n_unknown};
        keep_outages(reading, trace);
    }
    csv_table_free(&reading->table);
    free(reading->outages);
    free(reading);
    return status;
}
