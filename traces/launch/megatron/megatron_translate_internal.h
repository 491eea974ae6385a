/*
 * megatron_translate_internal.h - the functions that translate arguments of Megatron-LM to a job (private to megatron_*.c).
 *
 * Example: the size of expert tensor parallelism.
 *
 *     int etp = (int)translate_int(m, ARGUMENT_ETP, 1, tp);           the given value, at least 1; tp if none is given
 *     translate_from(m, "layout.etp", ARGUMENT_ETP);                  the origin: "--expert-tensor-parallel-size, train.sh:12"
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_TRANSLATE_INTERNAL_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_TRANSLATE_INTERNAL_H

#include "traces/launch/megatron/megatron_translate.h"

struct translation {
    const struct megatron_arguments *arguments;
    const struct launch_known *known;
    struct launch_description *description;
    struct diags *diags;
};

/* The largest sensible value of an argument: the product of two dimensions of a layout must be an int. */
double translate_largest(enum argument argument);
/* Is an argument given, with a known value? */
bool translate_has(struct translation *m, enum argument argument);
/* Its value or its default; NULL: there is none, or it is not known. */
const char *translate_text(struct translation *m, enum argument argument);
bool translate_is(struct translation *m, enum argument argument, const char *text);
/* A flag as a boolean; false for a log that does not name it. */
bool translate_true(struct translation *m, enum argument argument);
/* The same, but the default for a log that does not name it: in that version the default was the only way. */
bool translate_usual(struct translation *m, enum argument argument);
/* Its whole number, at least `low`, from the value or the default; `otherwise` if there is none or it is wrong. */
int64_t translate_int(struct translation *m, enum argument argument, int64_t low, int64_t otherwise);
/* Records that a key came from this argument or its default. */
void translate_from(struct translation *m, const char *key, enum argument argument);
/* Records that a required value is missing, unless its argument is given but wrong or unknown, which is reported elsewhere. */
void translate_missing(struct translation *m, enum argument argument, const char *what);
void translate_not_modelled(struct translation *m, enum argument argument, const char *format, ...) PRINTF_LIKE(3, 4);

/* Chunks and schedule of a pipeline, and its stages. A warning reports layers on other stages than msim puts them. */
void translate_chunks(struct translation *m);
void translate_schedule(struct translation *m);
void translate_stages(struct translation *m);
/* The number of GPUs, replicas, and shards among replicas. */
void translate_gpus(struct translation *m);

/* Other frameworks. Is the model named, and not described? Then the named model supplies what the arguments do not. */
bool translate_names_model(struct translation *m);
void translate_named_model(struct translation *m);
/* A schedule and its chunks by PyTorch's name; false if there is none. */
bool translate_torch_schedule(struct translation *m);
/* DeepSpeed in bf16 without a stage of ZeRO: its optimizer shards states and sums in fp32. */
bool translate_deepspeed_alone(struct translation *m);
/* Replicas by degrees of replication and sharding, 0 if these do not determine them; the ZeRO stage of such sharding, false if
 * nothing specifies it; the number of ranks that share states; batches of a replica. */
int64_t translate_torch_replicas(struct translation *m);
bool translate_torch_zero(struct translation *m);
void translate_torch_shards(struct translation *m);
void translate_shards_within(struct translation *m);
void translate_torch_batches(struct translation *m);

/* A mesh of devices. Is there one? Degrees by its axes; replicas by its axes, 0 if one is open; ZeRO stage and shards; batches
 * by the batch per device. */
bool translate_has_mesh(struct translation *m);
void translate_mesh(struct translation *m);
int64_t translate_mesh_replicas(struct translation *m);
void translate_mesh_shards(struct translation *m);
void translate_device_batch(struct translation *m);

/* The model, the layout, the job. */
void translate_model(struct translation *m);
void translate_layout(struct translation *m);
void translate_job(struct translation *m);
void translate_memory(struct translation *m);
/* Is offloading switched off in a configuration? Then the number of layers next to the switch has no meaning. */
bool translate_offloads_none(struct translation *m); /* recomputation, offloading */
void translate_adapter(struct translation *m);       /* after all others, because it must fit them */

#endif
