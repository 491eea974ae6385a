/* comm_alone.c - exchanges of a rank without partners, as copies on its device. */
#include "runtime/comm/comm_alone.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "runtime/base/comm_collective.h"

enum { FILL_BYTES = 1 << 20 };

struct buffer {
    void *memory;
    size_t bytes;
};

struct alone_world {
    struct world base;
    struct device *device;
    struct device_stream *stream; /* of filling, and of the clock */
    struct buffer sink, source;   /* where messages go, and where they come from */
    struct buffer *outgrown;      /* still in use by what was enqueued before */
    size_t n_outgrown, capacity;
    struct communicator **communicators;
    size_t n_communicators, communicators_capacity;
};

/* --- buffers */

static uint32_t next_random(uint32_t state)
{
    return state * 1664525u + 1013904223u;
}

/* Numbers in [-0.5, 0.5) of the device's precision: zeros would be computed with faster than a model's numbers are. */
static void fill_host(void *to, size_t bytes, enum precision precision)
{
    uint32_t state = 12345;
    size_t n = bytes / (precision == PRECISION_FP32 ? 4 : 2);
    for (size_t i = 0; i < n; i++) {
        state = next_random(state);
        float value = (float)(state >> 8) / 16777216.0f - 0.5f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        uint16_t upper = (uint16_t)(bits >> 16); /* bf16, rounded towards zero */
        if (precision == PRECISION_FP32)
            memcpy((char *)to + 4 * i, &value, sizeof value);
        else
            memcpy((char *)to + 2 * i, &upper, sizeof upper);
    }
}

static enum status fill(struct alone_world *world, const struct buffer *buffer, struct diags *diags)
{
    const struct device_api *api = world->device->api;
    void *host = memory_new(1, FILL_BYTES);
    enum status status = STATUS_OK;
    fill_host(host, FILL_BYTES, world->device->precision);
    for (size_t at = 0; at < buffer->bytes && status == STATUS_OK; at += FILL_BYTES) {
        size_t part = buffer->bytes - at < FILL_BYTES ? buffer->bytes - at : FILL_BYTES;
        status = api->copy_in(world->stream, (char *)buffer->memory + at, host, part, diags);
    }
    if (status == STATUS_OK)
        status = api->stream_synchronise(world->stream, diags);
    free(host);
    return status;
}

/* At least so large; what it was before stays until the end. */
static enum status grow(struct alone_world *world, struct buffer *buffer, size_t bytes, struct diags *diags)
{
    struct buffer larger = {.bytes = bytes};
    if (bytes <= buffer->bytes)
        return STATUS_OK;
    enum status status = world->device->api->memory_new(world->device, bytes, &larger.memory, diags);
    if (status != STATUS_OK)
        return status;
    if (buffer->memory) {
        world->outgrown = memory_grow(world->outgrown, &world->capacity, world->n_outgrown + 1, sizeof *world->outgrown);
        world->outgrown[world->n_outgrown++] = *buffer;
    }
    *buffer = larger;
    return buffer == &world->source ? fill(world, buffer, diags) : STATUS_OK;
}

size_t comm_alone_bytes(const struct world *base)
{
    const struct alone_world *world = (const struct alone_world *)base;
    size_t bytes = world->sink.bytes + world->source.bytes;
    for (size_t i = 0; i < world->n_outgrown; i++)
        bytes += world->outgrown[i].bytes;
    return bytes;
}

/* --- exchanges */

struct exchange_context {
    struct alone_world *world;
    struct device_stream *stream;
    struct diags *diags;
};

static enum status copy(const struct exchange_context *context, void *to, const void *from, size_t bytes)
{
    struct kernel_call call = {.kernel = KERNEL_COPY, .copy = {to, from, bytes}};
    if (bytes == 0 || to == from)
        return STATUS_OK;
    return context->world->device->api->launch(context->stream, &call, context->diags);
}

static enum status discard(const struct exchange_context *context, const void *from, size_t bytes)
{
    enum status status = grow(context->world, &context->world->sink, bytes, context->diags);
    return status == STATUS_OK ? copy(context, context->world->sink.memory, from, bytes) : status;
}

static enum status receive(const struct exchange_context *context, void *to, size_t bytes)
{
    enum status status = grow(context->world, &context->world->source, bytes, context->diags);
    return status == STATUS_OK ? copy(context, to, context->world->source.memory, bytes) : status;
}

/* The filled part grows in both directions, doubling, so that a large group takes few copies. */
static enum status gather_block(const struct exchange_context *context, const struct communicator *c, const void *in, char *out,
                                size_t part)
{
    size_t low = (size_t)c->me, high = low + 1, n = (size_t)c->n;
    enum status status = copy(context, out + low * part, in, part);
    while (status == STATUS_OK && (low > 0 || high < n)) {
        size_t have = high - low, right = n - high < have ? n - high : have;
        status = copy(context, out + high * part, out + low * part, right * part);
        high += right;
        size_t left = low < have ? low : have;
        if (status == STATUS_OK)
            status = copy(context, out + (low - left) * part, out + low * part, left * part);
        low -= left;
    }
    return status;
}

