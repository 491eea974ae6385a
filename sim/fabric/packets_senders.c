/* packets_senders.c - connections: the time and the content of the next packet. */
#include <math.h>

#include "model/base/memory.h"
#include "sim/fabric/packets_internal.h"

static uint32_t first_link(const struct packets *p, const struct connection *c)
{
    return p->hops[c->first_hop];
}

/* Does its rate hold it back, or only the link? */
static bool is_paced(const struct packets *p, const struct connection *c)
{
    return p->with.congestion == CONGESTION_DCQCN && c->sender.current < c->unpaced;
}

/* What the rate has paid for up to now, at each of the rates it had. Who waits may save up a packet. */
static void pay(struct packets *p, struct connection *c)
{
    double saved = -p->with.packet_bytes;

    while (c->sender.rate_at <= p->now) {
        nanos until = c->sender.rate_at;
        c->due -= c->sender.current * (double)(until - c->at) * 1e-9;
        c->at = until;
        dcqcn_advance(&c->sender, &p->with.dcqcn, until);
    }
    dcqcn_advance(&c->sender, &p->with.dcqcn, p->now);
    c->due -= c->sender.current * (double)(p->now - c->at) * 1e-9;
    c->at = p->now;
    if (c->due < saved)
        c->due = saved;
}

static void make_ready(struct packets *p, uint32_t id)
{
    struct connection *c = &p->connections[id];
    struct port *port = &p->ports[first_link(p, c)];

    c->next = NONE;
    if (port->ready == NONE)
        port->ready = id;
    else
        p->connections[port->ready_last].next = id;
    port->ready_last = id;
}

/* Among the ready, or an event for when the rate has paid for the last packet, if it stays as it is until its next increase. */
static void wait_or_ready(struct packets *p, uint32_t id)
{
    struct connection *c = &p->connections[id];

    if (!is_paced(p, c) || c->due <= 0) {
        make_ready(p, id);
        return;
    }
    nanos paid = p->now + (nanos)ceil(c->due / c->sender.current * 1e9);
    packets_schedule(p, nanos_earlier(paid, c->sender.rate_at), CLASS_SEND, KIND_SEND, id);
}

uint32_t sender_settle(struct packets *p, uint32_t id)
{
    pay(p, &p->connections[id]);
    wait_or_ready(p, id);
    return first_link(p, &p->connections[id]);
}

static uint32_t packet_new(struct packets *p)
{
    uint32_t id = p->free;

    if (id != NONE) {
        p->free = p->pool[id].next;
        return id;
    }
    p->pool = memory_grow(p->pool, &p->capacity, p->used + 1, sizeof *p->pool);
    return (uint32_t)p->used++;
}

uint32_t sender_packet(struct packets *p, uint32_t link)
{
    struct port *port = &p->ports[link];
    uint32_t from = port->ready, id = packet_new(p);
    struct connection *c = &p->connections[from];
    int64_t most = (int64_t)p->with.packet_bytes;
    uint32_t bytes = (uint32_t)(c->left < most ? c->left : most);

    port->ready = c->next;
    p->pool[id] = (struct packet){.next = NONE, .connection = from, .bytes = bytes};
    c->left -= bytes;
    p->under_way += bytes;
    p->totals.bytes_sent += bytes;
    if (p->with.congestion == CONGESTION_DCQCN) {
        pay(p, c);
        c->due = is_paced(p, c) ? c->due + bytes : 0;
        dcqcn_sent(&c->sender, &p->with.dcqcn, bytes, p->now);
    }
    if (c->left > 0)
        wait_or_ready(p, from);
    return id;
}

void sender_notified(struct packets *p, uint32_t id)
{
    pay(p, &p->connections[id]);
    dcqcn_notify(&p->connections[id].sender, &p->with.dcqcn, p->now);
}
