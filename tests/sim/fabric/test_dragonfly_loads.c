/* Loads on dragonflies: all-to-all by hand and by the closed form, adversarial traffic against Kim, Dally, Scott and Abts 2008.
 */
#include <check.h>
#include <stdlib.h>

#include "model/cost/kernel/collective.h"
#include "model/spec/catalog.h"
#include "sim/fabric/dragonfly.h"
#include "sim/fabric/load.h"
#include "tests/sim/fabric/fabric_jobs.h"
#include "tests/suite.h"

static struct load_result load_of(const struct fabric *fabric, enum routing routing, struct load load)
{
    struct router router = {.fabric = fabric, .routing = routing, .seed = load.seed};
    struct load_result result;
    struct diags diags = {0};
    enum status status = load_run(&router, &load, &result, &diags);
    ck_assert_msg(status == STATUS_OK, "%s", diags.n_items ? diags.items[0].text : "");
    return result;
}

/* Everybody to everybody over the largest dragonfly: (a p)^2 transfers over each global link, one way, and p^2 (1 + 2 a h) over
 * each local one: those of its two switches, of the sender's to the h groups at the other, and of those groups to the other's
 * hosts. */
START_TEST(all_to_all_by_hand)
{
    const int p = 2, a = 4, h = 2, n = 72;
    struct fabric fabric = fabric_parsed("dragonfly switch:2x100G");
    struct load_result result =
        load_of(&fabric, ROUTING_ECMP, (struct load){.pattern = LOAD_ALL_TO_ALL, .bytes = (n - 1) * 1e6, .seed = 1});
    for (uint32_t l = fabric.first[LAYER_LOCAL_OUT]; l < fabric_links(&fabric); l++) {
        bool local = fabric_layer_of(&fabric, l) <= LAYER_LOCAL_IN;
        ck_assert_uint_eq(flows_most(result.flows, l), (uint32_t)(local ? p * p * (1 + 2 * a * h) : a * p * a * p));
    }
    /* 71 transfers at a NIC, 68 on a local cable, 64 on a global one: the NICs are the limit */
    ck_assert_double_eq_tol(result.seconds, 71e6 / 12.5e9, 1e-8);
    load_result_free(&result);
    fabric_free(&fabric);
}
END_TEST

/* The same where a pair of groups has a cable of a quarter of that rate: (a p)^2 transfers of 1 MB over it, and that is what the
 * closed form of the taper says of an all-to-all: 64 of the 71 that a rank sends leave its group. */
START_TEST(tapered_all_to_all_is_the_closed_form)
{
    const int n = 72;
    struct fabric fabric = fabric_parsed("dragonfly switch:2x100G global:2x25G");
    struct load_result result =
        load_of(&fabric, ROUTING_ECMP, (struct load){.pattern = LOAD_ALL_TO_ALL, .bytes = (n - 1) * 1e6, .seed = 1});
    double by_hand = 64e6 / (25e9 / 8);
    ck_assert_double_eq_tol(result.seconds, by_hand, 1e-8);
    struct cluster cluster = {.topology = TOPOLOGY_DRAGONFLY,
                              .gpu = {.nccl_rate = 1e15},
                              .nodes = n,
                              .gpus_per_node = 1,
                              .nvlink_domain = 1,
                              .nics_per_node = 1,
                              .nic_rate = 12.5e9,
                              .net_fraction = 1,
                              .dragonfly = {.groups = 9,
                                            .switches_per_group = 4,
                                            .endpoints_per_switch = 2,
                                            .local_links = 1,
                                            .global_links = 1,
                                            .link_rate = 25e9 / 8}};
    struct group_span span = {.ranks = n,
                              .ranks_per_domain = 1,
                              .domains = n,
                              .leaves = 36,
                              .pods = 9,
                              .sharing = 1,
                              .leaf_exits = {.to_all = 70 / 71.0, .units = 36},
                              .pod_exits = {.to_all = 64 / 71.0, .units = 9}};
    ck_assert_double_eq_tol(cluster_pod_oversubscription(&cluster), 1 / fabric_counts(&fabric).taper, 1e-12);
    cluster.dragonfly.local_links = 100; /* local cables are not what is looked at */
    struct cost cost = collective_time(&cluster, COLLECTIVE_ALL_TO_ALL, span, n * 1e6);
    ck_assert_double_eq_tol(cost.bandwidth_s / by_hand, 1, 1e-9);
    load_result_free(&result);
    fabric_free(&fabric);
}
END_TEST

