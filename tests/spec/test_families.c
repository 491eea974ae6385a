/* Families of Hugging Face configurations: parameters of known models, what a file leaves out, what msim leaves out of a file. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/catalog.h"
#include "model/spec/yaml.h"
#include "tests/spec/said.h"
#include "tests/suite.h"

/* One file for all texts of a test. */
static const char *file_of(const char *text)
{
    static const char *path;
    if (!path)
        path = temporary_file("config.json", "", 0);
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    fclose(out);
    return path;
}

static enum status read_text(const char *text, struct transformer *model, char **words)
{
    struct diags diags = {0};
    memset(model, 0, sizeof *model);
    enum status status = catalog_model(file_of(text), model, &diags);
    *words = said(&diags);
    diags_free(&diags);
    return status;
}

static double parameters_of(const char *text)
{
    struct transformer model;
    struct parameter_count count;
    char *words;
    enum status status = read_text(text, &model, &words);
    ck_assert_msg(status == STATUS_OK, "%s", words);
    free(words);
    transformer_parameters(&model, &count);
    return count.total;
}

static void assert_says(const char *text, enum status expected, const char *const *parts)
{
    struct transformer model;
    char *words;
    enum status status = read_text(text, &model, &words);
    ck_assert_msg(status == expected, "%s", words);
    for (; *parts; parts++)
        ck_assert_msg((strstr(words, **parts == '!' ? *parts + 1 : *parts) != NULL) == (**parts != '!'), "%s: in %s", *parts,
                      words);
    free(words);
}

/* Within 0.2 % of what is published, all of them. */
START_TEST(known_models_have_their_parameters)
{
    struct arena arena = {0};
    struct diags diags = {0};
    int n = 0;
    struct yaml_node *list = yaml_read(TEST_DATA "/known_models.yaml", &arena, &diags);
    ck_assert_ptr_nonnull(list);
    for (struct yaml_node *item = list->first; item; item = item->next, n++) {
        double published = strtod(yaml_find(item, "parameters")->text, NULL);
        double ours = parameters_of(yaml_find(item, "config")->text);
        ck_assert_msg(fabs(ours / published - 1) < 0.002, "%s: %.0f, published %.0f", yaml_find(item, "name")->text, ours,
                      published);
    }
    ck_assert_int_ge(n, 60);
    arena_free(&arena);
    diags_free(&diags);
}
END_TEST

/* The catalog's entry of the same model counts the same. */
START_TEST(known_models_are_those_of_the_catalog)
{
    struct arena arena = {0};
    struct diags diags = {0};
    int n = 0;
    struct yaml_node *list = yaml_read(TEST_DATA "/known_models.yaml", &arena, &diags);
    for (struct yaml_node *item = list->first; item; item = item->next) {
        const struct yaml_node *name = yaml_find(item, "catalog");
        struct transformer model;
        struct parameter_count count;
        if (!name)
            continue;
        ck_assert_int_eq(catalog_model(name->text, &model, &diags), STATUS_OK);
        transformer_parameters(&model, &count);
        double ours = parameters_of(yaml_find(item, "config")->text);
        ck_assert_msg(fabs(ours / count.total - 1) < 0.0005, "%s: %.0f, catalog %.0f", name->text, ours, count.total);
        n++;
    }
    ck_assert_int_ge(n, 30);
    arena_free(&arena);
    diags_free(&diags);
}
END_TEST

