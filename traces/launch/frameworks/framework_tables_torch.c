/* Stacks of PyTorch's own parallelism: Axolotl, Hugging Face's trainers, accelerate. */
#include <string.h>

#include "traces/launch/frameworks/framework_rows.h"
#include "traces/launch/frameworks/framework_torch.h"
#include "traces/launch/frameworks/framework_tree.h"

#define ADAM(word)                                                                                                               \
    {                                                                                                                            \
        word, "optimizer", "adam"                                                                                                \
    }
/* Moments in eight bits. */
#define ADAM_8(word)                                                                                                             \
    ADAM(word), {word, "exp_avg_dtype", "8 bits"},                                                                               \
    {                                                                                                                            \
        word, "exp_avg_sq_dtype", "8 bits"                                                                                       \
    }
/* Whose states are others than Adam's, which is taken for them and told. */
#define OTHER(word)                                                                                                              \
    {                                                                                                                            \
        word, "optimizer", word                                                                                                  \
    }
const struct framework_word framework_optimizers[] = {ADAM("Adam"),
                                                      ADAM("AdamW"),
                                                      ADAM("adam"),
                                                      ADAM("adamw"),
                                                      ADAM("adamW"),
                                                      ADAM("FusedAdam"),
                                                      ADAM("CPUAdam"),
                                                      ADAM("adamw_torch"),
                                                      ADAM("adamw_torch_fused"),
                                                      ADAM("adamw_hf"),
                                                      ADAM("adamw_apex_fused"),
                                                      ADAM("paged_adamw"),
                                                      ADAM("paged_adamw_32bit"),
                                                      ADAM("decoupled_adamw"),
                                                      ADAM("skip_step_adamw"),
                                                      ADAM_8("adamw_8bit"),
                                                      ADAM_8("adamw_bnb_8bit"),
                                                      ADAM_8("paged_adamw_8bit"),
                                                      ADAM_8("adamw_torch_8bit"),
                                                      ADAM_8("ao_adamw_8bit"),
                                                      {"Lamb", "optimizer", "lamb"},
                                                      {"FusedLamb", "optimizer", "lamb"},
                                                      {"SGD", "optimizer", "sgd"},
                                                      {"sgd", "optimizer", "sgd"},
                                                      {"Muon", "optimizer", "muon"},
                                                      {"muon", "optimizer", "muon"},
                                                      OTHER("adafactor"),
                                                      OTHER("Adafactor"),
                                                      OTHER("lion"),
                                                      OTHER("Lion"),
                                                      OTHER("lion_32bit"),
                                                      OTHER("lion_8bit"),
                                                      OTHER("lion_bnb_8bit"),
                                                      OTHER("paged_lion_32bit"),
                                                      OTHER("paged_lion_8bit"),
                                                      OTHER("lion_pytorch"),
                                                      OTHER("decoupled_lionw"),
                                                      OTHER("adamw_torch_4bit"),
                                                      OTHER("ao_adamw_4bit"),
                                                      OTHER("galore_adamw"),
                                                      OTHER("galore_adamw_8bit"),
                                                      OTHER("galore_adamw_layerwise"),
                                                      OTHER("apollo_adamw"),
                                                      OTHER("lomo"),
                                                      OTHER("adalomo"),
                                                      OTHER("schedule_free_adamw"),
                                                      OTHER("schedule_free_sgd"),
                                                      OTHER("came_pytorch"),
                                                      {0}};

/* Configurations that come with Axolotl and LLaMA-Factory. */
#define BESIDE(word, stage)                                                                                                      \
    {word, "grad_reduce_in_bf16", "True"},                                                                                       \
    {                                                                                                                            \
        word, "zero_stage", stage                                                                                                \
    }
#define BY_HOST(word)                                                                                                            \
    {                                                                                                                            \
        word, "offload_optimizer", "cpu"                                                                                         \
    }
