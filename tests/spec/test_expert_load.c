/*
 * How unevenly a router loads experts: the largest of gamma variables against closed forms, what follows for ranks and capacities
 * against drawing loads, and what must hold of any of it.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include "model/base/memory.h"
#include "model/spec/expert_load.h"
#include "tests/suite.h"

static struct expert_load completed(int experts, int top_k, double busiest, double capacity)
{
    struct expert_load load = {.busiest = busiest, .capacity = capacity};
    expert_load_complete(&load, experts, top_k);
    return load;
}

/* --- the largest of n */

/* Of n exponential variables the largest is 1 + 1/2 + ... + 1/n on average (shape 1). */
START_TEST(the_largest_exponential_is_a_harmonic_number)
{
    double harmonic = 0;
    for (int n = 1; n <= 1000; n++) {
        harmonic += 1.0 / n;
        if (n < 20 || n % 97 == 0)
            ck_assert_double_eq_tol(expert_load_maximum(n, 1), harmonic, 1e-8);
    }
}
END_TEST

/* Of two gamma variables of shape a and mean 1 it is 1 + Gamma(a + 1/2) / (sqrt(pi) Gamma(a + 1)): their difference's mean is
 * twice that. */
START_TEST(the_larger_of_two_is_a_ratio_of_gamma_functions)
{
    static const double shapes[] = {0.01, 0.1, 0.33, 0.5, 2, 2.7, 12, 104, 1e4, 9.9e4, 1.01e5, 1e6, 1e7, 1e12};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double a = shapes[i], exact = 1 + exp(lgamma(a + 0.5) - lgamma(a + 1)) / sqrt(acos(-1));
        ck_assert_double_eq_tol(expert_load_maximum(2, a), exact, 1e-8);
    }
}
END_TEST

/* As the shape grows loads become normal: the largest of 3, 4 and 5 stands 3 / (2 sqrt(pi)), 1.02938 and 1.16296 standard
 * deviations above the mean, of 256 2.82 (Harter 1961). */
