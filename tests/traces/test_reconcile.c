/* What a table assumes against what its own numbers and its source's date say. */
#include <stdarg.h>

#include "model/cost/memory/footprint.h"
#include "tests/suite.h"
#include "tests/traces/measurement_text.h"

/* Of one row, printed. */
__attribute__((format(printf, 1, 2))) static struct reading read_row(const char *format, ...)
{
    char text[4096] = HEADER;
    size_t used = strlen(text);
    va_list values;
    va_start(values, format);
    int n = vsnprintf(text + used, sizeof text - used, format, values);
    va_end(values);
    ck_assert_int_lt(n, (int)(sizeof text - used));
    return read_table(text);
}

/* --- vocabularies and times */

/* What a source counts: the number of tables, the words of each, and the halves of attention. */
struct count {
    int words, tables, halves;
};
static const struct count USUAL = {32000, 2, 2};

/* A row of eight layers of 1,024 whose vocabulary is assumed, and whose MFU is that of `count`: 6 FLOPs a parameter, and 12
 * layers h s for all attention. */
static void counting_row(char *text, size_t size, int assumed, struct count count, double step_s)
{
    double layers = 8 * (4.0 * 1024 * 1024 + 3.0 * 4096 * 1024), seq_len = 2048, batch = 64;
    double attention = 12.0 * 8 * 1024 * seq_len * count.halves / 2;
    double flops = (6 * (layers + (double)count.tables * count.words * 1024) + attention) * seq_len * batch;
    size_t used = strlen(text);
    int n = snprintf(
        text + used, size - used,
        "r,,8,1024,4096,1,8,8,2048,%d,a100-80g-sxm,8,8,200,1,1,1,1,8,1,1,0,1,64,none,bf16,none,none,ok,%.3f,%.4f,vpp;vocab,\n",
        assumed, step_s, 100 * flops / step_s / 8 / 312e12);
    ck_assert_int_lt(n, (int)(size - used));
}

START_TEST(assumed_vocabulary)
{
    char text[4096] = HEADER;
    for (int i = 0; i < 3; i++)
        counting_row(text, sizeof text, 32000, (struct count){128000, 2, 2}, 1.0 + 0.37 * i);
    size_t used = strlen(text); /* a row of this shape that ran out of memory has no vote, but is reported */
    snprintf(text + used, sizeof text - used,
             "o,,8,1024,4096,1,8,8,2048,32000,a100-80g-sxm,8,8,200,1,1,1,1,8,1,1,0,8,64,none,bf16,none,none,oom,,,vocab,\n");
    for (int i = 0; i < 2; i++) /* with another assumption the same shape speaks for itself, here by too few rows */
        counting_row(text, sizeof text, 50176, (struct count){90000, 2, 2}, 1.0 + 0.37 * i);
    struct reading r = read_table(text);
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_le(llabs((long long)r.table.items[i].model.vocab - 128000), 512);
    for (size_t i = 4; i < 6; i++)
        ck_assert_int_eq(r.table.items[i].model.vocab, 50176);
    ck_assert_uint_eq(r.diags.n_items, 1);
    expect_diag(&r.diags, 0, SEVERITY_WARNING, 2, 0, "4 rows of 8 layers of 1024 assume a vocabulary of 32000");
    reading_free(&r);
}
END_TEST

/* Two rows are too few; an MFU that the assumption explains by any usual count changes nothing, nor do the few that it does not
 * explain among many that it does; those that disagree, or ask for no sensible vocabulary, are not heard. */
static const struct {
    int rows, others; /* others follow, with another count */
    struct count count, other;
    bool told; /* that times and MFUs contradict each other */
} kept[] = {
    {2, 0, {128000, 2, 2}, {0}, true},           {3, 0, {32000, 2, 2}, {0}, false},           {3, 0, {32000, 1, 2}, {0}, false},
    {3, 0, {32000, 0, 2}, {0}, false},           {3, 0, {32000, 2, 1}, {0}, false},           {3, 0, {32000, 1, 1}, {0}, false},
    {7, 2, {32000, 2, 2}, {128000, 2, 2}, true}, {2, 2, {64000, 2, 2}, {200000, 2, 2}, true}, {3, 0, {500, 2, 2}, {0}, false},
    {3, 0, {2000000, 2, 2}, {0}, true},
};

