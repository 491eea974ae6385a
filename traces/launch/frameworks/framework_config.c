/* framework_config.c - recognises the framework of a configuration file and reads its words. */
#include "traces/launch/frameworks/framework_config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/frameworks/framework_keys.h"
#include "traces/launch/frameworks/framework_program.h"
#include "traces/launch/frameworks/framework_typos.h"
#include "traces/launch/job/toml.h"
#include "traces/launch/python/python_keys.h"

static bool has_ending(const char *path, const char *ending)
{
    size_t length = strlen(path), end = strlen(ending);
    return length > end && strcmp(path + length - end, ending) == 0;
}

static bool is_named_config(const char *path)
{
    static const char *const endings[] = {".yaml", ".yml", ".json", ".toml", ".py"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (has_ending(path, endings[i]))
            return true;
    return false;
}

bool framework_is_config(const char *path, const char *bytes, size_t n)
{
    size_t blank = 0;
    if (is_named_config(path))
        return true;
    while (blank < n && strchr(" \t\r\n#", bytes[blank])) {
        const char *stop = bytes[blank] == '#' ? memchr(bytes + blank, '\n', n - blank) : bytes + blank;
        blank = stop ? (size_t)(stop - bytes) + 1 : n;
    }
    size_t key = blank;
    while (key < n && (isalnum((unsigned char)bytes[key]) || bytes[key] == '_'))
        key++;
    bool names = key > blank && key < n && bytes[key] == ':' && (key + 1 == n || strchr(" \r\n", bytes[key + 1]));
    return names || (blank < n && bytes[blank] == '{') || toml_begins(bytes, n);
}

/* --name: value, as Megatron-LM's test recipes have them. */
static void read_arguments(struct launch_words *words, const struct yaml_node *arguments)
{
    for (const struct yaml_node *node = arguments->first; node; node = node->next) {
        if (strncmp(node->key, "--", 2) != 0 || node->kind == YAML_MAPPING)
            continue;
        const char *text = framework_text(words, node), *name = launch_text(words, node->key + 2, strlen(node->key + 2));
        bool is_flag = node->kind == YAML_SCALAR && !node->quoted && (framework_is_true(text) || strcmp(text, "false") == 0);
        if (!is_flag || framework_is_true(text))
            launch_words_add(words, (struct launch_word){.name = name, .value = is_flag ? NULL : text, .at = node->at});
    }
}

/* --- files --- */

/* What a file is that is no configuration, and who reads it; NULL: not known. */
static const char *other_kind(const struct yaml_node *root)
{
    static const char *const kinds[][2] = {
        {"cluster", "this is already an experiment of msim; give it to msim plan, step or run"},
        {"traceEvents", "this is a profile; msim step JOB --profile FILE reads it"},
        {"msim", "this is a result of msim; msim plot reads it"},
        {"hidden_size", "this describes only a model: specify it with --model"},
        {"model_type", "this describes only a model: specify it with --model"},
    };
    for (size_t i = 0; root->kind == YAML_MAPPING && i < sizeof kinds / sizeof *kinds; i++)
        if (yaml_find(root, kinds[i][0]))
            return kinds[i][1];
    return NULL;
}

static enum status read_root(const struct frameworks *fs, const struct yaml_node *root, const char *path,
                             struct launch_words *words, const struct framework **which, struct diags *diags)
{
    const struct yaml_node *arguments = root->kind == YAML_MAPPING ? yaml_find(root, "MODEL_ARGS") : NULL;
    if (arguments && arguments->kind == YAML_MAPPING) {
        read_arguments(words, arguments);
        return STATUS_OK;
    }
    const struct framework *framework = root->kind == YAML_MAPPING ? framework_of_keys(fs, root) : NULL;
    if (!framework) {
        const char *other = other_kind(root);
        diag_error(
            diags, (struct place){.file = path}, "%s",
            other ? other
                  : "not a configuration that msim knows. Frameworks are recognised by their keys: NeMo trainer and model, "
                    "Megatron-Bridge train and model, torchtitan training and model, nanotron parallelism and tokens, Axolotl "
                    "base_model, LLaMA-Factory finetuning_type, llm-foundry and OLMo device_train_microbatch_size, LitGPT "
                    "train.micro_batch_size, MaxText "
                    "per_device_batch_size, OLMo-core data_loader and model, Colossal-AI plugin, accelerate distributed_type, "
                    "DeepSpeed zero_optimization or batch sizes. A config.json of Hugging Face describes only a model: specify "
                    "it with --model");
        return STATUS_BAD_INPUT;
    }
    framework_read(words, root, framework);
    framework_report_typos(root, framework, path, diags);
    *which = framework;
    return STATUS_OK;
}

enum status framework_config_parse(const struct frameworks *fs, const char *path, const char *bytes, size_t n,
                                   struct launch_words *words, const struct framework **which, struct diags *diags)
{
    struct arena arena = {0};
    size_t first = words->n, errors = diags->n_errors;
    bool toml = has_ending(path, ".toml") || (!is_named_config(path) && toml_begins(bytes, n)), python = has_ending(path, ".py");
    const struct yaml_node *root = python ? python_parse(path, bytes, n, &arena, diags)
                                   : toml ? toml_parse(path, bytes, n, &arena, diags)
                                          : yaml_parse(path, bytes, n, &arena, diags);
    *which = NULL;
    enum status status = !root    ? STATUS_BAD_INPUT
                         : python ? framework_read_program(fs, root, path, words, which, diags)
                                  : read_root(fs, root, path, words, which, diags);
    for (size_t i = first; i < words->n; i++)
        words->items[i].at.file = path;
    arena_free(&arena);
    return diags->n_errors > errors ? STATUS_BAD_INPUT : status;
}
