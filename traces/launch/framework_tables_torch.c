/* Stacks of PyTorch's own parallelism: torchtitan, Axolotl, Hugging Face's trainers, accelerate. */
#include <stddef.h>

#include "traces/launch/framework_tables.h"

#define AS    FRAMEWORK_AS
#define WORDS FRAMEWORK_WORDS

/* What eager PyTorch around FlashAttention does. */
#define PLAIN_TORCH                                                                                                              \
    {NULL, "transformer_impl", "local"}, {NULL, "use_flash_attn", "True"}, {NULL, "bias_swiglu_fusion", "False"},                \
        {NULL, "bias_gelu_fusion", "False"}, {NULL, "bias_dropout_fusion", "False"}, {NULL, "hidden_dropout", "0"},              \
        {NULL, "make_vocab_size_divisible_by", "1"}, {NULL, "overlap_grad_reduce", "True"},                                      \
        {NULL, "overlap_param_gather", "True"}, {NULL, "scatter_gather_tensors_in_pipeline", "False"},                           \
    {                                                                                                                            \
        NULL, "cross_entropy_loss_fusion", "False"                                                                               \
    }

/* A truth as YAML, TOML and Python write it. */
#define TRULY(argument, value)                                                                                                   \
    {"true", argument, value},                                                                                                   \
    {                                                                                                                            \
        "True", argument, value                                                                                                  \
    }

static const struct framework_word compiled[] = {TRULY("torch_compile", "True"), {0}};
static const struct framework_word recomputed[] = {TRULY("recompute_granularity", "full"), {0}};
static const struct framework_word by_host[] = {TRULY("offload_optimizer", "cpu"), TRULY("offload_param", "cpu"), {0}};

/* --- torchtitan: job_config in TOML --- */

static const struct framework_word titan_types[] = {{"bfloat16", "bf16", "True"}, {"float32", "bf16", "False"}, {0}};
static const struct framework_word titan_reduce[] = {
    {"bfloat16", "grad_reduce_in_bf16", "True"}, {"float32", "grad_reduce_in_bf16", "False"}, {0}};
static const struct framework_word titan_recompute[] = {{"full", "recompute_granularity", "full"},
                                                        {"selective", "recompute_granularity", "selective"},
                                                        {"none", "recompute_granularity", "None"},
                                                        {0}};
static const struct framework_word titan_converters[] = {{"float8", "fp8", "hybrid"},
                                                         {"quantize.linear.float8", "fp8", "hybrid"},
                                                         {"quantize.dense.float8", "fp8", "hybrid"},
                                                         {"mx", "fp8", "e4m3"},
                                                         {"mx", "fp8_recipe", "mxfp8"},
                                                         {"quantize.linear.mx", "fp8", "e4m3"},
                                                         {"quantize.linear.mx", "fp8_recipe", "mxfp8"},
                                                         {0}};
static const struct framework_word titan_float8[] = {TRULY("fp8", "hybrid"), {0}};

/* Keys and values gathered at once, or passed on. */
static const struct framework_word titan_rotations[] = {
    {"allgather", "cp_comm_type", "all_gather"}, {"alltoall", "cp_comm_type", "p2p"}, {0}};

