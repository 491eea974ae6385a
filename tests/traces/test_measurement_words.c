/* Words of foreign tables: names of columns, precisions, schedules, machines and models, and the messages about them. */
#include <check.h>
#include <stdio.h>

#include "model/spec/catalog.h"
#include "tests/suite.h"
#include "tests/traces/measurement_text.h"

/* Columns, words and numbers of foreign tables; those that are not msim's own are reported. */
START_TEST(other_hands)
{
    struct reading r =
        read_table("# from a paper\n"
                   "Run,Model,GPU,# GPUs,Seq Len,TP,PP,VPP,MBS,GBS,ZeRO,SP,AC,dtype,Schedule,features,Time/step (ms)\n"
                   "\"a, b\",llama3-8b,H100 SXM5 80GB,64,8k,2,1,n/a,1,\"1,024\",FSDP,yes,SAC,BFloat16,-,"
                   "FA3 + torch.compile,\"12,512.5\"\n"
                   "c,llama3-8b,h100-sxm,64 GPUs,8192,2,4,2,1,1024,ZeRO-1,no,No,fp8 (e4m3),1F1B Interleaved,,~12.5 s\n"
                   "d,llama3-8b,h100-sxm,64,8192,2,4,1,1,1024,stage 1,0,yes,bf16,ZB-H1,flash attention 2,2.5 ± 0.1 min\n"
                   "e,llama3-8b,h100-sxm,sixty,8192,2,1,1,1,1024,1,0,yes,bf16,,,2500\n"
                   "f,llama3-8b,h100-sxm,64,8192,2,1,1,1,1024,1,0,yes,bf16,,,OOM\n");
    ck_assert_uint_eq(r.diags.n_errors, 0);
    ck_assert_uint_eq(r.table.n_items, 4);
    const struct measurement *a = r.row, *c = &r.table.items[1], *d = &r.table.items[2];
    ck_assert_str_eq(a->name, "a, b");
    ck_assert_int_eq(a->gpus, 64);
    ck_assert_int_eq(a->job.seq_len, 8192);
    ck_assert_int_eq(a->job.global_batch, 1024);
    ck_assert_int_eq(a->layout.zero, 3);
    ck_assert(a->layout.sequence_parallel);
    ck_assert_int_eq((int)a->layout.recompute.what, RECOMPUTE_SELECTIVE);
    ck_assert_int_eq(a->job.precision, PRECISION_BF16);
    ck_assert_uint_eq(a->layout.features, FEATURE_BIT(FLASH_ATTENTION3) | FEATURE_BIT(COMPILE));
    ck_assert_double_eq_tol(a->step_s, 12.5125, 1e-12);
    ck_assert_int_eq(c->job.precision, PRECISION_FP8);
    ck_assert_int_eq(c->layout.schedule, SCHEDULE_INTERLEAVED);
    ck_assert_int_eq((int)c->layout.recompute.what, RECOMPUTE_NONE);
    ck_assert_int_eq(c->layout.zero, 1);
    ck_assert_double_eq_tol(c->step_s, 12.5, 1e-12);
    ck_assert_int_eq(d->layout.schedule, SCHEDULE_ZB1P);
    ck_assert_uint_eq(d->layout.features & FEATURES_FLASH, FEATURE_BIT(FLASH_ATTENTION2));
    ck_assert_double_eq_tol(d->step_s, 150, 1e-9);
    ck_assert(r.table.items[3].oom);
    expect_diag(&r.diags, 0, SEVERITY_NOTE, 0, 0, "'MBS' as micro_batch, 'GBS' as global_batch");
    reading_free(&r);
}
END_TEST

/* Attention kernels that are not there for a GPU give way to the newest that are, told once for each GPU. */
START_TEST(attention_that_a_gpu_has)
{
    struct reading r = read_table("model,gpu,gpus,seq_len,tp,micro_batch,global_batch,recompute,precision,features\n"
                                  "gpt3-1.3b,v100-32g-sxm,8,2048,1,1,64,full,fp16,flash_attention2;fused_ops\n"
                                  "gpt3-1.3b,v100-32g-sxm,8,2048,2,1,64,full,fp16,flash_attention3;fused_ops\n"
                                  "gpt3-1.3b,a100-80g-sxm,8,2048,1,1,64,full,bf16,flash_attention3\n"
                                  "gpt3-1.3b,h100-sxm,8,2048,1,1,64,full,bf16,flash_attention3\n"
                                  "gpt3-1.3b,v100-32g-sxm,8,2048,1,1,64,full,fp16,fused_ops\n");
    const feature_set fused = FEATURE_BIT(FUSED_OPS);
    const feature_set expected[] = {FEATURE_BIT(FLASH_ATTENTION) | fused, FEATURE_BIT(FLASH_ATTENTION) | fused,
                                    FEATURE_BIT(FLASH_ATTENTION2), FEATURE_BIT(FLASH_ATTENTION3), fused};
    ck_assert_uint_eq(r.table.n_items, 5);
    for (size_t i = 0; i < r.table.n_items; i++) {
        ck_assert_uint_eq(r.row[i].layout.features, expected[i]);
        ck_assert_uint_eq(r.row[i].job.features, expected[i]);
    }
    ck_assert_uint_eq(reading_warnings(&r), 2);
    expect_diag(&r.diags, 0, SEVERITY_WARNING, 2, 48,
                "flash_attention2: no kernels for the v100-32g-sxm, whose newest is taken: flash_attention");
    reading_free(&r);
}
END_TEST

