/* node_trace.c - tables of the states of nodes: a node that went down becomes a failure, a drained one planned maintenance. */
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/memory.h"
#include "traces/fault/node_reason.h"
#include "traces/fault/records.h"

/* Columns by Slurm's names (sacctmgr list event, sinfo -R) and those that people give them (record_word). */
static const char *const node_names[] = {"nodename", "node", "host", "hostname", "nodelist", "nodes", NULL};
static const char *const state_names[] = {"state", "status", "nodestate", NULL};
static const char *const start_names[] = {"timestart", "start", "starttime", "starts", "from", "begin", "timestamp", NULL};
static const char *const end_names[] = {"timeend", "end", "endtime", "ends", "to", "until", NULL};
static const char *const duration_names[] = {"duration", "durations", "durationsec", "durationseconds", "downs", NULL};
static const char *const reason_names[] = {"reason", "detail", "cause", NULL};

struct columns {
    int node, state, start, end, duration, reason;
};

struct parser {
    struct records records;
    struct columns columns;
    size_t n_other, n_open; /* rows in which a node was there; outages without an end */
    char there[120];        /* the states of the former, each once */
};

static bool find_columns(const struct csv_table *table, struct columns *columns, struct diags *diags)
{
    struct place at = csv_header_place(table, 0);
    size_t errors = diags->n_errors;
    *columns = (struct columns){.node = record_column(table, node_names),
                                .state = record_column(table, state_names),
                                .start = record_column(table, start_names),
                                .end = record_column(table, end_names),
                                .duration = record_column(table, duration_names),
                                .reason = record_column(table, reason_names)};
    if (columns->node < 0)
        diag_error(diags, at, "the column of nodes is missing; name it NodeName, node or host");
    if (columns->state < 0 && columns->reason < 0)
        diag_error(diags, at, "the column of node states (such as DOWN) is missing; name it State");
    if (columns->start < 0)
        diag_error(diags, at, "the column of start times is missing; name it TimeStart, start or from");
    return diags->n_errors == errors;
}

bool node_trace_has_states(const struct csv_table *table)
{
    static const char *const begins[] = {"down",  "drain",  "drng",    "up",       "idle",      "alloc",  "mix",
                                         "maint", "reboot", "offline", "notready", "unhealthy", "healthy"};
    int node = record_column(table, node_names), state = record_column(table, state_names);
    char word[80];
    for (size_t row = 0; node >= 0 && state >= 0 && row < table->n_rows; row++) {
        record_word(csv_cell(table, row, state), word, sizeof word);
        for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
            if (strncmp(word, begins[i], strlen(begins[i])) == 0)
                return true;
    }
    return false;
}

/* Whether a node in this state is away, and how it went. Down, failing or not answering it fails what runs on it, unless that is
 * for maintenance or a reboot that was asked for; drained it takes nothing new, which is announced unless the reason says that
 * something broke. Powered down by Slurm to save energy, idle, allocated or mixed it is there. Without a state (sinfo -R lists
 * nodes that are away) the reason decides alone. */
static bool away_in(const char *state, const char *reason, enum fault_kind *kind)
{
    static const char *const power[] = {"power", NULL}, *const asked[] = {"maint", "reboot", NULL};
    static const char *const failed[] = {"down", "fail", "error", "noresp", "notresp", "notready", "unreach", "unhealthy", NULL};
    static const char *const announced[] = {"drain", "drng", "offline", "schedulingdisabled", NULL};
    char word[80];
    record_word(state, word, sizeof word);
    bool drained = !*word || record_has_any(word, announced);
    bool fails = record_has_any(word, failed) && !record_has_any(word, power) && !record_has_any(word, asked);
    fails |= drained && !record_has_any(word, asked) && node_reason_is_failure(reason);
    *kind = fails ? FAULT_NODE : FAULT_PLANNED;
    return fails || drained || record_has_any(word, asked);
}

/* How long a state lasted that has no end; false: a cell is wrong, and told. */
static bool read_duration(struct parser *parser, size_t row, struct fault *fault)
{
    int column = parser->columns.duration;
    fault->down = parser->records.options->down;
    if (record_is_open(csv_cell(&parser->records.rows.table, row, column))) {
        parser->n_open++;
        return true;
    }
    return records_duration(&parser->records, row, column, &fault->down);
}

/* False: a cell is wrong, and told. */
static bool read_times(struct parser *parser, size_t row, struct fault *fault)
{
    nanos end;
    const struct columns *columns = &parser->columns;
    if (!record_table_time(&parser->records.rows, row, columns->start, &fault->time))
        return false;
    if (record_is_open(csv_cell(&parser->records.rows.table, row, columns->end)))
        return read_duration(parser, row, fault);
    if (!record_table_time(&parser->records.rows, row, columns->end, &end))
        return false;
    fault->down = end - fault->time;
    if (fault->down >= 0 && fault->down <= FAULT_TRACE_LONGEST)
        return true;
    diag_error(parser->records.diags, csv_place(&parser->records.rows.table, row, columns->end), "the state ends %s",
               fault->down < 0 ? "before it begins" : "more than 100 years later");
    return false;
}

