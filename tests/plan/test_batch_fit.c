/*
 * Batches and the replicas that they divide among, against counts by brute force.
 *
 * What is proved: sizes and those that are left are what a loop over all numbers counts; no batch within an eighth leaves more
 * than the better one, nor as many and is nearer; batches that people train with are not warned of.
 */
#include <check.h>
#include <stdlib.h>

#include "model/plan/batch_fit.h"
#include "tests/suite.h"

static int count(int gpus, int64_t most, int64_t batch)
{
    int n = 0;
    for (int d = 1; d <= gpus && d <= most; d++)
        n += gpus % d == 0 && batch % d == 0;
    return n;
}

static void check_one(int gpus, int64_t batch)
{
    struct batch_fit fit = batch_fit_of(gpus, batch);
    int64_t range = batch / 8 > 1 ? batch / 8 : 1, nearest = 0;
    int most = count(gpus, batch, batch);
    ck_assert_int_eq(fit.sizes, count(gpus, batch, 0));
    ck_assert_int_eq(fit.left, most);
    for (int64_t apart = 1; apart <= range; apart++)
        for (int sign = -1; sign <= 1; sign += 2) {
            int64_t other = batch + sign * apart;
            int left = other > 0 ? count(gpus, batch, other) : 0;
            if (left > most) {
                most = left;
                nearest = apart;
            }
        }
    ck_assert_msg(fit.better_left == most, "%d GPUs, batch %lld: %d, not %d", gpus, (long long)batch, fit.better_left, most);
    ck_assert_int_eq(fit.better ? llabs(fit.better - batch) : 0, nearest);
    ck_assert(!fit.better || count(gpus, batch, fit.better) == most);
}

START_TEST(as_a_loop_counts)
{
    static const int gpus[] = {1, 2, 8, 48, 96, 360, 480, 512, 768};
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        for (int64_t batch = 1; batch <= 700; batch += batch < 100 ? 1 : 13)
            check_one(gpus[i], batch);
    check_one(512, 977);
    check_one(480, 1024);
    check_one(12288, 1000);
}
END_TEST

START_TEST(by_hand)
{
    struct batch_fit prime = batch_fit_of(512, 977), power = batch_fit_of(512, 1024), uneven = batch_fit_of(480, 1024);
    ck_assert(batch_fits_badly(&prime));
    ck_assert_int_eq(prime.sizes, 10); /* 1, 2, ..., 512 */
    ck_assert_int_eq(prime.left, 1);
    ck_assert_int_eq(prime.better, 1024);
    ck_assert_int_eq(prime.better_left, 10);
    ck_assert(!batch_fits_badly(&power));
    ck_assert_int_eq(power.better, 0);
    ck_assert(batch_fits_badly(&uneven)); /* 1 to 32 of the 24 divisors of 480 */
    ck_assert_int_eq(uneven.left, 6);
    ck_assert_int_eq(uneven.better, 960);
}
END_TEST

/* The largest batch that a job may have is 10^9 = 2^9 5^9 sequences. What all sizes of 6 x 2^20 GPUs divide are multiples of
 * these: the one next to 999,999,999 is 1,000,341,504, which is refused, the one below it 994,050,048. */
START_TEST(none_that_is_refused)
{
    const int gpus = 6 << 20;
    const int64_t most = 1000000000;
    struct batch_fit fit = batch_fit_of(gpus, most - 1);
    ck_assert_int_eq((most / gpus + 1) * gpus, 1000341504);
    ck_assert_int_eq(most / gpus * gpus, 994050048);
    ck_assert_int_eq(fit.better, 994050048);
    ck_assert_int_eq(fit.better_left, fit.sizes);
    for (int64_t batch = most - 40; batch <= most; batch++)
        ck_assert_int_le(batch_fit_of(gpus, batch).better, most);
}
END_TEST

/* GPUs and batches of published trainings, and of the README. */
START_TEST(what_people_train_with)
{
    static const struct {
        int gpus;
        int64_t batch;
    } runs[] = {{12288, 6144}, {12288, 768}, {3072, 1536}, {16384, 2048}, {16384, 1024},
                {2048, 15360}, {384, 1536},  {8, 1},       {64, 16}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct batch_fit fit = batch_fit_of(runs[i].gpus, runs[i].batch);
        ck_assert_msg(!batch_fits_badly(&fit), "%d GPUs, batch %lld: %d of %d", runs[i].gpus, (long long)runs[i].batch, fit.left,
                      fit.sizes);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batches and replicas");
    TCase *cases = tcase_create("batches");
    tcase_add_test(cases, as_a_loop_counts);
    tcase_add_test(cases, by_hand);
    tcase_add_test(cases, none_that_is_refused);
    tcase_add_test(cases, what_people_train_with);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
