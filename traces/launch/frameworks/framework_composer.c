/* What MosaicML's Composer trains, and its kin: llm-foundry (MPT), OLMo until OLMo-core. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/frameworks/framework_rows.h"
#include "traces/launch/frameworks/framework_torch.h"
#include "traces/launch/frameworks/framework_tree.h"

static const struct framework_word torch_fixed[] = {PLAIN_TORCH, {0}};

/* --- MosaicML's llm-foundry: MPT --- */

static const struct framework_word composer_types[] = {{"amp_bf16", "bf16", "True"}, {"amp_fp16", "fp16", "True"},
                                                       {"amp_fp8", "bf16", "True"},  {"amp_fp8", "fp8", "hybrid"},
                                                       {"fp32", "bf16", "False"},    {0}};
static const struct framework_word composer_sharding[] = {{"FULL_SHARD", "zero_stage", "3"},
                                                          {"SHARD_GRAD_OP", "zero_stage", "2"},
                                                          {"NO_SHARD", "zero_stage", "0"},
                                                          {"HYBRID_SHARD", "zero_stage", "3"},
                                                          {"HYBRID_SHARD", "mics_shard_size", "node"},
                                                          {"_HYBRID_SHARD_ZERO2", "zero_stage", "2"},
                                                          {"_HYBRID_SHARD_ZERO2", "mics_shard_size", "node"},
                                                          {0}};
static const struct framework_word composer_mixed[] = {{"mixed", "grad_reduce_in_bf16", "False"},
                                                       {"PURE", "grad_reduce_in_bf16", "True"},
                                                       {"pure", "grad_reduce_in_bf16", "True"},
                                                       {"DEFAULT", "grad_reduce_in_bf16", "False"},
                                                       {0}};
static const struct framework_word composer_alibi[] = {TRULY("position_embedding_type", "alibi"), {0}};
static const struct framework_word composer_rope[] = {TRULY("position_embedding_type", "rope"), {0}};
static const struct framework_word composer_gated[] = {{"mptglu", "swiglu", "True"}, {"te_ln_mlp", "swiglu", "False"}, {0}};
static const struct framework_word composer_norms[] = {{"low_precision_layernorm", "normalization", "LayerNorm"},
                                                       {"layernorm", "normalization", "LayerNorm"},
                                                       {"rmsnorm", "normalization", "RMSNorm"},
                                                       {"low_precision_rmsnorm", "normalization", "RMSNorm"},
                                                       {0}};
/* MPT's loss is one kernel unless told; of others it is their maker's. */
static const struct framework_word composer_models[] = {{"mpt_causal_lm", "cross_entropy_loss_fusion", "True"},
                                                        {"hf_causal_lm", "eager_cross_entropy", "True"},
                                                        {"hf_causal_lm_peft", "eager_cross_entropy", "True"},
                                                        {0}};
static const struct framework_word composer_losses[] = {{"torch_crossentropy", "cross_entropy_loss_fusion", "False"},
                                                        {"fused_crossentropy", "cross_entropy_loss_fusion", "True"},
                                                        {0}};
static const struct framework_word composer_heads[] = {{"multihead_attention", NULL, NULL},
                                                       {"grouped_query_attention", NULL, NULL},
                                                       {"multiquery_attention", "num_query_groups", "1"},
                                                       {"multiquery_attention", "group_query_attention", "True"},
                                                       {0}};
static const struct framework_key foundry_keys[] = {
    WORDS("model.name", composer_models),
    WORDS("model.loss_fn", composer_losses),
    WORDS("model.attn_config.attn_type", composer_heads),
    AS("model.attn_config.qk_ln", "qk_layernorm"),
    AS("model.attn_config.sliding_window_size", "window_size"),
    AS("model.attn_config.attn_uses_sequence_id", "reset_attention_mask"), /* samples that stand in a row */
    AS("max_seq_len", "seq_length"),
    AS("global_train_batch_size", "global_batch_size"),
    AS("device_train_microbatch_size", "micro_batch_size"),
    WORDS("precision", composer_types),
    WORDS("optimizer.name", framework_optimizers),
    AS("model.d_model", "hidden_size"),
    AS("model.n_layers", "num_layers"),
    AS("model.n_heads", "num_attention_heads"),
    AS("model.attn_config.kv_n_heads", "num_query_groups"),
    AS("model.ffn_config.ffn_hidden_size", "ffn_hidden_size"),
    AS("model.max_seq_len", "max_position_embeddings"),
    AS("model.vocab_size", "vocab_size"),
    OPPOSITE("model.no_bias", "add_bias_linear"),
    OPPOSITE("model.tie_word_embeddings", "untie_embeddings_and_output_weights"),
    WORDS("model.norm_type", composer_norms),
    WORDS("model.ffn_config.ffn_type", composer_gated),
    WORDS("model.attn_config.attn_impl", framework_attentions),
    WORDS("model.attn_config.alibi", composer_alibi),
    WORDS("model.attn_config.rope", composer_rope),
    AS("model.attn_config.rope_theta", "rotary_base"),
    WORDS("fsdp_config.sharding_strategy", composer_sharding),
    WORDS("fsdp_config.mixed_precision", composer_mixed),
    WORDS("fsdp_config.activation_checkpointing", framework_recomputed),
    AS("fsdp_config.activation_cpu_offload", "cpu_offloading"),
    WORDS("fsdp_config.cpu_offload", framework_by_host),
    WORDS("compile_config", framework_compiled),
    {0},
};
/* Options of a compiler, if none of them: it is used. */
static void read_compile(struct launch_words *words, const struct yaml_node *root, const char *key)
{
    const struct yaml_node *options = framework_find(root, key);
    if (!options || options->kind != YAML_MAPPING)
        return;
    framework_add(words, options, key, "torch_compile", "True");
    framework_add(words, options, key, "compiled_cross_entropy", "True");
}

