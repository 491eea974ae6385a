/* Logs of nccl-tests as tables: operations by name and by columns, ranks and hosts, launchers' prefixes, and logs that lack
 * something. The logs are written here in the tests' format with times of our own. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"
#include "traces/table/kernel_table.h"
#include "traces/table/nccl_log.h"

#define BEGIN         "# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1\n"
#define RANK(r, host) "#  Rank  " #r " Group  0 Pid  10" #r " on " host " device  " #r " [0x18] NVIDIA H100 80GB HBM3\n"
#define FOUR          RANK(0, "node-a") RANK(1, "node-a") RANK(2, "node-b") RANK(3, "node-b")
#define HEADING                                                                                                                  \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong"                                       \
    "     time   algbw   busbw\n"
#define REDUCE                                                                                                                   \
    "     1048576        262144     float     sum      -1    100.5   10.43   15.65      0   101.0   10.38   15.57      0\n"
#define SCATTER                                                                                                                  \
    "     1048576         65536  bfloat16     sum      -1     60.0   17.48   13.11      0    60.0   17.48   13.11      0\n"
#define GATHER                                                                                                                   \
    "     1048576         65536      half    none      -1     60.0   17.48   13.11      0    60.0   17.48   13.11    N/A\n"
#define EMPTY                                                                                                                    \
    "           0             0     float     sum      -1      8.1    0.00    0.00      0     8.2    0.00    0.00      0\n"

/* Reads a log; the reports as text, which the caller frees. */
static struct kernel_table parsed(const char *path, const char *text, enum status expected, char **report)
{
    struct diags diags = {0};
    struct csv_table csv = {0};
    struct kernel_table table = {0};
    size_t size;
    ck_assert(nccl_log_is(text, strlen(text)));
    ck_assert_int_eq(nccl_log_parse(path, text, strlen(text), &csv, &diags), expected);
    if (expected == STATUS_OK)
        ck_assert_int_eq(kernel_table_build(&csv, &table, &diags), STATUS_OK);
    FILE *out = open_memstream(report, &size);
    for (size_t i = 0; i < diags.n_items; i++)
        fprintf(out, "%d: %s\n", diags.items[i].line, diags.items[i].text);
    fclose(out);
    diags_free(&diags);
    return table;
}

static void check_row(const struct kernel_measurement *row, enum collective collective, int ranks, int nodes, double us)
{
    ck_assert_int_eq(row->op, MEASURED_COLLECTIVE);
    ck_assert_int_eq(row->collective.collective, collective);
    ck_assert_int_eq(row->collective.ranks, ranks);
    ck_assert_int_eq(row->collective.nodes, nodes);
    ck_assert(row->collective.bytes >= 1048576 && row->collective.bytes <= 1048576);
    ck_assert_double_eq_tol(row->seconds, us * 1e-6, 1e-12);
    ck_assert_str_eq(row->gpu, "NVIDIA H100 80GB HBM3");
}

START_TEST(columns_tell_reductions_apart)
{
    char *report;
    struct kernel_table t = parsed("run.log", BEGIN FOUR HEADING EMPTY REDUCE SCATTER, STATUS_OK, &report);
    ck_assert_str_eq(report, "");
    ck_assert_uint_eq(t.n_items, 2);
    check_row(&t.items[0], COLLECTIVE_ALL_REDUCE, 4, 2, 100.5);
    check_row(&t.items[1], COLLECTIVE_REDUCE_SCATTER, 4, 2, 60);
    kernel_table_free(&t);
    free(report);
}
END_TEST

