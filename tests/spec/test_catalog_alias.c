/* Spellings: what tables and users write finds its entry, nothing else does, and the list of aliases holds together. */
#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/spec/catalog_alias.h"
#include "tests/spec/said.h"

static const struct {
    enum catalog_kind kind;
    const char *text, *name;
    enum alias_match match;
} spellings[] = {
    {CATALOG_GPUS, "H100_SXM", "h100-sxm", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA H100 80GB HBM3", "h100-sxm", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA H100 PCIe", "h100-pcie", ALIAS_NAME},
    {CATALOG_GPUS, "h100", "h100-sxm", ALIAS_USUAL},
    {CATALOG_GPUS, "NVIDIA H100 Tensor Core GPU", "h100-sxm", ALIAS_USUAL},
    {CATALOG_GPUS, "A100-SXM4-80GB", "a100-80g-sxm", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA A100-PCIE-40GB", "a100-40g-pcie", ALIAS_ALSO},
    {CATALOG_GPUS, "a100", "a100-80g-sxm", ALIAS_USUAL},
    {CATALOG_GPUS, "b200-sxm", "b200", ALIAS_ALSO},
    {CATALOG_GPUS, "GB200 NVL72", "gb200", ALIAS_ALSO},
    {CATALOG_GPUS, "Tesla V100-SXM2-16GB", "v100-16g-sxm", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA GH200 480GB", "gh200", ALIAS_ALSO},
    {CATALOG_GPUS, "AMD Instinct MI300X", "mi300x", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA GeForce RTX 4090", "rtx-4090", ALIAS_NAME},
    {CATALOG_CLUSTERS, "GB200 NVL72", "gb200-nvl72", ALIAS_NAME},
    {CATALOG_CLUSTERS, "B200_node", "b200-node", ALIAS_NAME},
    {CATALOG_MODELS, "Llama-3.1-405B", "llama3.1-405b", ALIAS_NAME},
    {CATALOG_MODELS, "meta-llama/Llama-2-70b-hf", "llama2-70b", ALIAS_NAME},
    {CATALOG_MODELS, "meta-llama/Meta-Llama-3-8B-Instruct", "llama3-8b", ALIAS_NAME},
    {CATALOG_MODELS, "gpt-3-175b", "gpt3-175b", ALIAS_NAME},
    {CATALOG_MODELS, "GPT-3", "gpt3-175b", ALIAS_USUAL},
    {CATALOG_MODELS, "deepseek_v3", "deepseek-v3", ALIAS_NAME},
    {CATALOG_MODELS, "deepseek-ai/DeepSeek-R1", "deepseek-v3", ALIAS_ALSO},
    {CATALOG_MODELS, "Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b", ALIAS_NAME},
    {CATALOG_MODELS, "mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b", ALIAS_NAME},
    {CATALOG_MODELS, "Qwen2-57B", "qwen2-57b-a14b", ALIAS_ALSO},
    {CATALOG_MODELS, "Qwen2.5 7B", "qwen2.5-7b", ALIAS_NAME},
    {CATALOG_MODELS, "qwen257b", NULL, ALIAS_NONE},
    {CATALOG_MODELS, "google/gemma-2-9b-it", "gemma2-9b", ALIAS_NAME},
    {CATALOG_MODELS, "moonshotai/Kimi-K2-Instruct", "kimi-k2", ALIAS_NAME},
    {CATALOG_MODELS, "meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4-scout", ALIAS_ALSO},
    {CATALOG_MODELS, "zai-org/GLM-4.5-Air", "glm-4.5-air", ALIAS_NAME},
    /* as nvidia-smi and rocm-smi print them, and as tools write them */
    {CATALOG_GPUS, "NVIDIA B300 SXM6 AC", "b300", ALIAS_ALSO},
    {CATALOG_GPUS, "B200-SXM-180GB", "b200", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA GB200", "gb200", ALIAS_NAME},
    {CATALOG_GPUS, "GB300 NVL72", "gb300", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA GH200 120GB", "gh200", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA H200 NVL", "h200-nvl", ALIAS_NAME},
    {CATALOG_GPUS, "H100-NVL", "h100-nvl", ALIAS_NAME},
    {CATALOG_GPUS, "H100 SXM5 80GB", "h100-sxm", ALIAS_ALSO},
    {CATALOG_GPUS, "H20-3e", "h20-3e", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA A10G", "a10g", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA A40", "a40", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA L40", "l40", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA RTX A6000", "rtx-a6000", ALIAS_NAME},
    {CATALOG_GPUS, "RTX 6000 Ada", "rtx-6000-ada", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA RTX PRO 6000 Blackwell", "rtx-pro-6000", ALIAS_USUAL},
    {CATALOG_GPUS, "NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-server", ALIAS_ALSO},
    {CATALOG_GPUS, "AMD Instinct MI300X OAM", "mi300x", ALIAS_ALSO},
    {CATALOG_GPUS, "Tesla V100-SXM2-32GB", "v100-32g-sxm", ALIAS_ALSO},
    {CATALOG_GPUS, "wombat", NULL, ALIAS_NONE},
    {CATALOG_GPUS, "h1000", NULL, ALIAS_NONE},
    {CATALOG_GPUS, "NVIDIA", NULL, ALIAS_NONE}, /* nothing is left of it */
    {CATALOG_GPUS, "---", NULL, ALIAS_NONE},
    {CATALOG_GPUS, "", NULL, ALIAS_NONE},
    {CATALOG_MODELS, "h100", NULL, ALIAS_NONE},
    {CATALOG_MODELS, "meta-llama/", NULL, ALIAS_NONE},
};

START_TEST(spellings_find_their_entry)
{
    struct diags diags = {0};
    struct alias_table table;
    ck_assert_int_eq(alias_table_load(&table, &diags), STATUS_OK);
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        const char *name = NULL;
        enum alias_match match = alias_table_find(&table, spellings[i].kind, spellings[i].text, &name);
        ck_assert_msg(match == spellings[i].match, "'%s': match %d", spellings[i].text, match);
        ck_assert_pstr_eq(name, spellings[i].name);
    }
    alias_table_free(&table);
}
END_TEST

/* Lower case; punctuation as '-' between digits and not at all elsewhere. */
static void fold(const char *text, char *folded)
{
    const char *before = "";
    for (const char *c = text; *c; c++) {
        if (!isalnum((unsigned char)*c))
            continue;
        if (*before && before + 1 < c && isdigit((unsigned char)*before) && isdigit((unsigned char)*c))
            *folded++ = '-';
        *folded++ = (char)tolower((unsigned char)*c);
        before = c;
    }
    *folded = '\0';
}

/* Names and aliases of a kind, folded, all differ; every alias belongs to an entry that exists and leads to it. */
START_TEST(no_spelling_means_two_entries)
{
    enum { MAX = 1024 };
    static char seen[MAX][128];
    struct diags diags = {0};
    struct alias_table table;
    char **names;
    size_t n_names, n = 0, n_listed = 0, n_reached = 0;
    enum catalog_kind kind = (enum catalog_kind)_i;
    ck_assert_int_eq(alias_table_load(&table, &diags), STATUS_OK);
    ck_assert_int_eq(catalog_names(kind, &names, &n_names, &diags), STATUS_OK);
    for (size_t i = 0; i < n_names; i++) {
        const char *spelled[64];
        size_t n_spelled = alias_table_of(&table, kind, names[i], spelled, 64);
        ck_assert_uint_le(n_spelled, 64);
        fold(names[i], seen[n++]);
        for (size_t k = 0; k < n_spelled; k++, n_reached++) {
            const char *name = NULL;
            ck_assert_int_ne(alias_table_find(&table, kind, spelled[k], &name), ALIAS_NONE);
            ck_assert_msg(strcmp(name, names[i]) == 0, "%s means %s and %s", spelled[k], names[i], name);
            fold(spelled[k], seen[n++]);
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            ck_assert_msg(strcmp(seen[i], seen[j]) != 0, "%s stands in two places", seen[i]);
    static const char *const keys[] = {"models", "gpus", "clusters"};
    for (const struct yaml_node *e = yaml_find(table.files[0], keys[kind])->first; e; e = e->next)
        for (const struct yaml_node *list = e->first; list; list = list->next)
            for (const struct yaml_node *item = list->first; item; item = item->next)
                n_listed++;
    ck_assert_uint_eq(n_listed, n_reached);
    names_free(names);
    alias_table_free(&table);
}
END_TEST

/* Only a short name that parts share is worth a note; the entry says its own name. */
START_TEST(the_usual_part_is_said)
{
    struct diags diags = {0};
    struct gpu gpu;
    struct cluster cluster;
    ck_assert_int_eq(catalog_gpu("NVIDIA H100 80GB HBM3", &gpu, &diags), STATUS_OK);
    ck_assert_str_eq(gpu.name, "h100-sxm");
    ck_assert_uint_eq(diags.n_items, 0);
    ck_assert_int_eq(catalog_cluster("a100-node", &cluster, &diags), STATUS_OK);
    ck_assert_str_eq(cluster.name, "a100-80g-sxm-node");
    char *words = said(&diags);
    ck_assert_str_eq(words, "note: 'a100' is taken for a100-80g-sxm, the usual GPU of that name\n");
    free(words);
    diags_free(&diags);
}
END_TEST

/* A repository's name is a model where there is no such file, and a missing file where there is no such model. */
START_TEST(a_hub_name_is_a_model)
{
    struct diags diags = {0};
    struct transformer model;
    static struct catalog_entry entry;
    ck_assert_int_eq(catalog_model("meta-llama/Llama-2-70b-hf", &model, &diags), STATUS_OK);
    ck_assert_str_eq(model.name, "llama2-70b");
    ck_assert_int_eq(catalog_entry("Qwen/Qwen3-30B-A3B", &entry, &diags), STATUS_OK);
    ck_assert_str_eq(entry.model.name, "qwen3-30b-a3b");
    ck_assert_uint_eq(diags.n_items, 0);
    ck_assert_int_eq(catalog_model("meta-llama/Llama-9", &model, &diags), STATUS_BAD_INPUT);
    ck_assert_int_eq(catalog_model("./meta-llama/Llama-2-70b-hf", &model, &diags), STATUS_BAD_INPUT);
    char *words = said(&diags);
    ck_assert_ptr_nonnull(strstr(words, "there is no file 'meta-llama/Llama-9', nor has the catalog an entry of this name\n"));
    ck_assert_ptr_nonnull(strstr(words, "there is no file './meta-llama/Llama-2-70b-hf'\n"));
    free(words);
    diags_free(&diags);
}
END_TEST

/* One table row of each spelling: the same cluster of the catalog. */
START_TEST(a_machine_by_any_name)
{
    struct diags diags = {0};
    struct cluster exact, other;
    ck_assert_int_eq(cluster_of_gpu("h100-sxm", 16, 8, 50e9, &exact, &diags), STATUS_OK);
    ck_assert_int_eq(cluster_of_gpu("NVIDIA H100 80GB HBM3", 16, 8, 50e9, &other, &diags), STATUS_OK);
    ck_assert_str_eq(exact.name, other.name);
    ck_assert_str_eq(exact.gpu.name, other.gpu.name);
    diags_free(&diags);
}
END_TEST

static void write_aliases(const char *folder, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/catalog", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/catalog/aliases.yaml", folder);
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    fclose(out);
}

/* The user's aliases come first and add to the program's; mistakes in them are placed. */
START_TEST(aliases_of_msim_data)
{
    char folder[] = "/tmp/msim-aliases-XXXXXX", path[256];
    struct diags diags = {0};
    struct gpu gpu;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("MSIM_DATA", folder, 1);
    write_aliases(folder, "gpus:\n  b200: {also: [our-node]}\n  h100-pcie: {usual: [h100]}\n");
    ck_assert_int_eq(catalog_gpu("Our_Node", &gpu, &diags), STATUS_OK);
    ck_assert_str_eq(gpu.name, "b200");
    ck_assert_int_eq(catalog_gpu("h100", &gpu, &diags), STATUS_OK);
    ck_assert_str_eq(gpu.name, "h100-pcie");
    ck_assert_int_eq(catalog_gpu("a100-sxm4-40gb", &gpu, &diags), STATUS_OK);
    ck_assert_str_eq(gpu.name, "a100-40g-sxm");
    write_aliases(folder, "gpus:\n  b200: {also: ours}\n  b300: [ours]\n");
    ck_assert_int_eq(catalog_gpu("ours", &gpu, &diags), STATUS_BAD_INPUT);
    char *words = said(&diags);
    ck_assert_ptr_nonnull(strstr(words, "aliases.yaml:2:16: error: a list of spellings is wanted here"));
    ck_assert_ptr_nonnull(strstr(words, "aliases.yaml:3:9: error: an entry's other names are lists"));
    free(words);
    snprintf(path, sizeof path, "%s/catalog/aliases.yaml", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/catalog", folder);
    rmdir(path);
    rmdir(folder);
    unsetenv("MSIM_DATA");
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("catalog_alias");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, spellings_find_their_entry);
    tcase_add_loop_test(tests, no_spelling_means_two_entries, 0, N_CATALOG_KINDS);
    tcase_add_test(tests, the_usual_part_is_said);
    tcase_add_test(tests, a_hub_name_is_a_model);
    tcase_add_test(tests, a_machine_by_any_name);
    tcase_add_test(tests, aliases_of_msim_data);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
