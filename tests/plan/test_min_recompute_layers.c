/*
 * The fewest repeated layers that fit, over layouts of every schedule, drawn from the spaces of eight jobs.
 *
 * What is proved: what is needed where all layers fit never rises with the layers that are repeated, which is what bisection
 * takes; the fewest are those of a loop, for any memory; and the more layers are repeated, the longer the step, from none to all.
 * Of the search: no plan depends on threads, and levels that a user names stay.
 */
#include <check.h>
#include <math.h>

#include "model/cost/step/min_recompute_layers.h"
#include "model/plan/search.h"
#include "tests/plan/population.h"
#include "tests/suite.h"

enum { DRAWN = 6, LAYERS_MOST = 160 };
static const double ROUNDING = 1e-9;

/* With the first n layers of each virtual stage repeated; n 0: none, -1: all. */
static struct layout repeating(const struct layout *layout, int n)
{
    struct layout l = *layout;
    l.recompute =
        (struct recompute){n == 0 ? RECOMPUTE_NONE : RECOMPUTE_FULL, n > 0 ? RECOMPUTE_FIRST : RECOMPUTE_ALL, n > 0 ? n : 0};
    return l;
}

static double memory_of(struct closed_form *form, const struct layout *layout, int n)
{
    struct layout l = repeating(layout, n);
    return closed_form_memory(form, &l);
}

static double seconds_of(struct closed_form *form, const struct layout *layout, int n)
{
    struct layout l = repeating(layout, n);
    struct step_estimate estimate;
    closed_form_estimate(form, &l, &estimate);
    return estimate.step_s;
}

typedef void check_layout(struct closed_form *form, const struct setting *setting, const struct layout *full);

/* Layouts of which some layers could be repeated. */
static int each_layout(check_layout *check)
{
    int checked = 0;
    for (int job = 0; job < population_n_jobs; job++) {
        struct job_case c;
        ck_assert(population_case(&population_jobs[job], &c));
        struct closed_form *form = closed_form_create(&c.setting);
        for (int schedule = 0; schedule < N_SCHEDULES; schedule++) {
            struct layout layouts[DRAWN];
            int n = population_draw(&c.setting, (enum schedule)schedule, 7, DRAWN, layouts);
            for (int i = 0; i < n; i++) {
                struct layout full = repeating(&layouts[i], -1), first = repeating(&layouts[i], 1);
                if (layout_check(&full, &c.setting, NULL, 0) != LAYOUT_LEGAL ||
                    layout_check(&first, &c.setting, NULL, 0) != LAYOUT_LEGAL || layout_most_layers(&full, &c.model) < 2)
                    continue;
                check(form, &c.setting, &full);
                checked++;
            }
        }
        closed_form_destroy(form);
    }
    return checked;
}

/* At limits of one amount, between amounts, below all and above all. */
static void check_fewest(struct closed_form *form, const struct setting *setting, const struct layout *full)
{
    int most = layout_most_layers(full, setting->model) - 1;
    double needed[LAYERS_MOST], all = memory_of(form, full, -1);
    ck_assert_int_lt(most, LAYERS_MOST);
    for (int n = 1; n <= most; n++)
        needed[n] = memory_of(form, full, n);
    for (int n = 2; n <= most; n++)
        ck_assert_double_le(fmax(needed[n], all), fmax(needed[n - 1], all) * (1 + ROUNDING));
    for (int at = 1; at <= most; at++)
        for (double part = 0.98; part < 1.03; part += 0.01) {
            double limit = needed[at] * part;
            int fewest = 0;
            for (int n = most; n >= 1 && limit >= all; n--)
                fewest = needed[n] <= limit ? n : fewest;
            if (limit >= all)
                ck_assert_int_eq(min_recompute_layers(form, setting, full, limit), fewest);
        }
}

START_TEST(the_fewest_are_those_of_a_loop)
{
    ck_assert_int_gt(each_layout(check_fewest), 100);
}
END_TEST

/* Of ZeRO-2 and 3, whose exchanges passes cover, of pipelines that a stage of prediction modules paces, which repeats nothing
 * while the forward passes before it come sooner the less they keep (simulated, too), and of all layers beside all but one, to a
 * thousandth; of dualpipe-v's halves that differ, whose pairs the formula has to a few percent, to two in a hundred. */
