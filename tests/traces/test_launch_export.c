/* Layouts as arguments of Megatron-LM and back: whatever is exported is imported as the same model, job and layout. */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/random.h"
#include "model/plan/space.h"
#include "model/spec/catalog.h"
#include "model/spec/schemas.h"
#include "tests/layout/offloaded.h"
#include "tests/suite.h"
#include "traces/launch/framework_config.h"
#include "traces/launch/framework_export.h"
#include "traces/launch/launch_shell.h"
#include "traces/launch/megatron_export.h"
#include "traces/launch/megatron_log.h"
#include "traces/launch/megatron_meaning.h"

/* --- jobs --- */

static int pick(struct random_stream *random, const int *values, int n)
{
    return values[random_below(random, (uint64_t)n)];
}

/* One way to say each thing, as the arguments have it. */
static void settle_model(struct transformer *m)
{
    m->published_parameters = m->published_active = m->mlp_limit = 0;
    m->position_offset = 0; /* launch_export.c has it in max_seq_len */
    m->name[0] = m->source[0] = '\0';
    if (m->position == POSITION_ROTARY && !(m->rope_theta > 0))
        m->rope_theta = 10000; /* what is taken where nothing says it */
    if (m->linear_bias)
        m->qkv_bias = false;
    if (m->attention == ATTENTION_LATENT) {
        m->qk_norm = false;
        m->head_dim = m->latent.v_dim;
        m->kv_heads = m->heads;
    }
    if (m->moe.experts && m->moe.shared_ffn && m->moe.shared_ffn % m->moe.expert_ffn == 0) {
        m->moe.shared_experts = (int)(m->moe.shared_ffn / m->moe.expert_ffn);
        m->moe.shared_ffn = 0;
    } else if (m->moe.shared_ffn) {
        m->moe.shared_experts = 1;
    }
    m->moe.every = m->moe.every > 1 ? m->moe.every : 1;
}

static void draw_layout(struct random_stream *random, const struct transformer *model, struct layout *l)
{
    static const int few[] = {1, 1, 2, 4, 8}, stages[] = {1, 1, 2, 3, 4, 8, 16}, chunks[] = {1, 2, 3, 4},
                     replicas[] = {1, 2, 4, 8, 16};
    static const enum schedule schedules[] = {SCHEDULE_1F1B, SCHEDULE_1F1B, SCHEDULE_ZB1P, SCHEDULE_ZB2P, SCHEDULE_ZBV};
    *l = (struct layout){.tp = pick(random, few, 5),
                         .cp = pick(random, few, 3),
                         .pp = pick(random, stages, 7),
                         .vpp = pick(random, chunks, 4),
                         .dp = pick(random, replicas, 5),
                         .ep = model->moe.experts ? pick(random, few, 5) : 1,
                         .zero = (int)random_below(random, 4),
                         .micro_batch = 1 + (int)random_below(random, 3)};
    static const enum cp_comm comms[] = {CP_RING, CP_ALL_GATHER, CP_A2A, CP_RING, 2 * 2 /* a2a:2+ring */};
    l->cp_comm = cp_comm_settled(comms[random_below(random, 5)], l->cp);
    l->sequence_parallel = l->tp > 1 && random_below(random, 2);
    if (l->zero && l->dp * l->cp % 2 == 0 && l->dp * l->cp > 2 && random_below(random, 2))
        l->shard = l->dp * l->cp / 2;
    l->schedule = l->pp == 1 ? SCHEDULE_NONE : l->vpp > 1 ? SCHEDULE_INTERLEAVED : schedules[random_below(random, 5)];
    l->vpp = l->pp == 1 ? 1 : l->schedule == SCHEDULE_ZBV ? 2 : l->vpp;
    int modules = (int)layout_modules_of(model) & ~RECOMPUTE_MLP_ACT;
    int drawn = modules & (int)random_below(random, 1024);
    l->recompute.what =
        drawn && random_below(random, 2) ? (enum recompute_what)drawn : (enum recompute_what)random_below(random, 3);
    static const char *const offloads[] = {
        "none", "optimizer", "optimizer:30%", "activations", "optimizer+activations", "optimizer:50%+activations:1"};
    l->offload = offloaded(offloads[random_below(random, l->schedule < SCHEDULE_ZB1P ? 6 : 3)]);
    if (model->moe.experts && l->tp > 1 && random_below(random, 2))
        l->etp = l->ep == 1 ? 1 : l->tp;
}

