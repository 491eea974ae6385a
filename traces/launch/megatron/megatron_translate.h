/*
 * megatron_translate.h - what Megatron-LM's arguments mean together.
 *
 *     world      world = tp pp cp dp, so dp and the number of GPUs follow from each other. Expert parallelism lies inside tp cp
 * dp. An expert is split over tp unless --expert-tensor-parallel-size changes that. chunks     vpp = layers of a stage /
 * --num-layers-per-virtual-pipeline-stage, where the embedding and the loss count as a layer each if they are accounted for; or
 * --num-virtual-stages-per-pipeline-rank; or a pipeline layout. ZeRO       --use-distributed-optimizer: 1. FSDP: its sharding
 * strategy. torch's FSDP2: 3, or 2 where it keeps weights. widths     ffn 4 h, with SwiGLU 8/3 h down to a multiple of 64.
 * Experts have the same width. One query group if groups are switched on without a number. vocabulary padded to a multiple of
 * --make-vocab-size-divisible-by times tp, as the program pads it. A divisor of 1 leaves it as it is: msim pads to multiples of
 * tp. attention  one kernel with Transformer Engine or --use-flash-attn; scores in memory with local modules alone. overlaps   of
 * the pipeline only where it is interleaved (plain 1F1B waits for its messages).
 *
 * A log's argument block is complete: an argument that it does not name did not exist in that version.
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_TRANSLATE_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_TRANSLATE_H

#include "traces/launch/megatron/megatron_arguments.h"

/* What is known of the job from elsewhere; 0: nothing. */
struct launch_known {
    int gpus;
};

/* Arguments into a job. Unknown or wrong values are errors with their places; missing required values go to
 * description->missing. */
void megatron_translate(const struct megatron_arguments *arguments, const struct launch_known *known,
                        struct launch_description *description, struct diags *diags);

enum { PIECES_MAX = 4096 };
/* Layers of each virtual stage of a --pipeline-model-parallel-layout such as "Et*3|(tt|)*29,m|L". Returns their number; 0 if
 * the text is no layout. */
int megatron_stage_layout(const char *text, int layers[PIECES_MAX]);
/* The whole numbers, at most PIECES_MAX, of an expression such as "([0]*3+[1]*58)". Returns their number; 0 if it is no list.
 * */
int megatron_list(const char *text, int values[PIECES_MAX]);

#endif
