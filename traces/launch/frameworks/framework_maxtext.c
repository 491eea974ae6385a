/* MaxText: base.yml, and keys that its command line sets (per_device_batch_size=4). Not checked against the program. Axes:
 * megatron_mesh.c. */
#include <stdlib.h>
#include <string.h>

#include "traces/launch/frameworks/framework_rows.h"
#include "traces/launch/frameworks/framework_tree.h"

/* What keeps all products repeats norms and activations. Between that and nothing but the inputs of layers there are others,
 * which are told. */
#define REPEATS(word, modules)                                                                                                   \
    {word, "recompute_granularity", "selective"},                                                                                \
    {                                                                                                                            \
        word, "recompute_modules", modules                                                                                       \
    }
#define CHEAP_PARTS "layernorm mlp_act moe_act"
#define NEAR_PARTS(word, modules)                                                                                                \
    REPEATS(word, modules),                                                                                                      \
    {                                                                                                                            \
        word, "rematerialization_policy", word                                                                                   \
    }
#define NEAR_FULL(word)                                                                                                          \
    {word, "recompute_granularity", "full"},                                                                                     \
    {                                                                                                                            \
        word, "rematerialization_policy", word                                                                                   \
    }
static const struct framework_word policies[] = {{"full", "recompute_granularity", "full"},
                                                 REPEATS("minimal", CHEAP_PARTS),
                                                 REPEATS("minimal_flash", CHEAP_PARTS),
                                                 REPEATS("minimal_with_context", CHEAP_PARTS),
                                                 NEAR_PARTS("save_dot_with_context_except_mlp", "layernorm mlp moe"),
                                                 NEAR_PARTS("save_dot_except_mlp", "layernorm mlp moe"),
                                                 NEAR_PARTS("save_dot_except_mlpwi", "layernorm mlp moe"),
                                                 NEAR_FULL("save_qkv_proj"),
                                                 NEAR_FULL("save_out_proj"),
                                                 NEAR_FULL("qkv_proj_offloaded"),
                                                 NEAR_PARTS("minimal_offloaded", CHEAP_PARTS),
                                                 NEAR_FULL("custom"),
                                                 {0}};
static const struct framework_word types[] = {{"bfloat16", "bf16", "True"}, {"float32", "bf16", "False"}, {0}};
/* Optax's moments are of the weights' type, but for the first where mu_dtype says another. */
static const struct framework_word weight_types[] = {{"bfloat16", "main_params_dtype", "bf16"},
                                                     {"bfloat16", "exp_avg_dtype", "bf16"},
                                                     {"bfloat16", "exp_avg_sq_dtype", "bf16"},
                                                     {"float32", "main_params_dtype", "fp32"},
                                                     {0}};
static const struct framework_word moment_types[] = {
    {"bfloat16", "exp_avg_dtype", "bf16"}, {"float32", "exp_avg_dtype", "fp32"}, {0}};
static const struct framework_word gradient_types[] = {
    {"bfloat16", "grad_reduce_in_bf16", "True"}, {"float32", "grad_reduce_in_bf16", "False"}, {0}};
static const struct framework_word quantizations[] = {{"fp8", "fp8", "hybrid"},
                                                      {"fp8_full", "fp8", "hybrid"},
                                                      {"fp8_gpu", "fp8", "hybrid"},
                                                      {"nanoo_fp8", "fp8", "hybrid"},
                                                      {"te_fp8_delayedscaling", "fp8", "hybrid"},
                                                      {"te_fp8_currentscaling", "fp8", "hybrid"},
                                                      {"te_mxfp8", "fp8", "e4m3"},
                                                      {"te_mxfp8", "fp8_recipe", "mxfp8"},
                                                      {"int8", "eight_bit_integers", "int8"},
                                                      {"int8w", "eight_bit_integers", "int8w"},
                                                      {0}};
