/*
 * Whole steps of random legal layouts, drawn from the search's space: whatever the layout,
 *   - the breakdown sums to the step exactly, and every class is at least 0;
 *   - folding does not change a nanosecond: step, every stage's classes, FLOPs, and the memory report;
 *   - the event queue and data flow agree;
 *   - the same call gives the same bytes;
 *   - faster links never give a slower step;
 *   - a step prepared once takes, under every speed of its cluster, what a simulation from the start says.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/step/dp_overlap_contention.h"
#include "sim/step/prepared_step.h"
#include "tests/sim/step/drawn_layouts.h"
#include "tests/suite.h"

static void check_sums(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    struct step_result result = simulated(c, layout, (struct step_options){.detail = drawn_detail(draw)});

    ck_assert_int_gt(result.step, 0);
    ck_assert_double_eq_tol(cost_by_class_total(&result.breakdown), result.step_time_s, 1e-12 + 1e-14 * result.step_time_s);
    char text[LAYOUT_TEXT];
    for (int class = 0; class < N_WORK_CLASSES; class ++)
        ck_assert_msg(result.breakdown.s[class] >= 0, "%s: %s takes %g s", layout_format(layout, text, sizeof text),
                      work_class_name((enum work_class) class), result.breakdown.s[class]);
    ck_assert_double_gt(result.mfu, 0);
    ck_assert_double_lt(result.mfu, 1);
    ck_assert_double_ge(result.mfu, result.mfu_causal);
    ck_assert_double_gt(result.memory.total, 0);
}

static void check_bandwidth(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    (void)draw;
    struct step_result slow = simulated(c, layout, (struct step_options){0});
    c->cluster.nic_rate *= 2;
    struct step_result fast = simulated(c, layout, (struct step_options){0});
    c->cluster.nic_rate /= 2;
    ck_assert_int_le(fast.step, slow.step);
}

/* Chunks, layers and kernels are the same step up to the rounding of each operation, when the host is out of the way (its pace is
 * a property of a whole pass); beside replicas' exchanges, which take more from kernels than from the
 * exchanges between them, nearly. */
static const double NEARLY = 5e-3;
static void check_details(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    struct layout graphs = *layout;
    struct step_result results[3];
    char text[200];

    (void)draw;
    graphs.features |= FEATURE_BIT(CUDA_GRAPHS);
    for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++)
        results[detail] = simulated(c, &graphs, (struct step_options){.detail = detail});
    for (int detail = DETAIL_LAYER; detail <= DETAIL_KERNEL; detail++) {
        double tolerance = 1e-9 * (double)(results[0].events + results[detail].events);
        tolerance += has_dp_overlap_contention(layout) ? NEARLY * results[0].step_time_s : 0;
        ck_assert_msg(fabs(results[detail].step_time_s - results[0].step_time_s) <= tolerance, "%s: %.9f s, by %s %.9f s",
                      layout_format(layout, text, sizeof text), results[0].step_time_s,
                      detail == DETAIL_LAYER ? "layers" : "kernels", results[detail].step_time_s);
    }
}

START_TEST(details_agree)
{
    struct job_case c;

    dense_case(&c, 8, 32, 64);
    c.job.features |= FEATURE_BIT(CUDA_GRAPHS);
    each_layout(&c, (struct drawing){.seed = 31, .n = 100}, check_details);
    mixture_case(&c, 8, 8, 32, 64);
    c.job.features |= FEATURE_BIT(CUDA_GRAPHS);
    each_layout(&c, (struct drawing){.seed = 32, .n = 100}, check_details);
}
END_TEST

START_TEST(breakdown_sums_exactly)
{
    struct job_case c;

    dense_case(&c, 8, 32, 64);
    each_layout(&c, (struct drawing){.seed = 1, .n = 200}, check_sums);
    mixture_case(&c, 8, 8, 32, 64);
    each_layout(&c, (struct drawing){.seed = 2, .n = 100}, check_sums);
    gpt_175b_case(&c, 1024, 768);
    each_layout(&c, (struct drawing){.seed = 3, .n = 40}, check_sums);
}
END_TEST

START_TEST(folding_changes_nothing)
{
    struct job_case c;

    dense_case(&c, 8, 32, 64);
    each_layout(&c, (struct drawing){.seed = 11, .n = 100}, check_folding);
    mixture_case(&c, 8, 8, 32, 64);
    each_layout(&c, (struct drawing){.seed = 12, .n = 100}, check_folding);
}
END_TEST

START_TEST(faster_links_are_never_slower)
{
    struct job_case c;

    dense_case(&c, 8, 64, 64);
    each_layout(&c, (struct drawing){.seed = 21, .n = 100}, check_bandwidth);
    mixture_case(&c, 8, 8, 64, 64);
    each_layout(&c, (struct drawing){.seed = 22, .n = 100}, check_bandwidth);
}
END_TEST