/* All of group i to group i + 1 (Kim et al. 2008, section 4.2: the worst case). Straight ways share the L cables of a pair: each
 * of the a p senders has L / (a p) of a cable, exactly. */
START_TEST(straight_ways_collapse)
{
    static const struct {
        const char *text;
        double rate;
        int senders;
    } cases[] = {{"dragonfly switch:2x100G", 12.5e9 / 8, 8}, {"dragonfly switch:4x100G", 12.5e9 / 32, 32}};
    for (int i = 0; i < 2; i++) {
        struct fabric fabric = fabric_parsed(cases[i].text);
        struct load load = {.pattern = LOAD_SHIFT, .bytes = 1e6, .stride = cases[i].senders, .seed = 1};
        struct load_result result = load_of(&fabric, ROUTING_ECMP, load);
        ck_assert_double_eq_tol(result.rates[0], cases[i].rate, 1);
        ck_assert_double_eq_tol(result.rates[result.n_connections - 1], cases[i].rate, 1);
        load_result_free(&result);
        fabric_free(&fabric);
    }
}
END_TEST

/* By Valiant each crosses two global cables, none of them that of its pair: every other one of a group carries the first half of
 * its own transfers and the second half of others', so a group sends at most (g - 2) / 2 cables' rate, half of its global
 * bandwidth as groups get many. Hashing many queue pairs comes near. */
START_TEST(valiant_has_half_of_the_global_bandwidth)
{
    const int g = 33, senders = 32;
    struct fabric fabric = fabric_parsed("dragonfly switch:4x100G local:8x100G");
    double *carried = memory_new(fabric_links(&fabric), sizeof *carried), sum = 0, mean = 0;
    struct load_result result =
        load_of(&fabric, ROUTING_VALIANT,
                (struct load){.pattern = LOAD_SHIFT, .bytes = 1e6, .stride = senders, .queue_pairs = 64, .seed = 1});
    flows_carried(result.flows, carried);
    for (uint32_t l = fabric.first[LAYER_GLOBAL_OUT]; l < fabric_links(&fabric); l++)
        sum += carried[l];
    ck_assert_double_eq_tol(sum, 2.0 * g * senders * 1e6, 1);
    for (int i = 0; i < g; i++)
        ck_assert_double_eq(carried[dragonfly_global_link(&fabric, i, (i + 1) % g, 0)], 0);
    for (size_t i = 0; i < result.n_connections; i++)
        mean += result.rates[i] / (double)result.n_connections;
    double bound = (g - 2) / 2.0 * 12.5e9 / senders;
    ck_assert_double_lt(mean, bound);
    ck_assert_double_gt(mean, 0.9 * bound);
    ck_assert_double_gt(result.rates[0], 0.75 * bound);
    load_result_free(&result);
    free(carried);
    fabric_free(&fabric);
}
END_TEST

/* Adaptive, on this fabric and with this seed: in adversarial traffic at least what Valiant has, in a permutation at least what
 * straight ways have, for the slowest and on average. */
START_TEST(adaptive_is_the_better_of_both)
{
    struct fabric fabric = fabric_parsed("dragonfly switch:4x100G");
    const struct {
        struct load load;
        enum routing other;
    } cases[] = {{{.pattern = LOAD_SHIFT, .bytes = 1e6, .stride = 32, .seed = 2}, ROUTING_VALIANT},
                 {{.pattern = LOAD_PERMUTATION, .bytes = 1e6, .seed = 2}, ROUTING_ECMP}};
    for (int i = 0; i < 2; i++) {
        struct load_result adaptive = load_of(&fabric, ROUTING_ADAPTIVE, cases[i].load);
        struct load_result other = load_of(&fabric, cases[i].other, cases[i].load);
        double mean = 0, mean_other = 0;
        for (size_t c = 0; c < adaptive.n_connections; c++) {
            mean += adaptive.rates[c];
            mean_other += other.rates[c];
        }
        ck_assert_double_ge(adaptive.rates[0], other.rates[0]);
        ck_assert_double_ge(mean, mean_other);
        ck_assert_double_le(adaptive.seconds, other.seconds);
        load_result_free(&adaptive);
        load_result_free(&other);
    }
    fabric_free(&fabric);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dragonfly_loads");
    TCase *all = tcase_create("all");
    tcase_add_test(all, all_to_all_by_hand);
    tcase_add_test(all, tapered_all_to_all_is_the_closed_form);
    tcase_add_test(all, straight_ways_collapse);
    tcase_add_test(all, valiant_has_half_of_the_global_bandwidth);
    tcase_add_test(all, adaptive_is_the_better_of_both);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
