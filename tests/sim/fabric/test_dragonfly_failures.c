/* Dragonflies whose cables fail: ways around them until nothing is left, and a way wherever there is one. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "sim/fabric/dragonfly.h"
#include "sim/fabric/load.h"
#include "tests/sim/fabric/dragonfly_ways.h"
#include "tests/sim/fabric/fabric_jobs.h"
#include "tests/suite.h"

/* Cable by cable until a pair of groups is joined over third ones only, and a group by nothing. */
START_TEST(ways_around_global_cables)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:6 group:4 switch:2x100G pair:3");
    for (int routing = 0; routing < N_ROUTINGS; routing++) {
        uint32_t *loads = memory_new(fabric_links(&fabric), sizeof *loads);
        struct router router = {.fabric = &fabric, .routing = (enum routing)routing, .load = loads};
        struct path path;
        for (int l = 0; l < 3; l++) {
            ck_assert(route_ports(&router, 0, 8 * 2, 0, &path));
            assert_way(&fabric, &path, 0, 8 * 2);
            ck_assert_int_eq(globals_of(&fabric, &path), routing == ROUTING_VALIANT ? 2 : 1);
            fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 0, 2, l), 0);
        }
        ck_assert(route_ports(&router, 0, 8 * 2, 0, &path));
        assert_way(&fabric, &path, 0, 8 * 2);
        ck_assert_int_eq(globals_of(&fabric, &path), 2);
        ck_assert(route_ports(&router, 8 * 2, 0, 0, &path)); /* the other direction is up */
        for (int g = 1; g < 6; g++)
            for (int l = 0; l < 3; l++)
                fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 0, g, l), 0);
        ck_assert(!route_ports(&router, 0, 8 * 2, 0, &path));
        ck_assert(route_ports(&router, 0, 6, 0, &path));
        for (uint32_t l = 0; l < fabric_links(&fabric); l++)
            fabric_set_speed(&fabric, l, 1);
        free(loads);
    }
    fabric_free(&fabric);
}
END_TEST

/* A third switch where a local cable has failed; nothing where all of a switch's have. */
START_TEST(ways_around_local_cables)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:1 group:5 switch:2x100G local:2x100G");
    struct router router = {.fabric = &fabric};
    struct diags diags = {0};
    struct path path;
    fabric_set_speed(&fabric, dragonfly_local_link(&fabric, 0, 3, 0), 0);
    ck_assert(route_ports(&router, 0, 6, 0, &path));
    ck_assert_int_eq(assert_way(&fabric, &path, 0, 6), 1);
    fabric_set_speed(&fabric, dragonfly_local_link(&fabric, 0, 3, 1), 0);
    ck_assert(route_ports(&router, 0, 6, 0, &path));
    ck_assert_int_eq(assert_way(&fabric, &path, 0, 6), 2);
    ck_assert_int_eq(route_check(&fabric, &diags), STATUS_OK);
    for (int s = 1; s < 5; s++)
        for (int i = 0; i < 2; i++)
            fabric_set_speed(&fabric, dragonfly_local_link(&fabric, 0, s, i), 0);
    ck_assert(!route_ports(&router, 0, 6, 0, &path));
    ck_assert_int_eq(route_check(&fabric, &diags), STATUS_CHECK);
    diags_free(&diags);
    fabric_free(&fabric);
}
END_TEST

/* Out to another group and back where a switch has lost all its local cables. */
START_TEST(ways_out_of_a_group_and_back)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:3 group:4 switch:2x100G pair:4");
    struct diags diags = {0};
    for (int s = 1; s < 4; s++)
        fabric_set_speed(&fabric, dragonfly_local_link(&fabric, 0, s, 0), 0);
    for (int routing = 0; routing < N_ROUTINGS; routing++) {
        uint32_t *loads = memory_new(fabric_links(&fabric), sizeof *loads);
        struct router router = {.fabric = &fabric, .routing = (enum routing)routing, .load = loads, .seed = 7};
        struct path path;
        for (int to = 1; to < 4; to++) {
            ck_assert(route_ports(&router, 0, to * 2, 0, &path));
            ck_assert_int_le(assert_way(&fabric, &path, 0, to * 2), 4); /* at most a local cable there, and one back */
            ck_assert_int_eq(globals_of(&fabric, &path), 2);
            ck_assert(route_ports(&router, to * 2, 0, 0, &path)); /* the other direction is up */
            ck_assert_int_eq(globals_of(&fabric, &path), 0);
        }
        free(loads);
    }
    ck_assert_int_eq(route_check(&fabric, &diags), STATUS_OK);
    fabric_free(&fabric);
}
END_TEST

