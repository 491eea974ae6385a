/* Fabrics that are narrower above their leaves or pods than below: what exchanges take by the closed form and as fair flows, all
 * groups of a kind at once, and whole steps. NARROW_SHOW in the environment prints each of them. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/order.h"
#include "model/cost/kernel/collective.h"
#include "model/cost/step/closed_form.h"
#include "model/spec/catalog.h"
#include "sim/network/network_flow.h"
#include "sim/step/step.h"
#include "tests/suite.h"

/* Many queue pairs, spread by load: paths are used evenly, and what is left is how much there is to carry. */
enum { NODES = 16, GPUS = 8 * NODES, QUEUE_PAIRS = 16, MOST = 1024 };
static const double BYTES = 4e9;

/* ---- relative errors against flows: of the closed form, and of the same on a fabric that is full */

struct errors {
    int n;
    double charged[MOST], full[MOST];
};

static void errors_add(struct errors *e, double charged, double full, double flow)
{
    ck_assert_int_lt(e->n, MOST);
    e->charged[e->n] = fabs(charged / flow - 1);
    e->full[e->n++] = fabs(full / flow - 1);
    if (getenv("NARROW_SHOW"))
        printf("flows %.6f s, charged %+.1f %%, full %+.1f %%\n", flow, 100 * (charged / flow - 1), 100 * (full / flow - 1));
}

struct bounds {
    double median, p90, worst;
};

static struct bounds quantiles_of(double *errors, int n)
{
    qsort(errors, (size_t)n, sizeof *errors, double_compare);
    return (struct bounds){double_quantile(errors, (size_t)n, 0.5), double_quantile(errors, (size_t)n, 0.9), errors[n - 1]};
}

/* Within the bounds; and the fabric matters: where it is taken for full the 90th percentile is at least `matters`. */
static void errors_expect(struct errors *e, const char *what, double matters, struct bounds most)
{
    struct bounds full = quantiles_of(e->full, e->n), charged = quantiles_of(e->charged, e->n);
    printf("%-28s %4d  full: %5.1f %5.1f %5.1f %%  charged: %5.1f %5.1f %5.1f %%\n", what, e->n, 100 * full.median,
           100 * full.p90, 100 * full.worst, 100 * charged.median, 100 * charged.p90, 100 * charged.worst);
    ck_assert_double_ge(full.p90, matters);
    ck_assert_msg(charged.median <= most.median && charged.p90 <= most.p90 && charged.worst <= most.worst,
                  "%s: median %g, 90th percentile %g, worst %g", what, charged.median, charged.p90, charged.worst);
}

/* ---- what is compared */

struct narrow {
    int leaf_nodes, pod_nodes; /* 0: no pods */
    double leaf, pod;
};

static struct cluster base_cluster(void)
{
    struct cluster c;
    struct diags diags = {0};
    ck_assert_int_eq(catalog_cluster("dgx-h100", &c, &diags), STATUS_OK);
    c.nodes = NODES;
    c.rails = RAILS_NO; /* a ToR has all NICs of its nodes, so that uplinks are whole at any ratio */
    return c;
}

static struct cluster narrow_cluster(const struct narrow *narrow)
{
    struct cluster c = base_cluster();
    c.fabric_layers = narrow->pod_nodes > 0 ? 3 : 2;
    c.leaf_nodes = narrow->leaf_nodes;
    c.pod_nodes = narrow->pod_nodes;
    c.leaf_oversubscription = narrow->leaf;
    c.pod_oversubscription = narrow->pod;
    return c;
}

/* Cables in parts of a NIC's rate. */
static struct cluster dragonfly_cluster(struct dragonfly d)
{
    struct cluster c = base_cluster();
    c.topology = TOPOLOGY_DRAGONFLY;
    c.fabric_layers = c.leaf_nodes = c.pod_nodes = 0;
    c.dragonfly = d;
    c.dragonfly.link_rate *= c.nic_rate;
    return c;
}

static struct cluster full_cluster(const struct cluster *cluster)
{
    struct cluster full = *cluster;
    full.leaf_oversubscription = full.pod_oversubscription = 1;
    full.dragonfly.link_rate = 1e15;
    return full;
}

