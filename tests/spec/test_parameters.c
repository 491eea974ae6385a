/* Parameter counts: small models by hand, every catalog model against its publication, catalog shapes against measured tables. */
#include <check.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/catalog.h"
#include "tests/suite.h"
#include "traces/table/csv.h"

static const struct transformer small = {
    .layers = 2, .hidden = 8, .ffn_hidden = 32, .heads = 2, .kv_heads = 2, .head_dim = 4, .vocab = 100, .max_seq_len = 16};

/* GPT-2's kind. One layer: attention 4 (64 + 8), MLP 256 + 32 + 256 + 8, two norms of 16; tables 800 + 128; last norm 16. */
START_TEST(dense_model_by_hand)
{
    struct transformer m = small;
    struct parameter_count c;
    m.linear_bias = m.tied_embeddings = true;
    m.norm = NORM_LAYER;
    m.position = POSITION_LEARNED;
    transformer_parameters(&m, &c);
    ck_assert_double_eq(c.attention, 2 * 288);
    ck_assert_double_eq(c.dense_ffn, 2 * 552);
    ck_assert_double_eq(c.norms, 2 * 32 + 16);
    ck_assert_double_eq(c.embedding, 928);
    ck_assert_double_eq(c.head, 0);
    ck_assert_double_eq(c.total, 576 + 1104 + 80 + 928);
    ck_assert_double_eq(c.active, c.total);
    m.position_offset = 2;
    transformer_parameters(&m, &c);
    ck_assert_double_eq(c.embedding, 928 + 2 * 8);
}
END_TEST

/* LLaMA's kind with one key/value head, QKV bias and QK norm: q 64 + 8, k and v 32 + 4 each, o 64, norms 2 x 4; MLP 3 x 256. */
START_TEST(grouped_gated_model_by_hand)
{
    struct transformer m = small;
    struct parameter_count c;
    m.kv_heads = 1;
    m.gated_mlp = m.qkv_bias = m.qk_norm = true;
    m.norm = NORM_RMS;
    m.position = POSITION_ROTARY;
    transformer_parameters(&m, &c);
    ck_assert_double_eq(c.attention, 2 * (72 + 2 * 36 + 64 + 8));
    ck_assert_double_eq(c.dense_ffn, 2 * 768);
    ck_assert_double_eq(c.embedding + c.head, 1600);
    ck_assert_double_eq(c.norms, 2 * 16 + 8);
}
END_TEST

/* Layer 0 dense, layer 1 a mixture: 4 experts of width 6 (3 x 48 each), 2 per token, one shared expert, router 8 x 4. */
START_TEST(mixture_by_hand)
{
    struct transformer m = small;
    struct parameter_count c;
    m.gated_mlp = true;
    m.norm = NORM_RMS;
    m.position = POSITION_ROTARY;
    m.moe = (struct mixture){.experts = 4, .top_k = 2, .expert_ffn = 6, .shared_experts = 1, .first_dense_layers = 1, .every = 1};
    transformer_parameters(&m, &c);
    ck_assert(!layer_is_mixture(&m, 0) && layer_is_mixture(&m, 1));
    ck_assert_double_eq(c.experts, 4 * 144);
    ck_assert_double_eq(c.router, 32);
    ck_assert_double_eq(c.dense_ffn, 768 + 144);
    ck_assert_double_eq(c.total - c.active, 2 * 144);
    m.moe.shared_ffn = 10; /* wins over shared_experts x expert_ffn */
    transformer_parameters(&m, &c);
    ck_assert_double_eq(c.dense_ffn, 768 + 240);
}
END_TEST

