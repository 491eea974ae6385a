/* Products in pieces with the exchange of their input or output, attention with the ring: what the cost model prices is what is
 * executed, piece by piece, and nothing that is computed changes. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/cost/kernel/machine.h"
#include "runtime/base/comm_collective.h"
#include "runtime/comm/comm_threads.h"
#include "runtime/device/device_cpu.h"
#include "runtime/run/process_run.h"
#include "tests/runtime/equivalence.h"

static void toy_laid_out(struct toy *toy, enum toy_model model, const char *layout, feature_set features)
{
    toy_make(toy, model);
    toy_lay_out(toy, layout, features);
}

static void program_of(const struct toy *toy, enum detail detail, struct program *program)
{
    struct diags diags = {0};
    ck_assert(program_build(&toy->layout, &toy->setting, detail, false, program, &diags) == STATUS_OK);
}

/* --- which steps are cut */

static const struct {
    enum toy_model model;
    const char *layout;
    feature_set features;
    int forward, backward; /* pairs of a layer */
    int slices;
} cut[] = {
    {TOY_GPT, "tp=2,sp=1", TP, 4, 2, 4},
    {TOY_LLAMA, "tp=2,sp=1", FEATURE_BIT(ASYNC_TP), 4, 2, 4},
    {TOY_GPT, "tp=2,sp=1", TP | PARALLEL, 2, 1, 4}, /* one gather and one reduction for both branches */
    {TOY_GPT, "tp=2,sp=1,recompute=full", TP, 4, 6, 4},
    {TOY_GPT, "tp=4,sp=1,recompute=selective", TP, 4, 2, 2},
    {TOY_LATENT_GPT, "tp=2,sp=1", TP, 4, 2, 4},
    {TOY_GPT, "tp=2,sp=1", 0, 0, 0, 1},
    {TOY_GPT, "tp=2", TP, 0, 0, 1}, /* an all-reduce is exchanged whole */
    {TOY_GPT, "dp=2", TP, 0, 0, 1},
    {TOY_GPT, "cp=2", 0, 1, 1, 1}, /* attention and the ring */
    {TOY_LATENT_GPT, "cp=4", 0, 1, 1, 1},
    {TOY_GPT, "tp=2,sp=1,cp=2", TP, 5, 3, 4},
};

static int count_pairs(const struct step_list *list)
{
    int n = 0;
    for (size_t i = 0; i < list->n_items; i++) {
        const struct step *step = &list->items[i];
        if (step->pieces == 1 || !step->leads)
            continue;
        ck_assert(i + 1 < list->n_items && step[1].pieces == step->pieces && !step[1].leads);
        ck_assert_int_ne(step->exchange, step[1].exchange);
        ck_assert(step->pieces == 2 || step->pieces == 4);
        n++;
    }
    return n;
}

START_TEST(pairs_are_cut_at_every_detail)
{
    struct toy toy;
    struct program program;
    struct binding binding;
    struct diags diags = {0};
    toy_laid_out(&toy, cut[_i].model, cut[_i].layout, cut[_i].features);
    for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++) {
        program_of(&toy, (enum detail)detail, &program);
        ck_assert(binding_build(&program, 0, &toy.setting, &binding, &diags) == STATUS_OK);
        int layers = (int)toy.model.layers;
        ck_assert_int_eq(count_pairs(binding_list(&binding, 0, PASS_FORWARD)), layers * cut[_i].forward);
        ck_assert_int_eq(count_pairs(binding_list(&binding, 0, PASS_BACKWARD)), layers * cut[_i].backward);
        ck_assert_int_eq(binding.slices, cut[_i].slices);
        binding_free(&binding);
        program_free(&program);
    }
}
END_TEST

/* --- runs whose exchanges and products are watched */

/* Numbers of exchanges of the tensor-parallel group by elements, and of products by rows. */
enum { KINDS_MAX = 32, RANKS_MAX = 4 };
struct tally {
    struct {
        int what; /* enum exchange, or N_EXCHANGES + enum kernel */
        int64_t size;
        int n;
    } kinds[KINDS_MAX];
    int n;
};

static void count(struct tally *tally, int what, int64_t size, int n)
{
    int i = 0;
    while (i < tally->n && (tally->kinds[i].what != what || tally->kinds[i].size != size))
        i++;
    ck_assert_int_lt(i, KINDS_MAX);
    tally->n += i == tally->n;
    tally->kinds[i].what = what;
    tally->kinds[i].size = size;
    tally->kinds[i].n += n;
}