/* Features that say something with this layout. */
static feature_set draw_features(struct random_stream *random, const struct layout *l)
{
    static const feature_set any = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(DP_OVERLAP) |
                                   FEATURE_BIT(ASYNC_DATA) | FEATURE_BIT(CUDA_GRAPHS) | FEATURE_BIT(EP_OVERLAP);
    feature_set set = any & (feature_set)random_below(random, (uint64_t)1 << N_FEATURES);
    static const feature_set losses[] = {0, FEATURE_BIT(FUSED_LOSS), FEATURE_BIT(CUT_LOSS)};
    set |= losses[random_below(random, 3)];
    set |= l->zero == 3 ? FEATURE_BIT(DP_OVERLAP) : 0;
    set |= l->tp > 1 && random_below(random, 2) ? FEATURE_BIT(TP_OVERLAP) : 0;
    set |= l->tp > 1 && l->pp > 1 && !l->sequence_parallel && random_below(random, 2) ? FEATURE_BIT(SCATTER_GATHER_P2P) : 0;
    set |= l->schedule == SCHEDULE_INTERLEAVED && random_below(random, 2) ? FEATURE_BIT(PP_OVERLAP) : 0;
    if (layout_offloads(l, OFFLOAD_ACTIVATIONS))
        set &= ~FEATURE_BIT(EP_OVERLAP);
    return set;
}

static void draw_job(struct random_stream *random, struct launch_job *x)
{
    struct layout *l = &x->layout;
    struct job *j = &x->job;
    j->seq_len = x->model.max_seq_len;
    j->global_batch = (int64_t)l->dp * l->micro_batch * (2 * l->pp + (int)random_below(random, 5));
    j->precision = (enum precision)random_below(random, N_PRECISIONS);
    bool fp16 = j->precision == PRECISION_FP16, wide = random_below(random, 2);
    j->gradient_precision = wide ? PRECISION_FP32 : fp16 ? PRECISION_FP16 : PRECISION_BF16;
    j->optimizer = random_below(random, 4) ? OPTIMIZER_ADAM : OPTIMIZER_SGD;
    if (l->zero < 2 && !l->shard && random_below(random, 4) == 0) { /* the way of Megatron-Core's dist_muon */
        j->optimizer = OPTIMIZER_MUON;
        j->muon_tp = (enum muon_tp)random_below(random, N_MUON_TP);
        j->muon_shard = l->zero ? MUON_LAYER_WISE : MUON_ELEMENTS;
    }
    j->dropout = random_below(random, 2) ? 0.1 : 0;
    j->tokens = random_below(random, 2) ? (double)j->seq_len * (double)(1 + random_below(random, 1000000)) : 0;
    j->features = l->features = draw_features(random, l);
    x->gpus = l->tp * l->cp * l->pp * l->dp;
    x->gpus_per_node = x->gpus < 8 ? x->gpus : 8;
    if (x->model.moe.experts && j->global_batch % 3 == 0)
        j->load = (struct expert_load){.capacity = 1 + 0.25 * (double)(j->global_batch % 4), .padded = j->global_batch % 2};
}

/* A legal job on a GPU that can do everything; false when what was drawn is none. */
static bool draw(struct random_stream *random, char **names, size_t n_names, const struct cluster *cluster, struct launch_job *x)
{
    struct diags diags = {0};
    *x = (struct launch_job){0};
    ck_assert_int_eq(catalog_model(names[random_below(random, n_names)], &x->model, &diags), STATUS_OK);
    diags_free(&diags);
    if (strpbrk(x->model.layer_pattern, "amp")) /* Megatron-LM's hybrids have one part a layer */
        return false;
    settle_model(&x->model);
    draw_layout(random, &x->model, &x->layout);
    draw_job(random, x);
    struct setting setting = {&x->model, cluster, &x->job, x->gpus};
    return x->gpus % x->gpus_per_node == 0 && layout_check(&x->layout, &setting, NULL, 0) == LAYOUT_LEGAL;
}

/* --- comparing --- */

static void expect_same(const struct schema *schema, const void *a, const void *b, const char *what, const char *script)
{
    json_t *x = schema_write(schema, a), *y = schema_write(schema, b);
    if (!json_equal(x, y)) {
        char *first = json_dumps(x, 0), *second = json_dumps(y, 0);
        ck_abort_msg("%s: %s\nbecame %s\nby\n%s", what, first, second, script);
    }
    json_decref(x);
    json_decref(y);
}

static void expect_job(const struct launch_job *x, const struct launch_description *d, const char *script)
{
    char a[LAYOUT_TEXT], b[LAYOUT_TEXT];
    struct transformer theirs = x->model, ours = d->job.model;
    theirs.name[0] = theirs.source[0] = ours.name[0] = ours.source[0] = '\0';
    expect_same(&transformer_schema, &theirs, &ours, "the model", script);
    expect_same(&job_schema, &x->job, &d->job.job, "the job", script);
    ck_assert_msg(strcmp(layout_format(&x->layout, a, sizeof a), layout_format(&d->job.layout, b, sizeof b)) == 0,
                  "%s\nbecame %s\nby\n%s", a, b, script);
    ck_assert_int_eq(d->job.gpus, x->gpus);
    ck_assert_int_eq(d->n_missing, 0);
}

static void mean(struct launch_words *words, int gpus, struct launch_description *d, struct diags *diags)
{
    struct megatron_arguments *arguments = memory_new(1, sizeof *arguments);
    *d = (struct launch_description){0};
    megatron_read(words, false, arguments, diags);
    megatron_mean(arguments, &(struct launch_known){.gpus = gpus}, d, diags);
    free(arguments);
}