static const struct framework_key titan_keys[] = {
    AS("training.seq_len", "seq_length"),
    AS("training.batch_size", "local_batch_size"), /* until 2025 */
    AS("training.local_batch_size", "local_batch_size"),
    AS("training.global_batch_size", "global_batch_size"),
    AS("training.steps", "train_iters"),
    WORDS("training.mixed_precision_param", titan_types),
    WORDS("training.mixed_precision_reduce", titan_reduce),
    WORDS("training.compile", compiled),
    WORDS("compile.enable", compiled),
    WORDS("training.enable_cpu_offload", by_host),
    AS("training.data_parallel_degree", "data_parallel_shard_degree"), /* 2024 */
    AS("training.data_parallel_shard_degree", "data_parallel_shard_degree"),
    AS("parallelism.data_parallel_shard_degree", "data_parallel_shard_degree"),
    AS("training.data_parallel_replicate_degree", "data_parallel_replicate_degree"),
    AS("parallelism.data_parallel_replicate_degree", "data_parallel_replicate_degree"),
    AS("parallelism.fsdp_reshard_after_forward", "fsdp_reshard_after_forward"),
    AS("training.tensor_parallel_degree", "tensor_model_parallel_size"),
    AS("parallelism.tensor_parallel_degree", "tensor_model_parallel_size"),
    AS("experimental.enable_async_tensor_parallel", "async_tensor_parallel"),
    AS("parallelism.enable_async_tensor_parallel", "async_tensor_parallel"),
    AS("experimental.context_parallel_degree", "context_parallel_size"),
    AS("parallelism.context_parallel_degree", "context_parallel_size"),
    WORDS("experimental.context_parallel_rotate_method", titan_rotations),
    WORDS("parallelism.context_parallel_rotate_method", titan_rotations),
    AS("experimental.pipeline_parallel_degree", "pipeline_model_parallel_size"),
    AS("parallelism.pipeline_parallel_degree", "pipeline_model_parallel_size"),
    AS("experimental.pipeline_parallel_schedule", "pipeline_parallel_schedule"),
    AS("parallelism.pipeline_parallel_schedule", "pipeline_parallel_schedule"),
    AS("experimental.pipeline_parallel_microbatches", "pipeline_parallel_microbatches"),
    AS("parallelism.pipeline_parallel_microbatch_size", "micro_batch_size"),
    AS("parallelism.pipeline_parallel_layers_per_stage", "pipeline_parallel_layers_per_stage"),
    AS("parallelism.expert_parallel_degree", "expert_model_parallel_size"),
    AS("parallelism.expert_tensor_parallel_degree", "expert_tensor_parallel_size"),
    WORDS("activation_checkpoint.mode", titan_recompute),
    AS("activation_checkpoint.selective_ac_option", "recompute_every_layers"),
    WORDS("model.converters", titan_converters),
    WORDS("float8.enable_float8_linear", titan_float8), /* 2024 */
    AS("float8.enable_fsdp_float8_all_gather", "fp8_param_gather"),
    AS("quantize.linear.float8.enable_fsdp_float8_all_gather", "fp8_param_gather"),
    {0},
};
/* What its JobConfig has without a key; its flavours of a model under the names that their makers gave them. */
static const struct framework_word titan_fixed[] = {
    PLAIN_TORCH,
    {NULL, "bf16", "True"},
    {NULL, "sequence_parallel", "True"},
    {NULL, "data_parallel_shard_degree", "-1"},
    {NULL, "pipeline_parallel_schedule", "1F1B"},
    {NULL, "recompute_granularity", "selective"},
    {NULL, "recompute_every_layers", "2"},
    {NULL, "expert_tensor_parallel_size", "1"},
    {NULL, "cp_comm_type", "all_gather"},
    {0},
};
static const struct framework_word titan_models[] = {{"llama3-405B", NULL, "llama3.1-405b"},
                                                     {"deepseek_v3-671B", NULL, "deepseek-v3"},
                                                     {"llama4-17bx16e", NULL, "llama4-scout"},
                                                     {"llama4-17bx128e", NULL, "llama4-maverick"},
                                                     {0}};
const struct framework framework_torchtitan = {.name = "torchtitan",
                                               .signs = {"training", "model"},
                                               .fixed = titan_fixed,
                                               .keys = titan_keys,
                                               .model = {"model.name", "model.flavor"},
                                               .models = titan_models,
                                               .unset = "-1"};

/* --- Axolotl --- */

static const struct framework_word axolotl_sharding[] = {
    {"full_shard", "zero_stage", "3"}, {"shard_grad_op", "zero_stage", "2"}, {"hybrid_shard", "zero_stage", "3"}, {0}};
static const struct framework_word axolotl_deepspeed[] = {{"deepspeed_configs/zero1.json", "zero_stage", "1"},
                                                          {"deepspeed_configs/zero2.json", "zero_stage", "2"},
                                                          {"deepspeed_configs/zero3.json", "zero_stage", "3"},
                                                          {"deepspeed_configs/zero3_bf16.json", "zero_stage", "3"},
                                                          {0}};
static const struct framework_word axolotl_16[] = {
    {"auto", "bf16", "True"}, TRULY("bf16", "True"), {"full", "bf16", "True"}, {0}};

