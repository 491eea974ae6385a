/* The CUDA backend without a GPU (emulated_cuda.c, emulated_nccl.c): programs on it against the CPU backend, ranks that exchange
 * through NCCL's interface, a rank alone, a probe. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/memory.h"
#include "model/program/program.h"
#include "runtime/cuda/cuda_comm.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/probe/probe.h"
#include "runtime/run/process_run.h"
#include "tests/layout/offloaded.h"
#include "tests/runtime/toys.h"
#include "tests/suite.h"

/* Heads of 64, and all else small: the emulation runs every thread of every block. */
static void toy_of(struct toy *toy, enum toy_model model, const char *layout, feature_set turned_over)
{
    toy_make(toy, model);
    toy->model.layers = 2;
    toy->model.hidden = 64;
    toy->model.ffn_hidden = 64;
    toy->model.heads = 2;
    toy->model.kv_heads = model == TOY_GPT ? 2 : 1;
    toy->model.head_dim = 64;
    toy->job.global_batch = 2;
    toy_lay_out(toy, layout, turned_over);
}

static void open_gpu(int rank, struct device **device)
{
    struct diags diags = {0};
    ck_assert(cuda_device_open(rank, 0, 0, device, &diags) == STATUS_OK);
}

/* Kernels made for the emulated GPU agree with the portable ones, so nothing is said; a device asked to be portable has nothing
 * to try. */
START_TEST(kernels_are_tried)
{
    struct diags diags = {0};
    struct device *device;
    bool portable = true;
    open_gpu(0, &device);
    ck_assert(cuda_device_try_kernels(device, &portable, &diags) == STATUS_OK);
    ck_assert(!portable);
    cuda_device_use_portable(device);
    ck_assert(cuda_device_try_kernels(device, &portable, &diags) == STATUS_OK);
    ck_assert(!portable);
    ck_assert_uint_eq(diags.n_items, 0);
    ck_assert_uint_eq(device->in_use, 0);
    device->api->close(device);
    diags_free(&diags);
}
END_TEST

/* One of several ranks has all kernels loaded before exchanges are on the device, unless the user wants it otherwise. */
START_TEST(kernels_are_loaded_first)
{
    unsetenv("CUDA_MODULE_LOADING");
    ck_assert_int_eq(cuda_device_count(), 1);
    ck_assert_ptr_null(getenv("CUDA_MODULE_LOADING"));
    setenv("MSIM_RANK", "1", 1);
    setenv("MSIM_RANKS", "2", 1);
    ck_assert_int_eq(cuda_device_count(), 1);
    ck_assert_str_eq(getenv("CUDA_MODULE_LOADING"), "EAGER");
    setenv("CUDA_MODULE_LOADING", "LAZY", 1);
    ck_assert_int_eq(cuda_device_count(), 1);
    ck_assert_str_eq(getenv("CUDA_MODULE_LOADING"), "LAZY");
}
END_TEST

static double gradient_error(const struct thread_run *a, const struct thread_run *b)
{
    double square = 0, scale = 0;
    for (int64_t i = 0; i < a->n_gradients; i++) {
        double difference = (double)a->gradients[i] - (double)b->gradients[i];
        square += difference * difference;
        scale += (double)b->gradients[i] * (double)b->gradients[i];
    }
    return sqrt(square / scale);
}

/* The short tier takes every second model and every fourth case. */
enum { MODELS_APART = 2, CASES_APART = 4 };

static int in_turn(int i, int apart)
{
    return suite_is_long() ? i : apart * i;
}

