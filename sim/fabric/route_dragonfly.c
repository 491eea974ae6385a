/* route_dragonfly.c - ways between the switches of a dragonfly: straight, over a third group or switch, the less loaded of them.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/fabric/dragonfly.h"
#include "sim/fabric/route_internal.h"

/* What a choice is of, for the hash. */
enum { CHOICE_LOCAL = 1, CHOICE_GLOBAL, CHOICE_GROUP, CHOICE_SWITCH, CHOICE_DETOUR };
/* Ways over third groups (switches) that adaptive routing looks at. */
enum { AROUND = 4 };

/* One way being found. */
struct search {
    const struct router *router;
    const struct fabric *f;
    uint64_t key;
    uint32_t d;
    int from, to;
    bool detours; /* over a third switch where local cables have failed */
    bool adaptive;
};

static int hashed(const struct search *s, int choice, int where, int n)
{
    return n > 1 ? route_hash(s->router, s->key, (uint64_t)choice << 32 | (uint32_t)where, n) : 0;
}

/* Where a search among n parallel cables begins. */
static int preferred(const struct search *s, int choice, int where, int n)
{
    return s->router->routing == ROUTING_STATIC ? (int)(s->d % (uint32_t)n) : hashed(s, choice, where, n);
}

static int group_of(const struct search *s, int switch_number)
{
    return dragonfly_group(s->f, switch_number);
}

/* The load of the most crowded of the links from number `first` on. */
static uint32_t load_of(const struct search *s, const struct path *path, int first)
{
    uint32_t most = 0;

    for (int h = first; h < path->n; h++)
        most = s->router->load[path->links[h]] > most ? s->router->load[path->links[h]] : most;
    return most;
}

/* ---- one cable */

static bool local_cable(const struct search *s, int from, int to, struct path *path)
{
    int n = s->f->shape.local_links, first = preferred(s, CHOICE_LOCAL, from, n);
    uint32_t best = 0, best_load = UINT32_MAX;
    bool found = false;

    for (int i = 0; i < n && best_load > 0; i++) {
        uint32_t link = dragonfly_local_link(s->f, from, to, (first + i) % n), load = s->adaptive ? s->router->load[link] : 0;
        if (!route_is_up(s->f, link) || (found && load >= best_load))
            continue;
        found = true;
        best = link;
        best_load = load;
    }
    if (found)
        path_add(path, best);
    return found;
}

/* Switch number i of those of a group other than two of it; `between` ascending numbers within the group. */
static int third(int i, int low, int high)
{
    i += i >= low;
    return i + (i >= high);
}

/* Over switch i, counted from the hash, of the others of the group. */
static bool around_switch(const struct search *s, int from, int to, int i, struct path *path)
{
    int a = s->f->shape.switches_per_group, first = group_of(s, from) * a, x = from - first, y = to - first;
    int at = (hashed(s, CHOICE_SWITCH, from, a - 2) + i) % (a - 2);
    int over = first + third(at, x < y ? x : y, x < y ? y : x), n = path->n;

    if (local_cable(s, from, over, path) && local_cable(s, over, to, path))
        return true;
    path->n = (uint8_t)n;
    return false;
}

/* From a switch to another of its group, or to itself. */
static bool local_way(const struct search *s, int from, int to, struct path *path)
{
    if (from == to || local_cable(s, from, to, path))
        return true;
    for (int i = 0; s->detours && i < s->f->shape.switches_per_group - 2; i++)
        if (around_switch(s, from, to, i, path))
            return true;
    return false;
}

/* From switch *at over cable l to another group, and the switch where it ends. */
static bool global_way(const struct search *s, int *at, int group, int l, struct path *path)
{
    int own = group_of(s, *at), n = path->n;
    uint32_t link = dragonfly_global_link(s->f, own, group, l);

    if (!route_is_up(s->f, link) || !local_way(s, *at, dragonfly_gateway(s->f, own, group, l), path)) {
        path->n = (uint8_t)n;
        return false;
    }
    path_add(path, link);
    *at = dragonfly_gateway(s->f, group, own, l);
    return true;
}

/* ---- straight, and around */

/* Straight from a switch, over cable l where it is of another group. */
static bool straight_over(const struct search *s, int at, int l, struct path *path)
{
    int n = path->n;

    if (group_of(s, at) != group_of(s, s->to) && !global_way(s, &at, group_of(s, s->to), l, path))
        return false;
    if (local_way(s, at, s->to, path))
        return true;
    path->n = (uint8_t)n;
    return false;
}

/* Over the parallel cable that is preferred, or the next that is up; the least loaded, where routing is adaptive. */
static bool straight(const struct search *s, int at, struct path *path)
{
    int group = group_of(s, s->to), n = group_of(s, at) == group ? 1 : s->f->shape.global_links;
    int first = preferred(s, CHOICE_GLOBAL, group_of(s, at), n), start = path->n;
    uint32_t best_load = UINT32_MAX;
    struct path best = *path;
    bool found = false;

    for (int i = 0; i < n && best_load > 0; i++) {
        struct path way = *path;
        if (!straight_over(s, at, (first + i) % n, &way))
            continue;
        uint32_t load = s->adaptive ? load_of(s, &way, start) : 0;
        if (found && load >= best_load)
            continue;
        found = true;
        best = way;
        best_load = load;
    }
    *path = best;
    return found;
}

/* Third groups that a way may go over, or third switches in one group. */
static int thirds(const struct search *s)
{
    int n = group_of(s, s->from) == group_of(s, s->to) ? s->f->shape.switches_per_group : s->f->n_pods;
    return n > 2 ? n - 2 : 0;
}

