/* fault_trace.c - reads and writes traces of faults. */
#include "traces/fault/fault_trace.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/spec/shipped.h"
#include "traces/table/csv.h"

/* A century: what lies beyond is a wrong unit rather than a fault. */
#define MAX_TIME FAULT_TRACE_LONGEST
#define MAX_NODE 100000000

static const char *const kind_names[N_FAULT_KINDS] = {"node", "straggler", "link", "planned"};

const char *fault_kind_name(enum fault_kind kind)
{
    return kind_names[kind];
}

static int kind_parse(const char *name)
{
    for (int i = 0; i < N_FAULT_KINDS; i++)
        if (strcmp(name, kind_names[i]) == 0)
            return i;
    return -1;
}

void fault_trace_free(struct fault_trace *trace)
{
    for (size_t i = 0; i < trace->n_details; i++)
        free(trace->details[i]);
    for (size_t i = 0; i < trace->n_hosts; i++)
        free(trace->hosts[i].name);
    free(trace->details);
    free(trace->hosts);
    free(trace->items);
    *trace = (struct fault_trace){0};
}

/* --- building --- */

/* Causes are few (tens), so a search from the most recent one is quick; a trace whose details all differ keeps each. */
static int32_t keep_detail(struct fault_trace *trace, const char *detail)
{
    enum { SEARCHED = 64 };
    if (!detail || !*detail)
        return -1;
    size_t last = trace->n_details > SEARCHED ? trace->n_details - SEARCHED : 0;
    for (size_t i = trace->n_details; i > last; i--)
        if (strcmp(trace->details[i - 1], detail) == 0)
            return (int32_t)(i - 1);
    trace->details = memory_grow(trace->details, &trace->details_capacity, trace->n_details + 1, sizeof *trace->details);
    trace->details[trace->n_details] = memory_copy_text(detail);
    return (int32_t)trace->n_details++;
}

void fault_trace_add(struct fault_trace *trace, struct fault fault, const char *detail)
{
    trace->items = memory_grow(trace->items, &trace->capacity, trace->n_items + 1, sizeof *trace->items);
    fault.detail = keep_detail(trace, detail);
    trace->items[trace->n_items++] = fault;
}