START_TEST(one_rank_equals_the_cpu)
{
    struct toy toy;
    struct program program;
    struct diags diags = {0};
    struct thread_run cpu, gpu;
    struct device *device;
    struct world *world;
    struct thread_run_options options = {.steps = 3, .seed = 5, .rate = 1e-3f, .gradients = true};
    struct cuda_comm_options alone = {.n_ranks = 1};
    static const enum toy_model models[] = {TOY_GPT,        TOY_LLAMA, TOY_MIXTURE,   TOY_NORMS, TOY_LATENT_GPT,
                                            TOY_PREDICTION, TOY_MAMBA, TOY_LIGHTNING, TOY_DELTA, TOY_KIMI};
    toy_of(&toy, models[in_turn(_i, MODELS_APART)], "mb=1", 0);
    ck_assert(program_build(&toy.layout, &toy.setting, DETAIL_KERNEL, false, &program, &diags) == STATUS_OK);
    ck_assert(run_on_threads(&program, &toy.setting, &options, &cpu, &diags) == STATUS_OK);
    open_gpu(0, &device);
    ck_assert(cuda_comm_open(&alone, device, &world, &diags) == STATUS_OK);
    ck_assert_msg(run_as_rank(&program, &toy.setting, &options, device, world, &gpu, &diags) == STATUS_OK, "%s",
                  diags.n_items ? diags.items[0].text : "");
    for (int s = 0; s < 3; s++)
        ck_assert_msg(fabs(gpu.steps[s].loss - cpu.steps[s].loss) <= 1e-2 * cpu.steps[s].loss, "step %d: %g, on the CPU %g", s,
                      gpu.steps[s].loss, cpu.steps[s].loss);
    ck_assert_double_le(gradient_error(&gpu, &cpu), 3e-2);
    thread_run_free(&cpu);
    thread_run_free(&gpu);
    program_free(&program);
    diags_free(&diags);
}
END_TEST

/* --- several ranks: threads that stand for processes */

struct process {
    pthread_t thread;
    const char *folder;
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
    struct world *world;
    struct cuda_comm_options options = {
        .rank = p->rank, .n_ranks = p->program->n_ranks, .folder = p->folder, .timeout = 600 * NANOS_PER_SECOND};
    p->status = cuda_device_open(p->rank, 0, 0, &device, &p->diags);
    if (p->status == STATUS_OK)
        p->status = cuda_comm_open(&options, device, &world, &p->diags);
    if (p->status == STATUS_OK)
        p->status = run_as_rank(p->program, p->setting, p->options, device, world, &p->result, &p->diags);
    return NULL;
}

static void remove_folder(const char *folder, int n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/id", folder);
    unlink(path);
    for (int r = 0; r < n; r++) {
        snprintf(path, sizeof path, "%s/rank.%d", folder, r);
        unlink(path);
    }
    ck_assert_int_eq(rmdir(folder), 0); /* nobody gave up */
}

#define EAGER   FEATURE_BIT(FUSED_OPS)                          /* turned over: nothing is fused */
#define PYTORCH (FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(COMPILE)) /* compiled instead of fused by hand */

