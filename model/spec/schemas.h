/*
 * schemas.h - the keys of every part of a specification; the rows are in gpu_schema.c, transformer_schema.c, ...
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

/* What a job's `features` say (NULL or null: nothing, so the usual ones), where changes alone, "+ep_overlap", are of the usual
 * ones. What is wrong with them is reported when job_schema reads them. */
struct yaml_node;
struct job_features {
    feature_set features;
    feature_set named;  /* without a sign */
    feature_set absent; /* taken away where they were not */
};
struct job_features job_features(const struct yaml_node *value, feature_set usual);
/* Whether they are such changes. */
bool job_features_change(const struct yaml_node *value);

/* A cluster without the keys that its topology does not have; as schema_write otherwise. What of a dragonfly followed from the
 * rest is left out unless it is asked for: where it stands it is said, and does not follow when nodes change. */
struct cluster;
json_t *cluster_write(const struct cluster *cluster, bool followed);

#endif
