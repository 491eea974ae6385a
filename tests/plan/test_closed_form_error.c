/*
 * The closed form against the simulation, over layouts drawn from the spaces of eight jobs (population.h), and what choosing by
 * it costs. The bounds are what it does and a little more: they are there to be lowered.
 */
#include <check.h>
#include <math.h>

#include "model/cost/memory/footprint.h"
#include "model/spec/catalog.h"
#include "tests/plan/population.h"
#include "tests/suite.h"

enum { EACH = 6 };

static const struct population_error at_most[N_SCHEDULES] = {
    [SCHEDULE_NONE] = {0.001, 0.006, 0.06},    [SCHEDULE_GPIPE] = {0.001, 0.004, 0.015},
    [SCHEDULE_1F1B] = {0.001, 0.01, 0.05},     [SCHEDULE_INTERLEAVED] = {0.004, 0.015, 0.04},
    [SCHEDULE_ZB1P] = {0.001, 0.006, 0.02},    [SCHEDULE_ZB2P] = {0.001, 0.006, 0.03},
    [SCHEDULE_ZBV] = {0.004, 0.02, 0.06},      [SCHEDULE_DUALPIPE] = {0.009, 0.04, 0.08},
    [SCHEDULE_DUALPIPEV] = {0.012, 0.04, 0.1},
};

START_TEST(errors_are_small_in_every_schedule)
{
    double errors[64];
    struct layout layouts[EACH];
    int n = 0;
    for (int j = 0; j < population_n_jobs; j++) {
        struct job_case c;
        ck_assert(population_case(&population_jobs[j], &c));
        int drawn = population_draw(&c.setting, (enum schedule)_i, 2, EACH, layouts);
        for (int i = 0; i < drawn; i++) {
            struct population_times times;
            ck_assert(population_time(&c.setting, &layouts[i], &times));
            errors[n++] = times.formula_s / times.simulated_s - 1;
        }
    }
    struct population_error e = population_error_of(errors, n);
    ck_assert_int_gt(n, 4 * EACH);
    const struct population_error *most = &at_most[_i];
    ck_assert_msg(e.median < most->median && e.p90 < most->p90 && e.largest < most->largest,
                  "%s: median %.4f, 90th percentile %.4f, largest %.4f", schedule_name((enum schedule)_i), e.median, e.p90,
                  e.largest);
}
END_TEST

/* A long sequence, of which the space has each way to exchange. */
START_TEST(context_parallelism_takes_what_it_takes_simulated)
{
    enum { DRAWN = 24 };
    static const struct population_job job = {"llama3-8b", "dgx-h100", 64, 32, 131072, FEATURE_BIT(FLASH_ATTENTION2)};
    struct layout layouts[DRAWN];
    struct job_case c;
    int gathered = 0, swapped = 0, both = 0;
    ck_assert(population_case(&job, &c));
    int drawn = population_draw(&c.setting, (enum schedule)_i, 4, DRAWN, layouts);
    for (int i = 0; i < drawn; i++) {
        struct population_times times;
        char text[LAYOUT_TEXT];
        ck_assert(population_time(&c.setting, &layouts[i], &times));
        double error = times.formula_s / times.simulated_s - 1;
        ck_assert_msg(fabs(error) < 0.12, "%s: %.4f", layout_format(&layouts[i], text, sizeof text), error);
        double comm = times.formula.s[CLASS_CP_COMM] / times.simulated.s[CLASS_CP_COMM];
        ck_assert_msg(_i != SCHEDULE_NONE || layouts[i].cp == 1 || fabs(comm - 1) < 1e-6, "exchanges: %.4f", comm);
        gathered += cp_comm_gathers(layouts[i].cp_comm);
        swapped += layouts[i].cp_comm == CP_A2A;
        both += layout_cp_heads(&layouts[i]) > 1 && layout_cp_keys(&layouts[i]) > 1;
    }
    ck_assert_msg(gathered > 0 && swapped + both > 0, "%d drawn: %d, %d, %d", drawn, gathered, swapped, both);
}
END_TEST

/* Chunks that differ by a layer, by what kinds of layers they have, by windows; from one micro-batch to many rounds, with a last
 * one that is full or not, and messages of two lengths beside passes. Without replicas it is the schedule alone: exact but for
 * messages that wait for one another where they come in. */
