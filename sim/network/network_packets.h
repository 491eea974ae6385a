/*
 * network_packets.h - carries the flows of a network_flow that leave their NVLink domain packet by packet
 * (sim/fabric/packets.h).
 *
 * Example: executor and packets take turns. The executor knows that nothing begins before 5 ms. network_packets_advance(p, 5 ms)
 * returns 3 ms, because a flow ends then; the executor handles that, and asks again.
 *
 * A flow of the step is a connection with all its queue pairs. Here each queue pair is a connection of packets, and the flow
 * ends with the last of them. There are two clocks. The executor says until when nothing else can begin; the packets advance to
 * then, or until a flow ends. So neither ever sees an event that the other has yet to handle.
 *
 * Links carry net_fraction of their rate, as with flows. The delay of cables is part of the latency that follows a transfer
 * (network_flow.h), so it is subtracted from it and counts once. Alone, a transfer takes the closed form's time plus the
 * store-and-forward times of a packet: its time on all links but the slowest.
 *
 * Transfers inside a domain are flows as before. A path over NVLink (rail_aware) is shared with other packets only.
 */
#ifndef MSIM_SIM_NETWORK_NETWORK_PACKETS_H
#define MSIM_SIM_NETWORK_NETWORK_PACKETS_H

#include "sim/fabric/packets.h"
#include "sim/fabric/route.h"
#include "sim/network/network_flow.h"

struct network_packets;

/* Like packets_create, with the links of `fabric` at `fraction` of their rates. The fabric is not used after the call. `options`
 * must outlive the packets; its progress members may change. */
MUST_CHECK enum status network_packets_create(const struct fabric *fabric, double fraction,
                                              const struct network_packets_options *options, struct network_packets **out,
                                              struct diags *diags);
void network_packets_destroy(struct network_packets *packets); /* NULL is allowed */

/* Adds a queue pair to flow number `flow`, which is the last one or a new one. A flow that leaves no domain is not carried here.
 */
void network_packets_open(struct network_packets *packets, uint32_t flow, const struct path *path);
bool network_packets_carry(const struct network_packets *packets, uint32_t flow);
bool network_packets_busy(const struct network_packets *packets, uint32_t flow);
/* Sends `bytes` over each queue pair of an idle flow, now. */
void network_packets_send(struct network_packets *packets, uint32_t flow, double bytes);
/* Cable delay of a packet on a flow's longest path. */
nanos network_packets_delay(const struct network_packets *packets, uint32_t flow);

/* Advances to `until` (INT64_MAX: until nothing is under way) or to the end of a flow. Returns that end; INT64_MAX: none; -1: the
 * limit of simulated time is reached. */
nanos network_packets_advance(struct network_packets *packets, nanos until);
/* Has a flow ended? Then take it; NO_FLOW: no more. */
bool network_packets_ended(const struct network_packets *packets);
uint32_t network_packets_take(struct network_packets *packets);

/* Is the limit of simulated time reached? */
bool network_packets_too_long(const struct network_packets *packets);
const struct packets *network_packets_seen(const struct network_packets *packets);

#endif
