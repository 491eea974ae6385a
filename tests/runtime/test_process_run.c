/* One rank of a program: among others that are processes, and alone with copies for messages. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "runtime/comm/comm_alone.h"
#include "runtime/comm/comm_threads.h"
#include "runtime/device/device_cpu.h"
#include "runtime/run/process_run.h"
#include "tests/runtime/toys.h"

static const char *const layouts[] = {"tp=2,sp=1,pp=2,schedule=1f1b",
                                      "pp=2,vpp=2,schedule=interleaved",
                                      "pp=4,schedule=zb-1p",
                                      "dp=4,zero=3",
                                      "tp=2,dp=2,zero=2",
                                      "pp=2,dp=2,zero=1,schedule=gpipe",
                                      "pp=2,dp=2,zero=1,schedule=zb-2p"};
enum { N_LAYOUTS = sizeof layouts / sizeof layouts[0], RANKS_MAX = 4 };

static void program_of(struct toy *toy, const char *layout, struct program *program)
{
    struct diags diags = {0};
    toy_make(toy, TOY_GPT);
    toy_lay_out(toy, layout, FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP));
    toy->job.dropout = 0.25;
    ck_assert(program_build(&toy->layout, &toy->setting, DETAIL_KERNEL, false, program, &diags) == STATUS_OK);
    toy->job.clip = 0.5;
    diags_free(&diags);
}

/* --- every rank runs by itself and gathers; worlds of threads stand for those of processes */

struct process {
    pthread_t thread;
    struct hub *hub;
    int rank;
    const struct program *program;
    const struct setting *setting;
    const struct thread_run_options *options;
    struct thread_run result;
    struct diags diags;
    enum status status;
};

static void *process_main(void *argument)
{
    struct process *p = argument;
    struct device *device;
    struct world *world = hub_join(p->hub, p->rank);
    p->status = device_cpu_open(p->rank, hub_epoch(p->hub), 0, &device, &p->diags);
    if (p->status == STATUS_OK)
        p->status = run_as_rank(p->program, p->setting, p->options, device, world, &p->result, &p->diags);
    return NULL;
}

static void run_processes(struct process *processes, const struct program *program, const struct setting *setting,
                          const struct thread_run_options *options)
{
    struct hub *hub = hub_new(program->n_ranks, 600 * NANOS_PER_SECOND);
    for (int r = 0; r < program->n_ranks; r++) {
        processes[r] = (struct process){.hub = hub, .rank = r, .program = program, .setting = setting, .options = options};
        ck_assert_int_eq(pthread_create(&processes[r].thread, NULL, process_main, &processes[r]), 0);
    }
    for (int r = 0; r < program->n_ranks; r++)
        pthread_join(processes[r].thread, NULL);
    hub_free(hub);
}

START_TEST(every_rank_gets_the_whole_result)
{
    struct toy toy;
    struct program program;
    struct diags diags = {0};
    struct thread_run whole;
    struct process processes[RANKS_MAX];
    struct thread_run_options options = {.steps = 3, .seed = 4, .rate = 1e-3f, .gradients = true};
    program_of(&toy, layouts[_i], &program);
    ck_assert(run_on_threads(&program, &toy.setting, &options, &whole, &diags) == STATUS_OK);
    run_processes(processes, &program, &toy.setting, &options);
    for (int r = 0; r < program.n_ranks; r++) {
        struct thread_run *run = &processes[r].result;
        ck_assert_int_eq(processes[r].status, STATUS_OK);
        for (int s = 0; s < 3; s++) {
            ck_assert_double_eq(run->steps[s].loss, whole.steps[s].loss);
            ck_assert(run->steps[s].gradient_norm == whole.steps[s].gradient_norm ||
                      (isnan(run->steps[s].gradient_norm) && isnan(whole.steps[s].gradient_norm)));
            ck_assert_int_eq(run->steps[s].duration, processes[0].result.steps[s].duration);
        }
        ck_assert_int_eq(run->n_gradients, whole.n_gradients);
        ck_assert(memcmp(run->gradients, whole.gradients, (size_t)whole.n_gradients * sizeof(float)) == 0);
        ck_assert(memcmp(run->weights, whole.weights, (size_t)whole.n_gradients * sizeof(float)) == 0);
        ck_assert(memcmp(run->memory_peak, whole.memory_peak, (size_t)program.n_ranks * sizeof *run->memory_peak) == 0);
        ck_assert_uint_eq(run->timeline.n_spans, whole.timeline.n_spans);
        ck_assert_int_eq(run->timeline_step, processes[0].result.timeline_step);
        ck_assert(memcmp(run->timeline.spans, processes[0].result.timeline.spans,
                         run->timeline.n_spans * sizeof *run->timeline.spans) == 0);
    }
    for (int r = 0; r < program.n_ranks; r++)
        thread_run_free(&processes[r].result);
    thread_run_free(&whole);
    program_free(&program);
    diags_free(&diags);
}
END_TEST

