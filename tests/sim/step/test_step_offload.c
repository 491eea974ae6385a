/*
 * Steps with something in the host's memory: a step by hand, and for random layouts
 *   - over a link without limit a step takes what it takes with all activations on the GPU, to the rounding of each operation;
 *   - over any link it does not take less, and over a faster one not more;
 *   - folding and the order of events change nothing;
 *   - the closed form is near.
 */
#include <check.h>
#include <stdio.h>

#include "model/cost/memory/footprint.h"
#include "model/cost/work/host_memory.h"
#include "sim/step/dp_overlap_contention.h"
#include "tests/layout/offloaded.h"
#include "tests/sim/step/drawn_layouts.h"
#include "tests/suite.h"

/* What is drawn of cases' hosts: links of 25 GB/s, and memory. */
static void prepare(struct job_case *c)
{
    c->cluster.gpu.pcie_rate = 31.5e9;
    c->cluster.gpu.host_rate = 0;
    c->cluster.host_memory_rate = 400e9;
}

/* The time of a step of `layers` layers, all on the GPU, without its optimizer and without its head. */
static double plain_seconds(struct job_case *c, const struct layout *layout, int layers, double *head)
{
    c->model.layers = layers;
    struct step_result r = simulated(c, layout, (struct step_options){0});
    *head = r.breakdown.s[CLASS_HEAD];
    return r.step_time_s - r.breakdown.s[CLASS_OPTIMIZER];
}

/*
 * One micro-batch, 8 layers of F forward and B backward, copies of C longer than either. Layers 6 and 7 stay. The copies down
 * follow one another from the end of layer 0; with the last of them, of layer 5, begin the copies up, which follow one another
 * too: the head and the backward passes of the layers before are beside them. Layer 0's backward pass waits for the last. So a
 * step is
 *
 *     embedding, F, 12 C, B, embedding.
 */
START_TEST(a_step_by_hand)
{
    struct job_case c;
    double head, unused;
    dense_case(&c, 8, 1, 1);
    prepare(&c);
    c.cluster.gpu.host_rate = 1e9;
    c.job.features |= FEATURE_BIT(CUDA_GRAPHS) | FEATURE_BIT(ASYNC_DATA);
    struct layout layout = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 1, .ep = 1, .micro_batch = 1};
    layout.features = FEATURE_BIT(CUDA_GRAPHS) | FEATURE_BIT(ASYNC_DATA);
    double seven = plain_seconds(&c, &layout, 7, &unused), eight = plain_seconds(&c, &layout, 8, &head);
    layout.offload = offloaded("activations");
    struct step_result offloaded = simulated(&c, &layout, (struct step_options){0});
    double copy = footprint_layer_bytes(&layout, &c.setting, layer_kind_of(c.setting.model, 0)) / (0.8 * 1e9);
    double expected = eight - head - 7 * (eight - seven) + 12 * copy;
    double measured = offloaded.step_time_s - offloaded.breakdown.s[CLASS_OPTIMIZER];
    ck_assert_double_eq_tol(measured, expected, 100e-9);
}
END_TEST

/*
 * The first k of eight layers, with a link over which a copy takes C = F + B. Copies down follow one another from the end of
 * layer 0, and of two both have a buffer: the third layer waits C - F for the first one's. Those up begin behind them, long
 * before they are needed, but for the buffers: the third one, layer 0's, waits for layer 2's backward pass, and layer 0's waits C
 * - B for it. So a step is no longer with one or two, and F + B with three.
 */
START_TEST(a_share_by_hand)
{
    struct job_case c;
    double head, unused, longer[4];
    dense_case(&c, 8, 1, 1);
    prepare(&c);
    c.job.features |= FEATURE_BIT(CUDA_GRAPHS) | FEATURE_BIT(ASYNC_DATA);
    struct layout layout = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 1, .ep = 1, .micro_batch = 1};
    layout.features = FEATURE_BIT(CUDA_GRAPHS) | FEATURE_BIT(ASYNC_DATA);
    double both = -plain_seconds(&c, &layout, 7, &unused), eight = plain_seconds(&c, &layout, 8, &head);
    both += eight;
    c.cluster.gpu.host_rate = footprint_layer_bytes(&layout, &c.setting, layer_kind_of(c.setting.model, 0)) / both / 0.8;
    for (int k = 1; k <= 3; k++) {
        layout.offload = (struct offload){.of = {[OFFLOAD_ACTIVATIONS] = {.layers = (int16_t)k}}};
        struct step_result number = simulated(&c, &layout, (struct step_options){0});
        layout.offload = (struct offload){.of = {[OFFLOAD_ACTIVATIONS] = {.percent = (int16_t)(k * 100 / 8)}}}; /* rounded up */
        ck_assert_int_eq(simulated(&c, &layout, (struct step_options){0}).step, number.step);
        longer[k] = number.step_time_s - number.breakdown.s[CLASS_OPTIMIZER] - eight;
    }
    ck_assert_double_eq_tol(longer[1], 0, 100e-9);
    ck_assert_double_eq_tol(longer[2], 0, 100e-9);
    ck_assert_double_eq_tol(longer[3], both, 100e-9);
}
END_TEST

