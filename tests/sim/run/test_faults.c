/*
 * Random streams, generated traces and the statistics that describe a trace.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/random.h"
#include "sim/faults/fault_statistics.h"
#include "sim/faults/faults.h"
#include "tests/suite.h"

#define DAYS(n) ((nanos)(n)*86400 * NANOS_PER_SECOND)

/* --- streams --- */

/* Published first outputs of SplitMix64 for the seed 1234567. */
START_TEST(test_splitmix_vectors)
{
    static const uint64_t expected[] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                        UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
                                        UINT64_C(16408922859458223821)};
    struct random_stream stream = {.key = 1234567};
    for (size_t i = 0; i < 5; i++)
        ck_assert_uint_eq(random_bits(&stream), expected[i]);
    stream.drawn = 3; /* jumping is setting the counter */
    ck_assert_uint_eq(random_bits(&stream), expected[3]);
}
END_TEST

START_TEST(test_streams_have_names)
{
    struct random_stream a = random_stream_named(1, 2, 3), same = random_stream_named(1, 2, 3);
    ck_assert_uint_eq(random_bits(&a), random_bits(&same));
    struct random_stream others[] = {random_stream_named(2, 2, 3), random_stream_named(1, 3, 3), random_stream_named(1, 2, 4),
                                     random_stream_named(2, 1, 3)};
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_ne(others[i].key, a.key);
}
END_TEST

START_TEST(test_uniform_and_below)
{
    enum { N = 100000, SIDES = 7 };
    struct random_stream stream = random_stream_named(5, 0, 0);
    double sum = 0, squares = 0;
    size_t faces[SIDES] = {0};
    for (int i = 0; i < N; i++) {
        double u = random_uniform(&stream);
        ck_assert(u > 0 && u < 1);
        sum += u;
        squares += u * u;
        faces[random_below(&stream, SIDES)]++;
    }
    /* four standard errors: sqrt(1/12 / N) and sqrt(N p q) */
    ck_assert_double_eq_tol(sum / N, 0.5, 4 * sqrt(1 / 12.0 / N));
    ck_assert_double_eq_tol(squares / N, 1 / 3.0, 4 * sqrt(4 / 45.0 / N));
    for (int i = 0; i < SIDES; i++)
        ck_assert_double_eq_tol((double)faces[i], N / 7.0, 4 * sqrt(N * 6 / 49.0));
    ck_assert_uint_eq(random_below(&stream, 1), 0);
}
END_TEST

/* --- generated traces --- */

static const struct fault_model *preset(const char *name)
{
    static struct fault_model model;
    struct diags diags = {0};
    ck_assert_int_eq(fault_model_load(name, &model, &diags), STATUS_OK);
    diags_free(&diags);
    return &model;
}

static char *as_text(const struct fault_trace *trace)
{
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    fault_trace_write(trace, out);
    fclose(out);
    return text;
}

static void check_shipped(const char *name, int32_t nodes, int days, size_t n_faults)
{
    struct fault_trace trace;
    char *path, *shipped;
    size_t n;
    bool is_shipped;
    struct diags diags = {0};
    faults_generate(preset("llama3"), nodes, DAYS(days), 73, &trace);
    ck_assert_uint_eq(trace.n_items, n_faults);
    ck_assert_int_eq(fault_trace_find(name, &path, &is_shipped, &diags), STATUS_OK);
    ck_assert_int_eq(file_read(path, 1 << 20, &shipped, &n, &diags), STATUS_OK);
    char *generated = as_text(&trace);
    ck_assert_str_eq(generated, shipped);
    free(generated);
    free(shipped);
    free(path);
    fault_trace_free(&trace);
    diags_free(&diags);
}

/* The seed was chosen so that the first has Llama 3's number of interruptions, 419, and the second its rate: 174.6. */
START_TEST(test_shipped_traces_are_generated)
{
    check_shipped("llama3-54d", 2048, 54, 419);
    check_shipped("megascale-30d", 1536, 30, 175);
}
END_TEST