/* DeepSeek's: q 8 x 6 + 6 + 6 x 2 x (3 + 2); kv 8 x (5 + 2) + 5; up 5 x 2 x (3 + 4); o 2 x 4 x 8. */
START_TEST(latent_attention_by_hand)
{
    struct transformer m = small;
    struct parameter_count c;
    m.norm = NORM_RMS;
    m.attention = ATTENTION_LATENT;
    m.latent = (struct latent_attention){.q_lora_rank = 6, .kv_lora_rank = 5, .qk_nope_dim = 3, .qk_rope_dim = 2, .v_dim = 4};
    transformer_parameters(&m, &c);
    ck_assert_double_eq(c.attention, 2 * ((48 + 6 + 60) + (56 + 5) + 70 + 64));
    m.latent.q_lora_rank = 0;
    transformer_parameters(&m, &c);
    ck_assert_double_eq(c.attention, 2 * (8 * 2 * 5 + (56 + 5) + 70 + 64));
}
END_TEST

START_TEST(windows_and_mixtures_alternate)
{
    struct transformer m = small;
    ck_assert(!layer_is_windowed(&m, 0));
    m.window = 4;
    ck_assert(layer_is_windowed(&m, 0) && layer_is_windowed(&m, 1));
    m.window_every = 2;
    ck_assert(layer_is_windowed(&m, 0) && !layer_is_windowed(&m, 1) && layer_is_windowed(&m, 2));
    m.moe = (struct mixture){.experts = 4, .every = 2};
    ck_assert(!layer_is_mixture(&m, 0) && layer_is_mixture(&m, 1) && !layer_is_mixture(&m, 2));
}
END_TEST

/* Eight heads of 2 x 3 states in two groups, taps 4. Mamba-2: in 8 (2 x 16 + 2 x 6 + 8), convolution (16 + 12) (4 + 1), A, D and
 * the step's bias 3 x 8, norm 16, out 16 x 8. Lightning, a group a head: in 8 (16 + 2 x 24 + 16). Delta rule: in 8 (32 + 12 +
 * 16), taps 28 x 4, A and bias 2 x 8, a head's norm 2. Kimi's: in 8 (16 + 48 + 8), two ranks of 2: 8 x 4 + 2 (24 + 16); taps 64 x
 * 4, A 8, biases 24, norm 2. */
START_TEST(mixers_by_hand)
{
    struct transformer m = small;
    struct parameter_count c;
    const struct {
        enum mixer_kind kind;
        int groups, conv;
        double count;
    } cases[] = {{MIXER_MAMBA2, 2, 4, 8 * 52 + 140 + 24 + 16 + 128},
                 {MIXER_LIGHTNING, 8, 0, 8 * 80 + 16 + 128},
                 {MIXER_GATED_DELTA, 2, 4, 8 * 60 + 112 + 16 + 2 + 128},
                 {MIXER_KIMI_DELTA, 8, 4, 8 * 72 + 112 + 256 + 8 + 24 + 2 + 128}};
    m.norm = NORM_RMS;
    snprintf(m.layer_pattern, sizeof m.layer_pattern, "mM");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        m.mixer = (struct state_mixer){.kind = cases[i].kind,
                                       .heads = 8,
                                       .groups = cases[i].groups,
                                       .state = 3,
                                       .head_dim = 2,
                                       .conv = cases[i].conv,
                                       .norm = true};
        transformer_parameters(&m, &c);
        ck_assert_double_eq(c.mixers, 2 * cases[i].count);
        ck_assert_double_eq(c.attention, 0);
        ck_assert_double_eq(c.dense_ffn, 2 * 8 * 32);
        ck_assert_double_eq(c.norms, (2 + 1 + 1) * 8); /* the second layer has one part */
    }
}
END_TEST

