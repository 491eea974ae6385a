/* Quantities: every unit, what is refused and why, how they print; nanoseconds; the nearest name. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "model/base/units.h"
#include "tests/suite.h"

struct reading {
    const char *text;
    enum dimension dimension;
    double value;
};
static const struct reading readings[] = {
    {"6144", DIM_COUNT, 6144},
    {"12_288", DIM_COUNT, 12288},
    {"1e9", DIM_COUNT, 1e9},
    {"300B", DIM_COUNT, 300e9},
    {"4Mi", DIM_COUNT, 4194304},
    {"1.4T", DIM_COUNT, 1.4e12},
    {"2M", DIM_COUNT, 2e6},
    {"12k", DIM_COUNT, 12e3},
    {"-3", DIM_COUNT, -3},
    {"30min", DIM_TIME, 1800},
    {"30 min", DIM_TIME, 1800},
    {"1.5h", DIM_TIME, 5400},
    {"54d", DIM_TIME, 54 * 86400.0},
    {"2wk", DIM_TIME, 14 * 86400.0},
    {"600ns", DIM_TIME, 600e-9},
    {"7us", DIM_TIME, 7e-6},
    {"1e3ms", DIM_TIME, 1},
    {"80GiB", DIM_BYTES, 80 * 1073741824.0},
    {"512MB", DIM_BYTES, 512e6},
    {"1TiB", DIM_BYTES, 1099511627776.0},
    {"200Gbps", DIM_RATE, 25e9},
    {"200Gb/s", DIM_RATE, 25e9},
    {"900GB/s", DIM_RATE, 900e9},
    {"1GiB/s", DIM_RATE, 1073741824.0},
    {"400Gbit/s", DIM_RATE, 50e9},
    {"400 Gb/sec", DIM_RATE, 50e9},
    {"100Gbit", DIM_RATE, 12.5e9},
    {"400GbE", DIM_RATE, 50e9},
    {"900GBps", DIM_RATE, 900e9},
    {"1.8TB/sec", DIM_RATE, 1.8e12},
    {"312TFLOPS", DIM_FLOPS, 312e12},
    {"1PFLOP/s", DIM_FLOPS, 1e15},
    {"1.41GHz", DIM_FREQUENCY, 1.41e9},
    {"700W", DIM_POWER, 700},
    {"0.85", DIM_FRACTION, 0.85},
    {"85%", DIM_FRACTION, 0.85},
};

START_TEST(quantities_are_read)
{
    const struct reading *r = &readings[_i];
    double value = -1;
    char why[200] = "";
    ck_assert_msg(quantity_parse(r->text, r->dimension, &value, why, sizeof why) == STATUS_OK, "%s: %s", r->text, why);
    ck_assert_double_eq_tol(value, r->value, fabs(r->value) * 1e-15);
}
END_TEST

struct refusal {
    const char *text;
    enum dimension dimension;
    const char *why;
};
static const struct refusal refusals[] = {
    {"30", DIM_TIME, "'30' has no unit; write a time such as 30min, 900s or 14d"},
    {"30GiB", DIM_TIME, "'GiB' is not a unit of a time; write for example 30min, 900s or 14d"},
    {"30Min", DIM_TIME, "'Min' is not a unit of a time; write for example 30min, 900s or 14d"},
    {"", DIM_TIME, "'' is not a time; write for example 30min, 900s or 14d"},
    {"min", DIM_TIME, "'min' is not a time; write for example 30min, 900s or 14d"},
    {"1.2.3s", DIM_TIME, "'1.2.3s' is not a time; write for example 30min, 900s or 14d"},
    {"nan", DIM_COUNT, "'nan' is not a number; write for example 6144 or 300B"},
    {"inf", DIM_COUNT, "'inf' is not a number; write for example 6144 or 300B"},
    {"1e999", DIM_COUNT, "'1e999' is out of range; write a number such as 6144 or 300B"},
    {"0x10", DIM_COUNT, "'x10' is not a unit of a number; write for example 6144 or 300B"},
    {"1__0", DIM_COUNT, "'__0' is not a unit of a number; write for example 6144 or 300B"},
    {"80", DIM_BYTES, "'80' has no unit; write a size such as 80GiB or 512MB"},
    {"400G", DIM_RATE, "'400G' could be bits or bytes; write 400Gbps or 400GB/s"},
    {"3.2 T/s", DIM_RATE, "'3.2 T/s' could be bits or bytes; write 3.2 Tbps or 3.2 TB/s"},
    {"400Kit/s", DIM_RATE, "'Kit/s' is not a unit of a data rate; write for example 200Gbps or 900GB/s"},
    {"200Gb", DIM_RATE, "'Gb' is not a unit of a data rate; write for example 200Gbps or 900GB/s"},
};

START_TEST(refusals_say_what_would_be_right)
{
    const struct refusal *r = &refusals[_i];
    double value = 7;
    char why[200] = "";
    ck_assert_int_eq(quantity_parse(r->text, r->dimension, &value, why, sizeof why), STATUS_BAD_INPUT);
    ck_assert_str_eq(why, r->why);
    ck_assert_double_eq(value, 7); /* untouched */
}
END_TEST

