/* smi_trace.c - nvidia-smi's CSV of repeated queries: growing error counts, falling clocks. */
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "traces/fault/trace_convert.h"
#include "traces/table/csv.h"
#include "traces/table/date.h"

/* Column names carry units in brackets: "clocks.current.sm [MHz]". */
static int find(const struct csv_table *table, const char *prefix)
{
    for (int i = 0; i < table->n_columns; i++)
        if (strncmp(table->header[i], prefix, strlen(prefix)) == 0)
            return i;
    return -1;
}

/* Why a GPU runs below its clock, of NVML's clocks event reasons: what is wrong with it. Not counted are 0x1 idling, 0x2 clocks
 * that an application or administrator set, 0x4 the power cap, under which a loaded GPU usually runs, 0x10 sync boost and 0x100
 * display clocks. */
enum { HARDWARE_SLOWDOWN = 0x8, SOFTWARE_THERMAL = 0x20, HARDWARE_THERMAL = 0x40, POWER_BRAKE = 0x80 };
#define SICK_REASONS (HARDWARE_SLOWDOWN | SOFTWARE_THERMAL | HARDWARE_THERMAL | POWER_BRAKE)

/* Columns of one reason each hold "Active" or "Not Active". */
static const struct {
    const char *name;
    unsigned reason;
} single_reasons[] = {{"hw_slowdown", HARDWARE_SLOWDOWN},
                      {"sw_thermal_slowdown", SOFTWARE_THERMAL},
                      {"hw_thermal_slowdown", HARDWARE_THERMAL},
                      {"hw_power_brake_slowdown", POWER_BRAKE}};
enum { N_SINGLE = sizeof single_reasons / sizeof *single_reasons };

struct columns {
    int time, host, gpu, ecc, clock, clock_max, throttle;
    int single[N_SINGLE]; /* in place of throttle: a reason each */
};

/* What is known of one GPU. */
struct device {
    int32_t node;
    double ecc;
    bool counted; /* some row had a number of errors */
    bool slow;
    nanos slow_since, last;
    double slowest;
};

struct parser {
    const struct csv_table *table;
    const char *path;
    size_t n_capped;            /* rows that are slow for reasons that do not count */
    bool no_errors, no_reasons; /* of a file: nothing tells failures, or slow clocks */
    bool ecc_counted;           /* some row has a number of errors: GPUs without ECC say [N/A] */
    struct columns columns;
    struct host_table hosts, gpus;
    struct device *devices;
    size_t capacity;
    const struct convert_options *options;
    struct fault_trace trace;
    struct diags *diags;
};

/* "1980 MHz", "0", "[N/A]": the number, -1 none. */
static double number_of(const struct parser *parser, size_t row, int column)
{
    const char *text = csv_cell(parser->table, row, column);
    char *end;
    double value = strtod(text, &end);
    return end == text ? -1 : value;
}

/* "2024/03/03 12:01:02.345" */
static bool time_of(const char *text, nanos *time)
{
    char date[24];
    snprintf(date, sizeof date, "%.19s", text);
    for (char *p = date; *p; p++)
        if (*p == '/')
            *p = '-';
    return local_time_parse(date, time);
}

static struct device *device_of(struct parser *parser, size_t row, int32_t *node)
{
    char name[300];
    const char *host = parser->columns.host < 0 ? parser->path : csv_cell(parser->table, row, parser->columns.host);
    *node = host_number(&parser->hosts, host, strlen(host));
    snprintf(name, sizeof name, "%.200s/%.80s", host, csv_cell(parser->table, row, parser->columns.gpu));
    size_t gpu = (size_t)host_number(&parser->gpus, name, strlen(name)), before = parser->capacity;
    parser->devices = memory_grow(parser->devices, &parser->capacity, gpu + 1, sizeof *parser->devices);
    if (parser->capacity > before)
        memset(parser->devices + before, 0, (parser->capacity - before) * sizeof *parser->devices);
    return &parser->devices[gpu];
}

static void end_slow(struct parser *parser, struct device *device, int32_t node, nanos time)
{
    struct fault fault = {.time = device->slow_since, .down = time - device->slow_since, .node = node, .kind = FAULT_STRAGGLER};
    fault.speed = (int32_t)(device->slowest * FULL_SPEED);
    device->slow = false;
    if (fault.down > 0 && fault.speed > 0)
        fault_trace_add(&parser->trace, fault, "GPU clock throttled");
}

static unsigned long long reasons_of(const struct parser *parser, size_t row)
{
    unsigned long long reasons = strtoull(csv_cell(parser->table, row, parser->columns.throttle), NULL, 0);
    for (int i = 0; i < N_SINGLE; i++)
        if (strcmp(csv_cell(parser->table, row, parser->columns.single[i]), "Active") == 0)
            reasons |= single_reasons[i].reason;
    return reasons;
}

static void see_clock(struct parser *parser, struct device *device, size_t row, int32_t node, nanos time)
{
    double clock = number_of(parser, row, parser->columns.clock), top = number_of(parser, row, parser->columns.clock_max);
    unsigned long long reasons = reasons_of(parser, row);
    bool below = clock > 0 && top > 0 && clock < 0.95 * top, slow = below && (reasons & SICK_REASONS);
    parser->n_capped += below && !slow && reasons > 1;
    if (device->slow && !slow)
        end_slow(parser, device, node, time);
    if (slow && !device->slow)
        *device = (struct device){node, device->ecc, device->counted, true, time, time, 1};
    if (slow && clock / top < device->slowest)
        device->slowest = clock / top;
}

