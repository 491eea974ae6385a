/* host_copies.c - copies activations to the memory of the host and back for the backward pass.
 *
 * A copy down takes a layer's tensors out of its state. They are freed when the compute stream waits for the copy: two such
 * layers later, as the program specifies, or with the copy back. Until then they are ordinary tensors in the order of that
 * stream. A copy up allocates travelling tensors. A tensor that occurs several times in a state is copied once. */
#include "runtime/base/rank.h"

#include <stdlib.h>

#include "model/base/memory.h"

/* Page-locked. Written behind the last copy up that read it. */
struct host_buffer {
    void *memory;
    size_t bytes;
    struct device_event *read;
    struct host_buffer *next; /* in the list of free ones, oldest first */
};

/* One tensor of a state. */
struct departed {
    int field, same_as;         /* an earlier one that is the same tensor; -1: none */
    struct tensor *tensor;      /* until it is given up */
    struct tensor like;         /* what it was */
    struct host_buffer *buffer; /* NULL: that of same_as */
};

enum { FIELDS = sizeof(struct layer_states) / sizeof(struct tensor *) };
_Static_assert(sizeof(struct layer_states) % sizeof(struct tensor *) == 0, "a state is tensors and nothing else");

struct departure {
    uint32_t op; /* the copy down */
    int n;
    struct departed items[FIELDS];
};

struct host_copies {
    struct departure **departures; /* of the step, in the order of their operations; kept for the next one */
    size_t n, capacity, n_known;
    size_t given_up; /* how many of them */
    struct host_buffer *free, **all;
    size_t n_all, all_capacity;
};

void host_copies_open(struct rank *rank)
{
    if (layout_offloads(rank->layout, OFFLOAD_ACTIVATIONS))
        rank->host = memory_new(1, sizeof *rank->host);
}

void host_copies_close(struct rank *rank)
{
    struct host_copies *host = rank->host;
    const struct device_api *api = rank->device->api;
    if (!host)
        return;
    for (size_t i = 0; i < host->n_all; i++) {
        api->host_free(rank->device, host->all[i]->memory, host->all[i]->bytes);
        api->event_free(host->all[i]->read);
        free(host->all[i]);
    }
    for (size_t i = 0; i < host->n_known; i++)
        free(host->departures[i]);
    free(host->departures);
    free(host->all);
    free(host);
    rank->host = NULL;
}

void host_copies_begin(struct rank *rank)
{
    if (rank->host)
        rank->host->n = rank->host->given_up = 0;
}

/* --- buffers */

static struct host_buffer *buffer_create(struct rank *rank, size_t bytes)
{
    struct host_copies *host = rank->host;
    const struct device_api *api = rank->device->api;
    struct host_buffer *buffer = memory_new(1, sizeof *buffer);
    buffer->bytes = bytes;
    rank->status = api->host_new(rank->device, bytes, &buffer->memory, &rank->diags);
    if (rank->status == STATUS_OK)
        rank->status = api->event_new(rank->device, &buffer->read, &rank->diags);
    host->all = memory_grow(host->all, &host->all_capacity, host->n_all + 1, sizeof(struct host_buffer *));
    host->all[host->n_all++] = buffer;
    return buffer;
}

/* One that `stream` may write. */
static struct host_buffer *buffer_take(struct rank *rank, size_t bytes, struct device_stream *stream)
{
    for (struct host_buffer **at = &rank->host->free; *at; at = &(*at)->next) {
        struct host_buffer *buffer = *at;
        if (buffer->bytes != bytes)
            continue;
        *at = buffer->next;
        rank_wait(rank, buffer->read, stream);
        return buffer;
    }
    return buffer_create(rank, bytes);
}

/* `stream` has read it last. */
static void buffer_drop(struct rank *rank, struct host_buffer *buffer, struct device_stream *stream)
{
    struct host_buffer **at = &rank->host->free;
    rank_record(rank, buffer->read, stream);
    while (*at)
        at = &(*at)->next;
    buffer->next = NULL;
    *at = buffer;
}

/* --- down */

static struct departure *departure_new(struct host_copies *host, uint32_t op)
{
    if (host->n == host->n_known) {
        host->departures = memory_grow(host->departures, &host->capacity, host->n + 1, sizeof(struct departure *));
        host->departures[host->n_known++] = memory_new(1, sizeof(struct departure));
    }
    struct departure *departure = host->departures[host->n++];
    departure->op = op;
    departure->n = 0;
    return departure;
}

static struct tensor **fields_of(struct rank *rank, const struct op *op)
{
    struct chunk_state *chunk = &rank->chunks[op->chunk];
    return (struct tensor **)(void *)&chunk->passes[op->micro_batch]->layers[op->layer - chunk->range.first];
}

