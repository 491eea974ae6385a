/*
 * reconcile_internal.h - what a table assumes against what is known otherwise: the parts of reconcile.h (private to it), in the
 * order in which they are asked. Each tells in one warning what it changed.
 */
#ifndef MSIM_TRACES_TABLE_RECONCILE_INTERNAL_H
#define MSIM_TRACES_TABLE_RECONCILE_INTERNAL_H

#include "traces/table/measurement.h"

/*
 * An assumed micro-batch that a stack's fused softmax cannot take (layout_fuses_softmax) is doubled until it can, if the batch
 * divides by it and it fits as the other does: nobody runs the slow path by choice. In a pipeline, where the micro-batch trades
 * the bubble for efficiency, it is tuned before anything is published: there an assumed one gives way to the one of 1, 2, 4 and 8
 * that the closed form makes fastest among those that fit the memory, as `msim plan` would choose it. The measured time is never
 * looked at.
 */
void reconcile_micro_batches(struct measurement_table *table, struct diags *diags);

/*
 * A row that ran and assumes that nothing was recomputed, with which it does not fit the memory, takes the least that makes it
 * fit: the light modules (layout_light_modules), else whole layers, the fewest; nothing changes where these do not do either.
 * Assumption: whoever would need whole layers and has GPUs with a coherent link to the memory of the host (gpu.host_rate: Grace)
 * put activations there instead, which costs little time; such a row stays as it is, and its memory is told as over the GPU's.
 */
void reconcile_recomputation(struct measurement_table *table, struct diags *diags);

/*
 * A source often leaves the vocabulary out, and a table fills in the usual one. It is a large part of a small model's arithmetic
 * and of any model's memory at the last stage. But a source that prints step time t and MFU u has said how many FLOPs it counts
 * for one token,
 *
 *     F = u t (GPUs) (peak) / (tokens of a step),
 *
 * whatever the time was. Published MFU counts 6 P + 12 L a s (PaLM, appendix B), where the parameters P include both vocabulary
 * tables, L is the number of layers, a the width of all heads together, s the sequence length; so the vocabulary is
 *
 *     V = (F - 6 P_layers - 12 L a s) / 12 h.
 *
 * Rows of one shape speak together, by their median. The assumption stays when it agrees with them under any usual count (two
 * tables, one, none; all or the causal half of attention) within half a percent, when fewer than three rows speak, when they
 * disagree by more than half a percent of F, or when V is no sensible vocabulary. Otherwise all rows of that shape, those without
 * an MFU too, take V in steps of 256, with a warning. The time itself is never looked at: only its product with the MFU.
 */
void reconcile_vocabularies(struct measurement_table *table, struct diags *diags);

/*
 * Rows whose F (above) is more than one and a half times off every usual count (a step time in other units, another GPU's peak)
 * are told: one of the two numbers is wrong, and the time is what stays. Of mixtures of experts nothing is told.
 */
void reconcile_tell_contradictions(const struct measurement_table *table, struct diags *diags);

#endif
