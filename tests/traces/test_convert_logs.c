/*
 * Logs and tables that clusters really have, as fault traces.
 *
 * What is proved, by cases that are counted by hand: errors of NVLink, NVSwitch and AMD's GPUs count when they are fatal; Slurm's
 * log and Kubernetes' events say when a node went and came back; columns of fixed width are read as they stand; the node that
 * failed is the one that a table names; drains are failures where their reason names what broke; a table of failures is read
 * under the names that people give its columns; measurements over time are refused by their name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/suite.h"
#include "tests/traces/converted.h"
#include "traces/fault/node_reason.h"
#include "traces/table/node_list.h"

#define READER(name, function)                                                                                                   \
    static enum status name(const char *const *paths, int n, const struct convert_options *options, struct fault_trace *trace,   \
                            struct diags *diags)                                                                                 \
    {                                                                                                                            \
        ck_assert_int_eq(n, 1);                                                                                                  \
        return function(paths[0], options, trace, diags);                                                                        \
    }
READER(slurm, slurm_log_read)
READER(events, event_trace_read)
READER(bgl, bgl_trace_read)
READER(table, table_trace_read)

/* --- lines of the kernel --- */

#define NVLINK(time, xid, what) time " n1 kernel: NVRM: Xid (PCI:0000:04:00): " xid ", " what " XC0 i0 Link 08 (0x4 0x1)\n"

START_TEST(nvlink_says_whether_it_is_fatal)
{
    ck_assert_str_eq(XID(usual,
                         NVLINK("Nov 23 00:00:01", "145", "RLW_REMAP Nonfatal") NVLINK("Nov 23 01:00:00", "149", "LINK Fatal")
                             NVLINK("Nov 23 02:00:00", "144", "SAW_MVB  Nonfatal")),
                     "3600 0 3600 Xid 14;|left out: 2 errors of NVLink and NVSwitch that are not fatal");
    /* one that is usually harmless, and says that it is not */
    STARTS(XID(usual, NVLINK("Nov 23 00:00:01", "147", "TREX Fatal")), "1 0 3600 Xid 14;");
    HAS(XID(usual, GAUGE("0") "0 1753000000\n" GAUGE("0") "145 1753003600\n"), "the gauge does not say whether they are fatal");
}
END_TEST

START_TEST(switches_and_lost_gpus)
{
    static const char log[] =
        "Nov 23 00:00:01 n1 kernel: nvidia-nvswitch3: SXid (PCI:0000:85:00.0): 20034, Fatal, Link 30 LTSSM\n"
        "Nov 23 00:00:01 n1 kernel: nvidia-nvswitch3: SXid (PCI:0000:85:00.0): 20034, Severity 1 Engine 30\n"
        "Nov 23 01:00:00 n2 kernel: nvidia-nvswitch0: SXid (PCI:0000:83:00.0): 12028, Non-fatal, Link 32\n";
    ck_assert_str_eq(XID(usual, log), "1 0 3600 SXid 2;|left out: 1 error of NVLink and NVSwitch that is not fatal");
    static const char bus[] = "Nov 23 00:00:01 n1 kernel: NVRM: GPU at PCI:0000:a1:00: GPU-9\n"
                              "Nov 23 00:00:02 n1 kernel: NVRM: GPU 0000:a1:00.0: GPU has fallen off the bus.\n"
                              "Nov 23 00:00:03 n1 kernel: NVRM: Xid (PCI:0000:a1:00): 79, pid=1, GPU has fallen off the bus.\n";
    ck_assert_str_eq(XID(usual, bus), "2 0 3600 Xid 79;");
    STARTS(XID(usual, "usb\n"), "|no line contains an error of a GPU");
}
END_TEST

#define AMD(time, words) "[" time "] amdgpu 0000:c1:00.0: amdgpu: " words "\n"

