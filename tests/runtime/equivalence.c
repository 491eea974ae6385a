#include "tests/runtime/equivalence.h"

#include <check.h>
#include <math.h>
#include <string.h>

static const struct thread_run_options one_step = {.steps = 1, .seed = 7, .gradients = true};
static const struct thread_run_options two_steps = {.steps = 2, .seed = 7, .rate = 0.1f, .gradients = true};

/* Largest difference of a tensor, relative to the largest gradient of the model it belongs to. */
static void compare(const struct toy *toy, const struct thread_run *one, const struct thread_run *many)
{
    char text[TOY_TEXT_MAX];
    struct model_map map = model_map_of(&toy->setting);
    toy_text(toy, text, sizeof text);
    for (int s = 0; s < one->n_steps; s++)
        ck_assert_msg(fabs(one->steps[s].loss - many->steps[s].loss) <= 1e-5 * fabs(one->steps[s].loss),
                      "%s: loss %.9g, one rank %.9g, step %d", text, many->steps[s].loss, one->steps[s].loss, s);
    for (int64_t at = 0; at < map.total;) {
        struct model_tensor tensor = model_map_tensor(&map, at);
        double largest = 0, difference = 0;
        for (; at < tensor.end; at++) {
            largest = fmax(largest, fabs(one->gradients[at]));
            difference = fmax(difference, fabs(one->gradients[at] - many->gradients[at]));
        }
        ck_assert_msg(difference <= 1e-5 * largest, "%s: gradient of %s differs by %g of %g", text, tensor.name, difference,
                      largest);
    }
    int last = one->n_steps - 1;
    double norm = many->steps[last].gradient_norm, expected = one->steps[last].gradient_norm;
    ck_assert_msg(isnan(norm) || fabs(norm - expected) <= 1e-5 * norm, "%s: gradient norm %g, one rank %g", text, norm, expected);
}

/* One rank with the same model and batch; the form of the block and the attention window are part of the model. */
static void run_one(const struct toy *toy, const struct thread_run_options *options, struct thread_run *result)
{
    const feature_set model = FEATURE_BIT(PARALLEL_BLOCK) | FEATURE_BIT(SLIDING_WINDOW);
    struct toy one = *toy;
    one.layout = toy_one_rank();
    one.layout.features |= toy->layout.features & model;
    toy_complete(&one);
    toy_run(&one, DETAIL_KERNEL, options, result, NULL);
}

static void check_steps(const struct toy *toy, enum detail detail, const struct thread_run_options *options)
{
    struct thread_run one, many;
    run_one(toy, options, &one);
    toy_run(toy, detail, options, &many, NULL);
    compare(toy, &one, &many);
    thread_run_free(&many);
    thread_run_free(&one);
}

void check_toy(const struct toy *toy, enum detail detail)
{
    check_steps(toy, detail, &two_steps);
}

void check_first_step(const struct toy *toy, enum detail detail)
{
    check_steps(toy, detail, &one_step);
}

/* Gradients that leave with every micro-batch are reduced as often, others between replicas of shards once: of experts too, which
 * may have copies where the dense weights have none. */
static bool is_summed_alike(const struct toy *toy)
{
    const struct layout *l = &toy->layout;
    bool often = layout_scatters_gradients(l) && layout_group_size(l, GROUP_REPLICA) == 1;
    bool alone = l->dp * l->cp == 1 && (!toy->model.moe.experts || layout_group_size(l, GROUP_EXPERT_DP) == 1);
    return often || alone || !layout_offloads_gradients(l) || layout_micro_batches(l, &toy->job) == 1;
}

static void expect_same_bits(const struct toy *toy, const struct thread_run *here, const struct thread_run *there)
{
    char text[TOY_TEXT_MAX];
    size_t bytes = (size_t)here->n_gradients * sizeof(float);
    toy_text(toy, text, sizeof text);
    for (int s = 0; s < here->n_steps; s++) {
        ck_assert_msg(here->steps[s].loss == there->steps[s].loss, "%s: the loss of step %d", text, s);
        ck_assert_msg(memcmp(&here->steps[s].gradient_norm, &there->steps[s].gradient_norm, sizeof(double)) == 0,
                      "%s: the norm of step %d: %.9g, %.9g", text, s, here->steps[s].gradient_norm,
                      there->steps[s].gradient_norm);
    }
    ck_assert_int_eq(here->n_gradients, there->n_gradients);
    ck_assert_msg(memcmp(here->gradients, there->gradients, bytes) == 0, "%s: gradients", text);
    ck_assert_msg(memcmp(here->weights, there->weights, bytes) == 0, "%s: weights", text);
}

void check_offloaded(const struct toy *toy, enum detail detail)
{
    const bool alike = is_summed_alike(toy); /* what Adam makes of rounding grows with the steps */
    const struct thread_run_options options = {.steps = alike ? 3 : 1, .seed = 1, .rate = 0.1f, .gradients = true};
    struct toy stays = *toy;
    struct thread_run here, there;
    stays.layout.offload = (struct offload){0};
    toy_complete(&stays);
    toy_run(&stays, detail, &options, &here, NULL);
    toy_run(toy, detail, &options, &there, NULL);
    if (alike)
        expect_same_bits(toy, &here, &there);
    else
        compare(toy, &here, &there);
    thread_run_free(&here);
    thread_run_free(&there);
}

enum detail detail_in_turn(int n)
{
    return (enum detail)(n % (DETAIL_KERNEL + 1));
}

void check_variant(enum toy_model model, const struct variant *variant, int n)
{
    struct toy toy;
    toy_make(&toy, model);
    toy_lay_out(&toy, variant->layout, variant->features);
    check_first_step(&toy, detail_in_turn(n));
}
