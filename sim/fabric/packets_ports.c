/* packets_ports.c - what happens at links: queues, marks, books and pauses. */
#include "sim/fabric/packets_internal.h"

/* ---- pauses */

static double threshold(const struct packets *p, const struct place_of_packets *place)
{
    return p->with.xoff > 0 ? p->with.xoff : p->with.pfc_alpha * (double)(place->pool - place->used);
}

/* A packet came over `link` into the buffer there. */
static void book(struct packets *p, uint32_t link, uint32_t bytes)
{
    struct port *port = &p->ports[link];
    struct place_of_packets *place = &p->places[port->place];

    port->held += bytes;
    place->used += bytes;
    if (place->used > place->most)
        place->most = place->used;
    if (port->asked || (double)port->held <= threshold(p, place))
        return;
    port->asked = true;
    p->seen[link].pauses++;
    packets_schedule(p, p->now + p->seen[link].control, CLASS_CONTROL, KIND_PAUSE, link);
}

/* May those who were asked to stop go on? An empty book always lets them: then no other packet would ever look. */
static void ask_again(struct packets *p, uint32_t link, const struct place_of_packets *place)
{
    struct port *port = &p->ports[link];

    if (!port->asked || (port->held > 0 && (double)port->held > threshold(p, place) - p->with.xon_gap))
        return;
    port->asked = false;
    packets_schedule(p, p->now + p->seen[link].control, CLASS_CONTROL, KIND_RESUME, link);
}

/* A packet that came over `link` leaves the buffer there. */
static void unbook(struct packets *p, uint32_t link, uint32_t bytes)
{
    struct port *port = &p->ports[link];
    struct place_of_packets *place = &p->places[port->place];

    port->held -= bytes;
    place->used -= bytes;
    ask_again(p, link, place);
    place->cursor = place->cursor + 1 < place->n_ports ? place->cursor + 1 : 0;
    ask_again(p, p->place_ports[place->first_port + place->cursor], place);
}

void port_pause(struct packets *p, uint32_t link)
{
    p->ports[link].paused = true;
    p->seen[link].paused_since = p->now;
}

void port_resume(struct packets *p, uint32_t link)
{
    p->ports[link].paused = false;
    p->seen[link].paused += p->now - p->seen[link].paused_since;
    port_kick(p, link);
}

/* ---- queues */

static uint32_t path_link(const struct packets *p, const struct packet *packet, int hop)
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

static void enqueue(struct packets *p, uint32_t link, uint32_t id)
{
    struct port *port = &p->ports[link];
    struct packet *packet = &p->pool[id];

    if (port->queued > port->mark_above)
        mark(p, &p->seen[link], packet, port->queued);
    packet->next = NONE;
    if (port->first == NONE)
        port->first = id;
    else
        p->pool[port->last].next = id;
    port->last = id;
    port->queued += packet->bytes;
    port_kick(p, link);
    if (port->queued > p->seen[link].deepest)
        p->seen[link].deepest = port->queued;
}

static uint32_t dequeue(struct packets *p, struct port *port)
{
    uint32_t id = port->first;
    struct packet *packet = &p->pool[id];

    port->first = packet->next;
    port->queued -= packet->bytes;
    unbook(p, path_link(p, packet, packet->hop - 1), packet->bytes);
    return id;
}

/* The next packet over a link, whose first bit leaves at `start` (ticks). */
static void serve(struct packets *p, uint32_t link, int64_t start)
{
    struct port *port = &p->ports[link];
    bool passing = port->first != NONE && (port->ready == NONE || !port->turn);
    uint32_t id = passing ? dequeue(p, port) : sender_packet(p, link);
    uint32_t bytes = p->pool[id].bytes;

    port->turn = passing;
    port->free_at = start + (int64_t)(bytes * port->ticks_per_byte + 0.5);
    p->seen[link].bytes += bytes;
    p->seen[link].hops++;
    nanos end = ticks_ceiling(port->free_at);
    packets_schedule(p, end + port->delay, CLASS_ARRIVE, KIND_ARRIVE, id);
    if (port->first != NONE || port->ready != NONE) {
        port->scheduled = true;
        packets_schedule(p, end, CLASS_FREE, KIND_FREE, link);
    }
}

static bool has_something(const struct port *port)
{
    return !port->paused && (port->first != NONE || port->ready != NONE);
}

void port_kick(struct packets *p, uint32_t link)
{
    struct port *port = &p->ports[link];

    if (port->scheduled || !has_something(port))
        return;
    nanos end = ticks_ceiling(port->free_at);
    if (end > p->now) {
        port->scheduled = true;
        packets_schedule(p, end, CLASS_FREE, KIND_FREE, link);
    } else {
        serve(p, link, p->now << TICK_BITS);
    }
}

/* What waited goes on where the packet before ended, within the nanosecond. */
void port_free(struct packets *p, uint32_t link)
{
    struct port *port = &p->ports[link];

    port->scheduled = false;
    if (has_something(port))
        serve(p, link, port->free_at);
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
    uint32_t link = path_link(p, packet, packet->hop);

    packet->hop++;
    if (packet->hop < p->connections[packet->connection].n_hops) {
        book(p, link, packet->bytes);
        enqueue(p, path_link(p, packet, packet->hop), id);
        return;
    }
    p->totals.packets++;
    if (packet->marked)
        notify(p, packet->connection);
    bytes_arrive(p, packet->connection, packet->bytes);
    packet->next = p->free;
    p->free = id;
}