static void check_links(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    (void)draw;
    struct layout plain = *layout;
    plain.offload.of[OFFLOAD_ACTIVATIONS].percent = 0;
    double before = 0, rates[] = {1e9, 1e11, 1e30};
    struct step_result here = simulated(c, &plain, (struct step_options){0});
    for (int i = 0; i < 3; i++) {
        c->cluster.gpu.host_rate = rates[i];
        if (layout_offloads(layout, OFFLOAD_OPTIMIZER))
            here = simulated(c, &plain, (struct step_options){0});
        struct step_result there = simulated(c, layout, (struct step_options){0});
        double rounding = 1e-9 * (double)(here.events + there.events);
        if (has_dp_overlap_contention(layout)) /* passes in parts lose a little more or less beside exchanges */
            rounding += 1e-3 * here.step_time_s;
        ck_assert_double_ge(there.step_time_s, here.step_time_s - rounding);
        ck_assert(i == 0 || there.step_time_s <= before + rounding);
        if (i == 2)
            ck_assert_double_le(there.step_time_s, here.step_time_s + rounding);
        before = there.step_time_s;
    }
    c->cluster.gpu.host_rate = 0;
}

START_TEST(links_only_cost)
{
    struct job_case c;
    dense_case(&c, 8, 32, 64);
    prepare(&c);
    each_layout(&c, (struct drawing){41, 100, "offload=activations"}, check_links);
    each_layout(&c, (struct drawing){42, 50, "offload=activations+optimizer"}, check_links);
    mixture_case(&c, 8, 8, 32, 64);
    prepare(&c);
    each_layout(&c, (struct drawing){43, 50, "offload=activations"}, check_links);
}
END_TEST

START_TEST(folding_changes_nothing)
{
    struct job_case c;
    dense_case(&c, 8, 32, 64);
    prepare(&c);
    for (int i = 1; i < N_OFFLOAD_WHOLES; i++) {
        char what[OFFLOAD_TEXT], with[OFFLOAD_TEXT + 8];
        snprintf(with, sizeof with, "offload=%s", offload_format(&offload_wholes[i], what, sizeof what));
        each_layout(&c, (struct drawing){50 + (uint64_t)i, 40, with}, check_folding);
    }
    each_layout(&c, (struct drawing){58, 40, "offload=optimizer:30%+activations:50%"}, check_folding);
    mixture_case(&c, 8, 8, 32, 64);
    prepare(&c);
    each_layout(&c, (struct drawing){54, 40, "offload=activations+optimizer"}, check_folding);
}
END_TEST

static const char *const near[] = {"offload=none",
                                   "offload=optimizer",
                                   "offload=activations",
                                   "offload=optimizer+activations",
                                   "offload=optimizer:50%",
                                   "offload=activations:50%",
                                   "offload=optimizer:25%+activations:75%",
                                   "offload=optimizer+parameters",
                                   "offload=optimizer+activations+parameters"};
static const struct population_error near_enough = {0.003, 0.02, 0.05};

START_TEST(the_closed_form_is_near)
{
    struct job_case c;
    gpt_175b_case(&c, 256, 256);
    prepare(&c);
    check_closed_form(&c, (struct drawing){60 + (uint64_t)_i, 60, near[_i]}, near_enough);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_offload");
    TCase *all = tcase_create("all");
    tcase_add_test(all, a_step_by_hand);
    tcase_add_test(all, a_share_by_hand);
    tcase_add_test(all, links_only_cost);
    tcase_add_test(all, folding_changes_nothing);
    tcase_add_loop_test(all, the_closed_form_is_near, 0, sizeof near / sizeof *near);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