static const struct {
    const char *model;
    int64_t seq_len;
    int pp, vpp;
} uneven[] = {{"llama2-13b", 512, 16, 2},     {"gpt3-13b", 1024, 8, 3},     {"llama3-70b", 512, 16, 3},
              {"llama2-13b", 4096, 4, 4},     {"gpt-oss-20b", 32768, 4, 6}, {"gemma2-9b", 32768, 8, 5},
              {"gpt-oss-20b", 8192, 4, 5},    {"llama2-13b", 2048, 2, 6},   {"nemotron-h-8b", 32768, 8, 5},
              {"granite4-h-tiny", 8192, 8, 4}};
enum { N_UNEVEN = sizeof uneven / sizeof *uneven };

/* By how much the formula is off, at most, of a model and its numbers of micro-batches. */
static double uneven_error(int which, feature_set overlap)
{
    static const struct population_job any = {
        "llama2-13b", "dgx-h100", 1, 1, 512, FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS)};
    static const double slower[] = {1, 4};
    struct job_case c;
    struct diags diags = {0};
    ck_assert(population_case(&any, &c));
    ck_assert_int_eq(catalog_model(uneven[which].model, &c.model, &diags), STATUS_OK);
    diags_free(&diags);
    int p = uneven[which].pp, v = uneven[which].vpp;
    struct layout l = {.tp = 1, .cp = 1, .pp = p, .vpp = v, .dp = 1, .ep = 1, .micro_batch = 1, .schedule = SCHEDULE_INTERLEAVED};
    l.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS) | overlap;
    c.setting.gpus = p;
    c.job.seq_len = uneven[which].seq_len;
    c.job.features = l.features;
    c.cluster.nvlink_domain = 1; /* all messages leave their node */
    const int numbers[] = {1, 2, p - 1, p, p + 1, 2 * p, 3 * p + 1, 4 * p, 6 * p - 1, 12 * p};
    double largest = 0;
    for (size_t i = 0; i < 2 * sizeof numbers / sizeof *numbers; i++) {
        struct population_times times;
        c.job.global_batch = numbers[i / 2];
        double rate = c.cluster.nic_rate;
        c.cluster.nic_rate /= slower[i % 2];
        ck_assert(population_time(&c.setting, &l, &times));
        c.cluster.nic_rate = rate;
        largest = fmax(largest, fabs(times.formula_s / times.simulated_s - 1));
    }
    return largest;
}

START_TEST(uneven_chunks_take_what_they_take_simulated)
{
    ck_assert_double_lt(uneven_error(_i, FEATURE_BIT(PP_OVERLAP)), 0.009);
}
END_TEST

/* Messages that block are followed stream by stream: exact. */
START_TEST(uneven_chunks_and_messages_that_block)
{
    ck_assert_double_lt(uneven_error(_i, 0), 0.0002);
}
END_TEST

/* With Muon's step, whose parts and exchanges both count: without a pipeline all of it, but for the exchange of the norm. */
static void expect_muon(enum schedule schedule, enum muon_shard shard)
{
    struct layout layouts[EACH];
    int n = 0;
    for (int j = 0; j < population_n_jobs; j++) {
        struct job_case c;
        ck_assert(population_case(&population_jobs[j], &c));
        c.job.optimizer = OPTIMIZER_MUON;
        c.job.muon_tp = (enum muon_tp)(j % N_MUON_TP);
        c.job.muon_shard = shard;
        int drawn = population_draw(&c.setting, schedule, 3, EACH, layouts);
        for (int i = 0; i < drawn; i++) {
            struct population_times times;
            ck_assert(population_time(&c.setting, &layouts[i], &times));
            double error = times.formula_s / times.simulated_s - 1;
            ck_assert_msg(fabs(error) < 0.12, "%s: %.4f", schedule_name(schedule), error);
            double muon = times.formula.s[CLASS_OPTIMIZER] / times.simulated.s[CLASS_OPTIMIZER];
            ck_assert_msg(schedule != SCHEDULE_NONE || fabs(muon - 1) < 1e-2, "optimizer: %.4f", muon);
            n++;
        }
    }
    ck_assert_int_gt(n, 4 * EACH);
}

START_TEST(muon_takes_what_it_takes_simulated)
{
    expect_muon((enum schedule)_i, MUON_ELEMENTS);
}
END_TEST

START_TEST(owners_of_whole_parameters_take_what_they_take_simulated)
{
    expect_muon((enum schedule)_i, MUON_LAYER_WISE);
}
END_TEST

