#include "traces/launch/frameworks/framework_tables.h"

#include <stddef.h>

#include "traces/launch/frameworks/framework_rows.h"
#include "traces/launch/frameworks/framework_tree.h"

/* --- NeMo 1: examples/nlp/language_modeling/conf/megatron_gpt_config.yaml --- */

static const struct framework_word nemo_precisions[] = {
    {"bf16", "bf16", "True"},     {"bf16-mixed", "bf16", "True"}, {"16", "fp16", "True"},
    {"16-mixed", "fp16", "True"}, {"32", "bf16", "False"},        {0},
};
static const struct framework_word nemo_norms[] = {
    {"layernorm", "normalization", "LayerNorm"},
    {"layernorm1p", "normalization", "LayerNorm"},
    {"low_precision_layernorm", "normalization", "LayerNorm"},
    {"rmsnorm", "normalization", "RMSNorm"},
    {0},
};
static const struct framework_word nemo_activations[] = {
    {"swiglu", "swiglu", "True"},     {"fast-swiglu", "swiglu", "True"},   {"geglu", "swiglu", "True"},
    {"fast-geglu", "swiglu", "True"}, {"reglu", "swiglu", "True"},         {"fast-reglu", "swiglu", "True"},
    {"gelu", "swiglu", "False"},      {"squared-relu", "swiglu", "False"}, {0},
};
static const struct framework_word nemo_optimizers[] = {
    {"mcore_distributed_optim", "use_distributed_optimizer", "True"},
    {"distributed_fused_adam", "use_distributed_optimizer", "True"},
    {"fused_adam", "use_distributed_optimizer", "False"},
    {"mcore_distributed_optim", "overlap_grad_reduce", "False"}, /* unless told; Apex's overlaps */
    {"mcore_distributed_optim", "overlap_param_gather", "False"},
    {0},
};
static const struct framework_word nemo_sums[] = {{"bf16", "grad_reduce_in_bf16", "True"},
                                                  {"bfloat16", "grad_reduce_in_bf16", "True"},
                                                  {"torch.bfloat16", "grad_reduce_in_bf16", "True"},
                                                  {"fp32", "grad_reduce_in_bf16", "False"},
                                                  {"float32", "grad_reduce_in_bf16", "False"},
                                                  {"torch.float32", "grad_reduce_in_bf16", "False"},
                                                  {0}};
static const struct framework_word nemo_engine[] = {
    {"True", "transformer_impl", "transformer_engine"},
    {"true", "transformer_impl", "transformer_engine"},
    {"False", "transformer_impl", "local"},
    {"false", "transformer_impl", "local"},
    {0},
};
/* Fine-tuning over several samples in a row, each of which attends to itself. */
const struct framework_word framework_packed[] = {
    {"True", "reset_attention_mask", "True"},
    {"true", "reset_attention_mask", "True"},
    {0},
};
static const struct framework_word nemo_fsdp[] = {
    {"True", "zero_stage", "3"},
    {"true", "zero_stage", "3"},
    {0},
};

/* fp8 switches, the others choose. */
static const struct framework_word nemo_fp8[] = {{"True", "fp8", "hybrid"}, {"true", "fp8", "hybrid"}, {0}};
static const struct framework_word nemo_fp8_e4m3[] = {{"True", "fp8", "e4m3"}, {"true", "fp8", "e4m3"}, {0}};
static const struct framework_word nemo_no_fp8[] = {{"False", "fp8", "None"}, {"false", "fp8", "None"}, {0}};

#define SAME(key) AS("model." key, key)

