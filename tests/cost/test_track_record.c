/* The record of real runs by kind: what a run is, and that the record makes sense. */
#include <check.h>
#include <math.h>

#include "model/cost/step/track_record.h"
#include "tests/suite.h"

/* The log-logistic: its median, and an equal factor up and down to a tenth on either side; what is used at a share is what leaves
 * that share of needs above it. */
START_TEST(quantiles_of_the_need)
{
    ck_assert_double_eq_tol(memory_quantile(1.25, 0.3, 0.5), 1.25, 1e-12);
    ck_assert_double_eq_tol(memory_quantile(2, 0.5, 0.9), 6, 1e-12);
    ck_assert_double_eq_tol(memory_quantile(2, 0.5, 0.1), 2.0 / 3, 1e-12);
    for (int i = 1; i < 100; i++) {
        const struct memory_record *record = memory_record();
        double use = memory_record_use(i / 100.0);
        ck_assert_double_eq_tol(memory_record_share(use), i / 100.0, 1e-12);
        ck_assert_double_eq_tol(use * memory_quantile(record->median, record->scale, 1 - i / 100.0), 1, 1e-12);
    }
}
END_TEST

START_TEST(kinds)
{
    struct transformer dense = {.layers = 2}, experts = {.layers = 2, .moe = {.experts = 8, .top_k = 2}};
    struct layout layout = {.zero = 1, .features = FEATURE_BIT(FUSED_OPS)};
    ck_assert_int_eq(run_kind_of(&layout, &dense), RUN_FUSED);
    layout.features = FEATURE_BIT(COMPILE);
    ck_assert_int_eq(run_kind_of(&layout, &dense), RUN_FUSED);
    layout.features = FEATURE_BIT(FLASH_ATTENTION2);
    ck_assert_int_eq(run_kind_of(&layout, &dense), RUN_EAGER);
    layout.zero = 3;
    ck_assert_int_eq(run_kind_of(&layout, &dense), RUN_SHARDED);
    ck_assert_int_eq(run_kind_of(&layout, &experts), RUN_MIXTURE);
}
END_TEST

START_TEST(record_makes_sense)
{
    const struct track_record *record = track_record_of((enum run_kind)_i);
    ck_assert_int_ge(record->runs, 10);
    ck_assert_int_ge(record->sources, 1);
    ck_assert_double_gt(record->low, 0.5);
    ck_assert_double_lt(record->low, record->middle);
    ck_assert_double_lt(record->middle, record->high);
    ck_assert_double_lt(record->high, 3);
    ck_assert_str_ne(run_kind_name((enum run_kind)_i), "");
    ck_assert_str_ne(run_kind_text((enum run_kind)_i), "");
}
END_TEST

START_TEST(gpus_are_whole_words)
{
    const struct track_record record = {.gpus = "a100-80g-sxm gb200 h100-sxm"};
    ck_assert(track_record_has_gpu(&record, "a100-80g-sxm"));
    ck_assert(track_record_has_gpu(&record, "gb200"));
    ck_assert(track_record_has_gpu(&record, "h100-sxm"));
    ck_assert(!track_record_has_gpu(&record, "b200"));
    ck_assert(!track_record_has_gpu(&record, "a100-80g"));
    ck_assert(!track_record_has_gpu(&record, "h100-sxm-96g"));
}
END_TEST

START_TEST(record_of_memory)
{
    const struct memory_record *record = memory_record();
    int of_kinds = 0;
    for (int kind = 0; kind < N_RUN_KINDS; kind++)
        of_kinds += track_record_of((enum run_kind)kind)->outcomes;
    ck_assert_int_eq(of_kinds, record->runs);
    ck_assert_int_gt(record->failed, 0);
    ck_assert_int_lt(record->failed, record->runs);
    ck_assert_double_gt(record->median, 0.8);
    ck_assert_double_lt(record->median, 1.25);
    ck_assert_double_gt(record->scale, 0.01);
    ck_assert_double_lt(record->scale, 0.3);
}
END_TEST

/* Half of the runs fail where the use is one over the median; odds of 9 are 9^scale from there; share and use are inverse. */
START_TEST(shares_of_memory)
{
    const struct memory_record *record = memory_record();
    ck_assert_double_eq_tol(memory_record_share(1 / record->median), 0.5, 1e-12);
    ck_assert_double_eq_tol(memory_record_share(pow(9, record->scale) / record->median), 0.9, 1e-12);
    ck_assert_double_eq(memory_record_share(0), 0);
    ck_assert_double_lt(memory_record_share(0.3), 1e-6);
    ck_assert_double_gt(memory_record_share(3), 1 - 1e-6);
    for (double share = 0.01; share < 1; share += 0.07)
        ck_assert_double_eq_tol(memory_record_share(memory_record_use(share)), share, 1e-12);
}
END_TEST

/* The least whole percent that is enough. */
START_TEST(the_margin_leaves_the_share_it_says)
{
    double margin = memory_record_margin();
    ck_assert_double_eq_tol(100 * margin, (int)(100 * margin + 0.5), 1e-9);
    ck_assert_double_le(memory_record_share(1 - margin), SHARE_WITH_MARGIN);
    ck_assert_double_gt(memory_record_share(1 - margin + 0.01), SHARE_WITH_MARGIN);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("track_record");
    TCase *tests = tcase_create("record");
    tcase_add_test(tests, quantiles_of_the_need);
    tcase_add_test(tests, kinds);
    tcase_add_loop_test(tests, record_makes_sense, 0, N_RUN_KINDS);
    tcase_add_test(tests, gpus_are_whole_words);
    tcase_add_test(tests, record_of_memory);
    tcase_add_test(tests, shares_of_memory);
    tcase_add_test(tests, the_margin_leaves_the_share_it_says);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