static const struct rank_case {
    enum toy_model model;
    const char *layout;
    feature_set features; /* turned over */
    int head_dim, seq_len;
    double clip;
    enum precision precision; /* 0: as the toy is */
    enum optimizer optimizer;
} cases_of_ranks[] = {{.model = TOY_GPT, .layout = "tp=2,sp=1,mb=1"},
                      {.model = TOY_GPT, .layout = "tp=2,sp=1,mb=1", .features = FEATURE_BIT(TP_OVERLAP)},
                      {.model = TOY_GPT, .layout = "tp=2,mb=1"},
                      {.model = TOY_GPT, .layout = "pp=2,mb=1,schedule=1f1b"},
                      {.model = TOY_GPT, .layout = "dp=2,zero=0,mb=1"},
                      {.model = TOY_GPT, .layout = "dp=2,zero=1,mb=1"},
                      {.model = TOY_GPT, .layout = "dp=2,zero=3,mb=1"},
                      {.model = TOY_GPT, .layout = "tp=2,sp=1,pp=2,mb=1,schedule=1f1b"},
                      {.model = TOY_LLAMA, .layout = "cp=2,zero=1,mb=1"},
                      {.model = TOY_LLAMA, .layout = "cp=2,cp_comm=all_gather,zero=1,mb=1"},
                      {.model = TOY_LLAMA, .layout = "cp=2,cp_comm=a2a,zero=1,mb=1"},
                      {.model = TOY_LATENT_NORMS, .layout = "cp=2,cp_comm=a2a,zero=1,mb=1"},
                      {.model = TOY_LLAMA, .layout = "cp=4,cp_comm=a2a:2+ring,zero=1,mb=1"},
                      {.model = TOY_MIXTURE, .layout = "dp=2,ep=2,zero=1,mb=1"},
                      {.model = TOY_MIXTURE, .layout = "tp=2,sp=1,mb=1"},
                      {.model = TOY_PREDICTION, .layout = "tp=2,sp=1,mb=1"},
                      {.model = TOY_PREDICTION_GPT, .layout = "pp=2,mb=1,schedule=1f1b"},
                      /* matrices apart, each with its exchange; gathered logits; sums of gradients */
                      {.model = TOY_LLAMA, .layout = "tp=2,sp=1,mb=1", .features = EAGER},
                      {.model = TOY_LLAMA, .layout = "tp=2,sp=0,mb=1", .features = EAGER},
                      {.model = TOY_LLAMA, .layout = "tp=2,sp=1,mb=1,recompute=selective", .features = PYTORCH},
                      {.model = TOY_LLAMA, .layout = "dp=2,zero=3,mb=1,recompute=full", .features = PYTORCH},
                      /* modules repeated one by one */
                      {.model = TOY_GPT, .layout = "tp=2,sp=1,mb=1,recompute=core_attn+layernorm+mlp"},
                      {.model = TOY_LATENT_NORMS, .layout = "tp=2,sp=1,mb=1,recompute=layernorm+mla_up_proj+mlp_act"},
                      {.model = TOY_MIXTURE, .layout = "dp=2,ep=2,zero=1,mb=1,recompute=layernorm+moe_act"},
                      /* some layers whole, and groups of them */
                      {.model = TOY_GPT, .layout = "mb=1,recompute=full:1"},
                      {.model = TOY_LLAMA, .layout = "tp=2,sp=1,mb=1,recompute=full:groups2"},
                      /* clamped gates, experts' biases, windows; split experts of shares that are not alike */
                      {.model = TOY_OSS, .layout = "dp=2,ep=2,zero=1,mb=1"},
                      {.model = TOY_OSS, .layout = "tp=2,sp=0,mb=1", .seq_len = 15},
                      /* latent attention with biases and norms of heads, in ranges */
                      {.model = TOY_LATENT_NORMS, .layout = "tp=2,sp=1,mb=1"},
                      {.model = TOY_LATENT_NORMS, .layout = "cp=2,zero=1,mb=1"},
                      /* heads of no size that the packed kernels have */
                      {.model = TOY_LLAMA, .layout = "dp=2,zero=1,mb=1", .head_dim = 24},
                      {.model = TOY_GPT, .layout = "pp=2,mb=1,schedule=zb-2p", .clip = 0.5},
                      /* operands of bytes: as tensor cores take them; experts', and sizes that they do not take */
                      {.model = TOY_GPT, .layout = "tp=2,sp=1,mb=1,offload=activations"},
                      {.model = TOY_GPT, .layout = "pp=2,mb=1,schedule=1f1b,offload=activations"},
                      {.model = TOY_GPT, .layout = "tp=2,sp=1,mb=1,offload=activations:50%"},
                      {.model = TOY_LLAMA, .layout = "dp=2,zero=3,mb=1,offload=activations"},
                      {.model = TOY_GPT, .layout = "tp=2,sp=1,mb=1,offload=activations", .precision = PRECISION_FP8},
                      {.model = TOY_GPT, .layout = "tp=2,sp=1,mb=1", .precision = PRECISION_FP8},
                      {.model = TOY_MIXTURE, .layout = "tp=2,sp=1,mb=1", .optimizer = OPTIMIZER_MUON, .clip = 1},
                      {.model = TOY_LLAMA, .layout = "dp=2,zero=1,mb=1", .optimizer = OPTIMIZER_MUON},
                      /* mixers with a state */
                      {.model = TOY_MAMBA, .layout = "tp=2,sp=1,mb=1"},
                      {.model = TOY_MAMBA, .layout = "tp=2,sp=1,mb=1", .seq_len = 70}, /* a chunk, and more */
                      {.model = TOY_DELTA, .layout = "tp=2,sp=1,mb=1,recompute=full"},
                      {.model = TOY_DELTA, .layout = "tp=2,sp=1,mb=1", .seq_len = 70},
                      /* logits in pieces */
                      {.model = TOY_LLAMA, .layout = "tp=2,sp=1,mb=1", .features = FEATURE_BIT(FUSED_LINEAR_LOSS)},
                      {.model = TOY_GPT, .layout = "tp=2,sp=1,mb=1", .features = FEATURE_BIT(CUT_LOSS)},
                      {.model = TOY_MIXTURE, .layout = "dp=2,ep=2,zero=3,mb=1", .precision = PRECISION_FP8, .seq_len = 10}};