static const struct framework_key nemo_keys[] = {
    AS("trainer.devices", "nproc_per_node"),
    AS("trainer.num_nodes", "nnodes"),
    AS("trainer.max_steps", "train_iters"),
    WORDS("trainer.precision", nemo_precisions),
    SAME("micro_batch_size"),
    SAME("global_batch_size"),
    SAME("rampup_batch_size"),
    SAME("tensor_model_parallel_size"),
    SAME("pipeline_model_parallel_size"),
    SAME("virtual_pipeline_model_parallel_size"),
    SAME("context_parallel_size"),
    SAME("cp_comm_type"),
    SAME("hierarchical_context_parallel_sizes"),
    SAME("expert_model_parallel_size"),
    SAME("expert_tensor_parallel_size"),
    SAME("account_for_embedding_in_pipeline_split"),
    SAME("account_for_loss_in_pipeline_split"),
    SAME("sequence_parallel"),
    AS("model.encoder_seq_length", "seq_length"),
    SAME("max_position_embeddings"),
    SAME("num_layers"),
    SAME("hidden_size"),
    SAME("ffn_hidden_size"),
    SAME("num_attention_heads"),
    SAME("kv_channels"),
    AS("model.num_query_groups", "num_query_groups"),
    SAME("hidden_dropout"),
    SAME("make_vocab_size_divisible_by"),
    AS("model.override_vocab_size", "vocab_size"),
    AS("model.tokenizer.type", "tokenizer_model"),
    AS("model.bias", "add_bias_linear"),
    SAME("add_qkv_bias"), /* fields of Megatron-Core's TransformerConfig pass through */
    SAME("qk_layernorm"),
    SAME("moe_layer_freq"),
    OPPOSITE("model.share_embeddings_and_output_weights", "untie_embeddings_and_output_weights"),
    WORDS("model.normalization", nemo_norms),
    WORDS("model.activation", nemo_activations),
    SAME("position_embedding_type"),
    SAME("rotary_base"),
    SAME("window_size"),
    AS("model.num_moe_experts", "num_experts"),
    SAME("moe_router_topk"),
    SAME("moe_grouped_gemm"),
    SAME("moe_ffn_hidden_size"),
    SAME("moe_shared_expert_intermediate_size"),
    SAME("moe_token_dispatcher_type"),
    SAME("moe_expert_capacity_factor"),
    SAME("moe_pad_expert_input_to_capacity"),
    SAME("moe_router_force_load_balancing"),
    AS("model.activations_checkpoint_granularity", "recompute_granularity"),
    AS("model.activations_checkpoint_method", "recompute_method"),
    AS("model.activations_checkpoint_num_layers", "recompute_num_layers"),
    AS("model.bias_activation_fusion", "bias_gelu_fusion"),
    AS("model.bias_activation_fusion", "bias_swiglu_fusion"),
    AS("model.bias_dropout_add_fusion", "bias_dropout_fusion"),
    SAME("masked_softmax_fusion"),
    SAME("activation_func_fp8_input_store"),
    SAME("cross_entropy_loss_fusion"),
    SAME("cross_entropy_fusion_impl"),
    SAME("gradient_accumulation_fusion"),
    AS("model.use_flash_attention", "use_flash_attn"),
    WORDS("model.transformer_engine", nemo_engine),
    WORDS("model.fp8", nemo_fp8),
    WORDS("model.fp8_e4m3", nemo_fp8_e4m3),
    WORDS("model.fp8_hybrid", nemo_fp8),
    WORDS("model.fp8", nemo_no_fp8),
    AS("model.ub_tp_comm_overlap", "tp_comm_overlap"),
    AS("model.overlap_p2p_comm", "overlap_p2p_comm"),
    SAME("cpu_offloading"),
    SAME("cpu_offloading_num_layers"),
    SAME("enable_cuda_graph"),
    WORDS("model.fsdp", nemo_fsdp),
    WORDS("model.optim.name", nemo_optimizers),
    WORDS("model.optim.grad_sync_dtype", nemo_sums),
    AS("model.optim.overlap_grad_sync", "overlap_grad_reduce"),
    AS("model.optim.overlap_param_sync", "overlap_param_gather"),
    AS("model.data.num_workers", "num_workers"),
    AS("model.data.reset_attention_mask", "reset_attention_mask"),
    AS("model.data.reset_position_ids", "reset_position_ids"),
    WORDS("model.data.train_ds.packed_sequence", framework_packed),
    AS("model.peft", "adapter"),
    AS("peft", "adapter"),
    AS("model.peft.peft_scheme", "adapter"),
    AS("peft.peft_scheme", "adapter"),
    AS("model.peft.lora_tuning.adapter_dim", "adapter_rank"),
    AS("model.peft.lora_tuning.target_modules", "adapter_targets"),
    AS("model.peft.lora_tuning.adapter_dropout", "adapter_dropout"),
    AS("model.peft.lora_tuning.layer_selection", "adapter_layers"),
    AS("model.peft.lora_tuning.weight_tying", "adapter_sharing"),
    {0},
};