static const struct layout layouts[] = {
    {.tp = 1, .cp = 1, .pp = 1, .dp = 128, .ep = 1, .zero = 3, .features = FEATURE_BIT(DP_OVERLAP)},
    {.tp = 1, .cp = 1, .pp = 1, .dp = 128, .ep = 1, .zero = 3}, /* one NIC of a node at a time */
    {.tp = 8, .cp = 1, .pp = 1, .dp = 16, .ep = 1, .zero = 1},
    {.tp = 2, .cp = 1, .pp = 2, .dp = 32, .ep = 1, .zero = 1},
    {.tp = 8, .cp = 1, .pp = 4, .dp = 4, .ep = 1},
    {.tp = 8, .cp = 1, .pp = 8, .dp = 2, .ep = 1},
    {.tp = 4, .cp = 1, .pp = 16, .dp = 2, .ep = 1},
    {.tp = 1, .cp = 1, .pp = 1, .dp = 128, .ep = 1, .zero = 3, .shard = 8, .features = FEATURE_BIT(DP_OVERLAP)},
    {.tp = 1, .cp = 1, .pp = 1, .dp = 128, .ep = 1, .zero = 3, .shard = 16, .features = FEATURE_BIT(DP_OVERLAP)},
    {.tp = 1, .cp = 1, .pp = 1, .dp = 128, .ep = 1, .zero = 3, .shard = 32, .features = FEATURE_BIT(DP_OVERLAP)},
    {.tp = 16, .cp = 1, .pp = 1, .dp = 8, .ep = 1},
    {.tp = 32, .cp = 1, .pp = 2, .dp = 2, .ep = 1},
    {.tp = 1, .cp = 16, .pp = 1, .dp = 8, .ep = 1},
    {.tp = 8, .cp = 4, .pp = 1, .dp = 4, .ep = 1},
    {.tp = 4, .cp = 4, .pp = 2, .dp = 4, .ep = 1},
    {.tp = 1, .cp = 1, .pp = 1, .dp = 128, .ep = 8},
    {.tp = 1, .cp = 1, .pp = 1, .dp = 128, .ep = 16},
    {.tp = 2, .cp = 1, .pp = 1, .dp = 64, .ep = 32},
    {.tp = 1, .cp = 1, .pp = 2, .dp = 64, .ep = 64},
};
enum { N_LAYOUTS = sizeof layouts / sizeof layouts[0] };

/* ---- all groups of a kind at once */

/* Nothing but ranks and the groups of one kind. */
static void program_of_groups(const struct layout *layout, enum group_kind kind, struct program *program)
{
    int n = layout_group_size(layout, kind), *members = memory_new((size_t)n, sizeof *members);
    bool *known = memory_new(GPUS, sizeof *known);
    *program = (struct program){.n_ranks = GPUS};
    program->groups = memory_new(GPUS, sizeof *program->groups);
    program->members = memory_new(GPUS, sizeof *program->members);
    for (int r = 0; r < GPUS; r++) {
        if (known[r])
            continue;
        layout_group_members(layout, kind, r, members);
        program->groups[program->n_groups++] =
            (struct rank_group){.kind = kind, .first_member = program->n_members, .n_members = n};
        for (int i = 0; i < n; i++) {
            program->members[program->n_members++] = members[i];
            known[members[i]] = true;
        }
    }
    free(known);
    free(members);
}

struct ends {
    double last, mean; /* seconds */
};

static struct ends run_until_empty(struct network table)
{
    struct ends ends = {0, 0};
    nanos next, latency;
    int n = 0;
    uint64_t word;
    while ((next = table.next(table.state)) != INT64_MAX)
        while (table.take(table.state, next, &word, &latency)) {
            double end = nanos_to_seconds(next + latency);
            ends.last = fmax(ends.last, end);
            ends.mean += end;
            n++;
        }
    ends.mean /= n;
    return ends;
}

