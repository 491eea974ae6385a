/* What the records of another system are, by the columns of their table, by its states or by their lines. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "traces/fault/log_time.h"
#include "traces/fault/trace_convert.h"
#include "traces/fault/xid.h"
#include "traces/table/csv.h"

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

/* Jobs and nodes may have the same columns (node, state, start, end): states tell them apart. */
static bool has_states_of_nodes(const char *bytes, size_t n, const char *path)
{
    struct csv_table table;
    struct diags problems = {0}; /* which the reader will tell */
    bool nodes = false;
    if (csv_table_parse(path, bytes, n, &table, &problems) == STATUS_OK) {
        nodes = node_trace_has_states(&table);
        csv_table_free(&table);
    }
    diags_free(&problems);
    return nodes;
}

static enum convert_source source_of(const char *bytes, size_t n, const char *line, const char *path, struct diags *diags)
{
    struct log_clock clock = {0};
    const char *rest;
    nanos time;
    bool xids = strstr(bytes, "NVRM: Xid") || strstr(bytes, "DCGM_FI_DEV_XID_ERRORS");
    enum convert_source table = table_of(line);
    bool log = log_line_time(line, &clock, (struct place){.file = path}, &time, &rest, diags) != LOG_NO_TIME;
    if (table == CONVERT_JOBS && has_states_of_nodes(bytes, n, path))
        return CONVERT_NODES;
    return table != CONVERT_UNKNOWN ? table : xids || log ? CONVERT_XID : CONVERT_UNKNOWN;
}

enum status convert_source_of(const char *path, enum convert_source *source, struct diags *diags)
{
    enum { LIMIT = 1 << 30 };
    char *bytes;
    size_t n;
    if (strcmp(path, "-") == 0) { /* what is read of it is gone */
        diag_error(diags, PLACE_NONE,
                   "the source of standard input is unknown; name it with --source: lanl, titan, jobs, nodes, xid or smi");
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
        diag_error(diags, (struct place){.file = path},
                   "the format of this file is not recognised; specify it with --source lanl, titan, jobs, nodes, xid or smi, or "
                   "write a fault trace with the columns time_s, node and down_s (seconds)");
        return STATUS_BAD_INPUT;
    }
    *source = found;
    return STATUS_OK;
}
