/* fabric_counts.c - numbers of links and switches of a fabric, and the capacity of its tiers. */
#include <math.h>

#include "sim/fabric/dragonfly.h"

/* What crosses between two halves of the hosts at most: each half's share of the tightest tier (both directions are alike). */
static double bisection(const struct fabric *f, const struct fabric_counts *counts)
{
    double half = counts->nic_bandwidth / 2;

    if (f->shape.topology == TOPOLOGY_DRAGONFLY)
        return dragonfly_cut(f);
    if (f->layers > 1 && f->n_sets > 1)
        half = fmin(half, counts->tor_bandwidth / 2);
    if (f->layers > 2 && f->n_pods > 1)
        half = fmin(half, counts->agg_bandwidth / 2);
    return half;
}

static double layer_bandwidth(const struct fabric *f, enum fabric_layer layer)
{
    double sum = 0;

    for (uint32_t l = f->first[layer]; l < f->first[layer + 1]; l++)
        sum += fabric_rate(f, l);
    return sum;
}

struct fabric_counts fabric_counts(const struct fabric *f)
{
    const struct fabric_shape *s = &f->shape;
    struct fabric_counts counts = {
        .hosts = s->hosts,
        .gpus = f->n_gpus,
        .nics = f->n_nics,
        .ports = f->n_ports,
        .tors = f->n_tors,
        .sets = f->n_sets,
        .pods = f->n_pods,
        .aggs = f->n_aggs,
        .cores = f->n_cores,
        .nic_cables = f->n_ports,
        .tor_cables = (int)fabric_layer_links(f, LAYER_TOR_UP),
        .agg_cables = (int)fabric_layer_links(f, LAYER_AGG_UP),
        .links = fabric_links(f) - f->first[LAYER_NIC_UP],
        .nic_bandwidth = layer_bandwidth(f, LAYER_NIC_UP),
        .tor_bandwidth = layer_bandwidth(f, LAYER_TOR_UP),
        .agg_bandwidth = layer_bandwidth(f, LAYER_AGG_UP),
    };
    if (f->layers > 1)
        counts.tor_oversubscription =
            s->tor_down * f->rates[f->first[LAYER_NIC_UP]] / (s->tor_up * f->rates[f->first[LAYER_TOR_UP]]);
    if (f->layers > 2)
        counts.agg_oversubscription =
            s->agg_down * f->rates[f->first[LAYER_TOR_UP]] / (s->agg_up * f->rates[f->first[LAYER_AGG_UP]]);
    if (s->topology == TOPOLOGY_DRAGONFLY) {
        counts.local_cables = (int)fabric_layer_links(f, LAYER_LOCAL_OUT);
        counts.global_cables = (int)fabric_layer_links(f, LAYER_GLOBAL_OUT);
        counts.local_bandwidth = layer_bandwidth(f, LAYER_LOCAL_OUT);
        counts.global_bandwidth = layer_bandwidth(f, LAYER_GLOBAL_OUT);
        counts.taper = dragonfly_taper(f);
    }
    counts.bisection = bisection(f, &counts);
    return counts;
}