/* A file that says nothing but its family is the library's default model. */
START_TEST(keys_that_a_file_leaves_out_have_the_defaults_of_the_library)
{
    static const struct {
        const char *family;
        double parameters;
    } cases[] = {{"llama", 6738415616.0},
                 {"mistral", 7241732096.0},
                 {"mixtral", 46702792704.0},
                 {"gemma2", 2614341888.0},
                 {"gemma3_text", 2628658432.0},
                 {"gemma4_text", 5077177856.0},
                 {"olmo3", 6888624128.0},
                 {"phi3", 3821079552.0},
                 {"ministral3", 8489553920.0},
                 {"deepseek_v3", 671026419200.0},
                 {"deepseek_v32", 671877944064.0},
                 {"glm_moe_dsa", 743911218432.0},
                 {"minimax_m2", 228689764864.0},
                 {"qwen3_moe", 15350731776.0},
                 {"qwen3_5_moe_text", 34660610688.0},
                 {"ernie4_5_moe", 21825437888.0},
                 {"gpt_oss", 116829156672.0},
                 {"llama4_text", 107769861120.0},
                 {"gpt2", 124439808.0},
                 {"bloom", 16156544.0},
                 {"starcoder2", 3030371328.0},
                 {"exaone4", 9429069824.0},
                 {"glm4_moe_lite", 29943393920.0},

                 {"olmo2", 6888624128.0},
                 {"sarvam_moe", 32152650368.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        snprintf(text, sizeof text, "{model_type: %s}", cases[i].family);
        ck_assert_msg(fabs(parameters_of(text) / cases[i].parameters - 1) < 2e-5, "%s: %.0f", cases[i].family,
                      parameters_of(text));
    }
}
END_TEST

#define LLAMA                                                                                                                    \
    "hidden_size: 64, intermediate_size: 128, num_hidden_layers: 4, num_attention_heads: 4, num_key_value_heads: 4, "            \
    "vocab_size: 256, max_position_embeddings: 64"

/* A note names sizes from the library's defaults; a null is no default. */
START_TEST(defaults_are_named)
{
    static const char *const some[] = {"note: left out, so the defaults of llama apply: vocab_size 32000", NULL};
    static const char *const none[] = {"!left out", NULL};
    assert_says("{model_type: llama, hidden_size: 64, intermediate_size: 128, num_hidden_layers: 4, num_attention_heads: 4, "
                "max_position_embeddings: 64}",
                STATUS_OK, some);
    assert_says("{model_type: llama, " LLAMA "}", STATUS_OK, none);
    assert_says("{model_type: mistral, sliding_window: null, " LLAMA "}", STATUS_OK, none);
}
END_TEST

/* Nothing that changes the answer is dropped in silence, and nothing that does not makes noise. */
START_TEST(keys_that_nobody_reads_are_reported)
{
    static const struct {
        const char *keys;
        const char *said[3];
    } cases[] = {
        {"num_experts: 8", {"1:21: warning: num_experts: unknown key of this model_type"}},
        {"num_experts: 0, use_cla: false, quantization_config: {bits: 4}", {"!warning", "!note"}},
        {"hidden_act: silu, rms_norm_eps: 1e-6, bos_token_id: 1, torch_dtype: bfloat16, attention_dropout: 0.1", {"!warning"}},
        {"window_mixing: [1, 2]", {"warning: window_mixing: unknown key"}},
        {"implementation: \"fast\"", {"!warning"}},
        {"mlp_bias: true", {"note: mlp_bias: not modelled: biases of the feed-forward part"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "{model_type: llama, %s, " LLAMA "}", cases[i].keys);
        assert_says(text, STATUS_OK, cases[i].said);
    }
}
END_TEST

#define TEXT "text_config: {model_type: llama, " LLAMA "}"

/* A tower of 2 layers of width 32: 2 (4 32^2 + 2 32 64) = 16,384 parameters, patches 3 4^2 32 = 1,536, to the text's width 64 (32
 * + 64) = 6,144: together 24,064 beside 197,184. */
START_TEST(towers_are_reported_with_their_share)
{
    static const char *const share[] = {
        "warning: vision_config: not modelled; about 2.41e-05B parameters, 11 % of the whole model", NULL};
    static const char *const nameless[] = {"warning: audio_config: not modelled; its parameters, whose number it does not say",
                                           NULL};
    static const char *const none[] = {"!not modelled", NULL};
    static const char tower[] = "{hidden_size: 32, num_hidden_layers: 2, intermediate_size: 64, patch_size: 4}";
    char text[1024];
    snprintf(text, sizeof text, "{model_type: newcomer, " TEXT ", vision_config: %s}", tower);
    assert_says(text, STATUS_OK, share);
    snprintf(text, sizeof text, "{model_type: newcomer, thinker_config: {" TEXT ", vision_config: %s}}", tower);
    assert_says(text, STATUS_OK, share);
    assert_says("{model_type: newcomer, " TEXT ", audio_config: {frames: 7}}", STATUS_OK, nameless);
    assert_says("{model_type: newcomer, " TEXT "}", STATUS_OK, none);
}
END_TEST

/* Voxtral Mini: an encoder of 640M parameters beside 4.01B. */
START_TEST(voxtral_is_more_than_its_text)
{
    static const char *const said[] = {"audio_config: not modelled; about 0.64", "14 % of the whole model", NULL};
    assert_says(
        "{model_type: voxtral, audio_config: {model_type: voxtral_encoder}, text_config: {model_type: llama, hidden_size: 3072, "
        "intermediate_size: 8192, num_hidden_layers: 30, num_attention_heads: 32, num_key_value_heads: 8, head_dim: 128, "
        "vocab_size: 131072}}",
        STATUS_OK, said);
}
END_TEST

#define MIXTURE LLAMA ", num_experts: 8, moe_topk: [2, 2, 2, 2], num_shared_expert: 1, moe_intermediate_size: 32"

/* A proposal keeps the structure: a family that has all of it, an entry of the same shape; else none. */
START_TEST(proposals_keep_the_structure)
{
    static const char *const mixture[] = {"'newcomer' is not a family that msim reads", "model.model_type=hunyuan_v1_moe",
                                          "!=llama", NULL};
    static const char *const dense[] = {"model.model_type=llama", NULL};
    static const char *const nothing[] = {"no family that msim reads has macro_experts", "!model.model_type=", NULL};
    static const char *const entry[] = {"the catalog has llama3.2-1b, with the same layers and vocabulary", NULL};
    assert_says("{model_type: newcomer, " MIXTURE "}", STATUS_BAD_INPUT, mixture);
    assert_says("{model_type: newcomer, " LLAMA "}", STATUS_BAD_INPUT, dense);
    assert_says("{model_type: newcomer, macro_experts: 4, " LLAMA "}", STATUS_BAD_INPUT, nothing);
    assert_says(
        "{model_type: newcomer, hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 16, num_attention_heads: 32, "
        "num_key_value_heads: 8, head_dim: 64, vocab_size: 128256, tie_word_embeddings: true}",
        STATUS_BAD_INPUT, entry);
}
END_TEST

/* Read as another family on request, a mixture does not become a dense model. */
START_TEST(a_mixture_read_as_dense_is_refused)
{
    static const char mixture[] = "{model_type: newcomer, " MIXTURE "}";
    const char *path = temporary_file("config.json", mixture, strlen(mixture));
    static struct experiment e;
    static const char *const names[] = {"model.model_type=llama", "model.model_type=hunyuan_v1_moe"};
    for (int i = 0; i < 2; i++) {
        struct diags diags = {0};
        struct experiment_flags flags = {.model = path, .gpu = "h100-sxm", .overrides = &names[i], .n_overrides = 1};
        ck_assert_int_eq(experiment_load(&flags, &e, &diags), i ? STATUS_OK : STATUS_BAD_INPUT);
        char *words = said(&diags);
        if (i == 0)
            ck_assert_ptr_nonnull(
                strstr(words, "becomes another model, without num_experts, moe_topk, num_shared_expert, moe_intermediate_size"));
        else
            ck_assert_int_eq(e.model.moe.experts, 8);
        free(words);
        diags_free(&diags);
    }
}
END_TEST

/* Choices that compute nothing: 12 of 512 + 256 are 8 on average; the router has columns for all. */
START_TEST(zero_experts_take_no_products)
{
    struct transformer model;
    char *words;
    ck_assert_int_eq(read_text("{model_type: longcat_flash}", &model, &words), STATUS_OK);
    ck_assert_int_eq(model.moe.top_k, 8);
    ck_assert_int_eq(model.moe.experts, 512);
    ck_assert_int_eq(model.moe.zero_experts, 256);
    ck_assert_int_eq(model.layers, 5 * 28);
    ck_assert_ptr_nonnull(strstr(words, "8 of 12 computed on average"));
    free(words);
}
END_TEST

/* Step-3: four dense layers first, one last, numbered in a text. */
START_TEST(mixtures_are_numbered)
{
    struct transformer model;
    char *words;
    ck_assert_int_eq(read_text("{model_type: step3_text, num_hidden_layers: 6, moe_layers_enum: '2,3,4'}", &model, &words),
                     STATUS_OK);
    for (int layer = 0; layer < 6; layer++)
        ck_assert_int_eq(layer_is_mixture(&model, layer), layer >= 2 && layer <= 4);
    free(words);
}
END_TEST

/* A config with the value of key number `at` replaced; false: it has no such key. */
static bool with_value(const struct yaml_node *config, int at, const char *value, char *text, size_t size)
{
    int k = 0;
    size_t n = (size_t)snprintf(text, size, "{");
    for (const struct yaml_node *key = config->first; key; key = key->next, k++) {
        bool given = k != at && key->kind == YAML_SCALAR;
        if (k == at || given)
            n += (size_t)snprintf(text + n, size - n, "%s: %s, ", key->key, given ? key->text : value);
    }
    snprintf(text + n, size - n, "}");
    return at < k;
}

/* Lists, mappings and numbers without end in place of what is expected are refused or reported. */
START_TEST(values_of_any_kind_are_survived)
{
    static const char *const values[] = {"[1, 2]", "{a: 1}", "-5", "1e30", ".nan", "''", "[]", "99999999999999999999", "true"};
    static char text[65536];
    struct arena arena = {0};
    struct diags diags = {0};
    size_t turn = 0;
    struct yaml_node *list = yaml_read(TEST_DATA "/known_models.yaml", &arena, &diags);
    for (struct yaml_node *item = list->first; item; item = item->next) {
        const char *config = yaml_find(item, "config")->text;
        const struct yaml_node *tree = yaml_parse("config", config, strlen(config), &arena, &diags);
        for (int key = 0; with_value(tree, key, values[turn++ % (sizeof values / sizeof *values)], text, sizeof text); key++) {
            struct transformer model;
            char *words;
            enum status status = read_text(text, &model, &words);
            ck_assert_msg(status == STATUS_OK || *words, "refused without a word: %s", text);
            free(words);
        }
    }
    arena_free(&arena);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("families");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, known_models_have_their_parameters);
    tcase_add_test(tests, known_models_are_those_of_the_catalog);
    tcase_add_test(tests, keys_that_a_file_leaves_out_have_the_defaults_of_the_library);
    tcase_add_test(tests, defaults_are_named);
    tcase_add_test(tests, keys_that_nobody_reads_are_reported);
    tcase_add_test(tests, towers_are_reported_with_their_share);
    tcase_add_test(tests, voxtral_is_more_than_its_text);
    tcase_add_test(tests, proposals_keep_the_structure);
    tcase_add_test(tests, a_mixture_read_as_dense_is_refused);
    tcase_add_test(tests, zero_experts_take_no_products);
    tcase_add_test(tests, mixtures_are_numbered);
    tcase_add_test(tests, values_of_any_kind_are_survived);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
