/* Max-min fair flows: cases solved by hand, brute force on random networks, exact invariants, independence of order, times. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "sim/fabric/flows.h"
#include "tests/suite.h"

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

/* Weights 1 and 3 on one link; and a path that crosses a link twice takes twice its rate there, and counts twice. */
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
    ck_assert_uint_eq(flows_most(flows, 1), 3);
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
    double carried;
    flows_carried(flows, &carried);
    ck_assert_double_eq(carried, 4e9);
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

/* Three transfers at 1 each over a link of 4, which d1 takes the rest of, and each over a link of 2 that it shares with d2: all
 * hold them at 1. When d1 and all d2 end at once every one of these links rises from the same level; the first then holds the
 * three back at 4/3, though none of the others moved it. */
START_TEST(links_of_one_level_rise_together)
{
    const double rates[] = {4e9, 2e9, 2e9, 2e9};
    for (int last = 0; last < 2; last++) {
        struct flows *flows = flows_create(rates, 4);
        uint32_t over[3];
        for (uint32_t l = 1; l < 4; l++)
            over[l - 1] = begin(flows, (uint32_t[]){0, l}, 2, 1, 100e9);
        for (uint32_t l = 0; l < 4; l++)
            begin(flows, (uint32_t[]){last ? 3 - l : l}, 1, 1, 1e9);
        for (int f = 0; f < 3; f++)
            assert_rate(flows, over[f], 1e9);
        flows_advance(flows, flows_next(flows));
        for (int l = 0; l < 4; l++)
            ck_assert_uint_ne(flows_take(flows), NO_FLOW);
        for (int f = 0; f < 3; f++)
            assert_rate(flows, over[f], 4e9 / 3);
        assert_sound(flows);
        flows_destroy(flows);
    }
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

/* ---- progressive filling in whole units, link by link: what the levels are by definition */

static int64_t share_of(const struct case_flow *flow, uint32_t link)
{
    int64_t share = 0;
    for (uint32_t h = 0; h < flow->n; h++)
        share += flow->links[h] == link ? flow->weight : 0;
    return share;
}

static int64_t ceiling_of(const struct random_case *c, const struct case_flow *flow)
{
    int64_t ceiling = INT64_MAX;
    for (uint32_t h = 0; h < flow->n; h++) {
        int64_t alone = (int64_t)(c->rates[flow->links[h]] * FLOW_UNITS) / share_of(flow, flow->links[h]);
        ceiling = alone < ceiling ? alone : ceiling;
    }
    return ceiling;
}

/* Where a link stands once the transfers with a level have it: its level if the others share the rest, INT64_MAX if it is free or
 * the ceilings of all fit. */
static int64_t link_stands(const struct random_case *c, uint32_t link, const int64_t levels[MAX_FLOWS])
{
    int64_t left = (int64_t)(c->rates[link] * FLOW_UNITS), room = left, divisor = 0;
    for (int f = 0; f < MAX_FLOWS; f++) {
        int64_t share = c->flows[f].on ? share_of(&c->flows[f], link) : 0;
        room -= share > 0 ? share * ceiling_of(c, &c->flows[f]) : 0;
        if (levels[f] >= 0)
            left -= share * levels[f];
        else
            divisor += share;
    }
    return room < 0 && divisor > 0 ? left / divisor : INT64_MAX;
}

static void fill_progressively(const struct random_case *c, int64_t levels[MAX_FLOWS])
{
    for (int f = 0; f < MAX_FLOWS; f++)
        levels[f] = -1;
    for (;;) {
        int64_t stands[MAX_LINKS], lowest = INT64_MAX;
        for (uint32_t l = 0; l < c->n_links; l++) {
            stands[l] = link_stands(c, l, levels);
            lowest = stands[l] < lowest ? stands[l] : lowest;
        }
        for (int f = 0; f < MAX_FLOWS; f++)
            if (c->flows[f].on && levels[f] < 0 && ceiling_of(c, &c->flows[f]) < lowest)
                lowest = ceiling_of(c, &c->flows[f]);
        if (lowest == INT64_MAX)
            return;
        for (int f = 0; f < MAX_FLOWS; f++) {
            bool held = c->flows[f].on && levels[f] < 0 && ceiling_of(c, &c->flows[f]) == lowest;
            for (uint32_t h = 0; h < c->flows[f].n; h++)
                held |= c->flows[f].on && levels[f] < 0 && stands[c->flows[f].links[h]] == lowest;
            if (held)
                levels[f] = lowest;
        }
    }
}

static void assert_filled(const struct random_case *c, struct flows *flows, const uint32_t numbers[MAX_FLOWS])
{
    int64_t levels[MAX_FLOWS];
    fill_progressively(c, levels);
    for (int f = 0; f < MAX_FLOWS; f++)
        if (c->flows[f].on)
            ck_assert_int_eq(flows_level(flows, numbers[f]), levels[f]);
}

/* Transfers of few sizes over links of few rates: many end, and some begin, at one instant; levels tie. */
START_TEST(many_changes_at_one_instant)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random_case c = case_draw(seed);
        struct random_stream s = random_stream_named(seed, 4, 0);
        uint32_t numbers[MAX_FLOWS];
        for (uint32_t l = 0; l < c.n_links && seed % 3 > 0; l++)
            c.rates[l] = (double)(seed % 3) * 1e9;
        struct flows *flows = flows_create(c.rates, c.n_links);
        for (int f = 0; f < MAX_FLOWS; f++) {
            numbers[f] = flows_open(flows, c.flows[f].links, c.flows[f].n, c.flows[f].weight, (uint64_t)f);
            if (c.flows[f].on)
                flows_send(flows, numbers[f], 1e6);
        }
        assert_filled(&c, flows, numbers);
        for (int instant = 0; instant < 40 && flows_next(flows) != NEVER_ENDS; instant++) {
            flows_advance(flows, flows_next(flows));
            for (uint32_t flow; (flow = flows_take(flows)) != NO_FLOW;)
                c.flows[flows_payload(flows, flow)].on = false;
            for (int f = 0; f < MAX_FLOWS; f++)
                if (!c.flows[f].on && random_below(&s, 6) == 0) {
                    c.flows[f].on = true;
                    flows_send(flows, numbers[f], 1e6 * (double)(1 + random_below(&s, 2)));
                }
            assert_sound(flows);
            assert_filled(&c, flows, numbers);
        }
        flows_destroy(flows);
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
    tcase_add_test(hand, links_of_one_level_rise_together);
    tcase_add_test(hand, beginning_again_costs_nothing);
    tcase_add_test(hand, nothing_to_carry_ends_at_once);
    suite_add_tcase(suite, hand);
    tcase_add_test(random, rates_equal_brute_force);
    tcase_add_test(random, order_does_not_matter);
    tcase_add_test(random, many_changes_at_one_instant);
    tcase_add_test(random, piece_by_piece_equals_at_once);
    tcase_add_test(random, long_paths_and_many_transfers);
    suite_add_tcase(suite, random);
    return suite_run(suite);
}