static const struct framework_word attentions[] = {{"autoselected", "use_flash_attn", "True"},
                                                   {"flash", "use_flash_attn", "True"},
                                                   {"cudnn_flash_te", "use_flash_attn", "True"},
                                                   {"cudnn_flash_jax", "use_flash_attn", "True"},
                                                   {"dot_product", "use_flash_attn", "False"},
                                                   {"dot_product", "attention_backend", "local"},
                                                   {0}};
#define WITHOUT_WINDOW(word, latent)                                                                                             \
    {word, "multi_latent_attention", latent},                                                                                    \
    {                                                                                                                            \
        word, "window_size", "0"                                                                                                 \
    }
static const struct framework_word attention_types[] = {WITHOUT_WINDOW("mla", "True"),
                                                        WITHOUT_WINDOW("global", "False"),
                                                        WITHOUT_WINDOW("full", "False"),
                                                        {"local_sliding", "multi_latent_attention", "False"},
                                                        {0}};
static const struct framework_word strategies[] = {
    {"all_gather", "cp_comm_type", "all_gather"}, {"ring", "cp_comm_type", "p2p"}, {0}};
static const struct framework_word optimizers[] = {
    {"adamw", "optimizer", "adam"}, {"adam_pax", "optimizer", "adam"},       {"sgd", "optimizer", "sgd"},
    {"muon", "optimizer", "muon"},  {"adafactor", "optimizer", "adafactor"}, {0}};
/* Blocks of layers: norms, positions, biases. */
#define LLAMA(word)                                                                                                              \
    {word, "normalization", "RMSNorm"}, {word, "position_embedding_type", "rope"},                                               \
    {                                                                                                                            \
        word, "add_bias_linear", "False"                                                                                         \
    }
static const struct framework_word blocks[] = {LLAMA("llama2"),
                                               LLAMA("mistral"),
                                               LLAMA("mixtral"),
                                               LLAMA("default"),
                                               LLAMA("qwen3"),
                                               {"qwen3", "qk_layernorm", "True"},
                                               LLAMA("qwen3_moe"),
                                               {"qwen3_moe", "qk_layernorm", "True"},
                                               LLAMA("deepseek"),
                                               LLAMA("gemma"),
                                               LLAMA("gemma2"),
                                               {"gpt3", "normalization", "LayerNorm"},
                                               {"gpt3", "position_embedding_type", "learned_absolute"},
                                               {"gpt3", "add_bias_linear", "True"},
                                               {0}};
static const struct framework_word preferences[] = {TRULY("training_objective", "dpo"), {0}};

static const struct framework_word by_host[] = {TRULY("offload_param", "cpu"), {0}};

#define AXIS(key, argument)                                                                                                      \
    AS("ici_" key "_parallelism", "mesh_ici_" argument), AS("dcn_" key "_parallelism", "mesh_dcn_" argument)
