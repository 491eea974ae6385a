/*
 * Records of other systems as fault traces.
 *
 * What is proved, by cases that are counted by hand: events repeat as long as each is close to the one before; jobs fail by
 * states that name the node, on a node of any list, at universal times; nodes that nobody named are asked for and never
 * merged; GPUs are slow by what is wrong with them, not by their power cap. A window cuts every source alike; what a file is
 * follows from its columns or lines; nodes keep the names of their hosts.
 */
#include <stdio.h>
#include <unistd.h>

#include "tests/suite.h"
#include "tests/traces/converted.h"
#include "traces/fault/xid.h"

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

/* --- jobs --- */

START_TEST(states_that_name_the_node)
{
    static const char table[] = "state,end_s,node,gpus\nNODE_FAIL,100,a,8\nFAILED,1000,b,8\nFAILED,2000,b,0\nTIMEOUT,3000,a,8\n"
                                "OUT_OF_MEMORY,4000,a,8\nBOOT_FAIL,5000,c,8\nCANCELLED by 7,6000,a,8\nCOMPLETED,7000,a,8\n"
                                "Hardware error,8000,a,8\nOOM error,9000,a,8\nDEADLINE,9000,a,8\nNode Failure,9500,,8\n";
    struct convert_options asked = usual;
    asked.failed_jobs = true;
    STARTS(JOBS(usual, table),
           "100 0 3600 NODE_F;5000 1 3600 BOOT_F;8000 0 3600 Hardwa;|left out: 2 jobs in state FAILED, possibly");
    STARTS(JOBS(asked, table),
           "100 0 3600 NODE_F;1000 1 3600 FAILED;5000 2 3600 BOOT_F;8000 0 3600 Hardwa;|left out: 1 job in state FAILED");
    HAS(JOBS(usual, "status,end\nfailed,7\n"), "the column of nodes is missing");
}
END_TEST

