/* Layouts as arguments of Megatron-LM and back, and in other frameworks' words: what is exported is imported as the same model,
 * job and layout. */
#include <check.h>
#include <stdlib.h>

#include "model/spec/catalog.h"
#include "tests/layout/offloaded.h"
#include "tests/suite.h"
#include "tests/traces/launch_drawn.h"

/* Nearer to what NeMo has words for. */
static void as_nemo(struct random_stream *random, struct launch_job *x)
{
    struct layout *l = &x->layout;
    l->zero = l->zero > 0;
    l->shard = 0;
    l->offload.of[OFFLOAD_OPTIMIZER].percent = 0;
    l->recompute.what = (int)l->recompute.what < N_RECOMPUTES ? l->recompute.what : RECOMPUTE_SELECTIVE;
    l->schedule = l->pp == 1 ? SCHEDULE_NONE : l->vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
    x->job.optimizer = OPTIMIZER_ADAM;
    x->job.moment_precision = PRECISION_FP32;
    x->job.muon_tp = MUON_BLOCKWISE;
    x->job.muon_shard = MUON_ELEMENTS;
    x->job.precision = x->job.precision == PRECISION_FP8 ? PRECISION_FP8 : PRECISION_BF16;
    x->job.gradient_precision = PRECISION_FP32;
    l->features = x->job.features &= ~FEATURE_BIT(EP_OVERLAP);
    bool adapts = !x->model.moe.experts && !transformer_is_hybrid(&x->model) && !x->model.mtp_layers &&
                  !precision_is_narrow(x->job.precision) && offload_is_none(&l->offload);
    if (adapts && random_below(random, 2))
        x->job.adapter = (struct adapter){.rank = 8 * l->tp, .targets = 1 + (uint32_t)random_below(random, 15)};
}

/* Nearer to what Megatron-Bridge's recipes can be told: the program is Megatron-LM's, its precisions have names. */
static void as_bridge(struct random_stream *random, struct launch_job *x)
{
    static const enum precision precisions[] = {PRECISION_BF16, PRECISION_FP8, PRECISION_MXFP8, PRECISION_FP16};
    struct layout *l = &x->layout;
    bool narrow = random_below(random, 3) == 0;
    l->schedule = l->pp == 1 ? SCHEDULE_NONE : l->vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
    x->job.precision = precisions[random_below(random, 4)];
    bool fp16 = x->job.precision == PRECISION_FP16;
    x->job.gradient_precision = fp16 ? PRECISION_FP16 : narrow ? PRECISION_BF16 : PRECISION_FP32;
    x->job.muon_tp = MUON_BLOCKWISE;
    l->features = x->job.features |= FEATURE_BIT(FLASH_ATTENTION2);
    if (x->model.position != POSITION_LEARNED)
        x->job.seq_len = x->model.max_seq_len /= 2; /* which nothing says but the sequences */
    if (x->model.window > x->model.max_seq_len)
        x->model.window = x->model.window_every = 0;
}

/* Nearer to what NeMo 2's can. */
static void as_nemo2(struct random_stream *random, struct launch_job *x)
{
    static const enum precision precisions[] = {PRECISION_BF16, PRECISION_FP8, PRECISION_MXFP8};
    struct layout *l = &x->layout;
    l->zero = l->zero > 0;
    l->shard = l->zero ? l->shard : 0;
    x->job.precision = precisions[random_below(random, 3)];
    x->job.gradient_precision = random_below(random, 2) ? PRECISION_FP32 : PRECISION_BF16;
    l->features = x->job.features &= ~FEATURE_BIT(EP_OVERLAP);
}

/* A job that nanotron can run: a LLaMA model, plainly. */
static bool as_nanotron(struct random_stream *random, struct launch_job *x)
{
    struct layout *l = &x->layout;
    const struct transformer *m = &x->model;
    bool llama = m->norm == NORM_RMS && m->position == POSITION_ROTARY && m->gated_mlp && !m->linear_bias && !m->qkv_bias &&
                 !m->qk_norm && !m->moe.experts && !m->window && m->attention == ATTENTION_GROUPED &&
                 (int64_t)m->head_dim * m->heads == m->hidden && !transformer_is_hybrid(m);
    l->schedule = l->pp == 1 ? SCHEDULE_NONE : SCHEDULE_1F1B;
    l->vpp = 1;
    l->zero = (int)random_below(random, 2);
    l->shard = l->etp = 0;
    l->cp_comm = CP_RING;
    l->sequence_parallel = l->tp > 1;
    l->offload = offloaded("none");
    l->recompute.what = random_below(random, 2) ? RECOMPUTE_NONE : RECOMPUTE_FULL;
    x->job.precision = PRECISION_BF16;
    x->job.gradient_precision = random_below(random, 2) ? PRECISION_FP32 : PRECISION_BF16;
    x->job.optimizer = OPTIMIZER_ADAM;
    x->job.moment_precision = PRECISION_FP32;
    x->job.muon_tp = MUON_BLOCKWISE;
    x->job.muon_shard = MUON_ELEMENTS;
    x->job.dropout = 0;
    x->job.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA);
    l->features = x->job.features |= l->tp > 1 && random_below(random, 2) ? FEATURE_BIT(TP_OVERLAP) : 0;
    return llama && !m->mtp_layers;
}

