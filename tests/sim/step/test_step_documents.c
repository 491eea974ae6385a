/*
 * Steps whose attention is masked between documents, for random layouts: folding and the order of events change nothing, the
 * closed form is near, memory is that of whole sequences; and steps that draw their documents wait for the longest.
 */
#include <check.h>
#include <math.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/step/packing.h"
#include "sim/step/step_replicas.h"
#include "tests/sim/step/drawn_layouts.h"
#include "tests/suite.h"

static const struct documents TYPICAL = {1200, 1.1};

START_TEST(folding_changes_nothing)
{
    static const char *const with[] = {NULL, "zero=3", "schedule=zb-1p", "schedule=zb-v", "schedule=dualpipe"};
    struct job_case c;
    dense_case(&c, 8, 32, 64);
    c.job.documents = TYPICAL;
    for (uint64_t i = 0; i < sizeof with / sizeof *with; i++)
        each_layout(&c, (struct drawing){170 + i, 16, with[i]}, check_folding);
    c.model.window = 512;
    c.model.window_every = 2;
    each_layout(&c, (struct drawing){176, 24, NULL}, check_folding);
}
END_TEST

/* Shorter than with whole sequences where attention is fused (not always in a ring, whose first step then has all the work that
 * hid the exchanges of others), the same where it is not; and as much memory. */
static void check_shorter(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    struct footprint masked, whole;
    (void)draw;
    struct step_result packed = simulated(c, layout, (struct step_options){0});
    footprint_peak(layout, &c->setting, &masked, NULL);
    c->job.documents = (struct documents){0};
    struct step_result all = simulated(c, layout, (struct step_options){0});
    footprint_peak(layout, &c->setting, &whole, NULL);
    c->job.documents = TYPICAL;
    ck_assert_double_eq(masked.total, whole.total);
    double counted = all.mfu * all.step_time_s;
    ck_assert_double_eq_tol(packed.mfu * packed.step_time_s, counted, 1e-12 * counted); /* what MFU counts stays */
    if (layout->features & FEATURES_FLASH) {
        ck_assert_int_lt(packed.step, all.step);
        ck_assert_double_lt(packed.hfu_causal * packed.step_time_s, all.hfu_causal * all.step_time_s);
    } else {
        ck_assert_int_eq(packed.step, all.step);
    }
}

START_TEST(documents_cost_less_than_sequences)
{
    struct job_case c;
    dense_case(&c, 8, 32, 64);
    c.job.seq_len = 8192;
    c.model.max_seq_len = 8192;
    c.job.documents = TYPICAL;
    each_layout(&c, (struct drawing){180, 60, "cp=1"}, check_shorter);
    c.job.features &= ~FEATURES_FLASH;
    each_layout(&c, (struct drawing){181, 20, NULL}, check_shorter);
}
END_TEST

/* Whole sequences in the same layouts: 0.03, 1.1 and 3.9 % without recomputation, and otherwise as here. */
static const struct {
    const char *with;
    struct population_error most;
} near[] = {{"recompute=none", {0.001, 0.011, 0.039}},
            {"recompute=full", {0.001, 0.008, 0.03}},
            {"zero=3,pp=1,vpp=1,schedule=none", {0.001, 0.006, 0.03}}};

START_TEST(the_closed_form_is_near)
{
    struct job_case c;
    gpt_175b_case(&c, 256, 256);
    c.job.documents = TYPICAL;
    check_closed_form(&c, (struct drawing){100 + (uint64_t)_i, 60, near[_i].with}, near[_i].most);
}
END_TEST

/* --- draws --- */

enum { STEPS = 60 };

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

static struct pipelines *created(const struct layout *layout, const struct job_case *c)
{
    struct pipelines *pipelines;
    struct diags diags = {0};
    ck_assert_int_eq(pipelines_create(layout, &c->setting, 0, false, &pipelines, &diags), STATUS_OK);
    return pipelines;
}

static nanos timed(const struct pipelines *pipelines, const double *draws)
{
    struct diags diags = {0};
    double *z = memory_new((size_t)pipelines_teams(pipelines), sizeof *z);
    nanos step;
    ck_assert_int_eq(pipelines_time(pipelines, z, draws, &step, &diags), STATUS_OK);
    free(z);
    return step;
}

/* Of eight micro-batches a replica with dp = 16, on hosts that need no time (a pass that waits for its launches has attention to
 * spare). */
static void packed_case(struct job_case *c)
{
    dense_case(c, 8, 32, 128);
    c->cluster.gpu.clock_spread = c->cluster.gpu.host_launch_s = 0;
    c->job.seq_len = 8192;
    c->model.max_seq_len = 8192;
    c->job.documents = TYPICAL;
}

/* All with the mean: the step as it is simulated. Of one stage the step is longer by what the fullest replica's micro-batches
 * have more, whichever they are (but the last, beside
 * which gradients are exchanged); what all others have changes nothing. */
