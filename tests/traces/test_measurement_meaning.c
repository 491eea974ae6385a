/* What columns and numbers of foreign tables mean, and the messages where they cannot mean it. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "model/base/append.h"
#include "model/cost/work/work.h"
#include "tests/suite.h"
#include "tests/traces/measurement_text.h"

/* How commas are read: by cells that leave no choice, or by the separator of cells, which is reported. 512 sequences. */
static const struct {
    char separator;
    const char *batch, *step, *mfu;
    double step_s;
    bool told;
} comma_cases[] = {{';', "512", "8,345", "41,5", 8.345, false},
                   {';', "512,0", "8,345", "", 8.345, false},
                   {';', "512", "8,345", "", 8.345, true},
                   {';', "512", "8.345", "41.5", 8.345, false},
                   {';', "512", "1.008,345", "", 1008.345, false},
                   {'\t', "512", "8,345", "41,5", 8.345, false},
                   {'\t', "512", "0,834", "", 0.834, false},
                   {',', "512", "\"1,008\"", "41.5", 1008, false},
                   {',', "512", "\"1,008\"", "", 1008, true},
                   {',', "512", "\"1,008.5\"", "", 1008.5, false},
                   {',', "512", "\"1008,345\"", "", 1008.345, false},
                   {',', "512", "8.345", "", 8.345, false},
                   {',', "512.0", "8.345", "41", 8.345, false}};

START_TEST(commas)
{
    char text[512], s = comma_cases[_i].separator;
    bool told = false;
    snprintf(text, sizeof text,
             "model%cgpu%cgpus%cseq_len%cglobal_batch%cstep_time_s%cmfu_pct\nllama3-8b%ch100-sxm%c512%c8192%c%s%c%s%c%s\n", s, s,
             s, s, s, s, s, s, s, s, comma_cases[_i].batch, s, comma_cases[_i].step, s, comma_cases[_i].mfu);
    struct reading r = read_table(text);
    ck_assert_msg(r.table.n_items == 1, "%s: %s", comma_cases[_i].step, r.diags.n_items ? r.diags.items[0].text : "");
    ck_assert_double_eq_tol(r.row->step_s, comma_cases[_i].step_s, 1e-9);
    ck_assert_int_eq(r.row->job.global_batch, 512);
    for (size_t k = 0; k < r.diags.n_items; k++)
        told |= strstr(r.diags.items[k].text, "groups digits") != NULL;
    ck_assert_msg(told == comma_cases[_i].told, "%s", comma_cases[_i].step);
    reading_free(&r);
}
END_TEST

/* A column's name with its unit, one cell of it, and the step time of 512 sequences of 8,192 tokens on 64 GPUs; the message about
 * a column or a cell that cannot mean that. */
static const struct {
    const char *name, *cell;
    double step_s;
    const char *told;
} column_cases[] = {{"Step time (min)", "0.25", 15, NULL},
                    {"Step time (h)", "0.01", 36, NULL},
                    {"Step time (\302\265s)", "8e6", 8, NULL},
                    {"Step time (mean)", "8", 8, NULL},
                    {"Step time (fortnights)", "8", 0, "no unit of step_time_s"},
                    {"step_time_s (ms)", "8", 0, "no unit of step_time_s"},
                    {"iter_time_ms (s)", "8", 0, "no unit of step_time_s"},
                    {"iter_time_ms (mean)", "8000", 8, NULL},
                    {"iter_time", "80e-1", 8, NULL},
                    {"iter_time", "+8.0E+0", 8, NULL},
                    {"iter_time", "-8", 0, "row skipped: step_time_s"},
                    {"iter_time", "8-1", 0, "is not a number, nor OOM"},
                    {"iter_time", "8000", 8000, "is its unit another one"},
                    {"iter_time", "0.1", 0, "row skipped: step_time_s '0.1' is a step of 0.1 s"},
                    {"Tokens/s (per GPU)", "8192", 8, NULL},
                    {"Tokens/s (k)", "524.288", 8, NULL},
                    {"Tokens/s", "4096", 1024, "of all GPUs or of one"},
                    {"tflops", "25600", 0, "times what the bf16 peak of 64 GPUs allows (bf16 is assumed: no precision is said)"},
                    {"TFLOPS (total)", "25600", 0, "no unit of tflops_gpu"},
                    {"mfu", "45 tflops", 0, "row skipped: mfu_pct '45 tflops' is not a number"},
                    {"tokens/s", "Out of memory", 0, NULL},
                    {"tokens/s", "Speicher voll", 0, "is not a number, nor OOM"}};

