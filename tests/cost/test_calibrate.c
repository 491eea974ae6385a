/*
 * Calibration: what is known is found again within its interval, and what rows cannot tell is held with the reason.
 *
 * The models are small formulas whose parameters are known; noise is a fixed sequence of random_stream, so every run is the same.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "model/base/random.h"
#include "model/cost/fit/calibrate.h"
#include "model/cost/fit/calibrate_entry.h"
#include "model/spec/catalog.h"
#include "model/spec/schemas.h"
#include "tests/suite.h"

enum { ROWS = 200 };

/* time = fixed + work / rate, with work over three decades: both are seen. */
struct line {
    double work[ROWS];
    double measured[ROWS];
    uint64_t cases[ROWS];
};

static void line_predict(void *context, const double *values, const size_t *rows, size_t n, double *seconds)
{
    const struct line *line = context;
    for (size_t i = 0; i < n; i++)
        seconds[i] = values[0] + line->work[rows[i]] / values[1];
}

static double noise(uint64_t seed, size_t i)
{
    struct random_stream stream = random_stream_named(seed, 1, i);
    return gsl_cdf_ugaussian_Pinv(random_uniform(&stream));
}

static void line_make(struct line *line, double fixed, double rate, double spread, uint64_t seed)
{
    for (size_t i = 0; i < ROWS; i++) {
        line->work[i] = 1e6 * pow(10, 3.0 * (double)i / (ROWS - 1));
        line->measured[i] = (fixed + line->work[i] / rate) * exp(spread * noise(seed, i));
        line->cases[i] = i;
    }
}

static const struct calibrate_parameter line_parameters[] = {
    {.name = "fixed", .start = 1e-6, .low = 0, .high = 1e-3},
    {.name = "rate", .start = 1e12, .low = 1e8, .high = 1e14},
    {.name = "unused", .start = 0.5, .low = 0, .high = 1},
};

static struct calibrate_problem line_problem(struct line *line, size_t n_parameters, size_t n_rows)
{
    return (struct calibrate_problem){.parameters = line_parameters,
                                      .n_parameters = n_parameters,
                                      .measured = line->measured,
                                      .cases = line->cases,
                                      .n_rows = n_rows,
                                      .predict = line_predict,
                                      .context = line};
}

START_TEST(exact_times_give_the_parameters_back)
{
    struct line line;
    struct calibrate_estimate e[2];
    line_make(&line, 5e-6, 2e12, 0, 0);
    struct calibrate_problem problem = line_problem(&line, 2, ROWS);
    ck_assert(calibrate_fit(&problem, e));
    ck_assert_double_eq_tol(e[0].value / 5e-6, 1, 1e-5);
    ck_assert_double_eq_tol(e[1].value / 2e12, 1, 1e-5);
    ck_assert_int_eq(e[0].outcome, CALIBRATE_FITTED);
    ck_assert_uint_eq(e[0].n_rows, ROWS);
}
END_TEST

/* 95 % intervals hold the truth in about 95 % of independent tables: of 100, fewer than 88 has a chance below 0.3 %, and an
 * interval of twice the width would miss none. */
START_TEST(intervals_hold_the_truth_as_often_as_they_say)
{
    int inside[2] = {0, 0};
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct line line;
        struct calibrate_estimate e[2];
        line_make(&line, 5e-6, 2e12, 0.05, seed);
        struct calibrate_problem problem = line_problem(&line, 2, ROWS);
        ck_assert(calibrate_fit(&problem, e));
        inside[0] += e[0].low <= 5e-6 && 5e-6 <= e[0].high;
        inside[1] += e[1].low <= 2e12 && 2e12 <= e[1].high;
    }
    for (int k = 0; k < 2; k++) {
        ck_assert_int_ge(inside[k], 88);
        ck_assert_int_le(inside[k], 99);
    }
}
END_TEST

/* Times that go up in stairs of three parts in ten thousand, as predicted steps may where a choice flips. */
static void stairs_predict(void *context, const double *values, const size_t *rows, size_t n, double *seconds)
{
    line_predict(context, values, rows, n, seconds);
    for (size_t i = 0; i < n; i++)
        seconds[i] = exp(3e-4 * floor(log(seconds[i]) / 3e-4 + 0.5));
}

