/*
 * Records of other systems as fault traces.
 *
 * What is proved, by cases that are counted by hand: events repeat as long as each is close to the one before; of a gauge that
 * keeps its last value changes count; Xids of one node are one fault, the worst, in any order of the lines; what informs and what
 * is unknown is no fault and is told; many files are one trace, each a host; jobs fail by states that name the node, on the first
 * node of any list, at universal times; nodes that nobody named are asked for and never merged; GPUs are slow by what is wrong
 * with them, not by their power cap. Metrics have times, in seconds or milliseconds; a window cuts every source alike; what a
 * file is follows from its columns or lines; nodes keep the names of their hosts.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/base/append.h"
#include "tests/suite.h"
#include "traces/lanl_trace.h"
#include "traces/trace_convert.h"
#include "traces/xid.h"

#define MINUTE (60 * NANOS_PER_SECOND)
static const struct convert_options usual = {.down = 60 * MINUTE, .merge = 5 * MINUTE};

enum { FILES_MAX = 3 };
struct files {
    char paths[FILES_MAX][32];
    const char *names[FILES_MAX];
    int n;
};

static void files_add(struct files *files, const char *text)
{
    char *path = files->paths[files->n];
    snprintf(path, sizeof files->paths[0], "convert-XXXXXX");
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
    files->names[files->n++] = path;
}

/* "second node down detail;" of every fault, or the mistakes; notes behind. */
static void text_of(const struct fault_trace *trace, const struct diags *diags, enum status status, char *text, size_t size)
{
    *text = '\0';
    for (size_t i = 0; status == STATUS_OK && i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        text_append(text, size, "%" PRId64 " %" PRId32 " %" PRId64 " %.6s%s;", fault->time / NANOS_PER_SECOND, fault->node,
                    fault->down / NANOS_PER_SECOND, fault_trace_detail(trace, fault),
                    fault->kind == FAULT_PLANNED ? " planned" : "");
    }
    for (size_t i = 0; i < diags->n_items; i++)
        text_append(text, size, "|%s", diags->items[i].text);
}

typedef enum status several(const char *const *paths, int n, const struct convert_options *options, struct fault_trace *trace,
                            struct diags *diags);

/* What a reader makes of texts, each in a file of its own. */
static const char *converted(several *reader, struct convert_options options, const char *const *texts)
{
    static char text[4096];
    struct files files = {.n = 0};
    struct fault_trace trace = {0};
    struct diags diags = {0};
    for (; *texts; texts++)
        files_add(&files, *texts);
    enum status status = reader(files.names, files.n, &options, &trace, &diags);
    text_of(&trace, &diags, status, text, sizeof text);
    ck_assert_int_eq(status == STATUS_OK, diags.n_errors == 0);
    if (status == STATUS_OK)
        fault_trace_free(&trace);
    for (int i = 0; i < files.n; i++)
        unlink(files.names[i]);
    diags_free(&diags);
    return text;
}

static enum status jobs(const char *const *paths, int n, const struct convert_options *options, struct fault_trace *trace,
                        struct diags *diags)
{
    ck_assert_int_eq(n, 1);
    return job_trace_read(paths[0], options, trace, diags);
}

static enum status titan(const char *const *paths, int n, const struct convert_options *options, struct fault_trace *trace,
                         struct diags *diags)
{
    ck_assert_int_eq(n, 1);
    return titan_trace_read(paths[0], options, trace, diags);
}

static enum status nodes(const char *const *paths, int n, const struct convert_options *options, struct fault_trace *trace,
                         struct diags *diags)
{
    ck_assert_int_eq(n, 1);
    return node_trace_read(paths[0], options, trace, diags);
}

#define ONE(text)           ((const char *const[]){text, NULL})
#define XID(options, t)     converted(xid_trace_read, options, ONE(t))
#define SMI(options, t)     converted(smi_trace_read, options, ONE(t))
#define JOBS(options, t)    converted(jobs, options, ONE(t))
#define NODES(options, t)   converted(nodes, options, ONE(t))
#define STARTS(text, begin) ck_assert_msg(strncmp(text, begin, strlen(begin)) == 0, "%s", text)
#define HAS(text, part)     ck_assert_msg(strstr(text, part) != NULL, "%s", text)

#define LINE(time, host, xid) time " " host " kernel: NVRM: Xid (PCI:0000:1b:00): " xid ", x\n"

/* The host of the first fault in a kernel log; "the file" where it is that. */
static const char *host_of_first(const char *text)
{
    static char host[64];
    struct files file = {.n = 0};
    struct fault_trace trace;
    struct diags diags = {0};
    files_add(&file, text);
    ck_assert_int_eq(xid_trace_read(file.names, 1, &usual, &trace, &diags), STATUS_OK);
    unlink(file.names[0]);
    const char *name = fault_trace_host(&trace, trace.items[0].node);
    snprintf(host, sizeof host, "%s", strcmp(name, file.names[0]) == 0 ? "the file" : name);
    fault_trace_free(&trace);
    diags_free(&diags);
    return host;
}

static struct convert_options window(const char *from, nanos length)
{
    struct convert_options options = usual;
    options.has_from = from != NULL;
    if (from)
        ck_assert(local_time_parse(from, &options.from));
    options.length = length;
    return options;
}

/* --- repeats --- */

