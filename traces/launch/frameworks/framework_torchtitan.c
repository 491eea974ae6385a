/* torchtitan: job_config in TOML. */
#include <string.h>

#include "model/base/append.h"
#include "traces/launch/frameworks/framework_rows.h"
#include "traces/launch/frameworks/framework_torch.h"
#include "traces/launch/frameworks/framework_tree.h"

static const struct framework_word titan_types[] = {{"bfloat16", "bf16", "True"}, {"float32", "bf16", "False"}, {0}};
static const struct framework_word titan_reduce[] = {
    {"bfloat16", "grad_reduce_in_bf16", "True"}, {"float32", "grad_reduce_in_bf16", "False"}, {0}};
static const struct framework_word titan_recompute[] = {{"full", "recompute_granularity", "full"},
                                                        {"selective", "recompute_granularity", "selective"},
                                                        {"none", "recompute_granularity", "None"},
                                                        {"memory_budget", "recompute_granularity", "selective"},
                                                        {"memory_budget", "recompute_every_layers", "op"},
                                                        {"memory_budget", "activation_memory_budget", "compiled"},
                                                        {0}};
/* 2024 */
static const struct framework_word titan_selective[] = {TRULY("recompute_granularity", "selective"), {0}};
static const struct framework_word titan_fp8[] = {{"dynamic", "fp8", "hybrid"}, {"delayed", "fp8", "hybrid"}, {0}};
/* The loss is an fp32 copy's (logits.float()), eager unless it is compiled with the model (components/loss.py, since the switch
 * has a table of its own in 2025; from memory). */
static const struct framework_word titan_compiled[] = {
    TRULY("torch_compile", "True"), TRULY("compiled_cross_entropy", "True"), {0}};
/* Of the states: of weights, gradients and the optimizer. */
/* Of weights, and with them of what the optimizer keeps. */
static const struct framework_word titan_states[] = {{"bfloat16", "main_params_dtype", "bf16"},
                                                     {"bfloat16", "exp_avg_dtype", "bf16"},
                                                     {"bfloat16", "exp_avg_sq_dtype", "bf16"},
                                                     {"float32", "main_params_dtype", "fp32"},
                                                     {0}};
static const struct framework_word titan_dispatch[] = {{"deepep", "moe_enable_deepep", "True"}, {"standard", NULL, NULL}, {0}};
static const struct framework_word titan_converters[] = {{"float8", "fp8", "hybrid"},
                                                         {"quantize.linear.float8", "fp8", "hybrid"},
                                                         {"quantize.dense.float8", "fp8", "hybrid"},
                                                         {"mx", "fp8", "e4m3"},
                                                         {"mx", "fp8_recipe", "mxfp8"},
                                                         {"quantize.linear.mx", "fp8", "e4m3"},
                                                         {"quantize.linear.mx", "fp8_recipe", "mxfp8"},
                                                         {0}};
static const struct framework_word titan_float8[] = {TRULY("fp8", "hybrid"), {0}};

/* Most keys have stood in several tables: of training first, of what was experimental until 2025, of parallelism. */
#define ANYWHERE(key, argument) AS("training." key, argument), AS("experimental." key, argument), AS("parallelism." key, argument)
static const struct framework_word titan_masks[] = {
    {"block_causal", "reset_attention_mask", "True"}, {"causal", "reset_attention_mask", "False"}, {0}};
