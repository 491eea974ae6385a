#include "tests/runtime/toys.h"
#include "tests/suite.h"

#include <check.h>
#include <stdio.h>

static void make_mixture(struct transformer *m, bool shared)
{
    m->moe = (struct mixture){.experts = shared ? 8 : 4,
                              .top_k = 2,
                              .expert_ffn = 24,
                              .shared_experts = shared,
                              .first_dense_layers = shared,
                              .every = shared ? 1 : 2};
}

static void make_latent(struct transformer *m, int q_rank)
{
    m->attention = ATTENTION_LATENT;
    m->linear_bias = false;
    m->latent =
        (struct latent_attention){.q_lora_rank = q_rank, .kv_lora_rank = 12, .qk_nope_dim = 8, .qk_rope_dim = 4, .v_dim = 6};
}

static void make_hybrid(struct transformer *m, enum mixer_kind kind, const char *pattern)
{
    m->mixer = (struct state_mixer){.kind = kind,
                                    .heads = 8,
                                    .groups = 4,
                                    .state = 6,
                                    .head_dim = 5,
                                    .conv = kind == MIXER_LIGHTNING ? 0 : 4,
                                    .chunk = 6,
                                    .norm = true};
    snprintf(m->layer_pattern, sizeof m->layer_pattern, "%s", pattern);
}

static void make_special(struct transformer *m, enum toy_model model)
{
    switch (model) {
    case TOY_WINDOW: m->window = 5; break;
    case TOY_MIXTURE: make_mixture(m, true); break;
    case TOY_MIXTURE_GPT: make_mixture(m, false); break;
    case TOY_ALIBI:
        m->position = POSITION_ALIBI;
        m->window = 6;
        break;
    case TOY_NORMS: m->qk_norm = true; break;
    case TOY_LATENT:
        make_latent(m, 20);
        make_mixture(m, true);
        break;
    case TOY_LATENT_GPT: make_latent(m, 0); break;
    case TOY_LATENT_NORMS:
        make_latent(m, 20);
        make_mixture(m, true);
        m->qk_norm = m->linear_bias = m->gated_mlp = true;
        m->position = POSITION_ROTARY;
        break;
    case TOY_OSS:
        make_mixture(m, false);
        m->mlp_limit = 0.2; /* small as what activations read here */
        m->linear_bias = true;
        m->window = 5;
        m->window_every = 2;
        break;
    case TOY_PREDICTION:
        make_mixture(m, true);
        m->mtp_layers = 2;
        break;
    case TOY_PREDICTION_GPT: m->mtp_layers = 1; break;
    case TOY_MAMBA: make_hybrid(m, MIXER_MAMBA2, "M-m*"); break;
    case TOY_MAMBA_GPT: make_hybrid(m, MIXER_MAMBA2, "pM-a"); break;
    case TOY_LIGHTNING: make_hybrid(m, MIXER_LIGHTNING, "mpam"); break;
    case TOY_DELTA:
        make_mixture(m, true);
        make_hybrid(m, MIXER_GATED_DELTA, "mm*E");
        break;
    case TOY_KIMI:
        make_latent(m, 20);
        make_mixture(m, true);
        make_hybrid(m, MIXER_KIMI_DELTA, "mamp");
        break;
    default: break;
    }
}

static bool is_llama(enum toy_model model)
{
    return model == TOY_LLAMA || model == TOY_WINDOW || model == TOY_MIXTURE || model == TOY_NORMS || model == TOY_LATENT ||
           model == TOY_OSS || model == TOY_PREDICTION || model == TOY_MAMBA || model == TOY_LIGHTNING || model == TOY_DELTA ||
           model == TOY_KIMI;
}

struct layout toy_one_rank(void)
{
    return (struct layout){.tp = 1,
                           .cp = 1,
                           .pp = 1,
                           .vpp = 1,
                           .dp = 1,
                           .ep = 1,
                           .micro_batch = 1,
                           .features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS)};
}

/* Of products in pieces with their exchanges some take two pieces, some four. */
static struct gpu toy_gpu(void)
{
    struct gpu gpu = {.sms = 1,
                      .hbm_rate = 1e10,
                      .hbm_bytes = 1e10,
                      .nvlink_domain = 64,
                      .sustained_clock = 1,
                      .memory = {.bandwidth_fraction = 1},
                      .attention = {.forward_fraction = 1, .backward_fraction = 1},
                      .nccl_rate = 2e9,
                      .nccl_base_s = 3e-8};
    static const enum precision precisions[] = {PRECISION_FP32, PRECISION_BF16};
    for (size_t i = 0; i < sizeof precisions / sizeof precisions[0]; i++) {
        gpu.peak_flops[precisions[i]] = 1e11;
        gpu.gemm[precisions[i]] = (struct gemm_parameters){.peak_fraction = 1, .memory_fraction = 1e6};
    }
    return gpu;
}

