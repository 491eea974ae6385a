/* Power and energy at most: by hand, and the published budgets that were computed so. */
#include <math.h>
#include <string.h>

#include "model/cost/step/energy.h"
#include "model/spec/catalog.h"
#include "shapes.h"

static const double GWH = 3.6e12;

static const struct cluster by_hand = {.gpu = {.power_w = 700}, .nodes = 2, .gpus_per_node = 8};

/* 8 nodes of 8 GPUs for 10 hours: 640 GPU-hours. Boards: 64 x 700 W = 44.8 kW, 448 kWh; nodes: 8 x 10.2 kW = 81.6 kW, 816 kWh;
 * at a PUE of 1.25 a quarter more. */
START_TEST(boards_and_nodes_by_hand)
{
    struct cluster c = by_hand;
    struct power_bound bound = power_bound_published(&c, 64);
    ck_assert_int_eq(bound.count, POWER_BOARDS);
    ck_assert(bound.pue_assumed);
    ck_assert_double_eq_tol(bound.gpu_w * 64, 44.8e3, 1e-9);
    ck_assert_double_eq_tol(power_bound_energy(&bound, 640), 448 * 3.6e6, 1);
    c.node_power_w = 10200;
    bound = power_bound_published(&c, 64);
    ck_assert_int_eq(bound.count, POWER_NODES);
    ck_assert_double_eq(bound.each_w, 10200);
    ck_assert_double_eq_tol(power_bound_energy(&bound, 640), 816 * 3.6e6, 1);
    c.pue = 1.25;
    bound = power_bound_published(&c, 64);
    ck_assert(!bound.pue_assumed);
    ck_assert_double_eq_tol(power_bound_energy(&bound, 640), 1020 * 3.6e6, 1);
    bound = power_bound_of(&c, 64, POWER_BOARDS);
    ck_assert_double_eq_tol(power_bound_energy(&bound, 640), 560 * 3.6e6, 1);
}
END_TEST

/* Four GPUs of a node of eight, for 10 hours: the whole node of 10.2 kW, 102 kWh; of boards only the four. */
START_TEST(an_unfilled_node_counts_whole)
{
    struct cluster c = by_hand;
    c.node_power_w = 10200;
    struct power_bound bound = power_bound_published(&c, 4);
    ck_assert_double_eq_tol(bound.gpu_w * 4, 10200, 1e-9);
    ck_assert_double_eq_tol(power_bound_energy(&bound, 40), 102 * 3.6e6, 1);
    bound = power_bound_of(&c, 4, POWER_BOARDS);
    ck_assert_double_eq_tol(bound.gpu_w * 4, 2800, 1e-9);
}
END_TEST

START_TEST(what_nobody_publishes_is_unknown)
{
    struct cluster c = by_hand;
    ck_assert_int_eq(power_bound_of(&c, 64, POWER_NODES).count, POWER_UNKNOWN);
    ck_assert_double_eq(power_bound_of(&c, 64, POWER_NODES).gpu_w, 0);
    c.gpu.power_w = 0;
    ck_assert_int_eq(power_published(&c), POWER_UNKNOWN);
    ck_assert_double_eq(power_bound_published(&c, 64).gpu_w, 0);
    c.node_power_w = 4000; /* of a node it may be known without the boards' */
    ck_assert_int_eq(power_published(&c), POWER_NODES);
    ck_assert_double_eq(power_bound_published(&c, 64).gpu_w, 500);
}
END_TEST

/* GPU-hours and energy that reports give, from memory: Llama 3.1 405B's model card (30.84 M at 700 W); BLOOM, Luccioni et al.
 * 2022 (1,082,990 at 400 W, 433,196 kWh, without the site's PUE). */
START_TEST(published_budgets)
{
    struct diags diags = {0};
    static struct cluster llama, bloom;
    ck_assert_int_eq(catalog_cluster("llama3-h100", &llama, &diags), STATUS_OK);
    ck_assert_int_eq(catalog_cluster("jean-zay-a100", &bloom, &diags), STATUS_OK);
    struct power_bound of_llama = power_bound_of(&llama, 64, POWER_BOARDS), of_bloom = power_bound_of(&bloom, 64, POWER_BOARDS);
    ck_assert_double_eq_tol(power_bound_energy(&of_llama, 30.84e6) / GWH, 21.6, 0.05);
    ck_assert_double_eq_tol(power_bound_energy(&of_bloom, 1082990) / of_bloom.pue / GWH, 0.433196, 1e-6);
    ck_assert_double_eq_tol(of_bloom.pue, 1.2, 1e-12);
}
END_TEST

/* Of these nobody publishes it: chips that only their makers house, and a part of which there is no data sheet. */
static const char *const unpublished[] = {"h20-3e",  "tpu-v4", "tpu-v5e",   "tpu-v5p",
                                          "tpu-v6e", "tpu-v7", "trainium1", "trainium2"};

START_TEST(every_gpu_has_a_power_or_is_known_to_have_none)
{
    struct diags diags = {0};
    char **names;
    size_t n, without = 0;
    ck_assert_int_eq(catalog_names(CATALOG_GPUS, &names, &n, &diags), STATUS_OK);
    for (size_t i = 0; i < n; i++) {
        static struct gpu gpu;
        bool none = false;
        for (size_t k = 0; k < sizeof unpublished / sizeof *unpublished; k++)
            none = none || strcmp(names[i], unpublished[k]) == 0;
        ck_assert_int_eq(catalog_gpu(names[i], &gpu, &diags), STATUS_OK);
        ck_assert_msg(none == (gpu.power_w <= 0), "%s: %g W", names[i], gpu.power_w);
        ck_assert_msg(none || (gpu.power_w >= 70 && gpu.power_w <= 1400), "%s: %g W", names[i], gpu.power_w);
        ck_assert_msg(none || (gpu.source[0] && !strstr(gpu.source, "assumption")), "%s: %s", names[i], gpu.source);
        without += none;
    }
    ck_assert_uint_eq(without, sizeof unpublished / sizeof *unpublished);
    names_free(names);
}
END_TEST

/* A node draws at least what its boards do. */
START_TEST(nodes_hold_their_boards)
{
    struct diags diags = {0};
    char **names;
    size_t n, with = 0;
    ck_assert_int_eq(catalog_names(CATALOG_CLUSTERS, &names, &n, &diags), STATUS_OK);
    for (size_t i = 0; i < n; i++) {
        static struct cluster c;
        ck_assert_int_eq(catalog_cluster(names[i], &c, &diags), STATUS_OK);
        with += c.node_power_w > 0;
        ck_assert_msg(c.node_power_w <= 0 || c.node_power_w > c.gpus_per_node * c.gpu.power_w, "%s", names[i]);
        ck_assert_msg(c.pue <= 0 || (c.pue >= 1 && c.pue < 2), "%s", names[i]);
    }
    ck_assert_uint_eq(with, 3);
    names_free(names);
}
END_TEST

Suite *suite_energy(void)
{
    Suite *suite = suite_create("energy");
    TCase *all = tcase_create("all");
    tcase_add_test(all, boards_and_nodes_by_hand);
    tcase_add_test(all, an_unfilled_node_counts_whole);
    tcase_add_test(all, what_nobody_publishes_is_unknown);
    tcase_add_test(all, published_budgets);
    tcase_add_test(all, every_gpu_has_a_power_or_is_known_to_have_none);
    tcase_add_test(all, nodes_hold_their_boards);
    suite_add_tcase(suite, all);
    return suite;
}
