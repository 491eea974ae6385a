/*
 * Pipeline schedules against their formulas. The builders' programs are executed with durations of our own: every forward of a
 * chunk takes F, every backward B (or B for the input gradients and W for the weights', where a schedule divides it), everything
 * else nothing; replicas exchange after the last pass, so that no pass is cut into pieces. With p stages, v chunks per stage and
 * m micro-batches the step must then take, to the nanosecond,
 *
 *     gpipe, 1f1b     (m + p - 1) (F + B)                 [1F1B: Narayanan et al., arXiv 2104.04473, section 2.2]
 *     interleaved     m v (F + B) + (p - 1) (F + B)       [the same, section 2.2.2; F and B of one chunk]
 *     zb-1p           m (F + B + W) + (p - 1)(F + B - W)  [Qi et al., arXiv 2401.10241, Table 1; here for F = B = W]
 *     zb-2p           m (F + B + W)                       [the same; steps roll into one another]
 *     zb-v            2 m (F + B + W)                     [the same, section 6; of one of two chunks]
 *     dualpipe        m (F + B) + (p/2 - 1)(F + B + B - 3W), B whole  [DeepSeek-V3's published table, F&B = F + B]
 *
 * and when a forward and a backward pass hide one another's exchanges, so that a pair takes P < F + B,
 *
 *     dualpipe        (m - p - 1) P + (p + 1)(F + B) + (p/2 - 1)(P + B - 3W)     [the same; p + 1 fill and drain it alone]
 *     interleaved     (m v - p v) P + p v (F + B) + (p - 1) P                    [one round of p does]
 *
 * and the bubble must be what the formula leaves beyond the work.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "model/cost/step/closed_form.h"
#include "sim/step/step.h"
#include "sim/step/step_executor.h"
#include "tests/plan/settings.h"
#include "tests/suite.h"

enum { F = 1000, B = 2000 };

/* A pair is SAVED shorter than its passes; how that is divided between the two does not matter. */
enum { SAVED = 400, SAVED_FORWARD = 300 };

static nanos op_duration(const struct program *program, const struct op *op, bool divided, bool saves)
{
    if (op->kind != OP_COMPUTE)
        return 0;
    if (saves && op->work >= 0 && program->works.items[op->work].kind == WORK_PART)
        return op->pass == PASS_FORWARD ? F - SAVED_FORWARD : B - (SAVED - SAVED_FORWARD);
    if (op->pass == PASS_FORWARD)
        return F;
    if (op->pass == PASS_BACKWARD)
        return divided ? 2 * F : B;
    return op->pass == PASS_BACKWARD_INPUT || op->pass == PASS_BACKWARD_WEIGHT ? F : 0;
}

/* Execute one replica of the schedule; the step, and the mean bubble in *bubble. */
static nanos schedule_run_with(enum schedule schedule, int pp, int vpp, int m, bool folded, feature_set features, bool saves,
                               nanos *bubble)
{
    struct job_case c;
    struct program program;
    struct execution execution;
    struct diags diags = {0};
    int dp = 2;
    dense_case(&c, pp * vpp * 2, pp * dp, (int64_t)m * dp);
    struct layout layout = {
        .tp = 1, .cp = 1, .pp = pp, .vpp = vpp, .dp = dp, .ep = 1, .micro_batch = 1, .schedule = schedule, .features = features};
    c.job.features |= features;
    char why[200] = "";
    ck_assert_msg(layout_check(&layout, &c.setting, why, sizeof why) == LAYOUT_LEGAL, "%s", why);
    ck_assert_int_eq(program_build(&layout, &c.setting, DETAIL_CHUNK, folded, &program, &diags), STATUS_OK);
    struct step_costs costs = {.ops = calloc(program.n_ops, sizeof(nanos))};
    for (uint32_t i = 0; i < program.n_ops; i++)
        costs.ops[i] = op_duration(&program, &program.ops[i],
                                   schedule == SCHEDULE_ZB1P || schedule == SCHEDULE_ZB2P || schedule == SCHEDULE_ZBV, saves);
    ck_assert_int_eq(program_execute(&program, &costs, NULL, false, NULL, &execution, &diags), STATUS_OK);
    ck_assert(breakdown_sums(&execution.breakdown));
    nanos step = execution.end;
    int64_t ranks = 0;
    *bubble = 0;
    for (int s = 0; s < execution.breakdown.n_stages; s++) {
        ranks += execution.breakdown.stages[s].ranks;
        *bubble += execution.breakdown.stages[s].by_class.ns[CLASS_BUBBLE];
    }
    ck_assert_int_eq(*bubble % ranks, 0);
    *bubble /= ranks;
    execution_free(&execution);
    free(costs.ops);
    program_free(&program);
    diags_free(&diags);
    return step;
}

