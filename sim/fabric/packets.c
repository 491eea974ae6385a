#include "sim/fabric/packets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/fabric/dragonfly.h"
#include "sim/fabric/packets_internal.h"

enum { PURPOSE_MARK = 0x6563 };
/* Virtual channels that ways of a whole dragonfly take: local global, local global, local. */
enum { CHANNELS = 3 };

/* A link is a cache line, and packets are what there are most of. */
_Static_assert(sizeof(struct port) <= 64, "a port fits a cache line");
_Static_assert(sizeof(struct packet) == 16, "four packets to a cache line");

const char *congestion_name(enum congestion congestion)
{
    static const char *const names[N_CONGESTIONS] = {"none", "dcqcn"};
    return names[congestion];
}

/* ---- creation */

static bool within(struct diags *diags, const char *what, double value, double low, double high)
{
    if (value >= low && value <= high)
        return true;
    diag_error(diags, PLACE_NONE, "%s of %g; it must be between %g and %g", what, value, low, high);
    return false;
}

static bool parameters_check(const struct packets_parameters *with, struct diags *diags)
{
    const struct dcqcn_parameters *d = &with->dcqcn;
    bool good = within(diags, "packets (B)", with->packet_bytes, 64, PACKET_BYTES_MAX);

    good &= within(diags, "a switch buffer (B)", with->switch_buffer, 1, PACKETS_BUFFER_MAX);
    good &= within(diags, "a NIC buffer (B)", with->nic_buffer, 1, PACKETS_BUFFER_MAX);
    if (with->link_delay_s >= 0)
        good &= within(diags, "a link delay (s)", with->link_delay_s, 0, PACKET_SECONDS_MAX);
    good &= within(diags, "a PFC alpha", with->pfc_alpha, 1 / PACKETS_ALPHA_MAX, PACKETS_ALPHA_MAX);
    good &= within(diags, "XOFF (B)", with->xoff, 0, PACKETS_BUFFER_MAX);
    good &= within(diags, "the gap from XOFF to XON (B)", with->xon_gap, 0, PACKETS_BUFFER_MAX);
    if (with->congestion != CONGESTION_DCQCN)
        return good;
    good &= within(diags, "Kmax (B)", with->kmax, 0, PACKETS_BUFFER_MAX);
    good &= within(diags, "Kmin (B), up to Kmax,", with->kmin, 0, with->kmax);
    good &= within(diags, "Pmax", with->pmax, 0, 1);
    good &= within(diags, "DCQCN's g", d->gain, 0, 1);
    good &= within(diags, "DCQCN's timers (ns)", (double)d->alpha_timer, DCQCN_TIMER_MIN, 1e9 * DCQCN_SECONDS_MAX);
    good &= within(diags, "DCQCN's timers (ns)", (double)d->rate_timer, DCQCN_TIMER_MIN, 1e9 * DCQCN_SECONDS_MAX);
    good &= within(diags, "the interval of CNPs (ns)", (double)d->cnp_interval, 0, 1e9 * DCQCN_SECONDS_MAX);
    good &= within(diags, "DCQCN's byte counter (B)", d->byte_counter, 1, DCQCN_NUMBER_MAX);
    return good & within(diags, "DCQCN's least rate (B/s)", d->least, 1, DCQCN_NUMBER_MAX);
}

static bool is_switch_output(enum fabric_layer layer)
{
    return layer > LAYER_NIC_UP;
}

static double link_delay_s(const struct packets_parameters *with, const struct fabric *fabric, uint32_t link)
{
    if (link < fabric->first[LAYER_NIC_UP])
        return 0;
    return with->link_delay_s >= 0 ? with->link_delay_s : fabric->shape.hop_latency_s;
}

/* Times of a packet have to fit where they are kept. */
static bool links_check(const struct fabric *fabric, const struct packets_parameters *with, struct diags *diags)
{
    char name[96];

    for (uint32_t l = 0; l < fabric_links(fabric); l++) {
        double rate = fabric_rate(fabric, l);
        if (rate <= 0 || with->packet_bytes / rate <= PACKET_SECONDS_MAX)
            continue;
        diag_error(diags, PLACE_NONE,
                   "a packet of %.0f B takes %.3g s over %s, which has %.3g B/s; the limit is %g s. Make that link faster, or "
                   "set it to 0 (down)",
                   with->packet_bytes, with->packet_bytes / rate, fabric_link_name(fabric, l, name, sizeof name), rate,
                   (double)PACKET_SECONDS_MAX);
        return false;
    }
    return true;
}

