/* What goes to the host's memory and comes back: every byte once each way, and what waits for what. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "fixtures.h"
#include "model/cost/memory/footprint.h"
#include "tests/layout/offloaded.h"
#include "tests/suite.h"

struct traffic {
    double down, up, updated; /* bytes: copied, and of the host's memory */
    int n_down, n_up, n_updates;
};

static struct traffic traffic_of(const struct program *program, int rank)
{
    uint32_t n;
    const struct op *ops = rank_ops(program, rank, &n);
    struct traffic t = {0};
    for (uint32_t i = 0; i < n; i++) {
        const struct work *work = ops[i].work >= 0 ? &program->works.items[ops[i].work] : NULL;
        if (ops[i].stream == STREAM_DOWN)
            t.down += work->host.bytes, t.n_down++;
        if (ops[i].stream == STREAM_UP)
            t.up += work->host.bytes, t.n_up++;
        if (work && work->kind == WORK_HOST_UPDATE) {
            ck_assert_int_eq(ops[i].stream, STREAM_HOST);
            t.updated += work->host.bytes, t.n_updates++;
        }
    }
    return t;
}

static double parameters_of(const struct fixture *f)
{
    struct setting setting = fixture_setting(f);
    return work_stage_parameters(&f->layout, &setting, (struct layer_range){0, f->model.layers}, true, true).dense;
}

static void expect_near(double a, double b)
{
    ck_assert_msg(fabs(a - b) <= 1e-9 * fabs(b), "%.17g is not %.17g", a, b);
}

static void expect_verified(const struct fixture *f)
{
    static const enum detail details[] = {DETAIL_CHUNK, DETAIL_LAYER, DETAIL_KERNEL};
    for (int d = 0; d < 3; d++)
        for (int folded = 0; folded <= 1; folded++) {
            struct program program = fixture_build(f, details[d], folded);
            struct diags diags = {0};
            ck_assert_int_eq(program_verify(&program, &diags), STATUS_OK);
            diags_free(&diags);
            program_free(&program);
        }
}

/* Without a pipeline a backward pass follows its forward pass: the last two layers stay. */
START_TEST(all_but_the_last_two_layers_go)
{
    for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++) {
        struct fixture f = fixture_of(6, false);
        f.job.global_batch = 3;
        f.layout.offload = offloaded("activations");
        struct setting setting = fixture_setting(&f);
        struct program program = fixture_build(&f, (enum detail)detail, true);
        struct traffic t = traffic_of(&program, 0);
        ck_assert_int_eq(t.n_down, 3 * 4);
        ck_assert_int_eq(t.n_up, 3 * 4);
        expect_near(t.down, 3 * 4 * footprint_layer_bytes(&f.layout, &setting, layer_kind_of(setting.model, 0)));
        expect_near(t.up, t.down);
        program_free(&program);
    }
}
END_TEST

/* The first stage's backward passes come later: all of its layers go. The last one's come at once. */
START_TEST(stages_that_turn_at_once_keep_two)
{
    struct fixture f = fixture_pipeline(SCHEDULE_1F1B, 2, 1, 4);
    f.model.layers = 8;
    f.layout.offload = offloaded("activations");
    struct program program = fixture_build(&f, DETAIL_CHUNK, true);
    ck_assert_int_eq(traffic_of(&program, 0).n_down, 4 * 4);
    ck_assert_int_eq(traffic_of(&program, 1).n_down, 4 * 2);
    ck_assert_int_eq(traffic_of(&program, 0).n_up, 4 * 4);
    program_free(&program);
}
END_TEST

static bool waits_on(const struct op *ops, uint32_t i, enum stream stream, uint32_t *which)
{
    *which = 0;
    for (int d = 0; d < OP_DEPS; d++)
        if (ops[i].deps[d] != NO_OP && ops[ops[i].deps[d]].stream == stream) {
            *which = ops[i].deps[d];
            return true;
        }
    return false;
}

/* What a layer keeps leaves behind its forward pass, comes back behind that copy, and its backward pass waits for it; the forward
 * pass of a layer that gives waits for what the one two before it keeps. */