static void read_row(struct parser *parser, size_t row)
{
    nanos time;
    int32_t node;
    const char *text = csv_cell(parser->table, row, parser->columns.time);
    if (!time_of(text, &time)) {
        diag_error(parser->diags, csv_place(parser->table, row, parser->columns.time),
                   "'%.40s' is not a time; nvidia-smi writes 2024/03/03 12:01:02.345", text);
        return;
    }
    struct device *device = device_of(parser, row, &node);
    double ecc = number_of(parser, row, parser->columns.ecc);
    parser->ecc_counted |= ecc >= 0;
    if (device->counted && ecc > device->ecc)
        fault_trace_add(&parser->trace,
                        (struct fault){.time = time, .down = parser->options->down, .node = node, .speed = FULL_SPEED},
                        "Uncorrected ECC error");
    see_clock(parser, device, row, node, time);
    if (ecc >= 0) { /* the first number may be of a lifetime: what came before it is unknown */
        device->ecc = ecc;
        device->counted = true;
    }
    device->node = node;
    device->last = time;
}

/* Reasons are called event reasons since driver 535. */
static int find_reason(const struct csv_table *table, const char *name)
{
    char column[64];
    snprintf(column, sizeof column, "clocks_event_reasons.%s", name);
    int at = find(table, column);
    snprintf(column, sizeof column, "clocks_throttle_reasons.%s", name);
    return at >= 0 ? at : find(table, column);
}

static bool tells_slow(const struct columns *columns)
{
    bool reasons = columns->throttle >= 0;
    for (int i = 0; i < N_SINGLE; i++)
        reasons |= columns->single[i] >= 0;
    return columns->clock >= 0 && columns->clock_max >= 0 && reasons;
}

static bool find_columns(const struct csv_table *table, struct columns *columns, struct diags *diags)
{
    *columns = (struct columns){find(table, "timestamp"),
                                find(table, "host"),
                                find(table, "index"),
                                find(table, "ecc.errors.uncorrected"),
                                find(table, "clocks.current.sm"),
                                find(table, "clocks.max.sm"),
                                find_reason(table, "active"),
                                {0}};
    for (int i = 0; i < N_SINGLE; i++)
        columns->single[i] = find_reason(table, single_reasons[i].name);
    if (columns->time < 0)
        diag_error(diags, csv_header_place(table, 0), "no column timestamp; query it with --query-gpu=timestamp,index,...");
    bool something = columns->ecc >= 0 || tells_slow(columns);
    if (!something)
        diag_error(
            diags, csv_header_place(table, 0),
            "no column shows faults; query ecc.errors.uncorrected.aggregate.total, or clocks.current.sm with clocks.max.sm "
            "and clocks_event_reasons.active (clocks_throttle_reasons.active before driver 535)");
    return columns->time >= 0 && something;
}

static enum status read_file(struct parser *parser, const char *path)
{
    struct csv_table table;
    size_t errors = parser->diags->n_errors;
    enum status status = csv_table_read(path, &table, parser->diags);
    if (status != STATUS_OK)
        return status;
    parser->table = &table;
    parser->path = path;
    bool good = find_columns(&table, &parser->columns, parser->diags);
    parser->no_errors |= good && parser->columns.ecc < 0;
    parser->no_reasons |= good && !tells_slow(&parser->columns);
    if (good && parser->columns.host < 0)
        host_number(&parser->hosts, path, strlen(path)); /* also where nothing happens */
    for (size_t row = 0; good && row < table.n_rows; row++)
        read_row(parser, row);
    csv_table_free(&table);
    return parser->diags->n_errors > errors ? STATUS_BAD_INPUT : STATUS_OK;
}

static void tell(const struct parser *parser, const char *const *paths, int n_paths)
{
    const struct place at = {.file = paths[0]};
    if (n_paths > 1)
        diag_note(parser->diags, at, "%d files, %zu host%s, numbered in order of appearance; without a column host a file is one",
                  n_paths, parser->hosts.n, parser->hosts.n == 1 ? "" : "s");
    if (parser->no_errors)
        diag_note(parser->diags, at, "no column ecc.errors.uncorrected...: memory errors are not visible");
    else if (!parser->ecc_counted)
        diag_note(parser->diags, at, "ecc.errors.uncorrected... has no number: memory errors are not visible");
    if (parser->no_reasons)
        diag_note(parser->diags, at,
                  "slow GPUs are not visible without all of clocks.current.sm, clocks.max.sm and clocks_event_reasons.active "
                  "(clocks_throttle_reasons.active before driver 535)");
    if (parser->n_capped > 0)
        diag_note(
            parser->diags, at,
            "left out: %zu row%s of GPUs below their clocks for reasons that are no fault (power cap, clocks that were set, "
            "sync boost)",
            parser->n_capped, parser->n_capped == 1 ? "" : "s");
}

enum status smi_trace_read(const char *const *paths, int n_paths, const struct convert_options *options,
                           struct fault_trace *trace, struct diags *diags)
{
    size_t errors = diags->n_errors;
    struct parser parser = {.options = options, .diags = diags};
    for (int i = 0; i < n_paths; i++)
        if (read_file(&parser, paths[i]) != STATUS_OK)
            break;
    for (size_t i = 0; i < parser.gpus.n; i++) {
        if (parser.devices[i].slow)
            end_slow(&parser, &parser.devices[i], parser.devices[i].node, parser.devices[i].last);
    }
    bool good = diags->n_errors == errors;
    if (good)
        tell(&parser, paths, n_paths);
    host_table_name(&parser.hosts, &parser.trace);
    host_table_free(&parser.hosts);
    host_table_free(&parser.gpus);
    free(parser.devices);
    enum status status = good ? convert_finish(&parser.trace, options, NULL, -1, paths[0], diags) : STATUS_BAD_INPUT;
    if (status == STATUS_OK)
        *trace = parser.trace;
    else
        fault_trace_free(&parser.trace);
    return status;
}