/* Letters, repeated; a parallel layer has both mixers; `moe` counts layers whether they have a feed-forward part or not. */
START_TEST(patterns_say_what_layers_are)
{
    struct transformer m = small;
    m.layers = 14;
    snprintf(m.layer_pattern, sizeof m.layer_pattern, "a*mM-Ep");
    m.moe = (struct mixture){.experts = 4, .top_k = 1, .expert_ffn = 8, .every = 3};
    const struct layer_kind expected[] = {{MIXES_BY_ATTENTION, FEEDS_DENSE, false}, {MIXES_BY_ATTENTION, FEEDS_NOT, false},
                                          {MIXES_BY_STATE, FEEDS_EXPERTS, false},   {MIXES_BY_STATE, FEEDS_NOT, false},
                                          {MIXES_NOT, FEEDS_DENSE, false},          {MIXES_NOT, FEEDS_EXPERTS, false},
                                          {MIXES_BY_BOTH, FEEDS_DENSE, false}};
    for (int i = 0; i < 7; i++) {
        struct layer_kind kind = layer_kind_of(&m, i);
        ck_assert_msg(layer_kind_equal(kind, expected[i]), "layer %d", i);
        ck_assert(layer_kind_equal(layer_kind_at(layer_kind_index(kind)), kind));
        ck_assert_int_eq(layer_is_mixture(&m, i), expected[i].feed == FEEDS_EXPERTS);
        ck_assert_int_eq(layer_kind_of(&m, i + 7).mixers, expected[i].mixers);
    }
}
END_TEST

/* How far a count may be from a published one: half of the last digit that the publication gives, and at least 0.01 %. What
 * allowed_digits cannot tell, or would take too lightly: */
static const struct {
    const char *name;
    double total, active; /* relative */
} rounded[] = {
    {"gpt3-175b", 0.003, 0},
    {"gpt-175b-megascale", 0.003, 0},
    {"gpt-22b", 0.004, 0},
    {"opt-175b", 0.003, 0},
    {"gpt-530b-megascale", 0.001, 0},
    {"mt-nlg-530b", 0.001, 0},
    {"grok1-314b", 0.006, 0},
    {"gpt-j-6b", 0.0002, 0}, /* biases of its feed-forward part */
    {"nemotron4-15b", 0.005, 0},
    {"llama4-maverick", 0.002, 0.02},
    {"megascale-moe-352b", 0.001, 0},
    {"deepseek-v2", 0.002, 0.02},
    {"deepseek-v3", 0.0005, 0.02},
    {"mixtral-8x7b", 0.0001, 0.004},
    {"mixtral-8x22b", 0.0001, 0.01},
    {"qwen3-30b-a3b", 0.0001, 0.02},
    {"qwen3-235b-a22b", 0.0001, 0.02},
    {"gpt-oss-120b", 0.0001, 0.001},
    {"gpt-oss-20b", 0.00025, 0.001},
    {"command-r-plus-104b", 0.005, 0},
    {"dbrx", 0.004, 0.014},
    {"deepseek-67b", 0.0075, 0},
    {"deepseek-moe-16b", 0.003, 0.018},
    {"deepseek-v2-lite", 0.003, 0.022},
    {"gpt3-6.7b", 0.0075, 0},
    {"moonlight-16b-a3b", 0.005, 0.03},
    {"olmoe-1b-7b", 0.007, 0.02},
    {"phi-3.5-moe", 0.001, 0.007},
    {"qwen1.5-moe-a2.7b", 0.003, 0.01},
    {"qwen2-57b-a14b", 0.0008, 0.02},
    {"qwen3-coder-480b-a35b", 0.001, 0.014},
    /* Publications that count something else as well; their entries say what. */
    {"gemma3-1b", 0.0003, 0},
    {"gemma3-4b", 0.0012, 0},
    {"gemma3-12b", 0.0006, 0},
    {"gemma3-27b", 0.0004, 0},
    {"glm-4.5", 0.0065, 0.01},
    {"glm-4.5-air", 0.0085, 0.02},
    {"kimi-k2", 0.03, 0.03},
    {"dots.llm1-143b", 0.006, 0.01},
    /* Sizes that are names. */
    {"gpt3-125m", 0.008, 0},
    {"gpt3-350m", 0.02, 0},
    {"gpt3-5b", 0.011, 0},
    {"gpt3-20b", 0.014, 0},
    /* Active parameters rounded down, or counted without the embedding. */
    {"granite3-1b-a400m", 0.005, 0.075},
    {"granite3-3b-a800m", 0.001, 0.105},
    {"ernie4.5-21b-a3b", 0.0003, 0.12},
    {"minimax-m2", 0.006, 0.105},
    {"ling-1t", 0.001, 0.025},
    {"ling-flash-2.0", 0.03, 0.01},
    {"llama4-scout", 0.012, 0.02},
    {"granite4-h-small", 0.007, 0.025},
    {"granite4-h-tiny", 0.01, 0.5},
    {"granite4-h-micro", 0.07, 0},
    {"kimi-linear-48b-a3b", 0.025, 0.17},
    {"qwen3-next-80b-a3b", 0.0045, 0.3},
};