/* 0, 4, 8 and 12 min are one; 17 min is five later. With 0 all are kept. */
START_TEST(repeats_slide)
{
    static const char log[] =
        LINE("Nov 23 07:00:00", "n1", "79") LINE("Nov 23 07:04:00", "n1", "79") LINE("Nov 23 07:08:00", "n1", "79")
            LINE("Nov 23 07:12:00", "n1", "79") LINE("Nov 23 07:17:00", "n1", "79") LINE("Nov 23 07:04:30", "n2", "79");
    struct convert_options none = usual;
    none.merge = 0;
    ck_assert_str_eq(XID(usual, log), "25200 0 3600 Xid 79;25470 1 3600 Xid 79;26220 0 3600 Xid 79;");
    ck_assert_str_eq(XID(none, log), "25200 0 3600 Xid 79;25440 0 3600 Xid 79;25470 1 3600 Xid 79;25680 0 3600 Xid 79;"
                                     "25920 0 3600 Xid 79;26220 0 3600 Xid 79;");
    static const char floor[] = "time,location,event\n2014-01-01T00:00:00,c0-0c0s0n1,DBE\n2014-01-01T00:04:00,c0-0c0s0n1,DBE\n"
                                "2014-01-01T00:08:00,c0-0c0s0n1,DBE\n2014-01-01T00:08:30,c0-0c0s0n1,OTB\n";
    ck_assert_str_eq(converted(titan, usual, ONE(floor)), "0 1 3600 Double;510 1 3600 Off th;");
}
END_TEST

/* --- Xids --- */

#define GAUGE(gpu)              "DCGM_FI_DEV_XID_ERRORS{gpu=\"" gpu "\",Hostname=\"n1\"} "
#define DCGM(gpu, xid, seconds) GAUGE(gpu) xid " 1699" seconds "000\n" /* 920000 is midnight of 14 November 2023 */

#define OLD "|left out: the Xid that the gauge of 1 GPU showed at the first scrape, of unknown age"

/* A gauge keeps its last value: scraped again it is no new error, for any window, nor in another order. */
START_TEST(a_gauge_counts_changes)
{
    static const char scrapes[] = DCGM("0", "0", "920000") DCGM("0", "79", "923600") DCGM("0", "79", "927200")
        DCGM("1", "0", "927200") DCGM("0", "79", "930800") DCGM("0", "0", "934400") DCGM("0", "48", "941600")
            DCGM("0", "79", "938000") DCGM("1", "31", "945200") DCGM("1", "31", "948800");
    STARTS(XID(usual, scrapes),
           "3600 0 3600 Xid 79;18000 0 3600 Xid 79;21600 0 3600 Xid 48;25200 0 0 Xid 31;|errors of the programs");
    char days[40000] = "", line[96];
    for (int i = 0; i < 288; i++) { /* every 10 min for two days */
        snprintf(line, sizeof line, "DCGM_FI_DEV_XID_ERRORS{gpu=\"0\",Hostname=\"n1\"} 79 %d000\n", 1699920000 + 600 * i);
        text_append(days, sizeof days, "%s", line);
    }
    ck_assert_str_eq(XID(usual, days), OLD); /* at first it may be weeks old */
}
END_TEST

/* Prometheus counts milliseconds, OpenMetrics seconds; an exporter's own page has no time, which is told once a file. */
START_TEST(metrics_have_times)
{
    ck_assert_str_eq(XID(usual, GAUGE("0") "0 1699920000.5\n" GAUGE("0") "79 1699923600.5\n" GAUGE("1") "0 1699920000\n" GAUGE(
                                    "1") "48 1699930800500\n"),
                     "3600 0 3600 Xid 79;10800 0 3600 Xid 48;");
    ck_assert_str_eq(
        XID(usual, GAUGE("0") "79\n" GAUGE("1") "48 \n"),
        "|a metric without a time, as an exporter's page has it: keep that of the scrape behind the value, in seconds or "
        "milliseconds since 1970");
    static const char *const wrong[] = {"86400", "86400000", "-5", "1699920000000000", "nan"}; /* ..., microseconds */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[128], says[128];
        snprintf(line, sizeof line, GAUGE("0") "79 %s\n", wrong[i]);
        snprintf(says, sizeof says, "|a metric whose time '%s' is neither seconds nor milliseconds since 1970", wrong[i]);
        ck_assert_str_eq(XID(usual, line), says);
    }
    ck_assert_str_eq(XID(usual, GAUGE("0") "2147483632 1699920000\n" GAUGE("0") "79 1699920001\n"),
                     "1 0 3600 Xid 79;|left out: 1 value of DCGM's gauge that is no Xid");
}
END_TEST

/* What was there at the first scrape is left out and counted, GPU by GPU; what changes after it counts. A blank is no Xid at
 * first, and no change later. */
START_TEST(what_a_gauge_shows_at_first)
{
    ck_assert_str_eq(
        XID(usual, DCGM("0", "79", "920000") DCGM("0", "48", "923600") DCGM("1", "31", "920000")),
        "3600 0 3600 Xid 48;|left out: the Xids that the gauges of 2 GPUs showed at the first scrape, of unknown age");
    ck_assert_str_eq(XID(usual, DCGM("0", "0", "920000") DCGM("0", "79", "923600") DCGM("0", "2147483632", "927200")
                                    DCGM("0", "79", "930800")),
                     "3600 0 3600 Xid 79;|left out: 1 value of DCGM's gauge that is no Xid");
}
END_TEST

/* Braces and quotes within a label are of its text; a label whose name ends alike is another. */
START_TEST(labels_are_quoted)
{
#define LABELS(text, xid, seconds) "DCGM_FI_DEV_XID_ERRORS{" text "} " xid " 1699" seconds "000\n"
#define FELL                       "my_gpu=\"7\",gpu=\"0\",err_msg=\"GPU \\\"has\\\" {fallen}, gpu=1\", Hostname=\"n1\","
    ck_assert_str_eq(XID(usual, LABELS(FELL, "0", "920000") LABELS(FELL, "79", "923600")), "3600 0 3600 Xid 79;");
    ck_assert_str_eq(XID(usual, LABELS("gpu=\"0\",err_msg=\"x", "79", "920000")), "|a metric without a value");
    ck_assert_str_eq(XID(usual, LABELS("gpu=\"0\",err", "79", "920000") "x"), "|a metric without a value");
}
END_TEST