START_TEST(test_rate_causes_and_repairs)
{
    /* ten years of Llama 3's cluster: 28,345 failures expected, with lemons a little less even than Poisson */
    const struct fault_model *model = preset("llama3");
    struct fault_trace trace;
    faults_generate(model, 2048, DAYS(3650), 1, &trace);
    double expected = model->rate * 2048 * 3650;
    ck_assert_double_eq_tol((double)trace.n_items, expected, 0.05 * expected);
    size_t faulty_gpu = 0, empty = 0, n_hardware = 0;
    double log_hours = 0, log_squares = 0;
    for (size_t i = 0; i < trace.n_items; i++) {
        const char *cause = fault_trace_detail(&trace, &trace.items[i]);
        empty += trace.items[i].down == 0;
        if (strcmp(cause, "Faulty GPU") != 0)
            continue;
        faulty_gpu++;
        double hours = log((double)trace.items[i].down / 3600e9);
        log_hours += hours;
        log_squares += hours * hours;
        n_hardware++;
    }
    double n = (double)trace.n_items, share = 148 / 419.0;
    ck_assert_double_eq_tol((double)faulty_gpu / n, share, 4 * sqrt(share * (1 - share) / n));
    share = (54 + 7 + 2) / 419.0; /* causes that take no node away */
    ck_assert_double_eq_tol((double)empty / n, share, 4 * sqrt(share * (1 - share) / n));
    double mean = log_hours / (double)n_hardware, sigma = sqrt(log_squares / (double)n_hardware - mean * mean);
    ck_assert_double_eq_tol(mean, 0.224, 4 * 1.253 / sqrt((double)n_hardware) + 0.001); /* whole seconds round up */
    ck_assert_double_eq_tol(sigma, 1.253, 4 * 1.253 / sqrt(2.0 * (double)n_hardware) + 0.001);
    fault_trace_free(&trace);
}
END_TEST

/* Early and late stretches have the same rate: the process starts in its stationary state. */
START_TEST(test_stationary)
{
    struct fault_trace trace;
    faults_generate(preset("llama3"), 50000, DAYS(40), 3, &trace);
    double halves[2] = {0};
    for (size_t i = 0; i < trace.n_items; i++)
        halves[trace.items[i].time >= DAYS(20)]++;
    double difference = halves[0] - halves[1];
    ck_assert_double_le(fabs(difference), 5 * sqrt(halves[0] + halves[1]));
    fault_trace_free(&trace);
}
END_TEST

START_TEST(test_nodes_fail_independently_of_the_cluster)
{
    struct fault_trace small, large;
    faults_generate(preset("rsc-1"), 100, DAYS(300), 9, &small);
    faults_generate(preset("rsc-1"), 300, DAYS(300), 9, &large);
    size_t next = 0;
    for (size_t i = 0; i < large.n_items; i++) {
        if (large.items[i].node >= 100)
            continue;
        ck_assert_uint_lt(next, small.n_items);
        ck_assert_int_eq(large.items[i].time, small.items[next].time);
        ck_assert_int_eq(large.items[i].down, small.items[next].down);
        next++;
    }
    ck_assert_uint_eq(next, small.n_items);
    fault_trace_free(&small);
    faults_generate(preset("rsc-1"), 100, DAYS(300), 10, &small);
    ck_assert(small.n_items != next || small.items[0].time != large.items[0].time);
    fault_trace_free(&small);
    fault_trace_free(&large);
}
END_TEST

START_TEST(test_presets_are_sound)
{
    static const char *const expected[] = {"delta", "lanl", "llama3", "megascale", "rsc-1", "rsc-2", "titan"};
    size_t n;
    char **names = shipped_names(&fault_models, &n);
    ck_assert_uint_eq(n, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < n; i++) {
        const struct fault_model *model = preset(names[i]);
        ck_assert_str_eq(names[i], expected[i]);
        ck_assert_str_eq(model->name, names[i]);
        ck_assert(model->rate > 1e-4 && model->rate < 1e-1);
        ck_assert_uint_gt(strlen(model->source), 40);
    }
    names_free(names);
    double weight = 0;
    const struct fault_model *model = preset("llama3");
    for (int j = 0; j < model->causes.n; j++)
        weight += model->causes.items[j].weight;
    ck_assert_double_eq(weight, 419);
    ck_assert_double_eq(model->rate, 419 / (2048 * 54.0));
}
END_TEST

/* What is written is read back equal. */
START_TEST(test_models_round_trip)
{
    size_t n;
    char **names = shipped_names(&fault_models, &n);
    for (size_t i = 0; i < n; i++) {
        struct fault_model model = *preset(names[i]), back;
        struct diags diags = {0};
        char *text = fault_model_to_json(&model);
        ck_assert_int_eq(fault_model_parse("text", text, strlen(text), &back, &diags), STATUS_OK);
        char *again = fault_model_to_json(&back);
        ck_assert_str_eq(text, again);
        free(text);
        free(again);
        diags_free(&diags);
    }
    names_free(names);
}
END_TEST