static void through_a_script(const struct launch_job *x)
{
    char *script;
    size_t n;
    struct diags lost = {0}, diags = {0};
    struct launch_words words = {0};
    struct launch_description d;
    FILE *out = open_memstream(&script, &n);
    megatron_write_script(x, NULL, 0, out, &lost);
    fclose(out);
    ck_assert_int_eq(launch_shell_parse("script", script, n, NULL, &words, &diags), STATUS_OK);
    mean(&words, 0, &d, &diags);
    ck_assert_msg(diags.n_items == 0, "%s\nby\n%s", diags.n_items ? diags.items[0].text : "", script);
    expect_job(x, &d, script);
    launch_words_free(&words);
    diags_free(&diags);
    diags_free(&lost);
    free(script);
}

/* What the program's own log would say: every argument, by its name there. */
static void through_a_log(const struct launch_job *x)
{
    char *text;
    size_t n;
    struct megatron_export *e = memory_new(1, sizeof *e);
    struct diags diags = {0};
    struct launch_words words = {0};
    struct launch_log log;
    struct launch_description d;
    FILE *out = open_memstream(&text, &n);
    megatron_export(x, e);
    fputs("[rank0]: ------------------------ arguments ------------------------\n", out);
    for (int i = 0; i < N_ARGUMENTS; i++) {
        const struct argument_row *row = &megatron_rows[i];
        const char *value = megatron_text(&e->arguments, (enum argument)i);
        char name[80];
        snprintf(name, sizeof name, "%s", row->dest ? row->dest : row->flag);
        for (char *p = name; *p; p++)
            *p = *p == '-' ? '_' : *p;
        int dots = (int)strlen(name) < 48 ? 48 - (int)strlen(name) : 0;
        value = !value ? "None" : strcmp(value, "true") == 0 ? "True" : strcmp(value, "false") == 0 ? "False" : value;
        fprintf(out, "[rank0]:   %s %.*s %s\n", name, dots, "................................................", value);
    }
    fputs("[rank0]: -------------------- end of arguments ---------------------\n", out);
    fclose(out);
    megatron_log_parse("log", text, n, -1, &words, &log, &diags);
    mean(&words, 0, &d, &diags);
    expect_job(x, &d, text);
    launch_words_free(&words);
    megatron_export_free(e);
    diags_free(&diags);
    free(e);
    free(text);
}

/* Whether the framework has words for all of it; if so it must come back. */
static bool through_a_config(const struct launch_job *x, const char *framework)
{
    bool titan = strcmp(framework, "torchtitan") == 0,
         program = strcmp(framework, "Megatron-Bridge") == 0 || strcmp(framework, "NeMo 2") == 0;
    const char *file = titan ? "c.toml" : program ? "c.py" : "c.yaml";
    size_t notes = program; /* that a program is read and not run */
    bool silent = titan || program;
    char *text;
    size_t n;
    struct diags lost = {0}, diags = {0};
    struct launch_words words = {0};
    struct launch_description d;
    bool companion;
    FILE *out = open_memstream(&text, &n);
    framework_write_config(framework, x, NULL, 0, out, &lost);
    fclose(out);
    bool whole = lost.n_items == 0;
    ck_assert_msg(whole || !titan, "%s\nby\n%s", whole ? "" : lost.items[0].text, text);
    if (whole) {
        struct launch_job said = *x;
        said.job.tokens = 0; /* how long it trains is not its step */
        ck_assert_int_eq(framework_config_parse(file, text, n, &words, &companion, &diags), STATUS_OK);
        mean(&words, program ? x->gpus : 0, &d, &diags);
        ck_assert_msg(diags.n_errors == 0 && (!silent || diags.n_items == notes), "%s\nby\n%s",
                      diags.n_items ? diags.items[diags.n_items - 1].text : "", text);
        expect_job(&said, &d, text);
    }
    launch_words_free(&words);
    diags_free(&diags);
    diags_free(&lost);
    free(text);
    return whole;
}

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
    x->job.muon_tp = MUON_BLOCKWISE;
    x->job.muon_shard = MUON_ELEMENTS;
    x->job.dropout = 0;
    x->job.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA);
    l->features = x->job.features |= l->tp > 1 && random_below(random, 2) ? FEATURE_BIT(TP_OVERLAP) : 0;
    return llama && !m->mtp_layers;
}

/* Replicas and shards that torchtitan can be told. */
static void draw_degrees(struct random_stream *random, struct layout *l)
{
    bool alone = l->tp * l->cp * l->pp == 1;
    l->zero = l->dp * l->cp == 1 || (alone && random_below(random, 4) == 0) ? 0
              : l->pp > 1                                                   ? 2
                                                                            : 2 + (int)random_below(random, 2);
    l->shard = l->zero && l->dp % 2 == 0 && l->dp * l->cp > 2 && random_below(random, 2) ? l->dp / 2 * l->cp : 0;
    l->offload = offloaded(l->zero == 3 && random_below(random, 4) == 0 ? "optimizer+parameters" : "none");
}

