/* OLMo-core: the configuration that it writes beside checkpoints (config.json), of 2024 and later. Batches are counted in tokens.
 * Not checked against the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/frameworks/framework_rows.h"
#include "traces/launch/frameworks/framework_torch.h"
#include "traces/launch/frameworks/framework_tree.h"

static const struct framework_word norms[] = {
    {"rms", "normalization", "RMSNorm"},     {"fused_rms", "normalization", "RMSNorm"}, {"cute_rms", "normalization", "RMSNorm"},
    {"l2_norm", "normalization", "RMSNorm"}, {"default", "normalization", "LayerNorm"}, {0}};
static const struct framework_word ways[] = {
    {"fsdp", "data_parallel_shard_degree", "-1"}, {"hsdp", NULL, NULL}, {"ddp", "zero_stage", "0"}, {0}};
static const struct framework_word types[] = {
    {"bfloat16", "bf16", "True"}, {"float16", "fp16", "True"}, {"float32", NULL, NULL}, {0}};
static const struct framework_word reduce_types[] = {
    {"bfloat16", "grad_reduce_in_bf16", "True"}, {"float32", "grad_reduce_in_bf16", "False"}, {0}};
static const struct framework_word state_types[] = {
    {"bfloat16", "main_params_dtype", "bf16"}, {"float32", "main_params_dtype", "fp32"}, {0}};
static const struct framework_word eights[] = {TRULY("fp8", "hybrid"), {0}};
static const struct framework_word losses[] = {
    {"fused_linear", "fused_linear_cross_entropy", "True"}, {"default", NULL, NULL}, {0}};
static const struct framework_word fused[] = {TRULY("cross_entropy_loss_fusion", "True"), {0}};
/* Blocks between two that keep all, products that are kept, and what msim only tells. */
static const struct framework_word modes[] = {{"full", "recompute_granularity", "full"},
                                              {"selected_blocks", "recompute_granularity", "selective"},
                                              {"selected_ops", "recompute_granularity", "selective"},
                                              {"selected_ops", "recompute_every_layers", "op"},
                                              {"selected_modules", "recompute_granularity", "full"},
                                              {"selected_modules", "rematerialization_policy", "selected_modules"},
                                              {"budget", "recompute_granularity", "selective"},
                                              {"budget", "recompute_every_layers", "op"},
                                              {"budget", "activation_memory_budget", "compiled"},
                                              {0}};
static const struct framework_word optimizers[] = {{"AdamWConfig", "optimizer", "adam"},
                                                   {"AdamConfig", "optimizer", "adam"},
                                                   {"SkipStepAdamWConfig", "optimizer", "adam"},
                                                   {"LionConfig", "optimizer", "lion"},
                                                   {"SkipStepLionConfig", "optimizer", "lion"},
                                                   {"MuonConfig", "optimizer", "muon"},
                                                   {0}};

/* Parts of a training module: of its own, or of the model's in the first year. */
#define PARTS(place)                                                                                                             \
    WORDS(place ".dp_config.name", ways), WORDS(place ".dp_config.param_dtype", types),                                          \
        WORDS(place ".dp_config.reduce_dtype", reduce_types),                                                                    \
        AS(place ".dp_config.num_replicas", "data_parallel_replicate_degree"),                                                   \
        AS(place ".dp_config.shard_degree", "data_parallel_shard_degree"),                                                       \
        AS(place ".tp_config.degree", "tensor_model_parallel_size"),                                                             \
        AS(place ".tp_config.enable_async", "async_tensor_parallel"), AS(place ".cp_config.degree", "context_parallel_size"),    \
        AS(place ".pp_config.degree", "pipeline_model_parallel_size"),                                                           \
        AS(place ".pp_config.schedule", "pipeline_parallel_schedule"),                                                           \
        INSIDE(place ".pp_config.split_points", "pipeline_split_points"),                                                        \
        AS(place ".ac_config.block_interval", "recompute_every_layers"), WORDS(place ".ac_config.mode", modes),                  \
        WORDS(place ".float8_config.enabled", eights), AS(place ".float8_config.ao_recipe", "fp8_recipe")

