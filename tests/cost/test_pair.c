/*
 * Pairs of a forward and a backward pass against the formula: T = max(c1 + c2, e1 + e2, c1 + e1, c2 + e2), with what exchange
 * kernels take of the SMs. Passes are made by hand of one kernel and one all-reduce of any size.
 */
#include <math.h>

#include "model/cost/kernel/machine.h"
#include "shapes.h"

struct hand_made {
    struct shape shape;
    struct machine machine;
    struct work_table table;
    int32_t passes[2];
    double compute[2], exchange[2]; /* seconds */
};

/* Kernel bytes and exchange bytes of the two. `host_paced`: the host takes part. */
static void make(struct hand_made *h, const double bytes[2], const double exchanged[2], bool host_paced)
{
    *h = (struct hand_made){0};
    shape_megascale(&h->shape);
    h->machine = machine_of(&h->shape.layout, &h->shape.setting);
    for (int i = 0; i < 2; i++) {
        struct work kernel = {.kind = WORK_MEMORY_BOUND, .class = CLASS_MEMORY_BOUND, .label = "kernel"};
        struct work exchange = {.kind = WORK_COLLECTIVE, .class = CLASS_TP_COMM, .label = "exchange"};
        kernel.memory = (struct work_memory){.bytes = bytes[i], .count = 1};
        exchange.collective = (struct work_collective){COLLECTIVE_ALL_REDUCE, GROUP_TP, exchanged[i], {0}};
        int32_t children[2] = {work_add(&h->table, kernel), work_add(&h->table, exchange)};
        h->compute[i] = cost_seconds(work_cost(&h->machine, &h->table, children[0]));
        h->exchange[i] = exchanged[i] > 0 ? cost_seconds(work_cost(&h->machine, &h->table, children[1])) : 0;
        h->passes[i] = work_add_sequence(&h->table, CLASS_GEMM, "pass", children, exchanged[i] > 0 ? 2 : 1, 1);
        h->table.items[h->passes[i]].sequence.host_paced = host_paced;
        h->table.items[h->passes[i]].sequence.host_forward = i == 0;
    }
}

/* Both sides; their classes must sum to them. */
static double pair_seconds(struct hand_made *h, struct cost_by_class *by)
{
    double seconds = 0;
    *by = (struct cost_by_class){0};
    for (int i = 0; i < 2; i++) {
        int32_t id = work_add_paired(&h->table, h->passes[i], h->passes[i], h->passes[!i]);
        seconds += cost_seconds(work_cost(&h->machine, &h->table, id));
        work_cost_by_class(&h->machine, &h->table, id, by);
    }
    ck_assert_double_eq_tol(cost_by_class_total(by) / seconds, 1, 1e-12);
    return seconds;
}

static double formula(const struct hand_made *h)
{
    double share = 20.0 / h->shape.cluster.gpu.sms;
    double c = h->compute[0] + h->compute[1], e = h->exchange[0] + h->exchange[1];
    double machines = c / (1 - share) <= e ? e : c + share * e;
    return fmax(machines, fmax(h->compute[0] + h->exchange[0], h->compute[1] + h->exchange[1]));
}

