/* framework_colossal.c - Colossal-AI: arguments of its plugins (HybridParallelPlugin, GeminiPlugin) as a mapping, and flags of
 * its applications. Not checked against the program.
 *
 * A pipeline's batch is divided by microbatch_size or num_microbatches. Without one of them, batch_size is the micro-batch. */
#include <stdlib.h>
#include <string.h>

#include "traces/launch/frameworks/framework_more.h"
#include "traces/launch/frameworks/framework_tree.h"

static const struct yaml_node *scalar_at(const struct yaml_node *root, const char *const *paths, const char **path)
{
    for (; *paths; paths++) {
        const struct yaml_node *node = framework_find(root, *path = *paths);
        if (node && node->kind == YAML_SCALAR && !yaml_is_null(node))
            return node;
    }
    return NULL;
}

/* Ranks that divide tokens by themselves are another dimension; those of split_gather and ring are tp's. LoRA has a rank, and is
 * none without. */
void more_colossal_ai(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    static const char *const modes[] = {"plugin.sequence_parallelism_mode", "sequence_parallelism_mode", "sp_mode", NULL};
    static const char *const sizes[] = {"plugin.sp_size", "sp_size", "sp", NULL};
    static const char *const names[] = {"pretrained", "model_name_or_path", "model", "config", NULL};
    static const char *const ranks[] = {"lora_rank", NULL};
    const char *path, *mode_path;
    const struct yaml_node *size = scalar_at(root, sizes, &path), *mode = scalar_at(root, modes, &mode_path);
    bool apart = mode && (strcmp(mode->text, "all_to_all") == 0 || strcmp(mode->text, "ring_attn") == 0);
    if (size)
        framework_add(words, size, path, apart ? "context_parallel_size" : "", framework_text(words, size));
    const struct yaml_node *rank = scalar_at(root, ranks, &path), *name;
    if (rank && strtol(rank->text, NULL, 10) > 0) {
        framework_add(words, rank, path, "adapter", "lora");
        framework_add(words, rank, path, "adapter_targets", "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj");
    }
    if (!(name = scalar_at(root, names, &path)))
        return;
    const struct framework_word *w = framework->models;
    while (w && w->word && strcmp(w->word, name->text) != 0)
        w++;
    framework_add(words, name, path, "catalog_model", w && w->word ? w->value : framework_text(words, name));
}
