/*
 * Steps that train adapters, for random layouts: programs are well formed, folding and the order of events change nothing, a
 * higher rank never takes less, and the closed form is near.
 */
#include <check.h>
#include <stdio.h>

#include "model/cost/memory/footprint.h"
#include "tests/sim/step/drawn_layouts.h"
#include "tests/suite.h"

static void adapt(struct job_case *c, int64_t rank, int targets)
{
    c->job.adapter = (struct adapter){.rank = rank, .targets = (uint32_t)targets};
}

enum { ATTENTION = 1 << ADAPT_QKV | 1 << ADAPT_PROJECTION, ALL = (1 << N_ADAPTER_TARGETS) - 1 };

START_TEST(folding_changes_nothing)
{
    static const char *const with[] = {NULL, "zero=3", "zero=0", "schedule=zb-1p", "schedule=zb-v", "schedule=dualpipe"};
    struct job_case c;
    dense_case(&c, 8, 32, 64);
    for (int i = 0; i < 3; i++) {
        adapt(&c, 16, i == 0 ? ALL : i == 1 ? ATTENTION : 1 << ADAPT_MLP_DOWN);
        for (uint64_t j = 0; j < sizeof with / sizeof *with; j++)
            each_layout(&c, (struct drawing){70 + j, 16, with[j]}, check_folding);
    }
    c.model.gated_mlp = true;
    c.model.norm = NORM_RMS;
    each_layout(&c, (struct drawing){80, 30, NULL}, check_folding);
    mixture_case(&c, 8, 8, 32, 64);
    adapt(&c, 8, ATTENTION);
    each_layout(&c, (struct drawing){81, 40, NULL}, check_folding);
    each_layout(&c, (struct drawing){82, 20, "zero=3"}, check_folding);
}
END_TEST

/* Beyond the rounding of each operation. */
static void check_rank(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    double before = 0, bytes = 0;
    (void)draw;
    for (int64_t rank = 8; rank <= 512; rank *= 4) {
        struct footprint f;
        c->job.adapter.rank = rank;
        struct step_result r = simulated(c, layout, (struct step_options){0});
        footprint_peak(layout, &c->setting, &f, NULL);
        ck_assert_double_ge(r.step_time_s, before - 1e-9 * (double)r.events);
        ck_assert_double_gt(f.total, bytes);
        before = r.step_time_s;
        bytes = f.total;
    }
}

START_TEST(a_higher_rank_never_takes_less)
{
    struct job_case c;
    dense_case(&c, 8, 32, 64);
    adapt(&c, 8, ALL);
    each_layout(&c, (struct drawing){90, 80, NULL}, check_rank);
    adapt(&c, 8, ATTENTION);
    each_layout(&c, (struct drawing){91, 80, NULL}, check_rank);
}
END_TEST

/* Replicas exchange so little that on one rank of a model the step is what its passes are; and without a pipeline or tensor
 * parallelism the step is shorter, and needs less memory, than one that trains all weights. */
static void check_cheaper(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    struct footprint adapted, whole;
    const struct adapter adapter = c->job.adapter;
    (void)draw;
    struct step_result thin = simulated(c, layout, (struct step_options){0});
    footprint_peak(layout, &c->setting, &adapted, NULL);
    c->job.adapter = (struct adapter){.rank = 0};
    struct step_result all = simulated(c, layout, (struct step_options){0});
    footprint_peak(layout, &c->setting, &whole, NULL);
    c->job.adapter = adapter;
    ck_assert_double_lt(thin.step_time_s, all.step_time_s);
    ck_assert_double_lt(adapted.total, whole.total);
    ck_assert_double_lt(thin.breakdown.s[CLASS_OPTIMIZER], all.breakdown.s[CLASS_OPTIMIZER]);
}

START_TEST(adapters_cost_less_than_all_weights)
{
    struct job_case c;
    gpt_175b_case(&c, 256, 256);
    adapt(&c, 16, ATTENTION);
    each_layout(&c, (struct drawing){95, 40, "tp=1,dp=256,cp=1,pp=1,vpp=1,ep=1,mb=1,schedule=none,sp=0"}, check_cheaper);
}
END_TEST

static const char *const near[] = {"recompute=none", "recompute=full", "zero=3,pp=1,vpp=1,schedule=none"};
static const struct population_error near_enough = {0.001, 0.006, 0.03};

/* Tables trained beside adapters: on any layout the step is never shorter than without, its optimizer takes longer, and it needs
 * more memory. */
static void check_whole(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    struct footprint frozen, whole;
    (void)draw;
    c->job.adapter.whole = 0;
    struct step_result without = simulated(c, layout, (struct step_options){0});
    footprint_peak(layout, &c->setting, &frozen, NULL);
    c->job.adapter.whole = 1 << WHOLE_EMBEDDING | 1 << WHOLE_HEAD;
    struct step_result with = simulated(c, layout, (struct step_options){0});
    footprint_peak(layout, &c->setting, &whole, NULL);
    ck_assert_double_ge(with.step_time_s, without.step_time_s - 1e-9 * (double)with.events);
    ck_assert_double_gt(with.breakdown.s[CLASS_OPTIMIZER], without.breakdown.s[CLASS_OPTIMIZER]);
    ck_assert_double_gt(whole.total, frozen.total);
}

START_TEST(tables_trained_whole_cost)
{
    static const char *const with[] = {NULL, "zero=3", "zero=0", "schedule=zb-1p", "schedule=zb-v", "schedule=dualpipe"};
    for (int tied = 0; tied < 2; tied++) {
        struct job_case c;
        dense_case(&c, 8, 32, 64);
        c.model.tied_embeddings = tied;
        adapt(&c, 16, ATTENTION);
        for (uint64_t j = 0; j < sizeof with / sizeof *with; j++) {
            each_layout(&c, (struct drawing){120 + j, 12, with[j]}, check_whole);
            each_layout(&c, (struct drawing){130 + j, 12, with[j]}, check_folding);
        }
    }
}
END_TEST

START_TEST(the_closed_form_is_near_with_tables)
{
    struct job_case c;
    gpt_175b_case(&c, 256, 256);
    adapt(&c, 64, ALL);
    c.job.adapter.whole = 1 << WHOLE_EMBEDDING | 1 << WHOLE_HEAD;
    check_closed_form(&c, (struct drawing){140 + (uint64_t)_i, 60, near[_i]}, near_enough);
}
END_TEST

START_TEST(the_closed_form_is_near)
{
    struct job_case c;
    gpt_175b_case(&c, 256, 256);
    adapt(&c, 64, _i % 2 ? ATTENTION : ALL);
    check_closed_form(&c, (struct drawing){100 + (uint64_t)_i, 60, near[_i]}, near_enough);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_adapter");
    TCase *all = tcase_create("all");
    tcase_add_test(all, folding_changes_nothing);
    tcase_add_test(all, a_higher_rank_never_takes_less);
    tcase_add_test(all, adapters_cost_less_than_all_weights);
    tcase_add_test(all, tables_trained_whole_cost);
    tcase_add_loop_test(all, the_closed_form_is_near_with_tables, 0, sizeof near / sizeof *near);
    tcase_add_loop_test(all, the_closed_form_is_near, 0, sizeof near / sizeof *near);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
