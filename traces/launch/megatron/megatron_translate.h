/*
 * megatron_translate.h - what Megatron-LM's arguments mean together.
 *
 *   world      world = tp pp cp dp. dp and the number of GPUs follow from one another; expert parallelism lies inside tp cp dp.
 *              An expert is split over tp unless --expert-tensor-parallel-size says otherwise.
 *   chunks     vpp = layers of a stage / --num-layers-per-virtual-pipeline-stage, where the embedding and the loss count as a
 *              layer each when they are accounted for; or as --num-virtual-stages-per-pipeline-rank or a layout says.
 *   ZeRO       --use-distributed-optimizer 1; FSDP as its sharding strategy says; torch's FSDP2 3, and 2 where it keeps weights.
 *   widths     ffn 4 h, with SwiGLU 8/3 h down to a multiple of 64; experts as wide; groups of queries 1 when only asked for.
 *   vocabulary padded to a multiple of --make-vocab-size-divisible-by times tp, as the program pads it. A divisor of 1 leaves it
 *              as it is: msim itself pads to multiples of tp.
 *   attention  one kernel by Transformer Engine or --use-flash-attn; by scores in memory with local modules without that.
 *   overlaps   of the pipeline only where it is interleaved (plain 1F1B waits for its messages).
 *
 * A log's argument block is complete: what it does not name that version did not have.
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_TRANSLATE_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_TRANSLATE_H

#include "traces/launch/megatron/megatron_arguments.h"

/* What somebody else knows of the job; 0: nothing. */
struct launch_known {
    int gpus;
};

/* Arguments into a job. What cannot be told or understood is an error with its place; what nobody says that must be known goes to
 * description->missing. */
void megatron_translate(const struct megatron_arguments *arguments, const struct launch_known *known,
                        struct launch_description *description, struct diags *diags);

enum { PIECES_MAX = 4096 };
/* Layers of each virtual stage of a --pipeline-model-parallel-layout, such as "Et*3|(tt|)*29,m|L"; their number, 0 when it is
 * none. */
int megatron_stage_layout(const char *text, int layers[PIECES_MAX]);
/* The list that an expression such as "([0]*3+[1]*58)" is, of at most PIECES_MAX whole numbers; their number, 0 when it is none.
 */
int megatron_list(const char *text, int values[PIECES_MAX]);

#endif