START_TEST(vocabulary_stays)
{
    char text[4096] = HEADER;
    for (int i = 0; i < kept[_i].rows + kept[_i].others; i++)
        counting_row(text, sizeof text, 32000, i < kept[_i].rows ? kept[_i].count : kept[_i].other, 2 + 0.37 * i);
    struct reading r = read_table(text);
    for (size_t i = 0; i < r.table.n_items; i++)
        ck_assert_int_eq(r.table.items[i].model.vocab, 32000);
    for (size_t i = 0; i < r.diags.n_items; i++)
        ck_assert_msg(kept[_i].told && strstr(r.diags.items[i].text, "contradict"), "%s", r.diags.items[i].text);
    reading_free(&r);
}
END_TEST

/* A stated one is not doubted. */
START_TEST(stated_vocabulary_stays)
{
    char text[4096] = HEADER;
    for (int i = 0; i < 3; i++)
        counting_row(text, sizeof text, 32000, (struct count){128000, 2, 2}, 1.0 + 0.37 * i);
    for (char *at = text; (at = strstr(at, ";vocab")) != NULL;)
        memcpy(at, ";heads", 6); /* another column is assumed */
    struct reading r = read_table(text);
    for (size_t i = 0; i < r.table.n_items; i++)
        ck_assert_int_eq(r.table.items[i].model.vocab, 32000);
    reading_free(&r);
}
END_TEST

/* Of a mixture's experts these counts know nothing: whatever they make of its MFU, it neither changes nor contradicts. */
START_TEST(mixtures_are_not_judged)
{
    static const char mixture[] =
        "x,mixtral-8x7b,,,,,,,4096,32000,h100-sxm,64,8,400,2,4,1,1,8,8,1,1,1,512,none,bf16,1f1b,none,ok,";
    struct reading r = read_row("%s10,,vocab,us\n", mixture);
    const struct transformer *m = &r.row->model;
    double words = _i ? 128000 : 2e7, width = (double)m->heads * m->head_dim,
           eighth = 0.125 * 64 * r.row->cluster.gpu.peak_flops[PRECISION_BF16];
    double flops = 6 * m->layers * transformer_layer_parameters(m, 0, false) + 12 * m->layers * width * 4096 +
                   12 * words * (double)m->hidden;
    double seconds = flops * 512 * 4096 / eighth;
    reading_free(&r);
    char text[4096] = HEADER;
    for (int i = 0; i < 3; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%.6f,12.5,vocab,us\n", mixture, seconds);
    }
    r = read_table(text);
    ck_assert_int_eq(r.table.items[2].model.vocab, 32000);
    ck_assert_uint_eq(r.diags.n_items, 0);
    reading_free(&r);
}
END_TEST

/* A time ten times as long as its MFU gives, or a tenth of it, is reported, and stays; a difference between conventions is not.
 */
static const struct {
    const char *time;
    double seconds;
    bool told;
} timed[] = {{",1.000,", 1, false}, {",10.00,", 10, true}, {",0.100,", 0.1, true}, {",1.400,", 1.4, false}};

START_TEST(time_against_mfu)
{
    char text[4096] = HEADER;
    counting_row(text, sizeof text, 32000, USUAL, 1.0);
    char *at = strstr(text, ",1.000,");
    ck_assert_ptr_nonnull(at);
    memcpy(at, timed[_i].time, strlen(timed[_i].time));
    struct reading r = read_table(text);
    ck_assert_double_eq_tol(r.row->step_s, timed[_i].seconds, 1e-9);
    ck_assert_uint_eq(r.diags.n_items, timed[_i].told);
    if (timed[_i].told)
        expect_diag(&r.diags, 0, SEVERITY_WARNING, 2, 0, "step_time_s and mfu_pct contradict each other in 1 row");
    reading_free(&r);
}
END_TEST

/* --- dates */

/* FlashAttention-2 (July 2023) in a paper of January 2022 becomes what there was, in one of May 2023 and in the results of June
 * (MLPerf Training 3.0) the first one, the third (July 2024) the second; sequence parallelism (May 2022) and the overlaps of
 * tensor parallel exchanges (January 2023) and of pipeline messages (November 2022) go before their time; a later source and one
 * that says no date, or a round that there was not, keep all. */
