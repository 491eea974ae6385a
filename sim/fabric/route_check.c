/* route_check.c - who is cut off by the links that are down. */
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/fabric/route.h"

enum { TOLD_MAX = 8 };

struct census {
    const struct fabric *fabric;
    struct router router;
    struct diags *diags;
    size_t cut_off;
};

static bool told(struct census *census)
{
    return ++census->cut_off <= TOLD_MAX;
}

/* A GPU against the same one of the next host: what fails is its NIC, its lanes, or all that its ToR has. */
static void gpus_check(struct census *census)
{
    const struct fabric *f = census->fabric;
    struct path path;

    for (int gpu = 0; gpu < f->n_gpus && f->shape.hosts > 1; gpu++) {
        int next = (gpu + f->shape.gpus_per_host) % f->n_gpus;
        if (!route_gpus(&census->router, gpu, next, 0, &path) && told(census))
            diag_error(census->diags, PLACE_NONE, "there is no path%s from GPU %d to GPU %d", route_limit_text(f), gpu, next);
    }
}

/* A port of each ToR that is up; -1: it has none. */
static int *ports_of_tors(const struct fabric *f)
{
    int *port_of = memory_new((size_t)f->n_tors, sizeof *port_of);

    for (int tor = 0; tor < f->n_tors; tor++)
        port_of[tor] = -1;
    for (int port = 0; port < f->n_ports; port++)
        if (f->speed[f->first[LAYER_NIC_UP] + (uint32_t)port] > 0 && f->speed[f->first[LAYER_NIC_DOWN] + (uint32_t)port] > 0)
            port_of[fabric_tor_of_port(f, port)] = port;
    return port_of;
}

static void tors_tell(const struct census *census, int from, int to)
{
    int a = census->fabric->shape.switches_per_group;

    if (census->fabric->shape.topology == TOPOLOGY_DRAGONFLY)
        diag_error(census->diags, PLACE_NONE, "there is no path%s from group %d switch %d to group %d switch %d",
                   route_limit_text(census->fabric), from / a, from % a, to / a, to % a);
    else
        diag_error(census->diags, PLACE_NONE, "there is no path from ToR %d to ToR %d", from, to);
}

static void tors_check(struct census *census)
{
    const struct fabric *f = census->fabric;
    int *port_of = ports_of_tors(f);
    struct path path;

    for (int from = 0; from < f->n_tors; from++)
        for (int to = 0; to < f->n_tors; to++) {
            bool apart = fabric_plane_of_tor(f, from) != fabric_plane_of_tor(f, to);
            if (from == to || apart || port_of[from] < 0 || port_of[to] < 0)
                continue;
            if (!route_ports(&census->router, port_of[from], port_of[to], 0, &path) && told(census))
                tors_tell(census, from, to);
        }
    free(port_of);
}

enum status route_check(const struct fabric *fabric, struct diags *diags)
{
    struct census census = {.fabric = fabric, .router = {.fabric = fabric, .routing = ROUTING_STATIC}, .diags = diags};

    if (fabric->n_down == 0)
        return STATUS_OK;
    gpus_check(&census);
    tors_check(&census);
    if (census.cut_off > TOLD_MAX)
        diag_error(diags, PLACE_NONE, "%zu more pairs have no path between them", census.cut_off - TOLD_MAX);
    return census.cut_off == 0 ? STATUS_OK : STATUS_CHECK;
}