/* Two draws of each. */
START_TEST(what_a_recipe_is_told_comes_back)
{
    enum { TRIES = 400000, WANTED = THINNED == 1 ? 400 : 200 };
    struct random_stream random = random_stream_named((uint64_t)_i / 2 + 1, 3, 0);
    bool bridge = _i % 2;
    struct cluster cluster;
    struct diags diags = {0};
    char **names;
    size_t n_names;
    int n = 0, mixtures = 0, latent = 0, windows = 0, stages = 0, narrow = 0, hybrid = 0, moments = 0;
    ck_assert_int_eq(catalog_names(CATALOG_MODELS, &names, &n_names, &diags), STATUS_OK);
    ck_assert_int_eq(catalog_cluster("gb200-nvl72", &cluster, &diags), STATUS_OK);
    for (int i = 0; i < TRIES && n < WANTED; i++) {
        struct launch_job x;
        if (!draw_launch(&random, names, n_names, &cluster, &x))
            continue;
        as_bridge(&random, &x);
        if (!bridge)
            as_nemo2(&random, &x);
        struct setting setting = {&x.model, &cluster, &x.job, x.gpus};
        if (layout_check(&x.layout, &setting, NULL, 0) != LAYOUT_LEGAL ||
            !through_a_config(&x, bridge ? "Megatron-Bridge" : "NeMo 2"))
            continue;
        n++;
        mixtures += x.model.moe.experts > 0 && x.layout.ep > 1;
        latent += x.model.attention == ATTENTION_LATENT;
        windows += x.model.window > 0;
        stages += x.layout.pp > 1 && x.model.layers % (x.layout.pp * x.layout.vpp) != 0;
        moments += x.job.moment_precision != PRECISION_FP32;
        narrow += x.job.gradient_precision == PRECISION_BF16;
        hybrid += x.layout.shard > 0;
    }
    ck_assert_int_eq(n, WANTED);
    ck_assert_int_gt(mixtures, 15 / THINNED);
    ck_assert_int_gt(latent, 2 / THINNED);
    ck_assert_int_gt(windows, 10 / THINNED);
    ck_assert_int_gt(stages, bridge ? 5 / THINNED : -1); /* a layout of stages NeMo 2 does not have */
    ck_assert_int_gt(moments, 40 / THINNED);
    ck_assert_int_gt(narrow, 40 / THINNED);
    ck_assert_int_gt(hybrid, 20 / THINNED);
    names_free(names);
    diags_free(&diags);
}
END_TEST

START_TEST(what_other_frameworks_have_words_for_comes_back)
{
    enum { TRIES = 400000, WANTED = 100 / THINNED };
    struct random_stream random = random_stream_named((uint64_t)_i + 1, 1, 0);
    struct cluster cluster;
    struct diags diags = {0};
    char **names;
    size_t n_names;
    int nemo = 0, nanotron = 0, adapted = 0;
    ck_assert_int_eq(catalog_names(CATALOG_MODELS, &names, &n_names, &diags), STATUS_OK);
    ck_assert_int_eq(catalog_cluster("gb200-nvl72", &cluster, &diags), STATUS_OK);
    for (int i = 0; i < TRIES && (nemo < WANTED || nanotron < WANTED); i++) {
        struct launch_job x;
        if (!draw_launch(&random, names, n_names, &cluster, &x))
            continue;
        struct launch_job y = x;
        as_nemo(&random, &y);
        bool whole = through_a_config(&y, "NeMo");
        nemo += whole;
        adapted += whole && job_adapts(&y.job);
        if (as_nanotron(&random, &x)) {
            ck_assert(through_a_config(&x, "nanotron"));
            nanotron++;
        }
    }
    ck_assert_int_ge(nemo, WANTED);
    ck_assert_int_ge(nanotron, WANTED);
    ck_assert_int_ge(adapted, WANTED / 10);
    names_free(names);
    diags_free(&diags);
}
END_TEST

START_TEST(what_is_exported_is_imported_the_same)
{
    enum { WANTED = 1500 / THINNED, TRIES = 400000 };
    struct random_stream random = random_stream_named((uint64_t)_i + 1, 0, 0);
    struct cluster cluster;
    struct diags diags = {0};
    char **names;
    size_t n_names;
    int n = 0, mixtures = 0, folded = 0, moments = 0;
    ck_assert_int_eq(catalog_names(CATALOG_MODELS, &names, &n_names, &diags), STATUS_OK);
    ck_assert_int_eq(catalog_cluster("gb200-nvl72", &cluster, &diags), STATUS_OK);
    for (int i = 0; i < TRIES && n < WANTED; i++) {
        struct launch_job x;
        if (!draw_launch(&random, names, n_names, &cluster, &x))
            continue;
        through_a_script(&x);
        if (n % 5 == 0)
            through_a_log(&x);
        n++;
        mixtures += x.model.moe.experts > 0;
        folded += schedule_is_folded(x.layout.schedule);
        moments += x.job.moment_precision != PRECISION_FP32;
    }
    ck_assert_int_eq(n, WANTED);
    ck_assert_int_gt(mixtures, WANTED / 10);
    ck_assert_int_gt(folded, 10 / THINNED);
    ck_assert_int_gt(moments, WANTED / 10);
    names_free(names);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_export");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, what_is_exported_is_imported_the_same, 0, 2);
    tcase_add_loop_test(all, what_other_frameworks_have_words_for_comes_back, 0, 2);
    tcase_add_loop_test(all, what_a_recipe_is_told_comes_back, 0, 4);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