enum { N_CASES_OF_RANKS = sizeof cases_of_ranks / sizeof cases_of_ranks[0] };

static void toy_of_case(struct toy *toy, const struct rank_case *c)
{
    toy_of(toy, c->model, c->layout, c->features);
    toy->job.seq_len = c->seq_len ? c->seq_len : toy->job.seq_len;
    toy->job.clip = c->clip;
    toy->job.optimizer = c->optimizer; /* the first is the toys' own */
    toy->job.muon_tp = MUON_DUPLICATED;
    if (c->precision) {
        toy->job.precision = c->precision;
        toy->cluster.gpu.peak_flops[c->precision] = toy->cluster.gpu.peak_flops[PRECISION_BF16];
        toy->cluster.gpu.gemm[c->precision] = toy->cluster.gpu.gemm[PRECISION_BF16];
    }
    toy->model.head_dim = c->head_dim ? c->head_dim : toy->model.head_dim;
}

static void run_processes(const struct toy *toy, const struct program *program, const struct thread_run_options *options,
                          const char *folder, struct process *processes)
{
    for (int r = 0; r < program->n_ranks; r++) {
        processes[r] =
            (struct process){.folder = folder, .rank = r, .program = program, .setting = &toy->setting, .options = options};
        ck_assert_int_eq(pthread_create(&processes[r].thread, NULL, process_main, &processes[r]), 0);
    }
    for (int r = 0; r < program->n_ranks; r++)
        pthread_join(processes[r].thread, NULL);
    for (int r = 0; r < program->n_ranks; r++) {
        const struct process *p = &processes[r];
        ck_assert_msg(p->status == STATUS_OK, "rank %d: %s", r, p->diags.n_items ? p->diags.items[0].text : "");
    }
}

START_TEST(ranks_equal_the_cpu)
{
    struct toy toy;
    struct program program;
    struct diags diags = {0};
    struct thread_run cpu;
    struct process processes[4];
    char folder[] = "/tmp/msim-emulated-XXXXXX";
    struct thread_run_options options = {.steps = 2, .seed = 5, .rate = 1e-3f, .gradients = true};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    toy_of_case(&toy, &cases_of_ranks[in_turn(_i, CASES_APART)]);
    ck_assert(program_build(&toy.layout, &toy.setting, DETAIL_KERNEL, false, &program, &diags) == STATUS_OK);
    ck_assert(run_on_threads(&program, &toy.setting, &options, &cpu, &diags) == STATUS_OK);
    run_processes(&toy, &program, &options, folder, processes);
    for (int r = 0; r < program.n_ranks; r++) {
        struct process *p = &processes[r];
        for (int s = 0; s < 2; s++)
            ck_assert_double_le(fabs(p->result.steps[s].loss - cpu.steps[s].loss), 1e-2 * cpu.steps[s].loss);
        /* what is near a border between two bytes in bf16 goes to the other one than in fp32 */
        ck_assert_double_le(gradient_error(&p->result, &cpu), toy.job.precision == PRECISION_FP8 ? 1e-1 : 3e-2);
        ck_assert_uint_eq(p->result.timeline.n_spans, cpu.timeline.n_spans);
        thread_run_free(&p->result);
    }
    remove_folder(folder, program.n_ranks);
    thread_run_free(&cpu);
    program_free(&program);
    diags_free(&diags);
}
END_TEST

