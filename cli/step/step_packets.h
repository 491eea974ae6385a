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
#include "sim/network/network_flow.h"

/* Of packets over links: six to ten minutes of a processor. */
#define STEP_HOPS_MAX 5e9

struct step_packets {
    bool wanted;
    struct network_packets_options options;
    /* Of the step by fair flows. */
    double fair_s;
    double hops; /* of the packets that it takes, more or less */
    struct packets_summary seen;
};

/* The packets' network, where --network packet is given, of a fabric that sustains `fraction` of its rates: made before anything
 * runs, so that what does not fit is told then. It is for one run; `packets` stays where it is until it is freed. */
MUST_CHECK enum status step_packets_load(struct invocation *call, const struct fabric *fabric, double fraction,
                                         struct step_packets *packets);
void step_packets_free(struct step_packets *packets);
/* How much there is to do, from what the links carried in a step of so many seconds by fair flows. */
void step_packets_measure(struct step_packets *packets, const struct fabric *fabric, const struct link_usage *usage,
                          double seconds);
/* Is that too much? Said in call->diags, with what to do instead. */
MUST_CHECK enum status step_packets_check(struct invocation *call, const struct step_packets *packets);
/* After the run. */
void step_packets_see(struct step_packets *packets, const struct fabric *fabric, const struct packets *seen, double seconds);

void step_packets_write(const struct invocation *call, const struct fabric *fabric, const struct step_packets *packets);
json_t *step_packets_json(const struct invocation *call, const struct fabric *fabric, const struct step_packets *packets);

#endif
