/* fabric_common.c - functions on which both topologies, Clos (fabric.c) and dragonfly (dragonfly.c), build. */
#include "sim/fabric/fabric_internal.h"

void fabric_count_check(const struct complaint *to, int value, int low, const char *what)
{
    if (value < low || value > FABRIC_COUNT_MAX)
        diag_error(to->diags, to->at, "fabric: %d %s; the number must be between %d and %d", value, what, low, FABRIC_COUNT_MAX);
}

void fabric_rate_check(const struct complaint *to, double rate, const char *what)
{
    if (!(rate > 0) || rate > 1e15)
        diag_error(to->diags, to->at, "fabric: the rate of %s must be above 0 and at most 1 PB/s", what);
}

void fabric_host_ports_check(const struct fabric_shape *s, const struct complaint *to, const char *spread_over,
                             const char *device, const char *called)
{
    int64_t ports = (int64_t)s->nics_per_host * s->ports_per_nic;

    if (ports % s->tors_per_set)
        diag_error(to->diags, to->at, "fabric: the %lld NIC ports of a host do not divide evenly over %d %s", (long long)ports,
                   s->tors_per_set, spread_over);
    else if (s->tor_down % (ports / s->tors_per_set))
        diag_error(to->diags, to->at, "fabric: a %s's %d %s ports are not a multiple of the %lld that each host uses", device,
                   s->tor_down, called, (long long)(ports / s->tors_per_set));
}

enum fabric_layer fabric_layer_of(const struct fabric *fabric, uint32_t link)
{
    int layer = 0;

    while (layer + 1 < N_FABRIC_LAYERS && link >= fabric->first[layer + 1])
        layer++;
    return (enum fabric_layer)layer;
}