/* A layout that torchtitan can be told. */
static void draw_titan_layout(struct random_stream *random, const struct transformer *model, struct layout *l)
{
    static const enum schedule one[] = {SCHEDULE_GPIPE, SCHEDULE_1F1B},
                               two[] = {SCHEDULE_INTERLEAVED, SCHEDULE_ZBV, SCHEDULE_DUALPIPEV};
    draw_layout(random, model, l);
    l->schedule = l->pp == 1 ? SCHEDULE_NONE : l->vpp == 1 ? one[random_below(random, 2)] : two[random_below(random, 3)];
    l->vpp = l->pp > 1 && schedule_is_folded(l->schedule) ? 2 : l->vpp;
    l->sequence_parallel = l->tp > 1 && random_below(random, 8);
    l->cp_comm = l->cp > 1 && random_below(random, 2) ? CP_ALL_GATHER : CP_RING;
    l->etp = 0;
    if (model->moe.experts && l->ep > 1)
        l->etp = l->tp > 1 && random_below(random, 2) ? l->tp : 0;
    draw_degrees(random, l);
    static const struct recompute recomputes[] = {{.what = RECOMPUTE_NONE},
                                                  {.what = RECOMPUTE_SELECTIVE},
                                                  {.what = RECOMPUTE_FULL},
                                                  {RECOMPUTE_FULL, RECOMPUTE_EVERY, 2},
                                                  {RECOMPUTE_FULL, RECOMPUTE_EVERY, 3}};
    l->recompute = recomputes[random_below(random, 5)];
}

/* A job that torchtitan can run; false when what was drawn is none. */
static bool draw_titan(struct random_stream *random, const struct cluster *cluster, struct launch_job *x)
{
    static const char *const models[] = {"llama3-8b",     "llama3-70b",       "llama3.1-405b", "qwen3-0.6b",  "qwen3-32b",
                                         "qwen3-30b-a3b", "deepseek-v2-lite", "deepseek-v2",   "llama4-scout"};
    static const enum precision precisions[] = {PRECISION_BF16, PRECISION_BF16, PRECISION_FP32, PRECISION_FP8, PRECISION_MXFP8};
    static const feature_set compiled[] = {0, FEATURE_BIT(EAGER_LOSS), FEATURE_BIT(COMPILE),
                                           FEATURE_BIT(COMPILE) | FEATURE_BIT(EAGER_LOSS)};
    struct layout *l = &x->layout;
    struct diags diags = {0};
    *x = (struct launch_job){0};
    ck_assert_int_eq(catalog_model(models[random_below(random, 9)], &x->model, &diags), STATUS_OK);
    draw_titan_layout(random, &x->model, l);
    draw_job(random, x);
    x->job = (struct job){.seq_len = 4096, .global_batch = x->job.global_batch, .gradient_precision = PRECISION_FP32};
    x->job.precision = precisions[random_below(random, 5)];
    x->job.load.busiest = x->model.moe.experts ? (double)random_below(random, 2) : 0;
    x->job.features =
        FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA) | compiled[random_below(random, 4)];
    if ((x->job.features & FEATURE_BIT(COMPILE)) && l->tp > 1 && random_below(random, 2))
        x->job.features |= FEATURE_BIT(ASYNC_TP);
    l->features = x->job.features;
    struct setting setting = {&x->model, cluster, &x->job, x->gpus};
    int apart = l->cp * (layout_expert_tp(l) == 1 ? l->tp : 1);
    return (l->ep == 1 || l->ep % apart == 0) && layout_check(l, &setting, NULL, 0) == LAYOUT_LEGAL;
}

START_TEST(what_torchtitan_is_told_comes_back)
{
    enum { TRIES = 400000, WANTED = 600 };
    struct random_stream random = random_stream_named((uint64_t)_i + 1, 2, 0);
    struct cluster cluster;
    struct diags diags = {0};
    int n = 0, mixtures = 0, chunked = 0, folded = 0, hybrid = 0, every = 0, offloading = 0;
    ck_assert_int_eq(catalog_cluster("gb200-nvl72", &cluster, &diags), STATUS_OK);
    for (int i = 0; i < TRIES && n < WANTED; i++) {
        struct launch_job x;
        if (!draw_titan(&random, &cluster, &x))
            continue;
        through_a_config(&x, "torchtitan");
        n++;
        mixtures += x.model.moe.experts && x.layout.ep > 1;
        chunked += x.layout.vpp > 2;
        folded += schedule_is_folded(x.layout.schedule);
        hybrid += x.layout.shard > 0;
        every += x.layout.recompute.of == RECOMPUTE_EVERY;
        offloading += !offload_is_none(&x.layout.offload);
    }
    ck_assert_int_eq(n, WANTED);
    ck_assert_int_gt(mixtures, 20);
    ck_assert_int_gt(chunked, 20);
    ck_assert_int_gt(folded, 20);
    ck_assert_int_gt(hybrid, 20);
    ck_assert_int_gt(every, 20);
    ck_assert_int_gt(offloading, 10);
    diags_free(&diags);
}
END_TEST

