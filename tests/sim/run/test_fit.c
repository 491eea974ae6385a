/*
 * A fit of a fault trace: what kind of thing its causes are, and how often its intervals hold what made the trace.
 *
 * What is proved: causes of every shipped model are what the one table of causes says; a model that leaves kinds out has them
 * from it, and a fit takes those that a model says otherwise; over many seeds 95 % intervals of rate, shape and repairs hold the
 * truth as often as a binomial variate would (fewer by chance: one in three hundred for each, and the seeds are fixed); quantiles
 * of chi-squared are inverse to its distribution. Of many fleets of nodes alike few are said to have lemons, of those that have
 * them most are, and a table that names one node by mistake says nothing of lemons.
 */
#include <check.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/faults/fault_fit_internal.h"
#include "sim/faults/faults.h"
#include "tests/suite.h"
#include "traces/fault/xid.h"

#define DAYS(n) ((nanos)(n)*86400 * NANOS_PER_SECOND)

static void load(const char *name, struct fault_model *model)
{
    struct diags diags = {0};
    ck_assert_int_eq(fault_model_load(name, model, &diags), STATUS_OK);
    diags_free(&diags);
}

START_TEST(shipped_causes_are_what_the_table_says)
{
    struct fault_model *model = memory_new(1, sizeof *model);
    size_t n;
    char **names = shipped_names(&fault_models, &n);
    ck_assert_uint_ge(n, 7);
    for (size_t i = 0; i < n; i++) {
        load(names[i], model);
        for (int k = 0; k < model->causes.n; k++) {
            const struct fault_cause *cause = &model->causes.items[k];
            ck_assert_msg(cause->repair == (int)repair_of_text(cause->name), "%s: repair of '%s'", names[i], cause->name);
            ck_assert_msg(cause->component == (int)component_of_text(cause->name), "%s: component of '%s'", names[i],
                          cause->name);
        }
    }
    names_free(names);
    free(model);
}
END_TEST

/* NVIDIA's number says what mends it, whatever words stand behind it. */
START_TEST(xids_are_repaired_as_their_class_says)
{
    static const struct {
        int number;
        enum component component;
        enum symptom symptom;
        enum repair_kind repair;
    } known[] = {{31, COMPONENT_SOFTWARE, SYMPTOM_EXIT, REPAIR_NONE}, /* the program's own: its page fault */
                 {109, COMPONENT_GPU, SYMPTOM_EXIT, REPAIR_REBOOT},   /* its words speak of a timeout */
                 {48, COMPONENT_HBM, SYMPTOM_EXIT, REPAIR_REBOOT},    /* uncorrected: the GPU is reset, rows are remapped */
                 {94, COMPONENT_HBM, SYMPTOM_EXIT, REPAIR_REBOOT},    /* ... contained to one program: likewise, later */
                 {95, COMPONENT_HBM, SYMPTOM_EXIT, REPAIR_REBOOT},    {64, COMPONENT_HBM, SYMPTOM_EXIT, REPAIR_REBOOT},
                 {74, COMPONENT_NVLINK, SYMPTOM_EXIT, REPAIR_REBOOT}, {145, COMPONENT_NVLINK, SYMPTOM_EXIT, REPAIR_REBOOT},
                 {79, COMPONENT_GPU, SYMPTOM_EXIT, REPAIR_HARDWARE},  {119, COMPONENT_GPU, SYMPTOM_HANG, REPAIR_REBOOT},
                 {158, COMPONENT_GPU, SYMPTOM_EXIT, REPAIR_REBOOT}, /* its words speak of a timeout */
                 {167, COMPONENT_GPU, SYMPTOM_EXIT, REPAIR_HARDWARE}};
    const char *meaning;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        ck_assert_int_ne(xid_classify(known[i].number, &meaning), XID_UNKNOWN);
        ck_assert_msg(component_of_text(meaning) == known[i].component, "%s", meaning);
        ck_assert_msg(symptom_of_text(meaning) == known[i].symptom, "%s", meaning);
        ck_assert_msg(repair_of_text(meaning) == known[i].repair, "%s", meaning);
    }
    for (int number = 1; number <= XID_LARGEST; number++) {
        enum xid_class class = xid_classify(number, &meaning);
        if (class != XID_UNKNOWN) {
            ck_assert_msg((repair_of_text(meaning) == REPAIR_NONE) == (class < XID_CONTAINED), "%s", meaning);
            ck_assert_msg((repair_of_text(meaning) == REPAIR_HARDWARE) == (class == XID_LOST), "%s", meaning);
        }
    }
    ck_assert_int_eq(repair_of_text("HBM uncorrectable error (Xid 48)"), REPAIR_REBOOT);
    ck_assert_int_eq(repair_of_text("Xid 999"), REPAIR_HARDWARE); /* nothing is known of it but that it is a GPU's */
    ck_assert_int_eq(component_of_text("Xid 999"), COMPONENT_GPU);
}
END_TEST

