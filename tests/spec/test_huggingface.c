/* Hugging Face configurations: one of each family against the catalog's entry of the same model, and what is wrong in bad ones.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/catalog.h"
#include "tests/spec/said.h"
#include "tests/suite.h"

static const char *const same[] = {"gpt2", "gpt-neox-20b", "llama3.1-405b", "llama3.2-1b", "mistral-7b", "mixtral-8x7b",
                                   "qwen2.5-7b", "qwen3-32b", "qwen3-30b-a3b", "deepseek-v3", "gpt-oss-120b", "llama-7b",
                                   /* hybrids */
                                   "nemotron-h-8b", "nemotron3-nano-30b-a3b", "bamba-9b", "granite4-h-small", "granite4-h-micro",
                                   "qwen3-next-80b-a3b", "kimi-linear-48b-a3b", "minimax-text-01"};

/* What must agree: everything but the texts, the sequence length (a checkpoint's is the longest) and the published counts. */
static void level(struct transformer *m, const struct transformer *with)
{
    memcpy(m->name, with->name, sizeof m->name);
    memcpy(m->source, with->source, sizeof m->source);
    m->max_seq_len = with->max_seq_len;
    m->published_parameters = with->published_parameters;
    m->published_active = with->published_active;
    if (!(m->rope_theta > 0) || !(with->rope_theta > 0)) /* left out of some of these files, or entries */
        m->rope_theta = with->rope_theta;
    if (strcmp(with->name, "qwen3-next-80b-a3b") == 0) /* whose configuration leaves its prediction layer out */
        m->mtp_layers = with->mtp_layers;
    if (m->moe.experts && m->moe.every == 1 && !m->moe.first_dense_layers) /* no layer has this width */
        m->ffn_hidden = with->ffn_hidden;
}

START_TEST(a_configuration_is_the_catalog_entry)
{
    struct diags diags = {0};
    struct transformer theirs, ours;
    char path[512];
    snprintf(path, sizeof path, "%s/hf/%s/config.json", TEST_DATA, same[_i]);
    memset(&theirs, 0, sizeof theirs);
    memset(&ours, 0, sizeof ours);
    enum status status = catalog_model(path, &theirs, &diags);
    char *words = said(&diags);
    ck_assert_msg(status == STATUS_OK && !*words, "%s", words);
    ck_assert_int_eq(catalog_model(same[_i], &ours, &diags), STATUS_OK);
    ck_assert_str_eq(theirs.name, same[_i]);
    level(&theirs, &ours);
    ck_assert_int_eq(memcmp(&theirs, &ours, sizeof ours), 0);
    free(words);
    diags_free(&diags);
}
END_TEST

/* DeepSeek-V2-Lite: 15.7B published; q_lora_rank is null. */
START_TEST(a_null_is_no_value)
{
    struct diags diags = {0};
    struct transformer m;
    struct parameter_count c;
    ck_assert_int_eq(catalog_model(TEST_DATA "/hf/deepseek-v2-lite/config.json", &m, &diags), STATUS_OK);
    transformer_parameters(&m, &c);
    ck_assert_int_eq(m.latent.q_lora_rank, 0);
    ck_assert_double_eq_tol(c.total, 15.7e9, 0.01e9);
}
END_TEST

START_TEST(an_experiment_may_name_and_change_one)
{
    struct diags diags = {0};
    static struct experiment e;
    static const char *const override = "model.layers=2";
    struct experiment_flags flags = {
        .model = TEST_DATA "/hf/mixtral-8x7b/config.json", .gpu = "h100-sxm", .overrides = &override, .n_overrides = 1};
    ck_assert_int_eq(experiment_load(&flags, &e, &diags), STATUS_OK);
    ck_assert_int_eq(e.model.layers, 2);
    ck_assert_int_eq(e.model.moe.experts, 8);
    diags_free(&diags);
}
END_TEST

/* A folder as hubs keep it, too; the longest context is not taken for the training's without a word. */
START_TEST(a_folder_is_its_configuration)
{
    static const char *const folders[] = {TEST_DATA "/hf/mixtral-8x7b", TEST_DATA "/hf/mixtral-8x7b/",
                                          TEST_DATA "/hf/mixtral-8x7b/config.json"};
    static const char *const given = "job.seq_len=4096";
    static struct experiment e;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        for (int n = 0; n < 2; n++) {
            struct diags diags = {0};
            struct experiment_flags flags = {.model = folders[i], .gpu = "h100-sxm", .overrides = &given, .n_overrides = n};
            bool told = false;
            ck_assert_int_eq(experiment_load(&flags, &e, &diags), STATUS_OK);
            ck_assert_str_eq(e.model.name, "mixtral-8x7b");
            ck_assert_int_eq(e.job.seq_len, n ? 4096 : e.model.max_seq_len);
            for (size_t k = 0; k < diags.n_items; k++)
                told |= strstr(diags.items[k].text, "job.seq_len is not given") != NULL;
            ck_assert_int_eq(told, !n);
            diags_free(&diags);
        }
}
END_TEST

