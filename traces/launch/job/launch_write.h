/*
 * launch_write.h - a job as an experiment (YAML) or as a row of a measurement table (CSV), and the cluster that it runs on.
 *
 *     layout:
 *       tp: 4                             # --tensor-model-parallel-size, train.sh:31
 */
#ifndef MSIM_TRACES_LAUNCH_JOB_LAUNCH_WRITE_H
#define MSIM_TRACES_LAUNCH_JOB_LAUNCH_WRITE_H

#include <stdio.h>

#include "model/spec/cluster.h"
#include "traces/launch/job/launch.h"

/* The cluster, which the job itself does not describe. */
struct launch_machine {
    char base[256];         /* catalog name or file of the cluster; "": neither */
    char gpu[256];          /* of the GPU, if it is not the cluster's own */
    struct cluster cluster; /* with the nodes that the job needs */
    bool resized;           /* another number of nodes than the base has */
    bool by_gpu;            /* no cluster was named */
};

/* A cluster by name, with another GPU if `gpu` is not NULL; without a name, a plausible one for the GPU (cluster_of_gpu). It
 * gets as many nodes as the GPUs need. per_node 0: the usual number. */
MUST_CHECK enum status launch_machine_find(const char *cluster, const char *gpu, int gpus, int per_node,
                                           struct launch_machine *machine, struct diags *diags);

/* The model of the catalog with this shape; "" none. The vocabulary, which frameworks pad, and the longest sequence do not
 * count. */
void launch_catalog_name(const struct transformer *model, char *name, size_t size);
/* Have two models the same shape, except for vocabulary and longest sequence? */
bool launch_same_shape(const struct transformer *a, const struct transformer *b);

/* A measured run, or a job that nobody ran: its row has neither an outcome nor a time. */
struct launch_run {
    const char *name;    /* of the row: the file's name */
    const char *catalog; /* launch_catalog_name; "" none */
    const struct launch_job *job;
    const struct launch_machine *machine;
    bool oom;
    double step_s; /* 0: not measured */
    const char *source;
};

/* Writes an experiment; a comment after each value says where it is from. `heading` are lines of comment at the top. */
void launch_write_experiment(const struct launch_description *description, const struct launch_machine *machine,
                             const char *catalog, const char *const *heading, int n_heading, FILE *out);

void launch_write_header(FILE *out);
void launch_write_row(const struct launch_run *run, FILE *out);

#endif
