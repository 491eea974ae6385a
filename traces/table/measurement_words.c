/* measurement_words.c - words of other people's tables: spellings, empty cells, units, names for ways to train. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "traces/table/measurement_internal.h"

const struct csv_column measurement_columns[N_COLUMNS] = {
#define X(id, name, required) [COLUMN_##id] = {name, required},
    MEASUREMENT_COLUMNS(X)
#undef X
#define NAME_IF_true(id, key) [COLUMN_##id] = {key, false},
#define NAME_IF_false(id, key)
#define X(id, type, member, key, word, brief, long_name, least, most, usual, rare, in_tables, ...) NAME_IF_##in_tables(id, key)
        LAYOUT_DIMENSIONS(X)
#undef X
};

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

bool words_list(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names; *(at += strspn(at, " ")); at += strcspn(at, " "))
        if (strcspn(at, " ") == length && memcmp(at, name, length) == 0)
            return true;
    return false;
}

/* --- units --------------------------------------------------------------------------------------------------------- */

/* Plain words behind numbers and in the names of columns, between blanks. */
static const struct {
    enum column column;
    double factor;
    const char *names;
} units[] = {
    {COLUMN_STEP_TIME_S, 1, "s sec secs second seconds s_step s_iter s_it"},
    {COLUMN_STEP_TIME_S, 1e-3, "ms msec millisecond milliseconds ms_step ms_iter ms_it"},
    {COLUMN_STEP_TIME_S, 1e-6, "us usec microseconds"},
    {COLUMN_STEP_TIME_S, 60, "min mins minute minutes"},
    {COLUMN_STEP_TIME_S, 3600, "h hr hour hours"},
    {COLUMN_MFU_PCT, 1, "percent pct"},
    {COLUMN_SEQ_LEN, 1, "tokens"},
    {COLUMN_BATCH_TOKENS, 1, "tokens tokens_step"},
    {COLUMN_GLOBAL_BATCH, 1, "samples sequences seqs"},
    {COLUMN_MICRO_BATCH, 1, "samples sequences seqs per_gpu"},
    {COLUMN_VOCAB, 1, "tokens words"},
    {COLUMN_GPUS, 1, "gpu gpus total count"},
    {COLUMN_GPUS_PER_NODE, 1, "gpu gpus"},
    {COLUMN_TP, 1, "gpu gpus"},
    {COLUMN_PP, 1, "gpu gpus stages"},
    {COLUMN_CP, 1, "gpu gpus"},
    {COLUMN_DP, 1, "gpu gpus"},
    {COLUMN_EP, 1, "gpu gpus"},
    {COLUMN_LAYERS, 1, "layers"},
    {COLUMN_HEADS, 1, "heads"},
    {COLUMN_KV_HEADS, 1, "heads"},
    {COLUMN_NIC_GBPS, 1, "gbps gbit_s per_gpu gbps_per_gpu"},
    {COLUMN_TOKENS_PER_S, 1, "tok_s tokens_s total"},
    {COLUMN_TOKENS_PER_S_GPU, 1, "tok_s tokens_s tok_s_gpu tokens_s_gpu per_gpu"},
    {COLUMN_SAMPLES_PER_S, 1, "samples_s sequences_s seq_s total"},
    {COLUMN_TFLOPS_GPU, 1, "tflops tflop_s tflops_gpu tflop_s_gpu per_gpu gpu per_device"},
};

/* Thousands and millions: k, ki, M alone or before another word, which *rest becomes. Sequences are counted in powers of two. */
static double scale_of(const char *plain, enum column column, const char **rest)
{
    static const struct {
        const char *letters;
        double decimal, binary;
    } scales[] = {{"ki", 1024, 1024}, {"k", 1e3, 1024}, {"m", 1e6, 1048576}, {"million", 1e6, 1e6}};
    *rest = plain;
    size_t n = strcspn(plain, "_");
    for (size_t i = 0; i < sizeof scales / sizeof *scales && column != COLUMN_STEP_TIME_S && column != COLUMN_MFU_PCT; i++)
        if (strlen(scales[i].letters) == n && strncmp(plain, scales[i].letters, n) == 0) {
            *rest = plain[n] ? plain + n + 1 : "";
            return column == COLUMN_SEQ_LEN ? scales[i].binary : scales[i].decimal;
        }
    return 1;
}

