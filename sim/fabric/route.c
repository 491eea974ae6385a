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

bool route_append(const struct router *router, int from, int to, uint32_t queue_pair, struct path *path)
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

    if (!route_append(router, from, to, queue_pair, &found))
        return false;
    *path = found;
    return true;
}