/* Overlaps that its distributed Adam does unless told otherwise; what its recipes of fine-tuning have for LoRA. */
static const struct framework_word nemo_fixed[] = {
    {NULL, "overlap_grad_reduce", "True"},           {NULL, "overlap_param_gather", "True"},
    {NULL, "moe_token_dispatcher_type", "alltoall"}, {NULL, "adapter_rank", "32"},
    {NULL, "adapter_targets", "attention_qkv"},      {0}};

/* --- nanotron: config classes ParallelismArgs, TokensArgs, ModelArgs (LlamaConfig) --- */

static const struct framework_word nanotron_modes[] = {
    {"REDUCE_SCATTER", "sequence_parallel", "True"}, {"ALL_REDUCE", "sequence_parallel", "False"}, {0}};
static const struct framework_word nanotron_types[] = {
    {"bfloat16", "bf16", "True"}, {"float16", "fp16", "True"}, {"float32", "bf16", "False"}, {0}};
static const struct framework_word nanotron_recompute[] = {TRULY("recompute_granularity", "full"), {0}};

static const struct framework_word nanotron_engines[] = {
    {"1f1b", NULL, NULL}, {"afab", "pipeline_parallel_schedule", "GPipe"}, {0}};

static const struct framework_key nanotron_keys[] = {
    WORDS("parallelism.pp_engine", nanotron_engines),
    AS("parallelism.dp", "data_parallel_size"),
    AS("parallelism.tp", "tensor_model_parallel_size"),
    AS("parallelism.pp", "pipeline_model_parallel_size"),
    AS("parallelism.context_parallel_size", "context_parallel_size"),
    AS("parallelism.expert_parallel_size", "expert_model_parallel_size"),
    WORDS("parallelism.tp_mode", nanotron_modes),
    AS("parallelism.tp_linear_async_communication", "tp_comm_overlap"),
    WORDS("parallelism.recompute_layer", nanotron_recompute),
    AS("tokens.sequence_length", "seq_length"),
    AS("tokens.micro_batch_size", "micro_batch_size"),
    AS("tokens.train_steps", "train_iters"),
    WORDS("model.dtype", nanotron_types),
    AS("model.make_vocab_size_divisible_by", "make_vocab_size_divisible_by"),
    AS("model.model_config.num_hidden_layers", "num_layers"),
    AS("model.model_config.hidden_size", "hidden_size"),
    AS("model.model_config.intermediate_size", "ffn_hidden_size"),
    AS("model.model_config.num_attention_heads", "num_attention_heads"),
    AS("model.model_config.num_key_value_heads", "num_query_groups"),
    AS("model.model_config.vocab_size", "vocab_size"),
    AS("model.model_config.max_position_embeddings", "max_position_embeddings"),
    AS("model.model_config.rope_theta", "rotary_base"),
    OPPOSITE("model.model_config.tie_word_embeddings", "untie_embeddings_and_output_weights"),
    AS("optimizer.zero_stage", "zero_stage"),
    WORDS("optimizer.optimizer_factory.name", framework_optimizers),
    OPPOSITE("optimizer.accumulate_grad_in_fp32", "grad_reduce_in_bf16"),
    {0},
};