/* Collectives of all groups; of GROUP_PP messages of all stages to the next. */
static struct ends flows_at_once(const struct machine *machine, const struct fabric *fabric, enum group_kind kind,
                                 enum collective collective)
{
    struct work_collective exchange = {.collective = collective, .group = kind, .bytes = BYTES};
    struct network_flow_options options = {.fabric = fabric, .routing = ROUTING_ADAPTIVE, .queue_pairs = QUEUE_PAIRS};
    struct program program;
    struct network_flow *flow;
    struct diags diags = {0};
    int stage = GPUS / machine->layout->pp;
    program_of_groups(machine->layout, kind, &program);
    ck_assert_int_eq(network_flow_create(machine, &program, &options, &flow, &diags), STATUS_OK);
    struct network table = network_flow_table(flow);
    for (int g = 0; g < program.n_groups && kind != GROUP_PP; g++)
        table.begin_collective(table.state, 0, &exchange, g, (uint64_t)g);
    for (int r = 0; r + stage < GPUS && kind == GROUP_PP; r++)
        table.begin_message(table.state, 0, r, r + stage, BYTES, (uint64_t)r);
    struct ends ends = run_until_empty(table);
    network_flow_destroy(flow);
    free(program.groups);
    free(program.members);
    return ends;
}

enum family {
    FAMILY_RING,
    FAMILY_ALL_TO_ALL,
    FAMILY_MESSAGE,
    N_FAMILIES
}; /* where trees are asked for they take the rings' place */

static struct machine machine_for(const struct layout *layout, const struct cluster *cluster)
{
    struct machine machine = {.cluster = cluster, .layout = layout, .pace = 1};
    for (int kind = 0; kind < N_GROUP_KINDS; kind++)
        machine.spans[kind] = replica_span(layout, cluster, (enum group_kind)kind);
    return machine;
}

static double exchange_seconds(const struct machine *machine, enum group_kind kind, enum collective collective)
{
    return cost_seconds(kind == GROUP_PP ? p2p_cost(machine, BYTES)
                                         : collective_cost(machine, collective, machine->spans[kind], BYTES));
}

static void layout_compare(const struct cluster *cluster, const struct fabric *fabric, const struct layout *layout,
                           struct errors errors[N_FAMILIES])
{
    static const enum group_kind kinds[] = {GROUP_TP, GROUP_CP, GROUP_DP, GROUP_EXPERT_DP, GROUP_REPLICA, GROUP_EP, GROUP_PP};
    struct cluster full = full_cluster(cluster);
    struct machine machine = machine_for(layout, cluster), wide = machine_for(layout, &full);
    enum collective ring = cluster->collective_algorithm == ALGORITHM_TREE ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_ALL_GATHER;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        enum group_kind kind = kinds[i];
        enum collective collective = kind == GROUP_EP ? COLLECTIVE_ALL_TO_ALL : ring;
        if (machine.spans[kind].domains == 1)
            continue;
        if (getenv("NARROW_SHOW"))
            printf("leaf %d pod %d %.3g:1 %.3g:1 tp %d cp %d pp %d dp %d ep %d shard %d %s: ", cluster_leaf_nodes(cluster),
                   cluster_pod_nodes(cluster), cluster_leaf_oversubscription(cluster), cluster_pod_oversubscription(cluster),
                   layout->tp, layout->cp, layout->pp, layout->dp, layout->ep, layout->shard, group_kind_name(kind));
        struct ends ends = flows_at_once(&machine, fabric, kind, collective);
        errors_add(&errors[kind == GROUP_EP   ? FAMILY_ALL_TO_ALL
                           : kind == GROUP_PP ? FAMILY_MESSAGE
                                              : FAMILY_RING],
                   exchange_seconds(&machine, kind, collective), exchange_seconds(&wide, kind, collective),
                   kind == GROUP_PP ? ends.mean : ends.last);
    }
}

static void cluster_compare(const struct cluster *cluster, struct errors errors[N_FAMILIES])
{
    struct fabric fabric;
    struct diags diags = {0};
    ck_assert_int_eq(fabric_create(cluster, &fabric, &diags), STATUS_OK);
    for (int i = 0; i < N_LAYOUTS; i++) {
        struct layout layout = layouts[i];
        layout.vpp = layout.micro_batch = 1;
        layout.schedule = layout.pp > 1 ? SCHEDULE_1F1B : SCHEDULE_NONE;
        layout_compare(cluster, &fabric, &layout, errors);
    }
    fabric_free(&fabric);
}

/* ---- Clos */

