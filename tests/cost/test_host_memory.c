/* What the host keeps: bytes by hand, the link and the host's update against published numbers, and what holds whatever the
 * layout. */
#include <math.h>

#include "model/cost/kernel/machine.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/step/closed_form.h"
#include "model/cost/work/host_memory.h"
#include "shapes.h"
#include "tests/layout/offloaded.h"

#define GB 1e9

/* DGX A100: pairs of GPUs share the lanes between a switch and its CPU, where both are at work. */
START_TEST(links_are_shared_where_lanes_are)
{
    struct shape s;
    shape_megascale(&s);
    struct cluster *c = &s.cluster;
    struct layout alone = {.tp = 1, .cp = 1, .pp = 1, .dp = 1};
    double lanes = 0.8 * c->gpu.pcie_rate;
    ck_assert_double_eq_tol(host_link_rate(c, &alone), lanes, 1);
    ck_assert_double_eq_tol(host_link_rate(c, &s.layout), lanes / 2, 1);
    c->pcie_switches = 8;
    ck_assert_double_eq_tol(host_link_rate(c, &s.layout), lanes, 1);
    c->pcie_root_rate = 10 * GB;
    ck_assert_double_eq_tol(host_link_rate(c, &s.layout), 0.8 * 10 * GB, 1);
    c->gpu.host_rate = 450 * GB;
    ck_assert_double_eq_tol(host_link_rate(c, &s.layout), 0.8 * 450 * GB, 1);
}
END_TEST

/* ZeRO-Offload (arXiv:2101.06840), table 4: CPU-Adam on two Xeon Platinum 8168, seconds by billions of parameters. */
static const struct {
    double parameters, seconds;
} cpu_adam[] = {{1e9, 0.22}, {2e9, 0.51}, {4e9, 1.03}, {8e9, 2.41}, {10e9, 2.57}};

START_TEST(an_update_takes_what_was_measured)
{
    struct shape s;
    shape_megascale(&s);
    s.cluster.host_memory_rate = 256 * GB;
    struct layout alone = {.tp = 1, .cp = 1, .pp = 1, .dp = 1};
    struct machine machine = {.cluster = &s.cluster, .layout = &alone, .job = &s.job, .pace = 1};
    struct work_table table = {0};
    double parameters = cpu_adam[_i].parameters;
    double seconds = cost_seconds(work_cost(&machine, &table, work_add_host_update(&table, &s.setting, parameters)));
    ck_assert_double_eq_tol(seconds, parameters * 30 / (0.46 * 256 * GB), 1e-9);
    ck_assert_double_eq_tol(seconds / cpu_adam[_i].seconds, 1, 0.17);
    work_table_free(&table);
}
END_TEST

/* The ranks of a node share what its memory has and gives. */
START_TEST(ranks_of_a_node_share_its_memory)
{
    struct shape s;
    shape_megascale(&s);
    struct layout two = {.tp = 2, .cp = 1, .pp = 1, .dp = 1};
    s.cluster.host_memory = 2000 * GB, s.cluster.host_memory_rate = 400 * GB;
    ck_assert_double_eq(host_capacity(&s.cluster, &s.layout), 250 * GB);
    ck_assert_double_eq(host_capacity(&s.cluster, &two), 1000 * GB);
    ck_assert_double_eq_tol(host_update_rate(&s.cluster, &s.layout), 0.46 * 50 * GB, 1);
    ck_assert_double_eq_tol(host_update_rate(&s.cluster, &two), 0.46 * 200 * GB, 1);
    s.cluster.host_memory = s.cluster.host_memory_rate = 0;
    ck_assert_double_eq(host_capacity(&s.cluster, &s.layout), 0);
    ck_assert_double_eq_tol(host_update_rate(&s.cluster, &s.layout), 0.46 * 51.2 * GB, 1);
}
END_TEST