static int counted(const struct tally *tally, int what, int64_t size)
{
    for (int i = 0; i < tally->n; i++)
        if (tally->kinds[i].what == what && tally->kinds[i].size == size)
            return tally->kinds[i].n;
    return 0;
}

/* The backends' tables with functions in front. */
static struct {
    struct comm_api comm;
    struct device_api device;
    const struct comm_api *own_comm;
    const struct device_api *own_device;
    struct tally seen; /* by rank 0 */
    bool row_by_row;   /* products are computed so */
} watched;

static enum status watch_exchange(struct communicator *c, struct device_stream *stream, const struct exchange_call *call,
                                  struct diags *diags)
{
    bool parts = call->exchange == EXCHANGE_ALL_GATHER || call->exchange == EXCHANGE_REDUCE_SCATTER ||
                 (call->exchange == EXCHANGE_BROADCAST && call->element == ELEMENT_FP32);
    if (c->world->rank == 0 && parts)
        count(&watched.seen, call->exchange, call->count, 1);
    return watched.own_comm->enqueue(c, stream, call, diags);
}

static enum status launch_rows(struct device_stream *stream, const struct kernel_call *whole, struct diags *diags)
{
    enum status status = STATUS_OK;
    for (int64_t r = 0; r < whole->linear.t && status == STATUS_OK; r++) {
        struct kernel_call row = *whole;
        row.linear.t = 1;
        row.linear.x = (const float *)whole->linear.x + r * whole->linear.in;
        row.linear.y = (float *)whole->linear.y + r * whole->linear.out;
        status = watched.own_device->launch(stream, &row, diags);
    }
    return status;
}

static enum status watch_launch(struct device_stream *stream, const struct kernel_call *call, struct diags *diags)
{
    bool product = call->kernel == KERNEL_LINEAR_FORWARD || call->kernel == KERNEL_LINEAR_BACKWARD_INPUT;
    if (stream->device->rank == 0 && product)
        count(&watched.seen, N_EXCHANGES + (int)call->kernel, call->linear.t, 1);
    return watched.row_by_row && call->kernel == KERNEL_LINEAR_FORWARD ? launch_rows(stream, call, diags)
                                                                       : watched.own_device->launch(stream, call, diags);
}

struct worker {
    pthread_t thread;
    struct hub *hub;
    int rank;
    const struct program *program;
    const struct setting *setting;
    double loss;
};

static void *worker_main(void *argument)
{
    struct worker *w = argument;
    struct thread_run_options options = {.steps = 1, .seed = 1};
    struct thread_run run;
    struct diags diags = {0};
    struct device *device;
    struct world *world = hub_join(w->hub, w->rank);
    ck_assert(device_cpu_open(w->rank, hub_epoch(w->hub), 0, &device, &diags) == STATUS_OK);
    world->api = &watched.comm;
    device->api = &watched.device;
    ck_assert(run_as_rank(w->program, w->setting, &options, device, world, &run, &diags) == STATUS_OK);
    w->loss = run.steps[0].loss;
    thread_run_free(&run);
    return NULL;
}

/* Tables of the backends are the same for all ranks. */
static void watch(struct hub *hub, bool row_by_row)
{
    struct diags diags = {0};
    struct device *device;
    struct world *world = hub_join(hub, 0);
    ck_assert(device_cpu_open(0, hub_epoch(hub), 0, &device, &diags) == STATUS_OK);
    watched.own_comm = world->api;
    watched.own_device = device->api;
    watched.comm = *world->api;
    watched.device = *device->api;
    watched.comm.enqueue = watch_exchange;
    watched.device.launch = watch_launch;
    watched.seen = (struct tally){0};
    watched.row_by_row = row_by_row;
    world->api->close(world);
    device->api->close(device);
}

/* The loss of one step. */
static double run_watched(const struct program *program, const struct toy *toy, bool row_by_row)
{
    struct worker workers[RANKS_MAX];
    struct hub *hub = hub_new(program->n_ranks, 600 * NANOS_PER_SECOND);
    ck_assert_int_le(program->n_ranks, RANKS_MAX);
    watch(hub, row_by_row);
    for (int r = 0; r < program->n_ranks; r++) {
        workers[r] = (struct worker){.hub = hub, .rank = r, .program = program, .setting = &toy->setting};
        ck_assert_int_eq(pthread_create(&workers[r].thread, NULL, worker_main, &workers[r]), 0);
    }
    for (int r = 0; r < program->n_ranks; r++)
        pthread_join(workers[r].thread, NULL);
    hub_free(hub);
    return workers[0].loss;
}

