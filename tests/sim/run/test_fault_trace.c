/*
 * Fault traces: what is read, what is refused and how, by name, and from LANL's records.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/suite.h"
#include "traces/fault/fault_trace.h"
#include "traces/fault/lanl_trace.h"
#include "traces/table/date.h"

struct scratch {
    char path[64];
};

static struct scratch write_bytes(const char *ending, const char *bytes, size_t n)
{
    struct scratch file;
    snprintf(file.path, sizeof file.path, "/tmp/fault_trace_XXXXXX%s", ending);
    int fd = mkstemps(file.path, (int)strlen(ending));
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
    close(fd);
    return file;
}

static struct scratch write_text(const char *text)
{
    return write_bytes(".csv", text, strlen(text));
}

static enum status read_text(const char *text, struct fault_trace_limits limits, struct fault_trace *trace, struct diags *diags)
{
    struct scratch file = write_text(text);
    enum status status = fault_trace_read(file.path, limits, trace, diags);
    unlink(file.path);
    return status;
}

static struct fault_trace read_good(const char *text, struct fault_trace_limits limits)
{
    struct fault_trace trace = {0};
    struct diags diags = {0};
    enum status status = read_text(text, limits, &trace, &diags);
    diags_print(&diags, stderr, false);
    diags_free(&diags);
    ck_assert_int_eq(status, STATUS_OK);
    return trace;
}

static const struct fault_trace_limits anything = {0};

START_TEST(test_columns_and_defaults)
{
    struct fault_trace trace = read_good("time_s,node,kind,down_s,factor,detail\n"
                                         "0,3,,10,,\n"
                                         "12.5,0,straggler,100,0.9,\"slow, very\"\n"
                                         "12.500000001,1,link,0.25,0.5,cable\n"
                                         "1e3,2,node,0,1,cable\n",
                                         anything);
    ck_assert_uint_eq(trace.n_items, 4);
    ck_assert_int_eq(trace.items[0].kind, FAULT_NODE);
    ck_assert_int_eq(trace.items[0].speed, FULL_SPEED);
    ck_assert_str_eq(fault_trace_detail(&trace, &trace.items[0]), "");
    ck_assert_int_eq(trace.items[1].time, 12500000000);
    ck_assert_int_eq(trace.items[1].speed, 900000000);
    ck_assert_str_eq(fault_trace_detail(&trace, &trace.items[1]), "slow, very");
    ck_assert_int_eq(trace.items[2].time, 12500000001);
    ck_assert_int_eq(trace.items[2].down, 250000000);
    ck_assert_int_eq(trace.items[2].kind, FAULT_LINK);
    ck_assert_int_eq(trace.items[3].time, 1000 * NANOS_PER_SECOND);
    ck_assert_int_eq(trace.items[3].detail, trace.items[2].detail);
    ck_assert_int_eq(trace.items[3].line, 5);
    ck_assert_int_eq(fault_trace_nodes(&trace), 4);
    fault_trace_free(&trace);
    /* three columns in another order suffice */
    trace = read_good("down_s,time_s,node\n5,1,0\n", anything);
    ck_assert_int_eq(trace.items[0].down, 5 * NANOS_PER_SECOND);
    fault_trace_free(&trace);
    trace = read_good("time_s,node,down_s\n", anything);
    ck_assert_uint_eq(trace.n_items, 0);
    fault_trace_free(&trace);
}
END_TEST