static const struct framework_key keys[] = {
    AS("model.d_model", "hidden_size"),
    AS("model.n_layers", "num_layers"),
    AS("model.vocab_size", "vocab_size"),
    AS("model.block.attention.n_heads", "num_attention_heads"),
    AS("model.block.attention.n_kv_heads", "num_query_groups"),
    AS("model.block.attention.head_dim", "kv_channels"),
    AS("model.block.attention.bias", "add_qkv_bias"),
    AS("model.block.attention.rope.theta", "rotary_base"),
    INSIDE("model.block.attention.sliding_window", "sliding_windows"),
    AS("model.block.sequence_mixer.n_heads", "num_attention_heads"),
    AS("model.block.sequence_mixer.n_kv_heads", "num_query_groups"),
    AS("model.block.sequence_mixer.head_dim", "kv_channels"),
    AS("model.block.sequence_mixer.bias", "add_qkv_bias"),
    AS("model.block.sequence_mixer.rope.theta", "rotary_base"),
    INSIDE("model.block.sequence_mixer.sliding_window", "sliding_windows"),
    AS("model.block.feed_forward.hidden_size", "ffn_hidden_size"),
    AS("model.block.feed_forward.bias", "add_bias_linear"),
    AS("model.block.feed_forward_moe.num_experts", "num_experts"),
    AS("model.block.feed_forward_moe.hidden_size", "moe_ffn_hidden_size"),
    AS("model.block.feed_forward_moe.router.top_k", "moe_router_topk"),
    AS("model.block.feed_forward_moe.capacity_factor", "moe_expert_capacity_factor"),
    AS("model.block.feed_forward_moe.shared_mlp.hidden_size", "moe_shared_expert_intermediate_size"),
    WORDS("model.block.layer_norm.name", norms),
    WORDS("model.lm_head.loss_implementation", losses),
    INSIDE("model.block_overrides", "block_overrides"),
    PARTS("model"),
    PARTS("train_module"),
    AS("train_module.ep_config.degree", "expert_model_parallel_size"),
    WORDS("model.compile", framework_compiled),
    WORDS("train_module.compile_model", framework_compiled),
    WORDS("trainer.autocast_precision", types),
    WORDS("train_module.autocast_precision", types),
    WORDS("trainer.fused_loss", fused),
    WORDS("optim.dtype", state_types),
    WORDS("train_module.optim.dtype", state_types),
    AS("data_loader.num_workers", "num_workers"),
    AS("dataset.generate_doc_lengths", "reset_attention_mask"), /* which its attention is given */
    {0},
};
static const struct framework_word fixed[] = {
    FRAMEWORK_OWN_MODULES,
    FRAMEWORK_LLAMA_LAYERS,
    {NULL, "use_flash_attn", "True"},
    {NULL, "scatter_gather_tensors_in_pipeline", "False"},
    {NULL, "cross_entropy_loss_fusion", "False"},
    {NULL, "eager_cross_entropy", "True"}, /* of logits.float(), outside of the blocks that are compiled (from memory) */
    {NULL, "untie_embeddings_and_output_weights", "True"},
    {NULL, "sequence_parallel", "True"},
    {NULL, "moe_grouped_gemm", "True"},
    {NULL, "moe_token_dispatcher_type", "alltoall"},
    {NULL, "expert_tensor_parallel_size", "1"},
    {0},
};

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
                                                 .said = path,
                                                 .at = node->at,
                                                 .by_dest = true});
}

/* So many tokens as sequences; a rest is no batch. */
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
static void read_optimizer(struct launch_words *words, const struct yaml_node *root)
{
    static const char *const classes[] = {"train_module.optim._CLASS_", "optim._CLASS_", NULL};
    const char *path;
    const struct yaml_node *node = first_of(root, classes, &path);
    const char *dot = node ? strrchr(node->text, '.') : NULL, *class = dot ? dot + 1 : node ? node->text : NULL;
    for (const struct framework_word *w = optimizers; class && w->word; w++)
        if (strcmp(w->word, class) == 0) {
            framework_add(words, node, path, w->name, w->value);
            return;
        }
    if (class)
        framework_add_strange(words, node, path, framework_text(words, node));
}

/* A norm of queries and keys is there or not; experts with a capacity have a tensor of so many tokens each; replicas of shards
 * are those of a node unless told. */
static void read_more(struct launch_words *words, const struct yaml_node *root)
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
    read_optimizer(words, root);
}

static const char *const ignored[] = {"run_name",
                                      "launch.",
                                      "dataset.",
                                      "data_loader.",
                                      "eval.",
                                      "init_seed",
                                      "backend",
                                      "beaker.",
                                      "trainer.",
                                      "_CLASS_",
                                      "model._CLASS_",
                                      "model.name",
                                      "model.dtype",
                                      "model.init_*",
                                      "model.freeze_params",
                                      "model.block._CLASS_",
                                      "model.block.name",
                                      "model.block.attention._CLASS_",
                                      "model.block.attention.name",
                                      "model.block.attention.rope.",
                                      "model.block.attention.qk_norm.",
                                      "model.block.attention.use_head_qk_norm",
                                      "model.block.attention.clip_qkv",
                                      "model.block.attention.dropout",
                                      "model.block.attention.use_flash",
                                      "model.block.attention.backend",
                                      "model.block.attention.dtype",
                                      "model.block.attention.gate.",
                                      "model.block.sequence_mixer._CLASS_",
                                      "model.block.sequence_mixer.name",
                                      "model.block.sequence_mixer.rope.",
                                      "model.block.sequence_mixer.qk_norm.",
                                      "model.block.sequence_mixer.use_head_qk_norm",
                                      "model.block.sequence_mixer.clip_qkv",
                                      "model.block.sequence_mixer.dropout",
                                      "model.block.sequence_mixer.use_flash",
                                      "model.block.sequence_mixer.backend",
                                      "model.block.sequence_mixer.dtype",
                                      "model.block.sequence_mixer.gate.",
                                      "model.block.layer_norm.*",
                                      "model.block.feed_forward.*",
                                      "model.block.feed_forward_moe.*",
                                      "model.lm_head.*",
                                      "optim.*",
                                      "train_module._CLASS_",
                                      "train_module.optim.*",
                                      "train_module.scheduler.",
                                      "train_module.max_grad_norm",
                                      "train_module.z_loss_multiplier",
                                      "train_module.rank_microbatch_size",
                                      "train_module.max_sequence_length",
                                      "train_module.state_dict_*",
                                      "train_module.load_key_mapping",
                                      "train_module.label_ignore_index",
                                      "train_module.dp_config.*",
                                      "train_module.tp_config.*",
                                      "train_module.cp_config.*",
                                      "train_module.ac_config.*",
                                      "train_module.float8_config.*",
                                      "model.dp_config.*",
                                      "model.ac_config.*",
                                      "model.float8_config.*",
                                      NULL};

const struct framework framework_olmo_core = {.name = "OLMo-core",
                                              .signs = {"data_loader.global_batch_size", "model.d_model"},
                                              .fixed = fixed,
                                              .keys = keys,
                                              .more = read_more,
                                              .ignored = ignored};
