/* measurement_columns.c - other names of columns in other people's tables, with their units. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/base/append.h"
#include "traces/table/measurement_internal.h"

/* Names that a table may have beside that of each GPU's. */
#define MAY_BE_TOTAL "tflops tflop_s"

/* Names between blanks, plain; a factor of 0: the name has no unit of its own, SI is taken where nothing is said; those in SI
 * units, and what one of others is in these. */
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
    {COLUMN_NIC_GBPS, 1, "gbps_per_gpu nic_gbps_per_gpu"},
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
    {COLUMN_BATCH_TOKENS, 1, "tokens_per_batch tokens_per_step global_batch_tokens gbs_tokens global_batch_size_tokens"},
    {COLUMN_RECOMPUTE, 1,
     "recomputation activation_recompute activation_recomputation activation_checkpointing act_ckpt ac checkpointing"},
    {COLUMN_PRECISION, 1, "dtype data_type compute_dtype"},
    {COLUMN_GRADIENT_PRECISION, 1, "grad_dtype gradient_dtype grad_reduce_dtype reduce_dtype grad_precision"},
    {COLUMN_SCHEDULE, 1, "pipeline_schedule pp_schedule"},
    {COLUMN_FEATURES, 1, "optimizations optimisations techniques"},
    {COLUMN_OUTCOME, 1, "status"},
    {COLUMN_STEP_TIME_S, 0, "step_time time_step time_per_step iteration_time time_per_iteration iter_time"},
    {COLUMN_STEP_TIME_S, 1,
     "s_per_step sec_per_step seconds_per_step s_step iteration_time_s s_per_iter s_iter iter_time_s time_per_step_s"},
    {COLUMN_STEP_TIME_S, 1e-3,
     "step_time_ms iteration_time_ms iter_time_ms time_per_step_ms ms_per_step ms_step ms_per_iter ms_iter"},
    {COLUMN_MFU_PCT, 1, "mfu model_flops_utilization mfu_percent"},
    {COLUMN_TOKENS_PER_S, 1, "tokens_s tokens_sec tokens_per_sec tokens_per_second tok_s throughput_tokens_s"},
    {COLUMN_TOKENS_PER_S_GPU, 1,
     "tokens_s_gpu tokens_sec_gpu tok_s_gpu tokens_per_s_per_gpu tokens_per_sec_per_gpu "
     "tokens_per_second_per_gpu tokens_s_per_gpu tokens_sec_per_gpu tok_s_per_gpu tokens_per_s_per_device tokens_gpu_s "
     "tokens_per_gpu_per_s tps_per_gpu tgs wps_per_gpu"},
    {COLUMN_SAMPLES_PER_S, 1, "samples_s samples_sec samples_per_sec samples_per_second sequences_per_s sequences_s"},
    {COLUMN_TFLOPS_GPU, 1, "tflops_per_gpu tflop_s_gpu tflops_s_gpu tflop_s_per_gpu tflops_s_per_gpu tflops_device"},
    {COLUMN_TFLOPS_GPU, 1, MAY_BE_TOTAL},
};

/* What stands before a parenthesis, and what in it: "Step time (ms)". */
static void split_unit(const char *header, char *name, size_t name_size, char *unit, size_t unit_size)
{
    char before[64];
    size_t n = strcspn(header, "([");
    snprintf(before, sizeof before, "%.*s", (int)n, header);
    words_plain(before, name, name_size);
    const char *inside = header + n + strspn(header + n, "([ ");
    snprintf(unit, unit_size, "%.*s", (int)strcspn(inside, ")]"), inside);
}

/* The column of a plain name, and the factor of its unit; -1: none. */
static int named_column(const char *plain, double *factor)
{
    for (int c = 0; c < N_COLUMNS; c++)
        if (strcmp(plain, measurement_columns[c].name) == 0) {
            *factor = 1;
            return c;
        }
    for (size_t i = 0; i < sizeof other_columns / sizeof *other_columns; i++)
        if (words_list(other_columns[i].names, plain)) {
            *factor = other_columns[i].factor;
            return (int)other_columns[i].column;
        }
    return -1;
}

