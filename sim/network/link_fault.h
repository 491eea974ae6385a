/*
 * link_fault.h - links that change during a step, and how NICs retransmit after a flap.
 *
 * Example: a flap of 10 ms with the default T = 20 stalls its transfers for 4.3 s: retransmit_stall(10 ms, 20, false).
 *
 * A link that goes down for a while loses what is on it. The sender's NIC only notices a missing acknowledgement. It waits
 *
 *     t = 4.096 us * 2^T        (T: local acknowledgement timeout, InfiniBand specification 9.7.6.1.3; NCCL_IB_TIMEOUT)
 *
 * and sends again, up to RETRANSMIT_TRIES times. Then the connection breaks, and the job with it. So a flap of length D stalls
 * its transfers until the first retry after it, ceil(D / t) t, however short it was. MegaScale (section 3.6) tunes timer and
 * count, and uses a feature of its NICs that retries sooner. How soon is not published. Assumption: the first retry after t /
 * 128, each wait twice the previous one up to t, and the same total patience.
 *
 * A flap does not change routes: it ends before routing protocols converge.
 */
#ifndef MSIM_SIM_NETWORK_LINK_FAULT_H
#define MSIM_SIM_NETWORK_LINK_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/units.h"

enum { RETRANSMIT_TRIES = 7, RETRANSMIT_EXPONENT = 20, RETRANSMIT_EXPONENT_MAX = 31, RETRANSMIT_ADAPTIVE_DOUBLINGS = 7 };

/* From `at` on a link runs at this fraction of its rate. */
struct link_event {
    nanos at;
    uint32_t link;
    double speed; /* 0 to 1 */
};

/* The wait t of a NIC with exponent T. */
nanos retransmit_interval(int exponent);
/* How long a flap of length `down` stalls the transfers on its link; -1: all retries fail before it ends. */
nanos retransmit_stall(nanos down, int exponent, bool adaptive);

/* Total order: time, link, speed. */
int link_event_compare(const void *a, const void *b);

#endif
