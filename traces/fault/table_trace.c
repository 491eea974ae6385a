/* Tables of failures that other people keep: a time, a node, and perhaps an end or a duration. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "traces/fault/records.h"
#include "traces/fault/xid.h"

enum column { TIME, NODE, END, DOWN, KIND, FACTOR, DETAIL, XID, N_COLUMNS };

/* The names of our columns, as --map has them, and the usual ones (record_word). */
static const struct {
    const char *name;
    const char *const *usual;
} columns[N_COLUMNS] = {
    [TIME] = {"time", (const char *const[]){"downat",    "failedat",   "failuretime", "failtime",  "timedown", "outagestart",
                                            "start",     "starttime",  "starts",      "timestart", "time",     "times",
                                            "timestamp", "datetime",   "date",        "begin",     "from",     "occurredat",
                                            "eventtime", "detectedat", "reportedat",  NULL}},
    [NODE] = {"node", (const char *const[]){"node", "nodename", "nodeid", "host", "hostname", "server", "machine", "machineid",
                                            "instance", "nodelist", "nodes", NULL}},
    [END] = {"end", (const char *const[]){"upat", "recoveredat", "repairedat", "restoredat", "resolvedat", "fixedat", "backat",
                                          "timeup", "outageend", "end", "endtime", "ends", "timeend", "until", "to", NULL}},
    [DOWN] = {"down", (const char *const[]){NULL}},
    [KIND] = {"kind", (const char *const[]){"kind", NULL}},
    [FACTOR] = {"factor", (const char *const[]){"factor", NULL}},
    [DETAIL] = {"detail", (const char *const[]){"detail", "cause", "rootcause", "reason", "error", "errortype", "failuretype",
                                                "faulttype", "failure", "component", "category", "description", "message",
                                                "event", "eventtype", "failurecause", "type", NULL}},
    [XID] = {"xid", (const char *const[]){"xid", "xiderror", "xidcode", NULL}},
};

/* "downtime_min" is 60 s, "repair (h)" 3600 s; 0: no duration. A name that the user gives may be that of a unit alone. */
static double unit_of(const char *header, bool alone)
{
    static const char *const things[] = {"timetorepair", "repairtime", "downtime", "duration", "outage",
                                         "repair",       "down",       "ttr",      ""};
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1},      {"s", 1},      {"sec", 1},      {"secs", 1},     {"seconds", 1},
                 {"m", 60},    {"min", 60},   {"mins", 60},    {"minutes", 60}, {"h", 3600},
                 {"hr", 3600}, {"hrs", 3600}, {"hours", 3600}, {"d", 86400},    {"days", 86400}};
    char word[64];
    record_word(header, word, sizeof word);
    for (size_t i = 0; i < sizeof things / sizeof *things - !alone; i++) {
        size_t n = strlen(things[i]);
        if (strncmp(word, things[i], n) != 0)
            continue;
        for (size_t j = 0; j < sizeof units / sizeof *units; j++)
            if (strcmp(word + n, units[j].name) == 0)
                return units[j].seconds;
    }
    return 0;
}

static int down_column(const struct csv_table *table, double *unit)
{
    for (int i = 0; i < table->n_columns; i++) {
        *unit = unit_of(table->header[i], false);
        if (*unit > 0)
            return i;
    }
    return -1;
}

bool table_trace_fits(const struct csv_table *table)
{
    static const char *const states[] = {"state", "status", "jobstate", NULL};
    return record_column(table, columns[TIME].usual) >= 0 && record_column(table, columns[NODE].usual) >= 0 &&
           record_column(table, states) < 0;
}

struct parser {
    struct records records;
    int columns[N_COLUMNS];
    double unit; /* of the column of durations, in seconds */
    size_t n_open, n_harmless;
};

/* One "time=started" of --map. */
static void map_column(struct parser *parser, const char *text)
{
    struct diags *diags = parser->records.diags;
    const struct csv_table *table = &parser->records.rows.table;
    const char *equals = strchr(text, '=');
    size_t n = equals ? (size_t)(equals - text) : 0;
    for (int i = 0; i < N_COLUMNS && equals; i++) {
        if (strlen(columns[i].name) != n || strncmp(columns[i].name, text, n) != 0)
            continue;
        parser->columns[i] = csv_table_column(table, equals + 1);
        if (parser->columns[i] < 0)
            diag_error(diags, csv_header_place(table, 0), "--map: the table has no column '%.60s'", equals + 1);
        else if (i == DOWN)
            parser->unit = fmax(unit_of(equals + 1, true), 1);
        return;
    }
    diag_error(
        diags, PLACE_NONE,
        "--map: '%.60s' is no column; write our name, an equals sign and yours, such as time=started,node=server; ours are "
        "time, node, end, down, kind, factor, detail and xid",
        text);
}

static bool find_columns(struct parser *parser)
{
    const struct csv_table *table = &parser->records.rows.table;
    const struct convert_options *options = parser->records.options;
    for (int i = 0; i < N_COLUMNS; i++)
        parser->columns[i] = record_column(table, columns[i].usual);
    parser->columns[DOWN] = down_column(table, &parser->unit);
    for (int i = 0; i < options->n_map; i++)
        map_column(parser, options->map[i]);
    if (!record_table_good(&parser->records.rows))
        return false;
    if (parser->columns[TIME] < 0)
        diag_error(parser->records.diags, csv_header_place(table, 0),
                   "the column of times is missing; name it time, start or down_at, or specify --map time=NAME");
    if (parser->columns[NODE] < 0)
        diag_error(parser->records.diags, csv_header_place(table, 0),
                   "the column of nodes is missing; name it node or host, or specify --map node=NAME");
    return record_table_good(&parser->records.rows);
}

