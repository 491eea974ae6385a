/* Words as tables of other hands have them: how they call columns and ways to train, and how they say that something is unknown.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "model/base/append.h"
#include "traces/measurement_reading.h"

char *words_plain(const char *text, char *buffer, size_t size)
{
    size_t n = 0;
    for (; *text && n + 1 < size; text++)
        if (isalnum((unsigned char)*text))
            buffer[n++] = (char)tolower((unsigned char)*text);
        else if (n && buffer[n - 1] != '_')
            buffer[n++] = '_';
    while (n && buffer[n - 1] == '_')
        n--;
    buffer[n] = '\0';
    return buffer;
}

bool words_say_nothing(const char *text)
{
    static const char *const words[] = {"-",    "--",  "–",    "—",   "?",       "n/a", "na",
                                        "n.a.", "nan", "null", "nil", "unknown", "tbd", "not reported"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

/* --- columns ------------------------------------------------------------------------------------------------------- */

/* Names between blanks, plain; those in SI units, and what one of others is in these. */
static const struct {
    enum column column;
    double factor;
    const char *names;
} other_columns[] = {
    {COLUMN_CASE, 1, "name run run_name id config configuration experiment"},
    {COLUMN_MODEL, 1, "model_name"},
    {COLUMN_LAYERS, 1, "num_layers n_layers layer_count"},
    {COLUMN_HIDDEN, 1, "hidden_size d_model hidden_dim"},
    {COLUMN_FFN_HIDDEN, 1, "ffn_hidden_size intermediate_size d_ff ffn ffn_size"},
    {COLUMN_HEADS, 1, "num_heads n_heads num_attention_heads attention_heads"},
    {COLUMN_KV_HEADS, 1, "num_kv_heads n_kv_heads num_key_value_heads num_query_groups"},
    {COLUMN_SEQ_LEN, 1, "seq seqlen seq_length sequence_length sequence_len context context_length max_seq_len max_seq_length"},
    {COLUMN_VOCAB, 1, "vocab_size vocabulary"},
    {COLUMN_GPU, 1, "gpu_type gpu_name gpu_model accelerator hardware device chip"},
    {COLUMN_GPUS, 1, "num_gpus n_gpus gpu_count world_size chips num_chips accelerators devices"},
    {COLUMN_GPUS_PER_NODE, 1, "gpus_node"},
    {COLUMN_NIC_GBPS, 1, "gbps_per_gpu nic network_gbps"},
    {COLUMN_TP, 1, "tensor_parallel tensor_parallel_size tp_size tensor_model_parallel_size"},
    {COLUMN_PP, 1, "pipeline_parallel pipeline_parallel_size pp_size pipeline_model_parallel_size"},
    {COLUMN_VPP, 1, "vp virtual_pipeline virtual_pipeline_size virtual_pipeline_model_parallel_size interleaving"},
    {COLUMN_CP, 1, "context_parallel context_parallel_size cp_size"},
    {COLUMN_DP, 1, "data_parallel data_parallel_size dp_size"},
    {COLUMN_EP, 1, "expert_parallel expert_parallel_size expert_model_parallel_size ep_size"},
    {COLUMN_ZERO, 1, "zero_stage sharding"},
    {COLUMN_SEQUENCE_PARALLEL, 1, "sp tp_sp"},
    {COLUMN_MICRO_BATCH, 1, "mbs micro_batch_size microbatch_size microbatch micro_bs"},
    {COLUMN_GLOBAL_BATCH, 1, "gbs global_batch_size global_bs"},
    {COLUMN_ACCUMULATION, 1, "grad_accum ga gas gradient_accumulation gradient_accumulation_steps grad_acc_steps"},
    {COLUMN_BATCH_TOKENS, 1, "tokens_per_batch tokens_per_step global_batch_tokens"},
    {COLUMN_RECOMPUTE, 1,
     "recomputation activation_recompute activation_recomputation activation_checkpointing act_ckpt ac checkpointing"},
    {COLUMN_PRECISION, 1, "dtype data_type compute_dtype"},
    {COLUMN_SCHEDULE, 1, "pipeline_schedule pp_schedule"},
    {COLUMN_FEATURES, 1, "optimizations optimisations techniques"},
    {COLUMN_OUTCOME, 1, "status"},
    {COLUMN_STEP_TIME_S, 1,
     "step_time time_step time_per_step s_per_step sec_per_step seconds_per_step s_step iteration_time iteration_time_s "
     "time_per_iteration s_per_iter s_iter iter_time iter_time_s time_per_step_s"},
    {COLUMN_STEP_TIME_S, 1e-3,
     "step_time_ms iteration_time_ms iter_time_ms time_per_step_ms ms_per_step ms_step ms_per_iter ms_iter"},
    {COLUMN_MFU_PCT, 1, "mfu model_flops_utilization mfu_percent"},
    {COLUMN_TOKENS_PER_S, 1, "tokens_s tokens_sec tokens_per_sec tokens_per_second tok_s throughput_tokens_s"},
    {COLUMN_TOKENS_PER_S_GPU, 1,
     "tokens_s_gpu tokens_sec_gpu tok_s_gpu tokens_per_s_per_gpu tokens_per_sec_per_gpu "
     "tokens_per_second_per_gpu tokens_gpu_s tokens_per_gpu_per_s tps_per_gpu tgs wps_per_gpu"},
    {COLUMN_SAMPLES_PER_S, 1, "samples_s samples_sec samples_per_sec samples_per_second sequences_per_s sequences_s"},
    {COLUMN_TFLOPS_GPU, 1,
     "tflops_per_gpu tflop_s_gpu tflops_s_gpu tflop_s_per_gpu tflops_s_per_gpu tflops_device tflops tflop_s"},
};

