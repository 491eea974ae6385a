/* route_gpus.c - from GPU to GPU: inside hosts, over their NICs, around NICs that are down; and who is cut off. */
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/fabric/dragonfly.h"
#include "sim/fabric/route_internal.h"

/* From one PCIe switch of a host to another, over their CPUs. */
static void path_between_switches(const struct fabric *f, int from, int to, struct path *path)
{
    const struct fabric_shape *s = &f->shape;

    if (s->pcie_switches == 0 || from == to)
        return;
    path_add(path, f->first[LAYER_ROOT_OUT] + (uint32_t)from);
    if (s->sockets > 0 && fabric_socket_of_pcie(f, from) != fabric_socket_of_pcie(f, to)) {
        path_add(path, f->first[LAYER_SOCKET_OUT] + (uint32_t)fabric_socket_of_pcie(f, from));
        path_add(path, f->first[LAYER_SOCKET_IN] + (uint32_t)fabric_socket_of_pcie(f, to));
    }
    path_add(path, f->first[LAYER_ROOT_IN] + (uint32_t)to);
}

static void path_to_nic(const struct fabric *f, int gpu, int nic, struct path *path)
{
    if (f->shape.pcie_rate > 0)
        path_add(path, f->first[LAYER_GPU_OUT] + (uint32_t)gpu);
    path_between_switches(f, fabric_pcie_of_gpu(f, gpu), fabric_pcie_of_nic(f, nic), path);
    if (f->shape.pcie_rate > 0)
        path_add(path, f->first[LAYER_PCIE_OUT] + (uint32_t)nic);
}

static void path_from_nic(const struct fabric *f, int nic, int gpu, struct path *path)
{
    if (f->shape.pcie_rate > 0)
        path_add(path, f->first[LAYER_PCIE_IN] + (uint32_t)nic);
    path_between_switches(f, fabric_pcie_of_nic(f, nic), fabric_pcie_of_gpu(f, gpu), path);
    if (f->shape.pcie_rate > 0)
        path_add(path, f->first[LAYER_GPU_IN] + (uint32_t)gpu);
}

static bool path_is_up(const struct fabric *f, const struct path *path)
{
    for (int h = 0; h < path->n; h++)
        if (!route_is_up(f, path->links[h]))
            return false;
    return true;
}

/* Through port a of the GPU `from` and port b of `to`. */
static bool gpus_join_over(const struct router *router, int from, int a, int to, int b, uint32_t queue_pair, struct path *path)
{
    const struct fabric *f = router->fabric;
    int p = f->shape.ports_per_nic;
    int from_port = fabric_nic_of_gpu(f, from) * p + a, to_port = fabric_nic_of_gpu(f, to) * p + b;

    path_to_nic(f, from, from_port / p, path);
    if (!route_append(router, from_port, to_port, queue_pair, path))
        return false;
    path_from_nic(f, to_port / p, to, path);
    return path_is_up(f, path);
}

/* From a GPU, or over NVLink through `relay`, a GPU of its host: over the ports that this queue pair takes, or the next two that
 * are joined. */
static bool gpus_join(const struct router *router, int from, int relay, int to, uint32_t queue_pair, struct path *path)
{
    const struct fabric *f = router->fabric;
    int n = fabric_gpu_ports(f);
    struct path before = {.n = 0};

    if (relay != from) {
        path_add(&before, f->first[LAYER_NVLINK_OUT] + (uint32_t)from);
        path_add(&before, f->first[LAYER_NVLINK_IN] + (uint32_t)relay);
    }
    for (int i = 0; i < n * n; i++) {
        int a = (int)((queue_pair + (uint32_t)(i / n)) % (uint32_t)n), b = (a + i) % n;
        struct path found = before;
        if (!gpus_join_over(router, relay, a, to, b, queue_pair, &found))
            continue;
        *path = found;
        return true;
    }
    return false;
}

/* The GPU of a host whose NIC is on the rail of another GPU's, where NVLink leads to it; else the GPU itself. */
static int relay_of(const struct fabric *f, int from, int to)
{
    const struct fabric_shape *s = &f->shape;
    int own = fabric_nic_of_gpu(f, from) % s->nics_per_host, rail = fabric_nic_of_gpu(f, to) % s->nics_per_host;

    if (own == rail || s->nvlink_domain < s->gpus_per_host || s->nvlink_domain < 2)
        return from;
    int relay = fabric_gpu_of_nic(f, from / s->gpus_per_host, rail);
    return relay >= 0 ? relay : from;
}

const char *route_limit_text(const struct fabric *fabric)
{
    _Static_assert(DRAGONFLY_LONGEST == 12, "the text below says so");
    return fabric->shape.topology == TOPOLOGY_DRAGONFLY ? " of at most 12 cables" : "";
}

/* ---- around NICs that are down */

/* Is any port of the NIC up, in both directions, and its lanes? */
static bool nic_is_up(const struct fabric *f, int nic)
{
    int p = f->shape.ports_per_nic;

    if (f->shape.pcie_rate > 0 &&
        !(route_is_up(f, f->first[LAYER_PCIE_OUT] + (uint32_t)nic) && route_is_up(f, f->first[LAYER_PCIE_IN] + (uint32_t)nic)))
        return false;
    for (int port = nic * p; port < (nic + 1) * p; port++)
        if (route_is_up(f, f->first[LAYER_NIC_UP] + (uint32_t)port) && route_is_up(f, f->first[LAYER_NIC_DOWN] + (uint32_t)port))
            return true;
    return false;
}

