/*
 * measurement.h - tables of measured training runs: one row, one run.
 *
 * Columns (an empty cell is an unknown value; [] marks columns that may be missing altogether):
 *
 *     [case] [model] layers hidden [ffn_hidden] [gated_mlp] heads [kv_heads] seq_len [vocab] gpu [gpus] [gpus_per_node]
 *     [nic_gbps] [tp] [pp] [vpp] [cp] [cp_comm] [dp] [ep] [zero] [shard] [sequence_parallel] [micro_batch] [global_batch]
 *     [accumulation] [batch_tokens] [recompute] [precision] [gradient_precision] [schedule] [features] [outcome] [step_time_s]
 *     [tokens_per_s] [tokens_per_s_gpu] [samples_per_s] [tflops_gpu] [mfu_pct] [assumed] [source]
 *
 * With a column `model` also `layers`, `hidden` and `heads` may be missing: then every row names a model of the catalog. A row
 * needs gpus or dp, and of the batch global_batch, batch_tokens (tokens a step) or accumulation (micro-batches of a replica).
 *
 * Tables of other hands: names of columns in any case, with their unit behind them ("Step time (ms)") or as they are often
 * called (GBS, seqlen, num_gpus, TGS), which is told (measurement_words.c); n/a, - and their like for an empty cell; numbers with
 * groups of digits, units and what they are within (1,024; ~10.2 s; 8k; 51 %: measurement_cells.c); words as other frameworks
 * spell them (BFloat16, ZeRO-3, SAC, 1F1B interleaved). A column with a unit that is none of its kind and the second of a kind
 * are not read, which is told. Whether a comma groups digits or stands before a fraction the cells decide that can be read one
 * way only (1,5; 0,512; 1,024.5; whole numbers); without any, commas between semicolons are points, and the first number that
 * could be read otherwise is told of.
 *
 * A row becomes the model, cluster, job and layout that the simulator takes:
 *
 *   model     A catalog name gives the details that columns cannot (norm, biases, experts); the shape columns that are there win
 *             over it. Of a mixture of experts only `layers` and `vocab` do: its widths are not one number. Without a known name
 *             the shape columns must stand alone, and what they leave open is decided by kind: gated MLPs or grouped queries mean
 *             a LLaMA-like model (RMS norm, rotary positions, no biases, untied head), otherwise a GPT-like one (layer norm,
 *             biases, learned positions up to 4,096 tokens and ALiBi beyond, tied head). Under ZeRO-3 without fused operators
 *             the latter is of MPT's line: ALiBi and no biases.
 *
 *   defaults  ffn_hidden 4 h (gated: 8/3 h in steps of 256), kv_heads = heads, vocab 51,200 (LLaMA-like 32,000),
 *             gpus_per_node of the usual host, tp pp vpp cp ep 1, cp_comm ring, zero 1 and sequence_parallel where tp > 1
 *             (as layouts that name neither: layout_defaults), shard 0 (all replicas), micro_batch 1, recompute none, precision
 *             bf16, outcome ok; dp from gpus / (tp pp cp), gpus from tp pp cp dp; the schedule from pp and vpp. vocab,
 *             micro_batch and recompute that are empty are as open as those that `assumed` names: they may give way
 *             (reconcile.h).
 *
 *   job       Adam. Gradients are reduced in what gradient_precision says: fp32, bf16 or fp16. Where that is empty, in fp16 when
 *             computing in fp16; computing in bf16 in bf16 where a row says a stage of ZeRO that shards (1 to 3), computing in
 *             fp8 where it says any, 0 too; else in fp32, as in a job that does not say. So an empty cell of zero is not the
 *             same as a 1 in it: the stage is, the gradients are not, which is told.
 *
 *   measured  step_time_s, or tokens or samples a second; without them what TFLOPS or MFU make of msim's own count (attention
 *             in full, no recomputation), which is told. OOM in their place is an outcome. Columns that contradict one another
 *             are warned of, and the first of these is taken. A step beyond the GPUs' peak cannot have been: its row is skipped.
 *             One below 1/200 of the peak is warned of. Both are likely to be in another unit, or of one GPU where all are
 *             meant.
 *
 *   features  between semicolons; a name nobody knows is warned of once and left out. An empty cell is a run without any; where
 *             the column is missing altogether rows have those of current training stacks, as a job that names none, and where
 *             a cell begins with a sign +NAME and -NAME change these, which is told. Fused
 *             operators are a sign of Megatron's line, which cuts pipeline messages among tensor-parallel ranks unasked, and
 *             whose loss is fused where its exchanges are overlapped, unless a row says plain_loss.
 *
 * Trouble. A header without the columns that rows need is an error. A row with a cell that cannot be read (no number, negative)
 * or that cannot be used (an unknown GPU, precision, recomputation, outcome or exchange of cp, a model without its shape, GPUs
 * that are not tp x pp x cp x dp, nor tp x pp x dp where others count cp in dp) is warned of with its line and column, skipped
 * and counted; of an unknown GPU the first row speaks for all. What has one sensible meaning is taken so, with a warning: an
 * unknown schedule (what pp and vpp mean), schedules without the pipeline or chunks they need (and vpp 2 for the V-shaped ones),
 * a global batch that is no multiple of dp x micro_batch (the next one), ZeRO-3 with a pipeline (2), a FlashAttention that the
 * GPU has no kernels of (the newest it has). A row without a step time is predicted, and compared with nothing.
 */