/* Publications whose active parameters leave the input embedding out, and those that leave the output projection out too. */
static double published_way(const char *name, const struct parameter_count *count)
{
    bool tables = strcmp(name, "glm-4.5") == 0 || strcmp(name, "glm-4.5-air") == 0 || strcmp(name, "minimax-text-01") == 0;
    bool input =
        tables || strcmp(name, "gpt-oss-120b") == 0 || strcmp(name, "gpt-oss-20b") == 0 || strcmp(name, "deepseek-v2-lite") == 0;
    return count->active - (input ? count->embedding : 0) - (tables ? count->head : 0);
}

/* Half of the last digit of a number, which has two of them at least (zeros at its end are not told from rounding). */
static double allowed_digits(double published)
{
    double unit = 1;
    while (published >= 100 * unit && fmod(published, 10 * unit) == 0)
        unit *= 10;
    return fmax(0.5 * unit / published, 0.0001);
}

static double allowed(const char *name, bool active, double published)
{
    for (size_t i = 0; i < sizeof rounded / sizeof rounded[0]; i++)
        if (strcmp(rounded[i].name, name) == 0)
            return active ? rounded[i].active : rounded[i].total;
    return allowed_digits(published);
}

START_TEST(every_catalog_model_has_its_published_size)
{
    struct diags diags = {0};
    char **names;
    size_t n;
    ck_assert_int_eq(catalog_names(CATALOG_MODELS, &names, &n, &diags), STATUS_OK);
    ck_assert_uint_ge(n, 220);
    for (size_t i = 0; i < n; i++) {
        struct transformer m;
        struct parameter_count c;
        ck_assert_msg(catalog_model(names[i], &m, &diags) == STATUS_OK, "%s", names[i]);
        ck_assert_str_eq(m.name, names[i]);
        transformer_parameters(&m, &c);
        if (strcmp(m.name, "tiny-gpt") != 0 && strcmp(m.name, "tiny-hybrid") != 0)
            ck_assert_msg(m.published_parameters > 0, "%s gives no published size", m.name);
        double active = published_way(m.name, &c);
        double total_error = fabs(c.total / m.published_parameters - 1), active_error = fabs(active / m.published_active - 1);
        ck_assert_msg(m.published_parameters == 0 || total_error <= allowed(m.name, false, m.published_parameters), "%s: %.0f",
                      m.name, c.total);
        ck_assert_msg(m.published_active == 0 || active_error <= allowed(m.name, true, m.published_active), "%s: active %.0f",
                      m.name, active);
        ck_assert_msg(m.moe.experts == 0 || m.published_active > 0 || strstr("grok1-314b megascale-moe-352b", m.name), "%s",
                      m.name);
    }
    names_free(names);
    diags_free(&diags);
}
END_TEST

START_TEST(layers_sum_to_the_model)
{
    static const char *const models[] = {"gpt3-175b",          "llama3-8b",    "deepseek-v3",
                                         "llama4-maverick",    "gpt-oss-120b", "nemotron3-nano-30b-a3b",
                                         "kimi-linear-48b-a3b"};
    struct diags diags = {0};
    struct transformer m;
    struct parameter_count c;
    ck_assert_int_eq(catalog_model(models[_i], &m, &diags), STATUS_OK);
    transformer_parameters(&m, &c);
    double with = 0, without = 0;
    for (int layer = 0; layer < m.layers; layer++) {
        with += transformer_layer_parameters(&m, layer, true);
        without += transformer_layer_parameters(&m, layer, false);
    }
    double last_norm = (double)m.hidden * (m.norm == NORM_LAYER ? 2 : 1);
    ck_assert_double_eq(with, c.total - c.embedding - c.head - last_norm);
    ck_assert_double_eq(with - without, c.experts);
}
END_TEST