/* Where nothing shorter is left, over two other groups. Three groups of two switches, a cable each: group 0's switches 0 and 1
 * have cables to groups 1 and 2. Without the local cable switch 0 reaches switch 1 over both; without the one between groups 1
 * and 2, too, nothing does. */
START_TEST(ways_over_two_groups)
{
    for (int routing = 0; routing < N_ROUTINGS; routing++) {
        struct fabric fabric = fabric_parsed("dragonfly switch:1x100G");
        uint32_t *loads = memory_new(fabric_links(&fabric), sizeof *loads);
        struct router router = {.fabric = &fabric, .routing = (enum routing)routing, .load = loads};
        struct diags diags = {0};
        struct path path;
        fabric_set_speed(&fabric, dragonfly_local_link(&fabric, 0, 1, 0), 0);
        ck_assert(route_ports(&router, 0, 1, 0, &path));
        ck_assert_int_eq(globals_of(&fabric, &path), 3);
        ck_assert_int_le(assert_way(&fabric, &path, 0, 1), 5); /* a local cable in each of the other groups */
        ck_assert_int_eq(route_check(&fabric, &diags), STATUS_OK);
        fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 1, 2, 0), 0);
        ck_assert(!route_ports(&router, 0, 1, 0, &path));
        free(loads);
        fabric_free(&fabric);
    }
}
END_TEST

/* Two groups that have lost their cables to each other and to all that the other is joined with: A - C - D - B is left. */
START_TEST(ways_between_groups_over_two_others)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:4 group:4 switch:2x100G pair:1");
    struct router router = {.fabric = &fabric};
    struct path path;
    fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 0, 3, 0), 0);
    ck_assert(route_ports(&router, 0, 8 * 3, 0, &path));
    ck_assert_int_eq(globals_of(&fabric, &path), 2);
    fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 0, 2, 0), 0);
    fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 1, 3, 0), 0);
    ck_assert(route_ports(&router, 0, 8 * 3, 0, &path));
    assert_way(&fabric, &path, 0, 8 * 3);
    ck_assert_int_eq(globals_of(&fabric, &path), 3);
    fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 1, 2, 0), 0);
    ck_assert(!route_ports(&router, 0, 8 * 3, 0, &path));
    fabric_free(&fabric);
}
END_TEST

/* With a third of all cables down a way is found exactly where there is one: what a search over the cables themselves reaches. */
START_TEST(a_way_wherever_there_is_one)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:5 group:3 switch:1x100G pair:1");
    struct random_stream stream = random_stream_named((uint64_t)_i, 0x7761, 0);
    bool joined[15][15] = {{false}};
    for (uint32_t l = fabric.first[LAYER_LOCAL_OUT]; l < fabric_links(&fabric); l++) {
        struct dragonfly_cable cable = dragonfly_cable(&fabric, l);
        enum fabric_layer layer = fabric_layer_of(&fabric, l);
        bool out = layer == LAYER_LOCAL_OUT || layer == LAYER_GLOBAL_OUT, up = random_uniform(&stream) > 0.5;
        fabric_set_speed(&fabric, l, up ? 1 : 0);
        joined[out ? cable.low : cable.high][out ? cable.high : cable.low] = up;
    }
    for (int k = 0; k < 15; k++) /* Warshall */
        for (int i = 0; i < 15; i++)
            for (int j = 0; j < 15; j++)
                joined[i][j] = joined[i][j] || (joined[i][k] && joined[k][j]);
    for (int routing = 0; routing < N_ROUTINGS; routing++) {
        uint32_t *loads = memory_new(fabric_links(&fabric), sizeof *loads);
        struct router router = {.fabric = &fabric, .routing = (enum routing)routing, .load = loads};
        for (int from = 0; from < 15; from++)
            for (int to = 0; to < 15; to++) {
                struct path path;
                bool found = route_ports(&router, from, to, 0, &path);
                ck_assert_msg(found == (from == to || joined[from][to]), "%d to %d", from, to);
                if (found && from != to)
                    assert_way(&fabric, &path, from, to);
            }
        free(loads);
    }
    fabric_free(&fabric);
}
END_TEST