static const struct framework_word shipped_deepspeed[] = {
    BESIDE("deepspeed_configs/zero1.json", "1"),
    BESIDE("deepspeed_configs/zero2.json", "2"),
    BESIDE("deepspeed_configs/zero3.json", "3"),
    BESIDE("deepspeed_configs/zero3_bf16.json", "3"),
    BESIDE("deepspeed_configs/zero3_bf16_cpuoffload_all.json", "3"),
    BY_HOST("deepspeed_configs/zero3_bf16_cpuoffload_all.json"),
    {"deepspeed_configs/zero3_bf16_cpuoffload_all.json", "offload_param", "cpu"},
    {"examples/deepspeed/ds_z0_config.json", "zero_stage", "0"},
    {"examples/deepspeed/ds_z0_config.json", "run_by_deepspeed", "True"},
    BESIDE("examples/deepspeed/ds_z2_config.json", "2"),
    BESIDE("examples/deepspeed/ds_z2_offload_config.json", "2"),
    BY_HOST("examples/deepspeed/ds_z2_offload_config.json"),
    BESIDE("examples/deepspeed/ds_z3_config.json", "3"),
    BESIDE("examples/deepspeed/ds_z3_offload_config.json", "3"),
    BY_HOST("examples/deepspeed/ds_z3_offload_config.json"),
    {"examples/deepspeed/ds_z3_offload_config.json", "offload_param", "cpu"},
    {0}};

/* FSDP2 has no strategies: weights are freed behind the forward pass, or kept. */
static const struct framework_word resharded[] = {TRULY("zero_stage", "3"),
                                                  {"false", "zero_stage", "2"},
                                                  {"false", "fsdp_reshard_after_forward", "never"},
                                                  {"False", "zero_stage", "2"},
                                                  {"False", "fsdp_reshard_after_forward", "never"},
                                                  {0}};
static const struct framework_word second_fsdp[] = {{"2", "zero_stage", "3"}, {"1", "zero_stage", "3"}, {0}};
const struct framework_word framework_attentions[] = {{"flash_attention_2", "use_flash_attn", "True"},
                                                      {"flash_attention_3", "use_flash_attn", "True"},
                                                      {"flash_attn", "use_flash_attn", "True"},
                                                      {"flash", "use_flash_attn", "True"},
                                                      {"fa2", "use_flash_attn", "True"},
                                                      {"auto", "use_flash_attn", "True"},
                                                      {"sdpa", "use_flash_attn", "True"},
                                                      {"flex_attention", "use_flash_attn", "True"},
                                                      {"triton", "use_flash_attn", "True"},
                                                      {"eager", "use_flash_attn", "False"},
                                                      {"torch", "use_flash_attn", "False"},
                                                      {"disabled", "use_flash_attn", "False"},
                                                      {0}};
static const struct framework_word lora[] = {TRULY("adapter", "lora"), {0}};
static const struct framework_word all_linear[] = {TRULY("adapter_targets", "all"), {0}};
static const struct framework_word four_bits[] = {TRULY("quantization_bit", "4"), {0}};
static const struct framework_word eight_bits[] = {TRULY("quantization_bit", "8"), {0}};

/* Several samples in a row, each of which attends to itself. */
static const struct framework_word packed[] = {TRULY("reset_attention_mask", "True"), {0}};
const struct framework_word framework_compiled[] = {TRULY("torch_compile", "True"), {0}};
static const struct framework_word compiled_loss[] = {
    TRULY("torch_compile", "True"), TRULY("compiled_cross_entropy", "True"), {0}};
const struct framework_word framework_recomputed[] = {TRULY("recompute_granularity", "full"), {0}};
const struct framework_word framework_by_host[] = {TRULY("offload_optimizer", "cpu"), TRULY("offload_param", "cpu"), {0}};

/* Keys and values gathered at once, or passed on. */
const struct framework_word framework_rotations[] = {
    {"allgather", "cp_comm_type", "all_gather"}, {"alltoall", "cp_comm_type", "p2p"}, {0}};

/* --- Axolotl --- */

