/* What logs of Megatron-LM and its kin say, by hand. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"
#include "traces/launch/megatron/megatron_log.h"

struct logged {
    struct launch_words words;
    struct diags diags;
    struct launch_log log;
};

static struct logged log_of(const char *text, int warm_up)
{
    struct logged l = {0};
    ck_assert(launch_is_log(text, strlen(text)) || *text == '!');
    megatron_log_parse("l", text, strlen(text), warm_up, &l.words, &l.log, &l.diags);
    return l;
}

static void logged_free(struct logged *l)
{
    launch_words_free(&l->words);
    diags_free(&l->diags);
}

static void expect_near(double a, double b)
{
    ck_assert_msg(a > b - 1e-9 && a < b + 1e-9, "%.12g instead of %.12g", a, b);
}

#define BLOCK "--- arguments ---\n  num_layers ....... 8\n  fp8 ... None\n--- end of arguments ---\n"
#define STEP(ms)                                                                                                                 \
    " iteration        1/  10 | consumed samples: 1 | elapsed time per iteration (ms): " #ms " | learning rate: 1E-4 |"
#define OF(n) " global batch size: " #n " | lm loss: 1.0E+01 |\n"

START_TEST(lines_of_iterations_of_all_kinds)
{
    static const struct {
        const char *text;
        double seconds;
    } cases[] = {
        {STEP(6340.0) OF(8), 6.34},
        {" [2025-06-01 12:00:00] 3: " STEP(250.5) OF(8), 0.2505},
        {"[default7]: iteration 5/ 10 | consumed samples: 5 | elapsed time per iteration (s): 105.43 | samples per second: 1.0 "
         "|\n",
         105.43},
        {"05/01/2025 [INFO|DP=0|PP=0|TP=0]: iteration: 5 / 10 | consumed_tokens: 10M | elapsed_time_per_iteration_ms: 6.34K | "
         "tokens_per_sec: 827K | global_batch_size: 1.02K |\n",
         6.34},
        {"Epoch 0: :  1%| | 10/1000 [00:52<1:0, v_num=1, reduced_train_loss=2.0, train_step_timing in s=5.120]\r\n", 5.12},
        {"Training epoch 0, iteration 9/99 | lr: 1e-5 | global_batch_size: 512 | train_step_timing in s: 2.5 | reduced: 1\n",
         2.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct logged l = log_of(cases[i].text, -1);
        ck_assert_msg(l.log.n_iterations == 1, "%s", cases[i].text);
        expect_near(l.log.step_s, cases[i].seconds);
        logged_free(&l);
    }
}
END_TEST

/* Batches of 4 come first; of the six of 8 one is warm-up, a fifth of them; the median of 1, 2, 3, 4, 9 is 3. */
START_TEST(the_median_behind_ramp_up_and_warm_up)
{
    const char *text = BLOCK STEP(500) OF(4) STEP(600) OF(4) STEP(99000) OF(8) STEP(1000) OF(8) STEP(2000) OF(8) STEP(9000) OF(8)
        STEP(4000) OF(8) STEP(3000) OF(8);
    struct logged l = log_of(text, -1);
    ck_assert_int_eq(l.log.n_iterations, 8);
    ck_assert_int_eq(l.log.n_ramp_up, 2);
    ck_assert_int_eq(l.log.n_warm_up, 1);
    ck_assert_int_eq(l.log.n_taken, 5);
    expect_near(l.log.step_s, 3);
    expect_near(l.log.low_s, 2);
    expect_near(l.log.high_s, 4);
    ck_assert(!l.log.oom && !l.log.failed && l.log.has_arguments);
    logged_free(&l);
    l = log_of(text, 4);
    expect_near(l.log.step_s, 3.5);
    logged_free(&l);
    l = log_of(text, 100); /* one is left in any case */
    expect_near(l.log.step_s, 3);
    logged_free(&l);
}
END_TEST

/* A log that is copied while it is written ends anywhere: in a number, or before the batch. */
START_TEST(a_log_may_break_off_anywhere)
{
    static const char *const ends[] = {"elapsed time per iteration (ms): 10", "elapsed time per iteration (ms): 10 | lear",
                                       STEP(1000) " global batch size: 1"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", BLOCK STEP(1000) OF(16) STEP(1000) OF(16) STEP(1000) OF(16), ends[i]);
        struct logged l = log_of(text, -1);
        ck_assert_msg(l.log.n_taken == 2, "%s", ends[i]);
        expect_near(l.log.step_s, 1);
        logged_free(&l);
    }
}
END_TEST

START_TEST(progress_bars_stand_on_one_line)
{
    struct logged l = log_of("1%\r2%\r3%\r\n" BLOCK "1%\r2%\nCUDA out of memory\n", -1);
    ck_assert_int_eq(l.words.items[0].at.line, 3);
    ck_assert_int_eq(l.log.failed_at.line, 7);
    logged_free(&l);
}
END_TEST

START_TEST(colours_are_taken_out)
{
    static const char *const texts[][2] = {{"plain", "plain"},
                                           {"\033[32mnum_layers ... 8\033[0m\n", "num_layers ... 8\n"},
                                           {"a\033[1;38;5;208mb\033[Kc", "abc"},
                                           {"a\033", "a"},
                                           {"a\033[", "a"},
                                           {"\033[1", ""}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[64];
        size_t n = (size_t)snprintf(text, sizeof text, "%s", texts[i][0]);
        n = launch_plain(text, n);
        ck_assert_uint_eq(n, strlen(texts[i][1]));
        ck_assert(memcmp(text, texts[i][1], n) == 0);
    }
}
END_TEST

