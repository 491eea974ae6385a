/*
 * exchange_check FOLDER [TIMEOUT_S [RANK_THAT_LEAVES]] - every exchange among the processes of one job, through NCCL, against
 * what it should give. Started once per rank: mpirun, srun, or MSIM_RANK=0 MSIM_RANKS=2 by hand. Several ranks may share a GPU.
 *
 * With a rank that leaves, that one ends before the last exchange; the others must get a sentence within the timeout, and the
 * exit status says whether they did. Exit 77 without a GPU. One CSV line per exchange on rank 0, and what one costs the host.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/memory.h"
#include "runtime/cuda/cuda_comm.h"
#include "runtime/cuda/cuda_device.h"
#include "tests/gpu/exchange_values.h"

enum { EXIT_SKIPPED = 77, BLOCKS = 4 };

struct check {
    struct device *device;
    struct world *world;
    struct device_stream *stream;
    struct communicator *all;
    struct diags diags;
};

static int failed(struct check *check, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, check->diags.n_items ? check->diags.items[0].text : "failed");
    return EXIT_FAILURE;
}

static bool has_blocks(enum exchange exchange)
{
    return exchange == EXCHANGE_ALL_GATHER || exchange == EXCHANGE_REDUCE_SCATTER;
}

static bool many_in(enum exchange exchange)
{
    return exchange == EXCHANGE_REDUCE_SCATTER || exchange == EXCHANGE_ALL_TO_ALL;
}

static bool many_out(enum exchange exchange)
{
    return exchange == EXCHANGE_ALL_GATHER || exchange == EXCHANGE_ALL_TO_ALL;
}

/* A ring of messages for receive: each sends to the next. */
static enum status enqueue(struct check *check, const struct exchange_call *call)
{
    int n = check->all->n, me = check->all->me;
    const struct comm_api *api = check->world->api;
    if (call->exchange != EXCHANGE_RECV)
        return api->enqueue(check->all, check->stream, call, &check->diags);
    struct exchange_call send = *call, receive = *call;
    send.exchange = EXCHANGE_SEND, send.peer = (me + 1) % n;
    receive.peer = (me + n - 1) % n;
    enum status status = api->group_begin(check->world, &check->diags);
    if (status == STATUS_OK)
        status = api->enqueue(check->all, check->stream, &send, &check->diags);
    if (status == STATUS_OK)
        status = api->enqueue(check->all, check->stream, &receive, &check->diags);
    enum status ended = api->group_end(check->world, &check->diags);
    return status == STATUS_OK ? ended : status;
}

static enum status run_exchange(struct check *check, enum exchange exchange, int64_t count, int blocks, int *wrong)
{
    int n = check->all->n, me = check->all->me;
    int64_t in = many_in(exchange) ? n * count : count, out = many_out(exchange) ? n * count : count;
    float *host = memory_new((size_t)(in > out ? in : out), sizeof *host);
    void *from = NULL, *to = NULL;
    const struct device_api *api = check->device->api;
    struct diags *diags = &check->diags;
    for (int64_t i = 0; i < in; i++)
        host[i] = exchange_value(me, i);
    enum status status = api->memory_new(check->device, (size_t)in * 4, &from, diags);
    if (status == STATUS_OK)
        status = api->memory_new(check->device, (size_t)out * 4, &to, diags);
    if (status == STATUS_OK)
        status = api->copy_in(check->stream, from, host, (size_t)in * 4, diags);
    struct exchange_call call = {.exchange = exchange,
                                 .element = ELEMENT_FP32,
                                 .reduction = REDUCTION_SUM,
                                 .in = from,
                                 .out = to,
                                 .count = count,
                                 .blocks = blocks,
                                 .peer = n - 1,
                                 .what = "check"};
    if (status == STATUS_OK)
        status = enqueue(check, &call);
    if (status == STATUS_OK)
        status = api->stream_synchronise(check->stream, diags);
    if (status == STATUS_OK)
        status = api->copy_out(check->stream, host, to, (size_t)out * 4, diags);
    if (status == STATUS_OK)
        status = api->stream_synchronise(check->stream, diags);
    if (status == STATUS_OK)
        *wrong += exchange_wrong_values(&(struct exchanged){exchange, me, n, blocks, count, out}, host);
    api->memory_free(check->device, from, (size_t)in * 4);
    api->memory_free(check->device, to, (size_t)out * 4);
    free(host);
    return status;
}

