/* slurmctld's log: which node it set down or drained, and when that node was back. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "traces/fault/log_time.h"
#include "traces/fault/node_reason.h"
#include "traces/fault/trace_convert.h"
#include "traces/table/date.h"
#include "traces/table/node_list.h"

struct parser {
    struct fault_trace trace;
    struct host_table hosts;
    struct open_outages outages;
    struct log_clock clock;
    const struct convert_options *options;
    const char *path;
    size_t n_said; /* lines that were understood */
    struct diags *diags;
};

/* "[2025-03-01T10:05:00.123] ..." as slurmctld writes it, or the time of a syslog. */
static bool line_time(struct parser *parser, const char *line, int number, nanos *time)
{
    char date[20];
    const char *rest;
    if (*line == '[' && isdigit((unsigned char)line[1]) && strlen(line) > 20 && strchr(".]", line[20])) {
        snprintf(date, sizeof date, "%.19s", line + 1);
        if (local_time_parse(date, time))
            return true;
    }
    struct place at = {.file = parser->path, .line = number};
    return log_line_time(line, &parser->clock, at, time, &rest, parser->diags) != LOG_NO_TIME;
}

/* The list of nodes at `text`, up to a blank outside of brackets; what follows it. */
static const char *cut_list(const char *text, char list[NODE_NAME_SIZE])
{
    size_t n = 0;
    bool inside = false;
    for (; *text && (inside || !isspace((unsigned char)*text)); text++) {
        inside = *text == '[' || (inside && *text != ']');
        if (n + 1 < NODE_NAME_SIZE)
            list[n++] = *text;
    }
    list[n] = '\0';
    if (n > 0 && strchr(",:;.", list[n - 1]))
        list[n - 1] = '\0';
    return text;
}

enum change { CHANGE_DOWN, CHANGE_REBOOTED, CHANGE_DRAIN, CHANGE_REASON, CHANGE_ANSWERS, CHANGE_BACK };

static void apply(struct parser *parser, enum change change, const char *list, nanos time, const char *cause)
{
    enum { NODES_MAX = 1000000 };
    char name[NODE_NAME_SIZE];
    int64_t n = node_list_count(list);
    for (int64_t i = 0; i < n && n <= NODES_MAX; i++) {
        if (!node_list_name(list, i, name))
            continue;
        int32_t node = host_number(&parser->hosts, name, strlen(name));
        struct open_outage *outage = outage_of(&parser->outages, node);
        struct fault fault = {.time = time, .node = node, .speed = FULL_SPEED, .kind = FAULT_NODE};
        const char *why = *outage->reason ? outage->reason : cause;
        if (change == CHANGE_REASON)
            snprintf(outage->reason, sizeof outage->reason, "%s", cause);
        else if (change == CHANGE_BACK || (change == CHANGE_ANSWERS && outage->ends_by_answer))
            outage_end(&parser->outages, &parser->trace, node, time);
        if (change == CHANGE_DRAIN && !node_reason_is_failure(why))
            fault.kind = FAULT_PLANNED;
        if (change == CHANGE_DRAIN || change == CHANGE_DOWN || change == CHANGE_REBOOTED)
            outage_begin(&parser->outages, &parser->trace, fault, change == CHANGE_DOWN && !*outage->reason, why);
        if (change != CHANGE_REASON && change != CHANGE_ANSWERS)
            *outage_of(&parser->outages, node)->reason = '\0';
    }
    parser->n_said++;
}