/* The bytes that wait for a link inside a host come from the buffers of others there. */
static bool hosts_check(const struct fabric *fabric, const struct packets_parameters *with, struct diags *diags)
{
    const struct fabric_shape *s = &fabric->shape;
    double links = 2.0 * (s->gpus_per_host + s->nics_per_host + s->pcie_switches + s->sockets) + s->nvlink_domain;

    if (fabric->first[LAYER_NIC_UP] == 0 || with->nic_buffer * links <= PACKETS_BUFFER_MAX)
        return true;
    diag_error(
        diags, PLACE_NONE,
        "buffers of %.0f B for each of %.0f links inside a host are too large; together they have at most %.0f B (--nic-buffer)",
        with->nic_buffer, links, PACKETS_BUFFER_MAX);
    return false;
}

static void port_create(struct packets *p, const struct fabric *fabric, uint32_t port)
{
    uint32_t link = link_of(p, port);
    double rate = fabric_rate(fabric, link);
    const struct port_seen *seen = &p->seen[link];
    bool marks = p->with.congestion == CONGESTION_DCQCN && is_switch_output(fabric_layer_of(fabric, link));

    p->ports[port] = (struct port){.ticks_per_byte = rate > 0 ? 1e9 / rate * (1 << TICK_BITS) : 0,
                                   .first = NONE,
                                   .ready = NONE,
                                   .delay = (uint32_t)nanos_from_seconds(link_delay_s(&p->with, fabric, link)),
                                   .mark_above = marks && seen->kmin < UINT32_MAX ? (uint32_t)seen->kmin : UINT32_MAX};
}

static void link_create(struct packets *p, const struct fabric *fabric, uint32_t link)
{
    double rate = fabric_rate(fabric, link), scale = rate / DCQCN_REFERENCE_RATE;
    double frame_s = rate > 0 ? PAUSE_FRAME_BYTES / rate : 0;

    p->seen[link] = (struct port_seen){.control = (uint32_t)nanos_from_seconds(link_delay_s(&p->with, fabric, link)) +
                                                  (uint32_t)ceil(frame_s * 1e9),
                                       .kmin = p->with.kmin * scale,
                                       .kmax = p->with.kmax * scale,
                                       .stream = random_stream_named(p->with.seed, PURPOSE_MARK, link)};
    for (uint32_t i = 0; i < link_ports(p, link); i++)
        port_create(p, fabric, port_of(p, link, i));
}

/* What may arrive over a link after it was decided to stop it; packets.h. More than any buffer is as good as infinite. */
static int64_t headroom(const struct packets *p, const struct fabric *fabric, uint32_t link)
{
    double wire = ceil(fabric_rate(fabric, link) * 1e-9 * (double)(p->ports[link].delay + (double)p->seen[link].control + 2));

    return (int64_t)fmin(wire, 1e3 * PACKETS_BUFFER_MAX) + 3 * (int64_t)p->with.packet_bytes;
}

/* Nothing leads on from a NIC without PCIe behind it: no packet ever waits there. */
static bool is_end(const struct fabric *fabric, uint32_t link)
{
    return fabric_layer_of(fabric, link) == LAYER_NIC_DOWN && fabric->shape.pcie_rate <= 0 && fabric->shape.pcie_switches == 0;
}

static struct place_of_packets *place_behind(struct packets *p, uint32_t port)
{
    return &p->places[p->ports[port].place];
}