/* Stairs far below the noise do not narrow intervals, though a fit may well end beside a stair. */
START_TEST(jumps_do_not_narrow_intervals)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct line line;
        struct calibrate_estimate smooth[2], stairs[2];
        line_make(&line, 5e-6, 2e12, 0.05, seed);
        struct calibrate_problem problem = line_problem(&line, 2, ROWS);
        ck_assert(calibrate_fit(&problem, smooth));
        problem.predict = stairs_predict;
        ck_assert(calibrate_fit(&problem, stairs));
        for (int k = 0; k < 2; k++)
            ck_assert_double_eq_tol((stairs[k].high - stairs[k].low) / (smooth[k].high - smooth[k].low), 1, 0.2);
    }
}
END_TEST

/* Times that go up in stairs of a part in a hundred, and near the values that they were last asked for those that hold how far
 * each row was from its stair. */
struct stairs {
    struct line line;
    double off[ROWS]; /* of each row, as a factor */
    size_t whole, near;
};

static void high_stairs_predict(void *context, const double *values, const size_t *rows, size_t n, double *seconds)
{
    struct stairs *stairs = context;
    stairs->whole++;
    line_predict(&stairs->line, values, rows, n, seconds);
    for (size_t i = 0; i < n; i++) {
        double on = exp(1e-2 * floor(log(seconds[i]) / 1e-2 + 0.5));
        stairs->off[rows[i]] = on / seconds[i];
        seconds[i] = on;
    }
}

static void high_stairs_near(void *context, const double *values, const size_t *rows, size_t n, double *seconds)
{
    struct stairs *stairs = context;
    stairs->near++;
    line_predict(&stairs->line, values, rows, n, seconds);
    for (size_t i = 0; i < n; i++)
        seconds[i] *= stairs->off[rows[i]];
}

/* By differences over a small step stairs are flat, or cliffs, and a fit stays where it begins. One that holds them finds the
 * way, with fewer whole predictions. */
START_TEST(what_jumps_is_held_while_a_fit_goes_down)
{
    struct stairs *stairs = calloc(1, sizeof *stairs);
    struct calibrate_estimate lost[2], found[2];
    line_make(&stairs->line, 5e-6, 2e12, 0.02, 11);
    struct calibrate_problem problem = line_problem(&stairs->line, 2, ROWS);
    problem.context = stairs;
    problem.predict = high_stairs_predict;
    calibrate_fit(&problem, lost);
    problem.predict_near = high_stairs_near;
    size_t whole = stairs->whole;
    stairs->whole = 0;
    ck_assert(calibrate_fit(&problem, found));
    ck_assert_uint_lt(stairs->whole, whole);
    ck_assert_double_lt(lost[1].value, 1.1e12);
    ck_assert_double_eq_tol(found[0].value / 5e-6, 1, 0.01);
    ck_assert_double_eq_tol(found[1].value / 2e12, 1, 0.01);
    free(stairs);
}
END_TEST

/* An interval holds the start just where the value is within Student's quantile of standard errors from it, which is about as
 * often as the start is the truth. */
START_TEST(standard_errors_are_those_of_the_intervals)
{
    double quantile = gsl_cdf_tdist_Pinv(0.975, ROWS - 2);
    int near = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct line line;
        struct calibrate_estimate e[2];
        struct calibrate_parameter parameters[] = {line_parameters[0], line_parameters[1]};
        parameters[0].start = seed % 2 ? 5e-6 : 5.5e-6;
        parameters[1].start = 2e12;
        line_make(&line, 5e-6, 2e12, 0.05, seed);
        struct calibrate_problem problem = line_problem(&line, 2, ROWS);
        problem.parameters = parameters;
        ck_assert(calibrate_fit(&problem, e));
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(e[k].low <= parameters[k].start && parameters[k].start <= e[k].high, e[k].moved <= quantile);
        near += seed % 2 && e[0].moved <= quantile;
        if (seed % 2 == 0)
            ck_assert_double_gt(e[0].moved, quantile);
    }
    ck_assert_int_ge(near, 17);
}
END_TEST