void toy_make(struct toy *toy, enum toy_model model)
{
    static const char *const names[N_TOY_MODELS] = {
        "gpt",          "llama", "window",     "mixture",        "mixture-gpt", "alibi",     "norms",     "latent", "latent-gpt",
        "latent-norms", "oss",   "prediction", "prediction-gpt", "mamba",       "mamba-gpt", "lightning", "delta",  "kimi"};
    bool llama = is_llama(model);
    *toy = (struct toy){
        .model = {.layers = 4,
                  .hidden = 32,
                  .ffn_hidden = 48,
                  .gated_mlp = llama,
                  .heads = 4,
                  .kv_heads = llama ? 2 : 4,
                  .head_dim = 8,
                  .vocab = 61,
                  .max_seq_len = 16,
                  .tied_embeddings = !llama,
                  .linear_bias = !llama,
                  .norm = llama ? NORM_RMS : NORM_LAYER,
                  .position = llama ? POSITION_ROTARY : POSITION_LEARNED},
        .job = {.global_batch = 8,
                .seq_len = 16,
                .precision = PRECISION_FP32,
                .gradient_precision = PRECISION_FP32,
                .optimizer = OPTIMIZER_ADAM,
                .features = FEATURES_USUAL | FEATURE_BIT(PARALLEL_BLOCK) | FEATURE_BIT(EP_OVERLAP)},
        .layout = toy_one_rank(),
    };
    snprintf(toy->model.name, sizeof toy->model.name, "%s", names[model]);
    make_special(&toy->model, model);
    toy->cluster.gpu = toy_gpu();
    toy->cluster.nodes = 1;
    toy->cluster.gpus_per_node = 64;
    toy->cluster.nvlink_domain = 64;
}

void toy_complete(struct toy *toy)
{
    struct layout *l = &toy->layout;
    toy->setting = (struct setting){&toy->model, &toy->cluster, &toy->job, l->tp * l->cp * l->pp * l->dp};
    if (l->pp == 1)
        l->schedule = SCHEDULE_NONE;
}

void toy_lay_out(struct toy *toy, const char *layout, feature_set turned_over)
{
    struct diags diags = {0};
    ck_assert_msg(layout_parse(layout, &toy->layout, &diags) == STATUS_OK, "%s", layout);
    toy->layout.features ^= turned_over;
    toy->job.features |= toy->layout.features;
    toy_complete(toy);
    diags_free(&diags);
}

char *toy_text(const struct toy *toy, char *buffer, size_t size)
{
    char layout[160];
    int n = snprintf(buffer, size, "%s %s:", toy->model.name, layout_format(&toy->layout, layout, sizeof layout));
    for (int f = 0; f < N_FEATURES && (size_t)n < size; f++)
        if (toy->layout.features >> f & 1u)
            n += snprintf(buffer + n, size - (size_t)n, " %s", feature_name((enum feature)f));
    return buffer;
}

enum status toy_run(const struct toy *toy, enum detail detail, const struct thread_run_options *options,
                    struct thread_run *result, struct diags *diags)
{
    struct diags own = {0}, *to = diags ? diags : &own;
    struct program program;
    char text[TOY_TEXT_MAX] = "";
    enum status status = program_build(&toy->layout, &toy->setting, detail, false, &program, to);
    if (status == STATUS_OK) {
        status = program_verify(&program, to);
        if (status == STATUS_OK)
            status = run_on_threads(&program, &toy->setting, options, result, to);
        program_free(&program);
    }
    if (!diags) {
        for (size_t i = 0; i < own.n_items; i++)
            fprintf(stderr, "%s\n", own.items[i].text);
        ck_assert_msg(status == STATUS_OK, "%s", toy_text(toy, text, sizeof text));
        diags_free(&own);
    }
    return status;
}

int toy_suite(const char *name, const struct toy_test *tests, int n)
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    for (int i = 0; i < n; i++)
        suite_add_rounds(cases, tests[i].test, tests[i].rounds, i);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