/* By the command in the log, by the line of newer releases, by the file's name. */
START_TEST(names_tell_the_others_apart)
{
    static const struct {
        const char *path, *text;
        enum collective collective;
    } logs[] = {
        {"run.log", "+ mpirun -np 4 ./build/all_gather_perf -b 1M\n" BEGIN FOUR HEADING GATHER, COLLECTIVE_ALL_GATHER},
        {"run.log", BEGIN "# Collective test starting: alltoall_perf\n" FOUR HEADING GATHER, COLLECTIVE_ALL_TO_ALL},
        {"logs/alltoall-4.txt", BEGIN FOUR HEADING GATHER, COLLECTIVE_ALL_TO_ALL},
        {"all_gather.log", BEGIN FOUR HEADING GATHER, COLLECTIVE_ALL_GATHER},
    };
    char *report;
    struct kernel_table t = parsed(logs[_i].path, logs[_i].text, STATUS_OK, &report);
    ck_assert_uint_eq(t.n_items, 1);
    check_row(&t.items[0], logs[_i].collective, 4, 2, 60);
    kernel_table_free(&t);
    free(report);
}
END_TEST

/* Two runs in one file, the second with two ranks of one host; prefixes of mpirun --tag-output and of srun -l. */
START_TEST(runs_follow_one_another)
{
    char *report;
    struct kernel_table t =
        parsed("run.log",
               "[1,0]<stdout>:" BEGIN HEADING "[1,0]<stdout>:" RANK(0, "node-a") "[1,0]<stdout>:" RANK(
                   1, "node-b") "[1,0]<stdout>:     1048576 262144 float sum -1 100.5 10.43 10.43 0 101.0 10.38 10.38 0\n"
                                "0: " BEGIN "0: " RANK(0, "node-a") "0: " RANK(
                                    1, "node-a") "0:      1048576 262144 float sum -1 50.0 20.97 20.97 0 51.0 20.6 20.6 0\n",
               STATUS_OK, &report);
    ck_assert_uint_eq(t.n_items, 2);
    check_row(&t.items[0], COLLECTIVE_ALL_REDUCE, 2, 2, 100.5);
    check_row(&t.items[1], COLLECTIVE_ALL_REDUCE, 2, 1, 50);
    kernel_table_free(&t);
    free(report);
}
END_TEST

/* Bus over algorithm bandwidth is 1.5 with four ranks, and 1.875 with sixteen. */
START_TEST(bandwidths_correct_cut_rank_lines)
{
    char *report;
    struct kernel_table t =
        parsed("run.log",
               BEGIN HEADING RANK(0, "node-a")
                   RANK(1, "node-b") "  1048576 262144 float sum -1 100.5 10.43 19.56 0 101.0 10.38 19.46 0\n",
               STATUS_OK, &report);
    check_row(&t.items[0], COLLECTIVE_ALL_REDUCE, 16, 2, 100.5);
    ck_assert_msg(strstr(report, "lists 2 ranks") && strstr(report, "takes 16"), "%s", report);
    kernel_table_free(&t);
    free(report);
}
END_TEST

START_TEST(what_is_missing_is_said)
{
    static const char *const logs[][3] = {
        {"run.log", BEGIN FOUR HEADING GATHER, "7: nothing in this log names its test"},
        {"run.log", BEGIN HEADING REDUCE, "3: no line '#  Rank"},
        {"run.log", BEGIN RANK(0, "node-a") HEADING REDUCE, "4: one rank exchanges nothing"},
        {"sendrecv.log", BEGIN FOUR HEADING REDUCE, "no row of a collective that msim models"},
        {"run.log", BEGIN FOUR HEADING, "no row of a collective"},
    };
    char *report;
    parsed(logs[_i][0], logs[_i][1], STATUS_BAD_INPUT, &report);
    ck_assert_msg(strstr(report, logs[_i][2]), "%s", report);
    free(report);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nccl_log");
    TCase *tests = tcase_create("nccl_log");
    tcase_add_test(tests, columns_tell_reductions_apart);
    tcase_add_loop_test(tests, names_tell_the_others_apart, 0, 4);
    tcase_add_test(tests, runs_follow_one_another);
    tcase_add_test(tests, bandwidths_correct_cut_rank_lines);
    tcase_add_loop_test(tests, what_is_missing_is_said, 0, 5);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