static const struct {
    enum toy_model model;
    const char *layout, *offload;
    enum optimizer optimizer;
    enum precision precision;
} cases_of_states[] = {{TOY_GPT, "tp=2,sp=1,mb=1", "optimizer", OPTIMIZER_ADAM, 0},
                       {TOY_LLAMA, "pp=2,mb=1,schedule=1f1b", "optimizer:50%", OPTIMIZER_SGD, 0},
                       {TOY_GPT, "dp=2,zero=1,mb=1", "optimizer", OPTIMIZER_ADAM, PRECISION_FP8},
                       {TOY_LLAMA, "dp=2,zero=3,mb=1", "optimizer+parameters", OPTIMIZER_ADAM, 0},
                       {TOY_MIXTURE, "dp=2,ep=2,zero=3,mb=1", "optimizer:70%+parameters:30%", OPTIMIZER_ADAM, 0}};

/* The host's cores do what the emulated kernels do, to the bit. */
START_TEST(states_on_the_host_change_no_bit)
{
    struct thread_run_options options = {.steps = 3, .seed = 5, .rate = 1e-2f, .gradients = true};
    struct process processes[2][2];
    for (int offloads = 0; offloads < 2; offloads++) {
        char folder[] = "/tmp/msim-emulated-XXXXXX";
        struct toy toy;
        struct program program;
        struct diags diags = {0};
        struct rank_case c = {cases_of_states[_i].model, cases_of_states[_i].layout, .precision = cases_of_states[_i].precision,
                              .clip = 0.5};
        ck_assert_ptr_nonnull(mkdtemp(folder));
        toy_of_case(&toy, &c);
        toy.job.optimizer = cases_of_states[_i].optimizer;
        toy.layout.offload = offloaded(offloads ? cases_of_states[_i].offload : "none");
        ck_assert(program_build(&toy.layout, &toy.setting, DETAIL_KERNEL, false, &program, &diags) == STATUS_OK);
        run_processes(&toy, &program, &options, folder, processes[offloads]);
        remove_folder(folder, program.n_ranks);
        program_free(&program);
    }
    const struct thread_run *a = &processes[0][0].result, *b = &processes[1][0].result;
    ck_assert(memcmp(&a->steps[2], &b->steps[2], offsetof(struct thread_run_step, duration)) == 0);
    ck_assert_mem_eq(a->gradients, b->gradients, (size_t)a->n_gradients * sizeof(float));
    ck_assert_mem_eq(a->weights, b->weights, (size_t)a->n_gradients * sizeof(float));
    ck_assert_uint_gt(b->host_peak[0], a->host_peak[0]);
    for (int i = 0; i < 4; i++)
        thread_run_free(&processes[i / 2][i % 2].result);
}
END_TEST

/* A rank leaves in the middle of a step: the other one learns it and both end. Communicators are aborted, so that neither waits
 * for the kernels of a rank that does not know yet (emulated_nccl.c). */
START_TEST(a_rank_leaves)
{
    struct toy toy;
    struct program program;
    struct diags diags = {0};
    struct process processes[2];
    char folder[] = "/tmp/msim-emulated-XXXXXX", path[64];
    struct injection injection = {.trouble = TROUBLE_KILLED, .rank = 1, .step = 1};
    struct thread_run_options options = {.steps = 3, .seed = 5, .rate = 1e-3f, .injection = &injection};
    static const char *const layouts[] = {"tp=2,sp=1,mb=1", "pp=2,mb=1,schedule=1f1b", "dp=2,zero=3,mb=1"};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    toy_of(&toy, TOY_GPT, layouts[_i], 0);
    ck_assert(program_build(&toy.layout, &toy.setting, DETAIL_KERNEL, false, &program, &diags) == STATUS_OK);
    for (int r = 0; r < 2; r++) {
        processes[r] =
            (struct process){.folder = folder, .rank = r, .program = &program, .setting = &toy.setting, .options = &options};
        ck_assert_int_eq(pthread_create(&processes[r].thread, NULL, process_main, &processes[r]), 0);
    }
    for (int r = 0; r < 2; r++)
        pthread_join(processes[r].thread, NULL);
    for (int r = 0; r < 2; r++) {
        ck_assert_int_eq(processes[r].status, STATUS_FAILED);
        ck_assert_uint_ge(processes[r].diags.n_items, 1);
        diags_free(&processes[r].diags);
    }
    snprintf(path, sizeof path, "%s/abandoned", folder);
    ck_assert_int_eq(unlink(path), 0);
    remove_folder(folder, 2);
    program_free(&program);
    diags_free(&diags);
}
END_TEST