START_TEST(amd_gpus)
{
    ck_assert_str_eq(XID(usual, AMD("10.0", "socket: 3, die: 0 1 uncorrectable hardware errors detected in umc block")
                                    AMD("11.0", "RAS event of type ERREVENT_ATHUB_INTERRUPT detected!")
                                        AMD("5000.0", "GPU reset begin!") AMD("5010.0", "GPU reset end with ret = -62")),
                     "0 0 3600 amdgpu;5000 0 3600 amdgpu;");
    /* nothing was found, a total, what was corrected, and a reset that worked */
    STARTS(XID(usual, AMD("1.0", "no uncorrectable hardware errors detected in umc block")
                          AMD("2.0", "0 uncorrectable hardware errors detected in umc block")
                              AMD("3.0", "{7} socket: 0, die: 1, 9 uncorrectable hardware errors detected in total in umc block")
                                  AMD("4.0", "12 correctable hardware errors detected in umc block")
                                      AMD("5.0", "GPU reset end with ret = 0") AMD("6.0", "GPU reset(2) succeeded!")),
           "|no line contains an error");
    STARTS(XID(usual, AMD("3.0", "{7} socket: 0, die: 1, 2 new uncorrectable hardware errors detected in gfx block")),
           "0 0 3600 amdgpu;");
    STARTS(XID(usual, AMD("3.0", "GPU reset(4) failed")), "0 0 3600 amdgpu;");
}
END_TEST

/* --- Slurm --- */

START_TEST(slurm_says_when_nodes_went_and_came)
{
    static const char log[] = "[2025-03-01T10:05:00.123] error: Nodes gpu[017,055] not responding, setting DOWN\n"
                              "[2025-03-01T10:05:00.124] Killing JobId=48 on failed node gpu017\n"
                              "[2025-03-01T10:25:00.123] Node gpu017 now responding\n"
                              "[2025-03-01T10:25:00.124] node gpu017 returned to service\n"
                              "[2025-03-02T10:00:00.000] update_node: node gpu031 reason set to: Kill task failed\n"
                              "[2025-03-02T10:00:00.000] update_node: node gpu031 state set to DRAINING\n"
                              "[2025-03-02T11:00:00.000] Node gpu031 now responding\n"
                              "[2025-03-02T12:00:00.000] update_node: node gpu031 state set to RESUME\n"
                              "[2025-03-03T00:00:00.000] update_node: node n[1-2] reason set to: maintenance: firmware\r\n"
                              "[2025-03-03T00:00:00.000] update_node: node n[1-2] state set to DRAINED\r\n"
                              "[2025-03-03T01:00:00.000] update_node: node n2 state set to IDLE\n"
                              "[2025-03-03T02:00:00.000] sched: Allocate JobId=5 NodeList=n2\n";
    ck_assert_str_eq(converted(slurm, usual, ONE(log)),
                     "36300 0 1200 Not re;36300 1 3600 Not re;122400 2 7200 Kill t;172800 3 3600 mainte planned;"
                     "172800 4 3600 mainte planned;|2 outages without an end: --down is taken for how long they are");
    STARTS(converted(slurm, usual, ONE("Mar  3 12:01:02 head slurmctld[9]: error: Node n7 unexpectedly rebooted boot_time=1\n")),
           "43262 0 3600 Node u;|1 outage");
    STARTS(converted(slurm, usual, ONE("[2025-03-02T11:00:00.000] sched: nothing\n")), "|no line says that a node went down");
}
END_TEST

#define SACCT "JobID|State|Start|End|NodeList|FailedNode\n"