static const struct framework_key keys[] = {
    AS("per_device_batch_size", "device_batch_size"),
    AS("gradient_accumulation_steps", "gradient_accumulation_steps"),
    AS("max_target_length", "seq_length"),
    AS("max_target_length", "max_position_embeddings"),
    AS("steps", "train_iters"),
    AXIS("data", "data"),
    AXIS("fsdp", "fsdp"),
    AXIS("fsdp_transpose", "fsdp_transpose"),
    AXIS("tensor", "tensor"),
    AXIS("tensor_transpose", "tensor_transpose"),
    AXIS("tensor_sequence", "tensor_sequence"),
    AXIS("sequence", "sequence"),
    AXIS("context", "context"),
    AXIS("pipeline", "pipeline"),
    AXIS("expert", "expert"),
    AS("num_pipeline_microbatches", "pipeline_parallel_microbatches"),
    WORDS("context_parallel_strategy", strategies),
    AS("base_emb_dim", "hidden_size"),
    AS("base_mlp_dim", "ffn_hidden_size"),
    AS("base_num_decoder_layers", "num_layers"),
    AS("base_num_query_heads", "num_attention_heads"),
    AS("base_num_kv_heads", "num_query_groups"),
    AS("head_dim", "kv_channels"),
    AS("vocab_size", "vocab_size"),
    AS("global_parameter_scale", "global_parameter_scale"),
    AS("dropout_rate", "hidden_dropout"),
    OPPOSITE("logits_via_embedding", "untie_embeddings_and_output_weights"),
    WORDS("decoder_block", blocks),
    AS("use_qk_norm", "qk_layernorm"),
    AS("attention_bias", "add_qkv_bias"),
    AS("sliding_window_size", "window_size"),
    WORDS("attention_type", attention_types), /* behind the size of windows that it may not use */
    AS("q_lora_rank", "q_lora_rank"),
    AS("kv_lora_rank", "kv_lora_rank"),
    AS("qk_nope_head_dim", "qk_head_dim"),
    AS("qk_rope_head_dim", "qk_pos_emb_head_dim"),
    AS("v_head_dim", "v_head_dim"),
    AS("base_moe_mlp_dim", "moe_ffn_hidden_size"),
    AS("num_experts_per_tok", "moe_router_topk"),
    AS("use_random_routing", "moe_router_force_load_balancing"),
    AS("interleave_moe_layer_step", "moe_layer_freq"),
    AS("mtp_num_layers", "mtp_num_layers"),
    AS("shared_experts", "shared_experts"),
    AS("first_num_dense_layers", "first_dense_layers"),
    WORDS("remat_policy", policies),
    WORDS("dtype", types),
    WORDS("weight_dtype", weight_types),
    WORDS("mu_dtype", moment_types),
    WORDS("grad_dtype", gradient_types),
    WORDS("quantization", quantizations),
    WORDS("attention", attentions),
    WORDS("opt_type", optimizers),
    WORDS("use_dpo", preferences),
    AS("optimizer_memory_host_offload", "optimizer_cpu_offload"),
    WORDS("parameter_memory_host_offload", by_host),
    AS("shard_optimizer_over_data", "shard_optimizer_over_data"),
    OPPOSITE("override_model_config", "model_wins"),
    {0},
};

/* What base.yml has, and what XLA does: results are fused as compilers do it, exchanges run beside computations. */
static const struct framework_word fixed[] = {
    {NULL, "mesh_dcn_data", "-1"},
    {NULL, "pipeline_parallel_schedule", "GPipe"},
    {NULL, "model_wins", "True"},
    {NULL, "recompute_granularity", "full"},
    {NULL, "bf16", "True"},
    FRAMEWORK_OWN_MODULES,
    FRAMEWORK_LLAMA_LAYERS,
    {NULL, "use_flash_attn", "True"},
    {NULL, "torch_compile", "True"},
    {NULL, "untie_embeddings_and_output_weights", "True"},
    {NULL, "scatter_gather_tensors_in_pipeline", "False"},
    {NULL, "cross_entropy_loss_fusion", "False"},
    {NULL, "cp_comm_type", "all_gather"},
    {NULL, "expert_tensor_parallel_size", "1"},
    {NULL, "kv_lora_rank", "512"},
    {NULL, "moe_grouped_gemm", "True"},
    {NULL, "moe_token_dispatcher_type", "alltoall"},
    {0},
};

/* Its names of models, where the catalog has others. */
static const struct framework_word models[] = {{"deepseek2-236b", NULL, "deepseek-v2"},
                                               {"deepseek2-16b", NULL, "deepseek-v2-lite"},
                                               {"deepseek3-671b", NULL, "deepseek-v3"},
                                               {"llama4-17b-16e", NULL, "llama4-scout"},
                                               {"llama4-17b-128e", NULL, "llama4-maverick"},
                                               {"kimi-k2-1t", NULL, "kimi-k2"},
                                               {"llama3.1-8b", NULL, "llama3-8b"},
                                               {"llama3.1-70b", NULL, "llama3-70b"},
                                               {"llama3.3-70b", NULL, "llama3-70b"},
                                               {"gpt3-6b", NULL, "gpt3-6.7b"},
                                               {"gpt3-22b", NULL, "gpt-22b"},
                                               {0}};

