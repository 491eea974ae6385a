/*
 * expert_load.h - how unevenly a router spreads tokens over the experts of a layer, and what that makes of those that share
 * ranks.
 *
 * Given is the load of the busiest of E experts over the mean load in a layer and micro-batch, b, from 1 (balanced) to E / k,
 * where the same k experts get every token. Frameworks log it; DeepSeek's MaxVio is b - 1.
 *
 * Law (assumed). Loads G_i of experts, over their mean, are independent gamma variables of shape a and mean 1 (variance 1 / a);
 * what experts get of the tokens there are, X_i = E G_i / sum G, is then a symmetric Dirichlet distribution: never negative, its
 * sum conserved, and a sum over n experts is of the same family, with shape n a. The shares do not depend on the sum (Lukacs
 * 1955), so E[max X] = E[max G]. With
 *
 *     M(n, a) = E[max of n gamma variables of shape a and mean 1]
 *             = 1 + 1 / sqrt(a) (int_0^inf (1 - P^n) dt - int_{-sqrt a}^0 P^n dt),    P = P(a, a + sqrt(a) t)
 *
 * a follows from M(E, a) = b; everything else from a:
 *
 *     busiest of r ranks that have E / r experts each      R(r) = M(r, a E / r)         R(1) = 1, R(E) = b
 *     busiest expert of that rank                          R(r) M(E / r, a)
 *
 * the second since shares within a rank depend neither on its sum nor on that it is the largest.
 *
 * These are expectations over layers and micro-batches. A load beyond E / k, which no router gives, is not cut off: as b comes
 * near E / k the law says less.
 *
 * Capacity c (a factor of the mean): what exceeds it at an expert is dropped. With
 *
 *     B(c) = E[max(0, X - c)] = (1 - I(c/E; a + 1, (E - 1) a)) - c (1 - I(c/E; a, (E - 1) a))
 *
 * as X / E is a beta variable (I: its regularised integral), what the law has beyond every token, B(E / k), is no copy of any:
 * of those there are
 *
 *     D = max(1 - c, (B(c) - B(E / k)) / (1 - B(E / k)))
 *
 * are dropped, exactly for loads that stop at E / k, and none by a capacity of E / k. The busiest rank then has
 *
 *     min(c, R(r), max((1 - D) R'(r), R(r) - r D)),
 *
 * R' the expected maximum over r sums of E / r of the variables min(G, c), over their mean: the sum's distribution on a lattice
 * by Fourier transform. These loads are independent; where few experts have most that caps too much, but a rank's experts do not
 * drop more than all do, whence R - r D. Of drawn loads whose sum is conserved it is within 2 % for b up to 5 (3 of 8 experts),
 * and within -4 and +7 % where no more than half of the copies are dropped (4 to 256 experts, any r, c and k, b up to 0.85 E / k;
 * the worst where the law has some per cent beyond E / k); beyond, up to 17 % too much (tests/spec/test_expert_load.c). Padded to
 * the capacity every expert works on c times the mean whatever it was sent, so all ranks alike.
 *
 * Completed once for a job, for all r that divide E: some 0.02 s of 256 experts, 0.15 s of 83,160; asking is a look into a short
 * table.
 */
#ifndef MSIM_MODEL_SPEC_EXPERT_LOAD_H
#define MSIM_MODEL_SPEC_EXPERT_LOAD_H

#include <stdbool.h>

enum { EXPERT_DIVISORS_MAX = 128 }; /* of 83,160; no number up to 100,000, the most experts of a layer, has more */

struct expert_load {
    double busiest;  /* expert's load over the mean; 0 or 1: all alike */
    double capacity; /* over the mean; 0: nothing is dropped */
    bool padded;     /* every expert's tokens are filled up to the capacity */
    /* What follows from these for a model. */
    double shape;   /* a; 0: balanced */
    double dropped; /* share of the tokens' copies */
    int n;
    struct expert_ranks {
        int ranks;            /* that the experts are divided over */
        double rank, largest; /* what the busiest one works on, and its busiest expert, over the means without a capacity */
    } by[EXPERT_DIVISORS_MAX];
};

/* Whether the input specifies a load, a capacity or padding. If it does, complete it before calling the functions below; if not,
 * they all return 1. */
bool expert_load_given(const struct expert_load *load);
/* Derives the rest, for `experts` of which a token takes top_k. Loads are in bounds: 1 <= busiest <= experts / top_k. */
void expert_load_complete(struct expert_load *load, int experts, int top_k);
/* Tokens' copies over the mean without a capacity: of the busiest of `ranks` ranks; of the busiest expert there; and of all ranks
 * on average. Where `ranks` does not divide the experts, the answer is that of the next larger number that does. */
double expert_load_rank(const struct expert_load *load, int ranks);
double expert_load_largest(const struct expert_load *load, int ranks);
double expert_load_mean(const struct expert_load *load);
/* Spreads the same copies of tokens evenly over all experts; dropped ones stay dropped. */
void expert_load_spread(struct expert_load *load);

/* M(n, shape) above. */
double expert_load_maximum(int n, double shape);

#endif