struct printing {
    double value;
    enum dimension dimension;
    const char *text;
};
static const struct printing printings[] = {
    {14.83, DIM_TIME, "14.8 s"},
    {0.0123, DIM_TIME, "12.3 ms"},
    {1800, DIM_TIME, "30.0 min"},
    {54 * 86400.0, DIM_TIME, "54.0 d"},
    {0, DIM_TIME, "0 s"},
    {1299 * 86400.0, DIM_TIME, "3.56 years"},
    {974 * 86400.0, DIM_TIME, "974 d"},
    {2.5e9, DIM_TIME, "79.2 years"},
    {1e300, DIM_TIME, "3.17e+292 years"},
    {2.5e18, DIM_COUNT, "2.5e+06 T"},
    {79.3 * 0x1p30, DIM_BYTES, "79.3 GiB"},
    {25e9, DIM_RATE, "25.0 GB/s"},
    {312e12, DIM_FLOPS, "312 TFLOPS"},
    {6144, DIM_COUNT, "6144"},
    {300e9, DIM_COUNT, "300 B"},
    {0.552, DIM_FRACTION, "55.2 %"},
};

START_TEST(quantities_print_with_three_digits)
{
    char buffer[40];
    const struct printing *p = &printings[_i];
    ck_assert_str_eq(quantity_format(p->value, p->dimension, buffer, sizeof buffer), p->text);
}
END_TEST

START_TEST(nanoseconds_round_and_saturate)
{
    ck_assert_int_eq(nanos_from_seconds(1), NANOS_PER_SECOND);
    ck_assert_int_eq(nanos_from_seconds(0.4e-9), 0);
    ck_assert_int_eq(nanos_from_seconds(0.6e-9), 1);
    ck_assert_int_eq(nanos_from_seconds(-2.5), -2500000000);
    ck_assert_int_eq(nanos_from_seconds(1e300), INT64_MAX);
    ck_assert_int_eq(nanos_from_seconds(-1e300), INT64_MIN);
}
END_TEST

START_TEST(the_nearest_name_is_a_likely_slip)
{
    static const char *const names[] = {"global_batch", "seq_len", "precision", "tokens"};
    ck_assert_str_eq(nearest_name("globl_batch", names, 4), "global_batch");
    ck_assert_str_eq(nearest_name("seqlen", names, 4), "seq_len");
    ck_assert_str_eq(nearest_name("PRECISION", names, 4), "precision");
    ck_assert_str_eq(nearest_name("toknes", names, 4), "tokens"); /* neighbours exchanged are one slip */
    ck_assert_str_eq(nearest_name("seq", names, 4), "seq_len");   /* begun */
    ck_assert_ptr_null(nearest_name("wombat", names, 4));
    ck_assert_ptr_null(nearest_name("", names, 4));
    static const char *const degrees[] = {"tp", "cp", "pp", "vpp"};
    ck_assert_str_eq(nearest_name("vp", degrees, 4), "vpp"); /* of the equally near, what begins alike */
    static const char *const short_ones[] = {"job", "run"};
    ck_assert_ptr_null(nearest_name("foo", short_ones, 2)); /* two letters of three are no slip ... */
    ck_assert_str_eq(nearest_name("rnu", short_ones, 2), "run");
    char hint[64];
    ck_assert_str_eq(name_hint("jbo", short_ones, 2, "no", hint, sizeof hint), "did you mean 'job'?");
    ck_assert_str_eq(name_hint("foo", short_ones, 2, "known are job and run", hint, sizeof hint), "known are job and run");
    char longest[200];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    ck_assert_ptr_null(nearest_name(longest, names, 4));
}
END_TEST

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
int main(void)
{
    Suite *suite = suite_create("units");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, quantities_are_read, 0, COUNT(readings));
    tcase_add_loop_test(all, refusals_say_what_would_be_right, 0, COUNT(refusals));
    tcase_add_loop_test(all, quantities_print_with_three_digits, 0, COUNT(printings));
    tcase_add_test(all, nanoseconds_round_and_saturate);
    tcase_add_test(all, the_nearest_name_is_a_likely_slip);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
