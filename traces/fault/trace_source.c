/* trace_source.c - recognises the records of another system by their columns, states or lines. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/file.h"
#include "model/base/memory.h"
#include "traces/fault/log_time.h"
#include "traces/fault/trace_convert.h"
#include "traces/fault/xid.h"
#include "traces/table/record_table.h"

/* Columns that a table of this kind has, in lower case and without what is neither letter nor digit; * stands for any end. */
static const struct {
    enum convert_source source;
    const char *columns[4];
} tables[] = {
    {CONVERT_LANL, {"system", "node", "start", "downtimemin"}},
    {CONVERT_TITAN, {"time", "location", "event"}},
    {CONVERT_SMI, {"timestamp", "ecc*"}},
    {CONVERT_SMI, {"timestamp", "clocks*"}},
    {CONVERT_NODES, {"nodename", "timestart", "state"}},
    {CONVERT_NODES, {"node", "state", "from"}},
    {CONVERT_NODES, {"host", "state", "from"}},
    {CONVERT_NODES, {"nodename", "state", "start"}},
    {CONVERT_NODES, {"reason", "timestamp", "nodelist"}},
    {CONVERT_EVENTS, {"lastseen", "reason", "object"}},
    {CONVERT_JOBS, {"state"}},
    {CONVERT_JOBS, {"status"}},
    {CONVERT_JOBS, {"jobstate"}},
};

static bool is_called(const char *cell, size_t n, const char *name)
{
    for (size_t i = 0; i < n && *name != '*'; i++)
        if (isalnum((unsigned char)cell[i]) && tolower((unsigned char)cell[i]) != *name++)
            return false;
    return *name == '\0' || *name == '*';
}

static bool has_column(const char *header, const char *name)
{
    static const char between[] = ",;|\t";
    for (const char *at = header;; at++) {
        size_t n = strcspn(at, between);
        if (is_called(at, n, name))
            return true;
        at += n;
        if (!*at)
            return false;
    }
}

static enum convert_source table_of(const char *header)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        bool all = true;
        for (int j = 0; j < 4 && tables[i].columns[j]; j++)
            all &= has_column(header, tables[i].columns[j]);
        if (all)
            return tables[i].source;
    }
    return CONVERT_UNKNOWN;
}

const char *const convert_source_names[] = {"lanl",  "titan",  "jobs", "xid",   "smi", "nodes",
                                            "slurm", "events", "bgl",  "table", NULL};

static bool is_fault_trace(const char *header)
{
    return has_column(header, "times") && has_column(header, "node");
}

/* A copy of the first line that is no comment, of a file in memory. */
static char *first_line(const char *bytes)
{
    while (*bytes == '#' || *bytes == '\n' || *bytes == '\r')
        bytes += *bytes == '#' ? strcspn(bytes, "\n") : 1;
    size_t n = strcspn(bytes, "\r\n");
    char *line = memory_new(n + 1, 1);
    memcpy(line, bytes, n);
    return line;
}

/* What a table is, by its columns and its cells: jobs and nodes may have the same columns (node, state, start, end), and states
 * tell them apart. */
static enum convert_source source_of_table(const char *bytes, size_t n, const char *path)
{
    struct record_table rows;
    struct diags problems = {0}; /* which the reader will tell */
    enum convert_source source = CONVERT_UNKNOWN;
    char header[4096] = "";
    if (record_table_parse(&rows, path, bytes, n, &problems) == STATUS_OK) {
        for (int i = 0; i < rows.table.n_columns; i++)
            text_append(header, sizeof header, "%s%s", i > 0 ? "|" : "", rows.table.header[i]);
        source = table_of(header);
        if (source == CONVERT_JOBS && node_trace_has_states(&rows.table))
            source = CONVERT_NODES;
        if (source == CONVERT_UNKNOWN && !is_fault_trace(header) && table_trace_fits(&rows.table))
            source = CONVERT_TABLE;
        record_table_close(&rows);
    }
    diags_free(&problems);
    return source;
}