/* A configuration of an unknown family reads as a known one does, where that is asked for: from the command line, in an
 * experiment and in a file of one's own; what is no configuration has no family. */
START_TEST(an_unknown_family_is_read_as_a_known_one)
{
    static const char config[] = "{\"model_type\": \"newcomer\", \"text_config\": {\"model_type\": \"newcomer_text\", "
                                 "\"hidden_size\": 64, \"intermediate_size\": 128, \"num_hidden_layers\": 4, "
                                 "\"num_attention_heads\": 4, \"vocab_size\": 256, \"max_position_embeddings\": 64}}";
    const char *path = temporary_file("config.json", config, strlen(config));
    static struct experiment e;
    struct diags diags = {0};
    static const char *const as = "model.model_type=llama";
    struct experiment_flags flags = {.model = path, .gpu = "h100-sxm", .overrides = &as, .n_overrides = 1};
    ck_assert_int_eq(experiment_load(&flags, &e, &diags), STATUS_OK);
    ck_assert_int_eq(e.model.layers, 4);
    ck_assert_int_eq(e.model.norm, NORM_RMS);
    ck_assert_ptr_nonnull(strstr(e.model.source, "read as model_type llama"));
    char text[4200];
    snprintf(text, sizeof text,
             "model: {base: '%s', model_type: gpt_neox, layers: 2}\ncluster: h100-sxm-node\njob: {global_batch: 8}\n", path);
    ck_assert_int_eq(experiment_parse_text("t.yaml", text, strlen(text), &e, &diags), STATUS_OK);
    ck_assert_int_eq(e.model.layers, 2);
    ck_assert_int_eq(e.model.norm, NORM_LAYER);
    flags.model = "llama3-8b";
    ck_assert_int_eq(experiment_load(&flags, &e, &diags), STATUS_BAD_INPUT);
    bool told = false;
    for (size_t i = 0; i < diags.n_items; i++)
        told |= strstr(diags.items[i].text, "model_type: this key belongs to a Hugging Face config.json") != NULL;
    ck_assert(told);
    diags_free(&diags);
}
END_TEST

/* Qwen's list of layers without experts: msim has those that lead, and takes a model that lists all for a dense one; for others
 * it reports that it does not model them. */