/* All that a layer has, one after the other inside the one before it. */
static const int RECOMPUTATIONS[] = {
    RECOMPUTE_NONE, RECOMPUTE_LAYERNORM, RECOMPUTE_LAYERNORM | RECOMPUTE_MLA_UP_PROJ | RECOMPUTE_MLP_ACT | RECOMPUTE_MOE_ACT,
    RECOMPUTE_LAYERNORM | RECOMPUTE_MLA_UP_PROJ | RECOMPUTE_MLP | RECOMPUTE_MOE | RECOMPUTE_CORE_ATTN, RECOMPUTE_FULL};
enum { N_RECOMPUTATIONS = sizeof RECOMPUTATIONS / sizeof RECOMPUTATIONS[0] };
/* Where exchanges take all of the time, neither more nor less; the formula is no more exact than that. */
static const double NOISE = 2e-3;

/* Who repeats more takes longer and keeps less: by the formula, simulated, and in memory (an eager stack holds a repeated layer
 * twice, which needs a few layers to pay). */
START_TEST(what_is_repeated_takes_time_and_frees_memory)
{
    struct layout layouts[EACH];
    int n = 0;
    for (int j = 0; j < population_n_jobs; j++) {
        struct job_case c;
        ck_assert(population_case(&population_jobs[j], &c));
        int drawn = population_draw(&c.setting, (enum schedule)_i, 5, EACH, layouts), has = (int)layout_modules_of(&c.model);
        for (int i = 0; i < drawn; i++) {
            struct population_times before = {0}, now;
            double bytes = HUGE_VAL;
            for (int r = 0; r < N_RECOMPUTATIONS; r++) {
                bool word = RECOMPUTATIONS[r] < N_RECOMPUTES;
                struct footprint footprint;
                layouts[i].recompute.what = (enum recompute_what)(word ? RECOMPUTATIONS[r] : RECOMPUTATIONS[r] & has);
                ck_assert_int_eq(layout_check(&layouts[i], &c.setting, NULL, 0), LAYOUT_LEGAL);
                ck_assert(population_time(&c.setting, &layouts[i], &now));
                footprint_peak(&layouts[i], &c.setting, &footprint, NULL);
                ck_assert_double_ge(now.formula_s, before.formula_s * (1 - NOISE));
                ck_assert_double_ge(now.simulated_s, before.simulated_s * (1 - NOISE));
                ck_assert_double_ge(now.formula.s[CLASS_RECOMPUTE], before.formula.s[CLASS_RECOMPUTE] * (1 - NOISE));
                char text[LAYOUT_TEXT];
                ck_assert_msg(footprint.total <= bytes, "%s, %s: %g bytes after %g", c.model.name,
                              layout_format(&layouts[i], text, sizeof text), footprint.total, bytes);
                before = now;
                bytes = footprint.total;
                n++;
            }
        }
    }
    ck_assert_int_gt(n, 4 * EACH);
}
END_TEST

/* Every layout of a small space simulated: what `msim plan` takes is the fastest or nearly. */
START_TEST(what_is_planned_is_nearly_the_fastest)
{
    struct job_case c;
    ck_assert(population_case(&population_jobs[3], &c));
    c.setting.gpus = 8;
    struct population_regret regret = population_regret_of(
        &c.setting, "cp=1,mb=1,2,4,zero=1,sp=1,schedule=none,1f1b,interleaved,zb-1p,zb-2p,zb-v,dualpipe,dualpipe-v", 20);
    ck_assert_int_gt(regret.layouts, 300);
    ck_assert_msg(regret.planned_s < 1.01 * regret.best_s, "%d layouts: %.4f s against %.4f s", regret.layouts, regret.planned_s,
                  regret.best_s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("closed form error");
    TCase *cases = tcase_create("population");
    suite_add_rounds(cases, errors_are_small_in_every_schedule, N_SCHEDULES, 0);
    suite_add_rounds(cases, context_parallelism_takes_what_it_takes_simulated, N_SCHEDULES, 1);
    tcase_add_loop_test(cases, uneven_chunks_take_what_they_take_simulated, 0, N_UNEVEN);
    tcase_add_loop_test(cases, uneven_chunks_and_messages_that_block, 0, N_UNEVEN);
    suite_add_rounds(cases, muon_takes_what_it_takes_simulated, N_SCHEDULES, 2);
    suite_add_rounds(cases, owners_of_whole_parameters_take_what_they_take_simulated, N_SCHEDULES, 0);
    suite_add_rounds(cases, what_is_repeated_takes_time_and_frees_memory, N_SCHEDULES, 1);
    tcase_add_test(cases, what_is_planned_is_nearly_the_fastest);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
