/* DeepSpeed's configuration beside Megatron-LM's arguments and Hugging Face's trainers. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/suite.h"
#include "tests/traces/launch_told.h"

#define HF_LINE                                                                                                                  \
    "--model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 1 --gradient_accumulation_steps 4 "              \
    "--max_length 8192 --bf16 --gradient_checkpointing"

/* DeepSpeed's Ulysses is context parallelism that exchanges heads; a ratio of the states is offloaded; ZeRO++ is reported. */
/* DeepSpeed's gradients are of the weights' type under ZeRO, which "auto" is the trainer's. */
START_TEST(deepspeed_has_gradients_of_the_weights_type)
{
    static const struct {
        const char *keys;
        enum precision gradients;
    } cases[] = {
        {"deepspeed: examples/deepspeed/ds_z3_config.json\nbf16: true\n", PRECISION_BF16},
        {"deepspeed: examples/deepspeed/ds_z3_config.json\nfp16: true\n", PRECISION_FP16},
        {"deepspeed: examples/deepspeed/ds_z3_config.json\n", PRECISION_FP32},
        {"deepspeed: examples/deepspeed/ds_z0_config.json\nbf16: true\n", PRECISION_FP32},
        {"bf16: true\n", PRECISION_FP32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model_name_or_path: meta-llama/Meta-Llama-3-8B\nfinetuning_type: full\nper_device_train_batch_size: 1\n%s",
                 cases[i].keys);
        struct told t = tell(text, NULL, 8);
        ck_assert_msg(t.d.job.job.gradient_precision == cases[i].gradients, "%zu", i);
        told_free(&t);
    }
}
END_TEST

/* A batch and its factors that make another one. */
START_TEST(deepspeed_compares_batches)
{
    static const struct {
        int batch;
        const char *warning;
    } cases[] = {
        {64, NULL},
        {48, "gradient_accumulation_steps: 2 micro-batches of 4 on each of 8 replicas are 64 sequences; train_batch_size, 48"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 2}",
                 cases[i].batch);
        struct told t =
            tell(text, "--model_name_or_path meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 4 --bf16 true", 8);
        ck_assert_int_eq(t.d.job.job.global_batch, cases[i].batch);
        expect_said(&t, cases[i].warning);
        told_free(&t);
    }
}
END_TEST

START_TEST(deepspeed_beyond_stages)
{
    struct told t = tell("{\"train_micro_batch_size_per_gpu\": 1, \"sequence_parallel_size\": 8, \"bf16\": {\"enabled\": true},\n"
                         "\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\", \"ratio\": 0.4},\n"
                         "  \"zero_hpz_partition_size\": 8, \"zero_quantized_weights\": true},\n"
                         "\"optimizer\": {\"type\": \"AdamW\"}, \"activation_checkpointing\": {\"cpu_checkpointing\": true}}\n",
                         HF_LINE, 64);
    expect_layout(&t,
                  "tp=1,cp=8,cp_comm=a2a,pp=1,vpp=1,dp=8,ep=1,mb=1,zero=3,sp=0,recompute=full,schedule=none,"
                  "offload=optimizer:40%",
                  32);
    expect_warning(&t, "zero_hpz_partition_size (");
    expect_warning(&t, "zero_quantized_weights (");
    expect_warning(&t, "cpu_checkpointing (");
    told_free(&t);
}
END_TEST

/* DeepSpeed's bf16 optimizer without a stage shards states and sums gradients in fp32 unless their type is given. */
START_TEST(deepspeed_without_a_stage)
{
    static const struct {
        const char *text;
        int zero;
        enum precision gradients;
    } cases[] = {
        {"{\"bf16\": {\"enabled\": true}, \"train_batch_size\": 64}", 1, PRECISION_FP32},
        {"{\"bf16\": {\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": \"bf16\"}, \"train_batch_size\": 64}", 1,
         PRECISION_BF16},
        {"{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 1}, \"train_batch_size\": 64}", 1, PRECISION_BF16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell(cases[i].text,
                             "--deepspeed --num-layers 12 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
                             "--micro-batch-size 1 --vocab-size 50257 --bf16",
                             8);
        ck_assert_int_eq(t.diags.n_errors, 0);
        ck_assert_int_eq(t.d.job.layout.zero, cases[i].zero);
        ck_assert_int_eq(t.d.job.job.gradient_precision, cases[i].gradients);
        told_free(&t);
    }
}
END_TEST

/* The same under Hugging Face's trainer, which has no pipeline: of sums in bf16 every rank has all states. A command's stage of
 * ZeRO is not asked. */
START_TEST(deepspeed_without_a_stage_of_trainers)
{
    static const struct {
        const char *file, *flags;
        int zero;
        enum precision gradients;
        const char *warning;
    } cases[] = {
        {"{\"bf16\": {\"enabled\": \"auto\"}, \"train_batch_size\": \"auto\"}", "", 1, PRECISION_FP32, NULL},
        {"{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 0}}", "", 1, PRECISION_FP32, NULL},
        {"{\"bf16\": {\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": \"bf16\"}, \"train_batch_size\": 8}", "", 0,
         PRECISION_BF16, NULL},
        {"{\"bf16\": {\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": \"fp32\"}, \"train_batch_size\": 8}", "", 1,
         PRECISION_FP32, NULL},
        {"{\"bf16\": {\"enabled\": true, \"immediate_grad_update\": false}, \"train_batch_size\": 8}", "", 1, PRECISION_FP32,
         "together with their sums"},
        {"{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 2}}", "", 2, PRECISION_BF16, NULL},
        {"{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 2}}", " --zero_stage 3", 3, PRECISION_BF16, NULL},
        {"{\"fp16\": {\"enabled\": true}, \"train_batch_size\": 8}", " --fp16 True", 0, PRECISION_FP16, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[256];
        snprintf(line, sizeof line,
                 "--model_name_or_path meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 1 --max_seq_length 2048%s%s",
                 strstr(cases[i].flags, "fp16") ? "" : " --bf16 True", cases[i].flags);
        struct told t = tell(cases[i].file, line, 8);
        ck_assert_int_eq(t.diags.n_errors, 0);
        ck_assert_msg(t.d.job.layout.zero == cases[i].zero, "%zu: %d", i, t.d.job.layout.zero);
        ck_assert_msg(t.d.job.job.gradient_precision == cases[i].gradients, "%zu", i);
        expect_said(&t, cases[i].warning);
        told_free(&t);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_deepspeed");
    TCase *all = tcase_create("all");
    tcase_add_test(all, deepspeed_has_gradients_of_the_weights_type);
    tcase_add_test(all, deepspeed_compares_batches);
    tcase_add_test(all, deepspeed_beyond_stages);
    tcase_add_test(all, deepspeed_without_a_stage);
    tcase_add_test(all, deepspeed_without_a_stage_of_trainers);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