#define FLASH     FEATURE_BIT(FLASH_ATTENTION)
#define FLASH2    FEATURE_BIT(FLASH_ATTENTION2)
#define FLASH3    FEATURE_BIT(FLASH_ATTENTION3)
#define OVERLAP   FEATURE_BIT(TP_OVERLAP)
#define SECOND    "flash_attention2;tp_overlap"
#define PIPELINED "flash_attention;pp_overlap"
static const struct {
    const char *source, *features;
    feature_set kept;
    bool sequence_parallel, told;
} dated[] = {
    {"arXiv:2201.11990", SECOND, FEATURE_BIT(FUSED_SOFTMAX), false, true},
    {"Table 2, arXiv:2212.01234", SECOND, FLASH, true, true},
    {"Table 2, arXiv:2305.01234", SECOND, FLASH | OVERLAP, true, true},
    {"arXiv:2307.08691", SECOND, FLASH2 | OVERLAP, true, false},
    {"MLPerf Training v2.0, a submitter", SECOND, FLASH, true, true},
    {"MLPerf Training v2.1, a submitter", SECOND, FLASH, true, true},
    {"MLPerf Training v3.0, a submitter", SECOND, FLASH | OVERLAP, true, true},
    {"From MLPerf Training v3.0.", SECOND, FLASH | OVERLAP, true, true},
    {"MLPerf Training v3.1", SECOND, FLASH2 | OVERLAP, true, false},
    {"MLPerf Training v3.01", SECOND, FLASH2 | OVERLAP, true, false},
    {"MLPerf Inference v3.0", SECOND, FLASH2 | OVERLAP, true, false},
    {"our own cluster", SECOND, FLASH2 | OVERLAP, true, false},
    {"arXiv:2210.01234", PIPELINED, FLASH, true, true},
    {"arXiv:2211.05953", PIPELINED, FLASH | FEATURE_BIT(PP_OVERLAP), true, false},
    {"arXiv:2406.01234", "flash_attention3", FLASH2, true, true},
    {"arXiv:2407.08608", "flash_attention3", FLASH3, true, false},
    {"arXiv:2212.01234", "async_tp", 0, true, true},
    {"arXiv:2201.11990", "fused_softmax", FEATURE_BIT(FUSED_SOFTMAX), false, true}, /* its sequence parallelism goes */
};

START_TEST(before_their_time)
{
    struct reading r = read_row("f,,8,1024,4096,1,8,8,2048,32000,h100-sxm,8,8,200,2,1,1,1,4,1,1,1,1,64,none,bf16,none,"
                                "%s;dp_overlap,ok,1.0,,,\"%s\"\n",
                                dated[_i].features, dated[_i].source);
    ck_assert_uint_eq(r.row->layout.features, dated[_i].kept | FEATURE_BIT(DP_OVERLAP));
    ck_assert_uint_eq(r.row->job.features, dated[_i].kept | FEATURE_BIT(DP_OVERLAP));
    ck_assert_int_eq(r.row->layout.sequence_parallel, dated[_i].sequence_parallel);
    ck_assert_uint_eq(r.diags.n_items, dated[_i].told);
    reading_free(&r);
}
END_TEST

/* --- losses, micro-batches, recomputation */

/* A stack of fused layers that overlaps its tensor parallel exchanges fuses its loss, unless the row says what it does, or says
 * that it overlaps before anybody did. */
