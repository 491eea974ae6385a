/* Max-min fair flows: cases solved by hand, brute force on random networks, exact invariants, independence of order, times. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "sim/fabric/flows.h"

static void assert_sound(struct flows *flows)
{
    const char *wrong = flows_check(flows);
    ck_assert_msg(wrong == NULL, "%s", wrong);
}

static uint32_t begin(struct flows *flows, const uint32_t *links, size_t n, uint32_t weight, double bytes)
{
    uint32_t flow = flows_open(flows, links, n, weight, 0);
    flows_send(flows, flow, bytes);
    return flow;
}

static void assert_rate(struct flows *flows, uint32_t flow, double rate)
{
    ck_assert_double_eq_tol(flows_rate(flows, flow), rate, fmax(rate * 1e-9, 0.01));
}

/* ---- by hand */

/* The classic line: link capacities 1, one transfer over all three, one over each. All share equally: 1/2 each. */
START_TEST(line_shares_equally)
{
    const double rates[] = {1e9, 1e9, 1e9};
    struct flows *flows = flows_create(rates, 3);
    uint32_t all = begin(flows, (uint32_t[]){0, 1, 2}, 3, 1, 1e9);
    for (uint32_t l = 0; l < 3; l++)
        assert_rate(flows, begin(flows, &l, 1, 1, 1e9), 0.5e9);
    assert_rate(flows, all, 0.5e9);
    assert_sound(flows);
    flows_destroy(flows);
}
END_TEST

/* Links of 1, 2 and 3 with the long transfer: it gets 1/2 at the first; the others get what is left, 1.5 and 2.5. */
START_TEST(what_is_left_goes_to_the_others)
{
    const double rates[] = {1e9, 2e9, 3e9};
    struct flows *flows = flows_create(rates, 3);
    uint32_t all = begin(flows, (uint32_t[]){0, 1, 2}, 3, 1, 1e9), one[3];
    for (uint32_t l = 0; l < 3; l++)
        one[l] = begin(flows, &l, 1, 1, 1e9);
    assert_rate(flows, all, 0.5e9);
    assert_rate(flows, one[0], 0.5e9);
    assert_rate(flows, one[1], 1.5e9);
    assert_rate(flows, one[2], 2.5e9);
    assert_sound(flows);
    flows_destroy(flows);
}
END_TEST

/* A chain of bottlenecks (Bertsekas and Gallager, 6.5): levels 1/3, 2/3, then 1 on the link of 3/2 ... worked out: link A (1)
 * carries f1 f2 f3: 1/3 each. Link B (1) carries f3 f4: f4 gets 2/3. Link C (2) carries f4 f5: f5 gets 4/3. */
START_TEST(chain_of_bottlenecks)
{
    const double rates[] = {3e9, 3e9, 6e9};
    struct flows *flows = flows_create(rates, 3);
    uint32_t f1 = begin(flows, (uint32_t[]){0}, 1, 1, 1e9), f2 = begin(flows, (uint32_t[]){0}, 1, 1, 1e9);
    uint32_t f3 = begin(flows, (uint32_t[]){0, 1}, 2, 1, 1e9), f4 = begin(flows, (uint32_t[]){1, 2}, 2, 1, 1e9);
    uint32_t f5 = begin(flows, (uint32_t[]){2}, 1, 1, 1e9);
    assert_rate(flows, f1, 1e9);
    assert_rate(flows, f2, 1e9);
    assert_rate(flows, f3, 1e9);
    assert_rate(flows, f4, 2e9);
    assert_rate(flows, f5, 4e9);
    assert_sound(flows);
    flows_destroy(flows);
}
END_TEST

/* Weights 1 and 3 on one link; and a path that crosses a link twice takes twice its rate there. */
START_TEST(weights_and_crossings)
{
    const double rates[] = {4e9, 9e9};
    struct flows *flows = flows_create(rates, 2);
    uint32_t light = begin(flows, (uint32_t[]){0}, 1, 1, 1e9), heavy = begin(flows, (uint32_t[]){0}, 1, 3, 1e9);
    uint32_t twice = begin(flows, (uint32_t[]){1, 1}, 2, 1, 1e9), once = begin(flows, (uint32_t[]){1}, 1, 1, 1e9);
    assert_rate(flows, light, 1e9);
    assert_rate(flows, heavy, 3e9);
    assert_rate(flows, twice, 3e9);
    assert_rate(flows, once, 3e9);
    ck_assert_double_eq_tol(flows_load(flows, 1), 9e9, 10);
    assert_sound(flows);
    flows_destroy(flows);
}
END_TEST

