/*
 * delayed_starts.h - transfers whose links come into play later than the exchange begins: those of a hierarchical collective,
 * after what its ranks do inside their NVLink domains.
 *
 * A binary heap by time, then by the order in which they were added, so equal times have one order. O(log n) each way.
 */
#ifndef MSIM_SIM_NETWORK_DELAYED_STARTS_H
#define MSIM_SIM_NETWORK_DELAYED_STARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/units.h"

/* The flows [first, first + n) of a transfer, with so many bytes each. */
struct flows_start {
    uint32_t transfer, first, n;
    uint32_t length; /* of a ring that moves part by part: edges of a channel; else 0 */
    uint32_t parts;  /* in which each flow's bytes move */
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
/* When the next one begins; INT64_MAX: none waits. */
nanos delayed_starts_next(const struct delayed_starts *starts);
/* One whose time has come. False: there is none. */
bool delayed_starts_take(struct delayed_starts *starts, nanos now, struct flows_start *start);

#endif
