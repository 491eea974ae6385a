/*
 * What a search skips, it could have asked: bounds hold for whole spaces, with everything that only restrictions name, and what
 * is kept from one layout to the next is what each gives by itself.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "model/cost/memory/footprint.h"
#include "model/cost/step/closed_form.h"
#include "tests/plan/population.h"
#include "tests/suite.h"

/* Every schedule, and ways to repeat and to offload. */
#define WIDE                                                                                                                     \
    "schedule=none,gpipe,1f1b,interleaved,zb-1p,zb-2p,zb-v,dualpipe,dualpipe-v,recompute=none,selective,full,full:1,full:2,"     \
    "full:every2,full:groups2,layernorm,offload=auto:50%,shard=0,2,8"

/* Every sharding with states in the host's memory. */
#define OFFLOADED "offload=optimizer,optimizer:50%,zero=0,1,2,3,shard=0,2"

/* Where documents are masked passes differ, not what is exchanged or kept. */
#define NARROW "zero=1,schedule=none,1f1b,recompute=none,full"

/* About this many layouts of a space. */
enum { ASKED = 20000 };

/* `apart` is asked for bounds only, so that it never knows more than they need. */
struct asked {
    struct closed_form *form, *apart;
    const struct setting *setting;
    int n; /* asked so far */
};
static const struct job adam = {.optimizer = OPTIMIZER_ADAM}, muon = {.optimizer = OPTIMIZER_MUON},
                        layer_wise = {.optimizer = OPTIMIZER_MUON, .muon_shard = MUON_LAYER_WISE},
                        uneven = {.optimizer = OPTIMIZER_ADAM, .load = {.busiest = 1.7}},
                        masked = {.optimizer = OPTIMIZER_ADAM, .documents = {1200, 1.1}};
typedef void question(struct asked *of, const struct layout *layout);

/* In steps without a common divisor with the number of layouts of a family, so that all dimensions change. `restrictions` may be
 * NULL; of the job the optimizer, the load of experts and documents. */
static int ask_of_many(const struct population_job *job, const char *restrictions, struct job how, question *ask)
{
    struct job_case c;
    struct space_limits limits = {0};
    struct space *space;
    struct diags diags = {0};
    int n = 0;
    ck_assert(population_case(job, &c));
    c.job.optimizer = how.optimizer;
    c.job.muon_shard = how.muon_shard;
    if (c.model.moe.experts) {
        c.job.load = how.load;
        expert_load_complete(&c.job.load, c.model.moe.experts, c.model.moe.top_k);
    }
    c.job.documents = how.documents;
    ck_assert_int_eq(space_restrict(&limits, restrictions ? restrictions : "zero=0,1,2,3", PLACE_NONE, &diags), STATUS_OK);
    ck_assert_int_eq(space_create(&c.setting, &limits, &space, &diags), STATUS_OK);
    struct asked of = {closed_form_create(&c.setting), closed_form_create(&c.setting), &c.setting, 0};
    uint64_t step = space_size(space) / (uint64_t)suite_draws(ASKED, 5) | 1;
    for (uint64_t i = 0; i < space_size(space); i += step) {
        struct layout layout;
        space_layout(space, i, &layout);
        if (layout_check(&layout, &c.setting, NULL, 0) != LAYOUT_LEGAL)
            continue;
        ask(&of, &layout);
        n++;
    }
    closed_form_destroy(of.form);
    closed_form_destroy(of.apart);
    space_destroy(space);
    diags_free(&diags);
    return n;
}

/* What a form was asked before changes nothing. */
static void ask_for_estimate(struct asked *of, const struct layout *layout)
{
    char text[LAYOUT_TEXT];
    struct step_estimate kept, alone;
    closed_form_estimate(of->form, layout, &kept);
    if (of->n++ % 16)
        return;
    struct closed_form *fresh = closed_form_create(of->setting);
    closed_form_estimate(fresh, layout, &alone);
    closed_form_destroy(fresh);
    ck_assert_msg(!(kept.step_s < alone.step_s) && !(kept.step_s > alone.step_s), "%s: %.17g, alone %.17g",
                  layout_format(layout, text, sizeof text), kept.step_s, alone.step_s);
}

