/*
 * route_internal.h - functions that the routes of a Clos and of a dragonfly share. Private to route*.c.
 */
#ifndef MSIM_SIM_FABRIC_ROUTE_INTERNAL_H
#define MSIM_SIM_FABRIC_ROUTE_INTERNAL_H

#include "model/base/hash.h"
#include "sim/fabric/route.h"

/* Chooses one of n by the hash of a 5-tuple at a switch. The salt is the switch's number; polarised switches ignore it. */
static inline int route_hash(const struct router *router, uint64_t key, uint64_t salt, int n)
{
    uint64_t own = router->polarised ? 0 : salt;
    uint64_t hash = hash_mix(key + hash_mix(own + router->seed * HASH_GOLDEN));
    return (int)((hash >> 32) * (uint64_t)n >> 32);
}

static inline bool route_is_up(const struct fabric *fabric, uint32_t link)
{
    return fabric->speed[link] > 0;
}

static inline void path_add(struct path *path, uint32_t link)
{
    path->links[path->n++] = link;
}

/* Appends the links from NIC port to NIC port to *path. Returns false if there is no path; *path is then invalid. */
MUST_CHECK bool route_append(const struct router *router, int from, int to, uint32_t queue_pair, struct path *path);

/* Appends the links between two switches of a dragonfly to *path. `d`: number of the destination, for static routing. Returns
 * false if there is no path; *path is then invalid. */
MUST_CHECK bool route_dragonfly(const struct router *router, int from, int to, uint64_t key, uint32_t d, struct path *path);

#endif
