/*
 * load_packets.h - runs a load again packet by packet, to compare with fair rates.
 */
#ifndef MSIM_SIM_FABRIC_LOAD_PACKETS_H
#define MSIM_SIM_FABRIC_LOAD_PACKETS_H

#include "sim/fabric/load.h"

/* The load and its results by fair rates. Connection i has transfers i * per to i * per + per - 1, one per queue pair, opened in
 * this order and not begun. By fair rates it gets rates[i] B/s while all send, and ends after ends[i] s. `inside`: connections
 * that are left out of rates and shares. load_packets_run runs `packets`, which the result then owns. STATUS_FAILED with a
 * diagnostic if transfers are stuck. */
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
