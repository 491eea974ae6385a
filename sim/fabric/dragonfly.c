#include "sim/fabric/dragonfly.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/order.h"
#include "sim/fabric/fabric_internal.h"

/* ---- the shape */

void dragonfly_ranges_check(const struct fabric_shape *s, const struct complaint *to)
{
    fabric_count_check(to, s->tor_down, 1, "NIC ports of a switch");
    fabric_count_check(to, s->tors_per_set, 1, "switches that a host connects to");
    fabric_count_check(to, s->switches_per_group, 1, "switches of a group");
    fabric_count_check(to, s->groups, 0, "groups");
    fabric_count_check(to, s->local_links, 1, "cables between two switches of a group");
    fabric_count_check(to, s->global_per_switch, 0, "global ports of a switch");
    fabric_count_check(to, s->global_links, 0, "cables between two groups");
    fabric_rate_check(to, s->tor_down_rate, "a switch's NIC ports");
    fabric_rate_check(to, s->local_rate, "local cables");
    fabric_rate_check(to, s->global_rate, "global cables");
}

void dragonfly_shape_check(const struct fabric_shape *s, const struct complaint *to)
{
    fabric_host_ports_check(s, to, "switches", "switch", "NIC");
    if (s->switches_per_group % s->tors_per_set)
        diag_error(to->diags, to->at,
                   "fabric: the %d switches of a group must be a multiple of the %d switches that a host connects to",
                   s->switches_per_group, s->tors_per_set);
}

static int64_t groups_of(const struct fabric_shape *s, int64_t sets)
{
    int64_t needed = int64_divide_up(sets, s->switches_per_group / s->tors_per_set);
    return s->groups > needed ? s->groups : needed;
}

double dragonfly_cables(const struct fabric_shape *s, int64_t sets, double *switches)
{
    double a = s->switches_per_group, g = (double)groups_of(s, sets);
    double pair = fmax(1, s->global_links > 0 || g < 2 ? s->global_links : floor(a * s->global_per_switch / (g - 1)));

    *switches = g * a;
    return g * a * (a - 1) / 2 * s->local_links + g * (g - 1) / 2 * pair;
}

void dragonfly_derive(struct fabric *f)
{
    struct fabric_shape *s = &f->shape;

    s->planes = 1;
    f->layers = 1;
    f->tors_per_pod = s->switches_per_group;
    f->n_pods = (int)groups_of(s, f->n_sets);
    f->n_tors = f->n_pods * s->switches_per_group;
    if (s->groups == 0)
        s->groups = f->n_pods;
    if (s->global_per_switch == 0)
        s->global_per_switch = dragonfly_global_ports(s->switches_per_group, s->global_links, f->n_pods);
    if (s->global_links == 0 && f->n_pods > 1)
        s->global_links = dragonfly_global_links(s->switches_per_group, s->global_per_switch, f->n_pods);
}

void dragonfly_derived_check(const struct fabric *f, const struct complaint *to)
{
    const struct fabric_shape *s = &f->shape;
    int64_t ports = (int64_t)s->switches_per_group * s->global_per_switch, others = f->n_pods - 1;

    fabric_count_check(to, s->global_per_switch, 0, "global ports of a switch");
    fabric_count_check(to, s->global_links, 0, "cables between two groups");
    if (s->groups < f->n_pods)
        diag_error(to->diags, to->at, "fabric: %d hosts need %d groups, but there are %d", s->hosts, f->n_pods, s->groups);
    else if (others > 0 && s->global_links == 0)
        diag_error(to->diags, to->at,
                   "fabric: disconnected: the %lld global ports of a group cannot reach %lld other groups; use more ports per "
                   "switch, or more switches per group",
                   (long long)ports, (long long)others);
    else if (s->global_links * others > ports)
        diag_error(to->diags, to->at, "fabric: %d cables to each of %lld other groups exceed the %lld global ports of a group",
                   s->global_links, (long long)others, (long long)ports);
}

uint32_t dragonfly_local_cables(const struct fabric *f)
{
    uint32_t a = (uint32_t)f->shape.switches_per_group;
    return (uint32_t)f->n_pods * (a * (a - 1) / 2) * (uint32_t)f->shape.local_links;
}

uint32_t dragonfly_global_cables(const struct fabric *f)
{
    uint32_t g = (uint32_t)f->n_pods;
    return g * (g - 1) / 2 * (uint32_t)f->shape.global_links;
}

/* ---- bandwidths */

double dragonfly_taper(const struct fabric *f)
{
    const struct fabric_shape *s = &f->shape;
    double sent = (double)s->switches_per_group * s->tor_down * f->rates[f->first[LAYER_NIC_UP]];

    return (f->n_pods - 1.0) * s->global_links * s->global_rate / sent;
}

/* ---- cables by their numbers */

/* The pair of a number: the largest high with high (high - 1) / 2 <= pair. */
static void pair_of(uint32_t pair, int *low, int *high)
{
    int at = (int)((1 + sqrt(1 + 8 * (double)pair)) / 2);

    while (dragonfly_pair(0, at + 1) <= pair)
        at++;
    while (dragonfly_pair(0, at) > pair)
        at--;
    *high = at;
    *low = (int)(pair - dragonfly_pair(0, at));
}