/* --- what is enqueued, against what is priced */

static int pieces_of(const struct program *program, const struct machine *machine, const struct op *exchange)
{
    int32_t work = exchange->work;
    if (exchange->kind != OP_COLLECTIVE || work < 0 || program->works.items[work].kind != WORK_OVERLAPPED)
        return 1;
    int pieces = work_parts_of(machine, &program->works, work).pieces;
    return pieces > 1 ? pieces : 1;
}

/* What the works of rank 0's operations say. */
static struct tally priced(const struct program *program, const struct setting *setting)
{
    struct machine machine = machine_of(&program->layout, setting);
    struct tally tally = {0};
    for (uint32_t i = 0; i + 1 < program->scripts[0].n_ops; i++) {
        const struct op *op = &program->ops[program->scripts[0].first_op + i];
        const struct work *work = op->work >= 0 ? &program->works.items[op->work] : NULL;
        int exchange = op->collective == COLLECTIVE_ALL_GATHER ? EXCHANGE_ALL_GATHER : EXCHANGE_REDUCE_SCATTER;
        int kernel = N_EXCHANGES + (op->pass == PASS_FORWARD ? KERNEL_LINEAR_FORWARD : KERNEL_LINEAR_BACKWARD_INPUT);
        int own = pieces_of(program, &machine, op), next = pieces_of(program, &machine, op + 1);
        if (op->kind == OP_COLLECTIVE && op->role == GROUP_TP)
            count(&tally, exchange, (int64_t)(op->bytes / 2) / program->layout.tp / own, own);
        else if (op->kind == OP_COMPUTE && work && work->kind == WORK_GEMM &&
                 work->gemm.output_bytes == 2) /* no weight gradient */
            count(&tally, kernel, work->gemm.m / next, next);
    }
    return tally;
}

START_TEST(as_many_pieces_as_are_priced)
{
    static const struct variant variants[] = {
        {"tp=2,sp=1", TP}, {"tp=4,sp=1,mb=2", TP}, {"tp=2,sp=1", TP | PARALLEL}, {"tp=2,sp=1", 0}};
    struct toy toy;
    struct program program;
    toy_laid_out(&toy, TOY_GPT, variants[_i].layout, variants[_i].features);
    program_of(&toy, DETAIL_KERNEL, &program);
    (void)run_watched(&program, &toy, false);
    struct tally expected = priced(&program, &toy.setting);
    for (int i = 0; i < expected.n; i++) {
        int seen = counted(&watched.seen, expected.kinds[i].what, expected.kinds[i].size);
        ck_assert_msg(seen == expected.kinds[i].n, "kind %d of %lld: %d instead of %d", expected.kinds[i].what,
                      (long long)expected.kinds[i].size, seen, expected.kinds[i].n);
    }
    program_free(&program);
}
END_TEST

/* Of a ring in pieces, every rank's keys and values come by themselves. */
START_TEST(a_ring_comes_rank_by_rank)
{
    static const char *const layouts[] = {"cp=2", "cp=4", "cp=2,mb=2"};
    struct toy toy;
    struct program program;
    int expected = 0, seen = 0;
    toy_laid_out(&toy, TOY_GPT, layouts[_i], 0);
    program_of(&toy, DETAIL_KERNEL, &program);
    (void)run_watched(&program, &toy, false);
    struct machine machine = machine_of(&program.layout, &toy.setting);
    for (uint32_t i = 0; i < program.scripts[0].n_ops; i++) {
        const struct op *op = &program.ops[program.scripts[0].first_op + i];
        if (op->kind == OP_COLLECTIVE && op->role == GROUP_CP && pieces_of(&program, &machine, op) > 1)
            expected += program.layout.cp;
    }
    for (int i = 0; i < watched.seen.n; i++)
        seen += watched.seen.kinds[i].what == EXCHANGE_BROADCAST ? watched.seen.kinds[i].n : 0;
    ck_assert_int_gt(expected, 0);
    ck_assert_int_eq(seen, expected);
    program_free(&program);
}
END_TEST

