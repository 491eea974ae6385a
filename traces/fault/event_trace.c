/*
 * Kubernetes' events of nodes, also node-problem-detector's: as JSON (a list, an array, or one event behind the other), or as the
 * text of kubectl get events. Lines of journalctl -o json are read alike.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "traces/fault/kernel_event.h"
#include "traces/fault/trace_convert.h"
#include "traces/table/date.h"
#include "traces/table/record_table.h"

enum { LIMIT = 1 << 30 };

struct event {
    nanos time;
    int32_t node;
    size_t order;
    bool warning;
    char *reason, *message;
};

struct parser {
    struct host_table hosts;
    struct event *events;
    size_t n_events, capacity;
    size_t n_elsewhere, n_timeless, n_other; /* of other objects than nodes; without a time; of nodes, and no failure */
    struct fault_trace trace;
    struct open_outages outages;
    const struct convert_options *options;
    const char *path;
    struct diags *diags;
};

static void keep(struct parser *parser, nanos time, const char *node, bool warning, const char *reason, const char *message)
{
    parser->events = memory_grow(parser->events, &parser->capacity, parser->n_events + 1, sizeof *parser->events);
    parser->events[parser->n_events] = (struct event){.time = time,
                                                      .node = host_number(&parser->hosts, node, strlen(node)),
                                                      .order = parser->n_events,
                                                      .warning = warning,
                                                      .reason = memory_copy_text(reason),
                                                      .message = memory_copy_text(message)};
    parser->n_events++;
}

/* --- JSON --- */