static const struct framework_word axolotl_sharding[] = {{"hybrid_shard", "zero_stage", "3"},
                                                         {"hybrid_shard", "mics_shard_size", "node"},
                                                         {"full_shard", "zero_stage", "3"},
                                                         {"shard_grad_op", "zero_stage", "2"},
                                                         {"FULL_SHARD", "zero_stage", "3"},
                                                         {"SHARD_GRAD_OP", "zero_stage", "2"},
                                                         {"HYBRID_SHARD", "zero_stage", "3"},
                                                         {"HYBRID_SHARD", "mics_shard_size", "node"},
                                                         {"HYBRID_SHARD_ZERO2", "zero_stage", "2"},
                                                         {"HYBRID_SHARD_ZERO2", "mics_shard_size", "node"},
                                                         {"NO_SHARD", "zero_stage", "0"},
                                                         {"auto_wrap", NULL, NULL},
                                                         {"offload", "offload_optimizer", "cpu"},
                                                         {"offload", "offload_param", "cpu"},
                                                         {0}};
/* "offload" keeps the inputs of repeated layers by the host. */
static const struct framework_word axolotl_recompute[] = {TRULY("recompute_granularity", "full"),
                                                          {"offload", "recompute_granularity", "full"},
                                                          {"offload", "cpu_checkpointing", "True"},
                                                          {"unsloth", "recompute_granularity", "full"},
                                                          {0}};
static const struct framework_word sdpa[] = {TRULY("use_flash_attn", "True"), {0}};
static const struct framework_word axolotl_16[] = {
    {"auto", "bf16", "True"}, TRULY("bf16", "True"), {"full", "bf16", "True"}, {"false", "bf16", "False"}, {0}};

static const struct framework_key axolotl_keys[] = {
    AS("sequence_len", "seq_length"),
    AS("micro_batch_size", "micro_batch_size"),
    AS("gradient_accumulation_steps", "gradient_accumulation_steps"),
    AS("max_steps", "train_iters"),
    WORDS("bf16", axolotl_16),
    AS("fp16", "fp16"),
    AS("flash_attention", "use_flash_attn"),
    WORDS("sample_packing", packed),
    WORDS("gradient_checkpointing", axolotl_recompute),
    WORDS("optimizer", framework_optimizers),
    WORDS("fsdp", axolotl_sharding),
    WORDS("fsdp_version", second_fsdp),
    WORDS("fsdp_config.sharding_strategy", axolotl_sharding),
    WORDS("fsdp_config.fsdp_sharding_strategy", axolotl_sharding),
    WORDS("fsdp_config.reshard_after_forward", resharded),
    WORDS("fsdp_config.offload_params", framework_by_host),
    WORDS("fsdp_config.fsdp_offload_params", framework_by_host),
    WORDS("fsdp_config.activation_checkpointing", framework_recomputed),
    WORDS("fsdp_config.fsdp_activation_checkpointing", framework_recomputed),
    AS("dp_replicate_size", "data_parallel_replicate_degree"),
    AS("dp_shard_size", "data_parallel_shard_degree"),
    BOTH("deepspeed", "deepspeed_config", shipped_deepspeed),
    WORDS("load_in_4bit", four_bits),
    WORDS("load_in_8bit", eight_bits),
    WORDS("sdp_attention", sdpa),
    WORDS("torch_compile", compiled_loss),
    AS("tensor_parallel_size", "tensor_model_parallel_size"),
    AS("context_parallel_size", "context_parallel_size"),
    AS("sequence_parallel_degree", "context_parallel_size"), /* until 2025 */
    AS("liger_cross_entropy", "cross_entropy_loss_fusion"),
    AS("liger_fused_linear_cross_entropy", "fused_linear_cross_entropy"),
    AS("cut_cross_entropy", "cut_cross_entropy"),
    AS("adapter", "adapter"),
    AS("lora_r", "adapter_rank"),
    AS("lora_target_modules", "adapter_targets"),
    WORDS("lora_target_linear", all_linear),
    AS("lora_modules_to_save", "adapter_whole"),
    AS("peft_use_dora", "adapter_dora"),
    AS("peft_layers_to_transform", "adapter_layers"),
    AS("lora_exclude_modules", "adapter_excluded"),
    AS("lora_target_parameters", "adapter_parameters"),
    AS("lora_dropout", "adapter_dropout"),
    INSIDE("peft_trainable_token_indices", "adapter_tokens"),
    AS("peft_trainable_token_indices", "adapter_tokens"),
    AS("peft_ensure_weight_tying", "adapter_ties"),
    INSIDE("peft_layer_replication", "adapter_replication"),
    AS("unfrozen_parameters", "unfrozen_parameters"),
    AS("rl", "training_objective"),
    {0},
};
/* FSDP shards among the ranks that replicas leave. */
static void axolotl_more(struct launch_words *words, const struct yaml_node *root)
{
    const struct yaml_node *replicas = framework_find(root, "dp_replicate_size"), *shards = framework_find(root, "dp_shard_size");
    bool sharded = framework_find(root, "fsdp_config") || framework_find(root, "fsdp_version") || framework_find(root, "fsdp");
    if (replicas && !yaml_is_null(replicas) && sharded && (!shards || yaml_is_null(shards)))
        framework_add(words, replicas, "dp_replicate_size", "data_parallel_shard_degree", "-1");
}

