/*
 * host.h - what goes to the host's memory and comes back (private to the program folder).
 *
 * Activations. What a layer keeps goes down when its forward pass ends and comes up before its backward pass. Two buffers in
 * each direction (OFFLOAD_BUFFERS), of those layers whose activations leave: the forward pass of one waits until what the one two
 * before it keeps has gone, and what it needs may come up while the two before it are at work. Layers that stay wait for nothing.
 * Where a micro-batch's backward pass is the very next one its last two layers stay.
 *
 * Gradients that the host keeps (layout_offloads_gradients) leave after each backward pass, layer by layer, when they are
 * reduced; with the second micro-batch and later ones the sum so far comes up before and is added to (as DeepSpeed does it, on
 * the GPU). Their norm is taken when the last have left.
 *
 * Parameters of ZeRO-3 come up for each gather, into two buffers (FETCHED_UNITS): when what the unit two before it had fetched
 * has been gathered.
 *
 * Update. Layer by layer: a gradient goes down (where it has not gone), the host's cores update, the weight comes up (unless it
 * is fetched for the next gather); the three run beside one another, and all wait for the norm, which the GPU takes. It updates
 * the share that stays meanwhile.
 */
#ifndef MSIM_MODEL_PROGRAM_HOST_H
#define MSIM_MODEL_PROGRAM_HOST_H

#include "model/cost/work/host_memory.h"
#include "model/program/emit.h"

/* All of it does nothing where nothing of the kind is offloaded. `slot` is one of the stage's, `layer` counts over the model. */
void host_begin(struct stage *stage);
void host_end(struct stage *stage);
void host_before_layer(struct stage *stage, const struct slot *slot, int layer);
void host_after_layer(struct stage *stage, const struct slot *slot, int layer);

/* Around segment i of a backward pass whose gradients leave; `reduced`: the last exchange of its gradients, NO_OP none.
 * `parameters` are those of the segment. */
void host_before_gradients(struct stage *stage, const struct slot *slot, int i, struct stage_parameters parameters);
void host_after_gradients(struct stage *stage, const struct slot *slot, int i, struct stage_parameters parameters,
                          uint32_t reduced);

/* What computes next waits for the last gradients that leave: the norm is of their sums. */
void host_await_gradients(struct stage *stage);

/* The copy of a segment's parameters that its gather has to wait for, NO_OP where none are offloaded; and what gathers it. */
uint32_t host_fetch(struct stage *stage, const struct slot *slot, struct segment segment);
void host_gathered(struct stage *stage, uint32_t gather);

/* The optimizer; `exchanged`: the last exchange between replicas, NO_OP none. The next computation may use the weights. */
void host_optimize(struct stage *stage, double updated, double cast, uint32_t exchanged);

#endif
