/*
 * adapter.h - low-rank adapters (LoRA; Hu and others, arXiv:2106.09685) beside frozen matrices.
 *
 * Beside W [out, in] two thin matrices are trained, A [r, in] and B [out, r]: y = W x + s B (A x), so r (in + out) parameters a
 * target. Of T tokens on a rank:
 *
 *   forward    z = A x, B z: 2 T r (in + out) FLOPs; the result is added to W x (read, read, write; unfused, it is scaled in a
 *              pass of its own)
 *   backward   of W the gradient of its input alone; dz = B^T dy, A^T dz, which is added to that (read, read, write); dB = dy z^T
 *              and dA = dz x^T: 4 T r (in + out) FLOPs
 *   kept       z, and x where W alone would not need it
 *
 * Tensor parallelism over t ranks, as Megatron-Bridge and NeMo have it (ParallelLinearAdapter; read, not measured): both matrices
 * are divided whichever way W is, so t divides r (in + out), and thin exchanges hold them together.
 *
 *   W by outputs  A by its rows (t must divide r): z is gathered (2 T r bytes); B as W. Backward dz is all-reduced. x is gathered
 *                 with W's; the adapter keeps it as it was gathered
 *   W by inputs   A as W: z is all-reduced; B by outputs: what it gives is gathered (2 T out bytes), of which, with sequence
 *                 parallelism, each rank adds its tokens; backward the output's gradient is gathered for the adapter once more
 *   W whole       (latent attention's down-projections) so are A and B
 *
 * Tables trained whole (job.adapter.whole) have gradients and optimizer states as any weight: the embedding's backward pass, the
 * logits' weight gradient, the exchange of both among replicas and, of a table that is both, between the ends of a pipeline.
 *
 * Not counted: the frozen original that peft keeps beside a module trained whole (2 bytes a parameter), dropout before A, and
 * that the first layer's input needs no gradient (one part in the number of layers of what input gradients take; stacks that
 * repeat layers ask for it, `enable_input_require_grads`). Operands are of the job's precision, 16 bits or more.
 */
#ifndef MSIM_MODEL_COST_WORK_ADAPTER_H
#define MSIM_MODEL_COST_WORK_ADAPTER_H

#include "model/cost/work/work.h"

/* Parameters of the adapters of some layers on a rank; 0 without adapters. */
double adapter_parameters(const struct layout *layout, const struct setting *setting, struct layer_range range);
/* Linear layers of a layer that have one: each keeps 2 r bytes of a token, what A gives. */
int adapter_count(const struct layout *layout, const struct setting *setting, struct layer_kind kind);
/* Whether the weights of the token table, or of the output matrix, are trained: all are, or the adapters' job says so. */
bool adapter_trains(const struct job *job, const struct transformer *model, enum adapter_whole end);
/* A rank's parameters of tables that are trained beside adapters, of a stage that has these ends. */
double adapter_tables(const struct layout *layout, const struct setting *setting, bool embedding, bool head);
/* Of the whole model, once, in a stack that uses these features (matrices that it keeps in one have one A). */
double adapter_parameters_of_model(const struct setting *setting, feature_set features);
/* The same with tables trained beside them as what is trained, and the model's parameters with adapters. */
struct adapted_model {
    double trained, total;
};
struct adapted_model adapted_model_of(const struct setting *setting, feature_set features);

#endif
