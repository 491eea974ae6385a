/*
 * megatron_reading.h - one pass from arguments to a job, shared by the files megatron_meaning.c, megatron_model.c,
 * megatron_job.c and others. Private to them.
 */
#ifndef MSIM_TRACES_MEGATRON_READING_H
#define MSIM_TRACES_MEGATRON_READING_H

#include "traces/launch/megatron_meaning.h"

struct meaning {
    const struct megatron_arguments *arguments;
    const struct launch_known *known;
    struct launch_description *description;
    struct diags *diags;
};

/* Whether an argument is said and can be told. */
bool meaning_has(struct meaning *m, enum argument argument);
/* Its text or fallback; NULL where there is none or it cannot be told. */
const char *meaning_text(struct meaning *m, enum argument argument);
bool meaning_is(struct meaning *m, enum argument argument, const char *text);
/* A flag's truth; of a log that does not name it: false. */
bool meaning_true(struct meaning *m, enum argument argument);
/* The same, but a log that does not name it is of a version in which it was what it is when left out. */
bool meaning_usual(struct meaning *m, enum argument argument);
/* Its whole number, from the text or the fallback; `otherwise` when there is none or it is wrong. At least `low`. */
int64_t meaning_int(struct meaning *m, enum argument argument, int64_t low, int64_t otherwise);
/* The key came from this argument, or from its fallback. */
void meaning_from(struct meaning *m, const char *key, enum argument argument);
/* What must be known is missing, unless its argument is there and only wrong or not known, which is reported as such. */
void meaning_missing(struct meaning *m, enum argument argument, const char *what);
void meaning_not_modelled(struct meaning *m, enum argument argument, const char *format, ...) PRINTF_LIKE(3, 4);

/* Chunks of a pipeline's ranks and its schedule; where layers stand otherwise than msim puts them it is told. */
void meaning_chunks(struct meaning *m);
void meaning_schedule(struct meaning *m);
void meaning_stages(struct meaning *m);
/* How many GPUs, replicas and shards among these. */
void meaning_gpus(struct meaning *m);

/* Of other frameworks. Is the model named, and not described? Then what the arguments leave out is as that model has it. */
bool meaning_names_model(struct meaning *m);
void meaning_named_model(struct meaning *m);
/* A schedule and its chunks by PyTorch's name; false where none is said. */
bool meaning_torch_schedule(struct meaning *m);
/* DeepSpeed in bf16 without a stage of ZeRO: its optimizer shards states and sums in fp32. */
bool meaning_deepspeed_alone(struct meaning *m);
/* Replicas as degrees of replication and sharding make them, 0 where these do not say. The ZeRO stage that sharding is, false
 * where nothing is said of it; among how many; batches of a replica. */
int64_t meaning_torch_replicas(struct meaning *m);
bool meaning_torch_zero(struct meaning *m);
void meaning_torch_shards(struct meaning *m);
void meaning_shards_within(struct meaning *m);
void meaning_torch_batches(struct meaning *m);

/* Of a mesh of devices. Is there one? Degrees by its axes; replicas as axes make them, 0 where one is open; ZeRO stage and shards
 * among replicas; batches by what each device has. */
bool meaning_has_mesh(struct meaning *m);
void meaning_mesh(struct meaning *m);
int64_t meaning_mesh_replicas(struct meaning *m);
void meaning_mesh_shards(struct meaning *m);
void meaning_device_batch(struct meaning *m);

/* The parts: what arguments mean for the model, for how the work is divided, for the job. */
void meaning_model(struct meaning *m);
void meaning_job(struct meaning *m);
void meaning_memory(struct meaning *m);
/* A configuration's switch is off: the number of layers beside it, which its recipes leave there, means nothing. */
bool meaning_offloads_none(struct meaning *m); /* recomputation, offloading */
void meaning_adapter(struct meaning *m);       /* behind all others: it has to fit them */

#endif
