/* executor.c - opens a rank, executes its script step by step, and closes it. */
#include "runtime/run/executor_internal.h"

#include <stdlib.h>
#include <time.h>

#include "model/base/memory.h"
#include "runtime/layer/casts.h"

/* --- opening */

/* Those for copies to the host and back only where there are any. */
static int count_streams(const struct rank *rank)
{
    return rank_offloads(rank) ? N_STREAMS : STREAM_DOWN;
}

static void open_streams(struct rank *rank)
{
    const struct device_api *api = rank->device->api;
    for (int s = 0; s < count_streams(rank) && rank->status == STATUS_OK; s++)
        rank->status = api->stream_new(rank->device, s != STREAM_COMPUTE, &rank->streams[s], &rank->diags);
    uint32_t n = rank->program->scripts[rank->stage].n_ops;
    rank->begin = memory_new(n, sizeof *rank->begin);
    rank->end = memory_new(n, sizeof *rank->end);
    for (uint32_t i = 0; i < n && rank->status == STATUS_OK; i++) {
        rank->status = api->event_new(rank->device, &rank->begin[i], &rank->diags);
        if (rank->status == STATUS_OK)
            rank->status = api->event_new(rank->device, &rank->end[i], &rank->diags);
    }
}

static void open_chunks(struct rank *rank, uint64_t seed)
{
    const struct layout *layout = rank->layout;
    rank->chunks = memory_new((size_t)layout->vpp, sizeof *rank->chunks);
    int last = layout_virtual_stages(layout) - 1;
    for (int c = 0; c < layout->vpp; c++) {
        struct chunk_state *chunk = &rank->chunks[c];
        chunk->virtual_stage = layout_virtual_stage(layout, rank->stage, c);
        chunk->range = layout_layers(layout, rank->setting->model, chunk->virtual_stage);
        chunk->embedding = chunk->virtual_stage == 0;
        chunk->head = chunk->virtual_stage == last;
        chunk->predictions = chunk->head ? rank->shape.predictions : 0;
        chunk_open(rank, chunk, seed);
    }
}

/* A place further in the sequences of a step: those read, those predicted. */
static int64_t token_planes(const struct rank *rank)
{
    return 2 + rank->shape.predictions;
}

static int64_t plane_tokens(const struct rank *rank)
{
    return rank->micro_batches * rank->shape.tokens;
}

static size_t tokens_bytes(const struct rank *rank)
{
    return (size_t)(token_planes(rank) * plane_tokens(rank)) * sizeof(int32_t);
}

static void open_buffers(struct rank *rank)
{
    rank->tokens = rank_memory(rank, tokens_bytes(rank));
    rank->loss = rank_memory(rank, sizeof *rank->loss);
    rank->norm = rank_memory(rank, sizeof *rank->norm);
    rank->host_norm = rank_host_memory(rank, sizeof *rank->host_norm);
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->event_new(rank->device, &rank->finished, &rank->diags);
}

enum status rank_open(const struct rank_options *options, struct device *device, struct world *world, struct rank *rank)
{
    const struct layout *layout = &options->program->layout;
    *rank = (struct rank){.program = options->program,
                          .setting = options->setting,
                          .layout = layout,
                          .rank = world->rank,
                          .stage = options->program->ranks[world->rank].script,
                          .shape = shape_of(layout, options->setting, world->rank),
                          .core = shape_of_core(layout, options->setting, world->rank),
                          .recipe = narrow_recipe_of(options->setting->job->precision),
                          .device = device,
                          .world = world,
                          .rate = options->rate,
                          .clip = (float)options->setting->job->clip,
                          .dropout = (float)options->setting->job->dropout,
                          .seed = options->seed,
                          .micro_batches = layout_micro_batches(layout, options->setting->job)};
    rank->status = runtime_supports(options->setting, &rank->diags);
    if (rank->status == STATUS_OK)
        rank->status = binding_build(options->program, rank->stage, options->setting, &rank->binding, &rank->diags);
    if (rank->status == STATUS_OK)
        rank->status = narrow_check(rank);
    if (rank->status != STATUS_OK)
        return rank->status;
    host_copies_open(rank);
    open_streams(rank);
    pipeline_open(rank);
    rank_open_communicators(rank);
    open_chunks(rank, options->seed);
    open_buffers(rank);
    rank_open_constants(rank);
    return rank->status;
}

/* --- closing */

static void close_events(struct rank *rank)
{
    const struct device_api *api = rank->device->api;
    uint32_t n = rank->program->scripts[rank->stage].n_ops;
    for (uint32_t i = 0; rank->begin && i < n; i++) {
        api->event_free(rank->begin[i]);
        api->event_free(rank->end[i]);
    }
    free(rank->begin);
    free(rank->end);
}

