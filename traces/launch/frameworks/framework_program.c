/* framework_program.c - Python programs that change a recipe, and their configurations. */
#include "traces/launch/frameworks/framework_program.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "model/spec/catalog.h"
#include "traces/launch/frameworks/framework_keys.h"
#include "traces/launch/frameworks/framework_typos.h"
#include "traces/launch/megatron/megatron_arguments.h"

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
    static const char *const kinds[] = {"pretrain", "finetune", "sft", "peft"};
    const char *last = strrchr(target, '.'), *end = NULL, *start;
    for (size_t i = 0; !end && i < sizeof kinds / sizeof kinds[0]; i++)
        end = strstr(last ? last : target, kinds[i]);
    end = end ? end : target;
    while (end > target && strchr("._", end[-1]))
        end--;
    for (start = end; start > target && start[-1] != '.'; start--)
        ;
    snprintf(name, size, "%.*s", (int)(end - start), start);
}

/* What recipes have, behind which all that the program says stands. */
static void read_recipe(struct launch_words *words, const struct yaml_node *recipe, const struct frameworks *fs)
{
    char name[80];
    struct transformer known;
    struct diags quiet = {0};
    const struct yaml_node *target = yaml_find(recipe, "_target_");
    const char *spelling = launch_text(words, target->text, strlen(target->text));
    name_of_recipe(spelling, name, sizeof name);
    const char *model = model_of(bridge_recipes, name);
    model = model ? model : model_of(nemo2_recipes, name);
    model = model ? model : launch_text(words, name, strlen(name));
    if (catalog_model(model, &known, &quiet) == STATUS_OK)
        framework_add(words, target, spelling, "catalog_model", model);
    diags_free(&quiet);
    for (const struct framework_word *w = fs->recipe->fixed; w && w->name; w++)
        framework_add(words, target, spelling, w->name, w->value);
}

/* --- arguments of its function --- */

/* Fine-tuning uses LoRA by default; a scheme, also None, changes that. Both frameworks, from memory. */
static void read_adapter(struct launch_words *words, const struct yaml_node *recipe)
{
    const struct yaml_node *target = yaml_find(recipe, "_target_");
    const char *spelling = launch_text(words, target->text, strlen(target->text));
    bool told = yaml_find(recipe, "peft") || yaml_find(recipe, "peft_scheme");
    if (strstr(spelling, "finetune") && !told)
        framework_add(words, target, spelling, "adapter", "lora");
}

/* After the defaults of the framework and before the fields that the program changes. */
static void read_call(struct launch_words *words, const struct yaml_node *recipe, const struct frameworks *fs, const char *path,
                      struct diags *diags)
{
    const struct yaml_node *unnamed = yaml_find(recipe, "_args_");
    read_adapter(words, recipe);
    framework_read_keys(words, recipe, fs->recipe);
    framework_report_typos(recipe, fs->recipe, path, diags);
    if (unnamed)
        diag_warning(diags, (struct place){.file = path, .line = unnamed->at.line, .column = unnamed->at.column},
                     "arguments of the recipe's function without a name are left out");
}

/* Precisions of NeMo 2's that a function makes: recipe.trainer.plugins = bf16_with_fp8_mixed(). */
static void read_plugins(struct launch_words *words, const struct yaml_node *root, const struct frameworks *fs, const char *path,
                         struct diags *diags)
{
    const struct yaml_node *target = framework_find(root, "trainer.plugins._target_");
    const char *dot = target ? strrchr(target->text, '.') : NULL, *name = !target ? "" : dot ? dot + 1 : target->text;
    bool known = false;
    if (!target || isupper((unsigned char)*name)) /* a class, whose fields say it */
        return;
    for (const struct framework_word *w = framework_list(fs->recipe, "bridge_precisions"); w && w->word; w++)
        if (w->name && strcmp(w->word, name) == 0) {
            known = true;
            framework_add(words, target, "trainer.plugins", w->name, w->value);
        }
    if (!known)
        diag_warning(diags, (struct place){.file = path, .line = target->at.line, .column = target->at.column},
                     "trainer.plugins is left out: the result of %.60s is not known", name);
}

/* --- all together --- */

static bool has_longer_key(const struct framework *framework, const char *path)
{
    size_t n = strlen(path);
    for (const struct framework_key *key = framework->keys; key->path; key++)
        if (strncmp(key->path, path, n) == 0 && key->path[n] == '.')
            return true;
    return false;
}

static void tell_call(const struct yaml_node *node, const char *field, const char *path, struct diags *diags)
{
    const struct yaml_node *target = node && node->kind == YAML_MAPPING ? yaml_find(node, "_target_") : NULL;
    if (target && target->kind == YAML_SCALAR)
        diag_warning(diags, (struct place){.file = path, .line = target->at.line, .column = target->at.column},
                     "%s is left out: the program computes its value, %.60s()", field, target->text);
}