static nanos schedule_run(enum schedule schedule, int pp, int vpp, int m, bool folded, nanos *bubble)
{
    return schedule_run_with(schedule, pp, vpp, m, folded, FEATURE_BIT(PP_OVERLAP), false, bubble);
}

START_TEST(gpipe_and_1f1b)
{
    static const int shapes[][2] = {{2, 2}, {2, 7}, {4, 4}, {4, 16}, {8, 8}, {8, 32}, {5, 3}};

    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        for (int folded = 0; folded < 2; folded++) {
            int p = shapes[k][0], m = shapes[k][1];
            nanos bubble, expected = (nanos)(m + p - 1) * (F + B);
            ck_assert_int_eq(schedule_run(SCHEDULE_GPIPE, p, 1, m, folded, &bubble), expected);
            ck_assert_int_eq(bubble, (nanos)(p - 1) * (F + B));
            ck_assert_int_eq(schedule_run(SCHEDULE_1F1B, p, 1, m, folded, &bubble), expected);
            ck_assert_int_eq(bubble, (nanos)(p - 1) * (F + B));
        }
}
END_TEST

START_TEST(interleaved)
{
    static const int shapes[][3] = {{2, 2, 2}, {4, 2, 8}, {4, 3, 16}, {8, 6, 32}, {8, 2, 8}};

    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        int p = shapes[k][0], v = shapes[k][1], m = shapes[k][2];
        nanos bubble, step = schedule_run(SCHEDULE_INTERLEAVED, p, v, m, true, &bubble);
        ck_assert_int_eq(step, (nanos)m * v * (F + B) + (nanos)(p - 1) * (F + B));
        ck_assert_int_eq(bubble, (nanos)(p - 1) * (F + B));
    }
}
END_TEST

START_TEST(zero_bubble_h1)
{
    static const int shapes[][2] = {{2, 4}, {4, 8}, {4, 12}, {8, 24}};

    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        int p = shapes[k][0], m = shapes[k][1];
        nanos bubble, step = schedule_run(SCHEDULE_ZB1P, p, 1, m, true, &bubble);
        ck_assert_int_eq(step, (nanos)m * 3 * F + (nanos)(p - 1) * F);
        ck_assert_int_eq(bubble, (nanos)(p - 1) * F);
    }
}
END_TEST

START_TEST(zero_bubble_h2)
{
    static const int shapes[][2] = {{2, 8}, {4, 12}, {4, 16}, {8, 32}};

    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        nanos bubble, step = schedule_run(SCHEDULE_ZB2P, shapes[k][0], 1, shapes[k][1], true, &bubble);
        ck_assert_int_eq(step, (nanos)shapes[k][1] * 3 * F);
        ck_assert_int_eq(bubble, 0);
    }
}
END_TEST

START_TEST(folded_pipelines)
{
    static const int shapes[][2] = {{2, 4}, {4, 8}, {4, 12}, {8, 24}};

    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        for (int folded = 0; folded < 2; folded++) {
            int p = shapes[k][0], m = shapes[k][1];
            nanos bubble, gap = (nanos)(p - 2) * F; /* (p/2 - 1)(F + 2F + 2F - 3F) */
            ck_assert_int_eq(schedule_run(SCHEDULE_ZBV, p, 2, m, folded, &bubble), (nanos)m * 6 * F);
            ck_assert_int_eq(bubble, 0);
            ck_assert_int_eq(schedule_run(SCHEDULE_DUALPIPE, p, 2, m, folded, &bubble), (nanos)m * 3 * F + gap);
            ck_assert_int_eq(bubble, gap);
            gap = (nanos)(2 * p - 2) * F; /* as over 2p places */
            ck_assert_int_eq(schedule_run(SCHEDULE_DUALPIPEV, p, 2, m, folded, &bubble), (nanos)m * 6 * F + gap);
            ck_assert_int_eq(bubble, gap);
        }
}
END_TEST