static void check_refused(const char *text, const char *message)
{
    struct fault_model model;
    struct diags diags = {0};
    ck_assert_int_eq(fault_model_parse("m.yaml", text, strlen(text), &model, &diags), STATUS_BAD_INPUT);
    ck_assert_msg(strstr(diags.items[0].text, message), "%s", diags.items[0].text);
    diags_free(&diags);
}

#define HEAD "name: x\nsource: a table\nnodes: 10\ndays: 5\n"
START_TEST(test_absurd_models_are_refused)
{
    check_refused(HEAD "causes: [{name: a, count: 1}]\n", "a rate of 0");
    check_refused(HEAD "rate: 0\ncauses: [{name: a, count: 1}]\n", "rate");
    check_refused(HEAD "rate: 1e6\ncauses: [{name: a, count: 1}]\n", "rate");
    check_refused(HEAD "rate: 1e-3\nfailures: 7\ncauses: [{name: a, count: 1}]\n", "say the same thing");
    check_refused(HEAD "rate: 1e-3\ncauses: [{name: a, count: 0}]\n", "no cause has a count");
    check_refused(HEAD "rate: 1e-3\ncauses: [{name: a, count: 1, component: gqu}]\n", "gpu");
    check_refused(HEAD "rate: 1e-3\nlemmons: {share: 1%, factor: 2}\ncauses: [{name: a, count: 1}]\n", "lemons");
    check_refused("[1]", "mapping");
}
END_TEST

/* Groups fail together, early deaths come early, bursts stay on their node, slow nodes are slow. */
START_TEST(test_correlated_faults)
{
    static const char text[] = HEAD "rate: 1e-6\nearly: {share: 10%, days: 3}\nburst: {probability: 50%, hours: 2}\n"
                                    "causes: [{name: GPU, component: gpu, count: 1}]\n"
                                    "groups: [{name: rack power, nodes: 16, rate: 1e-3, share: 75%, repair: {mu: 0, sigma: 1}}]\n"
                                    "slow: [{name: slow host, share: 0.5%, factor: 0.9}]\n";
    struct fault_model model;
    struct diags diags = {0};
    ck_assert_int_eq(fault_model_parse("m.yaml", text, strlen(text), &model, &diags), STATUS_OK);
    struct fault_trace trace;
    faults_generate(&model, 16000, DAYS(100), 4, &trace);
    size_t n_rack = 0, n_slow = 0, n_early = 0, events = 0;
    nanos early_sum = 0, last = -1;
    for (size_t i = 0; i < trace.n_items; i++) {
        const struct fault *fault = &trace.items[i];
        const char *cause = fault_trace_detail(&trace, fault);
        n_slow += fault->kind == FAULT_STRAGGLER;
        if (strcmp(cause, "rack power") == 0) {
            n_rack++;
            events += fault->time != last;
            last = fault->time;
        } else if (fault->kind == FAULT_NODE) {
            n_early++;
            early_sum += fault->time;
        }
    }
    ck_assert_double_eq_tol((double)events, 100, 40); /* 1,000 racks for 100 days */
    ck_assert_double_eq_tol((double)n_rack / (double)events, 12, 1);
    ck_assert_double_eq_tol((double)n_slow, 80, 36);
    ck_assert_double_eq_tol((double)n_early, 1600, 180);
    ck_assert_double_eq_tol((double)early_sum / 86400e9 / (double)n_early, 3, 0.4);
    fault_trace_free(&trace);
    /* a failure brings one more on average: half of them bring one, a quarter two ... */
    model.early_share = model.slow.items[0].share = model.groups.items[0].rate = 0;
    model.rate = 1e-3;
    faults_generate(&model, 16000, DAYS(100), 4, &trace);
    ck_assert_double_eq_tol((double)trace.n_items, 3200, 320);
    fault_trace_free(&trace);
    diags_free(&diags);
}
END_TEST

/* --- statistics --- */

/* Quantiles of a Weibull distribution at (i - 1/2) / n are a sample that is as like it as n numbers can be. */
START_TEST(test_weibull_recovered)
{
    enum { N = 20000 };
    static double x[N];
    static const double shapes[] = {0.5, 0.817, 1, 2.5};
    for (size_t s = 0; s < 4; s++) {
        for (int i = 0; i < N; i++)
            x[i] = 3600 * pow(-log1p(-(i + 0.5) / N), 1 / shapes[s]);
        struct weibull_fit fit = weibull_fit(x, N);
        ck_assert_uint_eq(fit.n, N);
        ck_assert_double_eq_tol(fit.shape, shapes[s], 0.003 * shapes[s]);
        ck_assert_double_eq_tol(fit.scale_s, 3600, 0.002 * 3600);
        ck_assert_double_lt(fit.ks, 0.002);
    }
    ck_assert_double_gt(weibull_fit(x, N).ks_exponential, 0.1); /* shape 2.5 is nothing like it */
}
END_TEST