/* One row in ten is ten times too slow: least squares would move the rate by half, the robust fit by a few percent. */
START_TEST(outliers_do_not_pull)
{
    struct line line;
    struct calibrate_estimate e[2];
    line_make(&line, 5e-6, 2e12, 0.02, 3);
    for (size_t i = 5; i < ROWS; i += 10)
        line.measured[i] *= 10;
    struct calibrate_problem problem = line_problem(&line, 2, ROWS);
    ck_assert(calibrate_fit(&problem, e));
    ck_assert_double_eq_tol(e[0].value / 5e-6, 1, 0.03);
    ck_assert_double_eq_tol(e[1].value / 2e12, 1, 0.03);
}
END_TEST

/* Every other row is a fifth too slow: with equal weights the rate ends between the halves, with a hundredth of the weight for
 * the slow ones at the truth. */
START_TEST(weights_say_which_rows_count)
{
    struct line line;
    struct calibrate_estimate equal[2], weighted[2];
    double weights[ROWS];
    line_make(&line, 5e-6, 2e12, 0, 3);
    for (size_t i = 0; i < ROWS; i++) {
        weights[i] = i % 2 ? 0.01 : 1;
        line.measured[i] *= i % 2 ? 1.2 : 1;
    }
    struct calibrate_problem problem = line_problem(&line, 2, ROWS);
    ck_assert(calibrate_fit(&problem, equal));
    problem.weights = weights;
    ck_assert(calibrate_fit(&problem, weighted));
    ck_assert_double_lt(equal[1].value, 0.96 * 2e12);
    ck_assert_double_eq_tol(weighted[1].value / 2e12, 1, 1e-3);
    ck_assert_double_eq_tol(weighted[0].value / 5e-6, 1, 1e-3);
}
END_TEST

START_TEST(a_parameter_without_influence_is_held)
{
    struct line line;
    struct calibrate_estimate e[3];
    line_make(&line, 5e-6, 2e12, 0.02, 4);
    struct calibrate_problem problem = line_problem(&line, 3, ROWS);
    ck_assert(calibrate_fit(&problem, e));
    ck_assert_int_eq(e[2].outcome, CALIBRATE_NO_INFLUENCE);
    ck_assert_double_eq(e[2].value, 0.5);
    ck_assert_int_eq(e[1].outcome, CALIBRATE_FITTED);
}
END_TEST

/* Two rows, or many of two cases, cannot carry two parameters and an error. */
START_TEST(too_few_cases_are_refused)
{
    struct line line;
    struct calibrate_estimate e[2];
    line_make(&line, 5e-6, 2e12, 0, 0);
    struct calibrate_problem problem = line_problem(&line, 2, 2);
    ck_assert(!calibrate_fit(&problem, e));
    ck_assert_int_eq(e[0].outcome, CALIBRATE_TOO_FEW);
    ck_assert_double_eq(e[0].value, 1e-6);
    for (size_t i = 0; i < ROWS; i++)
        line.cases[i] = i % 2;
    problem = line_problem(&line, 2, ROWS);
    ck_assert(!calibrate_fit(&problem, e));
    ck_assert_uint_eq(e[1].n_cases, 2);
    ck_assert_uint_eq(e[1].n_rows, ROWS);
}
END_TEST

START_TEST(no_rows_at_all_are_refused)
{
    struct line line = {.measured = {1}};
    struct calibrate_estimate e[2];
    struct calibrate_problem problem = line_problem(&line, 2, 0);
    ck_assert(!calibrate_fit(&problem, e));
    ck_assert_int_eq(e[0].outcome, CALIBRATE_NO_INFLUENCE);
}
END_TEST

/* time = work / (rate * fraction): only the product can be told. */
static void product_predict(void *context, const double *values, const size_t *rows, size_t n, double *seconds)
{
    const struct line *line = context;
    for (size_t i = 0; i < n; i++)
        seconds[i] = 1e-6 + line->work[rows[i]] / (1e12 * values[0] * values[1]);
}