START_TEST(pairs)
{
    enum { P = F + B - SAVED, W = F };
    static const int shapes[][2] = {{2, 4}, {2, 8}, {4, 8}, {4, 14}, {8, 16}, {8, 32}};

    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        for (int overlap = 0; overlap < 2; overlap++) { /* of messages: they take no time, waiting for both costs none */
            int p = shapes[k][0], m = shapes[k][1];
            feature_set features = FEATURE_BIT(EP_OVERLAP) | (overlap ? FEATURE_BIT(PP_OVERLAP) : 0);
            nanos bubble, gap = (nanos)(p / 2 - 1) * (P + B - 3 * W);
            ck_assert_int_eq(
                schedule_run_with(SCHEDULE_DUALPIPE, p, 2, m, true, features & FEATURE_BIT(PP_OVERLAP), true, &bubble),
                (nanos)(m - p - 1) * P + (nanos)(p + 1) * (F + B) + gap);
            gap = (nanos)(p - 1) * (P + B - 3 * W); /* over 2p places */
            ck_assert_int_eq(schedule_run_with(SCHEDULE_DUALPIPEV, p, 2, m, true, features, true, &bubble),
                             (nanos)(2 * m - 2 * p - 1) * P + (nanos)(2 * p + 1) * (F + B) + gap);
            for (int v = 2; v <= 4; v++) {
                int whole = m / p * p;
                ck_assert_int_eq(schedule_run_with(SCHEDULE_INTERLEAVED, p, v, whole, true, features, true, &bubble),
                                 (nanos)(whole - p) * v * P + (nanos)p * v * (F + B) + (nanos)(p - 1) * P);
            }
        }
}
END_TEST

/* A step, its program verified, and what the closed form says of it. */
static struct step_result step_of(const struct job_case *c, const struct layout *layout, enum detail detail)
{
    struct step_options options = {.verify = true, .detail = detail};
    struct step_result result;
    struct diags diags = {0};
    enum status status = step_simulate(layout, &c->setting, &options, &result, NULL, NULL, &diags);
    ck_assert_msg(status == STATUS_OK, "%s", diags.n_items ? diags.items[0].text : "");
    return result;
}

static struct step_estimate estimate_of(const struct job_case *c, const struct layout *layout)
{
    struct step_estimate estimate;
    struct closed_form *form = closed_form_create(&c->setting);
    closed_form_estimate(form, layout, &estimate);
    closed_form_destroy(form);
    return estimate;
}

/* Without what replicas exchange, of which the closed form knows less. */
static double passes_seconds(const struct cost_by_class *by)
{
    return cost_by_class_total(by) - by->s[CLASS_DP_COMM] - by->s[CLASS_OPTIMIZER];
}

/* The closed form's parts are means over ranks, as those of an execution: what is computed takes the same, whichever stage is the
 * slowest. Within `share` and the nanoseconds that executions round to. */
static void ck_same_work(const struct cost_by_class *formula, const struct cost_by_class *executed, double share)
{
    static const enum work_class computed[] = {CLASS_GEMM,      CLASS_ATTENTION, CLASS_MEMORY_BOUND,
                                               CLASS_EMBEDDING, CLASS_HEAD,      CLASS_EXPERTS};
    for (size_t i = 0; i < sizeof computed / sizeof computed[0]; i++)
        ck_assert_double_eq_tol(formula->s[computed[i]], executed->s[computed[i]], share * executed->s[computed[i]] + 2e-6);
}

/* The closed form of real layouts in pairs, a mixture of experts between nodes. */
START_TEST(closed_form_of_pairs)
{
    static const struct {
        enum schedule schedule;
        int pp, m;
    } cases[] = {{SCHEDULE_DUALPIPE, 4, 16},    {SCHEDULE_DUALPIPE, 8, 16},    {SCHEDULE_DUALPIPEV, 4, 12},
                 {SCHEDULE_INTERLEAVED, 4, 16}, {SCHEDULE_INTERLEAVED, 4, 18}, {SCHEDULE_INTERLEAVED, 8, 32}};

    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        for (int detail = DETAIL_CHUNK; detail <= DETAIL_LAYER; detail++) {
            struct job_case c;
            mixture_case(&c, 32, 64, 16 * cases[k].pp, 16 * cases[k].m);
            c.model.hidden = 4096, c.model.moe.expert_ffn = 2048;
            c.job.features |= FEATURE_BIT(CUDA_GRAPHS) | FEATURE_BIT(EP_OVERLAP);
            struct layout layout = {.tp = 1,
                                    .cp = 1,
                                    .pp = cases[k].pp,
                                    .vpp = 2,
                                    .dp = 16,
                                    .ep = 16,
                                    .micro_batch = 1,
                                    .schedule = cases[k].schedule,
                                    .features = c.job.features};
            struct step_result paired = step_of(&c, &layout, (enum detail)detail);
            ck_assert_double_eq_tol(cost_by_class_total(&paired.breakdown), paired.step_time_s, 1e-12);
            struct step_estimate estimate = estimate_of(&c, &layout);
            if (detail == DETAIL_CHUNK)
                ck_same_work(&estimate.by_class, &paired.breakdown, 0);
            double expected = passes_seconds(&estimate.by_class), got = passes_seconds(&paired.breakdown);
            ck_assert_msg(fabs(expected / got - 1) < 0.05, "case %zu: %.4f s against %.4f s", k, expected, got);
            layout.features &= ~FEATURE_BIT(EP_OVERLAP);
            struct step_result alone = step_of(&c, &layout, (enum detail)detail);
            if (layout.schedule == SCHEDULE_INTERLEAVED) { /* DualPipe's are pairs either way */
                ck_assert_double_lt(paired.step_time_s, alone.step_time_s);
                ck_assert_double_lt(paired.breakdown.s[CLASS_EP_COMM], 0.8 * alone.breakdown.s[CLASS_EP_COMM]);
            } else {
                ck_assert_int_eq(paired.step, alone.step);
            }
        }
}
END_TEST

