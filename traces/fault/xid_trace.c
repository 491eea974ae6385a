/* Xid errors in kernel logs and in DCGM's metrics. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/file.h"
#include "model/base/memory.h"
#include "traces/fault/log_time.h"
#include "traces/fault/trace_convert.h"
#include "traces/fault/xid.h"

/* A GPU's gauge at one scrape. */
enum { BLANK = -1 }; /* its value where DCGM knows none */
struct sample {
    int32_t gpu, node;
    nanos time;
    int value;
    size_t order;
};

struct file_in_turn {
    const char *name;
    bool names_hosts; /* some of its Xids did */
    bool timeless;    /* a metric without a time was reported */
    struct log_clock clock;
};

struct parser {
    struct fault_trace trace;
    struct host_table hosts, gpus;
    struct sample *samples;
    size_t n_samples, capacity;
    const struct convert_options *options;
    struct diags *diags;
    struct file_in_turn file;
    enum log_time clock; /* of all lines so far */
    bool moved;          /* a file to the year of the one before */
    nanos first;
    size_t counts[XID_LARGEST + 1];
    size_t n_blank; /* values of the gauge that are no Xid */
    size_t n_stood; /* GPUs whose gauge showed one from the first */
};

static struct place place_of(const struct parser *parser, int line)
{
    return (struct place){.file = parser->file.name, .line = line};
}

/* Where a line names no host its file is one. */
static int32_t node_of(struct parser *parser, const char *host, size_t length)
{
    parser->file.names_hosts |= host != NULL;
    return host ? host_number(&parser->hosts, host, length)
                : host_number(&parser->hosts, parser->file.name, strlen(parser->file.name));
}

static void add(struct parser *parser, nanos time, int32_t node, int number)
{
    const char *meaning = "";
    enum xid_class class = xid_classify(number, &meaning);
    struct fault fault = {.time = time, .node = node, .speed = FULL_SPEED};
    parser->counts[number]++;
    if (class == XID_UNKNOWN || class == XID_INFORMATION)
        return;
    fault.down = class == XID_APPLICATION ? 0 : parser->options->down;
    if (parser->trace.n_items == 0 || time < parser->first)
        parser->first = time;
    fault_trace_add(&parser->trace, fault, meaning);
}

/* Seconds since boot, dates and dates without a year have nothing in common. */
static bool clock_fits(struct parser *parser, enum log_time clock, int line)
{
    static const char *const names[] = {
        [LOG_SINCE_BOOT] = "seconds since boot", [LOG_YEARLESS] = "a date without a year", [LOG_DATED] = "a date with its year"};
    if (parser->clock != LOG_NO_TIME && parser->clock != clock) {
        diag_error(parser->diags, place_of(parser, line), "this line has %s, those above %s; convert them apart", names[clock],
                   names[parser->clock]);
        return false;
    }
    parser->clock = clock;
    return true;
}

/* Behind "[ T1234]" and "[C3]", the thread or processor that printed, as the kernel's PRINTK_CALLER has it. */
static const char *behind_callers(const char *text)
{
    for (text += strspn(text, " \t"); *text == '['; text += strspn(text, " \t")) {
        const char *close = strchr(text, ']');
        if (!close)
            break;
        text = close + 1;
    }
    return text;
}

static void read_kernel_line(struct parser *parser, const char *line, int number_line)
{
    const char *xid = strstr(line, "NVRM: Xid"), *colon = xid ? strstr(xid, "): ") : NULL, *rest;
    struct place at = place_of(parser, number_line);
    enum log_time clock = LOG_NO_TIME;
    nanos time;
    if (!xid)
        return;
    if (colon && isdigit((unsigned char)colon[3]))
        clock = log_line_time(line, &parser->file.clock, at, &time, &rest, parser->diags);
    if (clock == LOG_NO_TIME) {
        diag_error(parser->diags, at,
                   "an Xid without a time or a number; lines of dmesg, dmesg -T, syslog and journalctl -o short-iso are read: "
                   "'[12345.678] NVRM: Xid (PCI:0000:3b:00): 79, ...'");
        return;
    }
    long number = strtol(colon + 3, NULL, 10);
    if (number < 1 || number > XID_LARGEST) {
        diag_error(parser->diags, at, "'%.*s' is no number of an Xid; they are 1 to %d", (int)strspn(colon + 3, "0123456789"),
                   colon + 3, XID_LARGEST);
        return;
    }
    rest = behind_callers(rest);
    size_t host = strcspn(rest, " :");
    bool named = rest < xid && host > 0 && strncmp(rest, "NVRM", 4) != 0 && strncmp(rest, "kernel", 6) != 0;
    if (clock_fits(parser, clock, number_line))
        add(parser, time, node_of(parser, named ? rest : NULL, host), (int)number);
}