/* 3 GB and 1 GB at 1/2 GB/s each: the short one ends at 2 s, the long one goes on at 1 GB/s and ends at 4 s. */
START_TEST(times_by_hand)
{
    const double rates[] = {1e9};
    struct flows *flows = flows_create(rates, 1);
    uint32_t link = 0, longer = begin(flows, &link, 1, 1, 3e9), shorter = begin(flows, &link, 1, 1, 1e9);
    ck_assert_int_eq(flows_next(flows), 2 * NANOS_PER_SECOND);
    flows_advance(flows, 2 * NANOS_PER_SECOND);
    ck_assert_uint_eq(flows_take(flows), shorter);
    ck_assert_uint_eq(flows_take(flows), NO_FLOW);
    ck_assert_int_eq(flows_next(flows), 4 * NANOS_PER_SECOND);
    assert_rate(flows, longer, 1e9);
    flows_advance(flows, 4 * NANOS_PER_SECOND);
    ck_assert_uint_eq(flows_take(flows), longer);
    ck_assert_int_eq(flows_next(flows), NEVER_ENDS);
    ck_assert_double_eq(flows_carried(flows, 0), 4e9);
    ck_assert_int_eq(flows_contended(flows, 0), 2 * NANOS_PER_SECOND);
    ck_assert_uint_eq(flows_most(flows, 0), 2);
    flows_destroy(flows);
}
END_TEST

/* A link that goes down stalls its transfers; what had been sent is not sent again when it comes back at half its rate. */
START_TEST(a_link_goes_down_and_comes_back)
{
    const double rates[] = {1e9};
    struct flows *flows = flows_create(rates, 1);
    uint32_t link = 0, flow = begin(flows, &link, 1, 1, 2e9);
    flows_next(flows);
    flows_advance(flows, NANOS_PER_SECOND);
    flows_set_rate(flows, 0, 0);
    ck_assert_int_eq(flows_next(flows), NEVER_ENDS);
    assert_rate(flows, flow, 0);
    flows_advance(flows, 5 * NANOS_PER_SECOND);
    flows_set_rate(flows, 0, 0.5e9);
    ck_assert_int_eq(flows_next(flows), 7 * NANOS_PER_SECOND);
    assert_sound(flows);
    flows_destroy(flows);
}
END_TEST

/* A transfer that begins again when it ends never leaves: its neighbours' rates are not solved again. */
START_TEST(beginning_again_costs_nothing)
{
    const double rates[] = {1e9, 1e9};
    struct flows *flows = flows_create(rates, 2);
    uint32_t again = begin(flows, (uint32_t[]){0, 1}, 2, 1, 1e6);
    begin(flows, (uint32_t[]){1}, 1, 1, 1e12);
    for (int i = 0; i < 10; i++) {
        flows_advance(flows, flows_next(flows));
        ck_assert_uint_eq(flows_take(flows), again);
        flows_send(flows, again, 1e6);
    }
    ck_assert_uint_eq(flows_counts(flows).solves, 1);
    ck_assert_int_eq(flows_now(flows), 20 * 1000000);
    flows_destroy(flows);
}
END_TEST

START_TEST(nothing_to_carry_ends_at_once)
{
    const double rates[] = {1e9};
    struct flows *flows = flows_create(rates, 1);
    uint32_t link = 0, empty = begin(flows, &link, 1, 1, 0), nowhere = begin(flows, NULL, 0, 1, 1e9);
    ck_assert_int_eq(flows_next(flows), 0);
    ck_assert_uint_eq(flows_take(flows), empty);
    ck_assert_uint_eq(flows_take(flows), nowhere);
    ck_assert_int_eq(flows_next(flows), NEVER_ENDS);
    flows_destroy(flows);
}
END_TEST

/* ---- random networks */

enum { MAX_LINKS = 24, MAX_FLOWS = 40, MAX_PATH = 6 };

struct case_flow {
    uint32_t links[MAX_PATH], n, weight;
    bool on;
};
struct random_case {
    double rates[MAX_LINKS];
    uint32_t n_links;
    struct case_flow flows[MAX_FLOWS];
};

