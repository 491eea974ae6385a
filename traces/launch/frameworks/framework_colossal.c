/* Colossal-AI: arguments of its plugins (HybridParallelPlugin, GeminiPlugin) as a mapping, and the flags of its applications.
 * Not checked against the program. A pipeline's batch is divided by microbatch_size or num_microbatches; without one batch_size
 * is what a replica computes at once. */
#include <stdlib.h>
#include <string.h>

#include "traces/launch/frameworks/framework_rows.h"
#include "traces/launch/frameworks/framework_torch.h"
#include "traces/launch/frameworks/framework_tree.h"

/* Gemini shards weights in chunks and moves what does not fit, as it decides. */
#define GEMINI(word)                                                                                                             \
    {                                                                                                                            \
        word, "zero_stage", "3"                                                                                                  \
    }
static const struct framework_word plugins[] = {GEMINI("gemini"),
                                                GEMINI("GeminiPlugin"),
                                                GEMINI("gemini_auto"),
                                                {"gemini_auto", "placement_by_need", "auto"},
                                                {"fsdp", "zero_stage", "3"},
                                                {"torch_fsdp", "zero_stage", "3"},
                                                {"fsdp_cpu", "zero_stage", "3"},
                                                {"fsdp_cpu", "offload_optimizer", "cpu"},
                                                {"fsdp_cpu", "offload_param", "cpu"},
                                                {"zero1", "zero_stage", "1"},
                                                {"zero2", "zero_stage", "2"},
                                                {"zero2_cpu", "zero_stage", "2"},
                                                {"zero2_cpu", "offload_optimizer", "cpu"},
                                                {"low_level_zero", "zero_stage", "1"},
                                                {"LowLevelZeroPlugin", "zero_stage", "1"},
                                                {"ddp", "zero_stage", "0"},
                                                {"torch_ddp", "zero_stage", "0"},
                                                {"3d", NULL, NULL},
                                                {"3d_cpu", "offload_optimizer", "cpu"},
                                                {"hybrid_parallel", NULL, NULL},
                                                {"HybridParallelPlugin", NULL, NULL},
                                                {"MoeHybridParallelPlugin", NULL, NULL},
                                                {0}};
static const struct framework_word precisions[] = {
    {"bf16", "bf16", "True"}, {"bf16", "fp16", "False"}, {"fp16", "fp16", "True"}, {"fp32", "fp16", "False"}, {0}};
/* How tokens are divided: beside tensor parallelism, or among ranks of their own. */
static const struct framework_word divisions[] = {
    {"split_gather", "sequence_parallel", "True"}, {"ring", "sequence_parallel", "True"},
    {"ring", "async_tensor_parallel", "True"},     {"all_to_all", "cp_comm_type", "a2a"},
    {"ring_attn", "cp_comm_type", "p2p"},          {0}};
static const struct framework_word flash[] = {TRULY("use_flash_attn", "True"), {0}};
static const struct framework_word all_of_it[] = {TRULY("use_flash_attn", "True"), {0}};
static const struct framework_word styles[] = {{"1f1b", "pipeline_parallel_schedule", "1F1B"},
                                               {"interleaved", "pipeline_parallel_schedule", "Interleaved1F1B"},
                                               {"zbv", "pipeline_parallel_schedule", "ZBVZeroBubble"},
                                               {0}};
static const struct framework_word by_host[] = {TRULY("offload_optimizer", "cpu"), {0}};
static const struct framework_word eights[] = {TRULY("fp8", "hybrid"), {0}};
static const struct framework_word quantized[] = {TRULY("zero_quantized_weights", "True"), {0}};
static const struct framework_word placements[] = {{"static", NULL, NULL},
                                                   {"auto", "placement_by_need", "auto"},
                                                   {"cuda", NULL, NULL},
                                                   {"cpu", "placement_by_need", "cpu"},
                                                   {0}};
static const struct framework_word lora[] = {{"0", "adapter", "None"}, {0}};

/* Of a plugin; `at` is where its arguments stand. */
#define PLUGIN_KEYS(at)                                                                                                          \
    AS(at "tp_size", "tensor_model_parallel_size"), AS(at "pp_size", "pipeline_model_parallel_size"),                            \
        AS(at "ep_size", "expert_model_parallel_size"), WORDS(at "precision", precisions), AS(at "zero_stage", "zero_stage"),    \
        WORDS(at "sequence_parallelism_mode", divisions), WORDS(at "enable_flash_attention", flash),                             \
        WORDS(at "enable_all_optimization", all_of_it), AS(at "microbatch_size", "micro_batch_size"),                            \
        AS(at "num_microbatches", "pipeline_parallel_microbatches"), WORDS(at "pp_style", styles),                               \
        AS(at "num_model_chunks", "pipeline_chunks"), WORDS(at "cpu_offload", by_host), WORDS(at "use_fp8", eights),             \
        WORDS(at "fp8_communication", quantized), AS(at "overlap_communication", "overlap_grad_reduce"),                         \
        AS(at "overlap_allgather", "overlap_param_gather"), WORDS(at "placement_policy", placements),                            \
        AS(at "shard_param_frac", "gemini_shard_share"), AS(at "offload_optim_frac", "gemini_optimizer_share"),                  \
        AS(at "offload_param_frac", "gemini_parameter_share"), AS(at "extra_dp_size", "data_parallel_replicate_degree"),         \
        AS(at "custom_policy", "own_sharding")

