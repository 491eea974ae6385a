/* packets_ports.c - events at links: queues, ECN marks, buffer accounts and pauses. */
#include "sim/fabric/packets_internal.h"

/* ---- pauses */

static double threshold(const struct packets *p, const struct place_of_packets *place)
{
    return p->with.xoff > 0 ? p->with.xoff : p->with.pfc_alpha * (double)(place->pool - place->used);
}

/* A packet came from port `id` into the buffer there. */
static void book(struct packets *p, uint32_t id, uint32_t bytes)
{
    struct port *port = &p->ports[id];
    struct port_seen *seen = &p->seen[link_of(p, id)];
    struct place_of_packets *place = &p->places[port->place];

    port->held += bytes;
    place->used += bytes;
    if (place->used > place->most)
        place->most = place->used;
    if (port->asked || (double)port->held <= threshold(p, place))
        return;
    port->asked = true;
    seen->pauses++;
    packets_schedule(p, p->now + seen->control, CLASS_CONTROL, KIND_PAUSE, id);
}

/* May those who were asked to stop go on? An empty book always lets them: then no other packet would ever look. */
static void ask_again(struct packets *p, uint32_t id, const struct place_of_packets *place)
{
    struct port *port = &p->ports[id];

    if (!port->asked || (port->held > 0 && (double)port->held > threshold(p, place) - p->with.xon_gap))
        return;
    port->asked = false;
    packets_schedule(p, p->now + p->seen[link_of(p, id)].control, CLASS_CONTROL, KIND_RESUME, id);
}

/* A packet that came from port `id` leaves the buffer there. */
static void unbook(struct packets *p, uint32_t id, uint32_t bytes)
{
    struct port *port = &p->ports[id];
    struct place_of_packets *place = &p->places[port->place];

    port->held -= bytes;
    place->used -= bytes;
    ask_again(p, id, place);
    place->cursor = place->cursor + 1 < place->n_ports ? place->cursor + 1 : 0;
    ask_again(p, p->place_ports[place->first_port + place->cursor], place);
}

void port_pause(struct packets *p, uint32_t port)
{
    struct port_seen *seen = &p->seen[link_of(p, port)];

    p->ports[port].paused = true;
    if (seen->stopped++ == 0)
        seen->paused_since = p->now;
}

void port_resume(struct packets *p, uint32_t port)
{
    struct port_seen *seen = &p->seen[link_of(p, port)];

    p->ports[port].paused = false;
    if (--seen->stopped == 0)
        seen->paused += p->now - seen->paused_since;
    port_kick(p, port);
}

/* ---- queues */

/* The port over which it goes. */
static uint32_t path_port(const struct packets *p, const struct packet *packet, int hop)
{
    return p->hops[p->connections[packet->connection].first_hop + (uint32_t)hop];
}

static void mark(struct packets *p, struct port_seen *seen, struct packet *packet, uint32_t queued)
{
    double chance = red_probability(queued, seen->kmin, seen->kmax, p->with.pmax);

    if (chance < 1 && random_uniform(&seen->stream) >= chance)
        return;
    packet->marked = true;
    seen->marks++;
}

static void enqueue(struct packets *p, uint32_t to, uint32_t id)
{
    struct port *port = &p->ports[to];
    struct packet *packet = &p->pool[id];
    uint32_t link = link_of(p, to);

    if (port->queued > port->mark_above)
        mark(p, &p->seen[link], packet, port->queued);
    packet->next = NONE;
    packet->stamp = p->stamps++;
    if (port->first == NONE)
        port->first = id;
    else
        p->pool[port->last].next = id;
    port->last = id;
    port->queued += packet->bytes;
    port_kick(p, to);
    uint32_t queued = link_queued(p, link);
    if (queued > p->seen[link].deepest)
        p->seen[link].deepest = queued;
}

static uint32_t dequeue(struct packets *p, struct port *port)
{
    uint32_t id = port->first;
    struct packet *packet = &p->pool[id];

    port->first = packet->next;
    port->queued -= packet->bytes;
    unbook(p, path_port(p, packet, packet->hop - 1), packet->bytes);
    return id;
}