/* Models of Hugging Face's transformers take the loss of logits.float() (ForCausalLMLoss, from memory) inside the model, so that
 * it is compiled where that is. */
static const struct framework_word torch_fixed[] = {PLAIN_TORCH, EAGER_LOGITS, {0}};
const struct framework framework_axolotl = {.name = "Axolotl",
                                            .signs = {"base_model", "micro_batch_size"},
                                            .fixed = torch_fixed,
                                            .keys = axolotl_keys,
                                            .more = axolotl_more,
                                            .model = {"base_model"}};

/* --- Hugging Face: TrainingArguments as a file or as a script's flags --- */

#define ALL_BY_HOST(word)                                                                                                        \
    {word, "offload_optimizer", "cpu"},                                                                                          \
    {                                                                                                                            \
        word, "offload_param", "cpu"                                                                                             \
    }
static const struct framework_word trainer_sharding[] = {{"hybrid_shard", "zero_stage", "3"},
                                                         {"hybrid_shard", "mics_shard_size", "node"},
                                                         {"hybrid_shard auto_wrap", "zero_stage", "3"},
                                                         {"hybrid_shard auto_wrap", "mics_shard_size", "node"},
                                                         {"hybrid_shard_zero2", "zero_stage", "2"},
                                                         {"hybrid_shard_zero2", "mics_shard_size", "node"},
                                                         {"hybrid_shard_zero2 auto_wrap", "zero_stage", "2"},
                                                         {"hybrid_shard_zero2 auto_wrap", "mics_shard_size", "node"},
                                                         {"no_shard", "zero_stage", "0"},
                                                         {"no_shard auto_wrap", "zero_stage", "0"},
                                                         {"full_shard", "zero_stage", "3"},
                                                         {"full_shard auto_wrap", "zero_stage", "3"},
                                                         {"shard_grad_op", "zero_stage", "2"},
                                                         {"shard_grad_op auto_wrap", "zero_stage", "2"},
                                                         {"full_shard offload auto_wrap", "zero_stage", "3"},
                                                         {"full_shard auto_wrap offload", "zero_stage", "3"},
                                                         ALL_BY_HOST("full_shard offload"),
                                                         {"full_shard offload", "zero_stage", "3"},
                                                         ALL_BY_HOST("full_shard offload auto_wrap"),
                                                         ALL_BY_HOST("full_shard auto_wrap offload"),
                                                         ALL_BY_HOST("offload"),
                                                         {"auto_wrap", NULL, NULL},
                                                         {0}};
/* What all of Hugging Face's trainers have. */
#define TRAINER_KEYS                                                                                                             \
    AS("per_device_train_batch_size", "micro_batch_size"), AS("gradient_accumulation_steps", "gradient_accumulation_steps"),     \
        AS("max_steps", "train_iters"), AS("bf16", "bf16"), AS("fp16", "fp16"), WORDS("fsdp", trainer_sharding),                 \
        WORDS("torch_compile", compiled_loss), WORDS("optim", framework_optimizers),                                             \
        BOTH("deepspeed", "deepspeed_config", shipped_deepspeed), WORDS("attn_implementation", framework_attentions),            \
        WORDS("fsdp_config.activation_checkpointing", framework_recomputed)

