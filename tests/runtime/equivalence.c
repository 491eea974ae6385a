#include "tests/runtime/equivalence.h"

#include <check.h>
#include <math.h>
#include <string.h>

static const struct thread_run_options one_step = {.steps = 1, .seed = 7, .gradients = true};

/* Largest difference of a tensor, relative to the largest gradient of the model it belongs to. */
static void compare(const struct toy *toy, const struct thread_run *one, const struct thread_run *many)
{
    char text[256], name[64];
    struct model_map map = model_map_of(&toy->setting);
    toy_text(toy, text, sizeof text);
    ck_assert_msg(fabs(one->steps[0].loss - many->steps[0].loss) <= 1e-5 * fabs(one->steps[0].loss),
                  "%s: loss %.9g, one rank %.9g", text, many->steps[0].loss, one->steps[0].loss);
    for (int64_t begin = 0; begin < map.total;) {
        model_map_name(&map, begin, name, sizeof name);
        double largest = 0, difference = 0;
        int64_t at = begin;
        for (char other[64]; at < map.total; at++) {
            if (at > begin && (model_map_name(&map, at, other, sizeof other), strcmp(name, other)) != 0)
                break;
            largest = fmax(largest, fabs(one->gradients[at]));
            difference = fmax(difference, fabs(one->gradients[at] - many->gradients[at]));
        }
        ck_assert_msg(difference <= 1e-5 * largest, "%s: gradient of %s differs by %g of %g", text, name, difference, largest);
        begin = at;
    }
    double norm = many->steps[0].gradient_norm;
    ck_assert_msg(isnan(norm) || fabs(norm - one->steps[0].gradient_norm) <= 1e-5 * norm, "%s: gradient norm %g, one rank %g",
                  text, norm, one->steps[0].gradient_norm);
}

/* One rank with the same model and batch; the block's form is part of the model. */
static void run_one(enum toy_model model, bool parallel_block, struct thread_run *result)
{
    struct toy toy;
    toy_make(&toy, model);
    if (parallel_block)
        toy.layout.features |= FEATURE_BIT(PARALLEL_BLOCK);
    toy_complete(&toy);
    toy_run(&toy, DETAIL_KERNEL, &one_step, result, NULL);
}

void check_variants(enum toy_model model, const struct variant *variants, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct toy toy;
        struct diags diags = {0};
        struct thread_run one, many;
        toy_make(&toy, model);
        ck_assert(layout_parse(variants[i].layout, &toy.layout, &diags) == STATUS_OK);
        toy.layout.features ^= variants[i].features;
        toy.job.features |= toy.layout.features;
        toy_complete(&toy);
        run_one(model, toy.layout.features & FEATURE_BIT(PARALLEL_BLOCK), &one);
        for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++) {
            toy_run(&toy, (enum detail)detail, &one_step, &many, NULL);
            compare(&toy, &one, &many);
            thread_run_free(&many);
        }
        thread_run_free(&one);
        diags_free(&diags);
    }
}
