/* DCQCN: a sender stepped by hand through the equations of the paper, and when switches mark. */
#include <check.h>
#include <math.h>

#include "sim/fabric/dcqcn.h"
#include "tests/suite.h"

/* The paper's, at 40 Gbps: R_AI is 40 Mb/s there. */
static const struct dcqcn_parameters paper = {.gain = 1.0 / 256,
                                              .cnp_interval = 50000,
                                              .alpha_timer = 55000,
                                              .rate_timer = 55000,
                                              .byte_counter = 10e6,
                                              .fast_rounds = 5,
                                              .additive = 50e6,
                                              .hyper = 500e6,
                                              .least = 125e3};
static const double line = 5e9; /* B/s: 40 Gbps */

#define US 1000

/* CNP at 100 us:    Rt = 5, Rc = 5 (1 - 1/2) = 2.5 GB/s, alpha = 255/256 + 1/256 = 1.
 * 155 us:           alpha = 255/256; first round of fast recovery: Rc = (5 + 2.5) / 2 = 3.75.
 * CNP at 160 us:    Rt = 3.75, Rc = 3.75 (1 - 255/512), alpha = (255/256)^2 + 1/256.
 * 215 ... 435 us:   five rounds of fast recovery: Rc = Rt - (Rt - Rc) / 32; alpha (255/256)^5 of what it was.
 * 490, 545 us:      additive: Rt = 3.755, then 3.760, Rc half way to it each time. */
START_TEST(a_sender_follows_the_equations)
{
    struct dcqcn s = dcqcn_start(line);
    const double g = 1.0 / 256;
    ck_assert_double_eq(s.current, line);
    ck_assert_double_eq(s.alpha, 1);
    dcqcn_notify(&s, &paper, 100 * US);
    ck_assert_double_eq(s.target, 5e9);
    ck_assert_double_eq(s.current, 2.5e9);
    ck_assert_double_eq(s.alpha, 1);
    dcqcn_advance(&s, &paper, 155 * US - 1);
    ck_assert_double_eq(s.current, 2.5e9);
    dcqcn_advance(&s, &paper, 155 * US);
    ck_assert_double_eq(s.current, 3.75e9);
    ck_assert_double_eq(s.alpha, 1 - g);
    dcqcn_notify(&s, &paper, 160 * US);
    double cut = 3.75e9 * (1 - 255.0 / 512), alpha = (1 - g) * (1 - g) + g;
    ck_assert_double_eq(s.target, 3.75e9);
    ck_assert_double_eq(s.current, cut);
    ck_assert_double_eq(s.alpha, alpha);
    dcqcn_advance(&s, &paper, 435 * US);
    double recovered = 3.75e9 - (3.75e9 - cut) / 32;
    ck_assert_double_eq_tol(s.current, recovered, 1e-3);
    ck_assert_double_eq(s.target, 3.75e9);
    ck_assert_double_eq_tol(s.alpha, alpha * pow(1 - g, 5), 1e-15);
    dcqcn_advance(&s, &paper, 490 * US);
    double first = (3.755e9 + recovered) / 2;
    ck_assert_double_eq(s.target, 3.755e9);
    ck_assert_double_eq_tol(s.current, first, 1e-3);
    dcqcn_advance(&s, &paper, 545 * US);
    ck_assert_double_eq(s.target, 3.76e9);
    ck_assert_double_eq_tol(s.current, (3.76e9 + first) / 2, 1e-3);
}
END_TEST

/* The byte counter is a second clock. 60 MB at once are six of its rounds: five of fast recovery, one additive. Then the timer's
 * rounds 0 to 5 find B > F and T not: additive. Its seventh finds both above 5: hyper, 50 MB/s at this line. */
START_TEST(bytes_and_time_together_hurry)
{
    struct dcqcn s = dcqcn_start(line);
    dcqcn_notify(&s, &paper, 0);
    dcqcn_notify(&s, &paper, 1); /* Rt = 2.5 GB/s: room above */
    dcqcn_sent(&s, &paper, 60e6, 2);
    ck_assert_int_eq(s.counted, 6);
    ck_assert_double_eq(s.target, 2.5e9 + 5e6);
    dcqcn_advance(&s, &paper, 6 * 55 * US + 1);
    ck_assert_int_eq(s.timed, 6);
    ck_assert_double_eq(s.target, 2.5e9 + 7 * 5e6);
    dcqcn_advance(&s, &paper, 7 * 55 * US + 1);
    ck_assert_double_eq(s.target, 2.5e9 + 7 * 5e6 + 50e6);
}
END_TEST

/* Between CNPs rates only grow and alpha only falls, up to the line rate, where the timer stops; looking more often changes
 * nothing. */
START_TEST(looking_does_not_change_a_sender)
{
    struct dcqcn often = dcqcn_start(line), once = often;
    double rate = 0, alpha = 1;
    dcqcn_notify(&often, &paper, 0);
    dcqcn_notify(&once, &paper, 0);
    for (nanos t = 0; t < 200000 * US; t += 17 * US) {
        dcqcn_advance(&often, &paper, t);
        ck_assert_double_ge(often.current, rate);
        ck_assert_double_le(often.alpha, alpha);
        ck_assert_double_le(often.target, line);
        rate = often.current;
        alpha = often.alpha;
    }
    dcqcn_advance(&often, &paper, 200000 * US);
    dcqcn_advance(&once, &paper, 200000 * US);
    ck_assert_double_eq(once.current, line);
    ck_assert(once.rate_at == DCQCN_NEVER);
    ck_assert_double_eq(often.current, once.current);
    ck_assert_double_eq(often.alpha, once.alpha);
    for (int i = 0; i < 1000; i++)
        dcqcn_notify(&once, &paper, 200000 * US + i);
    ck_assert_double_eq(once.current, paper.least);
}
END_TEST

/* Figure 5 of the paper: nothing up to Kmin, Pmax just below Kmax, everything from there. */
START_TEST(marks_grow_from_kmin_to_kmax)
{
    ck_assert_double_eq(red_probability(5e3, 5e3, 200e3, 0.01), 0);
    ck_assert_double_eq_tol(red_probability(102.5e3, 5e3, 200e3, 0.01), 0.005, 1e-15);
    ck_assert_double_eq_tol(red_probability(200e3 - 1, 5e3, 200e3, 0.01), 0.01, 1e-7);
    ck_assert_double_eq(red_probability(200e3, 5e3, 200e3, 0.01), 1);
    ck_assert_double_eq(red_probability(4, 4, 4, 0.5), 0); /* a step where both are one */
    ck_assert_double_eq(red_probability(5, 4, 4, 0.5), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dcqcn");
    TCase *all = tcase_create("all");
    tcase_add_test(all, a_sender_follows_the_equations);
    tcase_add_test(all, bytes_and_time_together_hurry);
    tcase_add_test(all, looking_does_not_change_a_sender);
    tcase_add_test(all, marks_grow_from_kmin_to_kmax);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