static void add_above_zero(struct launch_words *words, const struct yaml_node *root, const char *key, const char *name)
{
    const struct yaml_node *node = framework_find(root, key);
    if (node && node->kind == YAML_SCALAR && strtol(node->text, NULL, 10) > 0)
        framework_add(words, node, key, name, framework_text(words, node));
}

/* [silu, linear] is a gate beside what goes up; one expert is none. Experts as products of whole matrices have tensors of so many
 * tokens each; those of ragged ones (sparse_matmul, unless told otherwise) drop nothing, whatever the capacity. */
static void read_more(struct launch_words *words, const struct yaml_node *root)
{
    const struct yaml_node *activations = framework_find(root, "mlp_activations"), *experts = framework_find(root, "num_experts");
    int n = 0;
    for (const struct yaml_node *item = activations && activations->kind == YAML_SEQUENCE ? activations->first : NULL; item;
         item = item->next)
        n++;
    if (n > 0)
        framework_add(words, activations, "mlp_activations", "swiglu", n > 1 ? "True" : "False");
    if (experts && experts->kind == YAML_SCALAR)
        framework_add(words, experts, "num_experts", "num_experts",
                      strcmp(experts->text, "1") == 0 ? "0" : framework_text(words, experts));
    add_above_zero(words, root, "n_routing_groups", "moe_router_num_groups"); /* -1: none */
    add_above_zero(words, root, "topk_routing_group", "moe_router_group_topk");
    const struct yaml_node *capacity = framework_find(root, "capacity_factor"), *sparse = framework_find(root, "sparse_matmul");
    bool dense = sparse && sparse->kind == YAML_SCALAR && !framework_is_true(sparse->text);
    if (dense && capacity && capacity->kind == YAML_SCALAR && strtod(capacity->text, NULL) > 0) {
        framework_add(words, capacity, "capacity_factor", "moe_expert_capacity_factor", framework_text(words, capacity));
        framework_add(words, capacity, "capacity_factor", "moe_pad_expert_input_to_capacity", "True");
    }
}