static const struct {
    const char *features, *source;
    feature_set loss;
} losses[] = {
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

START_TEST(losses_that_rows_do_not_tell)
{
    struct reading r = read_row("f,,8,1024,4096,1,8,8,2048,32000,a100-80g-sxm,8,8,200,2,1,1,1,4,1,1,1,1,64,none,bf16,none,"
                                "%s,ok,1.0,,,\"%s\"\n",
                                losses[_i].features, losses[_i].source);
    ck_assert_uint_eq(r.row->layout.features & FEATURES_LOSS, losses[_i].loss);
    ck_assert_uint_eq(r.row->job.features & FEATURES_LOSS, losses[_i].loss);
    reading_free(&r);
}
END_TEST

/* 12 heads over 2: six score matrices a sequence, which Megatron's fused softmax takes four at a time: an assumed micro-batch of
 * 1 becomes 2, a stated one stays, as do those of stacks that hold no scores, of batches that do not divide, and beside assumed
 * columns of similar names. */
static const struct {
    const char *features, *assumed;
    int batch, micro_batch;
} fusing[] = {{"fused_ops", "micro_batch", 8, 2},
              {"fused_softmax", "vpp;micro_batch", 8, 2},
              {"fused_ops", "vpp", 8, 1},
              {"fused_ops;flash_attention", "micro_batch", 8, 1},
              {"dp_overlap", "micro_batch", 8, 1},
              {"fused_ops", "micro_batch", 7, 1},
              {"fused_ops", "largest_micro_batch", 8, 1},
              {"fused_ops", "micro_batches;vpp", 8, 1}};

START_TEST(micro_batches_that_fuse)
{
    struct reading r =
        read_row("m,,8,1536,6144,0,12,12,2048,32000,a100-80g-sxm,2,8,200,2,1,1,1,1,1,0,0,1,%d,none,fp16,none,%s,ok,1.0,,%s,own\n",
                 fusing[_i].batch, fusing[_i].features, fusing[_i].assumed);
    ck_assert_int_eq(r.row->layout.micro_batch, fusing[_i].micro_batch);
    ck_assert_uint_eq(r.diags.n_items, fusing[_i].micro_batch > 1);
    reading_free(&r);
}
END_TEST

/* Five heads a rank fuse four sequences at a time, which would not fit: one does, and ran. */
START_TEST(micro_batches_that_fuse_and_fit)
{
    for (int k = 0; k < 2; k++) {
        struct reading r = read_row("m,,40,5120,20480,0,40,40,%d,51200,a100-80g-sxm,8,8,200,8,1,1,1,1,1,0,1,1,64,none,bf16,none,"
                                    "fused_ops,ok,99.0,,micro_batch,own\n",
                                    k ? 6144 : 1024);
        ck_assert_int_eq(r.row->layout.micro_batch, k ? 1 : 4);
        reading_free(&r);
    }
}
END_TEST

/* Four stages of a small model: over 512 sequences a larger micro-batch than 1 pays, over 4 its bubble would not. Neither a
 * stated one is touched nor the row of a run that did not fit. */
static const struct {
    int batch;
    const char *outcome, *assumed;
    bool larger;
} pipelined[] = {{512, "ok,9.0,,", "micro_batch", true},
                 {4, "ok,1.0,,", "micro_batch", false},
                 {512, "ok,9.0,,", "recompute", false},
                 {512, "oom,,,", "micro_batch", false}};

START_TEST(micro_batches_of_pipelines)
{
    struct reading r = read_row("p,,32,2048,8192,0,16,16,2048,32000,a100-80g-sxm,8,8,200,2,4,1,1,1,1,1,1,1,%d,none,bf16,1f1b,"
                                "flash_attention2;fused_ops,%s%s,own\n",
                                pipelined[_i].batch, pipelined[_i].outcome, pipelined[_i].assumed);
    ck_assert_int_eq(r.row->layout.micro_batch > 1, pipelined[_i].larger);
    ck_assert_uint_eq(r.diags.n_items, pipelined[_i].larger);
    reading_free(&r);
}
END_TEST

/* With a batch that leaves no bubble worth speaking of the largest is taken, 8; where that does not fit, the largest that does.
 */
START_TEST(micro_batches_that_fit)
{
    static const int lengths[] = {2048, 32768};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        struct reading r = read_row("p,,32,2048,8192,0,16,16,%d,32000,a100-80g-sxm,8,8,200,2,4,1,1,1,1,1,1,1,4096,none,bf16,1f1b,"
                                    "flash_attention2;fused_ops,ok,5000.0,,micro_batch,own\n",
                                    lengths[k]);
        struct setting setting = measurement_setting(r.row);
        struct layout twice = r.row->layout;
        struct footprint here, there;
        twice.micro_batch *= 2;
        footprint_peak(&r.row->layout, &setting, &here, NULL);
        footprint_peak(&twice, &setting, &there, NULL);
        ck_assert_double_le(here.total, footprint_capacity(&r.row->cluster));
        ck_assert_int_gt(r.row->layout.micro_batch, 1);
        if (lengths[k] == 2048)
            ck_assert_int_eq(r.row->layout.micro_batch, 8);
        else
            ck_assert_double_gt(there.total, footprint_capacity(&r.row->cluster));
        reading_free(&r);
    }
}
END_TEST

/* 32 layers of 4,096 on eight GPUs. Sequences of 2,048 tokens fit, those of 131,072 where norms and activations are repeated (62
 * GiB, not 84), those of 262,144 with whole layers repeated unless the memory of the host is near, those of 4,194,304 in no way.
 * A stated level stays, as does that of a row that did not fit; an empty cell states none. What was measured does not matter. */
