/*
 * The search against a loop over the whole space, and what must hold of any search.
 *
 * What is proved: counts, plans and the smallest layout are those of a plain loop; they do not depend on threads nor on how the
 * space was divided; every plan is legal and fits; more memory never makes the best plan slower; the best plans of restrictions
 * are those of the space they leave.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "model/cost/memory/footprint.h"
#include "model/plan/search.h"
#include "model/plan/shortlist.h"
#include "tests/layout/offloaded.h"
#include "tests/plan/settings.h"
#include "tests/suite.h"

static void check_same_result(const struct search_result *a, const struct search_result *b)
{
    check_same_plans(a, b);
    ck_assert_uint_eq(a->least_index, b->least_index);
    ck_assert_mem_eq(&a->least_bytes, &b->least_bytes, sizeof a->least_bytes);
    ck_assert_mem_eq(&a->limit_bytes, &b->limit_bytes, sizeof a->limit_bytes);
}

/* --- against a loop --- */

static int by_plan_order(const void *a, const void *b)
{
    return plan_compare(a, b);
}

/* Is it legal, and does it fit? */
static bool estimate_fitting(struct closed_form *form, const struct setting *setting, const struct layout *layout,
                             struct step_estimate *estimate)
{
    if (layout_check(layout, setting, NULL, 0) != LAYOUT_LEGAL)
        return false;
    closed_form_estimate(form, layout, estimate);
    return estimate->memory_bytes <= footprint_capacity(setting->cluster) * (1 - setting->job->memory_margin);
}

/* In the place of a plan that repeats all layers, while one that repeats none does not fit, the fastest of those that repeat so
 * many of each virtual stage, for any number. */
static void repeat_fewer(struct closed_form *form, const struct setting *setting, struct plan *plan)
{
    struct plan other = *plan;
    other.layout.recompute = (struct recompute){.what = RECOMPUTE_NONE};
    if (plan->layout.recompute.what != RECOMPUTE_FULL || estimate_fitting(form, setting, &other.layout, &other.estimate))
        return;
    for (int n = 1; n < layout_most_layers(&plan->layout, setting->model); n++) {
        other.layout.recompute = (struct recompute){RECOMPUTE_FULL, RECOMPUTE_FIRST, n};
        if (estimate_fitting(form, setting, &other.layout, &other.estimate) && plan_compare(&other, plan) < 0)
            *plan = other;
    }
}

/* All plans that fit, best first, and the counts, one layout after the other. */
static struct plan *all_plans(const struct space *space, struct search_result *expected)
{
    const struct setting *setting = space_setting(space);
    struct closed_form *form = closed_form_create(setting);
    struct plan *plans = memory_new((size_t)space_size(space), sizeof *plans);
    *expected = (struct search_result){.limit_bytes = footprint_capacity(setting->cluster) * (1 - setting->job->memory_margin)};
    for (uint64_t i = 0; i < space_size(space); i++) {
        struct plan *plan = &plans[expected->n_plans];
        plan->index = i;
        space_layout(space, i, &plan->layout);
        enum layout_reason reason = layout_check(&plan->layout, setting, NULL, 0);
        expected->counts.rejected[reason] += reason != LAYOUT_LEGAL;
        if (reason != LAYOUT_LEGAL)
            continue;
        expected->counts.legal++;
        closed_form_estimate(form, &plan->layout, &plan->estimate);
        plan->estimate.memory_bytes = closed_form_memory(form, &plan->layout);
        if (expected->least_bytes <= 0 || plan->estimate.memory_bytes < expected->least_bytes) {
            expected->least_bytes = plan->estimate.memory_bytes;
            expected->least_index = i;
        }
        if (plan->estimate.memory_bytes > expected->limit_bytes)
            continue;
        if (!space_restricts(space, SPACE_RECOMPUTE))
            repeat_fewer(form, setting, plan);
        expected->n_plans++;
    }
    closed_form_destroy(form);
    qsort(plans, (size_t)expected->n_plans, sizeof *plans, by_plan_order);
    return plans;
}

static bool same_family(const struct layout *a, const struct layout *b)
{
    return a->tp == b->tp && a->cp == b->cp && a->pp == b->pp && a->vpp == b->vpp && a->ep == b->ep &&
           a->micro_batch == b->micro_batch;
}

