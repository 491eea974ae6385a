/*
 * Steps of which some layers are repeated: a step by hand, and for random layouts
 *   - the more layers, the longer the step and the less the memory; all of them named one by one are all of them;
 *   - groups take what all layers take one by one, to the rounding of each operation;
 *   - folding, the order of events and the detail change nothing that they do not change without;
 *   - the closed form is near.
 */
#include <check.h>
#include <math.h>

#include "model/cost/memory/footprint.h"
#include "tests/sim/step/drawn_layouts.h"
#include "tests/suite.h"

static struct recompute said(const char *text)
{
    struct recompute r;
    ck_assert(recompute_parse(text, &r, NULL, 0));
    return r;
}

static double memory_of(const struct job_case *c, const struct layout *layout)
{
    struct footprint f;
    footprint_peak(layout, &c->setting, &f, NULL);
    return f.total;
}

/* One rank, eight layers: each layer that is repeated takes as much longer, a forward pass of it, and frees as much: what a layer
 * keeps but for its input. Only where the last layer is among them is one there while its copy is repeated. */
START_TEST(a_step_by_hand)
{
    struct job_case c;
    dense_case(&c, 8, 1, 1);
    c.job.features = FEATURE_BIT(CUDA_GRAPHS) | FEATURE_BIT(ASYNC_DATA) | FEATURE_BIT(FUSED_OPS);
    struct layout layout = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 1, .ep = 1, .micro_batch = 1};
    layout.features = c.job.features;
    double none = simulated(&c, &layout, (struct step_options){0}).step_time_s, memory = memory_of(&c, &layout);
    double whole = footprint_layer_bytes(&layout, &c.setting, layer_kind_of(&c.model, 0));
    layout.recompute = said("full");
    double full = simulated(&c, &layout, (struct step_options){0}).step_time_s;
    double each = (full - none) / 8, freed = whole - footprint_layer_bytes(&layout, &c.setting, layer_kind_of(&c.model, 0));
    for (int n = 1; n <= 8; n++) {
        layout.recompute = (struct recompute){RECOMPUTE_FULL, RECOMPUTE_FIRST, n};
        ck_assert_double_eq_tol(simulated(&c, &layout, (struct step_options){0}).step_time_s, none + n * each, 1e-6);
        if (n < 7) /* the logits are more than what is repeated */
            ck_assert_double_ge(memory - memory_of(&c, &layout), n * freed - 1);
    }
    layout.recompute = said("full:every3");
    ck_assert_double_eq_tol(simulated(&c, &layout, (struct step_options){0}).step_time_s, none + 2 * each, 1e-6);
    layout.recompute = said("full:groups3");
    ck_assert_double_eq_tol(simulated(&c, &layout, (struct step_options){0}).step_time_s, full, 1e-6);
}
END_TEST

/* More layers, and all. */
static void check_order(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    struct layout l = *layout;
    (void)draw;
    double before = 0, bytes = INFINITY;
    int most = 0;
    for (int v = 0; v < layout_virtual_stages(layout); v++)
        most = (int)fmax(most, layout_layers(layout, &c->model, v).count);
    l.recompute = said("none");
    before = simulated(c, &l, (struct step_options){0}).step_time_s;
    bytes = memory_of(c, &l);
    for (int n = 1; n <= most; n++) {
        l.recompute = (struct recompute){RECOMPUTE_FULL, RECOMPUTE_FIRST, n};
        double seconds = simulated(c, &l, (struct step_options){0}).step_time_s;
        ck_assert_double_ge(seconds, before * (1 - 5e-3)); /* clocks differ with the work of a layer */
        if (n < most)                                      /* the last one's repetition has nothing that went before it */
            ck_assert_double_le(memory_of(c, &l), bytes + 1);
        before = seconds, bytes = memory_of(c, &l);
    }
    l.recompute = said("full");
    ck_assert_double_eq_tol(simulated(c, &l, (struct step_options){0}).step_time_s, before, 1e-9 * before);
    ck_assert_double_eq_tol(memory_of(c, &l), bytes, 1);
}

START_TEST(the_more_layers_the_longer)
{
    struct job_case c;
    dense_case(&c, 12, 8, 32);
    each_layout(&c, (struct drawing){11, 60, "recompute=full:1"}, check_order);
}
END_TEST

static void check_groups(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    (void)draw;
    struct layout all = *layout;
    struct step_result groups = simulated(c, layout, (struct step_options){0});
    all.recompute = said("full");
    struct step_result one_by_one = simulated(c, &all, (struct step_options){0});
    if (c->cluster.gpu.host_launch_s <= 0) /* the host runs ahead of single layers, where it paces them */
        ck_assert_double_eq_tol(groups.step_time_s, one_by_one.step_time_s, 0.02 * groups.step_time_s);
}

START_TEST(groups_take_what_all_take)
{
    struct job_case c;
    dense_case(&c, 12, 8, 32);
    each_layout(&c, (struct drawing){12, 60, "recompute=full:groups2"}, check_groups);
}
END_TEST

static const char *const some[] = {"recompute=full:1", "recompute=full:2", "recompute=full:every2", "recompute=full:groups2"};

START_TEST(folding_changes_nothing)
{
    struct job_case c;
    dense_case(&c, 8, 32, 64);
    each_layout(&c, (struct drawing){50 + (uint64_t)_i, 40, some[_i]}, check_folding);
    mixture_case(&c, 8, 8, 32, 64);
    each_layout(&c, (struct drawing){60 + (uint64_t)_i, 40, some[_i]}, check_folding);
}
END_TEST

static const char *const near[] = {"recompute=full", "recompute=full:1", "recompute=full:2", "recompute=full:every2",
                                   "recompute=full:groups2"};
static const struct population_error near_enough = {0.001, 0.015, 0.05};

START_TEST(the_closed_form_is_near)
{
    struct job_case c;
    gpt_175b_case(&c, 256, 256);
    check_closed_form(&c, (struct drawing){70 + (uint64_t)_i, 60, near[_i]}, near_enough);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_recompute");
    TCase *all = tcase_create("all");
    tcase_add_test(all, a_step_by_hand);
    tcase_add_test(all, the_more_layers_the_longer);
    tcase_add_test(all, groups_take_what_all_take);
    tcase_add_loop_test(all, folding_changes_nothing, 0, sizeof some / sizeof *some);
    tcase_add_loop_test(all, the_closed_form_is_near, 0, sizeof near / sizeof *near);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