#ifndef MSIM_TRACES_TABLE_MEASUREMENT_H
#define MSIM_TRACES_TABLE_MEASUREMENT_H

#include "model/layout/layout.h"
#include "traces/table/csv.h"

/* Among the features of a row: the loss is not fused. */
#define PLAIN_LOSS "plain_loss"

/* Columns that a row leaves open and that are reconciled with what else is known, as a set. */
enum measurement_open { OPEN_VOCAB = 1, OPEN_MICRO_BATCH = 2, OPEN_RECOMPUTE = 4 };

struct measurement {
    struct place at;     /* of the row */
    const char *name;    /* the `case` column; where it is empty, the model's */
    bool named;          /* it is the former */
    const char *source;  /* what the row says of its origin, "" nothing */
    const char *assumed; /* columns that the source does not state, between semicolons */
    unsigned open;       /* of the above those that stand there, or whose cells are empty */
    struct transformer model;
    struct cluster cluster;
    struct job job;
    struct layout layout;
    int gpus;
    bool loss_assumed; /* fused_loss is none of its words */
    bool oom;          /* the run ended out of memory: no times */
    bool untold;       /* neither a time nor an outcome: nobody says whether it fitted */
    double step_s;     /* measured; 0 unknown (always for oom) */
    bool derived;      /* from a rate or a share that was measured, where no time is said */
    double mfu;        /* measured, fraction; 0 unknown */
};

struct measurement_table {
    struct csv_table csv; /* owns the texts above */
    struct measurement *items;
    size_t n_items;   /* usable rows, in the file's order */
    size_t n_skipped; /* unusable ones */
};

/* Read a whole table (".gz", "-"). *table is written only on success; free it with measurement_table_free. */
MUST_CHECK enum status measurement_table_read(const char *path, struct measurement_table *table, struct diags *diags);
/* The same of a table in memory; takes over `csv`, also on failure. */
MUST_CHECK enum status measurement_table_build(struct csv_table *csv, struct measurement_table *table, struct diags *diags);
void measurement_table_free(struct measurement_table *table);

/* What the simulator takes; points into the measurement. */
static inline struct setting measurement_setting(const struct measurement *measurement)
{
    return (struct setting){
        .model = &measurement->model, .cluster = &measurement->cluster, .job = &measurement->job, .gpus = measurement->gpus};
}

#endif