/* GPU 0 of two instances is two, and Hostname goes before. */
START_TEST(instances_are_hosts)
{
#define AT(host) "gpu=\"0\",instance=\"" host ":9400\""
    static const char scrapes[] = LABELS(AT("10.0.0.1"), "0", "920000") LABELS(AT("10.0.0.2"), "0", "920000")
        LABELS(AT("10.0.0.1"), "79", "923600") LABELS(AT("10.0.0.2"), "0", "923600") LABELS(AT("10.0.0.2"), "79", "927200");
    ck_assert_str_eq(XID(usual, scrapes), "3600 0 3600 Xid 79;7200 1 3600 Xid 79;");
    ck_assert_str_eq(host_of_first(scrapes), "10.0.0.1:9400");
    static const char named[] =
        LABELS(AT("10.0.0.1") ",Hostname=\"n1\"", "0", "920000") LABELS(AT("10.0.0.2") ",Hostname=\"n1\"", "79", "923600");
    ck_assert_str_eq(host_of_first(named), "n1");
}
END_TEST

/* Times are read by their digits: seconds of 2023 have no room for nanoseconds in a double, nor milliseconds. */
START_TEST(metrics_times_are_exact)
{
    struct files file = {.n = 0};
    struct fault_trace trace;
    struct diags diags = {0};
    files_add(&file, GAUGE("0") "0 1699920000\n" GAUGE("0") "79 1699923660.250\n" GAUGE("0") "48 1699930860251\n" GAUGE(
                         "0") "79 1699934460.123456789123\n" GAUGE("0") "48 1699940000000000000e-9\n");
    ck_assert_int_eq(xid_trace_read(file.names, 1, &usual, &trace, &diags), STATUS_OK);
    unlink(file.names[0]);
    ck_assert_uint_eq(trace.n_items, 4);
    ck_assert_int_eq(trace.items[0].time, INT64_C(3660250000000));
    ck_assert_int_eq(trace.items[1].time, INT64_C(10860251000000));
    ck_assert_int_eq(trace.items[2].time, INT64_C(14460123456789));
    ck_assert_int_eq(trace.items[3].time, INT64_C(20000000000000));
    fault_trace_free(&trace);
    diags_free(&diags);
}
END_TEST

/* A double-bit error tells itself in five Xids, and in two on nodes that it did not happen to. */
START_TEST(one_event_is_one_fault)
{
    static const char event[] = LINE("Nov 23 00:00:01", "n1", "48") LINE("Nov 23 00:00:01", "n1", "63")
        LINE("Nov 23 00:00:02", "n1", "95") LINE("Nov 23 00:00:03", "n1", "154") LINE("Nov 23 00:00:04", "n1", "45")
            LINE("Nov 23 00:00:04", "n2", "45") LINE("Nov 23 00:00:04", "n3", "45");
    ck_assert_str_eq(XID(usual, event), "1 0 3600 Xid 48;|left out, as nothing ends by them: Xid 45 (3), 63 (1), 154 (1)");
    /* The worst is kept where it stands, and a lost GPU is worse than one to reset, that worse than the program's error. */
    static const char worse[] =
        LINE("Nov 23 00:00:01", "n1", "31") LINE("Nov 23 00:00:02", "n1", "94") LINE("Nov 23 00:00:03", "n1", "119")
            LINE("Nov 23 00:00:04", "n1", "79") LINE("Nov 23 00:00:05", "n1", "48") LINE("Nov 23 00:00:06", "n1", "13");
    STARTS(XID(usual, worse), "4 0 3600 Xid 79;|errors of the programs themselves, which take no node away: Xid 13 (1), 31 (1)");
}
END_TEST

START_TEST(classes_of_xids)
{
    static const int inform[] = {45, 63, 92, 121, 154}, programs[] = {8, 13, 31, 32, 43, 69, 109, 137}, unknown[] = {1, 999};
    static const int hardware[] = {48, 61, 62, 64, 74, 79, 94, 95, 119, 120, 140, 143};
    const char *meaning;
    char head[16];
    for (size_t i = 0; i < sizeof inform / sizeof *inform; i++)
        ck_assert_int_eq(xid_classify(inform[i], &meaning), XID_INFORMATION);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        ck_assert_int_eq(xid_classify(programs[i], &meaning), XID_APPLICATION);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        ck_assert_int_eq(xid_classify(unknown[i], &meaning), XID_UNKNOWN);
    for (size_t i = 0; i < sizeof hardware / sizeof *hardware; i++)
        ck_assert_int_ge(xid_classify(hardware[i], &meaning), XID_CONTAINED);
    for (int number = 1; number <= XID_LARGEST; number++)
        if (xid_classify(number, &meaning) != XID_UNKNOWN) { /* the reader finds the number in the meaning again */
            int n = snprintf(head, sizeof head, "Xid %d: ", number);
            ck_assert_msg(strncmp(meaning, head, (size_t)n) == 0, "%d: %s", number, meaning);
        }
    ck_assert_str_eq(XID(usual, LINE("Nov 23 00:00:01", "n1", "999") LINE("Nov 23 00:00:01", "n1", "998")
                                    LINE("Nov 23 00:00:02", "n1", "999")),
                     "|left out, as their meaning is unknown: Xid 998 (1), 999 (2)");
}
END_TEST

#define BARE(time, xid) time " NVRM: Xid (PCI:0000:1b:00): " xid ", x\n"