/* A buffer for each switch, then one for each port that leads elsewhere; and which ports lead to each. */
static void places_create(struct packets *p, const struct fabric *fabric)
{
    uint32_t switches = (uint32_t)(fabric->n_tors + fabric->n_aggs + fabric->n_cores);

    p->places = memory_new(switches + p->n_ports, sizeof *p->places);
    p->place_ports = memory_new(p->n_ports, sizeof *p->place_ports);
    p->n_places = p->n_switches = switches;
    for (uint32_t i = 0; i < switches; i++)
        p->places[i].buffer = (int64_t)p->with.switch_buffer;
    for (uint32_t i = 0; i < p->n_ports; i++) {
        uint32_t link = link_of(p, i);
        int behind = fabric_switch_behind(fabric, link);
        p->ports[i].place = behind >= 0 ? (uint32_t)behind : p->n_places;
        if (behind < 0)
            p->places[p->n_places++].buffer = (int64_t)p->with.nic_buffer;
        if (is_end(fabric, link))
            continue;
        place_behind(p, i)->n_ports++;
        place_behind(p, i)->pool -= headroom(p, fabric, link);
    }
    for (uint32_t i = 0, first = 0; i < p->n_places; i++) {
        struct place_of_packets *place = &p->places[i];
        place->pool += place->buffer;
        place->first_port = first;
        first += place->n_ports;
        place->n_ports = 0;
    }
    for (uint32_t i = 0; i < p->n_ports; i++) {
        struct place_of_packets *place = place_behind(p, i);
        if (!is_end(fabric, link_of(p, i)))
            p->place_ports[place->first_port + place->n_ports++] = i;
    }
}

/* Room for headroom, and for what the thresholds allow. */
static bool places_check(const struct packets *p, struct diags *diags)
{
    for (uint32_t i = 0; i < p->n_places; i++) {
        const struct place_of_packets *place = &p->places[i];
        double needed = p->with.xoff * place->n_ports;
        if (place->n_ports == 0 || (place->pool > 0 && (double)place->pool >= needed))
            continue;
        double total = (double)(place->buffer - place->pool) + needed;
        char remedy[96];
        snprintf(remedy, sizeof remedy, "it needs more than %.0f B (%s)", total,
                 i < p->n_switches ? "--switch-buffer" : "--nic-buffer");
        if (total >= PACKETS_BUFFER_MAX)
            snprintf(remedy, sizeof remedy, "no buffer up to %.0f B has; use a lower XOFF, delay or packet size",
                     PACKETS_BUFFER_MAX);
        diag_error(diags, PLACE_NONE, "a buffer of %.0f B behind %u link%s, of which %.0f B are headroom, has no room%s; %s",
                   (double)place->buffer, place->n_ports, place->n_ports == 1 ? "" : "s", (double)(place->buffer - place->pool),
                   p->with.xoff > 0 ? " for XOFF of each" : "", remedy);
        return false;
    }
    return true;
}

enum status packets_create(const struct fabric *fabric, const struct packets_parameters *with, struct packets **out,
                           struct diags *diags)
{
    if (!parameters_check(with, diags) || !links_check(fabric, with, diags) || !hosts_check(fabric, with, diags))
        return STATUS_BAD_INPUT;
    struct packets *p = memory_new(1, sizeof *p);

    p->with = *with;
    p->with.packet_bytes = floor(with->packet_bytes);
    p->n_links = fabric_links(fabric);
    p->first_shared = fabric->first[LAYER_ROOT_OUT];
    p->n_shared = fabric->first[LAYER_PCIE_OUT] - p->first_shared;
    p->first_network = fabric->first[LAYER_NIC_UP];
    p->first_cable = fabric->first[LAYER_LOCAL_OUT];
    p->first_global = fabric->first[LAYER_GLOBAL_OUT];
    p->n_channels = fabric->n_down > 0 ? DRAGONFLY_LONGEST : CHANNELS;
    p->n_ports = p->n_links + p->n_shared + (p->n_links - p->first_cable) * (p->n_channels - 1);
    p->ports = memory_new(p->n_ports, sizeof *p->ports);
    p->seen = memory_new(p->n_links, sizeof *p->seen);
    p->free = p->ended = NONE;
    p->engine = engine_create(1024);
    for (uint32_t l = 0; l < p->n_links; l++)
        link_create(p, fabric, l);
    places_create(p, fabric);
    if (!places_check(p, diags)) {
        packets_destroy(p);
        return STATUS_BAD_INPUT;
    }
    *out = p;
    return STATUS_OK;
}

void packets_destroy(struct packets *p)
{
    if (p == NULL)
        return;
    engine_destroy(p->engine);
    free(p->ports);
    free(p->seen);
    free(p->places);
    free(p->place_ports);
    free(p->pool);
    free(p->connections);
    free(p->hops);
    free(p);
}

/* ---- connections */