START_TEST(layers_without_experts)
{
    static const struct {
        const char *layers, *every;
        int dense;
        bool told;
    } cases[] = {{"[]", "1", 0, false},          {"[0]", "1", 1, false},        {"[1, 0, 2]", "1", 3, false},
                 {"[1, 2]", "1", 0, true},       {"[0, 3]", "1", 1, false},     {"[0]", "2", 0, false},
                 {"[3, 2, 1, 0]", "1", 0, true}, {"[0, 1, 2, 3]", "2", 0, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        struct transformer model;
        struct diags diags = {0};
        snprintf(text, sizeof text,
                 "{\"model_type\": \"qwen3_moe\", \"hidden_size\": 64, \"intermediate_size\": 128, \"num_hidden_layers\": 4, "
                 "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 16, \"vocab_size\": 256, "
                 "\"max_position_embeddings\": 64, \"num_experts\": 8, \"num_experts_per_tok\": 2, "
                 "\"moe_intermediate_size\": 32, \"decoder_sparse_step\": %s, \"mlp_only_layers\": %s}",
                 cases[i].every, cases[i].layers);
        ck_assert_int_eq(catalog_model(temporary_file("config.json", text, strlen(text)), &model, &diags), STATUS_OK);
        ck_assert_int_eq(model.moe.first_dense_layers, cases[i].dense);
        bool told = false;
        for (size_t k = 0; k < diags.n_items; k++)
            told |= strstr(diags.items[k].text, "mlp_only_layers") != NULL;
        ck_assert_int_eq(told, cases[i].told);
        ck_assert_int_eq(model.moe.experts, strlen(cases[i].layers) < strlen("[0, 1, 2, 3]") ? 8 : 0); /* all: a dense model */
        diags_free(&diags);
    }
}
END_TEST

#define OWN_FILE ":1:16: note: a file of its own can describe its shape (msim catalog template model)\n"

static const struct {
    const char *text, *said; /* after the file's name */
} bad[] = {
    {"{\"model_type\": \"lama\"}",
     ":1:16: error: model_type: 'lama' is not a family that msim reads (the nearest is 'llama')\n#" OWN_FILE},
    {"{\"model_type\": \"xy\"}", ":1:16: error: model_type: 'xy' is not a family that msim reads\n#" OWN_FILE},
    {"{\"model_type\": \"t5\"}", ":1:16: error: model_type: 't5' is not modelled: it has an encoder and a decoder\n"},
    {"{\"architectures\": [\"LlamaForCausalLM\"]}",
     ":1:1: error: a Hugging Face configuration needs a model_type, such as llama\n"},
    {"{\n  \"model_type\": \"gpt2\",\n  \"n_layer\": -12,\n  \"n_embd\": 768,\n  \"n_head\": 12.5,\n  \"n_positions\": 1024,\n"
     "  \"vocab_size\": \"many\"\n}\n",
     ":3:14: error: n_layer: -12 is too small; it must be at least 1\n#:5:13: error: n_head: 12.5 is not a whole number\n#:7:17: "
     "error: vocab_size: 'many' is not a number; write for example 6144 or 300B\n"},
    {"{\"model_type\": \"gpt2\", \"n_embd\": 768, \"n_head\": null}",
     ":1:49: error: 'n_head' is missing; this model_type needs it\n"
     "#:1:1: note: left out, so the defaults of gpt2 apply: n_layer 12, n_positions 1024, vocab_size 50257\n"},
    {"{\"model_type\": \"gpt2\", \"n_layer\": [1], \"n_embd\": 768, \"n_head\": 12, \"n_positions\": 1024, \"vocab_size\": "
     "50257}",
     ":1:35: error: n_layer is a sequence; it must be a single value\n"},
    {"{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_layer\": 2, \"n_embd\": 768, \"n_head\": 12, \"n_positions\": 8, "
     "\"vocab_size\": 5}",
     ":1:38: error: 'n_layer' is given twice; first on line 1\n"},
    {"{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 768, \"n_head\": 11, \"n_positions\": 8, \"vocab_size\": 5}",
     ":1:63: error: heads: hidden 768 is not a multiple of 11 heads; change one, or specify head_dim\n"},
    {"{\"model_type\": \"jamba\"}",
     ":1:16: error: model_type: 'jamba' is not modelled: its Mamba-1 layers scan element by element, without products\n"},
    {"{\"model_type\": \"bamba\", \"num_hidden_layers\": 2, \"attn_layer_indices\": [2], \"hidden_size\": 8, "
     "\"num_attention_heads\": 2, \"vocab_size\": 5, \"max_position_embeddings\": 8, \"intermediate_size\": 8, "
     "\"num_key_value_heads\": 2, \"mamba_chunk_size\": 256, \"mamba_n_heads\": 4, \"mamba_d_head\": 4, \"mamba_n_groups\": 1, "
     "\"mamba_d_state\": 2, \"mamba_d_conv\": 4}",
     ":1:72: error: attn_layer_indices: there is no such layer; the model has 2\n"},
    {"{\"model_type\": \"qwen3_moe\", \"decoder_sparse_step\": 5, \"hidden_size\": 64, \"intermediate_size\": 128, "
     "\"num_hidden_layers\": 4, \"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"vocab_size\": 256, "
     "\"max_position_embeddings\": 64, \"num_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32}",
     ":1:52: error: decoder_sparse_step: no layer is a mixture: the model has 4 layers, the first 0 stay dense, then one in 5\n"},
    {"{\"model_type\": \"gpt2\", \"n_layer\": 1", ":1:36: error: not valid YAML or JSON: "},
};

/* `expected` with the file's name at the start of each line ('#' stands for it after the first). */
static void assert_said(const char *words, const char *path, const char *expected)
{
    char *want = NULL;
    size_t n;
    FILE *out = open_memstream(&want, &n);
    fputs(path, out);
    for (const char *p = expected; *p; p++) {
        if (*p == '#')
            fputs(path, out);
        else
            fputc(*p, out);
    }
    fclose(out);
    if (want[n - 1] == '\n')
        ck_assert_str_eq(words, want);
    else
        ck_assert_msg(strncmp(words, want, n) == 0, "%s", words);
    free(want);
}

START_TEST(a_bad_configuration_is_explained)
{
    struct diags diags = {0};
    struct transformer m;
    const char *path = temporary_file("config.json", bad[_i].text, strlen(bad[_i].text));
    ck_assert_int_eq(catalog_model(path, &m, &diags), STATUS_BAD_INPUT);
    char *words = said(&diags);
    assert_said(words, path, bad[_i].said);
    free(words);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("huggingface");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, a_configuration_is_the_catalog_entry, 0, (int)(sizeof same / sizeof same[0]));
    tcase_add_test(tests, a_null_is_no_value);
    tcase_add_test(tests, an_experiment_may_name_and_change_one);
    tcase_add_test(tests, a_folder_is_its_configuration);
    tcase_add_test(tests, an_unknown_family_is_read_as_a_known_one);
    tcase_add_test(tests, layers_without_experts);
    tcase_add_loop_test(tests, a_bad_configuration_is_explained, 0, (int)(sizeof bad / sizeof bad[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
