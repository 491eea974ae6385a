/*
 * The ranking of plans by simulation: its order, its independence of threads and processes, and what is chosen.
 */
#include <check.h>
#include <string.h>

#include "model/cost/step/track_record.h"
#include "sim/search/low_oom_plan.h"
#include "tests/plan/settings.h"
#include "tests/sim/search/processes_of_threads.h"
#include "tests/suite.h"

static const struct plan_search_options usual = {
    .keep = 12, .n_simulate = 8, .threads = 1, .processes = {.size = 1}}; /* of one process nothing else is used */

static struct plans_found found_in(const struct space *space, const struct plan_search_options *options)
{
    struct diags diags = {0};
    struct plans_found found;
    plans_search(space, options, &found, &diags);
    ck_assert_int_eq(diags.n_errors, 0);
    diags_free(&diags);
    return found;
}

static void check_same(const struct plans_found *a, const struct plans_found *b)
{
    check_same_plans(&a->search, &b->search);
    for (int i = 0; i < a->search.n_plans; i++) {
        ck_assert(same_layout(&a->plans[i].plan.layout, &b->plans[i].plan.layout));
        ck_assert_int_eq(a->plans[i].simulated, b->plans[i].simulated);
        if (a->plans[i].simulated)
            ck_assert_int_eq(a->plans[i].step.step, b->plans[i].step.step);
    }
}

/* The simulated ones first, by simulated time, each with the time that it has by itself; then those of the closed form. */
START_TEST(plans_are_in_order)
{
    struct job_case c;
    struct diags diags = {0};
    dense_case(&c, 8, 16, 32);
    struct space *space = space_of(&c.setting, NULL);
    struct plans_found found = found_in(space, &usual);
    ck_assert_int_eq(found.search.n_plans, 12);
    for (int i = 0; i < found.search.n_plans; i++) {
        ck_assert_int_eq(found.plans[i].simulated, i < 8);
        if (i > 0 && i != 8)
            ck_assert_double_le(ranked_step_s(&found.plans[i - 1]), ranked_step_s(&found.plans[i]));
        struct ranked_plan alone;
        plan_simulate(&found.plans[i].plan, &c.setting, &alone, &diags);
        if (i < 8)
            ck_assert_int_eq(alone.step.step, found.plans[i].step.step);
    }
    plans_found_free(&found);
    space_destroy(space);
    diags_free(&diags);
}
END_TEST

struct same_everywhere {
    const struct space *space;
    const struct plans_found *alone;
    int threads;
};

static void search_as_one_of_several(void *context, const struct processes *processes)
{
    const struct same_everywhere *same = context;
    struct plan_search_options options = usual;
    options.threads = same->threads;
    options.processes = *processes;
    struct plans_found found = found_in(same->space, &options);
    check_same(same->alone, &found);
    plans_found_free(&found);
}

START_TEST(processes_and_threads_change_nothing)
{
    static const int processes[] = {1, 1, 2, 3, 5}, threads[] = {1, 4, 1, 2, 1};
    struct job_case c;
    mixture_case(&c, 8, 8, 16, 32);
    struct space *space = space_of(&c.setting, "tp=1..8,pp=1..4");
    struct plans_found alone = found_in(space, &usual);
    struct same_everywhere same = {space, &alone, threads[_i]};
    play_processes(processes[_i], search_as_one_of_several, &same);
    plans_found_free(&alone);
    space_destroy(space);
}
END_TEST

START_TEST(the_first_is_chosen)
{
    struct job_case c;
    struct diags diags = {0};
    struct ranked_plan chosen;
    dense_case(&c, 8, 16, 32);
    struct space *space = space_of(&c.setting, "tp=2");
    struct plan_search_options options = usual;
    options.keep = options.n_simulate = PLANS_SIMULATED;
    struct plans_found found = found_in(space, &options);
    ck_assert(plan_choose(&c.setting, "tp=2", 2, &chosen, &diags) == STATUS_OK);
    ck_assert(same_layout(&chosen.plan.layout, &found.plans[0].plan.layout));
    ck_assert_int_eq(chosen.plan.layout.tp, 2);
    ck_assert(plan_choose(&c.setting, "tp=3", 2, &chosen, &diags) == STATUS_BAD_INPUT);
    ck_assert_int_gt(diags.n_errors, 0);
    plans_found_free(&found);
    space_destroy(space);
    diags_free(&diags);
}
END_TEST