static double cell(const struct csv_table *table, size_t row, const char *column)
{
    return strtod(csv_cell(table, row, csv_table_column(table, column)), NULL);
}

/* Of a mixture the tables' ffn_hidden is no particular width. */
static void check_shape(const struct csv_table *table, size_t row)
{
    const char *name = csv_cell(table, row, csv_table_column(table, "model"));
    struct diags diags = {0};
    struct transformer m;
    if (!*name)
        return;
    ck_assert_msg(catalog_model(name, &m, &diags) == STATUS_OK, "%s", name);
    ck_assert_double_eq(m.layers, cell(table, row, "layers"));
    ck_assert_double_eq((double)m.hidden, cell(table, row, "hidden"));
    ck_assert_double_eq(m.heads, cell(table, row, "heads"));
    ck_assert_double_eq(m.kv_heads, cell(table, row, "kv_heads"));
    ck_assert_double_eq((double)m.vocab, cell(table, row, "vocab"));
    ck_assert_double_eq(m.gated_mlp, cell(table, row, "gated_mlp"));
    if (m.moe.experts == 0)
        ck_assert_double_eq((double)m.ffn_hidden, cell(table, row, "ffn_hidden"));
}

/* The table names a machine; the catalog makes a cluster of it. */
static void check_machine(const struct csv_table *table, size_t row)
{
    struct diags diags = {0};
    struct cluster cluster;
    int per_node = (int)cell(table, row, "gpus_per_node"), gpus = (int)cell(table, row, "gpus");
    const char *gpu = csv_cell(table, row, csv_table_column(table, "gpu"));
    int nodes = (gpus + per_node - 1) / per_node;
    ck_assert_msg(cluster_of_gpu(gpu, nodes, per_node, cell(table, row, "nic_gbps") * 125e6, &cluster, &diags) == STATUS_OK, "%s",
                  gpu);
    ck_assert_int_ge(cluster_gpus(&cluster), gpus);
}

START_TEST(measured_tables_agree_with_the_catalog)
{
    const char *shared = getenv("MSIM_SHARED");
    char folder[512], path[1024];
    snprintf(folder, sizeof folder, "%s/measured", shared ? shared : "");
    DIR *directory = opendir(folder);
    size_t rows = 0;
    if (!directory) {
        fprintf(stderr, "skipped: no measured tables at MSIM_SHARED\n");
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        struct csv_table table;
        struct diags diags = {0};
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".csv") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        ck_assert_int_eq(csv_table_read(path, &table, &diags), STATUS_OK);
        for (size_t row = 0; row < table.n_rows; row++, rows++) {
            check_shape(&table, row);
            if (row % 16 == 0)
                check_machine(&table, row);
        }
        csv_table_free(&table);
    }
    closedir(directory);
    ck_assert_uint_gt(rows, 1000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parameters");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, dense_model_by_hand);
    tcase_add_test(tests, grouped_gated_model_by_hand);
    tcase_add_test(tests, mixture_by_hand);
    tcase_add_test(tests, latent_attention_by_hand);
    tcase_add_test(tests, windows_and_mixtures_alternate);
    tcase_add_test(tests, mixers_by_hand);
    tcase_add_test(tests, patterns_say_what_layers_are);
    tcase_add_test(tests, every_catalog_model_has_its_published_size);
    tcase_add_loop_test(tests, layers_sum_to_the_model, 0, 7);
    tcase_add_test(tests, measured_tables_agree_with_the_catalog);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
