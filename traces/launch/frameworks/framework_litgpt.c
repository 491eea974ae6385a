/* framework_litgpt.c - LitGPT: the YAML that its pretrain and finetune commands read (config_hub), from memory.
 *
 * A batch is that of all devices. With several, pre-training shards within a node; fine-tuning shards among all and recomputes
 * blocks. */
#include <stdio.h>
#include <string.h>

#include "model/base/append.h"
#include "model/spec/catalog.h"
#include "traces/launch/frameworks/framework_more.h"
#include "traces/launch/frameworks/framework_tree.h"

static const struct yaml_node *scalar_at(const struct yaml_node *root, const char *path)
{
    const struct yaml_node *node = framework_find(root, path);
    return node && node->kind == YAML_SCALAR && !yaml_is_null(node) && *node->text ? node : NULL;
}

/* The matrices with adapters: queries and values by default. */
static void read_targets(struct launch_words *words, const struct yaml_node *root, const struct yaml_node *rank)
{
    static const struct {
        const char *key, *modules;
        bool usual;
    } parts[] = {{"lora_query", "q_proj", true},
                 {"lora_key", "k_proj", false},
                 {"lora_value", "v_proj", true},
                 {"lora_projection", "o_proj", false},
                 {"lora_mlp", "gate_proj up_proj down_proj", false},
                 {"lora_head", "lm_head", false}};
    char text[128] = "";
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const struct yaml_node *spelling = scalar_at(root, parts[i].key);
        if (spelling ? framework_is_true(spelling->text) : parts[i].usual)
            text_append(text, sizeof text, "%s%s", *text ? " " : "", parts[i].modules);
    }
    framework_add(words, rank, "lora_r", "adapter", "lora");
    framework_add(words, rank, "lora_query, ...", "adapter_targets", launch_text(words, text, strlen(text)));
}

static bool is_one(const struct yaml_node *root, const char *path, bool unless)
{
    const struct yaml_node *node = scalar_at(root, path);
    return node ? strcmp(node->text, "1") == 0 : unless;
}

/* Pre-training without a length has the model's; fine-tuning that of its data. */
static void read_context(struct launch_words *words, const struct yaml_node *train, const struct yaml_node *name,
                         const struct yaml_node *block)
{
    struct transformer model;
    struct diags quiet = {0};
    char text[32];
    if (block) {
        framework_add(words, block, "model_config.block_size", "seq_length", framework_text(words, block));
    } else if (name && catalog_model(name->text, &model, &quiet) == STATUS_OK && model.max_seq_len > 0) {
        int n = snprintf(text, sizeof text, "%lld", (long long)model.max_seq_len);
        framework_add(words, train, "LitGPT", "seq_length", launch_text(words, text, (size_t)n));
    }
    diags_free(&quiet);
}

/* Pre-training names a model, fine-tuning where one lies. */
void more_litgpt(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    (void)framework;
    const struct yaml_node *where = scalar_at(root, "checkpoint_dir"), *name = scalar_at(root, "model_name");
    const struct yaml_node *rank = scalar_at(root, "lora_r"), *train = framework_find(root, "train");
    if (where) {
        const char *slash = strrchr(where->text, '/'), *base = slash && slash[1] ? slash + 1 : where->text;
        framework_add(words, where, "checkpoint_dir", "catalog_model", launch_text(words, base, strlen(base)));
        if (!is_one(root, "devices", true) || !is_one(root, "num_nodes", true))
            framework_add(words, where, "LitGPT", "recompute_granularity", "full");
    } else if (name && !framework_find(root, "model_config.n_layer")) {
        framework_add(words, name, "model_name", "catalog_model", framework_text(words, name));
    }
    if (framework_find(root, "model_config.n_layer")) {
        framework_add(words, root, "LitGPT", "position_embedding_type", "rope");
        if (!scalar_at(root, "train.tie_embeddings"))
            framework_add(words, root, "LitGPT", "untie_embeddings_and_output_weights", "True");
    }
    if (!where && train) {
        framework_add(words, train, "LitGPT", "torch_compile", "True");
        framework_add(words, train, "LitGPT", "mics_shard_size", "node");
        if (!scalar_at(train, "max_seq_length") && scalar_at(train, "global_batch_size"))
            read_context(words, train, name, scalar_at(root, "model_config.block_size"));
    }
    if (rank)
        read_targets(words, root, rank);
}
