#include "model/spec/key_words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "model/base/append.h"
#include "model/spec/layout_request.h"
#include "model/spec/schemas.h"

/* A word, the key that it means, by its path in an experiment, and what else is to be known. */
static const struct {
    const char *word, *path, *note;
} words[] = {
#define SEQUENCES "sequences a step of all replicas together; batch_tokens says it in tokens"
    {"batch", "job.global_batch", SEQUENCES},
    {"batch_size", "job.global_batch", SEQUENCES},
    {"gbs", "job.global_batch", SEQUENCES},
    {"global_batch_size", "job.global_batch", SEQUENCES},
    {"train_batch_size", "job.global_batch", SEQUENCES},
    {"tokens_per_batch", "job.batch_tokens", NULL},
    {"tokens_per_step", "job.batch_tokens", NULL},
    {"micro_batch_size", "layout.micro_batch", NULL},
    {"microbatch", "layout.micro_batch", NULL},
    {"mbs", "layout.micro_batch", NULL},
    {"train_micro_batch_size_per_gpu", "layout.micro_batch", NULL},
    {"per_device_train_batch_size", "layout.micro_batch", NULL},
    {"gradient_accumulation", "job.global_batch", "which is micro_batch x dp x the steps of accumulation"},
    {"gradient_accumulation_steps", "job.global_batch", "which is micro_batch x dp x the steps of accumulation"},
    {"accumulation", "job.global_batch", "which is micro_batch x dp x the steps of accumulation"},
    {"sequence_length", "job.seq_len", NULL},
    {"seq_length", "job.seq_len", NULL},
    {"context_length", "job.seq_len", NULL},
    {"max_length", "job.seq_len", NULL},
    {"train_tokens", "job.tokens", NULL},
    {"dtype", "job.precision", NULL},
    {"mixed_precision", "job.precision", NULL},
    {"torch_dtype", "job.precision", NULL},
    {"grad_precision", "job.gradient_precision", NULL},
    {"grad_dtype", "job.gradient_precision", NULL},
    {"reduce_dtype", "job.gradient_precision", NULL},
    {"grad_reduce_in_bf16", "job.gradient_precision", "bf16"},
    {"accumulate_allreduce_grads_in_fp32", "job.gradient_precision", "fp32"},
    {"optimizer_precision", "job.moment_precision", "that of the moments; the master weight is fp32"},
    {"optimizer_dtype", "job.moment_precision", "that of the moments; the master weight is fp32"},
    {"moments", "job.moment_precision", NULL},
    {"exp_avg_dtype", "job.moment_precision", "one of both moments"},
    {"exp_avg_sq_dtype", "job.moment_precision", "one of both moments"},
    {"adam_8bit", "job.moment_precision", "fp8, which stands for 8 bits"},
    {"optim", "job.optimizer", NULL},
    {"clip_grad", "job.clip", NULL},
    {"max_grad_norm", "job.clip", NULL},
    {"lora", "job.adapter", "such as {rank: 16, targets: [qkv, projection]}"},
    {"peft", "job.adapter", "such as {rank: 16, targets: [qkv, projection]}"},
    {"lora_rank", "job.adapter.rank", "beside targets: [qkv, projection, mlp_up, mlp_down]"},
    {"lora_r", "job.adapter.rank", "beside targets: [qkv, projection, mlp_up, mlp_down]"},
    {"r", "job.adapter.rank", NULL},
    {"target_modules", "job.adapter.targets", "some of qkv, projection, mlp_up, mlp_down"},
    {"lora_target", "job.adapter.targets", "some of qkv, projection, mlp_up, mlp_down"},
    {"modules_to_save", "job.adapter.whole", "embedding, head"},
    {"flash_attention", "job.features", "a list, as [flash_attention2, tp_overlap]"},
    {"moe_capacity_factor", "job.capacity_factor", NULL},
    {"moe_expert_capacity_factor", "job.capacity_factor", NULL},
    {"moe_pad_expert_input_to_capacity", "job.pad_to_capacity", NULL},
    {"tensor_parallelism", "layout.tp", NULL},
    {"tensor_parallel_size", "layout.tp", NULL},
    {"tensor_model_parallel_size", "layout.tp", NULL},
    {"tp_size", "layout.tp", NULL},
    {"pipeline_parallelism", "layout.pp", NULL},
    {"pipeline_parallel_size", "layout.pp", NULL},
    {"pipeline_model_parallel_size", "layout.pp", NULL},
    {"pp_size", "layout.pp", NULL},
    {"data_parallelism", "layout.dp", NULL},
    {"data_parallel_size", "layout.dp", NULL},
    {"context_parallel_size", "layout.cp", NULL},
    {"expert_parallel_size", "layout.ep", NULL},
    {"expert_model_parallel_size", "layout.ep", NULL},
    {"expert_tensor_parallel_size", "layout.etp", NULL},
    {"virtual_pipeline_model_parallel_size", "layout.vpp", "chunks of a rank"},
    {"zero_optimization", "layout.zero", "0 to 3"},
    {"zero_level", "layout.zero", "0 to 3"},
    {"fsdp", "layout.zero", "3, and shard where it is hybrid"},
    {"use_distributed_optimizer", "layout.zero", "1"},
    {"activation_checkpointing", "layout.recompute", "full or selective"},
    {"gradient_checkpointing", "layout.recompute", "full or selective"},
    {"recompute_granularity", "layout.recompute", "full or selective"},
    {"cpu_offload", "layout.offload", "optimizer, activations, parameters"},
    {"pipeline_schedule", "layout.schedule", NULL},
    {"n_gpus", "cluster.gpus", NULL},
    {"num_gpus", "cluster.gpus", NULL},
    {"world_size", "cluster.gpus", NULL},
    {"num_nodes", "cluster.nodes", NULL},
    {"network", "cluster.fabric", NULL},
    {"nic", "cluster.nic_rate", NULL},
    {"memory_rate", "cluster.gpu.hbm_rate", "as `msim catalog` shows it"},
    {"memory_bandwidth", "cluster.gpu.hbm_rate", NULL},
    {"memory_size", "cluster.gpu.hbm", NULL},
    {"mtbf", "faults.model", "a shipped one or a file"},
    {"mttf", "faults.model", "a shipped one or a file"},
    {"mttr", "faults.repair", "the mean time that a failed node is away, such as 5h"},
    {"repair_time", "faults.repair", "the mean time that a failed node is away, such as 5h"},
    {"mean_repair", "faults.repair", "the mean time that a failed node is away, such as 5h"},
};

