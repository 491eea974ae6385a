/* packets_answers.c - default parameters, counters so far, and the check of a state. */
#include <math.h>
#include <string.h>

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

/* Not a number where the text is none: then nothing is in its bounds. */
static double usual(const char *text, enum dimension dimension)
{
    char why[160];
    double value = NAN;

    return quantity_parse(text, dimension, &value, why, sizeof why) == STATUS_OK ? value : NAN;
}

static nanos usual_time(const char *text)
{
    return nanos_from_seconds(usual(text, DIM_TIME));
}

static enum congestion usual_congestion(const char *text)
{
    return strcmp(text, congestion_name(CONGESTION_DCQCN)) == 0 ? CONGESTION_DCQCN : CONGESTION_NONE;
}

struct packets_parameters packets_usual(void)
{
    return (struct packets_parameters){.packet_bytes = usual(PACKETS_USUAL_BYTES, DIM_BYTES),
                                       .link_delay_s = -1,
                                       .switch_buffer = usual(PACKETS_USUAL_SWITCH_BUFFER, DIM_BYTES),
                                       .nic_buffer = usual(PACKETS_USUAL_NIC_BUFFER, DIM_BYTES),
                                       .pfc_alpha = usual(PACKETS_USUAL_PFC_ALPHA, DIM_FRACTION),
                                       .xon_gap = usual(PACKETS_USUAL_XON_GAP, DIM_BYTES),
                                       .congestion = usual_congestion(PACKETS_USUAL_CONGESTION),
                                       .kmin = usual(PACKETS_USUAL_KMIN, DIM_BYTES),
                                       .kmax = usual(PACKETS_USUAL_KMAX, DIM_BYTES),
                                       .pmax = usual(PACKETS_USUAL_PMAX, DIM_FRACTION),
                                       .dcqcn = {.gain = usual(PACKETS_USUAL_GAIN, DIM_FRACTION),
                                                 .cnp_interval = usual_time(PACKETS_USUAL_CNP_INTERVAL),
                                                 .alpha_timer = usual_time(PACKETS_USUAL_ALPHA_TIMER),
                                                 .rate_timer = usual_time(PACKETS_USUAL_RATE_TIMER),
                                                 .byte_counter = usual(PACKETS_USUAL_BYTE_COUNTER, DIM_BYTES),
                                                 .fast_rounds = (int)usual(PACKETS_USUAL_FAST_ROUNDS, DIM_COUNT),
                                                 .additive = usual(PACKETS_USUAL_ADDITIVE, DIM_RATE),
                                                 .hyper = usual(PACKETS_USUAL_HYPER, DIM_RATE),
                                                 .least = usual(PACKETS_USUAL_LEAST, DIM_RATE)}};
}
