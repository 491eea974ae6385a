/* What a table assumes against what its own numbers and its source's date say. */
#include "tests/suite.h"
#include "tests/traces/measurement_text.h"

/* A row of eight layers of 1,024 whose vocabulary is assumed to be 32,000 and whose MFU is that of `words`, counted as 6 FLOPs a
 * parameter, both tables among them, and 12 layers h s. */
static void counting_row(char *text, size_t size, int words, double step_s)
{
    double layers = 8 * (4.0 * 1024 * 1024 + 3.0 * 4096 * 1024), seq_len = 2048, batch = 64;
    double flops = (6 * (layers + 2.0 * words * 1024) + 12.0 * 8 * 1024 * seq_len) * seq_len * batch;
    size_t used = strlen(text);
    snprintf(
        text + used, size - used,
        "r,,8,1024,4096,1,8,8,2048,32000,a100-80g-sxm,8,8,200,1,1,1,1,8,1,1,0,1,64,none,bf16,none,,ok,%.3f,%.2f,vpp;vocab,\n",
        step_s, 100 * flops / step_s / 8 / 312e12);
}

START_TEST(assumed_vocabulary)
{
    char text[4096] = HEADER;
    struct measurement_table table;
    struct diags diags = {0};
    for (int i = 0; i < 3; i++)
        counting_row(text, sizeof text, 128000, 1.0 + 0.37 * i);
    size_t used = strlen(text); /* the same shape out of memory speaks not, but is told */
    snprintf(text + used, sizeof text - used,
             "o,,8,1024,4096,1,8,8,2048,32000,a100-80g-sxm,8,8,200,1,1,1,1,8,1,1,0,8,64,none,bf16,none,,oom,,,vocab,\n");
    ck_assert_int_eq(build(text, &table, &diags), STATUS_OK);
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_le(llabs((long long)table.items[i].model.vocab - 128000), 512);
    ck_assert_uint_eq(diags.n_items, 1);
    expect_diag(&diags, 0, SEVERITY_WARNING, 2, 0, "4 rows of 8 layers of 1024 assume a vocabulary of 32000");
    measurement_table_free(&table);
    diags_free(&diags);
}
END_TEST

/* Two rows are too few; an MFU that the assumption explains changes nothing; a stated vocabulary is not doubted. */
START_TEST(vocabulary_stays)
{
    static const struct {
        int rows, words;
        bool stated;
    } cases[] = {{2, 128000, false}, {3, 32000, false}, {3, 128000, true}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char text[4096] = HEADER;
        struct measurement_table table;
        struct diags diags = {0};
        for (int i = 0; i < cases[c].rows; i++)
            counting_row(text, sizeof text, cases[c].words, 1.0 + 0.37 * i);
        for (char *at = text; cases[c].stated && (at = strstr(at, ";vocab")) != NULL;)
            memcpy(at, ";heads", 6); /* another column is assumed */
        ck_assert_int_eq(build(text, &table, &diags), STATUS_OK);
        for (size_t i = 0; i < table.n_items; i++)
            ck_assert_int_eq(table.items[i].model.vocab, 32000);
        measurement_table_free(&table);
        diags_free(&diags);
    }
}
END_TEST

/* A time ten times as long as its MFU gives is told, and stays; one within what conventions differ by is not. */
START_TEST(time_against_mfu)
{
    char text[4096] = HEADER, wrong[4096] = HEADER;
    struct measurement_table table;
    struct diags diags = {0};
    counting_row(text, sizeof text, 32000, 1.0);
    ck_assert_int_eq(build(text, &table, &diags), STATUS_OK);
    ck_assert_uint_eq(diags.n_items, 0);
    measurement_table_free(&table);

    counting_row(wrong, sizeof wrong, 32000, 1.0);
    char *at = strstr(wrong, ",1.000,");
    ck_assert_ptr_nonnull(at);
    memcpy(at, ",10.00,", 7);
    ck_assert_int_eq(build(wrong, &table, &diags), STATUS_OK);
    ck_assert_double_eq_tol(table.items[0].step_s, 10, 1e-9);
    ck_assert_uint_eq(diags.n_items, 1);
    expect_diag(&diags, 0, SEVERITY_WARNING, 2, 0, "step_time_s and mfu_pct contradict each other in 1 row");
    measurement_table_free(&table);
    diags_free(&diags);
}
END_TEST

/* FlashAttention-2 (July 2023) in a paper of January 2022 becomes what there was, in one of May 2023 and in the results of June
 * (MLPerf Training 3.0) the first one; sequence parallelism (May 2022) and the overlap of tensor parallel exchanges (January
 * 2023) go before their time; a later source and one that says no date, or a round that there was not, keep all. */
