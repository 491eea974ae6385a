#include "sim/fabric/route_internal.h"

#include "sim/fabric/dragonfly.h"

/* Switch numbers for the hash, by tier. */
enum { TIER_TOR = 1, TIER_AGG, TIER_CORE, TIER_AGG_DOWN };

/* One path being found. */
struct search {
    const struct router *router;
    const struct fabric *f;
    uint64_t key;    /* of the 5-tuple */
    uint32_t d;      /* number of the destination on its rail */
    uint32_t e;      /* number of its ToR in the pod */
    uint32_t member; /* of the aggregation switch going up, among those of its core group in its pod */
    int plane, to_tor, to_pod;
    bool careful; /* links are down: look before choosing */
};

const char *routing_name(enum routing routing)
{
    static const char *const names[N_ROUTINGS] = {"ecmp", "static", "adaptive", "valiant"};
    return names[routing];
}

/* ---- links by position */

static uint32_t tor_link(const struct fabric *f, enum fabric_layer layer, int tor, int port)
{
    return f->first[layer] + (uint32_t)(tor * f->shape.tor_up + port);
}

static uint32_t agg_link(const struct fabric *f, enum fabric_layer layer, int agg, int port)
{
    return f->first[layer] + (uint32_t)(agg * f->shape.agg_up + port);
}

/* First and number of the aggregation switches of a pod that belong to a core group: index first, first + G, ... */
struct members {
    int first, n;
};
static struct members group_members(const struct fabric *f, int pod, int group)
{
    int groups = f->core_groups, j = f->shape.aggs_per_pod;
    int first = (group - pod * j % groups + groups) % groups;
    return (struct members){first, first < j ? (j - first + groups - 1) / groups : 0};
}

static int group_of(const struct fabric *f, int pod, int index)
{
    return (pod * f->shape.aggs_per_pod + index) % f->core_groups;
}

/* ---- can the destination be reached from here? */

static bool tor_reached_by(const struct search *s, int index)
{
    for (int i = 0; i < s->f->agg_cables; i++)
        if (route_is_up(s->f, tor_link(s->f, LAYER_TOR_DOWN, s->to_tor, index * s->f->agg_cables + i)))
            return true;
    return false;
}

/* Candidate c of a core switch (its number `core` within the group): member c / q over cable c % q. */
static bool core_candidate(const struct search *s, struct members members, int core, int c, uint32_t *link, int *index)
{
    const struct fabric *f = s->f;

    *index = members.first + c / f->core_cables * f->core_groups;
    *link = agg_link(f, LAYER_AGG_DOWN, fabric_agg(f, s->plane, s->to_pod, *index), core * f->core_cables + c % f->core_cables);
    return !s->careful || (route_is_up(f, *link) && tor_reached_by(s, *index));
}

static bool pod_reached_over(const struct search *s, int agg, int group, int port)
{
    const struct fabric *f = s->f;
    struct members members = group_members(f, s->to_pod, group);
    uint32_t link;
    int index;

    if (!route_is_up(f, agg_link(f, LAYER_AGG_UP, agg, port)))
        return false;
    for (int c = 0; c < members.n * f->core_cables; c++)
        if (core_candidate(s, members, port / f->core_cables, c, &link, &index))
            return true;
    return false;
}

static bool reached_over_uplink(const struct search *s, int tor, int pod, int port)
{
    const struct fabric *f = s->f;
    int index = port / f->agg_cables, agg = fabric_agg(f, s->plane, pod, index);

    if (!route_is_up(f, tor_link(f, LAYER_TOR_UP, tor, port)))
        return false;
    if (pod == s->to_pod)
        return tor_reached_by(s, index);
    for (int v = 0; v < f->shape.agg_up; v++)
        if (pod_reached_over(s, agg, group_of(f, pod, index), v))
            return true;
    return false;
}

/* ---- loads, for adaptive routing */

static uint32_t load_to_tor(const struct search *s, int index)
{
    uint32_t least = UINT32_MAX;

    for (int i = 0; i < s->f->agg_cables; i++) {
        uint32_t load = s->router->load[tor_link(s->f, LAYER_TOR_DOWN, s->to_tor, index * s->f->agg_cables + i)];
        least = load < least ? load : least;
    }
    return least;
}

