/*
 * Steps of which some layers are repeated: a step by hand, and for random layouts
 *   - the more layers, the longer the step and the less the memory; all of them named one by one are all of them;
 *   - groups take what all layers take one by one, to the rounding of each operation;
 *   - folding, the order of events and the detail change nothing that they do not change without;
 *   - the closed form is near.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "model/cost/closed_form.h"
#include "model/cost/footprint.h"
#include "model/plan/space.h"
#include "sim/step.h"
#include "tests/plan/settings.h"
#include "tests/suite.h"

static struct step_result simulate(const struct job_case *c, const struct layout *layout, struct step_options options)
{
    struct step_result result;
    struct diags diags = {0};
    char text[LAYOUT_TEXT];
    options.verify = true;
    enum status status = step_simulate(layout, &c->setting, &options, &result, NULL, NULL, &diags);
    ck_assert_msg(status == STATUS_OK, "%s: %s", layout_format(layout, text, sizeof text),
                  diags.n_items > 0 ? diags.items[0].text : "");
    diags_free(&diags);
    return result;
}

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static struct recompute said(const char *text)
{
    struct recompute r;
    ck_assert(recompute_parse(text, &r, NULL, 0));
    return r;
}

typedef void check_layout(struct job_case *c, const struct layout *layout);

/* So many legal layouts, drawn from all with this recomputation. */
static void each_layout(struct job_case *c, uint64_t seed, int n, const char *recompute, check_layout *check)
{
    struct space *space = space_of(&c->setting, NULL);
    for (int tries = 0, found = 0; found < n; tries++) {
        struct layout layout;
        ck_assert_int_lt(tries, 2000 * n);
        space_layout(space, random_next(&seed) % space_size(space), &layout);
        layout.recompute = said(recompute);
        if (layout_check(&layout, &c->setting, NULL, 0) != LAYOUT_LEGAL)
            continue;
        found++;
        check(c, &layout);
    }
    space_destroy(space);
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
    double none = simulate(&c, &layout, (struct step_options){0}).step_time_s, memory = memory_of(&c, &layout);
    double whole = footprint_layer_bytes(&layout, &c.setting, layer_kind_of(&c.model, 0));
    layout.recompute = said("full");
    double full = simulate(&c, &layout, (struct step_options){0}).step_time_s;
    double each = (full - none) / 8, freed = whole - footprint_layer_bytes(&layout, &c.setting, layer_kind_of(&c.model, 0));
    for (int n = 1; n <= 8; n++) {
        layout.recompute = (struct recompute){RECOMPUTE_FULL, RECOMPUTE_FIRST, n};
        ck_assert_double_eq_tol(simulate(&c, &layout, (struct step_options){0}).step_time_s, none + n * each, 1e-6);
        if (n < 7) /* the logits are more than what is repeated */
            ck_assert_double_ge(memory - memory_of(&c, &layout), n * freed - 1);
    }
    layout.recompute = said("full:every3");
    ck_assert_double_eq_tol(simulate(&c, &layout, (struct step_options){0}).step_time_s, none + 2 * each, 1e-6);
    layout.recompute = said("full:groups3");
    ck_assert_double_eq_tol(simulate(&c, &layout, (struct step_options){0}).step_time_s, full, 1e-6);
}
END_TEST

/* More layers, and all. */
static void check_order(struct job_case *c, const struct layout *layout)
{
    struct layout l = *layout;
    double before = 0, bytes = INFINITY;
    int most = 0;
    for (int v = 0; v < layout_virtual_stages(layout); v++)
        most = (int)fmax(most, layout_layers(layout, &c->model, v).count);
    l.recompute = said("none");
    before = simulate(c, &l, (struct step_options){0}).step_time_s;
    bytes = memory_of(c, &l);
    for (int n = 1; n <= most; n++) {
        l.recompute = (struct recompute){RECOMPUTE_FULL, RECOMPUTE_FIRST, n};
        double seconds = simulate(c, &l, (struct step_options){0}).step_time_s;
        ck_assert_double_ge(seconds, before * (1 - 5e-3)); /* clocks differ with the work of a layer */
        if (n < most)                                      /* the last one's repetition has nothing that went before it */
            ck_assert_double_le(memory_of(c, &l), bytes + 1);
        before = seconds, bytes = memory_of(c, &l);
    }
    l.recompute = said("full");
    ck_assert_double_eq_tol(simulate(c, &l, (struct step_options){0}).step_time_s, before, 1e-9 * before);
    ck_assert_double_eq_tol(memory_of(c, &l), bytes, 1);
}

