/*
 * measurement.h - tables of measured training runs: one row, one run.
 *
 *     case,model,gpu,gpus,seq_len,tp,pp,dp,micro_batch,global_batch,recompute,precision,step_time_s
 *     monday,llama3-70b,h100-sxm,1024,8192,8,4,32,1,1024,none,bf16,9.2
 *
 * README.md of this folder describes the columns. `layers`, `hidden`, `heads`, `seq_len` and `gpu` are required; the shape is not
 * if there is a column `model`: then every row names a model of the catalog. A row needs gpus or dp, and one of global_batch,
 * batch_tokens (tokens per step) and accumulation (micro-batches per replica). An empty cell is an unknown value.
 *
 * Other people's tables. Names of columns are read in any case, with their unit ("Step time (ms)") and by common names (GBS,
 * seqlen, num_gpus, TGS); a note lists them (measurement_columns.c). n/a, - and the like are empty cells. Numbers may have groups
 * of digits, units and tolerances (1,024; ~10.2 s; 8k; 51 %: measurement_cells.c). Words may be spelt as in other frameworks
 * (BFloat16, ZeRO-3, SAC, 1F1B interleaved: measurement_words.c). A column with a wrong unit, and the second column of a kind,
 * are not read, with a warning. Cells that can be read in one way only (1,5; 0,512; 1,024.5; whole numbers) decide whether a
 * comma groups digits or precedes a fraction. Without such cells it precedes a fraction in a table with semicolons; a warning
 * names the first number that could be read differently.
 *
 * A row becomes the model, cluster, job and layout that the simulator takes:
 *
 *     model     A catalog name supplies what columns cannot (norm, biases, experts). Shape columns win over it; for a mixture of
 * experts only `layers` and `vocab` do, because its widths are not one number. Without a known name the shape columns decide:
 * gated MLPs or grouped queries mean a LLaMA-like model (RMS norm, rotary positions, no biases, untied head), otherwise a
 *               GPT-like one (layer norm, biases, learned positions up to 4,096 tokens and ALiBi beyond, tied head). Under ZeRO-3
 * without fused operators the latter is like MPT: ALiBi and no biases.
 *
 *     defaults  ffn_hidden 4 h (gated: 8/3 h in steps of 256), kv_heads = heads, vocab 51,200 (LLaMA-like 32,000), gpus_per_node
 * of the usual host, tp pp vpp cp ep 1, cp_comm ring, zero 1 and sequence_parallel where tp > 1 (as layouts that name neither:
 *               layout_defaults), shard 0 (all replicas), micro_batch 1, recompute none, precision bf16, outcome ok; dp from gpus
 * / (tp pp cp), gpus from tp pp cp dp; the schedule from pp and vpp. An empty vocab, micro_batch or recompute is open, like those
 *               that `assumed` names: reconcile.h may change it.
 *
 *     job       Adam. gradient_precision is the type in which replicas sum gradients: fp32, bf16 or fp16. If it is empty: fp16
 * when computing in fp16; bf16 when computing in bf16 and the row specifies ZeRO 1 to 3, or computing in fp8 and the row
 *               specifies any stage, 0 included; otherwise fp32, as in a job that does not specify it. So an empty cell of zero
 * differs from a 1 in it: the stage is the same, the gradients are not. A note says so.
 *
 *     measured  step_time_s, or tokens or samples per second; without them TFLOPS or MFU by msim's own count (attention in full,
 * no recomputation), with a warning. OOM instead of a number is an outcome. Of columns that contradict each other the first is
 * taken, with a warning. A step beyond the GPUs' peak is impossible: its row is skipped. A step below 1/200 of the peak produces
 * a warning. Both probably have another unit, or are of one GPU instead of all.
 *
 *     features  Names between semicolons. A warning names an unknown one once, and it is left out. An empty cell is a run without
 * any. Without the column, rows have the features of current training stacks, as a job that names none. In a cell that begins
 *               with a sign, +NAME and -NAME change these, with a note. Fused operators are a sign of Megatron-LM and its
 * relatives: they cut pipeline messages among tensor-parallel ranks by default, and fuse the loss if exchanges are overlapped,
 * unless the row has plain_loss.
 *
 * Mistakes. A header without required columns is an error. A row is skipped and counted, with a warning that names line and
 * column, if a cell cannot be read (no number, negative) or used (an unknown GPU, precision, recomputation, outcome or exchange
 * of cp; a model without its shape; GPUs that are not tp x pp x cp x dp, nor tp x pp x dp where cp is counted in dp). One warning
 * covers all rows of an unknown GPU. A value with one sensible reading is read so, with a warning: an unknown schedule (by pp and
 * vpp), a schedule without the pipeline or chunks that it needs (and vpp 2 for the V-shaped ones), a global batch that is no
 * multiple of dp x micro_batch (the next one), ZeRO-3 with a pipeline (2), a FlashAttention without kernels for the GPU (the
 * newest that has some). A row without a step time is predicted and compared with nothing.
 */
#ifndef MSIM_TRACES_TABLE_MEASUREMENT_H
#define MSIM_TRACES_TABLE_MEASUREMENT_H

#include "model/layout/layout.h"
#include "traces/table/csv.h"

/* A feature of a row: the loss is not fused. */
#define PLAIN_LOSS "plain_loss"

/* Columns that a row leaves open, as a set. reconcile.h may fill them in differently. */
enum measurement_open { OPEN_VOCAB = 1, OPEN_MICRO_BATCH = 2, OPEN_RECOMPUTE = 4 };

struct measurement {
    struct place at;     /* of the row */
    const char *name;    /* the `case` column; if it is empty, the model's name */
    bool named;          /* it is the former */
    const char *source;  /* the origin of the row; "": unknown */
    const char *assumed; /* columns that the source does not state, between semicolons */
    unsigned open;       /* which of the columns above are named there or empty */
    struct transformer model;
    struct cluster cluster;
    struct job job;
    struct layout layout;
    int gpus;
    bool loss_assumed;    /* the row does not name fused_loss */
    bool oom;             /* the run ended out of memory: no times */
    bool outcome_unknown; /* neither a time nor an outcome: unknown whether it fitted */
    double step_s;        /* measured; 0 unknown (always for oom) */
    bool derived;         /* from a measured rate or share, because the row has no time */
    double mfu;           /* measured, fraction; 0 unknown */
};

struct measurement_table {
    struct csv_table csv; /* owns the texts above */
    struct measurement *items;
    size_t n_items;   /* usable rows, in the file's order */
    size_t n_skipped; /* unusable ones */
};

/* Reads a whole table (".gz", "-"). *table is written only on success; free it with measurement_table_free. */
MUST_CHECK enum status measurement_table_read(const char *path, struct measurement_table *table, struct diags *diags);
/* The same of a table in memory; takes over `csv`, also on failure. */
MUST_CHECK enum status measurement_table_build(struct csv_table *csv, struct measurement_table *table, struct diags *diags);
void measurement_table_free(struct measurement_table *table);

/* The setting that the simulator takes; it points into the measurement. */
static inline struct setting measurement_setting(const struct measurement *measurement)
{
    return (struct setting){
        .model = &measurement->model, .cluster = &measurement->cluster, .job = &measurement->job, .gpus = measurement->gpus};
}

#endif