START_TEST(test_compressed_and_written_back)
{
    static const char text[] = "time_s,node,kind,down_s,factor,detail\n"
                               "0.000000001,7,node,31.25,,\"a \"\"quoted\"\" cause\"\n"
                               "9007199254,0,link,60,0.123456789,\n";
    struct scratch file = write_bytes(".csv.gz", "", 0);
    gzFile gz = gzopen(file.path, "wb");
    ck_assert_int_eq(gzwrite(gz, text, sizeof text - 1), sizeof text - 1);
    gzclose(gz);
    struct diags diags = {0};
    struct fault_trace trace;
    /* 285 years is beyond what is a plausible time */
    ck_assert_int_eq(fault_trace_read(file.path, anything, &trace, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_eq(diags.n_errors, 1);
    ck_assert_int_eq(diags.items[0].line, 3);
    diags_free(&diags);
    unlink(file.path);

    trace = read_good("time_s,node,kind,down_s,factor,detail\n"
                      "0.000000001,7,node,31.25,,\"a \"\"quoted\"\" cause\"\n"
                      "900719925,0,link,60,0.123456789,\n",
                      anything);
    char *written;
    size_t n;
    FILE *out = open_memstream(&written, &n);
    fault_trace_write(&trace, out);
    fclose(out);
    ck_assert_str_eq(written, "time_s,node,kind,down_s,factor,detail\n"
                              "0.000000001,7,node,31.25,,\"a \"\"quoted\"\" cause\"\n"
                              "900719925,0,link,60,0.123456789,\n");
    free(written);
    fault_trace_free(&trace);
}
END_TEST

struct refusal {
    const char *text;
    int line, column; /* of the first mistake */
    const char *says; /* part of its text */
    size_t n_errors;
};

static const struct refusal refusals[] = {
    {"time_s,node,down_s\n1,0,1\n0.5,0,1\n", 3, 1, "out of order: 0.5 after 1 s", 1},
    {"time_s,node,down_s\n1,0,-5\n", 2, 5, "down_s '-5' is not a number from 0", 1},
    {"time_s,node,down_s\n-1,0,5\n", 2, 1, "time_s '-1' is not a number from 0", 1},
    {"time_s,node,down_s\n1,-2,5\n", 2, 3, "node '-2' is not a whole number", 1},
    {"time_s,node,down_s\n1,1.5,5\n", 2, 3, "node '1.5' is not a whole number", 1},
    {"time_s,node,down_s\n1,8,5\n", 2, 3, "node 8 is not in the cluster; its nodes, with spares, are 0 to 7", 1},
    {"time_s,node,down_s\nsoon,0,5\n", 2, 1, "time_s 'soon' is not a number", 1},
    {"time_s,node,down_s\n1,0,\n", 2, 5, "down_s is empty", 1},
    {"time_s,node,down_s\n1,0,nan\n", 2, 5, "down_s 'nan'", 1},
    {"time_s,node,kind,down_s\n1,0,nod,5\n", 2, 5, "unknown kind 'nod'; did you mean 'node'?", 1},
    {"time_s,node,kind,down_s\n1,0,wombat,5\n", 2, 5, "unknown kind 'wombat'; known are node, straggler, link and planned", 1},
    {"time_s,node,kind,down_s,factor\n1,0,straggler,5,1.5\n", 2, 17, "factor '1.5' is not a number from 0 to 1", 1},
    {"time_s,node,kind,down_s,factor\n1,0,straggler,5,0\n", 2, 17, "kind node for a lost node", 1},
    {"time_s,node,kind,down_s,factor\n1,0,node,5,0.5\n", 2, 12, "kind straggler for a slow node", 1},
    {"time_s,node\n1,0\n", 1, 0, "down_s", 1},
    {"time,node,downtime\n1,0,1\n", 1, 0, "time_s", 1},
    {"time_s,node,down_s\n1,0\n", 2, 0, "this row has 2 cells where the header has 3", 1},
    {"", 0, 0, "", 1},
    /* several at once, each on its line */
    {"time_s,node,kind,down_s\nx,9,nodes,y\n5,0,node,1\n4,0,node,-1\n", 2, 1, "time_s 'x'", 6},
};

START_TEST(test_refusals)
{
    const struct refusal *refusal = &refusals[_i];
    struct diags diags = {0};
    struct fault_trace trace = {.n_items = 77};
    ck_assert_int_eq(read_text(refusal->text, (struct fault_trace_limits){.keep = 4, .known = 8}, &trace, &diags),
                     STATUS_BAD_INPUT);
    ck_assert_uint_eq(trace.n_items, 77); /* untouched */
    ck_assert_uint_eq(diags.n_errors, refusal->n_errors);
    ck_assert_msg(strstr(diags.items[0].text, refusal->says) != NULL, "case %d: %s", _i, diags.items[0].text);
    ck_assert_ptr_nonnull(diags.items[0].file);
    ck_assert_int_eq(diags.items[0].line, refusal->line);
    if (refusal->column > 0)
        ck_assert_int_eq(diags.items[0].column, refusal->column);
    diags_free(&diags);
}
END_TEST

START_TEST(test_binary_and_truncated)
{
    struct diags diags = {0};
    struct fault_trace trace;
    struct scratch binary = write_bytes(".csv",
                                        "\x7f"
                                        "ELF\0\x01\xff\xfe,\n",
                                        11);
    ck_assert_int_eq(fault_trace_read(binary.path, anything, &trace, &diags), STATUS_BAD_INPUT);
    unlink(binary.path);
    size_t errors = diags.n_errors;
    ck_assert_uint_gt(errors, 0);
    struct scratch cut = write_bytes(".csv.gz", "\x1f\x8b\x08\0\0\0\0\0\0\x03\x2b\xc9", 12);
    ck_assert_int_ne(fault_trace_read(cut.path, anything, &trace, &diags), STATUS_OK);
    unlink(cut.path);
    ck_assert_uint_gt(diags.n_errors, errors);
    errors = diags.n_errors;
    ck_assert_int_ne(fault_trace_read("/nonexistent/trace.csv", anything, &trace, &diags), STATUS_OK);
    ck_assert_uint_gt(diags.n_errors, errors);
    diags_free(&diags);
}
END_TEST

START_TEST(test_nodes_outside)
{
    static const char text[] = "time_s,node,down_s\n1,0,1\n2,3,1\n3,4,1\n4,7,1\n";
    struct fault_trace trace = read_good(text, (struct fault_trace_limits){.keep = 4, .known = 8});
    ck_assert_uint_eq(trace.n_items, 2);
    ck_assert_uint_eq(trace.n_outside, 2);
    ck_assert_int_eq(trace.last_outside, 4 * NANOS_PER_SECOND);
    fault_trace_free(&trace);
    trace = read_good(text, (struct fault_trace_limits){.keep = 1, .drop = true});
    ck_assert_uint_eq(trace.n_items, 1);
    ck_assert_uint_eq(trace.n_outside, 3);
    fault_trace_free(&trace);
}
END_TEST

START_TEST(test_names)
{
    char *path;
    bool shipped;
    struct diags diags = {0};
    ck_assert_int_eq(fault_trace_find("llama3-54d", &path, &shipped, &diags), STATUS_OK);
    ck_assert(shipped);
    free(path);
    ck_assert_int_eq(fault_trace_find("./llama3-54d", &path, &shipped, &diags), STATUS_OK);
    ck_assert(!shipped);
    ck_assert_str_eq(path, "./llama3-54d");
    free(path);
    ck_assert_int_eq(fault_trace_find("lama3-54d", &path, &shipped, &diags), STATUS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "did you mean 'llama3-54d'?"));
    ck_assert_int_eq(fault_trace_find("wombat", &path, &shipped, &diags), STATUS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(diags.items[1].text, "known are llama3-54d, megascale-30d"));
    diags_free(&diags);
}
END_TEST

/* --- LANL --- */

START_TEST(test_local_times)
{
    nanos time;
    ck_assert(local_time_parse("1970-01-01", &time));
    ck_assert_int_eq(time, 0);
    ck_assert(local_time_parse("2000-03-01T00:00:01", &time));
    ck_assert_int_eq(time / NANOS_PER_SECOND, 951868801);
    ck_assert(local_time_parse("1996-02-29 23:59", &time));
    ck_assert_int_eq(time / NANOS_PER_SECOND, 825638340);
    static const char *const wrong[] = {"",           "2003",         "2003-13-01",       "2003-02-29",       "1900-02-29",
                                        "2003-01-00", "2003-01-01T7", "2003-01-01T24:00", "2003-01-01T00:60", "2003-01-01x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!local_time_parse(wrong[i], &time), "%s", wrong[i]);
}
END_TEST

START_TEST(test_lanl_window)
{
    struct scratch file = write_text("system,nodes,procs_per_node,node,start,fixed,downtime_min,category,detail,same_event\n"
                                     "7,4,1,3,2003-01-01T00:10,2003-01-01T00:20,10,Hardware,CPU,No\n"
                                     "9,2,1,1,2003-01-01T00:05,2003-01-01T00:06,1,Software,OS,No\n"
                                     "8,2,1,0,2003-01-01T00:06,2003-01-01T00:07,1,Software,OS,No\n"
                                     "9,2,1,-1,2003-01-01T00:06,2003-01-01T00:07,1,Software,OS,No\n"
                                     "9,2,1,0,2002-12-31T23:59,2003-01-01T00:07,8,Human,,No\n"
                                     "9,2,1,0,2003-01-02T00:00,2003-01-02T00:07,7,Human,,No\n");
    struct lanl_window window = {.systems = {9, 7}, .n_systems = 2, .length = 86400 * NANOS_PER_SECOND};
    ck_assert(local_time_parse("2003-01-01", &window.from));
    struct diags diags = {0};
    struct fault_trace trace;
    ck_assert_int_eq(lanl_trace_read(file.path, &window, &trace, &diags), STATUS_OK);
    ck_assert_uint_eq(trace.n_items, 2);
    ck_assert_uint_eq(trace.n_outside, 1);
    ck_assert_int_eq(trace.items[0].node, 1);
    ck_assert_int_eq(trace.items[0].time, 300 * NANOS_PER_SECOND);
    ck_assert_int_eq(trace.items[1].node, 2 + 3);
    ck_assert_int_eq(trace.items[1].down, 600 * NANOS_PER_SECOND);
    ck_assert_str_eq(fault_trace_detail(&trace, &trace.items[1]), "Hardware/CPU");
    fault_trace_free(&trace);
    window = (struct lanl_window){.from = LANL_FIRST_DAY};
    ck_assert_int_eq(lanl_trace_read(file.path, &window, &trace, &diags), STATUS_OK);
    ck_assert_uint_eq(trace.n_items, 5);
    ck_assert_int_eq(trace.items[0].time, (23 * 60 + 59) * 60 * NANOS_PER_SECOND);
    ck_assert_int_eq(trace.items[0].node, 4 + 2 + 0); /* systems 7, 8, 9 */
    fault_trace_free(&trace);
    window.systems[0] = 5;
    window.n_systems = 1;
    ck_assert_int_eq(lanl_trace_read(file.path, &window, &trace, &diags), STATUS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "no system 5"));
    diags_free(&diags);
    unlink(file.path);
}
END_TEST

/* Another program made the shared replay trace from the shared records; it removed the commas from details. */
static bool same_detail(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !((*a == ',' && *b == ' ') || (*a == ' ' && *b == ',')))
            return false;
    return *a == *b;
}