/* Leaves and pods that stages and groups fill: to a ten thousandth, whatever the algorithm. Over three layers paths chosen one by
 * one do not divide quite evenly where there are many (all-to-all: 3 %), or where full links are just full enough (trees over
 * pods: 15 %). */
static const struct narrow even[] = {
    {4, 0, 2, 1}, {4, 0, 4, 1}, {4, 0, 8, 1}, {2, 0, 2, 1}, {2, 0, 4, 1}, {2, 0, 8, 1}, {1, 0, 2, 1}, {1, 0, 4, 1}, {1, 0, 8, 1},
    {8, 0, 4, 1}, {8, 0, 8, 1}, {1, 4, 1, 2}, {1, 4, 1, 4}, {1, 8, 1, 8}, {2, 8, 2, 4}, {2, 8, 1, 4}, {1, 4, 2, 2},
};

START_TEST(even_leaves_and_pods)
{
    static const char *const names[] = {"even, rings", "even, trees", "even, hierarchical"};
    static const enum collective_algorithm algorithms[] = {ALGORITHM_RING, ALGORITHM_TREE, ALGORITHM_HIERARCHICAL};
    struct errors *errors = memory_new(N_FAMILIES, sizeof *errors);
    for (size_t i = 0; i < sizeof even / sizeof even[0]; i++) {
        struct cluster cluster = narrow_cluster(&even[i]);
        cluster.collective_algorithm = algorithms[_i];
        cluster_compare(&cluster, errors);
    }
    errors_expect(&errors[FAMILY_RING], names[_i], 0.5,
                  (struct bounds){1e-4, 1e-4, algorithms[_i] == ALGORITHM_TREE ? 0.15 : 1e-3});
    errors_expect(&errors[FAMILY_ALL_TO_ALL], "  all-to-all", 0.5, (struct bounds){1e-4, 1e-3, 0.03});
    errors_expect(&errors[FAMILY_MESSAGE], "  messages", 0.5, (struct bounds){1e-4, 1e-4, 1e-3});
    free(errors);
}
END_TEST

/* Leaves over whose edges groups and stages lie, some here, some there. Rings and all-to-all end with those in the worst place,
 * which is what is charged. Messages are counted, those that leave and those that stay. */
START_TEST(uneven_leaves)
{
    static const struct narrow odd[] = {{3, 0, 2, 1}, {3, 0, 4, 1}, {6, 0, 4, 1}, {6, 0, 8, 1}, {5, 0, 4, 1}, {5, 0, 8, 1}};
    struct errors *errors = memory_new(N_FAMILIES, sizeof *errors);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct cluster cluster = narrow_cluster(&odd[i]);
        cluster.collective_algorithm = ALGORITHM_RING;
        cluster_compare(&cluster, errors);
    }
    errors_expect(&errors[FAMILY_RING], "uneven, rings", 0.5, (struct bounds){0.02, 0.04, 0.04});
    errors_expect(&errors[FAMILY_ALL_TO_ALL], "  all-to-all", 0.5, (struct bounds){1e-3, 0.01, 0.01});
    errors_expect(&errors[FAMILY_MESSAGE], "  messages", 0.5, (struct bounds){0.02, 0.05, 0.05});
    free(errors);
}
END_TEST

/* Ratios for which there are no ports: what is charged is what the ports that there are make of them, exactly that of the built
 * fabric, and what flows over them take. Between rails all-to-all leaves ToRs within a leaf, too, which is not charged. */
