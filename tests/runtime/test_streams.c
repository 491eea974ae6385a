/* Streams may run in any order that events allow: some of each rank's are made to fall behind, drawn anew for every run, and
 * nothing that is computed changes by a bit. A buffer used again while another stream still needs it shows here. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "model/base/random.h"
#include "runtime/comm/comm_threads.h"
#include "runtime/device/device_cpu.h"
#include "runtime/run/process_run.h"
#include "tests/runtime/equivalence.h"
#include "tests/suite.h"

enum { RANKS_MAX = 4, STEPS = 2, RUNS = 6, SELDOM = 12, LONGEST_US = 1500 };

static const struct {
    enum toy_model model;
    const char *layout;
    feature_set features;
    enum precision precision;
} cases[] = {
    {TOY_GPT, "cp=2,mb=2", 0, PRECISION_BF16},
    {TOY_LLAMA, "cp=4,recompute=full", 0, PRECISION_BF16},
    {TOY_LATENT_GPT, "tp=2,sp=1,cp=2", TP, PRECISION_BF16},
    {TOY_GPT, "cp=2,pp=2,vpp=2,schedule=interleaved", PP, PRECISION_BF16},
    {TOY_GPT, "tp=4,sp=1,recompute=selective", TP, PRECISION_BF16},
    {TOY_LLAMA, "tp=2,sp=1,pp=2,schedule=1f1b", TP | PP, PRECISION_BF16},
    {TOY_LLAMA, "dp=2,pp=2,schedule=zb-1p", DP | PP, PRECISION_BF16},
    {TOY_LLAMA, "dp=4,zero=3,recompute=full", DP, PRECISION_BF16},
    {TOY_MIXTURE, "dp=2,tp=2,sp=1,ep=2,zero=1", TP | DP, PRECISION_BF16},
    {TOY_MIXTURE, "dp=2,ep=2,pp=2,schedule=1f1b", PAIRS | PP | DP, PRECISION_BF16},
    {TOY_GPT, "tp=2,sp=1,dp=2,zero=1", TP | DP, PRECISION_FP8},
    {TOY_LLAMA, "tp=2,sp=1,cp=2,recompute=layernorm+mlp", TP, PRECISION_FP8},
    {TOY_GPT, "pp=2,vpp=2,schedule=interleaved,offload=activations", PP, PRECISION_BF16},
    {TOY_LLAMA, "tp=2,sp=1,dp=2,offload=activations", TP | DP, PRECISION_BF16},
    {TOY_LLAMA, "dp=4,zero=3,offload=activations", DP, PRECISION_BF16},
    {TOY_GPT, "mb=2,offload=optimizer+activations", 0, PRECISION_BF16},
    {TOY_PREDICTION_GPT, "dp=2,zero=2,offload=optimizer:50%", DP, PRECISION_BF16},
    {TOY_MIXTURE, "dp=4,ep=2,zero=3,offload=optimizer:70%+parameters:50%", DP, PRECISION_BF16},
    {TOY_LLAMA, "dp=4,zero=3,shard=2,offload=optimizer+parameters", DP, PRECISION_BF16},
    {TOY_GPT, "tp=2,sp=1,pp=2,schedule=zb-2p,offload=optimizer", TP | PP, PRECISION_BF16},
    {TOY_GPT, "pp=2,vpp=2,schedule=interleaved,offload=optimizer:50%", PP, PRECISION_BF16},
    {TOY_LLAMA, "tp=2,sp=1,dp=2,zero=1,offload=optimizer", TP | DP, PRECISION_FP8},
};

/* --- streams that fall behind */

/* The backends' tables with functions in front; the same for all ranks. */
static struct {
    struct comm_api comm;
    struct device_api device;
    const struct comm_api *own_comm;
    const struct device_api *own_device;
    uint64_t seed; /* 0: nothing falls behind */
} late;

/* Of the rank whose thread this is: which of its streams are slow ones, by a bit for each. */
static _Thread_local struct {
    struct random_stream random;
    struct device_stream *slow[64];
    int n_slow;
} mine;

static enum status new_stream(struct device *device, bool urgent, struct device_stream **stream, struct diags *diags)
{
    enum status status = late.own_device->stream_new(device, urgent, stream, diags);
    if (status == STATUS_OK && late.seed && random_below(&mine.random, 2) == 0)
        mine.slow[mine.n_slow++] = *stream;
    return status;
}

/* In front of a stream's next task. */
static enum status fall_behind(struct device_stream *stream, struct diags *diags)
{
    bool slow = false;
    for (int i = 0; i < mine.n_slow; i++)
        slow |= mine.slow[i] == stream;
    if (!slow || random_below(&mine.random, SELDOM) != 0)
        return STATUS_OK;
    nanos duration = (nanos)random_below(&mine.random, LONGEST_US) * (NANOS_PER_SECOND / 1000000);
    return late.own_device->pause(stream, duration, diags);
}

static enum status late_launch(struct device_stream *stream, const struct kernel_call *call, struct diags *diags)
{
    enum status status = fall_behind(stream, diags);
    return status == STATUS_OK ? late.own_device->launch(stream, call, diags) : status;
}

static enum status late_update(struct device_stream *stream, const struct kernel_call *call, struct diags *diags)
{
    enum status status = fall_behind(stream, diags);
    return status == STATUS_OK ? late.own_device->launch_host(stream, call, diags) : status;
}

static enum status late_copy(struct device_stream *stream, void *to, const void *from, size_t bytes, struct diags *diags)
{
    enum status status = fall_behind(stream, diags);
    return status == STATUS_OK ? late.own_device->copy_between(stream, to, from, bytes, diags) : status;
}

