/* fabric_check.c - check that the ports, counts and rates of a fabric agree. */
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/fabric/dragonfly.h"

/* Ports of aggregation and core switches that cables take, against those they have. */
static void aggs_check(const struct fabric *f, struct diags *diags)
{
    const struct fabric_shape *s = &f->shape;
    int *used = memory_new((size_t)f->n_aggs, sizeof *used);

    for (int tor = 0; tor < f->n_tors; tor++)
        for (int u = 0; u < s->tor_up; u++)
            used[fabric_agg(f, fabric_plane_of_tor(f, tor), fabric_pod_of_tor(f, tor), u / f->agg_cables)]++;
    for (int a = 0; a < f->n_aggs; a++)
        if (used[a] > s->agg_down)
            diag_error(diags, PLACE_NONE, "fabric: %d cables to aggregation switch %d, which has %d ports", used[a], a,
                       s->agg_down);
    free(used);
}

static void cores_check(const struct fabric *f, struct diags *diags)
{
    const struct fabric_shape *s = &f->shape;
    int in_plane = f->n_aggs / s->planes;
    int *used = memory_new((size_t)f->n_cores, sizeof *used);
    bool *pod_seen = memory_new((size_t)f->n_pods * (size_t)f->core_groups, sizeof *pod_seen);

    for (int a = 0; a < f->n_aggs; a++) {
        int group = a % in_plane % f->core_groups, plane = a / in_plane;
        pod_seen[a % in_plane / s->aggs_per_pod * f->core_groups + group] = true;
        for (int v = 0; v < s->agg_up; v++)
            used[(plane * f->core_groups + group) * f->cores_per_group + v / f->core_cables]++;
    }
    for (int c = 0; c < f->n_cores; c++)
        if (used[c] > s->core_down)
            diag_error(diags, PLACE_NONE, "fabric: %d cables to core switch %d, which has %d ports", used[c], c, s->core_down);
    for (int i = 0; i < f->n_pods * f->core_groups; i++)
        if (!pod_seen[i])
            diag_error(diags, PLACE_NONE, "fabric: disconnected: core group %d has no cable to pod %d", i % f->core_groups,
                       i / f->core_groups);
    free(used);
    free(pod_seen);
}

static void ports_check(const struct fabric *f, struct diags *diags)
{
    int *used = memory_new((size_t)f->n_tors, sizeof *used);

    for (int port = 0; port < f->n_ports; port++)
        used[fabric_tor_of_port(f, port)]++;
    for (int tor = 0; tor < f->n_tors; tor++)
        if (used[tor] > f->shape.tor_down)
            diag_error(diags, PLACE_NONE, "fabric: %d NIC ports at ToR %d, which has %d", used[tor], tor, f->shape.tor_down);
    free(used);
}

static void counts_check(const struct fabric *f, struct diags *diags)
{
    const struct fabric_shape *s = &f->shape;
    bool dragonfly = s->topology == TOPOLOGY_DRAGONFLY;
    bool right = (dragonfly || f->n_tors == f->n_sets * s->tors_per_set) &&
                 f->n_ports == s->hosts * s->nics_per_host * s->ports_per_nic &&
                 fabric_layer_links(f, LAYER_NIC_UP) == (uint32_t)f->n_ports;

    if (f->layers > 1)
        right = right && fabric_layer_links(f, LAYER_TOR_UP) == (uint32_t)(f->n_tors * s->tor_up) &&
                f->n_aggs == s->planes * f->n_pods * s->aggs_per_pod && f->n_pods * f->tors_per_pod >= f->n_tors / s->planes;
    if (f->layers > 2)
        right = right && fabric_layer_links(f, LAYER_AGG_UP) == (uint32_t)(f->n_aggs * s->agg_up) &&
                f->cores_per_group * f->core_cables == s->agg_up && f->n_cores == s->planes * f->core_groups * f->cores_per_group;
    if (!right)
        diag_error(diags, PLACE_NONE, "fabric: the numbers of switches and links do not match its shape");
}

static void links_check(const struct fabric *f, struct diags *diags)
{
    int down = 0;

    for (uint32_t l = 0; l < fabric_links(f); l++) {
        if (!(f->rates[l] > 0) || !(f->speed[l] >= 0 && f->speed[l] <= 1))
            diag_error(diags, PLACE_NONE, "fabric: link %u has a rate of %g B/s at speed %g", l, f->rates[l],
                       (double)f->speed[l]);
        down += !(f->speed[l] > 0);
    }
    if (down != f->n_down)
        diag_error(diags, PLACE_NONE, "fabric: %d links are down, but %d are counted", down, f->n_down);
}

enum status fabric_check(const struct fabric *fabric, struct diags *diags)
{
    size_t before = diags->n_errors;

    counts_check(fabric, diags);
    links_check(fabric, diags);
    ports_check(fabric, diags);
    if (fabric->layers > 1)
        aggs_check(fabric, diags);
    if (fabric->layers > 2)
        cores_check(fabric, diags);
    if (fabric->shape.topology == TOPOLOGY_DRAGONFLY)
        dragonfly_check(fabric, diags);
    return diags->n_errors == before ? STATUS_OK : STATUS_CHECK;
}