static void check_order(struct closed_form *form, const struct setting *setting, const struct layout *full)
{
    const double near = 1e-3, pairs = 0.02;
    double before = seconds_of(form, full, 0), tolerance = ROUNDING;
    if (layout_scatters_gradients(full) || (full->pp > 1 && setting->model->mtp_layers > 0))
        tolerance = near;
    if (full->schedule == SCHEDULE_DUALPIPEV)
        tolerance = pairs;
    char text[LAYOUT_TEXT];
    for (int n = 1; n < layout_most_layers(full, setting->model); n++) {
        double seconds = seconds_of(form, full, n);
        ck_assert_msg(seconds >= before * (1 - tolerance), "%d of %s", n, layout_format(full, text, sizeof text));
        before = seconds;
    }
    ck_assert_msg(seconds_of(form, full, -1) >= before * (1 - fmax(near, tolerance)), "all of %s, %g s after %g",
                  layout_format(full, text, sizeof text), seconds_of(form, full, -1), before);
}

START_TEST(the_more_is_repeated_the_longer_the_step)
{
    ck_assert_int_gt(each_layout(check_order), 100);
}
END_TEST

/* Layers by kinds in a pattern are not counted, nor are those whose activations leave. */
START_TEST(none_where_amounts_are_not_legal)
{
    struct job_case c;
    gpt_175b_case(&c, 64, 64);
    struct layout full = {.tp = 8, .pp = 8, .micro_batch = 1, .recompute = {.what = RECOMPUTE_FULL}};
    layout_complete(&full, &c.setting);
    struct closed_form *form = closed_form_create(&c.setting);
    double limit = 2 * closed_form_memory(form, &full);
    ck_assert_int_eq(min_recompute_layers(form, &c.setting, &full, limit), 1);
    full.offload = offload_wholes[2];
    ck_assert(layout_offloads(&full, OFFLOAD_ACTIVATIONS));
    ck_assert_int_eq(min_recompute_layers(form, &c.setting, &full, limit), 0);
    full.offload = offload_wholes[0];
    full.pp = 2, full.dp = 4, full.vpp = 48, full.schedule = SCHEDULE_INTERLEAVED; /* a layer each */
    ck_assert_int_eq(min_recompute_layers(form, &c.setting, &full, limit), 0);
    closed_form_destroy(form);
}
END_TEST

/* --- in the search --- */

/* Little memory, so that many plans repeat some layers; several of a family too. */
START_TEST(repeated_layers_do_not_depend_on_threads)
{
    struct job_case c;
    gpt_175b_case(&c, 256, 256);
    c.cluster.gpu.hbm_bytes *= 0.4;
    struct space *space = space_of(&c.setting, "tp=4,8,cp=1,2");
    struct search_options options = {.keep = 60, .variants = _i, .threads = 1};
    struct search_result alone = search(space, options);
    int some = 0;
    for (int i = 0; i < alone.n_plans; i++)
        some += alone.plans[i].layout.recompute.of == RECOMPUTE_FIRST;
    ck_assert_int_gt(some, 0);
    for (options.threads = 2; options.threads <= 8; options.threads += 3) {
        struct search_result together = search(space, options);
        check_same_plans(&alone, &together);
        search_result_free(&together);
    }
    search_result_free(&alone);
    space_destroy(space);
}
END_TEST

/* What a user names is meant, and counts are those of the layouts of the space: as with the levels that it has by itself. */
START_TEST(levels_that_are_named_stay)
{
    struct job_case c;
    gpt_175b_case(&c, 256, 256);
    c.cluster.gpu.hbm_bytes *= 0.4;
    struct space *free_space = space_of(&c.setting, "tp=4,8,cp=1,2");
    struct space *named = space_of(&c.setting, "tp=4,8,cp=1,2,recompute=none,selective,layernorm+mlp_act,full");
    struct search_options options = {.keep = 60, .threads = 2};
    struct search_result fewest = search(free_space, options), levels = search(named, options);
    ck_assert_mem_eq(&fewest.counts, &levels.counts, sizeof fewest.counts);
    ck_assert_double_eq(fewest.least_bytes, levels.least_bytes);
    ck_assert_int_gt(levels.n_plans, 0);
    for (int i = 0; i < levels.n_plans; i++) {
        ck_assert_int_eq(levels.plans[i].layout.recompute.of, RECOMPUTE_ALL);
        ck_assert_double_le(fewest.plans[i].estimate.step_s, levels.plans[i].estimate.step_s);
    }
    search_result_free(&fewest);
    search_result_free(&levels);
    space_destroy(free_space);
    space_destroy(named);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fewest repeated layers");
    TCase *cases = tcase_create("fewest");
    tcase_add_test(cases, the_fewest_are_those_of_a_loop);
    tcase_add_test(cases, the_more_is_repeated_the_longer_the_step);
    tcase_add_test(cases, none_where_amounts_are_not_legal);
    tcase_add_loop_test(cases, repeated_layers_do_not_depend_on_threads, 0, 2);
    tcase_add_test(cases, levels_that_are_named_stay);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