static bool lists(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names; *(at += strspn(at, " ")); at += strcspn(at, " "))
        if (strcspn(at, " ") == length && memcmp(at, name, length) == 0)
            return true;
    return false;
}

/* What stands before a parenthesis, and what in it: "Step time (ms)". */
static void split_unit(const char *header, char *name, size_t name_size, char *unit, size_t unit_size)
{
    char before[64];
    size_t n = strcspn(header, "([");
    snprintf(before, sizeof before, "%.*s", (int)n, header);
    words_plain(before, name, name_size);
    words_plain(header + n, unit, unit_size);
}

/* The column that a header's name stands for; -1: none. */
static int column_of(const char *header, double *factor)
{
    char name[64], unit[16], whole[64];
    *factor = 1;
    split_unit(header, name, sizeof name, unit, sizeof unit);
    for (int c = 0; c < N_COLUMNS; c++)
        if (strcmp(name, measurement_columns[c].name) == 0)
            return c;
    words_plain(header, whole, sizeof whole);
    for (size_t i = 0; i < sizeof other_columns / sizeof *other_columns; i++)
        if (lists(other_columns[i].names, name) || lists(other_columns[i].names, whole)) {
            bool milli = other_columns[i].column == COLUMN_STEP_TIME_S && strcmp(unit, "ms") == 0;
            *factor = milli ? 1e-3 : other_columns[i].factor;
            return (int)other_columns[i].column;
        }
    return -1;
}

void words_rename_columns(struct measurement_reading *reading, struct csv_table *csv)
{
    char said[1024] = "";
    for (int c = 0; c < N_COLUMNS; c++)
        reading->factors[c] = 1;
    for (int i = 0; i < csv->n_columns; i++) {
        double factor;
        int column = column_of(csv->header[i], &factor);
        const char *name = column < 0 ? NULL : measurement_columns[column].name;
        if (!name || strcmp(csv->header[i], name) == 0 || csv_table_column(csv, name) >= 0)
            continue;
        char plain[64];
        bool same = strcmp(words_plain(csv->header[i], plain, sizeof plain), name) == 0;
        if (!same)
            text_append(said, sizeof said, "%s'%.40s' as %s%s", *said ? ", " : "", csv->header[i], name,
                        factor < 1 ? " in ms" : "");
        csv->header[i] = name;
        reading->factors[column] = factor;
    }
    if (*said)
        diag_note(reading->diags, (struct place){.file = csv->name}, "columns read: %s", said);
}

/* --- ways to train ------------------------------------------------------------------------------------------------- */