START_TEST(of_collinear_parameters_the_later_is_held)
{
    struct line line;
    struct calibrate_estimate e[2];
    line_make(&line, 1e-6, 1e12 * 0.6, 0.01, 5);
    static const struct calibrate_parameter parameters[] = {{.name = "first", .start = 0.9, .low = 0.01, .high = 1},
                                                            {.name = "second", .start = 0.8, .low = 0.01, .high = 1}};
    struct calibrate_problem problem = line_problem(&line, 2, ROWS);
    problem.parameters = parameters;
    problem.predict = product_predict;
    ck_assert(calibrate_fit(&problem, e));
    ck_assert_int_eq(e[0].outcome, CALIBRATE_FITTED);
    ck_assert_int_eq(e[1].outcome, CALIBRATE_COLLINEAR);
    ck_assert_uint_eq(e[1].with, 0);
    ck_assert_double_eq(e[1].value, 0.8);
    ck_assert_double_eq_tol(e[0].value, 0.75, 0.01);
}
END_TEST

/* A fixed time of a thousandth of the shortest row under 5 % of noise: any small value does. */
START_TEST(what_noise_hides_is_held_or_put_on_its_bound)
{
    struct line line;
    struct calibrate_estimate e[2];
    line_make(&line, 1e-9, 1e12, 0.05, 6);
    struct calibrate_problem problem = line_problem(&line, 2, ROWS);
    ck_assert(calibrate_fit(&problem, e));
    ck_assert_int_ne(e[0].outcome, CALIBRATE_FITTED);
    ck_assert_double_lt(e[0].value, 2e-6);
    ck_assert_int_eq(e[1].outcome, CALIBRATE_FITTED);
}
END_TEST

/* Work that hardly differs: what the fixed time takes, the rate can give. One of them stays where it was, which does as well once
 * the other is fitted to it, whatever the noise. */
START_TEST(what_others_can_make_up_for_is_held)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct line line;
        struct calibrate_estimate e[2];
        line_make(&line, 0, 1e12, 0, 0);
        for (size_t i = 0; i < 20; i++) {
            line.work[i] = 1e8 * (1 + 1e-3 * (double)i);
            line.measured[i] = (5e-5 + line.work[i] / 1e12) * exp(0.02 * noise(seed, i));
        }
        struct calibrate_parameter parameters[2] = {line_parameters[0], line_parameters[1]};
        parameters[0].start = 4e-5;
        struct calibrate_problem problem = line_problem(&line, 2, 20);
        problem.parameters = parameters;
        ck_assert(calibrate_fit(&problem, e));
        int held = e[0].outcome == CALIBRATE_UNDETERMINED ? 0 : 1;
        ck_assert_int_eq(e[held].outcome, CALIBRATE_UNDETERMINED);
        ck_assert_double_eq(e[held].value, parameters[held].start);
        ck_assert_int_eq(e[1 - held].outcome, CALIBRATE_FITTED);
        ck_assert_double_eq_tol((e[0].value + 1e8 / e[1].value) / 1.5e-4, 1, 0.02);
    }
}
END_TEST

/* Of a line: every set of values that was asked for. */
struct asked {
    struct line line;
    double values[4096][2];
    size_t n;
};

static void asked_predict(void *context, const double *values, const size_t *rows, size_t n, double *seconds)
{
    struct asked *asked = context;
    ck_assert_uint_lt(asked->n, sizeof asked->values / sizeof *asked->values);
    memcpy(asked->values[asked->n++], values, sizeof *asked->values);
    line_predict(&asked->line, values, rows, n, seconds);
}

/* A prediction may be a simulation. Which rows a parameter touches is looked for first, in five predictions; of those that follow
 * none has the values of one of the 100 before it. */
