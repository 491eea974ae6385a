/* Steps of GPUs that are not equally fast: against steps of equal ones, against all ranks, and how the draws behave. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "model/cost/kernel/machine.h"
#include "sim/step/dp_overlap_contention.h"
#include "sim/step/step_replicas.h"
#include "tests/sim/step/drawn_layouts.h"
#include "tests/suite.h"

static const double JITTER = 0.03;

static struct pipelines *created(const struct layout *layout, const struct job_case *c, double jitter, bool every_rank)
{
    struct pipelines *pipelines;
    struct diags diags = {0};
    ck_assert_int_eq(pipelines_create(layout, &c->setting, jitter, every_rank, &pipelines, &diags), STATUS_OK);
    return pipelines;
}

static nanos timed(const struct pipelines *pipelines, const double *z)
{
    struct diags diags = {0};
    nanos step;
    ck_assert_int_eq(pipelines_time(pipelines, z, NULL, &step, &diags), STATUS_OK);
    return step;
}

static double *all_at(const struct pipelines *pipelines, double z)
{
    double *at = memory_new((size_t)pipelines_teams(pipelines), sizeof *at);
    for (int t = 0; t < pipelines_teams(pipelines); t++)
        at[t] = z;
    return at;
}

/* Equal GPUs: to the nanosecond the step of a cluster without spread, and, three deviations slow, of one whose pace is that; in a
 * pipeline beside which replicas exchange up to what passes so slow would lose more or less beside them. */
static void check_alike(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    const double slow = 3;
    struct pipelines *pipelines = created(layout, c, JITTER, draw & 1);
    double *z = all_at(pipelines, 0);
    c->cluster.gpu.clock_spread = 0;
    struct step_result mean = simulated(c, layout, (struct step_options){0});
    ck_assert_int_eq(timed(pipelines, z), mean.step);
    for (int t = 0; t < pipelines_teams(pipelines); t++)
        z[t] = slow;
    c->cluster.gpu.clock_spread = slow * JITTER / (slowest_of(c->setting.gpus, 1) - 1);
    struct step_result paced = simulated(c, layout, (struct step_options){0});
    c->cluster.gpu.clock_spread = 0;
    ck_assert_int_gt(paced.step, mean.step);
    double tolerance = has_dp_overlap_contention(layout) ? 5e-3 : 1e-6;
    ck_assert_double_eq_tol((double)timed(pipelines, z), (double)paced.step, tolerance * (double)paced.step);
    free(z);
    pipelines_destroy(pipelines);
}

/* Unequal ones: a rank of each stage and replica stands for its peers, to the nanosecond; nobody who gets slower makes a step
 * shorter, and no step is longer than with all as slow as the slowest, or shorter than with all as fast as the fastest. (With
 * hosts that need no time: which pieces a product and its exchange are cut into follows from the device, so a host that paces it
 * may have fewer to launch for a slower one. And where steps roll into one another the longest of all ranks' times in a step is
 * not the way to the end, so only the bounds hold.) */
static void check_unequal(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    struct pipelines *blocks = created(layout, c, JITTER, false), *ranks = created(layout, c, JITTER, true);
    struct random_stream random = {.key = draw};
    double *z = all_at(blocks, 0), low = INFINITY, high = -INFINITY;
    int n = pipelines_teams(blocks);
    char text[LAYOUT_TEXT];
    ck_assert_int_eq(pipelines_teams(ranks), n);
    ck_assert_uint_eq(pipelines_ops(ranks), pipelines_ops(blocks) * (uint64_t)(layout->tp * layout->cp));
    for (int t = 0; t < n; t++) {
        z[t] = 6 * random_uniform(&random) - 2;
        low = fmin(low, z[t]);
        high = fmax(high, z[t]);
    }
    nanos step = timed(blocks, z);
    ck_assert_msg(timed(ranks, z) == step, "%s", layout_format(layout, text, sizeof text));
    double *fast = all_at(blocks, low), *slow = all_at(blocks, high);
    ck_assert_int_le(timed(blocks, fast), step);
    ck_assert_int_ge(timed(blocks, slow), step);
    z[draw % (unsigned)n] += 1;
    if (layout->schedule != SCHEDULE_ZB2P && layout->schedule != SCHEDULE_ZBV)
        ck_assert_int_ge(timed(blocks, z), step);
    free(fast);
    free(slow);
    free(z);
    pipelines_destroy(blocks);
    pipelines_destroy(ranks);
}

START_TEST(equal_gpus_take_what_a_step_takes)
{
    struct job_case c;
    dense_case(&c, 8, 32, 64);
    each_layout(&c, (struct drawing){.seed = 51, .n = 60}, check_alike);
    mixture_case(&c, 8, 8, 32, 64);
    each_layout(&c, (struct drawing){.seed = 52, .n = 60}, check_alike);
}
END_TEST

START_TEST(blocks_stand_for_all_ranks)
{
    struct job_case c;
    dense_case(&c, 8, 32, 64);
    c.cluster.gpu.host_launch_s = 0;
    each_layout(&c, (struct drawing){.seed = 53, .n = 150}, check_unequal);
    mixture_case(&c, 8, 8, 32, 64);
    c.cluster.gpu.host_launch_s = 0;
    each_layout(&c, (struct drawing){.seed = 54, .n = 150}, check_unequal);
}
END_TEST

