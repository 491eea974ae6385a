#include "tests/sim/fabric/dragonfly_ways.h"

#include <check.h>

int assert_way(const struct fabric *f, const struct path *path, int from, int to)
{
    int at = fabric_tor_of_port(f, from), cables = 0;
    ck_assert_uint_eq(path->links[0], f->first[LAYER_NIC_UP] + (uint32_t)from);
    for (int h = 1; h < path->n - 1; h++, cables++) {
        uint32_t link = path->links[h];
        bool out = fabric_layer_of(f, link) % 2 == 0;
        ck_assert_int_eq(out ? fabric_lower_switch(f, link) : fabric_upper_switch(f, link), at);
        ck_assert(fabric_rate(f, link) > 0);
        at = fabric_switch_behind(f, link);
    }
    ck_assert_int_eq(at, fabric_tor_of_port(f, to));
    ck_assert_uint_eq(path->links[path->n - 1], f->first[LAYER_NIC_DOWN] + (uint32_t)to);
    ck_assert_int_eq(path->switches, cables + 1);
    return cables;
}

int globals_of(const struct fabric *f, const struct path *path)
{
    int n = 0;
    for (int i = 0; i < path->n; i++)
        n += fabric_layer_of(f, path->links[i]) >= LAYER_GLOBAL_OUT;
    return n;
}