START_TEST(copies_in_order)
{
    struct fixture f = fixture_of(6, false);
    f.layout.offload = offloaded("activations");
    struct program program = fixture_build(&f, DETAIL_CHUNK, true);
    uint32_t n, left, at;
    const struct op *ops = rank_ops(&program, 0, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (ops[i].stream == STREAM_DOWN) {
            ck_assert(waits_on(ops, i, STREAM_COMPUTE, &at));
            ck_assert_int_eq(ops[at].layer, ops[i].layer);
            ck_assert_int_eq(ops[at].pass, PASS_FORWARD);
        } else if (ops[i].stream == STREAM_UP) {
            ck_assert(waits_on(ops, i, STREAM_DOWN, &left));
            ck_assert_int_eq(ops[left].layer, ops[i].layer);
        } else if (ops[i].stream == STREAM_COMPUTE && ops[i].layer >= 0 && ops[i].pass == PASS_FORWARD) {
            bool waits = ops[i].layer >= 2 && ops[i].layer < 4; /* the last two stay */
            ck_assert_int_eq(waits_on(ops, i, STREAM_DOWN, &left), waits);
            ck_assert(!waits || ops[left].layer == ops[i].layer - 2);
        } else if (ops[i].stream == STREAM_COMPUTE && ops[i].layer >= 0 && ops[i].pass == PASS_BACKWARD) {
            ck_assert_int_eq(waits_on(ops, i, STREAM_UP, &left), ops[i].layer < 4);
            ck_assert(ops[i].layer >= 4 || ops[left].layer == ops[i].layer);
        }
    }
    program_free(&program);
}
END_TEST

/* The rank's share of the gradients goes down once a step and its weights come up; Adam streams 30 bytes a parameter. */
START_TEST(the_update_is_of_a_share)
{
    struct fixture f = fixture_of(6, false);
    for (f.layout.zero = 0; f.layout.zero <= 1; f.layout.zero++) {
        f.layout.dp = 4;
        f.job.global_batch = 8;
        f.layout.offload = offloaded("optimizer");
        struct program program = fixture_build(&f, DETAIL_CHUNK, true);
        struct traffic t = traffic_of(&program, 0);
        double own = parameters_of(&f) / (f.layout.zero ? 4 : 1);
        expect_near(t.down, 4 * own);
        expect_near(t.up, 2 * own);
        expect_near(t.updated, 30 * own);
        ck_assert_int_eq(t.n_updates, 6);
        program_free(&program);
    }
}
END_TEST

/* Where the host keeps gradients they go down with every micro-batch, and the sum comes up but with the first. */
START_TEST(gradients_leave_with_each_micro_batch)
{
    for (int zero = 2; zero <= 3; zero++)
        for (int overlap = 0; overlap <= 1; overlap++) {
            struct fixture f = fixture_of(6, false);
            f.layout.dp = 4;
            f.layout.zero = zero;
            f.job.global_batch = 12;
            f.layout.offload = offloaded("optimizer");
            f.layout.features |= overlap ? FEATURE_BIT(DP_OVERLAP) : 0;
            struct program program = fixture_build(&f, DETAIL_CHUNK, true);
            struct traffic t = traffic_of(&program, 0);
            double own = parameters_of(&f) / 4;
            expect_near(t.down, 3 * 4 * own);
            expect_near(t.up, 2 * 4 * own + 2 * own);
            expect_near(collective_bytes(&program, 0, COLLECTIVE_REDUCE_SCATTER, GROUP_DP), 3 * 4 * parameters_of(&f));
            program_free(&program);
        }
}
END_TEST

/* Of six layers the first two; of chunks the first of each, where each has two. */
START_TEST(a_share_of_the_layers_goes)
{
    static const char *const two[] = {"activations:2", "activations:33%", "activations:20%"};
    for (int i = 0; i < 3; i++) {
        struct fixture f = fixture_of(6, false);
        f.job.global_batch = 3;
        f.layout.offload = offloaded(two[i]);
        struct program program = fixture_build(&f, DETAIL_CHUNK, true);
        uint32_t n;
        const struct op *ops = rank_ops(&program, 0, &n);
        for (uint32_t k = 0; k < n; k++)
            ck_assert(ops[k].stream != STREAM_DOWN || ops[k].layer < 2);
        ck_assert_int_eq(traffic_of(&program, 0).n_down, 3 * 2);
        ck_assert_int_eq(traffic_of(&program, 0).n_up, 3 * 2);
        program_free(&program);
        expect_verified(&f);
    }
    struct fixture f = fixture_pipeline(SCHEDULE_INTERLEAVED, 2, 3, 4);
    f.model.layers = 12;
    f.layout.offload = offloaded("activations:50%");
    struct program program = fixture_build(&f, DETAIL_CHUNK, true);
    ck_assert_int_eq(traffic_of(&program, 0).n_down, 4 * 3);
    uint32_t n;
    const struct op *ops = rank_ops(&program, 0, &n);
    for (uint32_t k = 0; k < n; k++) /* stage 0 has layers 0 1, 4 5 and 8 9 */
        ck_assert(ops[k].stream != STREAM_DOWN || ops[k].layer % 4 == 0);
    program_free(&program);
}
END_TEST

/* A quarter of the states: so much of every gradient goes down and of every weight comes up; the rest is updated on the GPU, with
 * 38 bytes a parameter less the two of 4 that the norm and zeroing pass over for all. */
