/* Statistics of errors against numbers worked out by hand. */
#include <check.h>
#include <stdlib.h>

#include "tests/suite.h"
#include "traces/table/accuracy.h"

#define NEAR(a, b) ck_assert_double_eq_tol(a, b, 1e-9)

/* Source a: errors +10, -20, +30, none (out of memory, found), +40 although predicted not to fit. Source b: error -50, a missed
 * out of memory, and a run without prediction. */
static const struct comparison items[] = {
    {.name = "a1", .source = "a", .gpu = "x", .measured_s = 10, .predicted_s = 11},
    {.name = "a2", .source = "a", .gpu = "x", .measured_s = 10, .predicted_s = 8},
    {.name = "a3", .source = "a", .gpu = "y", .measured_s = 10, .predicted_s = 13},
    {.name = "a4", .source = "a", .gpu = "y", .oom = true, .predicted_oom = true, .predicted_s = 3},
    {.name = "a5", .source = "a", .gpu = "y", .predicted_oom = true, .measured_s = 5, .predicted_s = 7},
    {.name = "b1", .source = "b", .gpu = "x", .measured_s = 4, .predicted_s = 2},
    {.name = "b2", .source = "b", .gpu = "x", .oom = true, .predicted_s = 9},
    {.name = "b3", .source = "b", .gpu = "x", .measured_s = 4},
};
enum { N = sizeof items / sizeof *items };

/* Of a run of which nobody says whether it fitted no outcome counts, whatever is predicted. */
START_TEST(untold_outcomes)
{
    static const struct comparison outcome_unknown[] = {
        {.name = "u", .source = "u", .gpu = "x", .outcome_unknown = true, .predicted_oom = true, .predicted_s = 3},
        {.name = "v", .source = "u", .gpu = "x", .outcome_unknown = true, .predicted_s = 3}};
    struct accuracy total = accuracy_total(outcome_unknown, 2);
    ck_assert_uint_eq(total.n, 0);
    ck_assert_uint_eq(total.oom_found + total.oom_missed + total.oom_false_alarms, 0);
}
END_TEST

/* |errors| 10 20 30 40 50: mean 30, median 30, p90 at rank 3.6 = 46, signed mean (10-20+30+40-50)/5 = 2; sources 25 and 50. */
START_TEST(over_all)
{
    struct accuracy total = accuracy_total(items, N);
    ck_assert_uint_eq(total.n, 5);
    NEAR(total.mape_pct, 30);
    NEAR(total.median_ape_pct, 30);
    NEAR(total.p90_ape_pct, 46);
    NEAR(total.bias_pct, 2);
    NEAR(total.macro_mape_pct, 37.5);
    ck_assert_uint_eq(total.oom_found, 1);
    ck_assert_uint_eq(total.oom_missed, 1);
    ck_assert_uint_eq(total.oom_false_alarms, 1);
}
END_TEST

START_TEST(by_source)
{
    size_t n;
    struct accuracy_group *groups = accuracy_groups(items, N, ACCURACY_BY_SOURCE, &n);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(groups[0].name, "a");
    ck_assert_uint_eq(groups[0].accuracy.n, 4);
    NEAR(groups[0].accuracy.mape_pct, 25);
    NEAR(groups[0].accuracy.median_ape_pct, 25); /* of 10 20 30 40 */
    NEAR(groups[0].accuracy.p90_ape_pct, 37);
    NEAR(groups[0].accuracy.bias_pct, 15);
    NEAR(groups[0].accuracy.macro_mape_pct, 25);
    ck_assert_uint_eq(groups[0].accuracy.oom_found, 1);
    ck_assert_uint_eq(groups[0].accuracy.oom_missed, 0);
    ck_assert_uint_eq(groups[0].accuracy.oom_false_alarms, 1);
    ck_assert_uint_eq(groups[1].accuracy.n, 1);
    NEAR(groups[1].accuracy.bias_pct, -50);
    ck_assert_uint_eq(groups[1].accuracy.oom_missed, 1);
    free(groups);
}
END_TEST

/* GPU x: 10 and 20 from a, 50 from b: mean 80/3, macro (15 + 50) / 2. */
START_TEST(by_gpu)
{
    size_t n;
    struct accuracy_group *groups = accuracy_groups(items, N, ACCURACY_BY_GPU, &n);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(groups[0].name, "x");
    NEAR(groups[0].accuracy.mape_pct, 80.0 / 3);
    NEAR(groups[0].accuracy.macro_mape_pct, 32.5);
    NEAR(groups[1].accuracy.mape_pct, 35);
    free(groups);
}
END_TEST

/* Measured over predicted, each source weighing 1: of a 5/7 10/13 10/11 5/4 with 1/4 each, of b 2. The middles of their weights,
 * of 2 in all: 1/16 3/16 5/16 7/16 3/4. */
START_TEST(ratios)
{
    struct accuracy total = accuracy_total(items, N);
    ck_assert_uint_eq(total.n_sources, 2);
    NEAR(total.ratio.low, 5.0 / 7 + 0.3 * (10.0 / 13 - 5.0 / 7));
    NEAR(total.ratio.middle, 1.25 + 0.2 * 0.75);
    NEAR(total.ratio.high, 2);
    total = accuracy_total(items, 2); /* one source: 10/11 and 5/4, of 1/2 each */
    NEAR(total.ratio.low, 10.0 / 11);
    NEAR(total.ratio.middle, (10.0 / 11 + 1.25) / 2);
    NEAR(total.ratio.high, 1.25);
}
END_TEST

START_TEST(by_kind)
{
    struct comparison kinds[3] = {items[0], items[5], items[1]};
    size_t n;
    kinds[0].kind = kinds[2].kind = "fused";
    kinds[1].kind = "mixture";
    struct accuracy_group *groups = accuracy_groups(kinds, 3, ACCURACY_BY_KIND, &n);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(groups[0].name, "fused");
    NEAR(groups[0].accuracy.mape_pct, 15);
    NEAR(groups[1].accuracy.ratio.middle, 2);
    free(groups);
}
END_TEST

START_TEST(nothing)
{
    size_t n = 9;
    struct accuracy total = accuracy_total(items, 0);
    ck_assert_uint_eq(total.n, 0);
    NEAR(total.mape_pct, 0);
    NEAR(total.macro_mape_pct, 0);
    NEAR(total.ratio.high, 0);
    struct accuracy_group *groups = accuracy_groups(items, 0, ACCURACY_BY_GPU, &n);
    ck_assert_uint_eq(n, 0);
    free(groups);
    total = accuracy_total(&items[6], 1); /* only an out-of-memory run: a source without errors has no say in the macro mean */
    NEAR(total.macro_mape_pct, 0);
}
END_TEST

START_TEST(worst_first)
{
    static const size_t expected[] = {5, 4, 2, 1, 0};
    size_t n;
    size_t *order = accuracy_worst_first(items, N, &n);
    ck_assert_uint_eq(n, 5);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(order[i], expected[i]);
    free(order);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("accuracy");
    TCase *statistics = tcase_create("statistics");
    tcase_add_test(statistics, over_all);
    tcase_add_test(statistics, untold_outcomes);
    tcase_add_test(statistics, by_source);
    tcase_add_test(statistics, by_gpu);
    tcase_add_test(statistics, by_kind);
    tcase_add_test(statistics, ratios);
    tcase_add_test(statistics, nothing);
    tcase_add_test(statistics, worst_first);
    suite_add_tcase(suite, statistics);
    return suite_run(suite);
}