/* Two draws of each. */
START_TEST(what_a_recipe_is_told_comes_back)
{
    enum { TRIES = 400000, WANTED = 400 };
    struct random_stream random = random_stream_named((uint64_t)_i / 2 + 1, 3, 0);
    bool bridge = _i % 2;
    struct cluster cluster;
    struct diags diags = {0};
    char **names;
    size_t n_names;
    int n = 0, mixtures = 0, latent = 0, windows = 0, stages = 0, narrow = 0, hybrid = 0;
    ck_assert_int_eq(catalog_names(CATALOG_MODELS, &names, &n_names, &diags), STATUS_OK);
    ck_assert_int_eq(catalog_cluster("gb200-nvl72", &cluster, &diags), STATUS_OK);
    for (int i = 0; i < TRIES && n < WANTED; i++) {
        struct launch_job x;
        if (!draw(&random, names, n_names, &cluster, &x))
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
        narrow += x.job.gradient_precision == PRECISION_BF16;
        hybrid += x.layout.shard > 0;
    }
    ck_assert_int_eq(n, WANTED);
    ck_assert_int_gt(mixtures, 15);
    ck_assert_int_gt(latent, 2);
    ck_assert_int_gt(windows, 10);
    ck_assert_int_gt(stages, bridge ? 5 : -1); /* a layout of stages NeMo 2 does not have */
    ck_assert_int_gt(narrow, 40);
    ck_assert_int_gt(hybrid, 20);
    names_free(names);
    diags_free(&diags);
}
END_TEST

START_TEST(what_other_frameworks_have_words_for_comes_back)
{
    enum { TRIES = 400000, WANTED = 100 };
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
        if (!draw(&random, names, n_names, &cluster, &x))
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
    ck_assert_int_ge(adapted, WANTED / 5);
    names_free(names);
    diags_free(&diags);
}
END_TEST

START_TEST(what_is_exported_is_imported_the_same)
{
    enum { WANTED = 1500, TRIES = 400000 };
    struct random_stream random = random_stream_named((uint64_t)_i + 1, 0, 0);
    struct cluster cluster;
    struct diags diags = {0};
    char **names;
    size_t n_names;
    int n = 0, mixtures = 0, folded = 0;
    ck_assert_int_eq(catalog_names(CATALOG_MODELS, &names, &n_names, &diags), STATUS_OK);
    ck_assert_int_eq(catalog_cluster("gb200-nvl72", &cluster, &diags), STATUS_OK);
    for (int i = 0; i < TRIES && n < WANTED; i++) {
        struct launch_job x;
        if (!draw(&random, names, n_names, &cluster, &x))
            continue;
        through_a_script(&x);
        if (n % 5 == 0)
            through_a_log(&x);
        n++;
        mixtures += x.model.moe.experts > 0;
        folded += schedule_is_folded(x.layout.schedule);
    }
    ck_assert_int_eq(n, WANTED);
    ck_assert_int_gt(mixtures, WANTED / 10);
    ck_assert_int_gt(folded, 10);
    names_free(names);
    diags_free(&diags);
}
END_TEST

