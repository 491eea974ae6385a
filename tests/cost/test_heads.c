/* Attention of newer shapes against grouped attention: values of another width, queries by rank, heads of windowed layers, keys
 * that an indexer picks. */
#include <string.h>

#include "model/cost/kernel/machine.h"
#include "model/cost/memory/footprint.h"
#include "shapes.h"

enum { H = 1024, HEADS = 16, DIM = H / HEADS, TOKENS = 2048 };

/* On one rank, one sequence of 2,048 tokens. */
static void shape_heads(struct shape *s, int layers)
{
    shape_gpt(s, layers, H, HEADS, 1, 1, 1, 1);
    s->model.linear_bias = false;
    s->layout.features = s->job.features = FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(FLASH_ATTENTION2);
}

/* FLOPs a token, forward. */
static double forward(const struct shape *s, int layers)
{
    return pass_flops(s, PASS_FORWARD, layers) / TOKENS;
}

/* What the model's own count changes by: forward and backward are three times forward. */
static double counted(const struct shape *s)
{
    return model_flops_per_step(&s->setting, s->layout.features, FLOPS_CAUSAL) / 3 / TOKENS / (double)s->job.global_batch;
}

static void assert_changes(const struct shape *s, const struct shape *base, int layers, double expected)
{
    ck_assert_double_eq_tol(forward(s, layers) - forward(base, layers), expected, 1e-6 * forward(base, layers));
    ck_assert_double_eq_tol(counted(s) - counted(base), expected, 1e-6 * counted(base));
    double backward = pass_flops(s, PASS_BACKWARD, layers) - pass_flops(base, PASS_BACKWARD, layers);
    ck_assert_msg(backward * expected > 0, "backward changes the other way");
}

/* Half as wide: the matrix of values, the output's projection and the pairs' second product. */
START_TEST(values_of_another_width)
{
    struct shape s, base;
    shape_heads(&s, 1), shape_heads(&base, 1);
    s.model.value_dim = DIM / 2;
    double columns = HEADS * (DIM / 2.0 - DIM);
    assert_changes(&s, &base, 1, 2 * H * columns * 2 + 2 * columns * (TOKENS + 1) / 2);
    ck_assert_double_lt(layer_bytes_a_token(&s), layer_bytes_a_token(&base));
}
END_TEST

START_TEST(queries_come_by_rank)
{
    struct shape s, base;
    const double rank = 128;
    shape_heads(&s, 1), shape_heads(&base, 1);
    s.model.query_rank = (int64_t)rank;
    assert_changes(&s, &base, 1, 2 * (rank * (H + H) - (double)H * H));
}
END_TEST

/* The first of two layers has a window and a quarter of the key and value heads. */
START_TEST(windowed_layers_have_heads_of_their_own)
{
    struct shape s, base;
    shape_heads(&s, 2), shape_heads(&base, 2);
    s.model.window = base.model.window = 256;
    s.model.window_every = base.model.window_every = 2;
    s.model.windowed.kv_heads = HEADS / 4;
    assert_changes(&s, &base, 2, 2 * H * 2 * DIM * (HEADS / 4.0 - HEADS));
    s.model.windowed = (struct windowed_heads){.head_dim = DIM / 2};
    double columns = HEADS * DIM / 2.0, pairs = (256.0 * TOKENS - 256.0 * 255 / 2) / TOKENS;
    assert_changes(&s, &base, 2, -(2 * H * 4 * columns + 4 * columns * pairs));
    ck_assert_double_lt(footprint_layer_bytes(&s.layout, &s.setting, layer_kind_of(&s.model, 0)),
                        footprint_layer_bytes(&base.layout, &base.setting, layer_kind_of(&base.model, 0)));
}
END_TEST

START_TEST(values_that_are_keys_have_no_matrix)
{
    struct shape s, base;
    shape_heads(&s, 1), shape_heads(&base, 1);
    s.model.values_are_keys = true;
    assert_changes(&s, &base, 1, -2.0 * H * H);
}
END_TEST

/* A query attends to 512 keys; four heads of 32 score all pairs, half of the square, by queries and a key of their own. */
START_TEST(an_indexer_picks_keys)
{
    struct shape s, base;
    const double picked = 512, heads = 4, dim = 32, all = (TOKENS + 1) / 2.0,
                 some = (picked * TOKENS - picked * (picked - 1) / 2) / TOKENS;
    shape_heads(&s, 1), shape_heads(&base, 1);
    s.model.indexer = (struct key_indexer){.heads = (int)heads, .head_dim = (int)dim, .top_k = (int)picked};
    double core = 4.0 * H * (some - all), index = 2 * (H * heads * dim + H * (dim + heads)),
           scores = 2 * heads * dim * TOKENS / 2.0;
    ck_assert_double_eq_tol(forward(&s, 1) - forward(&base, 1), core + index + scores, 1e-6 * forward(&base, 1));
    ck_assert_double_gt(pass_flops(&base, PASS_BACKWARD, 1), pass_flops(&s, PASS_BACKWARD, 1));
}
END_TEST

static double seconds(const struct shape *s)
{
    struct machine machine = machine_of(&s->layout, &s->setting);
    struct work_table table = {0};
    struct layer_range range = {0, 1};
    int32_t pass = work_add_pass(&table, &s->layout, &s->setting, PASS_FORWARD, range, false, false);
    double time = cost_seconds(work_cost(&machine, &table, pass));
    work_table_free(&table);
    return time;
}

/* A norm behind each part, too: its input is kept. */
START_TEST(four_norms_cost_more_than_two)
{
    struct shape s, base;
    shape_heads(&s, 1), shape_heads(&base, 1);
    s.model.layer_norms = 4;
    ck_assert_double_eq_tol(layer_bytes_a_token(&s) - layer_bytes_a_token(&base), 2 * 2 * H, 1e-6);
    ck_assert_double_gt(seconds(&s), seconds(&base));
}
END_TEST

Suite *suite_heads(void)
{
    Suite *suite = suite_create("heads");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, values_of_another_width);
    tcase_add_test(tests, queries_come_by_rank);
    tcase_add_test(tests, windowed_layers_have_heads_of_their_own);
    tcase_add_test(tests, values_that_are_keys_have_no_matrix);
    tcase_add_test(tests, an_indexer_picks_keys);
    tcase_add_test(tests, four_norms_cost_more_than_two);
    suite_add_tcase(suite, tests);
    return suite;
}
