/*
 * step_packets.h - the step packet by packet: its expected cost, and the queues and pauses of its links.
 *
 *     msim step job.yaml --network packet --mtu 64KiB
 *
 * msim first runs the step with fair flows. That gives the number of packets, and the time with rates that are fair at once.
 */
#ifndef MSIM_CLI_STEP_STEP_PACKETS_H
#define MSIM_CLI_STEP_STEP_PACKETS_H

#include <jansson.h>

#include "cli/fabric/fabric_packets.h"
#include "cli/output/result_row.h"
#include "sim/network/network_flow.h"

/* Of packets over links: six to ten minutes of a processor. */
#define STEP_HOPS_MAX 5e9

struct step_packets {
    bool wanted;
    struct network_packets_options options;
    /* From the step with fair flows. */
    double fair_s;
    double hops; /* estimated packets times links */
    struct packets_summary seen;
};

/* Creates the packet network for --network packet, on a fabric that sustains `fraction` of its rates. It is created before
 * anything runs, so that errors are reported first. It is for one run; do not move `packets` until it is freed. */
MUST_CHECK enum status step_packets_load(struct invocation *call, const struct fabric *fabric, double fraction,
                                         struct step_packets *packets);
void step_packets_free(struct step_packets *packets);
/* Estimates the number of packets from the traffic of the links in a step of `seconds` with fair flows. */
void step_packets_measure(struct step_packets *packets, const struct fabric *fabric, const struct link_usage *usage,
                          double seconds);
/* Reports in call->diags if these are too many, with an alternative. */
MUST_CHECK enum status step_packets_check(struct invocation *call, const struct step_packets *packets);
/* After the run. */
void step_packets_see(struct step_packets *packets, const struct fabric *fabric, const struct packets *seen, double seconds);

void step_packets_write(const struct invocation *call, const struct fabric *fabric, const struct step_packets *packets);
/* With step_packet_rows, most_paused and deepest. */
extern const struct result_row step_packet_rows[];
json_t *step_packets_json(const struct invocation *call, const struct fabric *fabric, const struct step_packets *packets);

#endif