/* By hand: layers that need a layout of their own, and what no argument says. */
START_TEST(stages_that_do_not_divide_are_named)
{
    struct diags diags = {0};
    struct launch_job x = {.job = {.seq_len = 4096,
                                   .global_batch = 64,
                                   .precision = PRECISION_BF16,
                                   .dropout = 0.1,
                                   .features = FEATURE_BIT(FUSED_OPS)},
                           .layout = {.tp = 1,
                                      .cp = 1,
                                      .pp = 4,
                                      .vpp = 1,
                                      .dp = 2,
                                      .ep = 1,
                                      .micro_batch = 1,
                                      .zero = 1,
                                      .schedule = SCHEDULE_1F1B,
                                      .features = FEATURE_BIT(FUSED_OPS)},
                           .gpus = 8,
                           .gpus_per_node = 8};
    ck_assert_int_eq(catalog_model("llama3-8b", &x.model, &diags), STATUS_OK);
    struct {
        int layers;
        const char *stages;
        bool ends;
    } cases[] = {{32, NULL, false}, {30, NULL, true}, {29, "Et*7|t*7|t*8|t*7L", false}, {31, "Et*8|t*8|t*8|t*7L", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct megatron_export *e = memory_new(1, sizeof *e);
        x.model.layers = cases[i].layers;
        megatron_export(&x, e);
        if (cases[i].stages)
            ck_assert_str_eq(e->arguments.of[ARGUMENT_STAGE_LAYOUT].text, cases[i].stages);
        else
            ck_assert_ptr_null(e->arguments.of[ARGUMENT_STAGE_LAYOUT].text);
        ck_assert_int_eq(e->arguments.of[ARGUMENT_LOSS_COUNTS].text != NULL, cases[i].ends);
        ck_assert_int_eq(e->n_lost, 0);
        megatron_export_free(e);
        free(e);
    }
    diags_free(&diags);
}
END_TEST

START_TEST(what_no_argument_says_is_told)
{
    struct diags diags = {0};
    struct launch_job x = {.job = {.seq_len = 4096,
                                   .global_batch = 64,
                                   .precision = PRECISION_BF16,
                                   .optimizer = OPTIMIZER_LAMB,
                                   .features = FEATURE_BIT(PARALLEL_BLOCK) | FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(COMPILE)},
                           .layout = {.tp = 2,
                                      .cp = 1,
                                      .pp = 4,
                                      .vpp = 1,
                                      .dp = 1,
                                      .ep = 1,
                                      .micro_batch = 1,
                                      .recompute.what = RECOMPUTE_MLP_ACT,
                                      .schedule = SCHEDULE_GPIPE},
                           .gpus = 8,
                           .gpus_per_node = 8};
    ck_assert_int_eq(catalog_model("llama3-8b", &x.model, &diags), STATUS_OK);
    struct megatron_export *e = memory_new(1, sizeof *e);
    megatron_export(&x, e);
    static const char *const expected[] = {"schedule gpipe", "recompute mlp_act", "parallel_block",
                                           "compile",        "pp_overlap",        "optimizer lamb"};
    ck_assert_int_eq(e->n_lost, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_msg(strncmp(e->lost[i], expected[i], strlen(expected[i])) == 0, "%s", e->lost[i]);
    ck_assert_ptr_null(e->arguments.of[ARGUMENT_OPTIMIZER].text); /* adam, as where nobody says */
    megatron_export_free(e);
    ck_assert_int_eq(catalog_model("mixtral-8x7b", &x.model, &diags), STATUS_OK);
    for (int sp = 0; sp < 2; sp++) {
        x.layout.sequence_parallel = sp;
        megatron_export(&x, e);
        bool told = false;
        for (int i = 0; i < e->n_lost; i++)
            told |= strncmp(e->lost[i], "no sequence_parallel", 20) == 0;
        ck_assert(told == !sp); /* its mixtures do not train otherwise */
        megatron_export_free(e);
    }
    free(e);
    diags_free(&diags);
}
END_TEST

/* Whatever layout a search finds among those that a framework can say: it says it. Without the restrictions there are others. */
START_TEST(layouts_that_can_be_said_are_said)
{
    static const char *const frameworks[] = {"Megatron-LM", "NeMo", "Megatron-Bridge", "NeMo 2", "nanotron", "torchtitan"},
                             *const models[] = {"llama3-8b", "mixtral-8x7b"};
    struct diags diags = {0};
    for (int i = 0; i < 12; i++) {
        const char *framework = frameworks[i % 6];
        struct transformer model;
        struct cluster cluster;
        /* of nanotron's and torchtitan's layers nothing is fused, and such experts they have none */
        feature_set features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA) |
                               (i % 6 < 4    ? FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(SCATTER_GATHER_P2P)
                                : i % 6 == 5 ? FEATURE_BIT(EAGER_LOSS) | FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(PP_OVERLAP)
                                             : 0);
        struct job job = {.seq_len = 8192,
                          .global_batch = 64,
                          .precision = PRECISION_BF16,
                          .gradient_precision = PRECISION_FP32,
                          .features = features};
        if (i / 6 && i % 6 >= 4)
            continue;
        ck_assert_int_eq(catalog_model(models[i / 6], &model, &diags), STATUS_OK);
        ck_assert_int_eq(catalog_cluster("dgx-h100", &cluster, &diags), STATUS_OK);
        const struct setting setting = {&model, &cluster, &job, 16};
        const struct framework_layouts can = framework_layouts_of(framework, &model, features);
        int lost[2] = {0};
        for (int all = 0; all < 2; all++) {
            struct space_limits limits = {.modules_kept = all ? 0 : (int)can.unsaid};
            struct space *space;
            ck_assert_int_eq(space_restrict(&limits, "dp_overlap=1", (struct place){0}, &diags), STATUS_OK);
            for (int r = 0; !all && can.restrictions[r]; r++)
                ck_assert_int_eq(space_restrict(&limits, can.restrictions[r], (struct place){0}, &diags), STATUS_OK);
            ck_assert_int_eq(space_create(&setting, &limits, &space, &diags), STATUS_OK);
            for (uint64_t at = 0; at < space_size(space); at += 1 + space_size(space) / 200) {
                struct launch_job x = {.model = model, .job = job, .gpus = 16, .gpus_per_node = 8};
                char text[LAYOUT_TEXT], why[256];
                space_layout(space, at, &x.layout);
                x.job.features = x.layout.features;
                if ((x.layout.features & FEATURES_LINEAR_LOSS) ||
                    layout_check(&x.layout, &setting, why, sizeof why) != LAYOUT_LEGAL)
                    continue;
                int n = framework_n_lost(framework, &x);
                ck_assert_msg(all || n == 0, "%s: %s", framework, layout_format(&x.layout, text, sizeof text));
                lost[all] += n > 0;
            }
            space_destroy(space);
        }
        ck_assert_int_eq(lost[0], 0);
        ck_assert_int_gt(lost[1], 0);
    }
    diags_free(&diags);
}
END_TEST

/* By hand: what torchtitan cannot be told, each in a sentence; stages as its own rule has them are not named. */
START_TEST(torchtitan_says_what_it_can)
{
    static const struct {
        struct layout layout;
        const char *model, *lost, *written;
    } cases[] = {
        {{.tp = 2, .pp = 1, .vpp = 1, .dp = 4, .zero = 1}, "llama3-8b", "zero 1: torchtitan shards gradients", NULL},
        {{.tp = 2, .pp = 1, .vpp = 1, .dp = 4}, "llama3-8b", "zero 0 beside tensor or pipeline", NULL},
        {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8},
         "llama3-8b",
         NULL,
         "data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n"},
        {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8, .zero = 3, .shard = 4},
         "llama3-8b",
         NULL,
         "data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n"},
        {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8, .zero = 2}, "llama3-8b", NULL, "fsdp_reshard_after_forward = \"never\"\n"},
        {{.tp = 1, .pp = 4, .vpp = 1, .dp = 2, .zero = 2, .schedule = SCHEDULE_ZB1P}, "llama3-8b", "schedule zb-1p", NULL},
        {{.tp = 1, .pp = 2, .vpp = 3, .dp = 4, .zero = 2, .schedule = SCHEDULE_INTERLEAVED},
         "llama3-8b",
         NULL,
         "module_fqns_per_model_part = [\n"}, /* of 34 places 6, 6, 6, 6, 5, 5 are its own way, without the ends' */
        {{.tp = 1, .pp = 2, .vpp = 17, .dp = 4, .zero = 2, .schedule = SCHEDULE_INTERLEAVED},
         "llama3-8b",
         NULL,
         "pipeline_parallel_layers_per_stage = 1\n"},
        {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8, .zero = 3, .recompute = {RECOMPUTE_FULL, RECOMPUTE_FIRST, 4}},
         "llama3-8b",
         "recompute full:4",
         "mode = \"full\"\n"},
        {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8, .zero = 3, .recompute = {RECOMPUTE_FULL, RECOMPUTE_EVERY, 4}},
         "llama3-8b",
         NULL,
         "mode = \"selective\"\nselective_ac_option = \"4\"\n"},
        {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8, .zero = 3},
         "gpt3-13b",
         "model gpt3-13b: it is none of torchtitan's flavors",
         NULL},
        {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8, .zero = 3},
         "deepseek-v3",
         "modules that predict further tokens",
         "flavor = \"671B\"\nname = \"deepseek_v3\"\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct diags lost = {0};
        struct launch_job x = {
            .job = {.seq_len = 4096, .global_batch = 64, .precision = PRECISION_BF16, .gradient_precision = PRECISION_FP32},
            .layout = cases[i].layout,
            .gpus = 8,
            .gpus_per_node = 8};
        char *text;
        size_t n;
        x.layout.cp = x.layout.ep = x.layout.micro_batch = 1;
        x.layout.sequence_parallel = x.layout.tp > 1;
        x.layout.schedule = x.layout.pp > 1 && !x.layout.schedule ? SCHEDULE_1F1B : x.layout.schedule;
        x.job.features = x.layout.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA);
        ck_assert_int_eq(catalog_model(cases[i].model, &x.model, &lost), STATUS_OK);
        FILE *out = open_memstream(&text, &n);
        framework_write_config("torchtitan", &x, NULL, 0, out, &lost);
        fclose(out);
        ck_assert_msg(lost.n_items == (cases[i].lost != NULL), "%zu: %s", i, text);
        ck_assert_msg(!cases[i].lost || strstr(lost.items[0].text, cases[i].lost), "%s", lost.n_items ? lost.items[0].text : "");
        ck_assert_msg(!cases[i].written || strstr(text, cases[i].written), "%s", text);
        free(text);
        diags_free(&lost);
    }
}
END_TEST

