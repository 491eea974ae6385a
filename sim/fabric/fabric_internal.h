/*
 * fabric_internal.h - what those who look at a shape share.
 */
#ifndef MSIM_SIM_FABRIC_INTERNAL_H
#define MSIM_SIM_FABRIC_INTERNAL_H

#include "sim/fabric/fabric.h"

/* Above this a description is a slip, not a data centre: 12 bytes are kept for each link. */
enum { FABRIC_LINKS_MAX = 1 << 24, FABRIC_COUNT_MAX = 1 << 20 };

/* Where the shape stands, and where what is wrong with it is said. */
struct complaint {
    struct place at;
    struct diags *diags;
};

/* Errors unless low <= value <= FABRIC_COUNT_MAX, and unless 0 < rate <= 1 PB/s. */
void fabric_count_check(const struct complaint *to, int value, int low, const char *what);
void fabric_rate_check(const struct complaint *to, double rate, const char *what);
/* Errors unless the ports of a host's NICs divide over its switches (`spread_over`), and the host ports of a `device` (which
 * calls them `called`) over the hosts. */
void fabric_host_ports_check(const struct fabric_shape *s, const struct complaint *to, const char *spread_over,
                             const char *device, const char *called);

#endif
