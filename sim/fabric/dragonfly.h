/*
 * dragonfly.h - dragonfly fabrics: groups of switches, fully connected inside a group, and groups connected by global cables.
 *
 * Example: Frontier has 74 groups of a = 32 switches with p = 16 NIC ports each, and L = 4 cables between any two groups. A
 * group sends 73 * 4 / (32 * 16) = 0.57 of its NIC bandwidth to other groups (its taper).
 *
 * Kim, Dally, Scott, Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008; HPE Slingshot: De Sensi, Di
 * Girolamo, McMahon, Roweth, Hoefler, SC 2020 (arXiv:2008.08886). Symbols, as in the former where it has them:
 *
 *     p   NIC ports of a switch (terminals)             shape.tor_down
 *     a   switches of a group                           shape.switches_per_group
 *     h   ports of a switch for global cables           shape.global_per_switch
 *     g   groups                                        n_pods
 *     m   cables between two switches of a group        shape.local_links (1 in the paper)
 *     L   cables between two groups                     shape.global_links (1 in the paper's largest, g = a h + 1)
 *     T   switches that the NIC ports of a host use     shape.tors_per_set
 *
 * Counts: g a switches, g a (a - 1) / 2 m local cables, g (g - 1) / 2 L global cables, with L (g - 1) <= a h. It is balanced if
 * a = 2 p = 2 h: uniform traffic of the NICs then just fills local and global cables. The taper of a group is the rate of its
 * global cables divided by that of its NIC ports, (g - 1) L / (a p) if all ports have one rate.
 *
 * Hosts fill sets of T switches, and sets fill groups, in order: port k of a host is at switch k mod T of its set. Switch s of
 * group G has number G a + s. Cable l between groups i and j ends in group i at switch e mod a. The cables of i to all other
 * groups are counted through: e = j' L + l, where j' is the number of j among the other groups. So cables between two groups end
 * at different switches while there are some, and no switch has more than ceil(L (g - 1) / a).
 *
 * Paths (route_dragonfly.c) take at most one local, one global and one local cable: at most three between any two switches.
 * Around failed cables they go over a third switch or group. If that fails too, they go over any cables that still join the two,
 * with the fewest cables. A path with more than DRAGONFLY_LONGEST of them counts as none.
 */
#ifndef MSIM_SIM_FABRIC_DRAGONFLY_H
#define MSIM_SIM_FABRIC_DRAGONFLY_H

#include "sim/fabric/fabric.h"

/* Most cables of a path; a path (route.h) also has room for the links inside both hosts. */
enum { DRAGONFLY_LONGEST = 12 };

struct complaint; /* fabric_internal.h */

/* ---- for fabric_build, fabric_counts and fabric_check */

void dragonfly_ranges_check(const struct fabric_shape *shape, const struct complaint *to);
void dragonfly_shape_check(const struct fabric_shape *shape, const struct complaint *to);
/* The number of local and global cables for `sets` sets of switches, and of switches; as doubles, which do not overflow. */
double dragonfly_cables(const struct fabric_shape *shape, int64_t sets, double *switches);
/* Sets groups and switches of a fabric from its sets, and groups, global_per_switch and global_links of its shape if not given.
 */
void dragonfly_derive(struct fabric *fabric);
void dragonfly_derived_check(const struct fabric *fabric, const struct complaint *to);
uint32_t dragonfly_local_cables(const struct fabric *fabric);
uint32_t dragonfly_global_cables(const struct fabric *fabric);
double dragonfly_taper(const struct fabric *fabric);
/* B/s one way from the NICs of the first half of the hosts to the rest, under ideal routing: the minimum cut (dragonfly_cut.c).
 */
double dragonfly_cut(const struct fabric *fabric);
/* Checks m cables between two switches of a group, L between two groups, and no more cables at a switch than ports. */
void dragonfly_check(const struct fabric *fabric, struct diags *diags);

/* ---- arithmetic of positions */

static inline int dragonfly_group(const struct fabric *fabric, int switch_number)
{
    return switch_number / fabric->shape.switches_per_group;
}

/* Number of a pair (low < high), without gaps. */
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

/* The two switches that a local or global cable joins, the one of the lower group or number first, and its port at that switch,
 * counted through NIC, local and global ports. */
struct dragonfly_cable {
    int low, high, port;
};
struct dragonfly_cable dragonfly_cable(const struct fabric *fabric, uint32_t link);

#endif