static const struct {
    enum column column;
    const char *names, *ours;
} other_words[] = {
    {COLUMN_PRECISION, "bfloat16 bf16_mixed amp_bf16 bf16_amp", "bf16"},
    {COLUMN_PRECISION, "float16 half fp16_mixed 16_mixed amp_fp16", "fp16"},
    {COLUMN_PRECISION, "float32 full_precision", "fp32"},
    {COLUMN_PRECISION,
     "float8 fp8_hybrid fp8_e4m3 fp8_cs fp8_ds fp8_sc fp8_delayed fp8_current fp8_tensorwise fp8_rowwise "
     "fp8_blockwise fp8_mixed",
     "fp8"},
    {COLUMN_PRECISION, "fp8_mx mx_fp8", "mxfp8"},
    {COLUMN_PRECISION, "fp4 fp4_nv", "nvfp4"},
    {COLUMN_RECOMPUTE, "no false off 0 no_ac", "none"},
    {COLUMN_RECOMPUTE, "yes true on 1 all full_ac uniform block full_recompute", "full"},
    {COLUMN_RECOMPUTE, "sac op selective_op selective_ac attention attn", "selective"},
    {COLUMN_SCHEDULE, "interleaved_1f1b 1f1b_interleaved interleaved1f1b 1f1b_i vpp virtual_pipeline", "interleaved"},
    {COLUMN_SCHEDULE, "1f1b_flush pipedream_flush non_interleaved", "1f1b"},
    {COLUMN_SCHEDULE, "zb_h1 zbh1 zb1p", "zb-1p"},
    {COLUMN_SCHEDULE, "zb_h2 zbh2 zb2p", "zb-2p"},
    {COLUMN_SCHEDULE, "zbv zbvzerobubble zb_v zero_bubble_v", "zb-v"},
    {COLUMN_SCHEDULE, "dualpipev dualpipe_v", "dualpipe-v"},
    {COLUMN_SCHEDULE, "afab all_forward_all_backward", "gpipe"},
    {COLUMN_CP_COMM, "p2p ring_attention", "ring"},
    {COLUMN_CP_COMM, "allgather", "all_gather"},
    {COLUMN_CP_COMM, "ulysses alltoall all_to_all deepspeed_ulysses", "a2a"},
    {COLUMN_OUTCOME, "success succeeded done pass passed completed finished", "ok"},
    {COLUMN_OUTCOME, "out_of_memory cuda_oom cuda_out_of_memory", "oom"},
    {COLUMN_FEATURES, "fa1 flashattention flash_attn flash_attention_1", "flash_attention"},
    {COLUMN_FEATURES, "fa fa2 flash flashattention2 flashattention_2 flash_attention_2 flash_attn_2", "flash_attention2"},
    {COLUMN_FEATURES, "fa3 flashattention3 flashattention_3 flash_attention_3 flash_attn_3", "flash_attention3"},
    {COLUMN_FEATURES, "torch_compile compiled", "compile"},
    {COLUMN_FEATURES, "asynctp async_tensor_parallel", "async_tp"},
    {COLUMN_FEATURES, "tp_comm_overlap", "tp_overlap"},
    {COLUMN_FEATURES, "overlap_grad_reduce overlap_param_gather dp_comm_overlap", "dp_overlap"},
    {COLUMN_FEATURES, "overlap_p2p_comm p2p_overlap", "pp_overlap"},
    {COLUMN_FEATURES, "cuda_graph cudagraph cudagraphs", "cuda_graphs"},
    {COLUMN_FEATURES, "fused_linear_cross_entropy liger", "fused_linear_loss"},
    {COLUMN_FEATURES, "cut_cross_entropy cce", "cut_loss"},
    {COLUMN_FEATURES, "fused_cross_entropy cross_entropy_loss_fusion", "fused_loss"},
    {COLUMN_FEATURES, "no false off", "none"},
};

const char *words_ours(enum column column, const char *text)
{
    char plain[64];
    words_plain(text, plain, sizeof plain);
    for (size_t i = 0; i < sizeof other_words / sizeof *other_words; i++)
        if (other_words[i].column == column && lists(other_words[i].names, plain))
            return other_words[i].ours;
    return NULL;
}
