/* Experiments that say something else: which key is named, and what would be right. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/key_words.h"
#include "tests/spec/experiment_loaded.h"
#include "tests/suite.h"

static const struct {
    const char *override, *said;
} slips[] = {
    {"faults={trace: x, model: y}", "faults: error: model: a trace already defines the faults (trace); keep one\n"},
    {"job={batch_tokens: 4096, global_batch: 8}", "job: error: batch_tokens: global_batch already sets the batch; keep one\n"},
    {"job.batch_tokens=1e15", "job.batch_tokens: error: batch_tokens: 1e15 is too large; it must be at most 1T\n"},
    {"job.global_batch=x", "job.global_batch: error: global_batch: 'x' is not a number; write for example 6144 or 300B\n"},
    {"jib.global_batch=8", "jib.global_batch: error: unknown key 'jib' in experiment; did you mean 'job'?\n"},
    {"job.globalbatch=8", "job.globalbatch: error: unknown key 'globalbatch' in job; did you mean 'global_batch'?\n"},
    {"job.global_batch.x=8", "job.global_batch.x: error: global_batch is a mapping; it must be a single value\n"},
    {"job.features=[+compile, async_data]",
     "job.features: error: features: 'async_data' after a change; write +async_data, or put names without a sign first\n"},
    {"job.features=+none", "job.features: error: features: '+none' has no effect; write none alone, or a name after the sign\n"},
    {"job.features=-tp_overlp", "job.features: error: features: unknown 'tp_overlp'; did you mean 'tp_overlap'?\n"},
    {"job.features=''", "job.features: error: features: names are expected; write none for no feature\n"},
    {"job.features=[", "job.features: error: not valid YAML or JSON: flow sequence without a closing bracket\n"},
    {"cluster.nic_rate=200",
     "cluster.nic_rate: error: nic_rate: '200' has no unit; write a data rate such as 200Gbps or 900GB/s\n"},
    {"job", "error: 'job' is not KEY=VALUE; write for example job.global_batch=6144\n"},
    {"=8", "error: '=8' is not KEY=VALUE; write for example job.global_batch=6144\n"},
    {".a=8", "error: '.a=8' is not KEY=VALUE; write for example job.global_batch=6144\n"},
    {"a..b=8", "error: 'a..b=8' is not KEY=VALUE; write for example job.global_batch=6144\n"},
    {"a.b.c.d.e.f.g.h.i=8", "error: 'a.b.c.d.e.f.g.h.i=8' is not KEY=VALUE; write for example job.global_batch=6144\n"},
};

START_TEST(a_bad_override_is_named)
{
    char *words = said_of(the_file, slips[_i].override);
    ck_assert_str_eq(words, slips[_i].said);
    free(words);
}
END_TEST

START_TEST(names_on_the_command_line_are_checked)
{
    char *words = said_of((struct experiment_flags){.model = "gtp3-175b", .cluster = "selene-a10", .layout = "tp=8;pp=8"}, NULL);
    ck_assert_ptr_nonnull(strstr(words, "--model: error: unknown model 'gtp3-175b'; did you mean 'gpt3-175b'?"));
    ck_assert_ptr_nonnull(strstr(words, "--cluster: error: unknown cluster 'selene-a10'; did you mean 'selene-a100'?"));
    ck_assert_ptr_nonnull(strstr(words, "--layout: error: tp: "));
    free(words);
    words = said_of((struct experiment_flags){0}, NULL);
    ck_assert_str_eq(words, "error: experiment: 'model' is missing (set with --model NAME or `model:` in the file)\nerror: "
                            "experiment: 'cluster' is missing (set with --cluster NAME, --gpu NAME or `cluster:` in the file)\n");
    free(words);
}
END_TEST

/* What does not go together because of a key laid over a base is said of that key, where its file or flag has it. */
static const struct {
    const char *model, *place, *words;
} over_bases[] = {
    {"{base: deepseek-v3, moe: {groups: 0}}", "t.yaml:1:42: ", "4 without groups; without groups of experts, set both to 0"},
    {"{base: deepseek-v3, moe: {top_k: 6, groups: 2}}", "t.yaml:1:52: ", "4 exceeds the 2 groups"},
    {"{base: deepseek-v3, moe: {experts: 4, groups: 0, top_groups: 0}}",
     "t.yaml:1:43: ", "8 experts per token exceed the 4 experts"},
    {"{base: deepseek-v3, moe: {experts: 12}}", "t.yaml:1:43: ", "12 experts cannot be divided into 8 equal groups"},
    {"{base: deepseek-v3, moe: {top_groups: 9}}", "t.yaml:1:46: ", "9 exceeds the 8 groups"},
    {"{base: llama3-8b, heads: 4}", "t.yaml:1:33: ", "4 heads cannot share 8"},
};