static const struct framework_key keys[] = {
    WORDS("plugin", plugins),
    WORDS("plugin.name", plugins),
    WORDS("plugin.type", plugins),
    PLUGIN_KEYS("plugin."),
    PLUGIN_KEYS(""),
    /* flags of applications */
    AS("tp", "tensor_model_parallel_size"),
    AS("pp", "pipeline_model_parallel_size"),
    AS("ep", "expert_model_parallel_size"),
    AS("zero", "zero_stage"),
    AS("mbs", "micro_batch_size"),
    AS("num_microbatch", "pipeline_parallel_microbatches"),
    WORDS("sp_mode", divisions),
    AS("n_chunks", "pipeline_chunks"),
    AS("extra_dp", "data_parallel_replicate_degree"),
    AS("batch_size", "local_batch_size"),
    AS("accumulation_steps", "gradient_accumulation_steps"),
    AS("max_length", "seq_length"),
    AS("max_len", "seq_length"),
    AS("num_steps", "train_iters"),
    WORDS("mixed_precision", precisions),
    WORDS("grad_checkpoint", framework_recomputed),
    WORDS("use_grad_checkpoint", framework_recomputed),
    WORDS("xformers", flash),
    WORDS("use_flash_attn", flash),
    WORDS("use_fp8_comm", quantized),
    BOTH("lora_rank", "adapter_rank", lora),
    AS("nproc_per_node", "nproc_per_node"),
    {0},
};
/* Its plugins train in fp16 unless told; shardformer's matrices are apart; gradients are reduced beside the backward pass. */
static const struct framework_word fixed[] = {
    {NULL, "fp16", "True"},
    FRAMEWORK_OWN_MODULES,
    {NULL, "use_flash_attn", "False"},
    {NULL, "scatter_gather_tensors_in_pipeline", "False"},
    {NULL, "cross_entropy_loss_fusion", "False"},
    {0},
};
static const struct framework_word models[] = {
    {"7b", NULL, "llama2-7b"}, {"13b", NULL, "llama2-13b"}, {"70b", NULL, "llama2-70b"}, {0}};

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
static void read_more(struct launch_words *words, const struct yaml_node *root)
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
    const struct framework_word *w = models;
    while (w->word && strcmp(w->word, name->text) != 0)
        w++;
    framework_add(words, name, path, "catalog_model", w->word ? w->value : framework_text(words, name));
}

static const char *const ignored[] = {"plugin.sp_size",
                                      "sp_size",
                                      "sp",
                                      "pretrained",
                                      "model_name_or_path",
                                      "model",
                                      "config",
                                      "plugin.enable_fused_normalization",
                                      "enable_fused_normalization",
                                      "plugin.enable_jit_fused",
                                      "enable_jit_fused",
                                      "plugin.enable_tensor_parallelism",
                                      "plugin.enable_sequence_parallelism",
                                      "enable_sequence_parallelism",
                                      "plugin.enable_sequence_overlap",
                                      "plugin.initial_scale",
                                      "plugin.min_scale",
                                      "plugin.growth_*",
                                      "plugin.backoff_factor",
                                      "plugin.hysteresis",
                                      "plugin.max_scale",
                                      "plugin.max_norm",
                                      "initial_scale",
                                      "min_scale",
                                      "growth_*",
                                      "backoff_factor",
                                      "hysteresis",
                                      "max_scale",
                                      "max_norm",
                                      "plugin.zero_bucket_size_in_m",
                                      "plugin.broadcast_buffers",
                                      "plugin.ddp_bucket_cap_mb",
                                      "plugin.find_unused_parameters",
                                      "plugin.check_reduction",
                                      "plugin.gradient_as_bucket_view",
                                      "plugin.static_graph",
                                      "plugin.parallel_output",
                                      "parallel_output",
                                      "plugin.make_vocab_size_divisible_by",
                                      "plugin.pp_stages_per_rank",
                                      "plugin.chunk_*",
                                      "plugin.search_*",
                                      "plugin.hidden_dim",
                                      "plugin.min_chunk_size_m",
                                      "plugin.memstats",
                                      "plugin.strict_ddp_mode",
                                      "plugin.verbose",
                                      "plugin.pin_memory",
                                      "plugin.enable_gradient_accumulation",
                                      "plugin.warmup_non_model_data_ratio",
                                      "plugin.steady_cuda_cap_ratio",
                                      "plugin.gpu_margin_mem_ratio",
                                      "plugin.force_outputs_fp32",
                                      "plugin.norm_type",
                                      "lr",
                                      "learning_rate",
                                      "weight_decay",
                                      "warmup_*",
                                      "save_*",
                                      "output_*",
                                      "dataset*",
                                      "num_epochs",
                                      "epochs",
                                      "seed",
                                      "grad_clip",
                                      "tensorboard_*",
                                      "tokenizer*",
                                      "log_*",
                                      "load_*",
                                      "ignore_steps",
                                      "memory_limit",
                                      "shardformer",
                                      "custom_ckpt",
                                      "padding_mode",
                                      "project_name",
                                      "lora_alpha",
                                      "lora_config",
                                      NULL};

const struct framework framework_colossal = {
    .name = "Colossal-AI", .signs = {"plugin", "plugin"}, .fixed = fixed, .keys = keys, .more = read_more, .ignored = ignored};