/* What accelerate's file says, or the flags of accelerate launch. */
static const struct framework_word accelerate_sharding[] = {
    {"HYBRID_SHARD", "zero_stage", "3"},
    {"HYBRID_SHARD", "mics_shard_size", "node"},
    {"4", "zero_stage", "3"},
    {"4", "mics_shard_size", "node"},
    {"HYBRID_SHARD_ZERO2", "zero_stage", "2"},
    {"HYBRID_SHARD_ZERO2", "mics_shard_size", "node"},
    {"5", "zero_stage", "2"},
    {"5", "mics_shard_size", "node"},
    {"FULL_SHARD", "zero_stage", "3"},
    {"1", "zero_stage", "3"},
    {"SHARD_GRAD_OP", "zero_stage", "2"},
    {"2", "zero_stage", "2"},
    {"NO_SHARD", "zero_stage", "0"},
    {"3", "zero_stage", "0"},
    {0},
};
/* A strategy's name, or FSDP2's truth. */
static const struct framework_word accelerate_resharded[] = {{"FULL_SHARD", "zero_stage", "3"},
                                                             {"SHARD_GRAD_OP", "zero_stage", "2"},
                                                             {"NO_SHARD", "zero_stage", "0"},
                                                             TRULY("zero_stage", "3"),
                                                             {"false", "zero_stage", "2"},
                                                             {"false", "fsdp_reshard_after_forward", "never"},
                                                             {0}};
static const struct framework_word accelerate_types[] = {
    {"bf16", "bf16", "True"}, {"fp16", "fp16", "True"}, {"fp8", "fp8", "hybrid"}, {0}};