START_TEST(test_weibull_needs_something_to_fit)
{
    double same[] = {5, 5, 5, 5}, two[] = {1, 2}, zero[] = {0, 1, 2};
    ck_assert_double_eq(weibull_fit(same, 4).shape, 0);
    ck_assert_double_eq(weibull_fit(two, 2).shape, 0);
    ck_assert_double_eq(weibull_fit(zero, 3).shape, 0);
}
END_TEST

START_TEST(test_statistics_by_hand)
{
    struct fault_trace trace = {0};
    static const struct {
        double day, down_h;
        int node;
        const char *cause;
    } rows[] = {{0.5, 1, 3, "gpu"}, {0.5, 0, 2, "bug"}, {1.5, 4, 3, "gpu"}, {3.25, 2, 1, NULL}};
    for (size_t i = 0; i < 4; i++)
        fault_trace_add(&trace,
                        (struct fault){.time = (nanos)(rows[i].day * 86400e9),
                                       .down = (nanos)(rows[i].down_h * 3600e9),
                                       .node = rows[i].node,
                                       .speed = FULL_SPEED},
                        rows[i].cause);
    fault_trace_add(&trace, (struct fault){.time = DAYS(3.5), .speed = FULL_SPEED / 2, .kind = FAULT_LINK}, "cable");
    fault_trace_add(&trace, (struct fault){.time = DAYS(3.6), .speed = FULL_SPEED, .kind = FAULT_PLANNED}, "firmware");
    ck_assert_int_eq(fault_trace_horizon(&trace), DAYS(4));
    struct fault_statistics s;
    fault_statistics(&trace, 5, DAYS(4), &s);
    ck_assert_uint_eq(s.n_failures, 4);
    ck_assert_uint_eq(s.n_slow, 1);
    ck_assert_uint_eq(s.n_planned, 1);
    ck_assert_int_eq(s.nodes_hit, 3);
    ck_assert_double_eq(s.mtbf_s, 86400);
    ck_assert_double_eq(s.per_node_day, 0.2);
    ck_assert_double_eq(s.top_share, 0.5);
    ck_assert_double_eq_tol(s.variance_to_mean, 2 / 3.0, 1e-12); /* days 2 1 0 1 */
    ck_assert_uint_eq(s.repair.n, 3);
    ck_assert_uint_eq(s.repair.n_empty, 1);
    ck_assert_double_eq_tol(s.repair.mean_s, 7 / 3.0 * 3600, 1e-6);
    ck_assert_double_eq_tol(s.repair.median_s, 7200, 1e-6);
    ck_assert_double_eq_tol(s.repair.mu, log(8) / 3, 1e-12);
    ck_assert_int_eq(s.n_top_nodes, 3);
    ck_assert_int_eq(s.top_nodes[0].what, 3);
    ck_assert_double_eq(s.top_nodes[0].mean_down_s, 2.5 * 3600);
    ck_assert_int_eq(s.top_nodes[1].what, 1);
    ck_assert_uint_eq(s.n_causes, 5);
    ck_assert_str_eq(trace.details[s.causes[0].what], "gpu");
    ck_assert_int_eq(s.causes[1].what, -1);
    ck_assert_uint_eq(s.kinds[FAULT_LINK], 1);
    fault_statistics_free(&s);
    fault_trace_free(&trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("faults");
    TCase *random = tcase_create("random streams");
    tcase_add_test(random, test_splitmix_vectors);
    tcase_add_test(random, test_streams_have_names);
    tcase_add_test(random, test_uniform_and_below);
    suite_add_tcase(suite, random);
    TCase *generated = tcase_create("generated");
    tcase_add_test(generated, test_shipped_traces_are_generated);
    tcase_add_test(generated, test_rate_causes_and_repairs);
    tcase_add_test(generated, test_stationary);
    tcase_add_test(generated, test_nodes_fail_independently_of_the_cluster);
    tcase_add_test(generated, test_presets_are_sound);
    tcase_add_test(generated, test_models_round_trip);
    tcase_add_test(generated, test_absurd_models_are_refused);
    tcase_add_test(generated, test_correlated_faults);
    suite_add_tcase(suite, generated);
    TCase *statistics = tcase_create("statistics");
    tcase_add_test(statistics, test_weibull_recovered);
    tcase_add_test(statistics, test_weibull_needs_something_to_fit);
    tcase_add_test(statistics, test_statistics_by_hand);
    suite_add_tcase(suite, statistics);
    return suite_run(suite);
}