/* A file without hosts is one, a healthy one too; where lines name their host that counts. */
START_TEST(many_files_are_one_trace)
{
    const char *const three[] = {BARE("[Mon Nov 23 07:00:00 2026]", "79"), "[Mon Nov 23 07:00:00 2026] usb\n",
                                 BARE("[Mon Nov 23 07:00:01 2026]", "79"), NULL};
    const char *text = converted(xid_trace_read, usual, three);
    STARTS(text, "25200 0 3600 Xid 79;25201 2 3600 Xid 79;|3 files, 3 hosts,");
    const char *const named[] = {LINE("Nov 23 00:00:01", "n1", "79"), LINE("Nov 23 01:00:01", "n1", "79"), NULL};
    STARTS(converted(xid_trace_read, usual, named), "1 0 3600 Xid 79;3601 0 3600 Xid 79;|2 files, 1 host,");
    const char *const booted[] = {BARE("[5.5]", "79"), BARE("[9.5]", "48"), NULL};
    text = converted(xid_trace_read, usual, booted);
    STARTS(text, "0 0 3600 Xid 79;4 1 3600 Xid 48;|");
    HAS(text, "as if all hosts had booted at once");
    const char *const mixed[] = {BARE("[5.5]", "79"), BARE("[Mon Nov 23 07:00:00 2026]", "79"), NULL};
    ck_assert_str_eq(converted(xid_trace_read, usual, mixed),
                     "|this line has a date with its year, those above seconds since boot; convert them apart");
}
END_TEST

/* A kernel that says which thread or processor printed does so before the host, with blanks or without. */
START_TEST(callers_are_no_hosts)
{
    static const char *const times[] = {"[  100.5][ T1234]", "[  100.5] [ T1234]", "[  100.5][   C3]"};
    static const char *const dates[] = {"[Mon Nov 23 00:01:40 2026] [ T1234]", "[Mon Nov 23 00:01:40 2026][C3]",
                                        "2026-11-23T00:01:40,123456+00:00 [C3]", "2026-11-23T00:01:40,123456+00:00 [ T1234]"};
    char line[128];
    for (size_t i = 0; i < 2 * (sizeof times / sizeof *times); i++) { /* the file is the host, or the line names it */
        snprintf(line, sizeof line, i % 2 ? LINE("%s", "n1", "79") : BARE("%s", "79"), times[i / 2]);
        ck_assert_str_eq(XID(usual, line), "0 0 3600 Xid 79;");
        ck_assert_str_eq(host_of_first(line), i % 2 ? "n1" : "the file");
    }
    for (size_t i = 0; i < 2 * (sizeof dates / sizeof *dates); i++) {
        snprintf(line, sizeof line, i % 2 ? LINE("%s", "n1", "79") : BARE("%s", "79"), dates[i / 2]);
        ck_assert_str_eq(XID(usual, line), "100 0 3600 Xid 79;");
        ck_assert_str_eq(host_of_first(line), i % 2 ? "n1" : "the file");
    }
}
END_TEST

/* 00:30 at +01:00 is 23:30 of the day before, as DCGM's gauge has it; what is no zone is no time. */
START_TEST(zones_are_applied)
{
    static const struct {
        const char *time;
        int seconds; /* since midnight of 2 March */
    } lines[] = {{"2024-03-02T23:30:00Z", 84600},
                 {"2024-03-03T00:30:00+01:00", 84600},
                 {"2024-03-03T00:30:00+0100", 84600},
                 {"2024-03-03T00:30:00,123456+01:00", 84600},
                 {"2024-03-02T18:00:00.654321-0530", 84600},
                 {"2024-03-02T23:30:00", 84600},
                 {"Sat 2024-03-02 23:30:00 UTC", 84600},
                 {"2024-03-03T00:30:00-01", 91800}};
    char line[128], says[64];
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        snprintf(line, sizeof line, LINE("%s", "n1", "79"), lines[i].time);
        snprintf(says, sizeof says, "%d 0 3600 Xid 79;", lines[i].seconds);
        ck_assert_str_eq(XID(window("2024-03-02", 0), line), says);
        ck_assert_str_eq(host_of_first(line), "n1");
    }
    STARTS(XID(window("2024-03-02", 0),
               LINE("Sat 2024-03-02 23:30:00 CET", "n1", "79") LINE("Sun 2024-03-03 23:30:00 CET", "n1", "79")),
           "84600 0 3600 Xid 79;171000 0 3600 Xid 79;|the zone 'CET' has no hours that are known");
    STARTS(XID(usual, LINE("2024-03-03T00:30:00+99:00", "n1", "79")), "|an Xid without a time or a number;");
    /* One event that a log and the gauge tell is one. */
    STARTS(XID(usual, LINE("2023-11-14T01:00:00+01:00", "n1", "79") DCGM("0", "0", "910000") DCGM("0", "79", "920060")),
           "0 0 3600 Xid 79;");
}
END_TEST

/* dmesg -H writes how long after the line above; that is no time since boot. */
START_TEST(steps_are_no_times)
{
    static const char *const none[] = {"[  +1.500000]", "[+1.5]", "[ -1.5]", "[  inf]", "[]"};
    char line[128];
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        snprintf(line, sizeof line, BARE("%s", "79"), none[i]);
        STARTS(XID(usual, line), "|an Xid without a time or a number; lines of dmesg,");
    }
    ck_assert_str_eq(XID(usual, BARE("[    1.500000]", "79") BARE("[500.5]", "48")), "0 0 3600 Xid 79;499 0 3600 Xid 48;");
}
END_TEST