static const struct framework_key titan_keys[] = {
    AS("training.seq_len", "seq_length"),
    AS("training.batch_size", "local_batch_size"), /* until 2025 */
    AS("training.local_batch_size", "local_batch_size"),
    AS("training.global_batch_size", "global_batch_size"),
    AS("training.steps", "train_iters"),
    WORDS("optimizer.name", framework_optimizers),
    WORDS("training.mixed_precision_param", titan_types),
    WORDS("training.mixed_precision_reduce", titan_reduce),
    WORDS("model.attn_mask_type", titan_masks),
    WORDS("training.compile", framework_compiled), /* until mid 2025 */
    WORDS("compile.enable", titan_compiled),
    WORDS("training.enable_cpu_offload", framework_by_host),
    WORDS("training.dtype", titan_states),
    AS("optimizer.early_step_in_backward", "step_in_backward"),
    ANYWHERE("data_parallel_degree", "data_parallel_shard_degree"), /* 2024 */
    ANYWHERE("data_parallel_shard_degree", "data_parallel_shard_degree"),
    ANYWHERE("data_parallel_replicate_degree", "data_parallel_replicate_degree"),
    AS("parallelism.fsdp_reshard_after_forward", "fsdp_reshard_after_forward"),
    ANYWHERE("sequence_parallel_degree", "tensor_model_parallel_size"), /* its first months */
    ANYWHERE("tp_degree", "tensor_model_parallel_size"),
    ANYWHERE("tensor_parallel_size", "tensor_model_parallel_size"),
    ANYWHERE("tensor_parallel_degree", "tensor_model_parallel_size"),
    AS("parallelism.enable_sequence_parallel", "sequence_parallel"),
    AS("parallelism.disable_loss_parallel", "logits_on_every_rank"),
    OPPOSITE("training.enable_loss_parallel", "logits_on_every_rank"), /* 2024 */
    AS("training.disable_loss_parallel", "logits_on_every_rank"),
    ANYWHERE("enable_async_tensor_parallel", "async_tensor_parallel"),
    ANYWHERE("context_parallel_degree", "context_parallel_size"),
    WORDS("experimental.context_parallel_rotate_method", framework_rotations),
    WORDS("parallelism.context_parallel_rotate_method", framework_rotations),
    ANYWHERE("pipeline_parallel_degree", "pipeline_model_parallel_size"),
    ANYWHERE("pipeline_parallel_schedule", "pipeline_parallel_schedule"),
    ANYWHERE("pipeline_parallel_schedule_csv", "pipeline_schedule_file"),
    ANYWHERE("pipeline_parallel_microbatches", "pipeline_parallel_microbatches"),
    ANYWHERE("pipeline_parallel_split_points", "pipeline_split_points"),
    AS("parallelism.pipeline_parallel_microbatch_size", "micro_batch_size"),
    AS("parallelism.pipeline_parallel_layers_per_stage", "pipeline_parallel_layers_per_stage"),
    AS("parallelism.pipeline_parallel_first_stage_less_layers", "first_stage_less_layers"),
    AS("parallelism.pipeline_parallel_last_stage_less_layers", "last_stage_less_layers"),
    AS("parallelism.expert_parallel_degree", "expert_model_parallel_size"),
    AS("parallelism.expert_tensor_parallel_degree", "expert_tensor_parallel_size"),
    WORDS("parallelism.expert_parallel_comm_backend", titan_dispatch),
    AS("training.debug_moe_force_load_balance", "moe_router_force_load_balancing"), /* 2025 */
    AS("debug.moe_force_load_balance", "moe_router_force_load_balancing"),
    WORDS("training.enable_selective_ac", titan_selective),
    AS("activation_checkpoint.selective_ac_option", "recompute_every_layers"),
    WORDS("activation_checkpoint.mode", titan_recompute),
    WORDS("float8.enable_float8_linear", titan_float8), /* 2024 */
    WORDS("training.enable_float8_linear", titan_float8),
    WORDS("training.enable_fp8_linear", titan_float8),
    WORDS("training.fp8_linear", titan_fp8),
    AS("float8.recipe_name", "fp8_recipe"),
    AS("quantize.linear.float8.recipe_name", "fp8_recipe"),
    WORDS("model.converters", titan_converters), /* behind recipes of converters that are not there */
    AS("float8.enable_fsdp_float8_all_gather", "fp8_param_gather"),
    AS("quantize.linear.float8.enable_fsdp_float8_all_gather", "fp8_param_gather"),
    {0},
};
/* What an export says, by the names of 2025: what is compiled, stages by hand, the model and what is seldom there it
 * says by itself. */
static const char *const titan_written[] = {"training.local_batch_size",
                                            "training.global_batch_size",
                                            "training.seq_len",
                                            "training.mixed_precision_param",
                                            "training.mixed_precision_reduce",
                                            "training.enable_cpu_offload",
                                            "parallelism.data_parallel_replicate_degree",
                                            "parallelism.data_parallel_shard_degree",
                                            "parallelism.fsdp_reshard_after_forward",
                                            "parallelism.tensor_parallel_degree",
                                            "parallelism.context_parallel_degree",
                                            "parallelism.pipeline_parallel_degree",
                                            "parallelism.pipeline_parallel_schedule",
                                            "parallelism.pipeline_parallel_microbatch_size",
                                            "parallelism.pipeline_parallel_layers_per_stage",
                                            "parallelism.expert_parallel_degree",
                                            "parallelism.expert_tensor_parallel_degree",
                                            "activation_checkpoint.mode",
                                            "activation_checkpoint.selective_ac_option",
                                            NULL};
/* What its JobConfig has without a key; its flavours of a model under the names that their makers gave them. PyTorch's schedules
 * of several chunks wait for each turn's messages before the next one (PipelineScheduleMulti; from memory). */
