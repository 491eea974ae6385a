/*
 * program_check FOLDER STEPS LAYOUT - a small transformer's training program executed by the runtime on GPUs, a process per rank,
 * against one rank on the CPU in fp32: the losses of all steps within bf16's error. Started as exchange_check is. Exit 77 without
 * a GPU. Rank 0 prints CSV: layout,step,cpu_loss,cuda_loss,relative_error,step_ms,result
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/layout/ranks.h"
#include "model/program/program.h"
#include "model/program/verify.h"
#include "runtime/comm/comm_threads.h"
#include "runtime/cuda/cuda_comm.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/device/device_cpu.h"
#include "runtime/run/executor.h"

enum { EXIT_SKIPPED = 77, MOST_STEPS = 64, TIMEOUT_S = 60 };
static const double TOLERANCE = 2e-2; /* bf16 keeps 8 bits; losses are means over many tokens */
static const float RATE = 1e-3f;

struct setup {
    struct transformer model;
    struct cluster cluster;
    struct job job;
    struct layout layout;
    struct setting setting;
    struct data_source data;
};

struct outcome {
    double losses[MOST_STEPS], milliseconds[MOST_STEPS];
};

/* On which it is worth it to cut products and their exchanges into pieces. */
static struct gpu slow_gpu(enum precision precision)
{
    struct gpu gpu = {.sms = 1,
                      .hbm_rate = 1e11,
                      .hbm_bytes = 1e10,
                      .sustained_clock = 1,
                      .memory = {.bandwidth_fraction = 1},
                      .attention = {.forward_fraction = 1, .backward_fraction = 1},
                      .nccl_rate = 2e9};
    gpu.peak_flops[PRECISION_BF16] = gpu.peak_flops[precision] = 1e12;
    gpu.gemm[PRECISION_BF16] = gpu.gemm[precision] = (struct gemm_parameters){.peak_fraction = 1, .memory_fraction = 1};
    return gpu;
}

static void setup_make(struct setup *s, const struct layout *layout, enum precision precision)
{
    *s = (struct setup){.model = {.name = "toy",
                                  .layers = 4,
                                  .hidden = 256,
                                  .ffn_hidden = 512,
                                  .gated_mlp = true,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_dim = 64,
                                  .vocab = 512,
                                  .max_seq_len = 128,
                                  .norm = NORM_RMS,
                                  .position = POSITION_ROTARY},
                        .job = {.global_batch = 8,
                                .seq_len = 128,
                                .precision = precision,
                                .gradient_precision = PRECISION_FP32,
                                .optimizer = OPTIMIZER_ADAM,
                                .features = FEATURES_USUAL},
                        .layout = *layout};
    s->cluster.gpu = slow_gpu(precision);
    s->cluster.nodes = 1;
    s->cluster.gpu.nvlink_domain = s->cluster.gpus_per_node = s->cluster.nvlink_domain = 64;
    s->layout.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(TP_OVERLAP);
    if (s->layout.pp == 1)
        s->layout.schedule = SCHEDULE_NONE;
    s->setting = (struct setting){&s->model, &s->cluster, &s->job, layout->tp * layout->cp * layout->pp * layout->dp};
    s->data = (struct data_source){.seed = 5, .vocab = s->model.vocab, .seq_len = s->job.seq_len};
}

/* The sum of `number` over all ranks. */
static enum status sum_over_ranks(struct rank *rank, struct communicator *all, double *number)
{
    const struct device_api *api = rank->device->api;
    struct device_stream *stream = rank->streams[STREAM_COMPUTE];
    void *memory = NULL;
    enum status status = api->memory_new(rank->device, sizeof *number, &memory, &rank->diags);
    struct exchange_call call = {
        .exchange = EXCHANGE_ALL_REDUCE, .element = ELEMENT_FP64, .in = memory, .out = memory, .count = 1, .what = "loss"};
    if (status == STATUS_OK)
        status = api->copy_in(stream, memory, number, sizeof *number, &rank->diags);
    if (status == STATUS_OK)
        status = rank->world->api->enqueue(all, stream, &call, &rank->diags);
    if (status == STATUS_OK)
        status = api->copy_out(stream, number, memory, sizeof *number, &rank->diags);
    if (status == STATUS_OK)
        status = api->stream_synchronise(stream, &rank->diags);
    api->memory_free(rank->device, memory, sizeof *number);
    return status;
}

static enum status run_step(const struct rank_options *options, struct rank *rank, struct communicator *all,
                            struct rank_timing *timing, uint32_t n_ops, double *loss, double *milliseconds)
{
    struct coordinates at = layout_coordinates(&options->program->layout, rank->rank);
    double own = 0, square_norm = 0;
    nanos last = 0;
    enum status status = rank_run_step(options, rank, NULL, timing);
    if (status == STATUS_OK)
        status = rank_read(rank, &own, &square_norm);
    *loss = at.tp == 0 && at.pp == options->program->layout.pp - 1 ? own : 0;
    for (uint32_t i = 0; i < n_ops; i++)
        last = timing->end[i] > last ? timing->end[i] : last;
    *milliseconds = (double)last * 1e-6;
    return status == STATUS_OK ? sum_over_ranks(rank, all, loss) : status;
}