static const struct framework_key axolotl_keys[] = {
    AS("sequence_len", "seq_length"),
    AS("micro_batch_size", "micro_batch_size"),
    AS("gradient_accumulation_steps", "gradient_accumulation_steps"),
    AS("max_steps", "train_iters"),
    WORDS("bf16", axolotl_16),
    AS("fp16", "fp16"),
    AS("flash_attention", "use_flash_attn"),
    WORDS("gradient_checkpointing", recomputed),
    WORDS("fsdp", axolotl_sharding),
    WORDS("deepspeed", axolotl_deepspeed),
    WORDS("torch_compile", compiled),
    AS("tensor_parallel_size", "tensor_model_parallel_size"),
    AS("context_parallel_size", "context_parallel_size"),
    AS("sequence_parallel_degree", "context_parallel_size"), /* until 2025 */
    AS("liger_cross_entropy", "cross_entropy_loss_fusion"),
    AS("liger_fused_linear_cross_entropy", "fused_linear_cross_entropy"),
    AS("cut_cross_entropy", "cut_cross_entropy"),
    AS("adapter", "adapter"),
    {0},
};
static const struct framework_word torch_fixed[] = {PLAIN_TORCH, {0}};
const struct framework framework_axolotl = {.name = "Axolotl",
                                            .signs = {"base_model", "micro_batch_size"},
                                            .fixed = torch_fixed,
                                            .keys = axolotl_keys,
                                            .model = {"base_model"}};

/* --- Hugging Face: TrainingArguments as a file or as a script's flags --- */

static const struct framework_word trainer_sharding[] = {{"full_shard", "zero_stage", "3"},
                                                         {"full_shard auto_wrap", "zero_stage", "3"},
                                                         {"shard_grad_op", "zero_stage", "2"},
                                                         {"shard_grad_op auto_wrap", "zero_stage", "2"},
                                                         {0}};
static const struct framework_key trainer_keys[] = {
    AS("per_device_train_batch_size", "micro_batch_size"),
    AS("gradient_accumulation_steps", "gradient_accumulation_steps"),
    AS("max_steps", "train_iters"),
    AS("max_seq_length", "seq_length"),
    AS("max_length", "seq_length"),
    AS("block_size", "seq_length"),
    AS("bf16", "bf16"),
    AS("fp16", "fp16"),
    WORDS("gradient_checkpointing", recomputed),
    WORDS("torch_compile", compiled),
    WORDS("fsdp", trainer_sharding),
    AS("use_liger_kernel", "fused_linear_cross_entropy"),
    AS("num_processes", "world_size"), /* of accelerate launch */
    {0},
};
const struct framework framework_trainer = {.name = "TrainingArguments",
                                            .signs = {FLAGS_SIGN, FLAGS_SIGN},
                                            .fixed = torch_fixed,
                                            .keys = trainer_keys,
                                            .model = {"model_name_or_path"},
                                            .unset = "-1"};

/* --- accelerate: what `accelerate config` writes --- */

static const struct framework_word accelerate_sharding[] = {
    {"FULL_SHARD", "zero_stage", "3"},
    {"1", "zero_stage", "3"},
    {"SHARD_GRAD_OP", "zero_stage", "2"},
    {"2", "zero_stage", "2"},
    {"NO_SHARD", "zero_stage", "0"},
    {"3", "zero_stage", "0"},
    {0},
};
static const struct framework_word accelerate_types[] = {
    {"bf16", "bf16", "True"}, {"fp16", "fp16", "True"}, {"fp8", "fp8", "hybrid"}, {0}};
static const struct framework_word accelerate_compiled[] = {
    {"INDUCTOR", "torch_compile", "True"}, {"inductor", "torch_compile", "True"}, {0}};

static const struct framework_key accelerate_keys[] = {
    AS("num_processes", "world_size"),
    WORDS("mixed_precision", accelerate_types),
    WORDS("fsdp_config.fsdp_sharding_strategy", accelerate_sharding),
    WORDS("fsdp_config.fsdp_activation_checkpointing", recomputed),
    WORDS("fsdp_config.fsdp_offload_params", by_host),
    AS("deepspeed_config.zero_stage", "zero_stage"),
    AS("deepspeed_config.gradient_accumulation_steps", "gradient_accumulation_steps"),
    AS("deepspeed_config.offload_optimizer_device", "offload_optimizer"),
    AS("deepspeed_config.offload_param_device", "offload_param"),
    WORDS("dynamo_config.dynamo_backend", accelerate_compiled),
    {0},
};
const struct framework framework_accelerate = {
    .name = "accelerate", .signs = {"distributed_type", "num_processes"}, .companion = true, .keys = accelerate_keys};