/* Of overlaps those that the job allows are asked for: one that it does not would leave no layout that has a use for it. */
START_TEST(torchtitan_asks_for_what_the_job_allows)
{
    static const struct {
        feature_set features;
        bool replicas, tensors;
    } cases[] = {{0, false, true},
                 {FEATURE_BIT(DP_OVERLAP), true, true},
                 {FEATURE_BIT(ASYNC_TP), false, false},
                 {FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_TP), true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct framework_layouts can = framework_layouts_of("torchtitan", &(struct transformer){0}, cases[i].features);
        bool replicas = false, tensors = false;
        for (int r = 0; can.restrictions[r]; r++) {
            replicas |= strcmp(can.restrictions[r], "dp_overlap=1") == 0;
            tensors |= strcmp(can.restrictions[r], "tp_overlap=0") == 0;
        }
        ck_assert(replicas == cases[i].replicas && tensors == cases[i].tensors);
    }
}
END_TEST

/* The base of rotary positions, where it is not what is taken unasked. */
START_TEST(the_base_of_rotary_positions_is_written)
{
    static const struct {
        const char *model, *framework, *written; /* NULL: no such line */
    } cases[] = {
        {"llama3-8b", NULL, "--rotary-base 500000\n"},
        {"mixtral-8x7b", NULL, "--rotary-base 1000000\n"},
        {"llama2-7b", NULL, NULL},
        {"gpt3-13b", NULL, NULL},
        {"llama3-8b", "NeMo", "  rotary_base: 500000\n"},
        {"llama3-8b", "nanotron", "    rope_theta: 500000\n"},
    };
    struct diags diags = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct launch_job x = {
            .job = {.seq_len = 2048, .global_batch = 64, .precision = PRECISION_BF16},
            .layout = {.tp = 2, .cp = 1, .pp = 1, .vpp = 1, .dp = 4, .ep = 1, .micro_batch = 1, .schedule = SCHEDULE_NONE},
            .gpus = 8,
            .gpus_per_node = 8};
        char *text;
        size_t n;
        ck_assert_int_eq(catalog_model(cases[i].model, &x.model, &diags), STATUS_OK);
        FILE *out = open_memstream(&text, &n);
        if (cases[i].framework)
            framework_write_config(cases[i].framework, &x, NULL, 0, out, &diags);
        else
            megatron_write_script(&x, NULL, 0, out, &diags);
        fclose(out);
        ck_assert_msg(cases[i].written ? strstr(text, cases[i].written) != NULL : !strstr(text, "rotary-base"), "%s", text);
        free(text);
    }
    diags_free(&diags);
}
END_TEST