START_TEST(ports_are_whole)
{
    static const struct {
        struct narrow narrow;
        enum rails rails;
        double leaf, pod; /* built */
    } cases[] = {
        {{4, 0, 8, 1}, RAILS_YES, 4, 1},        {{4, 0, 3, 1}, RAILS_YES, 4, 1},       {{8, 0, 3, 1}, RAILS_YES, 8.0 / 3, 1},
        {{4, 0, 3, 1}, RAILS_NO, 32.0 / 11, 1}, {{2, 0, 5, 1}, RAILS_NO, 16.0 / 3, 1}, {{2, 8, 2, 3}, RAILS_NO, 2, 4},
        {{1, 4, 1, 3}, RAILS_NO, 1, 4}, /* four leaves under a pod, of which each aggregation switch has one cable up */
    };
    struct errors *errors = memory_new(N_FAMILIES, sizeof *errors), *rails = memory_new(N_FAMILIES, sizeof *rails);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cluster cluster = narrow_cluster(&cases[i].narrow);
        struct fabric fabric;
        struct diags diags = {0};
        cluster.rails = cases[i].rails;
        cluster.collective_algorithm = ALGORITHM_RING;
        ck_assert_int_eq(fabric_create(&cluster, &fabric, &diags), STATUS_OK);
        struct fabric_counts counts = fabric_counts(&fabric);
        ck_assert_double_eq_tol(counts.tor_oversubscription, cases[i].leaf, 1e-12);
        ck_assert_double_eq_tol(cluster_leaf_oversubscription(&cluster), cases[i].leaf, 1e-12);
        if (cases[i].narrow.pod_nodes > 0)
            ck_assert_double_eq_tol(counts.agg_oversubscription, cases[i].pod, 1e-12);
        ck_assert_double_eq_tol(cluster_pod_oversubscription(&cluster), cases[i].pod, 1e-12);
        fabric_free(&fabric);
        cluster_compare(&cluster, cases[i].rails == RAILS_YES ? rails : errors);
    }
    errors_expect(&errors[FAMILY_RING], "whole ports, rings", 0.5, (struct bounds){1e-3, 0.05, 0.05});
    errors_expect(&errors[FAMILY_ALL_TO_ALL], "  all-to-all", 0.5, (struct bounds){1e-3, 0.05, 0.05});
    errors_expect(&errors[FAMILY_MESSAGE], "  messages", 0.5, (struct bounds){1e-3, 0.05, 0.05});
    errors_expect(&rails[FAMILY_RING], "whole ports of rails, rings", 0.4, (struct bounds){1e-3, 0.05, 0.05});
    errors_expect(&rails[FAMILY_MESSAGE], "  messages", 0.45, (struct bounds){1e-3, 0.05, 0.05});
    free(rails);
    free(errors);
}
END_TEST

/* ---- dragonflies */

/* Ways around, which adaptive routing chooses one by one, do not divide as evenly as the closed form has it. */
START_TEST(tapered_dragonflies)
{
    static const struct dragonfly flies[] = {
        {.groups = 4, .switches_per_group = 4, .endpoints_per_switch = 8, .local_links = 4, .global_links = 12, .link_rate = 1},
        {.groups = 4, .switches_per_group = 4, .endpoints_per_switch = 8, .local_links = 4, .global_links = 4, .link_rate = 1},
        {.groups = 4, .switches_per_group = 4, .endpoints_per_switch = 8, .local_links = 4, .global_links = 4, .link_rate = .25},
        {.groups = 2, .switches_per_group = 4, .endpoints_per_switch = 16, .local_links = 8, .global_links = 8, .link_rate = 1},
        {.groups = 2, .switches_per_group = 4, .endpoints_per_switch = 16, .local_links = 8, .global_links = 16, .link_rate = .5},
    };
    struct errors *errors = memory_new(N_FAMILIES, sizeof *errors);
    for (size_t i = 0; i < sizeof flies / sizeof flies[0]; i++) {
        struct cluster cluster = dragonfly_cluster(flies[i]);
        cluster.dragonfly.global_links_per_switch =
            dragonfly_global_ports(flies[i].switches_per_group, flies[i].global_links, flies[i].groups);
        cluster_compare(&cluster, errors);
    }
    errors_expect(&errors[FAMILY_RING], "dragonflies, rings", 0.5, (struct bounds){0.05, 0.12, 0.12});
    errors_expect(&errors[FAMILY_ALL_TO_ALL], "  all-to-all", 0.5, (struct bounds){0.12, 0.3, 0.3});
    errors_expect(&errors[FAMILY_MESSAGE], "  messages", 0.5, (struct bounds){0.12, 0.15, 0.16});
    free(errors);
}
END_TEST

/* ---- whole steps */

static double step_seconds(const struct layout *layout, const struct setting *setting, const struct network_flow_options *flow)
{
    struct diags diags = {0};
    struct step_options how = {.all_ranks = flow != NULL, .flow = flow};
    struct step_result result;
    ck_assert_int_eq(step_simulate(layout, setting, &how, &result, NULL, NULL, &diags), STATUS_OK);
    return nanos_to_seconds(result.step);
}