/* Keep the first of each family. */
static int first_of_families(struct plan *plans, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        bool known = false;
        for (int j = 0; j < kept && !known; j++)
            known = same_family(&plans[j].layout, &plans[i].layout);
        if (!known)
            plans[kept++] = plans[i];
    }
    return kept;
}

static void check_against_loop(const struct setting *setting, const char *restrictions, bool variants, int keep)
{
    struct space *space = space_of(setting, restrictions);
    struct search_result expected;
    struct plan *plans = all_plans(space, &expected);
    struct search_result result = search(space, (struct search_options){.keep = keep, .variants = variants, .threads = 1});
    ck_assert_uint_gt(expected.counts.legal, 0);
    ck_assert_uint_eq(result.counts.in_space, space_size(space));
    ck_assert_uint_eq(result.counts.examined + result.counts.ruled_out, space_size(space));
    ck_assert_uint_eq(result.counts.legal, expected.counts.legal);
    ck_assert_uint_eq(result.counts.fit, expected.n_plans);
    ck_assert_mem_eq(result.counts.rejected, expected.counts.rejected, sizeof expected.counts.rejected);
    ck_assert_uint_eq(result.least_index, expected.least_index);
    int n = variants ? expected.n_plans : first_of_families(plans, expected.n_plans);
    ck_assert_int_eq(result.n_plans, n < keep ? n : keep);
    for (int i = 0; i < result.n_plans; i++) {
        ck_assert_uint_eq(result.plans[i].index, plans[i].index);
        ck_assert_mem_eq(&result.plans[i].estimate, &plans[i].estimate, sizeof plans[i].estimate);
    }
    uint64_t over = 0;
    for (int i = 0; i < N_OVERFLOW_CLASSES; i++)
        over += result.counts.over_memory[i];
    ck_assert_uint_eq(over, result.counts.legal - result.counts.fit);
    free(plans);
    search_result_free(&result);
    space_destroy(space);
}

static void dense(struct job_case *c)
{
    dense_case(c, 6, 24, 24);
}

static void gpt_175b(struct job_case *c)
{
    gpt_175b_case(c, 256, 256);
}

static void with_margin(struct job_case *c)
{
    gpt_175b_case(c, 256, 256);
    c->job.memory_margin = 0.25;
}

/* The host's memory is unknown. */
static void with_host(struct job_case *c)
{
    gpt_175b_case(c, 64, 64);
    c->cluster.host_memory = 0;
}

/* A loss that is allowed is a choice: it may cost time, and may be what makes a layout fit. */
static void with_losses(struct job_case *c)
{
    dense_case(c, 6, 8, 16);
    c->job.features |= FEATURE_BIT(FUSED_OPS) | FEATURES_LOSS;
    c->model.vocab = 256000;
    c->cluster.gpu.hbm_bytes = footprint_capacity(&c->cluster);
}

static void with_experts(struct job_case *c)
{
    mixture_case(c, 4, 8, 16, 16);
}

static void with_uneven_experts(struct job_case *c)
{
    mixture_case(c, 4, 8, 16, 16);
    c->job.load.busiest = 2.5;
    expert_load_complete(&c->job.load, 8, 2);
}

