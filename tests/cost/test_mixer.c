/* Layers of a pattern: a mixer with a state counted by hand, parts alone against the layer they make up, parallelism. */
#include <string.h>

#include "model/cost/kernel/gemm.h"
#include "model/cost/kernel/machine.h"
#include "model/cost/kernel/memory_bound.h"
#include "model/cost/memory/footprint.h"
#include "shapes.h"

enum { H = 1024, HEADS = 16, GROUPS = 4, STATE = 64, DIM = 32, CHUNK = 128, INNER = HEADS * DIM, TOKENS = 2048 };

/* On one rank, eight sequences of 2,048 tokens. */
static void shape_hybrid(struct shape *s, const char *pattern, enum mixer_kind kind)
{
    bool groups = kind == MIXER_MAMBA2 || kind == MIXER_GATED_DELTA;
    shape_gpt(s, (int)strlen(pattern), H, 16, 1, 1, 1, 1);
    s->model.linear_bias = false;
    s->model.mixer = (struct state_mixer){.kind = kind,
                                          .heads = HEADS,
                                          .groups = groups ? GROUPS : HEADS,
                                          .state = STATE,
                                          .head_dim = DIM,
                                          .conv = kind == MIXER_LIGHTNING ? 0 : 4,
                                          .chunk = CHUNK,
                                          .norm = true};
    snprintf(s->model.layer_pattern, sizeof s->model.layer_pattern, "%s", pattern);
    s->layout.features = s->job.features = FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(FLASH_ATTENTION2);
}

/*
 * Forward, a token: matrices 2 h (columns + H P), and by chunks of C, in groups of heads that share keys: scores 2 C N G, states
 * 2 N H P, output 2 (N + C) H P. Of the delta rule, a head: scores 4 C N, inverse 2 C C, updates 2 C (N + P), states 4 N P,
 * output 2 (N + C) P.
 */
START_TEST(scans_are_counted_by_hand)
{
    const double h = H, in = INNER, n = STATE, c = CHUNK, p = DIM, keys = GROUPS * n, all = HEADS * n;
    const double delta = HEADS * (4 * c * n + 2 * c * c + 2 * c * (n + p) + 4 * n * p + 2 * (n + c) * p);
    const double expected[] = {
        [MIXER_MAMBA2] = 2 * h * (3 * in + 2 * keys + HEADS) + 2 * c * keys + 2 * n * in + 2 * (n + c) * in,
        [MIXER_LIGHTNING] = 2 * h * (3 * in + 2 * all) + 2 * c * all + 2 * n * in + 2 * (n + c) * in,
        [MIXER_GATED_DELTA] = 2 * h * (3 * in + 2 * keys + 2 * HEADS) + delta,
        [MIXER_KIMI_DELTA] = 2 * h * (2 * in + 2 * all + HEADS + 2 * p) + 2 * p * (all + in) + delta,
    };
    const double model[] = {4, 4, 6, 6}; /* N P H */
    struct shape s;
    shape_hybrid(&s, "M", (enum mixer_kind)_i);
    double forward = pass_flops(&s, PASS_FORWARD, 1), backward = pass_flops(&s, PASS_BACKWARD, 1);
    ck_assert_double_eq_tol(forward / TOKENS / expected[_i], 1, 1e-12);
    /* twice the products, and those that are repeated */
    ck_assert_double_gt(backward, 2 * forward);
    ck_assert_double_lt(backward, 3 * forward);
    ck_assert_double_eq_tol(pass_flops(&s, PASS_BACKWARD_INPUT, 1) + pass_flops(&s, PASS_BACKWARD_WEIGHT, 1), backward, 1);
    s.layout.recompute.what = RECOMPUTE_FULL;
    ck_assert_double_eq_tol(pass_flops(&s, PASS_BACKWARD, 1), forward + backward, 1);
    double products = expected[_i] - (_i < MIXER_GATED_DELTA ? 2 * c * (_i ? all : keys) + 2 * n * in + 2 * (n + c) * in : delta);
    double a_step = 3.0 * (double)s.job.global_batch * TOKENS;
    double head = 2 * h * (double)s.model.vocab;
    ck_assert_double_eq_tol(model_flops_per_step(&s.setting, 0, FLOPS_FULL) / a_step, products + model[_i] * n * in + head, 1);
}
END_TEST

static double seconds(const struct shape *s, enum pass pass, int layers)
{
    struct machine machine = machine_of(&s->layout, &s->setting);
    struct work_table table = {0};
    struct layer_range range = {0, layers};
    double time =
        cost_seconds(work_cost(&machine, &table, work_add_pass(&table, &s->layout, &s->setting, pass, range, false, false)));
    work_table_free(&table);
    return time;
}

