/* What the suites of this folder share: fabrics from their texts, jobs on MegaScale's machines. */
#ifndef MSIM_TESTS_SIM_FABRIC_JOBS_H
#define MSIM_TESTS_SIM_FABRIC_JOBS_H

#include "model/layout/layout.h"
#include "sim/fabric/fabric.h"

/* The fabric of a text that must be right; fabric_free it. */
struct fabric fabric_parsed(const char *text);

struct job_case {
    struct transformer model;
    struct cluster cluster;
    struct job job;
    struct setting setting; /* points into this struct */
    struct layout layout;
    struct fabric fabric;
};

/* A catalog's model on so many of MegaScale's nodes, `batch` sequences of 2,048 tokens; the layout from its text, the fabric from
 * its own (NULL: the cluster's). */
void job_create(struct job_case *c, const char *model, feature_set features, int nodes, int batch, const char *layout,
                const char *fabric);

#endif