/* Experts of its Qwen (from memory), which are read and, its LLaMA having none, not written. */
static void nanotron_more(struct launch_words *words, const struct yaml_node *root)
{
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

/* A LLaMA model by eager PyTorch around FlashAttention; gradients are reduced while the backward pass runs. */
static const struct framework_word nanotron_fixed[] = {
    {NULL, "swiglu", "True"},
    {NULL, "normalization", "RMSNorm"},
    {NULL, "position_embedding_type", "rope"},
    {NULL, "add_bias_linear", "False"},
    {NULL, "transformer_impl", "local"},
    {NULL, "use_flash_attn", "True"},
    {NULL, "bias_swiglu_fusion", "False"},
    {NULL, "bias_dropout_fusion", "False"},
    {NULL, "hidden_dropout", "0"},
    {NULL, "make_vocab_size_divisible_by", "1"},
    {NULL, "overlap_grad_reduce", "True"},
    {NULL, "overlap_param_gather", "True"},
    {NULL, "scatter_gather_tensors_in_pipeline", "False"},
    {NULL, "cross_entropy_loss_fusion", "False"},
    {0},
};

/* --- DeepSpeed: its configuration in JSON --- */

/* Gradients are of the weights' type; "auto" is what the trainer says, which in fp16 asks for none of it. */
static const struct framework_word deepspeed_bf16[] = {
    {"true", "bf16", "True"}, {"true", "grad_reduce_in_bf16", "True"}, {"auto", "grad_reduce_in_bf16", "True"}, {0}};
static const struct framework_word deepspeed_host[] = {{"true", "offload_optimizer", "cpu"}, {0}};
static const struct framework_word deepspeed_overlap[] = {{"true", "overlap_grad_reduce", "True"},
                                                          {"true", "overlap_param_gather", "True"},
                                                          {"false", "overlap_grad_reduce", "False"},
                                                          {0}};

static const struct framework_word deepspeed_sums[] = {{"fp32", "grad_reduce_in_bf16", "False"},
                                                       {"bf16", "grad_reduce_in_bf16", "True"},
                                                       {"bfp16", "grad_reduce_in_bf16", "True"},
                                                       {0}};
/* Of its bf16 without a stage; sums are made at once unless told otherwise. */
static const struct framework_word deepspeed_late[] = {{"false", "late_gradient_sums", "True"}, {0}};
static const struct framework_word deepspeed_fixed[] = {{NULL, "run_by_deepspeed", "True"}, {0}};
static const struct framework_word deepspeed_fp8[] = {{"true", "fp8", "hybrid"}, {0}};

static const struct framework_key deepspeed_keys[] = {
    AS("train_batch_size", "global_batch_size"),
    AS("train_micro_batch_size_per_gpu", "micro_batch_size"),
    AS("gradient_accumulation_steps", "gradient_accumulation_steps"),
    AS("zero_optimization.stage", "zero_stage"),
    WORDS("zero_optimization.overlap_comm", deepspeed_overlap),
    WORDS("zero_optimization.cpu_offload", deepspeed_host), /* until 2021 */
    AS("zero_optimization.offload_optimizer.device", "offload_optimizer"),
    AS("zero_optimization.offload_optimizer.ratio", "optimizer_offload_fraction"),
    AS("zero_optimization.offload_param.device", "offload_param"),
    AS("zero_optimization.zero_hpz_partition_size", "zero_hpz_partition_size"),
    AS("zero_optimization.zero_quantized_weights", "zero_quantized_weights"),
    AS("zero_optimization.zero_quantized_gradients", "zero_quantized_gradients"),
    AS("zero_optimization.mics_shard_size", "mics_shard_size"),
    AS("sequence_parallel_size", "ds_sequence_parallel_size"),
    AS("tensor_parallel.autotp_size", "tensor_model_parallel_size"),
    AS("activation_checkpointing.partition_activations", "distribute_saved_activations"),
    AS("activation_checkpointing.cpu_checkpointing", "cpu_checkpointing"),
    WORDS("optimizer.type", framework_optimizers),
    WORDS("bf16.enabled", deepspeed_bf16),
    WORDS("bfloat16.enabled", deepspeed_bf16), /* its older name */
    WORDS("bf16.immediate_grad_update", deepspeed_late),
    AS("fp16.enabled", "fp16"),
    WORDS("torch_autocast.enabled", deepspeed_bf16),
    WORDS("data_types.grad_accum_dtype", deepspeed_sums),
    WORDS("fp8.enabled", deepspeed_fp8),
    {0},
};

/* --- NeMo 2: a recipe as NeMo-Run writes it --- */

const struct framework_word framework_nemo2_precisions[] = {
    {"bf16-mixed", "bf16", "True"}, {"bf16", "bf16", "True"}, {"16-mixed", "fp16", "True"},
    {"16", "fp16", "True"},         {"32", "bf16", "False"},  {0},
};
/* By its name alone LoRA has the rank and the matrices that its class has. */
#define PEFT_NAMED(word)                                                                                                         \
    {word, "adapter_rank", "32"},                                                                                                \
    {                                                                                                                            \
        word, "adapter_targets", "linear_qkv linear_proj linear_fc1 linear_fc2"                                                  \
    }
const struct framework_word framework_peft_words[] = {PEFT_NAMED("lora"), PEFT_NAMED("qlora"), PEFT_NAMED("dora"), {0}};
/* Classes of both, which are called alike; what LoRA is unless told otherwise. */
#define PEFT_KEYS                                                                                                                \
    BOTH("peft", "adapter", framework_peft_words), AS("peft.peft_scheme", "adapter"), AS("peft._target_", "adapter"),            \
        AS("peft.dim", "adapter_rank"), AS("peft.target_modules", "adapter_targets"),                                            \
        AS("peft.exclude_modules", "adapter_excluded"), AS("peft.dropout", "adapter_dropout")
#define PEFT_USUAL                                                                                                               \
    {NULL, "adapter_rank", "32"},                                                                                                \
    {                                                                                                                            \
        NULL, "adapter_targets", "linear_qkv linear_proj linear_fc1 linear_fc2"                                                  \
    }

static const struct framework_key nemo2_keys[] = {
    AS("trainer.devices", "nproc_per_node"),
    AS("trainer.num_nodes", "nnodes"),
    AS("trainer.max_steps", "train_iters"),
    WORDS("trainer.plugins.precision", framework_nemo2_precisions),
    OPPOSITE("trainer.strategy.ddp.grad_reduce_in_fp32", "grad_reduce_in_bf16"),
    OPPOSITE("trainer.plugins.grad_reduce_in_fp32", "grad_reduce_in_bf16"), /* wins, as Megatron-Bridge's does */
    AS("trainer.plugins.fp8_params", "fp8_param_gather"),
    AS("trainer.strategy.num_layers_in_first_pipeline_stage", "decoder_first_pipeline_num_layers"),
    AS("trainer.strategy.num_layers_in_last_pipeline_stage", "decoder_last_pipeline_num_layers"),
    AS("model.config.gated_linear_unit", "swiglu"),
    AS("model.config.num_moe_experts", "num_experts"),
    AS("model.config.seq_length", "max_position_embeddings"),
    AS("model.config.bias_activation_fusion", "bias_gelu_fusion"),
    AS("model.config.bias_activation_fusion", "bias_swiglu_fusion"),
    OPPOSITE("model.config.share_embeddings_and_output_weights", "untie_embeddings_and_output_weights"),
    PEFT_KEYS,
    {0},
};
static const char *const nemo2_groups[] = {"trainer.strategy", "trainer.strategy.ddp",
                                           "trainer.plugins",  "trainer.callbacks",
                                           "model.config",     "data",
                                           "optim.config",     NULL};

/* GPTConfig of its collections: fused loss, grouped experts. */
static const struct framework_word nemo2_fixed[] = {
    {NULL, "cross_entropy_loss_fusion", "True"},
    {NULL, "moe_grouped_gemm", "True"},
    {NULL, "moe_token_dispatcher_type", "alltoall"},
    {NULL, "hidden_dropout", "0"},
    PEFT_USUAL,
    {0},
};

/* What recipes that pre-train have by themselves: mixed precision whose sums are in fp32, and its optimizer divided (from
 * memory). Their layouts and batches differ. */
const struct framework_word framework_nemo_recipe[] = {
    {NULL, "bf16", "True"},
    {NULL, "use_distributed_optimizer", "True"},
    {NULL, "overlap_grad_reduce", "True"},
    {NULL, "overlap_param_gather", "True"},
    {NULL, "cross_entropy_loss_fusion", "True"},
    {NULL, "moe_grouped_gemm", "True"},
    {NULL, "moe_token_dispatcher_type", "alltoall"},
    {NULL, "hidden_dropout", "0"},
    {NULL, "recipe_layout", "its own"},
    {0},
};

/* --- Megatron-Bridge: the ConfigContainer that it writes beside its checkpoints --- */

const struct framework_word framework_bridge_precisions[] = {
    {"bf16_mixed", "bf16", "True"},
    {"fp16_mixed", "fp16", "True"},
    {"fp16_mixed", "bf16", "False"},
    {"bf16_with_fp8_mixed", "bf16", "True"}, /* NeMo 2's name of the next */
    {"bf16_with_fp8_mixed", "fp8", "hybrid"},
    {"bf16_with_fp8_delayed_scaling_mixed", "bf16", "True"},
    {"bf16_with_fp8_delayed_scaling_mixed", "fp8", "hybrid"},
    {"bf16_with_fp8_current_scaling_mixed", "fp8", "hybrid"},
    {"bf16_with_fp8_subchannel_scaling_mixed", "fp8", "hybrid"},
    {"bf16_with_fp8_subchannel_scaling_mixed", "fp8_recipe", "blockwise"},
    {"bf16_with_mxfp8_mixed", "bf16", "True"},
    {"bf16_with_mxfp8_mixed", "fp8", "e4m3"},
    {"bf16_with_mxfp8_mixed", "fp8_recipe", "mxfp8"},
    {"get_mixed_precision_config", NULL, NULL}, /* in a program the call of one of these, or of what names one or makes another */
    {"MixedPrecisionConfig", NULL, NULL},
    {0},
};
static const struct framework_word bridge_paddings[] = {
    {"false", "make_vocab_size_divisible_by", "1"}, {"False", "make_vocab_size_divisible_by", "1"}, TRULY(NULL, NULL), {0}};
static const struct framework_key bridge_keys[] = {
    WORDS("mixed_precision", framework_bridge_precisions),
    WORDS("mixed_precision._target_", framework_bridge_precisions),
    WORDS("mixed_precision._args_", framework_bridge_precisions), /* of get_mixed_precision_config */
    OPPOSITE("ddp.grad_reduce_in_fp32", "grad_reduce_in_bf16"),
    OPPOSITE("mixed_precision.grad_reduce_in_fp32", "grad_reduce_in_bf16"),
    AS("model.num_layers_in_first_pipeline_stage", "decoder_first_pipeline_num_layers"),
    AS("model.num_layers_in_last_pipeline_stage", "decoder_last_pipeline_num_layers"),
    AS("model.gated_linear_unit", "swiglu"),
    AS("model.num_moe_experts", "num_experts"),
    WORDS("model.should_pad_vocab", bridge_paddings), /* behind what it would be padded to */
    AS("model.seq_length", "max_position_embeddings"),
    AS("model.bias_activation_fusion", "bias_gelu_fusion"),
    AS("model.bias_activation_fusion", "bias_swiglu_fusion"),
    OPPOSITE("model.share_embeddings_and_output_weights", "untie_embeddings_and_output_weights"),
    AS("dataset.sequence_length", "seq_length"),
    PEFT_KEYS,
    {0},
};
static const char *const bridge_groups[] = {"model",   "train",           "ddp",          "optimizer",
                                            "dataset", "mixed_precision", "comm_overlap", NULL};
/* What an export says, of recipes whose own values differ; what few of them have, only where there is something to say. Precision
 * and overlap it says by itself. */
static const char *const bridge_written[] = {
    "model.tensor_model_parallel_size",
    "model.pipeline_model_parallel_size",
    "?model.virtual_pipeline_model_parallel_size",
    "?model.pipeline_model_parallel_layout",
    "?model.num_layers_in_first_pipeline_stage",
    "?model.num_layers_in_last_pipeline_stage",
    "model.account_for_embedding_in_pipeline_split",
    "model.account_for_loss_in_pipeline_split",
    "model.context_parallel_size",
    "model.cp_comm_type",
    "model.hierarchical_context_parallel_sizes",
    "model.expert_model_parallel_size",
    "model.expert_tensor_parallel_size",
    "model.sequence_parallel",
    "model.num_layers",
    "model.hidden_size",
    "model.ffn_hidden_size",
    "model.num_attention_heads",
    "model.num_query_groups",
    "model.kv_channels",
    "model.vocab_size",
    "model.make_vocab_size_divisible_by",
    "model.position_embedding_type",
    "model.rotary_base",
    "model.normalization",
    "model.gated_linear_unit",
    "model.add_bias_linear",
    "model.add_qkv_bias",
    "model.qk_layernorm",
    "model.share_embeddings_and_output_weights",
    "!model.multi_latent_attention",
    "?model.q_lora_rank",
    "model.kv_lora_rank",
    "model.qk_head_dim",
    "model.qk_pos_emb_head_dim",
    "model.v_head_dim",
    "model.window_size",
    "model.window_attn_skip_freq",
    "model.num_moe_experts",
    "model.moe_router_topk",
    "model.moe_router_num_groups",
    "model.moe_router_group_topk",
    "?model.moe_expert_capacity_factor",
    "model.moe_pad_expert_input_to_capacity",
    "model.moe_ffn_hidden_size",
    "?model.moe_shared_expert_intermediate_size",
    "model.moe_layer_freq",
    "model.moe_grouped_gemm",
    "model.moe_token_dispatcher_type",
    "?model.mtp_num_layers",
    "model.hidden_dropout",
    "model.attention_dropout",
    "model.bias_activation_fusion",
    "model.bias_dropout_fusion",
    "model.cross_entropy_loss_fusion",
    "model.cross_entropy_fusion_impl",
    "model.cuda_graph_impl",
    "?model.recompute_granularity",
    "?model.recompute_method",
    "?model.recompute_num_layers",
    "?model.recompute_modules",
    "model.cpu_offloading",
    "model.cpu_offloading_num_layers",
    "train.global_batch_size",
    "train.micro_batch_size",
    "dataset.sequence_length",
    "dataset.num_workers",
    "dataset.reset_attention_mask",
    "dataset.reset_position_ids",
    "ddp.use_distributed_optimizer",
    "!ddp.num_distributed_optimizer_instances",
    "!ddp.use_megatron_fsdp",
    "!ddp.data_parallel_sharding_strategy",
    "ddp.grad_reduce_in_fp32",
    "optimizer.optimizer",
    "optimizer.use_distributed_optimizer",
    "!optimizer.optimizer_cpu_offload",
    "!optimizer.optimizer_offload_fraction",
    "!optimizer.use_precision_aware_optimizer",
    NULL,
};
static const struct framework_word bridge_fixed[] = {{NULL, "bf16", "True"}, PEFT_USUAL, {0}};

/* The same of NeMo 2. */
static const char *const nemo2_written[] = {
    "trainer.devices",
    "trainer.num_nodes",
    "trainer.strategy.tensor_model_parallel_size",
    "trainer.strategy.pipeline_model_parallel_size",
    "?trainer.strategy.virtual_pipeline_model_parallel_size",
    "?trainer.strategy.num_layers_in_first_pipeline_stage",
    "?trainer.strategy.num_layers_in_last_pipeline_stage",
    "trainer.strategy.account_for_embedding_in_pipeline_split",
    "trainer.strategy.account_for_loss_in_pipeline_split",
    "trainer.strategy.context_parallel_size",
    "model.config.cp_comm_type",
    "model.config.hierarchical_context_parallel_sizes",
    "trainer.strategy.expert_model_parallel_size",
    "trainer.strategy.expert_tensor_parallel_size",
    "trainer.strategy.sequence_parallel",
    "model.config.num_layers",
    "model.config.hidden_size",
    "model.config.ffn_hidden_size",
    "model.config.num_attention_heads",
    "model.config.num_query_groups",
    "model.config.kv_channels",
    "model.config.vocab_size",
    "model.config.make_vocab_size_divisible_by",
    "model.config.position_embedding_type",
    "model.config.rotary_base",
    "model.config.normalization",
    "model.config.gated_linear_unit",
    "model.config.add_bias_linear",
    "model.config.add_qkv_bias",
    "model.config.qk_layernorm",
    "model.config.share_embeddings_and_output_weights",
    "!model.config.multi_latent_attention",
    "?model.config.q_lora_rank",
    "model.config.kv_lora_rank",
    "model.config.qk_head_dim",
    "model.config.qk_pos_emb_head_dim",
    "model.config.v_head_dim",
    "model.config.window_size",
    "model.config.window_attn_skip_freq",
    "model.config.num_moe_experts",
    "model.config.moe_router_topk",
    "model.config.moe_router_num_groups",
    "model.config.moe_router_group_topk",
    "?model.config.moe_expert_capacity_factor",
    "model.config.moe_pad_expert_input_to_capacity",
    "model.config.moe_ffn_hidden_size",
    "?model.config.moe_shared_expert_intermediate_size",
    "model.config.moe_layer_freq",
    "model.config.moe_grouped_gemm",
    "model.config.moe_token_dispatcher_type",
    "model.config.mtp_num_layers",
    "model.config.hidden_dropout",
    "model.config.attention_dropout",
    "model.config.bias_activation_fusion",
    "model.config.bias_dropout_fusion",
    "model.config.cross_entropy_loss_fusion",
    "!model.config.cross_entropy_fusion_impl",
    "?model.config.recompute_granularity",
    "?model.config.recompute_method",
    "?model.config.recompute_num_layers",
    "model.config.recompute_modules",
    "model.config.cpu_offloading",
    "model.config.cpu_offloading_num_layers",
    "data.global_batch_size",
    "data.micro_batch_size",
    "data.seq_length",
    "data.num_workers",
    "trainer.strategy.ddp.use_distributed_optimizer",
    "!trainer.strategy.ddp.num_distributed_optimizer_instances",
    "trainer.strategy.ddp.grad_reduce_in_fp32",
    "optim.config.optimizer",
    "optim.config.use_distributed_optimizer",
    "!optim.config.optimizer_cpu_offload",
    "!optim.config.optimizer_offload_fraction",
    "!optim.config.use_precision_aware_optimizer",
    "trainer.plugins.grad_reduce_in_fp32",
    NULL,
};
/* Classes whose names, divided like the others, are no model's. */
static const struct framework_word nemo2_models[] = {
    {"Llama4Experts1.6-", NULL, "llama4-scout"}, {"Llama4Experts12.8-", NULL, "llama4-maverick"}, {0}};
const struct framework framework_nemo2 = {.name = "NeMo 2",
                                          .signs = {"trainer.strategy", "model.config"},
                                          .fixed = nemo2_fixed,
                                          .keys = nemo2_keys,
                                          .groups = nemo2_groups,
                                          .model = {"model.config._target_"},
                                          .models = nemo2_models,
                                          .described = "model.config.hidden_size",
                                          .form = FORM_PYTHON,
                                          .written = nemo2_written};
const struct framework framework_bridge = {.name = "Megatron-Bridge",
                                           .signs = {"train", "model"},
                                           .fixed = bridge_fixed,
                                           .keys = bridge_keys,
                                           .groups = bridge_groups,
                                           .form = FORM_PYTHON,
                                           .written = bridge_written};
static const struct framework nemo = {.name = "NeMo", .signs = {"trainer", "model"}, .fixed = nemo_fixed, .keys = nemo_keys};
static const struct framework nanotron = {.name = "nanotron",
                                          .signs = {"parallelism", "tokens"},
                                          .fixed = nanotron_fixed,
                                          .keys = nanotron_keys,
                                          .more = nanotron_more};
static const struct framework deepspeed = {
    .name = "DeepSpeed", .companion = true, .fixed = deepspeed_fixed, .keys = deepspeed_keys};

const struct framework *const frameworks[N_FRAMEWORKS] = {&framework_olmo_core,
                                                          &framework_nemo2,
                                                          &framework_bridge,
                                                          &framework_torchtitan,
                                                          &framework_axolotl,
                                                          &framework_factory,
                                                          &framework_trainer,
                                                          &framework_accelerate,
                                                          &nemo,
                                                          &nanotron,
                                                          &framework_olmo,
                                                          &framework_foundry,
                                                          &framework_maxtext,
                                                          &framework_colossal,
                                                          &framework_litgpt,
                                                          &framework_peft,
                                                          &deepspeed};