START_TEST(before_their_time)
{
    const feature_set second = FEATURE_BIT(FLASH_ATTENTION2), overlap = FEATURE_BIT(TP_OVERLAP);
    const struct {
        const char *source;
        feature_set kept;
        bool sequence_parallel;
    } cases[] = {{"arXiv:2201.11990", FEATURE_BIT(FUSED_SOFTMAX), false},
                 {"Table 2, arXiv:2212.01234", FEATURE_BIT(FLASH_ATTENTION), true},
                 {"Table 2, arXiv:2305.01234", FEATURE_BIT(FLASH_ATTENTION) | overlap, true},
                 {"arXiv:2307.08691", second | overlap, true},
                 {"MLPerf Training v2.0, somebody", FEATURE_BIT(FLASH_ATTENTION), true},
                 {"MLPerf Training v2.1, somebody", FEATURE_BIT(FLASH_ATTENTION), true},
                 {"MLPerf Training v3.0, somebody", FEATURE_BIT(FLASH_ATTENTION) | overlap, true},
                 {"From MLPerf Training v3.0.", FEATURE_BIT(FLASH_ATTENTION) | overlap, true},
                 {"MLPerf Training v3.1", second | overlap, true},
                 {"MLPerf Training v3.01", second | overlap, true},
                 {"MLPerf Inference v3.0", second | overlap, true},
                 {"our own cluster", second | overlap, true}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char text[4096];
        struct measurement_table table;
        struct diags diags = {0};
        snprintf(text, sizeof text,
                 HEADER "f,,8,1024,4096,1,8,8,2048,32000,a100-80g-sxm,8,8,200,2,1,1,1,4,1,1,1,1,64,none,bf16,none,"
                        "flash_attention2;tp_overlap;dp_overlap,ok,1.0,,,\"%s\"\n",
                 cases[c].source);
        ck_assert_int_eq(build(text, &table, &diags), STATUS_OK);
        ck_assert_uint_eq(table.items[0].layout.features, cases[c].kept | FEATURE_BIT(DP_OVERLAP));
        ck_assert_uint_eq(table.items[0].job.features, cases[c].kept | FEATURE_BIT(DP_OVERLAP));
        ck_assert_int_eq(table.items[0].layout.sequence_parallel, cases[c].sequence_parallel);
        ck_assert_uint_eq(diags.n_items, cases[c].kept != (second | overlap));
        measurement_table_free(&table);
        diags_free(&diags);
    }
}
END_TEST

/* A stack of fused layers that overlaps its tensor parallel exchanges fuses its loss, unless the row says what it does, or says
 * that it overlaps before anybody did. */
START_TEST(losses_that_rows_do_not_tell)
{
    static const struct {
        const char *features, *source;
        feature_set loss;
    } cases[] = {
        {"fused_ops;tp_overlap", "us", FEATURE_BIT(FUSED_LOSS)},
        {"fused_ops;async_tp", "us", FEATURE_BIT(FUSED_LOSS)},
        {"fused_ops", "us", 0},
        {"tp_overlap", "us", 0},
        {"fused_ops;fused_loss", "us", FEATURE_BIT(FUSED_LOSS)},
        {"fused_ops;tp_overlap;plain_loss", "us", 0},
        {"fused_ops;tp_overlap;cut_loss", "us", FEATURE_BIT(CUT_LOSS)},
        {"fused_ops;tp_overlap", "arXiv:2201.11990", 0},
        {"fused_ops;tp_overlap;fused_loss", "arXiv:2201.11990", FEATURE_BIT(FUSED_LOSS)},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char text[4096];
        struct measurement_table table;
        struct diags diags = {0};
        snprintf(text, sizeof text,
                 HEADER "f,,8,1024,4096,1,8,8,2048,32000,a100-80g-sxm,8,8,200,2,1,1,1,4,1,1,1,1,64,none,bf16,none,"
                        "%s,ok,1.0,,,\"%s\"\n",
                 cases[c].features, cases[c].source);
        ck_assert_int_eq(build(text, &table, &diags), STATUS_OK);
        ck_assert_uint_eq(table.items[0].layout.features & FEATURES_LOSS, cases[c].loss);
        ck_assert_uint_eq(table.items[0].job.features & FEATURES_LOSS, cases[c].loss);
        measurement_table_free(&table);
        diags_free(&diags);
    }
}
END_TEST

/* 12 heads over 2: six score matrices a sequence, which Megatron's fused softmax takes four at a time: an assumed micro-batch of
 * 1 becomes 2, a stated one stays, as do those of stacks that hold no scores and of batches that do not divide. */