/* How long; false: a cell is wrong, and told. */
static bool read_down(struct parser *parser, size_t row, struct fault *fault)
{
    struct record_table *rows = &parser->records.rows;
    const char *end = csv_cell(&rows->table, row, parser->columns[END]),
               *down = csv_cell(&rows->table, row, parser->columns[DOWN]);
    nanos until;
    fault->down = parser->records.options->down;
    if (*end && !record_is_open(end)) {
        if (!record_table_time(rows, row, parser->columns[END], &until))
            return false;
        fault->down = until - fault->time;
        if (fault->down >= 0 && fault->down <= FAULT_TRACE_LONGEST)
            return true;
        diag_error(rows->diags, csv_place(&rows->table, row, parser->columns[END]), "the failure ends %s",
                   fault->down < 0 ? "before it begins" : "more than 100 years later");
        return false;
    }
    if (*down && (strcmp(down, "0") == 0 || !record_is_open(down))) {
        nanos longest = (nanos)((double)FAULT_TRACE_LONGEST / parser->unit);
        if (!record_table_duration(rows, row, parser->columns[DOWN], longest, &fault->down))
            return false;
        if (!strchr(down, ':')) /* a clock time has its own unit */
            fault->down = (nanos)((double)fault->down * parser->unit);
        return true;
    }
    parser->n_open++;
    return true;
}

static bool read_kind(struct parser *parser, size_t row, struct fault *fault)
{
    struct record_table *rows = &parser->records.rows;
    const char *kind = csv_cell(&rows->table, row, parser->columns[KIND]);
    double factor = 1;
    for (int i = 0; i < N_FAULT_KINDS; i++)
        if (strcmp(kind, fault_kind_name((enum fault_kind)i)) == 0)
            fault->kind = (enum fault_kind)i;
    bool slow = fault->kind == FAULT_STRAGGLER || fault->kind == FAULT_LINK;
    if (slow && *csv_cell(&rows->table, row, parser->columns[FACTOR]) &&
        csv_cell_number(&rows->table, row, parser->columns[FACTOR], 1e-6, 1, &factor, rows->diags) != STATUS_OK)
        return false;
    fault->speed = (int32_t)(factor * FULL_SPEED);
    return true;
}

/* An Xid says whether its node is away; false: it ends nothing. */
static bool read_xid(const struct parser *parser, size_t row, const char **detail)
{
    const char *text = csv_cell(&parser->records.rows.table, row, parser->columns[XID]);
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || *end || number < 1 || number > XID_LARGEST)
        return true;
    enum xid_class class = xid_classify((int)number, detail);
    return class > XID_APPLICATION;
}

static void read_row(struct parser *parser, size_t row)
{
    struct record_table *rows = &parser->records.rows;
    struct fault fault = {.kind = FAULT_NODE, .speed = FULL_SPEED};
    const char *node = csv_cell(&rows->table, row, parser->columns[NODE]);
    const char *detail = csv_cell(&rows->table, row, parser->columns[DETAIL]);
    if (!*node) {
        parser->records.trace.n_outside++;
        return;
    }
    if (!record_table_time(rows, row, parser->columns[TIME], &fault.time) || !read_down(parser, row, &fault) ||
        !read_kind(parser, row, &fault))
        return;
    if (!read_xid(parser, row, &detail)) {
        parser->n_harmless++;
        return;
    }
    if (strpbrk(node, ",[")) {
        parser->records.trace.n_outside += records_add(&parser->records, node, fault, detail) == 0;
        return;
    }
    fault.node = host_number(&parser->records.hosts, node, strlen(node));
    fault_trace_add(&parser->records.trace, fault, detail);
}

static void tell(const struct parser *parser)
{
    const struct csv_table *table = &parser->records.rows.table;
    struct diags *diags = parser->records.diags;
    struct place at = {.file = table->name};
    char text[256] = "";
    for (int i = 0; i < N_COLUMNS; i++)
        if (parser->columns[i] >= 0)
            text_append(text, sizeof text, "%s%s=%.40s", *text ? ", " : "", columns[i].name, table->header[parser->columns[i]]);
    diag_note(diags, at, "read as a table of failures, with the columns %s", text);
    if (parser->n_open > 0)
        diag_note(diags, at, "%zu failure%s without an end: --down is taken for how long %s", parser->n_open,
                  parser->n_open == 1 ? "" : "s", parser->n_open == 1 ? "it is" : "they are");
    if (parser->n_harmless > 0)
        diag_note(diags, at, "left out: %zu Xid%s that take no node away", parser->n_harmless,
                  parser->n_harmless == 1 ? "" : "s");
    record_table_tell_zones(&parser->records.rows);
}

enum status table_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                             struct diags *diags)
{
    struct parser parser = {.n_open = 0};
    enum status status = records_open(&parser.records, path, options, diags);
    if (status != STATUS_OK)
        return status;
    bool good = find_columns(&parser);
    for (size_t row = 0; good && row < parser.records.rows.table.n_rows; row++)
        read_row(&parser, row);
    if (record_table_good(&parser.records.rows))
        tell(&parser);
    return records_finish(&parser.records, options->merge, trace);
}
