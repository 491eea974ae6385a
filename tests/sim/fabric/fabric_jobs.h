/* What the suites of this folder share: fabrics from their texts, packets on them, jobs on MegaScale's machines and their steps.
 */
#ifndef MSIM_TESTS_SIM_FABRIC_JOBS_H
#define MSIM_TESTS_SIM_FABRIC_JOBS_H

#include "model/layout/layout.h"
#include "sim/fabric/packets.h"
#include "sim/network/network_flow.h"

/* The fabric of a text that must be right; fabric_free it. */
struct fabric fabric_parsed(const char *text);

/* Packets of 4,000 B, on links of 25 GB/s 160 ns each; links have 700 ns unless the fabric says otherwise. What was stopped goes
 * on two packets below the threshold that stopped it. */
struct packets_parameters packets_of_4000(enum congestion congestion);
/* With parameters that must be right; packets_destroy them. */
struct packets *packets_created(const struct fabric *fabric, const struct packets_parameters *with);

struct job_case {
    struct transformer model;
    struct cluster cluster;
    struct job job;
    struct setting setting; /* points into this struct */
    struct layout layout;
    struct fabric fabric;
};

/* A catalog model on `nodes` nodes of MegaScale, `batch` sequences of 2,048 tokens; the layout from its text, the fabric from
 * its own (NULL: the cluster's). */
void job_create(struct job_case *c, const char *model, feature_set features, int nodes, int batch, const char *layout,
                const char *fabric);
/* When what is under way alone on a network is taken, and then its `what` and the latency that is left of it. */
nanos transfer_taken(const struct network *table, uint64_t *what, nanos *latency);
/* Its step with every rank simulated; `flow` NULL: on the analytic network. */
nanos job_step(struct job_case *c, const struct network_flow_options *flow);

#endif