START_TEST(values_are_not_predicted_twice)
{
    struct asked *asked = calloc(1, sizeof *asked);
    struct calibrate_estimate e[2];
    line_make(&asked->line, 5e-6, 2e12, 0.05, 9);
    struct calibrate_problem problem = line_problem(&asked->line, 2, ROWS);
    problem.predict = asked_predict;
    problem.context = asked;
    ck_assert(calibrate_fit(&problem, e));
    ck_assert_uint_gt(asked->n, 5 + 10);
    for (size_t i = 5; i < asked->n; i++)
        for (size_t j = i > 105 ? i - 100 : 5; j < i; j++)
            ck_assert(memcmp(asked->values[i], asked->values[j], sizeof *asked->values) != 0);
    free(asked);
}
END_TEST

/* The best rate lies above its bound. */
START_TEST(a_bound_holds)
{
    struct line line;
    struct calibrate_estimate e[2];
    line_make(&line, 5e-6, 4e12, 0.01, 7);
    struct calibrate_parameter parameters[2] = {line_parameters[0], line_parameters[1]};
    parameters[1].high = 3e12;
    struct calibrate_problem problem = line_problem(&line, 2, ROWS);
    problem.parameters = parameters;
    ck_assert(calibrate_fit(&problem, e));
    ck_assert_int_eq(e[1].outcome, CALIBRATE_AT_BOUND);
    ck_assert_double_eq(e[1].value, 3e12);
}
END_TEST

START_TEST(two_fits_give_the_same_bits)
{
    struct line line;
    struct calibrate_estimate a[2], b[2];
    line_make(&line, 5e-6, 2e12, 0.05, 8);
    struct calibrate_problem problem = line_problem(&line, 2, ROWS);
    ck_assert(calibrate_fit(&problem, a));
    ck_assert(calibrate_fit(&problem, b));
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(memcmp(&a[k].value, &b[k].value, sizeof(double)), 0);
        ck_assert_int_eq(memcmp(&a[k].low, &b[k].low, sizeof(double)), 0);
    }
}
END_TEST

/* --- entries */

START_TEST(parameters_are_named_as_in_yaml)
{
    struct diags diags = {0};
    struct entry_parameter p;
    struct gpu gpu = {.gemm[PRECISION_FP8].peak_fraction = 0.7, .nccl_rate = 3e11};
    ck_assert(entry_parameter_find(&gpu_schema, "gemm.fp8.peak_fraction", &p, &diags));
    ck_assert_double_eq(entry_parameter_get(&p, &gpu), 0.7);
    ck_assert(entry_parameter_find(&gpu_schema, "nccl.rate", &p, &diags));
    ck_assert_double_eq(entry_parameter_get(&p, &gpu), 3e11);
    struct cluster cluster = {.gpu.memory.bandwidth_fraction = 0.8, .net_fraction = 0.9};
    ck_assert(entry_parameter_find(&cluster_schema, "gpu.memory.bandwidth_fraction", &p, &diags));
    ck_assert_double_eq(entry_parameter_get(&p, &cluster), 0.8);
    ck_assert(entry_parameter_find(&cluster_schema, "net_fraction", &p, &diags));
    entry_parameter_set(&p, &cluster, 0.7);
    ck_assert_double_eq(cluster.net_fraction, 0.7);
    ck_assert_uint_eq(diags.n_errors, 0);
}
END_TEST

START_TEST(an_unknown_parameter_gets_the_nearest)
{
    struct diags diags = {0};
    struct entry_parameter p;
    ck_assert(!entry_parameter_find(&gpu_schema, "gemm.bf16.peek_fraction", &p, &diags));
    ck_assert_uint_eq(diags.n_errors, 1);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "did you mean 'gemm.bf16.peak_fraction'"));
    ck_assert(!entry_parameter_find(&gpu_schema, "sms", &p, &diags)); /* a count is no parameter */
    diags_free(&diags);
}
END_TEST

START_TEST(values_keep_four_digits_and_their_bounds)
{
    struct diags diags = {0};
    struct entry_parameter p;
    char text[48];
    ck_assert(entry_parameter_find(&gpu_schema, "gemm.bf16.tile_overhead", &p, &diags));
    ck_assert_double_eq_tol(entry_parameter_round(&p, 1.23456e-6), 1.235e-6, 1e-15);
    ck_assert_str_eq(entry_parameter_text(&p, 1.5e-6, text, sizeof text), "1.5us");
    ck_assert(entry_parameter_find(&gpu_schema, "gemm.bf16.droop", &p, &diags));
    ck_assert_double_eq(entry_parameter_round(&p, 1.00000001), 1);
    ck_assert_str_eq(entry_parameter_text(&p, 0.25, text, sizeof text), "0.25");
}
END_TEST

