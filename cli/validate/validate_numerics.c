/*
 * validate_numerics.c - the loss and every gradient of all ranks' step, against those of one rank on the CPU.
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
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

#include "cli/validate/validating.h"
#include "model/cost/work/precision_bytes.h"
#include "runtime/base/parameters.h"

/* What is allowed, of the reference's loss and of a tensor's gradients. fp32: sums in other orders. bf16: activations with eight
 * bits, rounded some dozen times on the way through a few layers; a token whose best experts are nearly as good may go to another
 * one, and takes its gradients along. */
struct tolerance {
    double loss, gradients;
};
static const struct tolerance wide[] = {[DEVICE_CPU] = {1e-4, 1e-4}, [DEVICE_CUDA] = {2e-2, 1e-1}}, of_choices = {2e-2, 0.5};

/* --- what rounding to 8 bits does */

/* The square of u. */
static double rounding_of(int mantissa_bits)
{
    return 3 / (96 * M_LN2) * pow(4, -mantissa_bits);
}

/* The sum H over the branches of a model. */
static double growth_of(const struct transformer *model, feature_set features)
{
    int branches = (model->layers + model->mtp_layers) * (features & FEATURE_BIT(PARALLEL_BLOCK) ? 1 : 2);
    double sum = 0;
    for (int i = 1; i <= branches; i++)
        sum += 1.0 / (i + 1);
    return sum;
}

/* f / k: what choices that change add to the square of an error, where the stream's is `error`. */
static double choices_of(const struct transformer *model, double error)
{
    double n = model->moe.experts, k = model->moe.top_k;
    if (n <= k)
        return 0;
    return n * gsl_ran_ugaussian_pdf(gsl_cdf_ugaussian_Qinv(k / n)) * error / sqrt(M_PI) / k;
}

static struct tolerance narrow_tolerance(const struct setting *setting, feature_set features)
{
    const struct job *job = setting->job;
    double activation = rounding_of(3), gradient = rounding_of(job->precision == PRECISION_FP8 ? 2 : 3); /* e4m3; e5m2 */
    double forward = 2 * activation, backward = activation + gradient;
    double passed = growth_of(setting->model, features) * (setting->model->attention == ATTENTION_LATENT ? 3 : 2);
    double stream = passed * forward, tokens = (double)job->global_batch * (double)job->seq_len;
    double choices = choices_of(setting->model, sqrt(stream));
    return (struct tolerance){.loss = 2 * sqrt((stream + choices) / tokens),
                              .gradients = 2 * sqrt(stream + passed * backward + backward + choices)};
}

static struct tolerance tolerance_of(const struct validation *v)
{
    const struct setting *setting = &v->setup->setting;
    if (precision_is_narrow(setting->job->precision))
        return narrow_tolerance(setting, v->setup->layout.features);
    return v->devices.kind == DEVICE_CUDA && setting->model->moe.experts ? of_choices : wide[v->devices.kind];
}

/* --- the reference */

static enum status run_reference(struct invocation *call, const struct validation *v, const struct thread_run_options *options,
                                 struct thread_run *result)
{
    struct setting setting = v->setup->setting;
    struct job job = *setting.job;
    struct layout layout = {.tp = 1,
                            .cp = 1,
                            .pp = 1,
                            .vpp = 1,
                            .dp = 1,
                            .ep = 1,
                            .micro_batch = 1,
                            .schedule = SCHEDULE_NONE,
                            .features = v->setup->layout.features & ~(FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP) |
                                                                      FEATURE_BIT(SCATTER_GATHER_P2P) | FEATURE_BIT(EP_OVERLAP))};
    struct program program;
    setting.gpus = 1;
    if (precision_is_narrow(job.precision)) /* what all ranks do wrong with bytes is wrong beside it, too */
        job.precision = PRECISION_FP32;
    setting.job = &job;
    enum status status = program_build(&layout, &setting, DETAIL_KERNEL, false, &program, &call->diags);
    if (status != STATUS_OK)
        return status;
    struct thread_run_options unlimited = *options; /* one rank holds what the others divide */
    unlimited.memory_limit = 0;
    status = run_on_threads(&program, &setting, &unlimited, result, &call->diags);
    program_free(&program);
    return status;
}

/* --- the comparison */

/* Of one tensor. */
struct difference {
    double largest, between;       /* number, and difference of two */
    double square, square_between; /* sums */
    bool lost;                     /* a number that is none compares with nothing */
};

static void add_pair(double one, double many, struct difference *d)
{
    d->largest = fmax(d->largest, fabs(one));
    d->between = fmax(d->between, fabs(one - many));
    d->square += one * one;
    d->square_between += (one - many) * (one - many);
    d->lost |= isnan(many);
}

static double error_of(const struct difference *d, bool by_length)
{
    if (d->lost || (d->largest <= 0 && d->between > 0))
        return INFINITY;
    if (d->largest <= 0)
        return 0;
    return by_length ? sqrt(d->square_between / d->square) : d->between / d->largest;
}

static void keep_worst(const struct difference *d, bool by_length, const char *name, struct numerics *n)
{
    double error = error_of(d, by_length);
    if (error <= n->gradient_error)
        return;
    n->gradient_error = error;
    snprintf(n->worst, sizeof n->worst, "%s", name);
}

/* Tensors lie one after the other in the map. */
static void compare_gradients(const struct setting *setting, const float *one, const float *many, struct numerics *n)
{
    struct model_map map = model_map_of(setting);
    bool by_length = precision_is_narrow(setting->job->precision), routed = by_length && setting->model->moe.experts;
    for (int64_t at = 0; at < map.total;) {
        struct difference d = {0};
        struct model_tensor tensor = model_map_tensor(&map, at);
        if (routed)
            tensor = (struct model_tensor){0, map.total, "all gradients"};
        for (; at < tensor.end; at++)
            add_pair(one[at], many[at], &d);
        keep_worst(&d, by_length, tensor.name, n);
    }
}

enum status validate_numerics(struct invocation *call, const struct thread_run_options *whole, const struct thread_run *many,
                              struct validation *v)
{
    struct thread_run one = {0};
    struct thread_run_options options = *whole;
    options.steps = 1;
    options.gradients = true;
    enum status status = run_reference(call, v, &options, &one);
    if (status == STATUS_OK) {
        struct numerics *n = &v->numerics;
        struct tolerance allowed = tolerance_of(v);
        n->compared = true;
        n->loss_error = fabs(many->steps[0].loss - one.steps[0].loss) / fabs(one.steps[0].loss);
        compare_gradients(&v->setup->setting, one.gradients, many->gradients, n);
        n->max_rel_error = fmax(n->loss_error, n->gradient_error);
        n->allowed = allowed.gradients;
        n->held = n->loss_error <= allowed.loss && n->gradient_error <= allowed.gradients;
    }
    thread_run_free(&one);
    return status;
}