void rank_close(struct rank *rank)
{
    const struct device_api *api = rank->device->api;
    for (int s = 0; s < N_STREAMS; s++)
        if (rank->streams[s])
            api->stream_free(rank->streams[s]);
    close_events(rank);
    pipeline_close(rank);
    for (int c = 0; rank->chunks && c < rank->layout->vpp; c++)
        chunk_close(rank, &rank->chunks[c]);
    tensors_free(rank);
    host_copies_close(rank);
    api->memory_free(rank->device, rank->tokens, tokens_bytes(rank));
    api->memory_free(rank->device, rank->loss, sizeof *rank->loss);
    api->memory_free(rank->device, rank->norm, sizeof *rank->norm);
    api->host_free(rank->device, rank->host_norm, sizeof *rank->host_norm);
    api->event_free(rank->finished);
    rank_close_constants(rank);
    rank_close_communicators(rank);
    update_close(rank);
    free(rank->chunks);
    binding_free(&rank->binding);
    rank->world->api->close(rank->world);
    api->close(rank->device);
    diags_free(&rank->diags);
    *rank = (struct rank){0};
}

/* --- one step */

static void copy_tokens(struct rank *rank, const int32_t *tokens)
{
    struct device_stream *stream = rank->streams[STREAM_COMPUTE];
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->copy_in(stream, rank->tokens, tokens, tokens_bytes(rank), &rank->diags);
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->stream_synchronise(stream, &rank->diags);
}

/* This rank's samples of the step's global batch. */
static void load_batch(const struct rank_options *options, struct rank *rank)
{
    const struct shape *s = &rank->shape;
    int64_t n = plane_tokens(rank), planes = token_planes(rank), samples = rank->micro_batches * s->micro_batch;
    int64_t first = rank->step * options->setting->job->global_batch + layout_coordinates(rank->layout, rank->rank).dp * samples;
    int32_t *sample = memory_new((size_t)data_sample_tokens(&options->data), sizeof *sample);
    int32_t *tokens = memory_new((size_t)(planes * n), sizeof *tokens);
    for (int64_t i = 0; i < samples; i++) {
        data_sample(&options->data, first + i, sample);
        for (int64_t p = 0; p < planes * s->seq_len; p++) {
            int64_t plane = p / s->seq_len, row = p % s->seq_len;
            tokens[plane * n + i * s->seq_len + row] = sample[position_of(&s->at, s->seq_len, row) + plane];
        }
    }
    copy_tokens(rank, tokens);
    free(sample);
    free(tokens);
}

static void clear(struct rank *rank)
{
    struct device_stream *stream = rank->streams[STREAM_COMPUTE];
    struct kernel_call zero = {.kernel = KERNEL_ZERO, .zero = {rank->loss, sizeof *rank->loss}};
    rank_launch(rank, stream, &zero);
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++) {
            struct unit_state *u = &rank->chunks[c].states[i];
            int64_t kept = u->owned - (rank_gradients_leave(rank) ? u->host.n : 0);
            zero.zero.at = u->gradients ? u->gradients : u->owned_gradients;
            zero.zero.bytes = (size_t)(u->gradients ? u->unit->elements : kept) * sizeof(float);
            rank_launch(rank, stream, &zero);
        }
    rank->gradients_finished = rank->norm_settled = false;
}

static void synchronise(struct rank *rank)
{
    for (int s = 0; s < count_streams(rank); s++) {
        enum status status = rank->device->api->stream_synchronise(rank->streams[s], &rank->diags);
        if (status != STATUS_OK) {
            rank->status = status;
            break;
        }
    }
    /* After a failure the other streams still have to come to rest. */
    for (int s = 0; s < count_streams(rank) && rank->status != STATUS_OK; s++) {
        struct diags ignored = {0};
        if (rank->device->api->stream_synchronise(rank->streams[s], &ignored) != STATUS_OK)
            rank->status = STATUS_FAILED;
        diags_free(&ignored);
    }
}

static void meet(struct rank *rank, bool clock)
{
    if (rank->status == STATUS_OK)
        rank->status = rank->world->api->barrier(rank->world, clock, &rank->diags);
}

typedef enum status read_clock(struct device_event *event, nanos *time, struct diags *diags);

static enum status add_between(struct rank *rank, read_clock *clock, struct device_event *first, struct device_event *last,
                               nanos *sum)
{
    nanos begin = 0, end = 0;
    enum status status = clock(first, &begin, &rank->diags);
    if (status == STATUS_OK)
        status = clock(last, &end, &rank->diags);
    *sum += end - begin;
    return status;
}