/* --- what is computed */

/* Every row of a forward pass is computed by itself but for what libraries make of a product, which may sum in another order
 * where it has fewer rows: with each row a product of its own the loss has the same bits, whole and in pieces. In mixtures tokens
 * stand in another order before their experts, whose products are not watched. */
START_TEST(the_forward_pass_keeps_its_bits)
{
    static const char *const layouts[] = {"tp=2,sp=1", "tp=4,sp=1,mb=2", "tp=2,sp=1,pp=2,schedule=1f1b"};
    static const enum toy_model dense[] = {TOY_GPT,   TOY_LLAMA,      TOY_WINDOW,        TOY_ALIBI,
                                           TOY_NORMS, TOY_LATENT_GPT, TOY_PREDICTION_GPT};
    const feature_set features[] = {0, TP};
    double loss[2];
    for (int i = 0; i < 2; i++) {
        struct toy toy;
        struct program program;
        toy_laid_out(&toy, dense[_i / 3], layouts[_i % 3], features[i]);
        toy.job.dropout = _i % 2 ? 0.25 : 0;
        program_of(&toy, DETAIL_KERNEL, &program);
        loss[i] = run_watched(&program, &toy, true);
        program_free(&program);
    }
    ck_assert_msg(loss[0] == loss[1], "%s: %.17g, in pieces %.17g", layouts[_i % 3], loss[0], loss[1]);
}
END_TEST

START_TEST(two_runs_give_the_same_bits)
{
    struct toy toy;
    struct thread_run a, b;
    struct thread_run_options options = {.steps = 3, .seed = 3, .rate = 1e-2f, .gradients = true};
    toy_laid_out(&toy, TOY_LLAMA, "tp=4,sp=1,dp=2,zero=1,recompute=full", TP | DP);
    toy.job.dropout = 0.125;
    toy_run(&toy, (enum detail)_i, &options, &a, NULL);
    toy_run(&toy, (enum detail)_i, &options, &b, NULL);
    ck_assert(a.steps[2].loss == b.steps[2].loss);
    ck_assert(memcmp(a.gradients, b.gradients, (size_t)a.n_gradients * sizeof *a.gradients) == 0);
    ck_assert(memcmp(a.weights, b.weights, (size_t)a.n_gradients * sizeof *a.weights) == 0);
    thread_run_free(&a);
    thread_run_free(&b);
}
END_TEST

/* --- what goes wrong ends */

START_TEST(a_lost_rank_ends_all)
{
    struct toy toy;
    struct diags diags = {0};
    struct thread_run run;
    struct injection injection = {.trouble = _i % 2 ? TROUBLE_HANGS : TROUBLE_KILLED, .rank = 1, .step = 1};
    struct thread_run_options options = {
        .steps = 3, .seed = 1, .timeout = 300 * (NANOS_PER_SECOND / 1000), .injection = &injection};
    toy_laid_out(&toy, TOY_GPT, "tp=2,sp=1,dp=2,zero=1", TP | DP);
    ck_assert(toy_run(&toy, (enum detail)(_i / 2), &options, &run, &diags) == STATUS_FAILED);
    ck_assert_uint_eq(diags.n_items, 4); /* every rank says why it ended */
    diags_free(&diags);
}
END_TEST

/* --- blocks */

/* Two members with six elements each in three blocks: members take turns in the whole. */
START_TEST(blocks_of_members_take_turns)
{
    const float parts[] = {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15};
    const float expected[] = {0, 1, 10, 11, 2, 3, 12, 13, 4, 5, 14, 15};
    const struct exchange_call call = {.element = ELEMENT_FP32, .count = 6, .blocks = 3};
    float whole[12], back[12];
    parts_to_whole(&call, 2, parts, whole);
    ck_assert(memcmp(whole, expected, sizeof whole) == 0);
    parts_of_whole(&call, 2, whole, back);
    ck_assert(memcmp(back, parts, sizeof back) == 0);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {pairs_are_cut_at_every_detail, COUNT(cut)}, {as_many_pieces_as_are_priced, 4}, {a_ring_comes_rank_by_rank, 3},
        {the_forward_pass_keeps_its_bits, 21},       {two_runs_give_the_same_bits, 3},  {a_lost_rank_ends_all, 6},
        {blocks_of_members_take_turns, 1},
    };
    return toy_suite("runtime pipelined", tests, COUNT(tests));
}
