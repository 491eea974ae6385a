/* Orders for qsort, whole to the ends of their types, quantiles, and what divides two numbers. */
#include <check.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/order.h"
#include "tests/suite.h"

/* `sorted` holds n elements, no two alike: the order says so of every pair, and qsort brings them back from the reverse. */
static void check_order(const void *sorted, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    const char *items = sorted;
    char reversed[256];
    ck_assert_uint_le(n * size, sizeof reversed);
    for (size_t i = 0; i < n; i++) {
        memcpy(reversed + (n - 1 - i) * size, items + i * size, size);
        for (size_t j = 0; j < n; j++) {
            int order = compare(items + i * size, items + j * size);
            ck_assert_int_eq((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
    qsort(reversed, n, size, compare);
    ck_assert_mem_eq(reversed, items, n * size);
}

START_TEST(numbers_ascend)
{
    static const int ints[] = {INT_MIN, -2, 0, 1, INT_MAX};
    static const uint32_t words[] = {0, 1, 0x7fffffff, 0x80000000, UINT32_MAX};
    static const double doubles[] = {-INFINITY, -DBL_MAX, -DBL_MIN, 0, DBL_MIN, 1, 1 + DBL_EPSILON, INFINITY};
    check_order(ints, sizeof ints / sizeof ints[0], sizeof ints[0], int_compare);
    check_order(words, sizeof words / sizeof words[0], sizeof words[0], uint32_compare);
    check_order(doubles, sizeof doubles / sizeof doubles[0], sizeof doubles[0], double_compare);
}
END_TEST

START_TEST(texts_go_by_bytes)
{
    char texts[][8] = {"", "B", "a", "a1", "a10", "a2", "\xc3\xa4"};
    char *pointers[sizeof texts / sizeof texts[0]];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        pointers[i] = texts[i];
    check_order(pointers, sizeof texts / sizeof texts[0], sizeof pointers[0], text_compare);
}
END_TEST

/* A quarter from one neighbour to the next, 1 and 10 apart; the ends; a single number, and none. */
START_TEST(quantiles_lie_between_order_statistics)
{
    static const double sorted[] = {3, 4, 14};
    ck_assert_double_eq(double_quantile(sorted, 3, 0), 3);
    ck_assert_double_eq(double_quantile(sorted, 3, 0.125), 3.25);
    ck_assert_double_eq(double_quantile(sorted, 3, 0.5), 4);
    ck_assert_double_eq(double_quantile(sorted, 3, 0.625), 6.5);
    ck_assert_double_eq(double_quantile(sorted, 3, 1), 14);
    ck_assert_double_eq(double_quantile(sorted, 1, 0.9), 3);
    ck_assert_double_eq(double_quantile(NULL, 0, 0.5), 0);
}
END_TEST

START_TEST(the_common_divisor_is_the_greatest)
{
    for (int a = 1; a <= 60; a++)
        for (int b = 1; b <= 60; b++) {
            int greatest = 1;
            for (int d = 2; d <= int_min(a, b); d++)
                greatest = a % d == 0 && b % d == 0 ? d : greatest;
            ck_assert_int_eq(int_common_divisor(a, b), greatest);
        }
    ck_assert_int_eq(int_common_divisor(INT_MAX, INT_MAX), INT_MAX);
    ck_assert_int_eq(int_min(INT_MIN, INT_MAX), INT_MIN);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("order");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, numbers_ascend);
    tcase_add_test(tests, texts_go_by_bytes);
    tcase_add_test(tests, quantiles_lie_between_order_statistics);
    tcase_add_test(tests, the_common_divisor_is_the_greatest);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