static const struct framework_word titan_fixed[] = {
    PLAIN_TORCH,
    EAGER_LOGITS,
    {NULL, "bf16", "True"},
    {NULL, "sequence_parallel", "True"},
    {NULL, "data_parallel_shard_degree", "-1"},
    {NULL, "pipeline_parallel_schedule", "1F1B"},
    {NULL, "overlap_p2p_comm", "False"},
    {NULL, "recompute_granularity", "selective"},
    {NULL, "recompute_every_layers", "2"},
    {NULL, "expert_tensor_parallel_size", "1"},
    {NULL, "cp_comm_type", "all_gather"},
    {0},
};
static const struct framework_word titan_models[] = {{"llama3-8B", NULL, "llama3-8b"},
                                                     {"llama3-70B", NULL, "llama3-70b"},
                                                     {"llama3-405B", NULL, "llama3.1-405b"},
                                                     {"qwen3-0.6B", NULL, "qwen3-0.6b"},
                                                     {"qwen3-1.7B", NULL, "qwen3-1.7b"},
                                                     {"qwen3-4B", NULL, "qwen3-4b"},
                                                     {"qwen3-8B", NULL, "qwen3-8b"},
                                                     {"qwen3-14B", NULL, "qwen3-14b"},
                                                     {"qwen3-32B", NULL, "qwen3-32b"},
                                                     {"qwen3-30B-A3B", NULL, "qwen3-30b-a3b"},
                                                     {"qwen3-235B-A22B", NULL, "qwen3-235b-a22b"},
                                                     {"deepseek_v3-671B", NULL, "deepseek-v3"},
                                                     {"deepseek_v3-236B", NULL, "deepseek-v2"},
                                                     {"deepseek_v3-16B", NULL, "deepseek-v2-lite"},
                                                     {"llama4-17bx16e", NULL, "llama4-scout"},
                                                     {"llama4-17bx128e", NULL, "llama4-maverick"},
                                                     {0}};
/* Where components are listed the model and the loss are compiled if they are among them. */
static void read_components(struct launch_words *words, const struct yaml_node *root)
{
    const struct yaml_node *components = framework_find(root, "compile.components");
    bool listed = components && components->kind == YAML_SEQUENCE, model = false, loss = false;
    for (const struct yaml_node *item = listed ? components->first : NULL; item; item = item->next) {
        model |= item->kind == YAML_SCALAR && strcmp(item->text, "model") == 0;
        loss |= item->kind == YAML_SCALAR && strcmp(item->text, "loss") == 0;
    }
    if (listed && !model)
        framework_add(words, components, "compile.components", "torch_compile", "False");
    if (listed && !loss)
        framework_add(words, components, "compile.components", "compiled_cross_entropy", "False");
}

/* A stage by the names of its modules as Megatron-LM's layout has it: "Et*3". How many layers there are up to its end, behind
 * `layers` before it; -1: they are not the next ones. */
static int read_stage(const struct yaml_node *stage, int layers, char *text, size_t size)
{
    char next[32], ends[2][2] = {"", ""};
    int first = layers;
    for (const struct yaml_node *item = stage->kind == YAML_SEQUENCE ? stage->first : NULL; item; item = item->next) {
        const char *name = item->kind == YAML_SCALAR ? item->text : "";
        snprintf(next, sizeof next, "layers.%d", layers);
        if (strcmp(name, "tok_embeddings") == 0)
            memcpy(ends[0], "E", 2);
        else if (strcmp(name, "output") == 0)
            memcpy(ends[1], "L", 2);
        else if (strcmp(name, next) == 0)
            layers++;
        else if (strcmp(name, "norm") != 0)
            return -1;
    }
    text_append(text, size, "%s%s", first || *text ? "|" : "", ends[0]);
    if (layers > first)
        text_append(text, size, layers - first > 1 ? "t*%d" : "t", layers - first);
    text_append(text, size, "%s", ends[1]);
    return stage->kind == YAML_SEQUENCE ? layers : -1;
}

/* Stages by hand; such as are no layers in their order are only told. */
static void read_modules(struct launch_words *words, const struct yaml_node *root)
{
    enum { STAGES_SIZE = 4096 };
    static const char path[] = "parallelism.module_fqns_per_model_part";
    const struct yaml_node *parts = framework_find(root, path);
    char text[STAGES_SIZE] = "";
    int layers = 0;
    if (!parts || parts->kind != YAML_SEQUENCE || !parts->first)
        return;
    for (const struct yaml_node *part = parts->first; part && layers >= 0; part = part->next)
        layers = read_stage(part, layers, text, sizeof text);
    bool whole = layers > 0 && strlen(text) + 1 < sizeof text;
    framework_add(words, parts, path, whole ? "pipeline_model_parallel_layout" : "pipeline_split_points",
                  whole ? launch_text(words, text, strlen(text)) : "several");
}

static void titan_more(struct launch_words *words, const struct yaml_node *root)
{
    read_components(words, root);
    read_modules(words, root);
}

const struct framework framework_torchtitan = {.name = "torchtitan",
                                               .signs = {"training", "model"},
                                               .fixed = titan_fixed,
                                               .keys = titan_keys,
                                               .model = {"model.name", "model.flavor"},
                                               .models = titan_models,
                                               .more = titan_more,
                                               .form = FORM_TOML,
                                               .written = titan_written,
                                               .unset = "-1"};
