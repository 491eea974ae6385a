/* executor.c - opens a rank, executes its script step by step, and closes it. */
#include "runtime/run/executor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
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

/* --- one operation */

/* The input of a pass comes in a message, or from another chunk of this rank (at the turning point of a folded schedule). */
static void take_over(struct rank *rank, const struct op *op)
{
    const struct layout *layout = rank->layout;
    bool forward = op->pass == PASS_FORWARD;
    struct chunk_state *chunk = &rank->chunks[op->chunk];
    int from = chunk->virtual_stage + (forward ? -1 : 1);
    if (op->pass == PASS_BACKWARD_WEIGHT || from < 0 || from >= layout_virtual_stages(layout) ||
        layout_stage_of(layout, from) != rank->stage)
        return;
    struct pass_state *other = rank->chunks[layout_chunk_of(layout, from)].passes[op->micro_batch];
    struct pass_state *pass = chunk->passes[op->micro_batch];
    struct tensor **to = forward ? &pass->x : &pass->d, **at = forward ? &other->x : &other->d;
    if (!*to && *at) {
        *to = *at;
        *at = NULL;
    }
}

static void enqueue_pass(struct rank *rank, uint32_t i, struct device_stream *stream)
{
    const struct op *op = &rank->program->ops[rank->program->scripts[rank->stage].first_op + i];
    const struct bound_op *bound = &rank->binding.ops[i];
    struct chunk_state *chunk = &rank->chunks[op->chunk];
    const struct step_list *list = binding_list(&rank->binding, op->chunk, op->pass);
    if (bound->first == 0 && bound->n)
        take_over(rank, op);
    struct step_context context = {.rank = rank,
                                   .chunk = chunk,
                                   .pass = chunk->passes[op->micro_batch],
                                   .stream = stream,
                                   .micro_batch = op->micro_batch,
                                   .marks = rank->pipeline.marks[i].n ? &rank->pipeline.marks[i] : NULL};
    for (uint32_t k = 0; k < bound->n && rank->status == STATUS_OK; k++)
        step_enqueue(&context, &list->items[bound->first + k]);
}

static void enqueue_message(struct rank *rank, const struct op *op, struct device_stream *stream)
{
    struct pass_state *pass = rank->chunks[op->chunk].passes[op->micro_batch];
    struct tensor **at = op->pass == PASS_FORWARD ? &pass->x : &pass->d;
    int64_t elements = rank->shape.local_tokens * rank->shape.hidden;
    bool sends = op->kind == OP_SEND;
    if (!sends)
        *at = tensor_new_travelling(rank, (size_t)elements * device_element_bytes(rank->device), stream);
    if (!*at)
        return;
    struct exchange_call call = {.exchange = sends ? EXCHANGE_SEND : EXCHANGE_RECV,
                                 .element = rank_element(rank),
                                 .in = (*at)->data,
                                 .out = (*at)->data,
                                 .count = elements,
                                 .peer = sends ? 1 : 0,
                                 .what = op->pass == PASS_FORWARD ? "activations" : "gradients"};
    rank_exchange(rank, sends ? rank->sends[op->tag] : rank->receives[op->tag], stream, &call);
    if (sends)
        tensor_drop(rank, at, stream);
}

