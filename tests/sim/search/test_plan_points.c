/*
 * The best plans of several experiments: their scaling, the point that a deadline chooses, and the levers of a job.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/search/lever_search.h"
#include "tests/suite.h"

static const struct plan_search_options usual = {.keep = 4, .n_simulate = 2, .threads = 1, .processes = {.size = 1}};

/* llama2-7b on nodes of 8 GPUs; tokens NULL: no budget. */
static void set_experiment(struct experiment *e, int gpus, const char *tokens)
{
    char text[256];
    struct diags diags = {0};
    snprintf(text, sizeof text, "{model: llama2-7b, cluster: {base: dgx-h100, gpus: %d}, job: {global_batch: 32%s%s}}", gpus,
             tokens ? ", tokens: " : "", tokens ? tokens : "");
    ck_assert_int_eq(experiment_parse_text("t.yaml", text, strlen(text), e, &diags), STATUS_OK);
    diags_free(&diags);
}

static struct plan_points points_on(const int *gpus, int n, const char *tokens)
{
    struct plan_points points = {.points = memory_new((size_t)n, sizeof *points.points), .n = n};
    for (int i = 0; i < n; i++)
        set_experiment(&points.points[i].experiment, gpus[i], tokens);
    return points;
}

static void release(struct plan_points *points)
{
    for (int i = 0; i < points->n; i++)
        diags_free(&points->points[i].diags);
    free(points->points);
}

/* Each GPU count relative to the first of its group, whose other members are not there or do not fit. */
START_TEST(scaling_is_relative_to_the_first_that_fits)
{
    static const int gpus[] = {8, 16, 32, 8};
    struct plan_points points = points_on(gpus, 4, NULL);
    points.points[0].status = STATUS_BAD_INPUT; /* could not be read */
    points.points[3].group = -1;
    plan_points_search(&points, &usual, NULL);
    const struct plan_point *p = points.points;
    ck_assert(!p[0].fits && p[1].fits && p[2].fits && p[3].fits);
    ck_assert_double_eq(p[0].scaling, 0);
    ck_assert_double_eq(p[1].scaling, 1);
    ck_assert_double_eq(p[2].scaling, (p[2].tokens_per_s / 32) / (p[1].tokens_per_s / 16));
    ck_assert_double_lt(p[2].scaling, 1);
    ck_assert_double_eq(p[3].scaling, 0);
    ck_assert_double_eq(p[1].tokens_per_s, 32 * 4096 / ranked_step_s(&p[1].best));
    release(&points);
}
END_TEST

/* Fewer GPUs need fewer GPU-hours; a shorter deadline needs more GPUs; none is in time where the deadline is too short. */
START_TEST(a_deadline_chooses_the_point_that_needs_least)
{
    static const int gpus[] = {8, 16, 32};
    struct plan_points points = points_on(gpus, 3, "10B");
    struct plan_point *p = points.points;
    plan_points_search(&points, &usual, NULL);
    plan_points_count(&points);
    ck_assert_int_eq(points.cheapest, -1); /* no deadline */
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq_tol(p[i].days, 1e10 / p[i].tokens_per_s / 86400, 1e-12);
        ck_assert_double_eq_tol(p[i].gpu_hours, p[i].days * 24 * gpus[i], 1e-6);
        ck_assert_double_eq(p[i].cost, 0);
        ck_assert_double_eq_tol(p[i].energy_j, p[i].power.gpu_w * p[i].gpu_hours * 3600, 1e-3);
    }
    points.within_s = 86400 * (p[0].days + p[1].days) / 2; /* 8 GPUs are too slow */
    plan_points_count(&points);
    ck_assert_int_eq(points.cheapest, 1);
    points.least = LEAST_COST;
    p[2].gpu_price = 0.5;
    plan_points_count(&points);
    ck_assert_int_eq(points.cheapest, 2); /* the only one with a price */
    ck_assert_double_eq_tol(p[2].cost, 0.5 * p[2].gpu_hours, 1e-9);
    points.within_s = 1;
    plan_points_count(&points);
    ck_assert_int_eq(points.cheapest, -1);
    release(&points);
}
END_TEST

/* A space without a legal layout names the last rule; one without room says how much is missing. */
START_TEST(points_without_a_plan_say_why)
{
    struct plan_point point = {0};
    set_experiment(&point.experiment, 8, NULL);
    ck_assert_int_eq(space_restrict(&point.limits, "tp=1,pp=1,zero=0,recompute=none", PLACE_NONE, &point.diags), STATUS_OK);
    plan_point_search(&point, &usual);
    ck_assert_int_eq(point.status, STATUS_OK);
    ck_assert(point.legal && !point.fits);
    ck_assert_double_gt(point.missing_bytes, 0);
    diags_free(&point.diags);
    point = (struct plan_point){0};
    set_experiment(&point.experiment, 8, NULL);
    ck_assert_int_eq(space_restrict(&point.limits, "tp=8,pp=2", PLACE_NONE, &point.diags), STATUS_OK);
    plan_point_search(&point, &usual);
    ck_assert(point.status != STATUS_OK || !point.legal);
    diags_free(&point.diags);
}
END_TEST

/* Fastest first, those that do not fit last, and each gain relative to the job without a change. */
START_TEST(levers_are_in_order_of_their_gain)
{
    struct experiment *e = memory_new(1, sizeof *e);
    struct space_limits limits = {0};
    struct lever_search search;
    bool doubled = false;
    set_experiment(e, 8, NULL);
    levers_search(e, &limits, &usual, NULL, &search);
    ck_assert(search.base->point.fits);
    ck_assert_double_eq(search.base->gain, 0);
    ck_assert_int_gt(search.n_items, 10);
    for (int i = 0; i < search.n_items; i++) {
        const struct levered_plan *item = &search.items[i];
        ck_assert(i == 0 || item[-1].point.tokens_per_s >= item->point.tokens_per_s);
        if (item->point.fits)
            ck_assert_double_eq(item->gain, item->point.tokens_per_s / search.base->point.tokens_per_s - 1);
        if (item->lever.what != CHANGE_ARITHMETIC)
            continue;
        doubled = true;
        ck_assert_double_gt(item->gain, 0.2);
        ck_assert_double_eq(item->point.experiment.cluster.gpu.peak_flops[PRECISION_BF16],
                            2 * e->cluster.gpu.peak_flops[PRECISION_BF16]);
    }
    ck_assert(doubled);
    lever_search_free(&search);
    free(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_points");
    TCase *all = tcase_create("all");
    tcase_add_test(all, scaling_is_relative_to_the_first_that_fits);
    tcase_add_test(all, a_deadline_chooses_the_point_that_needs_least);
    tcase_add_test(all, points_without_a_plan_say_why);
    tcase_add_test(all, levers_are_in_order_of_their_gain);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