/* Most with so little memory that some layouts fit and some do not. */
static const struct {
    void (*job)(struct job_case *c);
    double memory; /* of what the job's GPUs have */
    const char *restrictions;
    bool variants;
    int keep;
} searches[] = {
    {dense, 1, "tp=1..24", false, 20},
    {dense, 1, "tp=1..24", true, 50},
    {dense, 1, "tp=2", true, 100000},
    {gpt_175b, 1, "tp=4,8,pp=4,8,cp=1,2,mb=1,2", false, 10},
    {gpt_175b, 1, "tp=4,8,pp=4,8,cp=1,2,mb=1,2", true, 10},
    {gpt_175b, 0.6, "tp=4,8,pp=4,8,cp=1,2,mb=1,2", false, 100}, /* layers have to be repeated */
    {gpt_175b, 0.6, "tp=4,8,pp=4,8,cp=1,2,mb=1,2", true, 1000},
    {gpt_175b, 0.6, "tp=8,pp=4,8,cp=2,mb=1,offload=optimizer,activations", true, 1000},
    {with_margin, 1, "tp=4,8,pp=4,8,cp=1,2,mb=1,2", false, 10},
    {with_host, 1, "tp=4,8,pp=4,8,cp=1,mb=1,2,offload=auto", true, 10},
    {with_host, 1, "tp=4,8,pp=4,8,cp=1,mb=1,2,offload=auto", false, 10},
    {with_losses, 0.25, NULL, false, 20},
    {with_losses, 0.25, "tp=1,2", true, 100000},
    {with_losses, 0.125, NULL, false, 20},
    {with_losses, 0.125, "tp=1,2", true, 100000},
    {with_losses, 0.0625, NULL, false, 20},
    {with_losses, 0.0625, "tp=1,2", true, 100000},
    {with_experts, 1, NULL, false, 20},
    {with_uneven_experts, 1, NULL, false, 20},
    {with_uneven_experts, 0.25, NULL, true, 100},
};
enum { N_SEARCHES = sizeof searches / sizeof searches[0] };

START_TEST(a_search_finds_what_a_loop_finds)
{
    struct job_case c;
    searches[_i].job(&c);
    c.cluster.gpu.hbm_bytes *= searches[_i].memory;
    check_against_loop(&c.setting, searches[_i].restrictions, searches[_i].variants, searches[_i].keep);
}
END_TEST

START_TEST(three_losses_are_three_times_the_space)
{
    struct job_case c;
    with_losses(&c);
    struct space *chosen = space_of(&c.setting, NULL);
    c.job.features &= ~FEATURES_LINEAR_LOSS;
    struct space *plain = space_of(&c.setting, NULL);
    ck_assert_uint_eq(space_size(chosen), 3 * space_size(plain));
    space_destroy(chosen);
    space_destroy(plain);
}
END_TEST

/* Copies that passes hide cost nothing by the model, and yet what fits without, and is as fast, is not offloaded. */
START_TEST(what_fits_stays)
{
    struct job_case c;
    gpt_175b_case(&c, 64, 64);
    struct space *space = space_of(&c.setting, "tp=4,8,pp=4,8,cp=1,mb=1,2,offload=auto");
    struct search_result result = search(space, (struct search_options){.keep = 20, .threads = 1});
    int offloaded = 0;
    for (int i = 0; i < result.n_plans; i++) {
        struct layout plain = result.plans[i].layout;
        struct footprint memory;
        plain.offload = offload_wholes[0];
        offloaded += !offload_is_none(&result.plans[i].layout.offload);
        footprint_peak(&plain, &c.setting, &memory, NULL);
        struct closed_form *form = closed_form_create(&c.setting);
        struct step_estimate estimate;
        closed_form_estimate(form, &plain, &estimate);
        closed_form_destroy(form);
        ck_assert(offload_is_none(&result.plans[i].layout.offload) || memory.total > result.limit_bytes ||
                  estimate.step_s > result.plans[i].estimate.step_s);
    }
    ck_assert_int_gt(offloaded, 0);
    ck_assert_int_lt(offloaded, result.n_plans);
    search_result_free(&result);
    space_destroy(space);
}
END_TEST

/* Of all shares, in steps of a quarter, a plan has the least that fits or a faster one. */
START_TEST(the_smallest_share_that_fits)
{
    struct job_case c;
    gpt_175b_case(&c, 64, 64);
    struct space *space = space_of(&c.setting, "tp=4,8,pp=4,8,cp=1,mb=1,2,offload=auto:25%");
    struct search_result result = search(space, (struct search_options){.keep = 20, .threads = 1});
    struct closed_form *form = closed_form_create(&c.setting);
    struct offload sets[OFFLOAD_SETS];
    int n, shares = 0;
    ck_assert(offload_sets_of("auto:25%", sets, &n));
    for (int i = 0; i < result.n_plans; i++) {
        const struct plan *plan = &result.plans[i];
        const struct offload *set = &plan->layout.offload;
        shares += !offload_is_none(set) && !offload_equal(set, &offload_wholes[1]) && !offload_equal(set, &offload_wholes[2]);
        for (int s = 0; s < n && offload_number(&sets[s]) < offload_number(set); s++) {
            struct layout less = plan->layout;
            struct step_estimate estimate;
            less.offload = sets[s];
            closed_form_estimate(form, &less, &estimate);
            ck_assert(layout_check(&less, &c.setting, NULL, 0) != LAYOUT_LEGAL || estimate.memory_bytes > result.limit_bytes ||
                      estimate.step_s > plan->estimate.step_s);
        }
    }
    ck_assert_int_gt(shares, 0);
    closed_form_destroy(form);
    search_result_free(&result);
    space_destroy(space);
}
END_TEST