/* A GPU whose memory the best plan just fits into: another plan leaves the margin. */
START_TEST(a_full_gpu_has_an_alternative)
{
    struct job_case c;
    struct diags diags = {0};
    struct ranked_plan chosen;
    struct low_oom_plan low;
    dense_case(&c, 8, 16, 32);
    ck_assert(plan_choose(&c.setting, "", 1, &chosen, &diags) == STATUS_OK);
    low_oom_plan_choose(&chosen, &c.setting, "", 1, &low);
    ck_assert(!low.wanted); /* 512 wide: next to nothing of 80 GB */
    gpt_175b_case(&c, 64, 64);
    ck_assert(plan_choose(&c.setting, "tp=8,pp=8,zero=1", 1, &chosen, &diags) == STATUS_OK);
    low_oom_plan_choose(&chosen, &c.setting, "tp=8,pp=8,zero=1", 1, &low);
    ck_assert_int_eq(low.wanted, memory_record_share(plan_use(&chosen, &c.setting)) > SHARE_RISKY);
    if (low.found) {
        ck_assert_double_le(low.safer_share, SHARE_WITH_MARGIN);
        ck_assert_double_le(plan_use(&low.plan, &c.setting), 1 - memory_record_margin());
    }
    diags_free(&diags);
}
END_TEST

static double risk(const struct ranked_plan *plan, const struct setting *setting)
{
    return memory_record_share(plan_use(plan, setting));
}

/* With a margin the first plan is not risky, no safe plan of the list is faster by more than half a percent, and the plans in the
 * second list are faster and risky. Without a margin the same search is in order of time. */
START_TEST(the_safe_plan_comes_first)
{
    static const int gpus[] = {64, 128, 256};
    struct job_case c;
    gpt_175b_case(&c, gpus[_i], 256);
    struct space *space = space_of(&c.setting, "tp=4..8");
    struct plan_search_options options = usual;
    options.keep = options.n_simulate = PLANS_SIMULATED;
    options.fuller = true;
    struct plans_found by_time = found_in(space, &options);
    ck_assert_int_eq(by_time.n_fuller, 0);
    space_destroy(space);
    c.job.memory_margin = MEMORY_MARGIN;
    space = space_of(&c.setting, "tp=4..8");
    struct plans_found safe = found_in(space, &options);
    const struct ranked_plan *first = &safe.plans[0];
    ck_assert_double_le(risk(first, &c.setting), SHARE_WITH_MARGIN);
    for (int i = 1; i < safe.search.n_plans; i++)
        ck_assert_double_ge(1.005 * ranked_step_s(&safe.plans[i]), ranked_step_s(first));
    for (int i = 0; i < safe.n_fuller; i++) {
        ck_assert_double_lt(ranked_step_s(&safe.fuller[i]), ranked_step_s(first));
        ck_assert_double_gt(risk(&safe.fuller[i], &c.setting), SHARE_WITH_MARGIN);
    }
    if (risk(&by_time.plans[0], &c.setting) > SHARE_WITH_MARGIN && ranked_step_s(&by_time.plans[0]) < ranked_step_s(first))
        ck_assert(same_layout(&by_time.plans[0].plan.layout, &safe.fuller[0].plan.layout));
    plans_found_free(&by_time);
    plans_found_free(&safe);
    space_destroy(space);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_ranking");
    TCase *all = tcase_create("all");
    tcase_add_test(all, plans_are_in_order);
    tcase_add_loop_test(all, processes_and_threads_change_nothing, 0, 5);
    tcase_add_test(all, the_first_is_chosen);
    tcase_add_test(all, a_full_gpu_has_an_alternative);
    tcase_add_loop_test(all, the_safe_plan_comes_first, 0, 3);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