/* One file ends in January, the next in December: of the winter between, not eleven months later. */
START_TEST(files_without_years_are_of_one_winter)
{
    const char *const winter[] = {LINE("Jan  1 00:00:00", "n1", "79"), LINE("Dec 31 00:00:00", "n2", "79"), NULL};
    STARTS(converted(xid_trace_read, usual, winter), "0 1 3600 Xid 79;86400 0 3600 Xid 79;|its lines name no year");
    const char *const turned[] = {LINE("Dec 31 00:00:00", "n1", "79") LINE("Jan  1 00:00:00", "n1", "48"),
                                  LINE("Jan  1 00:00:09", "n2", "79"), NULL};
    STARTS(converted(xid_trace_read, usual, turned), "0 0 3600 Xid 79;86400 0 3600 Xid 48;86409 1 3600 Xid 79;|");
}
END_TEST

/* --- jobs --- */

START_TEST(states_that_name_the_node)
{
    static const char table[] = "state,end_s,node,gpus\nNODE_FAIL,100,a,8\nFAILED,1000,b,8\nFAILED,2000,b,0\nTIMEOUT,3000,a,8\n"
                                "OUT_OF_MEMORY,4000,a,8\nBOOT_FAIL,5000,c,8\nCANCELLED by 7,6000,a,8\nCOMPLETED,7000,a,8\n"
                                "Hardware error,8000,a,8\nOOM error,9000,a,8\nDEADLINE,9000,a,8\nNode Failure,9500,,8\n";
    struct convert_options asked = usual;
    asked.failed_jobs = true;
    STARTS(JOBS(usual, table),
           "100 0 3600 NODE_F;5000 1 3600 BOOT_F;8000 0 3600 Hardwa;|left out: 2 jobs that just failed, perhaps");
    STARTS(JOBS(asked, table),
           "100 0 3600 NODE_F;1000 1 3600 FAILED;5000 2 3600 BOOT_F;8000 0 3600 Hardwa;|left out: 1 job that");
    HAS(JOBS(usual, "status,end\nfailed,7\n"), "no column says which node");
}
END_TEST

/* Numbers under `nodes` are how many, under `node` which. Made-up nodes keep all failures, at one moment too. */
START_TEST(nodes_that_nobody_named)
{
    static const char counts[] = "state,end_s,nodes\nNODE_FAIL,10,8\nNODE_FAIL,10,8\nNODE_FAIL,11,16\n";
    struct convert_options two = usual;
    two.nodes = 2;
    STARTS(JOBS(usual, counts), "|these are numbers of nodes");
    STARTS(JOBS(usual, "state,end_s,Nodes\nNODE_FAIL,10,8.0\nNODE_FAIL,10,\n"), "|these are numbers of nodes");
    ck_assert_str_eq(JOBS(usual, "state,end_s,hosts\nNODE_FAIL,10,10.0.0.1\nNODE_FAIL,10,10.0.0.2\n"),
                     "10 0 3600 NODE_F;10 1 3600 NODE_F;");
    STARTS(JOBS(two, counts), "10 0 3600 NODE_F;10 1 3600 NODE_F;11 0 3600 NODE_F;|no column names nodes");
    ck_assert_str_eq(JOBS(usual, "state,end_s,node\nNODE_FAIL,10,8\nNODE_FAIL,11,16\nNODE_FAIL,12,8\n"),
                     "10 0 3600 NODE_F;11 1 3600 NODE_F;");
}
END_TEST

/* sacct -P: bars, capitals, hosts in brackets, steps, dates. 07:00+08:00 is 23:00Z of the day before. */
START_TEST(as_slurm_writes)
{
    static const char sacct[] = "JobID|State|Submit|Start|End|NodeList\n"
                                "1|NODE_FAIL|x|x|2024-03-02T00:00:00Z|gpu[001-003,007]\n"
                                "2|NODE_FAIL|x|x|2024-03-02T07:00:00+08:00|gpu[007,009]-ib\n"
                                "2.batch|NODE_FAIL|x|x|2024-03-02T09:00:00+0800|gpu007\n"
                                "3|NODE_FAIL|x|x|2024-03-01T20:00:00.25-0500|gpu001\n"
                                "4|BOOT_FAIL|x|x|2024-03-02 02:00:00 UTC|None assigned\n"
                                "5|NODE_FAIL|x|x|2024-03-02T02:00:00+00|gpu007-ib\n";
    const char *text = JOBS(usual, sacct);
    STARTS(text,
           "82800 1 3600 NODE_F;86400 0 3600 NODE_F;90000 0 3600 NODE_F;93600 1 3600 NODE_F;|2 failures of jobs on several");
    text = JOBS(usual, "state,end,node\nNODE_FAIL,2024-03-02T00:00:00+25:00,a\nNODE_FAIL,2024-03-02T00:00:00+8x,a\n"
                       "NODE_FAIL,2024-02-30T00:00:00Z,a\n");
    HAS(text, "'2024-03-02T00:00:00+25:00' is neither");
    HAS(text, "'2024-03-02T00:00:00+8x' is neither");
    HAS(text, "'2024-02-30T00:00:00Z' is neither");
    HAS(JOBS(usual, "state,end,node\nNODE_FAIL,2024-03-02T00:00:00,a\nNODE_FAIL,2024-03-02T00:00:00Z,b\n"),
        "1 of 2 times name a zone");
}
END_TEST

/* --- nvidia-smi --- */

#define SMI_HEAD                                                                                                                 \
    "timestamp, index, clocks.current.sm [MHz], clocks.max.sm [MHz], "                                                           \
    "clocks_event_reasons.active\n"
#define SMI_ROW(minute, clock, why) "2024/03/03 12:" minute ":00.345, 0, " clock " MHz, 1980 MHz, " why "\n"

