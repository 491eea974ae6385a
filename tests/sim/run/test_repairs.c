/*
 * Repairs scaled to a mean that is given. Oracles: lognormal means by hand; drawn traces' own means; faults that stay where they
 * were.
 */
#include <check.h>
#include <math.h>
#include <string.h>

#include "case.h"
#include "sim/faults/faults.h"
#include "sim/faults/repairs.h"
#include "tests/suite.h"

/* Two kinds, 3 : 1, and one that takes nothing away: hours of exp(0.5) = 1.6487 and exp(1 + 0.5 * 4) = 20.0855. */
static struct fault_model two_kinds(void)
{
    struct fault_model model = {.rate = 0.01, .shape = 1, .nodes = 1000, .days = 100, .lemon_factor = 1};
    model.repairs[REPAIR_HARDWARE] = (struct repair_time){.mu = 0, .sigma = 1};
    model.repairs[REPAIR_NETWORK] = (struct repair_time){.mu = 1, .sigma = 2};
    model.causes.n = 3;
    model.causes.items[0] = (struct fault_cause){.name = "Faulty GPU", .repair = REPAIR_HARDWARE, .weight = 3};
    model.causes.items[1] = (struct fault_cause){.name = "Switch", .repair = REPAIR_NETWORK, .weight = 1};
    model.causes.items[2] = (struct fault_cause){.name = "Software bug", .repair = REPAIR_NONE, .weight = 100};
    model.groups.n = 2;
    model.groups.items[0] = (struct fault_group){.name = "rack", .nodes = 8, .share = 1, .repair = {.mu = 2, .sigma = 0.5}};
    model.groups.items[1] = model.groups.items[0];
    model.groups.items[1].planned = true;
    return model;
}

START_TEST(means_of_a_model_by_hand)
{
    struct fault_model model = two_kinds();
    const double hours = (3 * exp(0.5) + exp(3)) / 4;
    struct repairs repairs = repairs_of_model(&model);
    ck_assert_double_eq_tol(repairs.mean_s, 3600 * hours, 1e-6);
    repairs_set_model(&repairs, 72 * 3600, &model);
    repairs_set_model(&repairs, 10 * 3600, &model); /* of what was read, not of what was set */
    ck_assert_double_eq_tol(repairs_of_model(&model).mean_s, 36000, 1e-6);
    ck_assert_double_eq_tol(model.repairs[REPAIR_HARDWARE].mu, log(10 / hours), 1e-12);
    ck_assert_double_eq_tol(model.repairs[REPAIR_NETWORK].mu, 1 + log(10 / hours), 1e-12);
    ck_assert_double_eq_tol(model.repairs[REPAIR_NETWORK].sigma, 2, 1e-15);
    ck_assert_double_eq_tol(model.groups.items[0].repair.mu, 2 + log(10 / hours), 1e-12);
    ck_assert_double_eq_tol(model.groups.items[1].repair.mu, 2, 1e-15); /* announced */
    model.causes.items[0].repair = model.causes.items[1].repair = REPAIR_NONE;
    ck_assert_double_eq_tol(repairs_of_model(&model).mean_s, 0, 1e-15);
}
END_TEST

/* What is drawn has that mean, to four of its standard errors and the half second by which whole seconds are longer. */
START_TEST(drawn_outages_have_the_mean)
{
    static const double means_h[] = {1, 24, 72};
    for (size_t k = 0; k < sizeof means_h / sizeof *means_h; k++) {
        struct fault_model model = case_fault_model("llama3");
        struct repairs repairs = repairs_of_model(&model);
        struct fault_trace trace;
        repairs_set_model(&repairs, 3600 * means_h[k], &model);
        faults_generate(&model, 4096, DAYS(365), 7, &trace);
        double n = 0, total = 0, squares = 0;
        for (size_t i = 0; i < trace.n_items; i++) {
            double down = nanos_to_seconds(trace.items[i].down);
            n += down > 0, total += down, squares += down * down;
        }
        double error = sqrt((squares / n - pow(total / n, 2)) / n);
        ck_assert_double_gt(n, 3000);
        ck_assert_double_eq_tol(total / n, 3600 * means_h[k] + 0.5, 4 * error);
        ck_assert_double_lt(error, 0.1 * total / n);
        fault_trace_free(&trace);
    }
}
END_TEST

START_TEST(outages_of_a_trace_by_hand)
{
    struct fault_trace trace = {0};
    trace_outage(&trace, 100, 0, 3000);
    trace_outage(&trace, 200, 1, 1000);
    trace_outage(&trace, 300, 2, 0); /* takes nothing away */
    trace_slow(&trace, 400, 3, 5000, 0.5);
    fault_trace_add(&trace,
                    (struct fault){.time = SECONDS(500), .down = SECONDS(700), .speed = FULL_SPEED, .kind = FAULT_PLANNED}, NULL);
    struct repairs repairs = repairs_of_trace(&trace);
    ck_assert_double_eq_tol(repairs.mean_s, 2000, 1e-9);
    repairs_set_trace(&repairs, 1.0 / 3, &trace);
    repairs_set_trace(&repairs, 36000, &trace);
    static const int downs_s[] = {54000, 18000, 0, 5000, 700}, times_s[] = {100, 200, 300, 400, 500};
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(trace.items[i].down, SECONDS(downs_s[i]));
        ck_assert_int_eq(trace.items[i].time, SECONDS(times_s[i]));
    }
    repairs_set_trace(&repairs, 1e-9, &trace); /* never so short that it takes nothing away */
    ck_assert_int_eq(trace.items[1].down, 1);
    repairs_set_trace(&repairs, 1e12, &trace);
    ck_assert_int_eq(trace.items[0].down, FAULT_TRACE_LONGEST);
    repairs_free(&repairs);
    fault_trace_free(&trace);
}
END_TEST

/* Those that say whose repairs they have; a Delta's are its own. */
START_TEST(whose_repairs)
{
    struct fault_model model = case_fault_model("llama3"), delta = case_fault_model("delta"), rsc = case_fault_model("rsc-1");
    ck_assert(fault_model_repairs_are_lanls(&model));
    ck_assert(fault_model_repairs_are_lanls(&rsc));
    ck_assert(!fault_model_repairs_are_lanls(&delta));
    model.repairs[REPAIR_HARDWARE].mu += 0.001;
    ck_assert(!fault_model_repairs_are_lanls(&model));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("repairs");
    TCase *all = tcase_create("repairs");
    tcase_add_test(all, means_of_a_model_by_hand);
    tcase_add_test(all, drawn_outages_have_the_mean);
    tcase_add_test(all, outages_of_a_trace_by_hand);
    tcase_add_test(all, whose_repairs);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