/* A host with room for half of what the least layout needs there. */
START_TEST(the_memory_of_the_host_is_a_limit)
{
    struct job_case c;
    gpt_175b_case(&c, 64, 64);
    c.cluster.host_memory = 0;
    struct space *space = space_of(&c.setting, "tp=8,pp=4,8,mb=1,offload=optimizer");
    struct search_result all = search(space, (struct search_options){.keep = 10, .threads = 1});
    ck_assert_int_gt(all.n_plans, 0);
    struct footprint memory;
    footprint_peak(&all.least, &c.setting, &memory, NULL);
    c.cluster.host_memory = 8 * memory.host / 2;
    struct search_result none = search(space, (struct search_options){.keep = 10, .threads = 1});
    ck_assert_uint_eq(none.counts.fit, 0);
    ck_assert_uint_eq(none.counts.legal, all.counts.legal);
    search_result_free(&all);
    search_result_free(&none);
    space_destroy(space);
}
END_TEST

START_TEST(a_margin_of_memory_stays_free)
{
    struct job_case c;
    gpt_175b_case(&c, 256, 256);
    struct space *space = space_of(&c.setting, "tp=4,8,pp=4,8,cp=1,2,mb=1,2");
    struct search_result all = search(space, (struct search_options){.keep = 10, .threads = 1});
    c.job.memory_margin = 0.25;
    struct search_result fewer = search(space, (struct search_options){.keep = 10, .threads = 1});
    ck_assert_uint_gt(fewer.counts.fit, 0);
    ck_assert_uint_lt(fewer.counts.fit, all.counts.fit);
    ck_assert_double_eq(fewer.limit_bytes, 0.75 * footprint_capacity(&c.cluster));
    search_result_free(&all);
    search_result_free(&fewer);
    space_destroy(space);
}
END_TEST

/* --- however it is divided --- */

START_TEST(results_do_not_depend_on_threads)
{
    struct job_case c;
    gpt_175b_case(&c, 512, 768);
    struct space *space = space_of(&c.setting, "tp=1..16");
    struct search_options options = {.keep = 15, .threads = 1};
    struct search_result alone = search(space, options);
    ck_assert_int_eq(alone.n_plans, 15);
    for (options.threads = 2; options.threads <= 8; options.threads++) {
        struct search_result together = search(space, options);
        check_same_result(&alone, &together);
        search_result_free(&together);
    }
    search_result_free(&alone);
    space_destroy(space);
}
END_TEST

START_TEST(parts_put_together_are_the_whole)
{
    struct job_case c;
    dense_case(&c, 6, 24, 24);
    struct space *space = space_of(&c.setting, NULL);
    struct search_options options = {.keep = 12, .threads = 1};
    struct search_result whole = search(space, options), sum = {0};
    uint32_t n = space_n_families(space);
    const uint32_t cuts[] = {n / 2, n / 2 + 1, n, 0, n / 3, n / 2}; /* out of order: [n/2+1, n), [0, n/3), ... */
    const int order[][2] = {{1, 2}, {3, 4}, {0, 1}, {4, 5}};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        options.first_family = cuts[order[i][0]];
        options.end_family = cuts[order[i][1]];
        struct search_result part = search(space, options);
        search_merge(&sum, &part, &options);
    }
    check_same_result(&whole, &sum);
    search_result_free(&whole);
    search_result_free(&sum);
    space_destroy(space);
}
END_TEST