/* Numbers under `nodes` are how many, under `node` which. Made-up nodes keep all failures, at one moment too. */
START_TEST(nodes_that_nobody_named)
{
    static const char counts[] = "state,end_s,nodes\nNODE_FAIL,10,8\nNODE_FAIL,10,8\nNODE_FAIL,11,16\n";
    struct convert_options two = usual;
    two.nodes = 2;
    STARTS(JOBS(usual, counts), "|this column counts nodes");
    STARTS(JOBS(usual, "state,end_s,Nodes\nNODE_FAIL,10,8.0\nNODE_FAIL,10,\n"), "|this column counts nodes");
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
           "82800 1 3600 NODE_F;86400 0 3600 NODE_F;90000 2 3600 NODE_F;93600 3 3600 NODE_F;|2 failures of jobs on several");
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
    ck_assert_str_eq(text, "43260 0 120 GPU cl;|no column ecc.errors.uncorrected...: memory errors are not visible");
    text = SMI(usual, "timestamp, index, ecc.errors.uncorrected.aggregate.total, clocks.current.sm [MHz], clocks.max.sm [MHz]\n"
                      "2024/03/03 12:00:00, 0, 1, 990 MHz, 1980 MHz\n2024/03/03 12:01:00, 0, 2, 990 MHz, 1980 MHz\n");
    STARTS(text, "43260 0 3600 Uncorr;|slow GPUs are not visible without all of clocks.current.sm,");
    STARTS(SMI(usual, "timestamp, index, clocks.current.sm [MHz], clocks.max.sm [MHz]\n"), "|no column shows faults; query");
    STARTS(SMI(usual, "timestamp, index, ecc.errors.uncorrected.volatile.total\n2024/03/03 12:00:00, 0, [N/A]\n"),
           "|ecc.errors.uncorrected... has no number: memory errors are not visible|slow GPUs");
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
        HAS(text, "|left out: 1 fault before --from|left out: 1 fault after --horizon");
        text = converted(sources[i].reader, window(NULL, 660 * MINUTE), ONE(sources[i].text));
        STARTS(text, "36000 0 3600 ");
        HAS(text, ";|left out: 2 faults after --horizon");
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
                                       "c|n2|2025-03-01T02:00:00|2025-03-01T02:30:00|DRAINED|firmware|ann\n"),
                     "3600 0 7200 Not re;7200 1 1800 firmwa planned;");
    /* down, then drained until it is repaired: one outage; a drain of a node that fails then: planned */
    ck_assert_str_eq(NODES(how, EVENTS "c|n1|2025-03-01T02:00:00|2025-03-01T05:00:00|DOWN+DRAIN|b|\n"
                                       "c|n1|2025-03-01T01:00:00|2025-03-01T02:00:00|DOWN|a|\n"
                                       "c|n1|2025-03-01T05:05:01|2025-03-01T06:00:00|IDLE+DRAIN|c|\n"),
                     "3600 0 14400 a;18301 0 3299 c planned;");
    how.merge = 0;
    ck_assert_str_eq(NODES(how, "node;from;to;state\na;100;200;down\na;200;300;fail\na;301;302;down\n"),
                     "100 0 200 down;301 0 1 down;");
    /* what is there, what is of the cluster, and what goes on */
    ck_assert_str_eq(NODES(usual, EVENTS "c||2025-03-01T00:00:00|Unknown||Cluster Registered TRES|\n"
                                         "c|n1|2025-03-01T01:00:00|Unknown|FAIL||\n"
                                         "c|n2|2025-03-01T01:00:00|2025-03-01T02:00:00|POWERED_DOWN||\n"
                                         "c|n3|2025-03-01T01:00:00|2025-03-01T02:00:00|IDLE||\n"
                                         "c|n3|2025-03-01T02:00:00|2025-03-01T03:00:00|IDLE||\n"
                                         "c|n3|2025-03-01T03:00:00|2025-03-01T04:00:00|||\n"),
                     "3600 0 3600 FAIL;|left out: 4 rows of available nodes (POWERED_DOWN, IDLE, no state)|1 outage "
                     "without an end: --down is taken for how "
                     "long it is");
    ck_assert_str_eq(NODES(usual, "node,state,start,end\na,NotReady,0,60\nb,\"Ready,SchedulingDisabled\",0,60\nc,offline,0,60\n"),
                     "0 0 60 NotRea;0 1 60 Ready, planned;0 2 60 offlin planned;");
    ck_assert_str_eq(NODES(usual, "node,state,start,duration_s\na,down,0,60\nb,down,100,0.5\nc,down,200,\n"),
                     "0 0 60 down;100 1 0 down;200 2 3600 down;|1 outage without an end: --down is taken for how long it is");
    STARTS(NODES(usual, "node,state,start,duration\na,down,0,1h\n"), "|duration '1h' is not a number");
    STARTS(NODES(usual, "node,state,start,end\na,down,2025-03-01,2025-03-02\nb,down,5,6\n"),
           "|'5' are seconds since the table's own start, where other times are dates");
    STARTS(NODES(usual, EVENTS "c|n1|2025-03-01T02:00:00|2025-03-01T01:00:00|DOWN||\n"), "|the state ends before it begins");
    ck_assert_str_eq(NODES(usual, EVENTS "c|n[1-2]|2025-03-01T02:00:00|2025-03-01T03:00:00|DOWN||\n"),
                     "7200 0 3600 DOWN;7200 1 3600 DOWN;");
    STARTS(NODES(usual, EVENTS "c|n1|yesterday|2025-03-01T03:00:00|DOWN||\n"), "|'yesterday' is neither seconds nor a time");
    STARTS(NODES(usual, "a,b\n1,2\n"), "|the column of nodes is missing");
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
                 {CONVERT_JOBS, "node,state,start,end\nn1,COMPLETED,0,9\nn2,NODE_FAIL,0,9\n"},
                 {CONVERT_NODES, "\xef\xbb\xbfnode,state,start,end\r\nn1,fail,0,9\r\nn1,up,9,20\r\n"},
                 {CONVERT_NODES, "# ours\nHost;Status;Begin\nn1;Drained;0\n"},
                 {CONVERT_SMI, "timestamp, index, ecc.errors.uncorrected.aggregate.total\r\n"},
                 {CONVERT_SMI, SMI_HEAD},
                 {CONVERT_XID, "usb\n" LINE("Nov 23 07:00:00", "n1", "79")},
                 {CONVERT_XID, "# HELP DCGM_FI_DEV_XID_ERRORS x\n" GAUGE("0") "79 1699920000\n"},
                 {CONVERT_XID, "[   12.5] usb\n"}, /* a healthy host's */
                 {CONVERT_UNKNOWN, "hello,world\n1,2\n"},
                 {CONVERT_UNKNOWN, "time_s,node,kind,down_s\n"},
                 {CONVERT_UNKNOWN, ""},
                 {CONVERT_UNKNOWN, "\r\n"}};
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
            HAS(diags.items[0].text, strncmp(files[i].text, "time_s,", 7) == 0 ? "this is already a fault trace"
                                     : strlen(files[i].text) < 3               ? "is empty"
                                                                 : "--source jobs, nodes, xid, smi, slurm, events, bgl, table");
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