/* All steps of one rank; takes device and world over. */
static enum status run_rank(const struct rank_options *options, int number, struct device *device, struct world *world, int steps,
                            struct outcome *outcome)
{
    struct rank rank = {.rank = number};
    struct communicator *all = NULL;
    uint32_t n_ops = options->program->scripts[options->program->ranks[number].script].n_ops;
    struct rank_timing timing = {.start = memory_new(n_ops, sizeof(nanos)), .end = memory_new(n_ops, sizeof(nanos))};
    int *members = memory_new((size_t)world->n_ranks, sizeof *members);
    for (int i = 0; i < world->n_ranks; i++)
        members[i] = i;
    enum status status = rank_open(options, device, world, &rank);
    if (status == STATUS_OK)
        status = world->api->communicator_new(world, members, world->n_ranks, &all, &rank.diags);
    for (int s = 0; s < steps && status == STATUS_OK; s++)
        status = run_step(options, &rank, all, &timing, n_ops, &outcome->losses[s], &outcome->milliseconds[s]);
    if (status != STATUS_OK) {
        fprintf(stderr, "%s: %s\n", device->api->name, rank.diags.n_items ? rank.diags.items[0].text : "failed");
        world->api->abandon(world, rank.diags.n_items ? rank.diags.items[0].text : "failed");
    }
    rank_close(&rank);
    free(members);
    free(timing.start);
    free(timing.end);
    return status;
}

static enum status program_of(const struct setup *s, struct program *program)
{
    struct diags diags = {0};
    enum status status = program_build(&s->layout, &s->setting, DETAIL_KERNEL, false, program, &diags);
    if (status == STATUS_OK)
        status = program_verify(program, &diags);
    if (status != STATUS_OK)
        diags_print(&diags, stderr, false);
    diags_free(&diags);
    return status;
}

static enum status run_on_cpu(int steps, struct outcome *outcome)
{
    const struct layout one = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 1, .ep = 1, .micro_batch = 1};
    struct setup s;
    struct program program;
    struct device *device = NULL;
    struct diags diags = {0};
    setup_make(&s, &one, PRECISION_FP32);
    enum status status = program_of(&s, &program);
    if (status != STATUS_OK)
        return status;
    struct hub *hub = hub_new(1, TIMEOUT_S * NANOS_PER_SECOND);
    struct rank_options options = {.program = &program, .setting = &s.setting, .data = s.data, .seed = 5, .rate = RATE};
    status = device_cpu_open(0, hub_epoch(hub), 0, &device, &diags);
    if (status == STATUS_OK)
        status = run_rank(&options, 0, device, hub_join(hub, 0), steps, outcome);
    hub_free(hub);
    program_free(&program);
    diags_free(&diags);
    return status;
}

static enum status run_on_gpu(const struct setup *s, const struct cuda_place *place, const char *folder, int steps,
                              struct outcome *outcome)
{
    struct program program;
    struct device *device = NULL;
    struct world *world = NULL;
    struct diags diags = {0};
    enum status status = program_of(s, &program);
    if (status != STATUS_OK)
        return status;
    int gpus = cuda_device_count();
    struct cuda_comm_options how = {.rank = place->rank,
                                    .n_ranks = place->n_ranks,
                                    .shared_gpu = place->n_local > gpus,
                                    .folder = folder,
                                    .timeout = TIMEOUT_S * NANOS_PER_SECOND};
    struct rank_options options = {.program = &program, .setting = &s->setting, .data = s->data, .seed = 5, .rate = RATE};
    status = cuda_device_open(place->rank, place->local % gpus, 0, &device, &diags);
    if (status == STATUS_OK)
        status = cuda_comm_open(&how, device, &world, &diags);
    if (status == STATUS_OK)
        status = run_rank(&options, place->rank, device, world, steps, outcome);
    diags_print(&diags, stderr, false);
    diags_free(&diags);
    program_free(&program);
    return status;
}

static int compare(const char *layout, int steps, const struct outcome *cpu, const struct outcome *gpu)
{
    int result = EXIT_SUCCESS;
    printf("layout,step,cpu_loss,cuda_loss,relative_error,step_ms,result\n");
    for (int s = 0; s < steps; s++) {
        double error = fabs(gpu->losses[s] - cpu->losses[s]) / fabs(cpu->losses[s]);
        bool good = error <= TOLERANCE; /* not for NaN */
        printf("\"%s\",%d,%.6f,%.6f,%.2e,%.3f,%s\n", layout, s, cpu->losses[s], gpu->losses[s], error, gpu->milliseconds[s],
               good ? "ok" : "FAILED");
        result = good ? result : EXIT_FAILURE;
    }
    return result;
}

int main(int argc, char **argv)
{
    struct layout layout;
    struct setup s;
    struct cuda_place place;
    struct outcome cpu = {0}, gpu = {0};
    struct diags diags = {0};
    int steps = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    if (argc != 4 || steps < 1 || steps > MOST_STEPS) {
        fprintf(stderr, "usage: program_check FOLDER STEPS LAYOUT, at most %d steps\n", MOST_STEPS);
        return 2;
    }
    if (cuda_place_read(&place, &diags) != STATUS_OK || layout_parse(argv[3], &layout, &diags) != STATUS_OK) {
        diags_print(&diags, stderr, false);
        return 2;
    }
    setup_make(&s, &layout, PRECISION_BF16);
    if (cuda_device_count() == 0) {
        fprintf(stderr, "skipped: this machine has no usable NVIDIA GPU\n");
        return EXIT_SKIPPED;
    }
    if (place.rank == 0 && run_on_cpu(steps, &cpu) != STATUS_OK)
        return EXIT_FAILURE;
    if (s.setting.gpus != place.n_ranks) {
        fprintf(stderr, "%s is a layout of %d ranks, but %d were started\n", argv[3], s.setting.gpus, place.n_ranks);
        return 2;
    }
    if (run_on_gpu(&s, &place, argv[1], steps, &gpu) != STATUS_OK)
        return EXIT_FAILURE;
    return place.rank == 0 ? compare(argv[3], steps, &cpu, &gpu) : EXIT_SUCCESS;
}