/* Behind the quote that ends the text of a label, "GPU has {fallen} \"off\""; NULL: none does. */
static const char *behind_quoted(const char *text)
{
    for (; *text && *text != '"'; text++)
        text += *text == '\\' && text[1];
    return *text ? text + 1 : NULL;
}

/* The labels that tell GPUs apart; NULL: not there, or empty. */
struct labels {
    const char *host, *instance, *gpu;
    size_t n_host, n_instance, n_gpu;
};

static void keep_label(const char *name, size_t n_name, const char *wanted, const char **text, size_t *length)
{
    const char *value = name + n_name + 2;
    size_t n = (size_t)(behind_quoted(value) - 1 - value);
    if (n > 0 && strlen(wanted) == n_name && strncmp(name, wanted, n_name) == 0) {
        *text = value;
        *length = n;
    }
}

/* Reads {gpu="0",Hostname="n1"} from after its brace. Returns what follows it; NULL: it does not end. */
static const char *read_labels(const char *text, struct labels *labels)
{
    *labels = (struct labels){0};
    for (;;) {
        text += strspn(text, " \t,");
        if (*text == '}')
            return text + 1;
        size_t n = strcspn(text, "=\"} \t");
        const char *end = text[n] == '=' && text[n + 1] == '"' ? behind_quoted(text + n + 2) : NULL;
        if (!end)
            return NULL;
        keep_label(text, n, "Hostname", &labels->host, &labels->n_host);
        keep_label(text, n, "instance", &labels->instance, &labels->n_instance);
        keep_label(text, n, "gpu", &labels->gpu, &labels->n_gpu);
        text = end;
    }
}

/* Where the exporter does not name its host, Prometheus names the instance that it scraped. */
static void add_sample(struct parser *parser, const struct labels *labels, int value, nanos time)
{
    char name[300];
    const char *host = labels->host ? labels->host : labels->instance;
    struct sample sample = {.time = time, .value = value, .order = parser->n_samples};
    sample.node = node_of(parser, host, labels->host ? labels->n_host : labels->n_instance);
    snprintf(name, sizeof name, "%d/%.*s", (int)sample.node, labels->n_gpu < 200 ? (int)labels->n_gpu : 200,
             labels->gpu ? labels->gpu : "");
    sample.gpu = host_number(&parser->gpus, name, strlen(name));
    parser->samples = memory_grow(parser->samples, &parser->capacity, parser->n_samples + 1, sizeof sample);
    parser->samples[parser->n_samples++] = sample;
}

/* The time behind a value: seconds since 1970, as OpenMetrics has them, or milliseconds, as Prometheus does. A time of before
 * 1973 would be of either. */
static bool metric_time(struct parser *parser, const char *text, int number_line, nanos *time)
{
    static const double earliest_s = 1e8;
    char *end;
    text += strspn(text, " \t");
    double value = strtod(text, &end);
    if (end == text) {
        if (!parser->file.timeless)
            diag_error(
                parser->diags, place_of(parser, number_line),
                "a metric without a time, as on an exporter's page: add the time of the scrape after the value, in seconds "
                "or milliseconds since 1970");
        parser->file.timeless = true;
        return false;
    }
    bool in_seconds = value < earliest_s * 1e3;
    double seconds = in_seconds ? value : value / 1e3;
    if (!(seconds >= earliest_s && seconds < LOG_LATEST_S)) {
        diag_error(parser->diags, place_of(parser, number_line),
                   "a metric whose time '%.*s' is neither seconds nor milliseconds since 1970", (int)(end - text), text);
        return false;
    }
    nanos unit = in_seconds ? NANOS_PER_SECOND : NANOS_PER_SECOND / 1000;
    if (!nanos_parse_decimal(text, end, unit, time)) /* 1.7e9 */
        *time = (nanos)(value * (double)unit);
    return true;
}