START_TEST(every_rank_has_its_own_sentence)
{
    struct toy toy;
    struct program program;
    struct process processes[RANKS_MAX];
    struct injection injection = {.trouble = TROUBLE_KILLED, .rank = 1, .step = 1};
    struct thread_run_options options = {.steps = 3, .seed = 4, .injection = &injection};
    program_of(&toy, layouts[0], &program);
    run_processes(processes, &program, &toy.setting, &options);
    for (int r = 0; r < program.n_ranks; r++) {
        char own[16];
        snprintf(own, sizeof own, "rank %d", r);
        ck_assert_int_eq(processes[r].status, STATUS_FAILED);
        ck_assert_uint_eq(processes[r].diags.n_items, 1);
        ck_assert(strstr(processes[r].diags.items[0].text, own) == processes[r].diags.items[0].text);
        ck_assert_ptr_nonnull(strstr(processes[r].diags.items[0].text, "rank 1 was killed on request"));
        diags_free(&processes[r].diags);
    }
    program_free(&program);
}
END_TEST

/* --- alone */

/* What it computes is not the model's, but it holds what it would hold among the others, and executes every operation in order.
 */
START_TEST(a_rank_alone_does_all_it_has_to_do)
{
    struct toy toy;
    struct program program;
    struct diags diags = {0};
    struct thread_run whole, alone;
    struct thread_run_options options = {.steps = 2, .seed = 4, .rate = 1e-3f};
    program_of(&toy, layouts[_i], &program);
    ck_assert(run_on_threads(&program, &toy.setting, &options, &whole, &diags) == STATUS_OK);
    for (int r = 0; r < program.n_ranks; r++) {
        struct device *device;
        uint32_t n_ops = program.scripts[program.ranks[r].script].n_ops;
        ck_assert(device_cpu_open(r, NULL, 0, &device, &diags) == STATUS_OK);
        ck_assert(run_alone(&program, &toy.setting, &options, r, device, &alone, &diags) == STATUS_OK);
        ck_assert_uint_eq(alone.timeline.n_spans, n_ops);
        ck_assert_uint_eq(alone.memory_peak[r], whole.memory_peak[r]);
        ck_assert_int_gt(alone.steps[1].duration, 0);
        ck_assert_int_eq(alone.timeline.end, alone.steps[alone.timeline_step].duration);
        const struct op *ops = &program.ops[program.scripts[program.ranks[r].script].first_op];
        for (uint32_t i = 0; i < n_ops; i++)
            for (int d = 0; d < OP_DEPS; d++)
                if (ops[i].deps[d] != NO_OP)
                    ck_assert_int_ge(alone.timeline.spans[i].start, alone.timeline.spans[ops[i].deps[d]].end);
        thread_run_free(&alone);
    }
    thread_run_free(&whole);
    program_free(&program);
    diags_free(&diags);
}
END_TEST

struct lonely {
    struct device *device;
    struct world *world;
    struct device_stream *stream;
    struct communicator *all;
    struct diags diags;
};