/* The parts by the names of their schemas, and where they lie. */
static const struct {
    const char *what, *path;
    const struct schema *schema;
} parts[] = {{"experiment", "", NULL},
             {"job", "job", &job_schema},
             {"adapter", "job.adapter", NULL},
             {"layout", "layout", &layout_schema},
             {"cluster", "cluster", &cluster_schema},
             {"gpu", "cluster.gpu", NULL},
             {"model", "model", &transformer_schema},
             {"faults", "faults", &faults_schema}};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

/* `job: {adapter: {rank: ...}}` for "job.adapter.rank". */
static void append_mapping(char *buffer, size_t size, const char *path)
{
    int depth = 0;
    text_append(buffer, size, "`");
    for (; strchr(path, '.'); path += strcspn(path, ".") + 1, depth++)
        text_append(buffer, size, "%.*s: {", (int)strcspn(path, "."), path);
    text_append(buffer, size, depth ? "%s: ..." : "%s", path);
    for (; depth > 0; depth--)
        text_append(buffer, size, "}");
    text_append(buffer, size, "`");
}

/* From within the part that lies at `here`. */
static const char *advise(const char *here, const char *path, const char *note, char *buffer, size_t size)
{
    size_t length = strlen(here);
    bool inside = length > 0 && strncmp(path, here, length) == 0 && path[length] == '.';
    snprintf(buffer, size, "write ");
    append_mapping(buffer, size, inside ? path + length + 1 : path);
    if (note)
        text_append(buffer, size, ", %s", note);
    return buffer;
}

const char *key_words_advice(const char *what, const char *word, char *buffer, size_t size)
{
    size_t here = 0;
    while (here < N_PARTS && strcmp(parts[here].what, what) != 0)
        here++;
    if (here == N_PARTS)
        return NULL;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (key_word_is(word, words[i].word))
            return advise(parts[here].path, words[i].path, words[i].note, buffer, size);
    for (size_t i = 0; i < N_PARTS; i++) { /* another part's key, as it is */
        const char *key = parts[i].schema == &layout_schema ? layout_request_key(word) : word;
        char path[96];
        if (i == here || !parts[i].schema || !schema_find(parts[i].schema, key))
            continue;
        snprintf(path, sizeof path, "%s.%.60s", parts[i].path, key);
        return advise(parts[here].path, path, NULL, buffer, size);
    }
    return key_word_is(word, "gpus") ? advise(parts[here].path, "cluster.gpus", NULL, buffer, size) : NULL;
}

const char *key_words_path(size_t index)
{
    return index < sizeof words / sizeof words[0] ? words[index].path : NULL;
}