/* The reason, without who gave it and when ("Not responding [slurm@2025-03-04T05:06:07]"); the state where there is none. */
static void cause_of(const struct parser *parser, size_t row, char *cause, size_t size)
{
    const char *reason = csv_cell(&parser->records.rows.table, row, parser->columns.reason);
    size_t n = strcspn(reason, "[");
    while (n > 0 && reason[n - 1] == ' ')
        n--;
    bool said = n > 0 && !(n == 4 && strncmp(reason, "None", 4) == 0);
    const char *text = said ? reason : csv_cell(&parser->records.rows.table, row, parser->columns.state);
    size_t length = said ? n : strlen(text);
    length = length < size ? length : size - 1;
    memcpy(cause, text, length);
    cause[length] = '\0';
}

static void leave_out(struct parser *parser, const char *state)
{
    char word[24] = "";
    size_t n = strlen(text_append(word, sizeof word, "%s", state));
    parser->n_other++;
    for (const char *at = parser->there; (at = strstr(at, word)) != NULL; at += n)
        if ((at == parser->there || at[-1] == ' ') && (at[n] == ',' || at[n] == '\0'))
            return;
    text_append(parser->there, sizeof parser->there, "%s%s", *parser->there ? ", " : "", word);
}

static void read_row(struct parser *parser, size_t row)
{
    struct fault fault = {.speed = FULL_SPEED};
    char cause[64];
    const char *name = csv_cell(&parser->records.rows.table, row, parser->columns.node);
    if (*name == '\0') { /* of the cluster as a whole */
        parser->records.trace.n_outside++;
        return;
    }
    const char *state = csv_cell(&parser->records.rows.table, row, parser->columns.state);
    if (parser->columns.state >= 0 && !*state)
        state = "no state";
    if (!away_in(state, csv_cell(&parser->records.rows.table, row, parser->columns.reason), &fault.kind)) {
        leave_out(parser, state);
        return;
    }
    if (!read_times(parser, row, &fault))
        return;
    cause_of(parser, row, cause, sizeof cause);
    if (strpbrk(name, ",[+")) { /* several, or cut */
        if (records_add(&parser->records, name, fault, cause) == 0 && !records_is_cut(&parser->records, name))
            parser->records.trace.n_outside++;
        return;
    }
    fault.node = host_number(&parser->records.hosts, name, strlen(name));
    fault_trace_add(&parser->records.trace, fault, cause);
}

static int by_node_and_time(const void *a, const void *b)
{
    const struct fault *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind == FAULT_NODE ? -1 : 1;
    return x->down > y->down ? -1 : x->down < y->down;
}

/* A node that goes from one such state to another stays away: one outage, of the first one's kind and cause. */
static void join(struct fault_trace *trace, nanos merge)
{
    size_t kept = 0;
    if (trace->n_items == 0)
        return;
    qsort(trace->items, trace->n_items, sizeof *trace->items, by_node_and_time);
    for (size_t i = 1; i < trace->n_items; i++) {
        struct fault *last = &trace->items[kept];
        const struct fault *next = &trace->items[i];
        nanos end = last->time + last->down, next_end = next->time + next->down;
        if (next->node == last->node && next->time - end <= merge)
            last->down = (next_end > end ? next_end : end) - last->time;
        else
            trace->items[++kept] = *next;
    }
    trace->n_items = kept + 1;
}

static void tell(const struct parser *parser)
{
    const struct place at = {.file = parser->records.rows.table.name};
    if (parser->n_other > 0)
        diag_note(parser->records.diags, at, "left out: %zu row%s of available nodes (%s)", parser->n_other,
                  parser->n_other == 1 ? "" : "s", parser->there);
    if (parser->n_open > 0)
        diag_note(parser->records.diags, at, "%zu outage%s without an end: --down is taken for how long %s", parser->n_open,
                  parser->n_open == 1 ? "" : "s", parser->n_open == 1 ? "it is" : "they are");
    record_table_tell_zones(&parser->records.rows);
}

enum status node_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                            struct diags *diags)
{
    struct parser parser = {.n_open = 0};
    struct records *records = &parser.records;
    enum status status = records_open(records, path, options, diags);
    if (status != STATUS_OK)
        return status;
    bool good = find_columns(&records->rows.table, &parser.columns, diags);
    for (size_t row = 0; good && row < records->rows.table.n_rows; row++)
        read_row(&parser, row);
    if (record_table_good(&records->rows))
        tell(&parser);
    join(&records->trace, options->merge);
    return records_finish(records, 0, trace); /* joined already */
}