static int same_as(const struct departure *departure, const struct tensor *tensor)
{
    for (int i = 0; i < departure->n; i++)
        if (departure->items[i].tensor == tensor)
            return i;
    return -1;
}

static void copy_down(struct rank *rank, uint32_t i, const struct op *op, struct device_stream *stream)
{
    struct tensor **fields = fields_of(rank, op);
    struct departure *departure = departure_new(rank->host, i);
    for (int f = 0; f < FIELDS; f++) {
        if (!fields[f])
            continue;
        struct departed *item = &departure->items[departure->n];
        *item = (struct departed){.field = f, .same_as = same_as(departure, fields[f]), .like = *fields[f]};
        item->tensor = tensor_take(&fields[f]);
        departure->n++;
        if (item->same_as >= 0)
            continue;
        item->buffer = buffer_take(rank, item->like.bytes, stream);
        rank_copy(rank, stream, item->buffer->memory, item->tensor->data, item->like.bytes);
    }
}

/* The compute stream waits for copies down up to operation `op`. */
static void give_up(struct rank *rank, uint32_t op)
{
    struct host_copies *host = rank->host;
    for (; host->given_up < host->n && host->departures[host->given_up]->op <= op; host->given_up++) {
        struct departure *departure = host->departures[host->given_up];
        for (int i = 0; i < departure->n; i++)
            tensor_drop(rank, &departure->items[i].tensor, rank->streams[STREAM_COMPUTE]);
    }
}

/* --- up */

static const struct op *ops_of(const struct rank *rank)
{
    return &rank->program->ops[rank->program->scripts[rank->stage].first_op];
}

/* The last copy down that an operation waits for, NO_OP none. */
static uint32_t copy_before(const struct op *ops, const struct op *op)
{
    uint32_t last = NO_OP;
    for (int d = 0; d < OP_DEPS; d++)
        if (op->deps[d] != NO_OP && ops[op->deps[d]].stream == STREAM_DOWN && (last == NO_OP || op->deps[d] > last))
            last = op->deps[d];
    return last;
}

/* The copy down of what a copy up brings back: the verifier has seen that it waits for it. */
static uint32_t departure_before(const struct op *ops, const struct op *up)
{
    for (int d = 0; d < OP_DEPS; d++) {
        const struct op *down = up->deps[d] == NO_OP ? NULL : &ops[up->deps[d]];
        if (down && down->stream == STREAM_DOWN && down->role == COPIED_ACTIVATIONS && down->layer == up->layer &&
            down->chunk == up->chunk && down->micro_batch == up->micro_batch)
            return up->deps[d];
    }
    return NO_OP;
}

static struct departure *departure_of(const struct host_copies *host, uint32_t op)
{
    size_t low = 0, high = host->n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (host->departures[middle]->op <= op)
            low = middle;
        else
            high = middle;
    }
    return host->departures[low];
}

static void copy_up(struct rank *rank, const struct op *op, struct device_stream *stream)
{
    struct tensor **fields = fields_of(rank, op);
    const struct departure *departure = departure_of(rank->host, departure_before(ops_of(rank), op));
    for (int i = 0; i < departure->n && rank->status == STATUS_OK; i++) {
        const struct departed *item = &departure->items[i];
        if (item->same_as >= 0) {
            fields[item->field] = tensor_share(fields[departure->items[item->same_as].field]);
            continue;
        }
        struct tensor *tensor = tensor_new_travelling(rank, item->like.bytes, stream);
        tensor->format = item->like.format;
        tensor->in_blocks = item->like.in_blocks;
        tensor->rows = item->like.rows;
        tensor->cols = item->like.cols;
        rank_copy(rank, stream, tensor->data, item->buffer->memory, item->like.bytes);
        buffer_drop(rank, item->buffer, stream);
        fields[item->field] = tensor;
    }
}

/* --- operations */

void host_copies_enqueue(struct rank *rank, uint32_t i, struct device_stream *stream)
{
    const struct op *op = &ops_of(rank)[i];
    if (rank->status != STATUS_OK)
        return;
    if (op->role != COPIED_ACTIVATIONS)
        host_states_copy(rank, op, stream);
    else if (op->stream == STREAM_DOWN)
        copy_down(rank, i, op, stream);
    else
        copy_up(rank, op, stream);
}

void host_copies_awaited(struct rank *rank, const struct op *op)
{
    const struct op *ops = ops_of(rank);
    if (!rank->host || op->stream != STREAM_COMPUTE)
        return;
    uint32_t down = copy_before(ops, op);
    for (int d = 0; d < OP_DEPS; d++)
        if (op->deps[d] != NO_OP && ops[op->deps[d]].stream == STREAM_UP) {
            uint32_t before = copy_before(ops, &ops[op->deps[d]]);
            down = down == NO_OP || (before != NO_OP && before > down) ? before : down;
        }
    if (down != NO_OP)
        give_up(rank, down);
}