START_TEST(meanings_of_columns)
{
    char text[512], all[4096] = "";
    snprintf(text, sizeof text, "model,gpu,gpus,seq_len,global_batch,recompute,%s\nllama3-8b,h100-sxm,64,8192,512,full,%s\n",
             column_cases[_i].name, column_cases[_i].cell);
    struct reading r = read_table(text);
    for (size_t k = 0; k < r.diags.n_items; k++)
        if (r.diags.items[k].severity == SEVERITY_WARNING) {
            ck_assert_int_gt(r.diags.items[k].column, 0);
            text_append(all, sizeof all, "%s\n", r.diags.items[k].text);
        }
    ck_assert_msg(column_cases[_i].told ? strstr(all, column_cases[_i].told) != NULL : !*all, "%s: %s", column_cases[_i].name,
                  all);
    if (column_cases[_i].told && strstr(column_cases[_i].told, "peak"))
        ck_assert_ptr_null(r.row);
    if (column_cases[_i].step_s > 0)
        ck_assert_double_eq_tol(r.row->step_s, column_cases[_i].step_s, 1e-9);
    reading_free(&r);
}
END_TEST

/* The step that 64 H100 at their peak take is the shortest that can have been: one a thousandth longer is a measurement, one a
 * thousandth shorter is not, whatever the precision's peak is. Both kinds stand in one table, and only one is counted. */
START_TEST(the_peak_is_the_bound)
{
    static const char *const precisions[] = {"bf16", "fp8"};
    char text[512];
    struct reading r = read_table("model,gpu,gpus,seq_len,global_batch,precision\nllama3-8b,h100-sxm,64,8192,512,bf16\n");
    struct setting setting = measurement_setting(r.row);
    double flops = model_flops_per_step(&setting, r.row->layout.features, FLOPS_CAUSAL);
    const double *peaks = r.row->cluster.gpu.peak_flops;
    const double least[] = {flops / 64 / peaks[PRECISION_BF16], flops / 64 / peaks[PRECISION_FP8]};
    reading_free(&r);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "case,model,gpu,gpus,seq_len,global_batch,precision,step_time_s,recompute\n"
                 "slow,llama3-8b,h100-sxm,64,8192,512,%s,%.9f,full\nfast,llama3-8b,h100-sxm,64,8192,512,%s,%.9f,full\n",
                 precisions[i], 1.001 * least[i], precisions[i], 0.999 * least[i]);
        r = read_table(text);
        ck_assert_uint_eq(r.table.n_items, 1);
        ck_assert_uint_eq(r.table.n_skipped, 1);
        ck_assert_str_eq(r.row->name, "slow");
        ck_assert_uint_eq(reading_warnings(&r), 1);
        expect_diag(&r.diags, 0, SEVERITY_WARNING, 3, i ? 41 : 42, "row skipped: step_time_s '");
        reading_free(&r);
    }
}
END_TEST

/* The sure one of two columns is read, whichever comes first; tokens are no sequences. */
START_TEST(columns_of_one_kind)
{
    struct reading r = read_table("model,gpu,gpus,seq_len,Global batch (tokens),TFLOPS,TFLOPS/GPU\n"
                                  "llama3-8b,h100-sxm,64,8192,4194304,25600,400\n");
    ck_assert_int_eq(r.row->job.global_batch, 512);
    struct setting setting = measurement_setting(r.row);
    double flops = model_flops_per_step(&setting, r.row->layout.features, FLOPS_FULL);
    ck_assert_double_eq_tol(r.row->step_s, flops / (64 * 400e12), 1e-9);
    expect_diag(&r.diags, 0, SEVERITY_WARNING, 1, 46, "column 'TFLOPS' is not read: another one here is tflops_gpu");
    reading_free(&r);
}
END_TEST

/* A time and rates that are not its own: the time is used, and each rate is reported. */
START_TEST(contradictions)
{
    struct reading r =
        read_table("model,gpu,gpus,seq_len,global_batch,step_time_s,tokens_per_s,tokens_per_s_gpu,tflops_gpu,accumulation,"
                   "batch_tokens\n"
                   "llama3-8b,h100-sxm,64,8192,512,8,524288,8000,400,8,4194304\n"
                   "llama3-8b,h100-sxm,64,8192,512,8,824288,8000,1,3,1000000\n");
    ck_assert_double_eq_tol(r.table.items[1].step_s, 8, 1e-12);
    ck_assert_int_eq(r.table.items[1].job.global_batch, 512);
    expect_diag(&r.diags, 0, SEVERITY_WARNING, 3, 50, "batch_tokens 1000000 contradicts global_batch 512");
    expect_diag(&r.diags, 1, SEVERITY_WARNING, 3, 48, "accumulation 3 x micro_batch 1 x dp 64 contradicts");
    expect_diag(&r.diags, 2, SEVERITY_WARNING, 3, 34, "tokens_per_s '824288' is a step of 5.088 s, but step_time_s says 8 s");
    expect_diag(&r.diags, 3, SEVERITY_WARNING, 3, 46, "tflops_gpu '1' is a step of");
    reading_free(&r);
}
END_TEST

