/*
 * reconcile_internal.h - the parts of reconcile.h, in the order in which they are applied.
 *
 * Example: five rows of a paper assume a micro-batch of 1 in a pipeline. reconcile_micro_batches() gives them the micro-batch
 * that `msim plan` would choose, and reports this in one warning.
 */
#ifndef MSIM_TRACES_TABLE_RECONCILE_INTERNAL_H
#define MSIM_TRACES_TABLE_RECONCILE_INTERNAL_H

#include "traces/table/measurement.h"

/*
 * An assumed micro-batch that a stack's fused softmax cannot take (layout_fuses_softmax) is doubled until it can, if the batch is
 * a multiple of it and it fits as the other does: nobody runs the slow path by choice. In a pipeline, where the micro-batch
 * trades the bubble for efficiency, authors tune it before they publish: there an assumed one becomes the one of 1, 2, 4 and 8
 * that the closed form makes fastest among those that fit the memory, as `msim plan` would choose it. The measured time has no
 * influence.
 */
void reconcile_micro_batches(struct measurement_table *table, struct diags *diags);

/*
 * A row that ran and assumes no recomputation, with which it does not fit the memory, gets the least that makes it fit: the light
 * modules (layout_light_modules), else the fewest whole layers. Nothing changes if these do not suffice. Assumption: on GPUs with
 * a coherent link to the host's memory (gpu.host_rate: Grace), activations go there instead of whole layers being recomputed,
 * which costs little time. Such a row stays as it is, and its memory is reported as exceeding the GPU's.
 */
void reconcile_recomputation(struct measurement_table *table, struct diags *diags);

/*
 * A source often omits the vocabulary, and a table fills in the usual one. It is a large part of a small model's arithmetic and
 * of any model's memory at the last stage. But a source that prints step time t and MFU u determines how many FLOPs it counts for
 * one token,
 *
 *     F = u t (GPUs) (peak) / (tokens of a step),
 *
 * whatever the time was. Published MFU counts 6 P + 12 L a s (PaLM, appendix B), where the parameters P include both vocabulary
 * tables, L is the number of layers, a the width of all heads together, s the sequence length; so the vocabulary is
 *
 *     V = (F - 6 P_layers - 12 L a s) / 12 h.
 *
 * Rows of one shape decide together, by their median. The assumption stays if it agrees with them under any usual count (two
 * tables, one, none; all or the causal half of attention) within half a percent, if there are fewer than three rows, if they
 * disagree by more than half a percent of F, or if V is no sensible vocabulary. Otherwise all rows of that shape, those without
 * an MFU too, get V in steps of 256, with a warning. Only the product of the time with the MFU counts, never the time itself.
 */
void reconcile_vocabularies(struct measurement_table *table, struct diags *diags);

/*
 * Reports rows whose F (above) differs from every usual count by more than a factor of 1.5 (a step time in other units, another
 * GPU's peak): one of the two numbers is wrong, and the time stays. Mixtures of experts are not reported.
 */
void reconcile_tell_contradictions(const struct measurement_table *table, struct diags *diags);

#endif
