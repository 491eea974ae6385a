/* Xid errors in kernel logs and in DCGM's metrics. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "traces/lanl_trace.h"
#include "traces/trace_convert.h"

struct xid {
    int number;
    bool hardware;
    const char *meaning;
};

/* NVIDIA's list of Xid errors; "hardware": the GPU or its host needs attention. */
static const struct xid known[] = {
    {13, false, "Xid 13: graphics engine exception (software)"},
    {31, false, "Xid 31: GPU memory page fault (software)"},
    {43, false, "Xid 43: GPU stopped processing (software)"},
    {45, false, "Xid 45: preemptive cleanup (software)"},
    {48, true, "Xid 48: double-bit ECC error"},
    {61, true, "Xid 61: internal microcontroller breakpoint (GPU)"},
    {62, true, "Xid 62: internal microcontroller halt (GPU)"},
    {63, true, "Xid 63: row remap recorded (ECC)"},
    {64, true, "Xid 64: row remap failed (ECC)"},
    {74, true, "Xid 74: NVLink error"},
    {79, true, "Xid 79: GPU has fallen off the bus"},
    {92, true, "Xid 92: high single-bit ECC rate"},
    {94, true, "Xid 94: contained ECC error"},
    {95, true, "Xid 95: uncontained ECC error"},
    {119, true, "Xid 119: GSP RPC timeout"},
    {120, true, "Xid 120: GSP error"},
    {140, true, "Xid 140: unrecovered ECC error"},
};

/* What an Xid number means, and whether it ends work by itself ("software": the program's own mistake). */
static const char *xid_meaning(int number, bool *hardware)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].number == number) {
            *hardware = known[i].hardware;
            return known[i].meaning;
        }
    *hardware = true;
    return NULL;
}

/* Beyond it a time is a mistake: the end of 2199. */
#define LATEST_S 7.25e9
/* Numbers of Xids have three digits. */
enum { LARGEST_XID = 1000 };

struct reading {
    struct fault_trace trace;
    struct host_table hosts;
    const struct convert_options *options;
    const char *name;
    struct diags *diags;
    bool dated; /* some line had a date: time 0 is its midnight */
    nanos first;
    struct {
        int years;    /* that have begun since the first of its lines */
        nanos latest; /* of those before; 0: none */
    } syslog;
};

/* Jan to Dec as 1 to 12; 0: no month. */
static int month_of(const char *word)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const char *at = strlen(word) == 3 ? strstr(months, word) : NULL;
    return at && (at - months) % 3 == 0 ? (int)(at - months) / 3 + 1 : 0;
}

/* Behind "<3>" (dmesg --raw) or "kern  :err   : " (dmesg -x), and behind blanks. */
static const char *behind_level(const char *line)
{
    int end = 0;
    line += strspn(line, " \t");
    if (sscanf(line, "<%*d>%n", &end) == 0 && end > 0)
        return line + end;
    if (sscanf(line, "%*[a-z0-9] :%*[a-z] : %n", &end) == 0 && end > 0)
        return line + end;
    return line;
}

static bool within(int value, int low, int high)
{
    return value >= low && value <= high;
}

/* A day that a month does not have is left to local_time_parse. */
static bool calendar_time(int year, int month, int day, const int clock[3], nanos *time)
{
    char date[96];
    if (!within(year, 1970, 2199) || month == 0 || !within(day, 1, 31) || !within(clock[0], 0, 23) || !within(clock[1], 0, 59) ||
        !within(clock[2], 0, 60))
        return false;
    snprintf(date, sizeof date, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, clock[0], clock[1], clock[2]);
    return local_time_parse(date, time);
}

/* "[Mon Nov 23 07:31:08 2026] NVRM", as dmesg -T has it. */
static bool bracketed_date(const char *line, nanos *time, const char **rest)
{
    char month[4];
    int day, year, clock[3], end = 0;
    if (sscanf(line, "[%*3[A-Za-z] %3[A-Za-z] %9d %9d:%9d:%9d %9d]%n", month, &day, &clock[0], &clock[1], &clock[2], &year,
               &end) != 6 ||
        end == 0)
        return false;
    *rest = line + end;
    return calendar_time(year, month_of(month), day, clock, time);
}