static enum status gather(const struct exchange_context *context, const struct communicator *c, const struct exchange_call *call,
                          size_t part)
{
    const size_t blocks = (size_t)exchange_blocks(call);
    enum status status = STATUS_OK;
    for (size_t b = 0; b < blocks && status == STATUS_OK; b++) {
        const struct exchange_call block = parts_block(call, c->n, (int)b);
        status = gather_block(context, c, block.in, block.out, part / blocks);
    }
    return status;
}

static enum status scatter(const struct exchange_context *context, const struct communicator *c, const struct exchange_call *call,
                           size_t part)
{
    const size_t blocks = (size_t)exchange_blocks(call), own = (size_t)c->me * (part / blocks);
    enum status status = discard(context, call->in, (size_t)c->n * part);
    for (size_t b = 0; b < blocks && status == STATUS_OK; b++) {
        const struct exchange_call block = parts_block(call, c->n, (int)b);
        status = copy(context, block.out, (const char *)block.in + own, part / blocks);
    }
    return status;
}

static enum status alone_enqueue(struct communicator *c, struct device_stream *stream, const struct exchange_call *call,
                                 struct diags *diags)
{
    const struct exchange_context context = {(struct alone_world *)c->world, stream, diags};
    const bool ragged = call->parts.sent || call->parts.received;
    const size_t part = (size_t)call->count * element_bytes(call->element) * (size_t)(ragged ? call->parts.even : 1);
    switch (call->exchange) {
    case EXCHANGE_SEND: return discard(&context, call->in, part);
    case EXCHANGE_RECV: return receive(&context, call->out, part);
    case EXCHANGE_ALL_REDUCE:
        return call->in == call->out ? discard(&context, call->in, part) : copy(&context, call->out, call->in, part);
    case EXCHANGE_ALL_GATHER: return gather(&context, c, call, part);
    case EXCHANGE_REDUCE_SCATTER: return scatter(&context, c, call, part);
    case EXCHANGE_ALL_TO_ALL: return copy(&context, call->out, call->in, ragged ? part : (size_t)c->n * part);
    case EXCHANGE_BROADCAST: return c->me == call->peer ? discard(&context, call->in, part) : receive(&context, call->out, part);
    case N_EXCHANGES: break;
    }
    return STATUS_OK;
}

static enum status alone_group(struct world *world, struct diags *diags)
{
    (void)world, (void)diags;
    return STATUS_OK;
}

/* --- the world */

static enum status alone_communicator_new(struct world *base, const int *members, int n, struct communicator **communicator,
                                          struct diags *diags)
{
    struct alone_world *world = (struct alone_world *)base;
    int me = -1;
    (void)diags;
    for (int i = 0; i < n; i++)
        me = members[i] == base->rank ? i : me;
    *communicator = NULL;
    if (me < 0)
        return STATUS_OK;
    struct communicator *made = memory_new(1, sizeof *made);
    *made = (struct communicator){.world = base, .n = n, .me = me};
    world->communicators =
        memory_grow(world->communicators, &world->communicators_capacity, world->n_communicators + 1, sizeof(made));
    world->communicators[world->n_communicators++] = made;
    *communicator = made;
    return STATUS_OK;
}

static enum status alone_barrier(struct world *base, bool clock, struct diags *diags)
{
    struct alone_world *world = (struct alone_world *)base;
    return clock ? world->device->api->mark_epoch(world->device, world->stream, diags) : STATUS_OK;
}

static void alone_abandon(struct world *world, const char *why)
{
    (void)world, (void)why;
}

static void alone_close(struct world *base)
{
    struct alone_world *world = (struct alone_world *)base;
    const struct device_api *api = world->device->api;
    for (size_t i = 0; i < world->n_outgrown; i++)
        api->memory_free(world->device, world->outgrown[i].memory, world->outgrown[i].bytes);
    for (size_t i = 0; i < world->n_communicators; i++)
        free(world->communicators[i]);
    api->memory_free(world->device, world->sink.memory, world->sink.bytes);
    api->memory_free(world->device, world->source.memory, world->source.bytes);
    api->stream_free(world->stream);
    free(world->communicators);
    free(world->outgrown);
    free(world);
}

static const struct comm_api alone_api = {
    .name = "alone",
    .close = alone_close,
    .communicator_new = alone_communicator_new,
    .enqueue = alone_enqueue,
    .group_begin = alone_group,
    .group_end = alone_group,
    .barrier = alone_barrier,
    .abandon = alone_abandon,
};

enum status comm_alone_open(int rank, int n_ranks, struct device *device, struct world **result, struct diags *diags)
{
    struct device_stream *stream = NULL;
    enum status status = device->api->stream_new(device, false, &stream, diags);
    if (status != STATUS_OK)
        return status;
    struct alone_world *world = memory_new(1, sizeof *world);
    world->base = (struct world){.api = &alone_api, .rank = rank, .n_ranks = n_ranks};
    world->device = device;
    world->stream = stream;
    *result = &world->base;
    return STATUS_OK;
}