START_TEST(yaml_is_nested_and_quoted)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    json_t *tree = json_object();
    entry_tree_set(tree, "base", "h100-sxm");
    entry_tree_set(tree, "gemm.source", "say \"half\": 4 %");
    entry_tree_set(tree, "gemm.bf16.fixed", "1us");
    entry_tree_set(tree, "gemm.bf16.droop", "0.1");
    entry_write_yaml(tree, NULL, out);
    fclose(out);
    ck_assert_str_eq(text, "base: h100-sxm\ngemm:\n  source: \"say \\\"half\\\": 4 %\"\n  bf16: {fixed: 1us, droop: 0.1}\n");
    json_decref(tree);
    free(text);
}
END_TEST

START_TEST(notes_stand_behind_their_lines)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    json_t *tree = json_object(), *notes = json_object();
    entry_tree_set(tree, "sustained_clock", "0.9");
    entry_tree_set(tree, "nccl.rate", "200GB/s");
    entry_tree_set(tree, "nccl.base", "9us");
    entry_tree_set(tree, "gemm.bf16.fixed", "1us");
    entry_tree_set(tree, "gemm.bf16.droop", "0.1");
    entry_tree_set(notes, "sustained_clock", "0.8 to 0.95");
    entry_tree_set(notes, "nccl.rate", "190GB/s to 210GB/s");
    entry_tree_set(notes, "gemm.bf16.fixed", "0s to 2us");
    entry_tree_set(notes, "gemm.bf16.droop", "0 to 0.2");
    entry_write_yaml(tree, notes, out);
    fclose(out);
    ck_assert_str_eq(text, "sustained_clock: 0.9 # 0.8 to 0.95\n"
                           "nccl:\n  rate: 200GB/s # 190GB/s to 210GB/s\n  base: 9us\n"
                           "gemm:\n  bf16: {fixed: 1us, droop: 0.1} # fixed 0s to 2us, droop 0 to 0.2\n");
    json_decref(tree);
    json_decref(notes);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calibrate");
    TCase *fits = tcase_create("fits"), *entries = tcase_create("entries");
    tcase_add_test(fits, exact_times_give_the_parameters_back);
    tcase_add_test(fits, intervals_hold_the_truth_as_often_as_they_say);
    tcase_add_test(fits, jumps_do_not_narrow_intervals);
    tcase_add_test(fits, what_jumps_is_held_while_a_fit_goes_down);
    tcase_add_test(fits, standard_errors_are_those_of_the_intervals);
    tcase_add_test(fits, outliers_do_not_pull);
    tcase_add_test(fits, weights_say_which_rows_count);
    tcase_add_test(fits, a_parameter_without_influence_is_held);
    tcase_add_test(fits, too_few_cases_are_refused);
    tcase_add_test(fits, no_rows_at_all_are_refused);
    tcase_add_test(fits, of_collinear_parameters_the_later_is_held);
    tcase_add_test(fits, what_noise_hides_is_held_or_put_on_its_bound);
    tcase_add_test(fits, what_others_can_make_up_for_is_held);
    tcase_add_test(fits, values_are_not_predicted_twice);
    tcase_add_test(fits, a_bound_holds);
    tcase_add_test(fits, two_fits_give_the_same_bits);
    tcase_add_test(entries, parameters_are_named_as_in_yaml);
    tcase_add_test(entries, an_unknown_parameter_gets_the_nearest);
    tcase_add_test(entries, values_keep_four_digits_and_their_bounds);
    tcase_add_test(entries, yaml_is_nested_and_quoted);
    tcase_add_test(entries, notes_stand_behind_their_lines);
    suite_add_tcase(suite, fits);
    suite_add_tcase(suite, entries);
    return suite_run(suite);
}