START_TEST(test_lanl_replay_window)
{
    const char *shared = getenv("MSIM_SHARED");
    char records[512], replay[512];
    snprintf(records, sizeof records, "%s/traces/lanl_failures.csv.gz", shared ? shared : "");
    snprintf(replay, sizeof replay, "%s/traces/lanl_replay_1536.csv.gz", shared ? shared : "");
    if (access(records, R_OK) != 0 || access(replay, R_OK) != 0) {
        printf("skipped: no lanl_failures.csv.gz (MSIM_SHARED)\n");
        return;
    }
    struct lanl_window window = {.systems = {18, 20}, .n_systems = 2, .length = 974 * 86400 * NANOS_PER_SECOND};
    ck_assert(local_time_parse("2003-01-01", &window.from));
    struct diags diags = {0};
    struct fault_trace trace, expected;
    ck_assert_int_eq(lanl_trace_read(records, &window, &trace, &diags), STATUS_OK);
    ck_assert_int_eq(fault_trace_read(replay, anything, &expected, &diags), STATUS_OK);
    ck_assert_uint_eq(trace.n_items, expected.n_items);
    for (size_t i = 0; i < trace.n_items; i++) {
        const struct fault *a = &trace.items[i], *b = &expected.items[i];
        ck_assert(a->time == b->time && a->node == b->node && a->down == b->down);
        ck_assert(same_detail(fault_trace_detail(&trace, a), fault_trace_detail(&expected, b)));
    }
    fault_trace_free(&trace);
    fault_trace_free(&expected);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault trace");
    TCase *reading = tcase_create("reading");
    tcase_add_test(reading, test_columns_and_defaults);
    tcase_add_test(reading, test_compressed_and_written_back);
    tcase_add_loop_test(reading, test_refusals, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(reading, test_binary_and_truncated);
    tcase_add_test(reading, test_nodes_outside);
    tcase_add_test(reading, test_names);
    suite_add_tcase(suite, reading);
    TCase *lanl = tcase_create("lanl");
    tcase_add_test(lanl, test_local_times);
    tcase_add_test(lanl, test_lanl_window);
    tcase_add_test(lanl, test_lanl_replay_window);
    suite_add_tcase(suite, lanl);
    return suite_run(suite);
}
