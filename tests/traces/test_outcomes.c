/*
 * What outcomes tell of predictions of memory.
 *
 * What is proved: with two uses the fit passes through the shares observed at both, exactly; where there are more it meets the
 * likelihood's equations; a prediction scaled by a factor moves the median by it alone; sources that tell of no failure and runs
 * without prediction have no say; where outcomes tell nothing there is no fit.
 */
#include <check.h>
#include <math.h>

#include "tests/suite.h"
#include "traces/table/outcomes.h"

#define NEAR(a, b) ck_assert_double_eq_tol(a, b, 1e-9)

/* `failed` of `runs` runs of a source at one use; the items that follow. */
static struct comparison *put(struct comparison *at, const char *source, double use, int runs, int failed)
{
    for (int i = 0; i < runs; i++)
        *at++ = (struct comparison){.name = "run", .source = source, .gpu = "x", .kind = "fused", .use = use, .oom = i < failed};
    return at;
}

static double share(const struct outcomes *outcomes, double use)
{
    return 1 / (1 + pow(outcomes->median * use, -1 / outcomes->scale));
}

/* One of four at 0.8, three of four at 1.25: by symmetry half at 1, and odds of 3 at 1.25. */
START_TEST(two_uses_are_met)
{
    struct comparison items[16];
    size_t n = (size_t)(put(put(items, "a", 0.8, 4, 1), "a", 1.25, 4, 3) - items);
    struct outcomes outcomes = outcomes_of(items, n);
    ck_assert_uint_eq(outcomes.runs, 8);
    ck_assert_uint_eq(outcomes.failed, 4);
    ck_assert_uint_eq(outcomes.sources, 1);
    NEAR(outcomes.median, 1);
    NEAR(outcomes.scale, log(1.25) / log(3));
    n = (size_t)(put(put(items, "a", 0.9, 5, 1), "b", 1.2, 3, 2) - items);
    outcomes = outcomes_of(items, n);
    ck_assert_uint_eq(outcomes.sources, 2);
    NEAR(share(&outcomes, 0.9), 1.0 / 5);
    NEAR(share(&outcomes, 1.2), 2.0 / 3);
}
END_TEST

/* Two that nobody tells the end of, at a third use, change nothing. */
START_TEST(untold_runs_have_no_say)
{
    struct comparison items[16], *end = put(put(items, "a", 0.8, 4, 1), "a", 1.25, 4, 3);
    struct comparison *outcome_unknown = end;
    end = put(end, "a", 2, 2, 0);
    outcome_unknown[0].outcome_unknown = outcome_unknown[1].outcome_unknown = true;
    struct outcomes outcomes = outcomes_of(items, (size_t)(end - items));
    ck_assert_uint_eq(outcomes.runs, 8);
    NEAR(outcomes.median, 1);
}
END_TEST

/* As many failures as the shares sum to, also weighed by ln use. */
START_TEST(likelihood_is_at_its_maximum)
{
    struct comparison items[128], *end = items;
    for (int i = 0; i < 12; i++)
        end = put(end, i % 2 ? "a" : "b", 0.5 * pow(1.13, i), 10, i == 2 ? 1 : i < 4 ? 0 : i < 9 ? 2 * (i - 4) + i % 2 : 10);
    size_t n = (size_t)(end - items);
    struct outcomes outcomes = outcomes_of(items, n);
    double rest = 0, weighed = 0;
    for (size_t i = 0; i < n; i++) {
        rest += items[i].oom - share(&outcomes, items[i].use);
        weighed += (items[i].oom - share(&outcomes, items[i].use)) * log(items[i].use);
    }
    NEAR(rest, 0);
    NEAR(weighed, 0);
    for (size_t i = 0; i < n; i++)
        items[i].use *= 1.1;
    struct outcomes scaled = outcomes_of(items, n);
    NEAR(scaled.median, outcomes.median / 1.1);
    NEAR(scaled.scale, outcomes.scale);
}
END_TEST

START_TEST(who_has_no_say)
{
    struct comparison items[64], *end = put(put(items, "a", 0.8, 4, 1), "a", 1.25, 4, 3);
    struct outcomes alone = outcomes_of(items, (size_t)(end - items));
    end = put(end, "only what ran", 1.1, 20, 0);
    end = put(end, "a", 0, 5, 5); /* no prediction */
    end = put(end, "c", 0, 1, 1);
    struct outcomes all = outcomes_of(items, (size_t)(end - items));
    ck_assert_uint_eq(all.runs, alone.runs);
    ck_assert_uint_eq(all.sources, 1);
    NEAR(all.median, alone.median);
    NEAR(all.scale, alone.scale);
}
END_TEST

START_TEST(nothing_told)
{
    struct comparison items[32];
    const size_t parted = (size_t)(put(put(items, "a", 0.8, 4, 0), "a", 1.25, 4, 4) - items);
    ck_assert_double_eq(outcomes_of(items, parted).scale, 0); /* any step between 0.8 and 1.25 */
    ck_assert_uint_eq(outcomes_of(items, parted).runs, 8);
    const size_t reversed = (size_t)(put(put(items, "a", 0.8, 4, 3), "a", 1.25, 4, 1) - items);
    ck_assert_double_eq(outcomes_of(items, reversed).scale, 0);
    const size_t even = (size_t)(put(items, "a", 1, 4, 2) - items);
    ck_assert_double_eq(outcomes_of(items, even).scale, 0);
    const size_t failed = (size_t)(put(items, "a", 1, 4, 4) - items);
    ck_assert_double_eq(outcomes_of(items, failed).scale, 0);
    ck_assert_uint_eq(outcomes_of(items, 0).runs, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("outcomes");
    TCase *tests = tcase_create("fit");
    tcase_add_test(tests, two_uses_are_met);
    tcase_add_test(tests, likelihood_is_at_its_maximum);
    tcase_add_test(tests, untold_runs_have_no_say);
    tcase_add_test(tests, who_has_no_say);
    tcase_add_test(tests, nothing_told);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
