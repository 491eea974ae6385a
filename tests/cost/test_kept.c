/* What is kept in fewer bits: bytes and casts by hand, and the job that was trained so. */
#include <string.h>

#include "model/cost/kernel/machine.h"
#include "shapes.h"

#define INPUT  FEATURE_BIT(FP8_ACTIVATION_INPUT)
#define OUTPUT FEATURE_BIT(FP12_ATTENTION_OUTPUT)

static double kept_with(struct shape *s, feature_set more)
{
    feature_set before = s->layout.features;
    s->layout.features |= more;
    double bytes = layer_bytes_a_token(s);
    s->layout.features = before;
    return bytes;
}

/* A byte an element less of what GeLU reads, half a byte of attention's output, on eight ranks; repeated, neither is there. */
START_TEST(a_dense_layer)
{
    struct shape s;
    shape_layer(&s);
    double h = 12288, all = kept_with(&s, 0);
    ck_assert_double_eq_tol(all - kept_with(&s, INPUT), 4 * h / 8, 1e-6);
    ck_assert_double_eq_tol(all - kept_with(&s, OUTPUT), 0.5 * h / 8, 1e-6);
    ck_assert_double_eq_tol(all - kept_with(&s, INPUT | OUTPUT), 4.5 * h / 8, 1e-6);
    s.model.gated_mlp = true;
    ck_assert_double_eq_tol(kept_with(&s, 0) - kept_with(&s, INPUT), 8 * h / 8, 1e-6);
    s.layout.recompute.what = RECOMPUTE_MLP; /* reads what the norm gives */
    ck_assert_double_eq_tol(kept_with(&s, 0) - kept_with(&s, INPUT), 0, 1e-6);
    s.layout.recompute.what = RECOMPUTE_FULL;
    ck_assert_double_eq_tol(kept_with(&s, 0) - kept_with(&s, INPUT | OUTPUT), 0, 1e-6);
}
END_TEST

/* Two halves of eight copies and of the shared expert; in fp8 the projection's operand is not kept beside the output. */
START_TEST(a_latent_mixture)
{
    struct shape s;
    shape_latent_mixture(&s);
    double output = 128 * 128, halves = 2 * 2048 * (8 + 1);
    ck_assert_double_eq_tol(kept_with(&s, 0) - kept_with(&s, INPUT), halves, 1e-6);
    ck_assert_double_eq_tol(kept_with(&s, 0) - kept_with(&s, OUTPUT), 0.5 * output, 1e-6);
    s.job.precision = PRECISION_FP8;
    ck_assert_double_eq_tol(kept_with(&s, 0) - kept_with(&s, INPUT), halves, 1e-6);
    ck_assert_double_eq_tol(kept_with(&s, 0) - kept_with(&s, OUTPUT), 1.5 * output, 1e-6);
    s.layout.recompute.what = RECOMPUTE_MOE_ACT;
    ck_assert_double_eq_tol(kept_with(&s, 0) - kept_with(&s, INPUT), halves, 1e-6);
}
END_TEST

/* Bytes of the kernels with a label in a pass over one layer. */
static double bytes_of(const struct shape *s, enum pass pass, const char *label)
{
    struct work_table table = {0};
    struct layer_range one = {0, 1};
    double bytes = 0;
    work_add_pass(&table, &s->layout, &s->setting, pass, one, false, false);
    for (int32_t i = 0; i < table.n_items; i++)
        if (table.items[i].kind == WORK_MEMORY_BOUND && strcmp(table.items[i].label, label) == 0)
            bytes += table.items[i].memory.bytes;
    work_table_free(&table);
    return bytes;
}

/* 3 bytes an element on the way there and 3 back, 3.5 of the output, which either half of a divided backward pass brings back. */
START_TEST(casts_there_and_back)
{
    struct shape s;
    shape_layer(&s);
    double elements = 2048.0 * 12288 / 8;
    ck_assert_double_eq(bytes_of(&s, PASS_FORWARD, "kept_input"), 0);
    ck_assert_double_eq(bytes_of(&s, PASS_FORWARD, "kept_output"), 0);
    s.layout.features |= INPUT | OUTPUT;
    static const enum pass with_input[] = {PASS_FORWARD, PASS_BACKWARD, PASS_BACKWARD_INPUT};
    for (size_t i = 0; i < sizeof with_input / sizeof *with_input; i++) {
        ck_assert_double_eq_tol(bytes_of(&s, with_input[i], "kept_input"), 3 * 4 * elements, 1);
        ck_assert_double_eq_tol(bytes_of(&s, with_input[i], "kept_output"), 3.5 * elements, 1);
    }
    ck_assert_double_eq(bytes_of(&s, PASS_BACKWARD_WEIGHT, "kept_input"), 0);
    ck_assert_double_eq_tol(bytes_of(&s, PASS_BACKWARD_WEIGHT, "kept_output"), 3.5 * elements, 1);
    shape_latent_mixture(&s);
    s.layout.features |= INPUT | OUTPUT;
    double own = 2048;
    ck_assert_double_eq_tol(bytes_of(&s, PASS_FORWARD, "kept_input"), 3 * own * 2 * 2048 * (8 + 1), 1);
    ck_assert_double_eq_tol(bytes_of(&s, PASS_FORWARD, "kept_output"), 3.5 * own * 128 * 128, 1);
    s.layout.recompute.what = RECOMPUTE_MOE_ACT; /* brought back before the repetition, too */
    ck_assert_double_eq_tol(bytes_of(&s, PASS_BACKWARD, "kept_input"), 3 * own * 2 * 2048 * (8 + 1 + 8), 1);
}
END_TEST

Suite *suite_kept(void)
{
    Suite *suite = suite_create("kept");
    TCase *tests = tcase_create("kept in fewer bits");
    tcase_add_test(tests, a_dense_layer);
    tcase_add_test(tests, a_latent_mixture);
    tcase_add_test(tests, casts_there_and_back);
    suite_add_tcase(suite, tests);
    return suite;
}
