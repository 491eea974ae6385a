/* xid_trace.c - Xid errors in kernel logs and in DCGM's metrics. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/file.h"
#include "model/base/memory.h"
#include "traces/fault/kernel_event.h"
#include "traces/fault/xid_trace_internal.h"

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

/* The host between the time and the driver's words: "gpu-a kernel: ". */
static int32_t host_of(struct xid_parser *parser, const char *rest, const char *message)
{
    rest = behind_callers(rest);
    size_t host = strcspn(rest, " :");
    bool named = rest < message && host > 0 && strncmp(rest, "kernel", 6) != 0;
    return xid_node(parser, named ? rest : NULL, host);
}

/* False, and told: the line has no number. */
static bool check_number(struct xid_parser *parser, const struct kernel_event *event, struct place at)
{
    if (event->number >= 0)
        return true;
    const char *numeral = event->numeral;
    if (numeral && isdigit((unsigned char)*numeral))
        diag_error(parser->diags, at, "'%.*s' is no number of an Xid; they are 1 to %d", (int)strspn(numeral, "0123456789"),
                   numeral, XID_LARGEST);
    return false;
}

static void count(struct xid_parser *parser, const struct kernel_event *event)
{
    const char *meaning;
    bool nonfatal = event->class == XID_INFORMATION;
    if (event->kind != EVENT_XID) {
        parser->n_others++;
        parser->n_nonfatal += event->kind == EVENT_SXID && nonfatal;
    } else if (nonfatal && xid_classify(event->number, &meaning) != XID_INFORMATION) {
        parser->n_others++;
        parser->n_nonfatal++;
    } else {
        parser->counts[event->number]++;
    }
}

static void read_kernel_line(struct xid_parser *parser, const char *line, int number_line)
{
    struct kernel_event event;
    struct place at = xid_place(parser, number_line);
    enum log_time clock = LOG_NO_TIME;
    const char *rest;
    nanos time;
    if (!kernel_event_find(line, &event))
        return;
    if (event.number >= 0 || (event.numeral && isdigit((unsigned char)*event.numeral)))
        clock = log_line_time(line, &parser->file.clock, at, &time, &rest, parser->diags);
    if (clock == LOG_NO_TIME) {
        diag_error(parser->diags, at,
                   "%s; lines of dmesg, dmesg -T, syslog and journalctl -o short-iso are read: "
                   "'[12345.678] NVRM: Xid (PCI:0000:3b:00): 79, ...'",
                   event.kind == EVENT_XID ? "an Xid without a time or a number" : "an error of a GPU without a time");
        return;
    }
    if (!check_number(parser, &event, at) || !xid_clock_fits(parser, clock, number_line))
        return;
    count(parser, &event);
    xid_add(parser, time, host_of(parser, rest, event.message), event.class, event.cause);
}

static void read_lines(struct xid_parser *parser, char *bytes)
{
    int number = 1;
    for (char *line = bytes; *line; number++) {
        size_t length = strcspn(line, "\n");
        bool more = line[length] == '\n';
        line[length] = '\0';
        if (strncmp(line, "DCGM_FI_DEV_XID_ERRORS{", 23) == 0)
            xid_gauge_line(parser, line, number);
        else
            read_kernel_line(parser, line, number);
        line += length + more;
    }
}

/* Yearless lines of a file to within half a year of those before them, in the files above. */
static void place_in_years(struct xid_parser *parser, size_t first_item, nanos before)
{
    nanos latest = parser->file.clock.latest, away = before - latest;
    nanos years = (away + (away < 0 ? -LOG_YEAR : LOG_YEAR) / 2) / LOG_YEAR;
    if (before == 0 || latest == 0 || years == 0)
        return;
    for (size_t i = first_item; i < parser->trace.n_items; i++)
        parser->trace.items[i].time += years * LOG_YEAR;
    parser->file.clock.latest += years * LOG_YEAR;
    if (!parser->moved)
        diag_note(parser->diags, xid_place(parser, 0),
                  "its lines name no year; msim assumes that they follow the file before, and so for further files");
    parser->moved = true;
}