/* --- draws --- */

enum { N = 40 };

static void drawn(const struct job_case *c, const struct layout *layout, double jitter, uint64_t seed, int threads,
                  struct step_outcome outcomes[N])
{
    struct pipelines *pipelines = created(layout, c, jitter, false);
    struct diags diags = {0};
    const struct step_replicas_request request = {
        .pipelines = pipelines, .gpus = c->setting.gpus, .jitter = jitter, .seed = seed, .n = N, .threads = threads};
    memset(outcomes, 0, N * sizeof *outcomes);
    ck_assert_int_eq(step_replicas_run(&request, outcomes, &diags), STATUS_OK);
    pipelines_destroy(pipelines);
}

static struct layout laid_out(const char *text, const struct job_case *c)
{
    struct layout layout = layout_defaults;
    struct diags diags = {0};
    char why[256];
    ck_assert_int_eq(layout_parse(text, &layout, &diags), STATUS_OK);
    layout_complete(&layout, &c->setting);
    ck_assert_msg(layout_check(&layout, &c->setting, why, sizeof why) == LAYOUT_LEGAL, "%s", why);
    return layout;
}

START_TEST(without_jitter_all_steps_are_one)
{
    struct job_case c;
    struct step_outcome outcomes[N];
    dense_case(&c, 8, 32, 64);
    struct layout layout = laid_out("tp=2,pp=4,vpp=2,mb=1", &c);
    c.cluster.gpu.clock_spread = 0;
    struct step_result step = simulated(&c, &layout, (struct step_options){0});
    drawn(&c, &layout, 0, 1, 2, outcomes);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(outcomes[i].step, step.step);
}
END_TEST

START_TEST(same_bytes_for_any_threads_and_seeds_follow_one_another)
{
    struct job_case c;
    struct step_outcome one[N], three[N], later[N];
    dense_case(&c, 8, 32, 64);
    struct layout layout = laid_out("tp=2,pp=4,vpp=2,mb=1", &c);
    drawn(&c, &layout, JITTER, 7, 1, one);
    drawn(&c, &layout, JITTER, 7, 3, three);
    ck_assert_mem_eq(one, three, sizeof one);
    drawn(&c, &layout, JITTER, 7 + 5, 2, later);
    ck_assert_mem_eq(one + 5, later, (N - 5) * sizeof *one);
    ck_assert_int_ne(one[0].step, one[1].step);
}
END_TEST

/* Twice the replicas with twice the batch: the GPUs that were there draw the same, and each waits for more of them. One replica
 * of one GPU exchanges nothing, so begin at two. */
START_TEST(more_ranks_wait_for_a_slower_one)
{
    nanos before[N] = {0};
    double means[4] = {0};
    for (int i = 0; i < 4; i++) {
        int gpus = 8 << i;
        struct job_case c;
        struct step_outcome outcomes[N];
        dense_case(&c, gpus / 8, 8, gpus);
        struct layout layout = laid_out("tp=1,mb=1,zero=1", &c);
        drawn(&c, &layout, JITTER, 11, 2, outcomes);
        for (int r = 0; r < N; r++) {
            ck_assert_int_ge(outcomes[r].pace, before[r]);
            before[r] = outcomes[r].pace;
            ck_assert_int_lt(outcomes[r].slowest, gpus);
            means[i] += (double)outcomes[r].step / N;
        }
        ck_assert(i == 0 || means[i] > means[i - 1]);
    }
}
END_TEST

/* Data parallelism alone waits for the slowest of all GPUs, whose expected pace is Blom's: the step with everybody at that pace
 * is the mean of the draws, to what 40 of them can say (three standard errors and Blom's own error, a percent of the spread). */
START_TEST(the_mean_is_that_of_the_slowest)
{
    struct job_case c;
    struct step_outcome outcomes[N];
    dense_case(&c, 8, 8, 64);
    struct layout layout = laid_out("tp=1,mb=1,zero=1", &c);
    drawn(&c, &layout, JITTER, 3, 2, outcomes);
    c.cluster.gpu.clock_spread = JITTER;
    struct step_result expected = simulated(&c, &layout, (struct step_options){0});
    c.cluster.gpu.clock_spread = 0;
    struct step_result alike = simulated(&c, &layout, (struct step_options){0});
    double mean = 0, square = 0, costs = expected.step_time_s - alike.step_time_s;
    for (int i = 0; i < N; i++)
        mean += nanos_to_seconds(outcomes[i].step) / N;
    for (int i = 0; i < N; i++)
        square += pow(nanos_to_seconds(outcomes[i].step) - mean, 2) / (N - 1);
    ck_assert_double_gt(costs, 0);
    ck_assert_double_eq_tol(mean, expected.step_time_s, 3 * sqrt(square / N) + 0.01 * costs);
    ck_assert_double_gt(mean - alike.step_time_s, 0.8 * costs);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_replicas");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, equal_gpus_take_what_a_step_takes);
    tcase_add_test(tests, blocks_stand_for_all_ranks);
    tcase_add_test(tests, without_jitter_all_steps_are_one);
    tcase_add_test(tests, same_bytes_for_any_threads_and_seeds_follow_one_another);
    tcase_add_test(tests, more_ranks_wait_for_a_slower_one);
    tcase_add_test(tests, the_mean_is_that_of_the_slowest);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