/* --- one rank, and how fast */

START_TEST(a_rank_alone)
{
    struct toy toy;
    struct program program;
    struct diags diags = {0};
    struct thread_run run;
    struct device *device;
    struct thread_run_options options = {.steps = 2, .seed = 5, .rate = 1e-3f};
    toy_of(&toy, TOY_LLAMA, "tp=2,sp=1,pp=2,mb=1,schedule=1f1b", FEATURE_BIT(TP_OVERLAP));
    ck_assert(program_build(&toy.layout, &toy.setting, DETAIL_KERNEL, false, &program, &diags) == STATUS_OK);
    open_gpu(_i, &device);
    ck_assert_msg(run_alone(&program, &toy.setting, &options, _i, device, &run, &diags) == STATUS_OK, "%s",
                  diags.n_items ? diags.items[0].text : "");
    ck_assert_uint_eq(run.timeline.n_spans, program.scripts[program.ranks[_i].script].n_ops);
    ck_assert_int_gt(run.steps[1].duration, 0);
    thread_run_free(&run);
    program_free(&program);
    diags_free(&diags);
}
END_TEST

/* Every row is a time, activations have two bytes, and the fitted entry predicts with them. */
START_TEST(a_probe_of_a_job)
{
    struct toy toy;
    struct diags diags = {0};
    struct device *device;
    struct world *world;
    struct probe_result result;
    struct cluster cluster;
    struct cuda_comm_options alone = {.n_ranks = 1};
    static const enum toy_model models[] = {TOY_LLAMA, TOY_MIXTURE, TOY_LATENT};
    toy_of(&toy, models[_i], "mb=1", 0);
    struct probe_options options = {
        .ranks = 1, .seconds = 1e-4, .layout = &toy.layout, .setting = &toy.setting, .flush_bytes = 1 << 12};
    struct probe_device what = {.name = "emulated", .memory_bytes = 1e9};
    open_gpu(0, &device);
    ck_assert(cuda_comm_open(&alone, device, &world, &diags) == STATUS_OK);
    ck_assert_msg(probe_rank(&options, device, world, &result, &diags) == STATUS_OK, "%s",
                  diags.n_items ? diags.items[0].text : "");
    ck_assert_uint_eq(result.element_bytes, 2);
    for (int i = 1; i < result.n_rows; i++)
        ck_assert_msg(result.rows[i].seconds > 0 && result.rows[i].seconds < 10, "%s: %g s", result.rows[i].op,
                      result.rows[i].seconds);
    probe_fit(&options, &result, &what, 1, &cluster);
    ck_assert(cluster.gpu.peak_flops[PRECISION_BF16] > 0 && cluster.gpu.hbm_rate > 0 && probe_copy_rate(&result) > 0);
    ck_assert_str_eq(cluster.gpu.name, "emulated");
    probe_result_free(&result);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {one_rank_equals_the_cpu, suite_draws(10, MODELS_APART)},
        {ranks_equal_the_cpu, suite_draws(N_CASES_OF_RANKS, CASES_APART)},
        {states_on_the_host_change_no_bit, (int)(sizeof cases_of_states / sizeof cases_of_states[0])},
        {a_rank_leaves, 3},
        {a_rank_alone, 4},
        {a_probe_of_a_job, 3},
        {kernels_are_tried, 1},
        {kernels_are_loaded_first, 1},
    };
    return toy_suite("CUDA backend, emulated", tests, COUNT(tests));
}