static enum status late_exchange(struct communicator *c, struct device_stream *stream, const struct exchange_call *call,
                                 struct diags *diags)
{
    enum status status = fall_behind(stream, diags);
    return status == STATUS_OK ? late.own_comm->enqueue(c, stream, call, diags) : status;
}

/* --- runs */

struct worker {
    pthread_t thread;
    struct hub *hub;
    int rank;
    const struct program *program;
    const struct setting *setting;
    struct thread_run_step steps[STEPS];
};

static void *worker_main(void *argument)
{
    struct worker *w = argument;
    struct thread_run_options options = {.steps = STEPS, .seed = 1, .rate = 0.1f};
    struct thread_run run;
    struct diags diags = {0};
    struct device *device;
    struct world *world = hub_join(w->hub, w->rank);
    mine.random = random_stream_named(late.seed, 1, (uint64_t)w->rank);
    mine.n_slow = 0;
    ck_assert(device_cpu_open(w->rank, hub_epoch(w->hub), 0, &device, &diags) == STATUS_OK);
    world->api = &late.comm;
    device->api = &late.device;
    ck_assert(run_as_rank(w->program, w->setting, &options, device, world, &run, &diags) == STATUS_OK);
    for (int s = 0; s < STEPS; s++)
        w->steps[s] = run.steps[s];
    thread_run_free(&run);
    return NULL;
}

static void put_in_front(struct hub *hub)
{
    struct diags diags = {0};
    struct device *device;
    struct world *world = hub_join(hub, 0);
    ck_assert(device_cpu_open(0, hub_epoch(hub), 0, &device, &diags) == STATUS_OK);
    late.own_comm = world->api;
    late.own_device = device->api;
    late.comm = *world->api;
    late.device = *device->api;
    late.comm.enqueue = late_exchange;
    late.device.launch = late_launch;
    late.device.copy_between = late_copy;
    late.device.launch_host = late_update;
    late.device.stream_new = new_stream;
    world->api->close(world);
    device->api->close(device);
}

static void run(const struct toy *toy, enum detail detail, uint64_t seed, struct thread_run_step steps[STEPS])
{
    struct worker workers[RANKS_MAX];
    struct program program;
    struct diags diags = {0};
    ck_assert(program_build(&toy->layout, &toy->setting, detail, false, &program, &diags) == STATUS_OK);
    ck_assert_int_le(program.n_ranks, RANKS_MAX);
    struct hub *hub = hub_new(program.n_ranks, 600 * NANOS_PER_SECOND);
    late.seed = seed;
    put_in_front(hub);
    for (int r = 0; r < program.n_ranks; r++) {
        workers[r] = (struct worker){.hub = hub, .rank = r, .program = &program, .setting = &toy->setting};
        ck_assert_int_eq(pthread_create(&workers[r].thread, NULL, worker_main, &workers[r]), 0);
    }
    for (int r = 0; r < program.n_ranks; r++)
        pthread_join(workers[r].thread, NULL);
    for (int s = 0; s < STEPS; s++)
        steps[s] = workers[0].steps[s];
    hub_free(hub);
    program_free(&program);
}

static void make(struct toy *toy, int i)
{
    toy_make(toy, cases[i].model);
    toy_lay_out(toy, cases[i].layout, cases[i].features);
    toy->job.precision = cases[i].precision;
    toy->cluster.gpu.peak_flops[PRECISION_FP8] = 1e11;
    toy->cluster.gpu.gemm[PRECISION_FP8] = toy->cluster.gpu.gemm[PRECISION_BF16];
}

START_TEST(streams_may_fall_behind)
{
    struct toy toy;
    struct thread_run_step expected[STEPS], got[STEPS];
    char text[TOY_TEXT_MAX];
    make(&toy, _i);
    for (int i = 0; i < suite_draws(RUNS, 3); i++) {
        enum detail detail = (enum detail)(DETAIL_CHUNK + i % (DETAIL_KERNEL - DETAIL_CHUNK + 1));
        run(&toy, detail, 0, expected);
        run(&toy, detail, (uint64_t)(1 + RUNS * _i + i), got);
        for (int s = 0; s < STEPS; s++) {
            bool same = got[s].loss == expected[s].loss &&
                        (isnan(expected[s].gradient_norm) || got[s].gradient_norm == expected[s].gradient_norm);
            ck_assert_msg(same, "%s: step %d of run %d: %.17g (%.17g) instead of %.17g (%.17g)",
                          toy_text(&toy, text, sizeof text), s, i, got[s].loss, got[s].gradient_norm, expected[s].loss,
                          expected[s].gradient_norm);
        }
    }
}
END_TEST

/* Of 1000 bytes 600 and 400 are given and not one more; what is given back is there again, and the most that was in use stays. */
START_TEST(memory_ends_at_its_limit)
{
    struct diags diags = {0};
    struct device *device;
    void *first, *second, *third;
    ck_assert(device_cpu_open(0, NULL, 1000, &device, &diags) == STATUS_OK);
    ck_assert(device->api->memory_new(device, 600, &first, &diags) == STATUS_OK);
    ck_assert(device->api->memory_new(device, 400, &second, &diags) == STATUS_OK);
    ck_assert(device->api->memory_new(device, 1, &third, &diags) == STATUS_FAILED);
    ck_assert_uint_eq(diags.n_items, 1);
    device->api->memory_free(device, first, 600);
    ck_assert_uint_eq(device->in_use, 400);
    ck_assert(device->api->memory_new(device, 500, &first, &diags) == STATUS_OK);
    ck_assert_uint_eq(device->peak, 1000);
    device->api->memory_free(device, first, 500);
    device->api->memory_free(device, second, 400);
    device->api->close(device);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {{streams_may_fall_behind, COUNT(cases)}, {memory_ends_at_its_limit, 1}};
    return toy_suite("runtime streams", tests, COUNT(tests));
}
