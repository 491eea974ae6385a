/*
 * adapter.h - low-rank adapters (LoRA; Hu and others, arXiv:2106.09685) next to frozen matrices.
 *
 * Example: r = 16 on a matrix of 4096 x 4096.
 *
 *     trained parameters   r (in + out) = 16 * 8192 = 131,072 instead of 16.8 million
 *     forward FLOPs        2 T r (in + out) per T tokens, 0.8 % of those of W
 *
 * Next to W [out, in] two thin matrices are trained, A [r, in] and B [out, r]: y = W x + s B (A x). For T tokens on a rank:
 *
 *     forward    z = A x, B z: 2 T r (in + out) FLOPs; the result is added to W x (read, read, write; unfused, it is scaled in a
 *                separate pass)
 *     backward   W: only the gradient of its input. dz = B^T dy, A^T dz, which is added to that (read, read, write); dB = dy z^T
 *                and dA = dz x^T: 4 T r (in + out) FLOPs
 *     kept       z, and x where W alone would not need it
 *
 * Tensor parallelism over t ranks, as Megatron-Bridge and NeMo do it (ParallelLinearAdapter; read, not measured): both matrices
 * are divided whichever way W is, so t divides r (in + out), and thin exchanges connect the parts.
 *
 *     W by outputs  A by its rows (t must divide r): z is gathered (2 T r bytes); B like W. Backward dz is all-reduced. x is
 *                   gathered with W's; the adapter keeps it as it was gathered
 *     W by inputs   A like W: z is all-reduced; B by outputs: its result is gathered (2 T out bytes), and with sequence
 *                   parallelism each rank adds its tokens of it; backward the output's gradient is gathered once more
 *     W whole       (latent attention's down-projections) A and B whole too
 *
 * Tables trained whole (job.adapter.whole) have gradients and optimizer states like any weight: the backward pass of the
 * embedding, the weight gradient of the logits, the exchange of both among replicas and, for a shared table, between the ends
 * of a pipeline.
 *
 * Not counted: the frozen original that peft keeps next to a module trained whole (2 bytes per parameter); dropout before A;
 * and that the input of the first layer needs no gradient (one layer's part of the input gradients; stacks that recompute
 * layers compute it, `enable_input_require_grads`). Operands have the job's precision, 16 bits or more.
 */
#ifndef MSIM_MODEL_COST_WORK_ADAPTER_H
#define MSIM_MODEL_COST_WORK_ADAPTER_H

#include "model/cost/work/work.h"

/* Parameters of the adapters of `range` on a rank; 0 without adapters. */
double adapter_parameters(const struct layout *layout, const struct setting *setting, struct layer_range range);
/* Number of linear layers of a layer with an adapter. Each keeps 2 r bytes per token, the result of A. */
int adapter_count(const struct layout *layout, const struct setting *setting, struct layer_kind kind);
/* Whether the weights of the token table, or of the output matrix, are trained: without adapters always, with adapters if the
 * job requests it. */
static inline bool adapter_trains(const struct job *job, const struct transformer *model, enum adapter_whole end)
{
    return !job_adapts(job) || (model->tied_embeddings ? job->adapter.whole != 0 : job->adapter.whole >> end & 1);
}
/* A rank's parameters of tables that are trained with adapters, for a stage with these ends. */
double adapter_tables(const struct layout *layout, const struct setting *setting, bool embedding, bool head);
/* Adapter parameters of the whole model in a stack with these features (matrices that the stack fuses share one A). */
double adapter_parameters_of_model(const struct setting *setting, feature_set features);
/* trained: these and the tables trained with them. total: the parameters of the model and of its adapters. */
struct adapted_model {
    double trained, total;
};
struct adapted_model adapted_model_of(const struct setting *setting, feature_set features);

#endif
