#include "sim/fabric/flows_internal.h"

/* ---- the sweep: links to settle, lowest level first */

static int bucket_of(const struct flows *flows, int64_t key)
{
    uint64_t different = (uint64_t)(key ^ flows->sweep_key);
    return different == 0 ? 0 : 64 - __builtin_clzll(different);
}

static void sweep_file(struct flows *flows, uint32_t entry)
{
    int bucket = bucket_of(flows, flows->sweep[entry - 1].key);

    flows->sweep[entry - 1].next = flows->sweep_buckets[bucket];
    flows->sweep_buckets[bucket] = entry;
    flows->sweep_filled |= UINT64_C(1) << bucket;
}

static void sweep_push(struct flows *flows, int64_t key, uint32_t link)
{
    uint32_t entry = flows->sweep_free;

    if (entry != 0) {
        flows->sweep_free = flows->sweep[entry - 1].next;
    } else {
        if (flows->n_sweep == flows->sweep_capacity)
            flows->sweep = memory_grow(flows->sweep, &flows->sweep_capacity, flows->n_sweep + 1, sizeof *flows->sweep);
        entry = (uint32_t)++flows->n_sweep;
    }
    flows->sweep[entry - 1] = (struct sweep_entry){.key = key, .link = link, .version = ++flows->links[link].version};
    sweep_file(flows, entry);
}

static bool entry_alive(const struct flows *flows, const struct sweep_entry *entry)
{
    return flows->links[entry->link].version == entry->version;
}

static void entry_free(struct flows *flows, uint32_t entry)
{
    flows->sweep[entry - 1].next = flows->sweep_free;
    flows->sweep_free = entry;
}

/* Spread the lowest bucket, whose smallest key is the next one, over those below it. */
static void sweep_spread(struct flows *flows)
{
    int bucket = __builtin_ctzll(flows->sweep_filled);
    uint32_t list = flows->sweep_buckets[bucket];
    int64_t smallest = INT64_MAX;

    for (uint32_t e = list; e != 0; e = flows->sweep[e - 1].next)
        if (flows->sweep[e - 1].key < smallest && entry_alive(flows, &flows->sweep[e - 1]))
            smallest = flows->sweep[e - 1].key;
    flows->sweep_buckets[bucket] = 0;
    flows->sweep_filled &= ~(UINT64_C(1) << bucket);
    if (smallest != INT64_MAX)
        flows->sweep_key = smallest;
    for (uint32_t e = list, next; e != 0; e = next) {
        next = flows->sweep[e - 1].next;
        if (entry_alive(flows, &flows->sweep[e - 1]))
            sweep_file(flows, e);
        else
            entry_free(flows, e);
    }
}

/* The next link to settle; false: none is left. */
static bool sweep_next(struct flows *flows, uint32_t *link)
{
    while (flows->sweep_filled != 0) {
        if (!(flows->sweep_filled & 1)) {
            sweep_spread(flows);
            continue;
        }
        uint32_t entry = flows->sweep_buckets[0];
        const struct sweep_entry *taken = &flows->sweep[entry - 1];
        flows->sweep_buckets[0] = taken->next;
        if (taken->next == 0)
            flows->sweep_filled &= ~UINT64_C(1);
        bool alive = entry_alive(flows, taken);
        *link = taken->link;
        entry_free(flows, entry);
        if (alive)
            return true;
    }
    return false;
}

/* ---- the water level of one link */

/* The smallest of a transfer's ceiling and the levels of its links other than the one that `hop` crosses. */
static int64_t level_elsewhere(const struct flows *flows, const struct flow *flow, uint32_t hop)
{
    const struct flow_hop *hops = flows->hops + flow->first_hop;
    uint32_t own = hop - flow->first_hop;
    int64_t level = flow->ceiling;

    for (uint32_t h = 0; h < flow->n_hops; h++)
        if (h != own && flows->loads[hops[h].link].level < level)
            level = flows->loads[hops[h].link].level;
    return level;
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
    const struct link_load *load = &flows->loads[which];
    int64_t own = load->level;
    size_t n = 0;

    if (!link_tight(flows, which))
        return LEVEL_NONE;
    flows->counts.evaluated++;
    scratch_reserve(flows, load->n_flows);
    for (uint32_t h = flows->links[which].first; h != NO_HOP; h = flows->listings[h].next) {
        const struct flow_hop *hop = &flows->hops[h];
        if (!hop->active)
            continue;
        const struct flow *flow = &flows->items[flows->listings[h].flow];
        /* Below this link's level it is held elsewhere, at just that. */
        flows->held[n] = flow->level < own ? flow->level : level_elsewhere(flows, flow, h);
        flows->shares[n++] = hop->share;
    }
    return water_level_scan(flows, flows->links[which].capacity, n);
}

