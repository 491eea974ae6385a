/*
 * schemas.h - the schemas of all parts of a specification; the rows are in gpu_schema.c, transformer_schema.c, ...
 *
 * Example: schema_read(&gpu_schema, mapping, &gpu, diags).
 */
#ifndef MSIM_MODEL_SPEC_SCHEMAS_H
#define MSIM_MODEL_SPEC_SCHEMAS_H

#include "model/spec/job.h"
#include "model/spec/schema.h"

extern const struct schema gpu_schema;         /* struct gpu */
extern const struct schema transformer_schema; /* struct transformer */
extern const struct schema cluster_schema;     /* struct cluster */
extern const struct schema job_schema;         /* struct job */
extern const struct schema layout_schema;      /* the keys of a layout, checked one by one: layout_request.h */
extern const struct schema experiment_schema;  /* its parts: rows of pointers, not to be read by others */
extern const struct schema faults_schema;      /* struct faults_request */

/* The features of a job's `features` value. NULL or null: the usual ones. Changes alone, "+ep_overlap", apply to the usual
 * ones. job_schema reports mistakes when it reads them. */
struct yaml_node;
struct job_features {
    feature_set features;
    feature_set named;  /* features named without a sign */
    feature_set absent; /* features removed that were not there */
};
struct job_features job_features(const struct yaml_node *value, feature_set usual);
/* Whether the value consists of such changes. */
bool job_features_change(const struct yaml_node *value);

/* Writes a cluster without the keys that its topology lacks; like schema_write in all else. Derived values of a dragonfly are
 * left out unless `followed`: a written value counts as specified and does not change with the number of nodes. */
struct cluster;
json_t *cluster_write(const struct cluster *cluster, bool followed);

#endif
