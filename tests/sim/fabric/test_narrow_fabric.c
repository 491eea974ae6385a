/* Fabrics that are narrower above their leaves or pods: what all groups of a kind that exchange at once take by the closed form,
 * and as flows. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/order.h"
#include "model/cost/collective.h"
#include "model/spec/catalog.h"
#include "sim/network_flow.h"
#include "tests/suite.h"

enum { NODES = 16, GPUS = 8 * NODES, QUEUE_PAIRS = 16, MOST = 4096 };
static const double BYTES = 4e9;

/* What exchanges of one family take: the closed form, with and without what the fabric's narrowness adds, over the flows'. */
struct errors {
    int n;
    double with[MOST], without[MOST];
};

static void errors_add(struct errors *e, double with, double without, double flow)
{
    ck_assert_int_lt(e->n, MOST);
    e->with[e->n] = fabs(with / flow - 1);
    e->without[e->n++] = fabs(without / flow - 1);
}

struct quantiles {
    double median, p90, worst;
};

static struct quantiles quantiles_of(double *errors, int n)
{
    qsort(errors, (size_t)n, sizeof *errors, double_compare);
    return (struct quantiles){double_quantile(errors, (size_t)n, 0.5), double_quantile(errors, (size_t)n, 0.9), errors[n - 1]};
}

/* ---- what is drawn */

struct narrow {
    int leaf_nodes, pod_nodes;
    double leaf, pod;
};

static void cluster_narrow(struct cluster *c, const struct narrow *narrow)
{
    struct diags diags = {0};
    ck_assert_int_eq(catalog_cluster("dgx-h100", c, &diags), STATUS_OK);
    c->nodes = NODES;
    c->rails = RAILS_NO; /* a ToR has all NICs of its nodes, so uplinks are whole at any ratio */
    c->fabric_layers = narrow->pod_nodes > 0 ? 3 : 2;
    c->leaf_nodes = narrow->leaf_nodes;
    c->pod_nodes = narrow->pod_nodes;
    c->leaf_oversubscription = narrow->leaf;
    c->pod_oversubscription = narrow->pod;
}