/* As the ranks of a world do it, each with threads of its own. */
START_TEST(shares_put_together_are_the_whole)
{
    struct job_case c;
    gpt_175b_case(&c, 512, 768);
    struct space *space = space_of(&c.setting, "tp=1..16");
    struct search_result whole = search(space, (struct search_options){.keep = 15, .threads = 2});
    for (uint32_t n = 2; n <= 400; n = 3 * n + 1) { /* also more shares than there are blocks of families */
        struct search_options options = {.keep = 15, .n_shares = n};
        struct search_result sum = {0};
        for (options.share = n; options.share-- > 0;) {
            options.threads = 1 + (int)options.share % 3;
            struct search_result part = search(space, options);
            ck_assert_uint_lt(part.counts.in_space, whole.counts.in_space);
            search_merge(&sum, &part, &options);
        }
        check_same_result(&whole, &sum);
        search_result_free(&sum);
    }
    search_result_free(&whole);
    space_destroy(space);
}
END_TEST

/* --- what must hold --- */

START_TEST(plans_are_legal_fit_and_are_in_order)
{
    struct job_case c;
    gpt_175b_case(&c, 1024, 768);
    struct space *space = space_of(&c.setting, "tp=2..16");
    struct search_result result = search(space, (struct search_options){.keep = 100, .threads = 2});
    ck_assert_int_eq(result.n_plans, 100);
    for (int i = 0; i < result.n_plans; i++) {
        const struct plan *plan = &result.plans[i];
        ck_assert_int_eq(layout_check(&plan->layout, &c.setting, NULL, 0), LAYOUT_LEGAL);
        struct footprint footprint;
        footprint_peak(&plan->layout, &c.setting, &footprint, NULL);
        ck_assert_double_eq_tol(footprint.total, plan->estimate.memory_bytes, 1e-9 * footprint.total);
        ck_assert_double_le(plan->estimate.memory_bytes, result.limit_bytes);
        ck_assert(i == 0 || plan_compare(&result.plans[i - 1], plan) < 0);
        double mfu = plan_mfu(&plan->layout, &c.setting, plan->estimate.step_s);
        ck_assert_double_gt(mfu, 0);
        ck_assert_double_lt(mfu, 1);
    }
    search_result_free(&result);
    space_destroy(space);
}
END_TEST

START_TEST(more_memory_is_never_slower)
{
    struct job_case c;
    gpt_175b_case(&c, 256, 256);
    struct space *space = space_of(&c.setting, "tp=4,8,cp=1,2");
    double best_s = 0;
    uint64_t fit = 0;
    for (double gib = 24; gib <= 200; gib *= 1.2) {
        c.cluster.gpu.hbm_bytes = gib * 1024 * 1024 * 1024;
        struct search_result result = search(space, (struct search_options){.keep = 1, .threads = 2});
        ck_assert_uint_ge(result.counts.fit, fit);
        fit = result.counts.fit;
        if (result.n_plans > 0) {
            ck_assert(best_s <= 0 || result.plans[0].estimate.step_s <= best_s);
            best_s = result.plans[0].estimate.step_s;
        }
        search_result_free(&result);
    }
    ck_assert_double_gt(best_s, 0);
    space_destroy(space);
}
END_TEST

/* The closed form weighs once for layouts that differ in their overlaps only; this is what allows it. */
START_TEST(overlaps_do_not_change_memory)
{
    struct job_case c;
    gpt_175b_case(&c, 512, 768);
    c.job.features |= FEATURE_BIT(ASYNC_TP);
    struct space *space = space_of(&c.setting, "tp=1,8");
    for (uint32_t i = 0; i < space_n_families(space); i += 7) {
        struct space_family family;
        space_family(space, i, &family);
        struct layout layout = family.base;
        if (layout_check(&layout, &c.setting, NULL, 0) != LAYOUT_LEGAL)
            continue;
        struct footprint first, other;
        footprint_peak(&layout, &c.setting, &first, NULL);
        for (int f = 1; f < family.n_features; f++) {
            layout.features = family.features[f];
            footprint_peak(&layout, &c.setting, &other, NULL);
            ck_assert_mem_eq(&other, &first, sizeof first);
        }
    }
    space_destroy(space);
}
END_TEST

struct progress_seen {
    double last, total;
    int calls;
};

static void see_progress(void *context, double done, double total)
{
    struct progress_seen *seen = context;
    ck_assert_double_ge(done, seen->last);
    ck_assert_double_le(done, total);
    seen->last = done;
    seen->total = total;
    seen->calls++;
}

