/*
 * delayed_starts.h - a queue of transfers that start later than their exchange: a hierarchical collective uses the fabric only
 * after its ranks have finished their part inside their NVLink domains.
 *
 * It is a binary heap by time, then by the order of insertion, so equal times have one order. O(log n) to add and take.
 */
#ifndef MSIM_SIM_NETWORK_DELAYED_STARTS_H
#define MSIM_SIM_NETWORK_DELAYED_STARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/units.h"

/* The flows [first, first + n) of a transfer, with `carried` bytes each. */
struct flows_start {
    uint32_t transfer, first, n;
    uint32_t length; /* per-step ring: edges per channel; otherwise 0 */
    uint32_t parts;  /* number of parts of each flow's bytes */
    double carried;
};

struct delayed_start {
    nanos at;
    uint64_t order;
    struct flows_start start;
};

struct delayed_starts {
    struct delayed_start *heap;
    size_t n, capacity;
    uint64_t added;
};

void delayed_starts_free(struct delayed_starts *starts);
void delayed_starts_add(struct delayed_starts *starts, nanos at, struct flows_start start);
/* When the next one starts; INT64_MAX: none. */
nanos delayed_starts_next(const struct delayed_starts *starts);
/* Takes one that starts by `now`; returns false if there is none. */
bool delayed_starts_take(struct delayed_starts *starts, nanos now, struct flows_start *start);

#endif