static const char *const step_layouts[] = {"tp=1,dp=128,zero=3,mb=1",
                                           "tp=8,dp=16,zero=1,mb=1",
                                           "tp=1,dp=128,zero=3,shard=8,mb=1",
                                           "tp=1,dp=128,zero=3,shard=16,mb=1",
                                           "tp=1,dp=128,zero=3,shard=32,mb=1",
                                           "tp=1,pp=2,dp=64,mb=1",
                                           "tp=8,pp=4,dp=4,mb=1",
                                           "tp=8,pp=8,dp=2,mb=1",
                                           "tp=4,pp=16,dp=2,mb=1",
                                           "tp=8,pp=4,vpp=2,dp=4,mb=1"};

/* Steps against flows, and the search's formula against steps. */
static void steps_compare(const struct setting *setting, struct errors *steps, struct errors *formula)
{
    struct cluster full = full_cluster(setting->cluster);
    struct setting wide = *setting;
    struct fabric fabric;
    struct diags diags = {0};
    struct closed_form *form = closed_form_create(setting);
    ck_assert_int_eq(fabric_create(setting->cluster, &fabric, &diags), STATUS_OK);
    struct network_flow_options flow = {.fabric = &fabric, .routing = ROUTING_ADAPTIVE, .queue_pairs = QUEUE_PAIRS};
    wide.cluster = &full;
    for (size_t i = 0; i < sizeof step_layouts / sizeof step_layouts[0]; i++) {
        struct layout layout = layout_defaults;
        struct step_estimate estimate;
        ck_assert_int_eq(layout_parse(step_layouts[i], &layout, &diags), STATUS_OK);
        layout.features = setting->job->features;
        layout_complete(&layout, setting);
        ck_assert_int_eq(layout_check(&layout, setting, NULL, 0), LAYOUT_LEGAL);
        if (getenv("NARROW_SHOW"))
            printf("leaf %d pod %d %s: ", setting->cluster->leaf_nodes, setting->cluster->pod_nodes, step_layouts[i]);
        double charged = step_seconds(&layout, setting, NULL), uncharged = step_seconds(&layout, &wide, NULL);
        closed_form_estimate(form, &layout, &estimate);
        ck_assert_double_le(closed_form_at_least(form, &layout), estimate.step_s);
        errors_add(steps, charged, uncharged, step_seconds(&layout, setting, &flow));
        errors_add(formula, estimate.step_s, uncharged, charged);
    }
    closed_form_destroy(form);
    fabric_free(&fabric);
}

/* Replicas, shards, stages: what leaves nodes is simulated. Kinds meet in a step, and are charged one by one. The formula charges
 * the same, and is no further from the step than tests/bench has interleaved pipelines on full fabrics: 5.7 % at worst. */
START_TEST(whole_steps)
{
    struct transformer model;
    struct diags diags = {0};
    struct job job = {.global_batch = 128,
                      .seq_len = 4096,
                      .precision = PRECISION_BF16,
                      .gradient_precision = PRECISION_FP32,
                      .optimizer = OPTIMIZER_ADAM,
                      .features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(PP_OVERLAP)};
    struct errors *errors = memory_new(2, sizeof *errors);
    ck_assert_int_eq(catalog_model("llama3-8b", &model, &diags), STATUS_OK);
    for (size_t i = 0; i < sizeof even / sizeof even[0]; i++) {
        struct cluster cluster = narrow_cluster(&even[i]);
        struct setting setting = {.model = &model, .cluster = &cluster, .job = &job, .gpus = GPUS};
        steps_compare(&setting, &errors[0], &errors[1]);
    }
    errors_expect(&errors[0], "steps", 0.15, (struct bounds){1e-3, 0.01, 0.02});
    errors_expect(&errors[1], "formula against steps", 0.15, (struct bounds){2e-3, 0.02, 0.057});
    free(errors);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("narrow_fabric");
    TCase *all = tcase_create("all");
    suite_add_rounds(all, even_leaves_and_pods, 3, 0);
    tcase_add_test(all, uneven_leaves);
    tcase_add_test(all, ports_are_whole);
    tcase_add_test(all, tapered_dragonflies);
    tcase_add_test(all, whole_steps);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