double cell_unit(enum column column, const char *word)
{
    char plain[32];
    const char *rest;
    if (strncmp(word, "µs", strlen("µs")) == 0 || strncmp(word, "μs", strlen("μs")) == 0)
        word = "us";
    for (const char *c = word; *c; c++)
        if ((unsigned char)*c >= 0x80)
            return 0;
    if (strchr(word, '%'))
        return column == COLUMN_MFU_PCT && strcmp(word, "%") == 0 ? 1 : 0;
    if (strcasecmp(word, "x") == 0)
        return column == COLUMN_STEP_TIME_S ? 0 : 1;
    if (strlen(word) >= sizeof plain || (*word && !*words_plain(word, plain, sizeof plain)))
        return 0;
    double scale = scale_of(words_plain(word, plain, sizeof plain), column, &rest);
    if (!*rest)
        return scale;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].column == column && words_list(units[i].names, rest))
            return scale * units[i].factor;
    return 0;
}

/* --- ways to train ------------------------------------------------------------------------------------------------- */

static const struct {
    enum column column;
    const char *names, *ours;
} other_words[] = {
    {COLUMN_PRECISION, "bfloat16 bf16_mixed amp_bf16 bf16_amp bf16_mixed_precision", "bf16"},
    {COLUMN_PRECISION, "float16 half fp16_mixed 16_mixed amp_fp16", "fp16"},
    {COLUMN_PRECISION, "float32 full_precision", "fp32"},
    {COLUMN_PRECISION,
     "float8 fp8_hybrid fp8_e4m3 fp8_e5m2 e4m3 fp8_cs fp8_ds fp8_sc fp8_delayed fp8_current fp8_delayed_scaling "
     "fp8_current_scaling fp8_subchannel fp8_sub_channel fp8_tensorwise fp8_rowwise fp8_blockwise float8_tensorwise "
     "float8_rowwise float8_blockwise fp8_mixed fp8_mixed_precision amp_fp8 fp8_amp fp8_dpa",
     "fp8"},
    {COLUMN_PRECISION, "fp8_mx mx_fp8 float8_mx mxfp8_e4m3", "mxfp8"},
    {COLUMN_PRECISION, "fp4 fp4_nv nvfp4_hybrid nvfp4_mixed", "nvfp4"},
    {COLUMN_GRADIENT_PRECISION, "bfloat16", "bf16"},
    {COLUMN_GRADIENT_PRECISION, "float16 half", "fp16"},
    {COLUMN_GRADIENT_PRECISION, "float32", "fp32"},
    {COLUMN_RECOMPUTE, "no false off 0 no_ac no_recompute", "none"},
    {COLUMN_RECOMPUTE,
     "yes true on 1 all full_ac uniform block full_recompute full_uniform full_block activation_checkpointing every_layer remat",
     "full"},
    {COLUMN_RECOMPUTE, "sac op op_sac selective_op selective_ac attention attn", "selective"},
    {COLUMN_RECOMPUTE, "core_attention selective_core_attn selective_core_attention", "core_attn"},
    {COLUMN_SCHEDULE, "interleaved_1f1b 1f1b_interleaved interleaved1f1b 1f1b_i vpp virtual_pipeline", "interleaved"},
    {COLUMN_SCHEDULE, "1f1b_flush pipedream_flush non_interleaved", "1f1b"},
    {COLUMN_SCHEDULE, "zb_h1 zbh1 zb1p zero_bubble zerobubble", "zb-1p"},
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
    {COLUMN_FEATURES, "eager_cross_entropy", "eager_loss"},
    {COLUMN_FEATURES, "no false off", "none"},
};

const char *words_ours(enum column column, const char *text)
{
    char plain[64];
    words_plain(text, plain, sizeof plain);
    for (size_t i = 0; i < sizeof other_words / sizeof *other_words; i++)
        if (other_words[i].column == column && words_list(other_words[i].names, plain))
            return other_words[i].ours;
    return NULL;
}