/* Data, logging, checkpoints, serving; numbers that cost nothing. */
static const char *const ignored[] = {"run_name",
                                      "base_config",
                                      "base_output_directory",
                                      "mlp_activations",
                                      "num_experts",
                                      "capacity_factor",
                                      "model_name",
                                      "enable_*",
                                      "async_checkpointing",
                                      "checkpoint_*",
                                      "load_*",
                                      "save_*",
                                      "restore_*",
                                      "force_unroll",
                                      "hlo_*",
                                      "dump_*",
                                      "profile*",
                                      "skip_first_n_steps_for_profiler",
                                      "upload_*",
                                      "jax_*",
                                      "compil*",
                                      "tokenize*",
                                      "hf_*",
                                      "dataset_*",
                                      "grain_*",
                                      "train_*",
                                      "eval_*",
                                      "learning_rate*",
                                      "warmup_*",
                                      "cosine_*",
                                      "adam_*",
                                      "gradient_clipping_*",
                                      "log_*",
                                      "vertex_*",
                                      "use_vertex_*",
                                      "prompt",
                                      "inference_*",
                                      "prefill_*",
                                      "autoregressive_*",
                                      "decode_*",
                                      "ar_cache_*",
                                      "kv_quant_*",
                                      "quantize_kvcache",
                                      "compute_axis_*",
                                      "reshape_q",
                                      "logical_axis_rules",
                                      "data_sharding",
                                      "mesh_axes",
                                      "context_parallel_load_balance",
                                      "rope_*",
                                      "normalization_layer_epsilon",
                                      "attn_logits_*",
                                      "final_logits_*",
                                      "z_loss_*",
                                      "init_weights_seed",
                                      "data_shuffle_seed",
                                      "colocated_*",
                                      "monitor_*",
                                      "metrics_*",
                                      "tensorboard_*",
                                      "gcs_*",
                                      "stack_trace_*",
                                      "trace_*",
                                      "managed_*",
                                      "elastic_*",
                                      "goodput_*",
                                      "num_slices",
                                      "scan_layers",
                                      "param_scan_axis",
                                      "hardware",
                                      "dpo_*",
                                      "use_sft",
                                      "sft_*",
                                      "packing",
                                      "float32_*",
                                      "activations_in_float32",
                                      "matmul_precision",
                                      "cast_logits_to_fp32",
                                      "logits_dot_in_fp32",
                                      "expansion_factor_real_data",
                                      "megablox",
                                      "sparse_matmul",
                                      "load_balance_loss_weight",
                                      "routed_*",
                                      "use_iota_embed",
                                      "reuse_example_batch",
                                      "generate_padding_batch_*",
                                      "add_bos",
                                      "add_eos",
                                      "use_post_*",
                                      "dataset",
                                      "allow_split_physical_axes",
                                      "optimize_mesh_for_tpu_v6e",
                                      "custom_mesh",
                                      "shard_mode",
                                      "ici_autoregressive_parallelism",
                                      "dcn_autoregressive_parallelism",
                                      "num_layers_per_pipeline_stage",
                                      "num_pipeline_repeats",
                                      "scan_pipeline_*",
                                      "set_remat_policy_on_*",
                                      "pipeline_delay_activation_forwarding",
                                      "record_internal_*",
                                      "report_*",
                                      "eos_id",
                                      "n_routing_groups",
                                      "topk_routing_group",
                                      "override_logical_axis_rules",
                                      "max_num_checkpoints_to_keep",
                                      "local_checkpoint_*",
                                      "lora_input_adapters_path",
                                      "constant_bound_config",
                                      "quantization_local_shard_count",
                                      "weight_quantization_*",
                                      "act_quantization_*",
                                      "bwd_quantization_*",
                                      "quant_cfg_path",
                                      "quantization_rule_path",
                                      "use_qwix_quantization",
                                      "model_call_mode",
                                      "normalize_embedding_logits",
                                      "mtp_loss_scaling_factor",
                                      "mtp_eval_*",
                                      "use_custom_sort_vjp",
                                      "tile_*",
                                      "norm_topk_prob",
                                      "decoder_layer_input",
                                      "context",
                                      "mlpwi",
                                      "mlpwi_0",
                                      "mlpwi_1",
                                      "mlpwo",
                                      "query_proj",
                                      "key_proj",
                                      "value_proj",
                                      "qkv_proj",
                                      "out_proj",
                                      "query_wa_proj",
                                      "kv_wa_proj",
                                      "mla_q",
                                      "mla_kv",
                                      "attention_out",
                                      "mla_naive_kvcache",
                                      "mla_interleaved_rope",
                                      "qk_clip_*",
                                      "use_qk_clip",
                                      "internal_compile*",
                                      "input_data_sharding_*",
                                      "sharding_tolerance",
                                      "ici_context_autoregressive_parallelism",
                                      "dcn_context_autoregressive_parallelism",
                                      "use_chat_template",
                                      "chat_template_path",
                                      "use_truncation",
                                      "max_corpus_chars",
                                      "num_epoch",
                                      "max_prefill_predict_length",
                                      "max_checkify",
                                      "collect_stack_trace",
                                      "local_rope_max_timescale",
                                      "trainable_position_size",
                                      "freeze_vision_encoder_params",
                                      "shardy",
                                      "use_tokamax_splash",
                                      "use_jax_splash",
                                      "sa_*",
                                      "use_max_logit_estimate",
                                      "cost_estimate_*",
                                      "context_sharding",
                                      "subslice_shape",
                                      "debug",
                                      "steps_*",
                                      "query_pre_attn_scalar",
                                      "max_position_embeddings",
                                      "original_max_position_embeddings",
                                      "partial_rotary_factor",
                                      NULL};

const struct framework framework_maxtext = {.name = "MaxText",
                                            .signs = {"per_device_batch_size", "max_target_length"},
                                            .fixed = fixed,
                                            .keys = keys,
                                            .model = {"model_name"},
                                            .models = models,
                                            .unset = "default",
                                            .base = "base.yml",
                                            .more = read_more,
                                            .ignored = ignored};
