/*
 * megatron_translate_internal.h - one pass from arguments to a job, shared by the files megatron_translate.c, megatron_model.c,
 * megatron_job.c and others. Private to them.
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

/* The largest number that an argument can sensibly be: a product of two dimensions of a layout is an int. */
double translate_largest(enum argument argument);
/* Whether an argument is said and can be told. */
bool translate_has(struct translation *m, enum argument argument);
/* Its text or fallback; NULL where there is none or it cannot be told. */
const char *translate_text(struct translation *m, enum argument argument);
bool translate_is(struct translation *m, enum argument argument, const char *text);
/* A flag's truth; of a log that does not name it: false. */
bool translate_true(struct translation *m, enum argument argument);
/* The same, but a log that does not name it is of a version in which it was what it is when left out. */
bool translate_usual(struct translation *m, enum argument argument);
/* Its whole number, from the text or the fallback; `otherwise` when there is none or it is wrong. At least `low`. */
int64_t translate_int(struct translation *m, enum argument argument, int64_t low, int64_t otherwise);
/* The key came from this argument, or from its fallback. */
void translate_from(struct translation *m, const char *key, enum argument argument);
/* What must be known is missing, unless its argument is there and only wrong or not known, which is reported as such. */
void translate_missing(struct translation *m, enum argument argument, const char *what);
void translate_not_modelled(struct translation *m, enum argument argument, const char *format, ...) PRINTF_LIKE(3, 4);

/* Chunks of a pipeline's ranks and its schedule; where layers stand otherwise than msim puts them it is told. */
void translate_chunks(struct translation *m);
void translate_schedule(struct translation *m);
void translate_stages(struct translation *m);
/* How many GPUs, replicas and shards among these. */
void translate_gpus(struct translation *m);

/* Of other frameworks. Is the model named, and not described? Then what the arguments leave out is as that model has it. */
bool translate_names_model(struct translation *m);
void translate_named_model(struct translation *m);
/* A schedule and its chunks by PyTorch's name; false where none is said. */
bool translate_torch_schedule(struct translation *m);
/* DeepSpeed in bf16 without a stage of ZeRO: its optimizer shards states and sums in fp32. */
bool translate_deepspeed_alone(struct translation *m);
/* Replicas as degrees of replication and sharding make them, 0 where these do not say. The ZeRO stage that sharding is, false
 * where nothing is said of it; among how many; batches of a replica. */
int64_t translate_torch_replicas(struct translation *m);
bool translate_torch_zero(struct translation *m);
void translate_torch_shards(struct translation *m);
void translate_shards_within(struct translation *m);
void translate_torch_batches(struct translation *m);

/* Of a mesh of devices. Is there one? Degrees by its axes; replicas as axes make them, 0 where one is open; ZeRO stage and shards
 * among replicas; batches by what each device has. */
bool translate_has_mesh(struct translation *m);
void translate_mesh(struct translation *m);
int64_t translate_mesh_replicas(struct translation *m);
void translate_mesh_shards(struct translation *m);
void translate_device_batch(struct translation *m);

/* The parts: what arguments mean for the model, for how the work is divided, for the job. */
void translate_model(struct translation *m);
void translate_layout(struct translation *m);
void translate_job(struct translation *m);
void translate_memory(struct translation *m);
/* A configuration's switch is off: the number of layers beside it, which its recipes leave there, means nothing. */
bool translate_offloads_none(struct translation *m); /* recomputation, offloading */
void translate_adapter(struct translation *m);       /* behind all others: it has to fit them */

#endif