START_TEST(the_node_that_failed)
{
    ck_assert_str_eq(JOBS(usual, SACCT "1|NODE_FAIL|x|100|n[1-128]|n17\n2|NODE_FAIL|x|1000|n[1-128]|n55\n3|NODE_FAIL|x|2000|n3|\n"
                                       "4|NODE_FAIL|x|3000|n[1-128]|n17\n"),
                     "100 0 3600 NODE_F;1000 1 3600 NODE_F;2000 2 3600 NODE_F;3000 0 3600 NODE_F;");
    /* no column names it: many jobs on the same nodes make none of them a lemon */
    char text[4096] = "JobID|State|End|NodeList\n";
    for (int i = 0; i < 40; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d|NODE_FAIL|%d|n[0001-1000]\n", i, i * 3600);
    struct convert_options options = usual;
    struct files file = {.n = 0};
    struct fault_trace trace;
    struct diags diags = {0};
    files_add(&file, text);
    ck_assert_int_eq(job_trace_read(file.names[0], &options, &trace, &diags), STATUS_OK);
    ck_assert_uint_eq(trace.n_items, 40);
    ck_assert_uint_ge(trace.n_hosts, 36);
    unlink(file.names[0]);
    fault_trace_free(&trace);
    diags_free(&diags);
}
END_TEST

START_TEST(columns_of_fixed_width)
{
    static const char plain[] = "JobID             State                 End        NodeList\n"
                                "------------ ---------- ------------------- ---------------\n"
                                "101           COMPLETED 2025-03-01T10:00:00           n[1-2]\n"
                                "102           NODE_FAIL 2025-03-02T03:00:00              n7\n"
                                "103          CANCELLED+ 2025-03-02T04:00:00              n7\n"
                                "104           NODE_FAIL 2025-03-02T05:00:00 gpu[001-003,00+\n";
    ck_assert_str_eq(JOBS(usual, plain),
                     "10800 0 3600 NODE_F;|left out: 1 row whose list of nodes is cut (it ends with +); sacct -P "
                     "and sacctmgr -P write all of it");
    static const char sinfo[] = "REASON               USER      TIMESTAMP           NODELIST\n"
                                "Not responding       slurm     2025-03-01T01:00:00 n[17,55]\n"
                                "maintenance          root      2025-03-01T02:00:00 n31\n"
                                "NHC: nvidia-smi: 7 o root      2025-03-01T03:00:00 n32\n";
    STARTS(NODES(usual, sinfo), "3600 0 3600 Not re;3600 1 3600 Not re;7200 2 3600 mainte planned;10800 3 3600 NHC: n;");
    static const char sacctmgr[] = "  NodeName           TimeStart             TimeEnd  State                 Reason\n"
                                   "---------- ------------------- ------------------- ------ ----------------------\n"
                                   "        n1 2025-03-01T01:00:00 2025-03-01T02:00:00  DRAIN  Xid 79, \"off the bus\"\n";
    STARTS(NODES(usual, sacctmgr), "3600 0 3600 Xid 79;");
    STARTS(JOBS(usual, "     State      End  NodeList\n---------- -------- ---------\n NODE_FAIL\n"), "|'' is neither seconds");
}
END_TEST

START_TEST(reasons_of_drains)
{
    static const char *const broken[] = {"NHC: check_dmesg: Xid 79 GPU has fallen off the bus",
                                         "NHC: nvidia-smi: 7 of 8 GPUs",
                                         "Kill task failed",
                                         "Not responding",
                                         "IB port flapping",
                                         "bad DIMM",
                                         "ECC, needs firmware",
                                         "Node unexpectedly rebooted",
                                         "Low RealMemory",
                                         "gpu_3 dead"};
    static const char *const planned[] = {"maintenance: firmware", "kernel upgrade",   "reboot requested",
                                          "GPU driver update",     "reserved for ann", "",
                                          "moving racks",          "driver 570"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        ck_assert_msg(node_reason_is_failure(broken[i]), "%s", broken[i]);
    for (size_t i = 0; i < sizeof planned / sizeof *planned; i++)
        ck_assert_msg(!node_reason_is_failure(planned[i]), "%s", planned[i]);
}
END_TEST

START_TEST(lists_of_nodes)
{
    static const struct {
        const char *text;
        int64_t n, at;
        const char *name;
    } lists[] = {{"gpu[001-003,007]", 4, 3, "gpu007"},
                 {"gpu[001-003,007]", 4, 1, "gpu002"},
                 {"n1,n2", 2, 1, "n2"},
                 {"rack[1-2]n[01-04]x", 8, 5, "rack2n02x"},
                 {"n1 n2|n3", 3, 2, "n3"},
                 {"a[9-10],b", 3, 1, "a10"},
                 {"None assigned", 0, 0, NULL},
                 {"(null)", 0, 0, NULL},
                 {"", 0, 0, NULL},
                 {"n[3-1]", 0, 0, NULL},
                 {"n[1-2", 0, 0, NULL},
                 {"n[]", 0, 0, NULL},
                 {"n[1-1000000000]", 0, 0, NULL},
                 {"n[x]", 0, 0, NULL},
                 {"n[1-999999999]", 10000000, 0, NULL},
                 {"n[0-9][0-9]", 100, 99, "n99"},
                 {"n[08-11]", 4, 2, "n10"},
                 {",", 0, 0, NULL}};
    char name[NODE_NAME_SIZE];
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        ck_assert_msg(node_list_count(lists[i].text) == lists[i].n, "%s: %d", lists[i].text, (int)node_list_count(lists[i].text));
        bool found = node_list_name(lists[i].text, lists[i].at, name);
        ck_assert_msg(found == (lists[i].name != NULL), "%s", lists[i].text);
        if (found)
            ck_assert_str_eq(name, lists[i].name);
        ck_assert(!node_list_name(lists[i].text, lists[i].n, name) && !node_list_name(lists[i].text, -1, name));
    }
}
END_TEST

/* --- Kubernetes --- */

#define EVENT(kind, name, reason, time, message)                                                                                 \
    "{\"kind\":\"Event\",\"involvedObject\":{\"kind\":\"" kind "\",\"name\":\"" name "\"},\"reason\":\"" reason                  \
    "\",\"type\":\"Warning\",\"lastTimestamp\":\"" time "\",\"message\":\"" message "\"}"

START_TEST(events_of_kubernetes)
{
    static const char list[] = "{\"items\":[" EVENT("Node", "a", "NodeReady", "2025-07-20T01:15:00Z", "") "," EVENT(
        "Node", "a", "NodeNotReady", "2025-07-20T01:00:00Z",
        "") "," EVENT("Pod", "p", "Failed", "2025-07-20T01:00:00Z",
                      "") "," EVENT("Node", "b", "XIDHardwareError", "2025-07-20T02:00:00Z",
                                    "NVRM: Xid (PCI:0000:3b:00): 79, pid=1") "," EVENT("Node", "b", "XID", "2025-07-20T09:00:00Z",
                                                                                       "NVRM: Xid (PCI:0000:3b:00): 154, x") "]}";
    ck_assert_str_eq(
        converted(events, usual, ONE(list)),
        "3600 0 900 NodeNo;7200 1 3600 Xid 79;|left out: 1 event of pods and other objects than nodes|left out: 1 event "
        "of nodes that is no failure");
    static const char lines[] = EVENT("Node", "a", "NodeNotSchedulable", "2025-07-20T01:00:00Z",
                                      "") "\n" EVENT("Node", "a", "NodeSchedulable", "2025-07-20T03:00:00Z",
                                                     "") "\n" EVENT("Node", "c", "Rebooted", "2025-07-20T04:00:00Z", "");
    STARTS(converted(events, usual, ONE(lines)), "3600 0 7200 NodeNo planned;14400 1 3600 Node r;");
    static const char text[] = "LAST SEEN   TYPE      REASON             OBJECT       MESSAGE\n"
                               "60m         Warning   NodeNotReady       node/gpu-a   Node gpu-a status is now: NodeNotReady\n"
                               "45m         Normal    NodeReady          node/gpu-a   Node gpu-a status is now: NodeReady\n"
                               "2m30s       Warning   GPUUnhealthy       node/gpu-b   gpu 3\n"
                               "5m (x3 over 9m)  Normal  Pulled          pod/x        image\n";
    STARTS(converted(events, usual, ONE(text)), "0 0 900 NodeNo;3450 1 3600 GPUUnh;|left out: 1 event of pods");
    /* node-problem-detector's own log, and the journal as JSON */
    STARTS(XID(usual, "I0720 11:00:00.123456       1 log_monitor.go:160] New status generated: &{Source:kernel-monitor "
                      "Events:[{Severity:warn Reason:XID Message:NVRM: Xid (PCI:0000:3b:00): 79, pid=1}]}\n"),
           "39600 0 3600 Xid 79;");
    STARTS(converted(events, usual,
                     ONE("{\"__REALTIME_TIMESTAMP\":\"1753009200000000\",\"_HOSTNAME\":\"a\",\"MESSAGE\":\"NVRM: Xid "
                         "(PCI:0000:3b:00): 79, x\"}\n{\"__REALTIME_TIMESTAMP\":\"1753009200000000\",\"_HOSTNAME\":\"a\","
                         "\"MESSAGE\":\"usb\"}\n")),
           "39600 0 3600 Xid 79;|left out: 1 event of nodes");
    STARTS(converted(events, usual, ONE("{\"items\":[]}")), "|contains no event of Kubernetes");
    STARTS(converted(events, usual, ONE("{\"items\":[")), "|is not JSON");
}
END_TEST

/* --- others --- */

START_TEST(blue_gene)
{
    static const char log[] =
        "- 1117838570 2005.06.03 R02-M1-N0-C:J12-U11 2005-06-03-15.42.50.675872 R02-M1-N0-C:J12-U11 RAS KERNEL INFO parity\n"
        "KERNDTLB 1118536327 2005.06.11 R30-M0-N9-C:J16-U01 2005-06-11-17.32.07.5 R30-M0-N9-C:J16-U01 RAS KERNEL FATAL data TLB\n"
        "- 1118550000 2005.06.11 R30-M0-N9-C:J17-U01 2005-06-11-21.20.00.5 R30-M0-N9-C:J17-U01 RAS APP FATAL ciod\n";
    STARTS(converted(bgl, usual, ONE(log)), "1927 0 3600 KERNDT;15600 0 3600 APP FA;|left out: 1 of 3 messages");
    STARTS(converted(bgl, usual, ONE("hello\n")), "|not a line of BlueGene's RAS log");
}
END_TEST

START_TEST(tables_of_failures)
{
    STARTS(
        converted(table, usual,
                  ONE("server,down_at,up_at,root cause\nn1,2025-03-01T01:00Z,2025-03-01T03:00Z,gpu\n"
                      "n2,2025-03-02T00:00Z,,nic\n")),
        "3600 0 7200 gpu;86400 1 3600 nic;|read as a table of failures, with the columns time=down_at, node=server, end=up_at, "
        "detail=root cause|1 failure without an end");
    STARTS(converted(table, usual, ONE("time,host,repair_h,kind,factor\n60,a,0.5,node,\n90,b,0:30:00,straggler,0.5\n")),
           "60 0 1800 ;90 1 1800 ;");
    STARTS(converted(table, usual, ONE("time,node,xid\n60,a,79\n90,a,154\n9000,b,145\n")),
           "60 0 3600 Xid 79;9000 1 3600 Xid 14;");
    STARTS(converted(table, usual, ONE("time,node\n60,n[1-2]\n")), "60 0 3600 ;60 1 3600 ;");
    const char *const map[] = {"time=began", "node=who", "down=hrs"}, *const wrong[] = {"time=begun", "when=who", "node"};
    struct convert_options mapped = usual, mistaken = usual;
    mapped.map = map, mapped.n_map = 3;
    mistaken.map = wrong, mistaken.n_map = 3;
    STARTS(converted(table, mapped, ONE("who,began,hrs\nn1,60,2\n")), "60 0 7200 ;");
    const char *text = converted(table, mistaken, ONE("who,began,hrs\nn1,60,2\n"));
    STARTS(text, "|--map: the table has no column 'begun'|--map: 'when=who' is no column; write our name");
    HAS(text, "--map: 'node' is no column");
    STARTS(converted(table, usual, ONE("node,start,end\na,100,50\n")), "|the failure ends before it begins");
}
END_TEST

/* Alibaba's PAI tables have no names of columns. */
START_TEST(tables_without_names)
{
    static const char jobs_table[] = "id1,inst1,user1,Terminated,1795856.0,1796075.0\nid2,inst2,user2,Failed,1795956.0,17970x\n";
    struct convert_options asked = usual;
    asked.failed_jobs = true;
    asked.nodes = 8;
    STARTS(JOBS(asked, "id1,inst1,user1,Terminated,1795856.0,1796075.0\nid2,inst2,user2,Failed,1795956.0,1797075.0\n"),
           "69075 1 3600 Failed;|no column names nodes");
    STARTS(JOBS(asked, jobs_table), "|'17970x' is neither seconds nor a time");
    STARTS(JOBS(usual, "j,t,w,i,n,Terminated,1,2,m1\nj,t,w,i,n,Failed,1,2,m2\n"), "|left out: 1 job in state FAILED");
}
END_TEST

/* --- what a file is --- */

static const char *source_name(const char *path)
{
    static char text[256];
    struct diags diags = {0};
    enum convert_source source;
    if (convert_source_of(path, &source, &diags) == STATUS_OK)
        snprintf(text, sizeof text, "%s", convert_source_names[source]);
    else
        snprintf(text, sizeof text, "refused: %.200s", diags.items[0].text);
    diags_free(&diags);
    return text;
}

START_TEST(what_a_log_is)
{
    static const struct {
        const char *is, *text;
    } files[] = {
        {"slurm", "[2025-03-01T10:05:00.123] error: Nodes gpu[017,055] not responding, setting DOWN\n"},
        {"events", "{\"items\":[" EVENT("Node", "a", "NodeReady", "2025-07-20T01:15:00Z", "") "]}"},
        {"events", "LAST SEEN   TYPE      REASON   OBJECT       MESSAGE\n60m   Warning   NodeNotReady   node/a   x\n"},
        {"bgl", "- 1117838570 2005.06.03 R02 2005-06-03-15.42.50.675872 R02 RAS KERNEL INFO x\n"},
        {"xid", "[1.0] amdgpu 0000:c1:00.0: amdgpu: GPU reset end with ret = -62\n"},
        {"xid", "Nov 23 00:00:01 n1 kernel: nvidia-nvswitch3: SXid (PCI:0000:85:00.0): 20034, Fatal, Link 30\n"},
        {"nodes",
         "REASON               USER      TIMESTAMP           NODELIST\nNot responding   slurm  2025-03-01T10:05:00 n1\n"},
        {"jobs", "JobID             State                 End\n------------ ---------- -------------------\n1 FAILED 2025\n"},
        {"jobs", "id1,inst1,user1,Terminated,1795856.0,1796075.0\n"},
        {"table", "server,down_at,up_at\nn1,1,2\n"},
        {"refused: this is an answer of Prometheus",
         "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}}"},
        {"refused: this is the output of dcgmi dmon", "#Entity   XIDER  SMCLK\nID\nGPU 0     0      1980\n"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct files file = {.n = 0};
        files_add(&file, files[i].text);
        const char *is = source_name(file.names[0]);
        unlink(file.names[0]);
        ck_assert_msg(strncmp(is, files[i].is, strlen(files[i].is)) == 0, "%s: %s", files[i].is, is);
    }
}
END_TEST

/* The public cases, where they lie beside the project. */
START_TEST(public_cases)
{
    static const struct {
        const char *name, *is;
    } cases[] = {{"amdgpu.dmesg", "xid"},          {"bgl.log", "bgl"},
                 {"dcgmi_dmon.txt", "refused"},    {"drain_hw.txt", "nodes"},
                 {"npd.json", "events"},           {"nvlink5_nonfatal.dmesg", "xid"},
                 {"pai_like.csv", "jobs"},         {"prom_range.json", "refused"},
                 {"sacct_failednode.txt", "jobs"}, {"sacct_plain.txt", "jobs"},
                 {"slurmctld.log", "slurm"},       {"sxid.dmesg", "xid"}};
    const char *shared = getenv("MSIM_SHARED");
    char path[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(path, sizeof path, "%s/cases/operations/%s", shared ? shared : "", cases[i].name);
        if (access(path, R_OK) != 0)
            printf("skipped: no %s (MSIM_SHARED is '%s')\n", cases[i].name, shared ? shared : "");
        else
            ck_assert_msg(strncmp(source_name(path), cases[i].is, strlen(cases[i].is)) == 0, "%s: %s", path, source_name(path));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("convert_logs");
    TCase *tests = tcase_create("logs");
    tcase_add_test(tests, nvlink_says_whether_it_is_fatal);
    tcase_add_test(tests, switches_and_lost_gpus);
    tcase_add_test(tests, amd_gpus);
    tcase_add_test(tests, slurm_says_when_nodes_went_and_came);
    tcase_add_test(tests, the_node_that_failed);
    tcase_add_test(tests, columns_of_fixed_width);
    tcase_add_test(tests, reasons_of_drains);
    tcase_add_test(tests, lists_of_nodes);
    tcase_add_test(tests, events_of_kubernetes);
    tcase_add_test(tests, blue_gene);
    tcase_add_test(tests, tables_of_failures);
    tcase_add_test(tests, tables_without_names);
    tcase_add_test(tests, what_a_log_is);
    tcase_add_test(tests, public_cases);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