/* DCGM_FI_DEV_XID_ERRORS{gpu="0",Hostname="n1"} 79 1700000000000. DCGM writes what it does not know as a large number. */
static void read_metric_line(struct parser *parser, const char *line, int number_line)
{
    struct labels labels;
    const char *value = read_labels(strchr(line, '{') + 1, &labels);
    char *end = NULL;
    double number = value ? strtod(value, &end) : 0;
    if (!value || end == value) {
        diag_error(parser->diags, place_of(parser, number_line), "a metric without a value");
        return;
    }
    nanos time;
    bool blank = !(number >= 0 && number <= XID_LARGEST);
    parser->n_blank += blank;
    if (metric_time(parser, end, number_line, &time) && clock_fits(parser, LOG_DATED, number_line))
        add_sample(parser, &labels, blank ? BLANK : (int)number, time);
}

static int sample_compare(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* The gauge keeps a GPU's last Xid, scrape after scrape: what counts is its changes. What it shows at first may be weeks old; a
 * blank is no Xid then, and changes nothing later. */
static void read_samples(struct parser *parser)
{
    const struct sample *at = parser->samples;
    int before = 0;
    if (parser->n_samples > 0)
        qsort(parser->samples, parser->n_samples, sizeof *parser->samples, sample_compare);
    for (size_t i = 0; i < parser->n_samples; i++) {
        bool first = i == 0 || at[i - 1].gpu != at[i].gpu;
        int value = at[i].value != BLANK ? at[i].value : first ? 0 : before;
        parser->n_stood += first && value != 0;
        if (!first && value != 0 && value != before)
            add(parser, at[i].time, at[i].node, value);
        before = value;
    }
}

static void read_lines(struct parser *parser, char *bytes)
{
    int number = 1;
    for (char *line = bytes; *line; number++) {
        size_t length = strcspn(line, "\n");
        bool more = line[length] == '\n';
        line[length] = '\0';
        if (strncmp(line, "DCGM_FI_DEV_XID_ERRORS{", 23) == 0)
            read_metric_line(parser, line, number);
        else
            read_kernel_line(parser, line, number);
        line += length + more;
    }
}

/* Yearless lines of a file to within half a year of those before them, in the files above. */
static void place_in_years(struct parser *parser, size_t first_item, nanos before)
{
    nanos latest = parser->file.clock.latest, away = before - latest;
    nanos years = (away + (away < 0 ? -LOG_YEAR : LOG_YEAR) / 2) / LOG_YEAR;
    if (before == 0 || latest == 0 || years == 0)
        return;
    for (size_t i = first_item; i < parser->trace.n_items; i++)
        parser->trace.items[i].time += years * LOG_YEAR;
    parser->file.clock.latest += years * LOG_YEAR;
    if (!parser->moved)
        diag_note(parser->diags, place_of(parser, 0),
                  "its lines name no year; msim assumes that they follow the file before, and so for further files");
    parser->moved = true;
}

static enum status read_file(struct parser *parser, const char *path)
{
    enum { LIMIT = 1 << 30 };
    char *bytes;
    size_t n, first_item = parser->trace.n_items;
    nanos before = parser->file.clock.latest;
    enum status status = file_read(path, LIMIT, &bytes, &n, parser->diags);
    if (status != STATUS_OK)
        return status;
    parser->file = (struct file_in_turn){
        .name = path, .clock.told = parser->file.clock.told, .clock.told_zone = parser->file.clock.told_zone};
    read_lines(parser, bytes);
    free(bytes);
    place_in_years(parser, first_item, before);
    if (parser->file.clock.latest == 0)
        parser->file.clock.latest = before;
    if (!parser->file.names_hosts)
        host_number(&parser->hosts, path, strlen(path));
    return STATUS_OK;
}

/* "48 (3), 63 (1)": the Xids of a class and how many there were; their number. */
static size_t list_class(const struct parser *parser, enum xid_class class, char *text, size_t size)
{
    const char *meaning;
    size_t n = 0;
    *text = '\0';
    for (int number = 1; number <= XID_LARGEST; number++)
        if (parser->counts[number] > 0 && xid_classify(number, &meaning) == class) {
            text_append(text, size, "%s%d (%zu)", *text ? ", " : "", number, parser->counts[number]);
            n += parser->counts[number];
        }
    return n;
}

static void tell_classes(const struct parser *parser, const char *const *paths, int n_paths)
{
    const struct place at = {.file = paths[0]};
    char text[512];
    if (n_paths > 1)
        diag_note(parser->diags, at,
                  "%d files, %zu host%s, numbered in order of appearance; where lines name no host their file is one", n_paths,
                  parser->hosts.n, parser->hosts.n == 1 ? "" : "s");
    if (n_paths > 1 && parser->clock == LOG_SINCE_BOOT)
        diag_note(parser->diags, at,
                  "seconds since boot: msim assumes that all hosts booted at once; dmesg --time-format iso writes dates");
    if (list_class(parser, XID_APPLICATION, text, sizeof text))
        diag_note(parser->diags, at, "errors of programs, which take no node away: Xid %s", text);
    if (list_class(parser, XID_INFORMATION, text, sizeof text))
        diag_note(parser->diags, at, "left out, because they end nothing: Xid %s", text);
    if (list_class(parser, XID_UNKNOWN, text, sizeof text))
        diag_note(parser->diags, at, "left out, because their meaning is unknown: Xid %s", text);
    if (parser->n_stood > 0)
        diag_note(
            parser->diags, at, "left out: the Xid%s that the gauge%s of %zu GPU%s showed at the first scrape, of unknown age",
            parser->n_stood == 1 ? "" : "s", parser->n_stood == 1 ? "" : "s", parser->n_stood, parser->n_stood == 1 ? "" : "s");
    if (parser->n_blank > 0)
        diag_note(parser->diags, at, "left out: %zu value%s of DCGM's gauge that %s no Xid", parser->n_blank,
                  parser->n_blank == 1 ? "" : "s", parser->n_blank == 1 ? "is" : "are");
}

/* A date says nothing of times without one. */
static void check_from(const struct parser *parser, const char *path)
{
    if (parser->options->has_from && (parser->clock == LOG_SINCE_BOOT || parser->clock == LOG_YEARLESS))
        diag_error(
            parser->diags, (struct place){.file = path},
            "--from is a date, and these lines have %s; 'dmesg --time-format iso' and 'journalctl -o short-iso' write dates",
            parser->clock == LOG_YEARLESS ? "dates without a year" : "seconds since boot");
}

/* Worse causes have higher ranks. */
static enum status finish(struct parser *parser, const char *path)
{
    const struct fault_trace *trace = &parser->trace;
    const char *meaning;
    int *ranks = memory_new(trace->n_details + 1, sizeof *ranks);
    for (size_t i = 0; i < trace->n_details; i++)
        ranks[i] = (int)xid_classify((int)strtol(trace->details[i] + strlen("Xid "), NULL, 10), &meaning);
    nanos zero = parser->clock == LOG_SINCE_BOOT ? parser->first : -1;
    host_table_name(&parser->hosts, &parser->trace);
    enum status status = convert_finish(&parser->trace, parser->options, ranks, zero, path, parser->diags);
    free(ranks);
    return status;
}

enum status xid_trace_read(const char *const *paths, int n_paths, const struct convert_options *options,
                           struct fault_trace *trace, struct diags *diags)
{
    struct parser parser = {.options = options, .diags = diags};
    size_t errors = diags->n_errors, n = 0;
    for (int i = 0; i < n_paths; i++)
        if (read_file(&parser, paths[i]) != STATUS_OK)
            break;
    read_samples(&parser);
    check_from(&parser, paths[0]);
    for (int number = 1; number <= XID_LARGEST; number++)
        n += parser.counts[number];
    if (diags->n_errors == errors && n + parser.n_samples == 0)
        diag_error(diags, (struct place){.file = paths[0]},
                   "no line contains an Xid, such as 'NVRM: Xid (PCI:...): NUMBER' or "
                   "DCGM_FI_DEV_XID_ERRORS{...} NUMBER");
    if (diags->n_errors == errors)
        tell_classes(&parser, paths, n_paths);
    enum status status = diags->n_errors == errors ? finish(&parser, paths[0]) : STATUS_BAD_INPUT;
    host_table_free(&parser.hosts);
    host_table_free(&parser.gpus);
    free(parser.samples);
    if (status == STATUS_OK)
        *trace = parser.trace;
    else
        fault_trace_free(&parser.trace);
    return status;
}