struct dragonfly_cable dragonfly_cable(const struct fabric *f, uint32_t link)
{
    const struct fabric_shape *s = &f->shape;
    enum fabric_layer layer = fabric_layer_of(f, link);
    uint32_t cable = link - f->first[layer], in_group = dragonfly_local_cables(f) / (uint32_t)f->n_pods;
    int low, high;

    if (layer <= LAYER_LOCAL_IN) {
        int first = (int)(cable / in_group) * s->switches_per_group, i = (int)(cable % in_group) % s->local_links;
        pair_of(cable % in_group / (uint32_t)s->local_links, &low, &high);
        return (struct dragonfly_cable){first + low, first + high, s->tor_down + (high - 1) * s->local_links + i};
    }
    int l = (int)(cable % (uint32_t)s->global_links), local = (s->switches_per_group - 1) * s->local_links;
    pair_of(cable / (uint32_t)s->global_links, &low, &high);
    return (struct dragonfly_cable){dragonfly_gateway(f, low, high, l), dragonfly_gateway(f, high, low, l),
                                    s->tor_down + local + dragonfly_gateway_port(f, low, high, l)};
}

/* ---- does it hold together? */

struct census {
    const struct fabric *f;
    struct diags *diags;
    int *local;  /* [switch][switch of its group] cables */
    int *global; /* [group][group] */
    int *ports;  /* [switch] for other groups */
};

static void cables_count(struct census *census)
{
    const struct fabric *f = census->f;
    int a = f->shape.switches_per_group;

    for (uint32_t l = f->first[LAYER_LOCAL_OUT]; l < f->first[LAYER_LOCAL_IN]; l++) {
        struct dragonfly_cable cable = dragonfly_cable(f, l);
        if (dragonfly_group(f, cable.low) != dragonfly_group(f, cable.high))
            diag_error(census->diags, PLACE_NONE, "fabric: local cable %u leaves its group", l - f->first[LAYER_LOCAL_OUT]);
        census->local[(size_t)cable.low * (size_t)a + (size_t)(cable.high % a)]++;
        census->local[(size_t)cable.high * (size_t)a + (size_t)(cable.low % a)]++;
    }
    for (uint32_t l = f->first[LAYER_GLOBAL_OUT]; l < f->first[LAYER_GLOBAL_IN]; l++) {
        struct dragonfly_cable cable = dragonfly_cable(f, l);
        int from = dragonfly_group(f, cable.low), to = dragonfly_group(f, cable.high);
        census->global[(size_t)from * (size_t)f->n_pods + (size_t)to]++;
        census->global[(size_t)to * (size_t)f->n_pods + (size_t)from]++;
        census->ports[cable.low]++;
        census->ports[cable.high]++;
    }
}

static void cables_compare(const struct census *census)
{
    const struct fabric *f = census->f;
    const struct fabric_shape *s = &f->shape;
    int a = s->switches_per_group, g = f->n_pods;

    for (int from = 0; from < f->n_tors; from++) {
        for (int to = 0; to < a; to++) {
            int cables = census->local[(size_t)from * (size_t)a + (size_t)to], right = from % a == to ? 0 : s->local_links;
            if (cables != right)
                diag_error(census->diags, PLACE_NONE, "fabric: %d cables between switches %d and %d of group %d, instead of %d",
                           cables, from % a, to, from / a, right);
        }
        if (census->ports[from] > s->global_per_switch)
            diag_error(census->diags, PLACE_NONE, "fabric: %d global cables at switch %d, which has %d ports",
                       census->ports[from], from, s->global_per_switch);
    }
    for (int from = 0; from < g; from++)
        for (int to = 0; to < g; to++) {
            int cables = census->global[(size_t)from * (size_t)g + (size_t)to], right = from == to ? 0 : s->global_links;
            if (cables != right)
                diag_error(census->diags, PLACE_NONE, "fabric: %d cables between groups %d and %d, instead of %d", cables, from,
                           to, right);
        }
}

void dragonfly_check(const struct fabric *f, struct diags *diags)
{
    const struct fabric_shape *s = &f->shape;
    size_t switches = (size_t)f->n_tors, groups = (size_t)f->n_pods;

    if (f->n_tors != f->n_pods * s->switches_per_group || f->n_sets * s->tors_per_set > f->n_tors || s->groups != f->n_pods ||
        fabric_layer_links(f, LAYER_LOCAL_OUT) != dragonfly_local_cables(f) ||
        fabric_layer_links(f, LAYER_GLOBAL_OUT) != dragonfly_global_cables(f)) {
        diag_error(diags, PLACE_NONE, "fabric: the numbers of groups, switches and cables do not match its shape");
        return;
    }
    struct census census = {.f = f,
                            .diags = diags,
                            .local = memory_new(switches * (size_t)s->switches_per_group, sizeof *census.local),
                            .global = memory_new(groups * groups, sizeof *census.global),
                            .ports = memory_new(switches, sizeof *census.ports)};
    cables_count(&census);
    cables_compare(&census);
    free(census.local);
    free(census.global);
    free(census.ports);
}
