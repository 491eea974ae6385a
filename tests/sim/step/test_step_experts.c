/*
 * Steps of mixtures whose router is uneven, for random layouts: folding and the order of events change nothing, the more uneven
 * the longer and the larger, the closed form is near; and the layout that is best depends on it.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "model/cost/memory/footprint.h"
#include "model/cost/step/closed_form.h"
#include "tests/sim/step/drawn_layouts.h"
#include "tests/suite.h"

static void load_experts(struct job_case *c, double busiest, double capacity, bool padded)
{
    c->job.load = (struct expert_load){.busiest = busiest, .capacity = capacity, .padded = padded};
    expert_load_complete(&c->job.load, c->model.moe.experts, c->model.moe.top_k);
}

START_TEST(folding_changes_nothing)
{
    static const char *const with[] = {NULL, "zero=3", "zero=0", "schedule=zb-1p", "schedule=zb-v", "recompute=full"};
    struct job_case c;
    mixture_case(&c, 8, 8, 32, 64);
    for (uint64_t j = 0; j < sizeof with / sizeof *with; j++) {
        load_experts(&c, 1.2 + 0.4 * (double)j, j % 2 ? 1.25 : 0, j == 3);
        each_layout(&c, (struct drawing){170 + j, 20, with[j]}, check_folding);
    }
}
END_TEST

/* Beyond the rounding of each operation. Where a rank has all experts (ep = 1) it needs no more memory. */
static void check_more_uneven(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    double before = 0, bytes = 0, even = 0;
    (void)draw;
    for (double busiest = 1; busiest <= 4; busiest += 0.5) {
        struct footprint f;
        load_experts(c, busiest, 0, false);
        struct step_result r = simulated(c, layout, (struct step_options){0});
        footprint_peak(layout, &c->setting, &f, NULL);
        even = busiest > 1 ? even : r.step_time_s;
        ck_assert_double_ge(r.step_time_s, before - 1e-9 * (double)r.events);
        ck_assert(f.total >= bytes && (layout->ep > 1 || bytes <= 0 || !(f.total > bytes)));
        before = r.step_time_s;
        bytes = f.total;
    }
    ck_assert_msg(layout->ep == 1 || before > even, "ep=%d: %.9g, %.9g where routing is even", layout->ep, before, even);
}

START_TEST(the_more_uneven_the_longer)
{
    struct job_case c;
    mixture_case(&c, 8, 8, 32, 64);
    each_layout(&c, (struct drawing){180, 80, NULL}, check_more_uneven);
    c.model.hidden = 4096;
    each_layout(&c, (struct drawing){181, 40, "recompute=none"}, check_more_uneven);
}
END_TEST

/* Loads that are all 1 are no loads, to the last bit. */
static void check_balanced(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    (void)draw;
    c->job.load = (struct expert_load){0};
    struct step_result plain = simulated(c, layout, (struct step_options){0});
    load_experts(c, 1, 1, true);
    struct step_result padded = simulated(c, layout, (struct step_options){0});
    ck_assert_int_eq(plain.step, padded.step);
    ck_assert_double_eq(plain.memory.total, padded.memory.total);
}

START_TEST(padded_to_the_mean_is_balanced)
{
    struct job_case c;
    mixture_case(&c, 8, 8, 32, 64);
    each_layout(&c, (struct drawing){185, 60, NULL}, check_balanced);
}
END_TEST

static const char *const near[] = {"recompute=none", "recompute=full", "zero=3,pp=1,vpp=1,schedule=none"};

START_TEST(the_closed_form_is_near)
{
    static const struct population_error near_enough = {0.005, 0.03, 0.05};
    static const struct population_job jobs[] = {
        {"mixtral-8x7b", "dgx-h100", 64, 256, 4096, FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS)},
        {"deepseek-v3", "dgx-h100", 256, 1024, 4096, FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS)}};
    struct job_case c;
    ck_assert(population_case(&jobs[_i % 2], &c));
    load_experts(&c, 1.8, 0, false);
    check_closed_form(&c, (struct drawing){190 + (uint64_t)_i, 40, near[_i / 2]}, near_enough);
}
END_TEST

/* The best layout's expert parallelism. */
static int best_ep(const struct job_case *c)
{
    struct space *space = space_of(&c->setting, "pp=1,tp=1,cp=1,recompute=none");
    struct search_result found = search(space, (struct search_options){.keep = 1, .threads = 1});
    ck_assert_int_eq(found.n_plans, 1);
    int ep = found.plans[0].layout.ep;
    search_result_free(&found);
    space_destroy(space);
    return ep;
}

/* Ranks that have fewer experts are the more uneven, so uneven routing speaks for fewer of them. */
START_TEST(fewer_ranks_share_experts_that_are_uneven)
{
    static const struct population_job job = {"qwen3-30b-a3b",
                                              "dgx-h100",
                                              64,
                                              512,
                                              4096,
                                              FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(DP_OVERLAP)};
    struct job_case c;
    ck_assert(population_case(&job, &c));
    int even = best_ep(&c);
    load_experts(&c, 3, 0, false);
    int uneven = best_ep(&c);
    ck_assert_msg(uneven < even, "ep=%d where routing is even, ep=%d where it is not", even, uneven);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_experts");
    TCase *all = tcase_create("all");
    tcase_add_test(all, folding_changes_nothing);
    tcase_add_test(all, the_more_uneven_the_longer);
    tcase_add_test(all, padded_to_the_mean_is_balanced);
    tcase_add_loop_test(all, the_closed_form_is_near, 0, 2 * sizeof near / sizeof *near);
    tcase_add_test(all, fewer_ranks_share_experts_that_are_uneven);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
