/* fabric_format.c - write a fabric as the text that fabric_parse reads. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "model/base/units.h"
#include "sim/fabric/fabric.h"

struct writer {
    char *buffer;
    size_t size, used;
};

PRINTF_LIKE(2, 3) static void put(struct writer *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(w->buffer + w->used, w->size - w->used, format, args);
    va_end(args);
    if (n > 0)
        w->used = w->used + (size_t)n < w->size ? w->used + (size_t)n : w->size - 1;
}

/* In a whole number of gigabytes or gigabits per second where that says it exactly. */
static const char *rate_write(double rate, double per_byte, const char *unit, char *buffer, size_t size)
{
    double whole = floor(rate * per_byte / 1e9 + 0.5);

    if (whole * 1e9 / per_byte != rate || whole > 1e6)
        return quantity_write(rate, DIM_RATE, buffer, size);
    snprintf(buffer, size, "%.0f%s", whole, unit);
    return buffer;
}

/* In a host rates are said in bytes, in the network in bits. */
static void put_host_ports(struct writer *w, const char *before, int count, double rate)
{
    char text[48];

    put(w, "%s%dx%s", before, count, rate_write(rate, 1, "GB/s", text, sizeof text));
}

static void put_ports(struct writer *w, const char *before, int count, double rate)
{
    char text[48];

    put(w, "%s%dx%s", before, count, rate_write(rate, 8, "Gbps", text, sizeof text));
}

static void put_host(struct writer *w, const struct fabric_shape *s)
{
    char text[48];

    if (s->nvlink_domain > 1)
        put_host_ports(w, " nvlink:", s->nvlink_domain, s->nvlink_rate);
    if (s->pcie_rate > 0)
        put(w, " pcie:%s", rate_write(s->pcie_rate, 1, "GB/s", text, sizeof text));
    if (s->pcie_switches > 0)
        put_host_ports(w, " pcie_switches:", s->pcie_switches, s->root_rate);
    if (s->sockets > 0)
        put_host_ports(w, " sockets:", s->sockets, s->socket_rate);
    for (int i = 0; i < s->n_affinity; i++)
        put(w, "%s%d", i > 0 ? "," : " affinity:", s->affinity[i]);
}

static void put_clos(struct writer *w, const struct fabric *fabric)
{
    const struct fabric_shape *s = &fabric->shape;

    put(w, " tors:%d planes:%d", s->tors_per_set, s->planes);
    put_ports(w, " tor:", s->tor_down, s->tor_down_rate);
    if (fabric->layers > 1) {
        put_ports(w, "/", s->tor_up, s->tor_up_rate);
        put_ports(w, " agg:", s->agg_down, s->agg_down_rate);
    }
    if (fabric->layers > 2) {
        put_ports(w, "/", s->agg_up, s->agg_up_rate);
        put_ports(w, " core:", s->core_down, s->core_rate);
    }
    if (fabric->layers > 1)
        put(w, " aggs:%d", s->aggs_per_pod);
}

static void put_dragonfly(struct writer *w, const struct fabric_shape *s)
{
    put(w, " rails:%d groups:%d group:%d", s->tors_per_set, s->groups, s->switches_per_group);
    put_ports(w, " switch:", s->tor_down, s->tor_down_rate);
    put_ports(w, " local:", s->local_links, s->local_rate);
    if (s->global_per_switch > 0)
        put_ports(w, " global:", s->global_per_switch, s->global_rate);
    if (s->global_links > 0)
        put(w, " pair:%d", s->global_links);
}

char *fabric_format(const struct fabric *fabric, char *buffer, size_t size)
{
    const struct fabric_shape *s = &fabric->shape;
    struct writer w = {.buffer = buffer, .size = size};
    bool dragonfly = s->topology == TOPOLOGY_DRAGONFLY;
    char one[48], two[48];

    put(&w, "%s hosts:%d gpus:%d", dragonfly ? "dragonfly" : "clos", s->hosts, s->gpus_per_host);
    put_ports(&w, " nics:", s->nics_per_host, s->nic_rate);
    put(&w, " ports:%d", s->ports_per_nic);
    if (dragonfly)
        put_dragonfly(&w, s);
    else
        put_clos(&w, fabric);
    put_host(&w, s);
    put(&w, " latency:%s/%s", quantity_write(s->latency_s, DIM_TIME, one, sizeof one),
        quantity_write(s->hop_latency_s, DIM_TIME, two, sizeof two));
    return buffer;
}