/* Nodes are the usual ones of a GPU, which may be called by the system that it is in. */
START_TEST(machines_as_others_call_them)
{
    static const struct {
        const char *said, *gpu;
        int per_node, domain;
    } machines[] = {{"DGX-H100", "h100-sxm", 8, 8},
                    {"DGX-B200", "b200", 8, 8},
                    {"DGX GB300", "gb300", 4, 64},
                    {"NVIDIA Blackwell GPU (GB200)", "gb200", 4, 64},
                    {"AMD Instinct MI300X 192GB HBM3", "mi300x", 8, 8},
                    {"gh200", "gh200", 4, 4},
                    {"perlmutter", "a100-40g-sxm", 4, 4}};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model,gpu,gpus,seq_len,tp,micro_batch,global_batch,recompute\nllama3-8b,%s,64,4096,4,1,64,full\n",
                 machines[i].said);
        struct reading r = read_table(text);
        ck_assert_msg(r.table.n_items == 1, "%s: %s", machines[i].said, r.diags.n_items ? r.diags.items[0].text : "");
        ck_assert_str_eq(r.row->cluster.gpu.name, machines[i].gpu);
        ck_assert_int_eq(r.row->cluster.gpus_per_node, machines[i].per_node);
        ck_assert_int_eq(r.row->cluster.nodes, 64 / machines[i].per_node);
        ck_assert_int_eq(r.row->cluster.nvlink_domain, machines[i].domain);
        reading_free(&r);
    }
}
END_TEST

/* A system keeps its network where the row says none of its own; else the network of the row holds its GPU, which is reported. */
START_TEST(systems_bring_their_network)
{
    struct cluster system;
    struct diags quiet = {0};
    ck_assert_int_eq(catalog_cluster("llama3-h100", &system, &quiet), STATUS_OK);
    struct reading r = read_table("model,gpu,gpus,gpus_per_node,nic_gbps,seq_len,tp,micro_batch,global_batch,recompute\n"
                                  "llama3-8b,llama3-h100,8192,8,200,4096,4,1,8192,full\n"
                                  "llama3-8b,llama3-h100,8192,,,4096,4,1,8192,full\n");
    ck_assert_uint_eq(r.table.n_items, 2);
    ck_assert_double_gt(system.pod_oversubscription, 1);
    ck_assert_double_eq(r.row[1].cluster.pod_oversubscription, system.pod_oversubscription);
    ck_assert_int_eq(r.row[1].cluster.nodes, 1024);
    ck_assert_double_eq(r.row[0].cluster.pod_oversubscription, 1);
    ck_assert_double_eq_tol(r.row[0].cluster.nic_rate, 25e9, 1);
    ck_assert(says(&r.diags, SEVERITY_NOTE, "llama3-h100: its GPU is taken, h100-sxm, in nodes and a network as the row says"));
    reading_free(&r);
    diags_free(&quiet);
}
END_TEST

/* What papers and frameworks call precisions, recomputation and schedules, and what is meant. */
static const struct {
    const char *precision, *recompute, *schedule;
    enum precision computes;
    enum recompute_what repeated;
    enum schedule runs;
} called[] = {
    {"amp_fp8", "layernorm; moe_act;", "1F1B", PRECISION_FP8, RECOMPUTE_LAYERNORM | RECOMPUTE_MOE_ACT, SCHEDULE_1F1B},
    {"FP8 current scaling", "full-block", "zero_bubble", PRECISION_FP8, RECOMPUTE_FULL, SCHEDULE_ZB1P},
    {"float8_rowwise", "core_attention", "ZBH1", PRECISION_FP8, RECOMPUTE_CORE_ATTN, SCHEDULE_ZB1P},
    {"FP8-MX", "activation checkpointing", "gpipe", PRECISION_MXFP8, RECOMPUTE_FULL, SCHEDULE_GPIPE},
    {"nvfp4-hybrid", "no recompute", "1f1b", PRECISION_NVFP4, RECOMPUTE_NONE, SCHEDULE_1F1B},
    {"bf16 mixed precision", "op_sac", "ZB-H2", PRECISION_BF16, RECOMPUTE_SELECTIVE, SCHEDULE_ZB2P},
};