/* A tenth of all cables down, at random: everybody is still reached by every routing, over cables that are up. */
START_TEST(a_tenth_of_the_cables_down)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:8 group:6 switch:2x100G pair:2");
    struct random_stream stream = random_stream_named((uint64_t)_i, 0x6466, 0);
    uint32_t *loads = memory_new(fabric_links(&fabric), sizeof *loads);
    for (uint32_t l = fabric.first[LAYER_LOCAL_OUT]; l < fabric_links(&fabric); l++)
        if (random_uniform(&stream) < 0.1)
            fabric_set_speed(&fabric, l, 0);
    for (int routing = 0; routing < N_ROUTINGS; routing++)
        for (int from = 0; from < fabric.n_ports; from += 2)
            for (int to = 1; to < fabric.n_ports; to += 2) {
                struct router router = {.fabric = &fabric, .routing = (enum routing)routing, .load = loads};
                struct path path;
                ck_assert(route_ports(&router, from, to, 0, &path));
                ck_assert_int_le(path.n, PATH_HOPS);
                assert_way(&fabric, &path, from, to);
                for (int h = 0; h < path.n; h++)
                    loads[path.links[h]]++;
            }
    free(loads);
    fabric_free(&fabric);
}
END_TEST

/* A group of 16 whose local cables have failed but for those from each switch to the next, and no global ones: the 12th switch is
 * reached over 12 cables, the 13th not at all, which messages then say. */
START_TEST(ways_end_after_twelve_cables)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:2 group:16 switch:1x100G pair:1");
    struct router router = {.fabric = &fabric, .routing = ROUTING_STATIC};
    struct load load = {.pattern = LOAD_SHIFT, .stride = 13, .bytes = 1e6};
    struct load_result result;
    struct diags diags = {0};
    struct path path;
    for (int from = 0; from < 16; from++)
        for (int to = 0; to < 16; to++)
            if (abs(from - to) > 1)
                fabric_set_speed(&fabric, dragonfly_local_link(&fabric, from, to, 0), 0);
    for (int way = 0; way < 2; way++)
        fabric_set_speed(&fabric, dragonfly_global_link(&fabric, way, 1 - way, 0), 0);
    ck_assert(route_ports(&router, 0, DRAGONFLY_LONGEST, 0, &path));
    ck_assert_int_eq(assert_way(&fabric, &path, 0, DRAGONFLY_LONGEST), DRAGONFLY_LONGEST);
    ck_assert(!route_ports(&router, 0, DRAGONFLY_LONGEST + 1, 0, &path));
    ck_assert_int_ne(load_run(&router, &load, &result, &diags), STATUS_OK);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "no path of at most 12 cables from GPU 0 to GPU 13"));
    diags_free(&diags);
    fabric_free(&fabric);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dragonfly_failures");
    TCase *all = tcase_create("all");
    tcase_add_test(all, ways_around_global_cables);
    tcase_add_test(all, ways_around_local_cables);
    tcase_add_test(all, ways_out_of_a_group_and_back);
    tcase_add_test(all, ways_over_two_groups);
    tcase_add_test(all, ways_between_groups_over_two_others);
    tcase_add_loop_test(all, a_way_wherever_there_is_one, 0, 20);
    tcase_add_loop_test(all, a_tenth_of_the_cables_down, 0, 5);
    tcase_add_test(all, ways_end_after_twelve_cables);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