/* Below 95 % of the clock (1881 MHz) by each of the reasons. */
START_TEST(slow_by_what_is_wrong)
{
    static const struct {
        const char *why;
        bool slow;
    } rows[] = {{"0x0000000000000001", false}, {"0x0000000000000002", false}, {"0x0000000000000004", false},
                {"0x0000000000000008", true},  {"0x0000000000000010", false}, {"0x0000000000000020", true},
                {"0x0000000000000040", true},  {"0x0000000000000080", true},  {"0x0000000000000100", false},
                {"0x0000000000000044", true},  {"0x0000000000000016", false}};
    char table[512];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(table, sizeof table,
                 SMI_HEAD "2024/03/03 00:01:00.345, 0, 1650 MHz, 1980 MHz, %s\n"
                          "2024/03/03 00:03:00.345, 0, 1980 MHz, 1980 MHz, 0x0000000000000000\n",
                 rows[i].why);
        const char *text = SMI(usual, table);
        ck_assert_msg((strncmp(text, "60 0 120 GPU cl;", 16) == 0) == rows[i].slow, "%s: %s", rows[i].why, text);
        ck_assert_msg((strchr(text, ';') != NULL) == rows[i].slow, "%s: %s", rows[i].why, text);
    }
    HAS(SMI(usual, SMI_HEAD SMI_ROW("01", "1650", "0x4")), "left out: 1 row of GPUs below their clocks");
}
END_TEST

/* On and off every two minutes is one slow time; files without a column host are hosts. */
START_TEST(slow_times_join)
{
    static const char flaps[] = SMI_HEAD SMI_ROW("00", "1500", "0x20") SMI_ROW("02", "1980", "0x0") SMI_ROW("04", "990", "0x20")
        SMI_ROW("06", "1980", "0x0") SMI_ROW("08", "1500", "0x20") SMI_ROW("10", "1980", "0x0");
    STARTS(SMI(usual, flaps), "43200 0 600 GPU cl;");
    const char *const two[] = {SMI_HEAD SMI_ROW("00", "1980", "0x0"), flaps, NULL};
    STARTS(converted(smi_trace_read, usual, two), "43200 1 600 GPU cl;|2 files, 2 hosts,");
}
END_TEST

/* "Active" is of one reason; what cannot be told for want of a column is said, and a table that tells nothing is refused. */
START_TEST(columns_that_are_not_there)
{
    const char *text =
        SMI(usual, "timestamp, index, clocks.current.sm [MHz], clocks.max.sm [MHz], clocks_throttle_reasons.sw_power_cap, "
                   "clocks_throttle_reasons.hw_thermal_slowdown\n"
                   "2024/03/03 12:00:00, 0, 990 MHz, 1980 MHz, Active, Not Active\n"
                   "2024/03/03 12:01:00, 0, 990 MHz, 1980 MHz, Not Active, Active\n"
                   "2024/03/03 12:03:00, 0, 1980 MHz, 1980 MHz, Active, Not Active\n");
    ck_assert_str_eq(text, "43260 0 120 GPU cl;|no column ecc.errors.uncorrected...: memory errors cannot be told");
    text = SMI(usual, "timestamp, index, ecc.errors.uncorrected.aggregate.total, clocks.current.sm [MHz], clocks.max.sm [MHz]\n"
                      "2024/03/03 12:00:00, 0, 1, 990 MHz, 1980 MHz\n2024/03/03 12:01:00, 0, 2, 990 MHz, 1980 MHz\n");
    STARTS(text, "43260 0 3600 Uncorr;|slow GPUs cannot be told without all of clocks.current.sm,");
    STARTS(SMI(usual, "timestamp, index, clocks.current.sm [MHz], clocks.max.sm [MHz]\n"), "|nothing to see faults by; query");
    STARTS(SMI(usual, "timestamp, index, ecc.errors.uncorrected.volatile.total\n2024/03/03 12:00:00, 0, [N/A]\n"),
           "|ecc.errors.uncorrected... is nowhere a number: memory errors cannot be told|slow GPUs");
}
END_TEST

/* A count may be of the GPU's lifetime: the first number is no growth, wherever it stands. */
START_TEST(a_first_number_is_no_growth)
{
#define ECC_HEAD                "timestamp, index, ecc.errors.uncorrected.aggregate.total\n"
#define ECC_ROW(minute, errors) "2024/03/03 12:" minute ":00, 0, " errors "\n"
    STARTS(SMI(usual, ECC_HEAD ECC_ROW("00", "[Unknown Error]") ECC_ROW("01", "3") ECC_ROW("02", "[N/A]") ECC_ROW("03", "3")
                          ECC_ROW("04", "4")),
           "43440 0 3600 Uncorr;|slow GPUs");
    STARTS(SMI(usual, ECC_HEAD ECC_ROW("00", "[N/A]") ECC_ROW("01", "3")), "|slow GPUs");
}
END_TEST

/* --- what is kept --- */

/* 10:00, 11:00 and 12:00 of a day in every source: from half past ten on for an hour and a half, and without a date from
 * midnight. What begins just as the window ends is out of it. */