static struct random_case case_draw(uint64_t seed)
{
    struct random_stream s = random_stream_named(seed, 1, 0);
    struct random_case c = {.n_links = 2 + (uint32_t)random_below(&s, MAX_LINKS - 2)};
    /* Few distinct capacities, so that levels tie often; some odd ones, so that they round. */
    static const double some[] = {1e9, 2e9, 3e9, 1e9, 12.5e9, 7e8 + 1.0 / 3};
    for (uint32_t l = 0; l < c.n_links; l++)
        c.rates[l] = some[random_below(&s, 6)];
    for (int f = 0; f < MAX_FLOWS; f++) {
        struct case_flow *flow = &c.flows[f];
        flow->n = 1 + (uint32_t)random_below(&s, MAX_PATH);
        flow->weight = random_below(&s, 3) ? 1 : 1 + (uint32_t)random_below(&s, 5);
        for (uint32_t h = 0; h < flow->n; h++)
            flow->links[h] = (uint32_t)random_below(&s, c.n_links);
        flow->on = random_below(&s, 2);
    }
    return c;
}

/* Progressive filling in real numbers: raise all levels together, freeze those on the link that fills first, go on. */
static void brute_force(const struct random_case *c, double levels[MAX_FLOWS])
{
    bool frozen[MAX_FLOWS];
    for (int f = 0; f < MAX_FLOWS; f++) {
        frozen[f] = !c->flows[f].on;
        levels[f] = 0;
    }
    for (;;) {
        double best = INFINITY;
        uint32_t at = MAX_LINKS;
        for (uint32_t l = 0; l < c->n_links; l++) {
            double left = c->rates[l], divisor = 0;
            for (int f = 0; f < MAX_FLOWS; f++)
                for (uint32_t h = 0; c->flows[f].on && h < c->flows[f].n; h++) {
                    if (c->flows[f].links[h] != l)
                        continue;
                    if (frozen[f])
                        left -= levels[f] * c->flows[f].weight;
                    else
                        divisor += c->flows[f].weight;
                }
            if (divisor > 0 && left / divisor < best) {
                best = left / divisor;
                at = l;
            }
        }
        if (at == MAX_LINKS)
            return;
        for (int f = 0; f < MAX_FLOWS; f++)
            for (uint32_t h = 0; !frozen[f] && h < c->flows[f].n; h++)
                if (c->flows[f].links[h] == at) {
                    frozen[f] = true;
                    levels[f] = best;
                }
    }
}

static struct flows *case_solve(const struct random_case *c, const int *order, uint32_t numbers[MAX_FLOWS])
{
    struct flows *flows = flows_create(c->rates, c->n_links);
    for (int i = 0; i < MAX_FLOWS; i++) {
        const struct case_flow *flow = &c->flows[order[i]];
        if (flow->on)
            numbers[order[i]] = begin(flows, flow->links, flow->n, flow->weight, 1e15);
    }
    return flows;
}

static void order_draw(int order[MAX_FLOWS], uint64_t seed)
{
    struct random_stream s = random_stream_named(seed, 2, 0);
    for (int i = 0; i < MAX_FLOWS; i++)
        order[i] = i;
    for (int i = MAX_FLOWS - 1; i > 0; i--) {
        int j = (int)random_below(&s, (uint64_t)i + 1), keep = order[i];
        order[i] = order[j];
        order[j] = keep;
    }
}

START_TEST(rates_equal_brute_force)
{
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct random_case c = case_draw(seed);
        double levels[MAX_FLOWS];
        int order[MAX_FLOWS];
        uint32_t numbers[MAX_FLOWS];
        order_draw(order, seed);
        brute_force(&c, levels);
        struct flows *flows = case_solve(&c, order, numbers);
        assert_sound(flows);
        for (int f = 0; f < MAX_FLOWS; f++)
            if (c.flows[f].on)
                ck_assert_double_eq_tol(flows_rate(flows, numbers[f]), levels[f] * c.flows[f].weight,
                                        1e-9 * levels[f] * c.flows[f].weight);
        flows_destroy(flows);
    }
}
END_TEST

START_TEST(order_does_not_matter)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct random_case c = case_draw(seed);
        int order[MAX_FLOWS];
        uint32_t numbers[MAX_FLOWS], others[MAX_FLOWS];
        order_draw(order, 2 * seed);
        struct flows *one = case_solve(&c, order, numbers);
        order_draw(order, 2 * seed + 1);
        struct flows *other = case_solve(&c, order, others);
        for (int f = 0; f < MAX_FLOWS; f++)
            if (c.flows[f].on)
                ck_assert_int_eq(flows_level(one, numbers[f]), flows_level(other, others[f]));
        flows_destroy(one);
        flows_destroy(other);
    }
}
END_TEST