static const struct framework_key trainer_keys[] = {
    TRAINER_KEYS,
    AS("max_seq_length", "seq_length"),
    AS("model_max_length", "seq_length"),
    AS("max_length", "seq_length"),
    AS("max_seq_len", "seq_length"),
    AS("block_size", "seq_length"),
    WORDS("gradient_checkpointing", framework_recomputed),
    WORDS("use_peft", lora),
    WORDS("use_peft_lora", lora), /* of peft's example of a trainer */
    AS("use_flash_attn", "use_flash_attn"),
    WORDS("use_4bit_quantization", four_bits),
    WORDS("use_8bit_quantization", eight_bits),
    AS("lora_r", "adapter_rank"),
    AS("lora_target_modules", "adapter_targets"),
    AS("lora_modules_to_save", "adapter_whole"),
    AS("use_dora", "adapter_dora"),
    AS("lora_target_parameters", "adapter_parameters"),
    AS("lora_dropout", "adapter_dropout"),
    WORDS("load_in_4bit", four_bits),
    WORDS("load_in_8bit", eight_bits),
    AS("use_liger_kernel", "fused_linear_cross_entropy"),
    AS("num_processes", "world_size"), /* of accelerate launch */
    AS("num_machines", "nnodes"),
    WORDS("mixed_precision", accelerate_types),
    WORDS("fsdp_sharding_strategy", accelerate_sharding),
    WORDS("fsdp_reshard_after_forward", accelerate_resharded),
    WORDS("fsdp_offload_params", framework_by_host),
    WORDS("fsdp_activation_checkpointing", framework_recomputed),
    AS("deepspeed_config_file", "deepspeed_config"),
    AS("zero_stage", "zero_stage"),
    AS("offload_optimizer_device", "offload_optimizer"),
    AS("offload_param_device", "offload_param"),
    {0},
};

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
static void trainer_more(struct launch_words *words, const struct yaml_node *root)
{
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

const struct framework framework_trainer = {.name = "TrainingArguments",
                                            .signs = {FLAGS_SIGN, FLAGS_SIGN},
                                            .fixed = torch_fixed,
                                            .keys = trainer_keys,
                                            .model = {"model_name_or_path"},
                                            .more = trainer_more,
                                            .unset = "-1"};

/* --- LLaMA-Factory: a trainer's arguments and its own; layers are recomputed unless told otherwise --- */

static const struct framework_word factory_tuning[] = {{"lora", "adapter", "lora"},
                                                       {"oft", "adapter", "oft"},
                                                       {"freeze", "adapter", "some layers"},
                                                       {"full", "adapter", "None"},
                                                       {0}};
/* Pre-training and supervised fine-tuning are a model over its sequences. */
static const struct framework_word factory_stages[] = {{"pt", "training_objective", "sft"},
                                                       {"sft", "training_objective", "sft"},
                                                       {"rm", "training_objective", "rm"},
                                                       {"ppo", "training_objective", "ppo"},
                                                       {"dpo", "training_objective", "dpo"},
                                                       {"kto", "training_objective", "kto"},
                                                       {0}};
static const struct framework_word factory_projected[] = {TRULY("projected_gradients", "True"), {0}};
static const struct framework_word factory_resized[] = {TRULY("adapter_whole", "embed_tokens lm_head"), {0}};
static const struct framework_word factory_muon[] = {TRULY("optimizer", "muon"), {0}};
static const struct framework_word factory_kept[] = {TRULY("recompute_granularity", "None"), {0}};
static const struct framework_word factory_16[] = {TRULY("bf16", "True"), TRULY("grad_reduce_in_bf16", "True"), {0}};
static const struct framework_key factory_keys[] = {
    TRAINER_KEYS,
    AS("cutoff_len", "seq_length"),
    WORDS("finetuning_type", factory_tuning),
    AS("lora_rank", "adapter_rank"),
    AS("lora_target", "adapter_targets"),
    AS("lora_dropout", "adapter_dropout"),
    WORDS("resize_vocab", factory_resized), /* unless told which */
    AS("additional_target", "adapter_whole"),
    AS("use_dora", "adapter_dora"),
    WORDS("stage", factory_stages),
    WORDS("use_galore", factory_projected),
    WORDS("use_apollo", factory_projected),
    WORDS("use_badam", factory_projected),
    WORDS("use_muon", factory_muon),
    AS("shift_attn", "shifted_attention"),
    AS("quantization_bit", "quantization_bit"),
    WORDS("flash_attn", framework_attentions),
    WORDS("neat_packing", packed), /* `packing` alone lets samples attend to one another */
    AS("enable_liger_kernel", "fused_linear_cross_entropy"),
    WORDS("disable_gradient_checkpointing", factory_kept),
    WORDS("pure_bf16", factory_16),
    AS("sequence_parallel_size", "ds_sequence_parallel_size"),
    {0},
};
static const struct framework_word factory_fixed[] = {PLAIN_TORCH,
                                                      EAGER_LOGITS,
                                                      {NULL, "recompute_granularity", "full"},
                                                      {NULL, "seq_length", "2048"},
                                                      {NULL, "adapter_rank", "8"},
                                                      {NULL, "adapter_targets", "all"},
                                                      {0}};
const struct framework framework_factory = {.name = "LLaMA-Factory",
                                            .signs = {"finetuning_type", "model_name_or_path"},
                                            .fixed = factory_fixed,
                                            .keys = factory_keys,
                                            .model = {"model_name_or_path"},
                                            .unset = "-1"};

/* --- peft: adapter_config.json, as it stands beside adapters --- */

static const struct framework_key peft_keys[] = {
    AS("peft_type", "adapter"),
    AS("r", "adapter_rank"),
    AS("target_modules", "adapter_targets"),
    AS("modules_to_save", "adapter_whole"),
    AS("use_dora", "adapter_dora"),
    AS("layers_to_transform", "adapter_layers"),
    INSIDE("rank_pattern", "adapter_ranks"),
    AS("exclude_modules", "adapter_excluded"),
    AS("target_parameters", "adapter_parameters"),
    AS("bias", "adapter_bias"),
    AS("lora_bias", "adapter_own_bias"),
    AS("lora_dropout", "adapter_dropout"),
    INSIDE("trainable_token_indices", "adapter_tokens"), /* of several modules, or a list */
    AS("trainable_token_indices", "adapter_tokens"),
    AS("ensure_weight_tying", "adapter_ties"),
    INSIDE("layer_replication", "adapter_replication"),
    {0},
};
const struct framework framework_peft = {.name = "peft",
                                         .signs = {"peft_type", "target_modules"},
                                         .companion = true,
                                         .keys = peft_keys,
                                         .model = {"base_model_name_or_path"}};

/* --- accelerate: what `accelerate config` writes --- */

static const struct framework_word accelerate_compiled[] = {{"INDUCTOR", "torch_compile", "True"},
                                                            {"INDUCTOR", "compiled_cross_entropy", "True"},
                                                            {"inductor", "torch_compile", "True"},
                                                            {"inductor", "compiled_cross_entropy", "True"},
                                                            {0}};

/* FSDP shards all unless its strategy says otherwise. Its models are transformers', but for Megatron-LM's. */
static const struct framework_word accelerate_kinds[] = {{"FSDP", "zero_stage", "3"},
                                                         {"FSDP", "eager_cross_entropy", "True"},
                                                         {"DEEPSPEED", "grad_reduce_in_bf16", "True"},
                                                         {"DEEPSPEED", "run_by_deepspeed", "True"},
                                                         {"DEEPSPEED", "eager_cross_entropy", "True"},
                                                         {"MULTI_GPU", "eager_cross_entropy", "True"},
                                                         {"MEGATRON_LM", NULL, NULL},
                                                         {"NO", NULL, NULL},
                                                         {0}};

static const struct framework_key accelerate_keys[] = {
    AS("num_processes", "world_size"),
    AS("num_machines", "nnodes"),
    WORDS("distributed_type", accelerate_kinds),
    WORDS("mixed_precision", accelerate_types),
    WORDS("fsdp_config.fsdp_sharding_strategy", accelerate_sharding),
    WORDS("fsdp_config.fsdp_reshard_after_forward", accelerate_resharded),
    AS("parallelism_config.parallelism_config_dp_replicate_size", "data_parallel_replicate_degree"),
    AS("parallelism_config.parallelism_config_dp_shard_size", "data_parallel_shard_degree"),
    AS("parallelism_config.parallelism_config_tp_size", "tensor_model_parallel_size"),
    AS("parallelism_config.parallelism_config_cp_size", "context_parallel_size"),
    AS("parallelism_config.parallelism_config_sp_size", "ds_sequence_parallel_size"),
    WORDS("parallelism_config.parallelism_config_cp_comm_strategy", framework_rotations),
    WORDS("fsdp_config.fsdp_activation_checkpointing", framework_recomputed),
    WORDS("fsdp_config.fsdp_offload_params", framework_by_host),
    AS("megatron_lm_config.megatron_lm_tp_degree", "tensor_model_parallel_size"),
    AS("megatron_lm_config.megatron_lm_pp_degree", "pipeline_model_parallel_size"),
    AS("megatron_lm_config.megatron_lm_num_micro_batches", "gradient_accumulation_steps"),
    AS("megatron_lm_config.megatron_lm_recompute_activations", "recompute_activations"),
    AS("megatron_lm_config.megatron_lm_sequence_parallelism", "sequence_parallel"),
    AS("megatron_lm_config.megatron_lm_use_distributed_optimizer", "use_distributed_optimizer"),
    AS("deepspeed_config.deepspeed_config_file", "deepspeed_config"),
    AS("deepspeed_config.zero_stage", "zero_stage"),
    AS("deepspeed_config.gradient_accumulation_steps", "gradient_accumulation_steps"),
    AS("deepspeed_config.offload_optimizer_device", "offload_optimizer"),
    AS("deepspeed_config.offload_param_device", "offload_param"),
    WORDS("dynamo_config.dynamo_backend", accelerate_compiled),
    {0},
};
const struct framework framework_accelerate = {
    .name = "accelerate", .signs = {"distributed_type", "num_processes"}, .companion = true, .keys = accelerate_keys};