/* How far a NIC is from a GPU: on its PCIe switch, under its CPU, elsewhere in the host; then by number from its own. */
static int nic_distance(const struct fabric *f, int gpu, int nic)
{
    const struct fabric_shape *s = &f->shape;
    int away = abs(nic - fabric_nic_of_gpu(f, gpu)), tier = 0;

    if (s->pcie_switches > 0 && fabric_pcie_of_gpu(f, gpu) != fabric_pcie_of_nic(f, nic))
        tier = s->sockets > 1 && fabric_socket_of_pcie(f, fabric_pcie_of_gpu(f, gpu)) !=
                                     fabric_socket_of_pcie(f, fabric_pcie_of_nic(f, nic))
                   ? 2
                   : 1;
    return tier * s->nics_per_host + away;
}

/* The NICs of a GPU's host that are up, nearest first; their number. */
static int nics_near(const struct fabric *f, int gpu, int *nics, int most)
{
    int first = gpu / f->shape.gpus_per_host * f->shape.nics_per_host, n = 0;

    for (int nic = first; nic < first + f->shape.nics_per_host; nic++) {
        int at = n;
        if (!nic_is_up(f, nic) || n == most)
            continue;
        for (; at > 0 && nic_distance(f, gpu, nics[at - 1]) > nic_distance(f, gpu, nic); at--)
            nics[at] = nics[at - 1];
        nics[at] = nic;
        n++;
    }
    return n;
}

/* From a GPU to a NIC of its host that is not its own: over NVLink to the GPU beside that NIC (as NCCL's PXN), else over PCIe. */
static void path_to_other_nic(const struct fabric *f, int gpu, int nic, struct path *path)
{
    const struct fabric_shape *s = &f->shape;
    int beside = fabric_gpu_of_nic(f, gpu / s->gpus_per_host, nic % s->nics_per_host);

    if (beside >= 0 && beside != gpu && s->nvlink_domain >= s->gpus_per_host && s->nvlink_domain > 1) {
        path_add(path, f->first[LAYER_NVLINK_OUT] + (uint32_t)gpu);
        path_add(path, f->first[LAYER_NVLINK_IN] + (uint32_t)beside);
        gpu = beside;
    }
    path_to_nic(f, gpu, nic, path);
}

/* Over the nearest NICs that are up, where those of one of both GPUs are down. NCCL finds no others: a port that is down is no
 * device to it. */
static bool gpus_join_around(const struct router *router, int from, int to, uint32_t queue_pair, struct path *path)
{
    enum { NEAR = 16 };
    const struct fabric *f = router->fabric;
    int own[2] = {fabric_nic_of_gpu(f, from), fabric_nic_of_gpu(f, to)}, out[NEAR], in[NEAR], p = f->shape.ports_per_nic;

    if (f->n_down == 0 || (nic_is_up(f, own[0]) && nic_is_up(f, own[1])))
        return false;
    int n_out = nics_near(f, from, out, NEAR), n_in = nics_near(f, to, in, NEAR);
    for (int i = 0; i < n_out * n_in * p; i++) {
        int a = out[i / p / n_in], b = in[i / p % n_in], port = (int)((queue_pair + (uint32_t)i) % (uint32_t)p);
        struct path found = {.n = 0};
        path_to_other_nic(f, from, a, &found);
        if (!route_append(router, a * p + port, b * p + port, queue_pair, &found))
            continue;
        path_from_nic(f, b, to, &found);
        if (!path_is_up(f, &found))
            continue;
        *path = found;
        return true;
    }
    return false;
}

bool route_gpus(const struct router *router, int from, int to, uint32_t queue_pair, struct path *path)
{
    const struct fabric *f = router->fabric;
    const struct fabric_shape *s = &f->shape;
    struct path found = {.n = 0};

    if (from == to) {
        *path = found;
        return true;
    }
    if (s->nvlink_domain > 1 && from / s->nvlink_domain == to / s->nvlink_domain) {
        path_add(&found, f->first[LAYER_NVLINK_OUT] + (uint32_t)from);
        path_add(&found, f->first[LAYER_NVLINK_IN] + (uint32_t)to);
        if (!path_is_up(f, &found))
            return false;
        *path = found;
        return true;
    }
    int relay = relay_of(f, from, to);
    int first = router->rail_aware ? relay : from, second = router->rail_aware ? from : relay;
    return gpus_join(router, from, first, to, queue_pair, path) ||
           (first != second && gpus_join(router, from, second, to, queue_pair, path)) ||
           gpus_join_around(router, from, to, queue_pair, path);
}

/* ---- who is cut off by the links that are down */

enum { REPORTED_MAX = 8 };

struct census {
    const struct fabric *fabric;
    struct router router;
    struct diags *diags;
    size_t cut_off;
};

static bool may_report(struct census *census)
{
    return ++census->cut_off <= REPORTED_MAX;
}

/* A GPU against the same one of the next host: what fails is its NIC, its lanes, or all that its ToR has. */
static void gpus_check(struct census *census)
{
    const struct fabric *f = census->fabric;
    struct path path;

    for (int gpu = 0; gpu < f->n_gpus && f->shape.hosts > 1; gpu++) {
        int next = (gpu + f->shape.gpus_per_host) % f->n_gpus;
        if (!route_gpus(&census->router, gpu, next, 0, &path) && may_report(census))
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
            if (!route_ports(&census->router, port_of[from], port_of[to], 0, &path) && may_report(census))
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
    if (census.cut_off > REPORTED_MAX)
        diag_error(diags, PLACE_NONE, "%zu more pairs have no path between them", census.cut_off - REPORTED_MAX);
    return census.cut_off == 0 ? STATUS_OK : STATUS_CHECK;
}
