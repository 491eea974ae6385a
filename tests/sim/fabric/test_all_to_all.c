/* An all-to-all in full and sampled: the same bytes at both ends of everybody; how much later the sample ends on hashed uplinks.
 */
#include <check.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/fabric/flows.h"
#include "sim/fabric/route.h"
#include "sim/network/collective_flows.h"
#include "tests/sim/fabric/fabric_jobs.h"
#include "tests/suite.h"

static int *first_gpus(int n)
{
    int *gpus = memory_new((size_t)n, sizeof *gpus);
    for (int i = 0; i < n; i++)
        gpus[i] = i;
    return gpus;
}

/* Seconds until the last transfer of the plan has ended, each GPU sending 1 GB in all. */
static double exchange(const struct router *router, const struct collective_plan *plan)
{
    const struct fabric *fabric = router->fabric;
    double *rates = memory_new(fabric_links(fabric), sizeof *rates);
    nanos time, last = 0;

    fabric_rates_now(fabric, rates);
    struct flows *flows = flows_create(rates, fabric_links(fabric));
    for (size_t e = 0; e < plan->n_edges; e++) {
        struct path path;
        ck_assert(route_gpus(router, plan->edges[e].from, plan->edges[e].to, 0, &path));
        flows_send(flows, flows_open(flows, path.links, path.n, 1, e), 1e9 * plan->share);
    }
    while ((time = flows_next(flows)) != NEVER_ENDS) {
        flows_advance(flows, time);
        while (flows_take(flows) != NO_FLOW)
            last = time;
    }
    flows_destroy(flows);
    free(rates);
    return (double)last * 1e-9;
}

/* Everybody sends to as many partners of other hosts as he receives from, to nobody twice, and the bytes are all there. */
static void assert_sample(const struct fabric *fabric, const struct collective_plan *plan, int n, int partners)
{
    int *sent = memory_new((size_t)n, sizeof *sent), *received = memory_new((size_t)n, sizeof *received);
    bool *met = memory_new((size_t)n * (size_t)n, sizeof *met);
    int g = fabric->shape.gpus_per_host;

    ck_assert_uint_eq(plan->n_edges, (size_t)n * (size_t)partners);
    ck_assert_double_eq_tol(plan->share * partners, 1, 1e-12);
    for (size_t e = 0; e < plan->n_edges; e++) {
        const struct collective_edge *edge = &plan->edges[e];
        ck_assert_int_ne(edge->from / g, edge->to / g);
        sent[edge->from]++;
        received[edge->to]++;
        met[edge->from * n + edge->to] = true;
    }
    size_t pairs = 0;
    for (int i = 0; i < n * n; i++)
        pairs += met[i];
    ck_assert_uint_eq(pairs, plan->n_edges);
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(sent[i], partners);
        ck_assert_int_eq(received[i], partners);
    }
    free(sent);
    free(received);
    free(met);
}

static const char fabric_text[] = "clos hosts:128 gpus:8 nics:8x200G tors:8 tor:4x200G/4x200G agg:256x200G nvlink:8x245GB/s";

START_TEST(samples_are_balanced)
{
    struct fabric fabric = fabric_parsed(fabric_text);
    int *gpus = first_gpus(1024);
    for (int partners = 1; partners <= 128; partners *= 2) {
        struct collective_plan plan;
        collective_all_to_all_create(&fabric, gpus, 256, partners, &plan);
        assert_sample(&fabric, &plan, 256, partners);
        collective_plan_free(&plan);
    }
    free(gpus);
    fabric_free(&fabric);
}
END_TEST

/* All pairs up to 65,536 of them; then as many partners as that leaves each, 16 at least. */
START_TEST(large_groups_are_sampled)
{
    static const struct {
        int n, partners;
    } groups[] = {{256, 248}, {264, 248}, {512, 128}, {1024, 64}};
    struct fabric fabric = fabric_parsed(fabric_text);
    int *gpus = first_gpus(1024);
    for (int i = 0; i < 4; i++) {
        struct collective_plan plan;
        collective_plan_create(&fabric, SHAPE_ALL_TO_ALL, gpus, groups[i].n, false, &plan);
        assert_sample(&fabric, &plan, groups[i].n, groups[i].partners);
        collective_plan_free(&plan);
    }
    free(gpus);
    fabric_free(&fabric);
}
END_TEST

/* How much later than all pairs a sample of 128 ranks ends, mean over hashes: with half of the partners up to 15 %, with an
 * eighth 25 to 55 %. Where no hash chooses (one uplink of 800 Gbps) it ends with all pairs. */
START_TEST(samples_end_later_where_hashes_collide)
{
    enum { N = 128, SEEDS = 4 };
    static const int partners[] = {120, 60, 15};
    double took[3] = {0};
    struct fabric hashed = fabric_parsed(fabric_text);
    struct fabric wide = fabric_parsed("clos hosts:16 gpus:8 nics:8x200G tors:8 tor:4x200G/1x800G agg:32x800G nvlink:8x245GB/s");
    int *gpus = first_gpus(N);
    for (int p = 0; p < 3; p++) {
        struct collective_plan plan;
        struct router router = {.fabric = &wide};
        collective_all_to_all_create(&hashed, gpus, N, partners[p], &plan);
        ck_assert_double_eq_tol(exchange(&router, &plan), 1e9 / 25e9, 1e-6);
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            router = (struct router){.fabric = &hashed, .seed = seed};
            took[p] += exchange(&router, &plan) / SEEDS;
        }
        collective_plan_free(&plan);
    }
    ck_assert_double_ge(took[1], took[0]);
    ck_assert_double_le(took[1] / took[0], 1.15);
    ck_assert_double_ge(took[2] / took[0], 1.25);
    ck_assert_double_le(took[2] / took[0], 1.55);
    free(gpus);
    fabric_free(&hashed);
    fabric_free(&wide);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("all_to_all");
    TCase *all = tcase_create("all");
    tcase_add_test(all, samples_are_balanced);
    tcase_add_test(all, large_groups_are_sampled);
    tcase_add_test(all, samples_end_later_where_hashes_collide);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