START_TEST(the_update_is_of_a_part)
{
    struct fixture f = fixture_of(6, false);
    f.layout.dp = 4, f.layout.zero = 1;
    f.job.global_batch = 8;
    f.layout.offload = offloaded("optimizer:0.25");
    struct program program = fixture_build(&f, DETAIL_CHUNK, true);
    struct traffic t = traffic_of(&program, 0);
    double own = parameters_of(&f) / 4, here = 0;
    uint32_t n;
    const struct op *ops = rank_ops(&program, 0, &n);
    for (uint32_t i = 0; i < n; i++)
        if (ops[i].class == CLASS_OPTIMIZER && ops[i].work >= 0 && program.works.items[ops[i].work].kind == WORK_MEMORY_BOUND)
            here += program.works.items[ops[i].work].memory.bytes;
    expect_near(t.down, 4 * own / 4);
    expect_near(t.up, 2 * own / 4);
    expect_near(t.updated, 30 * own / 4);
    expect_near(here, (8 + 30 * 0.75) * own);
    program_free(&program);
    expect_verified(&f);
}
END_TEST

/* Every micro-batch fetches its share of all weights for the forward and of the layers' again for the backward pass, each before
 * the gather; what is updated in the host's memory stays there. Half of them: half of both. */
START_TEST(parameters_come_for_each_gather)
{
    static const char *const some[] = {"optimizer+parameters", "optimizer+parameters:50%"};
    for (int i = 0; i < 2; i++)
        for (int overlap = 0; overlap <= 1; overlap++) {
            struct fixture f = fixture_of(6, false);
            struct setting setting = fixture_setting(&f);
            double share = i ? 0.5 : 1;
            f.layout.dp = 4, f.layout.zero = 3;
            f.job.global_batch = 12;
            f.layout.offload = offloaded(some[i]);
            f.layout.features |= overlap ? FEATURE_BIT(DP_OVERLAP) : 0;
            struct program program = fixture_build(&f, DETAIL_CHUNK, true);
            double all = parameters_of(&f) / 4;
            double layers = work_stage_parameters(&f.layout, &setting, (struct layer_range){0, 6}, false, false).dense / 4;
            struct traffic t = traffic_of(&program, 0);
            expect_near(t.up, 3 * 2 * share * (all + layers) + 2 * 4 * all + 2 * (1 - share) * all);
            uint32_t n, at;
            const struct op *ops = rank_ops(&program, 0, &n);
            for (uint32_t k = 0; k < n; k++)
                if (ops[k].kind == OP_COLLECTIVE && ops[k].collective == COLLECTIVE_ALL_GATHER)
                    ck_assert(waits_on(ops, k, STREAM_UP, &at) && ops[at].layer == ops[k].layer);
            program_free(&program);
            expect_verified(&f);
        }
}
END_TEST

START_TEST(every_schedule_is_verified)
{
    static const struct {
        enum schedule schedule;
        int p, v;
    } pipelines[] = {{SCHEDULE_GPIPE, 4, 1}, {SCHEDULE_1F1B, 4, 1}, {SCHEDULE_INTERLEAVED, 4, 3}, {SCHEDULE_INTERLEAVED, 2, 2}};
    static const char *const offloads[] = {"optimizer", "activations", "optimizer+activations", "optimizer:30%+activations:50%",
                                           "activations:1"};
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++)
        for (size_t o = 0; o < sizeof offloads / sizeof *offloads; o++)
            for (int features = 0; features < 4; features++) {
                struct fixture f = fixture_pipeline(pipelines[i].schedule, pipelines[i].p, pipelines[i].v, 8);
                f.layout.tp = 2, f.layout.dp = 2, f.layout.zero = 1;
                f.job.global_batch = 16;
                f.layout.offload = offloaded(offloads[o]);
                f.layout.features |= features & 1 ? FEATURE_BIT(PP_OVERLAP) : 0;
                f.layout.features |= features & 2 ? FEATURE_BIT(DP_OVERLAP) : 0;
                expect_verified(&f);
            }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program_host");
    TCase *all = tcase_create("all");
    tcase_add_test(all, all_but_the_last_two_layers_go);
    tcase_add_test(all, stages_that_turn_at_once_keep_two);
    tcase_add_test(all, copies_in_order);
    tcase_add_test(all, the_update_is_of_a_share);
    tcase_add_test(all, gradients_leave_with_each_micro_batch);
    tcase_add_test(all, a_share_of_the_layers_goes);
    tcase_add_test(all, the_update_is_of_a_part);
    tcase_add_test(all, parameters_come_for_each_gather);
    tcase_add_test(all, every_schedule_is_verified);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
