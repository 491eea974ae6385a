/* Optimizer states, gradients and weights in the memory of the host: a step has the same bits, and the device needs less. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/random.h"
#include "tests/layout/offloaded.h"
#include "tests/runtime/drawn.h"
#include "tests/runtime/equivalence.h"
#include "tests/suite.h"

enum { DRAWS = 80 };

static const struct {
    enum toy_model model;
    const char *layout;
    feature_set features;
} cases[] = {
    {TOY_GPT, "mb=1,offload=optimizer", 0},
    {TOY_GPT, "mb=1,offload=optimizer:50%", 0},
    {TOY_LLAMA, "mb=2,recompute=full,offload=optimizer", 0},
    {TOY_GPT, "mb=8,offload=optimizer", 0},
    {TOY_GPT, "tp=2,sp=1,offload=optimizer", TP},
    {TOY_LLAMA, "tp=2,sp=1,offload=optimizer:30%", 0},
    {TOY_LLAMA, "tp=2,sp=0,pp=2,schedule=1f1b,offload=optimizer", PP},
    {TOY_GPT, "pp=2,schedule=gpipe,offload=optimizer:70%", 0},
    {TOY_GPT, "pp=2,vpp=2,schedule=interleaved,offload=optimizer", PP},
    {TOY_GPT, "pp=2,schedule=zb-1p,offload=optimizer", PP},
    {TOY_LLAMA, "pp=2,schedule=zb-2p,offload=optimizer:50%", PP},
    {TOY_GPT, "pp=2,vpp=2,schedule=zb-v,offload=optimizer", PP},
    {TOY_GPT, "dp=2,offload=optimizer", DP},
    {TOY_GPT, "dp=2,offload=optimizer:50%", 0},
    {TOY_GPT, "dp=2,zero=1,offload=optimizer", DP},
    {TOY_LLAMA, "dp=2,zero=1,offload=optimizer:50%", 0},
    {TOY_GPT, "dp=2,zero=2,offload=optimizer", DP},
    {TOY_GPT, "dp=2,zero=2,mb=4,offload=optimizer:50%", 0},
    {TOY_LLAMA, "dp=2,zero=2,tp=2,sp=1,offload=optimizer:50%", DP},
    {TOY_GPT, "dp=2,zero=3,offload=optimizer", DP},
    {TOY_LLAMA, "dp=2,zero=3,offload=optimizer:50%", 0},
    {TOY_LLAMA, "dp=2,zero=3,recompute=full,offload=optimizer+parameters", 0},
    {TOY_LLAMA, "dp=2,zero=3,recompute=full,offload=optimizer+parameters", DP},
    {TOY_GPT, "dp=2,zero=3,tp=2,sp=1,offload=optimizer+parameters:50%", DP},
    {TOY_GPT, "dp=2,zero=3,mb=4,offload=optimizer:50%+parameters:30%", DP},
    {TOY_LLAMA, "dp=4,zero=3,shard=2,offload=optimizer+parameters", DP},
    {TOY_LLAMA, "dp=4,zero=3,shard=2,mb=2,offload=optimizer:50%+parameters:50%", 0},
    {TOY_LLAMA, "cp=2,zero=3,offload=optimizer+parameters", DP},
    {TOY_MIXTURE, "dp=2,ep=2,zero=1,offload=optimizer", DP},
    {TOY_MIXTURE, "dp=2,ep=2,zero=3,offload=optimizer+parameters", DP},
    {TOY_MIXTURE, "dp=2,ep=2,zero=3,offload=optimizer:50%+parameters:50%", 0},
    {TOY_MIXTURE, "dp=2,ep=2,zero=2,offload=optimizer:50%", DP},
    {TOY_MIXTURE_GPT, "dp=4,ep=2,zero=3,offload=optimizer+parameters", DP},
    {TOY_LATENT, "tp=2,sp=1,offload=optimizer", TP},
    {TOY_PREDICTION, "mb=1,offload=optimizer:50%", 0},
    {TOY_PREDICTION_GPT, "mb=1,offload=optimizer", 0},
    {TOY_PREDICTION_GPT, "dp=2,zero=3,offload=optimizer+parameters", DP},
    {TOY_PREDICTION_GPT, "pp=2,schedule=1f1b,offload=optimizer", 0},
    {TOY_GPT, "mb=1,offload=optimizer+activations", 0},
    {TOY_LLAMA, "dp=2,zero=3,offload=optimizer+activations+parameters", DP},
    {TOY_LLAMA, "dp=2,zero=2,offload=optimizer:50%+activations:50%", DP},
    {TOY_GPT, "pp=2,vpp=2,schedule=interleaved,offload=optimizer+activations", PP},
};

START_TEST(no_bit_changes)
{
    struct toy toy;
    toy_make(&toy, cases[_i].model);
    toy.job.clip = _i / 3 % 2 ? 0 : 0.5;
    toy.job.optimizer = _i % 4 == 3 ? OPTIMIZER_SGD : OPTIMIZER_ADAM;
    toy_lay_out(&toy, cases[_i].layout, cases[_i].features);
    check_offloaded(&toy, detail_in_turn(_i));
}
END_TEST

/* LAMB measures its steps by whole tensors, whatever divides them: all states are there. */
START_TEST(no_bit_changes_with_lamb)
{
    struct toy toy;
    toy_make(&toy, cases[_i].model);
    toy.job.clip = _i / 3 % 2 ? 0 : 0.5;
    toy.job.optimizer = OPTIMIZER_LAMB;
    toy_lay_out(&toy, cases[_i].layout, cases[_i].features);
    if (offload_share(&toy.layout.offload, OFFLOAD_OPTIMIZER) < 1)
        return;
    check_offloaded(&toy, detail_in_turn(_i));
}
END_TEST

