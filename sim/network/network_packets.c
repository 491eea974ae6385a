#include "sim/network/network_packets.h"

#include <stdlib.h>

#include "model/base/memory.h"

struct carried_flow {
    uint32_t first, n; /* connections of packets; n 0: it is not carried here */
    uint32_t left;     /* that have not ended */
    nanos delay;
};

struct network_packets {
    struct packets *packets;
    const struct network_packets_options *options;
    uint32_t first_carried; /* links of the fabric that are not NVLink begin here */
    uint32_t opened;        /* connections */
    struct carried_flow *flows;
    size_t n_flows, capacity;
    uint32_t *ended; /* flows that wait to be taken, from `taken` on */
    size_t n_ended, taken, ended_capacity;
    nanos alarm; /* the last one set */
    bool too_long;
};

enum status network_packets_create(const struct fabric *fabric, double fraction, const struct network_packets_options *options,
                                   struct network_packets **out, struct diags *diags)
{
    struct fabric slowed = *fabric;
    struct packets *packets;

    slowed.rates = memory_new(fabric_links(fabric), sizeof *slowed.rates);
    for (uint32_t l = 0; l < fabric_links(fabric); l++)
        slowed.rates[l] = fabric->rates[l] * (l >= fabric->first[LAYER_GPU_OUT] ? fraction : 1);
    enum status status = packets_create(&slowed, &options->with, &packets, diags);
    free(slowed.rates);
    if (status != STATUS_OK)
        return status;
    struct network_packets *p = memory_new(1, sizeof *p);
    p->packets = packets;
    p->options = options;
    p->first_carried = fabric->first[LAYER_GPU_OUT];
    *out = p;
    return STATUS_OK;
}

void network_packets_destroy(struct network_packets *p)
{
    if (p == NULL)
        return;
    packets_destroy(p->packets);
    free(p->flows);
    free(p->ended);
    free(p);
}

/* ---- flows */

void network_packets_open(struct network_packets *p, uint32_t flow, const struct path *path)
{
    if (flow >= p->n_flows) {
        p->flows = memory_grow(p->flows, &p->capacity, flow + 1, sizeof *p->flows);
        while (p->n_flows <= flow)
            p->flows[p->n_flows++] = (struct carried_flow){.first = p->opened};
    }
    if (path->n == 0 || path->links[path->n - 1] < p->first_carried)
        return;
    struct carried_flow *f = &p->flows[flow];
    uint32_t connection = packets_open(p->packets, path->links, path->n, flow);
    f->delay = nanos_later(f->delay, packets_delay(p->packets, connection));
    f->n++;
    p->opened++;
}

bool network_packets_carry(const struct network_packets *p, uint32_t flow)
{
    return p->flows[flow].n > 0;
}

bool network_packets_busy(const struct network_packets *p, uint32_t flow)
{
    return p->flows[flow].left > 0;
}

nanos network_packets_delay(const struct network_packets *p, uint32_t flow)
{
    return p->flows[flow].delay;
}

void network_packets_send(struct network_packets *p, uint32_t flow, double bytes)
{
    struct carried_flow *f = &p->flows[flow];

    f->left = f->n;
    for (uint32_t c = f->first; c < f->first + f->n; c++)
        packets_send(p->packets, c, bytes);
}

bool network_packets_ended(const struct network_packets *p)
{
    return p->taken < p->n_ended;
}

uint32_t network_packets_take(struct network_packets *p)
{
    if (p->taken < p->n_ended)
        return p->ended[p->taken++];
    p->taken = p->n_ended = 0;
    return NO_FLOW;
}

/* ---- time */

/* True: the flow has ended. */
static bool connection_ended(struct network_packets *p, uint32_t connection)
{
    uint32_t flow = (uint32_t)packets_payload(p->packets, connection);

    if (--p->flows[flow].left > 0)
        return false;
    p->ended = memory_grow(p->ended, &p->ended_capacity, p->n_ended + 1, sizeof *p->ended);
    p->ended[p->n_ended++] = flow;
    return true;
}

static void tell(const struct network_packets *p)
{
    if (p->options->progress != NULL)
        p->options->progress(p->options->context, (double)packets_bytes_arrived(p->packets), p->options->total);
}

nanos network_packets_advance(struct network_packets *p, nanos until)
{
    uint32_t connection;

    if (network_packets_ended(p))
        return packets_now(p->packets);
    if (until <= packets_now(p->packets))
        return INT64_MAX;
    if (until < INT64_MAX && until != p->alarm) {
        packets_alarm(p->packets, until);
        p->alarm = until;
    }
    for (;;)
        switch (packets_next(p->packets, &connection)) {
        case PACKETS_ENDED:
            if (connection_ended(p, connection))
                return packets_now(p->packets);
            break;
        case PACKETS_ALARM: /* or one of before: what was then under way has ended sooner */
            if (packets_now(p->packets) >= until)
                return INT64_MAX;
            break;
        case PACKETS_BUSY: tell(p); break;
        case PACKETS_IDLE: return INT64_MAX;
        case PACKETS_TOO_LONG: p->too_long = true; return -1;
        }
}

bool network_packets_too_long(const struct network_packets *p)
{
    return p->too_long;
}

const struct packets *network_packets_seen(const struct network_packets *p)
{
    return p->packets;
}
