/*
 * numerics.h - compares the loss and every gradient of all ranks' step with those of one rank on the CPU.
 *
 * Example: four ranks that divide a model run one step with gradients; the same step runs on one rank:
 *
 *     run_on_threads(&program, &setting, &options, &many, &diags);                  options.gradients is set
 *     numerics_compare(&layout, &setting, false, &options, &many, &numerics, &diags);
 *     numerics.held                                                                 are they the same, within rounding?
 *
 * fp32 and bf16: the largest difference within a tensor, of its largest gradient.
 *
 * Operands of 8 bits are compared with one rank in fp32, tensor by tensor, by the length of the difference of the gradients, of
 * the length of what they should be. What rounding does to that follows from the formats. With m bits of mantissa a number is off
 * by an error that is even in +-2^-(m+1) of its power of two; of numbers whose mantissas are spread as logarithms are, the root
 * of the mean square of the relative error is
 *
 *     u = 2^-m / sqrt(12) * sqrt(3 / (8 ln 2)) = 0.2124 * 2^-m          (e4m3: 0.027, e5m2: 0.053)
 *
 * A product sums many such terms, whose errors are independent: its relative error is that of a term, p = sqrt(u_a^2 + u_b^2) of
 * its operands, backward g with the gradients' format. A branch (attention, feed-forward) has s products behind one another and
 * inherits its input's error; the stream adds up n branches about as long as each other. The one added to i others is 1 / (i + 1)
 * of the sum's square length, so the square of the stream's error grows by s p^2 / (i + 1):
 *
 *     forward   s p^2 H        backward   s g^2 H        H = 1/2 + 1/3 + ... + 1/(n + 1)
 *
 * A gradient of weights has at most both, and its own product's: e^2 = s (p^2 + g^2) H + g^2. Tensors are not alike: branches are
 * not equally long, and in a small tensor errors do not average. Twice e is allowed (eight layers: e 0.17 in fp8 and 0.12 in
 * mxfp8; the worst tensors of drawn layouts have 0.16 and 0.12). A scale that is off by a power of two makes 0.5 or 1, numbers of
 * another place make 1.4.
 *
 * A token goes to the k of n experts with the largest scores; where the k-th and the next score nearly alike, rounding exchanges
 * them. Scores that are spread as a normal distribution stand n phi(z) to the standard deviation there (z: where k / n lie
 * above), and two of them drift by 2 / sqrt(pi) times the stream's error e_x apart, half of the time towards each other: of
 *
 *     f = n phi(z) e_x / sqrt(pi)
 *
 * choices another one is made. It gives the token another output of one of its k experts, of which the square of the difference
 * is twice as long as it: 2 f / k of a mixture, which is half of a layer's branches, in all f / k more in e^2. What an expert or
 * a router learns may depend on few such tokens: of models with experts all gradients together are one tensor.
 *
 * The loss is a mean over tokens, whose errors are independent: as much as the stream's, over the root of how many they are.
 */
#ifndef MSIM_RUNTIME_RUN_NUMERICS_H
#define MSIM_RUNTIME_RUN_NUMERICS_H

#include "runtime/run/thread_run.h"

struct numerics {
    bool compared;         /* with one rank on the CPU; of operands of 8 bits: in fp32 */
    double loss_error;     /* relative */
    double gradient_error; /* of the worst tensor: largest difference over its largest gradient; of operands of 8 bits: length of
                            * the difference over its length */
    double allowed;        /* of that */
    char worst[64];        /* the tensor */
    double max_rel_error;  /* the larger one */
    bool held;
};

/* `many`: one step of all ranks, with gradients. `on_gpu`: they computed on GPUs. `options`: of that run; the reference takes its
 * seed, text and rate. Runs the reference, so it takes as long as one rank needs for the whole step. */
MUST_CHECK enum status numerics_compare(const struct layout *layout, const struct setting *setting, bool on_gpu,
                                        const struct thread_run_options *options, const struct thread_run *many,
                                        struct numerics *numerics, struct diags *diags);

#endif
