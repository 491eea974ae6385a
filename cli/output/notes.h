/*
 * notes.h - sentences and JSON objects that several commands write about a job.
 *
 *     note_write(out, 2, "MFU counts attention in full, %s.", why);
 *     trained_write(&setting, features, out);      trains   44.6 M of 69.0 B parameters: adapters of rank 16 on qkv
 *
 * Each writer prints nothing where the job does not have its subject.
 */
#ifndef MSIM_CLI_OUTPUT_NOTES_H
#define MSIM_CLI_OUTPUT_NOTES_H

#include <jansson.h>
#include <stdio.h>

#include "cli/output/result_row.h"
#include "model/base/diag.h"
#include "model/cost/step/energy.h"
#include "model/layout/layout.h"
#include "model/spec/gpu.h"

/* A paragraph and a newline, wrapped at 100 columns or the terminal's width; later lines begin with `indent` blanks. */
void note_write(FILE *out, int indent, const char *format, ...) PRINTF_LIKE(3, 4);

/* Which parameters are trained, where that is adapters. */
void trained_write(const struct setting *setting, feature_set features, FILE *out);
/* The same as keys, those of parameters_rows. */
extern const struct result_row parameters_rows[];
void trained_json(const struct setting *setting, feature_set features, json_t *object);

/* The share of attention pairs that masks between documents keep. */
void packed_write(const struct setting *setting, feature_set features, FILE *out);
/* The object `documents` of a result, with documents_rows; NULL: the job has none. */
extern const struct result_row documents_rows[];
json_t *packed_json(const struct setting *setting, feature_set features);
#define PACKED_MFU_NOTE "MFU also counts the attention that masks between documents skip, so it can exceed 100 %%."

/* How uneven the router is. */
void routing_write(const struct setting *setting, FILE *out);
/* How long the other ranks wait for the busiest one. */
void routing_write_waiting(const struct setting *setting, const struct layout *layout, FILE *out);
/* The object `experts` of a result, with experts_rows; NULL: the job says nothing of them. */
extern const struct result_row experts_rows[];
json_t *routing_json(const struct setting *setting, const struct layout *layout);
#define DROPPED_NOTE "MFU also counts the FLOPs of dropped token copies."

/*
 * The load of a fabric that is narrower above its leaves or pods than below, by the kind of groups that fills it most. Each kind
 * is charged by itself, for ranks in order on evenly used paths (model/cost/kernel/oversubscription.h); contention between kinds,
 * colliding paths and scattered ranks need the flow network.
 */
enum { OVERSUBSCRIBED_TEXT = 480 };
/* Offered load over capacity of the links above leaves or pods; 0: nothing leaves a leaf, or nothing is oversubscribed. */
double oversubscribed_load(const struct layout *layout, const struct cluster *cluster, enum group_kind *kind);
/* The load in a sentence without full stop. Returns the load; "" where that is 0. */
double oversubscribed_text(const struct layout *layout, const struct cluster *cluster, char *buffer, size_t size);

/* A diagnostic note where runs of tables reduce gradients in 16 bits: `runs` per precision. */
void narrow_gradients_note(const size_t runs[N_PRECISIONS], struct diags *diags);

/* Power and energy (model/cost/step/energy.h). */
enum { BOUND_TEXT = 160 };
/* J in MWh as "206" or "21,588". Returns buffer. */
char *megawatt_hours_text(double joules, char *buffer, size_t size);
/* The same with its unit, "206 MWh"; in kWh below one MWh. Returns buffer. */
char *energy_text(double joules, char *buffer, size_t size);
/* What is counted and what is not: "GPUs at board power (400 W), without hosts and network; PUE 1 assumed". Returns buffer. */
char *power_bound_text(const struct power_bound *bound, char *buffer, size_t size);
/* The same for points whose watts or PUE differ. */
const char *power_count_text(enum power_count count);
/* "nodes", "boards". */
const char *power_count_name(enum power_count count);
/* Do they count the same at the same watts and PUE? */
bool power_bounds_alike(const struct power_bound *a, const struct power_bound *b);
/* The object `energy_at_most` of a result, with energy_rows, for that many GPUs, GPU-hours (0: unknown) and tokens per second (0:
 * none); null where no power is published. */
extern const struct result_row energy_rows[];
json_t *energy_json(const struct power_bound *bound, double gpus, double gpu_hours, double tokens_per_s);

#endif
