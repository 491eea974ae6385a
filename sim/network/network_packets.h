/*
 * network_packets.h - the flows of a network_flow that leave their NVLink domain, packet by packet (sim/fabric/packets.h).
 *
 * A flow of the step is a connection with all its queue pairs; here each of these is a connection of packets, and the flow ends
 * with the last of them. Two clocks run side by side: the executor says up to when nothing else can begin, packets go on until
 * then or until a flow ends, and neither ever sees what the other has yet to do.
 *
 * Links carry net_fraction of their rate, as with flows. What a cable's delay adds to a packet is part of the latency that
 * follows a transfer (network_flow.h) and is taken off it, so it counts once: alone a transfer takes the closed form's time and
 * the stores of a packet on the way, a packet's time on all links but the slowest.
 *
 * What stays inside a domain is flows as ever. What of a packet's way is NVLink (rail_aware) it shares with other packets only.
 */
#ifndef MSIM_SIM_NETWORK_NETWORK_PACKETS_H
#define MSIM_SIM_NETWORK_NETWORK_PACKETS_H

#include "sim/fabric/packets.h"
#include "sim/fabric/route.h"
#include "sim/network/network_flow.h"

struct network_packets;

/* `fabric` with its links at `fraction` of their rates; the fabric is not used after the call. `options` must outlive the
 * packets; what it says of progress may change. As packets_create. */
MUST_CHECK enum status network_packets_create(const struct fabric *fabric, double fraction,
                                              const struct network_packets_options *options, struct network_packets **out,
                                              struct diags *diags);
void network_packets_destroy(struct network_packets *packets); /* NULL is allowed */

/* Another queue pair of flow number `flow`, the last one or a new one; one that leaves no domain is not carried here. */
void network_packets_open(struct network_packets *packets, uint32_t flow, const struct path *path);
bool network_packets_carry(const struct network_packets *packets, uint32_t flow);
bool network_packets_busy(const struct network_packets *packets, uint32_t flow);
/* So many bytes over each queue pair of an idle flow, now. */
void network_packets_send(struct network_packets *packets, uint32_t flow, double bytes);
/* What the cables of a flow's longest way delay a packet. */
nanos network_packets_delay(const struct network_packets *packets, uint32_t flow);

/* Go on to `until` (INT64_MAX: as long as anything is under way), or to when a flow ends, which is returned; INT64_MAX: none
 * does. -1: packets have been followed for as long as they can be. */
nanos network_packets_advance(struct network_packets *packets, nanos until);
/* A flow that has ended, NO_FLOW: no more. Are there any? */
bool network_packets_ended(const struct network_packets *packets);
uint32_t network_packets_take(struct network_packets *packets);

/* Have they? */
bool network_packets_too_long(const struct network_packets *packets);
const struct packets *network_packets_seen(const struct network_packets *packets);

#endif
