/* lanl_trace.c - reads LANL's outage records. */
#include "traces/fault/lanl_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "traces/table/csv.h"
#include "traces/table/date.h"

#define DAY ((nanos)86400 * NANOS_PER_SECOND)
enum { MAX_SYSTEM = 1000, MAX_NODES = 1000000 };

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

struct parser {
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

static const char *cell(const struct parser *parser, size_t row, enum column column)
{
    return csv_cell(&parser->table, row, parser->columns[column]);
}

static void note_size(struct parser *parser, int64_t system, int64_t size)
{
    if (size > parser->sizes[system])
        parser->sizes[system] = (int32_t)size;
}

static void read_row(struct parser *parser, size_t row)
{
    struct outage outage = {.row = row};
    int64_t nodes = 0;
    double minutes = 0;
    const int *columns = parser->columns;
    bool good = csv_cell_integer(&parser->table, row, columns[SYSTEM], 0, MAX_SYSTEM, &outage.system, parser->diags) == STATUS_OK;
    good &= csv_cell_integer(&parser->table, row, columns[NODE], -1, MAX_NODES, &outage.node, parser->diags) == STATUS_OK;
    good &= csv_cell_number(&parser->table, row, columns[DOWNTIME], 0, 5e7, &minutes, parser->diags) == STATUS_OK;
    if (*cell(parser, row, NODES))
        good &= csv_cell_integer(&parser->table, row, columns[NODES], -1, MAX_NODES, &nodes, parser->diags) == STATUS_OK;
    if (!local_time_parse(cell(parser, row, START), &outage.start)) {
        diag_error(parser->diags, csv_place(&parser->table, row, columns[START]),
                   "'%.40s' is not a time; write it as 2003-01-31T07:15", cell(parser, row, START));
        good = false;
    }
    if (!good)
        return;
    if (outage.node < 0) {
        parser->n_unknown++;
        return;
    }
    outage.down = nanos_from_seconds(minutes * 60);
    note_size(parser, outage.system, nodes);
    note_size(parser, outage.system, outage.node + 1);
    parser->outages = memory_grow(parser->outages, &parser->capacity, parser->n_outages + 1, sizeof outage);
    parser->outages[parser->n_outages++] = outage;
}

/* Number the nodes of the chosen systems on. */
static void place_systems(struct parser *parser)
{
    int32_t next = 0;
    for (int system = 0; system <= MAX_SYSTEM; system++)
        parser->offsets[system] = -1;
    for (int i = 0; i < parser->window->n_systems; i++) {
        int system = parser->window->systems[i];
        if (system < 0 || system > MAX_SYSTEM || parser->sizes[system] == 0) {
            diag_error(parser->diags, (struct place){.file = parser->table.name}, "the table has no system %d", system);
            continue;
        }
        parser->offsets[system] = next;
        next += parser->sizes[system];
    }
    if (parser->window->n_systems > 0)
        return;
    for (int system = 0; system <= MAX_SYSTEM; system++)
        if (parser->sizes[system] > 0) {
            parser->offsets[system] = next;
            next += parser->sizes[system];
        }
}

static nanos window_start(const struct parser *parser)
{
    if (parser->window->from != LANL_FIRST_DAY)
        return parser->window->from;
    nanos first = INT64_MAX;
    for (size_t i = 0; i < parser->n_outages; i++)
        if (parser->offsets[parser->outages[i].system] >= 0 && parser->outages[i].start < first)
            first = parser->outages[i].start;
    return first == INT64_MAX ? 0 : first - (first % DAY + DAY) % DAY;
}

static void keep_outages(struct parser *parser, struct fault_trace *trace)
{
    nanos from = window_start(parser);
    for (size_t i = 0; i < parser->n_outages; i++) {
        const struct outage *outage = &parser->outages[i];
        nanos time = outage->start - from;
        int32_t offset = parser->offsets[outage->system];
        if (offset < 0 || time < 0 || time > FAULT_TRACE_LONGEST ||
            (parser->window->length > 0 && time >= parser->window->length))
            continue;
        char detail[256], host[64];
        snprintf(detail, sizeof detail, "%s/%s", cell(parser, outage->row, CATEGORY), cell(parser, outage->row, DETAIL));
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
    struct parser *parser = memory_new(1, sizeof *parser);
    parser->window = window;
    parser->diags = diags;
    size_t errors = diags->n_errors;
    enum status status = csv_table_read(path, &parser->table, diags);
    if (status == STATUS_OK)
        status = csv_table_columns(&parser->table, expected, N_COLUMNS, parser->columns, diags);
    if (status == STATUS_OK) {
        for (size_t row = 0; row < parser->table.n_rows; row++)
            read_row(parser, row);
        place_systems(parser);
        status = diags->n_errors > errors ? STATUS_BAD_INPUT : STATUS_OK;
    }
    if (status == STATUS_OK) {
        *trace = (struct fault_trace){.n_outside = parser->n_unknown};
        keep_outages(parser, trace);
    }
    csv_table_free(&parser->table);
    free(parser->outages);
    free(parser);
    return status;
}