static uint32_t load_uplink(const struct search *s, int tor, int pod, int port)
{
    const struct fabric *f = s->f;
    uint32_t up = s->router->load[tor_link(f, LAYER_TOR_UP, tor, port)], down = UINT32_MAX;
    int index = port / f->agg_cables;

    if (pod == s->to_pod) {
        down = load_to_tor(s, index);
    } else {
        struct members members = group_members(f, s->to_pod, group_of(f, pod, index));
        for (int m = 0; m < members.n; m++) {
            uint32_t load = load_to_tor(s, members.first + m * f->core_groups);
            down = load < down ? load : down;
        }
    }
    return up > down ? up : down;
}

static uint32_t load_agg_uplink(const struct search *s, int agg, int group, int port)
{
    const struct fabric *f = s->f;
    struct members members = group_members(f, s->to_pod, group);
    uint32_t up = s->router->load[agg_link(f, LAYER_AGG_UP, agg, port)], down = UINT32_MAX, link;
    int index;

    for (int c = 0; c < members.n * f->core_cables; c++) {
        core_candidate(s, members, port / f->core_cables, c, &link, &index);
        down = s->router->load[link] < down ? s->router->load[link] : down;
    }
    return up > down ? up : down;
}

/* ---- choosing among n candidates */

static int hash_choice(const struct search *s, int tier, int switch_number, int n)
{
    return route_hash(s->router, s->key, (uint64_t)tier << 32 | (uint32_t)switch_number, n);
}

/* Where a search among candidates begins. */
static int preferred(const struct search *s, int tier, int switch_number, int n, uint32_t static_choice)
{
    return s->router->routing == ROUTING_STATIC ? (int)(static_choice % (uint32_t)n) : hash_choice(s, tier, switch_number, n);
}

static bool choose_uplink(const struct search *s, int tor, int pod, int *port)
{
    int n = s->f->shape.tor_up, first = preferred(s, TIER_TOR, tor, n, s->d), best = -1;
    uint32_t best_load = UINT32_MAX;

    for (int i = 0; i < n; i++) {
        int u = (first + i) % n;
        if (s->careful && !reached_over_uplink(s, tor, pod, u))
            continue;
        uint32_t load = s->router->routing == ROUTING_ADAPTIVE ? load_uplink(s, tor, pod, u) : 0;
        if (best < 0 || load < best_load) {
            best = u;
            best_load = load;
        }
        if (best_load == 0)
            break;
    }
    *port = best;
    return best >= 0;
}

static bool choose_agg_uplink(const struct search *s, int agg, int group, int *port)
{
    int n = s->f->shape.agg_up, best = -1;
    int first = preferred(s, TIER_AGG, agg, n, s->e);
    uint32_t best_load = UINT32_MAX;

    for (int i = 0; i < n; i++) {
        int v = (first + i) % n;
        if (s->careful && !pod_reached_over(s, agg, group, v))
            continue;
        uint32_t load = s->router->routing == ROUTING_ADAPTIVE ? load_agg_uplink(s, agg, group, v) : 0;
        if (best < 0 || load < best_load) {
            best = v;
            best_load = load;
        }
        if (best_load == 0)
            break;
    }
    *port = best;
    return best >= 0;
}

/* From core switch `core` of a group down to an aggregation switch of the destination's pod. */
static bool choose_core_down(const struct search *s, int group, int core, uint32_t *link, int *index)
{
    struct members members = group_members(s->f, s->to_pod, group);
    int n = members.n * s->f->core_cables, best = -1;
    int first = preferred(s, TIER_CORE, group * s->f->cores_per_group + core, n, s->member);
    uint32_t best_load = UINT32_MAX;

    for (int i = 0; i < n && best_load > 0; i++) {
        int c = (first + i) % n, at;
        uint32_t candidate;
        if (!core_candidate(s, members, core, c, &candidate, &at))
            continue;
        uint32_t load = s->router->routing == ROUTING_ADAPTIVE ? s->router->load[candidate] : 0;
        if (best < 0 || load < best_load) {
            best = c;
            best_load = load;
            *link = candidate;
            *index = at;
        }
    }
    return best >= 0;
}

