#include "tests/traces/launch_drawn.h"

#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/catalog.h"
#include "model/spec/schemas.h"
#include "tests/layout/offloaded.h"
#include "tests/traces/frameworks_loaded.h"
#include "traces/launch/frameworks/framework_config.h"
#include "traces/launch/frameworks/framework_export.h"
#include "traces/launch/launch_shell.h"
#include "traces/launch/megatron/megatron_export.h"
#include "traces/launch/megatron/megatron_log.h"
#include "traces/launch/megatron/megatron_translate.h"

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
    m->layer_norms = 0;
    m->attention_sinks = m->qk_norm_whole = m->moe.router_bias = m->moe.shared_gate = false; /* no script has these */
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

void draw_launch_layout(struct random_stream *random, const struct transformer *model, struct layout *l)
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

void draw_launch_job(struct random_stream *random, struct launch_job *x)
{
    struct layout *l = &x->layout;
    struct job *j = &x->job;
    j->memory_margin = MEMORY_MARGIN; /* no framework has a word for it */
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
    static const enum precision moments[] = {PRECISION_FP32, PRECISION_FP32, PRECISION_BF16, PRECISION_FP16, PRECISION_FP8};
    if (j->optimizer == OPTIMIZER_ADAM && l->zero) /* where Megatron-LM lets them be narrow */
        j->moment_precision = moments[random_below(random, 5)];
    j->dropout = random_below(random, 2) ? 0.1 : 0;
    j->tokens = random_below(random, 2) ? (double)j->seq_len * (double)(1 + random_below(random, 1000000)) : 0;
    j->features = l->features = draw_features(random, l);
    x->gpus = l->tp * l->cp * l->pp * l->dp;
    x->gpus_per_node = x->gpus < 8 ? x->gpus : 8;
    if (x->model.moe.experts && j->global_batch % 3 == 0)
        j->load = (struct expert_load){.capacity = 1 + 0.25 * (double)(j->global_batch % 4), .padded = j->global_batch % 2};
}

bool draw_launch(struct random_stream *random, char **names, size_t n_names, const struct cluster *cluster, struct launch_job *x)
{
    struct diags diags = {0};
    *x = (struct launch_job){0};
    ck_assert_int_eq(catalog_model(names[random_below(random, n_names)], &x->model, &diags), STATUS_OK);
    diags_free(&diags);
    if (strpbrk(x->model.layer_pattern, "amp")) /* Megatron-LM's hybrids have one part a layer */
        return false;
    settle_model(&x->model);
    draw_launch_layout(random, &x->model, &x->layout);
    draw_launch_job(random, x);
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
    megatron_read(words, frameworks_loaded()->ignored, false, arguments, diags);
    megatron_translate(arguments, &(struct launch_known){.gpus = gpus}, d, diags);
    free(arguments);
}

void through_a_script(const struct launch_job *x)
{
    char *script;
    size_t n;
    struct diags lost = {0}, diags = {0};
    struct launch_words words = {0};
    struct launch_description d;
    FILE *out = open_memstream(&script, &n);
    megatron_write_script(x, NULL, 0, out, &lost);
    fclose(out);
    ck_assert_int_eq(launch_shell_parse(frameworks_loaded(), "script", script, n, NULL, &words, &diags), STATUS_OK);
    mean(&words, 0, &d, &diags);
    ck_assert_msg(diags.n_items == 0, "%s\nby\n%s", diags.n_items ? diags.items[0].text : "", script);
    expect_job(x, &d, script);
    launch_words_free(&words);
    diags_free(&diags);
    diags_free(&lost);
    free(script);
}

void through_a_log(const struct launch_job *x)
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

bool through_a_config(const struct launch_job *x, const char *framework)
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
    const struct framework *whose;
    FILE *out = open_memstream(&text, &n);
    framework_write_config(frameworks_loaded(), framework, x, NULL, 0, out, &lost);
    fclose(out);
    bool whole = lost.n_items == 0;
    ck_assert_msg(whole || !titan, "%s\nby\n%s", whole ? "" : lost.items[0].text, text);
    if (whole) {
        struct launch_job said = *x;
        said.job.tokens = 0; /* how long it trains is not its step */
        ck_assert_int_eq(framework_config_parse(frameworks_loaded(), file, text, n, &words, &whose, &diags), STATUS_OK);
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