/* Repairs of one length, an hour too, whose logarithm is 0, are drawn with it: not with those of another fleet. */
START_TEST(repairs_of_one_length)
{
    static const int hours[] = {1, 5};
    for (size_t i = 0; i < sizeof hours / sizeof *hours; i++) {
        struct fault_trace trace = {0}, drawn;
        struct fault_fit *fit = memory_new(1, sizeof *fit);
        struct fault_model *again = memory_new(1, sizeof *again);
        struct diags diags = {0};
        for (int k = 0; k < 20; k++)
            fault_trace_add(&trace,
                            (struct fault){.time = DAYS(1 + k),
                                           .down = hours[i] * 3600 * NANOS_PER_SECOND,
                                           .node = k * 7 % 10,
                                           .speed = FULL_SPEED,
                                           .kind = FAULT_NODE},
                            "Xid 74: NVLink error");
        ck_assert_int_eq(fault_fit(&trace, "x", 10, DAYS(30), NULL, fit, &diags), STATUS_OK);
        ck_assert_uint_eq(fit->repairs[REPAIR_REBOOT].n, 20);
        char *text = fault_model_to_json(&fit->model);
        ck_assert_int_eq(fault_model_parse("x", text, strlen(text), again, &diags), STATUS_OK);
        faults_generate(again, 10, DAYS(300), 1, &drawn);
        ck_assert_uint_gt(drawn.n_items, 50);
        for (size_t k = 0; k < drawn.n_items; k++)
            ck_assert_int_eq(drawn.items[k].down, hours[i] * 3600 * NANOS_PER_SECOND);
        free(text);
        free(fit);
        free(again);
        fault_trace_free(&trace);
        fault_trace_free(&drawn);
        diags_free(&diags);
    }
}
END_TEST

START_TEST(kinds_that_are_left_out)
{
    static const char text[] = "name: x\nsource: test\nrate: 1e-3\nnodes: 4\ndays: 1\n"
                               "causes: [{name: Power supply, count: 1}, {name: NIC, count: 1, repair: network},\n"
                               "         {name: Software bug, count: 1}, {name: gremlin, count: 1}]\n";
    struct fault_model *model = memory_new(1, sizeof *model);
    struct diags diags = {0};
    ck_assert_int_eq(fault_model_parse("x", text, strlen(text), model, &diags), STATUS_OK);
    const struct fault_cause *causes = model->causes.items;
    ck_assert_int_eq(causes[0].component, COMPONENT_POWER);
    ck_assert_int_eq(causes[0].repair, REPAIR_HARDWARE);
    ck_assert_int_eq(causes[1].component, COMPONENT_NIC);
    ck_assert_int_eq(causes[1].repair, REPAIR_NETWORK);
    ck_assert_int_eq(causes[2].repair, REPAIR_NONE);
    ck_assert_int_eq(causes[3].component, COMPONENT_UNKNOWN);
    ck_assert_int_eq(causes[3].repair, REPAIR_HARDWARE);
    diags_free(&diags);
    free(model);
}
END_TEST