/* Transfers come and go, links change; after every step the levels are those of the same transfers solved from nothing. */
START_TEST(piece_by_piece_equals_at_once)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random_case c = case_draw(seed);
        struct random_stream s = random_stream_named(seed, 3, 0);
        uint32_t numbers[MAX_FLOWS], others[MAX_FLOWS];
        int order[MAX_FLOWS];
        order_draw(order, seed);
        struct flows *flows = case_solve(&c, order, numbers);
        for (int step = 0; step < 60; step++) {
            int changes = 1 + (int)random_below(&s, 3);
            for (int i = 0; i < changes; i++) {
                int f = (int)random_below(&s, MAX_FLOWS);
                uint32_t l = (uint32_t)random_below(&s, c.n_links);
                if (random_below(&s, 8) == 0) {
                    c.rates[l] = random_below(&s, 4) ? c.rates[l] * (0.5 + random_uniform(&s)) : 0;
                    flows_set_rate(flows, l, c.rates[l]);
                } else if (c.flows[f].on) {
                    flows_reroute(flows, numbers[f], NULL, 0); /* ends now */
                    flows_next(flows);
                    ck_assert_uint_eq(flows_take(flows), numbers[f]);
                    flows_close(flows, numbers[f]);
                    c.flows[f].on = false;
                } else {
                    numbers[f] = begin(flows, c.flows[f].links, c.flows[f].n, c.flows[f].weight, 1e15);
                    c.flows[f].on = true;
                }
            }
            assert_sound(flows);
            order_draw(order, seed + 1000 * (uint64_t)step);
            struct flows *fresh = case_solve(&c, order, others);
            for (int f = 0; f < MAX_FLOWS; f++)
                if (c.flows[f].on)
                    ck_assert_int_eq(flows_level(flows, numbers[f]), flows_level(fresh, others[f]));
            flows_destroy(fresh);
        }
        flows_destroy(flows);
    }
}
END_TEST

/* Long paths (a ring as one transfer), and many transfers on one link. */
START_TEST(long_paths_and_many_transfers)
{
    enum { LINKS = 1000, FLOWS = 3000 };
    double rates[LINKS];
    uint32_t path[LINKS];
    for (uint32_t l = 0; l < LINKS; l++) {
        rates[l] = 1e9 + l;
        path[l] = l % 400 == 399 ? l - 1 : l; /* two links are crossed twice */
    }
    struct flows *flows = flows_create(rates, LINKS);
    uint32_t ring = begin(flows, path, LINKS, 1, 1e9);
    assert_rate(flows, ring, 0.5e9 + 199);
    for (uint32_t i = 0; i < FLOWS; i++)
        begin(flows, (uint32_t[]){7}, 1, 1, 1e6 * (i + 1));
    assert_rate(flows, ring, (1e9 + 7) / (FLOWS + 1));
    assert_sound(flows);
    int ended = 0;
    while (flows_next(flows) != NEVER_ENDS) {
        flows_advance(flows, flows_next(flows));
        while (flows_take(flows) != NO_FLOW)
            ended++;
    }
    ck_assert_int_eq(ended, FLOWS + 1);
    flows_destroy(flows);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flows");
    TCase *hand = tcase_create("by hand"), *random = tcase_create("random networks");
    tcase_add_test(hand, line_shares_equally);
    tcase_add_test(hand, what_is_left_goes_to_the_others);
    tcase_add_test(hand, chain_of_bottlenecks);
    tcase_add_test(hand, weights_and_crossings);
    tcase_add_test(hand, times_by_hand);
    tcase_add_test(hand, a_link_goes_down_and_comes_back);
    tcase_add_test(hand, beginning_again_costs_nothing);
    tcase_add_test(hand, nothing_to_carry_ends_at_once);
    suite_add_tcase(suite, hand);
    tcase_set_timeout(random, 120);
    tcase_add_test(random, rates_equal_brute_force);
    tcase_add_test(random, order_does_not_matter);
    tcase_add_test(random, piece_by_piece_equals_at_once);
    tcase_add_test(random, long_paths_and_many_transfers);
    suite_add_tcase(suite, random);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