static bool may_pass(const struct port *port)
{
    return port->first != NONE && !port->paused;
}

static bool may_begin(const struct port *port)
{
    return port->ready != NONE && !port->paused;
}

/* The port of a link whose packet has waited the longest, of those that may go; NONE. */
static uint32_t oldest(const struct packets *p, uint32_t link)
{
    uint32_t best = may_pass(&p->ports[link]) ? link : NONE, n = link_ports(p, link);

    for (uint32_t i = 1; i < n; i++) {
        uint32_t id = port_of(p, link, i);
        const struct port *port = &p->ports[id];
        if (may_pass(port) && (best == NONE || (int32_t)(p->pool[port->first].stamp - p->pool[p->ports[best].first].stamp) < 0))
            best = id;
    }
    return best;
}

/* The next packet over a link, whose first bit leaves at `start` (ticks), if any may go. */
static void serve(struct packets *p, uint32_t link, int64_t start)
{
    struct port *wire = &p->ports[link];
    uint32_t passes = oldest(p, link);
    bool begins = may_begin(wire);

    if (passes == NONE && !begins)
        return;
    bool passing = passes != NONE && !(begins && wire->turn);
    uint32_t id = passing ? dequeue(p, &p->ports[passes]) : sender_packet(p, link);
    uint32_t bytes = p->pool[id].bytes;

    wire->turn = passing;
    wire->free_at = start + (int64_t)(bytes * wire->ticks_per_byte + 0.5);
    p->seen[link].bytes += bytes;
    p->seen[link].hops++;
    nanos end = ticks_ceiling(wire->free_at);
    packets_schedule(p, end + wire->delay, CLASS_ARRIVE, KIND_ARRIVE, id);
    if (wire->ready != NONE || link_queued(p, link) > 0) {
        wire->scheduled = true;
        packets_schedule(p, end, CLASS_FREE, KIND_FREE, link);
    }
}

void port_kick(struct packets *p, uint32_t port)
{
    uint32_t link = link_of(p, port);
    struct port *wire = &p->ports[link];

    if (wire->scheduled || (!may_pass(&p->ports[port]) && !may_begin(&p->ports[port])))
        return;
    nanos end = ticks_ceiling(wire->free_at);
    if (end > p->now) {
        wire->scheduled = true;
        packets_schedule(p, end, CLASS_FREE, KIND_FREE, link);
    } else {
        serve(p, link, p->now << TICK_BITS);
    }
}

/* What waited goes on where the packet before ended, within the nanosecond. */
void link_free(struct packets *p, uint32_t link)
{
    p->ports[link].scheduled = false;
    serve(p, link, p->ports[link].free_at);
}

/* ---- arrivals */

void bytes_arrive(struct packets *p, uint32_t id, int64_t bytes)
{
    struct connection *c = &p->connections[id];

    c->arrived += bytes;
    c->missing -= bytes;
    p->under_way -= bytes;
    if (c->missing > 0)
        return;
    c->next = NONE;
    if (p->ended == NONE)
        p->ended = id;
    else
        p->connections[p->ended_last].next = id;
    p->ended_last = id;
}

/* A marked packet makes its receiver notify the sender, but not too often. */
static void notify(struct packets *p, uint32_t id)
{
    struct connection *c = &p->connections[id];

    if (p->now < c->cnp_from)
        return;
    c->cnp_from = p->now + p->with.dcqcn.cnp_interval;
    p->totals.cnps++;
    packets_schedule(p, p->now + c->back, CLASS_CONTROL, KIND_CNP, id);
}

void packet_arrive(struct packets *p, uint32_t id)
{
    struct packet *packet = &p->pool[id];
    uint32_t came = path_port(p, packet, packet->hop);

    packet->hop++;
    if (packet->hop < p->connections[packet->connection].n_hops) {
        book(p, came, packet->bytes);
        enqueue(p, path_port(p, packet, packet->hop), id);
        return;
    }
    p->totals.packets++;
    if (packet->marked)
        notify(p, packet->connection);
    bytes_arrive(p, packet->connection, packet->bytes);
    packet->next = p->free;
    p->free = id;
}