/* What a call makes where one value has to stand. */
static void tell_calls(const struct yaml_node *root, const struct framework *framework, const char *path, struct diags *diags)
{
    char field[160];
    for (const struct framework_key *key = framework->keys; key->path; key++)
        if (!key->inside && !has_longer_key(framework, key->path))
            tell_call(framework_find(root, key->path), key->path, path, diags);
    for (const char *const *group = framework->groups; group && *group; group++) {
        const struct yaml_node *mapping = framework_find(root, *group);
        for (const struct yaml_node *node = mapping && mapping->kind == YAML_MAPPING ? mapping->first : NULL; node;
             node = node->next) {
            snprintf(field, sizeof field, "%s.%.80s", *group, node->key);
            if (megatron_find(node->key, true) >= 0)
                tell_call(node, field, path, diags);
        }
    }
}

/* A name where a number or a truth has to stand (Defaults.BATCH) is none that the reader could know. */
static void leave_names_out(struct launch_words *words, size_t first, const char *path, struct diags *diags)
{
    size_t kept = first;
    for (size_t i = first; i < words->n; i++) {
        const struct launch_word word = words->items[i];
        int row = megatron_find(word.name, word.by_dest);
        bool text = row < 0 || megatron_rows[row].type == ARGUMENT_TEXT || megatron_rows[row].type == ARGUMENT_LIST;
        const char *dot = text || !word.value ? NULL : strchr(word.value, '.');
        if (!dot || !isalpha((unsigned char)*word.value) || !isalpha((unsigned char)dot[1]))
            words->items[kept++] = word;
        else
            diag_warning(diags, (struct place){.file = path, .line = word.at.line, .column = word.at.column},
                         "%s is left out: the program computes its value, %.60s", word.spelling, word.value);
    }
    words->n = kept;
}

/* By keys that no other has, by what made it where these are too few (llm.llama3_8b.pretrain_recipe(),
 * llama3_8b_pretrain_config()), or by keys of others: cfg.train alone might be LitGPT's. */
static const struct framework *framework_of_program(const struct frameworks *fs, const struct yaml_node *root,
                                                    const struct yaml_node *recipe)
{
    const struct framework *framework = framework_of_keys(fs, root);
    const char *target = recipe ? yaml_find(recipe, "_target_")->text : "", *last = strrchr(target, '_');
    if (framework == fs->bridge || framework == fs->nemo2 || !last)
        return framework;
    return strcmp(last, "_recipe") == 0 ? fs->nemo2 : strcmp(last, "_config") == 0 ? fs->bridge : framework;
}

/* An argument's name that is a field of what no recipe has, so far as the program says: model = build(); model.num_layers = 4. */
static void tell_loose(const struct yaml_node *root, const char *path, struct diags *diags)
{
    for (const struct yaml_node *node = root->first; node; node = node->next)
        if (node->kind != YAML_MAPPING && megatron_find(node->key, true) >= 0)
            diag_warning(diags, (struct place){.file = path, .line = node->key_at.line, .column = node->key_at.column},
                         "%.80s is left out: it is not known which part of a recipe it belongs to", node->key);
}

enum status framework_read_program(const struct frameworks *fs, const struct yaml_node *root, const char *path,
                                   struct launch_words *words, const struct framework **which, struct diags *diags)
{
    const struct yaml_node *recipe = yaml_find(root, "_recipe_");
    const struct framework *framework = framework_of_program(fs, root, recipe);
    size_t first = words->n;
    *which = framework && !framework->companion ? framework : NULL;
    bool described = framework_find(root, "model.hidden_size") || framework_find(root, "model.config.hidden_size");
    if (!framework) {
        diag_error(
            diags, (struct place){.file = path},
            "msim does not run Python programs, and this one neither makes nor changes a recipe that msim knows (cfg.train and "
            "cfg.model "
            "of Megatron-Bridge, recipe.trainer.strategy and recipe.model.config of NeMo 2); give the configuration that "
            "it makes as YAML or JSON (Megatron-Bridge: run_config.yaml beside the checkpoints), or a log of it");
        return STATUS_BAD_INPUT;
    }
    diag_note(diags, (struct place){.file = path},
              "msim reads the assignments of this program; the other values of its recipe are not known");
    if (recipe && !described)
        read_recipe(words, recipe, fs);
    framework_read_fixed(words, root, framework);
    if (recipe)
        read_call(words, recipe, fs, path, diags);
    if (framework == fs->nemo2)
        read_plugins(words, root, fs, path, diags);
    framework_read_keys(words, root, framework);
    leave_names_out(words, first, path, diags);
    if (framework == fs->bridge || framework == fs->nemo2)
        tell_loose(root, path, diags);
    tell_calls(root, framework, path, diags);
    framework_report_typos(root, framework, path, diags);
    return STATUS_OK;
}
