/* packets_answers.c - what has been seen so far, and whether it can be. */
#include <math.h>

#include "sim/fabric/packets_internal.h"

nanos packets_now(const struct packets *p)
{
    return p->now;
}

uint64_t packets_payload(const struct packets *p, uint32_t connection)
{
    return p->connections[connection].payload;
}

int64_t packets_arrived(const struct packets *p, uint32_t connection)
{
    return p->connections[connection].arrived;
}

int64_t packets_bytes_arrived(const struct packets *p)
{
    return p->totals.bytes_sent - p->under_way;
}

nanos packets_delay(const struct packets *p, uint32_t connection)
{
    return p->connections[connection].back;
}

struct packets_link packets_link(const struct packets *p, uint32_t link)
{
    const struct port_seen *seen = &p->seen[link];

    return (struct packets_link){.bytes = seen->bytes,
                                 .deepest = seen->deepest,
                                 .marks = seen->marks,
                                 .pauses = seen->pauses,
                                 .paused = seen->paused + (seen->stopped > 0 ? p->now - seen->paused_since : 0)};
}

struct packets_totals packets_totals(const struct packets *p)
{
    struct packets_totals totals = p->totals;

    totals.events = engine_taken(p->engine);
    totals.bytes_arrived = packets_bytes_arrived(p);
    for (uint32_t l = 0; l < p->n_links; l++) {
        struct packets_link link = packets_link(p, l);
        totals.hops += p->seen[l].hops;
        totals.marks += link.marks;
        totals.pauses += link.pauses;
        totals.paused += link.paused;
        totals.paused_links += link.pauses > 0;
    }
    for (uint32_t i = 0; i < p->n_places; i++)
        totals.fullest = fmax(totals.fullest, (double)p->places[i].most / (double)p->places[i].buffer);
    return totals;
}

const char *packets_check(const struct packets *p)
{
    int64_t queued = 0, held = 0, used = 0;

    for (uint32_t i = 0; i < p->n_ports; i++) {
        const struct port *port = &p->ports[i];
        int64_t sum = 0;
        for (uint32_t id = port->first; id != NONE; id = p->pool[id].next)
            sum += p->pool[id].bytes;
        if (sum != port->queued)
            return "the bytes of a queue are not those of its packets";
        if (p->seen[link_of(p, i)].deepest < link_queued(p, link_of(p, i)))
            return "a queue is deeper than it ever was";
        queued += sum;
        held += port->held;
    }
    for (uint32_t i = 0; i < p->n_places; i++) {
        if (p->places[i].most > p->places[i].buffer)
            return "a buffer held more than it has";
        used += p->places[i].used;
    }
    if (queued != held || held != used)
        return "queues, books of links and buffers disagree";
    return queued <= p->under_way ? NULL : "more waits than is under way";
}