static int check_all(struct check *check)
{
    static const enum exchange exchanges[] = {EXCHANGE_ALL_REDUCE, EXCHANGE_ALL_GATHER, EXCHANGE_REDUCE_SCATTER,
                                              EXCHANGE_ALL_TO_ALL, EXCHANGE_BROADCAST,  EXCHANGE_RECV};
    static const int64_t counts[] = {1, 1000, 1 << 18};
    int result = EXIT_SUCCESS;
    for (size_t e = 0; e < sizeof exchanges / sizeof *exchanges; e++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            int wrong = 0;
            enum status status = run_exchange(check, exchanges[e], counts[c], 1, &wrong);
            if (status == STATUS_OK && has_blocks(exchanges[e]) && counts[c] % BLOCKS == 0)
                status = run_exchange(check, exchanges[e], counts[c], BLOCKS, &wrong);
            if (status != STATUS_OK)
                return failed(check, exchange_name(exchanges[e]));
            if (check->world->rank == 0 || wrong)
                printf("%s,%d,%lld,%s\n", exchange_name(exchanges[e]), check->world->n_ranks, (long long)counts[c],
                       wrong ? "FAILED" : "ok");
            result = wrong ? EXIT_FAILURE : result;
        }
    return result;
}

/* What an exchange costs the host, which in a step must be ahead of the device: a row of its own. */
static int time_host(struct check *check)
{
    enum { TIMES = 100, COUNT = 1000 };
    const struct device_api *api = check->device->api;
    struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE, .element = ELEMENT_FP32, .count = COUNT, .what = "host"};
    void *memory = NULL;
    double took = 0;
    enum status status = api->memory_new(check->device, COUNT * sizeof(float), &memory, &check->diags);
    call.in = call.out = memory;
    for (int turn = 0; turn < 2 && status == STATUS_OK; turn++) { /* the first warms up */
        const double began = clock_seconds();
        for (int i = 0; i < TIMES && status == STATUS_OK; i++)
            status = enqueue(check, &call);
        took = clock_seconds() - began;
        if (status == STATUS_OK)
            status = api->stream_synchronise(check->stream, &check->diags);
    }
    api->memory_free(check->device, memory, COUNT * sizeof(float));
    if (status != STATUS_OK)
        return failed(check, "the host's time");
    if (check->world->rank == 0)
        printf("host,%d,%d,%.1f us to enqueue one\n", check->world->n_ranks, COUNT, took / TIMES * 1e6);
    return EXIT_SUCCESS;
}

/* The others must be told, in time. */
static int check_leaving(struct check *check, int leaver)
{
    int wrong = 0;
    if (check->world->rank == leaver)
        _Exit(EXIT_SUCCESS);
    if (run_exchange(check, EXCHANGE_ALL_REDUCE, 1000, 1, &wrong) == STATUS_OK) {
        fprintf(stderr, "rank %d: an exchange with a rank that left was said to work\n", check->world->rank);
        return EXIT_FAILURE;
    }
    printf("left,%d,1000,\"%s\"\n", check->world->n_ranks, check->diags.items[0].text);
    return EXIT_SUCCESS;
}

static enum status open_all(struct check *check, const struct cuda_place *place, const char *folder, nanos timeout)
{
    int gpus = cuda_device_count();
    enum status status = cuda_device_open(place->rank, place->local % gpus, 0, &check->device, &check->diags);
    struct cuda_comm_options options = {.rank = place->rank,
                                        .n_ranks = place->n_ranks,
                                        .shared_gpu = place->n_local > gpus,
                                        .folder = folder,
                                        .timeout = timeout};
    if (status == STATUS_OK)
        status = cuda_comm_open(&options, check->device, &check->world, &check->diags);
    if (status == STATUS_OK)
        status = check->device->api->stream_new(check->device, true, &check->stream, &check->diags);
    int *members = memory_new((size_t)place->n_ranks, sizeof *members);
    for (int i = 0; i < place->n_ranks; i++)
        members[i] = i;
    if (status == STATUS_OK)
        status = check->world->api->communicator_new(check->world, members, place->n_ranks, &check->all, &check->diags);
    free(members);
    if (status == STATUS_OK)
        status = check->world->api->barrier(check->world, true, &check->diags);
    return status;
}

int main(int argc, char **argv)
{
    struct check check = {0};
    struct cuda_place place;
    if (argc < 2) {
        fprintf(stderr, "usage: exchange_check FOLDER [TIMEOUT_S [RANK_THAT_LEAVES]]\n");
        return 2;
    }
    nanos timeout = (argc > 2 ? strtol(argv[2], NULL, 10) : 30) * NANOS_PER_SECOND;
    if (cuda_device_count() == 0) {
        printf("skipped: this machine has no usable NVIDIA GPU\n");
        return EXIT_SKIPPED;
    }
    if (cuda_place_read(&place, &check.diags) != STATUS_OK || open_all(&check, &place, argv[1], timeout) != STATUS_OK)
        return failed(&check, "opening");
    int result = check_all(&check);
    if (result == EXIT_SUCCESS)
        result = time_host(&check);
    if (result == EXIT_SUCCESS && argc > 3)
        result = check_leaving(&check, (int)strtol(argv[3], NULL, 10));
    check.device->api->stream_free(check.stream);
    check.world->api->close(check.world);
    check.device->api->close(check.device);
    diags_free(&check.diags);
    return result;
}