/* 12 bytes a parameter of a rank's share leave the GPU; the host has them, the gradient in fp32 and the weight that goes up. */
START_TEST(optimizer_states_move_to_the_host)
{
    struct shape s;
    shape_megascale(&s);
    struct footprint here, there;
    for (s.layout.zero = 0; s.layout.zero <= 1; s.layout.zero++) {
        double share = s.layout.zero ? 4 : 1;
        s.layout.offload = offloaded("none");
        footprint_of_stage(&s.layout, &s.setting, 1, &here);
        s.layout.offload = offloaded("optimizer");
        footprint_of_stage(&s.layout, &s.setting, 1, &there);
        double parameters = here.weights / 2;
        ck_assert_double_eq(here.host, 0);
        ck_assert_double_eq(there.optimizer, 0);
        ck_assert_double_eq_tol(here.total - there.total, 12 * parameters / share, 1);
        ck_assert_double_eq_tol(there.host, 18 * parameters / share, 1);
        ck_assert_double_eq(host_update_bytes(&s.job), 2 * 12 + 4 + 2); /* states read and written, gradient, weight */
        s.job.moment_precision = PRECISION_BF16;                        /* 4 bytes less */
        footprint_of_stage(&s.layout, &s.setting, 1, &there);
        ck_assert_double_eq_tol(there.host, 14 * parameters / share, 1);
        ck_assert_double_eq(host_update_bytes(&s.job), 2 * 8 + 4 + 2);
        s.job.moment_precision = PRECISION_FP32;
        ck_assert_double_eq(there.gradients, here.gradients); /* until the step ends: a pipeline adds them up */
    }
}
END_TEST

/* Weights of fp32 training are as wide on their way up as on the GPU. */
START_TEST(weights_in_fp32_keep_their_width)
{
    struct shape s;
    shape_gpt(&s, 24, 2048, 16, 1, 1, 1, 1);
    s.layout.dp = 8, s.setting.gpus = 8, s.layout.zero = 3, s.layout.schedule = SCHEDULE_NONE;
    s.job.gradient_precision = PRECISION_FP32;
    struct footprint here, there;
    for (int wide = 0; wide < 2; wide++) {
        s.job.precision = wide ? PRECISION_FP32 : PRECISION_BF16;
        s.layout.offload = offloaded("none");
        footprint_of_stage(&s.layout, &s.setting, 0, &here);
        s.layout.offload = offloaded("optimizer+parameters");
        footprint_of_stage(&s.layout, &s.setting, 0, &there);
        double own = here.optimizer / 12, unit = there.weights / FETCHED_UNITS / (wide ? 4 : 2);
        struct stage_parameters end = work_stage_parameters(&s.layout, &s.setting, (struct layer_range){23, 1}, true, false);
        ck_assert_double_eq_tol(there.host, own * (wide ? 16 : 18), 1); /* in fp32 the master weights come up */
        ck_assert_double_eq_tol(unit, work_own_parameters(&s.layout, end), 1);
    }
}
END_TEST

/* Without a pipeline gradients leave layer by layer; three units of them have room. */
START_TEST(gradients_move_to_the_host)
{
    struct shape s;
    shape_gpt(&s, 50, 4096, 32, 1, 1, 1, 10);
    s.setting.gpus = 1;
    s.layout.dp = 1, s.layout.schedule = SCHEDULE_NONE, s.layout.offload = offloaded("optimizer");
    s.job.gradient_precision = PRECISION_FP16;
    struct footprint f;
    footprint_of_stage(&s.layout, &s.setting, 0, &f);
    struct stage_parameters layer = work_stage_parameters(&s.layout, &s.setting, (struct layer_range){0, 1}, true, false);
    ck_assert_double_eq_tol(f.gradients, 3 * 2 * layer.dense, 1);
    s.layout.dp = 8, s.setting.gpus = 8, s.layout.zero = 1; /* replicas that do not shard them add them up */
    footprint_of_stage(&s.layout, &s.setting, 0, &f);
    ck_assert_double_eq(f.gradients, f.weights);
    s.layout.zero = 2;
    footprint_of_stage(&s.layout, &s.setting, 0, &f);
    ck_assert_double_eq_tol(f.gradients, fmin(3 * 2 * layer.dense, f.weights / 8), 1);
}
END_TEST