START_TEST(micro_batches_that_fuse)
{
    static const struct {
        const char *features, *assumed;
        int batch, micro_batch;
    } cases[] = {{"fused_ops", "micro_batch", 8, 2},  {"fused_softmax", "vpp;micro_batch", 8, 2},
                 {"fused_ops", "vpp", 8, 1},          {"fused_ops;flash_attention", "micro_batch", 8, 1},
                 {"dp_overlap", "micro_batch", 8, 1}, {"fused_ops", "micro_batch", 7, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char text[4096];
        struct measurement_table table;
        struct diags diags = {0};
        snprintf(text, sizeof text,
                 HEADER
                 "m,,8,1536,6144,0,12,12,2048,32000,a100-80g-sxm,2,8,200,2,1,1,1,1,1,0,0,1,%d,none,fp16,none,%s,ok,1.0,,%s,own\n",
                 cases[c].batch, cases[c].features, cases[c].assumed);
        ck_assert_int_eq(build(text, &table, &diags), STATUS_OK);
        ck_assert_int_eq(table.items[0].layout.micro_batch, cases[c].micro_batch);
        ck_assert_uint_eq(diags.n_items, cases[c].micro_batch > 1);
        measurement_table_free(&table);
        diags_free(&diags);
    }
}
END_TEST

/* Four stages of a small model: over 512 sequences a larger micro-batch than 1 pays, over 4 its bubble would not. Neither a
 * stated one is touched nor the row of a run that did not fit. */
START_TEST(micro_batches_of_pipelines)
{
    static const struct {
        int batch;
        const char *outcome, *assumed;
        bool larger;
    } cases[] = {{512, "ok,1.0,,", "micro_batch", true},
                 {4, "ok,1.0,,", "micro_batch", false},
                 {512, "ok,1.0,,", "recompute", false},
                 {512, "oom,,,", "micro_batch", false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char text[4096];
        struct measurement_table table;
        struct diags diags = {0};
        snprintf(text, sizeof text,
                 HEADER "p,,32,2048,8192,0,16,16,2048,32000,a100-80g-sxm,8,8,200,2,4,1,1,1,1,1,1,1,%d,none,bf16,1f1b,"
                        "flash_attention2;fused_ops,%s%s,own\n",
                 cases[c].batch, cases[c].outcome, cases[c].assumed);
        ck_assert_int_eq(build(text, &table, &diags), STATUS_OK);
        ck_assert_int_eq(table.items[0].layout.micro_batch > 1, cases[c].larger);
        ck_assert_uint_eq(diags.n_items, cases[c].larger);
        measurement_table_free(&table);
        diags_free(&diags);
    }
}
END_TEST

/* 32 layers of 4,096 on eight GPUs. Sequences of 2,048 tokens fit, those of 131,072 where norms and activations are repeated (62
 * GiB, not 84), those of 262,144 with whole layers repeated unless the memory of the host is near, those of 4,194,304 in no way.
 * A stated level stays, as does that of a row that did not fit. What was measured does not matter. */
START_TEST(recomputation_that_fits)
{
    static const struct {
        int seq_len;
        const char *gpu, *outcome, *assumed;
        enum recompute_what taken;
    } cases[] = {{2048, "a100-80g-sxm", "ok,1.0,,", "recompute", RECOMPUTE_NONE},
                 {131072, "a100-80g-sxm", "ok,1.0,,", "zero;recompute", RECOMPUTE_LAYERNORM | RECOMPUTE_MLP_ACT},
                 {131072, "a100-80g-sxm", "ok,99.0,,", "zero;recompute", RECOMPUTE_LAYERNORM | RECOMPUTE_MLP_ACT},
                 {131072, "a100-80g-sxm", "ok,1.0,,", "zero", RECOMPUTE_NONE},
                 {131072, "a100-80g-sxm", "oom,,,", "recompute", RECOMPUTE_NONE},
                 {262144, "a100-80g-sxm", "ok,1.0,,", "recompute", RECOMPUTE_FULL},
                 {262144, "a100-80g-sxm", "ok,1.0,,", "zero", RECOMPUTE_NONE},
                 {262144, "gh200", "ok,1.0,,", "recompute", RECOMPUTE_NONE},
                 {4194304, "a100-80g-sxm", "ok,1.0,,", "recompute", RECOMPUTE_NONE}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char text[4096];
        struct measurement_table table;
        struct diags diags = {0};
        snprintf(text, sizeof text,
                 HEADER "r,,32,4096,16384,0,32,32,%d,32000,%s,8,8,200,8,1,1,1,1,1,0,1,1,8,none,bf16,none,"
                        "flash_attention2;fused_ops,%s%s,own\n",
                 cases[c].seq_len, cases[c].gpu, cases[c].outcome, cases[c].assumed);
        ck_assert_int_eq(build(text, &table, &diags), STATUS_OK);
        ck_assert_int_eq(table.items[0].layout.recompute.what, cases[c].taken);
        ck_assert_uint_eq(diags.n_items, cases[c].taken != RECOMPUTE_NONE);
        measurement_table_free(&table);
        diags_free(&diags);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reconcile");
    TCase *rows = tcase_create("rows");
    tcase_add_test(rows, assumed_vocabulary);
    tcase_add_test(rows, vocabulary_stays);
    tcase_add_test(rows, time_against_mfu);
    tcase_add_test(rows, before_their_time);
    tcase_add_test(rows, losses_that_rows_do_not_tell);
    tcase_add_test(rows, micro_batches_that_fuse);
    tcase_add_test(rows, micro_batches_of_pipelines);
    tcase_add_test(rows, recomputation_that_fits);
    suite_add_tcase(suite, rows);
    return suite_run(suite);
}