static void olmo_more(struct launch_words *words, const struct yaml_node *root)
{
    read_compile(words, root, "compile");
}

/* A feed-forward part is so many times as wide as the model. */
static void foundry_more(struct launch_words *words, const struct yaml_node *root)
{
    read_compile(words, root, "compile_config");
    const struct yaml_node *ratio = framework_find(root, "model.expansion_ratio"), *width = framework_find(root, "model.d_model");
    if (!ratio || ratio->kind != YAML_SCALAR || !width || width->kind != YAML_SCALAR ||
        framework_find(root, "model.ffn_config.ffn_hidden_size"))
        return;
    char text[32];
    double product = strtod(ratio->text, NULL) * strtod(width->text, NULL);
    if (!(product >= 1 && product <= 1e9))
        return;
    snprintf(text, sizeof text, "%.0f", product);
    framework_add(words, ratio, "model.expansion_ratio", "ffn_hidden_size", launch_text(words, text, strlen(text)));
}

const struct framework framework_foundry = {.name = "llm-foundry",
                                            .signs = {"device_train_microbatch_size", "model"},
                                            .fixed = torch_fixed,
                                            .keys = foundry_keys,
                                            .more = foundry_more,
                                            .model = {"model.pretrained_model_name_or_path"}};

/* --- OLMo, until OLMo-core: mlp_hidden_size counts both halves of a gated one --- */

static const struct framework_word olmo_norms[] = {{"rms", "normalization", "RMSNorm"},
                                                   {"default", "normalization", "LayerNorm"},
                                                   {"low_precision", "normalization", "LayerNorm"},
                                                   {0}};
static const struct framework_word olmo_activations[] = {
    {"swiglu", "swiglu", "True"}, {"gelu", "swiglu", "False"}, {"relu", "swiglu", "False"}, {0}};
/* Of activation_checkpointing. */
static const struct framework_word olmo_recompute[] = {
    {"whole_layer", "recompute_granularity", "full"}, {"one_in_two", "recompute_granularity", "selective"},
    {"one_in_two", "recompute_every_layers", "2"},    {"one_in_three", "recompute_granularity", "selective"},
    {"one_in_three", "recompute_every_layers", "3"},  {"one_in_four", "recompute_granularity", "selective"},
    {"one_in_four", "recompute_every_layers", "4"},   {0}};
static const struct framework_word olmo_ways[] = {{"fsdp", "zero_stage", "3"}, {"ddp", "zero_stage", "0"}, {0}};
static const struct framework_word olmo_heads[] = {TRULY("num_query_groups", "1"), TRULY("group_query_attention", "True"), {0}};
/* Hybrid is so many copies of shards as another key says. */
static const struct framework_word olmo_sharding[] = {{"FULL_SHARD", "zero_stage", "3"},
                                                      {"SHARD_GRAD_OP", "zero_stage", "2"},
                                                      {"NO_SHARD", "zero_stage", "0"},
                                                      {"HYBRID_SHARD", "data_parallel_shard_degree", "-1"},
                                                      {0}};
static const struct framework_key olmo_keys[] = {
    AS("model.max_sequence_length", "seq_length"),
    AS("model.max_sequence_length", "max_position_embeddings"),
    AS("global_train_batch_size", "global_batch_size"),
    AS("device_train_microbatch_size", "micro_batch_size"),
    WORDS("precision", composer_types),
    WORDS("optimizer.name", framework_optimizers),
    AS("model.d_model", "hidden_size"),
    AS("model.n_layers", "num_layers"),
    AS("model.n_heads", "num_attention_heads"),
    WORDS("model.multi_query_attention", olmo_heads),
    AS("model.n_kv_heads", "num_query_groups"),
    AS("model.vocab_size", "vocab_size"),
    AS("model.embedding_size", "vocab_size"),
    AS("model.include_bias", "add_bias_linear"),
    AS("model.attention_layer_norm", "qk_layernorm"),
    AS("model.flash_attention", "use_flash_attn"),
    OPPOSITE("model.weight_tying", "untie_embeddings_and_output_weights"),
    WORDS("model.layer_norm_type", olmo_norms),
    WORDS("model.activation_type", olmo_activations),
    WORDS("model.alibi", composer_alibi),
    WORDS("model.rope", composer_rope),
    WORDS("distributed_strategy", olmo_ways),
    WORDS("fsdp.sharding_strategy", olmo_sharding),
    WORDS("fsdp.precision", composer_mixed),
    AS("fsdp.hybrid_sharding_num_model_replicas", "data_parallel_replicate_degree"),
    WORDS("activation_checkpointing", olmo_recompute),
    AS("fused_loss", "cross_entropy_loss_fusion"),
    {0},
};
static const struct framework_word olmo_fixed[] = {
    PLAIN_TORCH, {NULL, "zero_stage", "3"}, {NULL, "swiglu", "True"}, {NULL, "add_bias_linear", "False"}, {0}};
const struct framework framework_olmo = {.name = "OLMo",
                                         .signs = {"device_train_microbatch_size", "model.max_sequence_length"},
                                         .fixed = olmo_fixed,
                                         .keys = olmo_keys,
                                         .more = olmo_more};