/* ---- spreading a change */

static void flow_set_level(struct flows *flows, uint32_t which, int64_t level)
{
    struct flow *flow = &flows->items[which];

    if (flow->change == 0 && !flow->fresh) {
        if (flows->n_changes == flows->change_capacity)
            flows->changes = memory_grow(flows->changes, &flows->change_capacity, flows->n_changes + 1, sizeof *flows->changes);
        flows->changes[flows->n_changes++] = (struct flow_change){which, flow->level};
        flow->change = (uint32_t)flows->n_changes;
    }
    flow->level = level;
}

/* Links of the transfer, other than `except`, that may be full and whose level lies above `level`: its change may move them. */
static void flow_list_links(struct flows *flows, const struct flow *flow, uint32_t except, int64_t level)
{
    const struct flow_hop *hops = flows->hops + flow->first_hop;

    for (uint32_t h = 0; h < flow->n_hops; h++) {
        uint32_t link = hops[h].link;
        if (flows->loads[link].level <= level || link == except || flows->links[link].mark == flows->step ||
            !link_tight(flows, link))
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

    if (flows->loads[which].n_flows == 0) { /* nobody to tell */
        flows->loads[which].level = LEVEL_NONE;
        link->dirty = link->released = false;
        link->version++;
        return;
    }
    int64_t level = flows->loads[which].level, candidate = water_level(flows, which);
    if (candidate == level) { /* of a released link: nothing holds its transfers back any more */
        link->dirty = link->released = false;
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
    int64_t old = flows->loads[which].level;

    for (uint32_t h = link->first; h != NO_HOP; h = flows->listings[h].next) {
        if (!flows->hops[h].active)
            continue;
        const struct flow *flow = &flows->items[flows->listings[h].flow];
        if (flow->level != old)
            continue;
        int64_t elsewhere = level_elsewhere(flows, flow, h);
        if (elsewhere == old)
            continue;
        flow_list_links(flows, flow, which, old);
        flow_set_level(flows, flows->listings[h].flow, elsewhere);
    }
    flows->loads[which].level = LEVEL_NONE;
    link->released = link->candidate != LEVEL_NONE;
    link->dirty = link->released;
    if (link->released)
        sweep_push(flows, link->candidate, which);
}

static void link_settle(struct flows *flows, uint32_t which)
{
    struct flow_link *link = &flows->links[which];
    int64_t level = link->candidate;

    for (uint32_t h = link->first; h != NO_HOP; h = flows->listings[h].next) {
        if (!flows->hops[h].active)
            continue;
        const struct flow *flow = &flows->items[flows->listings[h].flow];
        if (flow->level <= level)
            continue;
        flow_list_links(flows, flow, which, level);
        flow_set_level(flows, flows->listings[h].flow, level);
    }
    flows->loads[which].level = level;
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
        bool contended = flows->loads[which].n_flows >= 2 && flows->loads[which].level != LEVEL_NONE;
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
    flows->sweep_key = 0;
    for (size_t i = 0; i < flows->n_dirty; i++) {
        link_note(flows, flows->dirty[i]);
        link_reconsider(flows, flows->dirty[i]);
    }
    flows->n_dirty = 0;
    for (uint32_t which; sweep_next(flows, &which);) {
        const struct flow_link *link = &flows->links[which];
        flows->counts.settled++;
        link_note(flows, which);
        step_begin(flows);
        if (!link->released && link->candidate > flows->loads[which].level)
            link_release(flows, which);
        else
            link_settle(flows, which);
        touched_reconsider(flows);
    }
    flows->n_sweep = flows->sweep_free = 0;
    noted_account(flows);
}