/* What a column's name stands for. A unit behind it that this column has not, or that another one in the name contradicts, is a
 * factor of 0. */
struct column_meant {
    int column; /* -1: none */
    double factor;
};

static bool says_only_which(const char *unit)
{
    char plain[32];
    return words_list("mean avg average median measured", words_plain(unit, plain, sizeof plain));
}

static bool is_ascii(const char *text)
{
    while (*text && (unsigned char)*text < 0x80)
        text++;
    return *text == '\0';
}

static struct column_meant column_of(const char *header)
{
    char name[64], unit[32], whole[64];
    double own, said;
    words_plain(header, whole, sizeof whole);                       /* "Tokens/s (per GPU)" is no "Tokens/s" */
    int column = is_ascii(header) ? named_column(whole, &own) : -1; /* a micro sign would be lost */
    if (column >= 0 && !strpbrk(header, "(["))
        return (struct column_meant){column, own > 0 ? own : 1};
    if (column >= 0 && own > 0)
        return (struct column_meant){column, own};
    split_unit(header, name, sizeof name, unit, sizeof unit);
    column = named_column(name, &own);
    if (column < 0)
        return (struct column_meant){-1, 0};
    if (column == COLUMN_GLOBAL_BATCH && !(cell_unit(COLUMN_GLOBAL_BATCH, unit) > 0) && cell_unit(COLUMN_BATCH_TOKENS, unit) > 0)
        column = COLUMN_BATCH_TOKENS;
    said = !*unit || says_only_which(unit) ? (own > 0 ? own : 1) : cell_unit((enum column)column, unit);
    bool clash = column == COLUMN_STEP_TIME_S && own > 0 && (said < own || said > own);
    return (struct column_meant){column, clash ? 0 : said};
}

/* A column that is not read, and why. */
static void leave_out(const struct measurement_parser *parser, struct csv_table *csv, int i, const char *why, const char *name)
{
    diag_warning(parser->diags, csv_header_place(csv, i), "column '%.40s' is not read: %s %s", csv->header[i], why, name);
    csv->header[i] = "";
}

static void rename_column(struct measurement_parser *parser, struct csv_table *csv, int i, char *said, size_t size)
{
    char plain[64];
    struct column_meant meant = column_of(csv->header[i]);
    const char *name = meant.column < 0 ? NULL : measurement_columns[meant.column].name;
    if (!name || strcmp(csv->header[i], name) == 0)
        return;
    if (!(meant.factor > 0)) {
        leave_out(parser, csv, i, "the text after its name is no unit of", name);
        return;
    }
    if (csv_table_column(csv, name) >= 0) {
        leave_out(parser, csv, i, "another one here is", name);
        return;
    }
    bool milli = fabs(meant.factor - 1e-3) < 1e-9, other_unit = meant.factor < 1 || meant.factor > 1;
    bool same = !other_unit && strcmp(words_plain(csv->header[i], plain, sizeof plain), name) == 0;
    if (!same)
        text_append(said, size, "%s'%.40s' as %s", *said ? ", " : "", csv->header[i], name);
    if (milli)
        text_append(said, size, " in ms");
    else if (other_unit)
        text_append(said, size, " times %g", meant.factor);
    csv->header[i] = name;
    parser->factors[meant.column] = meant.factor;
}

void words_rename_columns(struct measurement_parser *parser, struct csv_table *csv)
{
    char said[1024] = "", plain[64];
    for (int c = 0; c < N_COLUMNS; c++)
        parser->factors[c] = 1;
    for (int weak = 0; weak < 2; weak++) /* those that may mean another thing only where no column surely means it */
        for (int i = 0; i < csv->n_columns; i++)
            if (words_list(MAY_BE_TOTAL, words_plain(csv->header[i], plain, sizeof plain)) == (weak == 1))
                rename_column(parser, csv, i, said, sizeof said);
    if (*said)
        diag_note(parser->diags, (struct place){.file = csv->name}, "columns read: %s", said);
}