/* A name speaks of hardware, the model repairs it as a facility. */
START_TEST(a_model_says_otherwise)
{
    struct fault_model *model = memory_new(1, sizeof *model);
    struct fault_fit *fit = memory_new(1, sizeof *fit);
    struct fault_trace trace;
    struct diags diags = {0};
    load("llama3", model);
    model->causes = (struct fault_causes){{{"Faulty GPU", COMPONENT_LINK, REPAIR_FACILITY, 1}}, 1};
    faults_generate(model, 256, DAYS(100), 1, &trace);
    ck_assert_int_eq(fault_fit(&trace, "drawn", 256, DAYS(100), &model->causes, fit, &diags), STATUS_OK);
    ck_assert_uint_gt(fit->repairs[REPAIR_FACILITY].n, 50);
    ck_assert_uint_eq(fit->repairs[REPAIR_HARDWARE].n, 0);
    ck_assert_int_eq(fit->model.causes.items[0].repair, REPAIR_FACILITY);
    ck_assert_int_eq(fit->model.causes.items[0].component, COMPONENT_LINK);
    ck_assert_int_eq(fault_fit(&trace, "drawn", 256, DAYS(100), NULL, fit, &diags), STATUS_OK);
    ck_assert_uint_eq(fit->repairs[REPAIR_FACILITY].n, 0);
    ck_assert_uint_gt(fit->repairs[REPAIR_HARDWARE].n, 50);
    fault_trace_free(&trace);
    diags_free(&diags);
    free(model);
    free(fit);
}
END_TEST

static bool holds(struct interval_estimate e, double truth)
{
    return e.low <= truth && truth <= e.high;
}

/* Of 40 intervals of 95 % fewer than 34 hold with probability 0.0034. */
enum { SEEDS = 40, HOLD_LEAST = 34, NODES = 400, HORIZON_DAYS = 300 };

START_TEST(intervals_hold_what_made_the_trace)
{
    enum { RATE, SHAPE, HARDWARE_MU, HARDWARE_SIGMA, NETWORK_MU, NETWORK_SIGMA, FACILITY_MU, FACILITY_SIGMA, N };
    static const char *const names[N] = {"rate",       "shape",         "hardware mu", "hardware sigma",
                                         "network mu", "network sigma", "facility mu", "facility sigma"};
    struct fault_model *model = memory_new(1, sizeof *model);
    struct fault_fit *fit = memory_new(1, sizeof *fit);
    int held[N] = {0};
    load("llama3", model);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct fault_trace trace;
        struct diags diags = {0};
        faults_generate(model, NODES, DAYS(HORIZON_DAYS), seed, &trace);
        ck_assert_int_eq(fault_fit(&trace, "drawn", NODES, DAYS(HORIZON_DAYS), NULL, fit, &diags), STATUS_OK);
        held[RATE] += holds(fit->rate, model->rate);
        held[SHAPE] += holds(fit->shape, model->shape);
        for (int kind = REPAIR_HARDWARE, at = HARDWARE_MU; kind <= REPAIR_FACILITY; kind++) {
            if (kind == REPAIR_SOFTWARE) /* llama3's takes no node away */
                continue;
            held[at++] += holds(fit->repairs[kind].mu, model->repairs[kind].mu);
            held[at++] += holds(fit->repairs[kind].sigma, model->repairs[kind].sigma);
        }
        fault_trace_free(&trace);
        diags_free(&diags);
    }
    for (int i = 0; i < N; i++)
        ck_assert_msg(held[i] >= HOLD_LEAST, "%s: %d of %d intervals hold", names[i], held[i], SEEDS);
    free(model);
    free(fit);
}
END_TEST

/* --- lemons --- */

/* In how many of `n` traces are lemons found? Fleets differ in size, in failures per node and in shape. */
static int count_lemons(int n, double share, double factor)
{
    static const int fleets[] = {48, 128, 256};
    static const double failures[] = {0.5, 1, 3}, shapes[] = {0.7, 1, 0.8};
    struct fault_model *model = memory_new(1, sizeof *model);
    struct fault_fit *fit = memory_new(1, sizeof *fit);
    int found = 0;
    load("llama3", model);
    model->lemon_share = share;
    model->lemon_factor = factor;
    for (int i = 0; i < n; i++) {
        struct diags diags = {0};
        struct fault_trace trace;
        int nodes = fleets[i % 3];
        model->rate = failures[share > 0 ? 1 + i / 3 % 2 : i / 3 % 3] / 54;
        model->shape = shapes[i / 9 % 3];
        faults_generate(model, nodes, DAYS(54), (uint64_t)i + 17, &trace);
        ck_assert_int_eq(fault_fit(&trace, "drawn", nodes, DAYS(54), NULL, fit, &diags), STATUS_OK);
        ck_assert_double_ge(fit->evidence.gain, 0);
        ck_assert_int_eq(fit->lemons, fit->evidence.p <= 0.01001 && fit->evidence.n_lemons > 0);
        found += fit->lemons;
        fault_trace_free(&trace);
        diags_free(&diags);
    }
    free(fit);
    free(model);
    return found;
}

