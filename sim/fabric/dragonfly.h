/*
 * dragonfly.h - groups of switches, all joined to all inside a group, and groups joined by global cables.
 *
 * Kim, Dally, Scott, Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008; HPE Slingshot: De Sensi, Di
 * Girolamo, McMahon, Roweth, Hoefler, SC 2020 (arXiv:2008.08886). Symbols as in the former where it has one:
 *
 *     p   NIC ports of a switch (terminals)             shape.tor_down
 *     a   switches of a group                           shape.switches_per_group
 *     h   ports of a switch for global cables           shape.global_per_switch
 *     g   groups                                        n_pods
 *     m   cables between two switches of a group        shape.local_links (1 in the paper)
 *     L   cables between two groups                     shape.global_links (1 in the paper's largest, g = a h + 1)
 *     T   switches that a host's NIC ports go round     shape.tors_per_set
 *
 * Counts: g a switches, g a (a - 1) / 2 m local cables, g (g - 1) / 2 L global cables, for L (g - 1) <= a h. Balanced is a = 2 p
 * = 2 h: what NICs send uniformly then fills local and global cables just so. The taper of a group is the rate of its global
 * cables over that of its NIC ports, (g - 1) L / (a p) where all ports have one rate: Frontier's 74 groups of 32 switches with 16
 * ports each and 4 cables between any two have 0.57.
 *
 * Hosts fill sets of T switches, sets fill groups, in order: port k of a host is at switch k mod T of its set. Switch s of group
 * G is number G a + s. Cable l between groups i and j ends in group i at switch e mod a, with e = (j', l) counted through, j' the
 * number of j among the other groups: e = j' L + l. So cables between two groups end at different switches as long as there are
 * some, and no switch has more than ceil(L (g - 1) / a).
 *
 * Paths (route_dragonfly.c) take at most one local, one global and one local cable: between any two switches there are at most
 * three. Where cables have failed they go over a third switch or group, and where that does not do either over any that still
 * join the two, with the fewest cables. A way that needs more than DRAGONFLY_LONGEST of them counts as none.
 */
#ifndef MSIM_SIM_FABRIC_DRAGONFLY_H
#define MSIM_SIM_FABRIC_DRAGONFLY_H

#include "sim/fabric/fabric.h"

/* Cables that a way takes at most; a path (route.h) has room for those inside both hosts beside them. */
enum { DRAGONFLY_LONGEST = 12 };

struct complaint; /* fabric_internal.h */

/* ---- what fabric_build, fabric_counts and fabric_check ask */

void dragonfly_ranges_check(const struct fabric_shape *shape, const struct complaint *to);
void dragonfly_shape_check(const struct fabric_shape *shape, const struct complaint *to);
/* Local and global cables for so many sets of switches, in wide arithmetic; also the switches. */
double dragonfly_cables(const struct fabric_shape *shape, int64_t sets, double *switches);
/* Groups and switches of a fabric with its sets; groups, global_per_switch and global_links of its shape, where not said. */
void dragonfly_derive(struct fabric *fabric);
void dragonfly_derived_check(const struct fabric *fabric, const struct complaint *to);
uint32_t dragonfly_local_cables(const struct fabric *fabric);
uint32_t dragonfly_global_cables(const struct fabric *fabric);
double dragonfly_taper(const struct fabric *fabric);
/* B/s one way from the NICs of the first half of the hosts to those of the rest, under ideal routing: the least cut between them,
 * through whatever cables (dragonfly_cut.c). */
double dragonfly_cut(const struct fabric *fabric);
/* Every two switches of a group have m cables, every two groups L, no switch more than its ports. */
void dragonfly_check(const struct fabric *fabric, struct diags *diags);

/* ---- arithmetic of positions */

static inline int dragonfly_group(const struct fabric *fabric, int switch_number)
{
    return switch_number / fabric->shape.switches_per_group;
}

/* Number of a pair (low < high): those of 0 first, without gaps. */
static inline uint32_t dragonfly_pair(int low, int high)
{
    return (uint32_t)high * (uint32_t)(high - 1) / 2 + (uint32_t)low;
}

/* Link of cable i from a switch to another of its group. */
static inline uint32_t dragonfly_local_link(const struct fabric *fabric, int from, int to, int i)
{
    const struct fabric_shape *s = &fabric->shape;
    int a = s->switches_per_group, x = from % a, y = to % a;
    uint32_t in_group = (uint32_t)a * (uint32_t)(a - 1) / 2, pair = x < y ? dragonfly_pair(x, y) : dragonfly_pair(y, x);

    return fabric->first[x < y ? LAYER_LOCAL_OUT : LAYER_LOCAL_IN] +
           ((uint32_t)(from / a) * in_group + pair) * (uint32_t)s->local_links + (uint32_t)i;
}

/* Link of cable l from a group to another one. */
static inline uint32_t dragonfly_global_link(const struct fabric *fabric, int from, int to, int l)
{
    uint32_t pair = from < to ? dragonfly_pair(from, to) : dragonfly_pair(to, from);

    return fabric->first[from < to ? LAYER_GLOBAL_OUT : LAYER_GLOBAL_IN] + pair * (uint32_t)fabric->shape.global_links +
           (uint32_t)l;
}

/* The switch of `group` at which cable l to group `other` ends, and its number among the global ports of that switch. */
static inline int dragonfly_gateway(const struct fabric *fabric, int group, int other, int l)
{
    const struct fabric_shape *s = &fabric->shape;

    return group * s->switches_per_group + ((other - (other > group)) * s->global_links + l) % s->switches_per_group;
}
static inline int dragonfly_gateway_port(const struct fabric *fabric, int group, int other, int l)
{
    const struct fabric_shape *s = &fabric->shape;

    return ((other - (other > group)) * s->global_links + l) / s->switches_per_group;
}

/* What a local or global cable joins: two switches, the one of the lower group or number first, and the port at which it leaves
 * that one, counted through its NIC, local and global ports. */
struct dragonfly_cable {
    int low, high, port;
};
struct dragonfly_cable dragonfly_cable(const struct fabric *fabric, uint32_t link);

#endif