START_TEST(the_fullest_replica_decides)
{
    struct job_case c;
    packed_case(&c);
    struct layout layout = laid_out("tp=2,pp=1,mb=1,zero=0", &c);
    struct pipelines *pipelines = created(&layout, &c);
    size_t n = pipelines_draws(pipelines), each = n / (size_t)layout.dp;
    double *draws = memory_new(n, sizeof *draws);
    ck_assert_uint_eq(n, (size_t)c.job.global_batch);
    nanos mean = timed(pipelines, draws);
    ck_assert_int_eq(mean, simulated(&c, &layout, (struct step_options){0}).step);
    draws[0] = 1;
    nanos one = timed(pipelines, draws) - mean;
    ck_assert_int_gt(one, 0);
    draws[each] = 0.5; /* another replica's first */
    ck_assert_int_eq(timed(pipelines, draws) - mean, one);
    draws[1] = 1;
    ck_assert_double_eq_tol((double)(timed(pipelines, draws) - mean), 2 * (double)one, 1e-6 * (double)mean);
    draws[0] = draws[1] = -0.25;
    nanos others = timed(pipelines, draws) - mean;
    ck_assert_double_eq_tol((double)others, 0.5 * (double)one, 1e-6 * (double)mean);
    free(draws);
    pipelines_destroy(pipelines);
}
END_TEST

/* In a pipeline a stage with more work never makes a step shorter, and no step is shorter than all with the least. */
START_TEST(pipelines_wait_for_long_documents)
{
    static const char *const texts[] = {"tp=2,pp=4,mb=1", "tp=2,pp=4,vpp=2,mb=1", "tp=1,pp=2,mb=2,schedule=zb-1p"};
    struct job_case c;
    packed_case(&c);
    struct layout layout = laid_out(texts[_i], &c);
    struct pipelines *pipelines = created(&layout, &c);
    size_t n = pipelines_draws(pipelines);
    double *draws = memory_new(n, sizeof *draws);
    nanos mean = timed(pipelines, draws), before = mean;
    for (size_t i = 0; i < n; i += 3) {
        draws[i] = 0.5 + (double)(i % 5);
        nanos step = timed(pipelines, draws);
        ck_assert_int_ge(step, before);
        before = step;
    }
    ck_assert_int_gt(before, mean);
    for (size_t i = 0; i < n; i++)
        draws[i] = -0.5;
    ck_assert_int_lt(timed(pipelines, draws), mean);
    free(draws);
    pipelines_destroy(pipelines);
}
END_TEST

static void drawn(const struct job_case *c, const struct layout *layout, uint64_t seed, int threads,
                  struct step_outcome outcomes[STEPS])
{
    struct pipelines *pipelines = created(layout, c);
    struct diags diags = {0};
    const struct packing packing = packing_of(&c->setting, layout->features);
    const struct step_replicas_request request = {.pipelines = pipelines,
                                                  .gpus = c->setting.gpus,
                                                  .packing = &packing,
                                                  .sequences = layout->micro_batch,
                                                  .seed = seed,
                                                  .n = STEPS,
                                                  .threads = threads};
    memset(outcomes, 0, STEPS * sizeof *outcomes);
    ck_assert_int_eq(step_replicas_run(&request, outcomes, &diags), STATUS_OK);
    pipelines_destroy(pipelines);
}

/* What steps of one stage take longer on average is what the report says: what the expected maximum of normals makes of its
 * passes, to three standard errors of the draws and a fifth for sums of few sequences, which are not normal. */
START_TEST(the_mean_is_what_is_reported)
{
    struct job_case c;
    struct step_outcome one[STEPS], three[STEPS];
    double mean = 0, square = 0;
    packed_case(&c);
    c.job.global_batch = 256;
    struct layout layout = laid_out("tp=2,pp=1,mb=1,zero=0,recompute=none", &c);
    drawn(&c, &layout, 9, 1, one);
    drawn(&c, &layout, 9, 3, three);
    ck_assert_mem_eq(one, three, sizeof one);
    const struct packing packing = packing_of(&c.setting, layout.features);
    struct step_result alike = simulated(&c, &layout, (struct step_options){0});
    double wait = packing_longer_s(&layout, &c.setting, packing_slowest(&packing, layout.dp, 256.0 / layout.dp));
    for (int i = 0; i < STEPS; i++)
        mean += nanos_to_seconds(one[i].step) / STEPS;
    for (int i = 0; i < STEPS; i++)
        square += pow(nanos_to_seconds(one[i].step) - mean, 2) / (STEPS - 1);
    ck_assert_double_gt(wait, 0);
    ck_assert_double_eq_tol(mean - alike.step_time_s, wait, 3 * sqrt(square / STEPS) + 0.2 * wait);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_documents");
    TCase *all = tcase_create("all");
    tcase_add_test(all, folding_changes_nothing);
    tcase_add_test(all, documents_cost_less_than_sequences);
    tcase_add_loop_test(all, the_closed_form_is_near, 0, sizeof near / sizeof *near);
    tcase_add_test(all, the_fullest_replica_decides);
    tcase_add_loop_test(all, pipelines_wait_for_long_documents, 0, 3);
    tcase_add_test(all, the_mean_is_what_is_reported);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
