/*
 * link_fault.h - links that change while a step runs, and what NICs make of a flap.
 *
 * A link that goes down for a while loses what is on it. The sender's NIC notices nothing but a missing acknowledgement: it waits
 *
 *     t = 4.096 us * 2^T        (T: local acknowledgement timeout, InfiniBand specification 9.7.6.1.3; NCCL_IB_TIMEOUT)
 *
 * and sends again, up to RETRANSMIT_TRIES times; then the connection breaks and the job with it. A flap of length D therefore
 * stalls its transfers until the first try after it, ceil(D / t) t, however short it was: a flap of 10 ms costs 4.3 s at T = 20.
 * MegaScale (section 3.6) tunes timer and count, and uses a feature of its NICs that sends again sooner. How soon is not
 * published; assumed here: the first try after t / 128, each wait twice the one before up to t, and the same patience in all.
 *
 * Routes are not changed by a flap: it is over before routing protocols have converged.
 */
#ifndef MSIM_SIM_NETWORK_LINK_FAULT_H
#define MSIM_SIM_NETWORK_LINK_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/units.h"

enum { RETRANSMIT_TRIES = 7, RETRANSMIT_EXPONENT = 20, RETRANSMIT_EXPONENT_MAX = 31, RETRANSMIT_ADAPTIVE_DOUBLINGS = 7 };

/* From `at` on a link has this part of its rate. */
struct link_event {
    nanos at;
    uint32_t link;
    double speed; /* 0 to 1 */
};

/* One wait of a NIC with exponent T. */
nanos retransmit_interval(int exponent);
/* For how long a flap of `down` stalls the transfers on its link; -1: the tries are used up before it ends. */
nanos retransmit_stall(nanos down, int exponent, bool adaptive);

/* Total order: time, link, speed. */
int link_event_compare(const void *a, const void *b);

#endif