/* Attention alone and a feed-forward part alone are a layer; a mixer and a part are; with any of it repeated and kept. */
START_TEST(parts_make_up_a_layer)
{
    static const struct {
        const char *parts, *whole;
    } cases[] = {{"*-", "a"}, {"M-", "m"}};
    static const enum recompute_what recomputed[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_LAYERNORM, RECOMPUTE_MLP};
    for (size_t i = 0; i < 2; i++) {
        struct shape parts, whole;
        shape_hybrid(&parts, cases[i].parts, MIXER_MAMBA2);
        shape_hybrid(&whole, cases[i].whole, MIXER_MAMBA2);
        for (size_t r = 0; r < sizeof recomputed / sizeof recomputed[0]; r++) {
            parts.layout.recompute.what = whole.layout.recompute.what = recomputed[r];
            for (int pass = 0; pass < N_PASSES; pass++) {
                double both = pass_flops(&parts, (enum pass)pass, 2);
                ck_assert_double_eq_tol(both, pass_flops(&whole, (enum pass)pass, 1), 1e-9 * both);
                double time = seconds(&whole, (enum pass)pass, 1); /* but for the clock: the host paces kinds one by one */
                ck_assert_double_eq_tol(seconds(&parts, (enum pass)pass, 2) / time, 1, 2e-3);
            }
            double kept = 0;
            for (int layer = 0; layer < 2; layer++)
                kept += footprint_layer_bytes(&parts.layout, &parts.setting, layer_kind_of(&parts.model, layer));
            ck_assert_double_eq_tol(kept, footprint_layer_bytes(&whole.layout, &whole.setting, layer_kind_of(&whole.model, 0)),
                                    1);
        }
        ck_assert_double_eq(transformer_layer_parameters(&parts.model, 0, true) +
                                transformer_layer_parameters(&parts.model, 1, true),
                            transformer_layer_parameters(&whole.model, 0, true));
    }
}
END_TEST

/* Mixers side by side: the products of both, and one norm less than two layers. */
START_TEST(mixers_side_by_side_share_a_norm)
{
    struct shape both, attention, state;
    shape_hybrid(&both, "p", MIXER_MAMBA2);
    shape_hybrid(&attention, "a", MIXER_MAMBA2);
    shape_hybrid(&state, "M", MIXER_MAMBA2);
    for (int pass = 0; pass < N_PASSES; pass++) {
        double sum = pass_flops(&attention, (enum pass)pass, 1) + pass_flops(&state, (enum pass)pass, 1);
        ck_assert_double_eq_tol(pass_flops(&both, (enum pass)pass, 1), sum, 1e-9 * sum);
    }
    double norm = H * 2.0; /* a layer norm has two vectors */
    ck_assert_double_eq(transformer_layer_parameters(&both.model, 0, true),
                        transformer_layer_parameters(&attention.model, 0, true) +
                            transformer_layer_parameters(&state.model, 0, true) - norm);
}
END_TEST

/* Tensor parallelism divides heads, context parallelism tokens and, for the scan, heads; each rank does its part of the work. */
START_TEST(ranks_divide_the_work)
{
    struct shape s;
    shape_hybrid(&s, "M", (enum mixer_kind)_i);
    double alone = pass_flops(&s, PASS_FORWARD, 1);
    double ranks = _i == MIXER_KIMI_DELTA ? 2 * (double)H * 2 * DIM * TOKENS : 0; /* whole on every rank */
    s.layout.tp = 4;
    ck_assert_double_eq_tol(pass_flops(&s, PASS_FORWARD, 1), (alone - ranks) / 4 + ranks, 1);
    s.layout.tp = 1;
    s.layout.cp = 2;
    ck_assert_double_eq_tol(pass_flops(&s, PASS_FORWARD, 1), alone / 2, 1);
}
END_TEST

/* What context parallelism exchanges for Mamba-2: a rank's tokens' values, gate, steps and keys there; values and gate back. */
START_TEST(sequences_turn_into_heads)
{
    struct shape s;
    struct work_table table = {0};
    shape_hybrid(&s, "M", MIXER_MAMBA2);
    s.layout.cp = 8; /* more than the four groups: each goes to two */
    work_add_pass(&table, &s.layout, &s.setting, PASS_FORWARD, (struct layer_range){0, 1}, false, false);
    const double expected[] = {TOKENS / 8.0 * (2 * INNER + HEADS + 2 * 8 * STATE) * 2, TOKENS / 8.0 * 2 * INNER * 2};
    int n = 0;
    for (int i = 0; i < table.n_items; i++)
        if (table.items[i].kind == WORK_COLLECTIVE) {
            ck_assert_int_eq(table.items[i].collective.collective, COLLECTIVE_ALL_TO_ALL);
            ck_assert_int_eq(table.items[i].collective.group, GROUP_CP);
            ck_assert_double_eq(table.items[i].collective.bytes, expected[n]);
            n++;
        }
    ck_assert_int_eq(n, 2);
    work_table_free(&table);
}
END_TEST

