/*
 * Xids, of kernel logs and of DCGM's gauge, as fault traces.
 *
 * What is proved, by cases that are counted by hand: of a gauge that keeps its last value changes count; Xids of one node are one
 * fault, the worst, in any order of the lines; informative and unknown Xids are no faults and are reported; many files are one
 * trace, each a host; metrics have times, in seconds or milliseconds, and lines have zones.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "model/base/append.h"
#include "tests/suite.h"
#include "tests/traces/converted.h"
#include "traces/fault/xid.h"

#define DCGM(gpu, xid, seconds) GAUGE(gpu) xid " 1699" seconds "000\n" /* 920000 is midnight of 14 November 2023 */

#define OLD "|left out: the Xid that the gauge of 1 GPU showed at the first scrape, of unknown age"

/* A gauge keeps its last value: scraped again it is no new error, for any window, nor in another order. */
START_TEST(a_gauge_counts_changes)
{
    static const char scrapes[] = DCGM("0", "0", "920000") DCGM("0", "79", "923600") DCGM("0", "79", "927200")
        DCGM("1", "0", "927200") DCGM("0", "79", "930800") DCGM("0", "0", "934400") DCGM("0", "48", "941600")
            DCGM("0", "79", "938000") DCGM("1", "31", "945200") DCGM("1", "31", "948800");
    STARTS(XID(usual, scrapes),
           "3600 0 3600 Xid 79;18000 0 3600 Xid 79;21600 0 3600 Xid 48;25200 0 0 Xid 31;|errors of programs");
    char days[40000] = "", line[96];
    for (int i = 0; i < 288; i++) { /* every 10 min for two days */
        snprintf(line, sizeof line, "DCGM_FI_DEV_XID_ERRORS{gpu=\"0\",Hostname=\"n1\"} 79 %d000\n", 1699920000 + 600 * i);
        text_append(days, sizeof days, "%s", line);
    }
    ck_assert_str_eq(XID(usual, days), OLD); /* at first it may be weeks old */
}
END_TEST

/* Prometheus counts milliseconds, OpenMetrics seconds; an exporter's own page has no time, which is reported once per file. */
START_TEST(metrics_have_times)
{
    ck_assert_str_eq(XID(usual, GAUGE("0") "0 1699920000.5\n" GAUGE("0") "79 1699923600.5\n" GAUGE("1") "0 1699920000\n" GAUGE(
                                    "1") "48 1699930800500\n"),
                     "3600 0 3600 Xid 79;10800 0 3600 Xid 48;");
    ck_assert_str_eq(
        XID(usual, GAUGE("0") "79\n" GAUGE("1") "48 \n"),
        "|a metric without a time, as on an exporter's page: add the time of the scrape after the value, in seconds or "
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
    ck_assert_str_eq(XID(usual, event), "1 0 3600 Xid 48;|left out, because they end nothing: Xid 45 (3), 63 (1), 154 (1)");
    /* The worst is kept where it stands, and a lost GPU is worse than one to reset, that worse than the program's error. */
    static const char worse[] =
        LINE("Nov 23 00:00:01", "n1", "31") LINE("Nov 23 00:00:02", "n1", "94") LINE("Nov 23 00:00:03", "n1", "119")
            LINE("Nov 23 00:00:04", "n1", "79") LINE("Nov 23 00:00:05", "n1", "48") LINE("Nov 23 00:00:06", "n1", "13");
    STARTS(XID(usual, worse), "4 0 3600 Xid 79;|errors of programs, which take no node away: Xid 13 (1), 31 (1)");
}
END_TEST

START_TEST(classes_of_xids)
{
    static const int inform[] = {37, 38, 45, 63, 66, 92, 108, 121, 141, 147, 148, 154, 157, 161, 171};
    static const int programs[] = {8, 13, 25, 31, 32, 39, 43, 69, 72, 80, 85, 99, 135, 137},
                     unknown[] = {1, 33, 87, 138, 173, 999};
    static const int hardware[] = {46,  48,  61,  62,  64,  74,  79,  94,  95,  109, 110,
                                   119, 120, 136, 140, 143, 149, 150, 151, 155, 156, 158};
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
        if (xid_classify(number, &meaning) != XID_UNKNOWN) { /* a reader finds the number again in this text */
            int n = snprintf(head, sizeof head, "Xid %d: ", number);
            ck_assert_msg(strncmp(meaning, head, (size_t)n) == 0, "%d: %s", number, meaning);
        }
    ck_assert_str_eq(XID(usual, LINE("Nov 23 00:00:01", "n1", "999") LINE("Nov 23 00:00:01", "n1", "998")
                                    LINE("Nov 23 00:00:02", "n1", "999")),
                     "|left out, because NVIDIA's catalogue of October 2025 does not explain them: Xid 998 (1), 999 (2)");
}
END_TEST

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
    HAS(text, "that all hosts booted at once");
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
           "84600 0 3600 Xid 79;171000 0 3600 Xid 79;|the hours of zone 'CET' are unknown");
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

int main(void)
{
    Suite *suite = suite_create("convert_xid");
    TCase *tests = tcase_create("records");
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
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