/* NeMo has adapters, though not what is trained whole beside them; others train all weights, each by its own name. */
START_TEST(adapters_are_whose_they_are)
{
    static const struct {
        const char *framework, *told, *written; /* NULL: Megatron-LM; nothing */
        uint32_t whole;
    } cases[] = {
        {"NeMo", NULL, "    peft_scheme: lora\n", 0},
        {"NeMo", NULL, "      target_modules: [attention_qkv]\n", 0},
        {"NeMo", "embedding or head trained whole beside adapters: NeMo freezes them", "    peft_scheme: lora\n", 2},
        {"nanotron", "adapters of rank 16: nanotron trains all weights", NULL, 0},
        {NULL, "adapters of rank 16: Megatron-LM's pretraining trains all weights", NULL, 0},
    };
    struct diags diags = {0};
    struct launch_job x = {
        .job = {.seq_len = 4096, .global_batch = 64, .precision = PRECISION_BF16, .optimizer = OPTIMIZER_ADAM},
        .layout = {.tp = 2, .cp = 1, .pp = 1, .vpp = 1, .dp = 4, .ep = 1, .micro_batch = 1, .schedule = SCHEDULE_NONE},
        .gpus = 8,
        .gpus_per_node = 8};
    ck_assert_int_eq(catalog_model("llama3-8b", &x.model, &diags), STATUS_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text;
        size_t n;
        struct diags lost = {0};
        bool told = false;
        x.job.adapter = (struct adapter){.rank = 16, .targets = 1 << ADAPT_QKV, .whole = cases[i].whole};
        FILE *out = open_memstream(&text, &n);
        if (cases[i].framework)
            framework_write_config(cases[i].framework, &x, NULL, 0, out, &lost);
        else
            megatron_write_script(&x, NULL, 0, out, &lost);
        fclose(out);
        for (size_t k = 0; k < lost.n_items; k++) {
            ck_assert_msg(cases[i].told || !strstr(lost.items[k].text, "adapter"), "%s", lost.items[k].text);
            told |= cases[i].told && strstr(lost.items[k].text, cases[i].told);
        }
        ck_assert_msg(told == (cases[i].told != NULL), "%zu", i);
        ck_assert_msg(!cases[i].written || strstr(text, cases[i].written), "%s", text);
        ck_assert(cases[i].written || !strstr(text, "lora"));
        free(text);
        diags_free(&lost);
    }
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_export");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, what_is_exported_is_imported_the_same, 0, 2);
    tcase_add_loop_test(all, what_other_frameworks_have_words_for_comes_back, 0, 2);
    tcase_add_loop_test(all, what_a_recipe_is_told_comes_back, 0, 4);
    tcase_add_loop_test(all, what_torchtitan_is_told_comes_back, 0, 2);
    tcase_add_test(all, torchtitan_says_what_it_can);
    tcase_add_test(all, torchtitan_asks_for_what_the_job_allows);
    tcase_add_test(all, the_base_of_rotary_positions_is_written);
    tcase_add_test(all, layouts_that_can_be_said_are_said);
    tcase_add_test(all, stages_that_do_not_divide_are_named);
    tcase_add_test(all, adapters_are_whose_they_are);
    tcase_add_test(all, what_no_argument_says_is_told);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