/* Mamba-2 keeps what the input projection gives, what the heads give, and that normed. */
START_TEST(a_mixer_keeps_what_it_needs)
{
    struct shape s;
    shape_hybrid(&s, "M", MIXER_MAMBA2);
    double kept = footprint_layer_bytes(&s.layout, &s.setting, layer_kind_of(&s.model, 0)) / TOKENS;
    ck_assert_double_eq_tol(kept, 2.0 * (2 * INNER + 2 * GROUPS * STATE + HEADS) + 2 * 2 * INNER + 2 * 2 * H, 1e-9);
    ck_assert_double_eq_tol(footprint_states_bytes(&s.layout, &s.setting), TOKENS / CHUNK * HEADS * STATE * DIM * 6.0, 1e-6);
}
END_TEST

/* A state that passes from chunk to chunk leaves SMs idle where heads are few: no split of k makes up for that. */
START_TEST(a_chain_is_not_split)
{
    struct shape s;
    shape_megascale(&s);
    struct work_gemm chain = {
        .m = 128, .n = 128, .k = 32768, .count = 4, .serial = true, .precision = PRECISION_BF16, .output_bytes = 2};
    struct work_gemm free = chain;
    free.serial = false;
    double few = cost_seconds(gemm_cost(&s.cluster.gpu, &chain));
    ck_assert_double_gt(few, 2 * cost_seconds(gemm_cost(&s.cluster.gpu, &free)));
    chain.count = 8; /* twice the heads in nearly the same time */
    ck_assert_double_lt(cost_seconds(gemm_cost(&s.cluster.gpu, &chain)), 1.5 * few);
}
END_TEST

/* Of an element of what the heads give: x and the gate in, y out; dy, x and the gate in, two gradients out. Whatever other norms
 * are, and at a rate of its own where there is one. */
START_TEST(a_gated_norm_is_one_kernel)
{
    for (int fused = 0; fused < 2; fused++) {
        struct shape s;
        shape_megascale(&s);
        s.model.mixer = (struct state_mixer){
            .kind = MIXER_MAMBA2, .heads = 16, .groups = 4, .state = 32, .head_dim = 64, .conv = 4, .chunk = 64, .norm = true};
        s.model.norm = NORM_RMS;
        snprintf(s.model.layer_pattern, sizeof s.model.layer_pattern, "m");
        s.layout.features = fused ? FEATURE_BIT(FUSED_OPS) : 0;
        double elements = (double)(s.layout.micro_batch * s.job.seq_len) * 16 * 64 / s.layout.tp;
        for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
            struct work_table table = {0};
            int found = 0;
            work_add_pass(&table, &s.layout, &s.setting, (enum pass)pass, (struct layer_range){0, 1}, false, false);
            for (int32_t i = 0; i < table.n_items; i++) {
                const struct work *work = &table.items[i];
                if (!work->label || strcmp(work->label, "mixer_norm") != 0)
                    continue;
                found++;
                ck_assert_double_eq(work->memory.bytes, elements * (pass == PASS_FORWARD ? 6 : 10));
                ck_assert_int_eq(work->memory.kernel, pass == PASS_FORWARD ? MEMORY_GATED_NORM : MEMORY_GATED_NORM_BACKWARD);
                double streamed = cost_seconds(memory_bound_cost(&s.cluster.gpu, &work->memory));
                struct gpu slow = s.cluster.gpu;
                slow.memory.rate[MEMORY_NORM] = slow.memory.rate[MEMORY_NORM_BACKWARD] = 1e6;
                ck_assert_double_eq(cost_seconds(memory_bound_cost(&slow, &work->memory)), streamed);
                slow.memory.rate[work->memory.kernel] = 1e9;
                ck_assert_double_gt(cost_seconds(memory_bound_cost(&slow, &work->memory)), work->memory.bytes / 1e9);
            }
            ck_assert_int_eq(found, 1);
            work_table_free(&table);
        }
    }
}
END_TEST

Suite *suite_mixer(void)
{
    Suite *suite = suite_create("mixer");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, scans_are_counted_by_hand, 0, MIXER_KIMI_DELTA + 1);
    tcase_add_test(all, parts_make_up_a_layer);
    tcase_add_test(all, mixers_side_by_side_share_a_norm);
    tcase_add_loop_test(all, ranks_divide_the_work, 0, MIXER_KIMI_DELTA + 1);
    tcase_add_test(all, sequences_turn_into_heads);
    tcase_add_test(all, a_mixer_keeps_what_it_needs);
    tcase_add_test(all, a_chain_is_not_split);
    tcase_add_test(all, a_gated_norm_is_one_kernel);
    suite_add_tcase(suite, all);
    return suite;
}