START_TEST(many_tokens_make_normal_loads)
{
    static const struct {
        int n;
        double deviations;
    } cases[] = {{3, 0.84628}, {4, 1.02938}, {5, 1.16296}, {100, 2.50759}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_double_eq_tol((expert_load_maximum(cases[i].n, 1e12) - 1) * 1e6, cases[i].deviations, 1e-5);
}
END_TEST

/* --- ranks */

static const struct {
    int experts, top_k;
    double busiest;
} spreads[] = {{8, 2, 1.05},  {8, 2, 1.3}, {8, 2, 2},   {8, 2, 3}, {64, 6, 1.5},
               {128, 8, 1.3}, {256, 8, 2}, {256, 8, 5}, {60, 4, 2}};
enum { N_SPREADS = sizeof spreads / sizeof *spreads };

/* What is given is met at both ends, by the law and to the bit where ranks have an expert each; in between more ranks are never
 * evener, and never more uneven than the share of all tokens. */
START_TEST(one_rank_is_even_and_a_rank_an_expert_is_what_is_given)
{
    int experts = spreads[_i].experts;
    struct expert_load load = completed(experts, spreads[_i].top_k, spreads[_i].busiest, 0);
    ck_assert_double_eq(expert_load_rank(&load, 1), 1);
    ck_assert_double_eq(expert_load_rank(&load, experts), spreads[_i].busiest);
    ck_assert_double_eq(expert_load_largest(&load, 1), spreads[_i].busiest);
    ck_assert_double_eq(expert_load_largest(&load, experts), spreads[_i].busiest);
    ck_assert_double_eq_tol(expert_load_maximum(experts, load.shape), spreads[_i].busiest, 1e-7);
    double before = 1;
    for (int ranks = 2; ranks <= experts; ranks++) {
        if (experts % ranks)
            continue;
        double rank = expert_load_rank(&load, ranks), largest = expert_load_largest(&load, ranks);
        ck_assert_double_gt(rank, before);
        ck_assert_double_le(rank, ranks);
        ck_assert_double_ge(largest, rank);
        ck_assert_double_le(largest, spreads[_i].busiest * (1 + 1e-9));
        before = rank;
    }
}
END_TEST

START_TEST(the_more_uneven_the_busier)
{
    for (int ranks = 2; ranks <= 64; ranks *= 2) {
        double before = 1;
        for (double busiest = 1.001; busiest < 8; busiest *= 1.2) {
            struct expert_load load = completed(64, 8, busiest, 0);
            ck_assert_double_gt(expert_load_rank(&load, ranks), before);
            before = expert_load_rank(&load, ranks);
        }
    }
}
END_TEST

/* Where one expert gets everything (a token has one), so does its rank. */
START_TEST(one_expert_that_gets_everything)
{
    struct expert_load load = completed(64, 1, 64, 0);
    for (int ranks = 1; ranks <= 64; ranks *= 2)
        ck_assert_double_eq_tol(expert_load_rank(&load, ranks), ranks, 0.06 * ranks);
}
END_TEST

/* --- against drawn loads */

enum { DRAWS = 20000 };

/* Mean and its standard error. */
struct mean {
    double sum, squares;
};
static void add(struct mean *m, double x)
{
    m->sum += x;
    m->squares += x * x;
}
static double mean_of(const struct mean *m)
{
    return m->sum / DRAWS;
}
static double error_of(const struct mean *m)
{
    return sqrt(fmax(0, m->squares / DRAWS - mean_of(m) * mean_of(m)) / DRAWS);
}

/* Loads of all experts whose sum is what it is: shares of a Dirichlet distribution. */
static void draw(gsl_rng *rng, double *loads, int experts, double shape)
{
    double sum = 0;
    for (int i = 0; i < experts; i++)
        sum += loads[i] = gsl_ran_gamma(rng, shape, 1);
    for (int i = 0; i < experts; i++)
        loads[i] *= experts / sum;
}

struct busiest {
    double rank, expert;
};
static struct busiest busiest_of(const double *loads, int experts, int ranks, double capacity)
{
    struct busiest best = {0};
    int each = experts / ranks;
    for (int r = 0; r < ranks; r++) {
        double sum = 0, most = 0;
        for (int i = 0; i < each; i++) {
            double x = fmin(loads[r * each + i], capacity);
            sum += x;
            most = fmax(most, x);
        }
        if (sum / each > best.rank)
            best = (struct busiest){sum / each, most};
    }
    return best;
}

/* Of the loads that are drawn, what each number of ranks has of them under a capacity. */
enum { NUMBERS_MAX = 16 };
struct drawn {
    struct mean rank[NUMBERS_MAX], expert[NUMBERS_MAX], dropped, there;
};
/* `most`: what an expert has that gets every token. What the law has beyond it is no copy of any token: it is neither there nor
 * dropped. */
static void drawn_add(struct drawn *d, const struct expert_load *load, const double *loads, int experts, double capacity,
                      double most)
{
    double left = 0, there = 0;
    for (int i = 0; i < experts; i++) {
        left += fmax(0, fmin(loads[i], most) - capacity);
        there += fmin(loads[i], most);
    }
    add(&d->dropped, left / experts);
    add(&d->there, there / experts);
    for (int n = 0; n < load->n; n++) {
        struct busiest b = busiest_of(loads, experts, load->by[n].ranks, capacity);
        add(&d->rank[n], b.rank);
        add(&d->expert[n], b.expert);
    }
}

/* The last one is none. */
static const double capacities[] = {0.9, 1, 1.25, 1.5, 1e9};
enum { N_CAPACITIES = sizeof capacities / sizeof *capacities };

static void draw_all(const struct expert_load *loads_of, const double *caps, int n_caps, int experts, int top_k,
                     struct drawn *drawn)
{
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    double *loads = memory_new((size_t)experts, sizeof *loads);
    ck_assert_int_le(loads_of[0].n, NUMBERS_MAX);
    for (int i = 0; i < DRAWS; i++) {
        draw(rng, loads, experts, loads_of[0].shape);
        for (int k = 0; k < n_caps; k++)
            drawn_add(&drawn[k], &loads_of[k], loads, experts, caps[k], (double)experts / top_k);
    }
    free(loads);
    gsl_rng_free(rng);
}

/* Shares of what is there: the law's mean of 1 without what it has beyond every token. */
static void check_dropped(const struct expert_load *load, const struct drawn *d)
{
    double there = mean_of(&d->there), error = error_of(&d->dropped) + load->dropped * error_of(&d->there);
    ck_assert_double_eq_tol(load->dropped, mean_of(&d->dropped) / there, 4.5 * error / there + 1e-9);
}

/* Without a capacity exactly; what is dropped exactly, too, and then the busiest rank within what independent loads leave out of
 * the conserved sum. */
START_TEST(ranks_have_what_drawn_loads_give)
{
    int experts = spreads[_i].experts, top_k = spreads[_i].top_k;
    struct drawn drawn[N_CAPACITIES] = {0};
    struct expert_load loads_of[N_CAPACITIES];
    for (int k = 0; k < N_CAPACITIES; k++)
        loads_of[k] = completed(experts, top_k, spreads[_i].busiest, k < N_CAPACITIES - 1 ? capacities[k] : 0);
    draw_all(loads_of, capacities, N_CAPACITIES, experts, top_k, drawn);
    for (int k = 0; k < N_CAPACITIES; k++) {
        const struct expert_load *load = &loads_of[k];
        const struct drawn *d = &drawn[k];
        bool capped = load->capacity > 0;
        if (capped)
            check_dropped(load, d);
        for (int n = 0; n < load->n; n++) {
            double rank = mean_of(&d->rank[n]) / (capped ? mean_of(&d->there) : 1), expert = mean_of(&d->expert[n]);
            double slack = capped ? 0.02 * rank : 4.5 * error_of(&d->rank[n]) + 1e-9;
            ck_assert_double_eq_tol(load->by[n].rank, rank, slack);
            if (!capped)
                ck_assert_double_eq_tol(load->by[n].largest, expert, 4.5 * error_of(&d->expert[n]) + 1e-9);
        }
    }
}
END_TEST

/* Where few experts have most, and capacities are large: the worst of some 12,000 cases of 4 to 256 experts, b up to 0.85 E / k,
 * in which no more than half of all copies are dropped (D), stay within what the header says of those. */
static const struct {
    int experts, top_k;
    double busiest, capacity;
} corners[] = {{64, 2, 16.5, 12}, {16, 1, 6.25, 4},   {128, 2, 32.5, 24},  {64, 1, 23.05, 16}, {64, 4, 13.75, 12},
               {64, 2, 27.35, 4}, {64, 2, 27.35, 12}, {128, 8, 13.75, 12}, {128, 1, 64.5, 16}, {8, 2, 3.4, 2}};
enum { N_CORNERS = sizeof corners / sizeof *corners };

START_TEST(few_experts_that_have_most)
{
    int experts = corners[_i].experts, top_k = corners[_i].top_k;
    struct drawn d = {0};
    struct expert_load load = completed(experts, top_k, corners[_i].busiest, corners[_i].capacity);
    draw_all(&load, &load.capacity, 1, experts, top_k, &d);
    check_dropped(&load, &d);
    for (int n = 0; n < load.n; n++) {
        double rank = mean_of(&d.rank[n]) / mean_of(&d.there);
        ck_assert_double_ge(load.by[n].rank, (1 - 0.04) * rank);
        ck_assert_double_le(load.by[n].rank, (1 + (load.dropped <= 0.5 ? 0.07 : 0.17)) * rank);
    }
}
END_TEST

/* --- capacities */

START_TEST(a_capacity_limits_and_conserves)
{
    int experts = spreads[_i].experts;
    double free_of = completed(experts, spreads[_i].top_k, spreads[_i].busiest, 0).by[2].rank, before = 0, kept = 0;
    for (double c = 0.5; c < 4; c += 0.25) {
        struct expert_load load = completed(experts, spreads[_i].top_k, spreads[_i].busiest, c);
        ck_assert_double_eq_tol(expert_load_rank(&load, 1), 1 - load.dropped, 1e-12);
        ck_assert_double_eq_tol(expert_load_mean(&load), 1 - load.dropped, 1e-12);
        ck_assert_double_ge(expert_load_mean(&load), kept); /* more room, more kept */
        for (int n = 0; n < load.n; n++)
            ck_assert(load.by[n].rank <= c && load.by[n].largest <= c && load.by[n].rank >= expert_load_mean(&load) - 1e-12);
        ck_assert_double_ge(load.by[2].rank, before - 1e-6);
        before = load.by[2].rank;
        kept = expert_load_mean(&load);
    }
    struct expert_load room = completed(experts, spreads[_i].top_k, spreads[_i].busiest, experts);
    ck_assert_double_eq(room.dropped, 0);
    ck_assert_double_eq(room.by[2].rank, free_of);
}
END_TEST

/* No expert gets more than every token, so a capacity of E / k drops nothing, and none a little below it drops much. */
START_TEST(a_capacity_of_every_token_is_none)
{
    int experts = spreads[_i].experts;
    for (double share = 0.1; share < 1; share += 0.2) {
        double most = (double)experts / spreads[_i].top_k, busiest = 1 + share * (most - 1);
        struct expert_load none = completed(experts, spreads[_i].top_k, busiest, 0);
        for (int i = 0; i < 2; i++) {
            double below = 1e-6 * i;
            struct expert_load load = completed(experts, spreads[_i].top_k, busiest, most * (1 - below));
            ck_assert_double_le(load.dropped, below);
            for (int n = 0; n < load.n; n++) {
                ck_assert_double_eq_tol(load.by[n].rank, none.by[n].rank, 1e-4 * none.by[n].rank);
                ck_assert_double_eq_tol(load.by[n].largest, none.by[n].largest, 1e-4 * none.by[n].largest);
            }
        }
    }
}
END_TEST

/* As many experts as have most divisors: 128 sums of up to 83,160 loads, some 0.1 s. Lattices as long as the sums themselves take
 * 1.8 s, which 35 times is beyond this case's limit. */
START_TEST(many_experts_are_quick)
{
    for (int again = 0; again < 35; again++) {
        struct expert_load load = completed(83160, 8, 2 + 0.5 * again, 1.25);
        ck_assert_int_eq(load.n, EXPERT_DIVISORS_MAX);
        ck_assert_double_le(load.by[1].rank, 1 - load.dropped + 0.01); /* half of them each: hardly more than the mean */
        ck_assert_double_ge(load.by[1].rank, 1 - load.dropped);
    }
}
END_TEST

START_TEST(padding_makes_all_alike)
{
    struct expert_load load = {.busiest = 2, .capacity = 1.25, .padded = true};
    expert_load_complete(&load, 8, 2);
    for (int ranks = 1; ranks <= 8; ranks *= 2) {
        ck_assert_double_eq(expert_load_rank(&load, ranks), 1.25);
        ck_assert_double_eq(expert_load_largest(&load, ranks), 1.25);
    }
    ck_assert_double_eq(expert_load_mean(&load), 1.25);
    ck_assert_double_gt(load.dropped, 0.05);
}
END_TEST

/* Balanced loads drop what a capacity below the mean leaves; nothing said, or 1, is 1 for every question. */
START_TEST(balanced_loads)
{
    struct expert_load load = completed(8, 2, 0, 0.75);
    ck_assert_double_eq(load.dropped, 0.25);
    ck_assert_double_eq(expert_load_rank(&load, 4), 0.75);
    for (double said = 0; said <= 1; said++) {
        load = completed(8, 2, said, 0);
        ck_assert(!expert_load_given(&load));
        for (int ranks = 1; ranks <= 8; ranks *= 2)
            ck_assert(expert_load_rank(&load, ranks) == 1 && expert_load_largest(&load, ranks) == 1);
        ck_assert_double_eq(expert_load_mean(&load), 1);
    }
}
END_TEST

START_TEST(spread_evenly_nothing_but_the_mean_is_left)
{
    struct expert_load load = completed(64, 6, 2, 1.2);
    double mean = expert_load_mean(&load);
    expert_load_spread(&load);
    for (int ranks = 1; ranks <= 64; ranks *= 2)
        ck_assert(expert_load_rank(&load, ranks) == mean && expert_load_largest(&load, ranks) == mean);
    ck_assert_double_eq(expert_load_mean(&load), mean);
}
END_TEST

/* Ranks that do not divide the experts have at least what fewer that do have. */
START_TEST(ranks_in_between)
{
    struct expert_load load = completed(8, 2, 2, 0);
    ck_assert_double_eq(expert_load_rank(&load, 3), expert_load_rank(&load, 4));
    ck_assert_double_eq(expert_load_rank(&load, 100), expert_load_rank(&load, 8));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("expert_load");
    TCase *all = tcase_create("all");
    tcase_add_test(all, the_largest_exponential_is_a_harmonic_number);
    tcase_add_test(all, the_larger_of_two_is_a_ratio_of_gamma_functions);
    tcase_add_test(all, many_tokens_make_normal_loads);
    tcase_add_loop_test(all, one_rank_is_even_and_a_rank_an_expert_is_what_is_given, 0, N_SPREADS);
    tcase_add_test(all, the_more_uneven_the_busier);
    tcase_add_test(all, one_expert_that_gets_everything);
    suite_add_rounds(all, ranks_have_what_drawn_loads_give, N_SPREADS, 0);
    tcase_add_loop_test(all, few_experts_that_have_most, 0, N_CORNERS);
    tcase_add_loop_test(all, a_capacity_of_every_token_is_none, 0, N_SPREADS);
    tcase_add_loop_test(all, a_capacity_limits_and_conserves, 0, N_SPREADS);
    tcase_add_test(all, padding_makes_all_alike);
    tcase_add_test(all, balanced_loads);
    tcase_add_test(all, spread_evenly_nothing_but_the_mean_is_left);
    tcase_add_test(all, ranks_in_between);
    suite_add_tcase(suite, all);
    TCase *quick = tcase_create("quick");
    tcase_add_test(quick, many_experts_are_quick);
    suite_add_tcase(suite, quick);
    return suite_run(suite);
}
