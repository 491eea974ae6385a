/*
 * Whole steps of random legal layouts, drawn from the search's space: whatever the layout,
 *   - the breakdown sums to the step exactly, and every class is at least 0;
 *   - folding does not change a nanosecond: step, every stage's classes, FLOPs, and the memory report;
 *   - the event queue and data flow agree;
 *   - the same call gives the same bytes;
 *   - faster links never give a slower step.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/plan/space.h"
#include "sim/step.h"
#include "tests/plan/settings.h"
#include "tests/suite.h"

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

typedef void check_layout(const struct job_case *c, const struct layout *layout, uint64_t draw);

/* Call `check` on `n` legal layouts of the case. */
static void each_layout(const struct job_case *c, uint64_t seed, int n, check_layout *check)
{
    const struct space_limits limits = {0};
    struct space *space;
    struct diags diags = {0};

    ck_assert_int_eq(space_create(&c->setting, &limits, &space, &diags), STATUS_OK);
    for (int tries = 0, found = 0; found < n; tries++) {
        struct layout layout;
        ck_assert_int_lt(tries, 1000 * n);
        space_layout(space, random_next(&seed) % space_size(space), &layout);
        if (layout_check(&layout, &c->setting, NULL, 0) != LAYOUT_LEGAL)
            continue;
        found++;
        check(c, &layout, random_next(&seed));
    }
    space_destroy(space);
    diags_free(&diags);
}

static struct step_result simulate(const struct setting *setting, const struct layout *layout, struct step_options options,
                                   struct breakdown *stages)
{
    struct step_result result;
    struct diags diags = {0};
    char text[200];

    options.stages = stages;
    enum status status = step_simulate(layout, setting, &options, &result, NULL, NULL, &diags);
    ck_assert_msg(status == STATUS_OK, "%s: %s", layout_format(layout, text, sizeof text),
                  diags.n_items > 0 ? diags.items[0].text : "");
    ck_assert(breakdown_sums(stages));
    diags_free(&diags);
    return result;
}

static void check_sums(const struct job_case *c, const struct layout *layout, uint64_t draw)
{
    struct breakdown stages;
    struct step_options options = {.detail = draw % 8 == 0   ? DETAIL_KERNEL
                                             : draw % 8 == 1 ? DETAIL_LAYER
                                                             : DETAIL_CHUNK,
                                   .verify = true};
    struct step_result result = simulate(&c->setting, layout, options, &stages);

    ck_assert_int_gt(result.step, 0);
    ck_assert_double_eq_tol(cost_by_class_total(&result.breakdown), result.step_time_s, 1e-12 + 1e-14 * result.step_time_s);
    for (int class = 0; class < N_WORK_CLASSES; class ++)
        ck_assert_double_ge(result.breakdown.s[class], 0);
    ck_assert_double_gt(result.mfu, 0);
    ck_assert_double_lt(result.mfu, 1);
    ck_assert_double_ge(result.mfu, result.mfu_causal);
    ck_assert_double_gt(result.memory.total, 0);
    breakdown_free(&stages);
}

static void check_folding(const struct job_case *c, const struct layout *layout, uint64_t draw)
{
    struct breakdown folded, all, ordered;
    struct step_options options = {.detail = draw % 8 == 0 ? DETAIL_KERNEL : draw % 8 == 1 ? DETAIL_LAYER : DETAIL_CHUNK};
    struct step_result a = simulate(&c->setting, layout, options, &folded);
    options.all_ranks = true;
    options.verify = true;
    struct step_result b = simulate(&c->setting, layout, options, &all);
    options.time_order = true;
    struct step_result o = simulate(&c->setting, layout, options, &ordered);
    char text[200];

    ck_assert_msg(a.step == b.step, "%s: %lld folded, %lld with all ranks", layout_format(layout, text, sizeof text),
                  (long long)a.step, (long long)b.step);
    ck_assert_int_eq(b.step, o.step);
    ck_assert_int_eq(b.actors, c->setting.gpus);
    ck_assert_int_eq(a.actors, layout->pp);
    ck_assert_uint_eq(b.events, a.events * (uint64_t)(c->setting.gpus / layout->pp));
    ck_assert_double_eq_tol(a.hfu, b.hfu, 1e-9);
    for (int s = 0; s < layout->pp; s++)
        for (int class = 0; class < N_WORK_CLASSES; class ++) {
            nanos one = folded.stages[s].by_class.ns[class];
            ck_assert_int_eq(one * (c->setting.gpus / layout->pp), all.stages[s].by_class.ns[class]);
            ck_assert_int_eq(all.stages[s].by_class.ns[class], ordered.stages[s].by_class.ns[class]);
        }
    breakdown_free(&folded);
    breakdown_free(&all);
    breakdown_free(&ordered);
}