static const struct layout layouts[] = {
    {.tp = 1, .cp = 1, .pp = 1, .dp = 128, .ep = 1, .zero = 3},
    {.tp = 8, .cp = 1, .pp = 1, .dp = 16, .ep = 1, .zero = 1},
    {.tp = 2, .cp = 1, .pp = 2, .dp = 32, .ep = 1, .zero = 1},
    {.tp = 8, .cp = 1, .pp = 4, .dp = 4, .ep = 1},
    {.tp = 8, .cp = 1, .pp = 8, .dp = 2, .ep = 1},
    {.tp = 4, .cp = 1, .pp = 16, .dp = 2, .ep = 1},
    {.tp = 1, .cp = 1, .pp = 1, .dp = 128, .ep = 1, .zero = 3, .shard = 8},
    {.tp = 1, .cp = 1, .pp = 1, .dp = 128, .ep = 1, .zero = 3, .shard = 16},
    {.tp = 1, .cp = 1, .pp = 1, .dp = 128, .ep = 1, .zero = 3, .shard = 32},
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

/* ---- all at once */

/* Nothing but ranks and the groups of one kind. */
static void program_of_groups(const struct layout *layout, enum group_kind kind, struct program *program)
{
    int n = layout_group_size(layout, kind);
    bool *in = memory_new(GPUS, sizeof *in);
    *program = (struct program){.n_ranks = GPUS};
    program->groups = memory_new(GPUS, sizeof *program->groups);
    program->members = memory_new(GPUS, sizeof *program->members);
    for (int r = 0; r < GPUS; r++) {
        if (in[r])
            continue;
        int *members = memory_new((size_t)n, sizeof *members);
        layout_group_members(layout, kind, r, members);
        program->groups[program->n_groups++] =
            (struct rank_group){.kind = kind, .first_member = program->n_members, .n_members = n};
        for (int i = 0; i < n; i++) {
            program->members[program->n_members++] = members[i];
            in[members[i]] = true;
        }
        free(members);
    }
    free(in);
}

/* Until the last of them has ended, and the mean. */
static double run_until_empty(struct network_flow *flow, double *mean)
{
    struct network table = network_flow_table(flow);
    nanos last = 0, next, latency;
    double sum = 0;
    int n = 0;
    uint64_t word;
    while ((next = table.next(table.state)) != INT64_MAX)
        while (table.take(table.state, next, &word, &latency)) {
            last = next + latency > last ? next + latency : last;
            sum += nanos_to_seconds(next + latency);
            n++;
        }
    *mean = sum / n;
    return nanos_to_seconds(last);
}

static double flows_at_once(const struct machine *machine, const struct fabric *fabric, enum group_kind kind,
                            enum collective collective)
{
    struct program program;
    struct network_flow *flow;
    struct diags diags = {0};
    struct network_flow_options options = {.fabric = fabric, .routing = ROUTING_ADAPTIVE, .queue_pairs = QUEUE_PAIRS};
    double mean;
    program_of_groups(machine->layout, kind, &program);
    ck_assert_int_eq(network_flow_create(machine, &program, &options, &flow, &diags), STATUS_OK);
    struct network table = network_flow_table(flow);
    for (int g = 0; g < program.n_groups; g++)
        table.begin_collective(table.state, 0, &(struct work_collective){.collective = collective, .group = kind, .bytes = BYTES},
                               g, (uint64_t)g);
    double last = run_until_empty(flow, &mean);
    network_flow_destroy(flow);
    free(program.groups);
    free(program.members);
    return last;
}

/* Every stage to the next, on average over the messages. */
static double messages_at_once(const struct machine *machine, const struct fabric *fabric)
{
    struct program program;
    struct network_flow *flow;
    struct diags diags = {0};
    struct network_flow_options options = {.fabric = fabric, .routing = ROUTING_ADAPTIVE, .queue_pairs = QUEUE_PAIRS};
    int stage = GPUS / machine->layout->pp;
    double mean;
    program_of_groups(machine->layout, GROUP_PP, &program);
    ck_assert_int_eq(network_flow_create(machine, &program, &options, &flow, &diags), STATUS_OK);
    struct network table = network_flow_table(flow);
    for (int r = 0; r + stage < GPUS; r++)
        table.begin_message(table.state, 0, r, r + stage, BYTES, (uint64_t)r);
    run_until_empty(flow, &mean);
    network_flow_destroy(flow);
    free(program.groups);
    free(program.members);
    return mean;
}

static struct machine machine_for(const struct layout *layout, const struct cluster *cluster, const struct job *job)
{
    struct machine machine = {.cluster = cluster, .layout = layout, .job = job, .pace = 1};
    for (int kind = 0; kind < N_GROUP_KINDS; kind++)
        machine.spans[kind] = replica_span(layout, cluster, (enum group_kind)kind);
    return machine;
}

/* The same cluster without what makes it narrow. */
static struct cluster full_bisection(const struct cluster *cluster)
{
    struct cluster full = *cluster;
    full.leaf_oversubscription = full.pod_oversubscription = 1;
    full.dragonfly.link_rate = 1e15;
    return full;
}

enum family { FAMILY_RING, FAMILY_TREE, FAMILY_ALL_TO_ALL, FAMILY_MESSAGE, N_FAMILIES };
static const char *const family_names[] = {"ring", "tree", "all-to-all", "message"};

static void compare(const struct cluster *cluster, const struct fabric *fabric, const struct layout *layout,
                    struct errors errors[N_FAMILIES])
{
    static const enum group_kind kinds[] = {GROUP_TP, GROUP_CP, GROUP_DP, GROUP_EXPERT_DP, GROUP_REPLICA, GROUP_EP};
    struct cluster full = full_bisection(cluster);
    struct job job = {0};
    struct machine machine = machine_for(layout, cluster, &job), wide = machine_for(layout, &full, &job);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct group_span span = machine.spans[kinds[i]];
        if (span.domains == 1)
            continue;
        enum collective collective = kinds[i] == GROUP_EP                              ? COLLECTIVE_ALL_TO_ALL
                                     : cluster->collective_algorithm == ALGORITHM_TREE ? COLLECTIVE_ALL_REDUCE
                                                                                       : COLLECTIVE_ALL_GATHER;
        enum family family = kinds[i] == GROUP_EP                              ? FAMILY_ALL_TO_ALL
                             : cluster->collective_algorithm == ALGORITHM_TREE ? FAMILY_TREE
                                                                               : FAMILY_RING;
        double with = cost_seconds(collective_cost(&machine, collective, span, BYTES));
        double without = cost_seconds(collective_cost(&wide, collective, span, BYTES));
        double flow = flows_at_once(&machine, fabric, kinds[i], collective);
        errors_add(&errors[family], with, without, flow);
        if (getenv("SHOW"))
            printf("leaf %d pod %d %g:1 %g:1 tp %d cp %d pp %d dp %d ep %d shard %d %s %s: x%.3f, with %+.1f %%\n",
                   cluster_leaf_nodes(cluster), cluster_pod_nodes(cluster), cluster_leaf_oversubscription(cluster),
                   cluster_pod_oversubscription(cluster), layout->tp, layout->cp, layout->pp, layout->dp, layout->ep,
                   layout->shard, group_kind_name(kinds[i]), family_names[family], flow / without, 100 * (with / flow - 1));
    }
    if (layout->pp == 1)
        return;
    double with = cost_seconds(p2p_cost(&machine, BYTES)), without = cost_seconds(p2p_cost(&wide, BYTES));
    double flow = messages_at_once(&machine, fabric);
    errors_add(&errors[FAMILY_MESSAGE], with, without, flow);
    if (getenv("SHOW"))
        printf("leaf %d pod %d %g:1 %g:1 tp %d cp %d pp %d dp %d ep %d shard %d message: x%.3f, with %+.1f %%\n",
               cluster_leaf_nodes(cluster), cluster_pod_nodes(cluster), cluster_leaf_oversubscription(cluster),
               cluster_pod_oversubscription(cluster), layout->tp, layout->cp, layout->pp, layout->dp, layout->ep, layout->shard,
               flow / without, 100 * (with / flow - 1));
}