START_TEST(the_formula)
{
    static const double cases[][4] = {
        /* kernels' bytes, exchanges' bytes */
        {1e9, 2e9, 1e7, 2e7}, /* hidden */
        {1e7, 2e7, 1e9, 1e9}, /* the network is what is full */
        {1e7, 4e8, 5e8, 1e6}, /* the first pass alone is longer than both compute */
        {4e8, 1e7, 1e6, 5e8}, /* the second */
        {1e8, 2e8, 0, 0},     /* nothing to hide */
        {1e8, 2e8, 1e8, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hand_made h;
        struct cost_by_class by;
        make(&h, cases[i], cases[i] + 2, false);
        double seconds = pair_seconds(&h, &by), computing = h.compute[0] + h.compute[1];
        ck_assert_double_eq_tol(seconds / formula(&h), 1, 1e-12);
        ck_assert_double_eq_tol(by.s[CLASS_MEMORY_BOUND] / computing, 1, 1e-12);
        ck_assert_double_eq_tol(by.s[CLASS_TP_COMM], seconds - computing, 1e-12);
        ck_assert_double_le(seconds, computing + h.exchange[0] + h.exchange[1] + 1e-15);
        work_table_free(&h.table);
    }
}
END_TEST

/* With SMs without number, exchanges that fit under the other pass cost nothing. */
START_TEST(hidden_exchanges_are_free)
{
    struct hand_made h;
    struct cost_by_class by;
    make(&h, (double[]){1e9, 2e9}, (double[]){1e7, 2e7}, false);
    h.shape.cluster.gpu.sms = 2000000000;
    ck_assert_double_eq_tol(pair_seconds(&h, &by) / (h.compute[0] + h.compute[1]), 1, 1e-7);
    ck_assert_double_le(by.s[CLASS_TP_COMM], 1e-7 * h.compute[0]);
    work_table_free(&h.table);
}
END_TEST

/* On one core, which does both, they come one after the other. */
START_TEST(one_core_hides_nothing)
{
    struct hand_made h;
    struct cost_by_class by;
    make(&h, (double[]){1e9, 2e9}, (double[]){1e7, 2e7}, false);
    h.shape.cluster.gpu.sms = 1;
    double hidden = pair_seconds(&h, &by);
    h.shape.cluster.gpu.exchange_share = 1;
    double all = h.compute[0] + h.compute[1] + h.exchange[0] + h.exchange[1];
    ck_assert_double_eq_tol(pair_seconds(&h, &by) / all, 1, 1e-12);
    ck_assert_double_lt(hidden, all);
    work_table_free(&h.table);
}
END_TEST

/* The host enqueues both passes: a third-power mean with the pair's own time; the forward pass is enqueued at half the speed. */
START_TEST(the_host_paces_the_pair)
{
    struct hand_made h;
    struct cost_by_class by;
    make(&h, (double[]){1e7, 1e7}, (double[]){1e5, 1e5}, true);
    double t = formula(&h), host = (2 + 1) * 2 * h.shape.cluster.gpu.host_launch_s; /* two launches each */
    ck_assert_double_gt(host, 0);
    double expected = cbrt(t * t * t + host * host * host);
    ck_assert_double_eq_tol(pair_seconds(&h, &by) / expected, 1, 1e-12);
    ck_assert_double_eq_tol(by.s[CLASS_HOST] / (expected - t), 1, 1e-9);
    work_table_free(&h.table);
}
END_TEST

/* The layers of a paired pass take together what the pass does, and execute its FLOPs once. */
START_TEST(parts_make_up_the_pass)
{
    struct shape s;
    shape_megascale(&s);
    s.layout.features = s.job.features = FEATURE_BIT(CUDA_GRAPHS);
    struct machine machine = machine_of(&s.layout, &s.setting);
    struct work_table table = {0};
    int32_t passes[2], layer[2];
    for (int i = 0; i < 2; i++) {
        enum pass pass = i ? PASS_BACKWARD : PASS_FORWARD;
        passes[i] = work_add_pass(&table, &s.layout, &s.setting, pass, (struct layer_range){0, 4}, false, false);
        layer[i] = work_add_pass(&table, &s.layout, &s.setting, pass, (struct layer_range){0, 1}, false, false);
    }
    for (int i = 0; i < 2; i++) {
        int32_t whole = work_add_paired(&table, passes[i], passes[i], passes[!i]);
        int32_t part = work_add_paired(&table, layer[i], passes[i], passes[!i]);
        double seconds = cost_seconds(work_cost(&machine, &table, whole));
        ck_assert_double_eq_tol(4 * cost_seconds(work_cost(&machine, &table, part)) / seconds, 1, 1e-9);
        ck_assert_double_lt(seconds, cost_seconds(work_cost(&machine, &table, passes[i])));
        ck_assert_double_eq(work_flops(&table, whole), work_flops(&table, passes[i]));
    }
    work_table_free(&table);
}
END_TEST

Suite *suite_pair(void)
{
    Suite *suite = suite_create("pair");
    TCase *all = tcase_create("all");
    tcase_add_test(all, the_formula);
    tcase_add_test(all, hidden_exchanges_are_free);
    tcase_add_test(all, one_core_hides_nothing);
    tcase_add_test(all, the_host_paces_the_pair);
    tcase_add_test(all, parts_make_up_the_pass);
    suite_add_tcase(suite, all);
    return suite;
}