/* A large step back in the order of the file is a new year; a line of the old one may still come late. *time is of the first. */
static void place_in_year(struct reading *reading, int number_line, nanos *time)
{
    enum { YEARS_MAX = 101 }; /* more than a trace may span, which is refused at its end */
    /* Lines of several hosts are out of order by seconds, files one behind the other by days, not by half a year. */
    static const nanos DAY = (nanos)86400 * NANOS_PER_SECOND, YEAR = 366 * DAY;
    nanos at = *time + reading->syslog.years * YEAR, latest = reading->syslog.latest;
    if (latest > 0 && latest - at > YEAR / 2 && reading->syslog.years < YEARS_MAX) {
        at += YEAR;
        if (reading->syslog.years++ == 0)
            diag_note(reading->diags, (struct place){.file = reading->name, .line = number_line},
                      "lines that name no year step back by %lld days: a new year is taken to begin here",
                      (long long)((latest - *time) / DAY));
    } else if (reading->syslog.years > 0 && at - latest > YEAR - DAY) {
        at -= YEAR;
    }
    reading->syslog.latest = at > latest ? at : latest;
    *time = at;
}

/* "Mar  3 12:01:02 host kernel:" of syslog, with a fraction of journalctl -o short-precise. Neither names the year: each is
 * taken for a leap year, so that every day is one. */
static bool syslog_date(struct reading *reading, const char *line, int number_line, nanos *time, const char **rest)
{
    char month[4];
    int day, clock[3], end = 0;
    if (sscanf(line, "%3[A-Za-z] %9d %9d:%9d:%9d%n", month, &day, &clock[0], &clock[1], &clock[2], &end) != 5 || end == 0)
        return false;
    *rest = line + end + strcspn(line + end, " \t");
    if (!calendar_time(2024, month_of(month), day, clock, time))
        return false;
    place_in_year(reading, number_line, time);
    return true;
}

/* "2024-03-03T12:01:02+00:00 host kernel:" (journalctl -o short-iso, dmesg --time-format iso), "Sun 2024-03-03 12:01:02 UTC host
 * kernel:" (-o short-full). Zones are left aside: a log is of one place. */
static bool iso_date(const char *line, nanos *time, const char **rest)
{
    char date[20];
    int weekday = 0;
    if (sscanf(line, "%*3[A-Za-z] %n", &weekday) == 0 && weekday > 0)
        line += weekday;
    if (strlen(line) < 19 || isdigit((unsigned char)line[19]))
        return false;
    snprintf(date, sizeof date, "%.19s", line);
    *rest = line + 19 + strcspn(line + 19, " \t");
    if (weekday > 0) { /* the zone stands apart */
        *rest += strspn(*rest, " \t");
        *rest += strcspn(*rest, " \t");
    }
    return local_time_parse(date, time);
}

/* Seconds since boot, "[12345.678901] NVRM", or a date as one of the tools writes it. */
static bool line_time(struct reading *reading, const char *line, int number_line, nanos *time, const char **rest)
{
    int end = 0;
    double boot;
    line = behind_level(line);
    if (sscanf(line, "[%lf]%n", &boot, &end) == 1 && end > 0 && boot >= 0 && boot < LATEST_S) {
        *time = nanos_from_seconds(boot);
        *rest = line + end;
        return true;
    }
    reading->dated = true;
    return bracketed_date(line, time, rest) || syslog_date(reading, line, number_line, time, rest) || iso_date(line, time, rest);
}

static void add(struct reading *reading, nanos time, int32_t node, int number)
{
    bool hardware;
    char text[64];
    const char *meaning = xid_meaning(number, &hardware);
    snprintf(text, sizeof text, "Xid %d", number);
    struct fault fault = {.time = time, .down = hardware ? reading->options->down : 0, .node = node, .speed = FULL_SPEED};
    if (reading->trace.n_items == 0 || time < reading->first)
        reading->first = time;
    fault_trace_add(&reading->trace, fault, meaning ? meaning : text);
}

