/*
 * host.h - copies between the GPU and the host's memory, and updates on the host (private to the program folder).
 *
 * Example: three layers whose activations leave, two buffers. Forward passes F and copies D down to the host, over time:
 *
 *     compute   F0 F1 F2 ...          F2 waits for D0, because both buffers hold F0's and F1's activations until then
 *     down         D0 D1 D2
 *
 * Activations. The activations of a layer go down when its forward pass ends and come up before its backward pass. There are
 * two buffers in each direction (OFFLOAD_BUFFERS). The forward pass of a leaving layer waits until the activations of the
 * leaving layer two before it have gone. Its activations may come up while the two layers before it run their backward passes.
 * Layers that stay wait for nothing. Where a micro-batch's backward pass directly follows its forward pass, its last two layers
 * stay.
 *
 * Gradients that the host keeps (layout_offloads_gradients) leave layer by layer after each backward pass, when they are
 * reduced. From the second micro-batch on, the sum so far comes up first and the GPU adds to it (as in DeepSpeed). The norm is
 * computed when the last gradients have left.
 *
 * Parameters of ZeRO-3 come up for each gather, into two buffers (FETCHED_UNITS): a copy waits until the unit two before it has
 * been gathered.
 *
 * Update, layer by layer: a gradient goes down (unless it already has), the host's cores update, the weight comes up (unless it
 * is fetched for the next gather). The three overlap, and all wait for the norm, which the GPU computes. Meanwhile the GPU
 * updates the share that stays.
 */
#ifndef MSIM_MODEL_PROGRAM_HOST_H
#define MSIM_MODEL_PROGRAM_HOST_H

#include "model/cost/work/host_memory.h"
#include "model/program/emit.h"

/* These functions do nothing where nothing of the kind is offloaded. `slot` is a slot of the stage; `layer` counts over the
 * model. */
void host_begin(struct stage *stage);
void host_end(struct stage *stage);
void host_before_layer(struct stage *stage, const struct slot *slot, int layer);
void host_after_layer(struct stage *stage, const struct slot *slot, int layer);

/* Before and after segment i of a backward pass whose gradients leave. `parameters` are those of the segment. `reduced`: the
 * last exchange of its gradients, NO_OP none. */
void host_before_gradients(struct stage *stage, const struct slot *slot, int i, struct stage_parameters parameters);
void host_after_gradients(struct stage *stage, const struct slot *slot, int i, struct stage_parameters parameters,
                          uint32_t reduced);

/* The next computation waits for the last leaving gradients, because the norm is of their sums. */
void host_await_gradients(struct stage *stage);

/* host_fetch returns the copy of a segment's parameters for which its gather has to wait, NO_OP where none are offloaded.
 * host_gathered reports the gather. */
uint32_t host_fetch(struct stage *stage, const struct slot *slot, struct segment segment);
void host_gathered(struct stage *stage, uint32_t gather);

/* Appends the optimizer. `exchanged`: the last exchange between replicas, NO_OP none. Later computations may use the weights. */
void host_optimize(struct stage *stage, double updated, double cast, uint32_t exchanged);

#endif
