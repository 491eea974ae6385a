/*
 * Checkpoints' traffic on a fabric. Each GPU of MegaScale's machines has a NIC of its own and the fabric does not oversubscribe,
 * so without collisions a state reaches its neighbour, or the next replica, in bytes / NIC rate; a NIC at half its speed takes
 * twice as long and everybody waits for it.
 */
#include <check.h>
#include <math.h>

#include "model/cost/memory/footprint.h"
#include "model/spec/catalog.h"
#include "sim/weeks/checkpoint_traffic.h"
#include "tests/suite.h"

struct traffic_case {
    struct transformer model;
    struct cluster cluster;
    struct job job;
    struct setting setting;
    struct layout layout;
    struct fabric fabric;
    struct router router;
    struct checkpoint_cost cost;
    struct diags diags;
};

static void case_create(struct traffic_case *c, enum routing routing)
{
    *c = (struct traffic_case){.job = {.global_batch = 64,
                                       .seq_len = 2048,
                                       .precision = PRECISION_BF16,
                                       .gradient_precision = PRECISION_FP32,
                                       .optimizer = OPTIMIZER_ADAM}};
    ck_assert_int_eq(catalog_model("gpt-22b", &c->model, &c->diags), STATUS_OK);
    ck_assert_int_eq(catalog_cluster("megascale-a100", &c->cluster, &c->diags), STATUS_OK);
    c->cluster.nodes = 128;
    c->setting = (struct setting){.model = &c->model, .cluster = &c->cluster, .job = &c->job, .gpus = 1024};
    ck_assert_int_eq(layout_parse("tp=8,pp=4,dp=32,mb=1", &c->layout, &c->diags), STATUS_OK);
    layout_complete(&c->layout, &c->setting);
    ck_assert_int_eq(fabric_create(&c->cluster, &c->fabric, &c->diags), STATUS_OK);
    c->router = (struct router){.fabric = &c->fabric, .routing = routing};
    checkpoint_cost_of(&c->layout, &c->setting, 0, &c->cost);
}

static void case_free(struct traffic_case *c)
{
    fabric_free(&c->fabric);
    diags_free(&c->diags);
}

static enum status run(struct traffic_case *c)
{
    return checkpoint_cost_on_fabric(&c->layout, &c->setting, &c->router, 1, &c->cost, &c->diags);
}

START_TEST(without_collisions_it_is_bytes_over_rate)
{
    struct traffic_case c;
    case_create(&c, ROUTING_STATIC);
    double alone = c.cost.rank_bytes / c.cluster.nic_rate;
    ck_assert_int_eq(run(&c), STATUS_OK);
    ck_assert_double_eq_tol(c.cost.neighbour_s, alone, 1e-6 * alone);
    ck_assert_double_eq_tol(c.cost.load_memory_s, alone + c.cost.snapshot_s, 1e-6 * alone);
    ck_assert_double_eq_tol(c.cost.load_broadcast_s, c.cost.storage_s + alone + c.cost.snapshot_s, 1e-6 * c.cost.storage_s);
    case_free(&c);
}
END_TEST

/* Two GPUs share a PCIe switch; a coherent link is a GPU's own. */
START_TEST(snapshots_take_the_coherent_link)
{
    struct traffic_case c;
    case_create(&c, ROUTING_STATIC);
    double pcie = c.cost.rank_bytes / (c.cluster.gpu.pcie_rate / 2);
    ck_assert_double_eq_tol(c.cost.snapshot_s, pcie, 1e-9 * pcie);
    c.cluster.gpu.host_rate = 450e9;
    checkpoint_cost_of(&c.layout, &c.setting, 0, &c.cost);
    ck_assert_double_eq_tol(c.cost.snapshot_s, c.cost.rank_bytes / 450e9, 1e-9 * pcie);
    case_free(&c);
}
END_TEST

/* Once in storage; read by every rank, or by one of those that share a state. 14 bytes a parameter of 22 billion. */
START_TEST(storage_is_read_by_all_or_by_one)
{
    struct traffic_case c;
    case_create(&c, ROUTING_STATIC);
    const double rate = 50e9; /* less than the NICs of 128 nodes take */
    checkpoint_cost_of(&c.layout, &c.setting, rate, &c.cost);
    ck_assert_double_eq_tol(c.cost.total_bytes, 22e9 * 14, 0.02 * 22e9 * 14);
    ck_assert_double_eq_tol(c.cost.storage_s, c.cost.total_bytes / rate, 1e-9 * c.cost.storage_s);
    double all = 1024 * c.cost.rank_bytes / rate + c.cost.snapshot_s;
    ck_assert_double_eq_tol(c.cost.load_all_s, all, 1e-9 * all);
    double shared = c.cost.load_broadcast_s - c.cost.neighbour_s - c.cost.snapshot_s;
    ck_assert_double_eq_tol(shared, c.cost.storage_s, 1e-9 * c.cost.storage_s);
    case_free(&c);
}
END_TEST

/* Adapters of rank 16 beside attention, 32 h + 64 h parameters a layer: they are what is saved, and what was frozen is read once,
 * goes through every node's NICs and over PCIe with each restart, on the fabric as without. */