static double port_rate(const struct port *port)
{
    return (double)(1 << TICK_BITS) * 1e9 / port->ticks_per_byte;
}

/* The slowest link up to the first that leads to a switch. */
static double line_rate(const struct packets *p, const uint32_t *links, size_t n)
{
    double line = INFINITY;

    for (size_t i = 0; i < n; i++) {
        line = fmin(line, port_rate(&p->ports[links[i]]));
        if (p->ports[links[i]].place < p->n_switches)
            break;
    }
    return line;
}

/* The ports of a path. A cable of a dragonfly stays in the channel of the one before where that is local and it is global, and
 * goes to the next otherwise. */
static void ports_take(const struct packets *p, const uint32_t *links, size_t n, uint32_t *ports)
{
    uint32_t channel = 0;
    bool came = false; /* from a NIC */

    for (size_t i = 0; i < n; i++) {
        bool cable = links[i] >= p->first_cable, after = i > 0 && links[i - 1] >= p->first_cable;
        if (cable && after && !(links[i - 1] < p->first_global && links[i] >= p->first_global))
            channel++;
        uint32_t second = came && link_ports(p, links[i]) > 1;
        ports[i] = port_of(p, links[i], cable ? channel : second);
        came |= links[i] >= p->first_network;
    }
}

uint32_t packets_open(struct packets *p, const uint32_t *links, size_t n, uint64_t payload)
{
    p->connections = memory_grow(p->connections, &p->connection_capacity, p->n_connections + 1, sizeof *p->connections);
    p->hops = memory_grow(p->hops, &p->hop_capacity, p->n_hops + n, sizeof *p->hops);
    struct connection *c = &p->connections[p->n_connections];
    nanos back = 0;

    ports_take(p, links, n, p->hops + p->n_hops);
    for (size_t i = 0; i < n; i++)
        back += p->ports[links[i]].delay;
    *c = (struct connection){.first_hop = (uint32_t)p->n_hops,
                             .next = NONE,
                             .n_hops = (uint8_t)n,
                             .back = back,
                             .at = p->now,
                             .unpaced = n > 0 ? port_rate(&p->ports[links[0]]) * (1 - 1e-9) : 0,
                             .sender = dcqcn_start(line_rate(p, links, n)),
                             .payload = payload};
    p->n_hops += n;
    return (uint32_t)p->n_connections++;
}

void packets_send(struct packets *p, uint32_t id, double bytes)
{
    struct connection *c = &p->connections[id];

    c->missing = c->left = bytes > 1 ? (int64_t)ceil(bytes) : 1;
    if (c->n_hops > 0) {
        port_kick(p, sender_settle(p, id));
        return;
    }
    p->under_way += c->left;
    p->totals.bytes_sent += c->left;
    bytes_arrive(p, id, c->left);
    c->left = 0;
}

void packets_alarm(struct packets *p, nanos time)
{
    packets_schedule(p, time, CLASS_CONTROL, KIND_ALARM, 0);
}

/* ---- time */

static void event_happen(struct packets *p, uint64_t word)
{
    uint32_t whom = (uint32_t)(word >> KIND_BITS);

    switch ((enum kind)(word & ((1 << KIND_BITS) - 1))) {
    case KIND_PAUSE: port_pause(p, whom); break;
    case KIND_RESUME: port_resume(p, whom); break;
    case KIND_CNP: sender_notified(p, whom); break;
    case KIND_ALARM: p->rang = true; break;
    case KIND_FREE: link_free(p, whom); break;
    case KIND_ARRIVE: packet_arrive(p, whom); break;
    case KIND_SEND: port_kick(p, sender_settle(p, whom)); break;
    }
}

enum packets_event packets_next(struct packets *p, uint32_t *connection)
{
    struct event event;

    for (int i = 0; i < BUSY_EVENTS; i++) {
        if (p->ended != NONE) {
            *connection = p->ended;
            p->ended = p->connections[p->ended].next;
            return PACKETS_ENDED;
        }
        if (p->rang) {
            p->rang = false;
            return PACKETS_ALARM;
        }
        if (!engine_next(p->engine, &event))
            return PACKETS_IDLE;
        if (event.time > PACKETS_LONGEST)
            return PACKETS_TOO_LONG;
        p->now = event.time;
        event_happen(p, event.payload);
    }
    return PACKETS_BUSY;
}
