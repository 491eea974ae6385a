/* quantity_write: the shortest text with a unit, and back to the same bits. */
#include <check.h>
#include <stdint.h>
#include <string.h>

#include "model/base/units.h"
#include "tests/suite.h"

static const struct {
    double value;
    enum dimension dimension;
    const char *text;
} written[] = {
    {1800, DIM_TIME, "30min"},
    {4e-7, DIM_TIME, "400ns"},
    {900, DIM_TIME, "900s"},
    {0, DIM_TIME, "0s"},
    {54 * 86400.0, DIM_TIME, "54d"},
    {14 * 86400.0, DIM_TIME, "14d"}, /* not 2wk */
    {TIME_LONGEST_S, DIM_TIME, "36500d"},
    {2039e9, DIM_RATE, "2039GB/s"},
    {25e9, DIM_RATE, "25GB/s"},
    {450e9, DIM_RATE, "450GB/s"}, /* not 3.6Tbps */
    {12.5e9, DIM_RATE, "100Gbps"},
    {0x1p30, DIM_BYTES, "1GiB"},
    {41943040, DIM_BYTES, "40MiB"},
    {312e12, DIM_FLOPS, "312TFLOPS"},
    {1.41e9, DIM_FREQUENCY, "1.41GHz"},
    {700, DIM_POWER, "700W"},
    {0.85, DIM_FRACTION, "85%"},
    {6144, DIM_COUNT, "6144"},
    {300e9, DIM_COUNT, "300B"},
    {0.1, DIM_COUNT, "0.1"},
    {1e-9, DIM_COUNT, "1e-09"},
};

START_TEST(the_shortest_text)
{
    char text[64];
    ck_assert_str_eq(quantity_write(written[_i].value, written[_i].dimension, text, sizeof text), written[_i].text);
}
END_TEST

/* Doubles of every size and dimension, from a fixed congruential sequence. */
START_TEST(any_value_is_given_back)
{
    uint64_t state = 88172645463325252u;
    char text[64], why[160];
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double mantissa = (double)(state >> 11) * 0x1p-53 + 0.5, value = mantissa, back = -1;
        for (int e = (int)(state % 61) - 30; e; e += e > 0 ? -1 : 1)
            value = e > 0 ? value * 2 : value / 2;
        enum dimension dimension = (enum dimension)(i % (DIM_FRACTION + 1));
        quantity_write(value, dimension, text, sizeof text);
        ck_assert_uint_lt(strlen(text), 48);
        ck_assert_msg(quantity_parse(text, dimension, &back, why, sizeof why) == STATUS_OK, "%s: %s", text, why);
        ck_assert_msg(back == value, "%s is not %.17g but %.17g", text, value, back);
    }
}
END_TEST

/* What a user writes with few digits is the nearest double, whatever the unit. */
START_TEST(units_do_not_cost_precision)
{
    static const struct {
        const char *one, *other;
        enum dimension dimension;
    } same[] = {
        {"0.4us", "400ns", DIM_TIME},     {"0.7us", "700ns", DIM_TIME}, {"1.1ms", "1100us", DIM_TIME},
        {"0.3", "30%", DIM_FRACTION},     {"0.1h", "6min", DIM_TIME},   {"0.1h", "360s", DIM_TIME},
        {"1.6Tbps", "200GB/s", DIM_RATE}, {"0.07", "7%", DIM_FRACTION},
    };
    double one, other;
    char why[160];
    ck_assert_int_eq(quantity_parse(same[_i].one, same[_i].dimension, &one, why, sizeof why), STATUS_OK);
    ck_assert_int_eq(quantity_parse(same[_i].other, same[_i].dimension, &other, why, sizeof why), STATUS_OK);
    ck_assert_msg(one == other, "%s is not %s", same[_i].one, same[_i].other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantity_write");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, the_shortest_text, 0, (int)(sizeof written / sizeof written[0]));
    tcase_add_test(tests, any_value_is_given_back);
    tcase_add_loop_test(tests, units_do_not_cost_precision, 0, 8);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
