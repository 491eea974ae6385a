/* framework_more.c - keys that a table cannot describe by rows: the functions that it names with `more`. */
#include "traces/launch/frameworks/framework_more.h"

#include <string.h>

#include "traces/launch/frameworks/framework_table_internal.h"
#include "traces/launch/frameworks/framework_tree.h"

/* Experts of its Qwen (from memory), which are read and, its LLaMA having none, not written. */
void more_nanotron(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    (void)framework;
    static const struct {
        const char *path, *name;
    } keys[] = {{"model.model_config.moe_config.num_experts", "num_experts"},
                {"model.model_config.moe_config.top_k", "moe_router_topk"},
                {"model.model_config.moe_config.moe_intermediate_size", "moe_ffn_hidden_size"},
                {"model.model_config.moe_config.shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct yaml_node *node = framework_find(root, keys[i].path);
        if (node && node->kind == YAML_SCALAR && !yaml_is_null(node))
            framework_add(words, node, keys[i].path, keys[i].name, framework_text(words, node));
    }
}

/* FSDP shards among the ranks that replicas leave. */
void more_axolotl(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    (void)framework;
    const struct yaml_node *replicas = framework_find(root, "dp_replicate_size"), *shards = framework_find(root, "dp_shard_size");
    bool sharded = framework_find(root, "fsdp_config") || framework_find(root, "fsdp_version") || framework_find(root, "fsdp");
    if (replicas && !yaml_is_null(replicas) && sharded && (!shards || yaml_is_null(shards)))
        framework_add(words, replicas, "dp_replicate_size", "data_parallel_shard_degree", "-1");
}

/* A switch of accelerate launch, behind which its program may stand; it is known from then on. */
static bool is_switched_on(struct launch_words *words, const struct yaml_node *root, const char *name)
{
    const struct yaml_node *node = framework_find(root, name);
    if (!node || node->kind != YAML_SCALAR)
        return false;
    framework_add(words, node, name, "", "");
    return strcmp(node->text, "false") != 0 && strcmp(node->text, "False") != 0;
}

static bool has_any(const struct yaml_node *root, const char *const *names)
{
    for (; *names; names++)
        if (framework_find(root, *names))
            return true;
    return false;
}

/* Without a file that says it FSDP shards all, DeepSpeed gradients and states, which it sums in the weights' type
 * (DeepSpeedPlugin, from memory). */
void more_training_arguments(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    (void)framework;
    static const char *const fsdp[] = {"config_file", "fsdp_sharding_strategy", "fsdp_reshard_after_forward", NULL};
    static const char *const files[] = {"config_file", "deepspeed_config_file", "deepspeed", NULL};
    const struct yaml_node *node = framework_find(root, "use_fsdp");
    is_switched_on(words, root, "fsdp_version"); /* shards all, either */
    if (is_switched_on(words, root, "use_fsdp") && !has_any(root, fsdp))
        framework_add(words, node, "use_fsdp", "zero_stage", "3");
    node = framework_find(root, "use_deepspeed");
    if (!is_switched_on(words, root, "use_deepspeed") || has_any(root, files))
        return;
    framework_add(words, node, "use_deepspeed", "grad_reduce_in_bf16", "True");
    framework_add(words, node, "use_deepspeed", "run_by_deepspeed", "True");
    if (!framework_find(root, "zero_stage"))
        framework_add(words, node, "use_deepspeed", "zero_stage", "2");
}

/* --- by name --- */

static const struct {
    const char *name;
    framework_more *function;
} functions[] = {
    {"axolotl", more_axolotl},
    {"colossal_ai", more_colossal_ai},
    {"litgpt", more_litgpt},
    {"llm_foundry", more_llm_foundry},
    {"maxtext", more_maxtext},
    {"nanotron", more_nanotron},
    {"olmo", more_olmo},
    {"olmo_core", more_olmo_core},
    {"torchtitan", more_torchtitan},
    {"training_arguments", more_training_arguments},
};

framework_more *framework_more_named(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].function;
    return NULL;
}