START_TEST(lemons_need_evidence)
{
    int healthy = suite_is_long() ? 1000 : 200 / THINNED, sour = suite_draws(90, 2);
    int wrong = count_lemons(healthy, 0, 1), right = count_lemons(sour, 0.05, 15);
    ck_assert_msg(wrong * 20 <= healthy, "%d of %d fleets of nodes alike", wrong, healthy);
    ck_assert_msg(right * 10 >= sour * 7, "%d of %d fleets with lemons", right, sour);
}
END_TEST

/* 60 failures of 64 nodes, one a day, all of which a table puts on node 5: no lemon of the factor 1e5, and a warning. */
START_TEST(one_node_named_by_mistake)
{
    struct fault_fit *fit = memory_new(1, sizeof *fit);
    struct fault_trace trace = {0};
    struct diags diags = {0};
    for (int i = 0; i < 60; i++)
        fault_trace_add(&trace,
                        (struct fault){.time = DAYS(1) * i + (i * 7919) % 80000 * NANOS_PER_SECOND,
                                       .node = i < 57 ? 5 : i % 64,
                                       .down = DAYS(1) / 24,
                                       .speed = FULL_SPEED},
                        "x");
    fault_trace_name_node(&trace, 5, "gpu005");
    ck_assert_int_eq(fault_fit(&trace, "sacct", 64, DAYS(60), NULL, fit, &diags), STATUS_OK);
    ck_assert(!fit->lemons && fit->evidence.all_on_one);
    ck_assert_int_eq(fit->evidence.worst_node, 5);
    ck_assert_str_eq(fit->evidence.worst_host, "gpu005");
    ck_assert_double_eq(fit->model.lemon_factor, 1);
    ck_assert_double_gt(fit->shape.value, 0.4);
    ck_assert_double_lt(fit->shape.value, 3);
    ck_assert_uint_eq(diags.n_items, 1);
    ck_assert_msg(strncmp(diags.items[0].text, "gpu005 (node 5) has 57 of 60 failures", 37) == 0, "%s", diags.items[0].text);
    fault_trace_free(&trace);
    diags_free(&diags);
    free(fit);
}
END_TEST

START_TEST(quantiles_are_inverse)
{
    static const double tails[] = {0.025, 0.5, 0.975};
    for (double degrees = 1; degrees < 1e6; degrees = floor(degrees * 1.1) + 1)
        for (int i = 0; i < 3; i++)
            ck_assert_double_eq_tol(gsl_cdf_chisq_P(chi_squared_quantile(tails[i], degrees), degrees), tails[i], 1e-9);
    ck_assert_double_eq_tol(chi_squared_quantile(0.95, 1), 3.841459, 1e-6); /* as any table has them */
    ck_assert_double_eq_tol(chi_squared_quantile(0.95, 10), 18.307038, 1e-6);
    ck_assert_double_eq_tol(chi_squared_quantile(0.025, 100), 74.221927, 1e-6);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fit");
    TCase *tests = tcase_create("fit");
    tcase_add_test(tests, shipped_causes_are_what_the_table_says);
    tcase_add_test(tests, xids_are_repaired_as_their_class_says);
    tcase_add_test(tests, repairs_of_one_length);
    tcase_add_test(tests, kinds_that_are_left_out);
    tcase_add_test(tests, a_model_says_otherwise);
    tcase_add_test(tests, intervals_hold_what_made_the_trace);
    tcase_add_test(tests, lemons_need_evidence);
    tcase_add_test(tests, one_node_named_by_mistake);
    tcase_add_test(tests, quantiles_are_inverse);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