/* Any parts and shares that are legal for a drawn layout. */
static bool draw_offloading(uint64_t number, struct toy *toy)
{
    static const char *const offloads[] = {"optimizer",
                                           "optimizer:50%",
                                           "optimizer:10%",
                                           "optimizer+parameters",
                                           "optimizer+parameters:50%",
                                           "optimizer:70%+parameters:30%",
                                           "optimizer+activations",
                                           "optimizer+activations+parameters"};
    struct random_stream random = random_stream_named(1, UINT64_C(0x6f66666c6f6164), number);
    if (!draw_toy(number, toy))
        return false;
    toy->layout.offload = offloaded(offloads[random_below(&random, COUNT(offloads))]);
    toy->job.optimizer = random_below(&random, 2) ? OPTIMIZER_ADAM : OPTIMIZER_SGD;
    toy->job.clip = random_below(&random, 2) ? 0.5 : 0;
    toy_complete(toy);
    return layout_check(&toy->layout, &toy->setting, NULL, 0) == LAYOUT_LEGAL;
}

START_TEST(no_bit_changes_drawn)
{
    struct toy toy;
    uint64_t number = (uint64_t)_i << 32;
    while (!draw_offloading(number, &toy))
        number++;
    check_offloaded(&toy, detail_in_turn(_i));
}
END_TEST

/* Of Adam's states two of four numbers a parameter have here; of ZeRO-3's shards the weights too. */
START_TEST(the_device_needs_less)
{
    static const char *const offloads[] = {"none", "optimizer:50%", "optimizer", "optimizer+parameters"};
    const struct thread_run_options options = {.steps = 2, .seed = 1, .rate = 0.1f};
    double device[4], host[4];
    for (int i = 0; i < 4; i++) {
        struct toy toy;
        struct thread_run run;
        toy_make(&toy, TOY_GPT);
        toy.model.layers = 16;
        toy.job.global_batch = 4;
        toy.layout.dp = 2;
        toy.layout.zero = 3;
        toy.layout.offload = offloaded(offloads[i]);
        toy_complete(&toy);
        toy_run(&toy, DETAIL_CHUNK, &options, &run, NULL);
        device[i] = (double)run.memory_peak[0];
        host[i] = (double)run.host_peak[0];
        thread_run_free(&run);
    }
    ck_assert_msg(device[3] < device[2] && device[2] < device[1] && device[1] < device[0], "%g, %g, %g, %g bytes", device[0],
                  device[1], device[2], device[3]);
    ck_assert_msg(host[0] < 64 && fabs(host[2] / host[1] - 2) < 0.01, "%g, %g, %g bytes of the host", host[0], host[1], host[2]);
    ck_assert_double_eq(host[3], host[2]); /* in fp32 the master weights are what is fetched */
}
END_TEST

START_TEST(what_is_measured_by_tensors_is_not_parted)
{
    const struct thread_run_options options = {.steps = 1, .seed = 1};
    struct toy toy;
    struct thread_run run;
    struct diags diags = {0};
    toy_make(&toy, TOY_GPT);
    toy.job.optimizer = OPTIMIZER_LAMB;
    toy.layout.offload = offloaded("optimizer:50%");
    toy_complete(&toy);
    ck_assert(toy_run(&toy, DETAIL_CHUNK, &options, &run, &diags) == STATUS_MISSING);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "offload all of the optimizer or none"));
    diags_free(&diags);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {{no_bit_changes, COUNT(cases)},
                                     {no_bit_changes_drawn, suite_draws(DRAWS, 4)},
                                     {the_device_needs_less, 1},
                                     {no_bit_changes_with_lamb, COUNT(cases)},
                                     {what_is_measured_by_tensors_is_not_parted, 1}};
    return toy_suite("host states", tests, COUNT(tests));
}