START_TEST(a_base_is_not_blamed)
{
    char text[160];
    enum status status;
    snprintf(text, sizeof text, "model: %s\ncluster: dgx-h100\n", over_bases[_i].model);
    char *words = said_of_text(text, &status);
    ck_assert_int_eq(status, STATUS_BAD_INPUT);
    ck_assert_msg(strncmp(words, over_bases[_i].place, strlen(over_bases[_i].place)) == 0, "%s", words);
    ck_assert_msg(strstr(words, over_bases[_i].words) != NULL, "%s", words);
    free(words);
}
END_TEST

START_TEST(nor_for_a_flag)
{
    char *words = said_of((struct experiment_flags){.model = "deepseek-v3", .cluster = "dgx-h100"}, "model.moe.groups=0");
    ck_assert_msg(strncmp(words, "model.moe.groups: ", 18) == 0, "%s", words);
    free(words);
}
END_TEST

/* Every word of the table means a key that there is: a value that none can have is refused as a value. */
START_TEST(words_mean_keys)
{
    size_t n = 0;
    for (const char *path; (path = key_words_path(n)) != NULL; n++) {
        char override[96];
        snprintf(override, sizeof override, "%s={no: {such: value}}", path);
        char *words = said_of((struct experiment_flags){.model = "mixtral-8x7b", .cluster = "dgx-h100"}, override);
        const char *key = strrchr(path, '.') + 1;
        char unknown[64];
        snprintf(unknown, sizeof unknown, "unknown key '%s'", key);
        ck_assert_msg(strstr(words, unknown) == NULL, "%s: %s", path, words);
        free(words);
    }
    ck_assert_uint_gt(n, 50);
}
END_TEST

static const struct {
    const char *override, *said;
} meant[] = {
    {"job.lora={rank: 8}", "'lora' in job; write `adapter`, such as {rank: 16, targets: [qkv, projection]}"},
    {"job.lora_rank=8", "'lora_rank' in job; write `adapter: {rank: ...}`, beside targets: "},
    {"job.batch=64", "'batch' in job; write `global_batch`, sequences a step of all replicas together; batch_tokens says"},
    {"gpu=h800", "'gpu' in experiment; write `cluster: {gpu: ...}`"},
    {"cluster.memory_rate=3TB/s", "'memory_rate' in cluster; write `gpu: {hbm_rate: ...}`, as `msim catalog` shows it"},
    {"cluster.gpu.memory_rate=3TB/s", "'memory_rate' in gpu; write `hbm_rate`, as"},
    {"job.micro-batch-size=1", "'micro-batch-size' in job; write `layout: {micro_batch: ...}`"},
    {"layout.Micro_Batch_Size=1", "'Micro_Batch_Size' in layout; write `micro_batch`"},
    {"job.gradient_accumulation_steps=8", "write `global_batch`, which is micro_batch x dp x the steps of accumulation"},
    {"job.tensor_parallel=8", "'tensor_parallel' in job; write `layout: {tp: ...}`"},
    {"layout.tensor_model_parallel_size=8", "write `tp`"},
    {"tp=8", "'tp' in experiment; write `layout: {tp: ...}`"},
    {"layout.seq_len=4096", "'seq_len' in layout; write `job: {seq_len: ...}`"},
    {"job.gpus=8", "'gpus' in job; write `cluster: {gpus: ...}`"},
    {"rank=8", "unknown key 'rank' in experiment\n"},
    {"job.optimizer_precision=bf16", "write `moment_precision`, that of the moments; the master weight is fp32"},
    {"job.moment_precision=mxfp8", "moment_precision: unknown 'mxfp8'"},
    {"job.adapter={rank: 8, targets: [q_proj]}", "targets: unknown 'q_proj'; write 'qkv', which has one adapter"},
    {"job.adapter={rank: 8, targets: [q_prj]}", "targets: unknown 'q_prj'; "},
    {"job.adapter.r=8", "'r' in adapter; write `rank`"},
};

START_TEST(other_words_are_answered)
{
    char *words = said_of((struct experiment_flags){.model = "llama3-8b", .cluster = "dgx-h100"}, meant[_i].override);
    ck_assert_msg(strstr(words, meant[_i].said) != NULL, "%s", words);
    free(words);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("experiment_words");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, a_bad_override_is_named, 0, (int)(sizeof slips / sizeof slips[0]));
    tcase_add_test(tests, names_on_the_command_line_are_checked);
    tcase_add_loop_test(tests, a_base_is_not_blamed, 0, (int)(sizeof over_bases / sizeof over_bases[0]));
    tcase_add_test(tests, nor_for_a_flag);
    tcase_add_test(tests, words_mean_keys);
    tcase_add_loop_test(tests, other_words_are_answered, 0, (int)(sizeof meant / sizeof meant[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
