/* The steps of a profile whose host runs ahead of its device, work outside all steps, and traces without a device. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"
#include "traces/profile/profile.h"

#define NEAR(a, b) ck_assert_double_eq_tol(a, b, 1e-12)

static const struct layout tp2 = {.tp = 2, .cp = 1, .pp = 1, .vpp = 1, .dp = 1, .ep = 1};

#define MARK(cat, n, ts, dur)                                                                                                    \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"ProfilerStep#" #n "\",\"ts\":" #ts ",\"dur\":" #dur "}"
#define LAUNCH(cat, correlation, ts)                                                                                             \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"cudaLaunchKernel\",\"ts\":" #ts                                                \
    ",\"dur\":1,\"args\":{\"cbid\":211,\"correlation\":" #correlation "}}"
#define GEMM(correlation, ts, dur)                                                                                               \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{\"correlation\":" #correlation \
    "}}"

/* Two steps of two products of 99 us each. The marks on the host end at 10 and 20 us, before the device has ended anything:
 * products at 5-104, 105-204 | 205-304, 305-404. */
#define HOST_AHEAD                                                                                                               \
    MARK("user_annotation", 1, 0, 10)                                                                                            \
    "," MARK("user_annotation", 2, 10, 10) "," GEMM(7, 5, 99) "," GEMM(8, 105, 99) "," GEMM(9, 205, 99) "," GEMM(10, 305, 99)

/* Reads a trace; what it reports follows as text, which the caller frees. */
static struct profile parsed(const char *text, enum status expected, char **report)
{
    struct diags diags = {0};
    struct profile profile = {.rank = -1};
    size_t size;
    FILE *out = open_memstream(report, &size);
    ck_assert_int_eq(profile_parse(text, strlen(text), "p.json", &tp2, NULL, &profile, &diags), expected);
    for (size_t i = 0; i < diags.n_items; i++)
        fprintf(out, "%s\n", diags.items[i].text);
    fclose(out);
    diags_free(&diags);
    return profile;
}

static void check_two_steps(struct profile *p)
{
    struct profile_account a = profile_account_of(p);
    ck_assert(p->marked);
    ck_assert_uint_eq(p->n_steps * (size_t)p->steps_each, 2);
    NEAR(a.step_s, 199.5e-6);
    NEAR(a.exposed_s[PROFILE_PRODUCTS], 198e-6);
    NEAR(a.exposed_s[PROFILE_IDLE], 1.5e-6);
    profile_free(p);
}

/* The runtime's name of today, ROCm's, and that of PyTorch before 1.12. */
START_TEST(kernels_belong_to_the_step_that_launched_them)
{
#define LAUNCHES(cat) "," LAUNCH(cat, 7, 2) "," LAUNCH(cat, 8, 8) "," LAUNCH(cat, 9, 12) "," LAUNCH(cat, 10, 18) "]"
    static const char *const traces[] = {"[" HOST_AHEAD LAUNCHES("cuda_runtime"), "[" HOST_AHEAD LAUNCHES("hip_runtime"),
                                         "[" HOST_AHEAD LAUNCHES("Runtime")};
    char *report;
    struct profile p = parsed(traces[_i], STATUS_OK, &report);
    ck_assert_int_eq(p.steps_each, 1);
    NEAR(p.steps[0].start_s, 5e-6);
    NEAR(p.steps[1].start_s, 205e-6);
    NEAR(p.steps[1].end_s, 404e-6);
    ck_assert_msg(strstr(report, "the host runs ahead of the device"), "%s", report);
    check_two_steps(&p);
    free(report);
}
END_TEST

/* Without launches the two marks still count two steps, and no work is lost. */
START_TEST(work_behind_the_marks_is_divided_among_the_steps)
{
    char *report;
    struct profile p = parsed("[" HOST_AHEAD "]", STATUS_OK, &report);
    ck_assert_msg(strstr(report, "divides the work evenly among the 2 steps"), "%s", report);
    check_two_steps(&p);
    free(report);
}
END_TEST

/* A device that ends each step within its mark: the marks stay as they are, with the wait for data before the first kernel. */
START_TEST(marks_that_hold_their_work_stay)
{
    char *report;
    struct profile p =
        parsed("[" MARK("user_annotation", 1, 0, 100) "," MARK("user_annotation", 2, 100, 100) "," LAUNCH(
                   "cuda_runtime", 1, 60) "," LAUNCH("cuda_runtime", 2, 170) "," GEMM(1, 62, 30) "," GEMM(2, 172, 20) "]",
               STATUS_OK, &report);
    ck_assert_str_eq(report, "");
    ck_assert_uint_eq(p.n_steps, 2);
    NEAR(p.steps[0].start_s, 0);
    NEAR(p.steps[1].start_s, 100e-6);
    NEAR(p.steps[1].end_s, 200e-6);
    profile_free(&p);
    free(report);
}
END_TEST

/* 40 of 160 us of work lie before the only mark. */
START_TEST(work_outside_the_steps_is_reported)
{
    char *report;
    struct profile p =
        parsed("[" MARK("gpu_user_annotation", 3, 100, 200) "," GEMM(1, 40, 40) "," GEMM(2, 120, 120) "]", STATUS_OK, &report);
    ck_assert_msg(strstr(report, "0.04 ms of the device's work (25.0 %) is outside"), "%s", report);
    profile_free(&p);
    free(report);
}
END_TEST

START_TEST(traces_without_a_device)
{
    static const char *const traces[][2] = {
        {"[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"ts\":1,\"dur\":2}]", "the host alone"},
        {"[{\"ph\":\"X\",\"cat\":\"mtia_ccp_events\",\"name\":\"fc\",\"ts\":1,\"dur\":2}]", "MTIA"},
        {"[]", "no kernel and no copy"},
    };
    char *report;
    parsed(traces[_i][0], STATUS_BAD_INPUT, &report);
    ck_assert_msg(strstr(report, traces[_i][1]), "%s", report);
    free(report);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile_steps");
    TCase *tests = tcase_create("profile_steps");
    tcase_add_loop_test(tests, kernels_belong_to_the_step_that_launched_them, 0, 3);
    tcase_add_test(tests, work_behind_the_marks_is_divided_among_the_steps);
    tcase_add_test(tests, marks_that_hold_their_work_stay);
    tcase_add_test(tests, work_outside_the_steps_is_reported);
    tcase_add_loop_test(tests, traces_without_a_device, 0, 3);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
