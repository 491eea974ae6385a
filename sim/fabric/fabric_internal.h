/*
 * fabric_internal.h - checks of a fabric's shape, shared by Clos and dragonfly. Private to fabric*.c and dragonfly*.c.
 */
#ifndef MSIM_SIM_FABRIC_INTERNAL_H
#define MSIM_SIM_FABRIC_INTERNAL_H

#include "sim/fabric/fabric.h"

/* Larger fabrics are typing errors, not data centres. Each link needs 12 bytes. */
enum { FABRIC_LINKS_MAX = 1 << 24, FABRIC_COUNT_MAX = 1 << 20 };

/* The position of the shape in its text, and the receiver of diagnostics. */
struct complaint {
    struct place at;
    struct diags *diags;
};

/* Report an error unless low <= value <= FABRIC_COUNT_MAX; unless 0 < rate <= 1 PB/s. */
void fabric_count_check(const struct complaint *to, int value, int low, const char *what);
void fabric_rate_check(const struct complaint *to, double rate, const char *what);
/* Reports an error unless the NIC ports of a host divide evenly over its switches (`spread_over`), and the host ports of a
 * `device`, named `called`, over the hosts. */
void fabric_host_ports_check(const struct fabric_shape *s, const struct complaint *to, const char *spread_over,
                             const char *device, const char *called);

#endif
