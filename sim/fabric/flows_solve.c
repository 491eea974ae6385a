/* flows_solve.c - solve max-min fair rates: settle links, lowest level first. */
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

/* ---- spreading a change */

static void flow_set_level(struct flows *flows, uint32_t flow_id, int64_t level)
{
    struct flow *flow = &flows->items[flow_id];

    if (flow->change == 0 && !flow->fresh) {
        if (flows->n_changes == flows->change_capacity)
            flows->changes = memory_grow(flows->changes, &flows->change_capacity, flows->n_changes + 1, sizeof *flows->changes);
        flows->changes[flows->n_changes++] = (struct flow_change){flow_id, flow->level};
        flow->change = (uint32_t)flows->n_changes;
    }
    flow->level = level;
}

/* The smallest of a transfer's ceiling and the levels of its links other than `except`. */
static int64_t level_elsewhere(const struct flows *flows, uint32_t flow_id, uint32_t except)
{
    const struct flow *flow = &flows->items[flow_id];
    const struct flow_hop *hops = flows->hops + flow->first_hop;
    int64_t level = flow->ceiling;

    for (uint32_t h = 0; h < flow->n_hops; h++)
        if (hops[h].booked && hops[h].link != except && flows->loads[hops[h].link].level < level)
            level = flows->loads[hops[h].link].level;
    return level;
}

/* A transfer goes to another level; its links with books are to be looked at, but for `except`, where the caller keeps them. */
static void flow_move(struct flows *flows, uint32_t flow_id, int64_t level, uint32_t except)
{
    const struct flow *flow = &flows->items[flow_id];
    int64_t before = flow->level;

    flow_set_level(flows, flow_id, level);
    for (uint32_t h = flow->first_hop; h < flow->first_hop + flow->n_hops; h++) {
        uint32_t link = flows->hops[h].link;
        if (!flows->hops[h].booked || link == except)
            continue;
        book_move(flows, h, before, level);
        if (flows->links[link].mark == flows->step)
            continue;
        flows->links[link].mark = flows->step;
        list_push(&flows->touched, &flows->n_touched, &flows->touched_capacity, link);
    }
}

static void link_clean(struct flows *flows, uint32_t link_id)
{
    struct flow_link *link = &flows->links[link_id];

    link->dirty = false;
    if (link->key != LEVEL_NONE)
        link->version++; /* its entry is dead */
    link->key = LEVEL_NONE;
}

/* Place a link whose books have changed in the sweep, at the smaller of its level and what its water level cannot be below; if
 * the two are equal for certain it has nothing to settle. */
static void link_reconsider(struct flows *flows, uint32_t link_id)
{
    struct flow_link *link = &flows->links[link_id];
    int64_t level = flows->loads[link_id].level;

    if (flows->loads[link_id].n_flows == 0) { /* nobody to tell */
        link_clean(flows, link_id);
        return;
    }
    struct outlook outlook = link_outlook(flows, link_id);
    if (outlook.bound == WATER_IS && outlook.level == level) {
        link_clean(flows, link_id);
        return;
    }
    int64_t key = outlook.level < level ? outlook.level : level;
    if (link->key <= key)
        return;
    link->dirty = true;
    link->key = key;
    sweep_push(flows, key, link_id);
}

/* The link rises from its level: the transfers that it holds back go to where the others or its new level hold them. */
static void link_raise(struct flows *flows, uint32_t link_id)
{
    const struct flow_link *link = &flows->links[link_id];
    struct book_entry *entries = flows->entries + link->block;
    int64_t old = flows->loads[link_id].level;

    for (uint32_t e = 0; e < link->n_entries; e++)
        if (entries[e].level == old)
            entries[e].level = level_elsewhere(flows, entries[e].flow, link_id);
    int64_t level = link_fill(flows, link_id, old);
    for (uint32_t e = 0; e < link->n_entries; e++) {
        if (entries[e].level > level)
            entries[e].level = level;
        if (entries[e].level != flows->items[entries[e].flow].level)
            flow_move(flows, entries[e].flow, entries[e].level, link_id);
    }
    flows->loads[link_id].level = level;
    link_clean(flows, link_id);
}

/* The link falls to its water level. */
static void link_lower(struct flows *flows, uint32_t link_id, int64_t level)
{
    const struct flow_link *link = &flows->links[link_id];
    struct book_entry *entries = flows->entries + link->block;

    for (uint32_t e = 0; e < link->n_entries; e++) {
        if (entries[e].level <= level)
            continue;
        entries[e].level = level;
        flow_move(flows, entries[e].flow, level, link_id);
    }
    flows->loads[link_id].level = level;
    link_clean(flows, link_id);
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
        uint32_t link_id = flows->noted[i];
        struct flow_link *link = &flows->links[link_id];
        struct link_use *use = &flows->uses[link_id];
        bool contended = flows->loads[link_id].n_flows >= 2 && flows->loads[link_id].level != LEVEL_NONE;
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
    list_push(&flows->dirty, &flows->n_dirty, &flows->dirty_capacity, link);
}

/* A link whose turn has come in the sweep, at a key that its level and its water level are not below. */
static void link_turn(struct flows *flows, uint32_t link_id)
{
    struct flow_link *link = &flows->links[link_id];
    int64_t level = flows->loads[link_id].level;
    struct outlook outlook = link_outlook(flows, link_id);

    if (outlook.bound == WATER_NOT_BELOW)
        outlook = link_survey(flows, link_id);
    if (outlook.bound == WATER_IS && outlook.level == level) {
        link_clean(flows, link_id);
        return;
    }
    bool rises = outlook.bound == WATER_ABOVE || outlook.level > level;
    int64_t key = rises ? level : outlook.level;
    if (key > flows->sweep_key) {
        link->key = key;
        sweep_push(flows, key, link_id);
        return;
    }
    flows->counts.settled++;
    link_note(flows, link_id);
    step_begin(flows);
    if (rises)
        link_raise(flows, link_id);
    else
        link_lower(flows, link_id, outlook.level);
    touched_reconsider(flows);
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
    for (uint32_t link_id; sweep_next(flows, &link_id);)
        link_turn(flows, link_id);
    flows->n_sweep = flows->sweep_free = 0;
    noted_account(flows);
}
