/*
 * update_internal.h - the functions that the files of runtime/update share (private to them).
 *
 * The end of a step: gradients are completed (update_gradients.c), then each unit is updated where its states are:
 *
 *     update_finish_gradients(rank, stream);                              adds up partial gradients, computes their norm
 *     struct update_part part = update_part_of_device(rank, unit);        the arguments of the optimizer for this unit
 *     struct kernel_call call = update_call(rank, part);                  KERNEL_ADAM or KERNEL_SGD
 *     rank_launch(rank, stream, &call);
 */
#ifndef MSIM_RUNTIME_UPDATE_UPDATE_INTERNAL_H
#define MSIM_RUNTIME_UPDATE_UPDATE_INTERNAL_H

#include "runtime/base/rank.h"

/* --- shards_units.c */

/* The layers that an operation concerns, and whether the embedding and the head belong to them. */
struct shard_run {
    int first, end; /* layers, of the whole model */
    bool embedding, head, layers;
};
struct shard_run shard_run_of(const struct rank *rank, const struct chunk_state *chunk, const struct op *op);
/* Whether the run contains a unit; `unit` is its index in the chunk. */
bool shard_run_has(const struct chunk_state *chunk, const struct shard_run *run, int unit);

/* --- update_gradients.c */

/* Completes the gradients of a step and computes their norm; the first call of a step does it, later ones do nothing. */
void update_finish_gradients(struct rank *rank, struct device_stream *stream);

/* --- update_part.c */

/* Elements of a unit that one call updates: those whose states the device has, or those whose states the host has. */
struct update_part {
    int64_t n;
    float *p, *m, *v; /* [n] master weights, first and second moments */
    const float *g;   /* [n] gradients */
    void *compute;    /* [n] weights in the device's precision; NULL: the master weights are these */
    struct clipping clip;
};
struct update_part update_part_of_device(const struct rank *rank, const struct unit_state *u);
struct update_part update_part_of_host(const struct rank *rank, const struct unit_state *u);
/* SGD or Adam, as the job says. */
struct kernel_call update_call(const struct rank *rank, struct update_part part);

/* --- update_lamb.c: all units on the device, or one unit whose states the host has */
void update_lamb(struct rank *rank, struct device_stream *stream);
void update_lamb_on_host(struct rank *rank, const struct unit_state *u, struct device_stream *stream);

#endif