static bool choose_tor_down(const struct search *s, int index, uint32_t *link)
{
    int n = s->f->agg_cables, best = -1;
    int first = n > 1 ? preferred(s, TIER_AGG_DOWN, fabric_agg(s->f, s->plane, s->to_pod, index), n, s->d) : 0;
    uint32_t best_load = UINT32_MAX;

    for (int i = 0; i < n && best_load > 0; i++) {
        uint32_t candidate = tor_link(s->f, LAYER_TOR_DOWN, s->to_tor, index * n + (first + i) % n);
        if (!route_is_up(s->f, candidate))
            continue;
        uint32_t load = s->router->routing == ROUTING_ADAPTIVE ? s->router->load[candidate] : 0;
        if (best < 0 || load < best_load) {
            best = i;
            best_load = load;
            *link = candidate;
        }
    }
    return best >= 0;
}

/* ---- paths */

static bool route_switches(struct search *s, int from_tor, struct path *path)
{
    const struct fabric *f = s->f;
    int pod = fabric_pod_of_tor(f, from_tor), u, v, index;
    uint32_t link;

    path->switches = 1;
    if (from_tor == s->to_tor)
        return true;
    if (f->layers < 2 || !choose_uplink(s, from_tor, pod, &u))
        return false;
    path_add(path, tor_link(f, LAYER_TOR_UP, from_tor, u));
    index = u / f->agg_cables;
    path->switches = 3;
    if (pod != s->to_pod) {
        int agg = fabric_agg(f, s->plane, pod, index), group = group_of(f, pod, index);
        s->member = (uint32_t)(index / f->core_groups);
        if (!choose_agg_uplink(s, agg, group, &v) || !choose_core_down(s, group, v / f->core_cables, &link, &index))
            return false;
        path_add(path, agg_link(f, LAYER_AGG_UP, agg, v));
        path_add(path, link);
        path->switches = 5;
    }
    if (!choose_tor_down(s, index, &link))
        return false;
    path_add(path, link);
    return true;
}

static bool ports_join(const struct router *router, int from, int to, uint32_t queue_pair, struct path *path)
{
    const struct fabric *f = router->fabric;
    int from_tor = fabric_tor_of_port(f, from), to_tor = fabric_tor_of_port(f, to);
    uint32_t up = f->first[LAYER_NIC_UP] + (uint32_t)from, down = f->first[LAYER_NIC_DOWN] + (uint32_t)to;
    struct search s = {
        .router = router,
        .f = f,
        .key = hash_mix(((uint64_t)(uint32_t)from << 32 | (uint32_t)to) + HASH_GOLDEN * (queue_pair + 1)),
        .d = (uint32_t)(to / f->shape.tors_per_set),
        .plane = fabric_plane_of_tor(f, to_tor),
        .e = (uint32_t)(fabric_tor_in_plane(f, to_tor) % f->tors_per_pod),
        .to_tor = to_tor,
        .to_pod = fabric_pod_of_tor(f, to_tor),
        .careful = f->n_down > 0,
    };

    if (fabric_plane_of_tor(f, from_tor) != s.plane || !route_is_up(f, up) || !route_is_up(f, down))
        return false;
    path_add(path, up);
    if (f->shape.topology == TOPOLOGY_DRAGONFLY ? !route_dragonfly(router, from_tor, to_tor, s.key, s.d, path)
                                                : !route_switches(&s, from_tor, path))
        return false;
    path_add(path, down);
    return true;
}

bool route_ports(const struct router *router, int from, int to, uint32_t queue_pair, struct path *path)
{
    struct path found = {.n = 0};

    if (!ports_join(router, from, to, queue_pair, &found))
        return false;
    *path = found;
    return true;
}

/* ---- between GPUs */

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
    if (!ports_join(router, from_port, to_port, queue_pair, path))
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
           (first != second && gpus_join(router, from, second, to, queue_pair, path));
}