/* Steps of accumulation and the batch say the micro-batch; without the batch it stays at one; a stated one is not touched. */
START_TEST(micro_batches_that_accumulation_says)
{
    struct reading r = read_table("model,gpu,gpus,seq_len,tp,pp,dp,micro_batch,global_batch,accumulation,recompute,features\n"
                                  "gpt3-1.3b,a100-80g-sxm,8,2048,1,2,4,,1024,64,full,fused_ops\n"
                                  "gpt3-1.3b,a100-80g-sxm,8,2048,1,2,4,,,64,full,fused_ops\n"
                                  "gpt3-1.3b,a100-80g-sxm,8,2048,1,2,4,2,512,64,full,fused_ops\n");
    ck_assert_uint_eq(r.table.n_items, 3);
    ck_assert_int_eq(r.row[0].layout.micro_batch, 4);
    ck_assert_int_eq(r.row[0].job.global_batch, 1024);
    ck_assert_int_eq(r.row[1].layout.micro_batch, 1);
    ck_assert_int_eq(r.row[1].job.global_batch, 256);
    ck_assert_int_eq(r.row[2].layout.micro_batch, 2);
    ck_assert_uint_eq(reading_warnings(&r), 0);
    reading_free(&r);
}
END_TEST

/* What the outcome says holds: a row that ran wants its time. */
START_TEST(ran_out_of_memory_or_not)
{
    struct reading r = read_table("model,gpu,gpus,seq_len,global_batch,outcome,step_time_s\n"
                                  "llama3-8b,h100-sxm,64,8192,512,ok,OOM\n"
                                  "llama3-8b,h100-sxm,64,8192,512,oom,8\n"
                                  "llama3-8b,h100-sxm,64,8192,512,,OOM\n"
                                  "llama3-8b,h100-sxm,64,8192,512,,8\n");
    ck_assert_uint_eq(r.table.n_items, 3);
    ck_assert(r.table.items[0].oom && r.table.items[1].oom && !r.table.items[2].oom);
    expect_diag(&r.diags, 0, SEVERITY_WARNING, 2, 35, "step_time_s 'OOM' is not a number, though it ran");
    reading_free(&r);
}
END_TEST

/* Who says neither a time nor an outcome does not say that it fitted; an outcome, a time or a share of the peak does. What
 * nothing says did not run, so no recomputation is inferred of it. */
START_TEST(nothing_is_told_of_an_end)
{
    struct reading r = read_table("model,gpu,gpus,seq_len,global_batch,outcome,step_time_s,mfu_pct,assumed,pp\n"
                                  "llama3-70b,h100-sxm,64,8192,512,,,,recompute,2\n"
                                  "llama3-70b,h100-sxm,64,8192,512,ok,,,,2\n"
                                  "llama3-70b,h100-sxm,64,8192,512,,90,,,2\n"
                                  "llama3-70b,h100-sxm,64,8192,512,,,40,,2\n"
                                  "llama3-70b,h100-sxm,64,8192,512,oom,,,,2\n");
    static const bool outcome_unknown[] = {true, false, false, false, false};
    ck_assert_uint_eq(r.table.n_items, 5);
    for (size_t i = 0; i < 5; i++)
        ck_assert_msg(r.table.items[i].outcome_unknown == outcome_unknown[i], "row %zu", i);
    ck_assert_int_eq(r.table.items[0].layout.recompute.what, RECOMPUTE_NONE);
    reading_free(&r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("measurement_meaning");
    TCase *rows = tcase_create("rows");
    tcase_add_loop_test(rows, commas, 0, sizeof comma_cases / sizeof *comma_cases);
    tcase_add_loop_test(rows, meanings_of_columns, 0, sizeof column_cases / sizeof *column_cases);
    tcase_add_test(rows, the_peak_is_the_bound);
    tcase_add_test(rows, columns_of_one_kind);
    tcase_add_test(rows, contradictions);
    tcase_add_test(rows, micro_batches_that_accumulation_says);
    tcase_add_test(rows, ran_out_of_memory_or_not);
    tcase_add_test(rows, nothing_is_told_of_an_end);
    suite_add_tcase(suite, rows);
    return suite_run(suite);
}