/* Over another group, and straight from there; over the cables to it that are preferred, or the next. */
static bool over_group(const struct search *s, int over, struct path *path)
{
    int cables = s->f->shape.global_links, first = preferred(s, CHOICE_DETOUR, group_of(s, s->from), cables), n = path->n;

    for (int l = 0; l < cables; l++) {
        int here = s->from;
        if (global_way(s, &here, over, (first + l) % cables, path) && straight(s, here, path))
            return true;
        path->n = (uint8_t)n;
    }
    return false;
}

/* Over third group (switch) number i, counted from the hash. */
static bool around(const struct search *s, int i, struct path *path)
{
    int x = group_of(s, s->from), y = group_of(s, s->to);

    if (x == y)
        return around_switch(s, s->from, s->to, i, path);
    int at = (hashed(s, CHOICE_GROUP, s->from, thirds(s)) + i) % thirds(s);
    return over_group(s, third(at, x < y ? x : y, x < y ? y : x), path);
}

/* Between two switches of a group, out to another group and back: where no third switch joins them any more. */
static bool out_and_back(const struct search *s, struct path *path)
{
    int own = group_of(s, s->from), others = own == group_of(s, s->to) ? s->f->n_pods - 1 : 0;

    for (int i = 0; i < others; i++) {
        int at = (hashed(s, CHOICE_GROUP, s->from, others) + i) % others;
        if (over_group(s, at + (at >= own), path))
            return true;
    }
    return false;
}

static bool around_any(const struct search *s, struct path *path)
{
    for (int i = 0; i < thirds(s); i++)
        if (around(s, i, path))
            return true;
    return false;
}

/* *path is straight, from link `start` on; the least loaded of some ways around takes its place where that is less loaded. */
static void less_loaded(const struct search *s, int start, const struct path *before, struct path *path)
{
    uint32_t best = load_of(s, path, start);

    for (int i = 0; i < AROUND && i < thirds(s) && best > 0; i++) {
        struct path way = *before;
        uint32_t load;
        if (!around(s, i, &way) || (load = load_of(s, &way, start)) >= best)
            continue;
        *path = way;
        best = load;
    }
}

/* ---- the last resort: any way there is, such as over two other groups */

/* Switches from which the destination is reached, the nearest first: over which link, to which switch. */
struct reach {
    uint32_t *link;
    int *next; /* -1: not reached */
    int *queue;
    int n;
};

static void reach_add(struct reach *reach, int at, int next, uint32_t link)
{
    reach->link[at] = link;
    reach->next[at] = next;
    reach->queue[reach->n++] = at;
}

/* From the other switches of its group; the cable that is preferred, or the least loaded. */
static void reach_locally(const struct search *s, struct reach *reach, int at)
{
    int a = s->f->shape.switches_per_group, first = group_of(s, at) * a, begin = hashed(s, CHOICE_SWITCH, at, a);

    for (int i = 0; i < a; i++) {
        int from = first + (begin + i) % a;
        struct path cable = {0};
        if (reach->next[from] < 0 && local_cable(s, from, at, &cable))
            reach_add(reach, from, at, cable.links[0]);
    }
}

/* From switches of other groups. */
static void reach_globally(const struct search *s, struct reach *reach, int at)
{
    const struct fabric *f = s->f;
    int own = group_of(s, at), begin = hashed(s, CHOICE_GROUP, at, f->n_pods);

    for (int i = 0; i < f->n_pods; i++) {
        int other = (begin + i) % f->n_pods;
        for (int l = 0; other != own && l < f->shape.global_links; l++) {
            int from = dragonfly_gateway(f, other, own, l);
            uint32_t link = dragonfly_global_link(f, other, own, l);
            if (dragonfly_gateway(f, own, other, l) == at && reach->next[from] < 0 && route_is_up(f, link))
                reach_add(reach, from, at, link);
        }
    }
}

/* The fewest cables, wherever they lead: breadth first from the destination. O(switches x cables between groups). */
static bool any_way(const struct search *s, struct path *path)
{
    size_t switches = (size_t)s->f->n_tors;
    struct reach reach = {.link = memory_new(switches, sizeof *reach.link),
                          .next = memory_new(switches, sizeof *reach.next),
                          .queue = memory_new(switches, sizeof *reach.queue)};
    int n = path->n;

    memset(reach.next, -1, switches * sizeof *reach.next);
    reach_add(&reach, s->to, s->to, 0);
    for (int i = 0; i < reach.n && reach.next[s->from] < 0; i++) {
        reach_locally(s, &reach, reach.queue[i]);
        reach_globally(s, &reach, reach.queue[i]);
    }
    int at = reach.next[s->from] < 0 ? s->to : s->from;
    bool found = at == s->from;
    for (; at != s->to && path->n - n < DRAGONFLY_LONGEST; at = reach.next[at])
        path_add(path, reach.link[at]);
    found = found && at == s->to;
    if (!found)
        path->n = (uint8_t)n;
    free(reach.link);
    free(reach.next);
    free(reach.queue);
    return found;
}

bool route_dragonfly(const struct router *router, int from, int to, uint64_t key, uint32_t d, struct path *path)
{
    const struct path before = *path;
    struct search s = {.router = router,
                       .f = router->fabric,
                       .key = key,
                       .d = d,
                       .from = from,
                       .to = to,
                       .adaptive = router->routing == ROUTING_ADAPTIVE};
    bool found = from == to;

    if (!found && router->routing == ROUTING_VALIANT)
        found = around_any(&s, path);
    if (!found && straight(&s, from, path)) {
        found = true;
        if (s.adaptive)
            less_loaded(&s, before.n, &before, path);
    }
    s.detours = s.f->n_down > 0;
    if (!found && s.detours)
        found = straight(&s, from, path) || around_any(&s, path) || out_and_back(&s, path) || any_way(&s, path);
    path->switches = (uint8_t)(path->n - before.n + 1);
    return found;
}