static const char *text_in(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool time_in(const json_t *object, const char *key, nanos *time)
{
    bool zoned;
    return zoned_time_parse(text_in(object, key), time, &zoned);
}

/* A line of journalctl -o json: microseconds since 1970, a host, a message. False: it is none. */
static bool read_journal(struct parser *parser, const json_t *entry)
{
    const char *time = text_in(entry, "__REALTIME_TIMESTAMP"), *host = text_in(entry, "_HOSTNAME");
    char *end;
    double microseconds = strtod(time, &end);
    if (end == time || *end || !*host || !(microseconds >= 0 && microseconds < 7.25e15))
        return false;
    keep(parser, nanos_from_seconds(microseconds * 1e-6), host, true, "", text_in(entry, "MESSAGE"));
    return true;
}

/* An event that repeats is there at its first and at its last time. */
static void read_object(struct parser *parser, const json_t *event)
{
    const json_t *of = json_object_get(event, "involvedObject"), *series = json_object_get(event, "series");
    of = of ? of : json_object_get(event, "regarding");
    const char *message = text_in(event, "message"), *node = text_in(of, "name"), *type = text_in(event, "type");
    message = *message ? message : text_in(event, "note");
    nanos first, last;
    if (!of && read_journal(parser, event))
        return;
    if (!of)
        return;
    if (strcmp(text_in(of, "kind"), "Node") != 0 || !*node) {
        parser->n_elsewhere++;
        return;
    }
    bool has_first = time_in(event, "firstTimestamp", &first) || time_in(event, "eventTime", &first) ||
                     time_in(event, "deprecatedFirstTimestamp", &first);
    bool has_last = time_in(event, "lastTimestamp", &last) || time_in(series, "lastObservedTime", &last) ||
                    time_in(event, "deprecatedLastTimestamp", &last);
    if (!has_first && !has_last && !time_in(json_object_get(event, "metadata"), "creationTimestamp", &first)) {
        parser->n_timeless++;
        return;
    }
    bool warning = strcmp(type, "Normal") != 0;
    if (!(has_last && !has_first))
        keep(parser, first, node, warning, text_in(event, "reason"), message);
    if (has_last && (!has_first || last != first))
        keep(parser, last, node, warning, text_in(event, "reason"), message);
}

/* A list of Kubernetes, an array, or an event. */
static void read_value(struct parser *parser, const json_t *value)
{
    const json_t *items = json_is_array(value) ? value : json_object_get(value, "items");
    if (!items) {
        read_object(parser, value);
        return;
    }
    for (size_t i = 0; i < json_array_size(items); i++)
        read_object(parser, json_array_get(items, i));
}

static void read_json(struct parser *parser, const char *bytes, size_t n)
{
    size_t at = 0;
    json_error_t error;
    while (at < n && bytes[at + strspn(bytes + at, " \t\r\n")] != '\0') {
        json_t *value = json_loadb(bytes + at, n - at, JSON_DISABLE_EOF_CHECK, &error);
        if (!value) {
            diag_error(parser->diags, (struct place){.file = parser->path}, "is not JSON: %s", error.text);
            return;
        }
        read_value(parser, value);
        json_decref(value);
        at += (size_t)error.position;
    }
}

/* --- text --- */

/* "5m", "2d3h", "90s", "5m (x3 over 10m)"; false: it is no age. */
static bool read_age(const char *text, nanos *age)
{
    static const char units[] = "smhdy";
    static const nanos seconds[] = {1, 60, 3600, 86400, 365 * 86400};
    const char *begin = text;
    *age = 0;
    while (isdigit((unsigned char)*text)) {
        char *end;
        long n = strtol(text, &end, 10);
        const char *unit = *end ? strchr(units, *end) : NULL;
        if (!unit || n > 1000000)
            return false;
        *age += n * seconds[unit - units] * NANOS_PER_SECOND;
        text = end + 1;
    }
    return text > begin && (*text == '\0' || *text == ' ');
}

static void read_text(struct parser *parser, const char *bytes, size_t n)
{
    static const nanos now = FAULT_TRACE_LONGEST; /* the text has ages alone */
    static const char *const seen_names[] = {"lastseen", "age", NULL}, *const reason_names[] = {"reason", NULL},
                             *const object_names[] = {"object", NULL}, *const message_names[] = {"message", NULL},
                             *const type_names[] = {"type", NULL};
    struct record_table rows;
    if (record_table_parse(&rows, parser->path, bytes, n, parser->diags) != STATUS_OK)
        return;
    const struct csv_table *table = &rows.table;
    int seen = record_column(table, seen_names), reason = record_column(table, reason_names);
    int object = record_column(table, object_names), message = record_column(table, message_names);
    int type = record_column(table, type_names);
    if (seen < 0 || reason < 0 || object < 0)
        diag_error(parser->diags, csv_header_place(table, 0), "events have the columns LAST SEEN, REASON and OBJECT");
    for (size_t row = 0; seen >= 0 && reason >= 0 && object >= 0 && row < table->n_rows; row++) {
        const char *node = csv_cell(table, row, object);
        bool zoned;
        nanos time, age;
        bool named = strncasecmp(node, "node/", 5) == 0 && node[5];
        if (!named)
            parser->n_elsewhere++;
        else if (read_age(csv_cell(table, row, seen), &age))
            keep(parser, now - age, node + 5, strcmp(csv_cell(table, row, type), "Normal") != 0, csv_cell(table, row, reason),
                 csv_cell(table, row, message));
        else if (zoned_time_parse(csv_cell(table, row, seen), &time, &zoned))
            keep(parser, time, node + 5, strcmp(csv_cell(table, row, type), "Normal") != 0, csv_cell(table, row, reason),
                 csv_cell(table, row, message));
        else
            parser->n_timeless++;
    }
    record_table_close(&rows);
}

/* --- what they mean --- */

/* Reasons of events and of node-problem-detector's conditions, in the form of record_word. */
static bool names_failure(const char *reason)
{
    static const char *const parts[] = {"xid",         "gpu",        "nvlink",      "nvswitch", "ecc",       "hardware",
                                        "kernelpanic", "kernelhang", "kerneldead",  "readonly", "nicdown",   "infiniband",
                                        "pcie",        "nvme",       "amdgpu",      "rdma",     "unhealthy", "machinecheck",
                                        "hwerror",     "nodedown",   "nodeunreach", "nodelost", "powerfail", NULL};
    char word[80];
    record_word(reason, word, sizeof word);
    return record_has_any(word, parts);
}

static void add_failure(struct parser *parser, const struct event *event, enum xid_class class, const char *cause)
{
    struct fault fault = {.time = event->time, .node = event->node, .speed = FULL_SPEED, .kind = FAULT_NODE};
    fault.down = class == XID_APPLICATION ? 0 : parser->options->down;
    fault_trace_add(&parser->trace, fault, cause);
}

static void apply(struct parser *parser, const struct event *event)
{
    struct kernel_event kernel;
    struct fault fault = {.time = event->time, .node = event->node, .speed = FULL_SPEED, .kind = FAULT_NODE};
    struct open_outage *outage = outage_of(&parser->outages, event->node);
    bool answers = strcmp(event->reason, "NodeReady") == 0;
    if (kernel_event_find(event->message, &kernel) && kernel.number >= 0) {
        if (kernel.class != XID_UNKNOWN && kernel.class != XID_INFORMATION)
            add_failure(parser, event, kernel.class, kernel.cause);
        else
            parser->n_other++;
    } else if (strcmp(event->reason, "NodeNotReady") == 0) {
        outage_begin(&parser->outages, &parser->trace, fault, true, event->reason);
    } else if (strcmp(event->reason, "NodeNotSchedulable") == 0) {
        fault.kind = FAULT_PLANNED;
        outage_begin(&parser->outages, &parser->trace, fault, false, event->reason);
    } else if (answers || strcmp(event->reason, "NodeSchedulable") == 0) {
        if (outage->open && outage->ends_by_answer == answers)
            outage_end(&parser->outages, &parser->trace, event->node, event->time);
    } else if (strcmp(event->reason, "Rebooted") == 0) {
        if (!outage->open)
            add_failure(parser, event, XID_RESET, "Node rebooted");
    } else if (event->warning && names_failure(event->reason)) {
        add_failure(parser, event, XID_RESET, event->reason);
    } else {
        parser->n_other++;
    }
}

static int event_compare(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void tell(const struct parser *parser, bool ages)
{
    struct place at = {.file = parser->path};
    if (parser->n_elsewhere > 0)
        diag_note(parser->diags, at, "left out: %zu event%s of pods and other objects than nodes", parser->n_elsewhere,
                  parser->n_elsewhere == 1 ? "" : "s");
    if (parser->n_other > 0)
        diag_note(parser->diags, at, "left out: %zu event%s of nodes that %s no failure", parser->n_other,
                  parser->n_other == 1 ? "" : "s", parser->n_other == 1 ? "is" : "are");
    if (parser->n_timeless > 0)
        diag_note(parser->diags, at, "left out: %zu event%s of nodes without a time", parser->n_timeless,
                  parser->n_timeless == 1 ? "" : "s");
    if (ages)
        diag_note(parser->diags, at,
                  "kubectl's text has ages instead of times: time 0 is the oldest failure; -o json has the times");
    if (parser->outages.n_endless > 0)
        diag_note(parser->diags, at, "%zu outage%s without an end: --down is taken for how long %s", parser->outages.n_endless,
                  parser->outages.n_endless == 1 ? "" : "s", parser->outages.n_endless == 1 ? "it is" : "they are");
}

/* Time 0 of ages is the first event; of times the usual one. */
static nanos zero_of(const struct fault_trace *trace, bool ages)
{
    nanos first = -1;
    for (size_t i = 0; ages && i < trace->n_items; i++)
        if (first < 0 || trace->items[i].time < first)
            first = trace->items[i].time;
    return first;
}

static enum status finish(struct parser *parser, bool text, struct fault_trace *trace)
{
    bool ages = text;
    if (parser->n_events > 0)
        qsort(parser->events, parser->n_events, sizeof *parser->events, event_compare);
    for (size_t i = 0; i < parser->n_events; i++) {
        ages &= parser->events[i].time > FAULT_TRACE_LONGEST / 2;
        apply(parser, &parser->events[i]);
    }
    outages_finish(&parser->outages, &parser->trace, parser->options->down);
    tell(parser, ages && parser->n_events > 0);
    host_table_name(&parser->hosts, &parser->trace);
    nanos zero = zero_of(&parser->trace, ages);
    enum status status = convert_finish(&parser->trace, parser->options, NULL, zero, parser->path, parser->diags);
    if (status == STATUS_OK)
        *trace = parser->trace;
    return status;
}

enum status event_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                             struct diags *diags)
{
    struct parser parser = {.options = options, .path = path, .diags = diags};
    size_t errors = diags->n_errors, n;
    char *bytes;
    enum status status = file_read(path, LIMIT, &bytes, &n, diags);
    if (status != STATUS_OK)
        return status;
    char first = bytes[strspn(bytes, " \t\r\n")];
    bool json = first == '{' || first == '[';
    if (json)
        read_json(&parser, bytes, n);
    else
        read_text(&parser, bytes, n);
    free(bytes);
    if (diags->n_errors == errors && parser.n_events + parser.n_elsewhere + parser.n_timeless == 0)
        diag_error(diags, (struct place){.file = path},
                   "contains no event of Kubernetes, such as kubectl get events -o json writes");
    status = diags->n_errors == errors ? finish(&parser, !json, trace) : STATUS_BAD_INPUT;
    if (diags->n_errors > errors)
        fault_trace_free(&parser.trace);
    for (size_t i = 0; i < parser.n_events; i++) {
        free(parser.events[i].reason);
        free(parser.events[i].message);
    }
    free(parser.events);
    host_table_free(&parser.hosts);
    return status;
}
