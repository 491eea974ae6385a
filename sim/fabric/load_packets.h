/*
 * load_packets.h - a load once more, packet by packet.
 */
#ifndef MSIM_SIM_FABRIC_LOAD_PACKETS_H
#define MSIM_SIM_FABRIC_LOAD_PACKETS_H

#include "sim/fabric/load.h"

/* Connection i has transfers i * per to i * per + per - 1, a queue pair each, opened in this order and not begun; by fair rates
 * it gets rates[i] B/s while all send, and ends after ends[i] s. `inside` tells of those that do not enter rates and shares. Runs
 * `packets`, which the result owns from then on. STATUS_FAILED, said in `diags`, where transfers are stuck. */
struct load_fair {
    size_t n;            /* connections */
    size_t per;          /* transfers of each */
    const double *sizes; /* [n] bytes of each transfer of a connection */
    const double *rates, *ends;
    const bool *inside;
    double *achieved; /* [n] B/s of packets while all are under way: written */
};
MUST_CHECK enum status load_packets_run(struct packets *packets, const struct load *load, const struct load_fair *fair,
                                        struct load_packets *result, struct diags *diags);
void load_packets_free(struct load_packets *result);

#endif
