/*
 * numerics.h - compares the loss and every gradient of a step on many ranks with those of one rank on the CPU.
 *
 * Example: four ranks that divide a model run one step with gradients; the same step runs on one rank.
 *
 *     run_on_threads(&program, &setting, &options, &many, &diags);                  with options.gradients
 *     numerics_compare(&layout, &setting, false, &options, &many, &numerics, &diags);
 *     numerics.held                                                                 the same, within rounding?
 *
 * fp32 and bf16: the error of a tensor is its largest difference, relative to its largest gradient.
 *
 * Operands of 8 bits: the reference is one rank in fp32. The error of a tensor is the length of the difference of its gradients,
 * relative to the length of the gradient in fp32. How large this error may be follows from the formats.
 *
 * One product. With m bits of mantissa, the error of a number is uniform in +-2^-(m+1) of its power of two. If the logarithms of
 * mantissas are uniform, the root mean square of the relative error is
 *
 *     u = 2^-m / sqrt(12) * sqrt(3 / (8 ln 2)) = 0.2124 * 2^-m          (e4m3: 0.027, e5m2: 0.053)
 *
 * A product sums many terms with independent errors, so its relative error is that of one term: p = sqrt(u_a^2 + u_b^2) for its
 * two operands; backward, with the format of gradients, g.
 *
 * Many layers. A branch (attention, feed-forward) has s products in sequence and inherits the error of its input. The residual
 * stream adds n branches of about equal length. The branch that is added to i others has 1 / (i + 1) of the squared length of
 * the sum, so it adds s p^2 / (i + 1) to the square of the stream's relative error:
 *
 *     forward   s p^2 H        backward   s g^2 H        H = 1/2 + 1/3 + ... + 1/(n + 1)
 *
 * A weight gradient has at most both errors and that of its own product: e^2 = s (p^2 + g^2) H + g^2. Branches are not equally
 * long, and in a small tensor errors do not average, so 2 e is allowed. (Eight layers: e is 0.17 in fp8 and 0.12 in mxfp8; the
 * worst tensors of drawn layouts have 0.16 and 0.12.) A scale that is wrong by a factor of two gives 0.5 or 1; wrong numbers
 * give 1.4.
 *
 * Experts. A token goes to the k of n experts with the largest scores. If the k-th and the next score are almost equal, rounding
 * can exchange them. For normally distributed scores the density there is n phi(z) per standard deviation, where a share k / n
 * of the scores lies above z. Two scores drift apart by 2 / sqrt(pi) times the stream's error e_x, half of the time towards each
 * other. So rounding changes this number of a token's choices:
 *
 *     f = n phi(z) e_x / sqrt(pi)
 *
 * Each change replaces the output of one of the token's k experts; the square of the difference is twice the square of that
 * output. That is 2 f / k of a mixture, which is half of a layer's branches, so f / k more in e^2. The gradient of one expert or
 * router may depend on few such tokens, so in models with experts all gradients together count as one tensor.
 *
 * Loss. It is a mean over tokens with independent errors, so its error is that of the stream divided by sqrt(tokens).
 */
#ifndef MSIM_RUNTIME_RUN_NUMERICS_H
#define MSIM_RUNTIME_RUN_NUMERICS_H

#include "runtime/run/thread_run.h"

struct numerics {
    bool compared;         /* a comparison was made */
    double loss_error;     /* relative */
    double gradient_error; /* error of the worst tensor, as defined above */
    double allowed;        /* largest gradient_error that passes */
    char worst[64];        /* name of the worst tensor */
    double max_rel_error;  /* the larger of loss_error and gradient_error */
    bool held;             /* both are within their limits */
};

/* `many`: one step of all ranks, with gradients. `on_gpu`: they computed on GPUs. `options`: those of that run; the reference
 * uses their seed, text and rate. Time: that of the whole step on one rank. */
MUST_CHECK enum status numerics_compare(const struct layout *layout, const struct setting *setting, bool on_gpu,
                                        const struct thread_run_options *options, const struct thread_run *many,
                                        struct numerics *numerics, struct diags *diags);

#endif
