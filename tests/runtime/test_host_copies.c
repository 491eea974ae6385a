/* What layers keep in the memory of the host comes back as it went: no bit of a step changes, and the device needs less. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/layout/offloaded.h"
#include "tests/runtime/equivalence.h"

static const struct {
    enum toy_model model;
    const char *layout;
    feature_set features;
} cases[] = {
    {TOY_GPT, "mb=1,offload=activations", 0},
    {TOY_GPT, "mb=2,recompute=full,offload=activations", 0},
    {TOY_LLAMA, "mb=1,recompute=selective,offload=activations", 0},
    {TOY_LLAMA, "mb=1,recompute=layernorm+mlp,offload=activations", 0},
    {TOY_LLAMA, "tp=2,sp=1,offload=activations", TP},
    {TOY_LLAMA, "tp=2,sp=0,pp=2,schedule=1f1b,offload=activations", PP},
    {TOY_GPT, "pp=2,schedule=gpipe,offload=activations", 0},
    {TOY_GPT, "pp=2,vpp=2,schedule=interleaved,offload=activations", PP},
    {TOY_GPT, "dp=2,zero=1,offload=activations", DP},
    {TOY_LLAMA, "dp=2,zero=3,offload=activations", DP},
    {TOY_LLAMA, "dp=2,zero=3,recompute=full,offload=activations", 0},
    {TOY_LLAMA, "cp=2,mb=2,offload=activations", 0},
    {TOY_MIXTURE, "dp=2,ep=2,zero=1,offload=activations", DP},
    {TOY_LATENT, "tp=2,sp=1,offload=activations", TP},
    {TOY_PREDICTION, "mb=1,offload=activations", 0},
    {TOY_ALIBI, "mb=2,offload=activations", PARALLEL},
    {TOY_GPT, "mb=1,offload=activations:50%", 0},
    {TOY_LLAMA, "tp=2,sp=1,offload=activations:3", TP},
    {TOY_GPT, "pp=2,vpp=2,schedule=interleaved,offload=activations:25%", PP},
    {TOY_LLAMA, "dp=2,zero=3,offload=activations:1", DP},
};

START_TEST(no_bit_changes)
{
    struct toy toy;
    toy_make(&toy, cases[_i].model);
    toy.model.layers = 8;
    toy_lay_out(&toy, cases[_i].layout, cases[_i].features);
    check_offloaded(&toy, detail_in_turn(_i));
}
END_TEST

/* Sixteen layers of which four layers' worth stays (and tensors wait to be used again); of a half of them that of eight and four.
 */
START_TEST(the_device_needs_less)
{
    struct thread_run run;
    const struct thread_run_options options = {.steps = 2, .seed = 1, .rate = 0.1f};
    static const char *const offloads[] = {"none", "activations:50%", "activations"};
    size_t peak[3];
    for (int i = 0; i < 3; i++) {
        struct toy toy;
        toy_make(&toy, TOY_GPT);
        toy.model.layers = 16;
        toy.job.global_batch = toy.layout.micro_batch = 8;
        toy.layout.offload = offloaded(offloads[i]);
        toy_complete(&toy);
        toy_run(&toy, DETAIL_CHUNK, &options, &run, NULL);
        peak[i] = run.memory_peak[0];
        thread_run_free(&run);
    }
    ck_assert_msg(peak[2] < 0.7 * (double)peak[0], "%zu bytes, with copies %zu", peak[0], peak[2]);
    ck_assert_msg(peak[1] < 0.9 * (double)peak[0] && peak[2] < 0.9 * (double)peak[1], "%zu, %zu, %zu bytes", peak[0], peak[1],
                  peak[2]);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {{no_bit_changes, COUNT(cases)}, {the_device_needs_less, 1}};
    return toy_suite("host copies", tests, COUNT(tests));
}