/* Logs say what they are by what is in them. */
static enum convert_source source_of_log(const char *bytes)
{
    static const struct {
        enum convert_source source;
        const char *part;
    } parts[] = {
        {CONVERT_XID, "NVRM: Xid"},
        {CONVERT_XID, "DCGM_FI_DEV_XID_ERRORS"},
        {CONVERT_SLURM, " not responding, setting DOWN"},
        {CONVERT_SLURM, "update_node: node"},
        {CONVERT_SLURM, " returned to service"},
        {CONVERT_SLURM, " unexpectedly rebooted"},
        {CONVERT_SLURM, "slurmctld"},
        {CONVERT_BGL, " RAS KERNEL "},
        {CONVERT_BGL, " RAS APP "},
        {CONVERT_BGL, " RAS LINKCARD "},
        {CONVERT_XID, ": SXid ("},
        {CONVERT_XID, "NVRM:"},
        {CONVERT_XID, "amdgpu"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(bytes, parts[i].part))
            return parts[i].source;
    return CONVERT_UNKNOWN;
}

/* Measurements over time (telemetry) are no records of failures. What they are; NULL: not that. */
static const char *telemetry_of(const char *bytes, const char *line)
{
    if (*line == '{' && strstr(bytes, "\"resultType\""))
        return "an answer of Prometheus' query API";
    if (*line == '{' && strstr(bytes, "\"metric\"") && strstr(bytes, "\"values\""))
        return "exported series of metrics";
    if (strncmp(bytes + strspn(bytes, " \t\r\n"), "#Entity", 7) == 0 ||
        strncmp(bytes + strspn(bytes, " \t\r\n"), "# Entity", 8) == 0)
        return "the output of dcgmi dmon";
    return NULL;
}

static enum convert_source source_of(const char *bytes, size_t n, const char *line, const char *path, struct diags *diags)
{
    struct log_clock clock = {0};
    const char *rest;
    nanos time;
    if ((*line == '{' || *line == '[') &&
        (strstr(bytes, "\"involvedObject\"") || strstr(bytes, "\"regarding\"") || strstr(bytes, "\"__REALTIME_TIMESTAMP\"")))
        return CONVERT_EVENTS;
    enum convert_source table = source_of_table(bytes, n, path), log = source_of_log(bytes);
    if (table != CONVERT_UNKNOWN)
        return table;
    if (log != CONVERT_UNKNOWN)
        return log;
    bool timed = log_line_time(line, &clock, (struct place){.file = path}, &time, &rest, diags) != LOG_NO_TIME;
    return timed ? CONVERT_XID : CONVERT_UNKNOWN;
}

static bool refuse_telemetry(const char *bytes, const char *line, const char *path, struct diags *diags)
{
    const char *what = telemetry_of(bytes, line);
    if (what)
        diag_error(
            diags, (struct place){.file = path},
            "this is %s: measurements over time (telemetry), not records of failures; msim faults convert reads kernel logs "
            "(dmesg), tables of jobs and of nodes' states, slurmctld's log and Kubernetes' events",
            what);
    return what != NULL;
}

enum status convert_source_of(const char *path, enum convert_source *source, struct diags *diags)
{
    enum { LIMIT = 1 << 30 };
    char *bytes;
    size_t n;
    if (strcmp(path, "-") == 0) { /* what is read of it is gone */
        diag_error(diags, PLACE_NONE,
                   "the source of standard input is unknown; name it with --source: jobs, nodes, xid, smi, slurm, events, bgl, "
                   "table, lanl or titan");
        return STATUS_BAD_INPUT;
    }
    enum status status = file_read(path, LIMIT, &bytes, &n, diags);
    if (status != STATUS_OK)
        return status;
    if (bytes[strspn(bytes, " \t\r\n")] == '\0') {
        diag_error(diags, (struct place){.file = path}, "is empty");
        free(bytes);
        return STATUS_BAD_INPUT;
    }
    char *line = first_line(bytes);
    if (refuse_telemetry(bytes, line, path, diags)) {
        free(line);
        free(bytes);
        return STATUS_BAD_INPUT;
    }
    enum convert_source found = source_of(bytes, n, line, path, diags);
    bool trace = is_fault_trace(line);
    free(line);
    free(bytes);
    if (found == CONVERT_UNKNOWN && trace) {
        diag_error(diags, (struct place){.file = path},
                   "this is already a fault trace; give it to 'msim run --faults' or 'msim faults summary'");
        return STATUS_BAD_INPUT;
    }
    if (found == CONVERT_UNKNOWN) {
        diag_error(
            diags, (struct place){.file = path},
            "the format of this file is not recognised; specify it with --source jobs, nodes, xid, smi, slurm, events, bgl, "
            "table, lanl or titan; name the columns of a table with --map time=...,node=...; or write a fault trace with the "
            "columns time_s, node and down_s (seconds)");
        return STATUS_BAD_INPUT;
    }
    *source = found;
    return STATUS_OK;
}
