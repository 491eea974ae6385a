/* flows_books.c - the books of flows: a list of the transfers on each link, in blocks of a pool. */
#include "sim/fabric/flows_internal.h"

/* ---- lists of transfers, in blocks of a pool */

void books_create(struct flows *flows)
{
    for (int k = 0; k < BOOK_SIZES; k++)
        flows->free_blocks[k] = NO_BLOCK;
}

static uint32_t block_new(struct flows *flows, uint8_t size)
{
    uint32_t block = flows->free_blocks[size];

    if (block != NO_BLOCK) {
        flows->free_blocks[size] = flows->entries[block].flow;
        return block;
    }
    size_t n = (size_t)1 << size;
    if (flows->n_entries + n > flows->entry_capacity)
        flows->entries = memory_grow(flows->entries, &flows->entry_capacity, flows->n_entries + n, sizeof *flows->entries);
    block = (uint32_t)flows->n_entries;
    flows->n_entries += n;
    return block;
}

static void block_free(struct flows *flows, uint32_t block, uint8_t size)
{
    flows->entries[block].flow = flows->free_blocks[size];
    flows->free_blocks[size] = block;
}

static void entry_add(struct flows *flows, struct flow_link *link, uint32_t hop)
{
    if (link->n_entries >> link->size != 0) {
        uint32_t block = block_new(flows, link->size + 1);
        for (uint32_t e = 0; e < link->n_entries; e++)
            flows->entries[block + e] = flows->entries[link->block + e];
        block_free(flows, link->block, link->size++);
        link->block = block;
    }
    uint32_t flow = flows->listings[hop].flow;
    flows->hops[hop].booked = 1;
    flows->book_places[hop] = link->n_entries;
    flows->entries[link->block + link->n_entries++] =
        (struct book_entry){.level = flows->items[flow].level, .flow = flow, .share = flows->hops[hop].share};
}

/* The hop by which a transfer crosses a link. */
static uint32_t hop_over(const struct flows *flows, uint32_t flow, uint32_t link)
{
    uint32_t hop = flows->items[flow].first_hop;

    while (flows->hops[hop].link != link)
        hop++;
    return hop;
}

static void entry_remove(struct flows *flows, uint32_t link_id, uint32_t place)
{
    struct flow_link *link = &flows->links[link_id];
    struct book_entry *entries = flows->entries + link->block;

    link->n_entries--;
    if (place == link->n_entries)
        return;
    entries[place] = entries[link->n_entries];
    flows->book_places[hop_over(flows, entries[place].flow, link_id)] = place;
}

/* ---- sums */

static void sums_make(struct flows *flows, struct flow_link *link, int64_t pivot)
{
    link->pivot = pivot;
    link->left = link->capacity;
    link->sharing = 0;
    link->below = -1;
    for (uint32_t e = 0; e < link->n_entries; e++)
        book_sums_add(link, flows->entries[link->block + e].level, flows->entries[link->block + e].share);
}

void link_book(struct flows *flows, uint32_t link_id)
{
    struct flow_link *link = &flows->links[link_id];

    link->size = 2;
    link->n_entries = 0;
    link->shares = 0;
    link->block = block_new(flows, link->size);
    uint32_t missing = flows->loads[link_id].n_flows; /* connections without a transfer are many more */
    for (uint32_t h = link->first; missing > 0; h = flows->listings[h].next) {
        if (!flows->hops[h].active)
            continue;
        entry_add(flows, link, h);
        link->shares += flows->hops[h].share;
        missing -= hop_crossings(&flows->items[flows->listings[h].flow], &flows->hops[h]);
    }
    sums_make(flows, link, flows->loads[link_id].level);
    flows->loads[link_id].booked = 1;
}

void link_unbook(struct flows *flows, uint32_t link_id)
{
    struct flow_link *link = &flows->links[link_id];

    block_free(flows, link->block, link->size);
    flows->loads[link_id].booked = 0;
    flows->loads[link_id].level = LEVEL_NONE;
}

void book_join(struct flows *flows, uint32_t hop)
{
    struct flow_link *link = &flows->links[flows->hops[hop].link];

    entry_add(flows, link, hop);
    link->shares += flows->hops[hop].share;
    book_sums_add(link, flows->items[flows->listings[hop].flow].level, flows->hops[hop].share);
}

void book_leave(struct flows *flows, uint32_t hop)
{
    uint32_t link_id = flows->hops[hop].link;
    struct flow_link *link = &flows->links[link_id];

    book_sums_subtract(link, flows->items[flows->listings[hop].flow].level, flows->hops[hop].share);
    link->shares -= flows->hops[hop].share;
    entry_remove(flows, link_id, flows->book_places[hop]);
}

/* ---- the water level */

/* floor(left / sharing); mostly in 64 bits. */
static int64_t quotient(wide left, int64_t sharing)
{
    if (left == (int64_t)left && left >= 0)
        return (int64_t)left / sharing;
    return left < 0 ? -1 : (int64_t)(left / sharing);
}

struct outlook link_outlook(struct flows *flows, uint32_t link_id)
{
    const struct flow_link *link = &flows->links[link_id];
    int64_t lowest = flows->sweep_key;

    if (!link_tight(flows, link_id))
        return (struct outlook){WATER_IS, LEVEL_NONE};
    if (link->sharing == 0)
        return link->left >= link->shares ? (struct outlook){WATER_IS, LEVEL_NONE} : (struct outlook){WATER_NOT_BELOW, lowest};
    int64_t level = quotient(link->left, link->sharing);
    if (level < link->pivot) {
        level -= link->shares / link->sharing + 1;
        return (struct outlook){WATER_NOT_BELOW, level > lowest ? level : lowest};
    }
    if ((wide)(link->pivot - link->below) * link->sharing < link->shares)
        return (struct outlook){WATER_NOT_BELOW, lowest};
    if (level == link->pivot)
        return (struct outlook){WATER_IS, level};
    if (link->pivot == flows->loads[link_id].level)
        return (struct outlook){WATER_ABOVE, link->pivot};
    return (struct outlook){WATER_NOT_BELOW, link->pivot > lowest ? link->pivot : lowest};
}

struct outlook link_survey(struct flows *flows, uint32_t link_id)
{
    struct flow_link *link = &flows->links[link_id];
    int64_t own = flows->loads[link_id].level, level = flows->sweep_key;

    flows->counts.evaluated++;
    for (;;) {
        sums_make(flows, link, level);
        if (link->sharing == 0) {
            sums_make(flows, link, own);
            return (struct outlook){WATER_IS, LEVEL_NONE};
        }
        int64_t next = quotient(link->left, link->sharing);
        if (next == level)
            return (struct outlook){WATER_IS, level};
        if (next > own) {
            sums_make(flows, link, own);
            return (struct outlook){WATER_ABOVE, own};
        }
        level = next;
    }
}

int64_t link_fill(struct flows *flows, uint32_t link_id, int64_t from)
{
    struct flow_link *link = &flows->links[link_id];
    int64_t level = link_tight(flows, link_id) ? from : LEVEL_NONE;

    flows->counts.evaluated++;
    for (;;) {
        sums_make(flows, link, level);
        if (level == LEVEL_NONE)
            return level;
        int64_t next = link->sharing == 0 ? LEVEL_NONE : quotient(link->left, link->sharing);
        if (next == level)
            return level;
        level = next;
    }
}
