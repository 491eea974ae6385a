/* numerics.c - compares the loss and gradients of all ranks with those of one rank on the CPU. */
#include "runtime/run/numerics.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

#include "model/cost/work/precision_bytes.h"
#include "runtime/base/parameters.h"

/* Allowed relative errors of the loss and of a tensor's gradients. fp32: sums in another order. bf16: activations with eight bits
 * of mantissa, rounded some dozen times in a few layers; also, a token whose best experts have almost the same score may go to
 * another expert, together with its gradients. */
struct tolerance {
    double loss, gradients;
};
static const struct tolerance of_fp32 = {1e-4, 1e-4}, of_bf16 = {2e-2, 1e-1}, of_choices = {2e-2, 0.5};

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

static struct tolerance tolerance_of(const struct setting *setting, feature_set features, bool on_gpu)
{
    if (precision_is_narrow(setting->job->precision))
        return narrow_tolerance(setting, features);
    if (!on_gpu)
        return of_fp32;
    return setting->model->moe.experts ? of_choices : of_bf16;
}

/* --- the reference */

static enum status run_reference(const struct setting *whole, feature_set features, const struct thread_run_options *options,
                                 struct thread_run *result, struct diags *diags)
{
    struct setting setting = *whole;
    struct job job = *setting.job;
    struct layout layout = {.tp = 1,
                            .cp = 1,
                            .pp = 1,
                            .vpp = 1,
                            .dp = 1,
                            .ep = 1,
                            .micro_batch = 1,
                            .schedule = SCHEDULE_NONE,
                            .features = features & ~(FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP) |
                                                     FEATURE_BIT(SCATTER_GATHER_P2P) | FEATURE_BIT(EP_OVERLAP))};
    struct program program;
    setting.gpus = 1;
    if (precision_is_narrow(job.precision)) /* an error that all ranks make in 8 bits then shows */
        job.precision = PRECISION_FP32;
    setting.job = &job;
    enum status status = program_build(&layout, &setting, DETAIL_KERNEL, false, &program, diags);
    if (status != STATUS_OK)
        return status;
    struct thread_run_options unlimited = *options; /* one rank holds what the others divide */
    unlimited.memory_limit = 0;
    status = run_on_threads(&program, &setting, &unlimited, result, diags);
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

enum status numerics_compare(const struct layout *layout, const struct setting *setting, bool on_gpu,
                             const struct thread_run_options *options, const struct thread_run *many, struct numerics *n,
                             struct diags *diags)
{
    struct thread_run one = {0};
    struct thread_run_options single = *options;
    single.steps = 1;
    single.gradients = true;
    *n = (struct numerics){0};
    enum status status = run_reference(setting, layout->features, &single, &one, diags);
    if (status == STATUS_OK) {
        struct tolerance allowed = tolerance_of(setting, layout->features, on_gpu);
        n->compared = true;
        n->loss_error = fabs(many->steps[0].loss - one.steps[0].loss) / fabs(one.steps[0].loss);
        compare_gradients(setting, one.gradients, many->gradients, n);
        n->max_rel_error = fmax(n->loss_error, n->gradient_error);
        n->allowed = allowed.gradients;
        n->held = n->loss_error <= allowed.loss && n->gradient_error <= allowed.gradients;
    }
    thread_run_free(&one);
    return status;
}