static void enqueue_alone(struct rank *rank, uint32_t i)
{
    const struct op *op = &rank->program->ops[rank->program->scripts[rank->stage].first_op + i];
    const struct bound_op *bound = &rank->binding.ops[i];
    struct device_stream *stream = rank->streams[op->stream];
    for (int d = 0; d < OP_DEPS; d++)
        if (op->deps[d] != NO_OP)
            rank_wait(rank, rank->end[op->deps[d]], stream);
    host_copies_awaited(rank, op);
    bool whole = bound->pieces <= 1; /* pieces wait one by one */
    if (whole && bound->pairing == PAIRING_AFTER_PREVIOUS)
        rank_wait(rank, rank->end[i - 1], stream);
    bool updates = op->pass >= N_PASSES && op->kind == OP_COMPUTE && op->class == CLASS_OPTIMIZER;
    if (updates && op->stream == STREAM_COMPUTE)
        update_settle_norm(rank, stream);
    rank_record(rank, rank->begin[i], stream);
    if (whole && bound->pairing == PAIRING_AFTER_NEXT)
        rank_wait(rank, rank->end[i + 1], stream);
    if (op->kind == OP_SEND || op->kind == OP_RECV)
        enqueue_message(rank, op, stream);
    else if (op->pass < N_PASSES)
        enqueue_pass(rank, i, stream);
    else if (op->kind == OP_COLLECTIVE)
        shards_exchange(rank, op, stream);
    else if (updates)
        update_enqueue(rank, op, stream);
    else if (op->stream == STREAM_DOWN || op->stream == STREAM_UP)
        host_copies_enqueue(rank, i, stream);
    rank_record(rank, rank->end[i], stream);
}

static void enqueue_op(struct rank *rank, uint32_t i)
{
    if (i > 0 && rank->binding.ops[i - 1].pairing == PAIRING_AFTER_NEXT)
        return; /* enqueued with the one before, which waits for it */
    if (rank->binding.ops[i].pairing == PAIRING_AFTER_NEXT)
        enqueue_alone(rank, i + 1);
    enqueue_alone(rank, i);
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
        enqueue_op(rank, i);
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

/* --- results */

static void copy_out(struct rank *rank, void *to, const void *from, size_t bytes)
{
    struct device_stream *stream = rank->streams[STREAM_COMPUTE];
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->copy_out(stream, to, from, bytes, &rank->diags);
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->stream_synchronise(stream, &rank->diags);
}

enum status rank_read(struct rank *rank, double *loss, double *square_norm)
{
    float norm = 0;
    copy_out(rank, loss, rank->loss, sizeof *loss);
    copy_out(rank, &norm, rank->norm, sizeof norm);
    *square_norm = rank->program->rolling && !rank->side[GROUP_MODEL] ? NAN : norm; /* of this stage alone */
    return rank->status;
}

/* Of one row the part that is owned. */
static void collect_row(const struct unit_state *u, const struct parameter *p, int64_t row, const float *owned, float *there)
{
    int64_t begin = p->offset + row * p->cols, end = begin + p->cols, last = u->first + u->owned;
    int64_t from = begin > u->first ? begin : u->first, to = end < last ? end : last;
    if (from < to)
        memcpy(there + (from - begin), owned + (from - u->first), (size_t)(to - from) * sizeof *there);
}

static void collect_unit(const struct unit_state *u, const struct model_map *map, const float *owned, float *whole)
{
    for (int k = 0; k < u->unit->n_parameters; k++) {
        const struct parameter *p = &u->unit->parameters[k];
        for (int64_t row = 0; row < p->rows; row++)
            collect_row(u, p, row, owned, whole + model_map_index(map, p, row * p->cols));
    }
}

/* The elements that this rank updates, from host and device memory. */
static void collect_owned(struct rank *rank, const struct unit_state *u, bool gradients, float *owned)
{
    int64_t there = gradients && !rank_gradients_leave(rank) ? 0 : u->host.n;
    if (there)
        memcpy(owned, gradients ? u->host.gradients : u->host.master, (size_t)there * sizeof *owned);
    copy_out(rank, owned + there, gradients ? u->owned_gradients : u->master, (size_t)(u->owned - there) * sizeof *owned);
}

enum status rank_collect(struct rank *rank, bool gradients, float *whole)
{
    struct model_map map = model_map_of(rank->setting);
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++) {
            struct unit_state *u = &rank->chunks[c].states[i];
            float *owned = memory_new((size_t)u->owned, sizeof *owned);
            collect_owned(rank, u, gradients, owned);
            if (rank->status == STATUS_OK)
                collect_unit(u, &map, owned, whole);
            free(owned);
        }
    return rank->status;
}