START_TEST(a_window_cuts_every_source)
{
    static const char log[] = "2024-03-03T10:00:00 n1 kernel: NVRM: Xid (PCI:0000:1b:00): 79, x\n"
                              "2024-03-03T11:00:00 n1 kernel: NVRM: Xid (PCI:0000:1b:00): 79, x\n"
                              "2024-03-03T12:00:00 n1 kernel: NVRM: Xid (PCI:0000:1b:00): 79, x\n";
    static const char table[] = "state,end,node\nNODE_FAIL,2024-03-03T10:00:00,n1\nNODE_FAIL,2024-03-03T11:00:00,n1\n"
                                "NODE_FAIL,2024-03-03T12:00:00,n1\n";
    static const char smi[] =
        "timestamp,index,ecc.errors.uncorrected.x,clocks.current.sm,clocks.max.sm,clocks_event_reasons.active\n"
        "2024/03/03 09:00:00,0,0,9,9,0\n2024/03/03 10:00:00,0,1,9,9,0\n2024/03/03 11:00:00,0,2,9,9,0\n"
        "2024/03/03 12:00:00,0,3,9,9,0\n";
    static const char floor[] = "time,location,event\n2024-03-03T10:00:00,c0-0c0s0n0,DBE\n2024-03-03T11:00:00,c0-0c0s0n0,DBE\n"
                                "2024-03-03T12:00:00,c0-0c0s0n0,DBE\n";
    static const struct {
        several *reader;
        const char *text;
    } sources[] = {{xid_trace_read, log}, {jobs, table}, {smi_trace_read, smi}, {titan, floor}};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        const char *text = converted(sources[i].reader, window("2024-03-03T10:30", 90 * MINUTE), ONE(sources[i].text));
        STARTS(text, "1800 0 3600 ");
        ck_assert_ptr_eq(strchr(text, ';'), strrchr(text, ';'));
        HAS(text, "|left out: 1 fault before --from|left out: 1 fault behind --horizon");
        text = converted(sources[i].reader, window(NULL, 660 * MINUTE), ONE(sources[i].text));
        STARTS(text, "36000 0 3600 ");
        HAS(text, ";|left out: 2 faults behind --horizon");
        text = converted(sources[i].reader, window("2024-03-04", 0), ONE(sources[i].text));
        STARTS(text, "|left out: 3 faults before --from");
    }
}
END_TEST

/* A date says nothing of a clock without one. */
START_TEST(no_date_where_none_is)
{
    struct convert_options from = window("2024-03-03", 0);
    STARTS(XID(from, BARE("[5.5]", "79")), "|--from is a date, and these lines have seconds since boot;");
    STARTS(XID(from, LINE("Nov 23 07:00:00", "n1", "79")), "|--from is a date, and these lines have dates without a year;");
    STARTS(JOBS(from, "state,end_s,node\nNODE_FAIL,100,a\n"), "|--from is a date, and these times are seconds since the table's");
    STARTS(JOBS(from, "state,end_s,node\nNODE_FAIL,1709424060,a\n"), "60 0 3600 NODE_F;");
    STARTS(XID(window(NULL, 2 * NANOS_PER_SECOND), BARE("[5.5]", "79") BARE("[405.5]", "48")), "0 0 3600 Xid 79;|left out: 1");
}
END_TEST

/* ---- states of nodes */

#define EVENTS "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"

START_TEST(states_of_nodes)
{
    struct convert_options how = usual;
    ck_assert_str_eq(NODES(how, EVENTS "c|n1|2025-03-01T01:00:00|2025-03-01T03:00:00|DOWN*|Not responding [slurm@2025]|root\n"
                                       "c|n2|2025-03-01T02:00:00|2025-03-01T02:30:00|DRAINED|disk|ann\n"),
                     "3600 0 7200 Not re;7200 1 1800 disk planned;");
    /* down, then drained until it is repaired: one outage; a drain of a node that fails then: planned */
    ck_assert_str_eq(NODES(how, EVENTS "c|n1|2025-03-01T02:00:00|2025-03-01T05:00:00|DOWN+DRAIN|b|\n"
                                       "c|n1|2025-03-01T01:00:00|2025-03-01T02:00:00|DOWN|a|\n"
                                       "c|n1|2025-03-01T05:05:01|2025-03-01T06:00:00|IDLE+DRAIN|c|\n"),
                     "3600 0 14400 a;18301 0 3299 c planned;");
    how.merge = 0;
    ck_assert_str_eq(NODES(how, "node;from;to;state\na;100;200;down\na;200;300;fail\na;301;302;down\n"),
                     "100 0 200 down;301 0 1 down;");
    /* what is there, what is of the cluster, and what goes on */
    ck_assert_str_eq(
        NODES(usual, EVENTS "c||2025-03-01T00:00:00|Unknown||Cluster Registered TRES|\n"
                            "c|n1|2025-03-01T01:00:00|Unknown|FAIL||\n"
                            "c|n2|2025-03-01T01:00:00|2025-03-01T02:00:00|POWERED_DOWN||\n"
                            "c|n3|2025-03-01T01:00:00|2025-03-01T02:00:00|IDLE||\n"),
        "3600 0 3600 FAIL;|left out: 2 rows of nodes that were there|1 outage without an end: --down is taken for how "
        "long it is");
    STARTS(NODES(usual, EVENTS "c|n1|2025-03-01T02:00:00|2025-03-01T01:00:00|DOWN||\n"), "|the state ends before it begins");
    STARTS(NODES(usual, EVENTS "c|n[1-2]|2025-03-01T02:00:00|2025-03-01T03:00:00|DOWN||\n"), "|'n[1-2]' are several nodes");
    STARTS(NODES(usual, EVENTS "c|n1|yesterday|2025-03-01T03:00:00|DOWN||\n"), "|'yesterday' is neither seconds nor a time");
    STARTS(NODES(usual, "a,b\n1,2\n"), "|no column names nodes");
}
END_TEST

