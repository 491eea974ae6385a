#include "traces/launch/framework_program.h"

#include <string.h>

#include "model/spec/catalog.h"
#include "traces/launch/framework_keys.h"
#include "traces/launch/framework_slips.h"

/* Names of recipes and of what has them: from memory. */
const struct recipe bridge_recipes[] = {
    {"llama3-8b", "llama", "llama3_8b"},
    {"deepseek-v2-lite", "deepseek", "deepseek_v2_lite"},
    {"llama2-7b", "llama", "llama2_7b"},
    {"llama3-70b", "llama", "llama3_70b"},
    {"llama3.1-405b", "llama", "llama31_405b"},
    {"llama3.2-1b", "llama", "llama32_1b"},
    {"llama3.2-3b", "llama", "llama32_3b"},
    {"qwen2.5-0.5b", "qwen", "qwen25_500m"},
    {"qwen2.5-1.5b", "qwen", "qwen25_1p5b"},
    {"qwen2.5-7b", "qwen", "qwen25_7b"},
    {"qwen2.5-14b", "qwen", "qwen25_14b"},
    {"qwen2.5-32b", "qwen", "qwen25_32b"},
    {"qwen2.5-72b", "qwen", "qwen25_72b"},
    {"qwen3-0.6b", "qwen", "qwen3_600m"},
    {"qwen3-1.7b", "qwen", "qwen3_1p7b"},
    {"qwen3-4b", "qwen", "qwen3_4b"},
    {"qwen3-8b", "qwen", "qwen3_8b"},
    {"qwen3-14b", "qwen", "qwen3_14b"},
    {"qwen3-32b", "qwen", "qwen3_32b"},
    {"qwen3-30b-a3b", "qwen", "qwen3_30b_a3b"},
    {"qwen3-235b-a22b", "qwen", "qwen3_235b_a22b"},
    {"deepseek-v2", "deepseek", "deepseek_v2"},
    {"deepseek-v3", "deepseek", "deepseek_v3"},
    {NULL, NULL, NULL},
};

const struct recipe nemo2_recipes[] = {
    {"llama3-8b", NULL, "llama3_8b"},
    {"deepseek-v2-lite", NULL, "deepseek_v2_lite"},
    {"llama3-70b", NULL, "llama3_70b"},
    {"llama3.1-405b", NULL, "llama31_405b"},
    {"llama3.2-1b", NULL, "llama32_1b"},
    {"llama3.2-3b", NULL, "llama32_3b"},
    {"gpt3-175b", NULL, "gpt3_175b"},
    {"mistral-7b", NULL, "mistral_7b"},
    {"mixtral-8x7b", NULL, "mixtral_8x7b"},
    {"mixtral-8x22b", NULL, "mixtral_8x22b"},
    {"nemotron4-15b", NULL, "nemotron4_15b"},
    {"nemotron4-340b", NULL, "nemotron4_340b"},
    {"deepseek-v2", NULL, "deepseek_v2"},
    {"deepseek-v3", NULL, "deepseek_v3"},
    {NULL, NULL, NULL},
};

/* --- what the recipe has by itself --- */

static const char *model_of(const struct recipe *recipes, const char *name)
{
    for (; recipes->name; recipes++)
        if (strcmp(recipes->name, name) == 0)
            return recipes->model;
    return NULL;
}

/* llama3_8b of llama3_8b_pretrain_config and of llm.llama3_8b.pretrain_recipe; "" where it has no such name. */
static void name_of_recipe(const char *target, char *name, size_t size)
{
    const char *end = strstr(target, "pretrain");
    end = end ? end : strstr(target, "finetune");
    const char *start = end;
    while (end > target && strchr("._", end[-1]))
        end--;
    for (start = end; start > target && start[-1] != '.'; start--)
        ;
    snprintf(name, size, "%.*s", (int)(end - start), start);
}

/* What recipes have, behind which all that the program says stands. */
static void read_recipe(struct launch_words *words, const struct yaml_node *recipe)
{
    char name[80];
    struct transformer known;
    struct diags quiet = {0};
    const struct yaml_node *target = yaml_find(recipe, "_target_");
    const char *said = launch_text(words, target->text, strlen(target->text));
    name_of_recipe(said, name, sizeof name);
    const char *model = model_of(bridge_recipes, name);
    model = model ? model : model_of(nemo2_recipes, name);
    model = model ? model : launch_text(words, name, strlen(name));
    if (catalog_model(model, &known, &quiet) == STATUS_OK)
        framework_add(words, target, said, "catalog_model", model);
    diags_free(&quiet);
    for (const struct framework_word *w = framework_nemo_recipe; w->name; w++)
        framework_add(words, target, said, w->name, w->value);
}

/* By its keys, or where these are too few by what made it: llm.llama3_8b.pretrain_recipe(), llama3_8b_pretrain_config(). */
static const struct framework *framework_of_program(const struct yaml_node *root, const struct yaml_node *recipe)
{
    const struct framework *framework = framework_of_keys(root);
    const char *target = recipe ? yaml_find(recipe, "_target_")->text : "", *last = strrchr(target, '_');
    if (framework || !last)
        return framework;
    return strcmp(last, "_recipe") == 0 ? &framework_nemo2 : strcmp(last, "_config") == 0 ? &framework_bridge : NULL;
}

enum status framework_read_program(const struct yaml_node *root, const char *path, struct launch_words *words,
                                   struct diags *diags)
{
    const struct yaml_node *recipe = yaml_find(root, "_recipe_");
    const struct framework *framework = framework_of_program(root, recipe);
    bool described = framework_find(root, "model.num_layers") || framework_find(root, "model.config.num_layers");
    if (!framework) {
        diag_error(diags, (struct place){.file = path},
                   "a Python program is not run, and this one neither makes nor changes a recipe that msim knows (cfg.train and "
                   "cfg.model "
                   "of Megatron-Bridge, recipe.trainer.strategy and recipe.model.config of NeMo 2); give the configuration that "
                   "it makes as YAML or JSON (Megatron-Bridge: run_config.yaml beside the checkpoints), or a log of it");
        return STATUS_BAD_INPUT;
    }
    diag_note(diags, (struct place){.file = path},
              "of this program its assignments are read; what else its recipe has is not known");
    if (recipe && !described)
        read_recipe(words, recipe);
    framework_read(words, root, framework);
    framework_tell_slips(root, framework, path, diags);
    return STATUS_OK;
}
