/* Every reference over random shapes: writes its outputs whole, nothing beside them, and gives the same bits twice. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_device.h"
#include "tests/suite.h"

enum { CASES = THINNED == 1 ? 12 : 2, SIZE = 40 };

static void no_poison(const struct kernel_case *c, const struct operand *operand)
{
    const float *data = operand_data(operand);
    if (operand->type == OPERAND_ACTIVATION || operand->type == OPERAND_FLOAT)
        for (size_t i = 0; i < operand->count; i++)
            ck_assert_msg(!isnan(data[i]), "%s %s: %s[%zu] is %g", kernel_name(c->call.kernel), c->text, operand->name, i,
                          (double)data[i]);
}

static void same_bits(const struct kernel_case *a, const struct kernel_case *b)
{
    for (int i = 0; i < a->n_operands; i++) {
        const struct operand *operand = &a->operands[i];
        size_t bytes = operand->count * operand_element_bytes(operand, false);
        ck_assert_msg(memcmp(operand_data(operand), operand_data(&b->operands[i]), bytes) == 0,
                      "%s %s: %s differs between two runs", kernel_name(a->call.kernel), a->text, operand->name);
    }
}

static void run_case(struct kernel_case *c, enum kernel kernel, uint64_t seed)
{
    struct random_stream random = random_stream_named(seed, 1, (uint64_t)kernel);
    kernel_case_draw(c, kernel, &random, SIZE);
    kernel_case_reference(c);
}

START_TEST(every_kernel)
{
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct kernel_case a, b;
        run_case(&a, (enum kernel)_i, seed);
        run_case(&b, (enum kernel)_i, seed);
        const char *broken = kernel_case_guards(&a);
        ck_assert_msg(!broken, "%s %s: wrote beside %s", kernel_name(a.call.kernel), a.text, broken);
        for (int i = 0; i < a.n_operands; i++)
            no_poison(&a, &a.operands[i]);
        same_bits(&a, &b);
        kernel_case_free(&a);
        kernel_case_free(&b);
    }
}
END_TEST

START_TEST(bf16_rounds_to_nearest_even)
{
    ck_assert_uint_eq(bf16_of_float(1.0f), 0x3f80);
    ck_assert_uint_eq(bf16_of_float(1.00390625f), 0x3f80); /* 1 + 2^-8: halfway, down to even */
    ck_assert_uint_eq(bf16_of_float(1.01171875f), 0x3f82); /* 1 + 3 * 2^-8: halfway, up to even */
    ck_assert(isnan(float_of_bf16(bf16_of_float(NAN))));
    ck_assert(isinf(float_of_bf16(bf16_of_float(INFINITY))));
}
END_TEST

/* A device that wrote nothing is wrong by whatever bound, and by none. */
START_TEST(errors_without_bound)
{
    struct random_stream random = random_stream_named(0, 2, 0);
    struct kernel_case c;
    struct kernel_run run;
    char why[200] = "";
    kernel_case_draw_chunked(&c, KERNEL_SCAN_FORWARD, 0, true, &random);
    kernel_run_prepare(&run, &c, &kernel_device_host);
    kernel_run_fetch(&run);
    kernel_case_reference(&c);
    ck_assert(!kernel_run_check(&run, why, sizeof why));
    ck_assert_msg(strstr(why, "is off by"), "%s", why);
    c.amplification = INFINITY;
    ck_assert_msg(!kernel_run_check(&run, why, sizeof why), "nothing can be wrong");
    ck_assert_msg(strstr(why, "has no bound"), "%s", why);
    kernel_run_free(&run);
    kernel_case_free(&c);
}
END_TEST

/* Bounds of what is drawn are no more than so much wider (a draw that is ends the program). */
START_TEST(amplification_is_bounded)
{
    const enum kernel kernel = _i ? KERNEL_SCAN_BACKWARD : KERNEL_SCAN_FORWARD;
    double most = 0;
    for (int number = 0; number < N_CHUNKED * CHUNKED_WAYS; number += THINNED) {
        struct random_stream random = random_stream_named((uint64_t)number, 3, (uint64_t)kernel);
        struct kernel_case c;
        kernel_case_draw_chunked(&c, kernel, number, true, &random);
        ck_assert_double_ge(c.amplification, 1);
        most = fmax(most, c.amplification);
        kernel_case_free(&c);
    }
    ck_assert_double_le(most, CHUNKED_AMPLIFICATION);
    ck_assert_double_gt(most, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel references over random shapes");
    TCase *tcase = tcase_create("cases");
    tcase_add_loop_test(tcase, every_kernel, 0, N_KERNELS);
    tcase_add_test(tcase, bf16_rounds_to_nearest_even);
    tcase_add_test(tcase, errors_without_bound);
    tcase_add_loop_test(tcase, amplification_is_bounded, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