static void read_kernel_line(struct reading *reading, const char *line, int number_line)
{
    const char *xid = strstr(line, "NVRM: Xid"), *colon = xid ? strstr(xid, "): ") : NULL, *rest;
    nanos time;
    if (!xid)
        return;
    if (!colon || !isdigit((unsigned char)colon[3]) || !line_time(reading, line, number_line, &time, &rest)) {
        diag_error(reading->diags, (struct place){.file = reading->name, .line = number_line},
                   "an Xid without a time or a number; lines of dmesg, dmesg -T, syslog and journalctl -o short-iso are read: "
                   "'[12345.678] NVRM: Xid (PCI:0000:3b:00): 79, ...'");
        return;
    }
    long number = strtol(colon + 3, NULL, 10);
    if (number < 1 || number > LARGEST_XID) {
        diag_error(reading->diags, (struct place){.file = reading->name, .line = number_line},
                   "'%.*s' is the number of no Xid; they are 1 to %d", (int)strspn(colon + 3, "0123456789"), colon + 3,
                   LARGEST_XID);
        return;
    }
    while (*rest == ' ')
        rest++;
    size_t host = strcspn(rest, " :");
    bool named = rest < xid && host > 0 && strncmp(rest, "NVRM", 4) != 0 && strncmp(rest, "kernel", 6) != 0;
    add(reading, time, named ? host_number(&reading->hosts, rest, host) : 0, (int)number);
}

/* DCGM_FI_DEV_XID_ERRORS{gpu="0",Hostname="n1"} 79 1700000000000 */
static void read_metric_line(struct reading *reading, const char *line, int number_line)
{
    const char *host = strstr(line, "Hostname=\""), *close = strchr(line, '}');
    char *end = NULL;
    double number = close ? strtod(close + 1, &end) : 0;
    if (!close || end == close + 1) {
        diag_error(reading->diags, (struct place){.file = reading->name, .line = number_line}, "a metric without a value");
        return;
    }
    if (!(number > 0 && number <= LARGEST_XID))
        return; /* 0: no error yet */
    double milliseconds = strtod(end, NULL);
    if (!(milliseconds >= 0 && milliseconds < LATEST_S * 1e3)) {
        diag_error(reading->diags, (struct place){.file = reading->name, .line = number_line},
                   "a metric whose time is not milliseconds since 1970");
        return;
    }
    nanos time = (nanos)(milliseconds * 1e6);
    int32_t node = host ? host_number(&reading->hosts, host + 10, strcspn(host + 10, "\"")) : 0;
    reading->dated = true;
    add(reading, time, node, (int)number);
}

static void read_lines(struct reading *reading, char *bytes)
{
    int number = 1;
    for (char *line = bytes; *line; number++) {
        size_t length = strcspn(line, "\n");
        bool more = line[length] == '\n';
        line[length] = '\0';
        if (strncmp(line, "DCGM_FI_DEV_XID_ERRORS{", 23) == 0)
            read_metric_line(reading, line, number);
        else
            read_kernel_line(reading, line, number);
        line += length + more;
    }
}

enum status xid_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                           struct diags *diags)
{
    enum { LIMIT = 1 << 30 };
    struct reading reading = {.options = options, .name = path, .diags = diags};
    char *bytes;
    size_t n, errors = diags->n_errors;
    enum status status = file_read(path, LIMIT, &bytes, &n, diags);
    if (status != STATUS_OK)
        return status;
    read_lines(&reading, bytes);
    free(bytes);
    host_table_free(&reading.hosts);
    if (diags->n_errors == errors && reading.trace.n_items == 0)
        diag_error(diags, (struct place){.file = path},
                   "no line with an Xid: 'NVRM: Xid (PCI:...): NUMBER' or "
                   "DCGM_FI_DEV_XID_ERRORS{...} NUMBER");
    if (diags->n_errors > errors) {
        fault_trace_free(&reading.trace);
        return STATUS_BAD_INPUT;
    }
    status = convert_finish(&reading.trace, options, reading.dated ? -1 : reading.first, path, diags);
    if (status == STATUS_OK)
        *trace = reading.trace;
    return status;
}