START_TEST(same_call_same_bytes)
{
    struct job_case c;
    struct layout layout = {.tp = 2, .pp = 4, .vpp = 2, .micro_batch = 1};
    char *texts[2];

    dense_case(&c, 8, 32, 64);
    layout_complete(&layout, &c.setting);
    for (int k = 0; k < 2; k++) {
        struct step_result result;
        struct timeline timeline;
        struct program program;
        struct diags diags = {0};
        size_t size;
        struct step_options options = {.n_trace_ranks = -1, .verify = true};
        ck_assert_int_eq(step_simulate(&layout, &c.setting, &options, &result, &timeline, &program, &diags), STATUS_OK);
        FILE *out = open_memstream(&texts[k], &size);
        ck_assert_int_eq(timeline_write_chrome(&timeline, &program, "predicted", out, &diags), STATUS_OK);
        timeline_write_csv(&timeline, &program, out);
        fclose(out);
        ck_assert_int_eq(timeline.end, result.step);
        timeline_free(&timeline);
        program_free(&program);
    }
    ck_assert_str_eq(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}
END_TEST

/* Every kind of quantity that costs follow from, one after the other, and all back. */
static void check_prepared(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    struct gpu *gpu = &c->cluster.gpu;
    double *const quantities[] = {&gpu->sustained_clock,
                                  &gpu->clock_spread,
                                  &gpu->host_launch_s,
                                  &gpu->hbm_rate,
                                  &gpu->nvlink_rate,
                                  &gpu->nccl_rate,
                                  &gpu->peak_flops[c->job.precision],
                                  &c->cluster.nic_rate,
                                  &c->cluster.net_fraction};
    enum { N_QUANTITIES = sizeof quantities / sizeof *quantities };
    const struct cluster before = c->cluster;
    struct prepared_step *step;
    struct diags diags = {0};
    double seconds;

    (void)draw;
    ck_assert_int_eq(prepared_step_create(layout, &c->setting, &step, &diags), STATUS_OK);
    for (int i = 0; i <= N_QUANTITIES; i++) {
        if (i < N_QUANTITIES)
            *quantities[i] *= 0.7;
        else
            c->cluster = before;
        struct step_result anew = simulated(c, layout, (struct step_options){0});
        ck_assert_int_eq(prepared_step_time(step, &c->setting, &seconds, &diags), STATUS_OK);
        ck_assert(memcmp(&seconds, &anew.step_time_s, sizeof seconds) == 0);
        double near = 0;
        ck_assert_int_eq(prepared_step_time_near(step, &c->setting, &near, &diags), STATUS_OK);
        ck_assert(memcmp(&near, &seconds, sizeof near) == 0);
    }
    double hbm_rate = c->cluster.gpu.hbm_rate, near, whole; /* a little slower: nearly what the whole takes */
    c->cluster.gpu.hbm_rate *= 0.99;
    ck_assert_int_eq(prepared_step_time_near(step, &c->setting, &near, &diags), STATUS_OK);
    ck_assert_int_eq(prepared_step_time(step, &c->setting, &whole, &diags), STATUS_OK);
    ck_assert_double_gt(near, seconds);
    ck_assert_double_eq_tol(near / whole, 1, prepared_step_loses(step) ? 0.01 : 1e-12);
    c->cluster.gpu.hbm_rate = hbm_rate;
    prepared_step_destroy(step);
}

START_TEST(a_prepared_step_takes_as_long_as_one_from_the_start)
{
    struct job_case c;

    dense_case(&c, 8, 32, 64);
    each_layout(&c, (struct drawing){.seed = 41, .n = 60}, check_prepared);
    mixture_case(&c, 8, 8, 32, 64);
    each_layout(&c, (struct drawing){.seed = 42, .n = 60}, check_prepared);
}
END_TEST

START_TEST(an_illegal_layout_is_not_prepared)
{
    struct job_case c;
    struct layout layout = {.pp = 3};
    struct prepared_step *step = NULL;
    struct diags diags = {0};

    dense_case(&c, 8, 32, 64);
    layout_complete(&layout, &c.setting);
    ck_assert_int_eq(prepared_step_create(&layout, &c.setting, &step, &diags), STATUS_BAD_INPUT);
    ck_assert_ptr_null(step);
    diags_free(&diags);
}
END_TEST

START_TEST(unknown_trace_rank_is_refused)
{
    struct job_case c;
    struct layout layout = {.pp = 4};
    struct step_result result;
    struct timeline timeline;
    struct diags diags = {0};
    int rank = 4;
    struct step_options options = {.trace_ranks = &rank, .n_trace_ranks = 1};

    dense_case(&c, 8, 32, 64);
    layout_complete(&layout, &c.setting);
    ck_assert_int_eq(step_simulate(&layout, &c.setting, &options, &result, &timeline, NULL, &diags), STATUS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "no rank 4 to trace; ranks are 0 to 3"));
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_layouts");
    TCase *layouts = tcase_create("random layouts");

    tcase_add_test(layouts, breakdown_sums_exactly);
    tcase_add_test(layouts, folding_changes_nothing);
    tcase_add_test(layouts, details_agree);
    tcase_add_test(layouts, faster_links_are_never_slower);
    tcase_add_test(layouts, a_prepared_step_takes_as_long_as_one_from_the_start);
    tcase_add_test(layouts, an_illegal_layout_is_not_prepared);
    tcase_add_test(layouts, same_call_same_bytes);
    tcase_add_test(layouts, unknown_trace_rank_is_refused);
    suite_add_tcase(suite, layouts);
    return suite_run(suite);
}