/* `line` holds the order of appending while sorting, so no tie stays open. */
static int compare_faults(const void *left, const void *right)
{
    const struct fault *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

void fault_trace_sort(struct fault_trace *trace)
{
    for (size_t i = 0; i < trace->n_items; i++)
        trace->items[i].line = (int32_t)i;
    if (trace->n_items > 1)
        qsort(trace->items, trace->n_items, sizeof *trace->items, compare_faults);
    for (size_t i = 0; i < trace->n_items; i++)
        trace->items[i].line = 0;
}

const char *fault_trace_detail(const struct fault_trace *trace, const struct fault *fault)
{
    return fault->detail < 0 ? "" : trace->details[fault->detail];
}

/* Where a node's name stands, or would. */
static size_t host_place(const struct fault_trace *trace, int32_t node)
{
    size_t low = 0, high = trace->n_hosts;
    if (high > 0 && trace->hosts[high - 1].node < node)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trace->hosts[middle].node < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const char *fault_trace_host(const struct fault_trace *trace, int32_t node)
{
    size_t at = host_place(trace, node);
    return at < trace->n_hosts && trace->hosts[at].node == node ? trace->hosts[at].name : "";
}

void fault_trace_name_node(struct fault_trace *trace, int32_t node, const char *name)
{
    size_t at = host_place(trace, node);
    if (at < trace->n_hosts && trace->hosts[at].node == node)
        return;
    trace->hosts = memory_grow(trace->hosts, &trace->hosts_capacity, trace->n_hosts + 1, sizeof *trace->hosts);
    memmove(&trace->hosts[at + 1], &trace->hosts[at], (trace->n_hosts++ - at) * sizeof *trace->hosts);
    trace->hosts[at] = (struct fault_host){.node = node, .name = memory_copy_text(name)};
}

void fault_trace_cut(struct fault_trace *trace, nanos zero, nanos length, struct place at, struct diags *diags)
{
    size_t kept = 0, early = 0, n = trace->n_items;
    for (size_t i = 0; i < n; i++) {
        nanos time = trace->items[i].time;
        early += time < zero;
        if (time >= zero && (length == 0 || time - zero < length))
            trace->items[kept++] = trace->items[i];
    }
    trace->n_items = kept;
    if (early > 0)
        diag_note(diags, at, "left out: %zu fault%s before --from", early, early == 1 ? "" : "s");
    if (n - early > kept)
        diag_note(diags, at, "left out: %zu fault%s after --horizon", n - early - kept, n - early - kept == 1 ? "" : "s");
}

int32_t fault_trace_nodes(const struct fault_trace *trace)
{
    int32_t nodes = 0;
    for (size_t i = 0; i < trace->n_items; i++)
        if (trace->items[i].node >= nodes)
            nodes = trace->items[i].node + 1;
    return nodes;
}

/* --- reading --- */

enum column { TIME, NODE, KIND, DOWN, FACTOR, DETAIL, HOST, N_COLUMNS };

static const struct csv_column expected[N_COLUMNS] = {
    [TIME] = {"time_s", true},    [NODE] = {"node", true},      [KIND] = {"kind", false}, [DOWN] = {"down_s", true},
    [FACTOR] = {"factor", false}, [DETAIL] = {"detail", false}, [HOST] = {"host", false},
};

struct parser {
    struct csv_table table;
    int columns[N_COLUMNS];
    struct fault_trace_limits limits;
    struct fault_trace trace;
    nanos previous;
    size_t n_full; /* slow nodes and links at full speed */
    struct place first_full;
    struct diags *diags;
};

static struct place cell_place(const struct parser *parser, size_t row, enum column column)
{
    return csv_place(&parser->table, row, parser->columns[column]);
}

/* Plain decimal seconds, exactly: "3660", "12.5", "0.000000001". */
static bool seconds_exact(const char *text, nanos *value)
{
    nanos seconds;
    if (!nanos_parse_decimal(text, text + strlen(text), NANOS_PER_SECOND, &seconds) ||
        seconds / NANOS_PER_SECOND > MAX_TIME / NANOS_PER_SECOND)
        return false;
    *value = seconds;
    return true;
}

static bool cell_seconds(const struct parser *parser, size_t row, enum column column, nanos *value)
{
    if (seconds_exact(csv_cell(&parser->table, row, parser->columns[column]), value))
        return true;
    double seconds;
    if (csv_cell_number(&parser->table, row, parser->columns[column], 0, (double)(MAX_TIME / NANOS_PER_SECOND), &seconds,
                        parser->diags) != STATUS_OK)
        return false;
    *value = nanos_from_seconds(seconds);
    return true;
}

static bool cell_kind(const struct parser *parser, size_t row, enum fault_kind *kind)
{
    const char *text = csv_cell(&parser->table, row, parser->columns[KIND]);
    int parsed = *text ? kind_parse(text) : FAULT_NODE;
    if (parsed < 0) {
        char hint[64];
        diag_error(parser->diags, cell_place(parser, row, KIND), "unknown kind '%s'; %s", text,
                   name_hint(text, kind_names, N_FAULT_KINDS, "known are node, straggler, link and planned", hint, sizeof hint));
        return false;
    }
    *kind = (enum fault_kind)parsed;
    return true;
}

/* What is left of the speed. A lost node has none, whatever a row says: 0, 1 and nothing are the same there. */
static bool cell_speed(const struct parser *parser, size_t row, enum fault_kind kind, int32_t *speed)
{
    double factor = 1;
    if (*csv_cell(&parser->table, row, parser->columns[FACTOR]) &&
        csv_cell_number(&parser->table, row, parser->columns[FACTOR], 0, 1, &factor, parser->diags) != STATUS_OK)
        return false;
    bool whole = kind == FAULT_NODE || kind == FAULT_PLANNED;
    if (whole && factor > 0 && factor < 1) {
        diag_error(parser->diags, cell_place(parser, row, FACTOR),
                   "a lost node has no speed, so no factor; write kind straggler for a slow node");
        return false;
    }
    *speed = whole ? FULL_SPEED : (int32_t)lround(factor * FULL_SPEED);
    if (*speed == 0) {
        diag_error(parser->diags, cell_place(parser, row, FACTOR), "factor 0 leaves no speed; write kind node for a lost node");
        return false;
    }
    return true;
}

enum node_fate { NODE_KEPT, NODE_OUTSIDE, NODE_WRONG };

static enum node_fate cell_node(const struct parser *parser, size_t row, int32_t *node)
{
    const struct fault_trace_limits *limits = &parser->limits;
    int64_t value;
    if (csv_cell_integer(&parser->table, row, parser->columns[NODE], 0, MAX_NODE, &value, parser->diags) != STATUS_OK)
        return NODE_WRONG;
    *node = (int32_t)value;
    if (limits->keep == 0 || value < limits->keep)
        return NODE_KEPT;
    if (limits->drop || value < limits->known)
        return NODE_OUTSIDE;
    int32_t known = limits->known > limits->keep ? limits->known : limits->keep;
    diag_error(parser->diags, cell_place(parser, row, NODE),
               "node %" PRId64 " is not in the cluster; its nodes, with spares, are 0 to %" PRId32, value, known - 1);
    return NODE_WRONG;
}

/* A name given to a node, which it keeps. */
static void read_host(struct parser *parser, size_t row, int32_t node)
{
    const char *name = csv_cell(&parser->table, row, parser->columns[HOST]);
    if (!*name)
        return;
    fault_trace_name_node(&parser->trace, node, name);
    const char *kept = fault_trace_host(&parser->trace, node);
    if (strcmp(kept, name) != 0)
        diag_error(parser->diags, cell_place(parser, row, HOST),
                   "node %" PRId32 " is '%.80s' here and '%.80s' above; a node has one name", node, name, kept);
}

static void check_order(struct parser *parser, size_t row, nanos time)
{
    if (time < parser->previous)
        diag_error(parser->diags, cell_place(parser, row, TIME), "out of order: %s after %.10g s; sort the rows by time_s",
                   csv_cell(&parser->table, row, parser->columns[TIME]), nanos_to_seconds(parser->previous));
    else
        parser->previous = time;
}

static void read_row(struct parser *parser, size_t row)
{
    struct fault fault = {.line = csv_place(&parser->table, row, -1).line};
    bool time = cell_seconds(parser, row, TIME, &fault.time);
    if (time)
        check_order(parser, row, fault.time);
    enum node_fate fate = cell_node(parser, row, &fault.node);
    bool kind = cell_kind(parser, row, &fault.kind);
    bool down = cell_seconds(parser, row, DOWN, &fault.down);
    bool speed = kind && cell_speed(parser, row, fault.kind, &fault.speed);
    if (!time || !down || !speed || fate == NODE_WRONG)
        return;
    if (fate == NODE_OUTSIDE) {
        parser->trace.n_outside++;
        parser->trace.last_outside = fault.time;
        return;
    }
    bool slows = fault.kind == FAULT_STRAGGLER || fault.kind == FAULT_LINK;
    if (slows && fault.speed == FULL_SPEED && parser->n_full++ == 0)
        parser->first_full = cell_place(parser, row, FACTOR);
    read_host(parser, row, fault.node);
    fault_trace_add(&parser->trace, fault, csv_cell(&parser->table, row, parser->columns[DETAIL]));
}

enum status fault_trace_read(const char *path, struct fault_trace_limits limits, struct fault_trace *trace, struct diags *diags)
{
    struct parser parser = {.limits = limits, .diags = diags};
    size_t errors = diags->n_errors;
    enum status status = csv_table_read(path, &parser.table, diags);
    if (status != STATUS_OK)
        return status;
    status = csv_table_columns(&parser.table, expected, N_COLUMNS, parser.columns, diags);
    if (status == STATUS_OK) {
        csv_table_note_unknown_columns(&parser.table, expected, N_COLUMNS, diags);
        if (parser.table.open_end)
            diag_note(diags, (struct place){.file = parser.table.name},
                      "the last line has no end; if the file was cut short, the last fault may be wrong and others missing");
        for (size_t row = 0; row < parser.table.n_rows; row++)
            read_row(&parser, row);
        if (parser.n_full > 0)
            diag_warning(diags, parser.first_full,
                         "factor 1 slows nothing down (%zu row%s); write the remaining share of the speed, such as 0.5",
                         parser.n_full, parser.n_full == 1 ? "" : "s");
        status = diags->n_errors > errors ? STATUS_BAD_INPUT : STATUS_OK;
    }
    csv_table_free(&parser.table);
    if (status == STATUS_OK)
        *trace = parser.trace;
    else
        fault_trace_free(&parser.trace);
    return status;
}

/* --- writing --- */

/* Seconds as the reader takes them exactly: no exponent, no more digits than there are. */
static void write_seconds(FILE *out, bool first, nanos time)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%" PRId64, time / NANOS_PER_SECOND);
    nanos part = time % NANOS_PER_SECOND;
    if (part > 0) {
        n += snprintf(text + n, sizeof text - (size_t)n, ".%09" PRId64, part);
        while (text[n - 1] == '0')
            text[--n] = '\0';
    }
    csv_write_cell(out, first, text);
}

void fault_trace_write(const struct fault_trace *trace, FILE *out)
{
    const char *names[N_COLUMNS];
    for (int i = 0; i < N_COLUMNS; i++)
        names[i] = expected[i].name;
    csv_write_row(out, names, trace->n_hosts > 0 ? N_COLUMNS : HOST);
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        write_seconds(out, true, fault->time);
        csv_write_integer(out, false, fault->node);
        csv_write_cell(out, false, fault_kind_name(fault->kind));
        write_seconds(out, false, fault->down);
        if (fault->kind == FAULT_NODE || fault->kind == FAULT_PLANNED)
            csv_write_cell(out, false, "");
        else
            csv_write_number(out, false, (double)fault->speed / FULL_SPEED);
        csv_write_cell(out, false, fault_trace_detail(trace, fault));
        if (trace->n_hosts > 0)
            csv_write_cell(out, false, fault_trace_host(trace, fault->node));
        fputc('\n', out);
    }
}

/* --- by name --- */

enum status fault_trace_find(const char *name, char **path, bool *shipped, struct diags *diags)
{
    static const struct shipped traces = {.folder = "traces/faults", .endings = {".csv", ".csv.gz"}};
    char hint[512], *found = shipped_path(&traces, name, shipped);
    if (!found) {
        diag_error(diags, PLACE_NONE, "msim has no fault trace '%s', and there is no such file; %s", name,
                   shipped_hint(&traces, name, hint, sizeof hint));
        return STATUS_BAD_INPUT;
    }
    *path = found;
    return STATUS_OK;
}