START_TEST(progress_runs_to_the_end)
{
    struct job_case c;
    dense_case(&c, 6, 24, 24);
    struct space *space = space_of(&c.setting, NULL);
    struct progress_seen seen = {0};
    struct search_options options = {.keep = 1, .threads = 1, .progress = see_progress, .progress_context = &seen};
    struct search_result result = search(space, options);
    ck_assert_int_gt(seen.calls, 3);
    ck_assert_double_eq(seen.last, (double)space_size(space));
    ck_assert_double_eq(seen.total, (double)space_size(space));
    search_result_free(&result);
    space_destroy(space);
}
END_TEST

/* --- the shortlist --- */

START_TEST(a_shortlist_keeps_the_best_whatever_the_order)
{
    enum { N = 500, LIMIT = 37 };
    static struct plan plans[N];
    struct random_stream random = random_stream_named(1, 2, (uint64_t)_i);
    for (int i = 0; i < N; i++) {
        plans[i] = (struct plan){.index = (uint64_t)i};
        plans[i].estimate.step_s = 1 + (double)random_below(&random, 40); /* many ties */
        plans[i].estimate.memory_bytes = 1 + (double)random_below(&random, 3);
    }
    for (int i = N - 1; i > 0; i--) {
        int j = (int)random_below(&random, (uint64_t)i + 1);
        struct plan kept = plans[i];
        plans[i] = plans[j], plans[j] = kept;
    }
    struct shortlist list;
    shortlist_init(&list, LIMIT);
    for (int i = 0; i < N; i++)
        if (plans[i].estimate.step_s <= shortlist_slowest(&list))
            shortlist_offer(&list, &plans[i]);
    int n;
    struct plan *best = shortlist_take(&list, &n);
    qsort(plans, N, sizeof plans[0], by_plan_order);
    ck_assert_int_eq(n, LIMIT);
    for (int i = 0; i < n; i++)
        ck_assert_uint_eq(best[i].index, plans[i].index);
    free(best);
}
END_TEST

/* --- the best plans, or why there are none --- */

START_TEST(the_best_plans_are_those_of_the_search)
{
    struct job_case c;
    gpt_175b_case(&c, 512, 768);
    struct diags diags = {0};
    struct search_options options = {.keep = 3, .threads = 2};
    struct search_result best;
    ck_assert_int_eq(plans_best(&c.setting, "tp=8,zero=1", &options, &best, &diags), STATUS_OK);
    const struct layout *layout = &best.plans[0].layout;
    ck_assert_int_eq(layout->tp, 8);
    ck_assert(layout->zero == 1 || layout->dp * layout->cp == 1);
    struct space *space = space_of(&c.setting, "tp=8,zero=1");
    struct search_result result = search(space, (struct search_options){.keep = 3, .threads = 1});
    check_same_result(&best, &result);
    search_result_free(&best);
    ck_assert_int_eq(plans_best(&c.setting, "tq=8", &options, &best, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_eq(diags.n_errors, 1);
    diags_free(&diags);
    search_result_free(&result);
    space_destroy(space);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan search");
    TCase *cases = tcase_create("search");
    suite_add_rounds(cases, a_search_finds_what_a_loop_finds, N_SEARCHES, 0);
    tcase_add_test(cases, three_losses_are_three_times_the_space);
    tcase_add_test(cases, what_fits_stays);
    tcase_add_test(cases, the_smallest_share_that_fits);
    tcase_add_test(cases, the_memory_of_the_host_is_a_limit);
    tcase_add_test(cases, a_margin_of_memory_stays_free);
    tcase_add_test(cases, results_do_not_depend_on_threads);
    tcase_add_test(cases, parts_put_together_are_the_whole);
    tcase_add_test(cases, shares_put_together_are_the_whole);
    tcase_add_test(cases, plans_are_legal_fit_and_are_in_order);
    tcase_add_test(cases, more_memory_is_never_slower);
    tcase_add_test(cases, overlaps_do_not_change_memory);
    tcase_add_test(cases, progress_runs_to_the_end);
    tcase_add_loop_test(cases, a_shortlist_keeps_the_best_whatever_the_order, 0, 20);
    tcase_add_test(cases, the_best_plans_are_those_of_the_search);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