/* Interleaved rounds that are not full: the closed form within a few percent of the execution, over many shapes. */
START_TEST(closed_form_of_any_number)
{
    static const int shapes[][2] = {{2, 2}, {4, 3}, {8, 2}, {8, 6}};

    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        int p = shapes[k][0];
        for (int m = 1; m <= 3 * p; m += 1 + p / 4) {
            struct job_case c;
            gpt_175b_case(&c, 8 * p, m);
            c.job.features |= FEATURE_BIT(CUDA_GRAPHS);
            struct layout layout = {.tp = 8,
                                    .cp = 1,
                                    .pp = p,
                                    .vpp = shapes[k][1],
                                    .dp = 1,
                                    .ep = 1,
                                    .micro_batch = 1,
                                    .sequence_parallel = true,
                                    .schedule = SCHEDULE_INTERLEAVED,
                                    .features = c.job.features};
            struct step_result result = step_of(&c, &layout, DETAIL_CHUNK);
            struct step_estimate estimate = estimate_of(&c, &layout);
            double error = estimate.step_s / result.step_time_s - 1;
            ck_assert_msg(error > -0.04 && error < 0.04, "p=%d v=%d m=%d: %.4f s against %.4f s", p, shapes[k][1], m,
                          estimate.step_s, result.step_time_s);
            ck_same_work(&estimate.by_class, &result.breakdown, 0);
        }
    }
}
END_TEST

/* Stages divided by parameters, which a large vocabulary makes unequal, with and without the pauses of Python's checkpoints:
 * what the fullest stage takes for each micro-batch, and the others once. */
START_TEST(closed_form_of_unequal_stages)
{
    static const struct {
        enum schedule schedule;
        int pp, m;
    } cases[] = {{SCHEDULE_1F1B, 2, 4},  {SCHEDULE_1F1B, 4, 8}, {SCHEDULE_1F1B, 4, 32}, {SCHEDULE_1F1B, 8, 12},
                 {SCHEDULE_GPIPE, 4, 8}, {SCHEDULE_ZB1P, 4, 8}, {SCHEDULE_ZB1P, 8, 32}};

    for (size_t k = 0; k < 2 * sizeof cases / sizeof cases[0]; k++) {
        struct job_case c;
        int p = cases[k / 2].pp, m = cases[k / 2].m;
        gpt_175b_case(&c, 8 * p, m);
        c.model.layers = 40, c.model.hidden = 5120, c.model.ffn_hidden = 13824, c.model.vocab = 128000;
        c.model.heads = c.model.kv_heads = 40, c.model.gated_mlp = true, c.model.norm = NORM_RMS;
        c.cluster.gpu.host_pause_s = k % 2 ? 200e-6 : 0;
        struct layout layout = {.tp = 8,
                                .cp = 1,
                                .pp = p,
                                .vpp = 1,
                                .dp = 1,
                                .ep = 1,
                                .micro_batch = 1,
                                .recompute.what = RECOMPUTE_FULL,
                                .schedule = cases[k / 2].schedule,
                                .features = FEATURE_BIT(FLASH_ATTENTION2)};
        c.job.features = layout.features;
        struct step_result result = step_of(&c, &layout, DETAIL_CHUNK);
        struct step_estimate estimate = estimate_of(&c, &layout);
        double error = estimate.step_s / result.step_time_s - 1;
        ck_assert_msg(fabs(error) < 0.05, "case %zu: %.4f s against %.4f s", k, estimate.step_s, result.step_time_s);
        /* Clocks rise while hosts pause, which the formula's layers do not know. */
        ck_same_work(&estimate.by_class, &result.breakdown, k % 2 ? 0.01 : 0);
    }
}
END_TEST

/* Slow messages: beside the passes the circle of the micro-batches in flight, in the way of them all that a stage waits for. One
 * stage a node; equal stages, and for blocking ones a last one that is longer. */