/* Four layers' worth stays: two that leave, two that arrive. */
START_TEST(activations_move_to_the_host)
{
    struct shape s;
    shape_gpt(&s, 24, 2048, 16, 2, 4, 1, 1);
    s.layout.schedule = SCHEDULE_1F1B;
    s.job.global_batch = 64;
    s.layout.features = FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(FLASH_ATTENTION2); /* an allocator that wastes nothing */
    double layer = footprint_layer_bytes(&s.layout, &s.setting, layer_kind_of(s.setting.model, 0));
    for (int stage = 0; stage < 4; stage++) {
        struct footprint here, there;
        s.layout.offload = offloaded("none");
        footprint_of_stage(&s.layout, &s.setting, stage, &here);
        s.layout.offload = offloaded("activations");
        footprint_of_stage(&s.layout, &s.setting, stage, &there);
        double kept = 6 * layer * (4 - stage);
        ck_assert_double_eq_tol(there.host, kept - 4 * layer, 1);
        ck_assert_double_eq_tol(here.total - there.total, kept - 4 * layer, 1);
    }
}
END_TEST

/* A part of each: 40 % of the states; of six layers a stage the first two, less four layers' worth, and then those micro-batches
 * in flight that make it more. */
START_TEST(parts_move_to_the_host)
{
    struct shape s;
    shape_gpt(&s, 24, 2048, 16, 2, 4, 1, 1);
    s.layout.schedule = SCHEDULE_1F1B;
    s.job.global_batch = 64;
    s.layout.features = FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(FLASH_ATTENTION2);
    double layer = footprint_layer_bytes(&s.layout, &s.setting, layer_kind_of(s.setting.model, 0));
    for (int stage = 0; stage < 4; stage++) {
        struct footprint here, states, kept;
        s.layout.offload = offloaded("none");
        footprint_of_stage(&s.layout, &s.setting, stage, &here);
        s.layout.offload = offloaded("optimizer:40%");
        footprint_of_stage(&s.layout, &s.setting, stage, &states);
        s.layout.offload = offloaded(stage % 2 ? "activations:33%" : "activations:2");
        footprint_of_stage(&s.layout, &s.setting, stage, &kept);
        double left = fmax(0, 2 * layer * (4 - stage) - 4 * layer);
        ck_assert_double_eq_tol(kept.host, left, 1);
        ck_assert_double_eq_tol(here.total - kept.total, left, 1);
        ck_assert_double_eq_tol(here.total - states.total, 0.4 * here.optimizer, 1);
        ck_assert_double_eq_tol(states.host, 0.4 * here.optimizer / 12 * 18, 1);
    }
}
END_TEST

/* ZeRO-3 with its weights there: of a rank's share two layers' are here, each divided among the replicas (the larger with a
 * table); the host has what comes for a gather as it has what comes after an update. */
START_TEST(parameters_move_to_the_host)
{
    struct shape s;
    shape_gpt(&s, 50, 4096, 32, 1, 1, 1, 1);
    s.setting.gpus = 8;
    s.layout.dp = 8, s.layout.schedule = SCHEDULE_NONE, s.layout.zero = 3;
    struct footprint here, states, all, half;
    footprint_of_stage(&s.layout, &s.setting, 0, &here);
    s.layout.offload = offloaded("optimizer");
    footprint_of_stage(&s.layout, &s.setting, 0, &states);
    s.layout.offload = offloaded("optimizer+parameters");
    footprint_of_stage(&s.layout, &s.setting, 0, &all);
    s.layout.offload = offloaded("optimizer+parameters:50%");
    footprint_of_stage(&s.layout, &s.setting, 0, &half);
    struct stage_parameters unit = work_stage_parameters(&s.layout, &s.setting, (struct layer_range){49, 1}, true, false);
    double two = 2 * 2 * unit.dense / 8;
    ck_assert_double_eq(states.weights, here.weights);
    ck_assert_double_lt(two, here.weights);
    ck_assert_double_eq_tol(all.weights, two, 1);
    ck_assert_double_eq_tol(half.weights, (here.weights + two) / 2, 1);
    ck_assert_double_eq_tol(all.host, states.host, 1);
    ck_assert_double_eq_tol(half.host, states.host, 1);
    ck_assert_double_eq_tol(states.host, here.weights / 2 * 18, 1);
    ck_assert_double_eq_tol(states.total - all.total, here.weights - two, 1);
}
END_TEST