START_TEST(what_is_kept_is_what_each_takes)
{
    ck_assert_int_gt(ask_of_many(&population_jobs[_i], WIDE, adam, ask_for_estimate), 100 / THINNED);
    ck_assert_int_gt(ask_of_many(&population_jobs[_i], OFFLOADED, adam, ask_for_estimate), 100 / THINNED);
    ck_assert_int_gt(ask_of_many(&population_jobs[_i], NARROW, masked, ask_for_estimate), 100 / THINNED);
}
END_TEST

/* Asked before anything of the layout is known, and after. */
static void ask_for_bound(struct asked *of, const struct layout *layout)
{
    char text[LAYOUT_TEXT];
    struct step_estimate all, within;
    double apart = closed_form_at_least(of->apart, layout), before = closed_form_at_least(of->form, layout);
    closed_form_estimate(of->form, layout, &all);
    double after = closed_form_at_least(of->form, layout);
    ck_assert_msg(apart <= all.step_s && before <= all.step_s && after <= all.step_s,
                  "%s: at least %.9g, %.9g, then %.9g, and takes %.9g", layout_format(layout, text, sizeof text), apart, before,
                  after, all.step_s);
    ck_assert(closed_form_within(of->form, layout, all.step_s, &within));
    ck_assert(!(within.step_s < all.step_s) && !(within.step_s > all.step_s));
    ck_assert(!closed_form_within(of->form, layout, all.step_s * (1 - 1e-6), &within));
    struct layout plainer = *layout;
    plainer.features &= ~CLOSED_FORM_BOUND_IGNORES;
    double plain = closed_form_at_least(of->form, &plainer);
    ck_assert(!(plain < after) && !(plain > after));
}

START_TEST(no_step_is_shorter_than_its_bound)
{
    ck_assert_int_gt(ask_of_many(&population_jobs[_i], WIDE, adam, ask_for_bound), 100 / THINNED);
    ck_assert_int_gt(ask_of_many(&population_jobs[_i], NULL, muon, ask_for_bound), 100 / THINNED);
    ck_assert_int_gt(ask_of_many(&population_jobs[_i], NULL, uneven, ask_for_bound), 100 / THINNED);
    ck_assert_int_gt(ask_of_many(&population_jobs[_i], NULL, layer_wise, ask_for_bound), 50);
    ck_assert_int_gt(ask_of_many(&population_jobs[_i], NARROW, masked, ask_for_bound), 100 / THINNED);
}
END_TEST

static void ask_for_memory(struct asked *of, const struct layout *layout)
{
    char text[LAYOUT_TEXT];
    struct footprint alone;
    footprint_peak(layout, of->setting, &alone, NULL);
    double bytes = closed_form_memory(of->form, layout), host = closed_form_host_memory(of->form, layout);
    ck_assert_msg(!(bytes < alone.total) && !(bytes > alone.total) && !(host < alone.host) && !(host > alone.host),
                  "%s: %.17g and %.17g, alone %.17g and %.17g", layout_format(layout, text, sizeof text), bytes, host,
                  alone.total, alone.host);
}

START_TEST(what_is_kept_is_what_each_needs)
{
    ck_assert_int_gt(ask_of_many(&population_jobs[_i], WIDE, adam, ask_for_memory), 100 / THINNED);
    ck_assert_int_gt(ask_of_many(&population_jobs[_i], NULL, muon, ask_for_memory), 100 / THINNED);
    ck_assert_int_gt(ask_of_many(&population_jobs[_i], NULL, uneven, ask_for_memory), 100 / THINNED);
    ck_assert_int_gt(ask_of_many(&population_jobs[_i], NULL, layer_wise, ask_for_memory), 50);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bounds");
    TCase *cases = tcase_create("spaces");
    tcase_add_loop_test(cases, no_step_is_shorter_than_its_bound, 0, population_n_jobs);
    tcase_add_loop_test(cases, what_is_kept_is_what_each_needs, 0, population_n_jobs);
    tcase_add_loop_test(cases, what_is_kept_is_what_each_takes, 0, population_n_jobs);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