static void lonely_open(struct lonely *l, int rank, int n)
{
    int members[16];
    *l = (struct lonely){0};
    for (int i = 0; i < n; i++)
        members[i] = i;
    ck_assert(device_cpu_open(rank, NULL, 0, &l->device, &l->diags) == STATUS_OK);
    ck_assert(comm_alone_open(rank, n, l->device, &l->world, &l->diags) == STATUS_OK);
    ck_assert(l->world->api->communicator_new(l->world, members, n, &l->all, &l->diags) == STATUS_OK);
    ck_assert(l->device->api->stream_new(l->device, false, &l->stream, &l->diags) == STATUS_OK);
}

static void lonely_close(struct lonely *l)
{
    l->device->api->stream_free(l->stream);
    l->world->api->close(l->world);
    ck_assert_uint_eq(l->device->in_use, 0);
    l->device->api->close(l->device);
    diags_free(&l->diags);
}

static void exchange(struct lonely *l, enum exchange exchange, const float *in, float *out, int64_t count, int peer)
{
    struct exchange_call call = {
        .exchange = exchange, .element = ELEMENT_FP32, .in = in, .out = out, .count = count, .peer = peer, .what = "test"};
    ck_assert(l->world->api->enqueue(l->all, l->stream, &call, &l->diags) == STATUS_OK);
    ck_assert(l->device->api->stream_synchronise(l->stream, &l->diags) == STATUS_OK);
}

START_TEST(messages_are_copies)
{
    enum { N = 11, COUNT = 3 };
    struct lonely l;
    float in[N * COUNT], out[N * COUNT], guard = 7;
    const int me = _i;
    lonely_open(&l, me, N);
    for (int i = 0; i < N * COUNT; i++)
        in[i] = (float)i + 1;
    memset(out, 0, sizeof out);
    exchange(&l, EXCHANGE_ALL_GATHER, in, out, COUNT, 0);
    for (int i = 0; i < N * COUNT; i++)
        ck_assert_float_eq(out[i], in[i % COUNT]);
    memcpy(out, in, sizeof in); /* own part in its place already */
    exchange(&l, EXCHANGE_ALL_GATHER, out + me * COUNT, out, COUNT, 0);
    for (int i = 0; i < N * COUNT; i++)
        ck_assert_float_eq(out[i], in[me * COUNT + i % COUNT]);
    exchange(&l, EXCHANGE_REDUCE_SCATTER, in, out, COUNT, 0);
    ck_assert(memcmp(out, in + me * COUNT, COUNT * sizeof *in) == 0);
    exchange(&l, EXCHANGE_ALL_TO_ALL, in, out, COUNT, 0);
    ck_assert(memcmp(out, in, sizeof in) == 0);
    exchange(&l, EXCHANGE_ALL_REDUCE, in, out, COUNT, 0);
    ck_assert(memcmp(out, in, COUNT * sizeof *in) == 0);
    exchange(&l, EXCHANGE_ALL_REDUCE, &guard, &guard, 1, 0);
    exchange(&l, EXCHANGE_SEND, &guard, NULL, 1, 0);
    ck_assert_float_eq(guard, 7);
    exchange(&l, EXCHANGE_RECV, NULL, out, N * COUNT, 0);
    float sum = 0, most = 0;
    for (int i = 0; i < N * COUNT; i++) {
        sum += fabsf(out[i]);
        most = fmaxf(most, fabsf(out[i]));
    }
    ck_assert(sum > 1 && most <= 0.5f);
    ck_assert_uint_ge(comm_alone_bytes(l.world), 2 * sizeof in);
    lonely_close(&l);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {every_rank_gets_the_whole_result, N_LAYOUTS},
        {every_rank_has_its_own_sentence, 1},
        {a_rank_alone_does_all_it_has_to_do, N_LAYOUTS},
        {messages_are_copies, 11},
    };
    return toy_suite("runtime processes", tests, COUNT(tests));
}