static void check_bandwidth(const struct job_case *c, const struct layout *layout, uint64_t draw)
{
    struct breakdown stages;
    struct cluster fast = c->cluster;
    struct setting setting = c->setting;
    struct step_result slow = simulate(&setting, layout, (struct step_options){0}, &stages);

    (void)draw;
    breakdown_free(&stages);
    fast.nic_rate *= 2;
    setting.cluster = &fast;
    struct step_result fast_result = simulate(&setting, layout, (struct step_options){0}, &stages);
    ck_assert_int_le(fast_result.step, slow.step);
    breakdown_free(&stages);
}

/* Chunks, layers and kernels are the same step up to the rounding of each operation, when the host is out of the way (its pace is
 * a property of a whole pass). */
static void check_details(const struct job_case *c, const struct layout *layout, uint64_t draw)
{
    struct layout graphs = *layout;
    struct step_result results[3];
    char text[200];

    (void)draw;
    graphs.features |= FEATURE_BIT(CUDA_GRAPHS);
    for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++) {
        struct breakdown stages;
        results[detail] = simulate(&c->setting, &graphs, (struct step_options){.detail = detail}, &stages);
        breakdown_free(&stages);
    }
    for (int detail = DETAIL_LAYER; detail <= DETAIL_KERNEL; detail++) {
        double tolerance = 1e-9 * (double)(results[0].events + results[detail].events);
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
    each_layout(&c, 31, 100, check_details);
    mixture_case(&c, 8, 8, 32, 64);
    c.job.features |= FEATURE_BIT(CUDA_GRAPHS);
    each_layout(&c, 32, 100, check_details);
}
END_TEST

START_TEST(breakdown_sums_exactly)
{
    struct job_case c;

    dense_case(&c, 8, 32, 64);
    each_layout(&c, 1, 200, check_sums);
    mixture_case(&c, 8, 8, 32, 64);
    each_layout(&c, 2, 100, check_sums);
    gpt_175b_case(&c, 1024, 768);
    each_layout(&c, 3, 40, check_sums);
}
END_TEST

START_TEST(folding_changes_nothing)
{
    struct job_case c;

    dense_case(&c, 8, 32, 64);
    each_layout(&c, 11, 100, check_folding);
    mixture_case(&c, 8, 8, 32, 64);
    each_layout(&c, 12, 100, check_folding);
}
END_TEST

START_TEST(faster_links_are_never_slower)
{
    struct job_case c;

    dense_case(&c, 8, 64, 64);
    each_layout(&c, 21, 100, check_bandwidth);
    mixture_case(&c, 8, 8, 64, 64);
    each_layout(&c, 22, 100, check_bandwidth);
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

    tcase_set_timeout(layouts, 240);
    tcase_add_test(layouts, breakdown_sums_exactly);
    tcase_add_test(layouts, folding_changes_nothing);
    tcase_add_test(layouts, details_agree);
    tcase_add_test(layouts, faster_links_are_never_slower);
    tcase_add_test(layouts, same_call_same_bytes);
    tcase_add_test(layouts, unknown_trace_rank_is_refused);
    suite_add_tcase(suite, layouts);
    return suite_run(suite);
}
