/* The memory predicted for ranks of the runtime is what they take. */
#include "runtime/run/executed_memory.h"

#include <math.h>

#include "runtime/run/thread_run.h"
#include "tests/runtime/toys.h"

/* In fp32, after the steps that it takes until all tensors are there. */
START_TEST(memory_is_what_it_takes)
{
    static const char *const divided[] = {"dp=4",
                                          "dp=4,zero=1",
                                          "dp=2,zero=2",
                                          "dp=2,zero=3",
                                          "dp=4,zero=3",
                                          "tp=2,dp=2,zero=3",
                                          "tp=2",
                                          "dp=1",
                                          "pp=2,schedule=zb-1p,recompute=full",
                                          "pp=2,schedule=zb-2p,recompute=full",
                                          "pp=2,vpp=2,schedule=zb-v,recompute=full",
                                          "cp=2,pp=2,vpp=2,schedule=zb-v,recompute=full"};
    struct toy toy;
    struct program program;
    struct diags diags = {0};
    struct thread_run run;
    double taken = 0;
    toy_make(&toy, TOY_GPT);
    toy_lay_out(&toy, divided[_i], 0);
    toy.job.precision = PRECISION_FP32;
    toy.job.gradient_precision = PRECISION_BF16;
    ck_assert(program_build(&toy.layout, &toy.setting, DETAIL_KERNEL, false, &program, &diags) == STATUS_OK);
    struct thread_run_options how = {.steps = 4, .rate = 1e-3f};
    ck_assert(run_on_threads(&program, &toy.setting, &how, &run, &diags) == STATUS_OK);
    for (int r = 0; r < run.n_ranks; r++)
        taken += (double)run.memory_peak[r];
    /* the pieces of the ring of context parallelism are buffers that the prediction does not count */
    double bound = toy.layout.cp > 1 ? 0.12 : 0.1;
    double predicted = executed_memory_of_all(&toy.layout, &toy.setting, false);
    ck_assert_msg(fabs(predicted / taken - 1) < bound, "%s: %.0f bytes, predicted %.0f", divided[_i], taken, predicted);
    program_free(&program);
    thread_run_free(&run);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {{memory_is_what_it_takes, 12}};
    return toy_suite("executed memory", tests, COUNT(tests));
}
