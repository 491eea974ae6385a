/* framework_olmo_core.c - OLMo-core: the configuration in its checkpoints (config.json), of 2024 and later. Batches are in
 * tokens. Not checked against the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/frameworks/framework_more.h"
#include "traces/launch/frameworks/framework_tree.h"

static const struct yaml_node *first_of(const struct yaml_node *root, const char *const *paths, const char **path)
{
    for (; *paths; paths++) {
        const struct yaml_node *node = framework_find(root, *path = *paths);
        if (node && node->kind == YAML_SCALAR && !yaml_is_null(node))
            return node;
    }
    return NULL;
}

static const char *const lengths[] = {"train_module.max_sequence_length", "dataset.sequence_length",
                                      "dataset.max_sequence_length", NULL};
static const char *const batches[] = {"data_loader.global_batch_size", NULL};
static const char *const pieces[] = {"train_module.rank_microbatch_size", "trainer.rank_microbatch_size", NULL};

/* What is no whole number of sequences is asked for. */
static void add_rest(struct launch_words *words, const struct yaml_node *node, const char *path, const char *name, int64_t tokens,
                     int64_t length)
{
    char why[192];
    snprintf(why, sizeof why, "%.24s tokens are no whole number of sequences: %lld of %lld tokens and a rest of %lld", node->text,
             (long long)(tokens / length), (long long)length, (long long)(tokens % length));
    launch_words_add(words, (struct launch_word){.name = name,
                                                 .value = framework_text(words, node),
                                                 .unknown = launch_text(words, why, strlen(why)),
                                                 .spelling = path,
                                                 .at = node->at,
                                                 .by_dest = true});
}

/* Tokens as a number of sequences; a remainder is no batch. */
static void add_sequences(struct launch_words *words, const struct yaml_node *root, const char *const *paths, const char *name,
                          int64_t length)
{
    const char *path;
    const struct yaml_node *node = first_of(root, paths, &path);
    char text[32];
    if (!node)
        return;
    char *end;
    int64_t tokens = strtoll(node->text, &end, 10);
    if (end == node->text || *end) {
        framework_add_strange(words, node, path, framework_text(words, node));
        return;
    }
    if (length < 1)
        return;
    if (tokens < length || tokens % length != 0) {
        add_rest(words, node, path, name, tokens, length);
        return;
    }
    snprintf(text, sizeof text, "%lld", (long long)(tokens / length));
    framework_add(words, node, path, name, launch_text(words, text, strlen(text)));
}

/* Classes are called olmo_core.optim.adamw.SkipStepAdamWConfig. */
static void read_optimizer(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    static const char *const classes[] = {"train_module.optim._CLASS_", "optim._CLASS_", NULL};
    const char *path;
    const struct yaml_node *node = first_of(root, classes, &path);
    const char *dot = node ? strrchr(node->text, '.') : NULL, *class = dot ? dot + 1 : node ? node->text : NULL;
    for (const struct framework_word *w = framework_list(framework, "optimizers"); class && w && w->word; w++)
        if (strcmp(w->word, class) == 0) {
            framework_add(words, node, path, w->name, w->value);
            return;
        }
    if (class)
        framework_add_strange(words, node, path, framework_text(words, node));
}

/* A block for the norm of queries and keys means that there is one. Experts with a capacity have tensors of that many tokens. By
 * default, hybrid sharding (hsdp) has one shard group per node. */
void more_olmo_core(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    static const char *const qk_norms[] = {"model.block.attention.qk_norm", "model.block.sequence_mixer.qk_norm"};
    static const char *const places[] = {"train_module.dp_config", "model.dp_config"};
    const char *path;
    const struct yaml_node *length = first_of(root, lengths, &path);
    int64_t tokens = length ? strtoll(length->text, NULL, 10) : 0;
    if (length) {
        framework_add(words, length, path, "seq_length", framework_text(words, length));
        framework_add(words, length, path, "max_position_embeddings", framework_text(words, length));
    }
    add_sequences(words, root, batches, "global_batch_size", tokens);
    add_sequences(words, root, pieces, "micro_batch_size", tokens);
    for (int i = 0; i < 2; i++) {
        const struct yaml_node *norm = framework_find(root, qk_norms[i]), *dp = framework_find(root, places[i]);
        if (norm && norm->kind == YAML_MAPPING)
            framework_add(words, norm, qk_norms[i], "qk_layernorm", "True");
        const struct yaml_node *name = dp && dp->kind == YAML_MAPPING ? yaml_find(dp, "name") : NULL;
        if (!name || name->kind != YAML_SCALAR || strcmp(name->text, "hsdp") != 0)
            continue;
        const struct yaml_node *shards = yaml_find(dp, "shard_degree"), *replicas = yaml_find(dp, "num_replicas");
        bool degrees = shards && !yaml_is_null(shards), copies = replicas && !yaml_is_null(replicas);
        if (!degrees)
            framework_add(words, name, places[i], "data_parallel_shard_degree", copies ? "-1" : "8");
        if (!copies)
            framework_add(words, name, places[i], "data_parallel_replicate_degree", "-1");
        if (!degrees && !copies)
            framework_add(words, name, places[i], "shards_of_a_node", "8");
    }
    const char *const capacity = "model.block.feed_forward_moe.capacity_factor";
    const struct yaml_node *factor = framework_find(root, capacity);
    if (factor && factor->kind == YAML_SCALAR && !yaml_is_null(factor))
        framework_add(words, factor, capacity, "moe_pad_expert_input_to_capacity", "True");
    read_optimizer(words, root, framework);
}
