#include "sim/fabric/flows_internal.h"

/* ---- the sweep: links to settle, lowest level first; entries of an older version are dead */

static bool entry_before(const struct sweep_entry *a, const struct sweep_entry *b)
{
    return a->key != b->key ? a->key < b->key : a->link < b->link;
}

static void sweep_push(struct flows *flows, int64_t key, uint32_t link)
{
    if (flows->n_sweep == flows->sweep_capacity)
        flows->sweep = memory_grow(flows->sweep, &flows->sweep_capacity, flows->n_sweep + 1, sizeof *flows->sweep);
    struct sweep_entry entry = {.key = key, .link = link, .version = ++flows->links[link].version};
    size_t at = flows->n_sweep++;
    while (at > 0) {
        size_t parent = (at - 1) / 2;
        if (!entry_before(&entry, &flows->sweep[parent]))
            break;
        flows->sweep[at] = flows->sweep[parent];
        at = parent;
    }
    flows->sweep[at] = entry;
}

static struct sweep_entry sweep_pop(struct flows *flows)
{
    struct sweep_entry top = flows->sweep[0];
    struct sweep_entry last = flows->sweep[--flows->n_sweep];
    size_t at = 0, n = flows->n_sweep;

    for (size_t child = 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && entry_before(&flows->sweep[child + 1], &flows->sweep[child]))
            child++;
        if (!entry_before(&flows->sweep[child], &last))
            break;
        flows->sweep[at] = flows->sweep[child];
        at = child;
    }
    if (n > 0)
        flows->sweep[at] = last;
    return top;
}

/* ---- the water level of one link */

/* The smallest level of a transfer's links other than the one that `hop` crosses. */
static int64_t level_elsewhere(const struct flows *flows, const struct flow *flow, uint32_t hop)
{
    const struct flow_hop *hops = flows->hops + flow->first_hop;
    uint32_t own = hop - flow->first_hop;
    int64_t level = LEVEL_NONE;

    for (uint32_t h = 0; h < flow->n_hops; h++)
        if (h != own && flows->levels[hops[h].link] < level)
            level = flows->levels[hops[h].link];
    return level;
}

/* One or two transfers, as most links have: no scratch. */
static int64_t water_level_single(int64_t capacity, int64_t held, uint32_t share)
{
    int64_t level = capacity / share;
    return held < level ? LEVEL_NONE : level;
}

static int64_t water_level_scan(const struct flows *flows, int64_t capacity, size_t n)
{
    const int64_t *held = flows->held;
    const uint32_t *shares = flows->shares;
    int64_t level = -1, before;

    do {
        int64_t left = capacity, divisor = 0;
        before = level;
        for (size_t i = 0; i < n; i++) {
            if (held[i] < before)
                left -= held[i] * shares[i];
            else
                divisor += shares[i];
        }
        if (divisor == 0)
            return LEVEL_NONE;
        level = left / divisor;
    } while (level != before);
    return level;
}

static void scratch_reserve(struct flows *flows, size_t n)
{
    if (n <= flows->held_capacity)
        return;
    flows->held = memory_grow(flows->held, &flows->held_capacity, n, sizeof *flows->held);
    flows->shares = memory_grow(flows->shares, &flows->shares_capacity, n, sizeof *flows->shares);
}

static int64_t water_level(struct flows *flows, uint32_t which)
{
    const struct flow_link *link = &flows->links[which];
    int64_t own = flows->levels[which];
    size_t n = 0;

    flows->counts.evaluated++;
    scratch_reserve(flows, link->n_flows);
    for (uint32_t h = link->first; h != NO_HOP; h = flows->hops[h].next) {
        const struct flow_hop *hop = &flows->hops[h];
        const struct flow *flow = &flows->items[hop->flow];
        /* Below this link's level it is held elsewhere, at just that. */
        flows->held[n] = flow->level < own ? flow->level : level_elsewhere(flows, flow, h);
        flows->shares[n++] = hop->share;
    }
    if (n == 0)
        return LEVEL_NONE;
    return n == 1 ? water_level_single(link->capacity, flows->held[0], flows->shares[0])
                  : water_level_scan(flows, link->capacity, n);
}

/* ---- spreading a change */

static void flow_set_level(struct flows *flows, uint32_t which, int64_t level)
{
    struct flow *flow = &flows->items[which];

    if (flow->change == 0) {
        if (flows->n_changes == flows->change_capacity)
            flows->changes = memory_grow(flows->changes, &flows->change_capacity, flows->n_changes + 1, sizeof *flows->changes);
        flows->changes[flows->n_changes++] = (struct flow_change){which, flow->level};
        flow->change = (uint32_t)flows->n_changes;
    }
    flow->level = level;
}