START_TEST(closed_form_of_slow_messages)
{
    static const struct {
        enum schedule schedule;
        int pp, vpp;
        double slower; /* NICs */
        int64_t vocab;
        bool beside;
    } cases[] = {{SCHEDULE_1F1B, 8, 1, 2, 128, true},       {SCHEDULE_1F1B, 8, 1, 6, 128, true},
                 {SCHEDULE_1F1B, 8, 1, 10, 51200, false},   {SCHEDULE_1F1B, 8, 1, 100, 51200, false},
                 {SCHEDULE_1F1B, 2, 1, 40, 51200, false},   {SCHEDULE_DUALPIPE, 8, 2, 10, 128, true},
                 {SCHEDULE_DUALPIPE, 2, 2, 100, 128, true}, {SCHEDULE_DUALPIPEV, 4, 2, 10, 128, true},
                 {SCHEDULE_INTERLEAVED, 8, 5, 4, 128, true}};

    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct job_case c;
        gpt_175b_case(&c, 8 * cases[k].pp, 64 * 8);
        c.model.layers = 40, c.model.hidden = 5120, c.model.ffn_hidden = 20480, c.model.vocab = cases[k].vocab;
        c.model.heads = c.model.kv_heads = 40;
        c.cluster.nic_rate /= cases[k].slower;
        struct layout layout = {.tp = 1,
                                .cp = 1,
                                .pp = cases[k].pp,
                                .vpp = cases[k].vpp,
                                .dp = 8,
                                .ep = 1,
                                .micro_batch = 1,
                                .schedule = cases[k].schedule,
                                .features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(CUDA_GRAPHS) |
                                            (cases[k].beside ? FEATURE_BIT(PP_OVERLAP) : 0)};
        c.job.features = layout.features;
        struct step_result result = step_of(&c, &layout, DETAIL_CHUNK);
        struct step_estimate estimate = estimate_of(&c, &layout);
        double error = estimate.step_s / result.step_time_s - 1;
        ck_assert_msg(fabs(error) < 0.012, "case %zu: %.4f s against %.4f s", k, estimate.step_s, result.step_time_s);
    }
}
END_TEST

/* What the host paces takes as long at layer detail as at chunk detail: the host runs ahead within a pass. Two stages, the last
 * with a large head; pairs, and passes cut for buckets. */
START_TEST(details_agree_where_the_host_paces)
{
    for (int i = 0; i < 4; i++) {
        struct job_case c;
        dense_case(&c, 8, 4, 32);
        c.cluster.gpu.host_launch_s = 20e-6;
        struct layout layout = {.tp = 1,
                                .cp = 1,
                                .pp = i < 3 ? 2 : 1,
                                .vpp = i == 1 ? 2 : 1,
                                .dp = i < 3 ? 2 : 4,
                                .ep = 1,
                                .micro_batch = 1,
                                .recompute.what = i == 3 ? RECOMPUTE_FULL : RECOMPUTE_NONE,
                                .schedule = i == 0   ? SCHEDULE_1F1B
                                            : i == 1 ? SCHEDULE_INTERLEAVED
                                            : i == 2 ? SCHEDULE_ZB1P
                                                     : SCHEDULE_NONE,
                                .features = i == 1 ? 0 : FEATURE_BIT(DP_OVERLAP)};
        struct step_result results[2];
        for (int detail = DETAIL_CHUNK; detail <= DETAIL_LAYER; detail++)
            results[detail] = step_of(&c, &layout, (enum detail)detail);
        ck_assert_double_gt(results[0].breakdown.s[CLASS_HOST], 0.1 * results[0].step_time_s);
        ck_assert_double_eq_tol(results[1].step_time_s, results[0].step_time_s, 1e-6 * results[0].step_time_s);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_schedules");
    TCase *formulas = tcase_create("formulas");

    tcase_add_test(formulas, gpipe_and_1f1b);
    tcase_add_test(formulas, interleaved);
    tcase_add_test(formulas, closed_form_of_any_number);
    tcase_add_test(formulas, closed_form_of_unequal_stages);
    tcase_add_test(formulas, closed_form_of_slow_messages);
    tcase_add_test(formulas, pairs);
    tcase_add_test(formulas, closed_form_of_pairs);
    tcase_add_test(formulas, details_agree_where_the_host_paces);
    tcase_add_test(formulas, zero_bubble_h1);
    tcase_add_test(formulas, zero_bubble_h2);
    tcase_add_test(formulas, folded_pipelines);
    suite_add_tcase(suite, formulas);
    return suite_run(suite);
}
