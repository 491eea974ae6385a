/*
 * expert_load.h - the load of experts and of ranks when a router spreads tokens unevenly, and the tokens that a capacity drops.
 *
 * Example: 8 experts, 2 per token, the busiest has b = 1.5 times the mean.
 *
 *     struct expert_load load = {.busiest = 1.5};
 *     expert_load_complete(&load, 8, 2);
 *     expert_load_rank(&load, 8)      1.5: one expert per rank
 *     expert_load_rank(&load, 4)      lower: two experts per rank even out
 *
 * The input is b, the load of the busiest of E experts over the mean load in a layer and micro-batch, from 1 (balanced) to E /
 * k, where the same k experts get every token. Frameworks log it; DeepSeek's MaxVio is b - 1.
 *
 * Law (assumed). Loads G_i of experts, over their mean, are independent gamma variables of shape a and mean 1 (variance 1 / a).
 * The shares of the tokens that experts get, X_i = E G_i / sum G, then have a symmetric Dirichlet distribution: never negative,
 * with a conserved sum, and a sum over n experts is of the same family, with shape n a. The shares do not depend on the sum
 * (Lukacs 1955), so E[max X] = E[max G]. With
 *
 *     M(n, a) = E[max of n gamma variables of shape a and mean 1]
 *             = 1 + 1 / sqrt(a) (int_0^inf (1 - P^n) dt - int_{-sqrt a}^0 P^n dt),    P = P(a, a + sqrt(a) t)
 *
 * a follows from M(E, a) = b, and everything else from a:
 *
 *     busiest of r ranks with E / r experts each          R(r) = M(r, a E / r)         R(1) = 1, R(E) = b
 *     busiest expert of that rank                         R(r) M(E / r, a)
 *
 * The second holds because shares within a rank depend neither on its sum nor on its being the largest. These are expectations
 * over layers and micro-batches. Loads beyond E / k, which no router produces, are not cut off, so the law is less accurate as
 * b approaches E / k.
 *
 * Capacity c (a factor of the mean): tokens beyond it at an expert are dropped. With
 *
 *     B(c) = E[max(0, X - c)] = (1 - I(c/E; a + 1, (E - 1) a)) - c (1 - I(c/E; a, (E - 1) a))
 *
 * (X / E is a beta variable, I its regularised integral), the part of the law beyond every token, B(E / k), belongs to no copy.
 * Of the copies of tokens the fraction
 *
 *     D = max(1 - c, (B(c) - B(E / k)) / (1 - B(E / k)))
 *
 * is dropped. This is exact for loads that stop at E / k, and a capacity of E / k drops none. The busiest rank then has
 *
 *     min(c, R(r), max((1 - D) R'(r), R(r) - r D)),
 *
 * with R' the expected maximum over r sums of E / r of the variables min(G, c), over their mean. The distribution of the sum is
 * computed on a lattice by Fourier transform. These loads are independent; where few experts have most tokens this caps too
 * much. But the experts of a rank do not drop more than all experts do, hence R - r D. Compared with drawn loads with a
 * conserved sum: within 2 % for b up to 5 (3 of 8 experts); within -4 and +7 % where at most half of the copies are dropped (4
 * to 256 experts, any r, c and k, b up to 0.85 E / k; worst where the law has some per cent beyond E / k); beyond that up to 17
 * % too much (tests/spec/test_expert_load.c). With padding to the capacity every expert computes c times the mean, so all ranks
 * are equal.
 *
 * Cost: completed once per job, for all r that divide E: about 0.02 s for 256 experts, 0.15 s for 83,160. Later calls look into
 * a short table.
 */
#ifndef MSIM_MODEL_SPEC_EXPERT_LOAD_H
#define MSIM_MODEL_SPEC_EXPERT_LOAD_H

#include <stdbool.h>

enum {
    EXPERT_DIVISORS_MAX = 128
}; /* the number of divisors of 83,160; no number up to 100,000, the most experts of a layer, has more */

struct expert_load {
    double busiest;  /* load of the busiest expert over the mean; 0 or 1: balanced */
    double capacity; /* over the mean; 0: nothing is dropped */
    bool padded;     /* every expert is filled up to the capacity */
    /* Derived from these for a model: */
    double shape;   /* a; 0: balanced */
    double dropped; /* dropped share of the copies of tokens */
    int n;
    struct expert_ranks {
        int ranks;            /* number of ranks that share the experts */
        double rank, largest; /* load of the busiest rank, and of its busiest expert, over the means without a capacity */
    } by[EXPERT_DIVISORS_MAX];
};

/* Whether the input specifies a load, a capacity or padding. If it does, complete it before calling the functions below; if not,
 * they all return 1. */
bool expert_load_given(const struct expert_load *load);
/* Derives the other members for `experts` experts of which a token uses top_k. Loads must be in bounds: 1 <= busiest <= experts
 * / top_k. */
void expert_load_complete(struct expert_load *load, int experts, int top_k);
/* Copies of tokens over the mean without a capacity: of the busiest of `ranks` ranks; of the busiest expert there; of all ranks
 * on average. Where `ranks` does not divide the experts, the result is that of the next larger number that does. */
double expert_load_rank(const struct expert_load *load, int ranks);
double expert_load_largest(const struct expert_load *load, int ranks);
double expert_load_mean(const struct expert_load *load);
/* Spreads the same copies of tokens evenly over all experts; dropped ones stay dropped. */
void expert_load_spread(struct expert_load *load);

/* M(n, shape) above. */
double expert_load_maximum(int n, double shape);

#endif