START_TEST(how_jobs_end)
{
    struct logged l =
        log_of(BLOCK "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\nChildFailedError:\n", -1);
    ck_assert(l.log.oom && l.log.n_iterations == 0);
    ck_assert_int_eq(l.log.failed_at.line, 5);
    logged_free(&l);
    l = log_of(BLOCK "Traceback (most recent call last):\n  x\ntorch.cuda.OutOfMemoryError: CUDA out of memory.\n", -1);
    ck_assert(l.log.oom); /* a traceback before it does not hide it */
    logged_free(&l);
    l = log_of(BLOCK STEP(1000) OF(8) "NCCL error in: x\nSegmentation fault\n", -1);
    ck_assert(!l.log.oom);
    ck_assert_str_eq(l.log.failed, "NCCL error");
    ck_assert_int_eq(l.log.n_iterations, 1);
    logged_free(&l);
    l = log_of(BLOCK "CUDA out of memory\n" STEP(1000) OF(8), -1); /* it went on */
    ck_assert(!l.log.oom && !l.log.failed);
    logged_free(&l);
}
END_TEST

START_TEST(argument_blocks_whatever_stands_in_front)
{
    struct logged l = log_of("0: ------------------------ arguments ------------------------\n"
                             "0:   accumulate_allreduce_grads_in_fp32 .............. True\n"
                             "0:   data_path ....................................... ['a b', 'c ... d']\n"
                             "0:   a_name_so_long_that_there_is_no_room_for_dots_at_all  7\n"
                             "0: -------------------- end of arguments ---------------------\n"
                             "0:   num_layers ...................................... 3\n",
                             -1);
    ck_assert_int_eq(l.words.n, 3);
    ck_assert_str_eq(l.words.items[0].name, "accumulate_allreduce_grads_in_fp32");
    ck_assert_str_eq(l.words.items[0].value, "True");
    ck_assert_str_eq(l.words.items[1].value, "['a b', 'c ... d']");
    ck_assert_str_eq(l.words.items[2].name, "a_name_so_long_that_there_is_no_room_for_dots_at_all");
    ck_assert_str_eq(l.words.items[2].value, "7");
    ck_assert_int_eq(l.words.items[1].at.line, 3);
    ck_assert_int_eq(l.words.items[1].at.column, 6);
    logged_free(&l);
}
END_TEST

START_TEST(the_vocabulary_is_padded_behind_the_arguments)
{
    struct logged l =
        log_of(BLOCK "0:  > padded vocab (size: 128256) with 768 dummy tokens (new size: 129024)\n" STEP(1000) OF(8), -1);
    ck_assert_int_eq(l.words.n, 3);
    ck_assert_str_eq(l.words.items[2].name, "padded_vocab_size");
    ck_assert_str_eq(l.words.items[2].value, "129024");
    ck_assert_int_eq(l.words.items[2].at.line, 5);
    logged_free(&l);
}
END_TEST

START_TEST(a_log_may_name_its_gpu)
{
    static const struct {
        const char *line, *gpu;
    } cases[] = {{"|   0  NVIDIA H100 80GB HBM3          On  | 0000 |\n", "NVIDIA H100 80GB HBM3"},
                 {"NVIDIA Release 24.05\n[rank0]: device NVIDIA A100-SXM4-80GB, 80 GB\n", "NVIDIA A100-SXM4-80GB"},
                 {"AMD Instinct MI300X\n", "AMD Instinct MI300X"},
                 {"NVIDIA-SMI 550.1 NVIDIA Corporation\n", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s", cases[i].line, BLOCK);
        struct logged l = log_of(text, -1);
        ck_assert_str_eq(l.log.gpu, cases[i].gpu);
        logged_free(&l);
    }
}
END_TEST

/* The same job again goes on; another one ends the reading. */
START_TEST(a_second_job_in_a_log)
{
    struct logged l = log_of(BLOCK STEP(1000) OF(8) BLOCK STEP(3000) OF(8), 0);
    ck_assert_int_eq(l.log.n_iterations, 2);
    ck_assert_int_eq(l.diags.n_items, 0);
    logged_free(&l);
    l = log_of(BLOCK STEP(1000) OF(8) "--- arguments ---\n  num_layers .... 9\n--- end of arguments ---\n" STEP(3000) OF(8), 0);
    ck_assert_int_eq(l.log.n_iterations, 1);
    ck_assert_int_eq(l.diags.n_items, 1);
    expect_near(l.log.step_s, 1);
    logged_free(&l);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch log");
    TCase *all = tcase_create("all");
    tcase_add_test(all, lines_of_iterations_of_all_kinds);
    tcase_add_test(all, the_median_behind_ramp_up_and_warm_up);
    tcase_add_test(all, a_log_may_break_off_anywhere);
    tcase_add_test(all, progress_bars_stand_on_one_line);
    tcase_add_test(all, colours_are_taken_out);
    tcase_add_test(all, how_jobs_end);
    tcase_add_test(all, argument_blocks_whatever_stands_in_front);
    tcase_add_test(all, the_vocabulary_is_padded_behind_the_arguments);
    tcase_add_test(all, a_log_may_name_its_gpu);
    tcase_add_test(all, a_second_job_in_a_log);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
