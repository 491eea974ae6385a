/*
 * launch_write.h - a job as msim's own words: an experiment, or a row of a measurement table.
 */
#ifndef MSIM_TRACES_LAUNCH_JOB_LAUNCH_WRITE_H
#define MSIM_TRACES_LAUNCH_JOB_LAUNCH_WRITE_H

#include <stdio.h>

#include "model/spec/cluster.h"
#include "traces/launch/job/launch.h"

/* What the job runs on, which its own words do not say. */
struct launch_machine {
    char base[256];         /* catalog name or file of the cluster; "" where nobody has such a one */
    char gpu[256];          /* of the GPU, where it is not the cluster's own */
    struct cluster cluster; /* with the nodes that the job needs */
    bool resized;           /* other nodes than the base has */
    bool by_gpu;            /* nobody named a cluster */
};

/*
 * A cluster by name, a GPU in its place (or NULL), or one plausible for a GPU (cluster_of_gpu) when there is no name; large
 * enough for the GPUs. per_node 0: the usual.
 */
MUST_CHECK enum status launch_machine_find(const char *cluster, const char *gpu, int gpus, int per_node,
                                           struct launch_machine *machine, struct diags *diags);

/* The model of the catalog with this shape, whatever its vocabulary (frameworks pad it) and longest sequence; "" none. */
void launch_catalog_name(const struct transformer *model, char *name, size_t size);
/* Have two models the same shape, but for vocabulary and longest sequence? */
bool launch_same_shape(const struct transformer *a, const struct transformer *b);

/* A run that was measured, or one that nobody ran: its row has neither an outcome nor a time. */
struct launch_run {
    const char *name;    /* of the row: the file's */
    const char *catalog; /* launch_catalog_name; "" none */
    const struct launch_job *job;
    const struct launch_machine *machine;
    bool oom;
    double step_s; /* 0: not measured */
    const char *source;
};

/* An experiment with a comment beside each value that says where it is from. `heading` are lines of comment in front. */
void launch_write_experiment(const struct launch_description *description, const struct launch_machine *machine,
                             const char *catalog, const char *const *heading, int n_heading, FILE *out);

void launch_write_header(FILE *out);
void launch_write_row(const struct launch_run *run, FILE *out);

#endif