/* What slurmctld says of nodes: the words before their names, those behind, and what they mean. */
static const struct phrase {
    const char *before, *behind;
    enum change change;
    const char *cause;
} phrases[] = {
    {"Nodes ", " not responding, setting DOWN", CHANGE_DOWN, "Not responding"},
    {"Node ", " not responding, setting DOWN", CHANGE_DOWN, "Not responding"},
    {"Node ", " unexpectedly rebooted", CHANGE_REBOOTED, "Node unexpectedly rebooted"},
    {" on failed node ", "", CHANGE_DOWN, "Node failed"},
    {" missing from batch node ", "", CHANGE_REBOOTED, "Batch job missing from its node"},
    {"Node ", " now responding", CHANGE_ANSWERS, ""},
    {"node ", " returned to service", CHANGE_BACK, ""},
    {"Node ", " returned to service", CHANGE_BACK, ""},
    {"Nodes ", " returned to service", CHANGE_BACK, ""},
    {"etting node ", " state to DOWN", CHANGE_DOWN, "Set down"},
    {"etting node ", " to DOWN", CHANGE_DOWN, "Set down"},
};

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* "update_node: node gpu031 state set to DRAINING", "... reason set to: Kill task failed" */
static bool read_update(struct parser *parser, const char *line, nanos time)
{
    char list[NODE_NAME_SIZE];
    const char *node = strstr(line, "node ");
    while (node && node > line && isalnum((unsigned char)node[-1]))
        node = strstr(node + 1, "node ");
    if (!node)
        return false;
    const char *rest = cut_list(node + strlen("node "), list);
    if (starts(rest, " reason set to: ")) {
        apply(parser, CHANGE_REASON, list, time, rest + strlen(" reason set to: "));
        return true;
    }
    if (!starts(rest, " state set to "))
        return false;
    const char *state = rest + strlen(" state set to ");
    if (starts(state, "RESUME") || starts(state, "IDLE") || starts(state, "UNDRAIN") || starts(state, "ALLOC"))
        apply(parser, CHANGE_BACK, list, time, "");
    else if (starts(state, "DRAIN"))
        apply(parser, CHANGE_DRAIN, list, time, "Drained");
    else if (starts(state, "DOWN") || starts(state, "FAIL") || starts(state, "ERROR"))
        apply(parser, CHANGE_DOWN, list, time, "Set down");
    return true;
}

static void read_line(struct parser *parser, const char *line, int number)
{
    char list[NODE_NAME_SIZE];
    nanos time;
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        const char *before = strstr(line, phrases[i].before);
        if (!before || !strstr(line, phrases[i].behind))
            continue;
        const char *rest = cut_list(before + strlen(phrases[i].before), list);
        if (!starts(rest, phrases[i].behind))
            continue;
        if (line_time(parser, line, number, &time))
            apply(parser, phrases[i].change, list, time, phrases[i].cause);
        return;
    }
    if (strstr(line, " set to") && line_time(parser, line, number, &time))
        (void)read_update(parser, line, time);
}

static void read_lines(struct parser *parser, char *bytes)
{
    int number = 1;
    for (char *line = bytes; *line; number++) {
        size_t length = strcspn(line, "\n");
        bool more = line[length] == '\n';
        line[length] = '\0';
        if (length > 0 && line[length - 1] == '\r')
            line[length - 1] = '\0';
        read_line(parser, line, number);
        line += length + more;
    }
}

enum status slurm_log_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                           struct diags *diags)
{
    enum { LIMIT = 1 << 30 };
    struct parser parser = {.options = options, .path = path, .diags = diags};
    struct place at = {.file = path};
    char *bytes;
    size_t n;
    enum status status = file_read(path, LIMIT, &bytes, &n, diags);
    if (status != STATUS_OK)
        return status;
    read_lines(&parser, bytes);
    free(bytes);
    outages_finish(&parser.outages, &parser.trace, options->down);
    host_table_name(&parser.hosts, &parser.trace);
    host_table_free(&parser.hosts);
    if (parser.n_said == 0) {
        diag_error(diags, at, "no line says that a node went down, such as 'Nodes gpu[017,055] not responding, setting DOWN'");
        fault_trace_free(&parser.trace);
        return STATUS_BAD_INPUT;
    }
    if (parser.outages.n_endless > 0)
        diag_note(diags, at, "%zu outage%s without an end: --down is taken for how long %s", parser.outages.n_endless,
                  parser.outages.n_endless == 1 ? "" : "s", parser.outages.n_endless == 1 ? "it is" : "they are");
    status = convert_finish(&parser.trace, options, NULL, -1, path, diags);
    if (status == STATUS_OK)
        *trace = parser.trace;
    return status;
}
