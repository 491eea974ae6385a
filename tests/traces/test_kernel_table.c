/* Kernel tables: what a row becomes, and what is said of rows that are wrong. */
#include <check.h>
#include <string.h>

#include "model/cost/kernel/attention.h"
#include "tests/suite.h"
#include "traces/table/kernel_table.h"

static enum status parse(const char *text, struct kernel_table *table, struct diags *diags)
{
    struct csv_table csv;
    enum status status = csv_table_parse("k.csv", text, strlen(text), &csv, diags);
    return status == STATUS_OK ? kernel_table_build(&csv, table, diags) : status;
}

START_TEST(rows_of_all_kinds_are_read)
{
    struct diags diags = {0};
    struct kernel_table t;
    ck_assert_int_eq(parse("gpu,op,dtype,m,n,k,batch,seq_len,heads,kv_heads,head_dim,window,ranks,nodes,bytes,time_us\n"
                           "g,gemm,fp8,64,128,256,,,,,,,,,,2.5\n"
                           "g,attention_forward,bf16,,,,2,1024,8,4,128,0,,,,10\n"
                           "g,all_reduce,fp16,,,,,,,,,,8,2,1048576,20\n",
                           &t, &diags),
                     STATUS_OK);
    ck_assert_uint_eq(t.n_items, 3);
    ck_assert_int_eq(t.items[0].op, MEASURED_GEMM);
    ck_assert_int_eq(t.items[0].gemm.k, 256);
    ck_assert_int_eq(t.items[0].gemm.precision, PRECISION_FP8);
    ck_assert_double_eq_tol(t.items[0].seconds, 2.5e-6, 1e-18);
    ck_assert_double_eq_tol(t.items[1].attention.pairs, attended_pairs(1024, 0), 1e-6); /* causal unless said otherwise */
    struct gpu gpu = {.flash_attention2 = 0.5, .peak_flops[PRECISION_BF16] = 1e15, .sms = 100, .hbm_rate = 1e13};
    gpu.attention = (struct attention_parameters){.forward_fraction = 0.5};
    gpu.memory.bandwidth_fraction = 1;
    double seconds = cost_seconds(attention_cost(&gpu, &t.items[1].attention, false));
    gpu.flash_attention2 = 1;
    ck_assert_double_gt(seconds, 0);
    ck_assert_double_eq(cost_seconds(attention_cost(&gpu, &t.items[1].attention, false)), seconds); /* the GPU's fastest kernel */
    ck_assert_int_eq(t.items[2].collective.collective, COLLECTIVE_ALL_REDUCE);
    ck_assert_int_eq(t.items[2].collective.nodes, 2);
    kernel_table_free(&t);
    diags_free(&diags);
}
END_TEST

START_TEST(experts_products_are_launched_apart)
{
    struct diags diags = {0};
    struct kernel_table t;
    ck_assert_int_eq(
        parse("gpu,op,dtype,m,n,k,count,time_us\ng,grouped_gemm,bf16,64,128,256,8,2\ng,gemm,bf16,64,128,256,8,2\n", &t, &diags),
        STATUS_OK);
    ck_assert_int_eq(t.items[0].gemm.count, 8);
    ck_assert(t.items[0].gemm.apart && !t.items[1].gemm.apart);
    ck_assert(kernel_case(&t.items[0]) != kernel_case(&t.items[1]));
    kernel_table_free(&t);
    diags_free(&diags);
}
END_TEST

START_TEST(a_shape_that_is_missing_is_an_error)
{
    struct diags diags = {0};
    struct kernel_table t;
    ck_assert_int_eq(parse("gpu,op,dtype,m,n,time_us\ng,gemm,bf16,64,,1\n", &t, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_eq(diags.n_errors, 2); /* n is empty, k has no column */
    diags_free(&diags);
}
END_TEST

START_TEST(unknown_words_skip_their_rows)
{
    struct diags diags = {0};
    struct kernel_table t;
    ck_assert_int_eq(
        parse("gpu,op,dtype,m,n,k,time_us\ng,gemm,int3,1,1,1,1\ng,gemm,int3,1,1,1,1\ng,gemm,bf16,1,1,1,1\n", &t, &diags),
        STATUS_OK);
    ck_assert_uint_eq(t.n_items, 1);
    ck_assert_uint_eq(t.n_skipped, 2);
    ck_assert_uint_eq(diags.n_items, 1); /* one warning for the word */
    kernel_table_free(&t);
    diags_free(&diags);
}
END_TEST

/* Five words: three by name, the others in one line at the first of them. */
START_TEST(many_unknown_words_are_told_together)
{
    struct diags diags = {0};
    struct kernel_table t;
    ck_assert_int_eq(parse("gpu,op,dtype,time_us,spread\ng,a,bf16,1,0\ng,b,bf16,1,0\ng,a,bf16,1,0\ng,c,bf16,1,0\ng,d,bf16,1,0\n"
                           "g,e,bf16,1,0\n",
                           &t, &diags),
                     STATUS_OK);
    ck_assert_uint_eq(t.n_skipped, 6);
    ck_assert_uint_eq(diags.n_items, 4);
    ck_assert_str_eq(diags.items[3].text, "rows of 2 more unknown words skipped, from 'd' on");
    ck_assert_int_eq(diags.items[3].line, 6);
    kernel_table_free(&t);
    diags_free(&diags);
}
END_TEST

START_TEST(cases_differ_when_shapes_do)
{
    struct diags diags = {0};
    struct kernel_table t;
    ck_assert_int_eq(
        parse("gpu,op,dtype,m,n,k,time_us\ng,gemm,bf16,1,2,3,1\nh,gemm,bf16,1,2,3,9\ng,gemm,bf16,2,1,3,1\n", &t, &diags),
        STATUS_OK);
    ck_assert(kernel_case(&t.items[0]) == kernel_case(&t.items[1]));
    ck_assert(kernel_case(&t.items[0]) != kernel_case(&t.items[2]));
    kernel_table_free(&t);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_table");
    TCase *tests = tcase_create("kernel_table");
    tcase_add_test(tests, rows_of_all_kinds_are_read);
    tcase_add_test(tests, experts_products_are_launched_apart);
    tcase_add_test(tests, a_shape_that_is_missing_is_an_error);
    tcase_add_test(tests, unknown_words_skip_their_rows);
    tcase_add_test(tests, many_unknown_words_are_told_together);
    tcase_add_test(tests, cases_differ_when_shapes_do);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
