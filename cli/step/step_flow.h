/*
 * step_flow.h - the step on a fabric: its options, and the load of its links.
 *
 *     msim step job.yaml --network flow --flap tor:17@2s+50ms
 */
#ifndef MSIM_CLI_STEP_STEP_FLOW_H
#define MSIM_CLI_STEP_STEP_FLOW_H

#include "cli/job/job_setup.h"
#include "cli/output/result_row.h"
#include "cli/step/step_packets.h"
#include "sim/step/step.h"

enum { HOT_LINKS = 10 };

struct step_flow {
    struct invocation *call;
    struct fabric fabric;
    struct network_flow_options options;
    int *placement;
    struct link_event *events;
    FILE *map; /* NULL: no table of links wanted */
    /* After the run. */
    double seconds; /* of the step */
    struct hot_link hot[HOT_LINKS];
    int n_hot;
    struct layer_use layers[N_FABRIC_LAYERS];
    struct flows_counts counts;
    struct link_usage *fair; /* packets: [links] what fair flows did; NULL before */
    struct step_packets packets;
};

extern const char *const placement_choices[];

/* Fabric, routing and placement of the options, and with --network packet how packets go; sets how->flow and how->seen. Release
 * with step_flow_free. */
MUST_CHECK enum status step_flow_load(struct invocation *call, const struct job_setup *setup, struct step_flow *flow,
                                      struct step_options *how);
void step_flow_free(struct step_flow *flow);

void step_flow_write(const struct step_flow *flow, const struct invocation *call);
/* Its keys in a result, of a layer, and of a contended link. */
extern const struct result_row step_flow_rows[], fabric_layer_rows[], hot_link_rows[];

#endif