/* Links of the transfer, other than `except`, whose level lies above `level`: its change may move them. */
static void flow_list_links(struct flows *flows, const struct flow *flow, uint32_t except, int64_t level)
{
    const struct flow_hop *hops = flows->hops + flow->first_hop;

    for (uint32_t h = 0; h < flow->n_hops; h++) {
        uint32_t link = hops[h].link;
        if (flows->levels[link] <= level || link == except || flows->links[link].mark == flows->step)
            continue;
        flows->links[link].mark = flows->step;
        list_push(&flows->touched, &flows->n_touched, &flows->touched_capacity, link);
    }
}

/* Work out a link's level anew and place it in the sweep, at the smaller of its old and new level; if they are equal it has
 * nothing to settle. */
static void link_reconsider(struct flows *flows, uint32_t which)
{
    struct flow_link *link = &flows->links[which];

    if (link->n_flows == 0) { /* nobody to tell */
        flows->levels[which] = LEVEL_NONE;
        link->dirty = link->released = false;
        link->version++;
        return;
    }
    int64_t level = flows->levels[which], candidate = water_level(flows, which);
    if (!link->released && candidate == level) {
        link->dirty = false;
        link->version++;
        return;
    }
    if (link->dirty && link->candidate == candidate)
        return;
    link->dirty = true;
    link->candidate = candidate;
    sweep_push(flows, candidate < level ? candidate : level, which);
}

/* The link's level is going to rise: the transfers that it held back are free until another link holds them. */
static void link_release(struct flows *flows, uint32_t which)
{
    struct flow_link *link = &flows->links[which];
    int64_t old = flows->levels[which];

    for (uint32_t h = link->first; h != NO_HOP; h = flows->hops[h].next) {
        const struct flow *flow = &flows->items[flows->hops[h].flow];
        if (flow->level != old)
            continue;
        int64_t elsewhere = level_elsewhere(flows, flow, h);
        if (elsewhere == old)
            continue;
        flow_list_links(flows, flow, which, old);
        flow_set_level(flows, flows->hops[h].flow, elsewhere);
    }
    flows->levels[which] = LEVEL_NONE;
    link->released = link->candidate != LEVEL_NONE;
    link->dirty = link->released;
    if (link->released)
        sweep_push(flows, link->candidate, which);
}

static void link_settle(struct flows *flows, uint32_t which)
{
    struct flow_link *link = &flows->links[which];
    int64_t level = link->candidate;

    for (uint32_t h = link->first; h != NO_HOP; h = flows->hops[h].next) {
        const struct flow *flow = &flows->items[flows->hops[h].flow];
        if (flow->level <= level)
            continue;
        flow_list_links(flows, flow, which, level);
        flow_set_level(flows, flows->hops[h].flow, level);
    }
    flows->levels[which] = level;
    link->released = false;
    link->dirty = false;
}

static void touched_reconsider(struct flows *flows)
{
    for (size_t i = 0; i < flows->n_touched; i++)
        link_reconsider(flows, flows->touched[i]);
    flows->n_touched = 0;
}

static void step_begin(struct flows *flows)
{
    if (++flows->step == 0) { /* marks of 2^32 steps ago must not be taken for new ones */
        for (size_t i = 0; i < flows->n_links; i++)
            flows->links[i].mark = 0;
        flows->step = 1;
    }
}

static void link_note(struct flows *flows, uint32_t link)
{
    if (flows->links[link].noted)
        return;
    flows->links[link].noted = true;
    list_push(&flows->noted, &flows->n_noted, &flows->noted_capacity, link);
}

/* Bring the books of contention up to date for the links whose level or transfers have changed. */
static void noted_account(struct flows *flows)
{
    for (size_t i = 0; i < flows->n_noted; i++) {
        uint32_t which = flows->noted[i];
        struct flow_link *link = &flows->links[which];
        struct link_use *use = &flows->uses[which];
        bool contended = link->n_flows >= 2 && flows->levels[which] != LEVEL_NONE;
        link->noted = false;
        if (use->since >= 0)
            use->contended += flows->now - use->since;
        use->since = contended ? flows->now : -1;
    }
    flows->n_noted = 0;
}

void link_touch(struct flows *flows, uint32_t link)
{
    if (flows->links[link].dirty)
        return;
    flows->links[link].dirty = true;
    flows->links[link].candidate = -1; /* unlike any level */
    list_push(&flows->dirty, &flows->n_dirty, &flows->dirty_capacity, link);
}

void flows_solve(struct flows *flows)
{
    if (flows->n_dirty == 0)
        return;
    flows->counts.solves++;
    for (size_t i = 0; i < flows->n_dirty; i++) {
        link_note(flows, flows->dirty[i]);
        link_reconsider(flows, flows->dirty[i]);
    }
    flows->n_dirty = 0;
    while (flows->n_sweep > 0) {
        struct sweep_entry entry = sweep_pop(flows);
        struct flow_link *link = &flows->links[entry.link];
        if (entry.version != link->version)
            continue;
        flows->counts.settled++;
        link_note(flows, entry.link);
        step_begin(flows);
        if (!link->released && link->candidate > flows->levels[entry.link])
            link_release(flows, entry.link);
        else
            link_settle(flows, entry.link);
        touched_reconsider(flows);
    }
    noted_account(flows);
}