START_TEST(the_more_layers_the_longer)
{
    struct job_case c;
    dense_case(&c, 12, 8, 32);
    each_layout(&c, 11, 60, "full:1", check_order);
}
END_TEST

static void check_groups(struct job_case *c, const struct layout *layout)
{
    struct layout all = *layout;
    struct step_result groups = simulate(c, layout, (struct step_options){0});
    all.recompute = said("full");
    struct step_result one_by_one = simulate(c, &all, (struct step_options){0});
    if (c->cluster.gpu.host_launch_s <= 0) /* the host runs ahead of single layers, where it paces them */
        ck_assert_double_eq_tol(groups.step_time_s, one_by_one.step_time_s, 0.02 * groups.step_time_s);
}

START_TEST(groups_take_what_all_take)
{
    struct job_case c;
    dense_case(&c, 12, 8, 32);
    each_layout(&c, 12, 60, "full:groups2", check_groups);
}
END_TEST

static void check_folding(struct job_case *c, const struct layout *layout)
{
    struct step_options options = {0};
    struct step_result folded = simulate(c, layout, options);
    options.all_ranks = true;
    struct step_result all = simulate(c, layout, options);
    options.time_order = true;
    struct step_result ordered = simulate(c, layout, options);
    ck_assert_int_eq(folded.step, all.step);
    ck_assert_int_eq(all.step, ordered.step);
}

static const char *const some[] = {"full:1", "full:2", "full:every2", "full:groups2"};

START_TEST(folding_changes_nothing)
{
    struct job_case c;
    dense_case(&c, 8, 32, 64);
    each_layout(&c, 50 + (uint64_t)_i, 40, some[_i], check_folding);
    mixture_case(&c, 8, 8, 32, 64);
    each_layout(&c, 60 + (uint64_t)_i, 40, some[_i], check_folding);
}
END_TEST

enum { DRAWN = 60 };
static double errors[DRAWN];
static int n_errors;

static void check_closed_form(struct job_case *c, const struct layout *layout)
{
    struct closed_form *form = closed_form_create(&c->setting);
    struct estimate estimate;
    closed_form_estimate(form, layout, &estimate);
    double simulated = simulate(c, layout, (struct step_options){0}).step_time_s;
    ck_assert_double_eq_tol(estimate.memory_bytes, memory_of(c, layout), 1);
    errors[n_errors++] = fabs(estimate.step_s / simulated - 1);
    closed_form_destroy(form);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The bounds are what it does and a little more. */
static const char *const near[] = {"full", "full:1", "full:2", "full:every2", "full:groups2"};

START_TEST(the_closed_form_is_near)
{
    struct job_case c;
    gpt_175b_case(&c, 256, 256);
    n_errors = 0;
    each_layout(&c, 70 + (uint64_t)_i, DRAWN, near[_i], check_closed_form);
    qsort(errors, DRAWN, sizeof *errors, ascending);
    printf("recompute=%s: median %.2f %%, 90th percentile %.1f %%, largest %.1f %%\n", near[_i], 100 * errors[DRAWN / 2],
           100 * errors[DRAWN * 9 / 10], 100 * errors[DRAWN - 1]);
    ck_assert_double_lt(errors[DRAWN / 2], 0.01);
    ck_assert_double_lt(errors[DRAWN * 9 / 10], 0.03);
    ck_assert_double_lt(errors[DRAWN - 1], 0.15);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_recompute");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, a_step_by_hand);
    tcase_add_test(all, the_more_layers_the_longer);
    tcase_add_test(all, groups_take_what_all_take);
    tcase_add_loop_test(all, folding_changes_nothing, 0, sizeof some / sizeof *some);
    tcase_add_loop_test(all, the_closed_form_is_near, 0, sizeof near / sizeof *near);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