START_TEST(what_a_file_is)
{
    static const struct {
        enum convert_source source;
        const char *text;
    } files[] = {{CONVERT_LANL, "system,nodes,node,start,downtime_min,category,detail\n"},
                 {CONVERT_TITAN, "# of 2020\n\ntime,gpu_sn,location,event\n"},
                 {CONVERT_JOBS, "JobID|State|Start|End|NodeList\n"},
                 {CONVERT_JOBS, "job_id;Job_State;end_time\n"},
                 {CONVERT_JOBS, "Status\n"},
                 {CONVERT_NODES, EVENTS},
                 {CONVERT_NODES, "Node;State;From;To;Reason\n"},
                 {CONVERT_SMI, "timestamp, index, ecc.errors.uncorrected.aggregate.total\r\n"},
                 {CONVERT_SMI, SMI_HEAD},
                 {CONVERT_XID, "usb\n" LINE("Nov 23 07:00:00", "n1", "79")},
                 {CONVERT_XID, "# HELP DCGM_FI_DEV_XID_ERRORS x\n" GAUGE("0") "79 1699920000\n"},
                 {CONVERT_XID, "[   12.5] usb\n"}, /* a healthy host's */
                 {CONVERT_UNKNOWN, "hello,world\n1,2\n"},
                 {CONVERT_UNKNOWN, "time_s,node,kind,down_s\n"},
                 {CONVERT_UNKNOWN, ""}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct files file = {.n = 0};
        struct diags diags = {0};
        enum convert_source source = CONVERT_UNKNOWN;
        files_add(&file, files[i].text);
        enum status status = convert_source_of(file.names[0], &source, &diags);
        unlink(file.names[0]);
        ck_assert_msg(source == files[i].source, "%zu: %d", i, (int)source);
        ck_assert_int_eq(status == STATUS_OK, source != CONVERT_UNKNOWN);
        if (status != STATUS_OK)
            HAS(diags.items[0].text, strncmp(files[i].text, "time_s,", 7) == 0
                                         ? "is a fault trace already"
                                         : "--source: lanl, titan, jobs, nodes, xid or smi");
        diags_free(&diags);
    }
}
END_TEST

/* Nodes without faults have names, too; they are written with the rows of those that have, and read again. */
START_TEST(nodes_keep_the_names_of_hosts)
{
    static const char text[] = LINE("Nov 23 07:00:00", "idle", "45") LINE("Nov 23 07:00:00", "n1", "79");
    struct files file = {.n = 0};
    struct fault_trace trace, again;
    struct diags diags = {0};
    files_add(&file, text);
    ck_assert_int_eq(xid_trace_read(file.names, 1, &usual, &trace, &diags), STATUS_OK);
    ck_assert_uint_eq(trace.n_items, 1);
    ck_assert_str_eq(fault_trace_host(&trace, 0), "idle");
    ck_assert_str_eq(fault_trace_host(&trace, trace.items[0].node), "n1");
    ck_assert_str_eq(fault_trace_host(&trace, 2), "");
    FILE *out = fopen(file.names[0], "w");
    fault_trace_write(&trace, out);
    fclose(out);
    ck_assert_int_eq(fault_trace_read(file.names[0], (struct fault_trace_limits){0}, &again, &diags), STATUS_OK);
    unlink(file.names[0]);
    ck_assert_str_eq(fault_trace_host(&again, 0), "");
    ck_assert_str_eq(fault_trace_host(&again, 1), "n1");
    fault_trace_free(&again);
    fault_trace_free(&trace);
    diags_free(&diags);
}
END_TEST

/* Many hosts, in an order that is none of theirs, keep the numbers of their first appearance; one name may begin with another. */
START_TEST(many_hosts_keep_their_numbers)
{
    enum { N = 5000 };
    struct host_table hosts = {0};
    char name[32];
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(host_number(&hosts, name, (size_t)snprintf(name, sizeof name, "n%d", i * 7919 % N)), i);
    for (int i = N - 1; i >= 0; i--) {
        int n = snprintf(name, sizeof name, "n%d:9400", i * 7919 % N);
        ck_assert_int_eq(host_number(&hosts, name, (size_t)n - strlen(":9400")), i);
    }
    ck_assert_uint_eq(hosts.n, N);
    ck_assert_int_eq(host_number(&hosts, "", 0), N);
    ck_assert_int_eq(host_number(&hosts, "n", 1), N + 1);
    host_table_free(&hosts);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("convert");
    TCase *tests = tcase_create("records");
    tcase_add_test(tests, repeats_slide);
    tcase_add_test(tests, a_gauge_counts_changes);
    tcase_add_test(tests, metrics_have_times);
    tcase_add_test(tests, what_a_gauge_shows_at_first);
    tcase_add_test(tests, labels_are_quoted);
    tcase_add_test(tests, instances_are_hosts);
    tcase_add_test(tests, metrics_times_are_exact);
    tcase_add_test(tests, one_event_is_one_fault);
    tcase_add_test(tests, classes_of_xids);
    tcase_add_test(tests, many_files_are_one_trace);
    tcase_add_test(tests, callers_are_no_hosts);
    tcase_add_test(tests, zones_are_applied);
    tcase_add_test(tests, steps_are_no_times);
    tcase_add_test(tests, files_without_years_are_of_one_winter);
    tcase_add_test(tests, states_that_name_the_node);
    tcase_add_test(tests, nodes_that_nobody_named);
    tcase_add_test(tests, as_slurm_writes);
    tcase_add_test(tests, slow_by_what_is_wrong);
    tcase_add_test(tests, slow_times_join);
    tcase_add_test(tests, columns_that_are_not_there);
    tcase_add_test(tests, a_first_number_is_no_growth);
    tcase_add_test(tests, a_window_cuts_every_source);
    tcase_add_test(tests, no_date_where_none_is);
    tcase_add_test(tests, states_of_nodes);
    tcase_add_test(tests, what_a_file_is);
    tcase_add_test(tests, nodes_keep_the_names_of_hosts);
    tcase_add_test(tests, many_hosts_keep_their_numbers);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