static enum status read_file(struct xid_parser *parser, const char *path)
{
    enum { LIMIT = 1 << 30 };
    char *bytes;
    size_t n, first_item = parser->trace.n_items;
    nanos before = parser->file.clock.latest;
    enum status status = file_read(path, LIMIT, &bytes, &n, parser->diags);
    if (status != STATUS_OK)
        return status;
    parser->file =
        (struct xid_file){.name = path, .clock.told = parser->file.clock.told, .clock.told_zone = parser->file.clock.told_zone};
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
static size_t list_class(const struct xid_parser *parser, enum xid_class class, char *text, size_t size)
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

static void tell_classes(const struct xid_parser *parser, const char *const *paths, int n_paths)
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
        diag_note(parser->diags, at, "left out, because %s does not explain them: Xid %s", XID_CATALOGUE, text);
    if (parser->n_nonfatal > 0)
        diag_note(parser->diags, at, "left out: %zu error%s of NVLink and NVSwitch that %s not fatal", parser->n_nonfatal,
                  parser->n_nonfatal == 1 ? "" : "s", parser->n_nonfatal == 1 ? "is" : "are");
    if (parser->n_unsaid > 0)
        diag_note(parser->diags, at,
                  "%zu of Xids 144 to 150: the gauge does not say whether they are fatal, as the kernel's log does; msim assumes "
                  "that 147 and 148 are not and the others are",
                  parser->n_unsaid);
    if (parser->n_stood > 0)
        diag_note(
            parser->diags, at, "left out: the Xid%s that the gauge%s of %zu GPU%s showed at the first scrape, of unknown age",
            parser->n_stood == 1 ? "" : "s", parser->n_stood == 1 ? "" : "s", parser->n_stood, parser->n_stood == 1 ? "" : "s");
    if (parser->n_blank > 0)
        diag_note(parser->diags, at, "left out: %zu value%s of DCGM's gauge that %s no Xid", parser->n_blank,
                  parser->n_blank == 1 ? "" : "s", parser->n_blank == 1 ? "is" : "are");
}

/* A date says nothing of times without one. */
static void check_from(const struct xid_parser *parser, const char *path)
{
    if (parser->options->has_from && (parser->clock == LOG_SINCE_BOOT || parser->clock == LOG_YEARLESS))
        diag_error(
            parser->diags, (struct place){.file = path},
            "--from is a date, and these lines have %s; 'dmesg --time-format iso' and 'journalctl -o short-iso' write dates",
            parser->clock == LOG_YEARLESS ? "dates without a year" : "seconds since boot");
}

static enum status finish(struct xid_parser *parser, const char *path)
{
    nanos zero = parser->clock == LOG_SINCE_BOOT ? parser->first : -1;
    host_table_name(&parser->hosts, &parser->trace);
    return convert_finish(&parser->trace, parser->options, parser->ranks, zero, path, parser->diags);
}

enum status xid_trace_read(const char *const *paths, int n_paths, const struct convert_options *options,
                           struct fault_trace *trace, struct diags *diags)
{
    struct xid_parser parser = {.options = options, .diags = diags};
    size_t errors = diags->n_errors, n;
    for (int i = 0; i < n_paths; i++)
        if (read_file(&parser, paths[i]) != STATUS_OK)
            break;
    xid_gauge_finish(&parser);
    check_from(&parser, paths[0]);
    n = parser.n_others;
    for (int number = 1; number <= XID_LARGEST; number++)
        n += parser.counts[number];
    if (diags->n_errors == errors && n + parser.n_samples == 0)
        diag_error(diags, (struct place){.file = paths[0]},
                   "no line contains an error of a GPU, such as 'NVRM: Xid (PCI:...): NUMBER', 'SXid (PCI:...): NUMBER, Fatal', "
                   "'amdgpu: ... uncorrectable hardware errors detected' or DCGM_FI_DEV_XID_ERRORS{...} NUMBER");
    if (diags->n_errors == errors)
        tell_classes(&parser, paths, n_paths);
    enum status status = diags->n_errors == errors ? finish(&parser, paths[0]) : STATUS_BAD_INPUT;
    host_table_free(&parser.hosts);
    host_table_free(&parser.gpus);
    free(parser.samples);
    free(parser.ranks);
    if (status == STATUS_OK)
        *trace = parser.trace;
    else
        fault_trace_free(&parser.trace);
    return status;
}