START_TEST(ways_as_others_call_them)
{
    char text[512];
    snprintf(text, sizeof text,
             "model,gpu,gpus,seq_len,pp,global_batch,micro_batch,precision,recompute,schedule\n"
             "deepseek-v3,b200,256,4096,8,256,1,%s,%s,%s\n",
             called[_i].precision, called[_i].recompute, called[_i].schedule);
    struct reading r = read_table(text);
    ck_assert_uint_eq(r.table.n_items, 1);
    ck_assert_int_eq(r.row->job.precision, called[_i].computes);
    ck_assert_int_eq((int)r.row->layout.recompute.what, (int)called[_i].repeated);
    ck_assert_int_eq(r.row->layout.schedule, called[_i].runs);
    reading_free(&r);
}
END_TEST

/* Some count the ranks of cp among those of dp, which the number of GPUs tells; where it tells neither, nothing is. */
START_TEST(context_ranks_among_dp)
{
    struct reading r = read_table("model,gpu,gpus,seq_len,tp,pp,cp,dp,micro_batch,global_batch,recompute\n"
                                  "llama3-70b,h100-sxm,64,8192,4,4,2,4,1,64,full\n"
                                  "llama3-70b,h100-sxm,64,8192,4,4,2,2,1,64,full\n"
                                  "llama3-70b,h100-sxm,64,8192,4,4,2,8,1,64,full\n"
                                  "llama3-70b,h100-sxm,,8192,4,4,2,4,1,64,full\n");
    ck_assert_uint_eq(r.table.n_items, 3);
    ck_assert_int_eq(r.row[0].layout.dp, 2);
    ck_assert_int_eq(r.row[1].layout.dp, 2);
    ck_assert_int_eq(r.row[2].layout.dp, 4);
    ck_assert_int_eq(r.row[2].gpus, 128);
    expect_diag(&r.diags, 0, SEVERITY_WARNING, 2, 35, "dp 4 counts the ranks of cp 2 too, by the number of GPUs: 2 is taken");
    expect_diag(&r.diags, 1, SEVERITY_WARNING, 4, 21, "64 gpus, but tp 4 x pp 4 x cp 2 x dp 8 is 256");
    reading_free(&r);
}
END_TEST

/* As many ranks as no number holds are a row that cannot be used. */
START_TEST(ranks_beyond_counting)
{
    struct reading r = read_table("model,gpu,gpus,seq_len,tp,pp,cp,dp,micro_batch,global_batch,recompute\n"
                                  "llama3-70b,h100-sxm,64,8192,16777216,16777216,16777216,16777216,1,64,full\n"
                                  "llama3-70b,h100-sxm,,8192,4096,4096,2,,1,64,full\n"
                                  "llama3-70b,h100-sxm,,8192,4096,4096,1,2,1,64,full\n");
    ck_assert_uint_eq(r.table.n_items, 0);
    ck_assert_uint_eq(r.table.n_skipped, 3);
    expect_diag(&r.diags, 0, SEVERITY_WARNING, 2, 21, "tp 16777216 x pp 16777216 x cp 16777216 are more than 16777216 gpus");
    reading_free(&r);
}
END_TEST

/* No column describes experts: a mixture that the catalog does not know is reported, a dense model of any name is not. */
START_TEST(unknown_mixtures_are_told)
{
    static const struct {
        const char *name;
        int ep;
        bool told;
    } names[] = {{"ours-8b", 1, false}, {"ours-8b", 2, true}, {"OurMoE 30B", 1, true}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model,layers,hidden,heads,gpu,gpus,seq_len,ep,micro_batch,global_batch,recompute\n"
                 "%s,32,4096,32,h100-sxm,64,4096,%d,1,64,full\n",
                 names[i].name, names[i].ep);
        struct reading r = read_table(text);
        ck_assert_int_eq(says(&r.diags, SEVERITY_WARNING, "columns cannot say experts"), names[i].told);
        reading_free(&r);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("measurement words");
    TCase *rows = tcase_create("rows");
    tcase_add_test(rows, other_hands);
    tcase_add_test(rows, attention_that_a_gpu_has);
    tcase_add_test(rows, machines_as_others_call_them);
    tcase_add_test(rows, systems_bring_their_network);
    tcase_add_loop_test(rows, ways_as_others_call_them, 0, sizeof called / sizeof *called);
    tcase_add_test(rows, context_ranks_among_dp);
    tcase_add_test(rows, ranks_beyond_counting);
    tcase_add_test(rows, unknown_mixtures_are_told);
    suite_add_tcase(suite, rows);
    return suite_run(suite);
}