static int number(unsigned *state, int n)
{
    *state = *state * 1103515245u + 12345u;
    return (int)(*state >> 16) % n;
}

static void divide(struct layout *l, unsigned *state)
{
    static const enum schedule schedules[] = {SCHEDULE_NONE, SCHEDULE_GPIPE, SCHEDULE_1F1B, SCHEDULE_INTERLEAVED};
    l->schedule = schedules[number(state, 4)];
    l->pp = l->schedule == SCHEDULE_NONE ? 1 : 2 << number(state, 3);
    l->vpp = l->schedule == SCHEDULE_INTERLEAVED ? 2 + number(state, 3) : 1;
    l->tp = 1 << number(state, 4), l->dp = 1 << number(state, 4), l->micro_batch = 1 << number(state, 2);
    l->zero = number(state, l->pp == 1 ? 4 : 3), l->sequence_parallel = number(state, 2);
    l->recompute.what = number(state, 2) ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    l->features = FEATURE_BIT(FLASH_ATTENTION2) | (number(state, 2) ? FEATURE_BIT(FUSED_OPS) : 0) |
                  (number(state, 2) ? FEATURE_BIT(DP_OVERLAP) : 0) | (number(state, 2) ? FEATURE_BIT(PP_OVERLAP) : 0);
}

static struct step_estimate estimate_of(struct shape *s, const char *offload)
{
    struct closed_form *form = closed_form_create(&s->setting);
    struct step_estimate e;
    s->layout.offload = offloaded(offload);
    closed_form_estimate(form, &s->layout, &e);
    closed_form_destroy(form);
    return e;
}

/* Never more of the GPU's memory; activations never a faster step, and the same one over a link without limit. */
START_TEST(whatever_the_layout)
{
    struct shape s;
    unsigned state = 7;
    shape_megascale(&s);
    for (int i = 0; i < 400; i++) {
        divide(&s.layout, &state);
        s.cluster.gpu.host_rate = 0;
        struct step_estimate none = estimate_of(&s, "none"), states = estimate_of(&s, "optimizer");
        struct step_estimate kept = estimate_of(&s, "activations");
        struct step_estimate some = estimate_of(&s, "activations:50%");
        ck_assert_double_ge(some.memory_bytes, kept.memory_bytes);
        ck_assert_double_le(some.memory_bytes, none.memory_bytes);
        ck_assert_double_ge(some.step_s, none.step_s * (1 - 1e-12));
        ck_assert_double_le(some.step_s, kept.step_s * (1 + 1e-12));
        ck_assert_double_le(states.memory_bytes, none.memory_bytes);
        ck_assert_double_le(kept.memory_bytes, none.memory_bytes);
        ck_assert_double_ge(kept.step_s, none.step_s * (1 - 1e-12));
        s.cluster.gpu.host_rate = 1e30;
        kept = estimate_of(&s, "activations");
        ck_assert_double_eq_tol(kept.step_s, none.step_s, 1e-12 * none.step_s);
    }
}
END_TEST

Suite *suite_host_memory(void)
{
    Suite *suite = suite_create("host_memory");
    TCase *all = tcase_create("all");
    tcase_add_test(all, links_are_shared_where_lanes_are);
    tcase_add_loop_test(all, an_update_takes_what_was_measured, 0, sizeof cpu_adam / sizeof *cpu_adam);
    tcase_add_test(all, ranks_of_a_node_share_its_memory);
    tcase_add_test(all, optimizer_states_move_to_the_host);
    tcase_add_test(all, weights_in_fp32_keep_their_width);
    tcase_add_test(all, gradients_move_to_the_host);
    tcase_add_test(all, activations_move_to_the_host);
    tcase_add_test(all, parts_move_to_the_host);
    tcase_add_test(all, parameters_move_to_the_host);
    tcase_add_test(all, whatever_the_layout);
    suite_add_tcase(suite, all);
    return suite;
}