START_TEST(adapters_are_saved_and_the_rest_is_read)
{
    struct traffic_case c;
    case_create(&c, ROUTING_STATIC);
    double whole = c.cost.total_bytes, frozen = whole / (2 + 12);
    struct checkpoint_cost narrow; /* bf16 moments: a weight, a master weight and two moments, 2 + 4 + 2 x 2 bytes */
    c.job.moment_precision = PRECISION_BF16;
    checkpoint_cost_of(&c.layout, &c.setting, 0, &narrow);
    ck_assert_double_eq_tol(narrow.total_bytes, whole * 10 / 14, 1);
    ck_assert_double_lt(narrow.rank_bytes, c.cost.rank_bytes);
    c.job.moment_precision = PRECISION_FP32;
    c.job.adapter = (struct adapter){.rank = 16, .targets = 1 << ADAPT_QKV | 1 << ADAPT_PROJECTION};
    c.layout.features = c.job.features = FEATURE_BIT(FUSED_OPS);
    checkpoint_cost_of(&c.layout, &c.setting, 0, &c.cost);
    double trained = 16.0 * 6 * (double)c.model.hidden * c.model.layers, node = 8 * c.cluster.nic_rate * c.cluster.net_fraction;
    ck_assert_double_eq_tol(c.cost.total_bytes, trained * (2 + 12), 1);
    ck_assert_double_eq_tol(c.cost.base_bytes, frozen * 2, 1e-6 * frozen);
    struct checkpoint_cost with_tables; /* which are saved, and not among what is read apart */
    double tables = (c.model.tied_embeddings ? 1 : 2) * (double)c.model.vocab * (double)c.model.hidden;
    c.job.adapter.whole = 1 << WHOLE_EMBEDDING | 1 << WHOLE_HEAD;
    checkpoint_cost_of(&c.layout, &c.setting, 0, &with_tables);
    ck_assert_double_eq_tol(with_tables.total_bytes - c.cost.total_bytes, tables * (2 + 12), 1);
    ck_assert_double_eq_tol(c.cost.base_bytes - with_tables.base_bytes, tables * 2, 1);
    c.job.adapter.whole = 0;
    struct footprint memory;
    footprint_peak(&c.layout, &c.setting, &memory, NULL);
    ck_assert_double_eq_tol(c.cost.rank_bytes, memory.weights + memory.optimizer - memory.frozen, 1);
    double storage = fmin(c.cluster.storage_rate > 0 ? c.cluster.storage_rate : 10e9, 128 * node);
    double base = c.cost.base_bytes / storage + 8 * memory.frozen / node + memory.frozen / (c.cluster.gpu.pcie_rate / 2);
    ck_assert_double_eq_tol(c.cost.base_s, base, 1e-9 * base);
    double all =
        1024 * (c.cost.rank_bytes + memory.frozen) / storage + c.cost.snapshot_s + memory.frozen / (c.cluster.gpu.pcie_rate / 2);
    ck_assert_double_eq_tol(c.cost.load_all_s, all, 1e-9 * all);
    double before = c.cost.load_memory_s - c.cost.neighbour_s;
    ck_assert_int_eq(run(&c), STATUS_OK);
    ck_assert_double_eq_tol(c.cost.load_memory_s - c.cost.neighbour_s, before, 1e-9 * before);
    case_free(&c);
}
END_TEST

START_TEST(a_slow_nic_is_waited_for)
{
    struct traffic_case c;
    case_create(&c, ROUTING_STATIC);
    double alone = c.cost.rank_bytes / c.cluster.nic_rate;
    fabric_set_speed(&c.fabric, c.fabric.first[LAYER_NIC_UP] + 24, 0.5);
    ck_assert_int_eq(run(&c), STATUS_OK);
    ck_assert_double_eq_tol(c.cost.neighbour_s, 2 * alone, 1e-6 * alone);
    case_free(&c);
}
END_TEST

START_TEST(collisions_take_longer)
{
    struct traffic_case c;
    case_create(&c, ROUTING_ECMP);
    double alone = c.cost.rank_bytes / c.cluster.nic_rate;
    ck_assert_int_eq(run(&c), STATUS_OK);
    ck_assert_double_gt(c.cost.neighbour_s, 1.2 * alone);
    case_free(&c);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    struct traffic_case c;
    case_create(&c, ROUTING_STATIC);
    struct checkpoint_cost before = c.cost;
    for (uint32_t nic = 24; nic < 32; nic++) /* all of a host: with one left, its GPUs use that */
        fabric_set_speed(&c.fabric, c.fabric.first[LAYER_NIC_UP] + nic, 0);
    ck_assert_int_eq(run(&c), STATUS_BAD_INPUT);
    c.setting.gpus = 2048;
    ck_assert_int_eq(run(&c), STATUS_BAD_INPUT);
    ck_assert_int_eq(c.diags.n_errors, 2);
    ck_assert_mem_eq(&c.cost, &before, sizeof before);
    case_free(&c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint traffic");
    TCase *all = tcase_create("checkpoint traffic");
    tcase_add_test(all, without_collisions_it_is_bytes_over_rate);
    tcase_add_test(all, snapshots_take_the_coherent_link);
    tcase_add_test(all, storage_is_read_by_all_or_by_one);
    tcase_add_test(all, adapters_are_saved_and_the_rest_is_read);
    tcase_add_test(all, a_slow_nic_is_waited_for);
    tcase_add_test(all, collisions_take_longer);
    tcase_add_test(all, what_cannot_be_is_refused);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