/* The time of a clock between the events of an operation, or the sum over its pieces. */
static enum status read_between(struct rank *rank, uint32_t i, read_clock *clock, nanos *sum)
{
    const struct piece_marks *marks = &rank->pipeline.marks[i];
    enum status status = STATUS_OK;
    *sum = 0;
    for (int p = 0; p < marks->n && status == STATUS_OK; p++)
        status = add_between(rank, clock, marks->begin[p], marks->end[p], sum);
    return marks->n ? status : add_between(rank, clock, rank->begin[i], rank->end[i], sum);
}

/* The processor time of operation i. It includes the time to notice that an exchange may begin, so all work of its stream since
 * `before` counts: the end of the stream's previous operation. */
static enum status read_work(struct rank *rank, uint32_t i, struct device_event *before, nanos *work)
{
    const struct device_api *api = rank->device->api;
    const struct op *op = &rank->program->ops[rank->program->scripts[rank->stage].first_op + i];
    read_clock *clock = api->event_work ? api->event_work : api->event_time;
    *work = 0;
    return op->kind != OP_COMPUTE && api->event_work && before ? add_between(rank, clock, before, rank->end[i], work)
                                                               : read_between(rank, i, clock, work);
}

static void read_times(struct rank *rank, struct rank_timing *timing)
{
    const struct device_api *api = rank->device->api;
    const struct script *script = &rank->program->scripts[rank->stage];
    struct device_event *before[N_STREAMS] = {NULL};
    for (uint32_t i = 0; i < script->n_ops && rank->status == STATUS_OK; i++) {
        int stream = rank->program->ops[script->first_op + i].stream;
        rank->status = api->event_time(rank->begin[i], &timing->start[i], &rank->diags);
        if (rank->status == STATUS_OK)
            rank->status = api->event_time(rank->end[i], &timing->end[i], &rank->diags);
        if (rank->status == STATUS_OK)
            rank->status = read_between(rank, i, api->event_time, &timing->pieces[i]);
        if (rank->status == STATUS_OK)
            rank->status = read_work(rank, i, before[stream], &timing->work[i]);
        before[stream] = rank->end[i];
    }
}

/* --- troubles on request */

/* This rank goes silent (and comes to an end itself a little later), or says goodbye. */
static void fall_out(struct rank *rank, enum trouble trouble)
{
    char text[96];
    snprintf(text, sizeof text, "rank %d %s on request", rank->rank, trouble == TROUBLE_KILLED ? "was killed" : "hung");
    diag_error(&rank->diags, PLACE_NONE, "%s", text);
    if (trouble == TROUBLE_HANGS) {
        nanos wait = rank->world->timeout + rank->world->timeout / 2;
        struct timespec t = {.tv_sec = wait / NANOS_PER_SECOND, .tv_nsec = wait % NANOS_PER_SECOND};
        nanosleep(&t, NULL);
    }
    rank->status = STATUS_FAILED;
    rank->world->api->abandon(rank->world, text);
}

/* How much longer an operation shall last, from how long it took in the step before. */
static void slow_down(struct rank *rank, uint32_t i, const struct injection *injection, const struct rank_timing *before)
{
    const struct op *op = &rank->program->ops[rank->program->scripts[rank->stage].first_op + i];
    nanos took = before->end[i] - before->start[i];
    if (op->kind != OP_COMPUTE || took <= 0 || !rank->device->api->pause || rank->status != STATUS_OK)
        return;
    nanos more = (nanos)((double)took * (injection->factor - 1));
    rank->status = rank->device->api->pause(rank->streams[op->stream], more, &rank->diags);
}

static bool is_due(const struct rank *rank, const struct injection *injection, enum trouble trouble)
{
    return injection && injection->trouble == trouble && injection->rank == rank->rank && rank->step >= injection->step;
}

static void enqueue_step(struct rank *rank, const struct injection *injection, const struct rank_timing *before)
{
    uint32_t n = rank->program->scripts[rank->stage].n_ops;
    bool slow = is_due(rank, injection, TROUBLE_SLOW) && rank->step > 0;
    bool falls = is_due(rank, injection, TROUBLE_KILLED) || is_due(rank, injection, TROUBLE_HANGS);
    for (uint32_t i = 0; i < n && rank->status == STATUS_OK; i++) {
        if (falls && i == n / 2) {
            fall_out(rank, injection->trouble);
            return;
        }
        if (slow)
            slow_down(rank, i, injection, before);
        rank_enqueue_operation(rank, i);
    }
}

enum status rank_run_step(const struct rank_options *options, struct rank *rank, const struct injection *injection,
                          struct rank_timing *timing)
{
    load_batch(options, rank);
    clear(rank);
    host_copies_begin(rank);
    host_states_begin(rank);
    synchronise(rank);
    meet(rank, true);
    if (rank->status == STATUS_OK)
        enqueue_step(rank, injection, timing);
    synchronise(rank);
    if (rank->status == STATUS_OK)
        read_times(rank, timing);
    meet(rank, false);
    rank->step++;
    return rank->status;
}