static const struct {
    int seq_len;
    const char *gpu, *stated, *outcome, *assumed;
    enum recompute_what taken;
} repeated[] = {{2048, "a100-80g-sxm", "none", "ok,1.0,,", "recompute", RECOMPUTE_NONE},
                {131072, "a100-80g-sxm", "none", "ok,200.0,,", "zero;recompute", RECOMPUTE_LAYERNORM | RECOMPUTE_MLP_ACT},
                {131072, "a100-80g-sxm", "none", "ok,99.0,,", "zero;recompute", RECOMPUTE_LAYERNORM | RECOMPUTE_MLP_ACT},
                {131072, "a100-80g-sxm", "none", "ok,200.0,,", "zero", RECOMPUTE_NONE},
                {131072, "a100-80g-sxm", "", "ok,200.0,,", "zero", RECOMPUTE_LAYERNORM | RECOMPUTE_MLP_ACT},
                {131072, "a100-80g-sxm", "?", "ok,200.0,,", "zero", RECOMPUTE_LAYERNORM | RECOMPUTE_MLP_ACT},
                {131072, "a100-80g-sxm", "none", "oom,,,", "recompute", RECOMPUTE_NONE},
                {131072, "a100-80g-sxm", "", "oom,,,", "zero", RECOMPUTE_NONE},
                {262144, "a100-80g-sxm", "none", "ok,500.0,,", "recompute", RECOMPUTE_FULL},
                {262144, "a100-80g-sxm", "none", "ok,500.0,,", "zero", RECOMPUTE_NONE},
                {262144, "gh200", "none", "ok,500.0,,", "recompute", RECOMPUTE_NONE},
                {4194304, "a100-80g-sxm", "none", "ok,99999.0,,", "recompute", RECOMPUTE_NONE}};

START_TEST(recomputation_that_fits)
{
    struct reading r =
        read_row("r,,32,4096,16384,0,32,32,%d,32000,%s,8,8,200,8,1,1,1,1,1,0,1,1,8,%s,bf16,none,"
                 "flash_attention2;fused_ops,%s%s,own\n",
                 repeated[_i].seq_len, repeated[_i].gpu, repeated[_i].stated, repeated[_i].outcome, repeated[_i].assumed);
    size_t warnings = 0;
    for (size_t i = 0; i < r.diags.n_items; i++)
        warnings += r.diags.items[i].severity == SEVERITY_WARNING;
    ck_assert_int_eq(r.row->layout.recompute.what, repeated[_i].taken);
    ck_assert_uint_eq(warnings, repeated[_i].taken != RECOMPUTE_NONE);
    reading_free(&r);
}
END_TEST

static double needed(const struct measurement *row, int layers)
{
    struct layout l = row->layout;
    struct setting setting = measurement_setting(row);
    struct footprint peak;
    l.recompute = (struct recompute){.what = RECOMPUTE_FULL, .of = layers ? RECOMPUTE_FIRST : RECOMPUTE_ALL, .layers = layers};
    footprint_peak(&l, &setting, &peak, NULL);
    return peak.total;
}

/* Where whole layers are repeated it is as few as fit: with one less the row would not have run. */
START_TEST(no_more_layers_than_needed)
{
    static const int lengths[] = {180224, 196608, 229376, 262144};
    int some = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct reading r = read_row("r,,32,4096,16384,0,32,32,%d,32000,a100-80g-sxm,8,8,200,8,1,1,1,1,1,0,1,1,8,none,bf16,none,"
                                    "flash_attention2;fused_ops,ok,500.0,,recompute,own\n",
                                    lengths[i]);
        const struct recompute taken = r.row->layout.recompute;
        double capacity = footprint_capacity(&r.row->cluster);
        ck_assert_int_eq(taken.what, RECOMPUTE_FULL);
        ck_assert_double_le(needed(r.row, taken.layers), capacity);
        if (taken.of == RECOMPUTE_FIRST) {
            some++;
            ck_assert_int_lt(taken.layers, 32);
            ck_assert(taken.layers == 1 || needed(r.row, taken.layers - 1) > capacity);
        }
        reading_free(&r);
    }
    ck_assert_int_ge(some, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reconcile");
    TCase *rows = tcase_create("rows");
    tcase_add_test(rows, assumed_vocabulary);
    tcase_add_loop_test(rows, vocabulary_stays, 0, sizeof kept / sizeof *kept);
    tcase_add_test(rows, stated_vocabulary_stays);
    tcase_add_loop_test(rows, mixtures_are_not_judged, 0, 2);
    tcase_add_loop_test(rows, time_against_mfu, 0, sizeof timed / sizeof *timed);
    tcase_add_loop_test(rows, before_their_time, 0, sizeof dated / sizeof *dated);
    tcase_add_loop_test(rows, losses_that_rows_do_not_tell, 0, sizeof losses / sizeof *losses);
    tcase_add_loop_test(rows, micro_batches_that_fuse, 0, sizeof fusing / sizeof *fusing);
    tcase_add_loop_test(rows, micro_batches_of_pipelines, 0, sizeof pipelined / sizeof *pipelined);
    tcase_add_test(rows, micro_batches_that_fuse_and_fit);
    tcase_add_test(rows, micro_batches_that_fit);
    tcase_add_loop_test(rows, recomputation_that_fits, 0, sizeof repeated / sizeof *repeated);
    tcase_add_test(rows, no_more_layers_than_needed);
    suite_add_tcase(suite, rows);
    return suite_run(suite);
}