static void print(const char *title, struct errors errors[N_FAMILIES])
{
    printf("%s\n", title);
    for (int f = 0; f < N_FAMILIES; f++) {
        if (errors[f].n == 0)
            continue;
        struct quantiles a = quantiles_of(errors[f].without, errors[f].n), b = quantiles_of(errors[f].with, errors[f].n);
        printf("%-12s %4d  without: median %.3f p90 %.3f worst %.3f   with: median %.3f p90 %.3f worst %.3f\n", family_names[f],
               errors[f].n, a.median, a.p90, a.worst, b.median, b.p90, b.worst);
    }
}

static void dragonfly_of(struct cluster *c, struct dragonfly d)
{
    struct diags diags = {0};
    ck_assert_int_eq(catalog_cluster("dgx-h100", c, &diags), STATUS_OK);
    c->nodes = NODES;
    c->topology = TOPOLOGY_DRAGONFLY;
    c->fabric_layers = c->leaf_nodes = c->pod_nodes = 0;
    c->rails = RAILS_NO;
    c->dragonfly = d;
    c->dragonfly.link_rate *= c->nic_rate;
}

static void compare_layouts(struct cluster *cluster, struct errors *errors)
{
    struct fabric fabric;
    struct diags diags = {0};
    ck_assert_int_eq(fabric_create(cluster, &fabric, &diags), STATUS_OK);
    for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++) {
        struct layout layout = layouts[l];
        layout.vpp = layout.micro_batch = 1;
        layout.schedule = layout.pp > 1 ? SCHEDULE_1F1B : SCHEDULE_NONE;
        compare(cluster, &fabric, &layout, errors);
    }
    fabric_free(&fabric);
}

static void compare_all(const char *title, const struct narrow *narrow, int n, enum collective_algorithm algorithm)
{
    struct errors *errors = memory_new(N_FAMILIES, sizeof *errors);
    for (int i = 0; i < n; i++) {
        struct cluster cluster;
        cluster_narrow(&cluster, &narrow[i]);
        cluster.collective_algorithm = algorithm;
        compare_layouts(&cluster, errors);
    }
    print(title, errors);
    free(errors);
}

START_TEST(leaves)
{
    static const struct dragonfly flies[] = {
        {.groups = 4,
         .switches_per_group = 4,
         .endpoints_per_switch = 8,
         .local_links = 4,
         .global_links = 12,
         .global_links_per_switch = 9,
         .link_rate = 1},
        {.groups = 4,
         .switches_per_group = 4,
         .endpoints_per_switch = 8,
         .local_links = 4,
         .global_links = 4,
         .global_links_per_switch = 3,
         .link_rate = 1},
        {.groups = 4,
         .switches_per_group = 4,
         .endpoints_per_switch = 8,
         .local_links = 4,
         .global_links = 4,
         .global_links_per_switch = 3,
         .link_rate = .25},
        {.groups = 2,
         .switches_per_group = 4,
         .endpoints_per_switch = 16,
         .local_links = 8,
         .global_links = 8,
         .global_links_per_switch = 2,
         .link_rate = 1},
        {.groups = 2,
         .switches_per_group = 4,
         .endpoints_per_switch = 16,
         .local_links = 8,
         .global_links = 16,
         .global_links_per_switch = 4,
         .link_rate = .5},
    };
    for (int i = 0; i < 5; i++) {
        struct errors *errors = memory_new(N_FAMILIES, sizeof *errors);
        struct cluster cluster;
        dragonfly_of(&cluster, flies[i]);
        compare_layouts(&cluster, errors);
        print("dragonfly", errors);
        free(errors);
    }

    static const struct narrow even[] = {{4, 0, 2, 1}, {4, 0, 4, 1}, {4, 0, 8, 1}, {2, 0, 2, 1}, {2, 0, 4, 1}, {2, 0, 8, 1},
                                         {1, 0, 2, 1}, {1, 0, 4, 1}, {1, 0, 8, 1}, {8, 0, 4, 1}, {8, 0, 8, 1}};
    static const struct narrow odd[] = {{3, 0, 2, 1}, {3, 0, 4, 1}, {6, 0, 4, 1}, {6, 0, 8, 1}, {5, 0, 4, 1}, {5, 0, 8, 1}};
    static const struct narrow pods[] = {{1, 4, 1, 2}, {1, 4, 1, 4}, {1, 8, 1, 8}, {2, 8, 2, 4}, {2, 8, 1, 4}, {1, 4, 2, 2}};
    compare_all("even", even, 11, ALGORITHM_RING);
    compare_all("odd", odd, 6, ALGORITHM_RING);
    compare_all("pods", pods, 6, ALGORITHM_RING);
    compare_all("trees", even, 11, ALGORITHM_TREE);
    compare_all("hierarchical", even, 11, ALGORITHM_HIERARCHICAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("narrow_fabric");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 300);
    tcase_add_test(all, leaves);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
